"""DLPack both ways, and what else of Python's ways of handing things around tensors follow."""

import copy
import pickle

import numpy as np
import pytest

import minigrad as mg

DTYPES = ["float16", "float32", "float64", "int8", "int64", "uint8", "bool"]
SHAPES = [(), (0,), (3,), (2, 3)]


class Elsewhere:
    """Somebody else's array, which speaks DLPack and nothing else."""

    def __init__(self, array, device=(1, 0)):
        self.array, self.device = array, device

    def __dlpack__(self, **settings):
        return self.array.__dlpack__(**settings)

    def __dlpack_device__(self):
        return self.device


def numbers(shape, dtype):
    return np.asarray(np.random.default_rng(0).integers(0, 2, shape)).astype(dtype)


# ---- DLPack ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", SHAPES)
def test_arrays_come_and_go_with_dtype_and_shape(dtype, shape):
    array = numbers(shape, dtype)
    tensor = mg.from_dlpack(Elsewhere(array))
    assert isinstance(tensor, mg.Tensor) and tensor.is_leaf and not tensor.requires_grad
    for there in (tensor, np.from_dlpack(tensor)):
        assert (there.dtype, there.shape) == (array.dtype, shape) and np.array_equal(np.asarray(there), array)


def test_strided_memory_comes_in_order():
    array = np.arange(24.0).reshape(2, 3, 4).T[::2, ::-1]
    assert np.array_equal(mg.from_dlpack(array).data, array)
    tensor = mg.tensor(array).T
    assert np.array_equal(np.from_dlpack(tensor), array.T)


def test_neither_side_sees_what_the_other_writes():
    array = np.ones(3)
    tensor = mg.from_dlpack(array)
    array[:] = 7
    assert tensor.tolist() == [1.0, 1.0, 1.0] and not tensor.data.flags.writeable
    given = np.array(np.from_dlpack(tensor), copy=None)
    given.flags.writeable or given.setflags(write=True)
    given[:] = 9
    assert tensor.tolist() == [1.0, 1.0, 1.0]


def test_a_copy_is_what_one_gets_and_no_other_is_promised():
    tensor = mg.ones(3)
    assert np.from_dlpack(tensor, copy=True).tolist() == [1.0, 1.0, 1.0]
    with pytest.raises(BufferError, match="copies only"):
        np.from_dlpack(tensor, copy=False)


def test_what_comes_in_can_be_trained():
    w = mg.from_dlpack(np.ones(2), requires_grad=True, name="w")
    (w * w).sum().backward()
    assert w.name == "w" and w.grad.tolist() == [2.0, 2.0]
    assert np.from_dlpack(w * 2).tolist() == [2.0, 2.0]
    with pytest.raises(mg.DtypeError, match="int64"):
        mg.from_dlpack(np.arange(3), requires_grad=True)


def test_what_is_no_array_is_refused():
    for stranger in (3, [1.0], "text", None):
        with pytest.raises(mg.ArgumentError, match=f"{type(stranger).__name__} does not speak DLPack"):
            mg.from_dlpack(stranger)


def test_numbers_that_tensors_do_not_hold_are_refused():
    with pytest.raises(mg.DtypeError, match="complex128"):
        mg.from_dlpack(np.ones(2, complex))


def test_a_refusal_of_the_other_side_is_passed_on():
    class Unwilling(Elsewhere):
        def __dlpack__(self, **settings):
            raise BufferError("tensors that require a gradient stay here")

    with pytest.raises(mg.MinigradError, match=r"test_interop\.Unwilling gave no memory.*stay here"):
        mg.from_dlpack(Unwilling(np.ones(2)))


def test_devices_that_are_not_here_are_named():
    with pytest.raises(mg.MinigradError, match="kind 8"):
        mg.from_dlpack(Elsewhere(np.ones(2), (8, 0)))
    with pytest.raises(mg.DeviceError, match="tpu"):
        mg.from_dlpack(np.ones(2), device="tpu")


