"""Every layer of mg.nn beside torch's: torch's state dict loaded into ours, and then values, and gradients of inputs
and parameters; the buffers (running statistics) too."""

import numpy as np
import torch

import minigrad as mg
from minigrad import nn
from tests.against_torch import in_dtype
from tests.op_samples import positive, real, whole
from tests.oracle.compare import Mismatch, Row, compare_outputs, flat, largest, pair_of_leaves

LAYERS = []
NOT_LAYERS = {"Module", "Parameter"}  # the classes that layers are made with


def layer(name, ours, theirs, *inputs, evaluate=False, run_ours=None, run_theirs=None):
    """One sample; run_ours(module, *inputs) and run_theirs, where they are not called alike."""
    LAYERS.append((name, ours, theirs, inputs, evaluate, run_ours, run_theirs))


def alike(name, *inputs, evaluate=False, **settings):
    """A layer whose arguments have the same names in both."""
    layer(name, getattr(nn, name)(**settings), getattr(torch.nn, name)(**settings), *inputs, evaluate=evaluate)


image = real(3, 4, 7, 6)
alike("Linear", real(5, 3), in_features=3, out_features=4)
alike("Linear", real(2, 5, 3), in_features=3, out_features=4, bias=False)
alike("Embedding", whole(0, 6, 3, 5), num_embeddings=6, embedding_dim=4)
alike("Embedding", whole(0, 3, 9), num_embeddings=3, embedding_dim=4, padding_idx=1)
alike("Dropout", real(4, 5), p=0.0)
alike("Dropout", real(4, 5), p=0.5, evaluate=True)
alike("Flatten", image)
alike("Flatten", image, start_dim=-2)
for name in ("Identity", "Tanh", "ReLU", "Sigmoid", "GELU", "SiLU"):
    alike(name, image)
alike("GELU", image, approximate="tanh")
for settings in ({}, {"stride": 2, "padding": 1}, {"padding": "same", "dilation": 2}, {"groups": 2, "bias": False}):
    alike("Conv1d", image[0], in_channels=7, out_channels=6, kernel_size=3, **{**settings, "groups": 1})
    alike("Conv2d", image, in_channels=4, out_channels=6, kernel_size=(3, 2), **settings)
alike("MaxPool2d", image, kernel_size=3, stride=2, padding=1)
alike("MaxPool2d", image, kernel_size=2, ceil_mode=True)
alike("AvgPool2d", image, kernel_size=3, stride=2, padding=1)
alike("AvgPool2d", image, kernel_size=3, padding=1, count_include_pad=False)
for settings in ({}, {"eps": 0.1, "bias": False}, {"elementwise_affine": False}):
    alike("LayerNorm", image, normalized_shape=(7, 6), **settings)
for settings in ({"num_groups": 1}, {"num_groups": 2, "eps": 0.1}, {"num_groups": 4, "affine": False}):
    alike("GroupNorm", image, num_channels=4, **settings)
alike("RMSNorm", image, normalized_shape=6)
alike("RMSNorm", image, normalized_shape=(7, 6), eps=0.1, elementwise_affine=False)
for settings in ({}, {"momentum": None, "eps": 0.1}, {"affine": False}, {"track_running_stats": False}):
    for evaluate in (False, True):
        alike("BatchNorm1d", image[0, :, :, 0], num_features=7, evaluate=evaluate, **settings)
        alike("BatchNorm1d", image[0], num_features=7, evaluate=evaluate, **settings)
        alike("BatchNorm2d", image, num_features=4, evaluate=evaluate, **settings)
for name in ("RNN", "LSTM", "GRU"):
    for settings in ({}, {"num_layers": 2, "bidirectional": True}, {"batch_first": True, "bias": False}):
        alike(name, real(6, 4, 3), input_size=3, hidden_size=5, **settings)
    alike(name, real(6, 3), input_size=3, hidden_size=5)
alike("RNN", real(6, 4, 3), input_size=3, hidden_size=5, nonlinearity="relu")
alike("RNN", real(6, 4, 3), real(1, 4, 5), input_size=3, hidden_size=5)
alike("GRU", real(6, 4, 3), real(2, 4, 5), input_size=3, hidden_size=5, bidirectional=True)


def with_pair(module, x, h, c):
    return module(x, (h, c))


sizes = dict(input_size=3, hidden_size=5)
start = (real(6, 4, 3), real(1, 4, 5), real(1, 4, 5))
layer("LSTM", nn.LSTM(**sizes), torch.nn.LSTM(**sizes), *start, run_ours=with_pair, run_theirs=with_pair)
for name in ("RNNCell", "GRUCell", "LSTMCell"):
    alike(name, real(4, 3), **sizes)
alike("GRUCell", real(3), real(5), bias=False, **sizes)
start = (real(4, 3), real(4, 5), real(4, 5))
layer("LSTMCell", nn.LSTMCell(**sizes), torch.nn.LSTMCell(**sizes), *start, run_ours=with_pair, run_theirs=with_pair)

# ---- Attention ---------------------------------------------------------------------------------------

CAUSAL = np.triu(np.ones((6, 6), bool), 1)
PADDING = np.arange(6) >= np.array([6, 4, 2])[:, None]


def attend(need_weights, **masks):
    """Run attention of three inputs, or of one with itself."""

    def run(module, *inputs):
        q, k, v = inputs if len(inputs) == 3 else inputs * 3
        make = mg.tensor if isinstance(module, nn.Module) else torch.tensor
        return module(q, k, v, need_weights=need_weights, **{name: make(mask) for name, mask in masks.items()})

    return run


