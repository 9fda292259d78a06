"""Random programs with checkpoints in checkpoints against the same programs without any."""

import random

import numpy as np
import pytest

import minigrad as mg


class Program:
    """A program that a seed determines: ops with fan-out, several outputs, constants, dropout, closures."""

    def __init__(self, seed, checkpoint):
        self.choose, self.checkpoint, self.calls, self.hooked = random.Random(seed), checkpoint, 0, []
        rng = np.random.default_rng(seed)
        shapes = [(2, 3), (3,), (2, 1), (), (3, 3)]
        self.leaves = [mg.tensor(rng.standard_normal(shape), requires_grad=True) for shape in shapes]
        self.constants = [mg.tensor(rng.standard_normal(shape)) for shape in [(2, 3), (1, 3)]]
        mg.manual_seed(seed)
        outputs = self.block(self.leaves + self.constants, self.choose.randrange(3, 9), 0)
        self.outputs = [t for t in outputs if t.requires_grad]

    def block(self, pool, length, depth):
        pool, made = list(pool), []
        for _ in range(length):
            chance = self.choose.random()
            if chance < 0.25 and depth < 3:
                new = self.region(pool, depth)
            elif chance < 0.3:
                with mg.no_grad():
                    new = [self.op(pool)]
            elif chance < 0.35:
                new = [self.choose.choice(pool).detach()]
            else:
                new = [self.op(pool)]
            made += new
            pool += new
        return made

    def region(self, pool, depth):
        arguments = [self.choose.choice(pool) for _ in range(self.choose.randrange(1, 3))]
        closed_over, length = [self.choose.choice(pool)], self.choose.randrange(1, 6)
        form = self.choose.randrange(3)

        def fn(*tensors):
            self.calls += 1
            made = self.block([*tensors, *closed_over], length, depth + 1)
            return [lambda: [made[-1]], lambda: (made[0], made[-1]), lambda: [*made[-3:], tensors[0]]][form]()

        results = list(self.checkpoint(fn, *arguments))
        return results[:1] if self.choose.random() < 0.3 else results  # some outputs are never used

    def op(self, pool):
        a, b, kind = self.choose.choice(pool), self.choose.choice(pool), self.choose.randrange(10)
        if kind in (0, 1, 2) and a.ndim <= 2 and b.ndim <= 2 and self.fit(a, b):
            return [a * b, a + b, mg.where(a > b, a, b * 0.5)][kind]
        of_one = {3: mg.sin, 4: mg.sigmoid, 5: lambda t: t * 0.5 - 1.0, 6: lambda t: mg.dropout(t, 0.3)}
        result = of_one.get(kind, mg.tanh)(a)
        if kind == 7 and a.ndim:
            result = mg.softmax(a, axis=-1)
        if kind == 8 and result.requires_grad:
            place = len(self.hooked)
            self.hooked.append([])
            result.register_hook(lambda g: self.hooked[place].append(g.numpy().copy()) or g * 0.5)
        return result

    @staticmethod
    def fit(a, b):
        try:
            return np.broadcast_shapes(a.shape, b.shape) in [(2, 3), (3,), (2, 1), (), (3, 3), (1, 3)]
        except ValueError:
            return False


def plain(fn, *args):
    return fn(*args)


def run(seed, checkpoint, retain):
    with mg.Tracer() as tracer:
        program = Program(seed, checkpoint)
        if not program.outputs:
            return None
        loss = sum((mg.tanh(t).sum() for t in program.outputs[-3:]), start=mg.tensor(np.array(0.0)))
        program.outputs = None
        if retain:
            loss.backward(retain_graph=True)
        loss.backward()
        gradients = [None if leaf.grad is None else leaf.grad.numpy() for leaf in program.leaves]
        return gradients, program.hooked, program.calls, len(mg.saved(loss)), tracer


@pytest.mark.parametrize("retain", [False, True])
def test_gradients_hooks_and_calls_are_those_of_the_plain_program(retain):
    compared = 0
    for seed in range(250):
        ours, reference = run(seed, mg.checkpoint, retain), run(seed, plain, retain)
        assert (ours is None) == (reference is None)
        if ours is None:
            continue
        for a, b in zip(ours[0], reference[0], strict=True):
            assert (a is None) == (b is None) and (a is None or a.tobytes() == b.tobytes()), seed
        for a, b in zip(ours[1], reference[1], strict=True):
            assert [g.tobytes() for g in a] == [g.tobytes() for g in b], seed
        assert ours[2] == reference[2] and ours[3] == reference[3] == 0, seed
        compared += ours[2] > 0
    assert compared > 100  # so many of them had checkpoints
