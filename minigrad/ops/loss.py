"""Losses. reduction="mean" and "sum" give a scalar, "none" a loss for each element (or for each row).

The classifying losses compute from logits and never form probabilities first: differences of logits cannot
overflow, and log(0) cannot come up.
"""

from ..engine.device import array_module
from ..engine.op import op
from ..engine.sums import total
from ..engine.tensor import Tensor
from ..errors import ArgumentError, DtypeError, IndexingError, ShapeError
from .activation import sigmoid
from .arithmetic import where_
from .common import module_of, narrow, quiet, wide
from .elementwise import sign
from .index import one_hot_
from .reduce import finite_maximum, softmax


def reduced(losses, reduction, count):
    """All losses, their sum, or their sum divided by `count`."""
    if reduction == "none":
        return losses
    if reduction == "sum":
        return all_of(losses)
    if reduction == "mean":
        with quiet():  # the mean of no losses is nan
            mean = all_of(wide(losses)) / count
        return mean.astype(losses.dtype) if losses.dtype.kind == "f" else mean
    raise ArgumentError(f'reduction is "mean", "sum" or "none", not {reduction!r}')


def all_of(losses):
    """Their sum: recorded, if they are a Tensor."""
    return losses.sum() if isinstance(losses, Tensor) else total(losses)


def share(g, reduction, count):
    """The gradient of a single loss, given `g`, the gradient of what `reduced` made of them; float16 as float32."""
    return wide(g) * (1 / max(count, 1)) if reduction == "mean" else wide(g)


# ---- Classes -----------------------------------------------------------------------------------------


@op
def cross_entropy(logits, target, reduction="mean", ignore_index=-100):
    """-log softmax(logits)[target], for logits (N, C) and integer targets (N,), or (C,) and one integer.

    A class whose logit is -inf is masked out. A row whose target is `ignore_index` does not count. Keeps the
    logits and the targets only: the vjp computes the softmax again.
    """
    target, counts = checked_target(logits, target, ignore_index)
    xp, x = array_module(logits), wide(logits)
    shifted = x - finite_maximum(x, -1)
    with quiet():
        losses = xp.log(total(xp.exp(shifted), -1)) - picked(shifted, target)
    return narrow(reduced(xp.where(counts, losses, 0), reduction, counts.sum()), logits)


@cross_entropy.vjp("logits")
def cross_entropy_wrt_logits(g, logits, target, reduction, ignore_index):
    hot, weights = hot_and_weights(wide(g), logits.shape, target, reduction, ignore_index)
    return (softmax(wide(logits)) - hot) * weights


@op
def nll_loss(log_probs, target, reduction="mean", ignore_index=-100):
    """-log_probs[target], for log-probabilities (N, C) and integer targets (N,), or (C,) and one integer.

    A row whose target is `ignore_index` does not count. Keeps the targets.
    """
    target, counts = checked_target(log_probs, target, ignore_index)
    losses = array_module(log_probs).where(counts, -picked(log_probs, target), 0)
    return reduced(losses, reduction, counts.sum())


@nll_loss.vjp("log_probs")
def nll_loss_wrt_log_probs(g, log_probs_shape, target, reduction, ignore_index):
    hot, weights = hot_and_weights(wide(g), log_probs_shape, target, reduction, ignore_index)
    return weights * -hot  # weights first: where they are a tensor and `hot` is CuPy's, CuPy would refuse


def checked_target(logits, target, ignore_index):
    """The targets as an array, with 0 for those that do not count, and which ones count."""
    target = array_module(logits).asarray(target)
    if target.dtype.kind not in "iu":
        raise DtypeError(f"the target names classes by integers, and is {target.dtype} here")
    if logits.ndim not in (1, 2) or target.shape != logits.shape[:-1]:
        raise ShapeError(
            f"a target of shape {target.shape} for logits of shape {logits.shape}: they must be (N,) for (N, C), or "
            "() for (C,); bring the classes to the last axis and reshape(-1, C)"
        )
    counts = array_module(logits).asarray(target != ignore_index)
    target = array_module(logits).where(counts, target, 0)
    if target.size and not 0 <= int(target.min()) <= int(target.max()) < logits.shape[-1]:
        raise IndexingError(
            f"the target has classes from {target.min()} to {target.max()}, and the logits {logits.shape[-1]} classes"
        )
    return target, counts


def picked(x, target):
    """x at the target's class, for each row."""
    return array_module(x).take_along_axis(x, target[..., None], -1)[..., 0]


def hot_and_weights(g, shape, target, reduction, ignore_index):
    """For the gradient: 1 at each row's class and 0 elsewhere; and each row's weight, as a column."""
    if isinstance(target, int):
        target = module_of(g).asarray(target)
    counts = target != ignore_index
    hot = one_hot_(where_(counts, target, 0), num_classes=shape[-1], dtype=g.dtype)
    weights = where_(counts, share(g, reduction, int(counts.sum())), 0.0)
    return hot, weights.reshape(weights.shape + (1,))


# ---- Numbers -----------------------------------------------------------------------------------------


@op
def mse_loss(x, target, reduction="mean"):
    """(x - target)², for two tensors of one shape. Keeps both."""
    checked_shapes(x, target)
    distance = wide(x) - (wide(target) if hasattr(target, "dtype") else target)
    out = reduced(distance * distance, reduction, x.size)
    return narrow(out, x if getattr(target, "dtype", x.dtype) == x.dtype else out)


@mse_loss.vjp("x")
def mse_loss_wrt_x(g, x, target, reduction):
    return (wide(x) - target) * (share(g, reduction, x.size) * 2)


@mse_loss.vjp("target")
def mse_loss_wrt_target(g, x, target, reduction):
    return (target - wide(x)) * (share(g, reduction, x.size) * 2)


@op
def l1_loss(x, target, reduction="mean"):
    """|x - target|, for two tensors of one shape; with slope 0 where they are equal. Keeps both."""
    checked_shapes(x, target)
    return reduced(abs(x - target), reduction, x.size)


@l1_loss.vjp("x")
def l1_loss_wrt_x(g, x, target, reduction):
    return sign(x - target) * share(g, reduction, x.size)


@l1_loss.vjp("target")
def l1_loss_wrt_target(g, x, target, reduction):
    return sign(target - x) * share(g, reduction, x.size)


@op
def binary_cross_entropy_with_logits(x, target, reduction="mean"):
    """-target * log sigmoid(x) - (1 - target) * log sigmoid(-x), without overflow. Keeps x and the target."""
    checked_shapes(x, target)
    xp, given, x = array_module(x), x, wide(x)
    return narrow(reduced(xp.maximum(x, 0) - x * target + xp.log1p(xp.exp(-abs(x))), reduction, x.size), given)


@binary_cross_entropy_with_logits.vjp("x")
def binary_cross_entropy_with_logits_wrt_x(g, x, target, reduction):
    return (sigmoid(x) - target) * share(g, reduction, x.size)


@binary_cross_entropy_with_logits.vjp("target")
def binary_cross_entropy_with_logits_wrt_target(g, x, reduction):
    return -x * share(g, reduction, x.size)


def checked_shapes(x, target):
    """Broadcasting (N, 1) against (N,) would give N * N losses and hide the mistake. A plain number is fine."""
    if x.shape != getattr(target, "shape", x.shape):
        raise ShapeError(f"the loss compares two tensors of one shape, not {x.shape} and {target.shape}")
