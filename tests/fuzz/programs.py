"""Random programs as Python text: the same text runs with checkpoints, and as a plain twin without any.

A program is drawn as a list of instructions, so that hypothesis can shrink it; `write` makes Python of it. Every
value is a 3 x 3 matrix. The text uses names that differ between the two runs: checkpoint, sequential, hear, keep.
"""

import contextlib
import warnings

import numpy as np
from hypothesis import strategies as st

import minigrad as mg

OPS = [
    "mg.tanh({0})", "mg.sin({0})", "{0} * {1}", "{0} + {1}", "mg.tanh({0} @ {1})", "{0} * 2.0", "{0}.T",
    "mg.softmax({0}, axis=-1)", "mg.where({0} > {1}, {0}, {1} * 0.5)", "mg.sigmoid({0} - {1})", "{0} * {1}.mean()",
    "mg.dropout({0}, 0.3)", "mg.cat([{0}, {1}])[1:4]", "{0}.detach()", "norm({0})", "without({0})",
]  # fmt: skip
POLICIES = ["None", "mg.policies.save_ops('matmul', 'tanh')", "mg.policies.save_everything()"]
SCHEDULES = [
    "mg.schedules.sqrt()", "mg.schedules.uniform(2)", "mg.schedules.bisection()", "mg.schedules.binomial(2)",
    "mg.schedules.from_input()", "mg.schedules.store_all()", "mg.schedules.nested(2)",
]  # fmt: skip
FORMS = {"once", "twice", "steps", "grad", "create_graph"}
EVERYTHING = frozenset(
    {"policy", "verify", "offload", "keep_output", "hook", "retain_grad", "grad", "create_graph", "inplace", "budget"}
    | {"sequential", "nested", "several outputs", "outputs read on"}
)

places = st.integers(0, 30)


def instructions(features, depth=0):
    """A list of instructions: tuples whose first word says what."""
    kinds = [st.tuples(st.just("op"), st.integers(0, len(OPS) - 1), places, places)] * 4
    if depth == 0 or ("nested" in features and depth < 3):
        body = st.deferred(lambda: instructions(features, depth + 1))
        kinds += [st.tuples(st.just("checkpoint"), options(features), places, places, body, outputs(features))] * 2
    if "hook" in features:
        kinds.append(st.tuples(st.just("hook"), places))
    if "retain_grad" in features and depth == 0:
        kinds.append(st.tuples(st.just("retain_grad"), places))
    if "inplace" in features:
        kinds.append(st.tuples(st.just("inplace"), places, places))
    if "grad" in features:
        create = st.booleans() if "create_graph" in features else st.just(False)
        kinds.append(st.tuples(st.just("grad"), places, places, create))
    if "sequential" in features and depth == 0:
        kinds.append(st.tuples(st.just("sequential"), st.sampled_from(SCHEDULES), places, st.integers(2, 6)))
    return st.lists(st.one_of(kinds), min_size=5 - depth, max_size=10 - 2 * depth)


def options(features):
    """The keywords of a checkpoint, as text."""
    choices = {
        "policy": st.sampled_from(POLICIES),
        "verify": st.sampled_from(["False", "False", "True"]),
        "offload": st.sampled_from(["False", "False", "1", "2", "3"]),
        "keep_output": st.sampled_from(["True", "True", "False"]),
    }
    return st.fixed_dictionaries({name: choice for name, choice in choices.items() if name in features})


def outputs(features):
    """Which of the values made in a body it returns; with "outputs read on" also such as the body itself reads."""
    most = 3 if "several outputs" in features else 1
    if "outputs read on" in features:
        return st.lists(places, min_size=1, max_size=most)
    return st.just([])


def programs(features=EVERYTHING):
    """(instructions, how backward runs, bytes of a memory budget or None)."""
    forms = ["once", "twice", "steps"]
    forms += ["grad"] if "grad" in features else []
    forms += ["create_graph"] if "create_graph" in features else []
    budgets = st.sampled_from([None, None, 72 * 12, 72 * 30]) if "budget" in features else st.none()
    return st.tuples(instructions(features), st.sampled_from(forms), budgets)


