"""What errors and warnings say: what is wrong, with op, layer, shapes and the user's line; then what to do.

The functions here make the exceptions; the engine raises them where it notices.
"""

import inspect
import warnings
import weakref

import numpy

from ..errors import (
    CheckpointError,
    CheckpointWarning,
    DeviceError,
    DtypeError,
    GraphFreedError,
    IndexingError,
    MinigradError,
    OutOfMemoryError,
    OverwrittenError,
    ShapeError,
)
from ..table import bytes_text
from .device import device_of, is_array, to_device
from .modes import local
from .place import line_number, source_line, user_position

_already_warned = {}

def forward_error(op, arrays, error):
    """What NumPy said about an op's forward, as an error of minigrad's."""
    layer = local.context.layer
    place = source_line(user_position()) + (f" in layer {layer}" if layer else "")
    shapes = ", ".join(f"{a.dtype}{list(a.shape)}" if is_array(a) else repr(a) for a in arrays)
    devices = {device_of(a) for a in arrays if is_array(a)}
    if len(devices) > 1:
        both = " and ".join(sorted(devices))
        return DeviceError(f"{op.name} at {place} got tensors on {both}; move them together with .to(device)")
    text = f"{op.name} at {place} cannot work on {shapes}: {error}"
    if "read-only" in str(error):
        return MinigradError(text + ". An op's forward must not write into its inputs; let it make a new array")
    if isinstance(error, MemoryError):
        return OutOfMemoryError(text + ". Make the batch smaller, or look at the shapes")
    if isinstance(error, IndexError):
        return IndexingError(text)
    if isinstance(error, ValueError):
        return ShapeError(text.rstrip(".") + ". Check the shapes; a reshape() or unsqueeze() may be missing")
    return DtypeError(text) if isinstance(error, TypeError) else MinigradError(text)


def vjp_error(node, vjp, gradient, error):
    """An exception inside a vjp."""
    kind = OutOfMemoryError if isinstance(error, MemoryError) else MinigradError
    return kind(
        f"{vjp.function.__name__}, the gradient of {node.op.name} at {node.line}, failed on a gradient of shape "
        f"{gradient.shape}: {type(error).__name__}: {error}"
    )


def nan_error(node, vjp, gradient, result, checkpoint):
    """With detect_anomaly: a vjp has made a nan. Says where in its array, and what was there before."""
    inside = "" if checkpoint is None else f", inside the checkpoint at {checkpoint.line}"
    layer = f" in layer {node.layer}" if node.layer else ""
    made, arrived = on_host(result), on_host(gradient)
    index, count = first_where(numpy.isnan, made)
    read = "".join(f" It read {name} = {value} there." for name, value in read_at(index, made.shape, node, vjp))
    return MinigradError(
        f"{vjp.function.__name__}, the gradient of {node.op.name} at {node.line}{layer}{inside}, gave nan at "
        f"{list(index)} of its {made.dtype}{list(made.shape)}, the first of {count}.{read} The gradient that arrived, "
        f"{arrived.dtype}{list(arrived.shape)}, {state_of(arrived, index, made.shape)}. Look at what {node.op.name} "
        "was given: a zero, an infinity or a masked value can have a slope that is not a number"
    )


def on_host(gradient):
    """A gradient (an array, a Tensor, or the scalar that NumPy makes of a 0-d result) as a NumPy array."""
    array = getattr(gradient, "_data", gradient)
    return to_device(array, "cpu") if is_array(array) else numpy.asarray(array)


def first_where(is_bad, array):
    """(index, count) of the elements for which `is_bad` holds; the index is the first one's, None if there is none."""
    places = numpy.argwhere(is_bad(array))
    return (tuple(map(int, places[0])), len(places)) if len(places) else (None, 0)


def read_at(index, shape, node, vjp):
    """(name, value at `index`) of the buffers of this shape that a vjp reads."""
    names = node.op.parameters[: node.op.arity]
    for name in list(inspect.signature(vjp.function).parameters)[1:]:
        if name == "out":
            source = node
        elif name in names[: len(node.inputs)] and not node.op.variadic:
            source = node.inputs[names.index(name)]
        else:
            continue
        if getattr(source.out, "shape", None) == shape:
            yield name, source.out[index]


def state_of(arrived, index, shape) -> str:
    """The first bad value of the gradient that arrived; if it has none, its value where the nan came out."""
    bad, count = first_where(numpy.isnan, arrived)
    if count:
        return f"had a nan already at {list(bad)}, the first of {count}"
    bad, count = first_where(numpy.isinf, arrived)
    if count:
        return f"was {arrived[bad]} at {list(bad)}, the first of {count} that are not finite"
    return f"was finite, {arrived[index]} there" if arrived.shape == shape else "was finite"


