"""Is this gradient right? Compare it with a difference quotient.

Backward gives vᵀJ for a cotangent v. Moving the input a little along a direction u gives J u. Both of them meet
in one number, vᵀJu, which can be had either way:

    <backward's gradient, u>        and        (<v, f(x + εu)> - <v, f(x - εu)>) / 2ε

With *random* u and v a wrong entry of the gradient shows in that number with probability 1, for two calls of f
instead of two for each element. A cotangent of ones would not do: softmax, for instance, has a zero gradient
under it whatever its vjp does.

Everything is in float64: in float32 the difference quotient itself has three or four digits.
Source: HIPS/autograd's test_util.py, for the random directions.
"""

import numpy

from ..engine.device import to_device
from ..engine.modes import enable_grad
from ..engine.sweep import grad
from ..engine.tensor import Tensor
from ..errors import ArgumentError, DtypeError, MinigradError, NoGradientError
from .create import leaf, zeros_like

MAX_SEARCHED = 1000  # elements that are tried one by one, to say where a gradient is wrong


class GradientMismatch(MinigradError):
    """Backward's gradient and the difference quotient disagree."""


def gradcheck(fn, inputs, eps=1e-5, rtol=1e-5, atol=1e-7, per_element=False, seed=0) -> bool:
    """Whether backward through `fn(*inputs)` gives the gradients that difference quotients give.

    fn           a function of tensors that returns a tensor or a tuple of them, or an op
    inputs       a tensor or a sequence; those that require a gradient are checked, and must be float64
    eps          how far to move an input
    rtol, atol   relative and absolute difference that is still called equal
    per_element  move each element of each input by itself, instead of all of them along a random direction
    seed         of the random directions and cotangents

    Returns True, or raises GradientMismatch with function, argument, index, what backward gave, and what it
    should be. Raises DtypeError for what is not float64, NoGradientError if no input requires a gradient.

    >>> import minigrad as mg
    >>> x = mg.tensor([0.5, -1.0], dtype="float64", requires_grad=True)
    >>> mg.gradcheck(mg.tanh, [x])
    True
    """
    inputs, checked = checked_inputs(inputs)
    rng = numpy.random.default_rng(seed)
    outputs = outputs_of(fn, inputs)
    cotangents = [rng.standard_normal(out.shape) for out in outputs]
    gradients = backward(outputs, [like(out, v) for out, v in zip(outputs, cotangents, strict=True)],
                         [inputs[i] for i in checked])  # fmt: skip
    gradients = [to_device(gradient.data, "cpu") for gradient in gradients]
    refuse_chance(fn, inputs, outputs)

    def slope(argument, direction):
        """How <cotangents, fn> rises along a direction of one argument."""
        start = to_device(inputs[argument].data, "cpu")
        above, below = [
            weighted_sum(fn, with_argument(inputs, argument, start + step * direction), cotangents)
            for step in (eps, -eps)
        ]
        return (above - below) / (2 * eps)

    for argument, gradient in zip(checked, gradients, strict=True):
        direction = rng.standard_normal(gradient.shape)
        got, expected = float((gradient * direction).sum()), slope(argument, direction)
        wrong = not close(got, expected, rtol, atol)
        if per_element or (wrong and gradient.size <= MAX_SEARCHED):
            check_elements(fn, argument, gradient, slope, rtol, atol)
        if wrong:
            raise mismatch(fn, argument, "along a random direction", got, expected)
    return True


def gradgradcheck(fn, inputs, **settings) -> bool:
    """The same for second derivatives: a gradcheck of backward itself, in the inputs and in the cotangents.

    >>> import minigrad as mg
    >>> x = mg.tensor([0.5, -1.0], dtype="float64", requires_grad=True)
    >>> mg.gradgradcheck(mg.tanh, [x])
    True
    """
    inputs, checked = checked_inputs(inputs)
    rng = numpy.random.default_rng(settings.get("seed", 0) + 1)
    outputs = outputs_of(fn, inputs)
    cotangents = [like(out, rng.standard_normal(out.shape), requires_grad=True) for out in outputs]

    def gradient(*arguments):
        xs, vs = arguments[: len(inputs)], arguments[len(inputs) :]
        return tuple(backward(outputs_of(fn, xs), vs, [xs[i] for i in checked], create_graph=True))

    gradient.__name__ = f"the gradient of {name_of(fn)}"
    return gradcheck(gradient, inputs + cotangents, **settings)


