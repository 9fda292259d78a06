"""Containers of modules, as lists: what is taken away, put in, and added keeps its order and its names."""

import zipfile

import numpy as np
import pytest

import minigrad as mg
from minigrad import nn, optim


def kinds(container):
    return [type(module).__name__ for module in container]


@pytest.mark.parametrize("kind", [nn.Sequential, nn.ModuleList])
def test_what_is_added_to_a_part_replaces_nothing(kind):
    modules = nn.Linear(2, 2), nn.Tanh(), nn.ReLU()
    whole = kind(*modules) if kind is nn.Sequential else kind(modules)
    tail = whole[1:]
    tail.append(nn.Sigmoid())
    assert kinds(tail) == ["Tanh", "ReLU", "Sigmoid"] and kinds(whole) == ["Linear", "Tanh", "ReLU"]


def test_insert_del_and_pop_are_those_of_a_list():
    model, plain = nn.Sequential(nn.Tanh(), nn.ReLU()), ["Tanh", "ReLU"]
    for index, module in ((0, nn.Sigmoid()), (-1, nn.GELU()), (9, nn.SiLU())):
        model.insert(index, module)
        plain.insert(index, type(module).__name__)
        assert kinds(model) == plain
    del model[1]
    del plain[1]
    assert kinds(model) == plain and type(model.pop()).__name__ == plain.pop()
    del model[0:2]
    del plain[0:2]
    assert kinds(model) == plain
    with pytest.raises(mg.IndexingError):
        del model[5]


def test_the_names_of_parameters_follow():
    model = nn.Sequential(nn.Linear(1, 2), nn.Linear(2, 3), nn.Linear(3, 4))
    del model[0]
    assert list(model.state_dict()) == ["0.weight", "0.bias", "1.weight", "1.bias"]
    model.insert(0, nn.Linear(1, 2))
    assert [p.shape for name, p in model.named_parameters() if name.endswith("weight")] == [(2, 1), (3, 2), (4, 3)]


def test_a_handle_takes_off_its_own_hook_once():
    x, calls = mg.tensor([1.0], requires_grad=True), []

    def hook(g):
        calls.append(1)

    first, second = x.register_hook(hook), x.register_hook(hook)
    first.remove()
    first.remove()
    (x * 2).sum().backward()
    assert len(calls) == 1
    second.remove()
    (x * 2).sum().backward()
    assert len(calls) == 1


# ---- States of optimizers ----------------------------------------------------------------------------


def group(**settings):
    return {"params": [0], "lr": 0.1, "momentum": 0, "dampening": 0, "weight_decay": 0, "nesterov": False, **settings}


@pytest.mark.parametrize("make", [optim.SGD, optim.Adam, optim.AdamW, optim.RMSprop])
def test_maximize_goes_uphill_and_is_loaded(make):
    down, up, loaded = (mg.tensor([1.0], requires_grad=True) for _ in range(3))
    optimizers = make([down], lr=0.1, weight_decay=0), make([up], lr=0.1, weight_decay=0, maximize=True), make([loaded])
    optimizers[2].load_state_dict(optimizers[1].state_dict())
    for w, optimizer in zip((down, up, loaded), optimizers, strict=True):
        w.grad = mg.tensor([1.0])
        optimizer.step()
    assert up.item() - 1 == pytest.approx(1 - down.item(), rel=1e-5) and up.item() > 1 and loaded.item() == up.item()


def test_amsgrad_divides_by_the_largest_square():
    plain, ams = (mg.tensor([1.0], requires_grad=True) for _ in range(2))
    b1, b2, lr, eps = 0.9, 0.999, 0.1, 1e-8
    m = v = top = 0.0
    expected = 1.0
    optimizers = optim.Adam([plain], lr=lr), optim.Adam([ams], lr=lr, amsgrad=True)
    for t, g in enumerate((3.0, 0.1, 0.1, -0.2), 1):
        for w, optimizer in zip((plain, ams), optimizers, strict=True):
            w.grad = mg.tensor([g])
            optimizer.step()
        m, v = b1 * m + (1 - b1) * g, b2 * v + (1 - b2) * g * g
        top = max(top, v)
        expected -= lr / (1 - b1**t) * m / ((top / (1 - b2**t)) ** 0.5 + eps)
    assert ams.item() == pytest.approx(expected, rel=1e-5)


def test_a_setting_that_an_optimizer_does_not_have_is_refused_by_name():
    w = mg.tensor([1.0], requires_grad=True)
    optimizer = optim.SGD([w], lr=0.5)
    with pytest.raises(optim.OptimizerError, match="amsgrad=True"):
        optimizer.load_state_dict({"state": {}, "param_groups": [group(amsgrad=True)]})
    assert optimizer.param_groups[0]["lr"] == 0.5
    optimizer.load_state_dict({"state": {}, "param_groups": [group(amsgrad=False, foreach=None, fused=True)]})
    assert optimizer.param_groups[0]["lr"] == 0.1


@pytest.mark.parametrize("make, missing", [(optim.Adam, "exp_avg_sq"), (optim.RMSprop, "square_avg")])
def test_a_state_without_what_a_step_needs_is_refused_when_it_is_loaded(make, missing):
    w = mg.tensor([1.0], requires_grad=True)
    optimizer = make([w])
    w.grad = mg.tensor([1.0])
    optimizer.step()
    state, before = optimizer.state_dict(), dict(optimizer.state[w])
    del state["state"][0][missing]
    with pytest.raises(optim.OptimizerError, match=missing):
        optimizer.load_state_dict(state)
    assert optimizer.state[w] == before


