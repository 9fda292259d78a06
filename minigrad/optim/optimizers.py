"""Optimizers: what a training step does with the gradients. The formulas are torch's.

A step reads `parameter.grad` and puts a fresh array into the parameter. It computes on plain arrays, so
nothing of it is recorded, whatever the mode. Putting new data into a leaf moves the leaf to the end of the
tape (`Leaf.replace`): a graph that was made from the old weights and still needs them will say so.

A parameter whose gradient is None took no part in the loss. It is left alone, by momentum and weight decay
too, and the count of its steps does not go on.
"""

import math
import numbers
import operator

import numpy

from ..engine.device import array_module, device_of, is_array, to_device
from ..engine.tensor import Tensor
from ..errors import ArgumentError, MinigradError

__all__ = ["Optimizer", "OptimizerError", "SGD", "Adam", "AdamW", "RMSprop", "clip_grad_norm_", "clip_grad_value_"]


class OptimizerError(MinigradError, ValueError):
    """Parameters, settings or a state that an optimizer cannot work with."""


HINTS = ("foreach", "fused", "capturable", "differentiable", "param_names")  # of torch: how, and not what
FLAGS = ("nesterov", "centered", "amsgrad", "maximize")  # settings that are True or False


class Optimizer:
    """What all optimizers share: groups of parameters, the state of each parameter, saving and loading.

    params    tensors that are leaves, such as model.parameters(); or a list of dicts, each with "params" and
              the settings that differ for these
    settings  the values for groups that say nothing else

    param_groups  a list of dicts: "params" and the settings; change group["lr"] freely
    state         parameter -> dict of "step" and of the arrays that the optimizer keeps for it

    A subclass defines `check(settings)` and `update(array, gradient, state, settings)`, which gives the new
    array. Raises OptimizerError (a ValueError) for no parameters, one given twice, or a setting out of range.
    """

    def __init__(self, params, **settings):
        self.defaults = settings
        self.param_groups, self.state = [], {}
        groups = listed(params)
        if not groups:
            raise OptimizerError("an optimizer needs at least one parameter, and was given none")
        for group in groups if isinstance(groups[0], dict) else [{"params": groups}]:
            self.add_param_group(group)

    def add_param_group(self, group):
        """Add a dict of "params" and of the settings that are their own."""
        if not isinstance(group, dict):
            raise ArgumentError(f"a group is a dict of \"params\" and settings, not {type(group).__name__}")
        unknown = [key for key in group if key not in ("params", "initial_lr", *self.defaults)]
        if "params" not in group or unknown:
            what = f"has no {unknown[0]!r}" if unknown else 'needs "params"'
            names = ", ".join(self.defaults)
            raise OptimizerError(f"a group of {type(self).__name__} {what}; the settings are {names}")
        group = {**self.defaults, **group, "params": listed(group["params"])}
        if isinstance(group.get("betas"), list):
            group["betas"] = tuple(group["betas"])  # what happens to the list does not concern the optimizer
        known = {id(p) for other in self.param_groups for p in other["params"]}
        for index, parameter in enumerate(group["params"]):
            check_parameter(parameter, index)
            if id(parameter) in known:
                raise OptimizerError(
                    f"parameter {index}, {parameter!r}, is given twice, and would be stepped twice. "
                    "model.parameters() has each once"
                )
            known.add(id(parameter))
        self._check(group)
        self.param_groups.append(group)

    entries = None  # the names that may stand in a parameter's state; None: any

    def needs(self, settings):
        """The names that must stand in the state of a parameter that has been stepped with these settings."""
        return ()

    def _check(self, settings):
        """What all optimizers check, and then what this one does."""
        for key in FLAGS:
            if not isinstance(settings.get(key, False), (int, numpy.bool_)):
                raise OptimizerError(f"{key} must be True or False, and is {settings[key]!r}")
        if "initial_lr" in settings:
            check_range(settings, "initial_lr", 0)
        self.check(settings)

    def check(self, settings):
        """Raise OptimizerError if a setting is out of range."""

    def update(self, array, gradient, state, settings):
        """The array that takes the place of `array`; may change `state`, the dict of this parameter."""
        raise MinigradError(f"{type(self).__name__} does not say how to update a parameter")

    def step(self):
        """Move each parameter that has a gradient."""
        for group in self.param_groups:
            for parameter in group["params"]:
                if parameter.grad is None:
                    continue
                array, gradient = wide(parameter.data), wide(parameter.grad.data)
                gradient = gradient.astype(array.dtype, copy=False)
                if group.get("maximize"):
                    gradient = -gradient
                state = self.state.setdefault(parameter, {"step": 0})
                state["step"] += 1
                new = self.update(array, gradient, state, group)
                parameter._replace(array_module(array).asarray(new, dtype=parameter.dtype))

    def zero_grad(self, set_to_none=True):
        """Forget all gradients: None, or zeros with set_to_none=False."""
        for group in self.param_groups:
            for parameter in group["params"]:
                if set_to_none or parameter.grad is None:
                    parameter.grad = None
                else:
                    parameter.grad = Tensor(array_module(parameter.data).zeros_like(parameter.data))

    # ---- saving ------------------------------------------------------------------------------------

    def state_dict(self) -> dict:
        """The state and the settings as numbers and NumPy arrays (copies). Parameters are numbered."""
        order = [parameter for group in self.param_groups for parameter in group["params"]]
        index = {id(parameter): i for i, parameter in enumerate(order)}
        state = {
            index[id(parameter)]: {key: saved(value) for key, value in values.items()}
            for parameter, values in self.state.items()
        }
        groups = [{**group, "params": [index[id(p)] for p in group["params"]]} for group in self.param_groups]
        return {"state": state, "param_groups": groups}

    def load_state_dict(self, saved_state):
        """Continue where `saved_state` left off. Raises OptimizerError, and then nothing has been changed."""
        try:
            groups, states = list(saved_state["param_groups"]), dict(saved_state["state"])
            sizes = [len(group["params"]) for group in groups]
            ids = [operator.index(i) for group in groups for i in group["params"]]
            settings = [self._settings_of(dict(group)) for group in groups]
        except (TypeError, KeyError, ValueError) as error:
            if isinstance(error, OptimizerError):
                raise
            raise OptimizerError(f"this is not the state_dict() of an optimizer: {error!r}") from error
        mine = [len(group["params"]) for group in self.param_groups]
        if sizes != mine:
            raise OptimizerError(f"the state has groups of {sizes} parameters, and this optimizer of {mine}")
        strangers = [i for i in states if i not in ids]
        if strangers or len(set(ids)) < len(ids):
            what = f"the state of a parameter {strangers[0]!r}, and" if strangers else "a parameter twice among"
            raise OptimizerError(f"this state has {what} its groups' parameters {ids}")
        for own, loaded in zip(self.param_groups, settings, strict=True):
            self._check({**own, **loaded})
        places = [(parameter, {**own, **loaded}) for own, loaded in zip(self.param_groups, settings, strict=True)
                  for parameter in own["params"]]  # fmt: skip
        state = {
            parameter: self._state_of(i, states[i], parameter, merged)
            for i, (parameter, merged) in zip(ids, places, strict=True)
            if i in states
        }
        for own, loaded in zip(self.param_groups, settings, strict=True):
            own.update(loaded)
        self.state = state

    def _state_of(self, i, values, parameter, settings):
        """What a saved state says of parameter i, in the form in which `step` keeps it."""
        if not isinstance(values, dict):
            raise OptimizerError(f"the state of parameter {i} is no dict but {type(values).__name__}")
        kept = {key: value for key, value in values.items() if value is not None}
        missing = [key for key in self.needs(settings) if key not in kept]
        if missing and kept:
            raise OptimizerError(f"the state of parameter {i} has no {missing[0]!r}, which is needed here")
        unknown = [key for key in kept if self.entries is not None and key not in self.entries]
        if unknown:
            raise OptimizerError(f"the state of parameter {i} has {unknown[0]!r}, which {type(self).__name__} has not")
        return {"step": 0, **{key: restored(key, value, parameter) for key, value in kept.items()}}

    def _settings_of(self, group):
        """The settings in a group of a state: those of this optimizer, and what a schedule has left there."""
        own_decay = getattr(self, "decoupled", None)
        for key, value in group.items():
            harmless = key in ("params", *HINTS) or value is None or value is False
            if key == "decoupled_weight_decay" and own_decay is not None:  # torch's Adam, which AdamW is too
                harmless = bool(value) == own_decay or not group.get("weight_decay")
            if key not in self.defaults and key != "initial_lr" and not harmless:
                raise OptimizerError(
                    f"the state was saved with {key}={value!r:.40}, which {type(self).__name__} here does not have; it "
                    "would train something else. Take it out of the state's param_groups to go on without"
                )
        missing = [key for key in self.defaults if key not in group and key not in FLAGS]
        if missing:
            raise OptimizerError(f"the state does not say {missing[0]!r}, a setting of {type(self).__name__}")
        settings = {key: group[key] for key in (*self.defaults, "initial_lr") if key in group}
        return {key: tuple(value) if isinstance(value, list) else value for key, value in settings.items()}

    def __repr__(self):
        count = sum(len(group["params"]) for group in self.param_groups)
        settings = ", ".join(f"{key}={value}" for key, value in self.defaults.items())
        return f"{type(self).__name__}({count} parameters, {settings})"


