"""Signals: numbers that are larger for outputs in which something may be wrong. Needs no torch."""

import math
import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from glassformer.text.terms import without_spans

__all__ = ["SIGNALS", "ModelOutput", "Usual", "longest_repetition", "numbers_of", "scripts_of", "signals"]

_WORD = re.compile(r"\w+")
_NUMBER = re.compile(r"\d(?:[\d.,:/'\u00a0\u202f]*\d)?")


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelOutput:
    """An output of a model, and the inputs from which it was made."""

    source: str
    target: str
    source_ids: Sequence[int]
    """The tokens of the source, including `<eos>`."""
    tokens: Sequence[Hashable]
    """The tokens of the target, including `<eos>`."""
    token_log_probs: Sequence[float] = ()
    """Log probability of each token (natural logarithm, ≤ 0); empty if unknown."""
    log_prob: float = math.nan
    """Sum of the tokens' log probabilities; NaN if unknown."""
    unknown: int = 0
    """Number of `<unk>` tokens on both sides."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Usual:
    """What is usual in a run's outputs."""

    intercept: float
    slope: float
    """An output's length in tokens follows log(length) ≈ intercept + slope · log(length of the source)."""
    spread: float
    """Standard deviation of log(length) from this line."""
    scripts: frozenset[str]
    """The scripts of the outputs' letters, such as "LATIN"."""

    @classmethod
    def of(cls, outputs: Sequence[ModelOutput]) -> "Usual":
        """Return the usual values of these outputs."""
        import numpy as np

        lengths = np.log([[len(one.source_ids), len(one.tokens)] for one in outputs])
        sources, targets = lengths[:, 0], lengths[:, 1]
        variance = float(sources.var())
        slope = float(np.cov(sources, targets, bias=True)[0, 1]) / variance if variance else 0.0
        intercept = float(targets.mean() - slope * sources.mean())
        spread = float((targets - intercept - slope * sources).std())
        scripts = frozenset().union(*(scripts_of(one.target) for one in outputs))
        return cls(intercept=intercept, slope=slope, spread=max(spread, 1e-6), scripts=scripts)


def signals(output: ModelOutput, usual: Usual | None, names: Iterable[str] | None = None) -> dict[str, float]:
    """Return the value of each signal of `SIGNALS` that can be computed; with `names`, only of the signals named.

    Some signals are missing if there are no log probabilities or no usual values.
    """
    chosen = SIGNALS if names is None else names
    return {name: found for name in chosen if (found := SIGNALS[name](output, usual)) is not None}


def longest_repetition(tokens: Sequence[Hashable]) -> int:
    """Return the number of tokens in the longest run that repeats the tokens right before it.

    The result is 0 if no phrase is repeated directly, 1 for "very very", and 6 for a phrase of three tokens that occurs
    three times in a row.
    """
    if len(set(tokens)) == len(tokens):  # most outputs repeat no token, so the search can be skipped
        return 0
    places: dict[Hashable, list[int]] = {}
    periods: set[int] = set()
    for place, token in enumerate(tokens):
        before = places.setdefault(token, [])
        periods.update(place - one for one in before)
        before.append(place)
    return max((_repetition(tokens, period) for period in periods), default=0)


def _repetition(tokens: Sequence[Hashable], period: int) -> int:
    """Return the length of the longest run of tokens that each equal the token `period` positions earlier.

    The result is 0 if the run has fewer than `period` tokens.
    """
    longest = run = 0
    for one, other in zip(tokens, tokens[period:], strict=False):
        run = run + 1 if one == other else 0
        longest = max(longest, run)
    return longest if longest >= period else 0


def numbers_of(text: str) -> Counter[str]:
    """Return the numbers in a text, written with the digits 0–9 and without separators such as "," in 1,000."""
    return Counter(
        "".join(str(unicodedata.digit(one)) for one in number if one.isdigit()) for number in _NUMBER.findall(text)
    )


def scripts_of(text: str) -> frozenset[str]:
    """Return the scripts of a text's letters; a script is named by the first word of its letters' Unicode names."""
    return frozenset(_script(character) for character in set(text) if character.isalpha())


@lru_cache(maxsize=1 << 12)
def _script(letter: str) -> str:
    return unicodedata.name(letter, "UNKNOWN").split()[0]


def _loop(output: ModelOutput, _: Usual | None) -> float:
    """Return by how many tokens the output's longest repetition exceeds the source's longest repetition; at least 0."""
    found = longest_repetition(output.tokens)
    return float(max(found - longest_repetition(output.source_ids), 0)) if found else 0.0


def _long(output: ModelOutput, usual: Usual | None) -> float | None:
    """Return how many standard deviations longer than usual the output is."""
    if usual is None:
        return None
    expected = usual.intercept + usual.slope * math.log(len(output.source_ids))
    return (math.log(len(output.tokens)) - expected) / usual.spread


def _short(output: ModelOutput, usual: Usual | None) -> float | None:
    """Return how many standard deviations shorter than usual the output is."""
    return None if (longer := _long(output, usual)) is None else -longer


def _copy(output: ModelOutput, _: Usual | None) -> float:
    """Return the share of the words of source and target that occur in both; protected spans do not count."""
    source, target = (_WORD.findall(text.casefold()) for text in (output.source, output.target))
    if set(source).isdisjoint(target):  # a quick check first, because the rest takes longer
        return 0.0
    source, target = (_WORD.findall(without_spans(text).casefold()) for text in (output.source, output.target))
    if not source or not target:
        return 0.0
    return 2 * (Counter(source) & Counter(target)).total() / (len(source) + len(target))


def _script_share(output: ModelOutput, usual: Usual | None) -> float | None:
    """Return the share of letters whose script is not usual in the run's outputs."""
    if usual is None:
        return None
    if output.target.isascii() and "LATIN" in usual.scripts:
        return 0.0
    letters = [one for one in output.target if one.isalpha()]
    return sum(_script(one) not in usual.scripts for one in letters) / len(letters) if letters else 0.0


def _numbers(output: ModelOutput, _: Usual | None) -> float:
    """Return how many numbers occur in only one of source and target."""
    if not (_NUMBER.search(output.source) or _NUMBER.search(output.target)):
        return 0.0
    source, target = numbers_of(output.source), numbers_of(output.target)
    return float(((source - target) | (target - source)).total())


def _unknown(output: ModelOutput, _: Usual | None) -> float:
    """Return the share of `<unk>` among the tokens of source and target."""
    return output.unknown / (len(output.source_ids) + len(output.tokens))


def _improbable(output: ModelOutput, _: Usual | None) -> float | None:
    """Return the mean of the tokens' negative log probabilities."""
    return None if math.isnan(output.log_prob) else -output.log_prob / len(output.tokens)


def _surprise(output: ModelOutput, _: Usual | None) -> float | None:
    """Return the negative log probability of the least probable token, which is large if an output ends too early."""
    return -min(output.token_log_probs) if output.token_log_probs else None


SIGNALS: Mapping[str, Callable[[ModelOutput, Usual | None], float | None]] = {
    "loop": _loop,
    "long": _long,
    "short": _short,
    "copy": _copy,
    "script": _script_share,
    "numbers": _numbers,
    "unknown": _unknown,
    "improbable": _improbable,
    "surprise": _surprise,
}
"""The function of each signal, by the name of its guard."""
