"""mg.save and mg.load: what comes back, what is refused, and what a bad file or a full disk does."""

import collections
import io
import json
import math
import os
import pickle
import zipfile

import numpy as np
import pytest

import minigrad as mg
from minigrad import nn, optim
from minigrad.nn import files


@pytest.fixture
def path(tmp_path):
    return tmp_path / "state.npz"


def there_and_back(state, path):
    mg.save(state, path)
    return mg.load(path)


def same(a, b):
    """Whether two states are of the same types and hold the same bits."""
    if type(a) is not type(b):
        return False
    if isinstance(a, dict):
        return len(a) == len(b) and all(same(p, q) for p, q in zip(a.items(), b.items(), strict=True))
    if isinstance(a, (list, tuple)):
        return len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, mg.Tensor):
        return (a.requires_grad, a.name) == (b.requires_grad, b.name) and same(a.data, b.data)
    if isinstance(a, (np.ndarray, np.generic)):
        return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()
    return a == b or a != a and b != b


# ---- What comes back ---------------------------------------------------------------------------------

STATES = {
    "numbers": [0, -1, 10**30, True, False, None, 0.1, -0.0, math.inf, -math.inf, math.nan, "", "ä\n\ud800"],
    "containers": {"a": [], "b": (), "c": {}, "d": [(1, [2, {"e": (3,)}])]},
    "keys": {0: "int", "0": "str", None: 1, True: 2, 2.5: 3, math.inf: 4, (1, ("a", None)): 5},
    "odd names": {"..": np.ones(1), "/etc": np.ones(1), "": np.ones(2), "a/b": np.ones(1), "minigrad.json": np.ones(3)},
    "clashing names": {"a/b": np.ones(1), "a": {"b": np.zeros(2)}, 1: np.ones(3), "1": np.zeros(4)},
    "scalars": [np.float32(0.1), np.int8(-3), np.bool_(True), np.float64(math.nan), np.str_("text")],
    "one tensor": mg.tensor([1.0, 2.0], requires_grad=True, name="w"),
    "one array": np.arange(6.0).reshape(2, 3),
    "one number": 7,
}  # fmt: skip


@pytest.mark.parametrize("state", STATES.values(), ids=STATES)
def test_a_state_comes_back_as_it_was(state, path):
    assert same(there_and_back(state, path), state)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "int8", "uint64", "bool"])
@pytest.mark.parametrize("shape", [(), (0,), (2, 3), (2, 0, 3)])
def test_every_dtype_and_shape_comes_back(dtype, shape, path):
    array = np.random.default_rng(0).standard_normal(shape).__mul__(9)
    array = np.asarray(array).astype("int8" if dtype == "uint64" else dtype).astype(dtype)
    assert same(there_and_back([mg.tensor(array), array], path), [mg.tensor(array), array])


def test_arrays_of_any_layout_come_back(path):
    whole = np.arange(24.0).reshape(2, 3, 4)
    arrays = [whole.T, whole[:, ::2, ::-1], np.broadcast_to(whole[0], (5, 3, 4)), whole.astype(">f4"), np.array(["ab"])]
    for ours, array in zip(there_and_back(arrays, path), arrays, strict=True):
        assert ours.dtype == array.dtype and np.array_equal(ours, array) and ours.flags.writeable


def test_subclasses_of_containers_come_back_as_the_plain_ones(path):
    pair = collections.namedtuple("pair", "a b")
    state = [collections.OrderedDict(x=1), collections.defaultdict(list, y=[2]), pair(3, 4)]
    assert same(there_and_back(state, path), [{"x": 1}, {"y": [2]}, (3, 4)])


def test_tensors_are_leaves_that_cannot_be_written_to(path):
    w = there_and_back(mg.tensor([1.0, 2.0], requires_grad=True, name="w"), path)
    assert w.is_leaf and w.requires_grad and w.name == "w" and w.grad is None
    with pytest.raises(ValueError):
        w.data[0] = 3
    (w * w).sum().backward()
    assert w.grad.tolist() == [2.0, 4.0]


