"""A page for curves: colours, axes, legends, and files that come out the same each time.

matplotlib is imported on the first call, and used without pyplot: no window, no global figure, no backend.
"""

import functools
import io
from pathlib import Path

import numpy as np

from ..errors import ArgumentError, MinigradError

# From the bottom of the stack to the top: what stays, what backward needs, what comes and goes.
ROLE_COLOURS = {
    "parameter": "#FFCF85",
    "input": "#9BD3B0",
    "boundary": "#D0683F",
    "activation": "#7FBCE4",
    "replayed": "#2C6E9B",
    "offloaded": "#8F7F5E",
    "value": "#D7DDE2",
    "gradient": "#B7A1CC",
}
ROLE_WORDS = {
    "parameter": "parameters",
    "input": "inputs",
    "boundary": "kept for checkpoints",
    "activation": "activations",
    "replayed": "replayed",
    "offloaded": "in slow memory",
    "value": "in variables only",
    "gradient": "gradients",
}
PHASE_COLOURS = {"forward": "#E4E7EA", "replay": "#2C6E9B", "backward": "#B7A1CC"}
ON_DARK = ("replayed", "boundary", "offloaded", "replay")  # roles and phases on whose colour letters are white
INK, GREY, PALE = "#1C2833", "#5F6B75", "#E4E7EA"
# One for each run or family: a colour and a kind of line, so that they differ in print too.
STYLES = (
    ("#1F5F8B", "-"), ("#C4501F", "-"), ("#1E7B4F", (0, (6, 2))), ("#8A5AA8", (0, (4, 1.5, 1, 1.5))),
    ("#A05A00", (0, (2, 1.5))), ("#4D5963", (0, (8, 2, 2, 2))),
)  # fmt: skip
RING = {
    "marker": "o", "linestyle": "", "markersize": 9, "markerfacecolor": "none", "markeredgecolor": "#C4501F",
    "markeredgewidth": 1.6, "zorder": 4, "clip_on": False,
}  # fmt: skip
HOW_TO_GET = 'pip install "minigrad[pictures]"'

SIZE, DPI = (9.6, 5.2), 150  # inches
LEFT, RIGHT, BOTTOM, TOP = 0.085, 0.97, 0.125, 0.795  # the axes, in shares of the figure
GAP = 4  # pixels between words and what they must not touch


def check_matplotlib():
    """Raise MinigradError if there is no matplotlib."""
    try:
        from matplotlib import figure  # noqa: F401
    except ImportError as error:
        raise MinigradError(f"curves are drawn by matplotlib, which is not installed: {HOW_TO_GET}") from error


# ---- The page ----------------------------------------------------------------------------------------


def page(title, facts, heights=(1,), gap=0.03, right=RIGHT):
    """(figure, its axes from top to bottom), with a title that says the finding and a line of facts below it.

    heights  shares of the axes
    gap      between two axes, as a share of the figure
    right    where the axes end
    """
    check_matplotlib()
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=SIZE, dpi=DPI, facecolor="white")
    FigureCanvasAgg(figure)
    figure._repr_png_ = functools.partial(picture_of, figure, "png")  # what a notebook shows
    write_line(figure, 0.935, title, 14, INK, fontweight="bold").set_gid("title")
    write_line(figure, 0.883, facts, 10, GREY).set_gid("facts")
    room = (TOP - BOTTOM - gap * (len(heights) - 1)) / sum(heights)
    top, all_axes = TOP, []
    for height in heights:
        shared = all_axes[0] if all_axes else None
        axes = figure.add_axes((LEFT, top - height * room, right - LEFT, height * room), sharex=shared)
        all_axes.append(axes)
        top -= height * room + gap
        plain(axes)
    return figure, all_axes


def write_line(figure, height, words, size, colour, **font):
    """One line of text across the page, smaller if it would be too long."""
    text = figure.text(LEFT, height, words, fontsize=size, color=colour, parse_math=False, **font)
    room = (RIGHT - LEFT) * figure.bbox.width
    width = text.get_window_extent(renderer(figure)).width
    text.set_fontsize(size * min(1, room / width) if width else size)
    return text


def plain(axes):
    """Axes without a frame, in grey, on white."""
    axes.set_facecolor("white")
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    for side in ("left", "bottom"):
        axes.spines[side].set_color(GREY)
    axes.tick_params(colors=GREY, labelsize=10, which="both")
    axes.xaxis.label.set(fontsize=10.5, color=INK)
    axes.yaxis.label.set(fontsize=10.5, color=INK)
    axes.set_axisbelow(True)


def logarithmic(axis):
    """A logarithmic axis with 1, 2, 5, 10, ... written at it as they are."""
    from matplotlib.ticker import LogLocator, NullFormatter, StrMethodFormatter

    axis.axes.set(**{f"{axis.axis_name}scale": "log"})
    axis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))
    axis.set_minor_formatter(NullFormatter())
    axis.set_minor_locator(LogLocator(subs=range(1, 10)))


def renderer(figure):
    """What measures text."""
    return figure.canvas.get_renderer()


def box_of(artist, figure):
    """(left, bottom, right, top) of an artist, in pixels."""
    return artist.get_window_extent(renderer(figure)).extents


def pixels(axes, points):
    """Points of the axes in pixels, from the figure's lower left corner."""
    return axes.transData.transform(np.asarray(points, float).reshape(-1, 2))


def saved(figure, path):
    """The figure, which is saved too if there is a path. The file appears only when it is complete."""
    if path is not None:
        path = Path(path)
        kind = path.suffix.lower().removeprefix(".")
        if kind not in figure.canvas.get_supported_filetypes():
            raise ArgumentError(f"the suffix of the path says which format; try .svg, .png or .pdf, not {str(path)!r}")
        path.write_bytes(picture_of(figure, kind))
    return figure


def picture_of(figure, kind) -> bytes:
    """The bytes of the picture: the same for the same figure, whenever they are made."""
    import matplotlib

    metadata = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}.get(kind)
    with matplotlib.rc_context({"svg.fonttype": "none", "svg.hashsalt": "minigrad"}), io.BytesIO() as file:
        figure.savefig(file, format=kind, metadata=metadata)
        return file.getvalue()


# ---- Legends -----------------------------------------------------------------------------------------


def legend(figure, corner, handles, height=0.862, right=RIGHT):
    """A line of samples and words above the axes, from their left or to their right end; None if there are none.

    handles  artists with labels, or (colour, words)
    """
    from matplotlib.patches import Patch

    handles = [Patch(facecolor=h[0], label=h[1]) if isinstance(h, tuple) else h for h in handles]
    if not handles:
        return None
    return figure.legend(
        handles=handles, loc=f"upper {corner}", bbox_to_anchor=(LEFT if corner == "left" else right, height),
        ncols=len(handles), frameon=False, fontsize=9.5, labelcolor=INK, handlelength=1.6, handleheight=0.8,
        handletextpad=0.5, columnspacing=1.2, borderpad=0,
    )  # fmt: skip


def make_room(figure, one, other):
    """Make the letters of two legends smaller until neither reaches into the other."""
    if one is None or other is None:
        return
    texts = [*one.get_texts(), *other.get_texts()]
    while box_of(one, figure)[2] + 3 * GAP > box_of(other, figure)[0] and texts[0].get_fontsize() > 5:
        for text in texts:
            text.set_fontsize(text.get_fontsize() - 0.5)
