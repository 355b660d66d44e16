"""The engine that is always available: this package's searches with PyTorch models."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from functools import partial
from types import MappingProxyType
from typing import Any

import torch

from glassformer.decoding.beam import beam_search, search_tree
from glassformer.decoding.engine import (
    DECODED_POSITIONS,
    AttentionRows,
    Ids,
    Job,
    Need,
    Search,
    Sources,
    longest,
    results_of_batches,
)
from glassformer.decoding.ensemble import EnsembleStep, mean_probability
from glassformer.decoding.greedy_search import greedy
from glassformer.decoding.hypothesis import Hypothesis
from glassformer.decoding.queued_step import QueuedStep
from glassformer.decoding.sampling import sample
from glassformer.decoding.search_trace import SearchTree
from glassformer.decoding.shortlist_step import Numbering, ShortlistStep
from glassformer.decoding.step import JoinableStep
from glassformer.decoding.transformer_step import TransformerStep, padded, target_log_probs
from glassformer.decoding.workers import Workers
from glassformer.model.alignment import Alignment
from glassformer.model.taps import record
from glassformer.model.transformer import Transformer

__all__ = ["TorchEngine"]

SCORED_TOKENS = 1000
"""Maximum number of positions scored in one batch, including padding. The limit is low because each target position
needs logits for the whole vocabulary."""


class TorchEngine:
    """The engine for one PyTorch model or an ensemble. Each model of an ensemble reads a source as its own ids.

    On CPUs, the engine may use several processes. `budget` is the maximum number of source positions in a batch;
    padding counts, and a source counts once for each of its hypotheses. `alignment` specifies which heads of the first
    model align words (default: all heads of the last decoder layer).
    """

    name = "torch"
    cannot: Mapping[Need, str] = MappingProxyType({})
    reads_ahead = False

    def __init__(
        self,
        *models: Transformer,
        workers: int = 1,
        budget: int = DECODED_POSITIONS,
        alignment: Alignment | None = None,
    ) -> None:
        self.models, self.workers, self.budget = models, workers, budget
        self.longest = min(model.config.longest for model in models)
        """Maximum number of positions of a source or an output."""
        self._alignment = alignment
        self._workers = Workers(partial(_decode, models, budget), workers)

    @property
    def alignment(self) -> Alignment:
        """The first model's heads that align words."""
        return self._alignment or Alignment.of_last_layer(self.models[0].config)

    def decode(self, jobs: Sequence[Job], search: Search) -> Iterator[list[Hypothesis]]:
        """Yield the hypotheses of each job, best first, in the order of the jobs.

        Raises:
            DataError: a worker was killed.
            DecodingError: `n_best` is out of range, or a prefix is too long or invalid.
        """
        if not jobs:
            return
        found: dict[int, list[Hypothesis]] = {}
        # Two groups, because the tokens of a batch are either ids or numbers of candidates.
        groups = defaultdict[bool, list[int]](list)
        for place in sorted(range(len(jobs)), key=lambda place: jobs[place].size, reverse=True):
            groups[jobs[place].is_limited].append(place)
        for are_limited, group in groups.items():
            decode = self._among_candidates if are_limited else self._workers.decode
            found.update(zip(group, decode([jobs[one] for one in group], search), strict=True))
        yield from (found[place] for place in range(len(jobs)))

    def _among_candidates(self, jobs: Sequence[Job], search: Search) -> list[list[Hypothesis]]:
        """Return the hypotheses of limited jobs; log probabilities, if needed, cover the whole vocabulary."""
        numberings = [Numbering(self.models[0].config, job) for job in jobs]
        numbered = [job._replace(candidates=one.ids) for job, one in zip(jobs, numberings, strict=True)]
        pairs = zip(numberings, self._workers.decode(numbered, search), strict=True)
        found = [list(map(numbering.hypothesis, several)) for numbering, several in pairs]
        if search.log_probs:
            return self._among_all_tokens(jobs, found, search)
        return [[Hypothesis.unscored(one.tokens) for one in several] for several in found]

    def _among_all_tokens(
        self, jobs: Sequence[Job], found: Sequence[Sequence[Hypothesis]], search: Search
    ) -> list[list[Hypothesis]]:
        """Return the hypotheses `found`, best first, with log probabilities over the whole vocabulary."""
        pairs = [(job.sources, one.tokens) for job, several in zip(jobs, found, strict=True) for one in several]
        scores = iter(self.score(pairs))
        ended = partial(Hypothesis.ending_with, self.models[0].config.eos_id)
        scored = [[ended(one.tokens, next(scores), search.settings) for one in several] for several in found]
        return [sorted(several, key=lambda one: one.score, reverse=True) for several in scored]

    def score(self, pairs: Sequence[tuple[Sources, Ids]]) -> list[tuple[float, ...]]:
        """Return the log probability (natural logarithm, ≤ 0) of each token of given targets, including `<eos>`."""
        return results_of_batches(self._score_batch, pairs, lambda pair: longest(*pair), SCORED_TOKENS)

    def attention(self, pairs: Sequence[tuple[Sources, Ids]]) -> list[AttentionRows]:
        """Return the first model's cross-attention weights for given targets, averaged over the heads of `alignment`.

        Each token of a target, including `<eos>`, has a row with a weight for each token of its source; each row sums
        to 1. If `alignment.shift` is 1, each token has the row of the step whose input is this token. `<eos>` is never
        an input, so `<eos>` has the row of the step that predicts `<eos>`.
        """
        return results_of_batches(self._attention_batch, pairs, lambda pair: longest(*pair), SCORED_TOKENS)

    def search_tree(self, job: Job, search: Search) -> tuple[list[Hypothesis], SearchTree]:
        """Return all finished hypotheses of a job's beam search, and the tree of all its candidates."""
        settings, size = asdict(search.settings), search.beam_size
        return search_tree(
            _step(self.models, [job]), n_best=size, max_length=job.max_length, prefix=job.prefix, **settings
        )

    def _score_batch(self, pairs: Sequence[tuple[Sources, Ids]]) -> list[tuple[float, ...]]:
        sources, targets = zip(*pairs, strict=True)
        each = []
        for model, several in zip(self.models, zip(*sources, strict=True), strict=True):
            inputs = [[model.config.bos_id, *target[:-1]] for target in targets]
            each.append(target_log_probs(model, *(padded(model, rows) for rows in (several, inputs, targets))))
        rows = mean_probability(torch.stack(each)).tolist()
        return [tuple(row[: len(target)]) for row, target in zip(rows, targets, strict=True)]

    @torch.no_grad()
    def _attention_batch(self, pairs: Sequence[tuple[Sources, Ids]]) -> list[AttentionRows]:
        model, point = self.models[0], f"{self.alignment.module}.weights"
        inputs = [(model.config.bos_id, *target[:-1]) for _, target in pairs]
        with record(model, point) as trace:
            model(padded(model, [sources[0] for sources, _ in pairs]), padded(model, inputs))
        means = trace[point][:, list(self.alignment.heads)].mean(1)  # (B, H, T, S) -> (B, T, S)
        return [
            self.alignment.shifted([tuple(row[: len(sources[0])]) for row in rows[: len(target)]])
            for rows, (sources, target) in zip(means.tolist(), pairs, strict=True)
        ]


