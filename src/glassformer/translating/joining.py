"""Translate the sentences of a line one by one, and join their translations."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

from glassformer.decoding.hypothesis import penalty_of, score_of
from glassformer.evaluation.guards import Confidence
from glassformer.text.edits import exchanged
from glassformer.text.links import Span
from glassformer.text.splitting import inner_sentences
from glassformer.translating.reading import status_of
from glassformer.translating.request import Request
from glassformer.translating.rewriting import Rewrite
from glassformer.translating.translation import TRANSLATED, Kept, Status, Translation
from glassformer.translating.writing import on_one_line

__all__ = ["JoinedSentences", "joining"]

_WORST: tuple[Status, ...] = ("max_length", "suspicious", "ok")
_MOST_CHANGED: tuple[Kept, ...] = ("lost", "placed", "output", "")


@dataclass(frozen=True, slots=True)
class JoinedSentences:
    """A line with several sentences."""

    needs_links: ClassVar[bool] = False

    text: str
    spans: Sequence[Span]
    """The span of each sentence in the line."""

    @property
    def parts(self) -> list[str]:
        """The sentences."""
        return [self.text[begin:end] for begin, end in self.spans]

    def restored(self, found: Sequence[Translation], asked: Request) -> Translation:
        """Return the joined translation, with the white space of the line between its sentences.

        Its k-th alternative joins the k-th alternatives of the sentences; of a sentence with fewer, the last one. The
        tokens are those of all sentences, each with its `<eos>`. If a sentence is not translated, the line is not.
        """
        for one in found:
            if one.status not in TRANSLATED:
                return Translation(text="", status=one.status)
        count = 1 + max(len(one.alternatives) for one in found)
        rows = [[one, *one.alternatives] for one in found]
        joined = [self._joined([row[min(rank, len(row) - 1)] for row in rows], asked) for rank in range(count)]
        best = _judged(joined[0], found)
        return replace(best, alternatives=tuple(dict.fromkeys(one for one in joined[1:] if one.text != best.text)))

    def _joined(self, found: Sequence[Translation], asked: Request) -> Translation:
        start = self.spans[0][0]
        line = on_one_line(self.text[start:].rstrip())  # the end may be an emoji, behind the last sentence
        spans = [(begin - start, end - start) for begin, end in self.spans]
        text, places = exchanged(line, spans, [one.text for one in found])
        moves = zip(found, self.spans, places, strict=True)
        links = [link.moved(begin, first) for one, (begin, _), (first, _) in moves for link in one.links]
        log_prob, tokens = math.fsum(one.log_prob for one in found), [token for one in found for token in one.tokens]
        each = [one.token_log_probs for one in found]
        return Translation(
            text=text,
            log_prob=log_prob,
            score=score_of(log_prob, penalty_of(len(tokens), asked.search.settings)),
            tokens=tuple(tokens),
            token_log_probs=tuple(value for some in each for value in some) if all(each) else (),
            links=tuple(links),
            read=tuple(id for one in found for id in one.read),
        )


def _judged(one: Translation, found: Sequence[Translation]) -> Translation:
    """Return a joined translation with the judgement of its sentences: the worst status, all reasons, the least
    confidence.
    """
    confidences = [other.confidence for other in found if other.confidence is not None]
    return replace(
        one,
        status=min((other.status for other in found), key=_WORST.index),
        reasons=tuple(dict.fromkeys(reason for other in found for reason in other.reasons)),
        confidence=Confidence(exact=_least(confidences, "exact"), close=_least(confidences, "close"))
        if confidences
        else None,
        retry=next((other.retry for other in found if other.retry), ""),
        kept=min((other.kept for other in found), key=_MOST_CHANGED.index),
    )


def _least(confidences: Sequence[Confidence], name: str) -> float | None:
    values = [value for one in confidences if (value := getattr(one, name)) is not None]
    return min(values, default=None)


def joining(language: str) -> Rewrite:
    """Return the function that divides lines in a language, given as a BCP 47 tag or "", into sentences."""

    def joined(text: str, asked: Request) -> JoinedSentences | None:
        if asked.search.sample or not asked.search.settings.split:
            return None
        spans = inner_sentences(text, language)
        if len(spans) < 2 or status_of(text) != "ok":
            return None
        ends = [end for _, end in spans[:-1]]
        if asked.terms.glossary and any(term.begin < end < term.end for term in asked.terms.of(text) for end in ends):
            return None
        return JoinedSentences(text, spans)

    return joined
