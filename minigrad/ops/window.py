"""Windows that slide over images: what convolution and pooling share.

Output row r and row i of the kernel meet at input row  r * stride + i * dilation - padding.  Both families go
through the places of the kernel, a few, and at each place handle all the pixels at once, as two strided views:

    for place, outs, ins in places(...):
        out[..., *outs]  and  x[..., *ins]        # the pixels that meet at this place of the kernel

Where the kernel reaches over the edge there is nothing to meet. So padding needs no padded copy of the image.
"""

import operator

from ..errors import ArgumentError, ShapeError

NOTHING = slice(0, 0)


def pair(value, what):
    """An int, or a pair of them (height, width): a pair of ints."""
    try:
        if isinstance(value, (tuple, list)):
            height, width = value
            return operator.index(height), operator.index(width)
        return (operator.index(value),) * 2
    except (TypeError, ValueError) as error:
        raise ArgumentError(f"{what} is an int, or a pair of them for height and width, not {value!r}") from error


def single(value, what):
    """An int, or a tuple of one: the int."""
    if isinstance(value, (tuple, list)):
        if len(value) != 1:
            raise ArgumentError(f"{what} is one int in one dimension, not {value!r}")
        return value[0]
    return value


def positive(values, what):
    """The pair, or an error if one of them is below 1."""
    if min(values) < 1:
        raise ArgumentError(f"{what} must be at least 1, not {values}")
    return values


def reach(kernel, dilation) -> tuple:
    """How many pixels a kernel spans, in both axes."""
    return tuple([(k - 1) * d + 1 for k, d in zip(kernel, dilation, strict=True)])


def output_size(size, kernel, stride, padding, dilation, ceil_mode=False) -> tuple:
    """How often a kernel fits on images of `size` (height, width); padding has (before, after) for both axes.

    A remainder that the stride leaves is not covered; with ceil_mode it gets a window of its own, provided that
    this window begins on the image or the padding before it.
    """
    counts = []
    for n, span, s, (before, after) in zip(size, reach(kernel, dilation), stride, padding, strict=True):
        room = n + before + after - span
        count = room // s + 1
        if ceil_mode and room % s and count * s < n + before:
            count += 1
        counts.append(count)
    if min(counts) < 1:
        span = reach(kernel, dilation)
        raise ShapeError(f"a kernel that spans {span} pixels does not fit on images of {size} with padding {padding}")
    return tuple(counts)


def meet(offset, stride, outputs, inputs):
    """Two slices: the outputs r for which offset + r * stride is one of the inputs, and these inputs."""
    first = max(0, -(offset // stride))
    last = min(outputs, (inputs - 1 - offset) // stride + 1)
    if last <= first:
        return NOTHING, NOTHING
    return slice(first, last), slice(offset + first * stride, offset + (last - 1) * stride + 1, stride)


def places(kernel, stride, padding, dilation, outputs, inputs, first_row=0):
    """(place, outs, ins) for each place (i, j) of the kernel: which rows and columns of the output and of the input
    meet there, each as a pair of slices.

    outputs, inputs  sizes (height, width); first_row  where the outputs begin, if they are a piece of all
    """
    top, left = padding[0][0], padding[1][0]
    columns = [meet(j * dilation[1] - left, stride[1], outputs[1], inputs[1]) for j in range(kernel[1])]
    for i in range(kernel[0]):
        out_rows, in_rows = meet(first_row * stride[0] + i * dilation[0] - top, stride[0], outputs[0], inputs[0])
        for j, (out_columns, in_columns) in enumerate(columns):
            yield (i, j), (..., out_rows, out_columns), (..., in_rows, in_columns)
