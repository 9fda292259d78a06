"""What a curve of memory says in words, in a picture (curves.py) and in a terminal (bars.py) alike."""

from ..errors import ArgumentError
from ..table import bytes_text
from .canvas import ROLE_WORDS
from .columns import check


def check_runs(runs, what):
    """Raise ArgumentError if there is nothing to show."""
    if not isinstance(runs, dict) or not runs:
        raise ArgumentError(f"several runs are {{name: tracer}}, at least one, not {runs!r:.60}")
    for tracer in runs.values():
        check(tracer, what)


def run_title(peak, what):
    """The finding of one run; `peak` is its highest column."""
    if what == "activations":
        return f"At most {counted(peak.total)} live at once, in the {peak.phase} phase"
    return f"At most {bytes_text(peak.total)} were alive at once, in the {peak.phase} phase"


def counted(activations):
    return "1 activation was" if activations == 1 else f"{activations} activations were"


def run_facts(tracer, peak, what, hide=()):
    """The line below the title of one run."""
    say = bytes_text if what == "bytes" else str
    parts = sorted([(amount, role) for role, amount in peak.parts.items()], reverse=True)
    most = [f"{say(amount)} {words_for(role, amount, what)}" for amount, role in parts[:2]]
    facts = [("mostly " if len(parts) > 2 else "") + " and ".join(most)] if most else []
    if what == "bytes":
        facts.append(f"{tracer.peak_activations} live activations at their peak")
    facts.append(f"{tracer.replayed_ops} ops replayed")
    if hide:
        facts.append(f"without {', '.join(ROLE_WORDS.get(role, role) for role in hide)}")
    if what == "bytes" and tracer.peak("workspace"):
        facts.append(f"not drawn: up to {bytes_text(tracer.peak('workspace'))} within an op")
    return "; ".join(facts)


def words_for(role, amount, what):
    words = ROLE_WORDS.get(role, role)
    return words.removesuffix("s") if what == "activations" and amount == 1 and role != "boundary" else words


def runs_title(peaks, what, say):
    """The finding: how the lowest peak compares to the highest."""
    low, high = min(peaks, key=peaks.get), max(peaks, key=peaks.get)
    noun, fewer = (" live activations", "fewer") if what == "activations" else ("", "less")
    found = f"{low} peaks at {say(peaks[low])}{noun}"
    if peaks[low] == peaks[high]:
        return found
    return f"{found}, {high} at {say(peaks[high])}: {peaks[high] / max(peaks[low], 1):.1f} times {fewer}"


def runs_facts(runs):
    """The line below: what it costs."""
    return "ops replayed: " + ", ".join(f"{name} {tracer.replayed_ops}" for name, tracer in runs.items())


def measure(what, most):
    """(what is 1 on the axis, the words beside it, how a number is said), for an axis that reaches to `most`."""
    if what == "activations":
        return 1, "live activations", str
    for size, name in ((1e9, "GB"), (1e6, "MB"), (1e3, "kB")):
        if most >= size:
            return size, f"live bytes ({name})", bytes_text
    return 1, "live bytes (B)", bytes_text
