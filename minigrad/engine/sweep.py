"""The reverse sweep.

A heap of nodes, youngest first, and the gradient that waits at each. Take the youngest: everything that
reads it is younger, so its gradient is complete. Ask its vjps, add what they give to the gradients of its
inputs, let go of its buffer, go on. That is all of backward: no recursion, and each node once.

A checkpoint node has no vjps; it is replayed (replay.py). The fresh nodes take over its gradient, and being
the youngest of all they come next. The walk itself is in walk.py; here is what one calls.

`steps()` is a generator of that walk, one `Step` for each node, and it is the only backward there is:
`loss.backward()` runs it to its end, `grad()` runs it towards chosen inputs, `mg.debug` lets you run it by hand.
Leaves get their `.grad` at the very end, all together, so a walk that is abandoned, or dies in a hook, has
given nobody half a gradient.
"""

from collections import deque
from typing import NamedTuple

from ..errors import ArgumentError, NoGradientError
from .gradients import own, starting_gradient
from .tensor import Tensor, refuse_smuggled
from .walk import Sweep


class Step(NamedTuple):
    """One step of backward.

    kind   "op": a node's vjps have run · "replay": a checkpoint has been replayed · "leaf": a leaf has
           received its gradient
    node   the node in hand
    grad   the gradient that arrived at it (for a leaf: what this backward adds); an array, or with
           create_graph a Tensor
    grads  what its vjps gave, one for each input that gets a gradient, before un-broadcasting
    freed  bytes that the tape has let go of here
    """

    kind: str
    node: object
    grad: object
    grads: list
    freed: int

    def __repr__(self):
        return f"Step({self.kind}, {self.node}, freed {self.freed} B)"


def steps(loss, gradient=None, retain_graph=False, create_graph=False):
    """Walk backward one Step at a time; at the end of the walk leaves have their `.grad`.

    loss, gradient  where to start, and what flows in there; a scalar needs no gradient (it is 1)
    retain_graph    keep the buffers, so that another walk can follow
    create_graph    record the walk itself, so that gradients can be differentiated again

    Raises NoGradientError, ShapeError or GraphFreedError before the first step is made; on the way
    GraphFreedError or OverwrittenError, when it comes to what is no longer there.

    >>> import minigrad as mg
    >>> x = mg.tensor(2.0, requires_grad=True)
    >>> [step.kind for step in steps(x * x * x)]
    ['op', 'op', 'leaf']
    """
    return named_steps(start(loss, gradient, retain_graph, create_graph, watched=True).walk())


def backward(loss, gradient=None, retain_graph=False, create_graph=False):
    """Add this tensor's gradient to `.grad` of every leaf that it depends on.

    gradient      what flows in from above, of this tensor's shape; a scalar needs none (it is 1)
    retain_graph  keep the buffers, so that another backward can follow
    create_graph  record the backward itself, so that gradients can be differentiated again
    """
    walk = start(loss, gradient, retain_graph, create_graph).walk()
    deque(walk, maxlen=0)  # runs it to its end, and keeps no step alive


Tensor.backward = backward


def grad(outputs, inputs, grad_outputs=None, retain_graph=None, create_graph=False, allow_unused=False):
    """The gradients of `outputs` with respect to `inputs`, as a tuple; nothing is left in any `.grad`.

    outputs, inputs  a tensor or a sequence of them; inputs may be leaves or not
    grad_outputs     a gradient for each output; None where the output is a scalar
    retain_graph     keep the buffers; by default as create_graph
    create_graph     the gradients can be differentiated again
    allow_unused     give None for an input that no output depends on, instead of NoGradientError

    >>> import minigrad as mg
    >>> x = mg.tensor(3.0, requires_grad=True)
    >>> (dy,) = grad(x * x, x, create_graph=True)
    >>> grad(dy, [x])
    (Tensor(2., float32),)
    """
    outputs, inputs = as_list(outputs, "outputs"), as_list(inputs, "inputs")
    given = grad_outputs if isinstance(grad_outputs, (list, tuple)) else [grad_outputs] * len(outputs)
    if grad_outputs is not None and not isinstance(grad_outputs, (list, tuple)) and len(outputs) > 1:
        raise ArgumentError(f"grad needs a gradient for each of the {len(outputs)} outputs, and got one")
    if len(given) != len(outputs):
        raise ArgumentError(f"grad needs a gradient for each of the {len(outputs)} outputs, and got {len(given)}")
    for index, tensor in enumerate(inputs):
        if not tensor.requires_grad:
            raise NoGradientError(f"input {index} of grad, {tensor!r}, does not require grad; see requires_grad_()")
        refuse_smuggled(tensor)
    seeds = [(out, starting_gradient(out, g, create_graph)) for out, g in zip(outputs, given, strict=True)]
    retain_graph = create_graph if retain_graph is None else retain_graph
    targets = [tensor._node.origin for tensor in inputs]
    sweep = Sweep(seeds, retain_graph, create_graph, targets=targets)
    deque(sweep.walk(), maxlen=0)  # runs it to its end, and keeps no step alive
    found = [sweep.destination.collected.get(target) for target in targets]
    for index, gradient in enumerate(found):
        if gradient is None and not allow_unused:
            raise NoGradientError(
                f"no output depends on input {index} of grad, {inputs[index]!r}; allow_unused=True gives None for it"
            )
    return tuple([g if g is None or create_graph else Tensor(own(g)) for g in found])


def named_steps(walk):
    for fields in walk:
        yield Step._make(fields)


def as_list(tensors, what):
    if isinstance(tensors, Tensor):
        return [tensors]
    if not isinstance(tensors, (list, tuple)) or not all(isinstance(tensor, Tensor) for tensor in tensors):
        raise ArgumentError(f"the {what} of grad must be a Tensor or a list of them, not {tensors!r:.60}")
    return list(tensors)


def start(loss, gradient, retain_graph, create_graph, watched=False):
    seed = starting_gradient(loss, gradient, create_graph)
    return Sweep([(loss, seed)], retain_graph, create_graph, watched=watched)
