"""The sentences of a text, by the rules of its language."""

import re
from collections.abc import Iterator
from io import StringIO

from glassformer.errors import MissingDependencyError, install_command
from glassformer.text.languages import primary
from glassformer.text.links import Span

__all__ = ["clause_spans", "sentence_spans", "split_sentences"]

PIECE = 2_000
"""Maximum number of characters that are split at once: sentencex takes time that grows with the square of the quotation
marks in them."""
_CLAUSE_END = re.compile(r"(?<=[,;:])\s+|(?<=[，；：、])\s*")


def sentence_spans(text: str, language: str | None) -> Iterator[Span]:
    """Yield where each sentence with a letter or a digit is in a text, without the white space around it.

    A line end, LF, CR or CR LF, ends a sentence. Without a language, each line is one sentence.

    Raises:
        MissingDependencyError: sentencex is not installed.
    """
    cursor = 0
    for line in StringIO(text, newline=""):
        if line.isspace():
            cursor += len(line)
            continue
        for sentence in [line] if language is None else split_sentences(line, language):
            inner = sentence.strip()
            begin = cursor + sentence.index(inner)
            if any(character.isalnum() for character in inner):
                yield begin, begin + len(inner)
            cursor += len(sentence)


def clause_spans(text: str) -> list[Span]:
    """Return the spans of the parts of a text that end with a comma, semicolon or colon, without white space between.

    >>> clause_spans("When it rains, 1,000 cats sleep.")
    [(0, 14), (15, 32)]
    """
    cuts = [match.span() for match in _CLAUSE_END.finditer(text)]
    begins, ends = [0, *(end for _, end in cuts)], [*(begin for begin, _ in cuts), len(text)]
    return [(begin, end) for begin, end in zip(begins, ends, strict=True) if text[begin:end].strip()]


def split_sentences(text: str, language: str) -> list[str]:
    """Return the sentences of a text, each with the white space after it: joined, they are the text.

    `language` is a BCP 47 tag; for a language without rules of its own, those of English hold. A line end also ends a
    sentence.

    Raises:
        MissingDependencyError: sentencex is not installed.
    """
    try:
        import sentencex
    except ImportError as error:
        raise MissingDependencyError(f"splitting texts needs sentencex: {install_command('documents')}") from error
    code, found, begin, cursor = primary(language), list[str](), 0, 0
    try:
        while cursor < len(text):
            *whole, rest = sentencex.segment(code, text[cursor : cursor + PIECE])
            is_last = cursor + PIECE >= len(text)
            for sentence in whole:
                cursor += len(sentence)
                found.append(text[begin:cursor])
                begin = cursor
            if is_last or not whole:  # else the last sentence may go on after the piece, and begins the next one
                cursor += len(rest)
    except UnicodeEncodeError:  # half a surrogate pair, which is no text
        return [text]
    return [*found, text[begin:]] if begin < len(text) else found
