"""What all tests share: no cycle collector, no clocks in hypothesis, a seed, and the reference chain."""

import gc
import os
import sys
import warnings

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # before NumPy: small matrices are no work for many threads

import numpy as np  # noqa: E402
import pytest  # noqa: E402

import minigrad as mg  # noqa: E402

try:
    from hypothesis import settings

    settings.register_profile("steady", deadline=None, derandomize=True)
    settings.load_profile("steady")
except ImportError:
    pass


collect_ignore = ["fake_cupy.py", "on_gpu_stand_in.py", "read_cupy_names.py"]  # programs: a process of their own each


@pytest.fixture(autouse=True)
def no_cycle_collector():
    """Everything must die by reference count: no test may need the collector to see memory come back."""
    gc.disable()
    yield
    gc.enable()


@pytest.fixture(autouse=True)
def recursion_ends_where_it_did():
    """A program that a plan has written may set Python's limit; what another test expects to fail would go on."""
    limit = sys.getrecursionlimit()
    yield
    sys.setrecursionlimit(limit)


@pytest.fixture(autouse=True)
def seed():
    mg.manual_seed(0)


@pytest.fixture(autouse=True)
def small_checkpoints_are_allowed():
    """Tests checkpoint tiny functions on purpose; those that are about the warning ask for it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", mg.CheckpointWarning)
        yield


class Chain:
    """The reference chain: L layers h @ W_i from plain data x_0, then a sum."""

    def __init__(self, length, size=4, seed=0):
        rng = np.random.default_rng(seed)
        matrices = [np.linalg.qr(rng.standard_normal((size, size)))[0] for _ in range(length)]
        self.weights = [mg.tensor(matrix.astype(np.float32), requires_grad=True) for matrix in matrices]
        self.x = mg.tensor(rng.standard_normal((3, size)).astype(np.float32))
        self.layers = [Layer(weight) for weight in self.weights]

    def run(self, schedule):
        """(tracer, gradients as arrays) of one forward and backward under a schedule. The loss stays alive."""
        for weight in self.weights:
            weight.grad = None
        with mg.Tracer() as tracer:
            self.loss = mg.checkpoint_sequential(self.layers, schedule, self.x).sum()
            self.loss.backward()
        return tracer, [weight.grad.numpy() for weight in self.weights]


class Layer:
    def __init__(self, weight):
        self.weight = weight

    def __call__(self, h):
        return h @ self.weight


@pytest.fixture
def chain():
    return Chain


def parameter(*shape, seed=0, dtype=np.float64, name=None):
    """A leaf of random numbers that requires a gradient."""
    data = np.random.default_rng(seed).standard_normal(shape).astype(dtype)
    return mg.tensor(data, requires_grad=True, name=name)


@pytest.fixture(name="parameter")
def parameter_fixture():
    return parameter


def same_bits(ours, theirs):
    """Assert that two lists of arrays agree to the last bit."""
    for a, b in zip(ours, theirs, strict=True):
        a, b = np.asarray(a), np.asarray(b)
        assert a.dtype == b.dtype and a.shape == b.shape
        assert a.tobytes() == b.tobytes()


@pytest.fixture(name="same_bits")
def same_bits_fixture():
    return same_bits
