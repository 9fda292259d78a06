"""Convolution and pooling as layers. Images are (N, channels, height, width), sequences (N, channels, length)."""

import math

from .. import ops
from ..errors import ArgumentError
from ..ops.window import pair, single
from . import init
from .module import Module, Parameter


class Convolution(Module):
    """What Conv1d and Conv2d have in common: the parameters, and their settings."""

    def __init__(self, in_channels, out_channels, kernel_size, stride, padding, dilation, groups, bias, dtype, device):
        if groups < 1 or in_channels % groups or out_channels % groups:
            raise ArgumentError(f"groups={groups} must divide the channels, {in_channels} in and {out_channels} out")
        self.in_channels, self.out_channels, self.kernel_size = in_channels, out_channels, kernel_size
        self.stride, self.padding, self.dilation, self.groups = stride, padding, dilation, groups
        shape = (out_channels, in_channels // groups, *kernel_size)
        fan_in = math.prod(shape[1:])
        self.weight = Parameter(init.uniform(shape, fan_in, dtype, device))
        self.bias = Parameter(init.uniform((out_channels,), fan_in, dtype, device)) if bias else None

    def extra_repr(self):
        parts = [f"{self.in_channels}, {self.out_channels}, kernel_size={self.kernel_size}, stride={self.stride}"]
        for name, usual in (("padding", 0), ("dilation", 1), ("groups", 1)):
            if getattr(self, name) != usual:
                parts.append(f"{name}={getattr(self, name)}")
        return ", ".join(parts + ([] if self.bias is not None else ["bias=False"]))


class Conv1d(Convolution):
    """mg.conv1d: (N, in_channels, length) gives (N, out_channels, length of the output).

    weight  (out_channels, in_channels / groups, kernel_size); bias (out_channels,). Both begin uniform in
            +-1/sqrt(numbers that one output sees), as torch's
    """

    def __init__(
        self, in_channels, out_channels, kernel_size, stride=1, padding=0, dilation=1, groups=1, bias=True,
        dtype=None, device=None,
    ):  # fmt: skip
        kernel_size = (single(kernel_size, "kernel_size"),)
        super().__init__(in_channels, out_channels, kernel_size, stride, padding, dilation, groups, bias, dtype, device)

    def forward(self, x):
        return ops.conv1d(x, self.weight, self.bias, self.stride, self.padding, self.dilation, self.groups)


class Conv2d(Convolution):
    """mg.conv2d: (N, in_channels, height, width) gives (N, out_channels, height, width of the output).

    kernel_size, stride, dilation  ints, or pairs (height, width)
    padding       the same; or "same" or "valid"
    weight, bias  (out_channels, in_channels / groups, *kernel_size) and (out_channels,). Both begin uniform in
                  +-1/sqrt(numbers that one output sees), as torch's
    """

    def __init__(
        self, in_channels, out_channels, kernel_size, stride=1, padding=0, dilation=1, groups=1, bias=True,
        dtype=None, device=None,
    ):  # fmt: skip
        kernel_size = pair(kernel_size, "kernel_size")
        super().__init__(in_channels, out_channels, kernel_size, stride, padding, dilation, groups, bias, dtype, device)

    def forward(self, x):
        return ops.conv2d(x, self.weight, self.bias, self.stride, self.padding, self.dilation, self.groups)


class MaxPool2d(Module):
    """mg.max_pool2d: the largest value of each window."""

    def __init__(self, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False):
        self.kernel_size, self.stride = kernel_size, kernel_size if stride is None else stride
        self.padding, self.dilation, self.ceil_mode = padding, dilation, ceil_mode

    def forward(self, x):
        return ops.max_pool2d(x, self.kernel_size, self.stride, self.padding, self.dilation, self.ceil_mode)

    def extra_repr(self):
        return f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}"


class AvgPool2d(Module):
    """mg.avg_pool2d: the mean of each window."""

    def __init__(self, kernel_size, stride=None, padding=0, ceil_mode=False, count_include_pad=True):
        self.kernel_size, self.stride = kernel_size, kernel_size if stride is None else stride
        self.padding, self.ceil_mode, self.count_include_pad = padding, ceil_mode, count_include_pad

    def forward(self, x):
        settings = self.padding, self.ceil_mode, self.count_include_pad
        return ops.avg_pool2d(x, self.kernel_size, self.stride, *settings)

    def extra_repr(self):
        return f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}"
