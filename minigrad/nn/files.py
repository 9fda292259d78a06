"""Files of tensors: mg.save and mg.load.

    mg.save({"model": model.state_dict(), "optimizer": optimizer.state_dict(), "epoch": 3}, "run.npz")
    state = mg.load("run.npz")

A file is NumPy's npz: a zip archive of arrays, which `numpy.load` opens too. One member more, `minigrad.json`, is the
*header*: the nesting, with numbers and strings in it, and the names of the arrays in their places:

    {"format": "minigrad", "version": 1,
     "state": {"dict": [["model", {"dict": [["weight", {"array": "model/weight"}]]}], ["epoch", 3]]}}

There is no pickle in it, neither written nor read, so opening a file that somebody sent you runs nothing of theirs.

A file is written under another name beside its place, and takes its place when it is complete: whatever happens, at
the place is either the whole new file or the old one.
"""

import json
import math
import os
import re
import shutil
import warnings
import zipfile
import zlib

import numpy

from ..engine.device import is_array, to_device
from ..engine.tensor import Tensor
from ..errors import ArgumentError, MinigradError
from ..ops.methods import made_again, refuse_history
from .module import Parameter

__all__ = ["save", "load", "FileError"]

HEADER, FORMAT, VERSION = "minigrad.json", "minigrad", 1
KINDS = {"tensor": Tensor, "parameter": Parameter}
PLAIN = (type(None), bool, int, str)  # what JSON writes as it is
WHAT = "dicts, lists and tuples of tensors, arrays, numbers, strings and None"
MISTAKES = (  # what zipfile, json and NumPy raise for bytes that make no sense
    zipfile.BadZipFile, zlib.error, EOFError, KeyError, ValueError, TypeError, IndexError, OverflowError,
    RecursionError, MemoryError, NotImplementedError, RuntimeError, OSError, Warning,
)  # fmt: skip


class FileError(MinigradError, ValueError):
    """A file that mg.save has not written, or that is damaged; or a value that a file cannot hold."""


def save(state, path) -> None:
    """Write `state` to a file: any nesting of dicts, lists and tuples of tensors, arrays, numbers, strings and None.

    path  exactly this name; ".npz" is a good end for it

    What is in several places (tied weights) is written once, and is one thing again when loaded. Tensors of a GPU
    are written all the same. Raises FileError for anything else in `state`, and OSError if the disk does not take
    the file; then what was there before is still there.
    """
    path = place_of(path)
    writer = Writer()
    try:
        header = json.dumps({"format": FORMAT, "version": VERSION, "state": writer.described(state)})
    except RecursionError as error:
        raise FileError("the state is nested too deeply for a file") from error
    temporary = f"{path}.{os.urandom(4).hex()}.tmp"
    try:
        with open(temporary, "xb") as file:
            write_archive(file, header, writer.arrays)
            file.flush()
            os.fsync(file.fileno())
        if os.path.exists(path):
            shutil.copymode(path, temporary)
        os.replace(temporary, path)
    except BaseException:
        if os.path.exists(temporary):
            os.remove(temporary)
        raise


def load(path, device=None):
    """What mg.save wrote to a file: the same nesting, with tensors, arrays and numbers of the same dtypes.

    device  where the tensors shall be; the CPU if None, wherever they were. Arrays are NumPy's

    Raises FileNotFoundError, or FileError if the file is damaged, cut short, or of another program.

    >>> import minigrad as mg, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     mg.save({"w": mg.ones(2), "betas": (0.9, 0.99)}, folder + "/state.npz")
    ...     mg.load(folder + "/state.npz")
    {'w': Tensor([1., 1.], float32), 'betas': (0.9, 0.99)}
    """
    path = place_of(path)
    with open(path, "rb") as file:
        reader = read_archive(file, path)
    if device is not None:
        reader.move(device)
    return reader.state


def place_of(path) -> str:
    """The file that a path means: a link to it stays a link."""
    try:
        return os.path.realpath(os.fsdecode(path))
    except TypeError as error:
        raise ArgumentError(f"a path is a string or a Path, not {type(path).__name__}") from error


# ---- Writing -----------------------------------------------------------------------------------------