# ---- The two ways ------------------------------------------------------------------------------------


def backward(outputs, cotangents, inputs, create_graph=False):
    """The gradients of <cotangents, outputs>, zeros for inputs on which nothing depends."""
    used = [(out, v) for out, v in zip(outputs, cotangents, strict=True) if out.requires_grad]
    if not used:
        return [zeros_like(x) for x in inputs]
    outs, vs = zip(*used, strict=True)
    found = grad(outs, inputs, vs, create_graph=create_graph, allow_unused=True)
    return [zeros_like(x) if g is None else g for x, g in zip(inputs, found, strict=True)]


def weighted_sum(fn, inputs, cotangents):
    outputs = outputs_of(fn, inputs)
    return sum([float((v * to_device(out.data, "cpu")).sum()) for v, out in zip(cotangents, outputs, strict=True)])


def with_argument(inputs, argument, array):
    """The inputs, with a fresh leaf in the place of one of them."""
    return [like(x, array, requires_grad=True) if i == argument else x for i, x in enumerate(inputs)]


def like(x, array, requires_grad=False):
    return leaf(to_device(numpy.array(array, dtype=x.dtype), x.device), requires_grad)


def outputs_of(fn, inputs):
    """The floating outputs of fn(*inputs), as a list."""
    with enable_grad():
        outputs = fn(*inputs)
    outputs = [outputs] if isinstance(outputs, Tensor) else list(outputs)
    outputs = [out for out in outputs if out.dtype.kind == "f"]
    for out in outputs:
        if out.dtype != "float64":
            raise DtypeError(
                f"{name_of(fn)} made {out.dtype} of float64; a difference quotient needs float64 throughout"
            )
    return outputs


# ---- Comparing, and what is said ---------------------------------------------------------------------


def checked_inputs(inputs):
    """The inputs as a list, and which of them are to be checked."""
    inputs = [inputs] if isinstance(inputs, Tensor) else list(inputs)
    checked = [i for i, x in enumerate(inputs) if isinstance(x, Tensor) and x.requires_grad]
    if not checked:
        raise NoGradientError("gradcheck needs an input that requires a gradient; see requires_grad_()")
    for i in checked:
        if inputs[i].dtype != "float64":
            raise DtypeError(
                f"gradcheck needs float64, and argument {i} is {inputs[i].dtype}: in it a difference quotient has only "
                'a few digits. Make the input with dtype="float64"'
            )
    return inputs, checked


def refuse_chance(fn, inputs, outputs):
    """Random numbers would make two calls differ, and the difference quotient meaningless."""
    for first, second in zip(outputs, outputs_of(fn, inputs), strict=True):
        if not numpy.array_equal(first.numpy(), second.numpy(), equal_nan=True):
            raise ArgumentError(
                f"{name_of(fn)} gives different values for the same inputs; call mg.manual_seed(0) inside it"
            )


def check_elements(fn, argument, gradient, slope, rtol, atol):
    """Compare element by element, and report the one that is furthest off."""
    worst = None
    for index in numpy.ndindex(gradient.shape):
        direction = numpy.zeros(gradient.shape)
        direction[index] = 1.0
        got, expected = float(gradient[index]), slope(argument, direction)
        if not close(got, expected, rtol, atol):
            distance = abs(got - expected)
            if worst is None or not distance <= worst[0]:
                worst = distance, index, got, expected
    if worst is not None:
        raise mismatch(fn, argument, f"at index {worst[1]}", *worst[2:])


def close(got, expected, rtol, atol) -> bool:
    return abs(got - expected) <= atol + rtol * abs(expected)


def mismatch(fn, argument, where, got, expected):
    return GradientMismatch(
        f"{name_of(fn)}: the gradient with respect to argument {argument} is wrong {where}: backward gives {got:.9g}, "
        f"and the difference quotient {expected:.9g}"
    )


def name_of(fn) -> str:
    return getattr(fn, "name", None) or getattr(fn, "__name__", None) or repr(fn)