def test_a_schedule_made_after_loading_starts_from_the_first_rate():
    w = mg.tensor([1.0], requires_grad=True)
    first = optim.SGD([w], lr=1.0)
    optim.lr_scheduler.StepLR(first, 1, 0.1).step()
    second = optim.SGD([w], lr=1.0)
    second.load_state_dict(first.state_dict())
    assert optim.lr_scheduler.StepLR(second, 1, 0.1).base_lrs == [1.0]


def test_an_exponential_rate():
    w = mg.tensor([1.0], requires_grad=True)
    optimizer = optim.SGD([w], lr=2.0)
    schedule = optim.lr_scheduler.ExponentialLR(optimizer, 0.5)
    rates = []
    for _ in range(4):
        rates.append(optimizer.param_groups[0]["lr"])
        schedule.step()
    assert rates == [2.0, 1.0, 0.5, 0.25]


def test_clipping_each_number():
    a, b = mg.tensor([0.0, 0.0, 0.0], requires_grad=True), mg.tensor([0.0], requires_grad=True)
    a.grad = mg.tensor([3.0, -4.0, 0.5])
    optim.clip_grad_value_([a, b], 2)
    assert a.grad.tolist() == [2.0, -2.0, 0.5] and b.grad is None
    with pytest.raises(optim.OptimizerError):
        optim.clip_grad_value_([a], -1)


# ---- Other modules -----------------------------------------------------------------------------------


def test_modules_by_name():
    choices = nn.ModuleDict({"a": nn.Linear(1, 2), "b": nn.Tanh()})
    choices["c"] = nn.Linear(2, 3)
    assert list(choices) == ["a", "b", "c"] and len(choices) == 3 and "b" in choices and choices.keys() == list(choices)
    assert list(choices.state_dict()) == ["a.weight", "a.bias", "c.weight", "c.bias"]
    assert type(choices.pop("b")) is nn.Tanh and kinds(choices.values()) == ["Linear", "Linear"]
    choices["a"] = nn.ReLU()
    assert [type(module).__name__ for _, module in choices.items()] == ["ReLU", "Linear"]
    with pytest.raises(mg.IndexingError, match="there are a, c"):
        choices["b"]
    for name in ("forward", "keys", "a.b", "", "training"):
        with pytest.raises(mg.ArgumentError):
            choices[name] = nn.Tanh()


@pytest.mark.parametrize("groups", [1, 2, 6])
@pytest.mark.parametrize("shape", [(3, 6), (2, 6, 4), (2, 6, 3, 5)])
def test_groups_of_channels_are_standardized_each_by_itself(groups, shape):
    rng = np.random.default_rng(0)
    layer, values = nn.GroupNorm(groups, 6, dtype="float64"), rng.standard_normal(shape) * 3 + 1
    layer.weight.assign_(rng.standard_normal(6))
    layer.bias.assign_(rng.standard_normal(6))
    grouped = values.reshape(shape[0], groups, -1)
    plain = (grouped - grouped.mean(-1, keepdims=True)) / np.sqrt(grouped.var(-1, keepdims=True) + layer.eps)
    channels = (1, 6) + (1,) * (len(shape) - 2)
    expected = plain.reshape(shape) * layer.weight.data.reshape(channels) + layer.bias.data.reshape(channels)
    np.testing.assert_allclose(layer(mg.tensor(values)).numpy(), expected, rtol=1e-9, atol=1e-12)
    if groups == 2:
        assert mg.gradcheck(layer, [mg.tensor(values, requires_grad=True)])


def test_groups_must_divide_the_channels():
    with pytest.raises(mg.ShapeError):
        nn.GroupNorm(4, 6)
    with pytest.raises(mg.ShapeError):
        nn.GroupNorm(2, 6)(mg.ones(2, 4))


@pytest.mark.parametrize("checkpointed", [False, True])
def test_forward_hooks_see_and_replace_what_goes_in_and_out(checkpointed):
    model, calls = nn.Sequential(nn.Tanh(), nn.Sigmoid()), []

    def before(module, args):
        calls.append(("before", type(module).__name__, args[0].shape))
        return args[0] * 2

    def after(module, args, output):
        calls.append(("after", type(module).__name__, output.shape))
        return output + 1

    handles = model[0].register_forward_pre_hook(before), model.register_forward_hook(after)
    x = mg.tensor([0.5, 0.25], requires_grad=True)
    y = mg.checkpoint(model, x) if checkpointed else model(x)
    np.testing.assert_allclose(y.numpy(), 1 / (1 + np.exp(-np.tanh(2 * x.data))) + 1, rtol=1e-6)
    y.sum().backward()
    assert calls == [("before", "Tanh", (2,)), ("after", "Sequential", (2,))]
    for handle in handles:
        handle.remove()
        handle.remove()
    np.testing.assert_allclose(model(x).numpy(), 1 / (1 + np.exp(-np.tanh(x.data))), rtol=1e-6)
    assert len(calls) == 2


def test_a_compressed_file_is_not_expanded(tmp_path):
    path = tmp_path / "state.npz"
    mg.save({"w": mg.zeros(1000)}, path)
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    with zipfile.ZipFile(tmp_path / "bomb.npz", "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    assert mg.load(path)["w"].shape == (1000,)
    with pytest.raises(mg.FileError, match="compressed"):
        mg.load(tmp_path / "bomb.npz")
