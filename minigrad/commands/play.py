"""`python -m minigrad play script.py`: run a script, and write the player of what it did to an HTML file.

The script runs as `python script.py` would run it, to its end. Its first pass is recorded, a forward and the backward
that follows; with `--passes 2` the second one too, and the page shows them side by side.
"""

import argparse
import pathlib
import sys
import weakref

from ..engine.modes import local
from ..trace.recorder import Tracer
from ..view import player
from .step import run_script


class Pass(Tracer):
    """A tracer of one forward and backward, which tells its recording when another one has begun."""

    def __init__(self, recording):
        super().__init__()
        self.recording, self.nodes, self.swept, self.length = recording, [], False, 0

    def held(self, reader, sources=None):
        """A node has been written on the tape."""
        self.nodes.append(weakref.ref(reader))
        super().held(reader, sources)

    def sweeps(self, node):
        """The vjps of a node run, and so this pass is in its backward."""
        self.swept = True
        super().sweeps(node)

    def ran(self, op, args, arrays, out):
        """An op has run: of this pass, or the first of another."""
        if self.step and (self.is_over() or self.is_void()):
            following = self.recording.turn_to_the_next()
            if following is not None:
                following.ran(op, args, arrays, out)
        else:
            super().ran(op, args, arrays, out)

    def is_over(self) -> bool:
        return self.swept and local.context.phase == "forward"

    def is_void(self) -> bool:
        """Whether nothing of it is on the tape, so that no backward will come: what made parameters, or a batch."""
        if self.swept or local.context.region is not None:
            return False
        return all(reference() is None for reference in reversed(self.nodes))


class Recording:
    """The first passes of a script, at most `wanted` of them; the last one may be under way."""

    def __init__(self, wanted):
        self.wanted, self.passes = wanted, []
        self.begin()

    def begin(self):
        self.passes.append(Pass(self))
        return self.passes[-1].__enter__()

    def end(self):
        """Stop watching. A pass in which nothing is on the tape is none."""
        last = self.passes[-1]
        if last in local.context.tracers:
            last.__exit__()
            last.length = len(last.events)  # what comes to an end afterwards is no part of the pass
            if not last.step or last.is_void():
                self.passes.pop()

    def turn_to_the_next(self):
        """Begin another pass and return it; None if there are enough."""
        self.end()
        return self.begin() if len(self.passes) < self.wanted else None

    def finished(self) -> list:
        """The passes, with what was written down while they lasted."""
        if self.passes:
            self.end()
        for each in self.passes:
            del each.events[each.length :]
        return self.passes


def main(arguments=None):
    """Run the script and write the page; returns the exit status."""
    arguments = list(sys.argv[1:] if arguments is None else arguments)
    options, theirs = parsed(arguments)
    before = sys.modules["__main__"], sys.argv, list(sys.path)
    recording = Recording(options.passes)
    try:
        status = run_script(options.script, theirs)
    except SystemExit as end:
        status = status_of(end)
    finally:
        passes = recording.finished()
        sys.modules["__main__"], sys.argv, sys.path[:] = before
    if not passes:
        if status == 0:
            print(f"{options.script} has ended, and no op ran in it through which a gradient flows: nothing to play.")
        return status or 1
    write_page(passes, options.out or pathlib.Path("out") / f"{pathlib.Path(options.script).stem}.html")
    return status


def parsed(arguments):
    """(options, the script's own arguments, which stand behind a --)."""
    parser = argparse.ArgumentParser(
        prog="python -m minigrad play",
        usage="%(prog)s [--out FILE] [--passes N] SCRIPT [-- ARGUMENTS OF THE SCRIPT]",
        description="Run a script, and write an HTML file in which one steps through its first forward and backward.",
    )
    parser.add_argument("script", metavar="SCRIPT", help="the Python file")
    parser.add_argument("--out", metavar="FILE", type=pathlib.Path, help="the page (default: out/SCRIPT.html)")
    parser.add_argument("--passes", metavar="N", type=int, default=1, help="how many passes, side by side (default: 1)")
    split = arguments.index("--") if "--" in arguments else len(arguments)
    options = parser.parse_args(arguments[:split])
    if options.passes < 1:
        parser.error(f"--passes must be at least 1, not {options.passes}")
    return options, arguments[split + 1 :]


def status_of(end) -> int:
    """What `sys.exit(…)` in the script means as an exit status, as Python itself has it."""
    if end.code is None or isinstance(end.code, int):
        return end.code or 0
    print(end.code, file=sys.stderr)
    return 1


def write_page(passes, path):
    """Write the player of the passes, and say where it is."""
    path.parent.mkdir(parents=True, exist_ok=True)
    names = [""] if len(passes) == 1 else [f"pass {number}" for number in range(1, len(passes) + 1)]
    player.write(path, dict(zip(names, passes, strict=True)))
    for name, tracer in zip(names, passes, strict=True):
        print(
            f"{name or 'one pass'}: {tracer.step} steps; at most {tracer.peak_activations} live activations; "
            f"{tracer.replayed_ops} ops replayed"
        )
    print(f"Open {path} in a browser.")


if __name__ == "__main__":
    sys.exit(main())
