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
    """What the example shows, such as a rule of the grammar, an ambiguous word, or a pair of "unequal" genders."""
    pair: int | None = None
    """The number that members of a minimal pair share."""
    origins: tuple[int, ...] = ()
    """For each target word, the source words behind it, as bits: bit i is set for source word i."""

    @property
    def alignment(self) -> tuple[tuple[int, int], ...]:
        """Return (source word, target word) for each target word and each source word behind it, in target order.

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
    """The splits of a built-in corpus, by name: "train", "valid", "test" and any others."""

    splits: dict[str, list[Example]]
