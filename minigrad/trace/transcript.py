"""What ran, in words: the tracer's list of values, each with the line of the program that computed it.

A `Value` is what one op gave on its first run, or data that an op read. It is plain text and numbers and keeps
nothing alive. A tracer's events name values by their index, so that a run can be shown when all of its nodes and
arrays are gone.

One value is met in several guises: as the array that its op returned, as a node of the tape, as a line in the body
of a checkpoint, as the fresh node that a replay writes of that line. The confusing program is this one:

    y = mg.checkpoint(lambda t: mg.tanh(mg.exp(t)), x)

Here exp has no node on the tape. The tracer hears that it ran; then tanh reads exp's array, and so the two belong
together. When the checkpoint closes, its body tells which lines there are. In backward a fresh node for exp turns
up: it has the line's own settings (`attrs`, the very same dict), and is known by them.
"""

import weakref
from dataclasses import dataclass
from typing import NamedTuple

from ..engine.modes import local
from ..engine.place import line_number, user_position
from ..engine.tensor import Tensor
from ..engine.tracer import NONE


class Function(NamedTuple):
    """A function's name, and where its source begins."""

    name: str
    file: str
    line: int


@dataclass(slots=True)
class Value:
    """One value of a run.

    op          name of the op that computed it; "" for data, which no op has made
    role, name  of data: "parameter" or "input", and its name if it has one
    layer       path of the nn layers that were running
    place       (file, line number) of the user's program; None for data
    shape, dtype, nbytes   of its array
    inputs      indices of the values that were read, in the order of the op's arguments; -1 for plain numbers
    forward     the op's function
    vjps        (position among the inputs, function) of each of its vjps, once backward has come to it
    checkpoint  index of the innermost checkpoint that it is in, -1 for none
    """

    op: str
    role: str
    name: str
    layer: str
    place: tuple | None
    shape: tuple
    dtype: object
    nbytes: int
    inputs: tuple
    forward: Function | None
    vjps: tuple = ()
    checkpoint: int = NONE


class Checkpoint(NamedTuple):
    """One checkpoint of a run: its name, the user's (file, line number), and the index of the one around it."""

    name: str
    place: tuple
    parent: int


