"""Split texts into sentences, by the rules of their language, and into clauses."""

import re
from bisect import bisect_left
from collections.abc import Callable, Iterator
from io import StringIO

from glassformer.text.languages import primary
from glassformer.text.links import Span
from glassformer.text.spans import protected_spans

__all__ = ["clause_spans", "has_letter", "inner_sentences", "parts_of", "sentence_spans", "split_sentences"]

PIECE = 2_000
"""Maximum number of characters that are split at once, because sentencex takes time that grows with the square of the
number of quotation marks."""
_MAY_END = re.compile(r"[.!?…‥؟۔।॥።៕။]['\"»”’)\]]*+\s|[。！？｡]")
"""What stands where a sentence may end inside a line."""
_CLAUSE_END = re.compile(r"(?<=[,;:])\s++|(?<=[，；：、])\s*+")


def sentence_spans(text: str, language: str | None) -> Iterator[Span]:
    """Yield the span of each sentence that has a letter or a digit, without the white space around the sentence.

    A line end (LF, CR or CR LF) ends a sentence. If `language` is None, each line is one sentence. No sentence ends
    inside a protected span. A part without a letter, such as the "1." of a list, belongs to the sentence after it.
    """
    begin = end = 0
    has_words, is_inside = False, _inside_of(text)
    for sentence in _sentences(text, language):
        end, has_words = end + len(sentence), has_words or has_letter(sentence)
        is_part = not has_words and end < len(text) and not sentence.endswith(("\n", "\r"))
        if is_part or is_inside(end):
            continue
        inner = text[begin:end].strip()
        first = text.find(inner, begin)
        if any(character.isalnum() for character in inner):
            yield first, first + len(inner)
        begin, has_words = end, False


def has_letter(text: str) -> bool:
    """Return whether a text contains a letter.

    >>> has_letter("10 %"), has_letter("3 km")
    (False, True)
    """
    return any(map(str.isalpha, text))


def inner_sentences(line: str, language: str) -> list[Span]:
    """Return the spans of the sentences in a line; at once for a line in which no sentence ends.

    `language` is a BCP 47 tag; "" counts as English.
    """
    return [*sentence_spans(line, language or "en")] if _MAY_END.search(line) else [(0, len(line))]


def _sentences(text: str, language: str | None) -> Iterator[str]:
    """Yield the sentences or lines of a text, each with the white space after it."""
    for line in StringIO(text, newline=""):
        if language is None or line.isspace():
            yield line
        else:
            yield from split_sentences(line, language)


def _inside_of(text: str) -> Callable[[int], bool]:
    """Return a function that tells whether a position of a text is inside a protected span."""
    spans = protected_spans(text)
    begins = [span.begin for span in spans]

    def is_inside(place: int) -> bool:
        before = bisect_left(begins, place) - 1
        return before >= 0 and place < spans[before].end

    return is_inside


def clause_spans(text: str) -> list[Span]:
    """Return the spans of a text's clauses, which end with a comma, semicolon or colon.

    The white space between clauses is left out. No clause ends inside a protected span.

    >>> clause_spans("When it rains, 1,000 cats sleep.")
    [(0, 14), (15, 32)]
    """
    is_inside = _inside_of(text)
    cuts = [match.span() for match in _CLAUSE_END.finditer(text) if not is_inside(match.start())]
    begins, ends = [0, *(end for _, end in cuts)], [*(begin for begin, _ in cuts), len(text)]
    return [(begin, end) for begin, end in zip(begins, ends, strict=True) if text[begin:end].strip()]


def parts_of(text: str, span: Span, most: int) -> list[Span]:
    """Return a span of a text, cut at the ends of clauses into parts of at most `most` characters.

    A clause with more characters is a part of its own.
    """
    begin, end = span
    if end - begin <= most:
        return [span]
    parts = list[Span]()
    for first, last in clause_spans(text[begin:end]):
        if parts and begin + last - parts[-1][0] <= most:
            parts[-1] = parts[-1][0], begin + last
        else:
            parts.append((begin + first, begin + last))
    return parts


def split_sentences(text: str, language: str) -> list[str]:
    """Return the sentences of a text, each with the white space after it; joined, the sentences are the whole text.

    `language` is a BCP 47 tag; a language without rules of its own is split by the English rules. A line end also ends
    a sentence.
    """
    import sentencex  # takes 16 ms, and most lines need no splitting

    code, found, begin, cursor = primary(language), list[str](), 0, 0
    try:
        while cursor < len(text):
            *whole, rest = sentencex.segment(code, text[cursor : cursor + PIECE])
            is_last = cursor + PIECE >= len(text)
            for sentence in whole:
                cursor += len(sentence)
                found.append(text[begin:cursor])
                begin = cursor
            if is_last or not whole:  # otherwise the last sentence may continue in the next piece
                cursor += len(rest)
    except UnicodeEncodeError:  # the text contains an unpaired surrogate
        return [text]
    return [*found, text[begin:]] if begin < len(text) else found
