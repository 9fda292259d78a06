"""Curves of memory, drawn by matplotlib from what a tracer wrote down.

A tracer's events carry everything: each has the ledger's totals after it, and the `nbytes` of all events of a
role add up to that role's live bytes. An op, a vjp or a replayed op is one step of the horizontal axis. Much
comes and goes within a step, so each step shows its own highest moment; the highest point of a curve is
then really the peak.

matplotlib is imported on the first call, and used without pyplot: no window, no global figure, no backend.
"""

from pathlib import Path

from ..errors import ArgumentError, MinigradError
from ..table import bytes_text

# From the bottom of the stack to the top: what stays, what backward needs, what comes and goes.
ROLE_COLOURS = {
    "parameter": "#FFCF85",
    "input": "#9BD3B0",
    "boundary": "#D0683F",
    "activation": "#7FBCE4",
    "replayed": "#2C6E9B",
    "value": "#D7DDE2",
    "gradient": "#B7A1CC",
}
ROLE_WORDS = {
    "parameter": "parameters",
    "input": "inputs",
    "boundary": "kept for checkpoints",
    "activation": "activations",
    "replayed": "replayed",
    "value": "in variables only",
    "gradient": "gradients",
}
PHASE_COLOURS = {"forward": "#E4E7EA", "replay": "#2C6E9B", "backward": "#B7A1CC"}
RUN_STYLES = (
    ("#1F5F8B", "-"), ("#C4501F", "-"), ("#1E7B4F", (0, (6, 2))), ("#8A5AA8", (0, (4, 1.5, 1, 1.5))),
    ("#A05A00", (0, (2, 1.5))), ("#4D5963", (0, (8, 2, 2, 2))),
)  # fmt: skip
INK, GREY = "#1C2833", "#5F6B75"


def plot_run(tracer, path=None, hide=()):
    """The live bytes of one run, step by step and stacked by role, with its phases; a matplotlib Figure.

    path  where to save it too: .svg, .png or .pdf
    hide  roles to leave out, such as ("parameter",) when parameters dwarf the rest
    """
    steps, stack, phases = columns(tracer, hide)
    roles = [role for role in ROLE_COLOURS if any(stack.get(role, ()))]
    totals = [sum(stack[role][i] for role in roles) for i in range(len(steps))]
    top = max(range(len(steps)), key=totals.__getitem__)
    scale, unit = unit_of(totals[top])
    figure, axes = canvas(
        f"At most {bytes_text(totals[top])} were alive at once, in the {phases[top]} phase",
        run_facts(tracer, stack, top, hide),
    )
    layers = [[value / scale for value in stack[role]] for role in roles]
    axes.stackplot(steps, *layers, colors=[ROLE_COLOURS[role] for role in roles], step="mid", linewidth=0)
    axes.plot(steps, [total / scale for total in totals], color=INK, linewidth=0.9, drawstyle="steps-mid")
    axes.set_xlim(steps[0] - 0.5, steps[-1] + 0.5)
    axes.set_ylim(0, 1.16 * totals[top] / scale)
    axes.set_ylabel(f"live bytes ({unit})")
    mark_peak(axes, steps[top], totals[top] / scale, f"peak {bytes_text(totals[top])}", INK)
    thin = name_areas(axes, steps, roles, layers)
    legend(figure, "upper left", [(ROLE_COLOURS[role], ROLE_WORDS[role]) for role in reversed(thin)])
    phase_strip(axes, steps, phases)
    legend(figure, "upper right", [(PHASE_COLOURS[p], p) for p in PHASE_COLOURS if p in phases])
    return saved(figure, path)


def plot_runs(runs, path=None, what="activations"):
    """Several runs over each other, one line each, with their peaks; a matplotlib Figure.

    runs  name -> Tracer, in the order of the colours
    path  where to save it too: .svg, .png or .pdf
    what  "activations": how many are live; "bytes": all live bytes
    """
    if what not in ("activations", "bytes"):
        raise ArgumentError(f'what must be "activations" or "bytes", not {what!r}')
    if not runs:
        raise ArgumentError("plot_runs needs at least one run: {name: tracer}")
    lines = {name: highest(tracer, f"live_{what}") for name, tracer in runs.items()}
    peaks = {name: max(values) for name, (_, values) in lines.items()}
    say = bytes_text if what == "bytes" else str
    scale, unit = unit_of(max(peaks.values())) if what == "bytes" else (1, "")
    figure, axes = canvas(runs_title(peaks, what, say), runs_facts(runs))
    labels = []
    for index, (name, (steps, values)) in enumerate(lines.items()):
        colour, dash = RUN_STYLES[index % len(RUN_STYLES)]
        values = [value / scale for value in values]
        axes.plot(steps, values, color=colour, linestyle=dash, linewidth=1.8, drawstyle="steps-mid")
        top = max(range(len(values)), key=values.__getitem__)
        axes.plot([steps[top]], [values[top]], "o", color=colour, markersize=5)
        labels.append((steps[top], values[top], f"{name}: {say(peaks[name])}", colour))
    axes.set_xlim(0, max(steps[-1] for steps, _ in lines.values()) + 1)
    axes.set_ylim(0, 1.14 * max(peaks.values()) / scale)
    axes.set_ylabel("live activations" if what == "activations" else f"live bytes ({unit})")
    axes.grid(axis="y", color="#E4E7EA", linewidth=0.8)
    place_labels(axes, labels)
    mark_forward(axes, runs)
    return saved(figure, path)


