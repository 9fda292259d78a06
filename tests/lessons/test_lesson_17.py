"""What lesson 17 says: here in any case, and about PyTorch and JAX where they are installed."""

import importlib

import numpy as np
import pytest

from minigrad import schedules
from minigrad.commands import exercises
from minigrad.commands import lessons as course

pytestmark = pytest.mark.lesson
TABLE = "## In PyTorch and in JAX this is called"
NAMES = {
    "torch.utils.checkpoint": (
        "checkpoint checkpoint_sequential CheckpointPolicy create_selective_checkpoint_contexts "
        "set_checkpoint_early_stop CheckpointPolicy.PREFER_RECOMPUTE CheckpointPolicy.MUST_SAVE "
        "CheckpointPolicy.MUST_CPU_OFFLOAD"
    ),
    "torch.autograd.graph": "save_on_cpu saved_tensors_hooks",
    "torch._functorch.config": "activation_memory_budget",
    "torch.cuda": "max_memory_allocated",
    "jax": "checkpoint remat",
    "jax.checkpoint_policies": (
        "nothing_saveable everything_saveable dots_saveable save_only_these_names save_from_both_policies "
        "save_and_offload_only_these_names"
    ),
    "jax.ad_checkpoint": "print_saved_residuals",
}


@pytest.fixture
def run(lesson):
    return lesson("17")


def needs(run, name):
    if run[name] is None:
        pytest.skip(f"{name} is not installed")


def test_the_program_that_it_shows_has_the_plans_tree(run):
    assert "PLAN = [[[3], 3], [3], [2], 1]" in run.lines()
    solution = exercises.load(exercises.file_of("17", "solutions", course.FOLDER))
    assert solution.as_lists(run["schedule"], run["LAYERS"]) == [[[3], 3], [3], [2], 1]
    assert not any("__main__" in line for line in run.lines())


def test_what_is_not_installed_is_said_and_skipped(run):
    for name, cells in (("torch", 3), ("jax", 1)):
        is_here = run[name] is not None
        assert (f"{name} is not installed: cells that need it are skipped" in run.lines()) == (not is_here)
        skipped = run.lines().count(f"skipped: no {'PyTorch' if name == 'torch' else 'JAX'}")
        assert skipped == (0 if is_here else cells)


def test_the_plans_runs_of_layers_are_what_minigrad_computes_and_code_is_called_once(run):
    calls, sines = run["found"]["minigrad"]
    assert sines == run["plan"].total_forwards == schedules.binomial(4).plan(12).total_forwards
    assert calls == [1] * run["LAYERS"]


def test_a_weight_that_is_not_transposed_fits_and_is_wrong(run):
    assert run["broken"].shape == run["repaired"].shape == run["expected"].shape
    np.testing.assert_allclose(run["repaired"], run["expected"], atol=1e-5)
    assert abs(run["broken"] - run["expected"]).max() > 0.05
    assert "h @ w:   the network's result: False" in run.lines()


def test_minigrad_is_right_with_numpys_dice_and_refuses_an_updated_weight(run):
    assert run["right_with_dice"] is True
    assert "parameter w was overwritten after the matmul at 17_to_pytorch_and_jax.py:" in run["overwritten"]


def test_the_remainder_is_in_the_last_segment_in_pytorch(run):
    assert run["remainder"] == {
        "uniform(5)": ([5, 5, 5, 4, 4], 8),
        "torch_compatible(5)": ([4, 4, 4, 4, 7], 11),
    }
    svg = run.files["17-remainder.svg"].read_text("utf-8")
    assert "torch_compatible(5) has 11 activations live at the peak" in svg


def test_its_table_names_only_what_there_is(run):
    """Each of NAMES is in its table or its text, and is looked up in the framework, if that is installed."""
    text = course.lesson_file("17", course.FOLDER).read_text("utf-8")
    assert TABLE in text
    for module, names in NAMES.items():
        for name in names.split():
            assert name.rpartition(".")[2] in text
            if run[module.partition(".")[0]] is not None:
                found = look_up(module)
                for part in name.split("."):
                    found = getattr(found, part)


def look_up(module):
    try:
        return importlib.import_module(module)
    except ImportError:
        outer, _, name = module.rpartition(".")
        return getattr(importlib.import_module(outer), name)


# ---- With PyTorch ------------------------------------------------------------------------------------


def test_pytorch_runs_as_many_layers_and_gives_the_same_gradients(run):
    needs(run, "torch")
    calls, sines = run["found"]["PyTorch"]
    assert sines == run["plan"].total_forwards and run["same_in_torch"] and run["same_block"]
    solution = exercises.load(exercises.file_of("17", "solutions", course.FOLDER))
    assert calls == solution.calls_of_code([[[3], 3], [3], [2], 1])


def test_pytorch_does_not_see_numpys_dice_or_an_update_inside_a_checkpoint(run):
    needs(run, "torch")
    assert run["in_torch"]["dice"] is False and run["in_torch"]["update"] is False
    assert "modified by an inplace operation" in run["in_torch"]["update, plain"]


@pytest.mark.parametrize("lists", [[[2], 1], [[[[1], 1], 1], 1], [1, [1, [1], 1], 1]], ids=str)
def test_pytorch_calls_code_once_for_each_checkpoint_around_it(run, lists):
    """The numbers in check_17.py."""
    needs(run, "torch")
    solution = exercises.load(exercises.file_of("17", "solutions", course.FOLDER))
    net, expected = run["torch_net"](), solution.calls_of_code(lists)
    layers = list(net)[: len(expected)]
    run["namespace"]["run"](layers, run["torch"].tensor(run["inputs"]), lists).sum().backward()
    assert [layer.calls for layer in layers] == expected


def test_pytorch_cuts_as_the_remainder_rule_says(run):
    needs(run, "torch")
    from torch.utils.checkpoint import checkpoint_sequential

    for layers, segments in ((23, 5), (9, 5), (12, 4)):
        net = [type(run["torch_net"]()[0])() for _ in range(layers)]
        checkpoint_sequential(net, segments, run["torch"].tensor(run["inputs"]), use_reentrant=False).sum().backward()
        last = schedules.torch_compatible(segments).split(layers)[-1][0]
        assert [layer.calls for layer in net] == [2] * (layers - last) + [1] * last


# ---- With JAX ----------------------------------------------------------------------------------------


def test_jax_runs_as_many_layers_and_gives_the_same_gradients(run):
    needs(run, "jax")
    calls, sines = run["found"]["JAX"]
    assert sines == run["plan"].total_forwards and run["same_in_jax"]
    assert calls == [1] * run["LAYERS"]
