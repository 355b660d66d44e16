"""Habits: how the sources of a run's training pairs are written, as far as it decides how a text is translated."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from itertools import islice
from typing import Any

from glassformer.errors import DataError, quoted
from glassformer.text.normalisation import normalise
from glassformer.text.recasing import CASES, LineCase, Spellings, case_of
from glassformer.text.splitting import has_letter, inner_sentences
from glassformer.text.word_edges import is_unspaced

__all__ = ["HABIT_PAIRS", "Habits"]

HABIT_PAIRS = 200_000
"""Maximum number of pairs from which the habits of a corpus are counted."""
SPLIT_LINES = 20_000
"""Maximum number of lines whose sentences are counted, because splitting takes the most time."""
FEW_LETTERLESS = 0.01
FEW_JOINED = 0.05
FEW_IN_CASE = 0.01
MOST_WITH_CAPITAL = 0.9
MOSTLY_WORDS = 0.8


@dataclass(frozen=True, slots=True, kw_only=True)
class Habits:
    """How the sources of training pairs are written. The shares are between 0 and 1."""

    letterless: float = 0.0
    """Share of sources without a letter."""
    letterless_translated: bool = False
    """Whether the targets of most of these sources that have a digit differ from them; signs such as @@ are noise."""
    several_sentences: float = 0.0
    """Share of sources with more than one sentence."""
    capitals: float = 0.0
    """Share of sources in capitals; the two fields below, in lower case and in title case (`recasing.case_of`)."""
    lower: float = 0.0
    title: float = 0.0
    with_capital: float = 1.0
    """Share of sources with a capital letter; the field below, of sources whose first letter is one."""
    first_capital: float = 1.0
    words: float = 0.0
    """Share of sources that are one word, as in a dictionary of pronunciations."""

    @classmethod
    def of(cls, pairs: Sequence[tuple[str, str]], language: str, spellings: Spellings) -> "Habits":
        """Return the habits of training pairs, whose sources are in a language, given as a BCP 47 tag or "".

        `spellings` are those of the sources.
        """
        letterless = [(source, target) for source, target in pairs if not has_letter(source)]
        copied = [normalise(source) == normalise(target) for source, target in letterless if _has_digit(source)]
        lines = [source for source, _ in islice(pairs, SPLIT_LINES)]
        joined = sum(len(inner_sentences(line, language)) > 1 for line in lines)
        cases = Counter(case_of(source, spellings.usual) for source, _ in pairs)
        first = [next(filter(str.isalpha, source), "") for source, _ in pairs]
        capital = sum(any(map(str.isupper, source)) for source, _ in pairs)
        count = max(len(pairs), 1)
        return cls(
            letterless=len(letterless) / count,
            letterless_translated=copied.count(False) > copied.count(True),
            several_sentences=joined / max(len(lines), 1),
            **{case: cases[case] / count for case in CASES},
            with_capital=capital / count,
            first_capital=sum(map(str.isupper, first)) / count,
            words=sum(map(_is_word, (source for source, _ in pairs))) / count,
        )

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> "Habits":
        """Return the habits that `to_json` returned; an older version may lack some, which get their defaults.

        Raises:
            DataError: a value has the wrong type.
        """
        known = {field.name: values.get(field.name, field.default) for field in fields(cls)}
        for name, value in known.items():
            expected = bool if name == "letterless_translated" else (int, float)
            if not isinstance(value, expected) or isinstance(value, bool) != (expected is bool):
                raise DataError(f"{name}: expected a number or a truth value, got {quoted(str(value))}")
        return cls(**known)

    def to_json(self) -> dict[str, Any]:
        """Return the habits as plain data."""
        return asdict(self)

    @property
    def copies(self) -> bool:
        """Whether a text without a letter is copied: such texts were rare in training, and were copied there."""
        return not self.letterless_translated and self.letterless <= FEW_LETTERLESS

    @property
    def unusual_cases(self) -> frozenset[LineCase]:
        """The cases in which lines are written as usual before they are translated, because few training lines were."""
        few = {case for case in CASES if getattr(self, case) < FEW_IN_CASE}
        return frozenset(few if self.with_capital > MOST_WITH_CAPITAL else few - {"lower"})

    @property
    def reads_words(self) -> bool:
        """Whether the sources are words, not sentences."""
        return self.words >= MOSTLY_WORDS

    @property
    def begins_with_capital(self) -> bool:
        """Whether a line written as usual begins with a capital."""
        return self.first_capital >= 0.5

    @property
    def splits(self) -> bool:
        """Whether the sentences of a line are translated one by one, because few lines in training had several."""
        return self.several_sentences < FEW_JOINED


def _has_digit(text: str) -> bool:
    return any(map(str.isdigit, text))


def _is_word(source: str) -> bool:
    """Return whether a source is one word; a text in a script without spaces may have several."""
    return len(source.split()) == 1 and not any(map(is_unspaced, source))
