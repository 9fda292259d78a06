"""One grid at its place on a page: cells, marks, the curve of live activations beside them, and axes."""

from .. import palette
from .page import LETTER, n
from .rows import REPLAY, STATES, SWEEP

WORDS = {**palette.STATES, "offloaded": palette.role_words()["offloaded"]}
BIG = 8  # pixels: in cells as high as that a mark leaves the state of the cell to be seen


class Panel:
    """One grid at its place on a page: cells of `width` x `height` pixels, and a curve at the right.

    most  live activations at the right end of the curve, `room` pixels from its left one
    """

    def __init__(self, page, grid, left, top, width, height, room, most):
        self.page, self.grid, self.left, self.top, self.width, self.height = page, grid, left, top, width, height
        self.right, self.bottom = left + width * grid.columns, top + height * grid.rows
        self.curve_left, self.scale = self.right + 14, room / max(most, 1)

    def draw(self):
        self.steps()
        self.dropped()
        for state in reversed(STATES):
            self.cells(state)
        for hand, places in self.grid.marks.items():
            self.marks(hand, places)
        self.turns()
        self.curve()

    def dropped(self):
        """What has been computed and is still of use; where it is live, that is drawn over it."""
        pieces = [self.box(column, 1, first, last - first + 1) for column, first, last in self.grid.waiting]
        self.page.path("".join(pieces), "st-dropped st-mark")

    def box(self, column, columns, row, rows, inset=0) -> str:
        """A rectangle of so many columns and rows, as a piece of a path."""
        x, y = n(self.left + (column + inset) * self.width), n(self.top + (row + inset) * self.height)
        width, height = n((columns - 2 * inset) * self.width), n((rows - 2 * inset) * self.height)
        return f"M{x} {y}h{width}v{height}H{x}z"

    def cells(self, state):
        """Where activations are in this state. The stripe of a boundary is to be seen however narrow a column is."""
        columns = max(1, 2 / self.width) if state == "boundary" else 1
        spans = [span for span in self.grid.spans if span.state == state]
        if self.grid.is_folded:
            pieces = [self.box(span.column, columns, span.first, span.last - span.first + 1) for span in spans]
            self.page.path("".join(pieces), f"st-{state} st-mark")
            return
        self.page.open(f"st-{state}")
        for span in spans:
            x, y = self.left + span.column * self.width, self.top + span.first * self.height
            height = (span.last - span.first + 1) * self.height
            self.page.rect(x, y, columns * self.width, height, tooltip=self.words(span))
        self.page.close()

    def words(self, span):
        """What the tooltip of a cell says."""
        column, is_output = span.column, span.column == self.grid.chain
        what = "the output of the last layer" if is_output else f"x_{column}, which layer {column + 1} reads"
        return f"{what}; {WORDS[span.state]}; steps {span.first + 1} to {span.last + 1}"

    def steps(self):
        """A strip for each row below everything: its tooltip says what happens there."""
        hands = {}
        for hand, places in self.grid.marks.items():
            for row, column in places:
                hands.setdefault(row, []).append((hand, column))
        width = self.curve_left - self.left + self.scale * self.grid.peak
        self.page.open("st-step")
        for row, count in enumerate(self.grid.counts):
            words = f"{self.step_words(row, hands.get(row, ()))}; {count} live"
            self.page.rect(self.left, self.top + row * self.height, width, self.height, tooltip=words)
        self.page.close()

    def step_words(self, row, hands):
        if self.grid.steps > 1:
            return f"steps {row * self.grid.steps + 1} to {(row + 1) * self.grid.steps}"
        what = [f"layer {column + 1} {palette.HANDS[hand][1]}" for hand, column in hands]
        return f"step {row + 1}: {', '.join(what) or 'something outside of the layers runs'}"

    def marks(self, hand, places):
        """All marks of a hand as one path."""
        inset = 0.25 if self.height >= BIG else 0
        pieces = [self.box(first, last - first + 1, row, 1, inset) for row, first, last in runs(places)]
        self.page.path("".join(pieces), f"st-{hand} st-mark")

    def turns(self):
        """A line where forward ends, or begins again."""
        for _, row, _ in self.grid.phases[1:]:
            y = self.top + row * self.height
            self.page.line(self.left, y, self.curve_left + self.scale * self.grid.peak, y)

    def curve(self):
        """The number of live activations, downwards as the rows are, and its highest point."""
        left, counts, outline, x = self.curve_left, self.grid.counts, [], None
        for row, count in enumerate(counts):
            if left + count * self.scale != x:
                x = left + count * self.scale
                outline.append(f"V{n(self.top + row * self.height)}H{n(x)}")
        outline = f"M{n(left)} {n(self.top)}{''.join(outline)}V{n(self.bottom)}H{n(left)}"
        self.page.path(outline + "z", "st-area")
        self.page.path(outline, "st-curve")
        peak = counts.index(self.grid.peak)
        self.peak_at = left + self.grid.peak * self.scale, self.top + (peak + 0.5) * self.height
        self.page.dot(*self.peak_at)

    def layer_axis(self, most, first="layer 1"):
        """Numbers of layers above the grid."""
        layers = self.grid.layers
        for layer in ticks(self.grid.chain, most):
            x = self.left + ((layer - 1) // layers + 0.5) * self.width
            self.page.text(x, self.top - 8, str(layer) if layer > 1 else first, "st-grey", "middle", size=11)
        if self.grid.columns * layers > self.grid.chain and self.width >= 26:
            self.page.text(self.right - self.width / 2, self.top - 8, "output", "st-grey", "middle", size=11)

    def step_axis(self, most, rows=None):
        """Numbers of steps at the left."""
        for step in ticks((rows or self.grid.rows) * self.grid.steps, most):
            y = self.top + ((step - 1) // self.grid.steps + 0.5) * self.height
            self.page.text(self.left - 8, y + 4, str(step) if step > 1 else "step 1", "st-grey", "end", size=11)

    def phases(self, x):
        """Which rows are forward, and which backward, beside the steps."""
        for phase, first, last in self.grid.phases:
            long = "backward, with replays" if phase == SWEEP and self.grid.marks[REPLAY] else phase
            top, bottom = self.top + first * self.height, self.top + (last + 1) * self.height
            self.page.line(x, top + 2, x, bottom - 2)
            for words in (long, phase):
                if bottom - top > LETTER * 12 * len(words) + 6:
                    self.page.text(x - 6, (top + bottom) / 2, words, "st-grey", "middle", turned=True)
                    break


def runs(places) -> list:
    """(row, first column, last column) of places that lie side by side."""
    found = []
    for row, column in sorted(places):
        if found and found[-1][0] == row and found[-1][2] + 1 == column:
            found[-1] = row, found[-1][1], column
        else:
            found.append((row, column, column))
    return found


def ticks(last, most) -> list:
    """1 and round numbers up to `last`, at most about so many."""
    steps = (digit * 10**power for power in range(20) for digit in (1, 2, 5))
    step = next(step for step in steps if last <= step * most)
    return sorted({1, *range(step, last + 1, step)})
