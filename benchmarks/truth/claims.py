"""Parse the page's sentences into templates and their values, and compare numbers as the page prints them."""

import math
import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from glassformer.watch.explorer.module import strings

__all__ = ["ROUNDING", "Claim", "Problem", "differs", "differs_in_times", "expected", "first", "read"]

ROUNDING = 3e-5
"""Allowed difference between the page's float32 and PyTorch's float32, for numbers up to 1."""


class Claim(NamedTuple):
    """A template of the page's texts, with the values of its placeholders."""

    key: str
    values: dict[str, str]


class Problem(NamedTuple):
    """A sentence that is false, or that cannot be checked."""

    key: str
    text: str
    why: str


def read(text: str, language: str, kinds: Sequence[str]) -> list[Claim] | None:
    """Return the claims that make up a text, or None if the text is not made of templates.

    If there are several ways to parse the text, the result is the one in which the fewest names and numbers extend
    beyond the end of a sentence. `kinds` are the keys of templates that may occur, or beginnings of keys with a final
    dot.
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
    """Yield all beginnings of a text that match a template, shortest first, because a full stop may also be a word."""
    if shortest := pattern.match(text):
        for end in range(shortest.end(), len(text) + 1):
            is_end = language != "en" or end == len(text) or text[end].isspace()
            if is_end and (match := pattern.fullmatch(text, 0, end)):
                yield match


def _over_ends(claim: Claim) -> int:
    """Return the number of values of a claim that extend beyond the end of a sentence; a full stop alone is a word."""
    return sum(bool(re.search(r"\S\. |。", value)) for value in claim.values.values())


_KNOWN: dict[tuple[str, tuple[str, ...]], list[tuple[str, re.Pattern[str]]]] = {}


def _patterns(language: str, kinds: Sequence[str]) -> list[tuple[str, re.Pattern[str]]]:
    """Return the patterns of templates of these kinds, longest texts first."""
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
    """Return the pattern that matches a template at the beginning of a text."""
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
    """Return why a printed number is not `value`, rounded to the printed digits; "" if the number is right."""
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
    """Return why a printed factor is not e^|margin| with two digits; "" if the factor is right.

    `shown`: the two probabilities, if the page shows them, with three decimals (below 0.001: four decimals). The factor
    must also agree with these probabilities: if they leave the second digit open, the factor has one digit or is a
    bound.
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
    """Return the first of the reasons that is not "": why a claim is false; or "" if the claim is true."""
    return next((why for why in whys if why), "")
