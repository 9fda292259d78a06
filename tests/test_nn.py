"""Modules: the tree of parameters and its paths, state dicts, modes, and the layers' arithmetic."""

import copy
import gc
import pickle
import threading
import weakref

import numpy as np
import pytest

import minigrad as mg
from minigrad import nn
from minigrad.engine.modes import local


class Block(nn.Module):
    """A module with children, a parameter of its own, and a buffer."""

    def __init__(self, width):
        self.up = nn.Linear(width, 2 * width)
        self.down = nn.Linear(2 * width, width, bias=False)
        self.scale = nn.Parameter(mg.ones(width))
        self.register_buffer("steps", mg.tensor([0]))

    def forward(self, x):
        return x + self.down(mg.tanh(self.up(x))) * self.scale


class Model(nn.Module):
    def __init__(self, width=3, depth=2):
        self.blocks = nn.ModuleList([Block(width) for _ in range(depth)])
        self.head = nn.Sequential(nn.Linear(width, 2), nn.Tanh())

    def forward(self, x):
        for block in self.blocks:
            x = block(x)
        return self.head(x)


class Probe(nn.Module):
    """Writes down the path that is running when it is called."""

    def __init__(self, fail=False):
        self.fail, self.seen = fail, []

    def forward(self, x):
        self.seen.append(local.context.layer)
        if self.fail:
            raise RuntimeError("no")
        return x


# ---- The tree ----------------------------------------------------------------------------------------


def test_parameters_are_found_by_their_dotted_names_in_the_order_of_assignment():
    names = [name for name, _ in Model(depth=1).named_parameters()]
    assert names == [
        "blocks.0.scale",
        "blocks.0.up.weight",
        "blocks.0.up.bias",
        "blocks.0.down.weight",
        "head.0.weight",
        "head.0.bias",
    ]


def test_a_tied_parameter_is_yielded_once_and_stands_twice_in_the_state():
    class Tied(nn.Module):
        def __init__(self):
            self.embed = nn.Embedding(5, 3)
            self.head = nn.Linear(3, 5, bias=False)
            self.head.weight = self.embed.weight

    model = Tied()
    assert [name for name, _ in model.named_parameters()] == ["embed.weight"]
    assert list(model.state_dict()) == ["embed.weight", "head.weight"]
    mg.optim.SGD(model.parameters(), lr=1.0)  # which would refuse one that is given twice


def test_a_shared_module_is_one_module_and_runs_at_each_of_its_places():
    act = Probe()
    model = nn.Sequential(act, nn.Identity(), act)
    model(mg.ones(1))
    assert len(act.seen) == 2 and len(list(model.modules())) == 3
    assert list(dict(model.named_children())) == ["0", "1"]


def test_super_init_may_be_called_or_forgotten():
    class Called(nn.Module):
        def __init__(self):
            super().__init__()
            self.w = nn.Parameter([1.0])

    class Forgotten(nn.Module):
        def __init__(self):
            self.w = nn.Parameter([1.0])

    assert len(list(Called().parameters())) == len(list(Forgotten().parameters())) == 1


def test_an_attribute_that_is_replaced_or_deleted_is_no_parameter_any_more():
    layer = nn.Linear(2, 2)
    layer.bias = None
    assert [name for name, _ in layer.named_parameters()] == ["weight"]
    del layer.weight
    assert list(layer.parameters()) == []


def test_a_plain_tensor_in_the_place_of_a_parameter_is_refused():
    layer = nn.Linear(2, 2)
    with pytest.raises(mg.ArgumentError, match="nn.Parameter"):
        layer.weight = mg.ones(2, 2)
    layer.weight = nn.Parameter(mg.ones(2, 2))
    assert layer.weight.name == "weight"


def test_a_module_cannot_hold_what_holds_it():
    parent, child = nn.Module(), nn.Module()
    parent.child = child
    with pytest.raises(mg.ArgumentError, match="circle"):
        child.parent = parent
    assert not hasattr(child, "parent")
    with pytest.raises(mg.ArgumentError, match="circle"):
        parent.me = parent


