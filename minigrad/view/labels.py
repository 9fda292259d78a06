"""What is written in the boxes of a diagram and beside its checkpoints."""

import os
from collections import Counter

from ..engine.replay import CHECKPOINT, results
from ..engine.tape import Node
from ..ops.cost import flops
from ..retention.advice import buffers_of_plain_taping, is_parameter
from ..retention.offload import SlowCopy
from ..table import bytes_text
from .boxes import Box
from .markup import bold, brief, brief_index, italic, small, text, width_of

LONGEST_LINE = 130  # points: an op's settings that are longer than what is left of this get a line of their own
LONGEST_NAME = 100  # points: of a leaf, on one line
LONGEST_SETTINGS = 40  # characters


class Words:
    """What is written, where it depends on the picture as a whole.

    dtype      the dtype that most values have; only others are written
    gradients  write the shapes of gradients into boxes
    """

    def __init__(self, boxes, gradients=False):
        dtypes = Counter(str(box.node.dtype) for box in boxes)
        self.dtype = max(dtypes, key=dtypes.get)
        self.gradients = gradients

    def shape(self, node):
        """A shape, with its dtype where it is not that of most."""
        dtype = "" if str(node.dtype) == self.dtype else str(node.dtype)
        return f"{dtype}{list(node.shape)}" if node.shape else f"{dtype} scalar".lstrip()

    # ---- boxes -------------------------------------------------------------------------------------

    def on_value(self, box):
        """(lines, tooltip) of one value."""
        node, number = box.node, box.key.removeprefix("n")
        size = small(text(f"{self.shape(node)} · {bytes_text(box.nbytes)}"))
        if box.is_leaf:
            return [name_of_leaf(node), size], f"{node.role}   #{number}   {node.dtype}{list(node.shape)}"
        name, given = bold(node.op.name), text(settings(box))
        if node.name:
            name += f" {italic(node.name)}"
        lines = [name + given] if width_of(name) + width_of(given) <= LONGEST_LINE else [name, small(given)]
        lines.append(size)
        if node.layer:
            lines.append(small(italic(layer_name(node.layer))))
        layer = f"   in {node.layer}" if node.layer else ""
        return lines, f"{node.line}   #{number}{layer}   {node.dtype}{list(node.shape)}"

    def on_layer(self, group):
        """(lines, tooltip) of a Group."""
        boxes, ops = group.all_boxes, small(text(ops_of(group)))
        lines = [bold(name_of(group)), ops] if group.name else [bold(ops_of(group)) if len(group.ops()) == 1 else ops]
        lines.append(small(text(self.shape(group.boxes[-1].node))))
        held = sum(box.nbytes for box in boxes if box.held)
        return lines, f"{boxes[0].node.line}   {len(boxes)} ops; the tape holds {bytes_text(held)} of their outputs"

    def backward(self, item):
        """The strip for backward, as [(kind, words)]: steps, the gradient, whether it waits. Or []."""
        boxes = [item] if isinstance(item, Box) else item.boxes
        words, last = [], boxes[-1].node
        steps = sorted(box.step for box in boxes if box.step)
        if steps:
            words.append(f"step {steps[0]}" if len(steps) == 1 else f"steps {steps[0]}–{steps[-1]}")
        waits = any(box.waits for box in boxes)
        if waits or (self.gradients and last.requires_grad and not last.freed):
            shape = f" {list(last.shape)}" if self.gradients else ""
            words.append(f"gradient{shape}{' waits' if waits else ''}")
        return [("waits" if waits else "backward", ", ".join(words))] if words else []


def name_of_leaf(node):
    """Its name, as markup; a long one in two lines: the layer's path, and what it is called there."""
    name, (path, dot, last) = bold(node.name or node.role), (node.name or "").rpartition(".")
    return f"{bold(path + dot)}<br/>{bold(last)}" if path and width_of(name) > LONGEST_NAME else name