def test_parameters_come_back_as_parameters(path):
    frozen = nn.Parameter(mg.ones(2), requires_grad=False)
    ours, still = there_and_back([nn.Parameter(mg.ones(2), name="p"), frozen], path)
    assert type(ours) is type(still) is nn.Parameter
    assert (ours.requires_grad, ours.name, still.requires_grad) == (True, "p", False)


def test_what_is_in_two_places_is_written_once_and_is_one_thing_again(path):
    w, array = mg.ones(1000), np.ones(1000)
    mg.save([w, {"again": w}, array, (array,), w.data], path)
    assert len(zipfile.ZipFile(path).namelist()) == 1 + 3
    a, b, c, d, e = mg.load(path)
    assert a is b["again"] and c is d[0] and isinstance(e, np.ndarray)


def test_training_goes_on_from_a_file_with_the_same_bits(path):
    def run(steps, model, optimizer, schedule):
        for _ in range(steps):
            optimizer.zero_grad()
            (model(x) ** 2).mean().backward()
            optimizer.step()
            schedule.step()
        return {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "schedule": schedule.state_dict()}

    def fresh():
        model = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Linear(4, 1))
        optimizer = optim.AdamW(model.parameters(), lr=0.1)
        return model, optimizer, optim.lr_scheduler.CosineAnnealingLR(optimizer, 5)

    x, parts = mg.randn(8, 3), fresh()
    mg.save(run(3, *parts), path)
    expected = run(4, *parts)
    again = fresh()
    for name, part in zip(("model", "optimizer", "schedule"), again, strict=True):
        part.load_state_dict(mg.load(path)[name])
    assert same(run(4, *again), expected)


def test_numpy_opens_the_file_too(path):
    mg.save({"model": {"0.weight": mg.ones(2, 3)}}, path)
    with np.load(path, allow_pickle=False) as archive:
        assert archive["model/0.weight"].shape == (2, 3)
        assert json.loads(archive["minigrad.json"])["format"] == "minigrad"


def test_the_same_state_gives_the_same_bytes(path):
    state = {"w": mg.arange(5), "n": 1}
    mg.save(state, path)
    first = path.read_bytes()
    mg.save(state, path)
    assert path.read_bytes() == first


# ---- What is refused ---------------------------------------------------------------------------------


class Own(mg.Tensor):
    pass


def in_itself():
    state = {"a": [1]}
    state["a"].append(state)
    return state


def deep():
    state = []
    for _ in range(100_000):
        state = [state]
    return state


@pytest.mark.parametrize(
    "state, message",
    [
        ({"model": {"hook": print}}, r"state\['model'\]\['hook'\] is an object of builtins\.builtin_function"),
        ([1, {2, 3}], r"state\[1\] is an object of builtins\.set"),
        ([b"bytes"], r"state\[0\] is an object of builtins\.bytes"),
        ([1j], "builtins.complex"),
        ({"a": np.array([None])}, r"state\['a'\] is an array of Python objects"),
        ({"a": np.ma.masked_array([1, 2], [True, False])}, r"state\['a'\] is .*MaskedArray"),
        ({frozenset(): 1}, r"state has the key frozenset\(\)"),
        (Own(np.ones(2)), r"state is .*Own"),
        (mg.tensor([1.0], requires_grad=True) * 2, "cannot save state, a tensor that was made by <mul.*detach"),
        (in_itself(), r"state\['a'\]\[1\] contains itself"),
        (deep(), "nested too deeply"),
    ],
)
def test_what_a_file_cannot_hold_is_refused_by_its_place(state, message, path):
    path.write_text("old")
    with pytest.raises(mg.MinigradError, match=message):
        mg.save(state, path)
    assert path.read_text() == "old" and os.listdir(path.parent) == [path.name]


def test_a_path_is_a_string_or_a_path(path):
    for wrong in (3, None, io.BytesIO()):
        with pytest.raises(mg.ArgumentError, match="path"):
            mg.save(1, wrong)
        with pytest.raises(mg.ArgumentError, match="path"):
            mg.load(wrong)
    mg.save(1, str(path))
    assert mg.load(os.fsencode(path)) == 1