def test_named_modules_begin_with_the_module_itself():
    assert [name for name, _ in Model(depth=1).named_modules()] == [
        "", "blocks", "blocks.0", "blocks.0.up", "blocks.0.down", "head", "head.0", "head.1"
    ]  # fmt: skip


def test_apply_visits_children_first_and_each_kind():
    seen = []
    model = Model(depth=1)
    assert model.apply(lambda module: seen.append(type(module).__name__)) is model
    assert seen == ["Linear", "Linear", "Block", "ModuleList", "Linear", "Tanh", "Sequential", "Model"]


def test_a_module_without_forward_says_so():
    with pytest.raises(mg.MinigradError, match="forward"):
        nn.Module()(1)


def test_repr_shows_the_tree_and_counts_repeats():
    assert repr(Model(depth=3)) == (
        "Model(\n"
        "  (blocks): ModuleList(\n"
        "    (0-2): 3 x Block(\n"
        "      (up): Linear(in_features=3, out_features=6, bias=True)\n"
        "      (down): Linear(in_features=6, out_features=3, bias=False)\n"
        "    )\n"
        "  )\n"
        "  (head): Sequential(\n"
        "    (0): Linear(in_features=3, out_features=2, bias=True)\n"
        "    (1): Tanh()\n"
        "  )\n"
        ")"
    )


# ---- Paths -------------------------------------------------------------------------------------------


def test_a_parameters_name_is_its_path_in_the_outermost_module():
    model = Model()
    for path, parameter in model.named_parameters():
        assert parameter.name == path
    outer = nn.Module()
    outer.inner = model
    for path, parameter in outer.named_parameters():
        assert parameter.name == path and path.startswith("inner.")


def test_an_overwritten_parameter_is_called_by_its_path():
    model = Model()
    loss = model(mg.ones(1, 3)).sum()
    model.blocks[1].down.weight.assign_(model.blocks[1].down.weight.data * 2)
    with pytest.raises(mg.OverwrittenError, match=r"parameter blocks\.1\.down\.weight was overwritten"):
        loss.backward()


def test_nodes_carry_the_path_of_the_running_layers():
    model = Model(depth=1)
    layers = [node.layer for node in mg.tape(model(mg.ones(1, 3))) if node.op is not None]
    assert layers == [
        "blocks.0.up", "blocks.0", "blocks.0.down", "blocks.0", "blocks.0", "head.0", "head.1"
    ]  # fmt: skip


def test_the_path_is_restored_when_a_layer_fails():
    probe = Probe(fail=True)
    model = nn.Sequential(nn.Sequential(probe))
    for _ in range(2):
        with pytest.raises(RuntimeError, match="no"):
            model(mg.ones(1))
        assert local.context.layer == ""
    assert probe.seen == ["0.0", "0.0"]


def test_a_checkpoint_schedule_names_the_layers_as_a_plain_run_does():
    def layers_of(checkpoint):
        mg.manual_seed(0)
        model = nn.Module()
        model.body = nn.Sequential(
            *[nn.Sequential(Probe(), nn.Tanh()) for _ in range(4)], checkpoint=checkpoint
        )
        model.forward = lambda x: model.body(x)
        model(mg.tensor([1.0], requires_grad=True))
        return [layer[0].seen for layer in model.body]

    assert layers_of(None) == layers_of(2) == [[f"body.{i}.0"] for i in range(4)]


def test_modules_that_nobody_owns_continue_the_path_of_the_layer_they_run_in():
    probes = [nn.Sequential(Probe()) for _ in range(3)]
    mg.checkpoint_sequential(probes, 3, mg.tensor([1.0], requires_grad=True))
    assert [layer[0].seen for layer in probes] == [["0.0"], ["1.0"], ["2.0"]]


