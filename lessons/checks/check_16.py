"""Looks at lessons/exercises/ex16_memories.py."""

import math

import numpy as np

import minigrad as mg
from minigrad import schedules

MEMORY = "Look at 'A second memory' in lesson 16."
WINDOW = "Look at 'The window' in lesson 16."


class Layer:
    """h @ w."""

    def __init__(self, seed):
        self.w = mg.tensor(np.random.default_rng(seed).standard_normal((3, 3)), requires_grad=True)

    def __call__(self, h):
        return h @ self.w


def make_chain(count):
    return [Layer(seed) for seed in range(count)], mg.tensor(np.random.default_rng(99).standard_normal((2, 3)))


def all_offloaded(segments, window):
    """The schedule that does what in_slow_memory should do."""
    return schedules.offloaded(schedules.uniform(segments, keep_last=False), window)


def check_in_slow_memory(answers):
    for count, segments, window in ((12, 3, 1), (12, 4, 2), (6, 6, 3), (8, 1, 1), (12, 2, 5)):
        layers, x = make_chain(count)
        case = f"in_slow_memory with {count} layers, {segments} segments, a window of {window}"
        weights = [layer.w for layer in layers]
        plain = mg.checkpoint_sequential(layers, schedules.store_all(), x)
        expected = mg.grad((plain * plain).sum(), weights)
        with mg.Tracer() as tracer:
            out = answers.in_slow_memory(layers, x, segments, window)
            is_tensor = isinstance(out, mg.Tensor)
            assert is_tensor, f"{case}: it must give what the last layer gives, a tensor, and gave {out!r:.60}"
            assert np.array_equal(out.numpy(), plain.numpy()), (
                f"{case}: the result is not that of the layers in order. Does each segment begin where the one before "
                "has ended? And does each checkpoint run its own layers, when the loop variable has moved on?"
            )
            gradients = mg.grad((out * out).sum(), weights, allow_unused=True)
        same = all(map(equal, gradients, expected))
        assert same, f"{case}: the result is right, and the gradients of the weights are not those of a plain run"
        assert tracer.writes == segments, (
            f"{case}: {tracer.writes} boundaries went to slow memory, where each of {segments} checkpoints has one. "
            f"Is each segment a checkpoint, the last one too, and has each an offload? {MEMORY}"
        )
        plan = all_offloaded(segments, window).plan(count)
        assert tracer.replayed_ops == plan.extra_forwards, (
            f"{case}: {tracer.replayed_ops} layers were replayed, and {plan.extra_forwards} should be. Are the "
            "segments equal, one behind the other, and none within another?"
        )
        # the gradient of the result reads it, and a square keeps it: one activation more, before the replays begin
        allowed = max(plan.peak, 1) + 1
        assert tracer.peak_activations <= allowed, (
            f"{case}: {tracer.peak_activations} activations were live in fast memory, and {plan.peak} were planned. Do "
            f"you fetch more ahead than the window says? {WINDOW}"
        )
        if 1 < window <= segments:
            reads = reads_when_replayed(answers, layers, x, segments, window)
            assert reads[0] == window, (
                f"{case}: when the first replay had begun, {reads[0]} boundaries had come back, and the window wants "
                f"{window} of them at hand. `offload` takes a number, too. {WINDOW}"
            )


def equal(gradient, other):
    return gradient is not None and np.array_equal(gradient.numpy(), other.numpy())


def reads_when_replayed(answers, layers, x, segments, window):
    """How many boundaries have come back at the end of each replay."""
    with mg.Tracer() as tracer:
        loss = answers.in_slow_memory(layers, x, segments, window).sum()
        return [tracer.reads for step in mg.steps(loss) if step.kind == "replay"]


def check_fast_peak(answers):
    for layers, segments in ((36, 6), (12, 3), (12, 4), (8, 1), (6, 6), (100, 10), (10, 2)):
        for window in (1, 2, 3, 5, 20):
            expected = all_offloaded(segments, window).plan(layers).peak
            found = answers.fast_peak(layers, segments, window)
            assert found == expected, (
                f"fast_peak({layers}, {segments}, {window}) is {found}, and the plan counts {expected}. While a "
                f"segment of {layers // segments} layers is replayed, its input is one of the boundaries in the "
                f"window, the inputs of its other layers come on top, and there are {segments} boundaries in all. "
                f"{WINDOW}"
            )


def check_break_even(answers):
    moved, sqrt = schedules.offloaded(schedules.every(1)), schedules.sqrt()
    pairs = (
        (moved, sqrt),
        (moved, schedules.from_input()),
        (schedules.offloaded(schedules.uniform(4)), schedules.binomial(4)),
        (schedules.multistage(3, 3), schedules.h_revolve(3, 3)),
    )
    for moving, replaying in pairs:
        for layers in (36, 100):
            a, b = moving.plan(layers), replaying.plan(layers)
            cost = answers.break_even(a, b)
            is_number = isinstance(cost, (int, float)) and not isinstance(cost, bool)
            assert is_number, f"break_even must give a number of forwards, not {cost!r:.60}"
            ours, theirs = (plan.extra_forwards + cost * (plan.writes + plan.reads) for plan in (a, b))
            assert math.isclose(ours, theirs), (
                f"{layers} layers, {moving!r} against {replaying!r}: break_even gives {cost:.4g}. At that cost the "
                f"first takes {a.extra_forwards} replays and {a.writes} + {a.reads} transfers, {ours:.2f} forwards "
                f"together, and the second {b.extra_forwards} replays and {b.writes} + {b.reads} transfers, "
                f"{theirs:.2f} forwards. They should be equal. Look at `in_forwards` in lesson 16."
            )
