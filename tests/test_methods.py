"""Tensor's operators and methods, and how it gets on with NumPy, copy and pickle."""

import copy
import inspect
import operator
import pickle

import numpy as np
import pytest

import minigrad as mg

BINARY = [
    operator.add, operator.sub, operator.mul, operator.truediv, operator.pow, operator.floordiv, operator.mod,
    operator.lt, operator.le, operator.gt, operator.ge, operator.eq, operator.ne,
]  # fmt: skip
IN_PLACE = [
    operator.iadd,
    operator.isub,
    operator.imul,
    operator.itruediv,
    operator.ipow,
    operator.ifloordiv,
    operator.imod,
]
A, B = np.array([[1.0, 2.0], [3.0, 0.5]]), np.array([2.0, 0.75])


OF_TWO = """add sub mul div floor_divide remainder maximum minimum fmod eq ne lt le gt ge logical_and logical_or
logical_xor isclose allclose""".split()


def takes(function):
    """torch's words for those of axis and keepdims that a function takes."""
    function = getattr(function, "forward", function)
    if not callable(function):
        return []
    ours = inspect.signature(function).parameters
    return [theirs for theirs, name in (("dim", "axis"), ("keepdim", "keepdims")) if name in ours]


def same(tensor, expected):
    assert isinstance(tensor, mg.Tensor)
    expected = np.asarray(expected)
    assert tensor.dtype == expected.dtype and tensor.shape == expected.shape
    np.testing.assert_array_equal(tensor.data, expected)


# ---- Operators ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("do", BINARY)
def test_an_operator_takes_tensors_arrays_and_numbers_on_either_side(do):
    a, b = mg.tensor(A), mg.tensor(B)
    same(do(a, b), do(A, B))
    same(do(a, B), do(A, B))
    same(do(A, b), do(A, B))
    same(do(a, 2), do(A, 2))
    same(do(a, 0.5), do(A, 0.5))
    same(do(2.0, a), do(2.0, A))
    same(do(np.float64(2.0), a), do(2.0, A))


@pytest.mark.parametrize("do", BINARY)
def test_no_number_promotes_a_float32_tensor(do):
    a = mg.tensor(A, dtype="float32")
    for number in (2, 0.5, True, np.float64(0.5), np.int64(2), np.float32(0.5)):
        assert do(a, number).dtype == do(number, a).dtype == do(A.astype("float32"), 2.0).dtype


@pytest.mark.parametrize("do", IN_PLACE)
def test_an_operator_in_place_gives_the_handle_a_new_value_and_leaves_the_old_one_to_its_readers(do):
    t = mg.tensor(A)
    before, handle = t.data, t
    doubled = t * 2
    t = do(t, B)
    expected = A.copy()
    assert t is handle
    same(t, do(expected, B))
    same(doubled, A * 2)
    np.testing.assert_array_equal(before, A)


def test_matrix_products_from_either_side():
    t = mg.tensor(A, requires_grad=True)
    same(t @ t, A @ A)
    same(A @ t, A @ A)
    same(t @ B, A @ B)
    t = t * 1
    t @= mg.tensor(A)
    same(t, A @ A)
    assert t.requires_grad


def test_logic_on_booleans_and_bits():
    p, q = mg.tensor([True, True, False]), mg.tensor([True, False, False])
    same(p & q, [True, False, False])
    same(p | q, [True, True, False])
    same(p ^ q, [False, True, False])
    same(~p, [False, False, True])
    same(np.array([True, False, True]) & p, [True, False, False])
    same(mg.tensor([6, 3]) & 2, [2, 2])


def test_signs_and_absolute_value():
    same(-mg.tensor(B), -B)
    same(+mg.tensor(B), B)
    same(abs(mg.tensor(-B)), B)


def test_in_place_keeps_the_dtype_and_refuses_what_would_lose_the_fraction():
    t = mg.tensor([1.0, 2.0])
    t += np.array([0.5, 0.5])  # float64
    assert t.dtype == "float32"
    n = mg.tensor([1, 2])
    n += 1
    same(n, [2, 3])
    with pytest.raises(mg.DtypeError):
        n += 0.5
    with pytest.raises(mg.DtypeError):
        n /= 2
    same(n, [2, 3])


