"""Policies: what a checkpoint keeps inside its region, so that its replay starts from there.

    mg.checkpoint(block, x, policy=mg.policies.save_ops("matmul", "linear"))

A checkpoint keeps its boundary, and its replay computes all the rest again. Some of that is cheap for the bytes that
it takes (an addition, a GELU), and some is dear (a product of matrices). A *policy* says of each op in the region
whether its output stays. Then the replay runs what comes after it and not what led to it. This is selective
checkpointing.

What a policy answers is a wish: of the values that it wants kept, the checkpoint keeps those that a replay would read,
and no others. So `save_everything()` keeps what plain taping keeps, and not the output of every op.

Most policies decide at once, when an op has run (`keeps`). Some have to see the whole region first (`at_end`,
`choose`): until the function of the checkpoint has returned, all outputs in it stay alive, and then what was not chosen
goes.

Policies combine: `a | b` keeps what either keeps, `a & b` what both keep, `~a` what a does not. A function of a line
that answers True or False is a policy too. A line is a node of the tape (tape.Node): line.op.name, line.attrs,
line.inputs, line.shape, line.nbytes, line.layer, line.line.

The same in PyTorch: `torch.utils.checkpoint.create_selective_checkpoint_contexts`, with a function that answers
CheckpointPolicy.MUST_SAVE or PREFER_RECOMPUTE for each op; in JAX: `jax.checkpoint(f, policy=…)`, with one of
`jax.checkpoint_policies`.
"""

import collections
import difflib
from dataclasses import dataclass
from fnmatch import fnmatchcase

from ..engine.op import Op, registry
from ..engine.replay import Call
from ..errors import ArgumentError
from ..ops.cost import flops
from ..table import bytes_text, parse_bytes
from .knapsack import least_recomputation
from .recompute import problem_of

PRODUCTS = ("matmul", "einsum")
ENDS = (*PRODUCTS, "linear", "conv2d", "conv_transpose2d", "scaled_dot_product_attention")  # of an attention core


class Policy:
    """What a checkpoint asks about the ops in its region. Subclass it for a rule of your own, or pass a function.

    keeps(line, count)     called once for each op that runs, right after it ran; `count` ops of its name ran in this
                           region before. True: its output stays, if a replay would read it
    at_end                 True: `choose` decides instead, when the function of the checkpoint has returned. Until
                           then every output in the region is kept
    choose(lines, outputs) which of `lines` to keep: a set. `outputs` are those whose gradients backward will bring.
                           A line may be a nested checkpoint (replay.Call), which cannot be kept
    """

    at_end = False
    label = None

    def keeps(self, line, count) -> bool:
        return False

    def choose(self, lines, outputs) -> set:
        raise TypeError(f"{self!r} decides op by op: ask keeps(line, count)")

    def __or__(self, other):
        return any_of(self, other)

    def __and__(self, other):
        return all_of(self, other)

    def __ror__(self, other):
        return any_of(other, self)

    def __rand__(self, other):
        return all_of(other, self)

    def __invert__(self):
        return Not(self)

    def __repr__(self):
        return self.label or f"{type(self).__name__}()"


def as_policy(policy) -> Policy:
    """A Policy; a function of a line becomes one."""
    if isinstance(policy, Policy):
        return policy
    if getattr(policy, "__module__", None) == __name__ and hasattr(policy, "__name__"):
        raise ArgumentError(f"{policy.__name__} makes a policy; call it: mg.policies.{policy.__name__}(…)")
    if callable(policy) and not isinstance(policy, Op):
        return Function(policy)
    raise ArgumentError(
        f'a policy is one of mg.policies, such as mg.policies.save_ops("matmul"), or a function of a line that answers '
        f"True or False, not {policy!r:.60}"
    )


@dataclass(frozen=True, repr=False)
class Function(Policy):
    function: object

    @property
    def label(self):
        return getattr(self.function, "__name__", repr(self.function))

    def keeps(self, line, count):
        return bool(self.function(line))


# ---- All or nothing ----------------------------------------------------------------------------------


class SaveNothing(Policy):
    label = "save_nothing()"


class SaveEverything(Policy):
    label = "save_everything()"

    def keeps(self, line, count):
        return True


def save_nothing() -> Policy:
    """Keep nothing inside: what a checkpoint does without a policy.

    JAX: nothing_saveable. PyTorch: a checkpoint without context_fn.
    """
    return SaveNothing()


