"""Matrix products."""

from ..op import op


@op
def matmul(a, b):
    """a @ b."""
    return a @ b


@matmul.vjp("a")
def matmul_wrt_a(g, b):
    return g @ (b.T if b.ndim == 2 else b.swapaxes(-1, -2))


@matmul.vjp("b")
def matmul_wrt_b(g, a):
    return (a.T if a.ndim == 2 else a.swapaxes(-1, -2)) @ g
