"""Where a walk's gradients go: to the leaves' `.grad` (Deposit), or to the targets of `mg.grad` (Collect)."""

from .gradients import add_gradients, passed_on, plus
from .tape import reachable, ways_down


class Deposit:
    """Leaves get their `.grad`, all together, when the walk is over; so do nodes that were told to retain theirs.

    leaves    leaf -> the gradient that waits for it
    deposits  (node, gradient) pairs, for the Tensors that hold these nodes
    wanted    the nodes to follow; None: all of them
    """

    wanted = None

    def __init__(self):
        self.leaves, self.deposits = {}, []

    def rehearsed(self):
        """The same for a walk that goes ahead of this one, and shall change nothing."""
        copy = Deposit()
        copy.leaves = dict(self.leaves)
        return copy

    def followed(self, node):
        """The vjps of a node that are to run."""
        return node.needs.vjps

    def goes_below(self, outputs):
        """Whether a checkpoint has to be replayed for these of its outputs."""
        return True

    def leading(self, node):
        """Of the body of a checkpoint, the lines to follow; None: all of them."""
        return None

    def arrived(self, node, gradient):
        """The gradient of a node is whole."""
        if node.extras is not None and node.extras.holder is not None:
            self.deposits.append((node, gradient if node.op is None else passed_on(gradient)))

    def replayed(self, fresh, leading):
        """A replay has written these nodes: line -> node."""

    def finish(self, arithmetic, watched):
        """Give the Tensors their gradients; returns what they are: (Tensor, its `.grad`) pairs."""
        totals = {}
        for node, gradient in self.deposits:
            tensor = node.extras.holder()
            if tensor is not None:
                if watched:
                    gradient = passed_on(gradient)  # whoever looks at the steps has this array too
                total = arithmetic.kept(gradient)
                earlier = totals[id(tensor)][1] if id(tensor) in totals else tensor._grad
                totals[id(tensor)] = tensor, total if earlier is None else add_gradients(earlier, total)
        for tensor, total in totals.values():
            tensor._grad = total
        return list(totals.values())


class Collect(Deposit):
    """Only what leads to a target is followed, and its gradient collected; no `.grad` is touched.

    targets     what `grad` was asked for
    collected   target -> its gradient. A target is a leaf, an op's node, or a line of a checkpoint's body
    stands_for  fresh node of a replay -> the target, a line of the body, that it was made for
    """

    def __init__(self, targets, roots):
        super().__init__()
        self.targets, self.wanted = frozenset(targets), set()
        self.collected, self.stands_for, self._lines = {}, {}, {}
        for node in reachable(roots):
            if node.body is None or node.alias is not None:
                leads = node in self.targets or not self.wanted.isdisjoint(ways_down(node))
            else:
                leads = output_of(node) in self.leading(node)
            if leads:
                self.wanted.add(node)

    def rehearsed(self):
        copy = Collect((), ())
        copy.targets, copy.wanted, copy.leaves = self.targets, set(self.wanted), dict(self.leaves)
        copy.stands_for, copy._lines = dict(self.stands_for), dict(self._lines)
        return copy

    def followed(self, node):
        return [(index, vjp) for index, vjp in node.needs.vjps if node.inputs[index] in self.wanted]

    def goes_below(self, outputs):
        return any(map(self._leads_below, outputs))

    def _leads_below(self, node):
        """Whether a target lies below the line that a checkpoint's output stands for, and not only there."""
        while node.body is not None:
            found, line = self.leading(node), output_of(node)
            if not found.isdisjoint(ways_down(line)):
                return True
            node = line
        return False

    def leading(self, node):
        """Of a checkpoint's body the lines that lead to a target, and of its boundary the nodes that do."""
        family = node.needs
        if family not in self._lines:
            self._lines[family] = self._in_body(node.body, node.inputs, self.wanted)
        return self._lines[family]

    def _in_body(self, body, inputs, wanted):
        found = {source for source, actual in zip(body.boundary, inputs, strict=True) if actual in wanted}
        for line in body.lines:
            if line.body is None:
                if line in self.targets or not found.isdisjoint(ways_down(line)):
                    found.add(line)
                continue
            inside = self._in_body(line.body, line.inputs, found)
            found.update(node for node, output in zip(line.outputs, line.body.outputs, strict=True) if output in inside)
        return found

    def arrived(self, node, gradient):
        target = self.stands_for.pop(node, node)
        if target in self.targets:
            earlier = self.collected.get(target)  # of another replay of the same line
            shared = gradient if node.op is None else passed_on(gradient)
            self.collected[target] = shared if earlier is None else plus(earlier, gradient)

    def replayed(self, fresh, leading):
        for line, node in fresh.items():
            if line in self.targets and line is not node:
                self.stands_for[node] = line
        self.wanted.update(node for line, node in fresh.items() if line in leading)

    def finish(self, arithmetic, watched):
        return []


def output_of(node):
    """The node of the body whose value a checkpoint node stands for."""
    return node.body.outputs[node.attrs["index"]]