class Writer:
    """Makes Python text of instructions. `visible` are the names that can be read, `made` those of this block."""

    def __init__(self):
        self.lines, self.count = [], 0

    def name(self):
        self.count += 1
        return f"v{self.count}"

    def block(self, steps, visible, indent):
        visible, made = list(visible), []
        for step in steps:
            new = getattr(self, step[0])(indent, visible, made, *step[1:])
            made += new
            visible += new
        return made

    def put(self, indent, line):
        self.lines.append("    " * indent + line)

    def op(self, indent, visible, made, kind, i, j):
        name = self.name()
        self.put(indent, f"{name} = {OPS[kind].format(pick(visible, i), pick(visible, j))}")
        return [name]

    def checkpoint(self, indent, visible, made, keywords, i, j, body, chosen):
        given = [pick(visible, i), pick(visible, j)]
        arguments, number = [self.name(), self.name()], self.count
        self.put(indent, f"def f{number}({', '.join(arguments)}):")
        inside = self.block(body, [*visible, *arguments], indent + 1)
        left = list(dict.fromkeys(pick(inside, k) for k in chosen)) if inside and chosen else inside[-1:]
        if not left:
            left = [f"{arguments[0]} * 1.0"]
        self.put(indent + 1, f"return {', '.join(left)},")
        names = [self.name() for _ in left]
        settings = "".join(f", {key}={value}" for key, value in keywords.items() if value not in ("False", "None"))
        self.put(indent, f"{', '.join(names)}, = checkpoint(f{number}, {', '.join(given)}{settings})")
        return names

    def hook(self, indent, visible, made, i):
        if made:
            self.put(indent, f"hear({pick(made, i)})")
        return []

    def retain_grad(self, indent, visible, made, i):
        if made:
            self.put(indent, f"keep({pick(made, i)})")
        return []

    def inplace(self, indent, visible, made, i, j):
        if made:
            self.put(indent, f"{pick(made, i)} += {pick(visible, j)} * 0.5")
        return []

    def grad(self, indent, visible, made, i, j, create):
        if not made:
            return []
        name = self.name()
        self.put(indent, f"{name} = derivative({pick(made, i)}, {pick(visible, j)}, {create})")
        return [name]

    def sequential(self, indent, visible, made, schedule, i, length):
        name = self.name()
        self.put(indent, f"{name} = sequential([lambda h: mg.tanh(h @ w)] * {length}, {schedule}, {pick(visible, i)})")
        return [name]


def pick(names, number):
    return names[-1 - number % len(names)]


HEAD = "def program(x, w, b, c, checkpoint, sequential, hear, keep, norm, without, derivative):"


def write(steps) -> str:
    """The program as Python text: a function that returns the last values it made."""
    writer = Writer()
    made = writer.block(steps, ["b", "c", "w", "x"], 1)
    return "\n".join([HEAD, *writer.lines, f"    return [{', '.join(made[-3:])}]"]) + "\n"


def without(x):
    with mg.no_grad():
        return mg.tanh(x)


def derivative(value, source, create):
    """What `mg.grad` says of a value, or the value where nothing can be said."""
    if not (value.requires_grad and source.requires_grad):
        return value
    (found,) = mg.grad(value.sum(), [source], retain_graph=True, create_graph=create, allow_unused=True)
    return value if found is None else found * 0.1


