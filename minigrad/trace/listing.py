"""Tape: a list of lines, those that a block ran or those that a loss depends on. Print it."""

from ..engine.modes import local
from ..table import tape_table


class Tape:
    """Nodes in the order in which they ran; `print` shows a table.

    As a context manager it writes down every op that runs in its block, needing a gradient or not:

        with mg.Tape() as tape:
            loss = model(x).sum()
        print(tape)

    Holding a tape holds its nodes, and so what they retain for backward. An op inside a checkpoint is a
    line of that checkpoint's body (`node.body`), not of this tape.
    """

    def __init__(self, nodes=()):
        self.nodes = list(nodes)
        self._outer = []

    def __enter__(self):
        context = local.context
        self._outer.append(context.tape)
        context.tape = self
        return self

    def __exit__(self, *error):
        local.context.tape = self._outer.pop()

    def __len__(self):
        return len(self.nodes)

    def __iter__(self):
        return iter(self.nodes)

    def __getitem__(self, index):
        return Tape(self.nodes[index]) if isinstance(index, slice) else self.nodes[index]

    def __repr__(self):
        return f"<Tape of {len(self.nodes)} nodes>"

    def __str__(self):
        return tape_table(self.nodes)

    def check(self):
        """Assert what must hold of every tape: order, shapes, no line older than what it reads."""
        last = 0
        for node in self.nodes:
            assert node.number > last, f"{node} stands after #{last}"
            last = node.number
            for source in node.inputs:
                if source.op is not None:
                    assert source.number < node.number, f"{node} reads the younger {source}"
            if node.out is not None and node.op is not None:
                assert tuple(node.out.shape) == tuple(node.shape), f"{node} holds shape {node.out.shape}"
