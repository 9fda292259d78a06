"""@op: a forward, its vjps, and what each of them reads.

    @op
    def tanh(x):
        return array_module(x).tanh(x)

    @tanh.vjp("x")
    def tanh_wrt_x(g, out):            # names `out`: the tape keeps tanh's output
        return g * (1 - out * out)

**The signature of a vjp is its memory contract.** After the incoming gradient `g` it may name `out` (the
op's output), any input, an input's shape (`x_shape`), and any setting of the op. What no needed vjp names
is not kept. The decorator reads the signature once; nothing else decides what the tape holds.

A forward is a pure function of its arrays and settings (a random op takes its key as a setting), which is
what lets a checkpoint run it again and get the same bits. A vjp is written with operators and ops that
take arrays and Tensors alike: on arrays it computes, on Tensors it is recorded, and so the second
derivative needs no further code. Un-broadcasting is not a vjp's business; the sweep does it.

Parameters of the forward without a default are its inputs, and so are those up to the last one that some vjp
is declared for; the others are settings (`@op(inputs=n)` says it by number; `*,` before a setting does too).
`*xs` makes any number of inputs; its vjp may name `position`, which of them it is asked for, and `xs_shapes`.
"""

import functools
import inspect
import operator
import sys
import weakref

from numpy import ndarray

from ..errors import TORCH_KEYWORDS, ArgumentError, MinigradError, torch_keyword_error
from .device import array_module, is_array
from .messages import forward_error
from .modes import local
from .place import ENGINE_FILES, source_line, user_position
from .tape import Leaf, Node, hollow
from .tensor import Tensor, as_operand, frozen, protected, refuse_smuggled

OUT, INPUT, SHAPE, SETTING, ALL_INPUTS, ALL_SHAPES, POSITION, ABSENT = range(8)

get_frame = sys._getframe
registry = {}  # name -> Op, of minigrad's own ops


class Shapes:
    """The shapes of n inputs, looked up when they are asked for: a list of all for each input would take n² steps."""

    def __init__(self, sources):
        self.sources = sources

    def __len__(self):
        return len(self.sources)

    def __getitem__(self, i):
        found = self.sources[i]
        return [source.shape for source in found] if isinstance(i, slice) else found.shape


class Vjp:
    """One vector-Jacobian product: a function, and what it reads besides the gradient."""

    __slots__ = ("function", "reads", "position", "only", "is_foreign")

    def __init__(self, function, reads, position=0, is_foreign=False):
        self.function, self.reads, self.position, self.is_foreign = function, reads, position, is_foreign
        self.only = reads[0] if len(reads) == 1 and reads[0][0] in (OUT, INPUT) else None

    def __call__(self, g, node, read):
        """Call the function on gradient `g` and on what it named, which `read(source, reader)` fetches."""
        if self.is_foreign and not isinstance(g, Tensor):
            g = protected(g)  # somebody's own op might write into what other branches wait for
        if self.only is not None:  # the most frequent kind: one buffer
            kind, key = self.only
            return self.function(g, read(node.inputs[key] if kind == INPUT else node, node))
        values, inputs = [g], node.inputs
        for kind, key in self.reads:
            if kind == INPUT:
                values.append(read(inputs[key], node))
            elif kind == SHAPE:
                values.append(inputs[key].shape)
            elif kind == OUT:
                values.append(read(node, node))
            elif kind == SETTING:
                values.append(node.attrs[key[0]] if key[0] in node.attrs else key[1])
            elif kind == ALL_INPUTS:
                values.append([read(source, node) for source in node.inputs])
            elif kind == ALL_SHAPES:
                values.append(Shapes(inputs))
            else:
                values.append(self.position if kind == POSITION else None)
        return self.function(*values)


class Needs:
    """What one node's backward will need: its vjps, and the buffers that they read."""

    __slots__ = ("vjps", "inputs", "out")

    def __init__(self, vjps, count):
        self.vjps = tuple(vjps)  # (input index, Vjp) for each input that gets a gradient
        reads = [read for _, vjp in self.vjps for read in vjp.reads]
        every = any(kind == ALL_INPUTS for kind, _ in reads)
        named = {key for kind, key in reads if kind == INPUT}
        self.inputs = tuple(range(count)) if every else tuple(sorted(named))
        self.out = any(kind == OUT for kind, _ in reads)


    def differentiates(self, index):
        return any(i == index for i, _ in self.vjps)