class SGD(Optimizer):
    """Stochastic gradient descent, with momentum if wanted.

        d = g + weight_decay * p
        v = momentum * v + (1 - dampening) * d           (v = d at the first step)
        p = p - lr * (d + momentum * v if nesterov else v)

    maximize: with the gradient's sign turned round, uphill.

    Source: Sutskever et al. 2013 for (Nesterov's) momentum, in torch's arrangement of it.

    >>> import minigrad as mg
    >>> w = mg.tensor([1.0], requires_grad=True)
    >>> optimizer = SGD([w], lr=0.1)
    >>> (w * w).sum().backward()
    >>> optimizer.step()
    >>> w
    Tensor([0.8], float32, requires_grad)
    """

    def __init__(
        self, params, lr=1e-3, momentum=0.0, dampening=0.0, weight_decay=0.0, nesterov=False, maximize=False
    ):  # fmt: skip
        super().__init__(
            params,
            lr=lr,
            momentum=momentum,
            dampening=dampening,
            weight_decay=weight_decay,
            nesterov=nesterov,
            maximize=maximize,
        )

    entries = ("step", "momentum_buffer")

    def check(self, settings):
        for key in ("lr", "momentum", "weight_decay"):
            check_range(settings, key, 0)
        check_range(settings, "dampening", -math.inf)
        if settings["nesterov"] and (settings["momentum"] == 0 or settings["dampening"] != 0):
            raise OptimizerError("nesterov needs a momentum above 0 and no dampening")

    def update(self, p, g, state, settings):
        lr, momentum, decay = map(float, (settings["lr"], settings["momentum"], settings["weight_decay"]))
        d = g + decay * p if decay else g
        if momentum:
            if "momentum_buffer" in state:
                v = momentum * state["momentum_buffer"] + (1 - float(settings["dampening"])) * d
            else:
                v = d.copy()
            state["momentum_buffer"] = v
            d = d + momentum * v if settings["nesterov"] else v
        return p - lr * d