class Transcript:
    """The values and checkpoints of a run, in the order in which they were met.

    The tracer tells of what the engine tells it; each answer is the index of a value.
    """

    def __init__(self):
        self.values, self.checkpoints = [], []
        self._numbers = {}  # a node's number -> index
        self._arrays = {}  # id of an array -> (weak reference to it, index)
        self._lines = {}  # id of the attrs of a body's line -> weak reference to the line
        self._unread = {}  # index of a value made in an open checkpoint, whose node has not been seen yet -> True

    # ---- finding -----------------------------------------------------------------------------------

    def of_array(self, array, node=None) -> int:
        """The value that an array has, or `node`, if nobody has seen the array before; -1 if that is unknown too."""
        reference, index = self._arrays.get(id(array), (None, NONE))
        if reference is not None and reference() is array:
            return index
        return NONE if node is None else self.of(node)

    def of(self, node) -> int:
        """The value of a node, which is put down now if it is new; -1 for a plain number."""
        if node.dtype is None:
            return NONE
        index = self._numbers.get(node.number)
        if index is None:
            *_, line = guises(node)
            index = self._numbers.get(line.number)
            self._link(node, self._write_down(line) if index is None else index)
        return self._numbers[node.number]

    # ---- what the tracer tells ---------------------------------------------------------------------

    def ran(self, op, args, arrays, out) -> int:
        """An op has run for the first time."""
        if local.context.region is None:
            self._unread.clear()
        inputs = tuple([self._source(arg, array) for arg, array in zip(args, arrays, strict=True)])
        place, forward = place_of(user_position()), function_of(op.forward)
        layer = local.context.layer
        self.values.append(Value(op.name, "", "", layer, place, out.shape, out.dtype, out.nbytes, inputs, forward))
        index = len(self.values) - 1
        self._arrays[id(out)] = weakref.ref(out), index
        if local.context.region is not None:
            self._unread[index] = True
        return index

    def held(self, reader):
        """A node has been written on the tape: for the op that ran last, for a checkpoint, or by a replay."""
        if local.context.phase == "replay":
            self._link(reader, self._of_fresh(reader))
        elif reader.body is None:
            ran_last = self.values and self.values[-1].op == reader.op.name
            self._link(reader, len(self.values) - 1 if ran_last else self.of(reader))
        elif reader.attrs["index"] == 0:
            self._learn(reader)

    def replays(self, line, out) -> int:
        """A replay has run a line of a body."""
        self._lines[id(line.attrs)] = weakref.ref(line)
        index = self.of(line)
        self._arrays[id(out)] = weakref.ref(out), index
        return index

    def sweeps(self, node) -> int:
        """The vjps of a node run."""
        index = self.of(node)
        if not self.values[index].vjps:
            self.values[index].vjps = tuple([(i, function_of(vjp.function)) for i, vjp in node.needs.vjps])
        return index

    # ---- which is which ----------------------------------------------------------------------------

    def _source(self, arg, array):
        """The value that an op was given."""
        if not isinstance(arg, Tensor):
            return NONE
        index, node = self.of_array(array), arg._node
        if index == NONE:
            index = self._write_down_data(array) if node is None else self.of(node)
            self._arrays[id(array)] = weakref.ref(array), index
        elif node is not None and node.op is not None:
            self._link(node, index)
        return index

    def _link(self, node, index):
        """From now on, this node is known to have that value; so is what a checkpoint's node stands for."""
        self._unread.pop(index, None)
        for guise in guises(node):
            self._numbers.setdefault(guise.number, index)

    def _of_fresh(self, node):
        """The value of a node that a replay has written: that of the body's line that has the same settings."""
        if node.body is not None:
            return self.of(node)
        reference = self._lines.get(id(node.attrs))
        line = None if reference is None else reference()
        return self.of(line if line is not None and line.attrs is node.attrs else node)

    def _learn(self, checkpoint):
        """A checkpoint has closed: put its body's lines and their values together."""
        waiting = [(checkpoint, checkpoint.name, NONE)]
        for call, name, parent in waiting:  # grows as it goes, by the checkpoints inside
            self.checkpoints.append(Checkpoint(name or "", place_of(call.where), parent))
            mine = len(self.checkpoints) - 1
            for line in reversed(call.body.lines):
                if line.body is not None:
                    waiting.append((line, line.outputs[0].name, mine))
                    continue
                self._lines[id(line.attrs)] = weakref.ref(line)
                if line.number not in self._numbers:
                    self._link(line, self._unread_value(line))
                self.values[self.of(line)].checkpoint = mine

    def _unread_value(self, line):
        """The value of a line that no op has read: the last one of this op, from this place in the program."""
        what = line.op.name, place_of(line.where), line.layer, line.shape
        for index in reversed(self._unread):
            value = self.values[index]
            if (value.op, value.place, value.layer, value.shape) == what:
                return index
        return self._write_down(line)

    def _write_down_data(self, array):
        """A new value, of a tensor that has no node: data, and constants."""
        self.values.append(Value("", "input", "", "", None, array.shape, array.dtype, array.nbytes, (), None))
        return len(self.values) - 1

    def _write_down(self, node):
        """A new value, of a leaf, or of a node that was there before the tracer was."""
        op, role, name, forward = "", "", "", None
        if node.op is None:
            role, name = node.role, node.name or ""
        else:
            op, forward = node.op.name, function_of(getattr(node.op, "forward", None))
        place, array = place_of(node.where), (node.shape, node.dtype, node.nbytes)
        inputs = tuple([self._numbers.get(source.number, NONE) for source in node.inputs])
        self.values.append(Value(op, role, name, node.layer, place, *array, inputs, forward))
        return len(self.values) - 1


def guises(node):
    """A node, the line of the body that it stands for if it is a checkpoint's, and so on inwards."""
    yield node
    while node.body is not None:
        node = node.body.outputs[node.attrs["index"]]
        yield node


def place_of(where):
    """A position as (file, line number)."""
    return None if where is None else (where[0].co_filename, line_number(where))


def function_of(function):
    """A function as (name, file, line); None for what has no Python source."""
    code = getattr(function, "__code__", None)
    return None if code is None else Function(function.__name__, code.co_filename, code.co_firstlineno)