def save_everything() -> Policy:
    """Keep all that a replay would read: it runs no op again.

    JAX: everything_saveable. PyTorch: MUST_SAVE for every op, which also keeps outputs that no backward reads.

    >>> import minigrad as mg
    >>> x = mg.ones(3, requires_grad=True)
    >>> y = mg.checkpoint(lambda t: mg.tanh(mg.exp(t * 2 + 1)), x, policy=save_everything())
    >>> [row.node.op.name for row in mg.saved(y)]
    ['exp', 'tanh']
    """
    return SaveEverything()


# ---- By op -------------------------------------------------------------------------------------------


@dataclass(frozen=True, repr=False)
class SaveOps(Policy):
    ops: tuple

    @property
    def label(self):
        return f"save_ops({', '.join(repr(op.name) for op in self.ops)})"

    def keeps(self, line, count):
        return line.op in self.ops


@dataclass(frozen=True, repr=False)
class RecomputeOps(SaveOps):
    @property
    def label(self):
        return super().label.replace("save_ops", "recompute_ops")

    def keeps(self, line, count):
        return line.op not in self.ops


@dataclass(frozen=True, repr=False)
class EveryNth(Policy):
    op: object
    n: int

    @property
    def label(self):
        return f"every_nth({self.op.name!r}, {self.n})"

    def keeps(self, line, count):
        return line.op is self.op and count % self.n == 0


def save_ops(*ops) -> Policy:
    """Keep the outputs of these ops: names as `python -m minigrad ops` lists them, or ops, also of your own.

    ArgumentError, with a suggestion, for a name that no op has. JAX: for products, dots_saveable. PyTorch:
    create_selective_checkpoint_contexts takes such a list of ops.

    >>> import minigrad as mg
    >>> w = mg.ones((3, 3), requires_grad=True)
    >>> y = mg.checkpoint(lambda t: mg.tanh(mg.exp(t @ w)), mg.ones(3), policy=save_ops("matmul"))
    >>> [row.node.op.name for row in mg.saved(y) if row.node.op]
    ['matmul']
    """
    return SaveOps(ops_named("save_ops", ops))


def recompute_ops(*ops) -> Policy:
    """Keep all but the outputs of these ops; names as for `save_ops`.

    PyTorch: MUST_RECOMPUTE for these ops and MUST_SAVE for the others.
    """
    return RecomputeOps(ops_named("recompute_ops", ops))


def every_nth(op, n: int) -> Policy:
    """Of the outputs of one op, keep the first in the region, then each n-th after it.

    Each region counts by itself. PyTorch and JAX: a policy function that counts.
    """
    if isinstance(n, bool) or not isinstance(n, int) or n < 1:
        raise ArgumentError(f"every_nth keeps each n-th output, for a whole number n from 1 on, not {n!r}")
    return EveryNth(*ops_named("every_nth", [op]), n)


def every_other_matmul() -> Policy:
    """Of the products of matrices keep every other one: half the bytes of keeping all, half of the products run again.

    The first, third, … matmul in the region, and the first, third, … linear. Add what else is dear:
    `every_other_matmul() | save_ops("scaled_dot_product_attention")`. In PyTorch, torchtitan does so with aten.mm.
    """
    return every_nth("matmul", 2) | every_nth("linear", 2)


def ops_named(asker, names):
    """The Ops that names, and ops, stand for."""
    if not names:
        raise ArgumentError(f'{asker} needs at least one op, such as {asker}("matmul")')
    return tuple([op if isinstance(op, Op) else op_named(op, asker) for op in names])


def op_named(name, asker):
    if isinstance(name, str) and name in registry:
        return registry[name]
    if not isinstance(name, str):
        name = getattr(name, "__name__", name)  # of mg.conv2d, say, which is a function around the op "conv2d"
        if isinstance(name, str) and name in registry:
            return registry[name]
    close = difflib.get_close_matches(str(name), registry, n=1)
    advice = f"did you mean {close[0]!r}? " if close else ""
    raise ArgumentError(
        f"{asker}: no op is called {name!r:.60}; {advice}`python -m minigrad ops` lists them. An op of your own goes "
        "in as itself, not by name"
    )


# ---- By layer ----------------------------------------------------------------------------------------


@dataclass(frozen=True, repr=False)
class SaveNamed(Policy):
    patterns: tuple

    @property
    def label(self):
        return f"save_named({', '.join(map(repr, self.patterns))})"

    def keeps(self, line, count):
        return any(fnmatchcase(path, pattern) for path in paths(line.layer) for pattern in self.patterns)


