"""The engine that is always there: the searches of this package over models in PyTorch."""

from collections.abc import Iterator, Sequence
from typing import Any

import torch

from glassformer.decoding.beam import beam_search
from glassformer.decoding.engine import Ids, Job, Search, Sources, batches, longest
from glassformer.decoding.ensemble import EnsembleStep, mean_probability
from glassformer.decoding.greedy_search import greedy
from glassformer.decoding.hypothesis import Hypothesis
from glassformer.decoding.queued_step import QueuedStep
from glassformer.decoding.sampling import sample
from glassformer.decoding.step import JoinableStep
from glassformer.decoding.team import Team
from glassformer.decoding.transformer_step import TransformerStep, padded, target_log_probs
from glassformer.model.transformer import Transformer

__all__ = ["TorchEngine"]

BATCH_TOKENS = 6000
"""Source positions, padding and beams included, that are decoded side by side: bounds memory, whatever the input."""
SCORED_TOKENS = 1000
"""Target positions, padding included, that are scored side by side: each has logits for the whole vocabulary."""


class TorchEngine:
    """One model, or the ensemble of several, each of which reads its own ids of a source; on CPUs by several processes,
    if wanted.
    """

    name = "torch"
    reads_ahead = False

    def __init__(self, *models: Transformer, workers: int = 1) -> None:
        self.models, self.workers = models, workers
        self._team = Team(TorchEngine(*models)._decode, workers) if workers > 1 else None

    @property
    def longest(self) -> int:
        """How many positions a source or an output may have."""
        return min(model.config.longest for model in self.models)

    def decode(self, jobs: Sequence[Job], search: Search) -> Iterator[list[Hypothesis]]:
        """Return the hypotheses of each job, in order, best first.

        Raises:
            DataError: a process that helps was killed.
            DecodingError: an option is out of its range, or a prefix does not fit.
        """
        if not jobs:
            return
        places = sorted(range(len(jobs)), key=lambda place: jobs[place].size, reverse=True)
        decode = self._team.decode if self._team else self._decode
        found = dict(zip(places, decode([jobs[place] for place in places], search), strict=True))
        yield from (found[place] for place in range(len(jobs)))

    def score(self, pairs: Sequence[tuple[Sources, Ids]]) -> list[tuple[float, ...]]:
        """Return the log probability (natural logarithm, ≤ 0) of each token of given targets, `<eos>` included."""
        scores: dict[int, tuple[float, ...]] = {}
        for places in batches(range(len(pairs)), lambda place: longest(*pairs[place]), SCORED_TOKENS):
            scores.update(zip(places, self._score([pairs[place] for place in places]), strict=True))
        return [scores[place] for place in range(len(pairs))]

    def step(self, jobs: Sequence[Job]) -> JoinableStep[Any]:
        """Return what reads the sources of these jobs, ready to write."""
        sources = zip(*(job.sources for job in jobs), strict=True)
        steps = [
            TransformerStep(model, padded(model, several)) for model, several in zip(self.models, sources, strict=True)
        ]
        return steps[0] if len(steps) == 1 else EnsembleStep(steps)

    def _decode(self, jobs: Sequence[Job], search: Search) -> list[list[Hypothesis]]:
        """Return the hypotheses of jobs whose sizes fall."""
        sizes, budget = [job.size for job in jobs], BATCH_TOKENS // search.rows
        step = QueuedStep(lambda places: self.step([jobs[place] for place in places]), sizes, budget)
        lengths, prefixes = [job.max_length for job in jobs], [job.prefix for job in jobs]
        if search.sampling:
            how, seeds = search.sampling, [job.seed for job in jobs]
            drawn = sample(
                step,
                seeds=seeds,
                temperature=how.temperature,
                top_k=how.top_k,
                top_p=how.top_p,
                length_penalty=search.length_penalty,
                max_lengths=lengths,
                prefixes=prefixes,
            )
            return [[hypothesis] for hypothesis in drawn]
        if search.beam_size == 1 and search.n_best == 1:
            alpha = search.length_penalty
            return [[one] for one in greedy(step, max_lengths=lengths, prefixes=prefixes, length_penalty=alpha)]
        return beam_search(
            step,
            beam_size=search.beam_size,
            n_best=search.n_best,
            length_penalty=search.length_penalty,
            max_lengths=lengths,
            prefixes=prefixes,
        )

    def _score(self, pairs: Sequence[tuple[Sources, Ids]]) -> list[tuple[float, ...]]:
        sources, targets = zip(*pairs, strict=True)
        each = []
        for model, several in zip(self.models, zip(*sources, strict=True), strict=True):
            inputs = [[model.config.bos_id, *target[:-1]] for target in targets]
            each.append(target_log_probs(model, *(padded(model, rows) for rows in (several, inputs, targets))))
        rows = mean_probability(torch.stack(each)).tolist()
        return [tuple(row[: len(target)]) for row, target in zip(rows, targets, strict=True)]
