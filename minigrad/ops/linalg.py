"""Matrix products."""

from ..op import op


@op
def matmul(a, b):
    """a @ b."""
    return a @ b


@matmul.vjp("a")
def matmul_wrt_a(g, b):
    return g @ b.swapaxes(-1, -2)


@matmul.vjp("b")
def matmul_wrt_b(g, a):
    return a.swapaxes(-1, -2) @ g
