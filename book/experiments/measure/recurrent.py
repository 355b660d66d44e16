"""Train recurrent translators, with and without attention, beside a Transformer: same data, sizes and time."""

import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
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

SECONDS, VALIDATE_EVERY = 120, 15
"""Processor time of each training, and between two validations."""
BATCH_TOKENS, WARM_UP, SMOOTHING, CLIP = 3000, 100, 0.1, 1.0
PEAKS = {"GRU": 3e-3, "GRU with attention": 3e-3, "Transformer": 3e-3}
LENGTHS = (8, 16, 32, 64, 128, 256, 512)
TIMED_TOKENS = 2048
PAD, BOS, EOS = 0, 1, 2


class Additive(nn.Module):
    """Attention whose scores come from a small network for each pair of query and key."""

    def __init__(self, query_width: int, key_width: int, width: int):
        super().__init__()
        self.query, self.key = nn.Linear(query_width, width), nn.Linear(key_width, width, bias=False)
        self.score = nn.Linear(width, 1, bias=False)

    def over(self, states: Tensor, hidden: Tensor) -> Callable[[Tensor], Tensor]:
        """Return the function from a query, (B, H), to the weighted sum of the states that are not hidden."""
        keys = self.key(states)  # once for all steps of the writer

        def look(query: Tensor) -> Tensor:
            scores = self.score((self.query(query)[:, None] + keys).tanh())  # (B, S, 1)
            return (scores.masked_fill(hidden, -torch.inf).softmax(1) * states).sum(1)

        return look


