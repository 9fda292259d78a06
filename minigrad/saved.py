"""What a loss depends on, and what the tape keeps for it: `mg.tape(loss)` and `mg.saved(loss)`."""

from dataclasses import dataclass

from .advice import is_parameter
from .device import memory_owner
from .errors import ArgumentError, NoGradientError
from .replay import Work
from .table import bytes_text, describe, shape_text, table
from .tape import Tape, reachable
from .tensor import Tensor


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
    """One buffer that the tape holds: the node whose value it is, its bytes, and the nodes that will read it."""

    node: object
    nbytes: int
    readers: tuple


class Saved:
    """The buffers that the tape holds for a backward from one tensor, as `mg.saved` finds them.

    rows              a Kept for each buffer, oldest first; parameters are not among them, as they are there anyway
    nbytes            bytes of all rows together; memory that several share counts once
    parameter_bytes   bytes of the parameters that the backward will read
    """

    def __init__(self, rows, parameters):
        self.rows = rows
        self.nbytes = bytes_of(row.node for row in rows)
        self.parameter_bytes = bytes_of(parameters)
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
    readers = {}
    for node in reachable([tensor.node]):
        for source in dict.fromkeys(read_in_backward(node)):
            if source.out is not None and source.dtype is not None:
                readers.setdefault(source, []).append(node)
    rows = [Kept(n, n.out.nbytes, tuple(r)) for n, r in readers.items() if not is_parameter(n)]
    rows.sort(key=lambda row: row.node.number)
    return Saved(rows, [node for node in readers if is_parameter(node)])


def read_in_backward(node):
    """The nodes whose values `node`'s vjps, or its replay, will read."""
    if node.op is None or node.freed:
        return []
    if node.body is not None:
        work = Work(node.body, sweep=[output for output in node.body.outputs if output.requires_grad])
        return [actual for source, actual in zip(node.body.boundary, node.inputs, strict=True) if source in work.read]
    return [node.inputs[i] for i in node.needs.inputs] + ([node] if node.needs.out else [])


def bytes_of(nodes) -> int:
    owners = {id(owner): owner for owner in (memory_owner(node.out) for node in nodes)}
    return sum(owner.nbytes for owner in owners.values())
