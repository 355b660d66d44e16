"""The interface of decoding engines: jobs, search settings and results. Needs no torch."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple, Protocol, TypeVar, runtime_checkable

from glassformer.decoding.hypothesis import Hypothesis
from glassformer.errors import DecodingError
from glassformer.recipes.configuration import DecodingConfig

__all__ = [
    "DECODED_POSITIONS",
    "AttentionRows",
    "Engine",
    "Ids",
    "Job",
    "Need",
    "Search",
    "Sources",
    "batched_by_size",
    "check_n_best",
    "check_room",
    "longest",
    "results_of_batches",
]

Need = Literal["sampling", "prefix", "explanation", "ensemble"]
"""Abilities that a translation may need beyond a search for the best output. Some engines lack some of these
abilities."""

DECODED_POSITIONS = 6000
"""Maximum number of source positions in a batch, which bounds memory. Padding counts, and a source counts once for each
of its hypotheses."""

T = TypeVar("T")
R = TypeVar("R")

Ids = tuple[int, ...]
Sources = tuple[Ids, ...]
"""The ids of one text, including `<eos>`: one tuple per model, because an ensemble's models may have different
tokenizers."""


AttentionRows = tuple[tuple[float, ...], ...]
"""A matrix of attention weights: a row for each target token, a column for each source token."""


class Job(NamedTuple):
    """All inputs that determine an output. Equal jobs are decoded only once."""

    sources: Sources
    prefix: Ids = ()
    """The tokens that the output must begin with."""
    max_length: int = 1
    """Maximum number of tokens of the output, including `<eos>`."""
    seed: int = 0
    """Seed of the job's random numbers, for sampling."""
    candidates: Ids = ()
    """Ids of the tokens that the output may contain, including `<eos>`, in ascending order; () allows all tokens."""

    @property
    def size(self) -> int:
        """Number of source positions."""
        return longest(self.sources)

    @property
    def is_limited(self) -> bool:
        """Whether the search is limited to `candidates`. The search of a job with a prefix is not limited."""
        return bool(self.candidates) and not self.prefix


@dataclass(frozen=True, slots=True, kw_only=True)
class Search:
    """The settings of a search, the same for all texts."""

    settings: DecodingConfig
    n_best: int = 1
    """Number of hypotheses to return per text, at most the beam size."""
    sample: bool = False
    """Whether to draw tokens at random instead of searching."""
    log_probs: bool = True
    """Whether to return the log probability of each token; leaving these numbers out may save time."""
    sums: bool = False
    """Whether to return each hypothesis's `log_prob` even without `log_probs`, where computing it costs almost
    nothing."""

    @property
    def beam_size(self) -> int:
        """Number of hypotheses kept at each step; 1 is greedy search."""
        return self.settings.beam_size

    @property
    def rows(self) -> int:
        """Number of hypotheses decoded in parallel for each text."""
        return 1 if self.sample else self.beam_size

    def whole_beam(self) -> "Search":
        """Return this search with `n_best` set to the beam size."""
        return replace(self, n_best=self.beam_size)


@runtime_checkable
class Engine(Protocol):
    """An engine turns source ids into target ids by a search with one or more models."""

    @property
    def name(self) -> str:
        """The engine's name, a value of the option `--engine`."""

    @property
    def cannot(self) -> Mapping[Need, str]:
        """The abilities that the engine lacks, each with the reason."""

    @property
    def longest(self) -> int:
        """Maximum number of positions of a source or an output."""

    @property
    def reads_ahead(self) -> bool:
        """Whether decoding runs in the background, so that reading the next texts meanwhile saves time."""

    def decode(self, jobs: Sequence[Job], search: Search) -> Iterator[list[Hypothesis]]:
        """Yield the hypotheses of each job, best first, in the order of the jobs.

        If `search.log_probs` is False, `token_log_probs` may be empty, and `log_prob` and `score` may be NaN. The
        tokens and the order of the hypotheses are still valid.

        Raises:
            ConfigError: the engine does not support this search.
            DecodingError: `n_best` is out of range, or a prefix is too long or invalid.
        """

    def score(self, pairs: Sequence[tuple[Sources, Ids]]) -> list[tuple[float, ...]]:
        """Return the log probability (natural logarithm, ≤ 0) of each token of given targets, including `<eos>`."""

    def attention(self, pairs: Sequence[tuple[Sources, Ids]]) -> list[AttentionRows]:
        """Return the cross-attention weights of given targets, averaged over the heads that align words.

        Each token of a target, including `<eos>`, has a row with a weight (≥ 0) for each token of its source; the last
        column, the source's `<eos>`, may be missing.
        """


def longest(sources: Sources, target: Ids = ()) -> int:
    """Return the length of the longest of these sequences."""
    return max(map(len, (*sources, target)))


def batched_by_size(
    items: Iterable[T], size: Callable[[T], int], budget: int, most: int | None = None
) -> Iterator[list[T]]:
    """Yield batches of up to `most` items of about equal size, largest first.

    The padded size of a batch is at most `budget`, except for a batch of a single item that is larger than `budget`.
    """
    batch: list[T] = []
    for item in sorted(items, key=size, reverse=True):
        # the first item is the largest, so all items are padded to its size
        if batch and (size(batch[0]) * (len(batch) + 1) > budget or len(batch) == most):
            yield batch
            batch = []
        batch.append(item)
    if batch:
        yield batch


def results_of_batches(
    function: Callable[[Sequence[T]], Iterable[R]],
    items: Sequence[T],
    size: Callable[[T], int],
    budget: int,
    most: int | None = None,
) -> list[R]:
    """Return a function's result for each item, in the order of the items; batches are formed by `batched_by_size`."""
    found: dict[int, R] = {}
    for places in batched_by_size(range(len(items)), lambda place: size(items[place]), budget, most):
        found.update(zip(places, function([items[place] for place in places]), strict=True))
    return [found[place] for place in range(len(items))]


def check_n_best(n_best: int, beam_size: int) -> None:
    """Raise an error unless a beam of this size can give `n_best` outputs.

    Raises:
        DecodingError: `n_best` is out of range.
    """
    if not 1 <= n_best <= beam_size:
        raise DecodingError(
            f"n_best: expected a number from 1 to beam_size = {beam_size}, got {n_best}; change n_best or beam_size"
        )


def check_room(sentence: int, max_length: int, prefix: int) -> None:
    """Raise an error if a maximum length leaves no room for `<eos>` after a prefix of `prefix` tokens.

    Raises:
        DecodingError: the length leaves no room.
    """
    if max_length < 1:
        raise DecodingError(
            f"the maximum length of sentence {sentence} (counted from 0): expected at least 1, for <eos>, "
            f"got {max_length}"
        )
    if prefix >= max_length:
        raise DecodingError(
            f"the prefix of sentence {sentence} (counted from 0) has {prefix} tokens, which leaves no room for <eos> "
            f"within the maximum length {max_length}: shorten the prefix, or allow at least {prefix + 1} tokens"
        )