def test_a_file_that_is_not_there_is_pythons_own_error(path):
    with pytest.raises(FileNotFoundError, match="state.npz"):
        mg.load(path)
    with pytest.raises(FileNotFoundError):
        mg.save(1, path / "below")


# ---- Writing is whole or not at all ------------------------------------------------------------------


@pytest.mark.parametrize("error", [OSError("disk full"), KeyboardInterrupt()], ids=["OSError", "KeyboardInterrupt"])
@pytest.mark.parametrize("broken", ["write_archive", "os.fsync", "os.replace"])
def test_a_failed_save_leaves_the_old_file_and_nothing_else(broken, error, path, monkeypatch):
    mg.save({"w": mg.ones(3)}, path)
    before = path.read_bytes()

    def fail(*args):
        if broken == "write_archive":
            args[0].write(b"half of it")
        raise error

    with monkeypatch.context() as patch:
        patch.setattr(*((files, broken) if broken == "write_archive" else (files.os, broken.removeprefix("os."))), fail)
        with pytest.raises(type(error)):
            mg.save({"w": mg.zeros(3)}, path)
    assert path.read_bytes() == before and os.listdir(path.parent) == [path.name]


def test_the_old_file_is_there_until_the_new_one_is_complete(path, monkeypatch):
    mg.save("old", path)
    replace, seen = os.replace, []

    def watched(source, target):
        seen.append((mg.load(target), mg.load(source)))
        replace(source, target)

    monkeypatch.setattr(files.os, "replace", watched)
    mg.save("new", path)
    assert seen == [("old", "new")] and mg.load(path) == "new"


def test_a_file_keeps_its_mode_and_a_link_stays_a_link(path, tmp_path):
    mg.save(1, path)
    assert path.stat().st_mode & 0o777 == 0o666 & ~current_umask()
    path.chmod(0o640)
    link = tmp_path / "latest.npz"
    link.symlink_to(path.name)
    mg.save(2, link)
    assert link.is_symlink() and mg.load(path) == 2 and path.stat().st_mode & 0o777 == 0o640


def current_umask():
    mask = os.umask(0)
    os.umask(mask)
    return mask


# ---- Bad files ---------------------------------------------------------------------------------------


def test_a_file_cut_short_anywhere_says_so(path):
    mg.save({"w": mg.arange(4), "n": 2.5}, path)
    whole = path.read_bytes()
    for length in range(len(whole)):
        path.write_bytes(whole[:length])
        with pytest.raises(mg.FileError, match="state.npz"):
            mg.load(path)


@pytest.mark.parametrize("flip", [0x01, 0xFF])
def test_a_changed_byte_is_noticed_or_does_not_matter(flip, path):
    state = {"w": mg.tensor([1.5, -2.0], requires_grad=True, name="w"), "t": (1, math.inf), "a": np.arange(3)}
    mg.save(state, path)
    whole, noticed = path.read_bytes(), 0
    for place in range(len(whole)):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ flip]) + whole[place + 1 :])
        try:
            assert same(mg.load(path), state), place
        except mg.FileError as error:
            assert "state.npz" in str(error)
            noticed += 1
    assert noticed > len(whole) / 2


def npy_bytes():
    file = io.BytesIO()
    np.save(file, np.ones(3))
    return file.getvalue()


