"""What lesson 16 says about two memories, against plans and formulas; and that its cells run where there is a GPU.

There is no GPU here, so `STAND_IN` takes CuPy's place in a process of its own: arrays of a class that is not NumPy's,
which compute only with their like. It shows that the lesson names the device where it must, and nothing about speed.
"""

import os
import pathlib
import subprocess
import sys

import pytest

import minigrad
from minigrad import schedules
from minigrad.commands import lessons as course

pytestmark = pytest.mark.lesson
LAYERS = 36

STAND_IN = '''
"""In the place of CuPy: arrays that say that they are on a GPU, and are NumPy's inside."""

import sys
import types

import numpy


class ndarray:
    __array_ufunc__ = None

    def __init__(self, array, base=None):
        self._array, self.base = array, base

    device = types.SimpleNamespace(id=0)

    def get(self):
        return self._array.copy()

    def __getattr__(self, name):
        found = getattr(self._array, name)
        return on_gpu(found, self) if not callable(found) else in_its_place(found, self)

    def __array__(self, *how, **settings):
        raise TypeError("Implicit conversion to a NumPy array is not allowed")


def on_gpu(value, source=None):
    if not isinstance(value, numpy.ndarray):
        return value
    is_view = source is not None and value.base is not None and numpy.shares_memory(value, source._array)
    return ndarray(value, (source.base or source) if is_view else None)


def bare(value):
    if isinstance(value, numpy.ndarray):
        raise TypeError(f"Unsupported type {type(value)}")
    if isinstance(value, (tuple, list)):
        return type(value)(map(bare, value))
    return value._array if isinstance(value, ndarray) else value


def in_its_place(function, source=None):
    def call(*arguments, **settings):
        return on_gpu(function(*map(bare, arguments), **{k: bare(v) for k, v in settings.items()}), source)

    return call


def operator(name):
    def call(self, *arguments):
        return in_its_place(getattr(self._array, name), self)(*arguments)

    return call


for name in ("add radd sub rsub mul rmul truediv rtruediv matmul rmatmul pow neg ge gt le lt eq ne getitem len "
             "bool float int").split():
    setattr(ndarray, f"__{name}__", operator(f"__{name}__"))


def asarray(value, *how):
    return value if isinstance(value, ndarray) else ndarray(numpy.array(value))


def get_array_module(*arrays):
    return sys.modules[__name__] if any(isinstance(array, ndarray) for array in arrays) else numpy


class Device:
    waited = 0

    def __init__(self, index=0):
        pass

    def __enter__(self):
        return self

    def __exit__(self, *error):
        pass

    def synchronize(self):
        Device.waited += 1


cuda = types.SimpleNamespace(Device=Device, runtime=types.SimpleNamespace(getDeviceCount=lambda: 1))


def __getattr__(name):
    found = getattr(numpy, name)
    return in_its_place(found) if callable(found) and not isinstance(found, type) else found
'''


def tells_a_count(line):
    return any(word in line for word in ("peak", "writes", "boundaries"))


@pytest.fixture
def run(lesson):
    return lesson("16")


def counts(tracer):
    return tracer.peak_activations, tracer.replayed_ops, tracer.writes, tracer.reads


def planned(schedule):
    plan = schedule.plan(LAYERS)
    return plan.peak, plan.extra_forwards, plan.writes, plan.reads


def test_everything_is_where_the_arrays_are(run):
    assert run["devices"] == {run["DEVICE"]} and run["x"].to(run["DEVICE"]) is run["x"]
    assert f"this run is on {run['DEVICE']}" in run.lines()
    assert (run["mixed"] is None) == (run["DEVICE"] == "cpu")


def test_counts_and_gradients_do_not_ask_where_the_arrays_are(run):
    assert counts(run["six"]) == planned(schedules.uniform(6)) == (11, 25, 0, 0)
    assert run["same_bits"] is True
    assert run["mask"]("cpu").tobytes() == run["mask"](run["DEVICE"]).tobytes()


def test_every_line_that_compares_agrees_with_its_plan(run):
    lines = [line for line in run.lines() if "as planned" in line]
    assert len(lines) == 4 + 3 + 4 and all(line.endswith("as planned: True") for line in lines)


def test_moving_boundaries_spares_their_room_and_no_replay(run):
    tracers = run["tracers"]
    assert counts(tracers["segments"]) == (6 + 6 - 1, 25, 0, 0)
    assert counts(tracers["moved segments"]) == (6, 25, 5, 5)
    assert counts(tracers["moved layers"]) == (1, 0, 35, 35)
    assert tracers["moved segments"].peak("offloaded") == 5 * 256 * 64 * 4
    assert all(tracer.live("offloaded") == 0 == tracer.live_activations for tracer in tracers.values())