def test_in_place_on_a_leaf_that_requires_a_gradient_is_refused_outside_no_grad():
    w = mg.tensor([1.0, 2.0], requires_grad=True)
    with pytest.raises(mg.MinigradError):
        w += 1
    with pytest.raises(mg.MinigradError):
        w[0] = 1.0
    with mg.no_grad():
        w += 1
        w[0] = 5.0
    same(w.detach(), np.array([5.0, 3.0], "float32"))
    assert w.requires_grad and w.is_leaf


def test_gradients_flow_through_what_was_changed_in_place():
    x = mg.tensor([1.0, 2.0, 3.0], requires_grad=True)
    y = x * 1
    y *= x
    y[1] = y[0] * 10
    y.sum().backward()
    same(x.grad, np.array([22.0, 0.0, 6.0], "float32"))


def test_comparing_with_what_is_no_number_is_left_to_python():
    t = mg.tensor([1.0, 2.0])
    assert (t == None) is False  # noqa: E711
    assert (t != "tensor") is True
    assert t in {t: 1} and len({t, mg.tensor([1.0, 2.0])}) == 2


def test_iteration_membership_and_length():
    t = mg.tensor(A, requires_grad=True)
    assert len(t) == 2 and [row.tolist() for row in t] == A.tolist()
    assert all(row.requires_grad for row in t)
    assert 0.5 in t and 7.0 not in t
    first, second = t
    same(second, A[1])
    with pytest.raises(TypeError):
        iter(mg.tensor(1.0))


def test_an_integer_tensor_is_an_index():
    assert [10, 20, 30][mg.tensor(1)] == 20
    assert list(range(mg.tensor(3))) == [0, 1, 2]


def test_methods_do_what_the_functions_do():
    """Every op of one tensor that is a method as well: same name, same result."""
    x = matrix = mg.tensor(np.abs(np.random.default_rng(0).standard_normal((3, 3))) + 0.1)
    vector, checked = matrix[0], 0
    for name in mg.ops.__all__:
        function, method = getattr(mg, name), getattr(mg.Tensor, name, None)
        arguments = {
            "pow": (2,),
            "clamp": (0.2, 0.8),
            "astype": ("float32",),
            "to": ("cpu",),
            "reshape": (9,),
            "permute": (1, 0),
            "transpose": (0, 1),
            "swapaxes": (0, 1),
            "unsqueeze": (1,),
            "broadcast_to": ((2, 3, 3),),
            "split": (2,),
            "roll": (1,),
            "matmul": (x,),
            "take": ([0, 2],),
            "gather": (0, mg.tensor([[1, 0, 2]])),
            "clip": (0.2, 0.8),
            "pad": ((1, 2),),
            "repeat": (2, 1),
            "tile": (2,),
            "repeat_interleave": (2, 1),
            "unfold": (1, 2),
            "expand": (2, -1, 3),
            "chunk": (2,),
            "movedim": (0, 1),
            "masked_fill": (x > 0.5, 0.0),
            "masked_select": (x > 0.5,),
            "index_select": (1, [0, 2]),
            "scatter": (1, mg.tensor([[1], [0], [2]]), 5.0),
            "topk": (2,),
            "lerp": (x * 2, 0.25),
            "glu": (-1,),
        }.get(name, (x,) if name in OF_TWO else ())
        if name == "glu" or name.startswith("bitwise"):
            continue
        x = vector if name in ("dot", "outer") else matrix
        arguments = (x,) if name in ("dot", "outer") else arguments
        if method is None:
            continue
        ours, theirs = method(x, *arguments), function(x, *arguments)
        for a, b in zip(ours, theirs, strict=True) if isinstance(ours, tuple) else [(ours, theirs)]:
            assert a == b if isinstance(b, bool) else same(a, b.data) is None
        checked += 1
    assert checked >= 110


def test_methods_that_go_by_other_names_too():
    x, y = mg.tensor(A), mg.tensor(B)
    same(x.view(4), A.reshape(4))
    same(x.view((1, -1)), A.reshape(1, 4))
    same(x.subtract(y), A - B)
    same(x.multiply(y), A * B)
    same(x.divide(y), A / B)
    same(x.negative(), -A)
    same(x.mm(x), A @ A)
    same(x.mv(y), A @ B)
    same(x.amax(1), A.max(1))
    same(x.amin(0, keepdims=True), A.min(0, keepdims=True))
    same(mg.ones(2, 1, 3).bmm(mg.ones(2, 3, 1)), np.full((2, 1, 1), 3, "float32"))


