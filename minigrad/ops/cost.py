"""What an op costs: multiply-adds or element operations, counted from shapes and settings alone.

A policy asks what is dear to compute again (policies.py); so does a memory budget when it looks for a buffer to evict.
Both need a number that is the same on every machine and in every run, and that is there before anything has run
twice. Seconds are neither. So `flops(line)` counts:

    products            matmul, linear, einsum, convolution, attention: their multiply-adds
    views               reshape, swapaxes, slices and the like: 0, as they move nothing
    functions           exp, log, tanh, … of an element: FUNCTION operations; so is a random number
    what is left        one operation for each element read or written: the default, also of your own ops

It is a count, no prediction of time: how fast an operation is depends on the machine and on the op.
"""

import math

from ..engine.op import registry
from ..errors import ArgumentError

FUNCTION = 8  # operations of one exp, log, sine, … or random number: a round figure
ERF = 40 + 2 * FUNCTION  # 40 multiply-adds in the quotients of ops/erf.py, and two exponentials


def flops(line) -> int:
    """Multiply-adds or element operations of one line of a tape: an int, of its shapes and settings only.

    A leaf costs nothing. A checkpoint costs what all the lines of its body cost together, whichever of its outputs
    is asked for.

    >>> import minigrad as mg
    >>> a, b = mg.ones((2, 3), requires_grad=True), mg.ones((3, 5))
    >>> flops((a @ b).node), flops((a + 1).node), flops(mg.exp(a).node), flops(a.T.node)
    (30, 12, 60, 0)
    """
    total, waiting = 0, [line]
    while waiting:
        current = waiting.pop()
        if current.body is not None:
            waiting.extend(current.body.lines)
        elif current.op is not None:
            total += rule_of(current.op)(current)
    return total


def rule_of(op):
    """The function that counts for this op; for an op of the user's, whatever its name, the default."""
    return RULES.get(op.name, touched) if registry.get(op.name) is op else touched


def elements(node) -> int:
    """How many numbers a node's value has; a plain Python number is part of the op and counts as none."""
    return 0 if node.dtype is None else math.prod(node.shape)


def setting(line, name):
    """A setting of the op as it was called, or its default."""
    return line.attrs[name] if name in line.attrs else line.op.defaults[name]


# ---- Element by element ------------------------------------------------------------------------------


def touched(line):
    """Each element that is read or written, once."""
    return sum(map(elements, line.inputs)) + elements(line)


def nothing(line):
    """A view: no element moves."""
    return 0


def one_function(line):
    return touched(line) + FUNCTION * elements(line)


def two_functions(line):
    return touched(line) + 2 * FUNCTION * elements(line)


def erf(line):
    return touched(line) + ERF * elements(line)


def gelu(line):
    return erf(line) if setting(line, "approximate") == "none" else one_function(line)


# ---- Reductions, normalisation, losses: so many operations for each element of x -------------------------


def spread(line):
    """var, std: a mean, a difference, a square, a sum; norm: a size, a power, a sum, a root."""
    return 4 * elements(line.inputs[0])


def exponentials(line):
    """softmax and its kin: the largest, a difference, an exponential, a sum, a quotient."""
    return (FUNCTION + 4) * elements(line.inputs[0])


def normalisation(line):
    """layer_norm, batch_norm: what `spread` does, a product with 1 / deviation, a scale and a shift."""
    return spread(line) + 3 * elements(line)


def root_mean_square(line):
    """rms_norm: a square, a sum, a product with 1 / root, a scale."""
    return 4 * elements(line)


def losses_of_logits(line):
    """binary cross entropy: an exponential and a logarithm for each logit."""
    return touched(line) + 2 * FUNCTION * elements(line.inputs[0])


def comparisons(line):
    """sort, argsort: n log2(n) along the axis."""
    x = line.inputs[0]
    length = x.shape[setting(line, "axis")] if x.shape else 1
    return elements(x) * max(1, math.ceil(math.log2(max(1, length))))


# ---- Indexing ----------------------------------------------------------------------------------------


def picked(line):
    """Reads and writes what it picks, however large the table is that it picks from."""
    return 2 * elements(line)


def indexed(line):
    """x[...]: a view for slices and integers, a copy where a tensor or an array picks."""
    basic = len(line.inputs) == 1 and not any(hasattr(part, "dtype") for part in setting(line, "pattern"))
    return nothing(line) if basic else picked(line)


# ---- Products ----------------------------------------------------------------------------------------


def matmul(line):
    """(…, m, k) @ (…, k, n): k multiply-adds for each element of the result."""
    return elements(line) * line.inputs[0].shape[-1]


def linear(line):
    """x (…, in), w (out, in): `in` multiply-adds for each element of the result, and an addition for the bias."""
    return elements(line) * (line.inputs[1].shape[1] + (len(line.inputs) == 3))


def outer(line):
    return elements(line)


