"""Looks at lessons/exercises/ex17_trees.py."""

import minigrad as mg
from minigrad import schedules

TREE = "Look at 'The tree, and the program' in lesson 17."
SCHEDULES = (
    (schedules.store_all(), 5),
    (schedules.uniform(3), 9),
    (schedules.binomial(4), 12),
    (schedules.binomial(3), 12),
    (schedules.uniform(4, keep_last=False), 8),
    (schedules.bisection(), 16),
    (schedules.nested(3), 20),
    (schedules.triangular(), 30),
    (schedules.from_input(), 7),
)


class FromLists(mg.Schedule):
    """The schedule whose tree is in lists."""

    def __init__(self, lists):
        self.lists = lists

    def split(self, n):
        return [(layers_in(part), FromLists(part) if isinstance(part, list) else None) for part in self.lists]


def layers_in(part):
    return sum(map(layers_in, part)) if isinstance(part, list) else part


def are_lists(part):
    """Whether it is nested lists of positive whole numbers, and nothing else."""
    if isinstance(part, list):
        return bool(part) and all(map(are_lists, part))
    return isinstance(part, int) and part > 0


def merged(lists):
    """The same tree with stretches that are taped side by side as one."""
    parts = []
    for part in lists:
        if isinstance(part, list):
            parts.append(merged(part))
        elif parts and isinstance(parts[-1], int):
            parts[-1] += part
        else:
            parts.append(part)
    return parts


def tree_of(schedule, layers):
    """The lists, from the parts that the library asks for itself."""
    return [length if inner is None else tree_of(inner, length) for length, inner in schedule.parts(layers)]


def check_as_lists(answers):
    for schedule, layers in SCHEDULES:
        lists = answers.as_lists(schedule, layers)
        case = f"as_lists({schedule!r}, {layers}) gave {lists!r:.120}"
        good = isinstance(lists, list) and are_lists(lists)
        assert good, f"{case}; it must be a list of positive whole numbers and of lists like itself. {TREE}"
        assert layers_in(lists) == layers, f"{case}: these are {layers_in(lists)} layers. {TREE}"
        if merged(lists) == merged(tree_of(schedule, layers)):
            continue
        plan, found = schedule.plan(layers), FromLists(lists).plan(layers)
        raise AssertionError(
            f"{case}. Run by these lists, {found.peak} activations would be live at the peak and "
            f"{found.extra_forwards} layers replayed; under the schedule it is {plan.peak} and {plan.extra_forwards}. "
            f"Print schedule.plan({layers}).tree() beside it: which stretch is in which checkpoint, and what is taped? "
            f"{TREE}"
        )


def check_calls_of_code(answers):
    for lists, expected in (
        ([3], [1, 1, 1]),
        ([[2], 1], [2, 2, 1]),
        ([[[3], 3], [3], [2], 1], [3, 3, 3, 2, 2, 2, 2, 2, 2, 2, 2, 1]),
        ([[[[1], 1], 1], 1], [4, 3, 2, 1]),
        ([1, [1, [1], 1], 1], [1, 2, 3, 2, 1]),
    ):
        found = answers.calls_of_code(lists)
        assert list(found) == expected, (
            f"for the tree {lists}, PyTorch calls the layers' code {expected} times, and calls_of_code says {found!r}. "
            "A layer is called in forward, and again whenever a checkpoint around it is replayed; a checkpoint inside "
            "another one is run when the outer one is replayed, and replayed itself after that. Look at 'In PyTorch' "
            "in lesson 17."
        )


def check_torch_lengths(answers):
    for layers, segments in ((23, 5), (9, 3), (9, 5), (103, 10), (7, 1), (6, 6), (11, 4)):
        expected = [length for length, _ in schedules.torch_compatible(segments).split(layers)]
        found = answers.torch_lengths(layers, segments)
        case = f"torch_lengths({layers}, {segments}) gave {found!r}"
        good = isinstance(found, list) and all(isinstance(length, int) and length > 0 for length in found)
        assert good, f"{case}; it must be a list of positive whole numbers"
        assert sum(found) == layers, f"{case}: these are {sum(found)} layers"
        assert len(found) == segments, f"{case}: these are {len(found)} segments"
        assert found == expected, (
            f"{case}, and schedules.torch_compatible({segments}) cuts elsewhere. Which segments are equally long in "
            "PyTorch, and which one gets the rest? Look at 'What is not the same: the remainder' in lesson 17."
        )