NOTHING = Needs((), 0)


class Op:
    """An operation: calling it on Tensors records it, calling it on arrays just computes."""

    def __init__(self, forward, inputs=None):
        self.forward = forward
        self.name = forward.__name__.rstrip("_")
        self.__name__ = self.name
        self.__doc__ = forward.__doc__
        self.__wrapped__ = forward
        parameters = inspect.signature(forward).parameters.values()
        if any(p.kind is p.VAR_KEYWORD for p in parameters):
            raise ArgumentError(f"the forward of {self.name} takes **keywords; name its settings one by one")
        self.variadic = any(p.kind is p.VAR_POSITIONAL for p in parameters)
        self.parameters = [p.name for p in parameters]
        self.defaults = {p.name: p.default for p in parameters if p.default is not p.empty}
        self.arity = inputs or sum(p.default is p.empty and p.kind is not p.KEYWORD_ONLY for p in parameters)
        self.settings = set(self.parameters[self.arity :])
        self.vjps = {}
        self.promote = None  # function(args, arrays) -> args of one dtype, or None if they are (ops/promotion.py)
        self._needs = {}
        if forward.__module__.startswith("minigrad.ops."):
            registry[self.name] = self

    def __repr__(self):
        return f"<op {self.name}({', '.join(self.parameters)})>"

    def __reduce__(self):
        if registry.get(self.name) is not self:
            raise ArgumentError(f"{self!r} is an op of your own, which pickle cannot find again by its name")
        return named_op, (self.name,)

    # ---- declaring ---------------------------------------------------------------------------------

    def vjp(self, name):
        """Declare the function below as the gradient with respect to the input `name`."""
        if name not in self.parameters:
            names = ", ".join(self.parameters)
            example = f'@{self.name}.vjp("{self.parameters[0]}")'
            raise ArgumentError(f"{self.name} has no input {name!r}; it has {names}. Say {example}")

        def declare(function):
            self.arity = max(self.arity, self.parameters.index(name) + 1)
            self.settings = set(self.parameters[self.arity :])
            self.vjps[name] = function
            self._needs.clear()
            return function

        return declare

    def _what_it_reads(self, function, count):
        """The reads of one vjp, from its signature; an optional input that was not given reads as None."""
        inputs = self.parameters[: self.arity]
        reads = []
        for name in list(inspect.signature(function).parameters)[1:]:
            stem = name.removesuffix("_shapes").removesuffix("_shape")
            if name == "out":
                reads.append((OUT, None))
            elif self.variadic and name in (inputs[0], inputs[0] + "_shapes", "position"):
                reads.append((POSITION if name == "position" else ALL_INPUTS if name == stem else ALL_SHAPES, None))
            elif stem in inputs:
                index, kind = inputs.index(stem), INPUT if name == stem else SHAPE
                reads.append((kind, index) if index < count else (ABSENT, None))
            elif name in self.parameters:
                reads.append((SETTING, (name, self.defaults.get(name))))
            else:
                raise ArgumentError(
                    f"{function.__name__} names {name!r}, which is neither `out`, nor an input of {self.name} "
                    f"({', '.join(inputs)}), nor its shape, nor a setting"
                )
        return tuple(reads)

    def needs(self, mask, count):
        """What backward needs when of `count` inputs those in the bits of `mask` require a gradient."""
        vjps, reads = [], {}
        for i in range(count):
            name = self.parameters[0 if self.variadic else i]
            if mask >> i & 1 and name in self.vjps:
                if name not in reads:
                    reads[name] = self._what_it_reads(self.vjps[name], count)
                vjps.append((i, Vjp(self.vjps[name], reads[name], i, is_foreign=registry.get(self.name) is not self)))
        found = Needs(vjps, count)
        if not self.variadic or count <= 8:  # lists of any length would fill the memory
            self._needs[mask | 1 << count] = found
        return found

    # ---- calling -----------------------------------------------------------------------------------

    def __call__(self, *args, **settings):
        """Run the op. If an input is a Tensor, write a line on the tape, should backward or a replay need it."""
        if settings or len(args) != self.arity or not args or args[-1] is None:
            args, settings = self._bind(args, settings)
        context = local.context
        region, tracer = context.region, context.tracer
        arrays, inputs, mask, bit, strangers = [], [], 0, 1, False
        for arg in args:
            if isinstance(arg, Tensor):
                node = arg._node
                arrays.append(arg._data)
                inputs.append(node)
                if node is None:
                    strangers = True
                else:
                    if node.region is not region and node.region is not None:
                        node = inputs[-1] = across_border(arg)
                    if node.requires_grad:
                        mask |= bit
            else:
                arrays.append(arg)
                inputs.append(None)
                strangers = True
            bit <<= 1
        if strangers:
            if not any([isinstance(arg, Tensor) for arg in args]):
                return self._of_arrays(args, settings)
            arrays = operands(self, args)
        if settings:
            settings = frozen_settings(self, settings)
        if self.promote is not None and mask != bit - 1 and (promoted := self.promote(args, arrays)) is not None:
            return self(*promoted, **settings)
        out = run(self, arrays, settings, tracer)
        if tracer is not None:
            tracer.ran(self, args, arrays, out)
        needs = NOTHING
        if mask and context.grad:
            needs = self._needs.get(mask | bit) or self.needs(mask, len(arrays))
        if not needs.vjps and region is None and context.tape is None:
            return Tensor(out)
        if strangers:
            for i, arg in enumerate(args):
                if inputs[i] is None:
                    inputs[i] = arg.node if isinstance(arg, Tensor) else Leaf(arrays[i])
        frame = get_frame(1)  # as user_position() does, without its call
        code = frame.f_code
        while code.co_filename in ENGINE_FILES and frame.f_back is not None:
            frame = frame.f_back
            code = frame.f_code
        shape, dtype, layer, offset = out.shape, out.dtype, context.layer, frame.f_lasti
        node = record(self, settings, inputs, arrays, out, shape, dtype, needs, layer, code, offset, context)
        if region is None:
            return Tensor(out, node if needs.vjps else None)
        result = Tensor(out, node)
        if not needs.vjps:
            region.loose.append(weakref.ref(result))
        return result

    def _of_arrays(self, args, settings):
        """Just compute; an op that has no inputs at all gives a Tensor, as nobody else will make one of its value."""
        if self.arity or self.variadic:
            return self.forward(*args, **settings)
        return Tensor(run(self, [], frozen_settings(self, settings)))

    def _bind(self, args, settings):
        """Sort a call's arguments into inputs and settings, as Python would."""
        names = self.parameters
        given_all = len(args) == self.arity and not (args and args[-1] is None)
        if self.variadic or (given_all and settings.keys() <= self.settings):
            return args, settings  # nothing to sort
        if len(args) > len(names):
            raise ArgumentError(f"{self.name} takes {', '.join(names)}, and was called with {len(args)} arguments")
        given = dict(zip(names, args, strict=False))
        for name, value in settings.items():
            if name in TORCH_KEYWORDS and name not in names:
                raise torch_keyword_error(self.name, name)
            if name not in names or name in given:
                problem = "twice" if name in given else "which it does not have"
                raise ArgumentError(f"{self.name} was given {name!r}, {problem}; it takes {', '.join(names)}")
            given[name] = value
        for name in names[: self.arity]:
            if name not in given and name not in self.defaults:
                raise ArgumentError(f"{self.name} needs {name!r}; it takes {', '.join(names)}")
        inputs = [given.pop(name, self.defaults.get(name)) for name in names[: self.arity]]
        while inputs and inputs[-1] is None and names[len(inputs) - 1] in self.defaults:
            inputs.pop()
        return inputs, given