class Recurrent(nn.Module):
    """A bidirectional GRU that reads, and a GRU that writes; the writer reads a context vector at each step.

    Without attention, the context is the same at each step: the last states of the reader (Cho et al. 2014). With
    attention, it is a weighted sum of the reader's states with additive scores (Bahdanau et al. 2014).
    """

    def __init__(self, source_size: int, target_size: int, *, attention: bool, hidden: int, width: int = 128):
        super().__init__()
        self.attention = Additive(hidden, 2 * width, width) if attention else None
        self.source, self.target = nn.Embedding(source_size, width), nn.Embedding(target_size, width)
        for table in (self.source, self.target):
            nn.init.normal_(table.weight, std=width**-0.5)
        self.scale = width**0.5
        self.reader = nn.GRU(width, width, batch_first=True, bidirectional=True)
        self.start = nn.Linear(2 * width, hidden)
        self.writer = nn.GRUCell(width + 2 * width, hidden)
        self.output = nn.Linear(hidden, width)

    def encode(self, source: Tensor) -> Tensor:
        """Return the states of sources without padding after each word, (B, S, D), of the reading from left to right."""
        states, _ = self.reader(self.source(source) * self.scale)
        return states[..., : states.shape[-1] // 2]

    def forward(self, source: Tensor, target_input: Tensor) -> Tensor:
        """Return the logits, (B, T, V)."""
        packed = nn.utils.rnn.pack_padded_sequence(
            self.source(source) * self.scale, (source != PAD).sum(-1), batch_first=True, enforce_sorted=False
        )
        read, last = self.reader(packed)
        states, _ = nn.utils.rnn.pad_packed_sequence(read, batch_first=True)  # (B, S, 2D)
        final = torch.cat([last[0], last[1]], dim=-1)
        state, context, written = self.start(final).tanh(), final, []
        look = self.attention and self.attention.over(states, hidden=(source == PAD)[..., None])
        for token in (self.target(target_input) * self.scale).unbind(1):
            if look:
                context = look(state)
            state = self.writer(torch.cat([token, context], dim=-1), state)
            written.append(state)
        return self.output(torch.stack(written, dim=1)) @ self.target.weight.T


def models(bundle: Bundle) -> dict[str, nn.Module]:
    """Return the three untrained models. The writer without attention is wider, so that all have equal sizes."""
    config = bundle.model_config
    sizes = (config.source_vocab_size, config.target_vocab_size)
    return {
        "GRU": Recurrent(*sizes, attention=False, hidden=213),
        "GRU with attention": Recurrent(*sizes, attention=True, hidden=192),
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
        parts = {name: splits[name][: asked.limit or 1000] for name in ("test", "longer")}
        torch.manual_seed(seed)
        three, test = models(bundle), encoded(bundle, parts["test"])
        untrained = {name: reaches(model, bundle, parts["test"]) for name, model in three.items()}
        # The models take turns, so that other work on the machine slows them all.
        *_, last = zip(*(study(name, model, train, test, seed) for name, model in three.items()), strict=True)
        for (name, model), result in zip(three.items(), last, strict=True):
            lengths = {split: by_length(model, bundle, examples) for split, examples in parts.items()}
            reach = {"untrained": untrained[name], "trained": reaches(model, bundle, parts["test"])}
            found.setdefault(name, []).append(result | {"by_length": lengths, "reach": reach})
    about = {"date": datetime.now(UTC).date().isoformat(), "threads": 1, "seconds": SECONDS, "lengths": LENGTHS}
    write("recurrent", {**about, "models": found, "milliseconds": speeds(bundle)}, asked)


def encoded(bundle: Bundle, examples: list[Example]) -> Examples:
    """Return the ids of sentence pairs."""
    pairs = ((one.source, one.target) for one in examples)
    return Examples.encode(pairs, bundle.source_tokenizer, bundle.target_tokenizer, max_length=256)[0]


def study(name: str, model: nn.Module, train: Examples, test: Examples, seed: int) -> Iterator[dict[str, Any]]:
    """Train a model for `SECONDS`; at each validation, yield its size, updates, loss by time, and speed until then."""
    optimiser = torch.optim.Adam(model.parameters(), betas=(0.9, 0.98), eps=1e-9)
    tokens, seconds = 0, 0.0
    curve: list[dict[str, float]] = []
    for updates, (batch, _) in enumerate(stream(train, BATCH_TOKENS, seed=seed), start=1):
        began = time.process_time()
        # The schedule ends with the time, not with an update that only some models would reach.
        rate = learning_rate("cosine", updates, peak=PEAKS[name], warmup=WARM_UP, progress=min(seconds / SECONDS, 1.0))
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
        if seconds >= VALIDATE_EVERY * (len(curve) + 1):
            curve.append({"seconds": VALIDATE_EVERY * (len(curve) + 1), "loss": test_loss(model.eval(), test)})
            model.train()
            say(f"{name}, seed {seed}, {seconds:.0f} s, update {updates}: {curve[-1]['loss']:.3f}")
            weights = sum(weight.numel() for weight in model.parameters())
            yield {"weights": weights, "updates": updates, "curve": curve, "tokens_per_second": tokens / seconds}
        if seconds >= SECONDS:
            return


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
def by_length(model: nn.Module, bundle: Bundle, examples: list[Example]) -> list[dict[str, Any]]:
    """Return the share of exact greedy translations, in %, by kind of sentence and source tokens without <eos>."""
    model.eval()
    right: dict[tuple[int, str], list[bool]] = {}
    for at in range(0, len(examples), 100):
        some = examples[at : at + 100]
        rows = [[*bundle.source_tokenizer.encode(one.source), EOS] for one in some]
        written = greedy_rows(model, rows)
        for one, row, ids in zip(some, rows, written, strict=True):
            hit = ids == [*bundle.target_tokenizer.encode(one.target)]
            right.setdefault((len(row) - 1, one.kind), []).append(hit)
    return [
        {"length": length, "kind": kind, "sentences": len(hits), "exact": 100 * fmean(hits)}
        for (length, kind), hits in sorted(right.items())
    ]


@torch.no_grad()
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


def reaches(model: nn.Module, bundle: Bundle, examples: list[Example]) -> list[dict[str, Any]]:
    """Return how much the first word moves the encoder's last vector, compared with the last word, by length."""
    model.eval()
    by_words: dict[int, list[list[int]]] = {}
    for one in examples:
        ids = bundle.source_tokenizer.encode(one.source)
        by_words.setdefault(len(ids), []).append([*ids])
    return [
        {"length": length, "sentences": len(rows), "first_to_last": reach(model, torch.tensor(rows))}
        for length, rows in sorted(by_words.items())
    ]


def reach(model: nn.Module, rows: Tensor) -> float:
    """Return the length of the last vector's gradient by the first word, in lengths of the one by the last word."""
    table = model.source.tokens if isinstance(model, gf.Transformer) else model.source
    embedded: list[Tensor] = []
    hook = table.register_forward_hook(lambda _, __, vectors: embedded.append(vectors))
    last = model.encode(rows)[:, -1]
    hook.remove()
    # One direction of the output: the sum of all its numbers is constant after a layer norm.
    direction = torch.randn(last.shape[-1], generator=torch.Generator().manual_seed(1))
    [gradient] = torch.autograd.grad((last @ direction).sum(), embedded)
    first, own = gradient[:, 0].norm(dim=-1), gradient[:, -1].norm(dim=-1)
    return (first.log() - own.log()).mean().exp().item()


def speeds(bundle: Bundle) -> dict[str, list[float]]:
    """Return the milliseconds of one update's forward and backward pass, by length, always with as many tokens."""
    return {name: [milliseconds(model, length) for length in LENGTHS] for name, model in models(bundle).items()}


def milliseconds(model: nn.Module, length: int, clock: Callable[[], float] = time.process_time) -> float:
    """Return the processor time of the fastest of three passes over sentences of one length."""
    ids = torch.randint(3, 600, (TIMED_TOKENS // length, length))
    times = []
    for _ in range(3):
        began = clock()
        cross_entropy(model(ids, ids).flatten(0, 1), ids.flatten()).backward()
        times.append(clock() - began)
    return 1000 * min(times)


if __name__ == "__main__":
    main()