def save_named(*patterns) -> Policy:
    """Keep what runs in the layers of these names: paths of nn layers, with the wildcards of the shell.

    "blocks.*.attn" is the attention of each block, with all the layers inside it; "*.norm1" any norm1; "[!b]*" what
    does not begin with b. A * stands for dots, too. An op outside of all layers has no name.
    JAX: save_only_these_names, whose names are of values (checkpoint_name), not of layers.

    >>> import minigrad as mg
    >>> net = mg.nn.Sequential(mg.nn.Linear(3, 3), mg.nn.Tanh(), mg.nn.Linear(3, 3), mg.nn.Tanh())
    >>> y = mg.checkpoint(net, mg.ones(3), policy=save_named("2"))
    >>> [(row.node.op.name, row.node.layer) for row in mg.saved(y) if row.node.op]
    [('linear', '2')]
    """
    if not patterns or not all(isinstance(pattern, str) and pattern for pattern in patterns):
        raise ArgumentError(f'save_named needs names of layers, such as save_named("blocks.*.attn"), not {patterns!r}')
    return SaveNamed(patterns)


def paths(layer):
    """A layer's path and those of the layers it is in: "blocks", "blocks.3", "blocks.3.attn"."""
    parts = layer.split(".") if layer else []
    return [".".join(parts[:length]) for length in range(1, len(parts) + 1)]


# ---- By cost -----------------------------------------------------------------------------------------


@dataclass(frozen=True, repr=False)
class ByCost(Policy):
    least: float
    cost: object = flops

    @property
    def label(self):
        return f"by_cost({self.least!r})"

    def keeps(self, line, count):
        return self.cost(line) >= self.least * line.nbytes


@dataclass(frozen=True, repr=False)
class Within(Policy):
    budget: int
    cost: object = flops
    at_end = True

    @property
    def label(self):
        return f"within({bytes_text(self.budget)!r})"

    def choose(self, lines, outputs):
        problem, ops = problem_of(lines, outputs, self.cost)
        return {ops[position] for position in least_recomputation(problem, self.budget)}


def by_cost(least, cost=flops) -> Policy:
    """Keep what costs at least so much for each byte: operations per byte as `cost.flops` counts them.

    cost   a function of a line to count with instead: seconds that you have measured, say

    A product of matrices with inner length k costs k operations for each number, k / 4 per byte of float32; an addition
    less than 1. PyTorch and JAX: a policy function of shapes.

    >>> import minigrad as mg
    >>> w = mg.ones((64, 64), requires_grad=True)
    >>> y = mg.checkpoint(lambda t: mg.tanh(mg.exp(t @ w)), mg.ones((8, 64)), policy=by_cost(16))
    >>> [row.node.op.name for row in mg.saved(y) if row.node.op]
    ['matmul']
    """
    if isinstance(least, bool) or not isinstance(least, (int, float)) or not least >= 0:
        raise ArgumentError(f"by_cost needs a number of operations per byte, from 0 on, not {least!r}")
    return ByCost(least, cost)


def within(budget, cost=flops) -> Policy:
    """Keep at most so many bytes, and those with which the replay costs the least.

    budget  of what is kept inside, besides the boundary: bytes, or text such as "64KB" or "1.5MiB"
    cost    a function of a line: what running it again costs, `cost.flops` by default

    It decides when the function has returned (at_end); until then all outputs in the region are alive. The problem is
    a knapsack in which what one value is worth depends on what else is kept; knapsack.py says how it is solved, and
    when exactly. Each value counts with all its bytes, even if it is a view of another one that is kept.
    PyTorch: torch._functorch.config.activation_memory_budget, under torch.compile.

    >>> import minigrad as mg
    >>> w = mg.ones((64, 64), requires_grad=True)
    >>> x = mg.ones((8, 64))
    >>> y = mg.checkpoint(lambda t: mg.tanh(mg.exp(t @ w) + 1), x, policy=within("3KB"))
    >>> [(row.node.op.name, row.nbytes) for row in mg.saved(y) if row.node.op]
    [('exp', 2048)]
    """
    return Within(parse_bytes(budget), cost)


# ---- Attention ---------------------------------------------------------------------------------------


class AttentionCore(Policy):
    label = "attention_core()"
    at_end = True

    def choose(self, lines, outputs):
        return {line for line in lines if not isinstance(line, Call)} - attention_lines(lines)


