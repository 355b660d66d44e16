"""Train recurrent translators, with and without attention, beside a Transformer: same data, batches and updates."""

import time
from collections.abc import Callable
from datetime import UTC, datetime
from itertools import islice
from statistics import fmean
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, pad

import glassformer as gf
from glassformer.bundle import Bundle
from glassformer.corpus.batching import Examples, batches, stream
from glassformer.corpus.tasks import Example, english_french
from glassformer.training.schedule import learning_rate
from laboratory import DEMO, arguments, say, write

UPDATES, VALIDATE_EVERY = 400, 50
BATCH_TOKENS, WARM_UP, SMOOTHING, CLIP = 3000, 100, 0.1, 1.0
PEAKS = {"GRU": 3e-3, "GRU with attention": 3e-3, "Transformer": 3e-3}
LENGTHS = (8, 16, 32, 64, 128, 256, 512)
TIMED_TOKENS = 2048
PAD, BOS, EOS = 0, 1, 2


class Recurrent(nn.Module):
    """A bidirectional GRU that reads, and a GRU that writes; the writer reads a context vector at each step.

    Without attention, the context is the same at each step: the last states of the reader (Cho et al. 2014). With
    attention, it is a weighted sum of the reader's states with additive scores (Bahdanau et al. 2015).
    """

    def __init__(self, source_size: int, target_size: int, *, attention: bool, width: int = 128, hidden: int = 192):
        super().__init__()
        self.attention = attention
        self.source, self.target = nn.Embedding(source_size, width), nn.Embedding(target_size, width)
        for table in (self.source, self.target):
            nn.init.normal_(table.weight, std=width**-0.5)
        self.scale = width**0.5
        self.reader = nn.GRU(width, width, batch_first=True, bidirectional=True)
        self.start = nn.Linear(2 * width, hidden)
        self.writer = nn.GRUCell(width + 2 * width, hidden)
        self.query, self.key = nn.Linear(hidden, width), nn.Linear(2 * width, width, bias=False)
        self.score = nn.Linear(width, 1, bias=False)
        self.output = nn.Linear(hidden, width)

    def forward(self, source: Tensor, target_input: Tensor) -> Tensor:
        """Return the logits, (B, T, V)."""
        packed = nn.utils.rnn.pack_padded_sequence(
            self.source(source) * self.scale, (source != PAD).sum(-1), batch_first=True, enforce_sorted=False
        )
        read, last = self.reader(packed)
        states, _ = nn.utils.rnn.pad_packed_sequence(read, batch_first=True)  # (B, S, 2D)
        final = torch.cat([last[0], last[1]], dim=-1)
        state, keys, hidden = self.start(final).tanh(), self.key(states), (source == PAD)[..., None]
        written = []
        for token in (self.target(target_input) * self.scale).unbind(1):
            context = final
            if self.attention:
                scores = self.score((self.query(state)[:, None] + keys).tanh())  # (B, S, 1)
                context = (scores.masked_fill(hidden, -torch.inf).softmax(1) * states).sum(1)
            state = self.writer(torch.cat([token, context], dim=-1), state)
            written.append(state)
        return self.output(torch.stack(written, dim=1)) @ self.target.weight.T


def models(bundle: Bundle) -> dict[str, nn.Module]:
    """Return the three untrained models."""
    config = bundle.model_config
    sizes = (config.source_vocab_size, config.target_vocab_size)
    return {
        "GRU": Recurrent(*sizes, attention=False),
        "GRU with attention": Recurrent(*sizes, attention=True),
        "Transformer": gf.Transformer(config),
    }


def main() -> None:
    asked = arguments(__doc__)
    bundle = gf.Translator.load(DEMO).bundle
    torch.set_num_threads(1)
    found: dict[str, Any] = {}
    for seed in asked.seeds:
        splits = english_french(seed, train=60_000).splits
        train = encoded(bundle, splits["train"])
        parts = {name: splits[name][: asked.limit or 300] for name in ("test", "longer")}
        torch.manual_seed(seed)
        for name, model in models(bundle).items():
            result = study(name, model, train, parts, bundle, seed)
            found.setdefault(name, []).append(result)
            say(f"{name}, seed {seed}: {result}")
    about = {"date": datetime.now(UTC).date().isoformat(), "threads": 1, "updates": UPDATES, "lengths": LENGTHS}
    write("recurrent", {**about, "models": found, "milliseconds": speeds(bundle)}, asked)


def encoded(bundle: Bundle, examples: list[Example]) -> Examples:
    """Return the ids of sentence pairs."""
    pairs = ((one.source, one.target) for one in examples)
    return Examples.encode(pairs, bundle.source_tokenizer, bundle.target_tokenizer, max_length=256)[0]