def test_sum_mean_and_prod_in_another_dtype():
    x = mg.ones(3000, dtype="float16", requires_grad=True)
    total = x.sum(dtype="float32")
    assert total.dtype == "float32" and total.item() == 3000.0
    total.backward()
    assert x.grad.dtype == "float16" and x.grad.tolist() == [1.0] * 3000
    assert mg.sum(mg.tensor([True, True]), dtype="int64").tolist() == 2
    same(mg.tensor([2, 3]).prod(dtype="float64"), np.float64(6))
    same(mg.mean(mg.tensor([2, 3]), 0, True, "float64"), np.array([2.5]))


AXES = [(name, keyword) for name in mg.ops.__all__ for keyword in takes(getattr(mg, name))]
METHOD_AXES = [(n, keyword) for n in dir(mg.Tensor) if n[0] != "_" for keyword in takes(getattr(mg.Tensor, n))]


@pytest.mark.parametrize("name, keyword", AXES)
def test_a_function_that_is_given_a_keyword_of_torch_says_ours(name, keyword):
    with pytest.raises(mg.ArgumentError, match=f"{keyword!r}, which is PyTorch's word; here it is '(axis|keepdims)'"):
        getattr(mg, name)(mg.ones(2, 2), **{keyword: 1})


@pytest.mark.parametrize("name, keyword", METHOD_AXES)
def test_a_method_that_is_given_a_keyword_of_torch_says_ours(name, keyword):
    with pytest.raises(mg.ArgumentError, match=f"{keyword!r}, which is PyTorch's word; here it is '(axis|keepdims)'"):
        getattr(mg.ones(2, 2), name)(**{keyword: 1})


def test_there_are_many_functions_and_methods_with_an_axis():
    assert len(AXES) >= 50 and len(METHOD_AXES) >= 50
    same(mg.tensor(B).outer(mg.tensor(B)), np.outer(B, B))


def test_transposes():
    x = np.arange(24.0).reshape(2, 3, 4)
    same(mg.tensor(x).T, x.T)
    same(mg.tensor(x).mT, x.swapaxes(-1, -2))
    same(mg.tensor(x).transpose(), x.T)
    same(mg.tensor(x).transpose(0, 2), x.swapaxes(0, 2))
    with pytest.raises(mg.ArgumentError):
        mg.tensor(x).transpose(1)


@pytest.mark.parametrize("shape", [(6,), (3, 2), (-1, 2), (1, -1)])
def test_reshape_takes_numbers_or_a_tuple(shape):
    x = mg.tensor(np.arange(6.0))
    same(x.reshape(*shape), np.arange(6.0).reshape(shape))
    same(x.reshape(shape), np.arange(6.0).reshape(shape))
    same(x.reshape(list(shape)), np.arange(6.0).reshape(shape))


def test_a_list_of_lengths_can_be_changed_after_the_op_has_run():
    x, sizes = mg.tensor(np.arange(6.0), requires_grad=True), [2, 3]
    y = mg.checkpoint(lambda t: mg.exp((t * 2).reshape(sizes)), x)
    sizes[:] = [6]
    y.sum().backward()
    np.testing.assert_allclose(x.grad.data, 2 * np.exp(2 * np.arange(6.0)))


# ---- dtype, device, history --------------------------------------------------------------------------


def test_gradients_come_back_through_astype_in_the_dtype_that_went_in():
    x = mg.tensor([1.0, 2.0], requires_grad=True)
    (x.astype("float64") * np.array([0.1, 0.2])).sum().backward()
    assert x.grad.dtype == "float32"


def test_integers_and_booleans_never_require_a_gradient():
    x = mg.tensor([1.5, -2.0], requires_grad=True)
    for t in (
        x.astype("int64"),
        x > 0,
        x.argmax(),
        x.argsort(),
        mg.isnan(x),
        mg.one_hot(x.argmax(), 2),
        x.astype(bool),
    ):
        assert not t.requires_grad
    assert x.astype(np.float64).requires_grad
    with pytest.raises(mg.DtypeError):
        mg.tensor([1, 2])[0] = x.sum()


def test_detach_shares_the_value_and_has_no_history():
    x = mg.tensor([1.0], requires_grad=True)
    d = (x * 2).detach()
    assert not d.requires_grad and d.is_leaf
    inside = mg.checkpoint(lambda t: t * (t * 3).detach(), x)
    inside.sum().backward()
    same(x.grad, np.array([3.0], "float32"))


