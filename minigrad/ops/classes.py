"""Losses over classes with weights, smoothed targets and probabilities, and further losses between two tensors.

The plain cross entropy is one op (loss.py). What asks for more is made of ops: the logarithm of the softmax, and sums
of it with the weights that each row and each class has.
"""

from ..engine.device import array_module
from ..engine.op import op
from ..errors import ArgumentError, DtypeError, ShapeError
from . import loss
from .arithmetic import clamp_, where_
from .common import module_of
from .defaults import get_default_dtype
from .elementwise import exp, log
from .index import take
from .loss import checked_shapes, reduced, share
from .reduce import log_softmax, norm


def cross_entropy(logits, target, weight=None, ignore_index=-100, reduction="mean", label_smoothing=0.0):
    """-log softmax(logits)[target], for logits (N, C) and integer targets (N,), or (C,) and one integer.

    target           integers; or probabilities of the logits' shape, of which the loss is -Σ target * log softmax
    weight           how much each class counts, (C,); with reduction="mean" rows are averaged with these weights
    ignore_index     a row whose target is this does not count
    label_smoothing  this much of each target is spread evenly over all classes. Source: Szegedy et al. 2015,
                     arXiv:1512.00567

    >>> import minigrad as mg
    >>> cross_entropy(mg.zeros(2, 4), mg.tensor([0, 3]), label_smoothing=0.1)
    Tensor(1.386, float32)
    """
    soft = getattr(target, "dtype", None) is not None and target.dtype.kind == "f" and target.shape == logits.shape
    if weight is None and label_smoothing == 0 and not soft:
        return loss.cross_entropy(logits, target, reduction=reduction, ignore_index=ignore_index)
    if not 0 <= label_smoothing <= 1:
        raise ArgumentError(f"cross_entropy needs a label_smoothing from 0 to 1, not {label_smoothing!r}")
    weight, log_probs, classes = checked_weight(weight, logits), log_softmax(logits), logits.shape[-1]
    if soft:
        target = target * (1 - label_smoothing) + label_smoothing / classes if label_smoothing else target
        losses = -(log_probs * (target if weight is None else target * weight)).sum(axis=-1)
        return reduced(losses, reduction, losses.size)
    losses, shares = weighted(log_probs, target, weight, ignore_index)
    if label_smoothing:
        spread = -(log_probs if weight is None else log_probs * weight).sum(axis=-1)
        spread = where_(target != ignore_index, spread, 0.0)
        losses = losses * (1 - label_smoothing) + spread * (label_smoothing / classes)
    return averaged(losses, reduction, shares)


def nll_loss(log_probs, target, weight=None, ignore_index=-100, reduction="mean"):
    """-log_probs[target], for log-probabilities (N, C) and integer targets (N,), or (C,) and one integer.

    weight  how much each class counts, (C,); ignore_index  a row whose target is this does not count
    """
    if weight is None:
        return loss.nll_loss(log_probs, target, reduction=reduction, ignore_index=ignore_index)
    losses, shares = weighted(log_probs, target, checked_weight(weight, log_probs), ignore_index)
    return averaged(losses, reduction, shares)


def checked_weight(weight, logits):
    """The weights as a tensor or an array of the logits' dtype."""
    if weight is None:
        return None
    if isinstance(weight, str):
        raise ArgumentError(f"the third argument is the classes' weight; say reduction={weight!r}")
    if isinstance(weight, (list, tuple)):
        weight = module_of(logits).asarray(weight, dtype=logits.dtype)
    if weight.shape != logits.shape[-1:]:
        raise ShapeError(f"a weight of shape {weight.shape} for {logits.shape[-1:]} classes: each needs one")
    if weight.dtype.kind not in "fiu":
        raise DtypeError(f"the weights of the classes are numbers, and are {weight.dtype} here")
    return weight.astype(logits.dtype)


