"""What lesson 05 says about buffers, against counts by hand and in plain NumPy."""

import numpy as np
import pytest

pytestmark = pytest.mark.lesson

BUFFER = 32 * 8 * 4  # bytes of a batch of activations


@pytest.fixture
def run(lesson):
    return lesson("05")


def test_four_ops_leave_two_buffers_the_input_and_the_tanh_output(run):
    rows = run["first_saved"].rows
    assert [(row.node.name or row.node.op.name, [r.op.name for r in row.readers]) for row in rows] == [
        ("x", ["matmul"]),
        ("tanh", ["tanh"]),
    ]
    assert run["first_saved"].nbytes == 2 * BUFFER


def test_contracts_are_read_from_signatures(run):
    contracts = run["contracts"]
    assert contracts["tanh"] == contracts["exp"] == contracts["relu"] == {"x": ["out"]}
    assert contracts["log"] == {"x": ["x"]}
    assert contracts["matmul"] == {"a": ["b"], "b": ["a", "b_shape"]}
    assert contracts["add"] == {"a": [], "b": []}
    assert "add     the gradient of b reads nothing" in run.lines()


def test_what_is_frozen_keeps_nothing(run):
    assert len(run["frozen_saved"]) == 0
    assert "0 buffers kept when only b is trained" in run.lines()


def test_log_and_gelu_cost_a_buffer_more_than_tanh_relu_and_exp(run):
    assert run["kept_between"] == {"tanh": 2, "relu": 2, "exp": 2, "log": 3, "gelu": 3}
    assert "log   3 buffers" in run.lines()


def test_the_triangle_climbs_one_a_layer_and_goes_down_one_a_layer(run):
    assert run["climb"] == [layer + 1 for layer in range(1, 21)]
    assert run["descent"] == list(range(20, 0, -1))
    assert run["peak"] == 20 + 1


def test_the_picture_shows_a_peak_and_both_phases(run):
    svg = run.files["05-triangle.svg"].read_text("utf-8")
    assert all(word in svg for word in ("activations", "parameters", "gradients", "forward", "backward"))


def test_activations_grow_with_the_batch_and_nothing_else_changes(run):
    assert run["activation_bytes"] == {32: 21 * BUFFER, 256: 8 * 21 * BUFFER}
    parameters = {line.split(", ")[-1] for line in run.lines("batch of") for line in [line.split("activations, ")[1]]}
    assert len(parameters) == 1 and f"{20 * 8 * 8 * 4:,}" in parameters.pop()


def test_the_fused_op_saves_one_buffer_in_a_plain_net_and_half_in_a_residual_one(run):
    assert run["fused_table"] == {"plain": (11, 10), "residual": (20, 10)}
    assert run["same_gradients"] == {"plain": True, "residual": True}


def test_the_fused_op_computes_the_gradient_of_tanh_of_a_product(run):
    x, weights = run["x"].data.astype(float), [w.data.astype(float) for w in run["weights"][:10]]
    values = [x]
    for w in weights:
        values.append(np.tanh(values[-1] @ w))
    _, found = run["run"](run["tanh_linear"], residual=False)
    gradient = np.ones_like(x)
    for w, h, out, ours in zip(weights[::-1], values[-2::-1], values[:0:-1], found[::-1], strict=True):
        gradient = gradient * (1 - out * out)
        np.testing.assert_allclose(ours, h.T @ gradient, rtol=1e-3, atol=1e-3)
        gradient = gradient @ w.T


def test_naming_too_much_keeps_ten_buffers_that_nobody_needs_and_the_repair_drops_them(run):
    assert run["wasteful"] == (21, 21 * BUFFER)
    assert run["with_tanh"] == run["repaired"] == (11, 11 * BUFFER)
    assert run["wasteful_is_right"] and run["repaired_is_right"]