def test_a_window_holds_what_is_fetched_ahead_and_fetches_nothing_twice(run):
    assert run["windows"] == {1: (6, [1, 2, 3, 4, 5]), 2: (7, [2, 3, 4, 5, 5]), 3: (8, [3, 4, 5, 5, 5])}
    for window, (peak, _) in run["windows"].items():
        assert peak == schedules.offloaded(6, window).plan(LAYERS).peak == 6 - 1 + min(window, 5)


def test_what_the_tape_holds_anyway_is_not_moved(run):
    assert run["stuck"].writes == 0 and run["repaired"].writes == 2
    assert run["repaired"].live("offloaded") == 0


def test_two_memories_replay_as_little_as_one_or_move_less(run):
    tracers = {name: counts(tracer) for name, tracer in run["tier_tracers"].items()}
    assert tracers == {name: planned(schedule) for name, schedule in run["tiers"].items()}
    fast, few = tracers["six fast slots"], tracers["three fast slots"]
    multistage, aware = tracers["multistage(3, 3)"], tracers["h_revolve(3, 3)"]
    assert multistage[1] == fast[1] < aware[1] < few[1]
    assert sum(aware[2:]) < sum(multistage[2:])
    assert multistage[0] == aware[0] == few[0] < fast[0]
    sums = {name: run["in_forwards"](schedule.plan(LAYERS)) for name, schedule in run["tiers"].items()}
    assert sums["h_revolve(3, 3)"] < sums["three fast slots"] < sums["multistage(3, 3)"]


def test_h_revolve_moves_less_the_dearer_a_transfer_is(run):
    replays, writes, reads = zip(*run["by_cost"].values(), strict=True)
    assert list(replays) == sorted(replays) and list(writes) == sorted(writes, reverse=True)
    assert replays[0] == schedules.binomial(7).plan(LAYERS).extra_forwards
    assert (replays[-1], writes[-1], reads[-1]) == planned(schedules.binomial(4))[1:]
    for cost, (replayed, written, read) in run["by_cost"].items():  # and no other of them would be better
        others = [r + cost * (w + back) for r, w, back in run["by_cost"].values()]
        assert replayed + cost * (written + read) <= min(others) + 1e-9


def test_a_transfer_is_measured_in_forwards_of_a_layer(run):
    assert run["cost"] == run["copy_time"] / run["layer_time"] > 0
    assert len(run.lines("time:")) == 2
    assert not any("µs" in line for line in run.lines())


def test_the_picture_has_the_counts_of_both_memories(run):
    steps, fast, slow = run["levels"](run["with_window"])
    assert (max(fast), max(slow), slow[-1]) == (7, 5, 0) and steps == sorted(set(steps))
    svg = run.files["16-two-memories.svg"].read_text("utf-8")
    assert "holds 7 in fast memory instead of 11" in svg


def test_minigrad_starts_no_stream_and_pins_no_memory():
    """Said under 'What is different on a GPU'."""
    sources = [path.read_text("utf-8") for path in pathlib.Path(minigrad.__file__).parent.rglob("*.py")]
    assert sources and not any("Stream" in source or "pinned" in source for source in sources)


def test_the_same_cells_run_on_a_device(run, tmp_path):
    """With the stand-in for CuPy: the same counts, and the error for two devices."""
    (tmp_path / "cupy.py").write_text(STAND_IN, "utf-8")
    script = course.lesson_file("16", course.FOLDER)
    paths = os.pathsep.join([str(tmp_path), str(course.FOLDER.parent)])
    environment = {**os.environ, "PYTHONPATH": paths, "MINIGRAD_PICTURES": str(tmp_path), "PYTHONUTF8": "1"}
    child = subprocess.run([sys.executable, str(script)], env=environment, capture_output=True, encoding="utf-8")
    assert child.returncode == 0, child.stderr
    told = [line for line in child.stdout.splitlines() if not line.startswith("time:")]
    assert told[:2] == ["this run is on cuda:0", "input, weights, loss and gradients are on cuda:0"]
    assert "matmul at 16_on_a_gpu.py:" in child.stdout and "got tensors on cpu and cuda:0" in child.stdout
    counted, here = ([line for line in lines if tells_a_count(line)] for lines in (told, run.lines()))
    assert counted[1:] == here[1:]  # the first of them names the device
    assert len(counted) == 1 + 4 + 6 + 2 + 4 + 5
    assert (tmp_path / "16-two-memories.svg").read_bytes() == run.files["16-two-memories.svg"].read_bytes()
