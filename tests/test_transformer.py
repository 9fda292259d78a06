"""A character-level transformer of two blocks learns from README.md, and its losses are those of torch."""

import pathlib

import numpy as np
import pytest

import minigrad as mg
from minigrad import nn

TEXT = (pathlib.Path(__file__).parent.parent / "README.md").read_text(encoding="utf-8")
LETTERS = sorted(set(TEXT))
CODES = np.array([LETTERS.index(letter) for letter in TEXT])
LENGTH, WIDTH, BATCH = 32, 32, 8


def batches(steps):
    """(characters, the characters that follow them), each (BATCH, LENGTH)."""
    rng = np.random.default_rng(0)
    for _ in range(steps):
        starts = rng.integers(0, len(CODES) - LENGTH - 1, BATCH)
        rows = np.stack([CODES[start : start + LENGTH + 1] for start in starts])
        yield rows[:, :-1], rows[:, 1:]


class Model(nn.Module):
    def __init__(self, checkpoint=None):
        self.letters, self.places = nn.Embedding(len(LETTERS), WIDTH), nn.Embedding(LENGTH, WIDTH)
        blocks = [nn.TransformerBlock(WIDTH, 4, causal=True) for _ in range(2)]
        self.blocks = nn.Sequential(*blocks, checkpoint=checkpoint)
        self.norm, self.head = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, len(LETTERS))

    def forward(self, codes):
        x = self.letters(codes) + self.places(mg.arange(LENGTH))
        return self.head(self.norm(self.blocks(x)))


def losses_of(model, steps):
    optimizer, losses = mg.optim.AdamW(model.parameters(), lr=3e-3), []
    for codes, following in batches(steps):
        logits = model(mg.tensor(codes))
        loss = mg.cross_entropy(logits.reshape(-1, len(LETTERS)), mg.tensor(following.reshape(-1)))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def test_it_learns_and_a_checkpointed_one_learns_the_same():
    found = []
    for checkpoint in (None, mg.schedules.uniform(2)):
        mg.manual_seed(1)
        found.append(losses_of(Model(checkpoint), 30))
    assert found[0] == found[1]
    assert np.mean(found[0][-5:]) < 0.85 * found[0][0]


@pytest.mark.oracle
def test_its_first_fifty_losses_are_those_of_torch():
    torch = pytest.importorskip("torch")

    class Theirs(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.letters = torch.nn.Embedding(len(LETTERS), WIDTH)
            self.places = torch.nn.Embedding(LENGTH, WIDTH)
            self.blocks = torch.nn.Sequential(*[
                torch.nn.TransformerEncoderLayer(WIDTH, 4, 4 * WIDTH, 0.0, "gelu", batch_first=True, norm_first=True)
                for _ in range(2)
            ])  # fmt: skip
            self.norm, self.head = torch.nn.LayerNorm(WIDTH), torch.nn.Linear(WIDTH, len(LETTERS))

        def forward(self, codes):
            x = self.letters(codes) + self.places(torch.arange(LENGTH))
            mask = torch.nn.Transformer.generate_square_subsequent_mask(LENGTH)
            for block in self.blocks:
                x = block(x, src_mask=mask, is_causal=True)
            return self.head(self.norm(x))

    torch.manual_seed(0)
    theirs, ours = Theirs(), Model()
    ours.load_state_dict({key: value.numpy() for key, value in theirs.state_dict().items()})
    optimizer, expected = torch.optim.AdamW(theirs.parameters(), lr=3e-3), []
    for codes, following in batches(50):
        logits = theirs(torch.tensor(codes)).reshape(-1, len(LETTERS))
        loss = torch.nn.functional.cross_entropy(logits, torch.tensor(following.reshape(-1)))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        expected.append(loss.item())
    difference = np.abs(np.subtract(losses_of(ours, 50), expected)).max()
    print(f"the largest difference of 50 losses: {difference:.1e}; from {expected[0]:.2f} to {expected[-1]:.2f}")
    assert difference < 1e-4
