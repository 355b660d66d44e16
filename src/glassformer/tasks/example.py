"""What every built-in corpus is made of: examples in named splits.

>>> example = Example(source="the cat", target="le chat", origins=(0b01, 0b10))
>>> example.alignment
((0, 0), (1, 1))
"""

from dataclasses import dataclass

__all__ = ["Example", "Task"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Example:
    """A source sentence and its one correct target."""

    source: str
    target: str
    kind: str = ""
    """What is special: the rule that made it, the ambiguous word, or how a pair's genders compare."""
    pair: int | None = None
    """Members of a minimal pair share this number."""
    origins: tuple[int, ...] = ()
    """For each target word, the source words that it comes from: bit i is set for source word i."""

    @property
    def alignment(self) -> tuple[tuple[int, int], ...]:
        """Return (source word, target word) for each target word and the words that it comes from, in target order.

        Words are cut as the word tokenizer does: did|n't, l'|animal, and the full stop for itself.
        """
        return tuple(
            (source, target)
            for target, bits in enumerate(self.origins)
            for source in range(bits.bit_length())
            if bits >> source & 1
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """A built-in corpus: "train", "valid", "test" and whatever else it has, by name."""

    splits: dict[str, list[Example]]
