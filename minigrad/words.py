"""What errors and warnings say: what is wrong, with op, layer, shapes and the user's line; then what to do.

The functions here make the exceptions; the engine raises them where it notices.
"""

import warnings

from .device import device_of, is_array
from .errors import (
    CheckpointError,
    CheckpointWarning,
    DeviceError,
    DtypeError,
    GraphFreedError,
    IndexingError,
    MinigradError,
    OverwrittenError,
    ShapeError,
)
from .modes import local
from .place import line_number, source_line, user_position
from .table import bytes_text

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
    if isinstance(error, IndexError):
        return IndexingError(text)
    if isinstance(error, ValueError):
        return ShapeError(text.rstrip(".") + ". Check the shapes; a reshape() or unsqueeze() may be missing")
    return DtypeError(text) if isinstance(error, TypeError) else MinigradError(text)


def vjp_error(node, vjp, gradient, error):
    """An exception inside a vjp."""
    return MinigradError(
        f"{vjp.function.__name__}, the gradient of {node.op.name} at {node.line}, failed on a gradient of shape "
        f"{gradient.shape}: {type(error).__name__}: {error}"
    )


def nan_error(node, vjp, gradient, result, checkpoint):
    """With detect_anomaly: a vjp has made a nan."""
    inside = "" if checkpoint is None else f", inside the checkpoint at {checkpoint.line}"
    layer = f" in layer {node.layer}" if node.layer else ""
    had_one = bool((gradient != gradient).any())
    return MinigradError(
        f"{vjp.function.__name__}, the gradient of {node.op.name} at {node.line}{layer}{inside}, gave a nan in an "
        f"array of shape {tuple(result.shape)}; the gradient that arrived had shape {tuple(gradient.shape)} and "
        f"{'a nan already' if had_one else 'none'}. Look at what {node.op.name} was given there: a zero, an "
        "infinity or a masked value can have a slope that is not a number"
    )


def vjp_shape_error(node, vjp, got, expected):
    """A vjp that gave a gradient no broadcasting can explain."""
    return ShapeError(
        f"{vjp.function.__name__} of {node.op.name} at {node.line} gave a gradient of shape {got} for an input of "
        f"shape {expected}; a vjp must give its input's shape, or one that broadcasting made of it"
    )


def freed_error(node):
    """Backward comes to a node for the second time."""
    what = f"{node.op.name} at {node.line}" if node.op is not None else repr(node)
    return GraphFreedError(
        f"backward needs what the tape kept for {what} ({node.dtype}{list(node.shape)}), and an earlier backward has "
        "freed it. Call that one with retain_graph=True, or compute the loss again"
    )


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
    return CheckpointError(
        f"the replay of {line.op.name} at {line.line} gave another value than its first run "
        f"({line.dtype}{list(line.shape)}), and it is the first op of the checkpoint that does. Either the op is "
        "not a pure function of its inputs and settings, or something wrote into a buffer behind the tape"
    )


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
