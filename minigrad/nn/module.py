"""Module: a tree of layers, and the parameters in it.

A module's attributes *are* its registry. What is a `Parameter` is a parameter, what is a `Module` is a
submodule, and there is no second place where they are listed:

    class Block(nn.Module):
        def __init__(self, width):
            self.up = nn.Linear(width, 4 * width)
            self.down = nn.Linear(4 * width, width)

        def forward(self, x):
            return x + self.down(mg.tanh(self.up(x)))

Assigning also gives *paths*: the dotted way down from the outermost module, such as "blocks.3.up". A
module's path is what `node.layer` says of the ops that run in it, and a parameter's path is its leaf's name,
so that an error can say "parameter blocks.3.up.weight was overwritten".
"""

import threading
import weakref
from collections import namedtuple

import numpy

from ..engine.device import device_of, is_array, to_device
from ..engine.modes import local
from ..engine.tape import Leaf
from ..engine.tensor import HookHandle, Tensor, check_float, frozen
from ..errors import ArgumentError, MinigradError, ShapeError
from ..ops.create import tensor

LoadResult = namedtuple("LoadResult", ("missing_keys", "unexpected_keys"))
HOOKS = ("_hooked", "_forward_pre_hooks", "_forward_hooks")  # the attributes of a module that has forward hooks


class Parameter(Tensor):
    """A tensor that a module learns: `self.scale = nn.Parameter(mg.ones(8))`.

    data           a Tensor, an array or numbers; of a tensor that ops have made only the value is taken
    requires_grad  False for one that is frozen: it stays a parameter, for the tracer and for state dicts
    name           for errors and pictures; assigning it to a module's attribute gives its path instead

    Raises DtypeError for integers that should require a gradient.
    """

    __slots__ = ()

    def __init__(self, data, requires_grad=True, name=None):
        if not isinstance(data, Tensor):
            data = tensor(data)
        array = data._data if data._data.base is None else data._data.copy()
        super().__init__(frozen(array))
        if requires_grad:
            check_float(array.dtype)
        holder = weakref.ref(self) if requires_grad else None
        self._node = Leaf(array, requires_grad, holder, name or data.name, role="parameter")

    def _replace(self, array):
        """Tensor's own, but a frozen parameter stays a parameter."""
        name = self.name
        super()._replace(array)
        if self._node is None:
            self._node = Leaf(self._data, name=name, role="parameter")
        return self

    def __reduce__(self):
        return type(self), (self.numpy(), self.requires_grad, self.name)

    def __deepcopy__(self, memo):
        """A parameter of its own, with a copy of the data; the gradient stays behind."""
        return type(self)(tensor(self._data), self.requires_grad, self.name)


class Running(threading.local):
    """Where the outermost running module stands: "" or, inside another layer, that layer's path and a dot."""

    prefix = ""


running = Running()


