"""The main job: `python -m minigrad demo`, on the real digits."""

import gc
import pathlib
import re
import subprocess
import sys
import tracemalloc

import numpy as np
import pytest

import minigrad as mg
from minigrad import schedules
from minigrad.commands import demo
from tests.test_pictures import assert_in_the_repository

README = pathlib.Path(__file__).parent.parent / "README.md"


class Silent:
    """A progress bar that shows nothing."""

    def update(self):
        pass


@pytest.fixture(scope="module", params=[1, pytest.param(demo.EPOCHS, marks=pytest.mark.slow)], ids="{} epochs".format)
def finished(tmp_path_factory, request):
    """One whole run in a process of its own: (completed process, folder of pictures)."""
    folder = tmp_path_factory.mktemp("demo") / "out"
    command = [sys.executable, "-W", "error", "-m", "minigrad", "demo", "--repeats", "1", "--out", str(folder)]
    return subprocess.run([*command, "--epochs", str(request.param)], capture_output=True, text=True), folder


def rows_of(text):
    """schedule -> (planned, measured, to replay, replayed, peak MB) of a printed table."""
    found = re.findall(r"^((?:\d+ segments?)|triangular) +(\d+) +(\d+) +(\d+) +(\d+) +([\d.]+) +[\d.]+$", text, re.M)
    return {name: (*map(int, figures[:4]), float(figures[4])) for name, *figures in found}


def test_the_demo_runs_to_its_end(finished):
    process, _ = finished
    assert process.returncode == 0, process.stderr
    assert "the same to the last bit" in process.stdout
    assert "agree in every row" in process.stdout
    assert process.stderr == ""  # no progress bar where there is no terminal, and no warnings
    assert all(len(line) <= 110 for line in process.stdout.splitlines() if "Look at" not in line)


def test_it_learns_to_read_digits(finished):
    right = float(re.search(r"test accuracy ([\d.]+)%", finished[0].stdout)[1])
    assert right >= 90


def test_the_table_is_the_formula_measured(finished):
    rows = rows_of(finished[0].stdout)
    assert list(rows) == [f"{k} segments" if k > 1 else "1 segment" for k in demo.SEGMENTS] + ["triangular"]
    for k in demo.SEGMENTS:
        planned, measured, to_replay, replayed, _ = rows[f"{k} segments" if k > 1 else "1 segment"]
        assert planned == measured == k + 100 // k - 1
        assert to_replay == replayed == (k - 1) * (100 // k - 1)
    assert rows["triangular"][:4] == (14, 14, 86, 86)


def test_it_draws_two_pictures(finished, request):
    for name, words in (("network.svg", "checkpoint"), ("memory.svg", "store all")):
        svg = (finished[1] / name).read_text()
        assert "<svg" in svg and words in svg
    if request.node.callspec.params["finished"] == 1:  # those in the repository show a network after one epoch
        assert_in_the_repository(sorted(finished[1].glob("*.svg")))


def test_the_readme_shows_what_the_demo_prints(finished):
    """All of the table but the times, which differ from machine to machine."""
    assert rows_of(README.read_text()) == rows_of(finished[0].stdout)


def test_training_with_and_without_checkpoints_is_the_same_to_the_last_bit(same_bits):
    (images, labels), _ = demo.digits()
    data = images[:300], labels[:300]
    plain, losses = demo.train(schedules.store_all(), data, Silent(), epochs=2)
    other, same_losses = demo.train(schedules.triangular(), data, Silent(), epochs=2)
    assert losses == same_losses and losses[-1] < losses[0]
    same_bits(list(plain.state_dict().values()), list(other.state_dict().values()))


@pytest.mark.parametrize("schedule", [schedules.store_all(), schedules.every(10)], ids=str)
def test_over_the_demos_backward_the_tracers_peak_is_tracemallocs(schedule):
    """Within half a percent, once the workspace of ops is named; tracemalloc alone measures a run of its own.

    tracemalloc's peak is of all domains; what at the end of forward is not NumPy's (nodes, tuples, numbers) is
    taken off it.
    """
    network, ((images, labels), _) = demo.make_network(), demo.digits()
    images, labels = mg.tensor(images), mg.tensor(labels)
    there_before = sum(p.nbytes for p in network.parameters()) + images.nbytes + labels.nbytes

    def one_pass():
        for parameter in network.parameters():
            parameter.grad = None
        loss = demo.loss_of(network, images, labels, schedule)
        python_objects = 0
        if tracemalloc.is_tracing():
            only = tracemalloc.DomainFilter(True, np.lib.tracemalloc_domain)
            now, _ = tracemalloc.get_traced_memory()
            arrays = tracemalloc.take_snapshot().filter_traces([only]).traces
            python_objects = now - sum(trace.size for trace in arrays)
        loss.backward()
        return python_objects

    one_pass()
    gc.collect()
    tracemalloc.start()
    try:
        python_objects = one_pass()
        peak = tracemalloc.get_traced_memory()[1] - python_objects
    finally:
        tracemalloc.stop()
    with mg.Tracer(workspace=True) as tracer:
        one_pass()
    assert abs(tracer.peak_bytes - there_before - peak) < 0.005 * peak
    assert tracer.peak("workspace") > 0


def test_the_layer_op_is_its_three_op_twin(same_bits):
    rng = np.random.default_rng(0)
    tensors = [mg.tensor(rng.standard_normal(shape), requires_grad=True) for shape in ((5, 4), (3, 4), (3,))]
    g = mg.tensor(rng.standard_normal((5, 3)))
    h, w, b = tensors
    fused = demo.tanh_linear(h, w, b)
    plain = mg.linear(mg.tanh(h), w, b)
    np.testing.assert_allclose(fused.numpy(), plain.numpy(), rtol=1e-12)
    for ours, reference in zip(mg.grad(fused, tensors, g), mg.grad(plain, tensors, g), strict=True):
        np.testing.assert_allclose(ours.numpy(), reference.numpy(), rtol=1e-12)
    assert mg.gradgradcheck(demo.tanh_linear, tensors)
    assert [row.node for row in mg.saved(demo.tanh_linear(h * 1.0, w, b))] != []


def test_an_unknown_command_is_told():
    process = subprocess.run([sys.executable, "-m", "minigrad", "dmeo"], capture_output=True, text=True)
    assert process.returncode == 2 and "demo" in process.stderr