class ErrorNode:
    """The node at which an error came up, as `error.node` has it: words and numbers, which keep nothing alive.

    op, line, layer, shape, dtype, name   the node's; op is its op's name, None for a leaf
    number    its place on the tape
    numbers   of the nodes by which a picture may know it: its own, and those of the checkpoints it was replayed for
    """

    __slots__ = ("op", "line", "layer", "shape", "dtype", "name", "number", "numbers", "reference")

    def __init__(self, node):
        self.op = None if node.op is None else node.op.name
        self.line, self.layer, self.shape, self.dtype, self.name = (
            node.line, node.layer, node.shape, node.dtype, node.name
        )  # fmt: skip
        self.number, self.numbers, self.reference = node.number, (node.number,), weakref.ref(node)

    def __repr__(self):
        layer = f" in {self.layer}" if self.layer else ""
        return f"<{self.op or 'leaf'} #{self.number} {tuple(self.shape)} {self.dtype}{layer} at {self.line}>"

    def __getstate__(self):
        return {name: getattr(self, name) for name in self.__slots__ if name != "reference"}

    def __setstate__(self, state):
        for name, value in state.items():
            setattr(self, name, value)
        self.reference = None

    @property
    def node(self):
        """The node itself, as long as something else keeps it alive; then None."""
        return None if self.reference is None else self.reference()


def locate(error, nodes):
    """Let `error.node` be the first of these nodes, unless it is one already; the others are the checkpoints around.

    Returns the error.
    """
    if getattr(error, "node", None) is None:
        error.node = ErrorNode(nodes[0])
    error.node.numbers = tuple(dict.fromkeys([*error.node.numbers, *(node.number for node in nodes)]))
    return error


def vjp_shape_error(node, vjp, got, expected):
    """A vjp that gave a gradient no broadcasting can explain."""
    return ShapeError(
        f"{vjp.function.__name__} of {node.op.name} at {node.line} gave a gradient of shape {got} for an input of "
        f"shape {expected}; a vjp must give its input's shape, or one that broadcasting made of it"
    )


def freed_error(node):
    """Backward comes to a node for the second time."""
    what = f"{node.op.name} at {node.line}" if node.op is not None else repr(node)
    error = GraphFreedError(
        f"backward needs what the tape kept for {what} ({node.dtype}{list(node.shape)}), and an earlier backward has "
        "freed it. Call that one with retain_graph=True, or compute the loss again"
    )
    return locate(error, [node])


def overwritten_error(leaf, reader):
    """A leaf is younger than what read it."""
    what = f"{leaf.role} {leaf.name}" if leaf.name else f"a {leaf.role} of shape {leaf.shape}"
    return OverwrittenError(
        f"{what} was overwritten after the {reader.op.name} at {reader.line} read it, and backward needs the "
        "value from before; call backward before the update, or run the forward again after it"
    )


def smuggled_error(node):
    """A tensor that was made inside a checkpoint has left it by a side door, and is used."""
    return CheckpointError(
        f"this tensor ({node.op.name}, {node.dtype}{list(node.shape)}, made at {node.line}) was computed inside "
        f"{node.region} but not returned from it, so there is no way for a gradient to get back in; return it "
        "from the function, or, if you only want its value, return or keep t.detach(), called inside the function"
    )


def verify_error(line):
    """A replayed op gave other bits than its first run."""
    error = CheckpointError(
        f"the replay of {line.op.name} at {line.line} gave another value than its first run "
        f"({line.dtype}{list(line.shape)}), and it is the first op of the checkpoint that does. Either the op is "
        "not a pure function of its inputs and settings, or something wrote into a buffer behind the tape"
    )
    return locate(error, [line])


def warn_useless(region, kept, plain):
    """A checkpoint whose boundary costs as much as the tape would have."""
    buffers = f"{kept} buffer" if kept == 1 else f"{kept} buffers"
    warn(
        region.where,
        f"{region} saves nothing: it keeps {buffers}, where the tape without it would keep {plain}, and its "
        f"replay brings the peak back to {plain}. Checkpoint a longer stretch, or leave it out",
    )


def warn_policy(region, chosen, kept, plain):
    """A policy that keeps more than no checkpoint at all would."""
    values = "1 value" if chosen == 1 else f"{chosen} values"
    warn(
        region.where,
        f"{region} saves nothing: with the {values} that its policy keeps it holds {bytes_text(kept)}, where the tape "
        f"without it would hold {bytes_text(plain)}. An op's output is not always what its gradient reads; let the "
        "policy keep less, or leave the checkpoint out",
    )


def warn_nothing_returned(region, result):
    """A checkpoint whose function computed gradients' way for nothing."""
    warn(
        region.where,
        f"{region} returned {type(result).__name__!r} with no tensor in it that requires grad, though ops in it do: no "
        "gradient will flow through it. Tensors are found in tuples, lists and dicts, not in other containers",
    )


def warn_whole(node, replayed, plain):
    """A checkpoint that stands for all there is."""
    warn(
        node.where,
        f"the checkpoint at {node.line} stands for the whole network, or nearly: its replay holds {replayed} "
        f"buffers at once, and the tape without it would have held {plain}. Split it, for example with "
        "mg.checkpoint_sequential(layers, mg.schedules.sqrt(), x)",
    )


def warn(where, text):
    """A CheckpointWarning at the user's own line; the same line is not told twice (Python's default)."""
    file, line = where[0].co_filename, line_number(where)
    warnings.warn_explicit(text, CheckpointWarning, file, line, registry=_already_warned)
