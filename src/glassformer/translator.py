"""Text in, text out: a model and its tokenizers, put to work.

Each text has exactly one result, in order; one that cannot be translated has an empty text and a status that says why.
"""

import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from glassformer.bundle import Bundle
from glassformer.errors import ConfigError, ShapeError
from glassformer.text.normalisation import normalise

if TYPE_CHECKING:
    from torch import Tensor

    from glassformer.decoding.hypothesis import Hypothesis
    from glassformer.model.transformer import Transformer

T = TypeVar("T")

__all__ = ["Sampling", "Status", "Translation", "Translator"]

Status = Literal["ok", "blank", "too_long", "undecodable", "max_length"]

EXTRA_LENGTH = 50
"""An output may be so many tokens longer than its source. Paper: §6.1."""
MAX_SOURCE = 1024
"""Longer sources are not translated unless asked for: in tokens, `<eos>` included."""
BATCH_TOKENS = 6000
"""Source positions, padding and beams included, that are decoded side by side: bounds memory, whatever the input."""
WINDOW = 2000
"""Lines of a stream that are sorted by length together."""
SCORED_TOKENS = 1000
"""Target positions, padding included, that are scored side by side: each has logits for the whole vocabulary."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Translation:
    """One output, with what the model thinks of it."""

    text: str
    """The translation; empty when there is none."""
    log_prob: float = 0.0
    """Sum of the tokens' log probabilities, `<eos>` included (natural logarithm, ≤ 0)."""
    score: float = 0.0
    """What the search ranks by: log_prob over the length penalty."""
    tokens: tuple[str, ...] = ()
    """The tokens, `<eos>` included."""
    token_log_probs: tuple[float, ...] = ()
    """Log probability of each token (natural logarithm, ≤ 0)."""
    alternatives: tuple["Translation", ...] = ()
    """The next best outputs, best first, when more than one was asked for."""
    status: Status = "ok"
    """"ok"; "max_length": cut at its maximal length; or why nothing was translated."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sampling:
    """Draw tokens at random instead of searching for the best."""

    temperature: float = 1.0
    """Logits are divided by it: below 1 bolder, above 1 more varied."""
    top_k: int = 0
    """Only the k most probable tokens may be drawn; 0 = all."""
    top_p: float = 1.0
    """Only the most probable tokens that together reach this probability may be drawn."""
    seed: int = 1
    """The draws of a text depend on this and its place in the input alone."""
    first: int = 0
    """The place of the first text in the whole input, of which it may be a part."""

    def seed_of(self, place: int) -> int:
        """Return the seed of the draws for the text at this place, of those that are translated together."""
        return self.seed * 1_000_003 + self.first + place


class Translator:
    """Translates with one model.

    >>> import glassformer as gf
    >>> translator = gf.Translator.load("runs/demo")                                 # doctest: +SKIP
    >>> translator.translate(["The black cat sat on the couch."])[0].text            # doctest: +SKIP
    'Le chat noir était assis sur le canapé.'
    """

    def __init__(self, bundle: Bundle, model: "Transformer") -> None:
        self.bundle = bundle
        self.model = model

    @classmethod
    def load(cls, folder: str | Path) -> "Translator":
        """Return the translator of a run directory or an exported folder.

        Raises:
            CheckpointError: something is missing or damaged there.
        """
        bundle = Bundle.load(folder)
        return cls(bundle, bundle.model())

    def translate(
        self,
        texts: Sequence[str],
        *,
        beam_size: int | None = None,
        length_penalty: float | None = None,
        n_best: int = 1,
        prefix: str | Sequence[str] = "",
        sampling: Sampling | None = None,
        max_source: int = MAX_SOURCE,
    ) -> list[Translation]:
        """Return one translation for each text, in order.

        The same text gives the same translation whatever stands beside it. Unless given, beam size and length penalty
        are those of the run's configuration; `prefix` is what each output (or, as a list, each single one) has to
        begin with. A text that is blank, longer than `max_source` tokens (or than the model's learned positions) or not
        valid Unicode has no translation; its status says so.

        Raises:
            ShapeError: `texts` is one string, or there are not as many prefixes as texts.
            ConfigError: `sampling` and a beam are both asked for.
            DecodingError: an option is out of its range.
        """
        if isinstance(texts, str):
            raise ShapeError(f"texts is one string, expected a list of them: translate([{texts[:20]!r}])")
        prefixes = [prefix] * len(texts) if isinstance(prefix, str) else list(prefix)
        if len(prefixes) != len(texts):
            raise ShapeError(f"got {len(prefixes)} prefixes for {len(texts)} texts")
        if sampling and max(beam_size or 1, n_best) > 1:
            raise ConfigError("sampling draws one output a text: leave out beam_size and n_best")
        decoding = self.bundle.configuration.decoding
        search = _Search(
            beam_size=decoding.beam_size if beam_size is None else beam_size,
            length_penalty=decoding.length_penalty if length_penalty is None else length_penalty,
            n_best=n_best,
            sampling=sampling,
        )
        results = [Translation(text="", status=self._status(text, self._source_ids, max_source)) for text in texts]
        jobs = self._jobs(texts, prefixes, results, search)
        for batch in _batches(jobs, lambda job: len(job.source) * search.rows, BATCH_TOKENS):
            for job, found in zip(batch, self._decode(batch, search), strict=True):
                for place in jobs[job]:
                    results[place] = self._translation(found, job.max_length)
        return results

    def stream(
        self, texts: Iterable[str], *, window: int = WINDOW, sampling: Sampling | None = None, **options: Any
    ) -> Iterator[Translation]:
        """Yield the translation of each text of a stream, in order, holding `window` of them at a time.

        The options are those of `translate`, but for a list of prefixes.
        """
        texts = iter(texts)
        while held := list(islice(texts, window)):
            yield from self.translate(held, sampling=sampling, **options)
            sampling = sampling and replace(sampling, first=sampling.first + len(held))

    def score(self, pairs: Sequence[tuple[str, str]], *, length_penalty: float | None = None) -> list[Translation]:
        """Return each given target as a Translation: its tokens with the log probabilities that the model gives them.

        A pair with a side that is blank, too long or not valid Unicode is not scored; its status says so.
        """
        alpha = self.bundle.configuration.decoding.length_penalty if length_penalty is None else length_penalty
        results = [Translation(text=target, status=self._pair_status(source, target)) for source, target in pairs]
        encoded = {
            place: (self._source_ids(source), self._target_ids(target))
            for place, (source, target) in enumerate(pairs)
            if results[place].status == "ok"
        }
        for places in _batches(encoded, lambda place: max(map(len, encoded[place])), SCORED_TOKENS):
            for place, log_probs in zip(places, self._forced([encoded[place] for place in places]), strict=True):
                results[place] = self._scored(pairs[place][1], encoded[place][1], log_probs, alpha)
        return results

    def _status(self, text: str, ids: Callable[[str], list[int]], longest: int = MAX_SOURCE) -> Status:
        if not normalise(text):
            return "blank"
        if any("\ud800" <= character <= "\udfff" for character in text):
            return "undecodable"
        return "too_long" if len(ids(text)) > min(longest, self._longest) else "ok"

    def _pair_status(self, source: str, target: str) -> Status:
        """Return the status of the source, or else of the target."""
        status = self._status(source, self._source_ids)
        return self._status(target, self._target_ids) if status == "ok" else status

    def _jobs(
        self, texts: Sequence[str], prefixes: Sequence[str], results: Sequence[Translation], search: "_Search"
    ) -> dict["_Job", list[int]]:
        """Return what is to be decoded, each different job once, with the places of the texts that wait for it."""
        jobs: dict[_Job, list[int]] = {}
        for place, (text, prefix, result) in enumerate(zip(texts, prefixes, results, strict=True)):
            if result.status != "ok":
                continue
            source = tuple(self._source_ids(text))
            seed = search.sampling.seed_of(place) if search.sampling else 0
            forced = tuple(self.bundle.target_tokenizer.encode(prefix))
            jobs.setdefault(_Job(source, forced, self._max_length(source), seed), []).append(place)
        return jobs

    def _max_length(self, source: Sequence[int]) -> int:
        return min(len(source) + EXTRA_LENGTH, self._longest)

    @property
    def _longest(self) -> int:
        """How many positions the model has."""
        config = self.bundle.model_config
        return config.max_length if config.positions == "learned" else sys.maxsize

    def _decode(self, batch: Sequence["_Job"], search: "_Search") -> "list[list[Hypothesis]]":
        """Return the hypotheses of each job, best first."""
        from glassformer.decoding.beam import beam_search
        from glassformer.decoding.greedy import greedy
        from glassformer.decoding.sampling import sample
        from glassformer.decoding.transformer_step import TransformerStep

        step = TransformerStep(self.model, self._padded([job.source for job in batch]))
        lengths, prefixes = [job.max_length for job in batch], [job.prefix for job in batch]
        if search.sampling:
            how, seeds = search.sampling, [job.seed for job in batch]
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

    def _translation(self, hypotheses: "Sequence[Hypothesis]", max_length: int) -> Translation:
        best, *others = (self._one(hypothesis, max_length) for hypothesis in hypotheses)
        return replace(best, alternatives=tuple(others))

    def _one(self, hypothesis: "Hypothesis", max_length: int) -> Translation:
        tokenizer = self.bundle.target_tokenizer
        return Translation(
            text=tokenizer.decode(hypothesis.tokens),
            log_prob=hypothesis.log_prob,
            score=hypothesis.score,
            tokens=tuple(tokenizer.tokens(hypothesis.tokens)),
            token_log_probs=hypothesis.token_log_probs,
            status="max_length" if len(hypothesis.tokens) == max_length else "ok",
        )

    def _forced(self, encoded: Sequence[tuple[Sequence[int], Sequence[int]]]) -> list[list[float]]:
        from glassformer.decoding.transformer_step import target_log_probs

        config = self.bundle.model_config
        output = self._padded([target for _, target in encoded])
        target_input = self._padded([[config.bos_id, *target[:-1]] for _, target in encoded])
        log_probs = target_log_probs(self.model, self._padded([source for source, _ in encoded]), target_input, output)
        return [row[: len(target)] for row, (_, target) in zip(log_probs.tolist(), encoded, strict=True)]

    def _scored(self, text: str, target: Sequence[int], log_probs: Sequence[float], alpha: float) -> Translation:
        from glassformer.decoding.hypothesis import Hypothesis

        hypothesis = Hypothesis.ending_with(self.bundle.model_config.eos_id, target, log_probs, alpha)
        return replace(self._one(hypothesis, 0), text=text)

    def _source_ids(self, text: str) -> list[int]:
        return [*self.bundle.source_tokenizer.encode(text), self.bundle.model_config.eos_id]

    def _target_ids(self, text: str) -> list[int]:
        return [*self.bundle.target_tokenizer.encode(text), self.bundle.model_config.eos_id]

    def _padded(self, rows: Sequence[Sequence[int]]) -> "Tensor":
        import torch

        longest, pad_id = max(map(len, rows)), self.bundle.model_config.pad_id
        padded = torch.tensor([[*row, *[pad_id] * (longest - len(row))] for row in rows])
        return padded.to(self.model.output.weight.device)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Search:
    """How to search, whatever the texts."""

    beam_size: int
    length_penalty: float
    n_best: int
    sampling: Sampling | None

    @property
    def rows(self) -> int:
        """Hypotheses that are decoded side by side for each text."""
        return 1 if self.sampling else max(self.beam_size, 1)


@dataclass(frozen=True, slots=True)
class _Job:
    """What decides an output: equal jobs are decoded once."""

    source: tuple[int, ...]
    prefix: tuple[int, ...]
    max_length: int
    seed: int


def _batches(items: Iterable[T], size: Callable[[T], int], budget: int) -> Iterator[list[T]]:
    """Yield items of about equal size together, largest first; padded to the largest, they keep to the budget."""
    batch: list[T] = []
    for item in sorted(items, key=size, reverse=True):
        if batch and size(batch[0]) * (len(batch) + 1) > budget:
            yield batch
            batch = []
        batch.append(item)
    if batch:
        yield batch
