"""Habits: how the sources of a run's training pairs are written, as far as it decides how a text is translated."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import islice
from typing import Any

from glassformer.errors import DataError, quoted
from glassformer.text.normalisation import normalise
from glassformer.text.splitting import has_letter, inner_sentences

__all__ = ["HABIT_PAIRS", "Habits"]

HABIT_PAIRS = 200_000
"""Maximum number of pairs from which the habits of a corpus are counted."""
SPLIT_LINES = 20_000
"""Maximum number of lines whose sentences are counted, because splitting takes the most time."""
FEW_LETTERLESS = 0.01
FEW_JOINED = 0.05


@dataclass(frozen=True, slots=True, kw_only=True)
class Habits:
    """How the sources of training pairs are written. The shares are between 0 and 1."""

    letterless: float = 0.0
    """Share of sources without a letter."""
    letterless_translated: bool = False
    """Whether the target of one of these sources differs from it."""
    several_sentences: float = 0.0
    """Share of sources with more than one sentence."""

    @classmethod
    def of(cls, pairs: Sequence[tuple[str, str]], language: str) -> "Habits":
        """Return the habits of training pairs, whose sources are in a language, given as a BCP 47 tag or ""."""
        letterless = [(source, target) for source, target in pairs if not has_letter(source)]
        lines = [source for source, _ in islice(pairs, SPLIT_LINES)]
        joined = sum(len(inner_sentences(line, language)) > 1 for line in lines)
        return cls(
            letterless=len(letterless) / max(len(pairs), 1),
            letterless_translated=any(normalise(source) != normalise(target) for source, target in letterless),
            several_sentences=joined / max(len(lines), 1),
        )

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> "Habits":
        """Return the habits that `to_json` returned.

        Raises:
            DataError: a value is missing or has the wrong type.
        """
        match values:
            case {
                "letterless": float() | int() as letterless,
                "letterless_translated": bool(translated),
                "several_sentences": float() | int() as joined,
            }:
                return cls(letterless=letterless, letterless_translated=translated, several_sentences=joined)
            case _:
                names = "letterless, letterless_translated and several_sentences"
                raise DataError(f"expected {names}, got {quoted(str(values))}")

    def to_json(self) -> dict[str, Any]:
        """Return the habits as plain data."""
        return asdict(self)

    @property
    def copies(self) -> bool:
        """Whether a text without a letter is copied: such texts were rare in training, and were copied there."""
        return not self.letterless_translated and self.letterless <= FEW_LETTERLESS

    @property
    def splits(self) -> bool:
        """Whether the sentences of a line are translated one by one, because few lines in training had several."""
        return self.several_sentences < FEW_JOINED
