"""What an op costs, counted from shapes: against loops that count, and against formulas from elsewhere."""

import itertools
import math
from types import SimpleNamespace

import numpy as np
import pytest

import minigrad as mg
from minigrad.engine.op import registry
from minigrad.ops.cost import ERF, FUNCTION, RULES, flops, transformer_layer_bytes
from minigrad.ops.erf import FAR, MIDDLE, NEAR
from tests.op_samples import SAMPLES
from tests.op_samples_nn import CONVOLUTIONS, meetings
from tests.test_ops import bound, samples_of, tensors


def recorded(run, *inputs):
    """The one line that running an op writes."""
    with mg.Tape() as tape:
        run(*inputs)
    (line,) = tape
    return line


def cost_of(name, *shapes, **settings):
    return flops(recorded(bound(name, SimpleNamespace(settings=settings)), *[mg.ones(shape) for shape in shapes]))


@pytest.mark.parametrize("name", SAMPLES)
def test_every_op_has_a_cost_which_is_a_number_of_operations(name):
    for sample in samples_of(name):
        cost = flops(recorded(bound(name, sample), *tensors(name, sample)))
        assert type(cost) is int and cost >= 0


@pytest.mark.parametrize("name", SAMPLES)
def test_a_cost_is_of_shapes_and_settings_alone(name):
    """Neither the values, nor whether anyone wants a gradient, nor what has been counted before changes it."""
    for sample in samples_of(name):
        line = recorded(bound(name, sample), *tensors(name, sample))
        with mg.no_grad():
            other = recorded(bound(name, sample), *tensors(name, sample))
        assert flops(line) == flops(other) == flops(line)


def test_every_rule_is_of_an_op_that_there_is():
    assert set(RULES) <= set(registry)


# ---- Products, counted by loops --------------------------------------------------------------------------


class Counting:
    """A number that counts how often it is multiplied."""

    products = 0

    def __mul__(self, other):
        Counting.products += 1
        return self

    def __add__(self, other):
        return self


def products_of(function, *shapes):
    """How many products `function` forms of arrays of these shapes."""
    arrays = [np.full(shape, Counting(), object) for shape in shapes]
    Counting.products = 0
    function(*arrays)
    return Counting.products


@pytest.mark.parametrize(
    "a, b",
    [
        ((2, 3), (3, 4)),
        ((3,), (3,)),
        ((3,), (3, 2)),
        ((2, 3), (3,)),
        ((4, 2, 3), (3, 2)),
        ((2, 1, 2, 3), (4, 3, 5)),
        ((2, 0), (0, 3)),
        ((3,), (4, 3, 2)),
    ],
)
def test_a_matmul_costs_as_many_products_as_it_forms(a, b):
    assert cost_of("matmul", a, b) == products_of(np.matmul, a, b)


@pytest.mark.parametrize("name, x", [("linear", (4, 3)), ("linear", (2, 5, 3)), ("linear", (3,))])
def test_a_linear_costs_its_products_and_an_addition_for_the_bias(name, x):
    products = products_of(np.matmul, x, (3, 7))
    assert cost_of(name, x, (7, 3)) == products
    assert cost_of(name, x, (7, 3), (7,)) == products + math.prod(x[:-1]) * 7


@pytest.mark.parametrize(
    "subscripts, shapes, combinations",
    [
        ("ij,jk->ik", [(2, 3), (3, 4)], 2 * 3 * 4),
        ("bij,bjk->bik", [(5, 2, 3), (5, 3, 4)], 5 * 2 * 3 * 4),
        ("ij,ij->ij", [(1, 3), (2, 3)], 2 * 3),
        ("ij,ij->ij", [(2, 3), (1, 3)], 2 * 3),
        ("ii->i", [(3, 3)], 3),
        ("ij,k->j", [(2, 3), (4,)], 2 * 3 * 4),
        ("ij,j->i", [(0, 3), (3,)], 0),
        (",i->i", [(), (3,)], 3),
    ],
)
def test_an_einsum_costs_a_product_for_each_combination_of_labels(subscripts, shapes, combinations):
    assert cost_of("einsum", *shapes, subscripts=subscripts) == combinations


