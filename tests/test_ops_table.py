"""`python -m minigrad ops`: the table is complete, what it says is true, and lessons/ops.md is what it prints."""

import pathlib
import re
import subprocess
import sys

import numpy as np
import pytest

import minigrad as mg
from minigrad.commands import ops as catalogue
from minigrad.engine.op import registry
from tests.op_samples import SAMPLES
from tests.test_ops import bound, leaves_of, tensors

PAGE = pathlib.Path(__file__).parent.parent / "lessons" / "ops.md"
OURS = [name for name, op in registry.items() if op.forward.__module__.startswith("minigrad.")]


def words_of(name):
    """The cells of an op's line: op, inputs, gradient reads, again, what it does."""
    return catalogue.row(registry[name])


def test_the_page_is_what_the_program_prints():
    """If this fails: python -m minigrad ops --markdown > lessons/ops.md"""
    child = subprocess.run(
        [sys.executable, "-W", "error", "-X", "utf8", "-m", "minigrad", "ops", "--markdown"], capture_output=True
    )
    assert child.returncode == 0, child.stderr
    assert child.stdout.decode("utf-8") == PAGE.read_text("utf-8")


def test_every_op_has_one_line_on_the_page_and_in_the_terminal(capsys):
    page = PAGE.read_text("utf-8")
    assert catalogue.main([]) == 0
    terminal = capsys.readouterr().out
    for name in OURS:
        assert len(re.findall(rf"^\| `{name}` \| .* \|$", page, re.M)) >= 1
        assert len(re.findall(rf"^{name} +\S", terminal, re.M)) >= 1
    assert max(map(len, catalogue.as_text().split("\n\n")[1].splitlines())) <= catalogue.WIDTH


def test_every_public_function_is_on_the_page():
    made_of_ops = {name for name, _ in catalogue.composed()}
    assert made_of_ops | set(OURS) >= set(mg.ops.__all__) - {"abs", "all", "any", "max", "min", "pow", "sum"}
    assert {"flatten", "split", "normalize", "conv1d"} <= made_of_ops and not made_of_ops & set(OURS)


@pytest.mark.parametrize(
    "name, reads, again",
    [
        ("tanh", "x: out", "yes"),
        ("add", "a, b: nothing", "0"),
        ("mul", "a: b; b: a", "yes"),
        ("where", "a, b: condition", "0"),
        ("argmax", "no gradient", "-"),
        ("cat", "xs: nothing", "0"),
        ("linear", "x: w; w: x; b: nothing", "yes"),
    ],
)
def test_some_lines(name, reads, again):
    assert words_of(name)[2:4] == (reads, again)


def test_every_line_says_something():
    for name in OURS:
        assert all(words_of(name)) and "\n" not in "".join(words_of(name))


@pytest.mark.parametrize("name", OURS)
def test_the_table_is_right_about_second_derivatives(name):
    """Where it says "yes", gradients can be differentiated again; where it says "0", they depend on no input."""
    says = words_of(name)[3]
    assert bool(registry[name].vjps) == (says != "-")
    for sample in SAMPLES[name]:
        leaves = leaves_of(inputs := tensors(name, sample))
        out = bound(name, sample)(*inputs)
        assert out.requires_grad == bool(leaves)
        if leaves:
            cotangent = mg.tensor(np.ones(out.shape), requires_grad=True)
            gradients = mg.grad(out, leaves, cotangent, create_graph=True)
            for gradient in gradients:
                if gradient.requires_grad:
                    *wrt_inputs, _ = mg.grad(gradient.sum(), [*leaves, cotangent], retain_graph=True, allow_unused=True)
                    assert says == "yes" or all(g is None for g in wrt_inputs)


def test_an_op_whose_gradient_depends_on_an_input_is_not_said_to_have_a_zero_second_derivative():
    """The test above can fail: with a table that says 0 for mul, it does."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(catalogue, "again", lambda op: "0")
        with pytest.raises(AssertionError):
            test_the_table_is_right_about_second_derivatives("mul")
