"""Fit how time grows with the size of hostile texts: `python -m benchmarks.hostile [WORD ...]`.

Each algorithm that reads a user's text is given each text in sizes from 2 000 to 64 000 characters. The exponent is the
slope of the line through log(CPU seconds) and log(characters): 1 means linear. With WORDS, only algorithms or texts are
measured whose name contains one of them.

Prints the worst text of each algorithm; the exit status is 1 if an exponent is above 1.2.
"""

import argparse
import gc
import math
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from time import process_time

from benchmarks.command import as_command
from benchmarks.results import table
from glassformer.decoding.engine import Search
from glassformer.recipes.configuration import DecodingConfig
from glassformer.text.glossary import Glossary
from glassformer.text.links import Link, word_spans
from glassformer.text.messages import messages
from glassformer.text.placing import placed, stripped
from glassformer.text.settling import settled
from glassformer.text.spans import ordered_spans, protected_spans
from glassformer.text.splitting import clause_spans, sentence_spans
from glassformer.text.terms import Terms, missing_terms
from glassformer.text.words import split_words
from glassformer.translating.markup.html_pages import html_units
from glassformer.translating.markup.marked import MarkedText
from glassformer.translating.markup.sentences import MarkedSentences
from glassformer.translating.markup.xml_texts import xml_units
from glassformer.translating.request import Request
from glassformer.translating.tagging import TaggedText
from glassformer.translating.translation import Translation

SIZES = (2_000, 4_000, 8_000, 16_000, 32_000, 64_000)
LINEAR = 1.2
"""The highest exponent that counts as linear, with the noise of the measurement and a logarithm."""
LEAST = 0.001
"""Shorter times, in seconds, are left out, because they consist mostly of fixed costs."""
MOST = 20.0
"""Seconds after which larger sizes are left out."""


def repeated(part: str, size: int) -> str:
    """Return a text of `size` characters, or slightly more, that repeats a part; "#" becomes a running number."""
    count = size // len(part) + 1
    return "".join(part.replace("#", str(one)) for one in range(count)) if "#" in part else part * count


def nested(size: int) -> str:
    """Return as many tags as may be nested in each other, again and again."""
    return repeated("<sup>" * 90 + "a<sup>[1]</sup>" * 20 + "</sup>" * 90 + " ", size)


TEXTS: dict[str, Callable[[int], str]] = {
    **{
        part.strip() or repr(part): partial(repeated, part)
        for part in (
            "<b>a</b> ",
            "<b>a</b>",
            "<a href=x>a</a> ",
            "<a href=#><i></i>a</a>",
            "<title>a</title >",
            "<p>a<p>",
            "<b>a <i>b</b> c</i> ",
            "<img alt='a'> ",
            "<br>a",
            "<b>",
            "</b>",
            "<!-- a ",
            "<a b='",
            "&amp;",
            "& ",
            "a ",
            "a",
            "A. ",
            "1 ",
            "1.",
            "%s ",
            "%",
            "%2F",
            "%(a)",
            "{a} ",
            "{",
            "{{",
            "{n, plural, other {a}} ",
            "{n, plural, ",
            "}",
            "$1 ",
            "@",
            "a@b.",
            "http://a/(",
            "www.",
            "C:\\a\\",
            "a_b ",
            "aB",
            "`",
            "[a](b) ",
            "[[",
            "'",
            "''{",
            '"',
            "(",
            "...",
            "Ä_",
            "\u0301",
            "\u200d",
            "猫",
            "コ",
            "ที่",
            "\n",
            "  ",
            "\u00a0 ",
        )
    },
    "<sup> 90 times, notes": nested,
}
"""Texts by name: each is a function of the number of characters."""


def every(*_: int) -> bool:
    """Keep every word."""
    return True


def target(text: str, keeps: Callable[[int], bool]) -> Translation:
    """Return a translation that keeps some words of a text, aligned to the words that they came from."""
    kept = [span for place, span in enumerate(word_spans(text)) if keeps(place)]
    parts, links, size = [], [], 0
    for begin, end in kept:
        parts.append(text[begin:end].upper())
        links.append(Link((begin, end), (size, size + end - begin)))
        size += end - begin + 1
    return Translation(text=" ".join(parts), links=tuple(links))


def first(place: int) -> bool:
    """Keep only the first word."""
    return place == 0


def two_thirds(place: int) -> bool:
    """Drop every third word."""
    return place % 3 > 0


def document(text: str, *, keeps: Callable[[int], bool], language: str | None, xml: bool) -> None:
    """Translate a document, whose model drops words."""
    units = (xml_units if xml else html_units)(text, "en")
    found = MarkedSentences(MarkedText(text=text, units=tuple(units)), language)
    found.rebuilt([target(one, keeps) for one in found.wanted])