class Writer:
    """Turns a state into what JSON can say, and collects its arrays. A path is the keys from the state down."""

    def __init__(self):
        self.arrays = {}  # member of the archive -> array
        self.members = {}  # id of a tensor or an array -> its member; all live as long as the state does

    def described(self, value, path=(), inside=()):
        """The description of the value at `path`, which lies in the containers `inside`."""
        if type(value) in PLAIN:
            return value
        if type(value) is float:
            return value if math.isfinite(value) else {"float": repr(value)}
        if isinstance(value, Tensor):
            return self.described_tensor(value, path)
        if is_array(value) or isinstance(value, numpy.generic):
            return self.described_array(value, path)
        if not isinstance(value, (dict, list, tuple)):
            raise FileError(f"{written(path)} is {a_kind(value)}, and files hold {WHAT}")
        if any(value is outer for outer in inside):
            raise FileError(f"{written(path)} contains itself, and files hold trees")
        inside = (*inside, value)
        if isinstance(value, dict):
            keys = [self.described_key(key, path) for key in value]
            parts = [self.described(part, (*path, key), inside) for key, part in value.items()]
            return {"dict": list(zip(keys, parts, strict=True))}
        parts = [self.described(part, (*path, i), inside) for i, part in enumerate(value)]
        return {"tuple": parts} if isinstance(value, tuple) else parts

    def described_key(self, key, path):
        if isinstance(key, tuple):
            return {"tuple": [self.described_key(part, path) for part in key]}
        if type(key) not in (*PLAIN, float):
            raise FileError(f"{written(path)} has the key {key!r}, {a_kind(key)}; keys are strings and numbers")
        return self.described(key)

    def described_tensor(self, tensor, path):
        kinds = [name for name, kind in KINDS.items() if type(tensor) is kind]
        if not kinds:
            raise FileError(f"{written(path)} is {a_kind(tensor)}, of which a file cannot know what else it holds")
        refuse_history(tensor, f"save {written(path)},")
        member = self.member_of(tensor, tensor.data, path)
        return {kinds[0]: member, "requires_grad": tensor.requires_grad, "name": tensor.name}

    def described_array(self, array, path):
        if isinstance(array, numpy.ndarray) and type(array) not in (numpy.ndarray, numpy.memmap):
            raise FileError(f"{written(path)} is {a_kind(array)}; files hold plain arrays, which numpy.array() makes")
        if array.dtype.hasobject:
            raise FileError(f"{written(path)} is an array of Python objects, and files hold {WHAT}")
        kind = "scalar" if isinstance(array, numpy.generic) else "array"
        return {kind: self.member_of(array, array, path)}

    def member_of(self, value, array, path):
        """The name of the member that holds `array`; a new one if `value` has not been met before."""
        member = self.members.get(id(value))
        if member is None:
            member = self.members[id(value)] = self.fresh_name(path)
            self.arrays[member] = array
        return member

    def fresh_name(self, path):
        """A name that says where the array is, a/b.weight for state["a"]["b.weight"], if its keys make one."""
        words = [str(key) for key in path] or ["state"]
        plain = all(re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9_.-]*", word) for word in words)
        name = "/".join(words) if plain else f"array{len(self.arrays)}"
        while name in self.arrays:
            name += "_"
        return name


def written(path) -> str:
    """A path as one writes it in a program."""
    return "state" + "".join([f"[{key!r}]" for key in path])


def a_kind(value) -> str:
    return f"an object of {type(value).__module__}.{type(value).__qualname__}"


def write_archive(file, header, arrays):
    """The zip archive. Its members have no date, so that the same state gives the same bytes."""
    with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
        archive.writestr(zipfile.ZipInfo(HEADER), header)
        for name, array in arrays.items():
            with archive.open(zipfile.ZipInfo(name + ".npy"), "w", force_zip64=True) as member:
                numpy.lib.format.write_array(member, numpy.asanyarray(to_cpu(array)), allow_pickle=False)


def to_cpu(array):
    return to_device(array, "cpu") if is_array(array) else array


# ---- Reading -----------------------------------------------------------------------------------------


def read_archive(file, path):
    """A Reader of everything in an open file, or FileError."""
    if not file.read(1):
        raise FileError(f"{path} is empty: no file of minigrad, or one of which nothing arrived")
    file.seek(0)
    try:
        archive = zipfile.ZipFile(file)
    except MISTAKES as error:
        raise FileError(
            f"{path} is no file of minigrad: it is no zip archive, or the end of it is missing ({error})"
        ) from error
    with archive:
        members = archive.namelist()
        if HEADER not in members:
            raise FileError(f"{path} was not written by mg.save: {whose(members)}")
        refuse_growth(archive, path, os.fstat(file.fileno()).st_size)
        try:
            return Reader(archive)
        except FileError as error:
            raise FileError(f"{path}: {error}") from error
        except MISTAKES as error:
            more = ", or needs more memory than there is" if isinstance(error, MemoryError) else ""
            raise FileError(f"{path} is damaged{more}: {type(error).__name__}: {error}") from error


