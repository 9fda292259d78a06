"""Making tensors."""

import numpy as np
import pytest

import minigrad as mg

FLOATS = ["float16", "float32", "float64"]


@pytest.mark.parametrize(
    "data, dtype",
    [
        (1.5, "float32"),
        ([1.0, 2.0], "float32"),
        ([[1, 2.5]], "float32"),
        ([], "float32"),
        (3, "int64"),
        ([1, 2], "int64"),
        (True, "bool"),
        ([True, False], "bool"),
        ((1.0, (2.0)), "float32"),
        (np.float64(0.5), "float64"),
        (np.float16(0.5), "float16"),
        (np.int32(1), "int32"),
        ([np.float64(0.5)], "float64"),
        (np.zeros(2), "float64"),
        (np.zeros(2, "float16"), "float16"),
        (np.zeros(2, "uint8"), "uint8"),
        ([np.zeros(2)], "float64"),
    ],
)
def test_python_numbers_get_the_default_dtype_and_numpys_keep_their_own(data, dtype):
    assert mg.tensor(data).dtype == dtype
    assert mg.tensor(data).shape == np.shape(data)


@pytest.mark.parametrize("dtype", FLOATS)
def test_the_default_dtype_can_be_set(dtype):
    before = mg.get_default_dtype()
    try:
        mg.set_default_dtype(dtype)
        for t in (
            mg.tensor(1.0),
            mg.tensor([0.5]),
            mg.zeros(2),
            mg.ones(2),
            mg.full(2, 0.5),
            mg.arange(3.0),
            mg.eye(2),
        ):
            assert t.dtype == dtype
        for t in (mg.rand(2), mg.randn(2), mg.one_hot(mg.tensor([1])), mg.where(mg.tensor([True]), 1.0, 0.0)):
            assert t.dtype == dtype
        assert mg.tensor(np.float64(1)).dtype == "float64" and mg.tensor(1).dtype == mg.arange(3).dtype == "int64"
    finally:
        mg.set_default_dtype(before)
    with pytest.raises(mg.DtypeError):
        mg.set_default_dtype("int64")


def test_data_are_copied():
    array = np.ones(2)
    t = mg.tensor(array)
    u = mg.tensor(t)
    array[0] = 5
    assert t.tolist() == [1, 1] and u.data is not t.data
    with pytest.raises(ValueError):
        t.data[0] = 2
    array[1] = 7  # the user's own array stays writable


def test_a_tensor_of_a_tensor_is_a_new_leaf():
    x = mg.tensor([1.0], requires_grad=True)
    assert not mg.tensor(x * 2).requires_grad
    assert mg.tensor([mg.tensor(1.0), mg.tensor(2.0)]).tolist() == [1, 2]


@pytest.mark.parametrize("data, error", [
    ([[1, 2], [3]], mg.ShapeError), (["a"], mg.DtypeError), (1j, mg.DtypeError), ([None], mg.DtypeError),
    ({"a": 1}, mg.DtypeError), (10**30, mg.DtypeError),
])  # fmt: skip
def test_what_is_no_tensor(data, error):
    with pytest.raises(error):
        mg.tensor(data)


def test_an_unknown_dtype_or_device():
    with pytest.raises(mg.MinigradError):
        mg.tensor([1.0], dtype="floating")
    with pytest.raises(mg.DeviceError):
        mg.zeros(2, device="abacus")


@pytest.mark.parametrize("make", [
    lambda **k: mg.tensor([1, 2], **k), lambda **k: mg.tensor([True], **k), lambda **k: mg.arange(3, **k),
    lambda **k: mg.zeros(2, dtype="int32", **k), lambda **k: mg.full((2,), 3, **k),
])  # fmt: skip
def test_integers_cannot_require_a_gradient(make):
    make(requires_grad=False)
    with pytest.raises(mg.DtypeError):
        make(requires_grad=True)


def test_shapes_are_given_as_numbers_or_as_a_tuple():
    for make in (mg.zeros, mg.ones, mg.rand, mg.randn):
        assert make(2, 3).shape == make((2, 3)).shape == make([2, 3]).shape == (2, 3)
        assert make().shape == make(()).shape == () and make(0, 2).shape == (0, 2)
        assert make(np.int64(2), mg.tensor(3)).shape == (2, 3)
        with pytest.raises(mg.ArgumentError):
            make(2.0)
    assert mg.full((2,), 1).shape == mg.full(2, 1).shape == (2,) and mg.full((), 1).shape == ()


def test_leaves_have_what_was_asked_for():
    for make in (mg.zeros, mg.ones, mg.rand, mg.randn):
        t = make(2, dtype="float64", requires_grad=True, name="t")
        assert t.requires_grad and t.is_leaf and t.dtype == "float64" and t.name == "t" and t.device == "cpu"
        (t * 2).sum().backward()
        assert t.grad.tolist() == [2, 2]
    assert mg.tensor([1], name="ids").name == "ids"


def test_filled_and_in_sequence():
    assert (
        mg.full((2,), 7).dtype == "int64"
        and mg.full((2,), True).dtype == "bool"
        and mg.full((2,), 0.5).dtype == "float32"
    )
    assert mg.full((1,), np.float64(0.5)).dtype == "float64" and mg.full((1,), mg.tensor(2)).tolist() == [2]
    assert mg.arange(4).tolist() == [0, 1, 2, 3] and mg.arange(1, 7, 2).tolist() == [1, 3, 5]
    assert (
        mg.arange(3.0).dtype == mg.arange(0, 1, 0.5).dtype == "float32"
        and mg.arange(3, dtype="float64").dtype == "float64"
    )
    assert mg.arange(5, 1, -2).tolist() == [5, 3]
    assert mg.eye(2).tolist() == [[1, 0], [0, 1]] and mg.eye(2, 3).shape == (2, 3)


def test_like():
    x = mg.tensor(np.ones((2, 1), "float16"), requires_grad=True)
    for t, value in ((mg.zeros_like(x), 0), (mg.ones_like(x), 1), (mg.full_like(x, 3), 3)):
        assert t.shape == (2, 1) and t.dtype == "float16" and t.tolist() == [[value]] * 2 and not t.requires_grad
    assert mg.zeros_like(np.zeros(3)).dtype == "float64"
    assert mg.ones_like(mg.tensor([1, 2])).dtype == "int64"
    assert mg.zeros_like(x, dtype="float32", requires_grad=True).requires_grad
