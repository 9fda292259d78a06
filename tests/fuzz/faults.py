"""Faults thrown into a program: an exception at the k-th call of an engine function, or a real SIGINT at some moment.

Afterwards the thread's modes must be as before, nothing alive, and the next run of the program right.
"""

import signal
import sys
from pathlib import Path

import minigrad as mg
from minigrad.engine.modes import Context, local

from .programs import Run, agree

PACKAGES = tuple(str(Path(mg.__file__).parent / name) for name in ("engine", "retention", "budget", "chain", "trace"))


class Thrower:
    """Throws `error` when the engine makes its k-th call; `calls` counts them, but for functions in `spared`."""

    def __init__(self, k, error=KeyboardInterrupt, spared=()):
        self.k, self.error, self.spared, self.calls, self.place = k, error, frozenset(spared), 0, None

    def __call__(self, frame, event, argument):
        code = frame.f_code
        if event == "call" and code.co_name not in self.spared and code.co_filename.startswith(PACKAGES):
            self.calls += 1
            if self.calls == self.k:
                sys.settrace(None)
                self.place = f"{Path(code.co_filename).name}:{code.co_name}"
                raise self.error("thrown into " + self.place)


def calls_of(text, form, budget, spared=()) -> int:
    """How many engine calls a program makes."""
    counter, run = Thrower(-1, spared=spared), Run(text, form, budget, True)
    sys.settrace(counter)
    try:
        run()
    finally:
        sys.settrace(None)
    return counter.calls


def modes() -> dict:
    """The modes of this thread, with copies of the lists among them."""
    read = {name: getattr(local.context, name, None) for name in Context.__slots__}
    return {name: list(value) if isinstance(value, list) else value for name, value in read.items()}


def thrown(text, form, budget, thrower) -> str | None:
    """What is wrong after a fault, in words, or None."""
    before, run = modes(), Run(text, form, budget, True)
    with mg.Tracer() as outside:
        inside = modes()
        sys.settrace(thrower)
        try:
            run()
        except (thrower.error, mg.MinigradError):
            pass
        finally:
            sys.settrace(None)
        after = modes()
        del run
        live = outside.live_activations
        restore(inside)
    restore(before)
    return wrong_after(text, form, budget, inside, after, live, thrower.place)


def wrong_after(text, form, budget, before, after, live, place):
    changed = [name for name in before if before[name] != after[name]]
    if changed:
        return f"after a fault in {place}: " + ", ".join(f"{n} is {after[n]!r}, was {before[n]!r}" for n in changed)
    if live:
        return f"after a fault in {place}: {live} activations alive"
    again, plain = Run(text, form, budget, True)(), Run(text, form, None, False)()
    exact = form != "create_graph" and "derivative(" not in text
    if not all(agree(a, b, exact) for a, b in zip(again.gradients, plain.gradients, strict=True)):
        return f"after a fault in {place}: the next run has other gradients"
    return None


def restore(before):
    """Set the modes back, so that one fault found does not hide the next."""
    for name, value in before.items():
        setattr(local.context, name, list(value) if isinstance(value, list) else value)


def interrupted(text, form, budget, seconds) -> str | None:
    """What is wrong after a real SIGINT `seconds` into the program, or None. Main thread only."""
    before, run = modes(), Run(text, form, budget, True)
    old = signal.signal(signal.SIGALRM, signal.default_int_handler)
    place = f"{seconds * 1e3:.2f} ms, by a signal"
    with mg.Tracer() as outside:
        inside = modes()
        try:
            signal.setitimer(signal.ITIMER_REAL, seconds)
            run()
        except (KeyboardInterrupt, mg.MinigradError):
            pass
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, old)
        after = modes()
        del run
        live = outside.live_activations
        restore(inside)
    restore(before)
    return wrong_after(text, form, budget, inside, after, live, place)