def attention_core() -> Policy:
    """Keep everything but the cores of attention, whose values have an element for each pair of a row and a column.

    A core begins with the product that makes the scores, and ends before the product with the values: scale, mask,
    softmax, dropout. It is found by its softmax (the op), between two products (matmul, einsum). When sequences are
    long, cores take most of the bytes and few of the operations: `cost.transformer_layer_bytes` has the formula.
    `scaled_dot_product_attention` is one op that never holds its core; its output stays.

    It decides when the function has returned (at_end): give each layer a checkpoint of its own. In Megatron-LM this is
    the recompute granularity "selective". Source: Korthikanti et al. 2022, arXiv:2205.05198, section 5.

    >>> import minigrad as mg
    >>> q, k, v = [mg.ones((5, 2), requires_grad=True) for _ in range(3)]
    >>> def attention(q, k, v):
    ...     return mg.dropout(mg.softmax(q @ k.T), 0.5) @ v
    >>> [row.node.op.name for row in mg.saved(attention(q, k, v)) if row.node.op]
    ['permute', 'softmax', 'dropout']
    >>> y = mg.checkpoint(attention, q, k, v, policy=attention_core())
    >>> [row.node.op.name for row in mg.saved(y) if row.node.op]
    ['permute']
    """
    return AttentionCore()


def attention_lines(lines):
    """The lines of all attention cores."""
    ops = [line for line in lines if not isinstance(line, Call)]
    sources, readers, found = {}, {line: [] for line in ops}, set()
    for line in ops:
        sources[line] = [source for source in line.inputs if source in readers]
        for source in sources[line]:
            readers[source].append(line)
    for line in ops:
        if line.op is registry["softmax"]:
            before, scores = reached(line, sources)
            after, users = reached(line, readers)
            if scores and users:
                found.update(before, scores, after)
    return found


def reached(softmax, next_to):
    """What is reached from a softmax through lines that have its last two lengths, and the products where this ends."""
    found, products, waiting = {softmax}, [], [softmax]
    while waiting:
        for node in next_to[waiting.pop()]:
            if node.op.name in ENDS:
                products += [node] if node.op.name in PRODUCTS else []
            elif node not in found and node.shape[-2:] == softmax.shape[-2:]:
                found.add(node)
                waiting.append(node)
    return found, products


# ---- Together ----------------------------------------------------------------------------------------


@dataclass(frozen=True, repr=False)
class Together(Policy):
    """Several policies as one; those that decide at the end make all of it do so."""

    policies: tuple

    @property
    def at_end(self):
        return any(policy.at_end for policy in self.policies)

    def answers(self, line, count):
        return [policy.keeps(line, count) for policy in self.policies]

    def choices(self, lines, outputs):
        return [chosen_by(policy, lines, outputs) for policy in self.policies]


class AnyOf(Together):
    @property
    def label(self):
        return f"any_of({', '.join(map(repr, self.policies))})"

    def keeps(self, line, count):
        return any(self.answers(line, count))

    def choose(self, lines, outputs):
        return set().union(*self.choices(lines, outputs))


class AllOf(Together):
    @property
    def label(self):
        return f"all_of({', '.join(map(repr, self.policies))})"

    def keeps(self, line, count):
        return all(self.answers(line, count))

    def choose(self, lines, outputs):
        return set.intersection(*self.choices(lines, outputs))


@dataclass(frozen=True, repr=False)
class Not(Policy):
    policy: Policy

    @property
    def label(self):
        return f"~{self.policy!r}"

    @property
    def at_end(self):
        return self.policy.at_end

    def keeps(self, line, count):
        return not self.policy.keeps(line, count)

    def choose(self, lines, outputs):
        return {line for line in lines if not isinstance(line, Call)} - self.policy.choose(lines, outputs)


def any_of(*policies) -> Policy:
    """Keep what any of these policies keeps; `a | b` is any_of(a, b). JAX: save_from_both_policies.

    A budget in it is of its own part: any_of(within("1MB"), b) keeps a megabyte and what b keeps.
    """
    return AnyOf(several("any_of", policies))


def all_of(*policies) -> Policy:
    """Keep what all of these policies keep; `a & b` is all_of(a, b), and `a & ~b` is a but not b.

    >>> save_ops("matmul") & ~save_named("head")
    all_of(save_ops('matmul'), ~save_named('head'))
    """
    return AllOf(several("all_of", policies))


def several(asker, policies):
    if not policies:
        raise ArgumentError(f"{asker} needs at least one policy")
    return tuple(map(as_policy, policies))


def chosen_by(policy, lines, outputs) -> set:
    """What a policy keeps of a whole region, whichever kind it is."""
    if policy.at_end:
        return set(policy.choose(lines, outputs))
    counts, chosen = collections.Counter(), set()
    for line in lines:
        if not isinstance(line, Call):
            if policy.keeps(line, counts[line.op.name]):
                chosen.add(line)
            counts[line.op.name] += 1
    return chosen
