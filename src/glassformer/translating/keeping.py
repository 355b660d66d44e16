"""Bring the protected spans and the glossary terms of texts into their translations."""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from glassformer.decoding.engine import Job
from glassformer.text.glossary import Term
from glassformer.text.links import Link, overlap, word_spans
from glassformer.text.placing import placed_spans, replaced_terms, stripped
from glassformer.text.terms import Terms, TextPiece, as_fragment, missing_terms, pieces_around, spellings_of
from glassformer.text.tokenizer import Tokenizer
from glassformer.text.vocabulary import EOS_ID, PLACEHOLDERS, SPECIALS
from glassformer.translating.request import Request, Translate
from glassformer.translating.translation import Kept, Status, Translation

__all__ = ["TermKeeper"]

MOST_HYPOTHESES = 500
"""Maximum number of hypotheses of a sentence in a search for terms, of which each token needs a beam of its own."""

_Found = Iterator[tuple[int, Translation]]


@dataclass(frozen=True, slots=True)
class TermKeeper:
    """The ways to bring terms into the translations of a request."""

    request: Request
    terms: Mapping[int, Sequence[Term]]
    """The terms of each text that has some, by the index of the text."""
    jobs: Mapping[int, Job]
    """The job of each of these texts."""
    tokenizer: Tokenizer
    """The target tokenizer."""
    translate: Translate
    search: Callable[[Mapping[Job, Sequence[int]]], Mapping[int, Translation]] | None
    """Returns the translations of jobs with phrases, by the indices of their texts; None if no search can do this."""

    def kept(self, found: Iterable[Translation]) -> Iterator[Translation]:
        """Yield the translations, with the terms of their texts in them.

        A search for outputs with spans or untranslated terms often goes astray after them, because the model has never
        seen their tokens there; so they are placed in the translation of the rest, if possible.
        """
        results, terms = dict(enumerate(found)), self.terms
        lacking = {place: some for place in terms if (some := self._lacking(place, results[place]))}
        for place in terms:
            results[place] = _kept(results[place], terms[place], "lost" if place in lacking else "output")
        odd = {place for place, some in lacking.items() if any(term.kind != "translated" for term in some)}
        known = {place for place in odd if self.request.masked[place].terms}  # their tokens are easy to search for
        ways = (
            (self._searched, known),
            (self._placed, odd),
            (self._searched, lacking.keys() - known),
            (self._placed, lacking),
            (self._cut, lacking),
        )
        for way, places in ways:
            still = {place: lacking[place] for place in lacking if place in places and results[place].kept == "lost"}
            for place, one in way(still) if still else ():
                if not missing_terms(terms[place], one.text):
                    results[place] = _kept(one if self.request.links else _without_links(one), terms[place], one.kept)
        yield from results.values()

    def _lacking(self, place: int, one: Translation) -> list[Term]:
        """Return the terms that an output lacks, or contains too often; all, if it has a placeholder of no span."""
        invented = self.request.masked[place].invents(one.tokens)
        return list(self.terms[place]) if invented else missing_terms(self.terms[place], one.text)

    def _searched(self, lacking: Mapping[int, Sequence[Term]]) -> _Found:
        """Yield the index and the translation of each text whose terms a search can write."""
        if self.search is None:
            return
        jobs: dict[Job, list[int]] = {}
        placeholders = [((self.tokenizer.encode(token)[-1],),) for token in PLACEHOLDERS]
        for place in lacking:
            known = dict(zip(self.request.masked[place].terms, placeholders, strict=False))
            phrases = tuple(known.get(term) or spellings_of(term, self.tokenizer) for term in self.terms[place])
            size = self.request.search.beam_size * (1 + sum(max(map(len, each), default=0) for each in phrases))
            if all(phrases) and size <= MOST_HYPOTHESES:
                jobs.setdefault(self.jobs[place]._replace(phrases=phrases), []).append(place)
        for place, one in self.search(jobs).items():
            ended = one.status == "ok" or self.jobs[place].prefix  # an output that does not end went astray
            if ended and not self.request.masked[place].invents(one.tokens):
                yield place, replace(one, kept="search")

    def _placed(self, lacking: Mapping[int, Sequence[Term]]) -> _Found:
        """Yield the index of each text, and its translation with its terms at the aligned places.

        Spans are taken out of a text before it is translated; terms of a glossary replace their translations.
        """
        texts, wanted = self.request.texts, self.request.terms
        free = {place: some for place, some in lacking.items() if not self.jobs[place].prefix}
        spans = {
            place: stripped(texts[place], [term for term in some if term.kind == "span"])
            for place, some in free.items()
        }
        whole = [place for place, one in spans.items() if not one.gaps]
        spans = {place: one for place, one in spans.items() if one.gaps and wanted.leave_words(one.text)}
        found = self._linked_outputs({place: [one.text] for place, one in spans.items()}, wanted)
        for (place, without), one in zip(spans.items(), found, strict=True):
            made = [placed_spans(without, output.text, output.links) for output in (one, *one.alternatives)]
            yield place, _arranged(texts[place], one, made)
        found = self._linked_outputs({place: [texts[place]] for place in whole}, Terms(protect=False))
        for place, one in zip(whole, found, strict=True):
            each = [replaced_terms(output.text, output.links, free[place]) for output in (one, *one.alternatives)]
            if each[0]:
                yield place, _arranged(texts[place], one, each)

    def _cut(self, lacking: Mapping[int, Sequence[Term]]) -> _Found:
        """Yield the index of each text, and its translation, which is that of its pieces between all of its terms."""
        texts = self.request.texts
        cuts = {
            place: pieces_around(texts[place], self.terms[place]) for place in lacking if not self.jobs[place].prefix
        }
        sides = {place: [one.text for one in pieces if one.is_translated] for place, pieces in cuts.items()}
        found = self._linked_outputs(sides, self.request.terms)
        for place, pieces in cuts.items():
            yield place, _joined(texts[place], pieces, found)

    def _linked_outputs(self, texts: Mapping[int, Sequence[str]], terms: Terms) -> Iterator[Translation]:
        """Yield the translations, with links, of the texts that take the place of some of those that were asked."""
        every = [text for several in texts.values() for text in several]
        seeds = [self.request.seeds[place] for place, several in texts.items() for _ in several]
        if every:
            asked = self.request.within()._replace(texts=every, prefixes=[""] * len(every), seeds=seeds)
            yield from self.translate(asked._replace(terms=terms, links=True))