def test_the_path_belongs_to_the_thread():
    model, other, seen = nn.Sequential(nn.Module()), nn.Sequential(Probe()), []

    def look(x):
        thread = threading.Thread(target=lambda: other[0](x))
        thread.start()
        thread.join()
        seen.append(local.context.layer)
        return x

    model[0].forward = look
    mg.checkpoint_sequential([model], mg.schedules.store_all(), mg.ones(1))
    assert seen == ["0.0"] and other[0].seen == ["0"]


# ---- Parameters and buffers --------------------------------------------------------------------------


def test_a_parameter_requires_a_gradient_and_is_one_also_when_frozen():
    parameter = nn.Parameter(mg.ones(2))
    assert parameter.requires_grad and parameter.node.role == "parameter"
    parameter.requires_grad_(False)
    assert parameter.node.role == "parameter"
    parameter.assign_([3.0, 4.0])
    assert parameter.node.role == "parameter" and not parameter.requires_grad
    frozen = nn.Parameter(mg.ones(2), requires_grad=False)
    frozen.assign_([1.0, 2.0])
    assert frozen.node.role == "parameter" and frozen.tolist() == [1.0, 2.0]


def test_a_parameter_of_integers_must_be_frozen():
    with pytest.raises(mg.DtypeError):
        nn.Parameter(mg.tensor([1, 2]))
    assert nn.Parameter(mg.tensor([1, 2]), requires_grad=False).dtype == np.int64


def test_a_parameter_made_of_a_result_is_a_leaf_with_its_value():
    w = mg.tensor([1.0, 2.0], requires_grad=True)
    parameter = nn.Parameter(w * 2)
    assert parameter.is_leaf and parameter.tolist() == [2.0, 4.0]
    (parameter * parameter).sum().backward()
    assert w.grad is None and parameter.grad.tolist() == [4.0, 8.0]


def test_a_parameter_owns_its_memory():
    large = mg.ones(100, 100)
    assert nn.Parameter(large[3]).data.base is None
    data = np.ones(3)
    parameter = nn.Parameter(data)
    data[:] = 7
    assert parameter.tolist() == [1.0, 1.0, 1.0]


def test_buffers_are_state_but_no_parameters():
    model = Model(depth=1)
    assert [name for name, _ in model.named_buffers()] == ["blocks.0.steps"]
    assert "blocks.0.steps" in model.state_dict()
    model.blocks[0].steps = model.blocks[0].steps + 1
    assert model.state_dict()["blocks.0.steps"].tolist() == [1]
    model.register_buffer("scratch", mg.ones(2), persistent=False)
    assert "scratch" not in model.state_dict() and "scratch" in dict(model.named_buffers())
    with pytest.raises(mg.ArgumentError):
        model.register_buffer("bad", [1.0])


def test_zero_grad_forgets_and_freezing_stops_gradients():
    model = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 1))
    model[0].requires_grad_(False)
    model(mg.ones(1, 2)).sum().backward()
    assert model[0].weight.grad is None and model[1].weight.grad is not None
    model.zero_grad(set_to_none=False)
    assert model[1].weight.grad.tolist() == [[0.0, 0.0]]
    model.zero_grad()
    assert model[1].weight.grad is None