def test_to_the_same_device_is_the_tensor_itself_and_an_unknown_one_is_an_error():
    x = mg.tensor([1.0])
    assert x.to("cpu") is x
    with pytest.raises(mg.DeviceError):
        x.to("abacus")


# ---- NumPy -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [
    "exp", "expm1", "log", "log1p", "sqrt", "absolute", "sign", "sin", "cos", "tanh", "negative",
])  # fmt: skip
def test_numpy_functions_of_one_tensor_are_recorded(name):
    x = mg.tensor(A, requires_grad=True)
    out = getattr(np, name)(x)
    assert out.requires_grad
    same(out.detach(), getattr(np, name)(A))


@pytest.mark.parametrize("name", ["add", "subtract", "multiply", "divide", "power", "maximum", "minimum", "matmul"])
def test_numpy_functions_of_two_are_recorded_wherever_the_tensor_stands(name):
    x, function = mg.tensor(A, requires_grad=True), getattr(np, name)
    for out in (function(x, A), function(A, x)):
        assert out.requires_grad
        same(out.detach(), function(A, A))


def test_numpy_functions_that_minigrad_does_not_know():
    x = mg.tensor(A, requires_grad=True)
    with pytest.raises(mg.ArgumentError, match="arctan"):
        np.arctan(x)
    same(np.arctan(x.detach()), np.arctan(A))
    same(np.isinf(x), np.isinf(A))
    for ours, theirs in zip(np.modf(x.detach()), np.modf(A), strict=True):
        same(ours, theirs)
    with pytest.raises(mg.ArgumentError, match="modf"):
        np.modf(x)
    with pytest.raises(mg.ArgumentError, match="reduce"):
        np.add.reduce(x)
    with pytest.raises(mg.ArgumentError, match="out"):
        array = A.copy()
        array += x
    np.testing.assert_array_equal(array, A)


def test_numpy_functions_that_are_no_ufuncs_get_the_plain_array():
    x = mg.tensor(A, requires_grad=True)
    assert type(np.concatenate([x, x])) is np.ndarray
    assert np.sum(x) == A.sum() and np.mean(x) == A.mean()
    assert np.allclose(x, A)
    assert np.asarray(x).base is not None and not np.asarray(x).flags.writeable
    assert np.array(x).flags.writeable
    assert np.asarray(x, dtype="float32").dtype == "float32"


def test_dlpack_gives_a_copy():
    x = mg.tensor(A)
    other = np.from_dlpack(x)
    np.testing.assert_array_equal(other, A)
    assert not np.shares_memory(other, x.data)
    assert x.__dlpack_device__() == A.__dlpack_device__()


# ---- copy and pickle ---------------------------------------------------------------------------------


def copies(t):
    return [copy.copy(t), copy.deepcopy(t), pickle.loads(pickle.dumps(t))]


def test_a_copied_leaf_is_a_leaf_of_its_own():
    w = mg.tensor([1.0, 2.0], requires_grad=True, name="w")
    for other in copies(w):
        assert other.requires_grad and other.is_leaf and other.name == "w"
        (other * 3).sum().backward()
        same(other.grad, np.array([3.0, 3.0], "float32"))
        assert w.grad is None
        other.assign_([7.0, 7.0])
    same(w.detach(), np.array([1.0, 2.0], "float32"))


def test_a_copied_constant_requires_nothing():
    for other in copies(mg.tensor([1, 2], name="ids")):
        assert not other.requires_grad and other.name == "ids" and other.tolist() == [1, 2]


def test_deepcopy_copies_the_gradient_and_keeps_shared_tensors_shared():
    w = mg.tensor([1.0], requires_grad=True)
    (w * 2).sum().backward()
    a, b = copy.deepcopy([w, w])
    assert a is b and a is not w
    same(a.grad, w.grad.data)
    assert a.grad is not w.grad


def test_a_tensor_with_a_history_says_detach_first():
    y = mg.tensor([1.0], requires_grad=True) * 2
    for act in (copy.deepcopy, pickle.dumps):
        with pytest.raises(mg.MinigradError, match="detach"):
            act(y)
    second = copy.copy(y)
    assert second is not y and second.requires_grad
    assert copy.deepcopy(y.detach()).tolist() == [2.0]
