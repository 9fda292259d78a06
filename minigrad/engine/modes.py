"""What is switched on in this thread: recording, the open checkpoint region, the tracer, the running layer.

Every thread has a `Context` of its own, so one thread's `no_grad` cannot switch off another's graph, and
a tracer or a checkpoint in one thread does not see what another does.
"""

import functools
import inspect
import threading


class Context:
    """The modes of one thread. Engine code reads them as plain attributes.

    grad    record ops whose inputs require a gradient
    anomaly look at every gradient for nan
    region  the checkpoint region that is being recorded, or None
    open_region  the same, also while a `mg.grad` in it computes without being recorded
    tape    the `mg.Tape` that writes down what runs, or None
    tracer  the `mg.Tracer` that is watching, or None
    budget  the pool of the `mg.memory_budget` that is in force, or None
    layer   path of the nn layers that are running, such as "blocks.3.attn"
    phase   "forward", "replay" or "backward": what the engine is doing now
    """

    __slots__ = (
        "grad", "anomaly", "region", "open_region", "tape", "tracer", "tracers", "budget", "layer", "phase",
        "outer_modes",
    )  # fmt: skip

    def __init__(self):
        self.grad, self.anomaly = True, False
        self.region = self.open_region = self.tape = self.tracer = self.budget = None
        self.tracers = ()  # those that are watching, the innermost last; `tracer` speaks to all of them
        self.layer = ""
        self.phase = "forward"
        self.outer_modes = None  # a chain of pairs: what was in force, and the pair before


class _Local(threading.local):
    def __init__(self):
        self.context = Context()


local = _Local()

advisers = []  # who hears of each new checkpoint, and of the first replay of a walk, and may warn (retention/advice.py)


class Mode:
    """A context manager and decorator that sets one mode of the thread, such as whether ops are recorded.

    What was in force before is kept on a stack of the *thread*, not on this object. So one object can be
    entered twice, entered by two threads at a time, or decorate a function that calls itself, and each
    exit still restores what its own entry found:

        off = no_grad()
        with off:
            with off: ...
            # still off here
        # and on again here
    """

    def __init__(self, mode: str, enabled: bool):
        self.mode, self.enabled = mode, enabled

    def __enter__(self):
        context = local.context
        if self.mode == "grad":  # no calls in between: Python looks for Ctrl-C at calls, and finds all or nothing done
            context.outer_modes = context.grad, context.outer_modes
            context.grad = self.enabled
        else:
            context.outer_modes = context.anomaly, context.outer_modes
            context.anomaly = self.enabled
        return self

    def __exit__(self, *error):
        context = local.context
        if self.mode == "grad":
            context.grad, context.outer_modes = context.outer_modes
        else:
            context.anomaly, context.outer_modes = context.outer_modes

    def __call__(self, function):
        if inspect.isgeneratorfunction(function):
            return self._around_generator(function)

        @functools.wraps(function)
        def in_mode(*args, **kwargs):
            with self:
                return function(*args, **kwargs)

        return in_mode

    def _around_generator(self, function):
        """Set the mode while the generator runs, and the caller's own mode while it is paused."""

        @functools.wraps(function)
        def in_mode(*args, **kwargs):
            generator = function(*args, **kwargs)
            resume, value = generator.send, None
            while True:
                try:
                    with self:
                        produced = resume(value)
                except StopIteration as end:
                    return end.value
                try:
                    resume, value = generator.send, (yield produced)
                except GeneratorExit:
                    generator.close()
                    raise
                except BaseException as error:
                    resume, value = generator.throw, error

        return in_mode


def no_grad(function=None):
    """Stop recording: `with mg.no_grad():`, or `@mg.no_grad()` around a function.

    >>> with no_grad():
    ...     is_grad_enabled()
    False
    """
    return Mode("grad", False) if function is None else Mode("grad", False)(function)


def enable_grad(function=None):
    """Record again inside a `no_grad`: `with mg.enable_grad():`, or `@mg.enable_grad()`."""
    return Mode("grad", True) if function is None else Mode("grad", True)(function)


def detect_anomaly(function=None):
    """Let backward stop at the first nan: `with mg.detect_anomaly():`, or `@mg.detect_anomaly()`.

    The MinigradError names the vjp that gave it, the op, shapes, and your line; inside a checkpoint, the line of
    that too. Every gradient is looked at. The error's `node` says where it was, for `mg.draw(loss, highlight=error)`.
    """
    return Mode("anomaly", True) if function is None else Mode("anomaly", True)(function)


def is_grad_enabled() -> bool:
    """Whether this thread records ops now."""
    return local.context.grad