def named_op(name) -> Op:
    """One of minigrad's own ops, by its name: how pickle finds it again."""
    return registry[name]


def op(forward=None, *, inputs=None) -> Op:
    """Make an op of a forward: a pure function of arrays and settings that returns an array.

    Declare its gradients with `@name.vjp("input")`; an op without any is not differentiable.

    inputs  `@op(inputs=3)`: the first three parameters are inputs, although some of them have a default and
            no vjp (integer indices, say)
    """
    return functools.partial(Op, inputs=inputs) if forward is None else Op(forward)


def run(op, arrays, settings, tracer=None):
    """The op's forward on arrays: a read-only array, or an error that says which op could not do what."""
    try:
        if tracer is not None and tracer.workspace:
            out = tracer.measured(op.forward, *arrays, **settings)
        elif settings:
            out = op.forward(*arrays, **settings)
        else:
            out = op.forward(*arrays)
    except Warning:
        raise
    except MinigradError as error:
        raise type(error)(f"{op.name} at {source_line(user_position())}: {error}") from error
    except Exception as error:
        raise forward_error(op, arrays, error) from error
    if type(out) is not ndarray:
        if out is None:
            raise MinigradError(f"the forward of {op.name} returned None; it must return an array")
        return frozen(out if is_array(out) else array_module(*arrays).asarray(out))
    out.setflags(False)  # write=False: nobody writes into a value of the tape
    return out


