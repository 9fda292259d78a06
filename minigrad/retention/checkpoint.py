"""`mg.checkpoint`: a stretch of the tape without its buffers, and all that one can ask of how it is kept."""

import functools

from ..engine.checkpoint import record_stretch, tensors_in
from ..engine.replay import Manner
from ..engine.tape import Node
from ..errors import ArgumentError
from ..schedules.schedule import whole_number
from . import advice  # noqa: F401 - from here on checkpoints are looked at
from .discard import Discarding
from .offload import Offload
from .policies import as_policy
from .verify import Digests


def checkpoint(fn, *args, policy=None, verify=False, offload=False, keep_output=True, name=None, **kwargs):
    """Call `fn(*args, **kwargs)` and keep only what its boundary needs; backward replays the rest.

    The result is what `fn` returned, any nesting of tuples, namedtuples, lists, dicts and plain values, and
    gradients are bit for bit those of a plain call. `fn` runs once; backward re-runs the ops
    that it recorded.

    policy  what to keep inside all the same, one of `mg.policies` or a function of a tape line that answers yes or
            no: the outputs of the matmuls, say. The replay starts from what was kept. None keeps nothing
    verify  hash every value now, and compare each one that a replay computes: CheckpointError names the
            first op that differs. It costs a hash of each buffer and no memory to speak of.
    offload keep the boundary in slow memory: the host's, if it is on a GPU; on NumPy a copy that stands for it. It
            comes back when the replay begins. A number fetches ahead: with 2, the next older checkpoint's too
    keep_output  False: the tape does not hold the result either. An op that reads it in backward has the checkpoint
            run then, a little earlier than it would be anyway; for a norm or activation in front of a matmul
    name    for tables and pictures

    Raises CheckpointError when a tensor made in `fn` is used later without having been returned. Warns
    (CheckpointWarning) when the checkpoint can save nothing, or its policy keeps more than no checkpoint would. A
    hook on a tensor inside `fn` sees its whole gradient once per replay; two replays of one backward (with
    create_graph) each call it with their own.

    Source: Griewank 1992 for replaying instead of storing; Chen et al. 2016, arXiv:1604.06174, for layers.

    >>> import minigrad as mg
    >>> x = mg.tensor([0.5], requires_grad=True)
    >>> y = mg.checkpoint(lambda t: mg.tanh(t * 2) * t, x)
    >>> y.sum().backward()
    >>> x.grad
    Tensor([1.1816], float32)
    """
    if not callable(fn):
        kind = type(fn).__name__
        raise ArgumentError(f"checkpoint needs a function to call, not a {kind}; write mg.checkpoint(fn, x)")
    window = window_of(offload)
    manner = Manner(
        name=name,
        digests=Digests() if verify else None,
        slow=None if window is None else Offload(window),
        given=frozenset() if window is None else data_in((args, kwargs)),
        kind=Node if keep_output else Discarding,
    )
    return record_stretch(functools.partial(fn, *args, **kwargs), manner, None if policy is None else as_policy(policy))


def window_of(offload):
    """The number of boundaries to have at hand: None for no offload."""
    if offload is None or offload is False:
        return None
    return 1 if offload is True else whole_number(offload, "offload, the number of boundaries to have at hand,")


def data_in(value) -> frozenset:
    """The leaves among the tensors in any nesting."""
    return frozenset(tensor.node for tensor in tensors_in(value) if tensor.is_leaf)