def study(
    name: str,
    model: nn.Module,
    train: Examples,
    parts: dict[str, list[Example]],
    bundle: Bundle,
    seed: int,
) -> dict[str, Any]:
    """Train a model; return its size, its loss during training, its speed, and its exact translations by length."""
    optimiser = torch.optim.Adam(model.parameters(), betas=(0.9, 0.98), eps=1e-9)
    test, curve, tokens, seconds = encoded(bundle, parts["test"]), [], 0, 0.0
    for step, (batch, _) in enumerate(islice(stream(train, BATCH_TOKENS, seed=seed), UPDATES), start=1):
        began = time.process_time()
        rate = learning_rate("cosine", step, peak=PEAKS[name], warmup=WARM_UP, progress=step / UPDATES)
        for group in optimiser.param_groups:
            group["lr"] = rate
        source, target_input, said = map(torch.from_numpy, (batch.source, batch.target_input, batch.target_output))
        logits = model(source, target_input)
        loss = cross_entropy(logits.flatten(0, 1), said.flatten(), ignore_index=PAD, label_smoothing=SMOOTHING)
        optimiser.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), CLIP)
        optimiser.step()
        tokens, seconds = tokens + batch.target_tokens, seconds + time.process_time() - began
        if step % VALIDATE_EVERY == 0:
            curve.append({"step": step, "loss": test_loss(model.eval(), test)})
            model.train()
            say(f"{name}, step {step}: {curve[-1]['loss']:.3f}, {seconds:.0f} s")
    return {
        "weights": sum(weight.numel() for weight in model.parameters()),
        "curve": curve,
        "tokens_per_second": tokens / seconds,
        "by_length": {split: by_length(model, bundle, examples) for split, examples in parts.items()},
    }


@torch.no_grad()
def test_loss(model: nn.Module, examples: Examples) -> float:
    """Return −log p per target token, in nats."""
    total = tokens = 0.0
    for batch in batches(examples, BATCH_TOKENS, seed=1, epoch=0):
        source, target_input, said = map(torch.from_numpy, (batch.source, batch.target_input, batch.target_output))
        logits = model(source, target_input)
        total += cross_entropy(logits.flatten(0, 1), said.flatten(), ignore_index=PAD, reduction="sum").item()
        tokens += batch.target_tokens
    return total / tokens


@torch.no_grad()
def by_length(model: nn.Module, bundle: Bundle, examples: list[Example]) -> list[dict[str, float]]:
    """Return the share of exact greedy translations, in %, by the length of the source in tokens without <eos>."""
    model.eval()
    right: dict[int, list[bool]] = {}
    for at in range(0, len(examples), 100):
        some = examples[at : at + 100]
        rows = [[*bundle.source_tokenizer.encode(one.source), EOS] for one in some]
        written = greedy_rows(model, rows)
        for one, row, ids in zip(some, rows, written, strict=True):
            right.setdefault(len(row) - 1, []).append(ids == [*bundle.target_tokenizer.encode(one.target)])
    return [{"length": n, "sentences": len(hits), "exact": 100 * fmean(hits)} for n, hits in sorted(right.items())]


def greedy_rows(model: nn.Module, rows: list[list[int]], limit: int = 60) -> list[list[int]]:
    """Return the most probable token after the most probable token, up to <eos>."""
    longest = max(map(len, rows))
    source = torch.stack([pad(torch.tensor(row), (0, longest - len(row)), value=PAD) for row in rows])
    target = torch.full((len(rows), 1), BOS)
    ended = torch.zeros(len(rows), dtype=torch.bool)
    while not ended.all() and target.shape[1] <= limit:
        best = model(source, target)[:, -1].argmax(-1)
        target = torch.cat([target, best[:, None]], dim=1)
        ended |= best == EOS
    texts = [row[1:] for row in target.tolist()]
    return [row[: row.index(EOS)] if EOS in row else row for row in texts]


def speeds(bundle: Bundle) -> dict[str, list[float]]:
    """Return the milliseconds of one update's forward and backward pass, by length, always with as many tokens."""
    return {name: [milliseconds(model, length) for length in LENGTHS] for name, model in models(bundle).items()}


def milliseconds(model: nn.Module, length: int, clock: Callable[[], float] = time.process_time) -> float:
    """Return the processor time of the fastest of three passes over sentences of one length."""
    ids = torch.randint(3, 600, (TIMED_TOKENS // length, length))
    times = []
    for _ in range(3):
        began = clock()
        model(ids, ids).sum().backward()
        times.append(clock() - began)
    return 1000 * min(times)


if __name__ == "__main__":
    main()