class Module:
    """The base class of layers and models. A subclass sets attributes and defines `forward`.

    training  True, or False after eval(): whether dropout drops and such
    """

    training = True
    _path = ""
    _buffers = {}

    def forward(self, *args, **kwargs):
        kind = type(self).__name__
        raise MinigradError(f"{kind} does not say what it computes; give it a method forward(self, x)")

    def __call__(self, *args, **kwargs):
        """`forward`, with `layer` of the nodes that it makes set to this module's path.

        A path begins at the outermost module, which has none itself. While that one runs inside some other
        layer (it sits in a list that the other module's forward goes through, say), its paths continue
        the other's.
        """
        path, context = self._path, local.context
        outer = context.layer
        if not path:
            return self._call_outermost(outer, args, kwargs)
        context.layer = running.prefix + path
        try:
            return self._with_hooks(args, kwargs) if self._hooked else self.forward(*args, **kwargs)
        finally:
            context.layer = outer

    _hooked = False  # whether forward hooks have been registered on this module

    def register_forward_pre_hook(self, hook):
        """Call `hook(module, args)` before each forward; what it returns, if not None, takes the arguments' place.

        args  the tuple of positional arguments; a hook may return such a tuple, or the one argument that there is

        Returns a handle; `handle.remove()` takes the hook off again. A checkpoint's replay runs recorded ops, and so
        calls no hook again.
        """
        return self._register("_forward_pre_hooks", hook)

    def register_forward_hook(self, hook):
        """Call `hook(module, args, output)` after each forward; what it returns, if not None, takes its place.

        Returns a handle; `handle.remove()` takes the hook off again. A checkpoint's replay calls no hook again.
        """
        return self._register("_forward_hooks", hook)

    def _register(self, kind, hook):
        if not callable(hook):
            raise ArgumentError(f"a hook is a function, not a {type(hook).__name__}")
        if not self._hooked:
            self._hooked, self._forward_pre_hooks, self._forward_hooks = True, [], []
        return HookHandle(vars(self)[kind], hook)

    def _with_hooks(self, args, kwargs):
        """`forward`, with the hooks around it."""
        for hook in list(self._forward_pre_hooks):
            answer = hook(self, args)
            if answer is not None:
                args = answer if isinstance(answer, tuple) else (answer,)
        output = self.forward(*args, **kwargs)
        for hook in list(self._forward_hooks):
            answer = hook(self, args, output)
            output = output if answer is None else answer
        return output

    def _call_outermost(self, outer, args, kwargs):
        """`forward` of a module without a path, inside the layer `outer`."""
        before = running.prefix
        running.prefix = outer + "." if outer else ""
        try:
            return self._with_hooks(args, kwargs) if self._hooked else self.forward(*args, **kwargs)
        finally:
            running.prefix = before

    # ---- attributes --------------------------------------------------------------------------------

    def __setattr__(self, name, value):
        if isinstance(value, Module):
            refuse_circle(self, name, value)
        elif isinstance(value, Tensor) and isinstance(vars(self).get(name), Parameter):
            if not isinstance(value, Parameter):
                raise ArgumentError(
                    f"{type(self).__name__}.{name} is a parameter, and a plain tensor in its place would not "
                    f"be trained. Say nn.Parameter(tensor), or {name}.assign_(tensor) to change its value"
                )
        object.__setattr__(self, name, value)
        give_path(value, join(self._path, name), is_buffer=name in self._buffers)

    def register_buffer(self, name, value, persistent=True):
        """Set attribute `name` to a tensor (or None) that is state, but not learned, such as a running mean.

        It moves with `to()` and, if it is persistent, is part of the state dict.
        """
        if not isinstance(value, (Tensor, type(None))) or isinstance(value, Parameter):
            raise ArgumentError(f"a buffer is a plain tensor or None, not {type(value).__name__}")
        vars(self)["_buffers"] = {**self._buffers, name: persistent}
        setattr(self, name, value)

    # ---- the tree ----------------------------------------------------------------------------------

    def named_children(self):
        """(attribute name, module) of each direct submodule, in the order of assignment, each once."""
        seen = set()
        for name, module in members(self, Module):
            if id(module) not in seen:
                seen.add(id(module))
                yield name, module

    def children(self):
        """The direct submodules, each once."""
        for _, module in self.named_children():
            yield module

    def named_modules(self, prefix=""):
        """(path, module) of this module, whose path is `prefix`, and all below: parents first, each once."""
        seen, waiting = set(), [(prefix, self)]
        while waiting:
            path, module = waiting.pop()
            if id(module) not in seen:
                seen.add(id(module))
                yield path, module
                below = [(join(path, name), child) for name, child in members(module, Module)]
                waiting.extend(reversed(below))

    def modules(self):
        """This module and all below it, each once."""
        for _, module in self.named_modules():
            yield module

    def named_parameters(self, prefix="", recurse=True):
        """(path, parameter) of each parameter; one used in several places comes once, under its first path.

        >>> import minigrad as mg
        >>> [name for name, _ in mg.nn.Sequential(mg.nn.Linear(2, 3), mg.nn.Tanh()).named_parameters()]
        ['0.weight', '0.bias']
        """
        seen = set()
        for path, module in self.named_modules(prefix) if recurse else [(prefix, self)]:
            for name, parameter in members(module, Parameter):
                if id(parameter) not in seen:
                    seen.add(id(parameter))
                    yield join(path, name), parameter

    def parameters(self, recurse=True):
        """The parameters, each once: what an optimizer takes."""
        for _, parameter in self.named_parameters(recurse=recurse):
            yield parameter

    def named_buffers(self, prefix=""):
        """(path, tensor) of each buffer."""
        for path, module in self.named_modules(prefix):
            for name in module._buffers:
                if getattr(module, name, None) is not None:
                    yield join(path, name), getattr(module, name)

    def buffers(self):
        """The buffers."""
        for _, buffer in self.named_buffers():
            yield buffer

    def apply(self, function):
        """Call `function(module)` on each module below, children first, and on this one; returns self."""
        for child in self.children():
            child.apply(function)
        function(self)
        return self

    # ---- state -------------------------------------------------------------------------------------

    def state_dict(self) -> dict:
        """path -> NumPy array (a copy) of each parameter and persistent buffer; torch's names and layouts.

        What is used in several places stands under each of its paths, as in torch.
        """
        return {key: numpy.array(owner[name].numpy()) for key, owner, name in self._state()}

    def load_state_dict(self, state, strict=True):
        """Set parameters and buffers to the arrays of `state`, a mapping such as `state_dict` makes.

        strict  also refuse paths that are missing from `state`, and paths in it that are not here

        Returns (missing_keys, unexpected_keys). If anything does not fit, nothing has been changed, and the
        error (a ShapeError if a shape or a dtype is wrong, else a MinigradError) names every such path.
        """
        if not hasattr(state, "keys"):
            raise ArgumentError(f"a state is a mapping of paths to arrays, not {type(state).__name__}")
        places = {key: (owner, name) for key, owner, name in self._state()}
        missing = [key for key in places if key not in state]
        unexpected = [key for key in state.keys() if key not in places]
        arrays, misfits = {}, []
        for key, (owner, name) in places.items():
            if key in state:
                try:
                    arrays[key] = array_like(owner[name], state[key])
                except Exception as error:
                    misfits.append(f"{key}: {error}")
        if misfits or (strict and (missing or unexpected)):
            raise refused_state(type(self).__name__, misfits, missing, unexpected, strict)
        for key, array in arrays.items():
            owner, name = places[key]
            if owner[name].is_leaf:
                owner[name]._replace(array)
            else:
                owner[name] = Tensor(array)
        return LoadResult(missing, unexpected)

    def _state(self):
        """(path, the module's attributes, attribute name) of all that is state, once for each path."""
        waiting = [("", self)]
        while waiting:
            path, module = waiting.pop()
            attributes = vars(module)
            for name, _ in members(module, Parameter):
                yield join(path, name), attributes, name
            for name, persistent in module._buffers.items():
                if persistent and attributes.get(name) is not None:
                    yield join(path, name), attributes, name
            below = [(join(path, name), child) for name, child in members(module, Module)]
            waiting.extend(reversed(below))

    # ---- modes and places --------------------------------------------------------------------------

    def train(self, mode=True):
        """Set `training` here and in all modules below; returns this module."""
        for module in self.modules():
            module.training = bool(mode)
        return self

    def eval(self):
        """train(False)."""
        return self.train(False)

    def requires_grad_(self, value=True):
        """Let all parameters require a gradient, or freeze them; returns this module."""
        for parameter in self.parameters():
            parameter.requires_grad_(value)
        return self

    def zero_grad(self, set_to_none=True):
        """Forget the gradients of all parameters: None, or zeros with set_to_none=False."""
        for parameter in self.parameters():
            forget_gradient(parameter, set_to_none)

    def to(self, device):
        """Move parameters, their gradients and buffers to a device, in place; returns this module.

        The Parameter objects stay the same, so an optimizer that has them goes on working. On a DeviceError
        nothing has moved.
        """
        tensors = [*self.parameters(), *self.buffers()]
        moved = [to_device(t._data, device) for t in tensors]
        grads = [None if t.grad is None else Tensor(to_device(t.grad._data, device)) for t in tensors]
        for t, array, grad in zip(tensors, moved, grads, strict=True):
            if array is not t._data:
                t._replace(array)
                t._grad = grad
        return self

    # ---- printing ----------------------------------------------------------------------------------

    def extra_repr(self) -> str:
        """What repr shows in the brackets of this module: its settings."""
        return ""

    def __repr__(self):
        """The tree, one module a line; a run of equal children is one line with its count."""
        kind, settings = type(self).__name__, self.extra_repr()
        lines = []
        children = [(name, repr(child)) for name, child in members(self, Module)]
        for first, last, count, text in runs_of_equals(children):
            label = f"({first})" if count == 1 else f"({first}-{last}): {count} x"
            text = text.replace("\n", "\n  ")
            lines.append(f"  {label}{':' if count == 1 else ''} {text}")
        if not lines:
            return f"{kind}({settings})"
        return "\n".join([f"{kind}(", *[f"  {settings}"] * bool(settings), *lines, ")"])


