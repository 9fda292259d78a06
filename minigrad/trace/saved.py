"""What a loss depends on, and what the tape keeps for it: `mg.tape(loss)` and `mg.saved(loss)`."""

from dataclasses import dataclass

from ..engine.device import is_array, memory_owner
from ..engine.replay import Work
from ..engine.tape import reachable
from ..engine.tensor import Tensor
from ..errors import ArgumentError, NoGradientError
from ..retention.advice import is_parameter
from ..table import bytes_text, describe, shape_text, table
from .listing import Tape


def tape(tensor) -> Tape:
    """The lines of the tape that `tensor` depends on, leaves included, oldest first. Print it.

    A checkpoint is one line; its body is `node.body.lines`.
    """
    if not isinstance(tensor, Tensor):
        raise ArgumentError(f"a tape leads to a Tensor, not to {tensor!r:.60}")
    by_number = {node.number: node for node in reachable([tensor.node])}  # a constant and its twin are one line
    return Tape(by_number.values())


@dataclass(frozen=True)
class Kept:
    """One buffer that the tape holds: the node whose value it is, the array, and the nodes that will read it.

    The node is on the tape, or for what a checkpoint's policy keeps, a line of that checkpoint's body.
    """

    node: object
    array: object
    readers: tuple

    @property
    def nbytes(self) -> int:
        return self.array.nbytes


class Saved:
    """The buffers that the tape holds for a backward from one tensor, as `mg.saved` finds them.

    rows              a Kept for each buffer, oldest first; parameters are not among them, as they are there anyway
    nbytes            bytes of all rows together; memory that several share counts once
    parameter_bytes   bytes of the parameters that the backward will read
    """

    def __init__(self, rows, parameters):
        self.rows = rows
        self.nbytes = bytes_of(row.array for row in rows)
        self.parameter_bytes = bytes_of(node.out for node in parameters)
        self._parameters = len(parameters)

    def __len__(self):
        return len(self.rows)

    def __iter__(self):
        return iter(self.rows)

    def __str__(self):
        rows = [
            (
                f"#{row.node.number}",
                describe(row.node),
                shape_text(row.node),
                f"{row.nbytes:,}",
                ", ".join(f"{node.op.name} #{node.number}" for node in row.readers),
                row.node.layer,
                row.node.line,
            )
            for row in self.rows
        ]
        note = (
            f"{len(self)} buffers, {bytes_text(self.nbytes)}; besides, backward will read {self._parameters} "
            f"parameters ({bytes_text(self.parameter_bytes)}), which are there anyway."
        )
        headers = ("node", "value of", "shape", "bytes", "kept for", "layer", "line")
        return table(headers, rows, right=(3,), note=note)


def saved(tensor) -> Saved:
    """What the tape keeps now for a backward from `tensor`: op, layer, line, shape, bytes, and for whom.

    After a backward it is empty. NoGradientError for a tensor that does not require grad.
    """
    if not isinstance(tensor, Tensor):
        raise ArgumentError(f"the tape keeps buffers for a Tensor, not for {tensor!r:.60}")
    if not tensor.requires_grad:
        raise NoGradientError(f"the tape keeps nothing for {tensor!r}, which does not require grad")
    readers, arrays = {}, {}
    for node in reachable([tensor.node]):
        for source in dict.fromkeys(read_in_backward(node)):
            if source.out is not None and source.dtype is not None:
                readers.setdefault(source, []).append(node)
                arrays[source] = source.out
        for line, array in kept_by(node).items():
            readers.setdefault(line, []).append(node)
            arrays[line] = array
    rows = [Kept(node, arrays[node], tuple(r)) for node, r in readers.items() if not is_parameter(node)]
    rows.sort(key=lambda row: row.node.number)
    return Saved(rows, [node for node in readers if is_parameter(node)])


def read_in_backward(node):
    """The nodes whose values `node`'s vjps, or its replay, will read."""
    if node.op is None or node.freed:
        return []
    if node.body is not None:
        work = Work(node.body, [output for output in node.body.outputs if output.requires_grad], live=kept_by(node))
        return [actual for source, actual in zip(node.body.boundary, node.inputs, strict=True) if source in work.read]
    return [node.inputs[i] for i in node.needs.inputs] + ([node] if node.needs.out else [])


def kept_by(node) -> dict:
    """What a checkpoint node keeps itself, because its policy says so: line of its body -> array."""
    if node.body is None:
        return {}
    return {line: array for line, array in node.needs.kept.items() if is_array(array)}


def bytes_of(arrays) -> int:
    owners = {id(owner): owner for owner in map(memory_owner, arrays)}
    return sum(owner.nbytes for owner in owners.values())