@pytest.mark.parametrize("images, weight, settings", CONVOLUTIONS, ids=str)
def test_a_convolution_costs_as_many_products_as_pixels_meet_the_kernel(images, weight, settings):
    """Its padding is counted too: the meetings are those on the padded image."""
    window = {key: value for key, value in settings.items() if key in ("stride", "dilation")}
    padding = settings.get("padding", ((0, 0), (0, 0)))
    padded = [n + sum(p) for n, p in zip(images[2:], padding, strict=True)]
    met = len([*meetings(padded, weight[2:], **window)])
    products = met * images[0] * weight[0] * weight[1]
    out = bound("conv2d", SimpleNamespace(settings=settings))(mg.ones(images), mg.ones(weight))
    assert cost_of("conv2d", images, weight, **settings) == products
    assert cost_of("conv2d", images, weight, weight[:1], **settings) == products + out.size
    assert cost_of("conv2d_weight_gradient", images, out.shape, kernel=weight[2:], **settings) == products
    assert cost_of("conv_transpose2d", out.shape, weight, size=images[2:], **settings) == products


def test_the_first_layer_of_resnet50_costs_118_million_multiply_adds():
    """7 x 7, 3 -> 64 channels, stride 2, on 224 x 224: the number that its profiles print."""
    with mg.no_grad(), mg.Tape() as tape:
        mg.conv2d(mg.zeros((1, 3, 224, 224)), mg.zeros((64, 3, 7, 7)), stride=2, padding=3)
    assert flops(tape[-1]) == 64 * 112 * 112 * 3 * 7 * 7 == 118_013_952


def test_a_sequence_costs_what_the_image_of_one_row_does():
    with mg.Tape() as tape:
        mg.conv1d(mg.ones((2, 3, 10)), mg.ones((4, 3, 5)))
    assert sum(map(flops, tape)) == 2 * 4 * 6 * 3 * 5  # the views around the convolution are free


@pytest.mark.parametrize("queries, keys", [(4, 4), (3, 5), (6, 2), (1, 1)])
@pytest.mark.parametrize("is_causal", [False, True])
def test_attention_costs_two_products_and_a_softmax_of_each_score_that_counts(queries, keys, is_causal):
    pairs = [(i, j) for i, j in itertools.product(range(queries), range(keys)) if j <= i or not is_causal]
    cost = cost_of(
        "scaled_dot_product_attention", (2, 3, queries, 8), (2, 3, keys, 8), (2, 3, keys, 5), is_causal=is_causal
    )
    assert cost == 2 * 3 * len(pairs) * (8 + 5 + FUNCTION + 4)


# ---- The rest --------------------------------------------------------------------------------------------


def test_an_op_without_a_rule_costs_the_elements_it_reads_and_writes():
    assert cost_of("add", (2, 3), (3,)) == 6 + 3 + 6
    assert cost_of("sum", (2, 3), axis=1) == 6 + 2
    assert flops((mg.ones(4, requires_grad=True) * 2.5).node) == 4 + 4  # a number is part of the program


def test_a_function_is_dearer_than_an_addition_and_a_gelu_dearer_than_a_tanh():
    shape = (5, 5)
    costs = [cost_of("add", shape, shape), cost_of("tanh", shape), cost_of("softmax", shape), cost_of("gelu", shape)]
    assert costs == sorted(costs) and len(set(costs)) == 4
    assert cost_of("gelu", shape, approximate="tanh") == cost_of("tanh", shape)


def test_an_error_function_costs_a_multiply_add_for_each_coefficient_and_two_exponentials():
    assert ERF == sum(len(row) for quotient in (NEAR, MIDDLE, FAR) for row in quotient) + 2 * FUNCTION == 56


def test_per_byte_of_float32_a_product_costs_a_quarter_of_its_inner_length_and_an_addition_less_than_one():
    a = mg.ones((8, 64), requires_grad=True)
    product, total = (a @ mg.ones((64, 16))).node, (a + a).node
    assert flops(product) / product.nbytes == 64 / 4 and flops(total) / total.nbytes == 0.75


