"""The first 50 losses of lessons/char_transformer.py, and those of the same model in torch with the same weights."""

import importlib.util
import pathlib

import torch

import minigrad as mg
from tests.against_torch import in_dtype
from tests.oracle.compare import Row

LESSON = pathlib.Path(__file__).resolve().parent.parent.parent / "lessons" / "char_transformer.py"
STEPS = 50
RATE = 1e-3  # the lesson's is three times that: fifty steps then make a difference of 1e-7 grow past the limit
LIMITS = {"float32": 1e-4, "float64": 1e-10}


def lesson():
    """The lesson's program as a module; importing it trains nothing."""
    spec = importlib.util.spec_from_file_location("char_transformer", LESSON)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class Twin(torch.nn.Module):
    """The lesson's model in torch, with the same names."""

    def __init__(self, characters, width=64, heads=4, blocks=2, context=64):
        super().__init__()
        self.token, self.place = torch.nn.Embedding(characters, width), torch.nn.Embedding(context, width)
        self.blocks = torch.nn.ModuleList(
            [
                torch.nn.TransformerEncoderLayer(width, heads, 4 * width, 0.0, batch_first=True, norm_first=True)
                for _ in range(blocks)
            ]
        )
        self.norm, self.head = torch.nn.LayerNorm(width), torch.nn.Linear(width, characters)

    def forward(self, ids):
        h = self.token(ids) + self.place(torch.arange(ids.shape[1]))
        later = torch.ones(ids.shape[1], ids.shape[1], dtype=torch.bool).triu(1)
        for block in self.blocks:
            h = block(h, src_mask=later, is_causal=True)
        return self.head(self.norm(h))


def twin_losses(twin, program, ids):
    """The lesson's `train`, in torch."""
    schedules = torch.optim.lr_scheduler
    optimizer, rise = torch.optim.AdamW(twin.parameters(), lr=program.RATE), STEPS // 10
    warm_up = schedules.LinearLR(optimizer, start_factor=0.1, total_iters=rise)
    cosine = schedules.CosineAnnealingLR(optimizer, T_max=STEPS - rise)
    schedule = schedules.SequentialLR(optimizer, [warm_up, cosine], milestones=[rise])
    for inputs, targets in program.batches(ids, STEPS):
        logits = twin(torch.tensor(inputs))
        loss = torch.nn.functional.cross_entropy(logits.flatten(0, 1), torch.tensor(targets).flatten())
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(twin.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        yield loss.item()


def compare_losses(dtype):
    """The largest difference of two losses of a step, relative to the loss."""
    program = lesson()
    program.RATE = RATE
    mg.manual_seed(0)
    letters, ids = program.read_text()
    model, twin = in_dtype(program.CharTransformer(len(letters)), dtype), Twin(len(letters))
    twin = twin.to(getattr(torch, dtype))
    twin.load_state_dict({key: torch.tensor(value) for key, value in model.state_dict().items()})
    ours, theirs = list(program.train(model, ids, STEPS)), list(twin_losses(twin, program, ids))
    assert len(ours) == len(theirs) == STEPS and ours[-1] < ours[0] - 1, "it does not learn"
    return max(abs(a - b) / b for a, b in zip(ours, theirs, strict=True)), None


def rows(only):
    for name in only(["char_transformer"]):
        row = Row(name, "two encoder layers", LIMITS)
        row.run(f"{STEPS} losses", compare_losses)
        yield row
