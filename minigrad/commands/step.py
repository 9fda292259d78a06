"""`python -m minigrad step script.py`: run a script, and step through its first backward at a prompt.

The script runs as `python script.py` would run it. Where it goes backward, by `loss.backward()`, `mg.grad` or a loop
over `mg.steps`, the stepper of `mg.debug` stands between it and its steps; after the end the script goes on.
"""

import argparse
import os
import sys
import tokenize
import types

from ..engine import sweep
from ..engine.walk import Sweep
from ..view import journey, stepper

STEPPER_FILES = (__file__, stepper.__file__, journey.__file__)


class SteppedSweep(Sweep):
    """A walk backward that asks for commands, as `sweep.Sweep` makes it while a script is being stepped through."""

    def __init__(self, seeds, retain_graph, create_graph, targets=None, watched=False):
        super().__init__(seeds, retain_graph, create_graph, targets, watched=True)
        self.origins = [tensor.node for tensor, _ in seeds]

    def walk(self):
        """Yield what a Sweep's walk yields; a `quit` ends the script."""
        prompt = stepper.Stepper(self, self.origins)
        yield from prompt.walk()
        if prompt.left:
            raise SystemExit(0)


class FirstSweep(SteppedSweep):
    """The same for the first walk alone: when it is made, the ones after it become ordinary."""

    def __init__(self, seeds, retain_graph, create_graph, targets=None, watched=False):
        sweep.Sweep = Sweep
        super().__init__(seeds, retain_graph, create_graph, targets, watched)


def main(arguments=None):
    """Run the script; returns the exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m minigrad step",
        description="Run a script and step through its first backward at a prompt; type help there.",
    )
    parser.add_argument("--all", action="store_true", help="stop at every backward, not at the first one only")
    parser.add_argument("script", help="the Python file")
    parser.add_argument("args", nargs=argparse.REMAINDER, help="the script's own arguments")
    options = parser.parse_args(arguments)
    before = sys.modules["__main__"], sys.argv, list(sys.path), sweep.Sweep
    sweep.Sweep = SteppedSweep if options.all else FirstSweep
    try:
        status = run_script(options.script, options.args)
        if status == 0 and sweep.Sweep is FirstSweep:
            print(f"{options.script} has ended, and there was no backward to step through.")
        return status
    finally:
        sys.modules["__main__"], sys.argv, sys.path[:], sweep.Sweep = before


def run_script(path, arguments) -> int:
    """Run a file as the program `__main__`; an error gets the traceback that Python itself would give it."""
    try:
        with tokenize.open(path) as file:
            text = file.read()
    except OSError as error:
        print(f"cannot read the script: {error}", file=sys.stderr)
        return 2
    module = types.ModuleType("__main__")
    module.__file__ = os.path.abspath(path)
    sys.modules["__main__"], sys.argv = module, [path, *arguments]
    sys.path.insert(0, os.path.dirname(module.__file__))
    try:
        exec(compile(text, module.__file__, "exec"), vars(module))
    except Exception as error:
        error.__traceback__ = without_stepper(error.__traceback__)
        sys.excepthook(type(error), error, error.__traceback__)
        return 1
    return 0


def without_stepper(trace):
    """A traceback without the frames of this file and of the stepper, which a plain run would not have."""
    frames = []
    while trace is not None:
        if trace.tb_frame.f_code.co_filename not in STEPPER_FILES:
            frames.append(trace)
        trace = trace.tb_next
    for kept in reversed(frames):
        trace = types.TracebackType(trace, kept.tb_frame, kept.tb_lasti, kept.tb_lineno)
    return trace