class Adam(Optimizer):
    """Adam: steps scaled by running means of the gradient and of its square.

        d = g + weight_decay * p
        m = b1 * m + (1 - b1) * d            v = b2 * v + (1 - b2) * d**2
        p = p - lr / (1 - b1**t) * m / (sqrt(v / (1 - b2**t)) + eps)

    t counts the steps of each parameter by itself. amsgrad: v is the largest that it has been so far. maximize: with
    the gradient's sign turned round, uphill.

    Sources: Reddi, Kale, Kumar 2018, arXiv:1904.09237, for amsgrad; Kingma and Ba 2015, arXiv:1412.6980.
    """

    decoupled = False  # whether weight decay stays out of the running means
    entries = ("step", "exp_avg", "exp_avg_sq", "max_exp_avg_sq")

    def __init__(
        self, params, lr=1e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=0.0, amsgrad=False, maximize=False
    ):  # fmt: skip
        super().__init__(
            params, lr=lr, betas=betas, eps=eps, weight_decay=weight_decay, amsgrad=amsgrad, maximize=maximize
        )

    def check(self, settings):
        for key in ("lr", "eps", "weight_decay"):
            check_range(settings, key, 0)
        betas = settings["betas"]
        if not isinstance(betas, (tuple, list)) or len(betas) != 2:
            raise OptimizerError(f"betas must be two numbers, not {betas!r}")
        for i, beta in enumerate(betas):
            check_range({f"betas[{i}]": beta}, f"betas[{i}]", 0, 1)

    def needs(self, settings):
        return self.entries if settings["amsgrad"] else self.entries[:3]

    def update(self, p, g, state, settings):
        lr, eps, decay = map(float, (settings["lr"], settings["eps"], settings["weight_decay"]))
        b1, b2 = map(float, settings["betas"])
        if decay and self.decoupled:
            p = p * (1 - lr * decay)
        elif decay:
            g = g + decay * p
        t = state["step"]
        m = state["exp_avg"] = b1 * state.get("exp_avg", 0) + (1 - b1) * g
        v = state["exp_avg_sq"] = b2 * state.get("exp_avg_sq", 0) + (1 - b2) * (g * g)
        if settings["amsgrad"]:
            v = state["max_exp_avg_sq"] = array_module(p).maximum(state.get("max_exp_avg_sq", 0), v)
        scale = array_module(p).sqrt(v) / math.sqrt(1 - b2**t) + eps
        return p - lr / (1 - b1**t) * m / scale


