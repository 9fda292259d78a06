"""What the layers of a chain cost, as plain numbers: the model that `hetero` and `exhaustive_optimum` work on."""

import math
from dataclasses import dataclass, fields

from ..errors import ArgumentError

SIZES = ("output_bytes", "kept_bytes", "forward_extra", "passing_extra", "taped_extra", "backward_extra")
SIZES += ("last_kept_bytes", "last_extra", "held_output_bytes", "gradient_bytes")
TIMES = ("forward", "backward", "last_forward")
DEFAULTS = {  # what stands for a field that was not given: another field, or a value
    "reads_input": True,
    "forward_extra": 0,
    "passing_extra": "forward_extra",
    "taped_extra": "forward_extra",
    "backward_extra": 0,
    "last_forward": "forward",
    "last_kept_bytes": "kept_bytes",
    "last_extra": "taped_extra",
    "held_output_bytes": 0,
    "gradient_bytes": 0,
}


@dataclass(frozen=True)
class LayerCosts:
    """Sizes and times of a chain of layers. Each field but the first holds one value for each layer.

    input_bytes      the input of the first layer
    output_bytes     the layer's output, which is the next layer's input: all the memory that holding it keeps alive
    kept_bytes       what the tape keeps of the layer beyond its input: inner values, and its output if anything
                     reads that, as the next layer does
    forward          time of its forward, taped or not
    backward         time of its backward

    reads_input      whether its backward reads its input (True if not given). If not, and if the layer before does not
                     read that either, it being its output, the tape lets go of it

    What else is held for a moment (0 if not given):

    forward_extra    while it runs without being taped: beyond its input and its output
    passing_extra    the same if its input may go as soon as it has used it; as forward_extra if not given
    taped_extra      while it runs and is taped: beyond its input and kept_bytes; as forward_extra if not given
    backward_extra   while its backward runs: beyond its input, kept_bytes and its output's gradient
    gradient_bytes   its output's gradient. 0 is how minigrad counts a budget; most papers count it

    A replay does not run what nobody reads, and of the last layer of its stretch nobody reads the output.
    What a replay does of the layer, if that is where it ends (the same as elsewhere, if not given):

    last_forward     the time          last_kept_bytes  what the tape keeps          last_extra  as taped_extra

    If backward of that layer reads its output, as that of tanh does, the output has been held for that, and is at hand:

    held_output_bytes  what of its output is held all through such a replay, and is no part of last_kept_bytes; or 0.
                       (It is held only if the next layer is a checkpoint's first, or reads its input. If it may have
                       to be made again, let last_forward and last_extra be what that takes)

    A field may be given as one value, if it is the same for all layers. Times may be in any unit. Sizes are whole
    numbers, in bytes or in any other unit. ArgumentError says which field is wrong, and where.

    >>> LayerCosts(input_bytes=4, output_bytes=(4, 8), kept_bytes=(4, 0), forward=1, backward=2).store_all_bytes
    8
    """

    input_bytes: int
    output_bytes: tuple
    kept_bytes: tuple
    forward: tuple
    backward: tuple
    reads_input: tuple | None = None
    forward_extra: tuple | None = None
    passing_extra: tuple | None = None
    taped_extra: tuple | None = None
    backward_extra: tuple | None = None
    last_forward: tuple | None = None
    last_kept_bytes: tuple | None = None
    last_extra: tuple | None = None
    held_output_bytes: tuple | None = None
    gradient_bytes: tuple | None = None

    def __post_init__(self):
        object.__setattr__(self, "input_bytes", checked_size(self.input_bytes, "input_bytes"))
        count = length_of(self)
        for field in fields(self)[1:]:
            name, given = field.name, getattr(self, field.name)
            if given is None:
                default = DEFAULTS.get(name)
                if default is None:
                    raise ArgumentError(f"LayerCosts needs {name}, one value for each layer")
                given = getattr(self, default) if isinstance(default, str) else default
            object.__setattr__(self, name, checked_row(given, name, count))

    @classmethod
    def unit(cls, layers: int) -> "LayerCosts":
        """The reference chain of `h @ W` layers: every activation and every time is 1, backward twice that.

        A layer keeps its output for the next one only, so the last keeps nothing, and a replay does nothing for
        the last layer of its stretch.

        >>> LayerCosts.unit(3).kept_bytes
        (1, 1, 0)
        """
        if isinstance(layers, bool) or not isinstance(layers, int) or layers < 1:
            raise ArgumentError(f"a chain needs a whole number of layers, at least one, not {layers!r:.60}")
        kept = (1,) * (layers - 1) + (0,)
        return cls(1, (1,) * layers, kept, forward=1, backward=2, last_forward=0, last_kept_bytes=0)

    @property
    def layers(self) -> int:
        return len(self.output_bytes)

    @property
    def activations(self) -> tuple:
        """Bytes of the activations, the chain's input first: layer i reads number i and makes number i + 1."""
        return (self.input_bytes, *self.output_bytes)

    @property
    def store_all_time(self) -> float:
        """Time of one forward and one backward with everything kept: no schedule is faster."""
        return sum(self.forward) + sum(self.backward)

    @property
    def lets_go_of_input(self) -> tuple:
        """For each layer, whether the tape lets go of its input, once the layer has run in the middle of a stretch."""
        held_by_the_one_before = (True, *self.held_output_bytes[:-1])
        return tuple([not (read or held) for read, held in zip(self.reads_input, held_by_the_one_before, strict=True)])

    def held_bytes(self, layer: int, in_the_middle: bool) -> int:
        """What the tape holds of a layer and its input, its output aside, while the layers after it go on."""
        inner = max(0, self.kept_bytes[layer] - self.output_bytes[layer])
        return inner + (0 if in_the_middle and self.lets_go_of_input[layer] else self.activations[layer])

    @property
    def store_all_bytes(self) -> int:
        """What the tape holds at the end of forward, if it keeps everything."""
        held = sum(self.held_bytes(layer, layer > 0) for layer in range(self.layers))
        last = self.layers - 1
        return held - max(0, self.kept_bytes[last] - self.output_bytes[last]) + self.kept_bytes[last]