@pytest.mark.gpu
def test_memory_of_a_gpu_stays_there():
    cupy = pytest.importorskip("cupy")
    array = cupy.arange(3.0)
    tensor = mg.from_dlpack(array)
    assert tensor.device == "cuda:0" and tensor.tolist() == [0.0, 1.0, 2.0]
    assert cupy.from_dlpack(tensor).tolist() == [0.0, 1.0, 2.0]
    assert mg.from_dlpack(array, device="cpu").device == "cpu"


@pytest.mark.oracle
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", SHAPES)
def test_torch_gives_and_takes(dtype, shape):
    torch = pytest.importorskip("torch")
    array = numbers(shape, dtype)
    theirs = torch.from_dlpack(mg.tensor(array))
    assert theirs.dtype == getattr(torch, dtype) and np.array_equal(theirs.numpy(), array)
    ours = mg.from_dlpack(torch.tensor(array))
    assert ours.dtype == array.dtype and np.array_equal(ours.data, array)


@pytest.mark.oracle
def test_torch_says_why_it_does_not_give():
    torch = pytest.importorskip("torch")
    with pytest.raises(mg.MinigradError, match="torch.Tensor gave no memory.*gradient"):
        mg.from_dlpack(torch.ones(2, requires_grad=True))
    with pytest.raises(mg.MinigradError):
        mg.from_dlpack(torch.ones(2, dtype=torch.bfloat16))


# ---- Copies and pickles ------------------------------------------------------------------------------

CARRIERS = {
    "copy": copy.copy,
    "deepcopy": copy.deepcopy,
    "pickle": lambda tensor: pickle.loads(pickle.dumps(tensor)),
}
each_carrier = pytest.mark.parametrize("carry", CARRIERS.values(), ids=CARRIERS)


@each_carrier
@pytest.mark.parametrize("kind", [mg.Tensor, mg.nn.Parameter])
@pytest.mark.parametrize("requires_grad", [False, True])
def test_a_leaf_can_be_carried(carry, kind, requires_grad):
    leaf = mg.tensor(np.ones((2, 3), "float16"), requires_grad=requires_grad, name="w")
    leaf = leaf if kind is mg.Tensor else kind(leaf, requires_grad)
    twin = carry(leaf)
    assert type(twin) is kind and twin is not leaf and twin.is_leaf
    assert (twin.name, twin.dtype, twin.requires_grad) == ("w", leaf.dtype, requires_grad)
    assert np.array_equal(twin.data, leaf.data) and not twin.data.flags.writeable


@each_carrier
def test_a_carried_leaf_lives_by_itself(carry):
    leaf = mg.ones(2, requires_grad=True)
    twin = carry(leaf)
    (twin * 3).sum().backward()
    assert leaf.grad is None and twin.grad.tolist() == [3.0, 3.0]
    twin.assign_([5.0, 5.0])
    assert leaf.tolist() == [1.0, 1.0]


def test_a_gradient_goes_with_a_deepcopy():
    leaf = mg.ones(2, requires_grad=True)
    (leaf * 3).sum().backward()
    twin = copy.deepcopy(leaf)
    assert twin.grad.tolist() == [3.0, 3.0] and twin.grad is not leaf.grad


@pytest.mark.parametrize("carry", [copy.deepcopy, pickle.dumps])
def test_a_tensor_with_a_history_is_not_carried(carry):
    made = mg.ones(2, requires_grad=True) * 2
    with pytest.raises(mg.MinigradError, match="mul.*detach"):
        carry(made)
    assert carry(made.detach()) is not None


@each_carrier
def test_a_model_can_be_carried(carry):
    mg.manual_seed(0)
    model = mg.nn.Sequential(mg.nn.Linear(3, 4), mg.nn.BatchNorm1d(4), mg.nn.Tanh())
    x = mg.randn(5, 3)
    twin = carry(model)
    assert np.array_equal(twin.eval()(x).data, model.eval()(x).data)
    assert list(twin.state_dict()) == list(model.state_dict())
