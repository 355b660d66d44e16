"""Translate the texts inside plurals and selections of ICU messages, each by itself; the rest of a message is kept."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from glassformer.text.edits import Replacement, edited, moved
from glassformer.text.links import Link, Span, overlapping
from glassformer.text.messages import as_message, as_text, branches, messages
from glassformer.translating.request import Request, Translate
from glassformer.translating.translation import TRANSLATED, Translation

__all__ = ["InsideMessages", "messages_of"]


@dataclass(frozen=True, slots=True)
class InsideMessages:
    """The layer that translates the texts inside plurals and selections ("messages")."""

    messages: Mapping[int, Sequence[str]]
    """The messages in each text with messages, by the index of the text."""
    translate: Translate
    """Translates with all layers."""

    def __call__(self, asked: Request, below: Translate) -> Iterator[Translation]:
        """Start translating; return an iterator over translations in which the texts inside messages are translated."""
        found = below(asked)
        spans = {one: branches(one) for several in self.messages.values() for one in several}
        texts = [as_text(message[begin:end].strip()) for message, some in spans.items() for begin, end in some]
        inner = asked._replace(
            texts=texts,
            prefixes=[""] * len(texts),
            seeds=range(len(texts)),
            search=replace(asked.search, n_best=1),
            links=False,
            rewritten=0,
        )
        return self._filled(found, spans, self.translate(inner) if texts else iter(()))

    def _filled(
        self, found: Iterable[Translation], spans: Mapping[str, Sequence[Span]], inner: Iterator[Translation]
    ) -> Iterator[Translation]:
        """Yield the translations, with the texts inside their messages replaced by the translations in `inner`."""
        outer = list(found)
        filled = {
            message: edited(message, [_inside(message, span, next(inner)) for span in some])
            for message, some in spans.items()
        }
        for place, one in enumerate(outer):
            yield _with_messages(one, {message: filled[message] for message in self.messages.get(place, ())})


def messages_of(asked: Request) -> dict[int, list[str]]:
    """Return the messages in each translatable text of a tokenized request, by the index of the text."""
    if not (asked.messages and asked.terms.protect):
        return {}
    return {place: some for place in asked.sources if (some := messages(asked.texts[place]))}


def _inside(message: str, span: Span, one: Translation) -> Replacement:
    """Return the edit that replaces a text inside a message by its translation, but not the white space around it."""
    text = message[slice(*span)]
    source = text.strip()
    is_translated = one.text and one.status in TRANSLATED
    return Replacement(*span, text.replace(source, as_message(one.text, source)) if is_translated else text)


def _with_messages(one: Translation, filled: Mapping[str, str]) -> Translation:
    edits = list[Replacement]()
    for message, text in filled.items():
        begin = one.text.find(message)
        while begin >= 0:
            edits.append(Replacement(begin, begin + len(message), text))
            begin = one.text.find(message, begin + len(message))
    spans = sorted(edit[:2] for edit in edits)
    links = [link for link in one.links if not overlapping(spans, link.target)]
    return replace(
        one,
        text=edited(one.text, edits),
        links=tuple(map(Link, (link.source for link in links), moved((link.target for link in links), edits))),
        alternatives=tuple(_with_messages(other, filled) for other in one.alternatives),
    )
