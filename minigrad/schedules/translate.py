"""The same checkpoints in other frameworks: a plan's tree as a program for PyTorch or for JAX.

Both have checkpoints that may hold others, and replay no more than backward reads. So a tree means there what it
means here, and layers are run again as often. A program holds the tree as nested lists:

    PLAN = 3 * [[4, 2]] + [7]       three checkpoints of six layers each, then seven layers without

Equal checkpoints are written once and have names, C16 for one of 16 layers, so that trees of thousands of layers stay
readable. A split without checkpoints in checkpoints is a list of pairs and a loop.
"""

import textwrap
from collections import Counter
from typing import NamedTuple

from .report import check_depth, counted, folded, from_the_leaves, levels_below, whole

WIDTH = 100
WORTH_A_NAME = 9  # characters of a list that occurs twice
NESTED = 40  # brackets in brackets before one gets a name: Python reads at most 200
STACK = 30  # levels of checkpoints for which Python's stack is deep enough as it is


# ---- The tree as Python lists ------------------------------------------------------------------------


class Item(NamedTuple):
    """`count` equal stretches: taped (inner None), or checkpoints of which list number `inner` says what is in them.

    slow    their inputs wait in slow memory       whole   their replays run all layers, needed or not
    """

    count: int
    length: int
    inner: int | None
    slow: bool = False
    whole: bool = False


class Lists:
    """The lists that a tree is made of, each different one once.

    all          tuples of Items, inner ones before those that hold them       outermost    the last of them
    lengths      how many layers each list stands for                          checkpoints  all Items that are one
    """

    def __init__(self, plan):
        self.numbers, self.lengths = {}, []
        from_the_leaves(whole(plan), self.number_of, {})
        self.all = list(self.numbers)
        self.outermost = self.all[-1]
        self.checkpoints = [item for items in self.all for item in items if item.inner is not None]

    def number_of(self, parts, numbers):
        """The number of the list that stands for these parts."""
        inner = {(part.schedule, part.length): number for part, number in zip(parts, numbers, strict=True)}
        items = []
        for row in folded(parts):
            schedule, length = row.part.schedule, row.part.length
            settings = () if schedule is None else (schedule.offload is not None, not schedule.early_stop)
            items.append(Item(row.count, length, inner.get((schedule, length)), *settings))
        if (items := tuple(items)) not in self.numbers:
            self.numbers[items] = len(self.lengths)
            self.lengths.append(sum(item.count * item.length for item in items))
        return self.numbers[items]

    def is_flat(self):
        """Whether no checkpoint holds others."""
        return all(item.inner is None for items in self.all[:-1] for item in items)

    def pairs(self) -> list:
        """Lines that define PLAN: (layers, whether they are a checkpoint), of a flat tree."""
        entries = [(f"({item.length}, {item.inner is not None})", item.count) for item in self.outermost]
        return assignment("PLAN", list_text(entries))

    def nested(self, words) -> list:
        """Lines that define PLAN: numbers of layers, and lists, which may start with one of the `words`."""
        uses = Counter(item.inner for item in self.checkpoints)
        texts, depths, lines, names = [], [], [], Counter()
        for number, items in enumerate(self.all):
            is_outermost = items is self.outermost
            text = list_text([(entry_text(item, texts, is_outermost, words), item.count) for item in items])
            depth = 1 + max([depths[item.inner] for item in items if item.inner is not None], default=0)
            if is_outermost or depth >= NESTED or (uses[number] > 1 and len(text) >= WORTH_A_NAME):
                name = "PLAN" if is_outermost else new_name(self.lengths[number], names)
                lines += assignment(name, text)
                text, depth = name, 0
            texts.append(text)
            depths.append(depth)
        return lines


def new_name(length, names) -> str:
    """C16 for a checkpoint of 16 layers, C16_2 for another kind of them."""
    names[length] += 1
    return f"C{length}_{names[length]}" if names[length] > 1 else f"C{length}"


def entry_text(item, texts, is_outermost, words) -> str:
    """How a stretch stands in a list: a number if it is taped, a list if it is a checkpoint."""
    if item.inner is None:
        return str(item.length)
    text = texts[item.inner]
    if "whole" in words and item.whole:
        text = f'["whole"] + {text}'
    if "host" in words and item.slow and is_outermost:
        text = f'["host"] + {text}'
    return text


def list_text(entries) -> str:
    """(text, count) of what is in a list, as a list.

    >>> list_text([("[10]", 9), ("10", 1)])
    '9 * [[10]] + [10]'
    """
    pieces, singles = [], []
    for text, count in entries:
        if count <= 2:
            singles += [text] * count
            continue
        if singles:
            pieces.append(f"[{', '.join(singles)}]")
            singles = []
        pieces.append(f"{count} * [{text}]")
    return " + ".join(pieces + [f"[{', '.join(singles)}]"] * bool(singles))