def join(path, name):
    return f"{path}.{name}" if path else name


def members(module, kind):
    """(name, value) of the attributes of one kind, in the order of assignment."""
    return [(name, value) for name, value in vars(module).items() if isinstance(value, kind)]


def refuse_circle(owner, name, module):
    """Raise if `module` contains the owner of the attribute that it is about to become."""
    if any(part is owner for part in module.modules()):
        kind, whole = type(owner).__name__, type(module).__name__
        raise ArgumentError(
            f"{kind}.{name} would make a circle, as this {kind} is a part of that {whole}. To keep such a "
            f"reference, put it into a list: self.{name} = [module]"
        )


def give_path(value, path, is_buffer=False):
    """Tell a parameter, a buffer, or a module and all that is in it, where it stands now."""
    if isinstance(value, Parameter) or (is_buffer and isinstance(value, Tensor) and value.is_leaf):
        value.name = path
    elif isinstance(value, Module):
        for below, module in value.named_modules(path):
            vars(module)["_path"] = below
        for below, parameter in value.named_parameters(path):
            parameter.name = below
        for below, buffer in value.named_buffers(path):
            give_path(buffer, below, is_buffer=True)


def forget_gradient(parameter, set_to_none):
    if set_to_none or parameter.grad is None:
        parameter.grad = None
    else:
        parameter.grad = Tensor(parameter.grad._data * 0)