def refuse_growth(archive, path, size):
    """FileError for members that would be more than the file of `size` bytes when they are read.

    `mg.save` stores them as they are, one after another.
    """
    for member in archive.infolist():
        if member.compress_type != zipfile.ZIP_STORED or member.file_size != member.compress_size:
            raise FileError(
                f"{path} was not written by mg.save: its member {member.filename!r} is compressed, from "
                f"{member.file_size:,} bytes to {member.compress_size:,}. If you trust it, load it with numpy.load"
            )
    total = sum([member.file_size for member in archive.infolist()])
    if total > size:
        raise FileError(f"{path} is damaged: {total:,} bytes are said to be in it, and it has {size:,}")


def whose(members) -> str:
    """What an archive without our header may be."""
    if any(name.endswith("data.pkl") for name in members):
        return "it is PyTorch's; in torch, make arrays of it: {key: value.numpy() for key, value in state.items()}"
    if members and all(name.endswith(".npy") for name in members):
        return "it is an npz of NumPy's; numpy.load reads it"
    return "it is an archive of something else"


class Reader:
    """Reads the header, and makes what it describes."""

    def __init__(self, archive):
        self.archive, self.made = archive, {}
        header = json.loads(archive.read(HEADER))
        if not isinstance(header, dict) or header.get("format") != FORMAT or type(header.get("version")) is not int:
            raise FileError(f"{HEADER} in it is not minigrad's")
        if header["version"] > VERSION:
            raise FileError(f"a newer minigrad wrote it: in format {header['version']}, and this one knows {VERSION}")
        self.state = self.value(header["state"])

    def value(self, description):
        """What one part of the header describes."""
        if type(description) in (*PLAIN, float):
            return description
        if isinstance(description, list):
            return [self.value(part) for part in description]
        [(kind, content), *_] = description.items()
        if kind == "dict":
            return {self.value(key): self.value(value) for key, value in content}
        if kind == "tuple":
            return tuple([self.value(part) for part in content])
        if kind == "float":
            return float(content)
        if kind == "array":
            return self.once(content, self.array)
        if kind == "scalar":
            return self.once(content, self.array)[()]
        if kind in KINDS:
            return self.once(content, self.tensor, KINDS[kind], description)
        raise FileError(f"it holds a {kind!r}, which this minigrad does not know")

    def once(self, member, make, *more):
        """What is in several places is made once."""
        if member not in self.made:
            self.made[member] = make(member, *more)
        return self.made[member]

    def array(self, member):
        """The array in a member of the archive, whose checksum must be right, and which must end where it ends."""
        with self.archive.open(member + ".npy") as file, warnings.catch_warnings():
            warnings.simplefilter("error")
            self.refuse_large(file, member)
            file.seek(0)
            array = numpy.lib.format.read_array(file, allow_pickle=False)
            if file.read(1):
                raise FileError(f"its member {member}.npy is longer than the array in it")
        return array

    def refuse_large(self, file, member):
        """FileError if an array is said to be larger than the rest of its member: NumPy makes it before it reads."""
        first = numpy.lib.format.read_magic(file) == (1, 0)  # later versions have longer headers, of the same words
        read = numpy.lib.format.read_array_header_1_0 if first else numpy.lib.format.read_array_header_2_0
        shape, _, dtype = read(file)
        wanted, there = math.prod(shape) * dtype.itemsize, self.archive.getinfo(member + ".npy").file_size - file.tell()
        if wanted > there and not dtype.hasobject:
            what = f"shape {shape} and dtype {dtype}, {wanted:,} bytes" if len(shape) < 9 else f"{wanted:,} bytes"
            raise FileError(f"its member {member}.npy is damaged: {what} are announced, and {there:,} are there")

    def tensor(self, member, kind, facts):
        array, requires_grad, name = self.array(member), facts["requires_grad"], facts["name"]
        if type(requires_grad) is not bool or not isinstance(name, (str, type(None))):
            raise FileError(f"{HEADER} in it says nothing useful about {member}: {facts}")
        if array.dtype.kind not in ("f" if requires_grad else "fiub"):
            raise FileError(f"its member {member}.npy has dtype {array.dtype}, which no such tensor has")
        if kind is Parameter:
            return Parameter(Tensor(array), requires_grad, name)
        return made_again(kind, array, requires_grad, name, None)

    def move(self, device):
        """Bring the tensors to a device. They are leaves of which nobody has heard yet."""
        for made in self.made.values():
            if isinstance(made, Tensor):
                made._replace(to_device(made.data, device))
