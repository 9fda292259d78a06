"""In which order a walk backward will come to the boxes of a picture, found without running anything.

The walk takes the youngest node that has a gradient, again and again (walk.py). A box outside of checkpoints is as old
as its number says. The lines of a checkpoint are all as young as the checkpoint, and among themselves in the order in
which its replay writes them; before the first of them comes the step that replays it. A schedule that checkpoints
parts of the replay again means such a step for each part.
"""

import heapq

from ..engine.replay import Call
from .boxes import frames_around


class Program:
    """A checkpoint's body as replays will run it.

    place  line -> (its position, the innermost checkpoint around it as a link (call, link of the one around that))
    """

    def __init__(self, frame):
        whole = (frame.node, None)
        self.place, levels = {}, [(whole, iter(frame.body.for_replay().lines))]
        while levels:
            link, lines = levels[-1]
            for line in lines:
                if isinstance(line, Call):
                    levels.append(((line, link), iter(line.body.for_replay().lines)))
                    break
                self.place[line] = len(self.place), link
            else:
                levels.pop()


class Order:
    """A walk over boxes: it counts steps as mg.steps will make them, if each vjp gives a gradient.

    steps   Box -> step; for a leaf, the one in which it receives its gradient
    replays checkpoint node or Call -> the step that replays it
    """

    def __init__(self, unfolded):
        self.steps, self.replays, self.count = {}, {}, 0
        self.programs, self.heap, self.leaves = {}, [], {}
        for box in beginnings(unfolded):
            self.give(box)
        while self.heap:
            self.take(heapq.heappop(self.heap)[-1])
        for leaf in self.leaves:
            self.steps[leaf] = self.count = self.count + 1

    def give(self, box):
        """A gradient waits at a box."""
        if box.is_leaf:
            self.leaves[box] = True
        elif box not in self.steps:
            self.steps[box] = 0  # it has none yet, but will come
            number, position, _ = self.place(box)
            heapq.heappush(self.heap, (-number, -position, len(self.steps), box))

    def take(self, box):
        """The steps that this box comes to: those of replays of checkpoints that it is the first in, and its own."""
        replays, link = [], self.place(box)[2]
        while link is not None and link[0] not in self.replays:
            replays.append(link[0])
            link = link[1]
        for call in reversed(replays):
            self.replays[call] = self.count = self.count + 1
        self.steps[box] = self.count = self.count + 1
        for index, _ in box.node.needs.vjps:
            self.give(box.sources[index])

    def place(self, box):
        """(number, position, link): how young a box is, the higher the younger, and the checkpoints around it."""
        frames = [frame for frame in frames_around(box) if frame.body is not None]
        if not frames:
            return box.node.number, 0, None
        if frames[0] not in self.programs:
            self.programs[frames[0]] = Program(frames[0])
        return frames[0].node.number, *self.programs[frames[0]].place[box.node]


def beginnings(unfolded):
    """The boxes at which gradients wait now, or from which a walk would begin."""
    if unfolded.moment.walks:
        return [unfolded.known[node] for node in unfolded.moment.waiting if node in unfolded.known]
    return [box for box in unfolded.roots if box.node.requires_grad and not box.node.freed]


def number_steps(unfolded):
    """Give each box and each frame its step, if backward will come to it."""
    order = Order(unfolded)
    for box, step in order.steps.items():
        box.step = step
    for box in unfolded.boxes:
        for frame in frames_around(box):
            frame.step = order.replays.get(frame.node)