def test_a_view_is_free_and_a_copy_is_not():
    x = mg.ones((4, 3), requires_grad=True)
    views = [x.T, x.reshape(12), x[1:], x[0, ..., None], x[:, 1], x.unsqueeze(0), mg.broadcast_to(x, 2, 4, 3)]
    assert [flops(view.node) for view in views] == [0] * len(views)
    assert flops(x[[0, 2]].node) == flops(x[mg.tensor([0, 2])].node) == 12


def test_an_embedding_costs_what_it_reads_not_what_the_table_holds():
    table = mg.ones((50_000, 8), requires_grad=True)
    assert flops(mg.embedding(mg.tensor([1, 2, 3]), table).node) == 2 * 3 * 8


def test_a_sort_costs_n_log_n():
    assert cost_of("sort", (3, 16)) == 3 * 16 * 4
    assert cost_of("sort", (16, 3), axis=0) == 3 * 16 * 4


def test_an_op_of_ones_own_costs_its_elements_even_if_it_is_called_matmul():
    @mg.op
    def matmul(a, b):
        return a @ b

    @matmul.vjp("a")
    def matmul_wrt_a(g, b):
        return g @ b.T

    a = mg.ones((2, 3), requires_grad=True)
    assert flops(matmul(a, mg.ones((3, 4))).node) == 6 + 12 + 8


def test_a_leaf_is_free_and_a_checkpoint_costs_its_body_however_deep():
    x, w = mg.ones((2, 3), requires_grad=True), mg.ones((3, 3))

    def twice(t):
        return mg.checkpoint(inner, t) @ w

    def inner(t):
        return mg.tanh(t @ w)

    assert flops(x.node) == 0
    plain = 2 * 2 * 3 * 3 + flops(mg.tanh(x).node)
    assert flops(mg.checkpoint(twice, x).node) == plain


def test_checkpoints_in_checkpoints_are_counted_without_recursion():
    line = mg.exp(mg.ones(2, requires_grad=True)).node
    deep = line
    for _ in range(5000):
        deep = SimpleNamespace(body=SimpleNamespace(lines=[deep]))
    assert flops(deep) == flops(line) == 2 + 2 + 2 * FUNCTION


# ---- The formula for a transformer's layer -------------------------------------------------------------


@pytest.mark.parametrize("s, b, h, a", [(2048, 1, 12288, 96), (2048, 4, 6144, 64), (24, 2, 16, 4), (1, 1, 1, 1)])
def test_the_formula_adds_up_what_the_paper_lists(s, b, h, a):
    """Section 4.1: 2 bytes a number, 1 for each element of a dropout mask."""
    row, square = s * b * h, a * s * s * b
    attention = {"input of q, k, v": 2 * row, "q and k": 4 * row, "v": 2 * row, "projection": 2 * row, "mask": row}
    core = {"softmax": 2 * square, "mask": square, "dropped out": 2 * square}
    mlp = {"first linear": 2 * row, "gelu": 8 * row, "second linear": 8 * row, "mask": row}
    norms = 2 * 2 * row
    kept = sum(attention.values()) + sum(mlp.values()) + norms
    assert transformer_layer_bytes(s, b, h, a) == kept + sum(core.values())
    assert transformer_layer_bytes(s, b, h, a, "attention") == kept
    assert transformer_layer_bytes(s, b, h, a, "everything") == 2 * row


def test_of_gpt_3_seventy_percent_are_in_the_attention_core():
    sizes = dict(sequence=2048, batch=1, hidden=12288, heads=96)
    kept = transformer_layer_bytes(**sizes, recompute="attention") / transformer_layer_bytes(**sizes)
    assert kept == 34 / (34 + 80) and round(1 - kept, 2) == 0.70


def test_there_are_three_things_to_recompute():
    with pytest.raises(mg.ArgumentError, match="or \"everything\", not 'scores'"):
        transformer_layer_bytes(1, 1, 1, 1, "scores")
