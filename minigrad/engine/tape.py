"""The tape: what ran, line by line.

Each op that runs writes a `Node`: which op, on which earlier nodes, giving a value of which shape, written
on which line of your program, in which layer. Numbers come from one counter, so the order of numbers is the
order of the tape, and a node is always younger than its inputs. That alone is what backward needs to walk
it in the right order.

A node points at its inputs and at nothing younger: not at the Tensor that you hold, not at its consumers.
So there are no reference cycles, and whatever nobody needs any more dies at once, by reference count.

`node.out` is the one buffer a node can hold. It is None unless something will *read* it in backward: see
`op.py` for who decides that, and `sweep.py` for when it is let go.
"""

import itertools

from .device import device_of
from .place import source_line

next_number = itertools.count(1).__next__


class Extras:
    """What few nodes have.

    hooks, holder  functions to call with its gradient; the Tensor (weakly) whose .grad receives it. Those of a
                   checkpoint's output are at the line that it stands for (`origin`), where its gradient is whole
    name           a leaf's or a checkpoint's name, for tables and pictures
    alias          of a node that a replay has made, with create_graph: the checkpoint's output that has its value
    keeper         who brings the value back when the tape does not hold it: keeper.bring_back(node, reader)
    """

    __slots__ = ("hooks", "holder", "name", "alias", "keeper")

    def __init__(self):
        self.hooks = self.holder = self.name = self.alias = self.keeper = None


def rare(field):
    """A property of a node that stands in its Extras, which are made when something is first put there."""

    def get(node):
        return None if node.extras is None else getattr(node.extras, field)

    def put(node, value):
        if node.extras is None and value is not None:
            node.extras = Extras()
        if node.extras is not None:
            setattr(node.extras, field, value)

    return property(get, put)


class Node:
    """One line of the tape, and the one value that it produced.

    op, attrs      the op and its settings; op is None for a leaf
    inputs         the nodes it read, in the order of the op's arguments
    out            the value's buffer while the tape holds it, else None
    shape, dtype   of the value, also when the buffer is gone
    number         its place on the tape
    layer          path of the nn layers that were running, such as "blocks.3.attn"
    code, offset   the user's own source line, as code object and instruction offset (together: `where`).
                   Never a frame, which would keep every variable of that function alive
    requires_grad  whether a gradient flows through it
    needs          what its vjps will read (op.Needs)
    freed          an earlier backward has passed here and let the buffers go
    region         the checkpoint region that it was recorded in (checkpoint.Region), or None
    body           for a checkpoint node: the stretch of tape that it stands for
    extras         what few nodes have (Extras), or None; its fields can be asked of the node itself
    """

    __slots__ = (
        "op", "attrs", "inputs", "out", "shape", "dtype", "number", "layer", "code", "offset", "requires_grad",
        "needs", "freed", "region", "body", "extras", "__weakref__",
    )  # fmt: skip

    def __init__(self, op, attrs, inputs, shape, dtype, layer, code, offset, requires_grad, needs, region):
        self.op = op
        self.attrs = attrs
        self.inputs = inputs
        self.out = None
        self.shape = shape
        self.dtype = dtype
        self.number = next_number()
        self.layer = layer
        self.code = code
        self.offset = offset
        self.requires_grad = requires_grad
        self.needs = needs
        self.freed = False
        self.region = region
        self.body = self.extras = None

    hooks, holder, name = rare("hooks"), rare("holder"), rare("name")
    alias, keeper = rare("alias"), rare("keeper")

    @property
    def is_leaf(self) -> bool:
        return self.op is None

    @property
    def nbytes(self) -> int:
        """Bytes of the value (whether or not the buffer is held now)."""
        size = self.dtype.itemsize
        for length in self.shape:
            size *= length
        return size

    @property
    def device(self):
        return None if self.out is None or not hasattr(self.out, "base") else device_of(self.out)

    def hold(self, array):
        """Let the tape hold the value."""
        self.out = array

    @property
    def origin(self):
        """Where this value's gradient is whole: itself; for a checkpoint's output, the line of the body that made it.

        In `u, v = mg.checkpoint(lambda t: (u := mg.tanh(t), mg.exp(u)), x)` a gradient reaches u from outside, and
        from v, inside. Both have come together when a replay has been swept down to u's tanh.
        """
        node = self
        while node.body is not None:
            node = node.body.outputs[node.attrs["index"]]
        return node

    @property
    def where(self):
        """The user's source position as (code object, instruction offset); None for a leaf."""
        return None if self.code is None else (self.code, self.offset)

    @property
    def line(self) -> str:
        """Where the user wrote it, as "train.py:41"; "" for a leaf."""
        return source_line(self.where)

    def __repr__(self):
        kind = self.op.name if self.op is not None else "leaf"
        label = f" {self.name!r}" if self.name else ""
        layer = f" in {self.layer}" if self.layer else ""
        line = f" at {self.line}" if self.code is not None else ""
        state = "live" if self.out is not None else "dropped"
        return f"<{kind} #{self.number}{label} {tuple(self.shape)} {self.dtype}{layer}{line}, {state}>"


class Leaf(Node):
    """A value that no op on the tape made: a parameter, an input, a constant. Its `out` is its data.

    role   "parameter" or "input", for the tracer and the pictures
    twin   the same leaf without its data, for readers that need to know of it but never read it
    """

    __slots__ = ("role", "twin")

    def __init__(self, data, requires_grad=False, holder=None, name=None, role=None):
        shape, dtype = getattr(data, "shape", ()), getattr(data, "dtype", None)
        super().__init__(None, {}, (), shape, dtype, "", None, None, requires_grad, None, None)
        self.out = data
        self.holder = holder
        self.name = name
        self.role = role or ("parameter" if requires_grad else "input")
        self.twin = None

    def replace(self, data):
        """Put other data into the leaf, and move it to the end of the tape.

        Whatever read the old data is now older than its own input. That is how the sweep notices: an
        optimizer's step between two backwards over one graph would otherwise mix new weights into old
        activations and give a gradient of nothing in particular.
        """
        self.out = data
        self.shape, self.dtype = data.shape, data.dtype
        self.number = next_number()
        self.twin = None

    @property
    def nbytes(self) -> int:
        return 0 if self.dtype is None else super().nbytes


def is_held_constant(node):
    """Whether this input is a constant whose data its reader keeps."""
    return node.op is None and node.dtype is not None and node.out is not None and node.role == "input"


def hollow(node):
    """`node`, or for a constant its twin that holds no data: what one keeps of an input one never reads."""
    if node.op is not None or node.requires_grad or node.dtype is None:
        return node
    if node.twin is None:
        twin = Leaf(None, name=node.name, role=node.role)
        twin.shape, twin.dtype, twin.number, twin.layer = node.shape, node.dtype, node.number, node.layer
        node.twin = twin
    return node.twin


def ways_down(node):
    """The nodes to which a gradient goes from here."""
    return node.inputs if node.extras is None or node.extras.alias is None else (node.extras.alias,)


def reachable(roots):
    """Every node that `roots` depend on, themselves included, oldest first. No recursion."""
    seen, waiting = set(roots), list(roots)
    while waiting:
        for source in ways_down(waiting.pop()):
            if source not in seen:
                seen.add(source)
                waiting.append(source)
    return sorted(seen, key=number_of)


def number_of(node):
    return node.number
