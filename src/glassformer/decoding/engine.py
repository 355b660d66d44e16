"""The seam between texts and searches: what an engine is asked for, whatever it computes with. Needs no torch."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple, Protocol, TypeVar, runtime_checkable

from glassformer.decoding.hypothesis import Hypothesis
from glassformer.errors import DecodingError

__all__ = [
    "Engine",
    "EngineName",
    "Ids",
    "Job",
    "Quantization",
    "Sampling",
    "Search",
    "Sources",
    "batches",
    "check_room",
    "check_sizes",
    "longest",
]

EngineName = Literal["auto", "torch", "ctranslate2"]
"""Which engine: "auto" is the fastest that gives the same answers."""
Quantization = Literal[
    "float32", "bfloat16", "float16", "int16", "int8", "int8_float32", "int8_bfloat16", "int8_float16"
]
"""How the matrices are held, by CTranslate2's names: as trained, in fewer bits, or as integers, beside other numbers of
the type behind the underscore. The torch engine has the first two, and int8."""

T = TypeVar("T")

Ids = tuple[int, ...]
Sources = tuple[Ids, ...]
"""The ids of one text, `<eos>` included, as each model reads it: an ensemble may have several tokenizers."""


class Job(NamedTuple):
    """What decides an output: equal jobs are decoded once."""

    sources: Sources
    prefix: Ids = ()
    """The tokens that the output has to begin with."""
    max_length: int = 1
    """How many tokens the output may have, counting `<eos>`."""
    seed: int = 0
    """Of its random numbers, where tokens are drawn."""

    @property
    def size(self) -> int:
        """Source positions that it takes."""
        return longest(self.sources)


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Search:
    """How to search, whatever the texts."""

    beam_size: int = 1
    """Hypotheses of a text that live on at each step; 1 is greedy search."""
    length_penalty: float = 0.0
    """α of the length penalty."""
    n_best: int = 1
    """How many hypotheses of a text are wanted, at most `beam_size`."""
    sampling: Sampling | None = None
    """Draw tokens instead."""
    log_probs: bool = True
    """Whether the hypotheses need their log probabilities; where not, an engine may save the time."""

    @property
    def rows(self) -> int:
        """Hypotheses that are decoded side by side for each text."""
        return 1 if self.sampling else max(self.beam_size, 1)


@runtime_checkable
class Engine(Protocol):
    """What turns ids into ids: a model, or several, with their searches."""

    @property
    def name(self) -> str:
        """What `--engine` calls it."""

    @property
    def longest(self) -> int:
        """How many positions a source or an output may have."""

    @property
    def reads_ahead(self) -> bool:
        """Whether it works by itself once it was asked, so that it pays to read on meanwhile."""

    def decode(self, jobs: Sequence[Job], search: Search) -> Iterator[list[Hypothesis]]:
        """Return the hypotheses of each job, in order, best first.

        Without `search.log_probs` the numbers of a hypothesis may be missing: its tokens and their order count.

        Raises:
            ConfigError: the engine cannot search in this way.
            DecodingError: an option is out of its range, or a prefix does not fit.
        """

    def score(self, pairs: Sequence[tuple[Sources, Ids]]) -> list[tuple[float, ...]]:
        """Return the log probability (natural logarithm, ≤ 0) of each token of given targets, `<eos>` included."""


def longest(sources: Sources, target: Ids = ()) -> int:
    """Return the length of the longest of these."""
    return max(map(len, (*sources, target)))


def batches(items: Iterable[T], size: Callable[[T], int], budget: int, most: int | None = None) -> Iterator[list[T]]:
    """Yield items of about equal size together, largest first, at most so many.

    Padded to the largest of them, a batch keeps to the budget, but for a single item that is larger.
    """
    batch: list[T] = []
    for item in sorted(items, key=size, reverse=True):
        if batch and (size(batch[0]) * (len(batch) + 1) > budget or len(batch) == most):
            yield batch
            batch = []
        batch.append(item)
    if batch:
        yield batch


def check_sizes(beam_size: int, n_best: int) -> None:
    """Refuse a beam of no hypotheses, and outputs that it cannot have.

    Raises:
        DecodingError: a size is out of its range.
    """
    if beam_size < 1:
        raise DecodingError(f"beam_size must be at least 1, got {beam_size}: 1 is greedy search, the paper's is 4")
    if not 1 <= n_best <= beam_size:
        raise DecodingError(
            f"n_best must be from 1 to beam_size, which is {beam_size}, got {n_best}: raise beam_size or lower n_best"
        )


def check_room(sentence: int, max_length: int, prefix: int) -> None:
    """Refuse a maximal length that has no room for `<eos>` behind a prefix of so many tokens.

    Raises:
        DecodingError: it has none.
    """
    if max_length < 1:
        raise DecodingError(
            f"the maximal length of sentence {sentence} must be at least 1, got {max_length}: it counts <eos>"
        )
    if prefix >= max_length:
        raise DecodingError(
            f"the prefix of sentence {sentence} has {prefix} tokens, which leaves no room for <eos> in a "
            f"maximal length of {max_length}: shorten the prefix or allow at least {prefix + 1} tokens"
        )