def weighted(log_probs, target, weight, ignore_index):
    """(losses, shares): each row's loss times its weight, and the weights, which are 0 where the row does not count."""
    losses = loss.nll_loss(log_probs, target, reduction="none", ignore_index=ignore_index)
    if isinstance(target, int):
        target = module_of(log_probs).asarray(target)
    counts = target != ignore_index
    if weight is None:
        return losses, counts.astype(log_probs.dtype)
    shares = where_(counts, take(weight, where_(counts, target, 0), 0), 0.0)
    return losses * shares, shares


def averaged(losses, reduction, shares):
    """All losses, their sum, or their sum divided by the sum of the shares."""
    return reduced(losses, reduction, shares.sum() if reduction == "mean" else 1)


# ---- Between two tensors -----------------------------------------------------------------------------


@op
def huber_loss(x, target, reduction="mean", delta=1.0):
    """d² / 2 for a distance d = |x - target| up to delta, delta * (d - delta / 2) beyond. Keeps x and the target."""
    checked_shapes(x, target)
    if not delta > 0:
        raise ArgumentError(f"huber_loss needs delta > 0, not {delta}")
    distance = abs(x - target)
    near = array_module(distance).minimum(distance, float(delta))
    return reduced(near * (distance - near * 0.5), reduction, x.size)


@huber_loss.vjp("x")
def huber_loss_wrt_x(g, x, target, reduction, delta):
    return clamp_(x - target, min=-float(delta), max=float(delta)) * share(g, reduction, x.size)


@huber_loss.vjp("target")
def huber_loss_wrt_target(g, x, target, reduction, delta):
    return clamp_(target - x, min=-float(delta), max=float(delta)) * share(g, reduction, x.size)


def smooth_l1_loss(x, target, reduction="mean", beta=1.0):
    """huber_loss(delta=beta) / beta: d² / (2 * beta) for a distance d up to beta, and d - beta / 2 beyond."""
    if not beta > 0:
        raise ArgumentError(f"smooth_l1_loss needs beta > 0, not {beta}; l1_loss is its limit")
    return huber_loss(x, target, reduction=reduction, delta=beta) * (1 / beta)


def kl_div(x, target, reduction="mean", log_target=False):
    """target * (log(target) - x), for logarithms x of probabilities, and 0 where the target is 0.

    reduction   "batchmean" as well: the sum divided by the number of rows, which is the divergence's own definition
    log_target  the target is given as logarithms too
    """
    checked_shapes(x, target)
    x, target = as_floats(x, target)
    if log_target:
        losses = exp(target) * (target - x)
    else:
        losses = target * (log(where_(target > 0, target, 1.0)) - x)
    if reduction == "batchmean":
        return losses.sum() / max(x.shape[0] if x.ndim else 1, 1)
    return reduced(losses, reduction, x.size)


def binary_cross_entropy(x, target, reduction="mean"):
    """-target * log(x) - (1 - target) * log(1 - x) of probabilities x; each logarithm is at least -100, as in torch.

    binary_cross_entropy_with_logits needs no such limit: prefer it.
    """
    checked_shapes(x, target)
    losses = -(target * bounded_log(x) + (1 - target) * bounded_log(1 - x))
    return reduced(losses, reduction, x.size)


def bounded_log(x):
    """log(x), and -100 (with slope 0) where that is less."""
    far = x <= 0
    return where_(far, -100.0, clamp_(log(where_(far, 1.0, x)), min=-100.0))


def as_floats(a, b):
    """Two tensors, of which integers have been brought into the dtype of the other, or into the default one."""
    dtypes = [x.dtype for x in (a, b) if x.dtype.kind == "f"]
    dtype = dtypes[0] if dtypes else get_default_dtype()
    return [x if x.dtype.kind == "f" else x.astype(dtype) for x in (a, b)]


def cosine_similarity(a, b, axis=1, eps=1e-8):
    """Σ a * b over `axis`, divided by the norms of a and b, neither taken below eps."""
    a, b = as_floats(a, b)
    a, b = [x / clamp_(norm(x, axis=axis, keepdims=True), min=eps) for x in (a, b)]
    return (a * b).sum(axis=axis)