# ---- From events to columns --------------------------------------------------------------------------


def columns(tracer, hide=()):
    """(steps, role -> bytes in each step, phase of each step), each step at its own highest moment."""
    check_events(tracer)
    live = dict.fromkeys(ROLE_COLOURS, 0)
    steps, moments, phases, best = [], [], [], None
    for event in tracer.events:
        live[event.role] = live.get(event.role, 0) + event.nbytes
        total = sum(amount for role, amount in live.items() if role not in hide)
        if not steps or event.step != steps[-1]:
            steps.append(event.step)
            moments.append(dict(live))
            phases.append(event.phase)
            best = total
        elif total > best:
            moments[-1], phases[-1], best = dict(live), event.phase, total
    roles = [role for role in live if role not in hide]
    return steps, {role: [moment.get(role, 0) for moment in moments] for role in roles}, phases


def highest(tracer, field):
    """(steps, the highest value of a field in each step); at the end, what is left after the last step."""
    check_events(tracer)
    most = {}
    for event in tracer.events:
        most[event.step] = max(most.get(event.step, 0), getattr(event, field))
    return [*most, max(most) + 1], [*most.values(), getattr(tracer.events[-1], field)]


def check_events(tracer):
    if not getattr(tracer, "events", None):
        raise ArgumentError("there is nothing to plot: this is no Tracer, or nothing ran in its block")


# ---- What the texts say ------------------------------------------------------------------------------


def run_facts(tracer, stack, top, hide):
    """The line below the title of one run."""
    parts = sorted(((values[top], role) for role, values in stack.items() if values[top]), reverse=True)
    most = [f"{bytes_text(amount)} {ROLE_WORDS.get(role, role)}" for amount, role in parts[:2]]
    facts = [f"mostly {' and '.join(most)}"]
    facts.append(f"{tracer.peak_activations} live activations at their peak")
    facts.append(f"{tracer.replayed_ops} ops replayed")
    if hide:
        facts.append(f"without {', '.join(ROLE_WORDS.get(role, role) for role in hide)}")
    return "; ".join(facts)


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


def unit_of(most):
    """(bytes in a unit, its name) for an axis that reaches to `most` bytes."""
    for size, name in ((1e9, "GB"), (1e6, "MB"), (1e3, "kB")):
        if most >= size:
            return size, name
    return 1, "B"


# ---- Drawing -----------------------------------------------------------------------------------------


def canvas(title, facts):
    """A figure of one pair of axes, with a title that says the finding and a line of facts below it."""
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError as error:
        raise MinigradError(
            'curves are drawn by matplotlib, which is not installed: pip install "minigrad[pictures]"'
        ) from error
    figure = Figure(figsize=(9.6, 5.2), dpi=150, facecolor="white")
    FigureCanvasAgg(figure)
    axes = figure.add_axes((0.085, 0.125, 0.885, 0.67))
    figure.text(0.085, 0.935, title, fontsize=min(14, 14 * 76 / len(title)), fontweight="bold", color=INK)
    figure.text(0.085, 0.883, facts, fontsize=min(10, 10 * 118 / len(facts)), color=GREY)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    for side in ("left", "bottom"):
        axes.spines[side].set_color(GREY)
    axes.tick_params(colors=GREY, labelsize=10)
    axes.set_xlabel("steps: ops run, ops replayed, nodes swept", fontsize=10.5, color=INK)
    axes.yaxis.label.set(fontsize=10.5, color=INK)
    axes.set_axisbelow(True)
    return figure, axes


