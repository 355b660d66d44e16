"""A text of a client: its sentences, the translation of each, and the answer.

A model translates single sentences. Lines stay lines, and blank lines and the white space around a sentence stay as
they are. So does a sentence without any letter or digit, such as one of emoji.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from glassformer.serving.models import Direction
from glassformer.serving.readers import Readers
from glassformer.serving.reading import SHORT_TEXT, read_sentences
from glassformer.serving.refusals import RequestError
from glassformer.text.edits import exchanged
from glassformer.text.links import Span
from glassformer.translating.translation import Translation

__all__ = ["Passage", "check_unicode", "translate_passages"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Passage:
    """The translation of a text."""

    text: str
    alternatives: tuple[str, ...]
    """Other translations, best first: each differs from `text` and from the others."""
    parts: tuple[Translation, ...]
    """The translations of the sentences that the model has translated, in order."""
    sources: tuple[Span, ...]
    """Where each of these sentences is in the client's text."""
    targets: tuple[Span, ...]
    """Where the translation of each is in `text`."""


async def translate_passages(
    readers: Readers,
    model: Direction,
    texts: Sequence[str],
    *,
    alternatives: int = 0,
    split: bool = True,
    **options: Any,
) -> list[Passage]:
    """Return the translation of each text; `options` are arguments of `Translator.translate`.

    With `split`, lines are split into sentences; else each line is one sentence.

    Raises:
        RequestError: a text or a sentence cannot be translated, or the service is busy.
    """
    for number, text in enumerate(texts, start=1):
        check_unicode(f"text {number}", text)
    asked = texts, model.source if split else None, model.process.room
    is_short = sum(map(len, texts)) <= SHORT_TEXT
    spans = read_sentences(*asked) if is_short else await readers.ask(read_sentences, *asked)
    if spans is None:
        raise model.process.full()
    passages = [_Sentences(*one) for one in zip(texts, spans, strict=True)]
    wanted = [sentence for one in passages for sentence in one.wanted]
    found = await model.process.translate(wanted, _with_n_best(model, alternatives, options)) if wanted else []
    _check(wanted, found)
    rest = iter(found)
    return [one.passage([next(rest) for _ in one.wanted], alternatives) for one in passages]


def check_unicode(name: str, text: str) -> None:
    """Check that a text holds no half of a surrogate pair, as JSON's escapes can write it.

    Raises:
        RequestError: it does.
    """
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise RequestError(400, f"{name} is not valid Unicode: it holds half a surrogate pair") from error


class _Sentences:
    """A text and its sentences, to be translated."""

    def __init__(self, text: str, spans: Sequence[Span]) -> None:
        self.text, self.spans = text, spans
        self.wanted = [text[begin:end] for begin, end in spans]

    def passage(self, found: Sequence[Translation], alternatives: int) -> Passage:
        text, targets = exchanged(self.text, self.spans, [one.text for one in found])
        ranked = ([_ranked(one, rank) for one in found] for rank in range(1, alternatives + 1))
        others = dict.fromkeys(exchanged(self.text, self.spans, one)[0] for one in ranked)
        return Passage(
            text=text,
            alternatives=tuple(other for other in others if other.strip() and other != text),
            parts=tuple(found),
            sources=tuple(self.spans),
            targets=tuple(targets),
        )


def _ranked(translation: Translation, rank: int) -> str:
    """Return the text of an alternative, or the best text if there are not so many."""
    others = translation.alternatives
    return others[rank - 1].text if rank <= len(others) else translation.text


def _with_n_best(model: Direction, alternatives: int, options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options with a beam that has room for the alternatives."""
    if not alternatives:
        return {"log_probs": False, **options}
    n_best = alternatives + 1
    return {**options, "n_best": n_best, "beam_size": max(n_best, options.get("beam_size", model.beam_size))}


def _check(wanted: Sequence[str], found: Sequence[Translation]) -> None:
    for number, (sentence, one) in enumerate(zip(wanted, found, strict=True), start=1):
        if one.status == "too_long":
            size = len(sentence)
            raise RequestError(400, f"sentence {number} is too long for the model ({size} characters): make it shorter")
