"""What lesson 03 says of broadcasting, vjps, checks and step sizes."""

import inspect

import numpy as np
import pytest

import minigrad as mg

pytestmark = pytest.mark.lesson


def test_the_sweep_un_broadcasts(lesson):
    run = lesson("03")
    assert run["shapes_from_the_vjps"] == [(3, 4), (3, 4)]
    assert run.lines("b's gradient") == ["b's gradient is the sum over the rows: True"]


def test_the_jacobian_of_a_product_is_much_larger_than_its_gradient(lesson):
    assert lesson("03")["slopes"] == 64**4


def test_the_vjps_in_words_are_those_of_the_jacobian(lesson):
    run = lesson("03")
    assert run.lines("loops") == ["loops, g @ b.T and minigrad agree: True"]
    x, g = np.array([0.3, -1.2, 0.5]), np.array([2.0, -1.0, 0.5])
    out = run["softmax"](x)
    jacobian = np.diag(out) - np.outer(out, out)
    np.testing.assert_allclose(run["right"](g, out), g @ jacobian, rtol=1e-12)
    theirs = mg.tensor(x, requires_grad=True)
    mg.softmax(theirs, axis=0).backward(g)
    np.testing.assert_allclose(run["right"](g, out), theirs.grad.data, rtol=1e-12)


def test_what_each_check_lets_pass(lesson):
    run = lesson("03")
    assert [vjp.__name__ for vjp in run["VJPS"]] == ["right", "without_factor", "own_share_only", "doubled", "nothing"]
    assert run["verdicts"] == {
        "with_ones": [True, True, False, True, True],
        "with_a_random_integer": [True, True, True, True, True],
        "with_a_loose_tolerance": [True, False, True, True, True],
        "with_gradcheck": [True, False, False, False, False],
    }


def test_the_four_wrong_vjps_are_wrong(lesson):
    run = lesson("03")
    g, out = np.random.default_rng(5).standard_normal(50), run["softmax"](run["x"])
    right, *wrong = [vjp(g, out) for vjp in run["VJPS"]]
    assert all(np.abs(vjp - right).max() > 0.001 for vjp in wrong)


def test_gradcheck_names_the_place_and_passes_after_the_repair(lesson):
    run = lesson("03")
    assert "argument 0" in run["complaint"] and "at index (" in run["complaint"]
    assert run["repaired"] is True


def test_the_error_of_a_difference_quotient_is_a_v(lesson):
    run = lesson("03")
    steps, errors, best = np.array(run["steps"]), run["errors"], run["best"]
    rounding = np.finfo(np.float64).eps
    assert rounding**0.5 / 10 < best["one way"][1] < rounding**0.5 * 10
    assert rounding ** (1 / 3) / 10 < best["both ways"][1] < rounding ** (1 / 3) * 10
    assert best["both ways"][0] < best["one way"][0] / 100 and best["both ways, float32"][0] > 1e-6
    wide = (steps < 0.05) & (steps > 1e-3)  # where bending rules, the error is a power of the step
    for name, power in (("one way", 1), ("both ways", 2)):
        found = np.polyfit(np.log(steps[wide]), np.log(np.array(errors[name])[wide]), 1)[0]
        assert found == pytest.approx(power, abs=0.1)
    narrow = steps < 1e-10  # where rounding rules
    found = np.polyfit(np.log(steps[narrow]), np.log(np.array(errors["both ways"])[narrow]), 1)[0]
    assert found == pytest.approx(-1, abs=0.2)


def test_gradcheck_steps_near_the_best(lesson):
    step = inspect.signature(mg.gradcheck).parameters["eps"].default
    assert lesson("03")["best"]["both ways"][1] / 10 < step < lesson("03")["best"]["both ways"][1] * 10