def test_copies_and_pickles_are_independent_and_keep_ties_names_and_modes():
    model = Model(depth=1).eval()
    model.again = model.head[0].weight
    model.again.grad = mg.ones(2, 3)
    for twin in (copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        assert twin.again is twin.head[0].weight and twin.again is not model.again
        assert isinstance(twin.again, nn.Parameter) and twin.again.requires_grad
        assert {p.name for p in twin.parameters()} == {p.name for p in model.parameters()}
        assert not twin.head.training and twin.again.grad is None
        twin.again.assign_(twin.again.data + 1)
        assert not np.array_equal(twin.again.numpy(), model.again.numpy())
        twin(mg.ones(1, 3)).sum().backward()
        assert twin.again.grad is not None and model.again.grad.tolist() == [[1.0] * 3] * 2


def test_a_model_dies_without_the_cycle_collector():
    model = Model()
    model(mg.ones(1, 3)).sum().backward()
    gone = weakref.ref(model), weakref.ref(model.head[0].weight)
    del model
    assert not gc.isenabled() and [ref() for ref in gone] == [None, None]


# ---- Modes and devices -------------------------------------------------------------------------------


def test_train_and_eval_reach_every_module():
    model = Model()
    assert model.eval() is model and not any(module.training for module in model.modules())
    assert model.train() is model and all(module.training for module in model.modules())


def test_to_a_device_that_is_not_there_moves_nothing():
    model = Model(depth=1)
    before = [p.data for p in model.parameters()]
    assert model.to("cpu") is model
    with pytest.raises(mg.DeviceError):
        model.to("abacus")
    assert all(p.data is array for p, array in zip(model.parameters(), before, strict=True))


# ---- State dicts -------------------------------------------------------------------------------------


def test_a_state_dict_holds_copies_and_loads_back():
    model, twin = Model(), Model()
    state = model.state_dict()
    assert twin.load_state_dict(state) == ([], [])
    for name, array in twin.state_dict().items():
        np.testing.assert_array_equal(array, state[name])
    state["head.0.bias"][:] = 7
    assert 7 not in model.state_dict()["head.0.bias"] and 7 not in twin.state_dict()["head.0.bias"]


def test_loading_keeps_the_parameter_objects_and_their_dtype():
    layer = nn.Linear(2, 2)
    weight = layer.weight
    layer.load_state_dict({"weight": np.eye(2, dtype=np.float64), "bias": [1, 2]})
    assert layer.weight is weight and weight.dtype == np.float32 and weight.requires_grad
    assert weight.tolist() == [[1.0, 0.0], [0.0, 1.0]] and layer.bias.tolist() == [1.0, 2.0]


def test_a_state_that_does_not_fit_changes_nothing_and_every_fault_is_named():
    model = Model(depth=1)
    before = model.state_dict()
    state = {name: array + 1 for name, array in before.items()}
    del state["blocks.0.scale"], state["head.0.bias"]
    state["blocks.0.up.weight"] = np.ones((2, 2))
    state["blocks.0.steps"] = np.array([0.5])
    state["extra"] = state["more"] = np.ones(1)
    with pytest.raises(mg.ShapeError) as caught:
        model.load_state_dict(state)
    text = str(caught.value)
    for name in ("blocks.0.scale", "head.0.bias", "extra", "more", "blocks.0.steps"):
        assert name in text, text
    assert "blocks.0.up.weight: shape (2, 2) given, (6, 3) needed" in text
    for name, array in model.state_dict().items():
        np.testing.assert_array_equal(array, before[name])


def test_missing_and_unexpected_keys_alone_are_a_runtime_error_and_strict_false_ignores_them():
    model = nn.Linear(2, 2)
    before = model.weight.data
    with pytest.raises(mg.MinigradError, match="bias: missing") as caught:
        model.load_state_dict({"weight": np.ones((2, 2)), "other": 1})
    assert model.weight.data is before
    assert isinstance(caught.value, RuntimeError) and "other: not in this module" in str(caught.value)
    result = model.load_state_dict({"weight": np.ones((2, 2)), "other": 1}, strict=False)
    assert result.missing_keys == ["bias"] and result.unexpected_keys == ["other"]
    assert model.weight.tolist() == [[1.0, 1.0], [1.0, 1.0]]
    with pytest.raises(mg.ShapeError):
        model.load_state_dict({"weight": np.ones(3)}, strict=False)


# ---- Containers --------------------------------------------------------------------------------------


def test_sequential_is_a_sequence():
    layers = [nn.Linear(2, 2), nn.Tanh(), nn.Linear(2, 2), nn.ReLU()]
    model = nn.Sequential(*layers)
    assert len(model) == 4 and list(model) == layers
    assert model[0] is layers[0] and model[-1] is layers[3]
    part = model[1:3]
    assert isinstance(part, nn.Sequential) and list(part) == layers[1:3]
    assert [name for name, _ in model.named_parameters()] == [p.name for p in model.parameters()]
    assert model.append(nn.Tanh()) is model and len(model) == 5
    model[1] = nn.Sigmoid()
    assert type(model[1]) is nn.Sigmoid and [type(m).__name__ for m in model][1] == "Sigmoid"
    for index in (5, -6):
        with pytest.raises(IndexError):
            model[index]


def test_sequential_of_names():
    model = nn.Sequential({"first": nn.Linear(2, 3), "act": nn.Tanh()})
    assert [name for name, _ in model.named_children()] == ["first", "act"]
    assert model(mg.ones(1, 2)).shape == (1, 3)
    with pytest.raises(mg.ArgumentError, match="forward"):
        nn.Sequential({"forward": nn.Tanh()})


def test_containers_take_modules_only():
    with pytest.raises(mg.ArgumentError, match="Module"):
        nn.Sequential(mg.tanh)
    with pytest.raises(mg.ArgumentError, match="Module"):
        nn.ModuleList([1])


def test_a_checkpointed_sequential_gives_the_same_bits_and_holds_less(same_bits):
    def run(checkpoint):
        mg.manual_seed(1)
        model = nn.Sequential(
            *[m for _ in range(8) for m in (nn.Linear(4, 4), nn.Tanh())], checkpoint=checkpoint
        )
        model.append(nn.Dropout(0.5))
        with mg.Tracer() as tracer:
            model(mg.randn(3, 4)).sum().backward()
        return [p.grad.numpy() for p in model.parameters()], tracer

    plain, plain_tracer = run(None)
    replayed, tracer = run(mg.schedules.uniform(4))
    same_bits(plain, replayed)
    assert tracer.replayed_ops > 0 and tracer.peak_activations < plain_tracer.peak_activations


# ---- Layers ------------------------------------------------------------------------------------------


def test_linear_is_x_w_transposed_plus_b():
    layer = nn.Linear(3, 2)
    x = np.random.default_rng(0).standard_normal((4, 5, 3)).astype(np.float32)
    expected = x @ layer.weight.numpy().T + layer.bias.numpy()
    np.testing.assert_allclose(layer(mg.tensor(x)).numpy(), expected, rtol=1e-5, atol=1e-6)
    bare = nn.Linear(3, 2, bias=False)
    np.testing.assert_allclose(bare(mg.tensor(x)).numpy(), x @ bare.weight.numpy().T, rtol=1e-5, atol=1e-6)
    assert bare.bias is None and bare.state_dict().keys() == {"weight"}


def test_linear_begins_uniform_in_one_over_the_root_of_its_inputs():
    layer = nn.Linear(400, 300)
    for parameter in (layer.weight, layer.bias):
        values = parameter.numpy()
        assert np.abs(values).max() <= 1 / 20 and np.abs(values).max() > 0.9 / 20
        assert abs(values.mean()) < 0.01 and abs(values.std() - 1 / 20 / np.sqrt(3)) < 0.003
    mg.manual_seed(5)
    first = nn.Linear(3, 3).weight.numpy()
    mg.manual_seed(5)
    np.testing.assert_array_equal(first, nn.Linear(3, 3).weight.numpy())


def test_an_embedding_looks_up_rows_and_its_padding_stays_zero():
    table = nn.Embedding(4, 3, padding_idx=-1)
    assert table.padding_idx == 3 and not table.weight.numpy()[3].any()
    ids = mg.tensor([[0, 1, 3], [1, 1, 3]])
    out = table(ids)
    np.testing.assert_array_equal(out.numpy(), table.weight.numpy()[ids.numpy()])
    out.sum().backward()
    assert table.weight.grad.tolist() == [[1.0] * 3, [3.0] * 3, [0.0] * 3, [0.0] * 3]
    with pytest.raises(mg.ArgumentError, match="row"):
        nn.Embedding(4, 3, padding_idx=4)


def test_dropout_drops_in_training_and_is_nothing_in_eval():
    layer = nn.Dropout(0.25)
    x = mg.ones(200, 50)
    values = layer(x).numpy()
    np.testing.assert_allclose(np.unique(values), [0, 1 / 0.75])
    assert abs((values == 0).mean() - 0.25) < 0.02
    assert not np.array_equal(values, layer(x).numpy())
    assert layer.eval()(x) is x
    with pytest.raises(mg.ArgumentError):
        nn.Dropout(1.5)


ACTIVATIONS = {
    "Tanh": np.tanh,
    "ReLU": lambda x: np.maximum(x, 0),
    "Sigmoid": lambda x: 1 / (1 + np.exp(-x)),
    "SiLU": lambda x: x / (1 + np.exp(-x)),
    "GELU": lambda x: x * np.array([0.022750132, 0.30853754, 0.5, 0.69146246, 0.97724987]),
}


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_activations(name):
    x = np.array([-2.0, -0.5, 0.0, 0.5, 2.0])
    np.testing.assert_allclose(getattr(nn, name)()(mg.tensor(x)).numpy(), ACTIVATIONS[name](x), rtol=1e-6)


def test_gelu_has_an_approximation():
    x = np.array([-1.0, 0.5, 3.0])
    expected = 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))
    np.testing.assert_allclose(nn.GELU(approximate="tanh")(mg.tensor(x)).numpy(), expected, rtol=1e-6)
    with pytest.raises(mg.ArgumentError):
        nn.GELU("sin")


