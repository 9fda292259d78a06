"""The package from outside: what importing it brings in, its version, its data, its repository."""

import configparser
import gzip
import hashlib
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import minigrad
from minigrad.data import load_digits

ROOT = Path(__file__).resolve().parent.parent
LARGEST_FILE = 300_000  # bytes; the largest is a picture of four plans, row by row

# Run in a fresh interpreter: prints the installed packages that `import minigrad` brought in.
# A module counts by where its file is, so that what compiled modules register without one does not.
PRINT_WHAT_IS_IMPORTED = """
import sys
from pathlib import Path
before = set(sys.modules)
import minigrad
for name in set(sys.modules) - before:
    file = getattr(sys.modules[name], "__file__", None)
    if file and {"site-packages", "dist-packages"} & set(Path(file).parts):
        print(name.partition(".")[0])
"""


def test_importing_minigrad_imports_numpy_and_no_other_package():
    child = subprocess.run(
        [sys.executable, "-c", PRINT_WHAT_IS_IMPORTED], cwd=ROOT, capture_output=True, text=True
    )
    assert child.returncode == 0, child.stderr
    assert set(child.stdout.split()) - {"minigrad"} == {"numpy"}


def test_the_version_is_the_one_in_setup_cfg():
    setup = configparser.ConfigParser()
    setup.read(ROOT / "setup.cfg")
    assert minigrad.__version__ == setup["metadata"]["version"]


def test_digits_have_the_shapes_and_types_their_docstring_says():
    images, labels = load_digits()
    assert (images.shape, images.dtype) == ((1797, 64), np.float32)
    assert (labels.shape, labels.dtype) == ((1797,), np.int64)


def test_digits_are_the_published_ones():
    images, labels = load_digits()
    assert np.bincount(labels).tolist() == [178, 182, 177, 183, 181, 182, 181, 179, 174, 180]
    assert np.unique(images * 16).tolist() == list(range(17))
    text = gzip.decompress((ROOT / "minigrad/data/digits.csv.gz").read_bytes())
    assert hashlib.sha256(text).hexdigest() in (ROOT / "minigrad/data/README.md").read_text("utf-8")


def test_each_call_reads_fresh_digits():
    images, labels = load_digits()
    images[:], labels[:] = -1, -1
    again, again_labels = load_digits()
    assert again.min() == 0 and again_labels.min() == 0


def test_the_repository_holds_no_large_file():
    if not (ROOT / ".git").exists() or not shutil.which("git"):
        pytest.skip("not a git checkout, or no git")
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True)
    tracked = [ROOT / name for name in listed.stdout.split("\0") if name]
    large = [str(file) for file in tracked if file.is_file() and file.stat().st_size > LARGEST_FILE]
    assert large == []