class AdamW(Adam):
    """Adam with decoupled weight decay: p = p * (1 - lr * weight_decay), and then Adam's step without decay.

    Source: Loshchilov and Hutter 2019, arXiv:1711.05101.
    """

    decoupled = True

    def __init__(
        self, params, lr=1e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=1e-2, amsgrad=False, maximize=False
    ):  # fmt: skip
        super().__init__(params, lr, betas, eps, weight_decay, amsgrad, maximize)


class RMSprop(Optimizer):
    """Steps scaled by a running mean of the gradient's square; with momentum if wanted.

        d = g + weight_decay * p
        v = alpha * v + (1 - alpha) * d**2              m = alpha * m + (1 - alpha) * d
        s = d / (sqrt(v) + eps)                         centered: s = d / (sqrt(v - m**2) + eps)
        b = momentum * b + s                            p = p - lr * b

    Sources: Tieleman and Hinton 2012, lecture 6.5 of their course; Graves 2013, arXiv:1308.0850, for centered.
    """

    def __init__(
        self, params, lr=1e-2, alpha=0.99, eps=1e-8, weight_decay=0.0, momentum=0.0, centered=False, maximize=False
    ):  # fmt: skip
        super().__init__(
            params, lr=lr, alpha=alpha, eps=eps, weight_decay=weight_decay, momentum=momentum, centered=centered,
            maximize=maximize,
        )  # fmt: skip

    def check(self, settings):
        for key in ("lr", "eps", "weight_decay", "momentum"):
            check_range(settings, key, 0)
        check_range(settings, "alpha", 0, 1)

    entries = ("step", "square_avg", "grad_avg", "momentum_buffer")

    def needs(self, settings):
        wanted = {"grad_avg": settings["centered"], "momentum_buffer": settings["momentum"]}
        return [key for key in self.entries if wanted.get(key, True)]

    def update(self, p, g, state, settings):
        lr, alpha, eps, decay, momentum = [
            float(settings[key]) for key in ("lr", "alpha", "eps", "weight_decay", "momentum")
        ]
        d = g + decay * p if decay else g
        v = state["square_avg"] = alpha * state.get("square_avg", 0) + (1 - alpha) * (d * d)
        if settings["centered"]:
            m = state["grad_avg"] = alpha * state.get("grad_avg", 0) + (1 - alpha) * d
            v = array_module(p).maximum(v - m * m, 0)  # a variance; rounding can make it negative
        d = d / (array_module(p).sqrt(v) + eps)
        if momentum:
            d = state["momentum_buffer"] = momentum * state.get("momentum_buffer", 0) + d
        return p - lr * d


def clip_grad_norm_(parameters, max_norm, norm_type=2.0, error_if_nonfinite=False) -> Tensor:
    """Scale all gradients by one factor, so that their norm, taken together, is at most `max_norm`.

    parameters          tensors, each counted once; those without a gradient do not count
    norm_type           the p of the p-norm; math.inf for the largest absolute value
    error_if_nonfinite  raise OptimizerError if the norm is infinite or not a number

    Returns the norm before, a Tensor of one element. Source: Pascanu et al. 2013, arXiv:1211.5063; the factor
    max_norm / (norm + 1e-6) is torch's.

    >>> import minigrad as mg
    >>> w = mg.tensor([0.0, 0.0], requires_grad=True)
    >>> w.grad = mg.tensor([3.0, 4.0])
    >>> clip_grad_norm_([w], 1.0), w.grad
    (Tensor(5., float32), Tensor([0.6, 0.8], float32))
    """
    parameters = [parameters] if isinstance(parameters, Tensor) else listed(parameters)
    unique = {id(p): p for p in parameters if p.grad is not None}.values()
    if max_norm != math.inf:  # to measure only
        check_range({"max_norm": max_norm}, "max_norm", 0)
    if not unique:
        return Tensor(numpy.zeros((), numpy.float32))
    dtype = numpy.result_type(*[wide(p.grad.data[:0] if p.grad.ndim else p.grad.data).dtype for p in unique])
    norms = [norm_of(p.grad.data, norm_type) for p in unique]
    norms = [to_device(norm, device_of(norms[0])) for norm in norms]
    norms = [norm.astype("float64") for norm in norms]
    total = norm_of(array_module(*norms).stack(norms), norm_type)
    if error_if_nonfinite and not math.isfinite(float(total)):
        raise OptimizerError(
            f"the norm of the gradients is {float(total)}; no factor brings that to {max_norm}"
        )
    factor = max_norm / (float(total) + 1e-6)
    if not factor >= 1:
        for p in unique:
            scaled = wide(p.grad.data) * factor
            p.grad = Tensor(array_module(scaled).asarray(scaled, dtype=p.grad.dtype))
    with numpy.errstate(over="ignore"):
        return Tensor(total.astype(dtype))


