"""Exercises for lesson 03. Fill in the blanks; `make check N=03` looks at them. All arrays are NumPy's."""


def unbroadcast(gradient, shape):
    """The gradient of an array of shape `shape` that broadcasting has brought into the shape of `gradient`.

    Add up over every axis that broadcasting has put in front, and over every axis that it has stretched from length 1;
    a stretched axis stays, with length 1. The result has the shape `shape`.

    gradient  an array
    shape     a tuple that broadcasts to gradient.shape
    """
    raise NotImplementedError("your turn: which numbers of the gradient belong to the same number of the array?")


def log_softmax_vjp(g, out):
    """The vjp of out = log_softmax(x) = x - log(exp(x).sum()) for a vector x: the gradient of x.

    g    the gradient of out, a vector
    out  log_softmax(x), which is the logarithm of the shares of softmax
    """
    raise NotImplementedError("your turn: who reads x[j], and with which slope?")


def is_right(function, vjp, x, seed=0):
    """Whether `vjp` is the vjp of `function` at the point x: True or False.

    Compare backward along a random direction with a difference quotient, for a random cotangent. It must find every
    mistake that changes a gradient by a thousandth of its size or more, and let right vjps pass, whether the numbers
    that function gives are large or small.

    function  takes an array like x and gives an array
    vjp       vjp(g, x) gives the gradient of x, for a gradient g of function(x)
    x         an array of float64, of numbers of the order of 1
    seed      of np.random.default_rng
    """
    raise NotImplementedError("your turn: what must be random here, how large is the step, and what is the tolerance?")
