"""Solutions for lesson 15."""

import numpy as np

import minigrad as mg


def gradients_in_parts(loss_of, parameters, inputs, targets, parts):
    """The gradients of a batch's mean loss, from `parts` smaller batches that follow one another."""
    for parameter in parameters:
        parameter.grad = None
    for some, theirs in zip(np.array_split(inputs, parts), np.array_split(targets, parts), strict=True):
        share = len(some) / len(inputs)
        (loss_of(some, theirs) * share).backward()  # adds to what is there, and lets go of the tape
    return [parameter.grad.numpy() for parameter in parameters]


def in_three(block):
    """An nn.TransformerBlock whose activation is relu, as a list of three layers."""

    def attention(x):
        attended, _ = block.self_attn(block.norm1(x), is_causal=block.causal)
        return x + block.dropout1(attended)

    def up(x):
        return x, block.dropout(mg.relu(block.linear1(block.norm2(x))))

    def down(both):
        x, hidden = both
        return x + block.dropout2(block.linear2(hidden))

    return [attention, up, down]


def least_share(layers, x):
    """The smallest budget, in whole percent of what storing everything holds, for which mg.fit finds a schedule."""
    measured = mg.profile(layers, x)
    everything = measured.forecast(mg.schedules.store_all()).peak_activation_bytes
    for percent in range(1, 101):
        try:
            mg.fit(measured, x, budget=everything * percent // 100)
        except mg.BudgetError:
            continue
        return percent
