"""The engine: recording ops on a tape, checkpoints that keep the program instead of the buffers, the sweep backward.

One room. It imports nothing of minigrad but `errors` and `table`. Read it in this order: modes, device, tape, tensor,
op, gradients, destination, walk, sweep, checkpoint, replay, tracer. Beside them are messages, the texts of errors;
place, the user's source line; and sums, additions that are rounded once.

Everything else plugs in at four seams.

**Listeners** hear what runs, is held, is let go. A tracer (tracer.py) is told of every op, replayed op, buffer and
gradient; `modes.advisers` hear of each new checkpoint and of a walk's first replay; a region's `listener` hears each
line as it is added. Example: `trace.recorder.Tracer` writes down what the ledger hears.

    class Largest(Tracer):
        largest = 0  # bytes of the largest result of an op
        def ran(self, op, args, arrays, out):
            super().ran(op, args, arrays, out)
            self.largest = max(self.largest, out.nbytes)

**Keepers** bring a value back when the tape does not hold it: `node.keeper.bring_back(node, reader)`. A memory budget
is the keeper of what it evicts, `retention.discard.DISCARDED` of outputs that were never kept. A cache on disk:

    class OnDisk:
        def put(self, node, path):
            numpy.save(path, node.out)
            node.out, node.keeper, self.path = None, self, path
        def bring_back(self, node, reader):
            return numpy.load(self.path)

**The manner of a body** (replay.Manner) says how a checkpoint's stretch is kept and replayed: under which `schedule`
it splits, where its boundary waits (`slow`), who compares its values (`digests`), of which `kind` its nodes are. So
`mg.checkpoint(..., verify=True)` is a stretch recorded with `Manner(digests=Digests())`: the first run tells
`digests.note(line, out)`, and a replay `digests.compare(line, out)`.

**A walk has a destination and an arithmetic** (walk.Sweep). Its gradients go to the leaves' `.grad`, or to the
`targets` of `grad` (destination.py); they are arrays, or with `create_graph` Tensors, which are recorded
(gradients.py). Here `Sweep(seeds, False, False, targets)` collects the gradients of its targets and touches no leaf.
"""
