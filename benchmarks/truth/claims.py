"""Sentences as templates of the page's texts with what fills them, and numbers as the page prints them."""

import math
import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from glassformer.watch.explorer.module import strings

__all__ = ["ROUNDING", "Claim", "Problem", "differs", "differs_in_times", "expected", "first", "read"]

ROUNDING = 3e-5
"""By how much the page's float32 may differ from PyTorch's, of a number up to 1."""


class Claim(NamedTuple):
    """A template of the page's texts, and what fills its places."""

    key: str
    values: dict[str, str]


class Problem(NamedTuple):
    """A sentence that is false, or that cannot be checked."""

    key: str
    text: str
    why: str


def read(text: str, language: str, kinds: Sequence[str]) -> list[Claim] | None:
    """Return the claims that make up a text, or None if it is made of anything else.

    Of several readings, the one counts in which the fewest names and numbers go beyond the end of a sentence. `kinds`
    are the keys of templates that may occur, or their beginnings with a final dot.
    """
    readings = _readings(text.strip(), language, kinds)
    return min(readings, key=lambda claims: sum(map(_over_ends, claims)), default=None)


def _readings(text: str, language: str, kinds: Sequence[str]) -> Iterator[list[Claim]]:
    if not text:
        yield []
        return
    for key, pattern in _patterns(language, kinds):
        for match in _beginnings(pattern, text, language):
            values = {name.removeprefix("_"): value.strip() for name, value in match.groupdict().items()}
            for rest in _readings(text[match.end() :].strip(), language, kinds):
                yield [Claim(key, values), *rest]


def _beginnings(pattern: re.Pattern[str], text: str, language: str) -> Iterator[re.Match[str]]:
    """Yield all beginnings of a text that are a template, the shortest first: a full stop may be a word of its own."""
    if shortest := pattern.match(text):
        for end in range(shortest.end(), len(text) + 1):
            is_end = language != "en" or end == len(text) or text[end].isspace()
            if is_end and (match := pattern.fullmatch(text, 0, end)):
                yield match


def _over_ends(claim: Claim) -> int:
    """Return how many values of a claim go beyond the end of a sentence; a full stop alone is a word."""
    return sum(bool(re.search(r"\S\. |。", value)) for value in claim.values.values())


_KNOWN: dict[tuple[str, tuple[str, ...]], list[tuple[str, re.Pattern[str]]]] = {}


def _patterns(language: str, kinds: Sequence[str]) -> list[tuple[str, re.Pattern[str]]]:
    """Return the patterns of templates of these kinds, those with the longest texts first."""
    wanted = (language, tuple(kinds))
    if wanted not in _KNOWN:
        chosen = {
            key: text
            for key, text in strings()[language].items()
            if any(key == kind or (kind.endswith(".") and key.startswith(kind)) for kind in kinds)
        }
        by_length = sorted(chosen, key=lambda key: -len(re.sub(r"\{\w+\}", "", chosen[key])))
        _KNOWN[wanted] = [(key, _pattern(chosen[key])) for key in by_length]
    return _KNOWN[wanted]


def _pattern(template: str) -> re.Pattern[str]:
    """Return the pattern of a template at the beginning of a text."""
    pieces = re.split(r"\{(\w+)\}", template)
    made, seen = "", set()
    for at, piece in enumerate(pieces):
        if at % 2 == 0:
            made += re.escape(piece)
        else:
            is_last = at == len(pieces) - 2 and not pieces[-1]
            made += f"(?P=_{piece})" if piece in seen else f"(?P<_{piece}>{'.+$' if is_last else '.+?'})"
            seen.add(piece)
    return re.compile(made, re.DOTALL)


# Numbers as the page prints them


def differs(text: str, value: float, what: str = "it") -> str:
    """Return why a printed number is not a value rounded to the digits that are printed; "" if it is."""
    number = text.replace("\u2212", "-").replace("–∞", "-inf").replace(",", "")
    slack = ROUNDING * max(1.0, abs(value))
    if match := re.fullmatch(r"([<>]) ([\d.e-]+)", number):
        is_right = value < float(match[2]) + slack if match[1] == "<" else value > float(match[2]) - slack
    else:
        digits, _, power = number.partition("e")
        decimals = len(digits.partition(".")[2]) - int(power or 0)
        is_right = float(number) == value or abs(float(number) - value) <= 0.5 * 10.0**-decimals + slack
    return "" if is_right else f"{what} is {value:.6g}, not {text}"


def differs_in_times(text: str, margin: float, *shown: float) -> str:
    """Return why a printed factor is not e^|margin| with two digits; "" if it is.

    `shown`: the two probabilities, where the page shows them: with three decimals, below 0.001 with four. The factor
    must agree with these, too: where they leave the second digit open, it has one digit or is a bound.
    """
    times, bound = math.exp(abs(margin)), re.fullmatch(r"more than (.*)|(.*) 多", text)
    number = (bound[1] or bound[2]) if bound else text
    said = float(number.replace(",", ""))
    rounded = [max(round(one, 3 if one >= 0.001 else 4), 0.0001) for one in shown]
    seen = max(rounded) / min(rounded) if shown and times >= 2 else times

    def has(digits: int) -> bool:
        return all(
            abs(said - one) <= 0.5 * 10.0 ** (math.floor(math.log10(one)) - digits + 1) + 1e-3 * one
            for one in (times, seen)
        )

    is_right = min(times, seen) > said * 0.999 if bound else has(3 if times < 1.05 else 2)
    is_rough = f"{times:.2g}" != f"{seen:.2g}" and re.fullmatch(r"\d[0,]*", text) is not None and has(1)
    return "" if is_right or is_rough else f"it is {times:.4g} times, not {text}"


def expected(name: str, said: str, wanted: str) -> str:
    return "" if said == wanted else f"the {name} is {wanted}, not {said}"


def first(*whys: str) -> str:
    """Return the first reason why a claim is false; "" if there is none."""
    return next((why for why in whys if why), "")
