"""The sentences of a text, by the rules of its language."""

from collections.abc import Iterator
from io import StringIO

from glassformer.errors import MissingDependencyError, install_command
from glassformer.text.languages import primary
from glassformer.text.links import Span

__all__ = ["sentence_spans", "split_sentences"]


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
    try:
        found: list[str] = sentencex.segment(primary(language), text)
    except UnicodeEncodeError:  # half a surrogate pair, which is no text
        return [text]
    return found