def assignment(name, text) -> list:
    """The lines of `name = text`, broken if they are too long."""
    if len(name) + 3 + len(text) <= WIDTH:
        return [f"{name} = {text}"]
    lines = textwrap.wrap(text, WIDTH - 4, break_long_words=False, break_on_hyphens=False)
    return [f"{name} = (", *[f"    {line}" for line in lines], ")"]


# ---- The programs ------------------------------------------------------------------------------------

FLAT = '''\
# (layers, whether they are a checkpoint), in order.
{plan}


def in_order(layers, x):
    for layer in layers:
        x = layer(x)
    return x


def run(layers, x, plan=PLAN):
    """layers[-1](... layers[0](x)). A checkpoint keeps its input, and backward replays it."""
    assert len(layers) == sum(length for length, _ in plan)
    first = 0
    for length, is_checkpoint in plan:
        stretch = layers[first : first + length]
        if is_checkpoint:
{call}
        else:
            x = in_order(stretch, x)
        first += length
    return x
'''

NESTED_LISTS = '''\
# A number: that many layers, in order. A list: a checkpoint, of layers or of other checkpoints.
{plan}


def layers_in(part):
    if isinstance(part, list):
        return sum(map(layers_in, part))
    return part if isinstance(part, int) else 0


def run(layers, x, plan=PLAN):
    """layers[-1](... layers[0](x)). A checkpoint keeps its input, and backward replays it."""
    assert len(layers) == layers_in(plan)
    first = 0
    for part in plan:
        stretch = layers[first : first + layers_in(part)]
        if isinstance(part, list):
{call}
        else:
            for layer in stretch:
                x = layer(x)
        first += len(stretch)
    return x
'''

WORDS = {
    "host": '# A list that starts with "host" keeps its input in host memory.',
    "whole": '# A list that starts with "whole" runs all its layers again, whether or not that is needed.',
}

TORCH_EXAMPLE = '''\
if __name__ == "__main__":  # an example
    layers = [torch.nn.Linear(16, 16) for _ in range({layers})]
    weights = [torch.nn.init.orthogonal_(layer.weight) for layer in layers]
    x = torch.randn(4, 16)
    plain = torch.autograd.grad(run(layers, x, {without}).sum(), weights)
    replayed = torch.autograd.grad(run(layers, x).sum(), weights)
    print("same gradients as without checkpoints:", all(map(torch.equal, plain, replayed)))
'''

JAX_EXAMPLE = '''\
def layer(weight, x):
    return x @ weight


def loss(weights, x, plan):
    return run([functools.partial(layer, weight) for weight in weights], x, plan).sum()


if __name__ == "__main__":  # an example
    matrices = jax.random.normal(jax.random.key(0), ({layers}, 16, 16))
    weights, x = list(jnp.linalg.qr(matrices)[0]), jnp.ones((4, 16))
    plain, replayed = [jax.grad(loss)(weights, x, plan) for plan in ({without}, PLAN)]
    print("same gradients as without checkpoints:", all(map(jnp.allclose, plain, replayed)))
'''


class Torch:
    """What of a program is PyTorch's: its imports, the words that lists start with, and how a checkpoint is run."""

    name, example = "PyTorch", TORCH_EXAMPLE

    def __init__(self, lists):
        self.imports, self.words, self.notes = [], [], []
        whole_ones = [item.whole for item in lists.checkpoints]
        self.all_whole = any(whole_ones) and all(whole_ones)
        if any(whole_ones) and not self.all_whole:
            self.words.append("whole")
        self.imports = ["import torch", "from torch.utils.checkpoint import checkpoint"]
        if any(item.slow for item in lists.outermost):
            self.words.append("host")
            self.imports.insert(1, "from torch.autograd.graph import save_on_cpu")
            self.imports = ["from contextlib import nullcontext", "", *self.imports]
        if any(item.slow for item in lists.checkpoints if item not in lists.outermost):
            self.notes.append("Checkpoints in others keep their input on the device: save_on_cpu does not get there.")

    def call(self, function, *plan) -> str:
        """The statement that runs a checkpoint: `function` on the layers of its stretch, x, and its plan if any."""
        option = ", early_stop=False" if self.all_whole else ""
        if "whole" in self.words:
            option = ', early_stop="whole" not in part'
        arguments = ", ".join([function, "stretch", "x", *plan])
        statement = f"x = checkpoint({arguments}, use_reentrant=False{option})"
        if "host" not in self.words:
            return statement
        return f'with save_on_cpu(torch.cuda.is_available()) if "host" in part else nullcontext():\n    {statement}'


