"""What a mistake gets.

Every error of minigrad is a `MinigradError`, itself a RuntimeError. Its text says what is wrong (with the
op, the layer, the shapes and your own source line where there is one), then what to do about it. Where
Python users expect a ValueError or a TypeError, the error is one of those as well.
"""


class MinigradError(RuntimeError):
    """The base of all of them: `except mg.MinigradError` catches whatever minigrad has to say."""


class ShapeError(MinigradError, ValueError):
    """Arrays whose shapes do not fit one another."""


class DtypeError(MinigradError, TypeError):
    """A dtype that cannot do what was asked, such as an integer tensor that should require a gradient."""


class ArgumentError(MinigradError, TypeError):
    """An argument that an op or a function cannot take."""


class IndexingError(MinigradError, IndexError):
    """An index that is out of range, or of a kind that arrays do not take."""


class NoGradientError(MinigradError):
    """A gradient was asked of something that has none, or for something the output does not depend on."""


class GraphFreedError(MinigradError):
    """A backward over a stretch of the tape whose buffers an earlier backward has let go."""


class OverwrittenError(MinigradError):
    """A leaf's data was replaced after something read it, and backward needs what was there before."""


class CheckpointError(MinigradError):
    """A tensor smuggled out of a checkpoint, or a replay that did not give what the first run gave."""


class DeviceError(MinigradError):
    """Arrays of different devices in one op, or a device that is not there."""


class BudgetError(MinigradError):
    """A memory budget, a number of slots or of segments, that no schedule can meet."""


class CheckpointWarning(UserWarning):
    """A checkpoint that costs a replay and saves nothing."""