class Run:
    """One run of a program: gradients of the leaves, what hooks heard, what retain_grad kept, or the error.

    with_checkpoints  False: the plain twin, without budget and without slow memory
    """

    def __init__(self, text, form, budget, with_checkpoints):
        self.with_checkpoints, self.heard, self.kept, self.live = with_checkpoints, [], [], None
        rng = np.random.default_rng(7)
        self.leaves = [mg.tensor(rng.standard_normal(s) / 2, requires_grad=True) for s in [(3, 3), (3, 3), (3, 3)]]
        self.constant = mg.tensor(rng.standard_normal((3, 3)) / 2)
        mg.manual_seed(3)
        names = {"mg": mg}
        exec(compile(text, "<program>", "exec"), names)
        self.program, self.form = names.pop("program"), form
        self.budget = budget if with_checkpoints else None
        self.gradients, self.norm = [], mg.nn.BatchNorm1d(3)

    def __call__(self):
        """Run forward and backward, and note what is alive afterwards."""
        with warnings.catch_warnings(), mg.Tracer() as tracer:
            warnings.simplefilter("ignore", mg.CheckpointWarning)
            with mg.memory_budget(self.budget) if self.budget else contextlib.nullcontext():
                loss = self.forward_and_backward()
            held = 0 if self.kept or self.form == "grad" else tracer.live_activations  # the loss alone holds no buffer
            del loss
            self.retained = [None if t.grad is None else t.grad.numpy() for t in self.kept]
            self.kept = []
            self.live = held or tracer.live_activations
        return self

    def forward_and_backward(self):
        outputs = self.program(
            *self.leaves, self.constant, self.checkpoint, self.sequential, self.hear, self.keep, self.norm, without,
            derivative,
        )
        loss = sum([mg.tanh(t).sum() for t in outputs if t.requires_grad], start=(self.leaves[0] * 0.0).sum())
        del outputs
        if self.form == "grad":
            found = mg.grad(loss, self.leaves, allow_unused=True)
        elif self.form == "create_graph":
            first = mg.grad(loss, self.leaves, create_graph=True, allow_unused=True)
            second = sum([(g * g).sum() for g in first if g is not None])
            second.backward()
            found = [*first, *(leaf.grad for leaf in self.leaves)]
            first = second = None
        else:
            if self.form == "twice":
                loss.backward(retain_graph=True)
            if self.form == "steps":
                for _ in mg.steps(loss):
                    pass
            else:
                loss.backward()
            found = [leaf.grad for leaf in self.leaves]
        self.gradients = [None if g is None else g.numpy() for g in found]
        self.gradients += [self.norm.running_mean.numpy(), self.norm.running_var.numpy()]
        return loss

    def checkpoint(self, fn, *given, **keywords):
        return mg.checkpoint(fn, *given, **keywords) if self.with_checkpoints else fn(*given)

    def sequential(self, layers, schedule, x):
        if self.with_checkpoints:
            return mg.checkpoint_sequential(layers, schedule, x)
        for layer in layers:
            x = layer(x)
        return x

    def hear(self, tensor):
        if not tensor.requires_grad:
            return
        heard = []
        self.heard.append(heard)
        tensor.register_hook(lambda g: heard.append(g.numpy().copy()) or g * 0.5)

    def keep(self, tensor):
        if tensor.requires_grad and not tensor.is_leaf:
            tensor.retain_grad()
            self.kept.append(tensor)


def differences(text, form, budget):
    """What is wrong with a program with checkpoints, in words, or None; also None where its plain twin fails."""
    try:
        plain = Run(text, form, None, False)()
    except mg.MinigradError:
        return None
    try:
        ours = Run(text, form, budget, True)()
    except mg.BudgetError:
        return None  # a budget that cannot be kept
    except Exception as error:
        return f"the plain twin runs; with checkpoints {type(error).__name__}: {error}"
    exact = form != "create_graph" and "derivative(" not in text
    for what in ("gradients", "retained"):
        for number, (a, b) in enumerate(zip(getattr(ours, what), getattr(plain, what), strict=True)):
            if not agree(a, b, exact):
                return f"{what}[{number}]: {a} with checkpoints, {b} without"
    if form in ("once", "twice", "steps") and "derivative(" not in text:
        for number, (a, b) in enumerate(zip(ours.heard, plain.heard, strict=True)):
            if len(a) != len(b) or not all(agree(p, q, exact) for p, q in zip(a, b, strict=True)):
                return f"hook {number} heard {a} with checkpoints, {b} without"
    if ours.live or plain.live:
        return f"alive afterwards: {ours.live} activations with checkpoints, {plain.live} without"
    return None


def agree(a, b, exact):
    if a is None or b is None:
        return a is b
    return a.tobytes() == b.tobytes() if exact else np.allclose(a, b, rtol=1e-8, atol=1e-11)