for need_weights in (False, True):
    for masks in (
        {},
        {"attn_mask": CAUSAL},
        {"key_padding_mask": PADDING},
        {"attn_mask": CAUSAL, "key_padding_mask": PADDING},
    ):
        for settings in (dict(batch_first=True), dict(batch_first=True, bias=False)):
            layer(
                "MultiheadAttention",
                nn.MultiheadAttention(8, 2, **settings), torch.nn.MultiheadAttention(8, 2, **settings),
                real(3, 6, 8), run_ours=attend(need_weights, **masks), run_theirs=attend(need_weights, **masks),
            )  # fmt: skip
    layer(
        "MultiheadAttention", nn.MultiheadAttention(8, 2), torch.nn.MultiheadAttention(8, 2),
        real(4, 3, 8), real(6, 3, 8), real(6, 3, 8), run_ours=attend(need_weights), run_theirs=attend(need_weights),
    )  # fmt: skip


def encoder(activation="gelu", hidden=32):
    return torch.nn.TransformerEncoderLayer(
        8, 2, hidden, dropout=0.0, activation=activation, batch_first=True, norm_first=True
    )  # fmt: skip


def causal(module, x):
    return module(x, src_mask=torch.tensor(CAUSAL), is_causal=True)


layer("TransformerBlock", nn.TransformerBlock(8, 2), encoder(), real(3, 6, 8))
layer("TransformerBlock", nn.TransformerBlock(8, 2, 20, activation="relu"), encoder("relu", 20), real(3, 6, 8))
layer("TransformerBlock", nn.TransformerBlock(8, 2, causal=True), encoder(), real(3, 6, 8), run_theirs=causal)
layer(
    "TransformerBlock",
    nn.TransformerBlock(8, 2, causal=True),
    encoder(),
    real(3, 6, 8),
    run_theirs=causal,
    evaluate=True,
)

# ---- Containers --------------------------------------------------------------------------------------


def network(module):
    """Without a bias before the BatchNorm, whose gradient would be 0, and nothing but rounding in both."""
    return module.Sequential(
        module.Conv2d(4, 8, 3, padding=1, bias=False), module.BatchNorm2d(8), module.ReLU(), module.MaxPool2d(2),
        module.Flatten(), module.Linear(8 * 9, 10), module.GELU(), module.LayerNorm(10), module.Linear(10, 3),
    )  # fmt: skip


def in_order(modules, x):
    for module in modules:
        x = module(x)
    return x


layer("Sequential", network(nn), network(torch.nn), image)
layer("Sequential", network(nn), network(torch.nn), image, evaluate=True)
layer(
    "ModuleList",
    nn.ModuleList([nn.Linear(3, 4), nn.Tanh()]), torch.nn.ModuleList([torch.nn.Linear(3, 4), torch.nn.Tanh()]),
    real(5, 3), run_ours=in_order, run_theirs=in_order,
)  # fmt: skip


def named(module):
    return module.ModuleDict({"first": module.Linear(3, 4), "then": module.Tanh(), "last": module.Linear(4, 2)})


def by_name(modules, x):
    return modules["last"](modules["then"](modules["first"](x)))


layer("ModuleDict", named(nn), named(torch.nn), real(5, 3), run_ours=by_name, run_theirs=by_name)


# ---- Comparing ---------------------------------------------------------------------------------------


def compare_layers(ours, theirs, inputs, dtype, evaluate, run_ours, run_theirs):
    theirs, ours = theirs.to(getattr(torch, dtype)), in_dtype(ours, dtype)
    shake(theirs)
    ours.load_state_dict({key: value.numpy() for key, value in theirs.state_dict().items()})
    ours.train(not evaluate), theirs.train(not evaluate)
    pairs = [pair_of_leaves(x, dtype) for x in inputs]
    outs = flat(run_ours(ours, *[a for a, _ in pairs]) if run_ours else ours(*[a for a, _ in pairs]))
    expected = flat(run_theirs(theirs, *[b for _, b in pairs]) if run_theirs else theirs(*[b for _, b in pairs]))
    named = dict(theirs.named_parameters())
    if [name for name, _ in ours.named_parameters()] != list(named):
        raise Mismatch(f"parameters {[name for name, _ in ours.named_parameters()]}, and torch has {list(named)}")
    leaves = [pair for pair in pairs if pair[0].requires_grad] + [
        (p, named[name]) for name, p in ours.named_parameters()
    ]
    forward, backward = compare_outputs(outs, expected, leaves, dtype)
    buffers = dict(theirs.named_buffers())
    if {name for name, _ in ours.named_buffers()} != set(buffers):
        raise Mismatch(f"buffers {[name for name, _ in ours.named_buffers()]}, and torch has {list(buffers)}")
    return max(forward, largest([(b.data, buffers[name].numpy()) for name, b in ours.named_buffers()])), backward


def shake(module):
    """Weights at random, and running statistics that are not those of the beginning."""
    rng = np.random.default_rng(11)
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.copy_(torch.tensor(rng.uniform(-0.6, 0.6, tuple(parameter.shape))))
        for name, buffer in module.named_buffers():
            if buffer.dtype.is_floating_point:
                buffer.copy_(torch.tensor(positive(*buffer.shape) if "var" in name else real(*buffer.shape)))


def rows(only):
    for name in only(dict.fromkeys(name for name, *_ in LAYERS)):
        row = Row(name, f"nn.{'TransformerEncoderLayer' if name == 'TransformerBlock' else name}")
        for called, *sample in LAYERS:
            if called == name:
                ours, theirs, inputs, *rest = sample
                row.run(repr(ours).split("\n")[0], lambda d: compare_layers(ours, theirs, inputs, d, *rest))  # noqa: B023
        yield row


def missing() -> set:
    return set(nn.__all__) - NOT_LAYERS - {name for name, *_ in LAYERS}
