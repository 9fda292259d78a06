"""The pictures of lessons 00 to 03: a tape and what each node has read, walks over it, errors by step size."""

import re

from minigrad.view import canvas

INK, GREY, PALE = "#1C2833", "#7A858F", "#E4E7EA"
FILL, LINE = {"leaf": "#FFCF85", "op": "#A9D3EE"}, {"leaf": "#A05A00", "op": "#1F5F8B"}
BACKWARD = "#B8431B"  # what goes backward


# ---- Lesson 00: a picture of mg.render -----------------------------------------------------------------


def renumber(path):
    """Count the nodes in an SVG file of mg.render from 1, in the order of their numbers."""
    number = re.compile(r"((?<=;#)|\bn)(\d+)\b")  # in tooltips "#17", in titles "n17"
    svg = path.read_text("utf-8")
    order = {found: i for i, found in enumerate(sorted({int(each[1]) for each in number.findall(svg)}), 1)}

    def counted(each):
        return f"{each[1]}{order[int(each[2])]}"

    path.write_text(number.sub(counted, svg), "utf-8")


# ---- Lesson 01: every arc points to an earlier line ----------------------------------------------------


def arcs(tape, gradients, path):
    """Save the picture of a tape of lesson 01's Nodes, and of the gradients of its lines."""
    title = "Every arc points to an earlier line, so one loop from right to left is enough"
    facts = "a box: a line of the tape and its value; on an arc: the slope; below the boxes: the gradients"
    figure, (axes,) = canvas.page(title, facts)
    axes.set_axis_off()
    axes.set_xlim(-0.6, len(tape) - 0.4)
    axes.set_ylim(-1.2, 1.5)
    for node in tape:
        place, kind = node.number, "op" if node.inputs else "leaf"
        for source, slope in zip(node.inputs, node.slopes, strict=True):
            arc(axes, place, source.number, f"{slope:.3g}")
        frame = dict(boxstyle="round,pad=0.5", facecolor=FILL[kind], edgecolor=LINE[kind], linewidth=1.3)
        write(axes, place, 0, f"{node.op} #{place}\n{node.value:.3g}", 11.5, INK, bbox=frame).set_gid(f"node-{place}")
        write(axes, place, -0.62, f"{gradients[place]:.3g}", 12.5, BACKWARD).set_gid(f"gradient-{place}")
    arrow = dict(arrowstyle="-|>", color=BACKWARD, linewidth=1.6, mutation_scale=16)
    axes.annotate("", (-0.4, -0.9), (len(tape) - 0.6, -0.9), arrowprops=arrow)
    write(axes, (len(tape) - 1) / 2, -1.07, "backward: gradients, from right to left", 11, BACKWARD)
    return canvas.saved(figure, path)


def arc(axes, reader, source, words):
    """A curve from a node to what it has read, over the ones between, with the slope at its top."""
    from matplotlib.patches import FancyArrowPatch
    from matplotlib.path import Path

    length = reader - source
    middle, height, side = (reader + source) / 2, 0.12 + 0.26 * length, 0.24 / length  # longer arcs around shorter ones
    curve = Path([(reader - side, 0.22), (middle, 0.22 + 2 * height), (source + side, 0.22)], [1, 3, 3])
    axes.add_patch(FancyArrowPatch(path=curve, arrowstyle="-|>", mutation_scale=12, color=GREY, linewidth=1.3))
    write(axes, middle, 0.22 + height, words, 10.5, INK, bbox=dict(boxstyle="round,pad=0.12", fc="white", ec="none"))


# ---- Lesson 02: walks ----------------------------------------------------------------------------------