def _joined(source: str, pieces: Iterable[TextPiece], sides: Iterator[Translation]) -> Translation:
    """Return the translation that consists of the pieces of a source, with the translations of those that have one."""
    text, tokens, aligned = "", list[str](), list[Link]()
    status: Status = "ok"
    for piece in pieces:
        begin = len(text)
        if piece.is_translated:
            one = next(sides)
            text += as_fragment(piece.text, one.text)
            tokens += one.tokens[:-1]
            status = one.status if one.status == "max_length" else status
            aligned += [link.moved(piece.begin, begin) for link in one.links]
        else:
            text += piece.text
            tokens += piece.text.split()
            aligned.append(Link((piece.begin, piece.end), (begin, len(text))))
    links, tokens = tuple(_links_of_words(source, text, aligned)), [*tokens, SPECIALS[EOS_ID]]
    how: dict[str, Any] = {"log_prob": math.nan, "score": math.nan, "status": status, "kept": "cut"}
    return Translation(text=text, tokens=tuple(tokens), links=links, **how)


def _arranged(source: str, output: Translation, made: Sequence[tuple[str, list[Link]] | None]) -> Translation:
    """Return the translation that an output and its alternatives became when terms were placed in them."""
    first, *others = [
        replace(one, text=each[0], links=tuple(_links_of_words(source, *each)), alternatives=(), kept="placed")
        for one, each in zip((output, *output.alternatives), made, strict=True)
        if each
    ]
    return replace(first, alternatives=tuple(others))


def _kept(one: Translation, terms: Sequence[Term], kept: Kept) -> Translation:
    """Return a translation that says how it got its terms, without the alternatives that lack one of them."""
    others = (replace(other, kept=kept) for other in one.alternatives if not missing_terms(terms, other.text))
    return replace(one, kept=kept, alternatives=tuple(others))


def _without_links(one: Translation) -> Translation:
    return replace(one, links=(), alternatives=tuple(map(_without_links, one.alternatives)))


def _links_of_words(source: str, target: str, aligned: Sequence[Link]) -> Iterator[Link]:
    """Yield a link for each word of the target in an aligned part, to the first word of the part of the source."""
    words = word_spans(source)
    for word in word_spans(target):
        parts = (link.source for link in aligned if overlap(link.target, word))
        found = next((one for part in parts for one in words if overlap(one, part)), None)
        if found:
            yield Link(found, word)