def tagged(text: str, *, keeps: Callable[[int], bool]) -> None:
    """Translate a plain text with tags, whose model drops words."""
    asked = Request([text], [""], [0], Search(settings=DecodingConfig()), Terms(), links=True)
    if one := TaggedText.of(text, ()):
        one.restored([target(one.plain.text, keeps)], asked)


def moved(text: str) -> None:
    """Place the spans of a text in a translation without them."""
    terms = Terms().of(text)
    rest = stripped(text, terms)
    found = target(rest.text, every)
    placed(rest, terms, terms, found.text, found.links)


def replaced(text: str, *, glossary: Glossary, keeps: Callable[[int], bool]) -> None:
    """Put the terms of a glossary into a translation, whose model drops words."""
    terms = Terms(glossary=glossary).of(text)
    found = target(text, keeps)
    placed(stripped(text, []), missing_terms(terms, found.text), terms, found.text, found.links)


def joined(text: str) -> None:
    """Correct the spaces around the spans of a text in a translation without spaces."""
    words, links, size = word_spans(text), list[Link](), 0
    for begin, end in words:
        links.append(Link((begin, end), (size, size + end - begin)))
        size += end - begin
    settled(text, TERMS.of(text), "".join(text[slice(*word)] for word in words), links)


TERMS = Terms()
GLOSSARY = Glossary.of({"a": "b", "a a": "c", "猫": "cat"})
WRITTEN = Glossary.of({"a": "A", "猫": "猫"})
"""Terms that the translations of `target` contain."""
ALGORITHMS: dict[str, Callable[[str], object]] = {
    "protected spans": protected_spans,
    "ordered spans": ordered_spans,
    "missing terms": lambda text: missing_terms(TERMS.of(text), text),
    "terms in other words": lambda text: missing_terms(TERMS.of(text), text[::-1]),
    "placing spans": moved,
    "placing terms at their words": partial(replaced, glossary=GLOSSARY, keeps=every),
    "placing terms that are written": partial(replaced, glossary=WRITTEN, keeps=two_thirds),
    "spaces around spans": joined,
    "glossary": lambda text: [*GLOSSARY.terms(text)],
    "sentences": lambda text: [*sentence_spans(text, "en")],
    "clauses": clause_spans,
    "words": split_words,
    "word spans": word_spans,
    "messages": messages,
    "tags in plain text, all words": partial(tagged, keeps=every),
    "tags in plain text, two thirds of the words": partial(tagged, keeps=two_thirds),
    "tags in plain text, one word": partial(tagged, keeps=first),
    "HTML, all words": partial(document, keeps=every, language="en", xml=False),
    "HTML, two thirds of the words": partial(document, keeps=two_thirds, language="en", xml=False),
    "HTML, one word": partial(document, keeps=first, language=None, xml=False),
    "XML, two thirds of the words": partial(document, keeps=two_thirds, language="en", xml=True),
}
"""Algorithms by name: each is a function of a text."""


def exponent(algorithm: Callable[[str], object], text: Callable[[int], str]) -> tuple[float, float]:
    """Return the exponent of an algorithm for a text, and the seconds of the largest size; 0 if all times are short."""
    points = []
    for size in SIZES:
        given, seconds = text(size), math.inf
        for _ in range(2 if size < max(SIZES) else 1):
            gc.collect()
            begun = process_time()
            with suppress(ValueError):  # our refusals are ValueErrors
                algorithm(given)
            seconds = min(seconds, process_time() - begun)
        points.append((math.log(size), math.log(max(seconds, 1e-9)), seconds))
        if seconds > MOST:
            break
    some = [(x, y) for x, y, seconds in points if seconds >= LEAST]
    return slope(some) if len(some) > 2 else 0.0, points[-1][2]


def slope(points: list[tuple[float, float]]) -> float:
    """Return the slope of the line that fits points best."""
    x, y = (sum(some) / len(points) for some in zip(*points, strict=True))
    found: float = sum((one - x) * (other - y) for one, other in points) / sum((one - x) ** 2 for one, _ in points)
    return found


def rows(words: list[str]) -> Iterator[tuple[str, str, float, float]]:
    """Yield, for each algorithm, its worst text with the exponent and the seconds of the largest size."""
    for name, algorithm in ALGORITHMS.items():
        found = [
            (*exponent(algorithm, text), kind)
            for kind, text in TEXTS.items()
            if not words or any(word in f"{name} {kind}" for word in words)
        ]
        if found:
            steep, seconds, kind = max(found)
            yield name, kind, steep, seconds


def main() -> None:
    """Run the command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("words", nargs="*", metavar="WORD", help="a part of the name of an algorithm or of a text")
    found = [*rows(parser.parse_args().words)]
    cells = [[name, f"`{kind}`", f"{steep:.2f}", f"{seconds:.3f}"] for name, kind, steep, seconds in found]
    print(table(["algorithm", "worst text", "exponent", "s at 64 k"], cells))
    sys.exit(any(steep > LINEAR for _, _, steep, _ in found))


if __name__ == "__main__":
    as_command(main)
