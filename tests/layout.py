"""How the package is laid out, counted from its source: lines of code, arrows between packages, circles, functions.

    python -m tests.layout

test_layout.py keeps what is counted here. Nothing is imported: the files are read as syntax trees.
"""

import ast
import functools
import io
import itertools
import tokenize
from collections import Counter
from pathlib import Path
from typing import NamedTuple

from minigrad.table import table

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = "minigrad"
FUNCTIONS = ast.FunctionDef, ast.AsyncFunctionDef
NO_CODE = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER}
BRANCHES = (
    ast.If, ast.IfExp, ast.For, ast.AsyncFor, ast.While, ast.ExceptHandler, ast.comprehension, ast.BoolOp,
    ast.match_case,
)  # fmt: skip


class Import(NamedTuple):
    """One import: of which module in which, and the function in which it stands ("" at the top of the file)."""

    source: str
    target: str
    function: str


class Function(NamedTuple):
    """A function of a file: its lines of code, its docstring aside, and its branches, those of inner ones included."""

    file: str
    name: str
    lines: int
    branches: int


# ---- Lines of code -----------------------------------------------------------------------------------


@functools.cache
def parsed(text):
    return ast.parse(text)


@functools.cache
def code_lines(text) -> frozenset:
    """The numbers of the lines with code on them: no comment, no docstring, nothing empty.

    >>> sorted(code_lines('def f(x):\\n    "What it is."\\n\\n    # why\\n    return (x +\\n        1)'))
    [1, 5, 6]
    """
    lines = set()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in NO_CODE:
            lines.update(range(token.start[0], token.end[0] + 1))
    return frozenset(lines - docstring_lines(parsed(text)))


def docstring_lines(tree) -> set:
    lines = set()
    for node in ast.walk(tree):
        if isinstance(node, (ast.Module, ast.ClassDef, *FUNCTIONS)) and ast.get_docstring(node) is not None:
            lines.update(range(node.body[0].lineno, node.body[0].end_lineno + 1))
    return lines


def files_of(package=PACKAGE) -> dict:
    """Name of a module -> its file, in order."""
    found = {}
    for path in sorted((ROOT / package).rglob("*.py")):
        parts = path.relative_to(ROOT).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def lines_by_file() -> dict:
    """Module -> lines of code."""
    return {module: len(code_lines(path.read_text("utf-8"))) for module, path in files_of().items()}


def lines_by_package() -> dict:
    """Package of minigrad, or a file at its top -> lines of code."""
    counted = Counter()
    for module, lines in lines_by_file().items():
        counted[room_of(module)] += lines
    return dict(counted)


def room_of(module) -> str:
    """The package in which a module is; a file at the top is a room of its own.

    >>> room_of("minigrad.engine.op"), room_of("minigrad.table"), room_of("minigrad")
    ('engine', 'table', '__init__')
    """
    return module.split(".")[1] if "." in module else "__init__"


# ---- Imports -----------------------------------------------------------------------------------------


def imports() -> list:
    """All imports in the package, of its own modules and of others, sorted and each once."""
    modules, found = files_of(), set()
    for module, path in modules.items():
        home = module if path.name == "__init__.py" else module.rpartition(".")[0]
        for function, node in import_statements(parsed(path.read_text("utf-8"))):
            found.update(Import(module, target, function) for target in targets_of(node, home, modules))
    return sorted(found)


def import_statements(tree, function=""):
    """(function in which it stands, statement) for each import below a node of a syntax tree."""
    for child in ast.iter_child_nodes(tree):
        if isinstance(child, (ast.Import, ast.ImportFrom)):
            yield function, child
        yield from import_statements(child, child.name if isinstance(child, FUNCTIONS) else function)


def targets_of(statement, home, modules):
    """The modules that a statement in package `home` imports, or from which it imports a name."""
    if isinstance(statement, ast.Import):
        return [alias.name for alias in statement.names]
    base = statement.module or ""
    if statement.level:
        above = home.split(".")[: home.count(".") + 2 - statement.level]
        base = ".".join([*above, base] if base else above)
    names = [f"{base}.{alias.name}" for alias in statement.names]
    return [name if name in modules else base for name in names]


def is_own(module) -> bool:
    return module.partition(".")[0] == PACKAGE


def arrows() -> Counter:
    """(room, room) -> files of the first that import from the second; a file at the top is a room of its own."""
    pairs = {(one.source, room_of(one.target)) for one in imports() if is_own(one.target)}
    return Counter((room_of(source), room) for source, room in pairs if room_of(source) != room)


def circles() -> list:
    """Sets of modules each of which leads to each other, the largest first; imports inside functions count too."""
    reach = {module: set() for module in files_of()}
    for one in imports():
        if is_own(one.target):
            reach[one.source].add(one.target)
    for middle, source in itertools.product(reach, reach):  # Warshall's closure
        if middle in reach[source]:
            reach[source] |= reach[middle]
    found = {frozenset(other for other in reach[one] if one in reach[other]) for one in reach if one in reach[one]}
    return sorted(map(sorted, found), key=lambda circle: (-len(circle), circle))


# ---- Functions ---------------------------------------------------------------------------------------


def functions(room) -> list:
    """The functions of a package, the longest first."""
    found = []
    for module, path in files_of().items():
        if room_of(module) == room:
            text = path.read_text("utf-8")
            found += functions_in(text, module.partition(".")[2])
    return sorted(found, key=lambda one: (-one.lines, one))


def functions_in(text, file="") -> list:
    lines = code_lines(text)
    return [
        Function(file, node.name, len(lines & set(range(node.lineno, node.end_lineno + 1))), branches_of(node))
        for node in ast.walk(parsed(text))
        if isinstance(node, FUNCTIONS)
    ]


def branches_of(function) -> int:
    """Places at which a function goes one way or another: conditions, loops, handlers, `and` and `or`.

    >>> branches_of(ast.parse("def f(x):\\n    for i in x:\\n        if i and x or i: pass").body[0])
    4
    """
    found = [node for node in ast.walk(function) if isinstance(node, BRANCHES)]
    return sum(len(node.values) - 1 if isinstance(node, ast.BoolOp) else 1 for node in found)


# ---- The program -------------------------------------------------------------------------------------


def main():
    packages, files = lines_by_package(), lines_by_file()
    print(table(("package", "lines of code"), [*packages.items(), ("in all", sum(packages.values()))], right=(1,)))
    engine = [(module.removeprefix("minigrad."), n) for module, n in files.items() if room_of(module) == "engine"]
    print("\n" + table(("engine", "lines of code"), engine, right=(1,)))
    rows = [(source, target, count) for (source, target), count in sorted(arrows().items())]
    print("\n" + table(("of", "import from", "files"), rows, right=(2,)))
    print("\ncircles:", [len(circle) for circle in circles()] or "none")
    for circle in circles():
        print("  " + ", ".join(module.removeprefix("minigrad.") for module in circle))
    longest, most = functions("engine")[:3], sorted(functions("engine"), key=lambda one: -one.branches)[:3]
    rows = [(f"{one.file}.{one.name}", one.lines, one.branches) for one in dict.fromkeys([*longest, *most])]
    print("\n" + table(("functions of engine/", "lines", "branches"), rows, right=(1, 2)))


if __name__ == "__main__":
    main()
