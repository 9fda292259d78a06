"""Looks at lessons/exercises/ex13_repairs.py."""

import functools

import numpy as np

import minigrad as mg

CHANCE = "Look at 'Chance' in lesson 13."
NAMES = "Look at 'Names' in lesson 13."
VERIFY = "Look at 'Break it: an op that is not pure' in lesson 13."


def thrown(x):
    """What it was given, and three throws."""
    return [x, *np.random.random(3).round(4).tolist()]


def check_same_dice(answers):
    before = np.random.get_state()
    try:
        look_at_dice(answers)
    finally:
        np.random.set_state(before)


def look_at_dice(answers):
    np.random.seed(5)
    expected, rest = thrown(1), np.random.random(2)
    np.random.seed(5)
    fn = answers.same_dice(thrown)
    assert callable(fn), f"same_dice must give a function, not {fn!r}"
    outside = np.random.random(4)
    np.random.seed(5)
    first = fn(1)
    assert first == expected, (
        f"the first call should throw as fn itself would have: {expected}, not {first}. (Between same_dice(fn) and it, "
        f"others have thrown {outside.round(2)}.) {CHANCE}"
    )
    assert np.array_equal(np.random.random(2), rest), (
        "after the first call the generator should go on where fn has left it; otherwise the next layer would get the "
        f"same dice. {CHANCE}"
    )
    for call in ("second", "third"):
        np.random.seed({"second": 6, "third": 7}[call])
        following = np.random.random(2)
        np.random.seed({"second": 6, "third": 7}[call])
        again = fn(2)
        assert again[1:] == expected[1:], (
            f"the {call} call threw {again[1:]}, the first one {expected[1:]}; the dice should be the same. {CHANCE}"
        )
        assert again[0] == 2, f"the {call} call was given 2, and fn was called with {again[0]}"
        assert np.array_equal(np.random.random(2), following), (
            f"the {call} call has moved the generator: whoever throws after it, in backward or in the next step of "
            f"training, gets other dice than without a checkpoint. Put back the state that you found. {CHANCE}"
        )
    np.random.seed(8)
    other = answers.same_dice(thrown)
    other(1)
    assert fn(1) == expected, "two functions made by same_dice must not share what they remember"


class Later:
    """A call like that of a checkpoint: it runs fn, and remembers it, to run it again when the loop is over."""

    def __init__(self):
        self.stretches = []

    def __call__(self, fn, h):
        out = fn(h)
        self.stretches.append((fn, h, out))
        return out


def tanh_layer(h, w):
    return mg.tanh(h @ w)


def check_layers_in_a_loop(answers):
    rng = np.random.default_rng(0)
    h, *weights = [mg.tensor(rng.standard_normal((3, 3)), requires_grad=True) for _ in range(5)]
    expected = functools.reduce(tanh_layer, weights, h)
    later = Later()
    found = answers.layers_in_a_loop(later, tanh_layer, h, weights)
    assert isinstance(found, mg.Tensor) and np.array_equal(found.numpy(), expected.numpy()), (
        "with a call that runs each function once, layers_in_a_loop does not give what the layers give, one by one"
    )
    assert len(later.stretches) == len(weights), (
        f"{len(weights)} weights make {len(weights)} stretches, one call(fn, h) for each; yours has made "
        f"{len(later.stretches)}. {NAMES}"
    )
    wrong = [i for i, (fn, h, out) in enumerate(later.stretches) if not np.array_equal(fn(h).numpy(), out.numpy())]
    assert not wrong, (
        f"when the loop is over and the functions are called again, stretch {wrong[0]} of {len(weights)} gives other "
        f"values than in its first run: with which weight does it run by then? {NAMES}"
    )
    gradients = mg.grad((expected * expected).sum(), weights)
    ours = mg.grad((found * found).sum(), weights)
    assert all(np.array_equal(a.numpy(), b.numpy()) for a, b in zip(gradients, ours, strict=True)), (
        f"the values are right, and the gradients are not those of the layers one after another. {NAMES}"
    )


def check_first_difference(answers):
    a = np.array([1.0, np.nan, 0.0])
    run = [("matmul", a), ("tanh", a + 1), ("noise", a * 2), ("sum", np.float64(3.0) * np.ones(()))]

    def look(changed, expected, why):
        again = [(name, changed.get(name, array.copy())) for name, array in run]
        found = answers.first_difference(list(run), again)
        assert found == expected, f"{why}: first_difference should give {expected!r}, and gave {found!r}. {VERIFY}"

    look({}, None, "both runs have the same bits, a nan among them")
    look({"noise": a * 2 + 1e-15}, "noise", "the values of noise differ by 1e-15")
    look({"noise": a * 3, "sum": np.ones(())}, "noise", "noise differs, and what comes after it then differs too")
    look({"noise": np.array([2.0, np.nan, -0.0])}, "noise", "noise has -0.0 where it had 0.0")
    look({"tanh": (a + 1).astype("float32")}, "tanh", "tanh has another dtype, and numbers that are equal")
    look({"tanh": (a + 1).reshape(1, 3)}, "tanh", "tanh has another shape, and the same bytes")
    look({"matmul": np.array([1.0, 2.0, 0.0])}, "matmul", "matmul has a 2 where it had a nan")