def mark_peak(axes, x, y, words, colour):
    axes.plot([x], [y], "o", color=colour, markersize=5, zorder=5)
    left = x > sum(axes.get_xlim()) / 2
    axes.annotate(
        words, (x, y), xytext=(-9 if left else 9, 7), textcoords="offset points", fontsize=11,
        fontweight="bold", color=colour, ha="right" if left else "left",
    )  # fmt: skip


def name_areas(axes, steps, roles, layers):
    """Write each role into its area where that is thickest; returns the roles that are too thin for it."""
    height, thin = axes.get_ylim()[1], []
    for index, (role, layer) in enumerate(zip(roles, layers, strict=True)):
        widest = thickest_stretch(layer, len(layer) // 8)
        amount = min(layer[i] for i in widest)
        if amount < 0.055 * height:
            thin.append(role)
            continue
        middle = widest[len(widest) // 2]
        below = sum(other[middle] for other in layers[:index])
        dark = role in ("replayed", "boundary")
        axes.text(
            steps[middle], below + layer[middle] / 2, ROLE_WORDS[role], ha="center", va="center",
            fontsize=10.5, color="white" if dark else INK,
        )  # fmt: skip
    return thin


def legend(figure, corner, entries):
    """A line of colours and words above the axes, at their left or right end."""
    from matplotlib.patches import Patch

    if entries:
        figure.legend(
            handles=[Patch(facecolor=colour, label=words) for colour, words in entries], loc=corner,
            bbox_to_anchor=(0.085 if "left" in corner else 0.97, 0.862), ncols=len(entries), frameon=False,
            fontsize=9.5, labelcolor=INK, handlelength=1.2, handleheight=0.8, handletextpad=0.5,
            columnspacing=1.2, borderpad=0,
        )  # fmt: skip


def thickest_stretch(layer, width):
    """The indices of the `width` neighbouring columns in which the smallest value is greatest."""
    width = max(width, 1)
    best = max(range(len(layer) - width + 1), key=lambda i: min(layer[i : i + width]))
    return range(best, best + width)


def phase_strip(axes, steps, phases):
    """A strip above the curve: which phase each step belonged to."""
    from matplotlib.patches import Rectangle

    start = 0
    for i in range(1, len(steps) + 1):
        if i == len(steps) or phases[i] != phases[start]:
            left, right = steps[start] - 0.5, (steps[i] if i < len(steps) else steps[-1] + 1) - 0.5
            axes.add_patch(
                Rectangle(
                    (left, 0.965), right - left, 0.035, transform=axes.get_xaxis_transform(), linewidth=0,
                    facecolor=PHASE_COLOURS[phases[start]],
                )
            )  # fmt: skip
            start = i


def place_labels(axes, labels):
    """Write the runs' names beside their peaks, moved apart where they would overlap."""
    from matplotlib.patheffects import withStroke

    left, right = axes.get_xlim()
    gap = 0.055 * axes.get_ylim()[1]
    halo = [withStroke(linewidth=3, foreground="white")]
    lowest = float("inf")
    for x, y, words, colour in sorted(labels, key=lambda label: -label[1]):
        height = min(y, lowest - gap)
        lowest = height
        at_right = x > left + 0.7 * (right - left)
        axes.annotate(
            words, (x, height), xytext=(-10 if at_right else 10, 3), textcoords="offset points", fontsize=11,
            fontweight="bold", color=colour, ha="right" if at_right else "left", va="bottom",
            path_effects=halo,
        )  # fmt: skip


def mark_forward(axes, runs):
    """A line where the forward ends, if that is the same step in all runs."""
    ends = {forward_steps(tracer) for tracer in runs.values()}
    if len(ends) == 1:
        end, top = ends.pop() + 0.5, axes.get_ylim()[1]
        axes.axvline(end, color=GREY, linewidth=0.9, linestyle=(0, (2, 2)), zorder=0)
        axes.annotate("forward\u00a0\u00a0", (end, top), fontsize=9.5, color=GREY, ha="right", va="top")
        axes.annotate("\u00a0\u00a0backward", (end, top), fontsize=9.5, color=GREY, ha="left", va="top")


def forward_steps(tracer):
    """How many steps there were before the first backward began."""
    last = 0
    for event in tracer.events:
        if event.phase != "forward":
            break
        last = event.step
    return last


def saved(figure, path):
    """The figure, which is saved too if there is a path."""
    if path is not None:
        import matplotlib

        kind = Path(path).suffix.lower()
        dates = {".svg": {"Date": None}, ".pdf": {"CreationDate": None}}
        with matplotlib.rc_context({"svg.fonttype": "none", "svg.hashsalt": "minigrad"}):
            figure.savefig(path, metadata=dates.get(kind))
    return figure