def _decode(models: Sequence[Transformer], budget: int, jobs: Sequence[Job], search: Search) -> list[list[Hypothesis]]:
    """Return the hypotheses of `jobs`, which are sorted by descending size; decode up to `budget` positions at a time.

    Either all jobs are limited to candidates, or none is. For limited jobs, each token is the number of a candidate
    (see `Numbering`), and the probabilities of the candidates sum to 1.
    """
    sizes = [job.size for job in jobs]
    step = QueuedStep(lambda places: _step(models, [jobs[place] for place in places]), sizes, budget // search.rows)
    lengths, prefixes = [job.max_length for job in jobs], [job.prefix for job in jobs]
    given = prefixes if any(prefixes) else None
    common: dict[str, Any] = {"max_lengths": lengths, "prefixes": given, **asdict(search.settings)}
    if search.sample:
        drawn = sample(step, seeds=[job.seed for job in jobs], **common)
        return [[hypothesis] for hypothesis in drawn]
    # Greedy search gives what a beam of size 1 gives, without its bookkeeping. A larger `n_best` is an error, which
    # `beam_search` raises.
    if search.beam_size == 1 and search.n_best == 1:
        return [[one] for one in greedy(step, **common)]
    return beam_search(step, n_best=search.n_best, **common)


def _step(models: Sequence[Transformer], jobs: Sequence[Job]) -> JoinableStep[Any]:
    """Return the step that decodes the sources of these jobs; either all jobs are limited to candidates, or none is."""
    sources, candidates = zip(*(job.sources for job in jobs), strict=True), [job.candidates for job in jobs]
    pairs = [(model, padded(model, several)) for model, several in zip(models, sources, strict=True)]
    steps: list[JoinableStep[Any]] = [
        ShortlistStep(*pair, candidates) if jobs[0].is_limited else TransformerStep(*pair) for pair in pairs
    ]
    return steps[0] if len(steps) == 1 else EnsembleStep(steps)