def array_like(old, value):
    """A fresh array with `value`, of the dtype and the device of the tensor `old`, or a ShapeError."""
    if isinstance(value, Tensor):
        value = value.numpy()
    array = to_device(value, "cpu") if is_array(value) else numpy.asarray(value)
    if array.shape != old.shape:
        raise ShapeError(f"shape {array.shape} given, {old.shape} needed")
    if not numpy.can_cast(array.dtype, old.dtype, "same_kind"):
        raise ShapeError(f"{array.dtype} given, {old.dtype} needed")
    return to_device(numpy.array(array, dtype=old.dtype), device_of(old._data))


def refused_state(kind, misfits, missing, unexpected, strict):
    """The error of load_state_dict: all that is wrong, by path."""
    lines = [f"this state does not fit {kind}, and nothing was changed"]
    lines += [f"  {misfit}" for misfit in misfits]
    if strict:
        lines += [f"  {key}: missing from the state" for key in missing]
        lines += [f"  {key}: not in this module" for key in unexpected]
    if strict and not misfits:
        lines.append("strict=False loads what fits and leaves the rest")
    else:
        lines.append("Was the module built with the same settings as the one that was saved?")
    return (ShapeError if misfits else MinigradError)("\n".join(lines))


def runs_of_equals(named):
    """(first name, last name, count, text) for each run of equal texts."""
    runs = []
    for name, text in named:
        if runs and runs[-1][3] == text:
            first, _, count, _ = runs[-1]
            runs[-1] = (first, name, count + 1, text)
        else:
            runs.append((name, name, 1, text))
    return runs
