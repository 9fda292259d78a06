"""Exercises for lesson 13. Fill in the blanks; `make check N=13` looks at them."""

import numpy as np  # noqa: F401


def same_dice(fn):
    """A function that does what `fn` does, but throws NumPy's dice in every later call as it did in its first call.

    The first call throws as usual. Each later one finds the generator in the state in which the first call found it,
    and leaves the generator in the state in which it found it itself. So a checkpoint can call it a second time in
    backward, and nobody else notices.

    fn  takes one argument, and uses np.random.random, np.random.randint, ...

    np.random.get_state() gives the state of these functions' generator, and np.random.set_state(state) sets it.
    """
    raise NotImplementedError("your turn: what has to be remembered in the first call, and what in each later one?")


def layers_in_a_loop(call, layer, h, weights):
    """What comes out of layer(…layer(layer(h, w1), w2)…), one stretch for each weight: right for any checkpoint.

    call     call(fn, h) gives fn(h), and may call fn again at any later time
    layer    layer(h, w) gives what the layer makes of h
    h        the input of the first layer
    weights  one for each layer
    """
    raise NotImplementedError("your turn: each function has to know its own weight, also when the loop is over")


def first_difference(first, again):
    """The name of the first value whose bits are not the same in both runs, None if all are; `verify=True` asks this.

    first, again  lists of (name, array) of the first run and of the replay, in the same order, names the same

    The same bits means: the same shape, the same dtype, and the same bytes. A nan that comes again is the same; 0.0 and
    -0.0 are equal, but they are not the same.
    """
    raise NotImplementedError("your turn: which comparison of two arrays does not care what the numbers mean?")