def clip_grad_value_(parameters, clip_value) -> None:
    """Bring each number of each gradient into -clip_value … clip_value.

    parameters  a tensor or several; those without a gradient are left alone

    >>> import minigrad as mg
    >>> w = mg.tensor([0.0, 0.0], requires_grad=True)
    >>> w.grad = mg.tensor([3.0, -0.5])
    >>> clip_grad_value_([w], 1.0)
    >>> w.grad
    Tensor([ 1. , -0.5], float32)
    """
    if clip_value != math.inf:
        check_range({"clip_value": clip_value}, "clip_value", 0)
    parameters = [parameters] if isinstance(parameters, Tensor) else listed(parameters)
    for p in {id(p): p for p in parameters if p.grad is not None}.values():
        clipped = wide(p.grad.data).clip(-clip_value, clip_value)
        with numpy.errstate(over="ignore"):  # an infinity of float16 under a limit beyond its range stays one
            p.grad = Tensor(array_module(clipped).asarray(clipped, dtype=p.grad.dtype))


# ---- Checks ------------------------------------------------------------------------------------------


def listed(params):
    """The parameters, or the groups, as a list; a tensor or a module by itself is a mistake."""
    if isinstance(params, Tensor):
        raise ArgumentError("an optimizer takes a list of parameters; write [tensor] for a single one")
    if hasattr(params, "parameters"):
        raise ArgumentError("an optimizer takes parameters, not a module; write model.parameters()")
    return list(params)


def check_parameter(parameter, index):
    if not isinstance(parameter, Tensor):
        raise ArgumentError(f"parameter {index} is no tensor but {type(parameter).__name__}")
    if not parameter.is_leaf:
        raise OptimizerError(
            f"parameter {index} was made by {parameter.node}; an optimizer can only move leaves: those of "
            "mg.tensor(…, requires_grad=True) and nn.Parameter"
        )


def check_range(settings, key, low, below=math.inf):
    value = settings[key]
    if isinstance(value, bool) or not isinstance(value, numbers.Real) or not low <= value < below:
        limits = f"at least {low}" + (f" and below {below}" if below < math.inf else "")
        raise OptimizerError(f"{key} must be a number, {limits}, and is {value!r}")


def wide(array):
    """float16 as float32: an optimizer computes, and keeps its state, with more digits than the parameter has."""
    return array.astype("float32") if array.dtype == "float16" else array


def norm_of(array, p):
    """The p-norm of all elements, an array of no axes; in float64 where float32 would overflow or lose all digits."""
    module, flat = array_module(array), wide(array).reshape(-1)
    with numpy.errstate(over="ignore", under="ignore", invalid="ignore"):
        norm = module.asarray(module.linalg.norm(flat, p))
        if flat.dtype == "float32" and not 1e-15 < float(norm) < math.inf:
            norm = module.asarray(module.linalg.norm(flat.astype("float64"), p))
    return norm


def saved(value):
    return value if isinstance(value, numbers.Real) else numpy.array(to_device(value, "cpu"))


def restored(key, value, parameter):
    """A value of a saved state for this parameter: a number, or an array of its shape, on its device."""
    try:
        array = numpy.asarray(to_device(value, "cpu") if is_array(value) else value)
        if array.dtype.kind not in "fiu":
            raise TypeError(f"dtype {array.dtype}")
        if key == "step":
            count = int(array)  # torch saves a tensor
            if count < 0 or count != array:
                raise ValueError(f"{array} steps")
            return count
    except (TypeError, ValueError, OverflowError) as error:
        raise OptimizerError(f"{key} in the state makes no sense: {error}") from error
    if array.shape != parameter.shape:
        raise OptimizerError(f"{key} has shape {array.shape} in the state, not {parameter.shape}")
    dtype = wide(parameter.data[:0] if parameter.ndim else parameter.data).dtype
    return to_device(array.astype(dtype), parameter.device)
