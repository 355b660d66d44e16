"""A text of a client: its sentences, the translation of each, and the answer.

A model translates single sentences. Lines stay lines. Blank lines and the white space around a sentence do not change.
A sentence does not change either if it has no letter or digit, such as a line of emoji, or if the model's output is
empty. In a text with tags, the tags follow the words to which they belong.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from glassformer.serving.models import Direction
from glassformer.serving.readers import Readers
from glassformer.serving.reading import SHORT_TEXT, Markup, read_marked, read_sentences, rebuilt_marked
from glassformer.serving.refusals import RequestError
from glassformer.text.edits import exchanged
from glassformer.text.links import Span
from glassformer.translating.translation import Translation, text_or

__all__ = ["Passage", "check_unicode", "translate_passages"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Passage:
    """The translation of a text."""

    text: str
    alternatives: tuple[str, ...]
    """Other translations, best first: each differs from `text` and from all other alternatives."""
    parts: tuple[Translation, ...]
    """The translations of the sentences that the model has translated, in order."""
    sources: tuple[Span, ...]
    """Where each of these sentences is in the client's text; empty for a text with tags."""
    targets: tuple[Span, ...]
    """Where the translation of each sentence is in `text`; empty for a text with tags."""


async def translate_passages(
    readers: Readers,
    model: Direction,
    texts: Sequence[str],
    *,
    alternatives: int = 0,
    split: bool = True,
    markup: Markup | None = None,
    **options: Any,
) -> list[Passage]:
    """Return the translation of each text; `options` are arguments of `Translator.translate`.

    With `split`, lines are split into sentences; otherwise, each line is one sentence. With `markup`, texts have tags.

    Raises:
        RequestError: a text or a sentence cannot be translated, or the service is busy.
        DataError: the elements of a text are nested too deeply.
    """
    for number, text in enumerate(texts, start=1):
        check_unicode(f"text {number}", text)
    options = _with_n_best(model, alternatives, options if split else {**options, "split": False})
    is_short = sum(map(len, texts)) <= SHORT_TEXT
    if markup:
        asked = texts, markup, model.source, split
        read = await readers.run(is_short, read_marked, *asked, model.process.room)
        if read is None:
            raise model.process.full()
        wanted, has_tags = read
        found = await _translated(model, wanted, {**options, "links": has_tags})
        renderings = [[some, *_ranked(some, alternatives)] for some in found]
        written = await readers.run(is_short, rebuilt_marked, *asked, renderings)
        return [_passage([(one, []) for one in several], some) for several, some in zip(written, found, strict=True)]
    spans = await readers.run(is_short, read_sentences, texts, model.source if split else None, model.process.room)
    if spans is None:
        raise model.process.full()
    sentences = [[text[begin:end] for begin, end in some] for text, some in zip(texts, spans, strict=True)]
    found = await _translated(model, sentences, options)
    return [_plain(*one, alternatives) for one in zip(texts, spans, sentences, found, strict=True)]


async def _translated(
    model: Direction, several: Sequence[Sequence[str]], options: Mapping[str, Any]
) -> list[list[Translation]]:
    """Return the translations of the sentences of each text."""
    wanted = [sentence for sentences in several for sentence in sentences]
    found = await model.process.translate(wanted, options) if wanted else []
    for number, (sentence, one) in enumerate(zip(wanted, found, strict=True), start=1):
        if one.status == "too_long":
            size = len(sentence)
            raise RequestError(
                400, f"sentence {number} is too long for the model ({size} characters): shorten this sentence"
            )
    rest = iter(found)
    return [[next(rest) for _ in sentences] for sentences in several]


def check_unicode(name: str, text: str) -> None:
    """Check that a text contains no half of a surrogate pair, which escapes in JSON can produce.

    Raises:
        RequestError: the text contains half a surrogate pair.
    """
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise RequestError(400, f"{name} is not valid Unicode: it holds half a surrogate pair") from error


def _plain(
    text: str, spans: Sequence[Span], sentences: Sequence[str], found: Sequence[Translation], alternatives: int
) -> Passage:
    """Return the passage of a text without tags, given the spans of its sentences and their translations."""
    shown = [replace(one, text=text_or(one, source)) for one, source in zip(found, sentences, strict=True)]
    renderings = [shown, *_ranked(shown, alternatives)]
    return _passage([exchanged(text, spans, [one.text for one in some]) for some in renderings], shown, spans)


def _passage(
    written: Sequence[tuple[str, Sequence[Span]]], parts: Sequence[Translation], sources: Sequence[Span] = ()
) -> Passage:
    """Return the passage of a text, given its renderings (the best first), each with the spans of its sentences."""
    (text, targets), *others = written
    different = tuple(other for other in dict.fromkeys(other for other, _ in others) if other != text)
    return Passage(
        text=text, alternatives=different, parts=tuple(parts), sources=tuple(sources), targets=tuple(targets)
    )


def _ranked(found: Sequence[Translation], alternatives: int) -> Iterator[list[Translation]]:
    """Yield, for each rank, the alternative of each sentence; if it is missing or empty, the best translation."""
    for rank in range(alternatives):
        others = [one.alternatives[rank : rank + 1] for one in found]
        yield [other[0] if other and other[0].text.strip() else one for one, other in zip(found, others, strict=True)]


def _with_n_best(model: Direction, alternatives: int, options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options with a beam that is large enough for the alternatives."""
    if not alternatives:
        return {"log_probs": False, **options}
    n_best = alternatives + 1
    return {**options, "n_best": n_best, "beam_size": max(n_best, options.get("beam_size", model.beam_size))}