def record(op, settings, inputs, arrays, out, shape, dtype, needs, layer, code, offset, context):
    """Write one line on the tape: make its node, and retain the buffers that its vjps will read.

    `inputs` is a list of nodes and `arrays` their values. A replay passes None for a value that nobody reads.
    Inside a checkpoint region nothing is retained: the node becomes a line of the region's body.
    """
    region = context.region
    if region is not None:
        inputs, requires_grad = tuple(inputs), bool(needs.vjps)
        node = Node(op, settings, inputs, shape, dtype, layer, code, offset, requires_grad, needs, region)
        region.add(node, arrays, out)
        return node
    if len(needs.vjps) != len(inputs):
        for i, source in enumerate(inputs):
            if i not in needs.inputs:
                if context.budget is None:  # under a budget this op may have to run again
                    inputs[i] = hollow(source)  # of constants that no vjp reads, keep no data
            elif source.op is not None and not needs.differentiates(i):
                inputs[i] = Leaf(arrays[i])  # read, but no gradient flows: the sweep may never pass it
    inputs = tuple(inputs)
    node = Node(op, settings, inputs, shape, dtype, layer, code, offset, bool(needs.vjps), needs, None)
    for i in needs.inputs:
        source = inputs[i]
        if source.out is None:
            source.out = arrays[i]
    if needs.out:
        node.out = out
    if context.tracer is not None:
        context.tracer.held(node, None if context.budget is None else context.budget.kept_by(node))
    if context.tape is not None:
        context.tape.nodes.append(node)
    return node


IMMUTABLE = frozenset((int, float, bool, complex, str, bytes, type(None), type(Ellipsis)))


def frozen_settings(op, settings):
    """The settings of one call, such as nobody can change afterwards: a replay will read them again."""
    for value in settings.values():
        if type(value) not in IMMUTABLE:
            return {name: frozen_setting(op, name, value) for name, value in settings.items()}
    return settings


def frozen_setting(op, name, value):
    """A list becomes a tuple, an array a copy that is read-only, a Tensor the number or the array that it holds."""
    if type(value) in IMMUTABLE:
        return value
    if isinstance(value, Tensor):
        if value.requires_grad:
            raise ArgumentError(
                f"{op.name} at {source_line(user_position())} takes {name!r} as a setting, to which no gradient flows, "
                f"and was given a tensor that requires one; pass {name}.item() or {name}.detach()"
            )
        return value.item() if value.ndim == 0 else frozen_array(value._data)
    if is_array(value):
        return frozen_array(value)
    if type(value) in (tuple, list):
        parts = tuple([frozen_setting(op, name, part) for part in value])
        same = type(value) is tuple and all(map(operator.is_, parts, value))
        return value if same else parts
    if type(value) is dict:
        return {key: frozen_setting(op, name, part) for key, part in value.items()}
    return value.copy() if isinstance(value, (set, bytearray)) else value


def frozen_array(array):
    """An array that nobody can write into: itself, if that is so already."""
    is_frozen = isinstance(array, ndarray) and array.base is None and not array.flags.writeable
    return array if is_frozen else frozen(array.copy())


def operands(op, args):
    """The inputs of an op as arrays and numbers."""
    try:
        return [as_operand(arg) for arg in args]
    except ArgumentError as error:
        raise ArgumentError(f"{op.name} at {source_line(user_position())}: {error}") from error


def across_border(tensor):
    """The node of a tensor that was made in another region than the one that uses it.

    From a region that is still open, it is part of the boundary. From one that has ended, a value without
    gradient has become a constant, and everything else is an error.
    """
    if not tensor._node.region.open:
        if tensor.requires_grad:
            refuse_smuggled(tensor)
        tensor._node = None
    return tensor.node
