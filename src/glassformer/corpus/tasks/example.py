"""The elements of every built-in corpus: examples in named splits.

>>> example = Example(source="the cat", target="le chat", origins=(0b01, 0b10))
>>> example.alignment
((0, 0), (1, 1))
"""

from dataclasses import dataclass

__all__ = ["Example", "Task"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Example:
    """A source sentence with its only correct target."""

    source: str
    target: str
    kind: str = ""
    """The kind of example, such as a rule of the grammar, an ambiguous word, or "unequal" for a pair of genders."""
    pair: int | None = None
    """Number of the minimal pair that the example belongs to; None = no minimal pair."""
    origins: tuple[int, ...] = ()
    """For each target word, the source words that it translates, as bits: bit i is set for source word i."""

    @property
    def alignment(self) -> tuple[tuple[int, int], ...]:
        """Return the index pairs (source word, target word) of words that translate each other, in target order.

        Words are split as by the word tokenizer: did|n't, l'|animal, and the full stop as a word of its own.
        """
        return tuple(
            (source, target)
            for target, bits in enumerate(self.origins)
            for source in range(bits.bit_length())
            if bits >> source & 1
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """The splits of a built-in corpus, by name: "train", "valid", "test" and challenge splits."""

    splits: dict[str, list[Example]]