def einsum(line):
    """A multiply-add for each combination of values of all labels."""
    lengths = {}
    terms = setting(line, "subscripts").split("->")[0].split(",")
    for term, source in zip(terms, line.inputs, strict=True):
        for label, length in zip(term, source.shape, strict=True):
            if lengths.get(label, 1) == 1:  # a length of 1 broadcasts
                lengths[label] = length
    return math.prod(lengths.values())


def conv2d(line):
    """Each element of the result meets the kernel once, in all channels of its group; what padding adds counts too."""
    return elements(line) * (math.prod(line.inputs[1].shape[1:]) + (len(line.inputs) == 3))


def conv_transpose2d(line):
    """Each pixel of y paints the kernel once, into all channels of its group."""
    return elements(line.inputs[0]) * math.prod(line.inputs[1].shape[1:]) + (len(line.inputs) == 3) * elements(line)


def conv2d_weight_gradient(line):
    """Each pixel of y meets the kernel once, in all channels of its group."""
    return elements(line.inputs[1]) * math.prod(line.shape[1:])


def attention(line):
    """Two products for each pair of a query and a key that it may look at, and the softmax of its score."""
    q, k, v = line.inputs[:3]
    queries, keys = q.shape[-2], k.shape[-2]
    pairs = queries * keys
    if setting(line, "is_causal"):
        full = min(queries, keys)  # row i looks at i + 1 keys, and at all from row `keys` on
        pairs = full * (full + 1) // 2 + (queries - full) * keys
    return math.prod(line.shape[:-2]) * pairs * (q.shape[-1] + v.shape[-1] + FUNCTION + 4)


def windows(line):
    """Pooling: one operation for each place of each window."""
    return elements(line) * math.prod(setting(line, "kernel"))


def windows_of_input(line):
    """The gradients of pooling: their windows are those of what they read."""
    return elements(line.inputs[0]) * math.prod(setting(line, "kernel"))


RULES = {
    **dict.fromkeys("reshape permute swapaxes unsqueeze squeeze broadcast_to diagonal flip detach".split(), nothing),
    **dict.fromkeys(
        "exp expm1 exp2 log log1p log2 log10 sin cos tan asin acos atan sinh cosh tanh asinh acosh atanh sigmoid silu "
        "elu dropout".split(),
        one_function,
    ),
    **dict.fromkeys("pow softplus".split(), two_functions),
    **dict.fromkeys("var std norm".split(), spread),
    **dict.fromkeys("softmax log_softmax logsumexp cross_entropy".split(), exponentials),
    **dict.fromkeys("layer_norm batch_norm".split(), normalisation),
    **dict.fromkeys("sort argsort".split(), comparisons),
    **dict.fromkeys("gather embedding".split(), picked),
    **dict.fromkeys("max_pool2d_places max_pool2d avg_pool2d".split(), windows),
    **dict.fromkeys("max_unpool2d avg_unpool2d".split(), windows_of_input),
    "erf": erf,
    "gelu": gelu,
    "rms_norm": root_mean_square,
    "binary_cross_entropy_with_logits": losses_of_logits,
    "getitem": indexed,
    "matmul": matmul,
    "linear": linear,
    "outer": outer,
    "einsum": einsum,
    "conv2d": conv2d,
    "conv_transpose2d": conv_transpose2d,
    "conv2d_weight_gradient": conv2d_weight_gradient,
    "scaled_dot_product_attention": attention,
}


# ---- A formula from a paper ------------------------------------------------------------------------------


def transformer_layer_bytes(sequence, batch, hidden, heads, recompute="nothing"):
    """Bytes of the activations that one layer of a transformer keeps for backward, in half precision.

    sequence, batch, hidden, heads   s, b, h and a of the paper
    recompute  "nothing": s b h (34 + 5 a s / h). "attention": without the attention core, whose scores, softmax and
               dropout are s long for each row and head, 34 s b h. "everything": the layer's input alone, 2 s b h

    It counts as the paper does: 2 bytes for each number, one for each element of a dropout mask, a GELU and two
    layer norms. What minigrad keeps of such a layer differs (float32, no masks); `mg.saved` says what.
    Source: Korthikanti et al. 2022, Reducing activation recomputation in large transformer models, arXiv:2205.05198.

    With the sizes of GPT-3, the attention core is 80 parts of 114:

    >>> sizes = dict(sequence=2048, batch=1, hidden=12288, heads=96)
    >>> transformer_layer_bytes(**sizes), transformer_layer_bytes(**sizes, recompute="attention")
    (2868903936, 855638016)
    >>> 1 - 855638016 / 2868903936
    0.70
    """
    row = sequence * batch * hidden
    if recompute == "nothing":
        return 34 * row + 5 * heads * sequence * sequence * batch
    if recompute in ("attention", "everything"):
        return (34 if recompute == "attention" else 2) * row
    raise ArgumentError(f'recompute is "nothing", "attention" or "everything", not {recompute!r}')
