"""Tensor: the handle, its data, its protocols, and what cannot be done to it."""

import numpy as np
import pytest

import minigrad as mg


def test_data_on_the_tape_is_read_only():
    x = mg.tensor([1.0, 2.0], requires_grad=True)
    h = x * 1
    for tensor in (x, h, h.detach()):
        with pytest.raises(ValueError, match="read-only"):
            tensor.data[...] = 0
        with pytest.raises(ValueError, match="read-only"):
            tensor.numpy()[0] = 9
    source = np.ones(2)
    t = mg.tensor(source)
    source[0] = 5
    assert t.tolist() == [1, 1] and source.flags.writeable


def test_arrays_met_by_a_tensor_are_copied():
    x, a = mg.tensor([1.0, 2.0], dtype="float64", requires_grad=True), np.ones(2)
    y = (x * a).sum()
    a[...] = 7
    y.backward()
    assert x.grad.tolist() == [1, 1] and a.flags.writeable


def test_in_place_changes_give_the_handle_a_new_node():
    x = mg.tensor([1.0, 2.0], requires_grad=True)
    h = x * 1
    alias, y = h, (h * h).sum()
    h += 10
    h[0] = 5.0
    assert alias is h and h.tolist() == [5, 12]
    y.backward()
    assert x.grad.tolist() == [2, 4]


def test_a_leaf_that_requires_grad_is_changed_only_without_grad():
    w = mg.tensor([1.0, 2.0], requires_grad=True)
    node = w.node
    with pytest.raises(mg.MinigradError, match="inside no_grad"):
        w += 1
    assert w.node is node and w.tolist() == [1, 2]
    with mg.no_grad():
        w += 1
        w[0] = 9.0
    assert w.tolist() == [9, 3] and w.requires_grad and w.node is node
    h = w * 1
    with mg.no_grad(), pytest.raises(mg.MinigradError, match="cut it off"):
        h += 1
    with pytest.raises(mg.ShapeError, match="in place"):
        h += np.ones((3, 2), np.float32)


def test_assigning_data():
    w = mg.tensor([1.0, 2.0], requires_grad=True, name="w")
    number, new = w.node.number, np.array([3.0, 4.0])
    w.data = new
    new[0] = 7
    assert w.tolist() == [3, 4] and w.dtype == np.float32 and w.node.number > number and w.name == "w"
    with pytest.raises(mg.ShapeError, match=r"\(2,\), not \(3,\)"):
        w.assign_(np.ones(3))
    with pytest.raises(mg.MinigradError, match="only a leaf"):
        (w * 1).assign_(np.ones(2))
    assert w.tolist() == [3, 4]


def test_requires_grad_belongs_to_floating_leaves():
    x = mg.tensor([1.0])
    assert not x.requires_grad and x.requires_grad_() is x and x.requires_grad
    node = x.node
    assert x.requires_grad_().node is node  # once more changes nothing
    x.requires_grad = False
    assert not (x * 2).requires_grad
    for values in ([1, 2], [True]):
        with pytest.raises(mg.DtypeError, match="floating point"):
            mg.tensor(values, requires_grad=True)
        with pytest.raises(TypeError, match="floating point"):
            mg.tensor(values).requires_grad_()
    y = mg.tensor([1.0], requires_grad=True) * 2
    assert y.requires_grad_() is y
    with pytest.raises(mg.MinigradError, match="leaves only"):
        y.requires_grad_(False)


def test_setting_a_gradient():
    x = mg.tensor([1.0, 2.0], requires_grad=True)
    x.grad = np.array([1, 2])
    assert isinstance(x.grad, mg.Tensor) and x.grad.dtype == np.float32
    with pytest.raises(mg.ShapeError):
        x.grad = mg.ones(3)
    x.grad = None
    assert x.grad is None


def test_scalars_numbers_and_lengths():
    x = mg.tensor(1.5)
    assert (float(x), int(x), bool(x), x.item(), f"{x:.2f}") == (1.5, 1, True, 1.5, "1.50")
    assert [10, 20, 30][mg.tensor(1)] == 20 and len(mg.zeros(3, 2)) == 3
    with pytest.raises(TypeError, match="0-d"):
        len(x)
    with pytest.raises(TypeError, match="index"):
        [1][x]
    with pytest.raises(ValueError, match="one element"):
        mg.zeros(2).item()


def test_python_and_numpy_scalars_never_promote():
    x = mg.tensor([1.0], requires_grad=True)
    for result in (x * 2.5, 1 / x, x + np.float64(2), np.float64(2) * x, np.int64(3) * x, x**2, True * x):
        assert result.dtype == np.float32 and result.requires_grad


def test_what_is_no_operand_is_refused():
    x = mg.tensor([1.0])
    with pytest.raises(TypeError, match="str"):
        x + "text"
    with pytest.raises(TypeError):
        x @ None
    assert (x == None) is False and (x != "text") is True  # noqa: E711


def test_numpy_sees_the_value():
    x = mg.tensor([[1.0, 2.0]], requires_grad=True)
    assert np.asarray(x).tolist() == [[1, 2]] and np.asarray(x, dtype=np.float64).dtype == np.float64
    copied = np.array(x)
    copied[0, 0] = 9
    assert x.tolist() == [[1, 2]]
    assert isinstance(np.exp(x), mg.Tensor) and isinstance(np.ones((2, 1)) @ x, mg.Tensor)


def test_unknown_devices_are_errors():
    with pytest.raises(mg.DeviceError, match="tpu"):
        mg.tensor([1.0], device="tpu")
    assert mg.tensor([1.0], device="cpu").device == "cpu"
