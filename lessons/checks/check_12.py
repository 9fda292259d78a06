"""Looks at lessons/exercises/ex12_eviction.py."""

import itertools
import random

import numpy as np

import minigrad as mg

WHY_LRU = "Look at 'Why LRU fails' in lesson 12, and at the picture there."
WHO_GOES = "Look at 'Who goes?' in lesson 12."


def chain_under(layers, room, evict):
    """The budget after a forward and backward of a chain of products with room for so many activations."""
    rng = np.random.default_rng(layers)
    x, weights = mg.tensor(rng.standard_normal((2, 2))), [mg.randn(2, 2, dtype="float64") for _ in range(layers)]
    with mg.memory_budget(room * x.nbytes, evict=evict) as budget:
        for w in weights:
            x = x @ w.requires_grad_()
        x.sum().backward()
    return budget


def check_lru_runs(answers):
    for layers, room in ((100, 20), (100, 19), (100, 100), (30, 3), (30, 4), (57, 10), (12, 11), (12, 20), (5, 3)):
        expected, found = chain_under(layers, room, "lru").rematerialised, answers.lru_runs(layers, room)
        assert found == expected, (
            f"{layers} layers with room for {room} activations: a memory budget with LRU runs {expected} layers again, "
            f"and lru_runs says {found!r}. How many layers have to run when backward begins again for the first time, "
            f"and how many fewer the next time? {WHY_LRU}"
        )


def small_network(evict):
    """The budget after a forward and backward of a network whose values differ in size and cost."""
    mg.manual_seed(0)
    wide, narrow = mg.randn(8, 64, requires_grad=True), mg.randn(64, 8, requires_grad=True)
    cheap, h = mg.ones(8, requires_grad=True), mg.randn(4, 8)
    with mg.memory_budget(4500, evict=evict) as budget:
        skips = []
        for _ in range(8):
            h = mg.tanh(mg.sigmoid(mg.exp(h * cheap * 0.1) @ wide) @ narrow)
            skips.append(h)
        for skip in skips[::-2]:
            h = mg.tanh(h + skip * cheap)
        h.sum().backward()
    return budget


class Storage:
    """What a heuristic sees of a piece of memory."""

    cost, neighbourhood, nbytes, staleness = 100, 300, 64, 10


def change(factor, name):
    """A Storage of which one figure is so many times as large."""
    storage = Storage()
    setattr(storage, name, factor * getattr(storage, name))
    return storage


def check_score(answers):
    usual = answers.score(Storage())
    for name, sign, why in (
        ("cost", 1, "what is dear to run again should stay"),
        ("neighbourhood", 1, "what has a wide gap around it should stay"),
        ("nbytes", -1, "a large buffer makes more room"),
        ("staleness", -1, "what nobody has read for long will perhaps not be read soon"),
    ):
        moved = answers.score(change(2, name)) - usual
        direction = "rise" if sign > 0 else "fall"
        assert moved * sign > 0, (
            f"two buffers, one with twice the {name} of the other: its score should {direction}, since {why}, and the "
            f"lowest score goes. Yours changes by {moved:.4g}. {WHO_GOES}"
        )
    expected = chain_under(100, 20, "dtr").rematerialised
    found = chain_under(100, 20, answers.score).rematerialised
    assert found == expected, (
        f'the chain of the lesson with room for 20: evict="dtr" runs {expected} layers again, and evict=score {found}. '
        f"Cost and neighbourhood count alike: both are operations that an eviction may lead to. {WHO_GOES}"
    )
    theirs, ours = small_network("dtr"), small_network(answers.score)
    figures = [(budget.evictions, budget.rematerialised) for budget in (theirs, ours)]
    assert figures[0] == figures[1], (
        f"on a network whose values differ in size and cost, (evictions, ops that run again) are {figures[0]} with "
        f'evict="dtr", and {figures[1]} with your score. {WHO_GOES}'
    )


def every_way(node, neighbours, evicted):
    """All that one comes to from a node over evicted ones, by trying every way."""
    found = set()
    for other in neighbours[node]:
        if other in evicted:
            found |= {other} | every_way(other, neighbours, evicted)
    return found


def random_graph(seed):
    """(reads, evicted) of a graph of nine nodes."""
    rng = random.Random(seed)
    names = "abcdefghi"
    reads = {name: [n for n in names[:i] if rng.random() < 0.35] for i, name in enumerate(names)}
    return reads, {name for name in names if rng.random() < 0.6}


DIAMOND = {"a": [], "b": ["a"], "c": ["a"], "d": ["b", "c"]}
CASES = [
    ({"a": [], "b": ["a"], "c": ["b"], "d": ["c"], "e": ["d"]}, {"b", "c", "e"}, "d"),
    ({"a": [], "b": ["a"], "c": ["b"], "d": ["c"], "e": ["d"]}, {"a", "b", "d", "e"}, "c"),
    ({"a": [], "b": ["a"], "c": ["b"], "d": ["c"], "e": ["d"]}, {"a", "c", "e"}, "b"),
    (DIAMOND, {"a", "c", "d"}, "b"),
    (DIAMOND, {"b", "c", "d"}, "a"),
]


def check_neighbourhood(answers):
    from_random = [(*random_graph(seed), name) for seed, name in itertools.product(range(20), "ceg")]
    for reads, evicted, node in [*CASES, *from_random]:
        evicted = evicted - {node}
        readers = {name: [other for other in reads if name in reads[other]] for name in reads}
        below, above = every_way(node, reads, evicted), every_way(node, readers, evicted)
        found = answers.neighbourhood(node, {name: list(some) for name, some in reads.items()}, set(evicted))
        case = f"neighbourhood({node!r}, {reads}, {sorted(evicted)})"
        assert isinstance(found, (set, frozenset)), f"{case} must give a set, not {found!r}"
        missing, too_many = sorted((below | above) - found), sorted(found - (below | above))
        assert not missing, (
            f"{case} leaves out {missing}: there is a way from {node!r} over evicted nodes alone, downward or upward. "
            f"{WHO_GOES}"
        )
        assert not too_many, (
            f"{case} has {too_many} in it. Is it evicted, is it another node than {node!r}, and does one come to it in "
            f"one direction, over evicted nodes alone? Somebody who reads the same value as {node!r} is no neighbour: "
            f"neither needs the other. {WHO_GOES}"
        )
