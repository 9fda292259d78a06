"""Normalisation as layers: over the last axes of each row, or over a batch for each channel."""

from .. import ops
from ..errors import ShapeError
from ..ops import create
from ..ops.common import ints
from ..ops.normalization import checked_groups
from .module import Module, Parameter


class LayerNorm(Module):
    """mg.layer_norm over the last axes.

    normalized_shape    their lengths; an int for one axis
    elementwise_affine  False for no weight and no bias; bias=False for no bias
    weight, bias        of that shape; ones and zeros at first
    """

    def __init__(self, normalized_shape, eps=1e-5, elementwise_affine=True, bias=True, dtype=None, device=None):
        self.normalized_shape, self.eps = ints((normalized_shape,), "normalized_shape"), eps
        self.weight = self.bias = None
        if elementwise_affine:
            self.weight = Parameter(create.ones(*self.normalized_shape, dtype=dtype, device=device))
            if bias:
                self.bias = Parameter(create.zeros(*self.normalized_shape, dtype=dtype, device=device))

    def forward(self, x):
        return ops.layer_norm(x, self.normalized_shape, self.weight, self.bias, self.eps)

    def extra_repr(self):
        return f"{self.normalized_shape}, eps={self.eps}, elementwise_affine={self.weight is not None}"


class GroupNorm(Module):
    """Channels in groups: each group of a row, with all that lies behind its channels, is standardized by itself.

    num_groups     into how many groups of equal size the channels (axis 1 of x) fall
    affine         False for no weight and no bias
    weight, bias   one number for each channel; ones and zeros at first

    Source: Wu and He 2018, arXiv:1803.08494.

    >>> import minigrad as mg
    >>> GroupNorm(2, 6)(mg.ones(4, 6, 5, 5)).shape
    (4, 6, 5, 5)
    """

    def __init__(self, num_groups, num_channels, eps=1e-5, affine=True, dtype=None, device=None):
        num_groups = checked_groups("GroupNorm", num_groups, num_channels)
        self.num_groups, self.num_channels, self.eps = num_groups, num_channels, eps
        self.weight = self.bias = None
        if affine:
            self.weight = Parameter(create.ones(num_channels, dtype=dtype, device=device))
            self.bias = Parameter(create.zeros(num_channels, dtype=dtype, device=device))

    def forward(self, x):
        if x.ndim < 2 or x.shape[1] != self.num_channels:
            raise ShapeError(f"GroupNorm of {self.num_channels} channels, and x has shape {x.shape}")
        return ops.group_norm(x, self.num_groups, self.weight, self.bias, self.eps)

    def extra_repr(self):
        return f"{self.num_groups}, {self.num_channels}, eps={self.eps}, affine={self.weight is not None}"


class RMSNorm(Module):
    """mg.rms_norm over the last axes.

    normalized_shape    their lengths; an int for one axis
    eps                 None: the distance of 1 from the next number of x's dtype
    elementwise_affine  False for no weight
    weight              of that shape; ones at first
    """

    def __init__(self, normalized_shape, eps=None, elementwise_affine=True, dtype=None, device=None):
        self.normalized_shape, self.eps = ints((normalized_shape,), "normalized_shape"), eps
        self.weight = None
        if elementwise_affine:
            self.weight = Parameter(create.ones(*self.normalized_shape, dtype=dtype, device=device))

    def forward(self, x):
        return ops.rms_norm(x, self.normalized_shape, self.weight, self.eps)

    def extra_repr(self):
        return f"{self.normalized_shape}, eps={self.eps}, elementwise_affine={self.weight is not None}"


class BatchNorm(Module):
    """mg.batch_norm, and the running mean and variance of each channel.

    In training a batch is normalised with its own mean and (biased) variance, and the running values move towards
    its mean and unbiased variance by the fraction `momentum`. In evaluation the running values normalise.

    That is done once for each call, in a checkpoint too: a replay re-runs ops, and this is none.

    num_features         the number of channels
    momentum             None: the running values are plain averages of all batches
    affine               False for no weight and no bias
    track_running_stats  False: no running values; every batch is normalised with its own
    weight, bias, running_mean, running_var   (num_features,);  num_batches_tracked   an integer
    """

    axes = ()

    def __init__(
        self, num_features, eps=1e-5, momentum=0.1, affine=True, track_running_stats=True, dtype=None, device=None
    ):  # fmt: skip
        self.num_features, self.eps, self.momentum = num_features, eps, momentum
        self.weight = Parameter(create.ones(num_features, dtype=dtype, device=device)) if affine else None
        self.bias = Parameter(create.zeros(num_features, dtype=dtype, device=device)) if affine else None
        mean = var = batches = None
        if track_running_stats:
            mean = create.zeros(num_features, dtype=dtype, device=device)
            var = create.ones(num_features, dtype=dtype, device=device)
            batches = create.tensor(0, dtype="int64", device=device)
        self.register_buffer("running_mean", mean)
        self.register_buffer("running_var", var)
        self.register_buffer("num_batches_tracked", batches)

    def forward(self, x):
        if x.ndim not in self.axes or x.shape[1] != self.num_features:
            wanted = " or ".join([str(n) for n in self.axes])
            raise ShapeError(
                f"{type(self).__name__} takes {wanted} axes, the second of length {self.num_features}, not {x.shape}"
            )
        tracking = self.running_mean is not None
        if not self.training and tracking:
            running = self.running_mean, self.running_var
            return ops.batch_norm(x, *running, self.weight, self.bias, eps=self.eps)
        if not tracking:
            return ops.batch_norm(x, None, None, self.weight, self.bias, training=True, eps=self.eps)
        batches = int(self.num_batches_tracked) + 1
        out = ops.batch_norm(
            x, self.running_mean, self.running_var, self.weight, self.bias, training=True,
            momentum=1 / batches if self.momentum is None else self.momentum, eps=self.eps,
        )  # fmt: skip
        self.num_batches_tracked.assign_(batches)
        return out

    def extra_repr(self):
        affine, tracking = self.weight is not None, self.running_mean is not None
        return (
            f"{self.num_features}, eps={self.eps}, momentum={self.momentum}, affine={affine}, "
            f"track_running_stats={tracking}"
        )


class BatchNorm1d(BatchNorm):
    """BatchNorm, which see, of (N, channels) or (N, channels, length).

    >>> import minigrad as mg
    >>> norm = mg.nn.BatchNorm1d(1, eps=1e-12)
    >>> norm(mg.tensor([[1.0], [3.0]])).tolist(), norm.running_mean.tolist()
    ([[-1.0], [1.0]], [0.2])
    """

    axes = (2, 3)


class BatchNorm2d(BatchNorm):
    """BatchNorm, which see, of images (N, channels, height, width)."""

    axes = (4,)