def foreign(path):
    """name -> a function that writes a file that mg.save has not written, and what the error says of it."""

    def archive(members):
        with zipfile.ZipFile(path, "w") as file:
            for name, content in members.items():
                file.writestr(name, content)

    def header(**changed):
        content = {"format": "minigrad", "version": 1, "state": 0, **changed}
        return lambda: archive({"minigrad.json": json.dumps(content)})

    def npy(array, more=b""):
        file = io.BytesIO()
        np.lib.format.write_array(file, array, allow_pickle=True)
        return lambda: archive({
            "minigrad.json": json.dumps({"format": "minigrad", "version": 1, "state": {"array": "a"}}),
            "a.npy": file.getvalue() + more,
        })  # fmt: skip

    return {
        "empty": (lambda: path.write_bytes(b""), "is empty"),
        "text": (lambda: path.write_text("hello " * 100), "no zip archive"),
        "pickle": (lambda: path.write_bytes(pickle.dumps({"a": 1})), "no zip archive"),
        "npy": (lambda: path.write_bytes(npy_bytes()), "no zip archive"),
        "npz": (lambda: np.savez(path, a=np.ones(3)), "NumPy's; numpy.load"),
        "torch": (lambda: archive({"archive/data.pkl": b"", "archive/data/0": b""}), "PyTorch's"),
        "zip": (lambda: archive({"a.txt": "a"}), "something else"),
        "no members": (lambda: archive({}), "something else"),
        "not json": (lambda: archive({"minigrad.json": b"\xff{"}), "damaged"),
        "deep json": (lambda: archive({"minigrad.json": "[" * 10**6}), "damaged"),
        "other json": (lambda: archive({"minigrad.json": "[1, 2]"}), "not minigrad's"),
        "other format": (header(format="maxigrad"), "not minigrad's"),
        "newer": (header(version=2), "newer minigrad"),
        "no state": (lambda: archive({"minigrad.json": '{"format": "minigrad", "version": 1}'}), "damaged"),
        "unknown kind": (header(state={"sparse": "a"}), "'sparse'"),
        "empty kind": (header(state={}), "damaged"),
        "no array": (header(state={"array": "a"}), "damaged"),
        "number for a name": (header(state={"array": 3}), "damaged"),
        "list as a key": (header(state={"dict": [[[], 1]]}), "damaged"),
        "objects": (npy(np.array([{}], dtype=object)), "damaged.*allow_pickle"),
        "too long": (npy(np.ones(3), b"more"), "longer"),
        "integers with a gradient": (
            lambda: (
                npy(np.arange(3))(),
                zip_append(path, {"tensor": "a", "requires_grad": True, "name": None}),
            ),
            "dtype int64",
        ),
        "a name that is none": (
            lambda: (npy(np.ones(3))(), zip_append(path, {"tensor": "a", "requires_grad": 1, "name": []})),
            "says nothing useful",
        ),
    }


def zip_append(path, state):
    """Give an archive another header."""
    with zipfile.ZipFile(path) as file:
        members = {name: file.read(name) for name in file.namelist()}
    members["minigrad.json"] = json.dumps({"format": "minigrad", "version": 1, "state": state})
    with zipfile.ZipFile(path, "w") as file:
        for name, content in members.items():
            file.writestr(name, content)


@pytest.mark.parametrize("name", foreign(None))
def test_a_foreign_file_says_what_it_is(name, path):
    write, message = foreign(path)[name]
    write()
    with pytest.raises(mg.FileError, match=message) as caught:
        mg.load(path)
    assert "state.npz" in str(caught.value) and isinstance(caught.value, ValueError)


def test_no_pickle_is_ever_run(path):
    """An object in an array, which numpy.load would unpickle if it were allowed to."""

    class Bomb:
        def __reduce__(self):
            return pytest.fail, ("unpickled",)

    file = io.BytesIO()
    np.lib.format.write_array(file, np.array([Bomb()], dtype=object), allow_pickle=True)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("minigrad.json", json.dumps({"format": "minigrad", "version": 1, "state": {"array": "a"}}))
        archive.writestr("a.npy", file.getvalue())
    with pytest.raises(mg.FileError):
        mg.load(path)


# ---- Devices -----------------------------------------------------------------------------------------


def test_a_device_that_is_not_there_is_an_error(path):
    mg.save(mg.ones(2), path)
    assert mg.load(path, device="cpu").device == "cpu"
    with pytest.raises(mg.DeviceError, match="tpu"):
        mg.load(path, device="tpu")


@pytest.mark.gpu
def test_tensors_of_a_gpu_come_back_on_the_cpu_or_where_they_shall(path):
    pytest.importorskip("cupy")
    w = mg.tensor([1.0, 2.0], requires_grad=True, device="cuda", name="w")
    mg.save({"w": w, "a": w.data}, path)
    state = mg.load(path)
    assert state["w"].device == "cpu" and isinstance(state["a"], np.ndarray)
    there = mg.load(path, device="cuda")["w"]
    assert there.device == "cuda:0" and there.requires_grad and there.name == "w" and there.tolist() == [1.0, 2.0]