def length_of(costs):
    """How many layers the fields speak of."""
    names = SIZES + TIMES + ("reads_input",)
    given = {name: len(getattr(costs, name)) for name in names if hasattr(getattr(costs, name), "__len__")}
    if not given:
        raise ArgumentError("LayerCosts needs one field at least as a sequence, such as output_bytes=(4, 4, 4)")
    name, count = next(iter(given.items()))
    for other, length in given.items():
        if length != count:
            raise ArgumentError(f"{name} speaks of {count} layers, and {other} of {length}; give each layer a value")
    if count == 0:
        raise ArgumentError("a chain needs at least one layer")
    return count


def checked_row(given, name, count):
    """A field as a tuple of `count` values."""
    values = given if hasattr(given, "__len__") else (given,) * count
    check = checked_size if name in SIZES else checked_time if name in TIMES else checked_flag
    return tuple([check(value, f"{name}[{i}]") for i, value in enumerate(values)])


def checked_size(number, name):
    """A size as an int; one given as a float, such as 4e6, must be whole."""
    try:
        if number >= 0 and number == int(number):
            return int(number)
    except (TypeError, ValueError, OverflowError):
        pass
    raise ArgumentError(f"{name} must be a whole number of bytes, not {number!r:.60}")


def checked_time(number, name):
    try:
        if 0 <= number < math.inf:
            return number
    except (TypeError, ValueError):
        pass
    raise ArgumentError(f"{name} must be a time, a number from 0, not {number!r:.60}")


def checked_flag(value, name):
    if value in (True, False):
        return bool(value)
    raise ArgumentError(f"{name} must be True or False, not {value!r:.60}")