class Jax:
    """What of a program is JAX's."""

    name, example, words = "JAX", JAX_EXAMPLE, ()
    imports = ("import functools", "", "import jax", "import jax.numpy as jnp")

    def __init__(self, lists):
        self.notes = []
        if any(item.whole for item in lists.checkpoints):
            self.notes.append("The plan replays checkpoints to their end; JAX leaves out what nobody reads.")
        if any(item.slow for item in lists.checkpoints):
            self.notes.append("The plan moves inputs of checkpoints to slow memory; here they stay on the device.")

    def call(self, function, *plan) -> str:
        """The statement that runs a checkpoint."""
        arguments = ", ".join([function, "stretch", *[f"plan={argument}" for argument in plan]])
        return f"x = jax.checkpoint(functools.partial({arguments}))(x)"


def torch_code(plan) -> str:
    """A program that runs a list of layers in PyTorch with the checkpoints of `plan`, with an example of its use.

    The checkpoints are torch.utils.checkpoint's, with use_reentrant=False. Offloaded ones keep their input in host
    memory (save_on_cpu) if they are in no other checkpoint. ArgumentError for a tree of more than 300 levels.

    >>> import minigrad as mg
    >>> program = torch_code(mg.schedules.nested(4).plan(64))
    >>> print(*[line for line in program.splitlines() if "PLAN" in line], sep="\\n")
    PLAN = 3 * [3 * [[4]] + [4]] + 3 * [[4]] + [4]
    def run(layers, x, plan=PLAN):
    """
    lists = lists_of(plan)
    return program(Torch(lists), plan, lists)


def jax_code(plan) -> str:
    """A program that runs a list of layers in JAX with the checkpoints of `plan`, with an example of its use.

    The checkpoints are jax.checkpoint's. JAX never runs again what nobody reads, so there is no early_stop=False, and
    offloaded checkpoints keep their input on the device; the program says so. ArgumentError for a tree of more than
    300 levels.
    """
    lists = lists_of(plan)
    return program(Jax(lists), plan, lists)


def lists_of(plan) -> Lists:
    check_depth(plan, "Take a schedule that nests less, such as binomial(8)")
    return Lists(plan)


def program(framework, plan, lists) -> str:
    """The text of a program for a Torch or a Jax."""
    if lists.is_flat() and not framework.words:
        body, lines, without = FLAT, lists.pairs(), f"[({plan.layers}, False)]"
        statement = framework.call("in_order")
    else:
        body, lines, without = NESTED_LISTS, lists.nested(framework.words), f"[{plan.layers}]"
        statement = framework.call("run", "part")
        lines = [*[WORDS[word] for word in framework.words], *lines]
    body = body.format(plan="\n".join(lines), call=textwrap.indent(statement, " " * 12))
    example = framework.example.format(layers=plan.layers, without=without)
    imports = "\n".join(framework.imports if levels_below(whole(plan), {}) <= STACK else with_sys(framework.imports))
    return f"{heading(framework, plan)}\n\n{imports}\n\n{body}\n\n{example}".rstrip()


def heading(framework, plan) -> str:
    """The docstring of a program: what it is, what the plan costs, and what is different."""
    title = f"{counted(plan.layers, 'layer')} with the checkpoints of {harmless(plan.schedule)}, in {framework.name}."
    figures = (
        f"Planned by minigrad: {counted(plan.peak, 'activation')} at the peak, "
        f"{counted(plan.extra_forwards, 'layer')} replayed, {counted(plan.total_forwards, 'forward')} in all; "
        f"{plan.time_factor:.2f} times the time of storing all, if a backward takes two forwards."
    )
    paragraphs = [f'"""{title}', figures, *framework.notes]
    return "\n\n".join([textwrap.fill(text, WIDTH) for text in paragraphs]) + '\n"""'


def harmless(schedule) -> str:
    """What a schedule is called, as it may stand in a program's docstring."""
    return "".join([sign if sign.isprintable() and sign not in "\\\"" else "?" for sign in str(schedule)[:200]])


def with_sys(imports) -> list:
    """The imports of a program whose tree is deeper than Python's stack."""
    before = imports[: imports.index("")] if "" in imports else ()  # the standard library's
    limit = "sys.setrecursionlimit(100_000)  # a checkpoint in a checkpoint is a call in a call"
    return [*before, "import sys", "", *[line for line in imports[len(before) :] if line], "", limit]
