"""Arrays and source lines in a few words: what a person sees at a stop of the stepper.

An array of a few elements is shown whole; of a larger one, its range, mean and norm, and its first nan if it has
one. Nothing here keeps an array, a frame or a node alive: the results are strings.
"""

import inspect
import linecache
import os
import textwrap
import traceback

import numpy

from ..engine.device import is_array, to_device
from ..engine.place import ENGINE_FILES, line_number
from ..engine.tensor import Tensor
from ..table import shape_text

WIDTH = 100
WHOLE = 6  # elements of an array that is shown whole
AROUND = 2  # lines of source shown before and after a line
LONGEST = 8  # lines of a vjp that are shown


def glance(value) -> str:
    """An array, a Tensor or a number, on one line.

    >>> glance(numpy.array([[1.0, 2.5]]))
    'float64[1, 2]  [[1. , 2.5]]'
    >>> glance(numpy.arange(8.0))
    'float64[8]  0 to 7, mean 3.5, norm 11.8'
    """
    array = value.data if isinstance(value, Tensor) else value
    if isinstance(array, numpy.generic):
        array = numpy.asarray(array)  # what NumPy makes of a 0-d result
    if not is_array(array):
        return repr(value)
    array = to_device(array, "cpu")
    return f"{array.dtype}{list(array.shape)}  {in_words(array)}"


def in_words(array) -> str:
    """The elements of a NumPy array: all of them if they are few."""
    if array.size <= WHOLE:
        text = numpy.array2string(array, separator=", ", precision=4, threshold=WHOLE)
        return " ".join(text.split())
    if array.dtype.kind != "f":
        return f"{array.min()} to {array.max()}"
    bad = numpy.isnan(array)
    if bad.any():
        first = [int(i) for i in numpy.argwhere(bad)[0]]
        return f"{int(bad.sum())} of {array.size} are nan, the first at {first}"
    with numpy.errstate(all="ignore"):
        wide = array.astype(numpy.float64)
        figures = wide.min(), wide.max(), wide.mean(), numpy.sqrt((wide * wide).sum())
    low, high, mean, norm = (f"{figure:.3g}" for figure in figures)
    if figures[0] == figures[1]:
        return f"all {low}, norm {norm}"
    return f"{low} to {high}, mean {mean}, norm {norm}"


# ---- What a node's vjps read and give ----------------------------------------------------------------


def values_read(node) -> list:
    """(name, its value at a glance) of all that the vjps of an op's node will read besides the gradient.

    To be called before the sweep takes the node: it lets go of what is read only here.
    """
    found = {}
    for index, vjp in node.needs.vjps:
        for name in list(inspect.signature(vjp.function).parameters)[1:]:
            found[name] = value_of(name, index, node)
    return list(found.items())


def value_of(name, index, node) -> str:
    """What a vjp's parameter of this name will be given, at a glance."""
    op = node.op
    if name == "out":
        return held(node)
    if op.variadic and name == op.parameters[0]:
        return "; ".join(held(source) for source in node.inputs)
    if op.variadic and name == "position":
        return str(index)
    if op.variadic and name == op.parameters[0] + "_shapes":
        return ", ".join(str(source.shape) for source in node.inputs)
    stem = name.removesuffix("_shape")
    if stem in op.parameters[: op.arity]:
        position = op.parameters.index(stem)
        if position >= len(node.inputs):
            return "not given"
        return held(node.inputs[position]) if name == stem else str(node.inputs[position].shape)
    return repr(node.attrs.get(name, op.defaults.get(name)))


def held(node) -> str:
    """A node's value as far as it is there."""
    return f"{shape_text(node)}  not held" if node.out is None else glance(node.out)


def input_name(node, index) -> str:
    """What the op calls its input number `index`."""
    names = node.op.parameters
    return f"{names[0]}[{index}]" if node.op.variadic else names[index]


# ---- Source ------------------------------------------------------------------------------------------


def source_around(where) -> list:
    """The lines around a position, with an arrow at it; a line that says so if there is no source."""
    code, line = where[0], line_number(where)
    lines = linecache.getlines(code.co_filename)
    if not lines:
        return [f"     (there is no source of {code.co_filename} to show)"]
    first, last = max(1, line - AROUND), min(len(lines), line + AROUND)
    shown = range(first, last + 1)
    return [clipped(f"{'->' if n == line else '':2}{n:>5}  {lines[n - 1]}".rstrip()) for n in shown]


def source_of_vjp(function) -> list:
    """A vjp: where it is, and its text."""
    code = function.__code__
    place = f"{os.path.basename(code.co_filename)}:{code.co_firstlineno}"
    try:
        lines = textwrap.dedent(inspect.getsource(function)).splitlines()
    except (OSError, TypeError):
        lines = ["(there is no source of it to show)"]
    if len(lines) > LONGEST:
        lines = [*lines[:LONGEST], "..."]
    return [f"{function.__name__} at {place}", *(clipped(f"       {line}") for line in lines)]


# ---- Lines of text -----------------------------------------------------------------------------------


def called(node) -> str:
    """A node's name for people: "w #3", "tanh #17"."""
    return f"{node.name or (node.role if node.op is None else node.op.name)} #{node.number}"


def clipped(text, width=WIDTH) -> str:
    """The text, cut to the width with a visible "…" if it is too long."""
    return text if len(text) <= width else text[: width - 1] + "…"


def indented(text, beginning) -> str:
    """A paragraph whose first line has this beginning, and whose others are indented as far."""
    return textwrap.fill(text, WIDTH, initial_indent=beginning, subsequent_indent=" " * len(beginning))


def shortened(lines, count, command) -> list:
    """A table's lines (two of headers, two of a note) with its last `count` rows; `command` shows them all."""
    head, rows, note = lines[:2], lines[2:-2], lines[-2:]
    hidden = len(rows) - count
    return [*head, f"({hidden} older ones: {command})", *rows[hidden:], *note] if hidden > 0 else lines


def raised_where(error) -> list:
    """What an error says, and the lines outside minigrad that it came through."""
    first = error.__cause__ or error
    frames = [frame for frame in traceback.extract_tb(first.__traceback__) if frame.filename not in ENGINE_FILES]
    lines = textwrap.wrap(f"{type(error).__name__}: {error}", WIDTH)
    return lines + [f"  raised in {f.name}, {os.path.basename(f.filename)}:{f.lineno}: {f.line}" for f in frames]
