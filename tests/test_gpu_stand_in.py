"""minigrad where arrays are CuPy's: every op and the training loop on the strict stand-in, against the CPU."""

import json
import os
import pathlib
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).parents[1]


@pytest.fixture(scope="module")
def report():
    done = subprocess.run([sys.executable, "-m", "tests.on_gpu_stand_in"], capture_output=True, text=True, cwd=ROOT,
                          env={**os.environ, "PYTHONPATH": str(ROOT)})
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_everything_agrees_with_the_cpu(report):
    assert not report["failures"], "\n".join(report["failures"])


def test_as_many_samples_ran_as_the_registry_and_the_training_loop_have(report):
    """Hundreds of samples of ops (the number grows with the ops), 4 optimizers x 7 ways to run."""
    assert report["counts"]["op"] >= 700
    assert report["counts"]["train"] == 28