def walks(walks, complete, names, path):
    """Save the picture of several walks over one tape.

    walks     name -> visits, each a node and the gradient that it handed on
    complete  node -> its complete gradient
    names     node -> what to call it
    """
    title = "Youngest first never turns back, and so hands on complete gradients, once"
    facts = "a dot: one visit of a node, from top to bottom; across: the tape, oldest left"
    figure, (axes,) = canvas.page(title, facts)
    axes.remove()
    nodes = sorted(names, key=number_of)
    place = {node: i for i, node in enumerate(nodes)}
    longest = max(map(len, walks.values()))
    for i, (name, visits) in enumerate(walks.items()):
        axes = figure.add_axes((0.06 + 0.32 * i, 0.13, 0.27, 0.61))
        panel(axes, f"{name}: {len(visits)} visits", [names[node] for node in nodes], longest)
        across = [place[node] for node, _ in visits]
        down = list(range(1, len(visits) + 1))
        axes.plot(across, down, color=GREY, linewidth=1.2, zorder=1)
        handed = totals(visits) if len(visits) > len(set(across)) else dict(visits)
        for x, y, (node, _) in zip(across, down, visits, strict=True):
            too_little = handed[node] != complete[node] and not node.is_leaf
            axes.plot(x, y, "X" if too_little else "o", color=BACKWARD if too_little else LINE["op"],
                      markersize=11 if too_little else 8, gid="incomplete" if too_little else "visit")  # fmt: skip
            if too_little:
                words = f"hands on {handed[node]:g},\nshould be {complete[node]:g}"
                axes.annotate(words, (x, y), (9, -8), textcoords="offset points", fontsize=10, color=BACKWARD, va="top")
    return canvas.saved(figure, path)


def totals(visits):
    """What a walk that comes several times has handed on from each node, all visits together."""
    sums = {}
    for node, gradient in visits:
        sums[node] = sums.get(node, 0.0) + gradient
    return sums


def panel(axes, title, names, longest):
    """The axes of one walk: nodes across, visits downward."""
    axes.set_title(title, fontsize=11.5, color=INK, loc="left", fontweight="bold")
    axes.set_xticks(range(len(names)), names)
    axes.set_ylim(longest + 0.7, 0.3)
    axes.set_xlim(-0.5, len(names) - 0.5)
    axes.set_yticks([1, longest] if longest < 8 else [1, 5, 10, longest])
    axes.set_ylabel("visit", color=GREY)
    axes.grid(axis="x", color=PALE, linewidth=1)
    canvas.plain(axes)


def number_of(node):
    return node.number


# ---- Lesson 03: the error of a difference quotient -----------------------------------------------------


def step_sizes(steps, errors, path):
    """Save the picture of errors by step size.

    steps   step sizes, the largest first
    errors  name -> relative errors, one for each step, or for the first of them
    """
    title = "Too large a step sees the curve, too small a step sees only rounding"
    figure, (axes,) = canvas.page(title, "relative error of a difference quotient; both axes in powers of ten")
    axes.set(xscale="log", yscale="log", xlabel="step", ylabel="relative error")
    axes.set_ylim(1e-13, 3)
    places = [((0, 48), "center"), ((0, -22), "center"), ((-136, 56), "right")]  # of the words, from the lowest point
    for (name, values), (colour, dash), (offset, side) in zip(errors.items(), canvas.STYLES, places, strict=False):
        line = list(zip(steps, values, strict=False))
        axes.plot(*zip(*line, strict=True), color=colour, linestyle=dash, linewidth=2, gid=name)
        lowest = min(line, key=error_of)
        axes.plot(*lowest, "o", color=colour, markersize=7)
        axes.annotate(f"{name}: best at {lowest[0]:.0e}", lowest, offset, textcoords="offset points", fontsize=11,
                      color=colour, fontweight="bold", ha=side)  # fmt: skip
    axes.grid(color=PALE, linewidth=0.8)
    return canvas.saved(figure, path)


def error_of(point):
    return point[1]


# ---- Text ----------------------------------------------------------------------------------------------


def write(axes, x, y, words, size, colour, **font):
    return axes.text(x, y, words, fontsize=size, color=colour, fontweight="bold", ha="center", va="center", **font)
