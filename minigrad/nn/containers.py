"""Modules that hold other modules in order."""

import operator

from ..chain.sequential import checkpoint_sequential
from ..errors import ArgumentError, IndexingError
from ..schedules import as_schedule
from .module import HOOKS, Module, members


class Ordered(Module):
    """Children "0", "1", ...: what Sequential and ModuleList have in common."""

    def append(self, module):
        """Add a module at the end; returns this one."""
        setattr(self, self._free_name(), checked(module))
        return self

    def insert(self, index, module):
        """Put a module in front of the one at this index; those after it move up. Returns this one."""
        modules = [child for _, child in members(self, Module)]
        modules.insert(self._integer(index), checked(module))
        names = [name for name, _ in members(self, Module)]
        self._put([*names, self._free_name()], modules)
        return self

    def pop(self, index=-1):
        """Take out the module at an index, and return it."""
        module = self[index]
        del self[index]
        return module

    def extend(self, modules):
        """Add several modules at the end; returns this one. If one of them is no module, none is added."""
        for module in [checked(module) for module in modules]:
            self.append(module)
        return self

    def __len__(self):
        return len(members(self, Module))

    def __iter__(self):
        return iter([module for _, module in members(self, Module)])

    def __getitem__(self, index):
        """The module at an index, or for a slice a container of the same modules, without this one's hooks.

        Names in a part of a Sequential are those of the whole, and in a part of a ModuleList begin at 0, as in torch.
        """
        if not isinstance(index, slice):
            return vars(self)[self._name_at(index)]
        part = object.__new__(type(self))
        vars(part).update({k: v for k, v in vars(self).items() if not isinstance(v, Module) and k not in HOOKS})
        named = members(self, Module)[index]
        if self._renumbers:
            named = [(str(i), module) for i, (_, module) in enumerate(named)]
        vars(part).update(named)
        return part

    _renumbers = False  # whether a slice's names begin at 0

    def __setitem__(self, index, module):
        setattr(self, self._name_at(index), checked(module))

    def __add__(self, modules):
        """A container of this one's modules and of further ones, without settings and hooks."""
        if not isinstance(modules, (Ordered, list, tuple)):
            return NotImplemented
        return type(self)().extend(self).extend(modules)

    def __iadd__(self, modules):
        return self.extend(modules)

    def __delitem__(self, index):
        named = members(self, Module)
        names = [name for name, _ in named][index] if isinstance(index, slice) else [self._name_at(index)]
        left = [(name, module) for name, module in named if name not in names]
        numbered = all(name.isdigit() for name, _ in named)
        names = [str(i) for i in range(len(left))] if numbered else [name for name, _ in left]
        self._put(names, [module for _, module in left])

    def _put(self, names, modules):
        """Let these be the children, in this order."""
        for name, _ in members(self, Module):
            delattr(self, name)
        for name, module in zip(names, modules, strict=True):
            setattr(self, name, module)

    def _free_name(self):
        """The number after the highest that a child has: of a part of a container, not its length."""
        return str(max([int(name) for name, _ in members(self, Module) if name.isdigit()], default=len(self) - 1) + 1)

    def _name_at(self, index):
        names = [name for name, _ in members(self, Module)]
        index = self._integer(index)
        if not -len(names) <= index < len(names):
            raise IndexingError(f"{type(self).__name__} has {len(names)} modules, and none at index {index}")
        return names[index]

    def _integer(self, index):
        try:
            return operator.index(index)
        except TypeError as error:
            kind = type(index).__name__
            raise IndexingError(f"{type(self).__name__} takes an integer here, not {kind}: {index!r}") from error


class Sequential(Ordered):
    """Modules one after another: the output of one is the input of the next.

    modules     the modules in order; or one dict of names to modules
    checkpoint  None, or a Schedule of mg.schedules (an int: that many segments) that says which stretches
                become checkpoints, as `mg.checkpoint_sequential` does

    >>> import minigrad as mg
    >>> mg.nn.Sequential(mg.nn.Linear(2, 2), mg.nn.Tanh(), checkpoint=mg.schedules.sqrt())
    Sequential(
      checkpoint=sqrt()
      (0): Linear(in_features=2, out_features=2, bias=True)
      (1): Tanh()
    )
    """

    def __init__(self, *modules, checkpoint=None):
        self.checkpoint = None if checkpoint is None else as_schedule(checkpoint)
        if len(modules) == 1 and isinstance(modules[0], dict):
            for name, module in modules[0].items():
                if name in vars(self) or hasattr(type(self), name) or "." in name:
                    raise ArgumentError(f"a module in Sequential cannot be called {name!r}")
                setattr(self, name, checked(module))
        else:
            self.extend(modules)

    def forward(self, x):
        if self.checkpoint is not None:
            return checkpoint_sequential(list(self), self.checkpoint, x)
        for module in self:
            x = module(x)
        return x

    def extra_repr(self):
        return "" if self.checkpoint is None else f"checkpoint={self.checkpoint}"


class ModuleList(Ordered):
    """A list of modules whose parameters are found; a forward of your own says how they are used.

    A plain Python list of modules would hide them: not in parameters(), not in the state dict.
    """

    _renumbers = True

    def __init__(self, modules=()):
        self.extend(modules)


class ModuleNameError(IndexingError, KeyError):
    """A name that a ModuleDict does not have."""

    __str__ = Exception.__str__  # KeyError's puts the text in quotes


class ModuleDict(Module):
    """Modules by name, whose parameters are found; a forward of your own says how they are used.

    modules  a dict of names to modules, a ModuleDict, or pairs of a name and a module

    >>> import minigrad as mg
    >>> choices = ModuleDict({"tanh": mg.nn.Tanh(), "relu": mg.nn.ReLU()})
    >>> "tanh" in choices, list(choices)
    (True, ['tanh', 'relu'])
    """

    def __init__(self, modules=None):
        self.update({} if modules is None else modules)

    def update(self, modules):
        """Add modules by name, or put them in the place of those that have these names."""
        for name, module in modules.items() if hasattr(modules, "items") else modules:
            self[name] = module

    def clear(self):
        """Take out all modules."""
        for name in self:
            del self[name]

    def __setitem__(self, name, module):
        if not isinstance(name, str) or not name or "." in name or (hasattr(self, name) and name not in self):
            raise ArgumentError(f"a module in a ModuleDict cannot be called {name!r}")
        setattr(self, name, checked(module))

    def __getitem__(self, name):
        if name not in self:
            raise ModuleNameError(f"there is no module {name!r} here; there are {', '.join(self) or 'none'}")
        return vars(self)[name]

    def __delitem__(self, name):
        self[name]
        delattr(self, name)

    def pop(self, name):
        """Take out the module of this name, and return it."""
        module = self[name]
        del self[name]
        return module

    def __contains__(self, name):
        return name in self.keys()

    def __len__(self):
        return len(members(self, Module))

    def __iter__(self):
        return iter(self.keys())

    def keys(self):
        return [name for name, _ in members(self, Module)]

    def values(self):
        return [module for _, module in members(self, Module)]

    def items(self):
        return members(self, Module)


def checked(module):
    if not isinstance(module, Module):
        hint = "; a function can be wrapped in a Module of your own" if callable(module) else ""
        raise ArgumentError(f"expected an nn.Module, not {type(module).__name__}{hint}")
    return module
