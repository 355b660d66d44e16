"""Run models under changes: compare recordings, score given outputs, and decode.

Ids follow the usual convention: a source ends with `<eos>`, the decoder's input begins with `<bos>`, and an output is
the result of a search, without `<bos>` and with `<eos>`.

Axes: B sentences · R rows (hypotheses) · S source positions · T target positions · V vocabulary.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor

from glassformer.decoding.step import Step
from glassformer.decoding.transformer_step import TransformerStep, padded
from glassformer.model.taps import Trace, record
from glassformer.model.transformer import Transformer
from glassformer.watch.inspection.changes import Changes, changed
from glassformer.watch.inspection.mistakes import pad_to_one_length

__all__ = [
    "Compared",
    "Forced",
    "RecomputingState",
    "RecomputingStep",
    "batches_of",
    "compare",
    "decoding",
    "first_difference",
    "log_prob",
    "log_probs",
    "outputs",
]

UNCHANGED = Changes()
SIDE_BY_SIDE = 4000
"""Maximum number of positions per batch, including padding, to bound memory."""


class Compared(NamedTuple):
    """Two recordings of one sentence, and the first point that differs."""

    unchanged: Trace
    changed: Trace
    first: str | None


@torch.no_grad()
def compare(model: Transformer, source_ids: Sequence[int], target_ids: Sequence[int], changes: Changes) -> Compared:
    """Return recordings of all points in the unchanged and the changed model, for the same source and target.

    If a mistake needs source and target of one length, both recordings are padded to this length.
    """
    source, target = (padded(model, [ids]) for ids in (source_ids, target_ids))
    if changes.one_length:
        source, target = pad_to_one_length(source, target, model.config.pad_id)
    with record(model) as before:
        model(source, target)
    with changed(model, changes), record(model) as after:
        model(source, target)
    return Compared(before, after, first_difference(before, after))


def first_difference(
    unchanged: Mapping[str, Tensor], changed: Mapping[str, Tensor], tolerance: float = 0.0
) -> str | None:
    """Return the first point whose shape or value differs, in the order of `unchanged`; None if no point differs."""
    for name, right in unchanged.items():
        wrong = changed[name]
        if right.shape != wrong.shape or not bool(((right - wrong).abs() <= tolerance).all()):
            return name
    return None


class Forced(NamedTuple):
    """The scores of a given output."""

    log_prob: float
    """Log probability of the whole output (natural logarithm, ≤ 0), including `<eos>`."""
    greedy: bool
    """Whether greedy search gives exactly this output: each token is the most probable token after the previous
    tokens."""
    token_log_probs: tuple[float, ...]
    """Log probability of each token."""


def log_prob(
    model: Transformer, source_ids: Sequence[int], output_ids: Sequence[int], changes: Changes = UNCHANGED
) -> float:
    """Return the log probability (natural logarithm, ≤ 0) of a given output under changes."""
    with changed(model, changes):
        [forced] = outputs(model, [(source_ids, output_ids)])
    return forced.log_prob


@torch.no_grad()
def outputs(
    model: Transformer, pairs: Sequence[tuple[Sequence[int], Sequence[int]]], *, budget: int = SIDE_BY_SIDE
) -> list[Forced]:
    """Return the scores of each pair (source, output); to apply changes, call this function within `changed`.

    A batch has up to `budget` positions, including padding, and is scored in one pass, without a search.
    """
    results: dict[int, Forced] = {}
    for batch in batches_of(pairs, budget=budget):
        results |= zip(batch, _forced(model, [pairs[place] for place in batch]), strict=True)
    return [results[place] for place in range(len(pairs))]


def batches_of(
    pairs: Sequence[tuple[Sequence[int], Sequence[int]]], *, budget: int = SIDE_BY_SIDE
) -> Iterator[list[int]]:
    """Yield, for each batch, the indices of its pairs, short pairs first; a batch has up to `budget` positions."""
    batch: list[int] = []
    for place in sorted(range(len(pairs)), key=lambda place: max(map(len, pairs[place]))):
        if batch and max(map(len, pairs[place])) * (len(batch) + 1) > budget:
            yield batch
            batch = []
        batch.append(place)
    if batch:
        yield batch


def log_probs(
    model: Transformer, pairs: Sequence[tuple[Sequence[int], Sequence[int]]]
) -> tuple[Float[Tensor, "B T V"], Int[Tensor, "B T"]]:
    """Return the log probabilities at each position of given outputs, and the outputs, as one padded batch."""
    source = padded(model, [source for source, _ in pairs])
    output = padded(model, [output for _, output in pairs])
    target_input = padded(model, [[model.config.bos_id, *output[:-1]] for _, output in pairs])
    return model(source, target_input).log_softmax(-1), output


def _forced(model: Transformer, pairs: Sequence[tuple[Sequence[int], Sequence[int]]]) -> list[Forced]:
    config = model.config
    scores, output = log_probs(model, pairs)
    real = output != config.pad_id
    given = scores.gather(-1, output[..., None]).squeeze(-1).masked_fill(~real, 0.0).cpu().double()
    scores[..., [config.bos_id, config.pad_id]] = -torch.inf  # a search never chooses these tokens
    best = ((scores.argmax(-1) == output) | ~real).all(-1)
    rows = zip(given.sum(-1).tolist(), best.tolist(), given.tolist(), pairs, strict=True)
    return [Forced(total, greedy, tuple(each[: len(ids)])) for total, greedy, each, (_, ids) in rows]


@contextmanager
def decoding(model: Transformer, source: Int[Tensor, "B S"], changes: Changes) -> Iterator[Step[Any]]:
    """Yield a `Step` for searches under these changes, which are applied by `changed` within the context."""
    with changed(model, changes):
        yield TransformerStep(model, source)


class RecomputingState(NamedTuple):
    """Each row's tokens so far, including `<bos>`, and each sentence's source and memory."""

    prefixes: Int[Tensor, "R T"]
    source: Int[Tensor, "B S"]
    memory: Float[Tensor, "B S D"]


class RecomputingStep:
    """A `Step` without a cache: at each step, the whole prefix runs through the decoder under the changes.

    This defines decoding under changes: for all changes, each step gives the result of a pass over the whole prefix.
    """

    def __init__(self, model: Transformer, source: Int[Tensor, "B S"], changes: Changes = UNCHANGED) -> None:
        self._model, self._source, self._changes = model, source, changes.resolved(model)
        self.vocab_size = model.config.target_vocab_size
        self.bos_id, self.eos_id, self.pad_id = model.config.bos_id, model.config.eos_id, model.config.pad_id
        self.device = source.device

    @torch.no_grad()
    def start(self) -> RecomputingState:
        """Return the state before any token, with the sources encoded."""
        with changed(self._model, self._changes):
            memory = self._model.encode(self._source)
        return RecomputingState(self._source.new_empty(len(self._source), 0), self._source, memory)

    @torch.no_grad()
    def advance(
        self, tokens: Int[Tensor, "R"], state: RecomputingState
    ) -> tuple[Float[Tensor, "R V"], RecomputingState]:
        """Return the log probabilities of each row's next token, and the state after `tokens`."""
        prefixes = torch.cat([state.prefixes, tokens[:, None]], dim=1)
        rows = len(prefixes) // len(state.source)
        source, memory = (x.repeat_interleave(rows, dim=0) for x in (state.source, state.memory))
        with changed(self._model, self._changes):
            if self._changes.one_length:  # in this case, the padding of the source depends on the step
                logits = self._model(source, prefixes)
            else:
                logits = self._model.decode(prefixes, memory, source)
        return logits[:, -1].log_softmax(-1), state._replace(prefixes=prefixes)

    def select(
        self, state: RecomputingState, rows: Int[Tensor, "R2"], sentences: Int[Tensor, "B2"]
    ) -> RecomputingState:
        """Return the state of these rows and sentences."""
        return RecomputingState(state.prefixes[rows], state.source[sentences], state.memory[sentences])
