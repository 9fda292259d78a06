"""Run the suite against random mutants: `make mutants N=300 SEED=1`.

Each mutant lives in a copy of the tree. The tests that name its module run first, then the rest; a mutant is killed by
the first red test, or by the time limit (it may loop for ever). The table is printed and written to out/mutants.txt.
"""

import argparse
import collections
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from minigrad.table import table

from .mutate import choose

ROOT = Path(__file__).parents[2]
LEFT_OUT = shutil.ignore_patterns(".git", ".venv*", "out", "__pycache__", ".pytest_cache", ".hypothesis", "*.egg-info")


def own_tests(path, root):
    """The test files of a module: named after it or its package, or importing it."""
    module = Path(path).with_suffix("")
    names, dotted = {module.name, module.parent.name}, ".".join(module.parts)
    found = []
    for test in sorted((root / "tests").glob("test_*.py")):
        text = test.read_text()
        parent, name = dotted.rpartition(".")[::2]
        if test.stem[5:] in names or dotted in text or f"from {parent} import {name}\n" in text:
            found.append(str(test.relative_to(root)))
    return found


def run_tests(root, arguments, seconds):
    """"killed", "time" (over the limit), or "survived"."""
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", *arguments]
    environment = {**os.environ, "PYTHONPATH": str(root), "PYTHONDONTWRITEBYTECODE": "1"}
    try:
        code = subprocess.run(command, cwd=root, env=environment, capture_output=True, timeout=seconds).returncode
    except subprocess.TimeoutExpired:
        return "time"
    return "survived" if code in (0, 5) else "killed"


def try_one(mutant, root, seconds):
    """(outcome, by whom) of one mutant: its module's tests, then all."""
    file, before = root / mutant.path, (root / mutant.path).read_text()
    file.write_text(mutant.text)
    try:
        own = own_tests(mutant.path, root)
        outcome = run_tests(root, own, seconds) if own else "survived"
        if outcome != "survived":
            return outcome, "its module's tests"
        return run_tests(root, [], seconds), "the rest"
    finally:
        file.write_text(before)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--number", type=int, default=300)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=600, help="time limit of one run of tests")
    options = parser.parse_args()
    rows, counts = [], collections.Counter()
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder) / "tree"
        shutil.copytree(ROOT, root, ignore=LEFT_OUT)
        for mutant in choose(root, options.number, options.seed):
            outcome, by = try_one(mutant, root, options.seconds)
            counts[outcome] += 1
            where = f"{mutant.path}:{mutant.line}"
            rows.append([outcome, where, mutant.kind, shorten(mutant.before), shorten(mutant.after), by])
            print(f"{len(rows)}/{options.number} {outcome:9}{where} {mutant.kind}", flush=True)
    text = table(["outcome", "where", "kind", "before", "after", "tests"], sorted(rows, reverse=True))
    summary = f"seed {options.seed}: " + ", ".join(f"{n} {outcome}" for outcome, n in counts.most_common())
    out = ROOT / "out"
    out.mkdir(exist_ok=True)
    (out / "mutants.txt").write_text(f"{text}\n\n{summary}\n")
    print(f"\n{text}\n\n{summary}\nWritten to {out / 'mutants.txt'}.")


def shorten(text, width=40):
    text = " ".join(text.split())
    return text if len(text) <= width else text[: width - 1] + "…"


if __name__ == "__main__":
    main()
