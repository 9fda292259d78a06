"""Where labels go: beside their points, on no other words, on no mark, and if possible on no line.

Each label is measured. Then it goes to the best of some hundred places around its point. Labels that come later may
leave none that is good, so all of them are placed again, each among the others as they are now, until nothing moves.
"""

from typing import NamedTuple

import numpy as np

from .canvas import GAP, box_of, pixels

ROUNDS = 4
RADIUS = 4.5  # of a mark, in pixels
RIGHT_BESIDE = 15  # pixels; a label that is farther away has a line to its point
DISTANCES = (9, RIGHT_BESIDE, 23, 33, 45, 60, 80, 105, 140, 180, 230)  # pixels from a point to its label
SIDES = (  # where a label is from its point, in distances
    (1, 0.4), (-1, 0.4), (1, -0.4), (-1, -0.4), (0, 1), (0, -1), (1, 1), (-1, 1), (1, -1), (-1, -1), (1, 0), (-1, 0),
    (0.4, 1), (-0.4, 1), (0.4, -1), (-0.4, -1), (1, 0.2), (-1, 0.2), (1, -0.2), (-1, -0.2),
)  # fmt: skip


class Label:
    """Words that belong to a point, or to any one of several points. place_labels sets `point` to the one it took."""

    def __init__(self, points, words, colour, size=10.5, weight="bold"):
        self.points, self.words, self.colour, self.size, self.weight = points, words, colour, size, weight
        self.point = points[0]


class Place(NamedTuple):
    """A place for a label, in pixels: its point is at `at`, it fills `low` to `high`, and a leader goes to `end`."""

    point: tuple
    at: np.ndarray
    low: np.ndarray
    high: np.ndarray
    end: np.ndarray
    has_leader: bool


class Surroundings(NamedTuple):
    """What no label may touch, in pixels: the border of `area`, and `boxes`; and points of marks, and of lines."""

    area: np.ndarray
    boxes: list
    marks: np.ndarray
    ink: np.ndarray


def place_labels(axes, labels, lines=(), marks=(), ceiling=1.0):
    """Write each label at a good place.

    lines    lists of points that are drawn as lines, in data coordinates
    marks    points that have a mark, beside those of the labels
    ceiling  up to which share of the axes' height
    """
    left, bottom, right, top = axes.bbox.extents
    surroundings = Surroundings(
        np.array([(left, bottom), (right, bottom + ceiling * (top - bottom))]),
        [box_of(text, axes.figure).reshape(2, 2) for text in axes.texts],
        pixels(axes, [*(label.points[0] for label in labels), *marks]),
        np.concatenate([np.empty((0, 2)), *(dots(axes, line) for line in lines)]),
    )
    labels = sorted(labels, key=length_of, reverse=True)
    texts = [write(axes, label) for label in labels]
    sizes = [np.diff(box_of(text, axes.figure).reshape(2, 2), axis=0)[0] for text in texts]
    places = [None] * len(labels)
    for _ in range(ROUNDS):
        before = list(places)
        for i, label in enumerate(labels):
            others = [place for place in places[:i] + places[i + 1 :] if place is not None]
            places[i] = best_place(axes, label, sizes[i], surroundings, others)
        if all(old is not None and (old.low == new.low).all() for old, new in zip(before, places, strict=True)):
            break
    for label, text, place in zip(labels, texts, places, strict=True):
        move(axes, label, text, place)


def length_of(label):
    return len(label.words)


def best_place(axes, label, size, surroundings, others) -> Place:
    """The place with the least cost around any of the label's points."""
    best, least = None, np.inf
    for point in label.points:
        at = pixels(axes, [point])[0]
        for distance in DISTANCES:
            if least <= distance:
                break
            for side in SIDES:
                low = at + np.array(side) * distance + size * (np.sign(side) - 1) / 2
                place = Place(point, at, low, low + size, np.clip(at, low, low + size), distance > RIGHT_BESIDE)
                cost = distance + cost_of(place, surroundings, others)
                if cost < least:
                    best, least = place, cost
    return best


def cost_of(place, surroundings, others):
    """How bad a place is beside its distance, in pixels of distance: what its words or its leader lie on."""
    low, high = place.low - GAP, place.high + GAP
    if (low < surroundings.area[0]).any() or (high > surroundings.area[1]).any():
        return 100_000
    cost = 10 * inside(surroundings.ink, low, high) + 1000 * inside(surroundings.marks, low - RADIUS, high + RADIUS)
    way = np.linspace(place.at, place.end, 24)[3:-1]
    for other_low, other_high in [*surroundings.boxes, *((other.low, other.high) for other in others)]:
        cost += 1000 * bool((low < other_high).all() and (high > other_low).all())
        cost += 600 * bool(inside(way, other_low, other_high))
    for other in others:
        if other.has_leader:
            cost += 600 * is_crossed(place.at, place.end, other.at, other.end)
            cost += 600 * bool(inside(np.linspace(other.at, other.end, 24), low, high))
    return cost


def inside(points, low, high):
    """How many points are in a box."""
    return int(((points > low) & (points < high)).all(axis=1).sum())


def is_crossed(a, b, c, d):
    """Whether the line from a to b crosses the one from c to d."""
    return side_of(a, b, c) * side_of(a, b, d) < 0 and side_of(c, d, a) * side_of(c, d, b) < 0


def side_of(a, b, point):
    """Above 0 if the point is at the left of the line from a to b, below 0 if it is at the right."""
    return (b[0] - a[0]) * (point[1] - a[1]) - (b[1] - a[1]) * (point[0] - a[0])


def dots(axes, line):
    """A line as points in pixels that are at most 3 pixels apart."""
    corners = pixels(axes, line)
    steps = np.abs(np.diff(corners, axis=0)).max(axis=1) // 3 + 1
    parts = [np.linspace(a, b, int(n), endpoint=False) for a, b, n in zip(corners, corners[1:], steps, strict=False)]
    return np.concatenate([*parts, corners[-1:]])


def write(axes, label):
    """The label, written at its point for now."""
    return axes.annotate(
        label.words, label.point, xytext=(0, 0), textcoords="offset points", fontsize=label.size,
        fontweight=label.weight, color=label.colour, ha="left", va="bottom", parse_math=False,
    )  # fmt: skip


def move(axes, label, text, place):
    """Let the text be at its place, with a line to its point if it is not right beside it."""
    label.point = text.xy = place.point
    text.set_position((place.low - place.at) * 72 / axes.figure.dpi)
    if place.has_leader:
        ends = axes.transData.inverted().transform([place.at, place.end])
        axes.plot(*ends.T, color=label.colour, linewidth=0.7, zorder=1.5, scalex=False, scaley=False, gid="leader")
