"""Where a walk backward is, for a picture of that moment.

A walk that is under way keeps the fresh nodes of a replay on its heap, and nothing else may hold them. The walks of a
thread can be found (walk.py, `here`); those that began at what is drawn say which nodes there are besides, which
checkpoint they were replayed for, and where a gradient waits. Which node is in hand only a Step says.
"""

from ..engine.tape import Node
from ..engine.walk import here
from ..errors import ArgumentError

HAND_KINDS = {"op": "backward", "replay": "replay", "error": "error", "start": "next", "leaf": "leaf"}


class Moment:
    """What there is to know besides the tape.

    walks    the walks under way that began at one of the nodes drawn
    hand     the node in hand, or None, and `kind`, what happens to it: backward, replay, leaf, next, error
    nodes    what replays have made, as far as perhaps nothing else leads there
    waiting  nodes at which a gradient waits
    """

    def __init__(self, roots=(), at=None, nodes=()):
        """roots: where the picture begins; at: a Step, or None; nodes: others that somebody wants to see."""
        self.hand, self.kind = hand_of(at)
        numbers = {root.number for root in roots}
        self.walks = [walk for walk in here.walks if not walk.began_at.isdisjoint(numbers)]
        waiting = [node for walk in self.walks for _, node in walk.heap]
        self.nodes = [n for n in (*waiting, *nodes, self.hand) if n is not None and self.checkpoints_around(n)]
        self.waiting = [node for walk in self.walks for node in (*walk.grads, *walk.leaves)]
        if self.kind == "leaf":
            self.waiting = []

    def checkpoints_around(self, node) -> list:
        """The checkpoint whose replay has made a node, the one that this was replayed for, and so on."""
        for walk in self.walks:
            if node.number > walk.start and (around := walk.checkpoints_around(node)):
                return around
        return []


def hand_of(at):
    """(node, kind) of a Step, or of whatever has a node and a kind, as a Moment of the stepper."""
    if at is None:
        return None, None
    node, kind = getattr(at, "node", None), getattr(at, "kind", None)
    if not isinstance(node, Node) or kind not in HAND_KINDS:
        raise ArgumentError(f"at takes a Step of mg.steps, not {at!r:.60}")
    return node, HAND_KINDS[kind]
