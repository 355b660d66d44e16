"""Copy texts in which the model has nothing to translate: texts without a letter, and texts that it cannot read."""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

from glassformer.text.edits import Replacement, edited
from glassformer.text.glossary import Term
from glassformer.text.links import Link, Span, overlapping, word_spans
from glassformer.text.placing import copied
from glassformer.text.spans import protected_spans
from glassformer.text.splitting import has_letter
from glassformer.text.terms import Terms, without_spans
from glassformer.text.tokenizer import Tokenizer
from glassformer.text.vocabulary import EOS_ID, SPECIALS
from glassformer.translating.reading import status_of
from glassformer.translating.request import Request
from glassformer.translating.translation import Translation
from glassformer.translating.writing import on_one_line

__all__ = ["CopiedText", "copy_of", "letterless", "links_of_words", "unread_texts"]

MOST_UNKNOWN = 0.8
"""Share of unknown tokens from which a text is not translated."""


@dataclass(frozen=True, slots=True)
class CopiedText:
    """A text that is copied, with the first forms of its glossary terms."""

    needs_links: ClassVar[bool] = False
    parts: ClassVar[tuple[str, ...]] = ()

    text: str
    terms: Sequence[Term] = ()
    is_unread: bool = False
    """Whether the text is copied because the model would read most of its tokens as `<unk>`."""

    def restored(self, _: Sequence[Translation], asked: Request) -> Translation:
        """Return the copy."""
        text, links = copied(on_one_line(self.text), self.terms)
        one = copy_of(text, links_of_words(self.text, text, links) if asked.links else ())
        return replace(one, status="suspicious", reasons=("unknown",), kept="") if self.is_unread else one


def letterless(text: str, asked: Request) -> CopiedText | None:
    """Return a text that has no letter outside its protected spans, to be copied; None for other texts.

    A plural or selection is not copied, because it contains texts to translate.
    """
    if not asked.terms.protect or (has_letter(text) and _has_words(text, asked.terms.patterns)):
        return None
    return CopiedText(text, asked.terms.of(text)) if status_of(text) == "ok" else None


def _has_words(text: str, patterns: Sequence[str]) -> bool:
    """Return whether a text has letters outside its protected spans, or has a plural or selection."""
    is_message = (one.kind == "message" for one in protected_spans(text, patterns))
    return has_letter(without_spans(text, patterns)) or any(is_message)


def unread_texts(asked: Request, tokenizer: Tokenizer) -> dict[int, CopiedText]:
    """Return the texts of a tokenized request of which the model would read most tokens as `<unk>`, by their indices.

    Protected spans do not count, nor do emoji. Texts whose outputs must begin with a prefix are left out.
    """
    found = dict[int, CopiedText]()
    for place, (ids, *_) in asked.sources.items() if asked.terms.protect else ():
        if not asked.prefixes[place] and _is_unread(ids[:-1], tokenizer):
            text = asked.texts[place]
            if _is_unread(tokenizer.encode(_to_read(text, asked.terms)), tokenizer):
                found[place] = CopiedText(text, asked.terms.of(text), is_unread=True)
    return found


def _to_read(text: str, terms: Terms) -> str:
    """Return a text without its protected spans, and without emoji and other signs that the vocabulary lacks."""
    rest = without_spans(text, terms.patterns)
    lacking = terms.signs.lacking(rest) if terms.signs else []
    return edited(rest, (Replacement(*span, "") for span in lacking if not has_letter(rest[slice(*span)])))


def _is_unread(ids: Sequence[int], tokenizer: Tokenizer) -> bool:
    return bool(ids) and ids.count(tokenizer.unk_id) >= MOST_UNKNOWN * len(ids)


def copy_of(text: str, links: Iterable[Link] = ()) -> Translation:
    """Return a translation that was not computed by a model, and so has no log probability."""
    tokens = (*text.split(), SPECIALS[EOS_ID])
    return Translation(text=text, tokens=tokens, links=tuple(links), log_prob=math.nan, score=math.nan, kept="placed")


def links_of_words(source: str, target: str, aligned: Sequence[Link]) -> Iterator[Link]:
    """Yield a link from each target word in an aligned part to the first word in the aligned part of the source."""
    words, others, found = word_spans(source), word_spans(target), dict[Span, Span]()
    for link in aligned:
        for one in overlapping(words, link.source)[:1]:
            for word in overlapping(others, link.target):
                found.setdefault(word, one)
    return (Link(found[word], word) for word in others if word in found)
