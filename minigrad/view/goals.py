"""How far a stepper's command goes: each goal says of a step whether it is the one to stop at."""


class Goal:
    """How far to go: `reached` is asked of each step, before it is taken and again after it."""

    def reached(self, number, kind, node) -> bool:
        return False


class ToTheEnd(Goal):
    """`continue`: no stop."""


class ToStep(Goal):
    """`next`, `peak`: up to the step of this number."""

    def __init__(self, number):
        self.number = number

    def reached(self, number, kind, node):
        return number >= self.number


class ToAnotherLayer(Goal):
    """`layer`: to the first node of another layer; nodes that are in no layer are passed by."""

    def __init__(self, layer):
        self.layer = layer

    def reached(self, number, kind, node):
        return bool(node.layer) and node.layer != self.layer


class ToReplay(Goal):
    """`replay`: to the next step in which a checkpoint is replayed."""

    def reached(self, number, kind, node):
        return kind == "replay"


class ToWord(Goal):
    """`until`: to a node that is called so."""

    def __init__(self, word):
        self.word = word

    def reached(self, number, kind, node):
        return self.word in words_for(node)


def words_for(node) -> set:
    """What `until` may call a node: its op, number, line and name; its layer, or one around it; leaves that it gives a
    gradient."""
    words = {f"#{node.number}", node.name}
    if node.op is not None:
        words.update((node.op.name, node.line))
        parts = node.layer.split(".")
        words.update(".".join(parts[: i + 1]) for i in range(len(parts)))
        words.update(node.inputs[index].name for index, _ in node.needs.vjps if node.inputs[index].op is None)
    return words - {None, ""}