def test_flatten_keeps_the_first_axis_and_identity_everything():
    x = mg.ones(2, 3, 4)
    assert nn.Flatten()(x).shape == (2, 12) and nn.Flatten(0, 1)(x).shape == (6, 4)
    assert nn.Identity()(x) is x


def test_the_public_names_are_all_there():
    assert all(hasattr(nn, name) for name in nn.__all__)


# ---- Against PyTorch ---------------------------------------------------------------------------------


@pytest.mark.oracle
def test_torch_loads_our_state_and_gives_the_same_outputs_and_gradients():
    torch = pytest.importorskip("torch")
    ours = nn.Sequential(nn.Linear(4, 6), nn.GELU(), nn.Linear(6, 3, bias=False), nn.SiLU(), nn.Flatten())
    theirs = torch.nn.Sequential(
        torch.nn.Linear(4, 6),
        torch.nn.GELU(),
        torch.nn.Linear(6, 3, bias=False),
        torch.nn.SiLU(),
        torch.nn.Flatten(),
    )
    theirs.load_state_dict({name: torch.from_numpy(array) for name, array in ours.state_dict().items()})
    x = np.random.default_rng(0).standard_normal((5, 4)).astype(np.float32)
    a, b = ours(mg.tensor(x)), theirs(torch.from_numpy(x))
    np.testing.assert_allclose(a.numpy(), b.detach().numpy(), rtol=1e-5, atol=1e-6)
    (a * a).sum().backward()
    (b * b).sum().backward()
    for (name, p), (their_name, q) in zip(ours.named_parameters(), theirs.named_parameters(), strict=True):
        assert name == their_name
        np.testing.assert_allclose(p.grad.numpy(), q.grad.numpy(), rtol=1e-4, atol=1e-5)


@pytest.mark.oracle
def test_we_load_torchs_state():
    torch = pytest.importorskip("torch")
    theirs = torch.nn.Sequential(torch.nn.Embedding(5, 4), torch.nn.Linear(4, 2))
    ours = nn.Sequential(nn.Embedding(5, 4), nn.Linear(4, 2))
    ours.load_state_dict(theirs.state_dict())
    ids = np.array([0, 3, 3])
    theirs_out = theirs(torch.from_numpy(ids)).detach().numpy()
    np.testing.assert_allclose(ours(mg.tensor(ids)).numpy(), theirs_out, rtol=1e-5, atol=1e-6)
