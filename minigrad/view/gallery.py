"""The diagrams of the README and the lessons: `python -m minigrad.view.gallery FOLDER` draws them.

transformer-block.svg   one block of a transformer, op by op; its attention is a checkpoint
transformer-layers.svg  a transformer of 24 blocks by layers, folded; each block is a checkpoint
replay.svg              a moment of backward: one checkpoint of that block has just been replayed

Numbers of nodes stand in the pictures, and depend on what the process has computed before. `write` therefore draws in
a process of its own, and always writes the same bytes.
"""

import subprocess
import sys
from pathlib import Path

import numpy

import minigrad as mg
from minigrad import nn

BATCH, LENGTH, FEATURES, HEADS, BLOCKS, LETTERS = 8, 32, 64, 4, 24, 65


class Block(nn.TransformerBlock):
    """The block of minigrad.nn: x + attention(norm(x)), here a checkpoint, and then x + MLP(norm(x))."""

    def forward(self, x):
        x = x + mg.checkpoint(self.attend, x, name="attention")
        return x + self.linear2(mg.gelu(self.linear1(self.norm2(x))))

    def attend(self, x):
        attended, _ = self.self_attn(self.norm1(x), is_causal=True)
        return attended


class Transformer(nn.Module):
    """Letters in, the loss of the next ones out; each block is a checkpoint."""

    def __init__(self):
        self.letter, self.place = nn.Embedding(LETTERS, FEATURES), nn.Embedding(LENGTH, FEATURES)
        self.blocks = nn.ModuleList([nn.TransformerBlock(FEATURES, HEADS, causal=True) for _ in range(BLOCKS)])
        self.norm, self.head = nn.LayerNorm(FEATURES), nn.Linear(FEATURES, LETTERS, bias=False)

    def forward(self, letters, places, following):
        x = self.letter(letters) + self.place(places)
        for block in self.blocks:
            x = mg.checkpoint(block, x)
        return mg.cross_entropy(self.head(self.norm(x)).reshape(-1, LETTERS), following)


def block_loss():
    """A scalar that one Block has computed."""
    x = mg.tensor(numpy.zeros((BATCH, LENGTH, FEATURES), numpy.float32), name="x")
    return Block(FEATURES, HEADS)(x).mean()


def transformer_loss():
    """The loss of one batch."""
    letters = mg.tensor(numpy.zeros((BATCH, LENGTH), numpy.int64), name="letters")
    places = mg.tensor(numpy.arange(LENGTH), name="places")
    following = mg.tensor(numpy.zeros(BATCH * LENGTH, numpy.int64), name="following letters")
    return Transformer()(letters, places, following)


def write(folder) -> list:
    """Draw all diagrams into a folder, which is made if it is not there; returns their paths."""
    subprocess.run([sys.executable, "-m", __name__, str(folder)], check=True)
    return [Path(folder) / name for name in ("transformer-block.svg", "transformer-layers.svg", "replay.svg")]


def main(folder):
    """What `write` does, in this process."""
    folder.mkdir(parents=True, exist_ok=True)
    loss = block_loss()
    mg.render(loss, folder / "transformer-block.svg")
    for step in mg.steps(loss):
        if step.kind == "replay":
            mg.render(loss, folder / "replay.svg", at=step, gradients=True)
            break
    mg.render(transformer_loss(), folder / "transformer-layers.svg", level="layer")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
