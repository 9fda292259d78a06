# %% [markdown]
# # A transformer that writes letter by letter
#
# Two pre-norm blocks learn to guess the next character of a text: this repository's README. It is the smallest
# program that has everything a language model has: embeddings, causal attention, a residual stream, a warm-up.
#
#     python lessons/char_transformer.py            prints its losses, and what it writes at the end
#     python lessons/char_transformer.py --help
#
# Run it whole, or cell by cell in an editor that knows `# %%`.

# %%
import argparse
import pathlib

import numpy as np

import minigrad as mg
from minigrad import nn, optim
from minigrad.optim import lr_scheduler

README = pathlib.Path(__file__).resolve().parent.parent / "README.md"
CONTEXT, BATCH, RATE = 64, 16, 3e-3

# %% [markdown]
# ## The text
#
# Each different character is a number. A batch is some stretches of the text, from anywhere; the targets are the same
# stretches one character later. So each stretch has as many lessons in it as it has characters.


# %%
def read_text(path=README):
    """(the characters that occur, the text as their numbers)."""
    text = path.read_text("utf-8")
    letters = sorted(set(text))
    number = {letter: i for i, letter in enumerate(letters)}
    return letters, np.array([number[letter] for letter in text])


def batches(ids, steps, seed=0, batch=BATCH, context=CONTEXT):
    """For each step: (inputs, targets), integers of shape (batch, context)."""
    rng = np.random.default_rng(seed)
    for _ in range(steps):
        starts = rng.integers(0, len(ids) - context, batch)
        places = starts[:, None] + np.arange(context)
        yield ids[places], ids[places + 1]


# %% [markdown]
# ## The model
#
# What a character is and where it stands are added up. Then come the blocks, `x + attention(norm(x))` and
# `x + MLP(norm(x))`; "causal" means that no place sees a later one. The last layer gives a number for each character
# that could come next.


# %%
class CharTransformer(nn.Module):
    """ids (N, T) give logits (N, T, characters); dropout in the blocks only."""

    def __init__(self, characters, width=64, heads=4, blocks=2, context=CONTEXT, dropout=0.0):
        self.token, self.place = nn.Embedding(characters, width), nn.Embedding(context, width)
        for embedding in (self.token, self.place):  # small at first, so that the blocks have a say from the beginning
            embedding.weight.assign_(embedding.weight * 0.1)
        settings = dict(dropout=dropout, activation="relu", causal=True)
        self.blocks = nn.ModuleList([nn.TransformerBlock(width, heads, **settings) for _ in range(blocks)])
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, characters)

    def forward(self, ids, checkpoints=False):
        """checkpoints: keep only what goes into each block, and run the block again in backward."""
        h = self.token(ids) + self.place(mg.arange(ids.shape[1]))
        for block in self.blocks:
            h = mg.checkpoint(block, h) if checkpoints else block(h)
        return self.head(self.norm(h))


def loss_of(model, inputs, targets, **settings):
    """The mean of -log(probability of the character that comes next)."""
    logits = model(mg.tensor(inputs), **settings)
    return mg.cross_entropy(logits.reshape(-1, logits.shape[-1]), mg.tensor(targets).reshape(-1))


# %% [markdown]
# ## Training
#
# AdamW; a tenth of the steps for the warm-up, in which the rate rises, and then half a cosine down. A model that knows
# nothing has a loss of log(characters). One that knows only how frequent they are has the entropy of the letters.
# The program prints both: below the second begins what it has learnt of how they follow one another.


# %%
def make_optimizer(model, steps):
    """(optimizer, schedule)"""
    optimizer = optim.AdamW(model.parameters(), lr=RATE)
    rise = max(1, steps // 10)
    warm_up = lr_scheduler.LinearLR(optimizer, start_factor=0.1, total_iters=rise)
    cosine = lr_scheduler.CosineAnnealingLR(optimizer, T_max=max(1, steps - rise))
    return optimizer, lr_scheduler.SequentialLR(optimizer, [warm_up, cosine], milestones=[rise])


def losses_without_context(ids):
    """The loss of a model that knows nothing, and of one that knows only how frequent each character is."""
    shares = np.bincount(ids) / len(ids)
    return float(np.log(len(shares))), float(-(shares * np.log(shares)).sum())


def train(model, ids, steps, **settings):
    """Train; gives the loss of each step as it comes."""
    optimizer, schedule = make_optimizer(model, steps)
    for inputs, targets in batches(ids, steps):
        loss = loss_of(model, inputs, targets, **settings)
        optimizer.zero_grad()
        loss.backward()
        optim.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        yield loss.item()


# %% [markdown]
# ## Writing
#
# The model gives a probability for each character; one is drawn, put at the end, and the next one asked for.


# %%
def write(model, letters, start, length, seed=0):
    """`start` and `length` characters more, as the model goes on."""
    rng, number = np.random.default_rng(seed), {letter: i for i, letter in enumerate(letters)}
    ids = [number[letter] for letter in start]
    with mg.no_grad():
        for _ in range(length):
            logits = model(mg.tensor([ids[-CONTEXT:]]))[0, -1]
            probabilities = mg.softmax(logits.astype("float64")).numpy()
            ids.append(int(rng.choice(len(letters), p=probabilities)))
    return "".join([letters[i] for i in ids])


# %% [markdown]
# ## What a checkpoint for each block saves
#
# The tape of one loss, without and with. The gradients are the same to the last bit; the price is a second forward
# through the blocks.


# %%
def peaks(model, ids):
    """Peak bytes of forward and backward: (keeping everything, a checkpoint for each block)."""
    inputs, targets = next(batches(ids, 1))
    found = []
    for checkpoints in (False, True):
        model.zero_grad()
        with mg.Tracer() as tracer:
            loss_of(model, inputs, targets, checkpoints=checkpoints).backward()
        found.append(tracer.peak_bytes)
    model.zero_grad()
    return found


# %%
def main(arguments=None):
    parser = argparse.ArgumentParser(description="Train a small transformer on the characters of a text.")
    parser.add_argument("--text", type=pathlib.Path, default=README, help="a text file (default: the README)")
    parser.add_argument("--steps", type=int, default=300, help="batches to train on (default: 300)")
    parser.add_argument("--write", type=int, default=300, help="how many characters to write at the end (default: 300)")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args(arguments)

    mg.manual_seed(options.seed)
    letters, ids = read_text(options.text)
    model = CharTransformer(len(letters))
    count = sum(p.size for p in model.parameters())
    print(f"{len(ids)} characters, {len(letters)} different ones; {count} parameters")
    knows_nothing, knows_shares = losses_without_context(ids)
    print(f"loss of who knows nothing {knows_nothing:.2f}, of who knows each letter's share {knows_shares:.2f}")
    everything, checkpointed = peaks(model, ids)
    print(f"one step: {everything / 1e6:.1f} MB, with a checkpoint for each block {checkpointed / 1e6:.1f} MB\n")
    for step, loss in enumerate(train(model, ids, options.steps)):
        if step % 25 == 0 or step == options.steps - 1:
            print(f"step {step:4}  loss {loss:.4f}")
    print("\n" + write(model, letters, letters[0], options.write, options.seed))


if __name__ == "__main__":
    main()