def settings(box):
    """What an op was given besides tensors: "(·, 2.0)", "(axis=0)" or "[:, 3]"; "" if nothing."""
    node, words, index = box.node, [], ""
    if node.op is CHECKPOINT:  # it has been swept, and its body is gone
        return ""
    if not all(isinstance(source, Box) for source in box.sources):
        words = ["·" if isinstance(source, Box) else brief(source) for source in box.sources]
    for key, value in node.attrs.items():
        if key == "pattern" and isinstance(value, tuple):
            index = brief_index(value)
        elif value is not node.op.defaults.get(key, ...):
            words.append(f"{key}={brief(value)}")
    line = index + (f"({', '.join(words)})" if words else "")
    return line if len(line) <= LONGEST_SETTINGS else line[: LONGEST_SETTINGS - 2] + "…" + line[-1]


# ---- Layers ------------------------------------------------------------------------------------------


def layer_name(path):
    """A path as a name; a bare number is called a layer."""
    return f"layer {path}" if path.isdigit() else path


def name_of(item):
    """ "blocks.3", or for folded repeats "blocks.3–9", or "blocks.3–5, 7–9 … 15–17" if some are between."""
    names = list(dict.fromkeys(item.names))
    if len(names) == 1:
        return layer_name(names[0])
    before = os.path.commonprefix(names).rstrip("0123456789")
    numbers = [name[len(before) :] for name in names]
    if not all(number.isdecimal() for number in numbers):
        return f"{names[0]} … {names[-1]}"
    words = ranges([int(number) for number in numbers])
    return f"{before}{words}" if before else f"layers {words}"


def ranges(numbers):
    """Numbers in order, as ranges: "0–8, 10–18 … 80–88"."""
    runs = []
    for number in numbers:
        if runs and runs[-1][1] == number - 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    words = [f"{first}–{last}" if last > first else str(first) for first, last in runs]
    return ", ".join(words) if len(words) <= 2 else f"{words[0]}, {words[1]} … {words[-1]}"


def ops_of(group):
    """The ops of a layer in a few words: "matmul, add, tanh", or for repeats "(matmul, tanh) × 10"; views last."""
    working = {box.node.op.name for box in group.boxes if flops(box.node)}
    ops = sorted(group.ops().items(), key=lambda op: op[0] not in working)
    parts = [name if count == 1 else f"{name} × {count}" for name, count in ops]
    words = ", ".join(parts[:3]) + (", …" if len(parts) > 3 else "")
    return words if group.count == 1 else f"({words}) × {group.count}"


def title_of(part):
    """What is written above a module or a repeat, as markup."""
    times = f" × {part.count}" if part.count > 1 else ""
    return bold(f"{name_of(part)}{times}".strip())


# ---- Checkpoints -------------------------------------------------------------------------------------


def words_on(part):
    """What is written in a checkpoint, as lines: its name, what it keeps, what replay brings back."""
    frame, count = part.frame, part.count
    times = f" × {count}" if count > 1 else ""
    lines = [bold(f"checkpoint {name_of(part) if part.name else ''}".strip() + times)]
    if frame.step:
        lines.append(text(f"replayed in step {frame.step}"))
    if frame.body is None:
        return [*lines, text("replayed, and being swept")]
    inside = {node for line in frame.body.lines for node in results(line)} - frame.held
    rebuilt = sum(node.nbytes for node in buffers_of_plain_taping(frame.body) if node in inside)
    each = "each " if count > 1 else ""
    if isinstance(frame.node, Node):
        lines.append(text(f"{each}keeps {kept_by(frame.node)}"))
    return [*lines, text(f"replay brings back {bytes_text(rebuilt)}")]


def kept_by(checkpoint):
    """How many bytes a checkpoint keeps: of its boundary, in slow memory, and inside, where its policy says so."""
    fast = sum(s.nbytes for s in checkpoint.inputs if s.out is not None and not is_parameter(s))
    kept = checkpoint.needs.kept.values()
    slow = sum(value.nbytes for value in kept if isinstance(value, SlowCopy))
    inside = sum(value.nbytes for value in kept if not isinstance(value, SlowCopy))
    parts = [bytes_text(fast)] if fast or not (slow or inside) else []
    parts += [f"{bytes_text(slow)} in slow memory"] if slow else []
    parts += [f"{bytes_text(inside)} inside"] if inside else []
    return " and ".join(parts)
