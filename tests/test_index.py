"""Reading and writing by index: what NumPy does, with gradients."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import minigrad as mg

X = np.arange(24.0).reshape(2, 3, 4)
INDICES = [
    0,
    -1,
    (0, 1),
    (0, 1, 2),
    slice(None),
    slice(None, None, -1),
    slice(5, 0, -2),
    None,
    ...,
    (..., 0),
    (None, ..., None),
    (0, None, slice(1, 3), ...),
    [0, 1, 0],
    ([0, 1], [2, 2]),
    (slice(None), [2, 0, 2]),
    ([0, 1], slice(None), [3, 3]),
    np.array([[0, 1], [1, 1]]),
    X > 7,
    np.array([True, False]),
    (0, np.array([True, False, True])),
    np.int64(1),
    (np.array(1), slice(None)),
    [],
    (slice(None), []),
    True,
    (False, 0),
    ([[0], [1]], [[0, 2]]),
    [True, False],
]


def expected_gradient(x, index, cotangent):
    """The cotangent added where each element of x[index] came from, one after another."""
    out = np.zeros(x.shape)
    places = np.arange(x.size).reshape(x.shape)[index]
    for place, value in zip(np.ravel(places), np.ravel(cotangent), strict=True):
        out.reshape(-1)[place] += value
    return out


def check_reading(x, index, as_tensors=False):
    t = mg.tensor(x, requires_grad=True)
    given_index = tuple(map(in_tensors, index)) if isinstance(index, tuple) else in_tensors(index)
    out = t[given_index if as_tensors else index]
    np.testing.assert_array_equal(out.data, x[index])
    cotangent = np.random.default_rng(0).standard_normal(out.shape)
    out.backward(cotangent)
    np.testing.assert_allclose(t.grad.data, expected_gradient(x, index, cotangent), atol=1e-14)


def in_tensors(part):
    if isinstance(part, (list, np.ndarray, np.generic)):
        return mg.tensor(np.asarray(part, dtype=None if np.size(part) else int))
    return part


@pytest.mark.parametrize("as_tensors", [False, True])
@pytest.mark.parametrize("index", INDICES, ids=repr)
def test_reading_is_numpys_and_the_gradient_goes_where_the_value_came_from(index, as_tensors):
    check_reading(X, index, as_tensors)


@pytest.mark.parametrize("index", [None, ..., (), (None, ...), np.array(True)], ids=repr)
def test_a_0d_tensor_can_be_indexed(index):
    check_reading(np.array(3.0), index)


shapes = hnp.array_shapes(min_dims=1, max_dims=3, min_side=1, max_side=4)


@given(st.data())
def test_any_basic_index(data):
    x = np.random.default_rng(0).standard_normal(data.draw(shapes))
    check_reading(x, data.draw(hnp.basic_indices(x.shape, allow_newaxis=True)))


@given(st.data())
def test_any_integer_arrays(data):
    x = np.random.default_rng(0).standard_normal(data.draw(shapes))
    index = data.draw(hnp.integer_array_indices(x.shape))
    check_reading(x, index, as_tensors=data.draw(st.booleans()))


@given(st.data())
def test_any_mask(data):
    x = np.random.default_rng(0).standard_normal(data.draw(shapes))
    mask = data.draw(hnp.arrays(bool, x.shape[: data.draw(st.integers(1, x.ndim))]))
    check_reading(x, mask, as_tensors=data.draw(st.booleans()))


def check_writing(x, index, value):
    """Values against NumPy; gradients against those of `where`: what was overwritten gets none."""
    t, v = mg.tensor(x, requires_grad=True), mg.tensor(value, requires_grad=True)
    y, expected = t * 1, x.copy()
    y[index] = v
    expected[index] = value
    np.testing.assert_array_equal(y.data, expected)

    def loss(t, v):
        y = t * 1
        y[index] = v
        return y * y

    leaves = [mg.tensor(a, dtype="float64", requires_grad=True) for a in (x, value)]
    assert mg.gradcheck(loss, leaves)


@pytest.mark.parametrize("index", INDICES, ids=repr)
def test_writing_is_numpys_and_what_is_overwritten_gets_no_gradient(index):
    check_writing(X, index, np.random.default_rng(1).standard_normal(X[index].shape))
    check_writing(X, index, np.array(5.0))


@given(st.data())
def test_writing_at_any_integer_arrays_even_twice_at_one_place(data):
    x = np.random.default_rng(0).standard_normal(data.draw(shapes))
    index = data.draw(hnp.integer_array_indices(x.shape))
    check_writing(x, index, np.random.default_rng(1).standard_normal(x[index].shape))


def test_of_two_writes_to_one_place_only_the_last_gets_the_gradient():
    v = mg.tensor([1.0, 2.0, 3.0], requires_grad=True)
    y = mg.zeros(2)
    y[[0, 0, 1]] = v
    y.sum().backward()
    assert y.tolist() == [2.0, 3.0] and v.grad.tolist() == [0.0, 1.0, 1.0]


def test_writing_takes_lists_numbers_and_wider_values_and_keeps_the_dtype():
    t = mg.zeros(2, 3)
    t[0] = [1, 2, 3]
    t[1] = np.ones((1, 1, 3))
    t[:, 0] += 10
    assert t.dtype == "float32" and t.tolist() == [[11, 2, 3], [11, 1, 1]]
    n = mg.tensor([1, 2, 3])
    n[n > 1] = 0
    assert n.tolist() == [1, 0, 0]


def test_a_constant_leaf_can_be_written_to_and_what_read_it_keeps_the_old_value():
    x, w = mg.tensor([1.0, 2.0], requires_grad=True), mg.tensor([3.0, 4.0])
    y = (x * w).sum()
    w[...] = 0.0
    y.backward()
    assert x.grad.tolist() == [3.0, 4.0] and w.tolist() == [0.0, 0.0]


def test_an_index_array_can_be_changed_after_it_was_used():
    x, index = mg.tensor(X, requires_grad=True), np.array([0, 0])
    y, z = x[index], mg.checkpoint(lambda t: (t * t)[index], x)
    index[:] = 1
    (y + z).sum().backward()
    np.testing.assert_array_equal(x.grad.data[1], 0)
    np.testing.assert_array_equal(x.grad.data[0], 2 + 4 * X[0])


def test_an_index_tensor_is_an_input_and_a_replay_computes_it_again():
    x, logits = mg.tensor(X, requires_grad=True), mg.tensor([1.0, 3.0, 2.0])

    def pick(t, scores):
        return mg.exp(t * 0.1)[:, scores.argsort(), 0]

    plain = x[:, logits.argsort()]
    assert [source.shape for source in plain.node.inputs] == [(2, 3, 4), (3,)]
    y = mg.checkpoint(pick, x, logits)
    y.sum().backward()
    g = x.grad
    x.grad = None
    pick(x, logits).sum().backward()
    assert g.data.tobytes() == x.grad.data.tobytes()
    body = y.node
    assert body.freed


def test_more_index_tensors_than_an_op_takes_still_work():
    x = mg.tensor(np.arange(16.0).reshape(2, 2, 2, 2), requires_grad=True)
    i = mg.tensor([0, 1, 1])
    x[i, i, i, i].sum().backward()
    assert x.grad[1, 1, 1, 1].item() == 2 and x.grad[0, 0, 0, 0].item() == 1


def test_reading_keeps_no_copy_of_what_it_read():
    x = mg.exp(mg.tensor(X, requires_grad=True) * 2)
    node = x[[0, 1]].node
    assert node.inputs[0] is x.node and not node.needs.inputs and not node.needs.out


@pytest.mark.parametrize(
    "index", [5, (0, 5), [7], 1.5, "a", np.array([0.5]), (0, 0, 0, 0), slice(0.5, 2), [[0], [1, 2]]]
)
def test_what_is_no_index_is_an_index_error(index):
    with pytest.raises(IndexError) as caught:
        mg.tensor(X)[index]
    assert isinstance(caught.value, mg.MinigradError)


def test_writing_what_does_not_fit_is_a_shape_error():
    t = mg.tensor(X)
    with pytest.raises(mg.ShapeError):
        t[0] = np.ones((5, 5))
    np.testing.assert_array_equal(t.data, X)


# ---- take, gather, one_hot, embedding ----------------------------------------------------------------


def test_take_is_numpys():
    x = mg.tensor(X, requires_grad=True)
    index = np.array([[1, 0], [1, 1]])
    for axis in (None, 0, 1, -1):
        np.testing.assert_array_equal(mg.take(x, index, axis).data, np.take(X, index, axis))
    np.testing.assert_array_equal(mg.take(x, mg.tensor(index), 1).data, np.take(X, index, 1))
    assert mg.take(x, 1, 0).shape == (3, 4)
    with pytest.raises(mg.IndexingError):
        mg.take(x, [0], 3)


def test_gather_refuses_an_index_that_does_not_fit():
    x = mg.tensor(np.ones((2, 3)))
    with pytest.raises(mg.ShapeError):
        mg.gather(x, 1, mg.tensor([0]))
    with pytest.raises(mg.ShapeError):
        mg.gather(x, 1, mg.tensor(np.zeros((3, 1), int)))
    with pytest.raises(mg.IndexingError):
        mg.gather(x, 1, mg.tensor([[3]]))


def test_one_hot():
    assert mg.one_hot(mg.tensor([1, 0]), 3).tolist() == [[0, 1, 0], [1, 0, 0]]
    assert mg.one_hot(mg.tensor([1, 0])).dtype == mg.get_default_dtype()
    assert mg.one_hot(mg.tensor([[2]]), dtype="int64").data.tolist() == [[[0, 0, 1]]]
    for wrong, error in (([3], mg.IndexingError), ([-1], mg.IndexingError), ([0.5], mg.DtypeError)):
        with pytest.raises(error):
            mg.one_hot(mg.tensor(wrong), 3)


def test_the_padding_row_of_an_embedding_gets_no_gradient_and_others_add_up():
    index = mg.tensor([0] * 1000 + [3, 3, 1])
    for padding, first in ((None, 1000.0), (0, 0.0), (-4, 0.0)):
        weight = mg.ones(4, 2, requires_grad=True)
        mg.embedding(index, weight, padding_idx=padding).sum().backward()
        assert weight.grad.tolist() == [[first] * 2, [1.0] * 2, [0.0] * 2, [2.0] * 2]


def test_an_embedding_names_rows_that_are_there_by_integers():
    weight = mg.ones(4, 2)
    for wrong, error in (
        ([4], mg.IndexingError),
        ([-1], mg.IndexingError),
        ([True], mg.DtypeError),
        ([0.0], mg.DtypeError),
    ):
        with pytest.raises(error):
            mg.embedding(mg.tensor(wrong), weight)


def test_rows_named_often_add_up_as_one_by_one():
    rng = np.random.default_rng(0)
    index, g = rng.integers(-7, 7, (30, 4)), rng.standard_normal((30, 4, 5))
    weight = mg.tensor(np.zeros((7, 5)), requires_grad=True)
    weight[index].backward(g)
    expected = np.zeros((7, 5))
    np.add.at(expected, index, g)
    np.testing.assert_allclose(weight.grad.data, expected)


# ---- Broadcasting ------------------------------------------------------------------------------------


@given(hnp.mutually_broadcastable_shapes(num_shapes=2, max_dims=3, max_side=3, min_side=0))
def test_gradients_of_broadcast_inputs_are_summed_back(shapes):
    (first, second), result = shapes.input_shapes, shapes.result_shape
    a, b = mg.tensor(np.ones(first), requires_grad=True), mg.tensor(np.full(second, 2.0), requires_grad=True)
    g = np.random.default_rng(0).standard_normal(result)
    y = a * b
    assert y.shape == result
    y.backward(g)
    ones = np.ones(result)
    for t, factor in ((a, 2.0), (b, 1.0)):
        lead = len(result) - t.ndim
        axes = tuple(range(lead)) + tuple(i for i in range(lead, len(result)) if t.shape[i - lead] == 1)
        expected = (g * ones * factor).sum(axis=axes, keepdims=True).reshape(t.shape)
        np.testing.assert_allclose(t.grad.data, expected, atol=1e-12)
