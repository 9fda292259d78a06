"""Random mutants of minigrad's code, by its syntax trees: one small change at a time, that a test should notice.

comparison  < for <=, == for !=, is for is not ...    constant   a number, one more; True for False
statement   dropped, a pass in its place              condition  its opposite
copy        x for x.copy(), list(x), dict(x)          operands   b - a for a - b, and the like
"""

import ast
import random
from pathlib import Path
from typing import NamedTuple

OTHER = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In,
}  # fmt: skip
COPIES = {"list", "dict", "set", "tuple"}
ONE_SIDED = (ast.Sub, ast.Div, ast.FloorDiv, ast.Mod, ast.Pow, ast.MatMult)


class Mutant(NamedTuple):
    """One change: the file, the line, its kind, what was there and what is there now, and the file's new text."""

    path: str
    line: int
    kind: str
    before: str
    after: str
    text: str


def changes(tree):
    """Yield (kind, node, its replacement) for every change that can be made to a syntax tree."""
    docstrings = {id(node.body[0]) for node in ast.walk(tree) if is_documented(node)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Compare) and type(node.ops[0]) in OTHER:
            other = OTHER[type(node.ops[0])]()
            yield "comparison", node, ast.Compare(node.left, [other, *node.ops[1:]], node.comparators)
        elif isinstance(node, ast.Constant) and isinstance(node.value, bool):
            yield "constant", node, ast.Constant(not node.value)
        elif isinstance(node, ast.Constant) and isinstance(node.value, (int, float)):
            yield "constant", node, ast.Constant(node.value + 1)
        elif isinstance(node, (ast.Expr, ast.Assign, ast.AugAssign, ast.Delete)) and id(node) not in docstrings:
            yield "statement", node, ast.Pass()
        elif isinstance(node, (ast.If, ast.IfExp)):
            yield "condition", node.test, ast.UnaryOp(ast.Not(), node.test)
        elif isinstance(node, ast.BinOp) and isinstance(node.op, ONE_SIDED):
            yield "operands", node, ast.BinOp(node.right, node.op, node.left)
        elif isinstance(node, ast.Call) and (source := copied(node)) is not None:
            yield "copy", node, source


def is_documented(node):
    kinds = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    return isinstance(node, kinds) and ast.get_docstring(node) is not None


def copied(call):
    """What a call copies, or None if it is no copy."""
    function = call.func
    if isinstance(function, ast.Attribute) and function.attr == "copy" and not call.args:
        return function.value
    if isinstance(function, ast.Name) and function.id in COPIES and len(call.args) == 1 and not call.keywords:
        return call.args[0]
    return None


class Place(ast.NodeTransformer):
    """Puts one node in another's place."""

    def __init__(self, node, replacement):
        self.node, self.replacement = node, replacement

    def visit(self, node):
        return self.replacement if node is self.node else self.generic_visit(node)


def mutants_of(path, root):
    """Every mutant of a file, as functions that make it: making all texts would take long."""
    source = (root / path).read_text()
    count = sum(1 for _ in changes(ast.parse(source)))

    def make(number):
        tree = ast.parse(source)
        kind, node, replacement = next(found for i, found in enumerate(changes(tree)) if i == number)
        before, line = ast.unparse(node), node.lineno
        text = ast.unparse(ast.fix_missing_locations(Place(node, replacement).visit(tree)))
        return Mutant(path, line, kind, before, ast.unparse(replacement), text)

    return [(make, number) for number in range(count)]


def choose(root: Path, number: int, seed: int) -> list:
    """`number` mutants, spread over the packages: each package in turn gives one of its files' at random."""
    rng, packages, chosen = random.Random(seed), {}, []
    for path in sorted((root / "minigrad").rglob("*.py")):
        name = path.relative_to(root)
        package = name.parts[1] if len(name.parts) > 2 else ""
        packages.setdefault(package, []).extend(mutants_of(str(name), root))
    for waiting in packages.values():
        rng.shuffle(waiting)
    while len(chosen) < number and any(packages.values()):
        for package in sorted(packages):
            if packages[package] and len(chosen) < number:
                make, index = packages[package].pop()
                chosen.append(make(index))
    return chosen
