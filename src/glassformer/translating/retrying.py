"""Translate texts with suspicious outputs again by other searches, and keep the least suspicious output."""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from glassformer.decoding.engine import Ids
from glassformer.decoding.hypothesis import penalty_of, score_of
from glassformer.recipes.configuration import DecodingConfig
from glassformer.text.links import Link, Span
from glassformer.text.splitting import clause_spans
from glassformer.translating.judge import Judge, Judging
from glassformer.translating.request import Request, Translate
from glassformer.translating.translation import TRANSLATED, Retry, Translation

__all__ = ["Retrying", "SecondSearches"]

DRAWN_OUTPUTS = 8
"""Number of outputs that are sampled for a text with a suspicious output."""
TEMPERATURES = (0.5, 1.0)
"""Temperatures of sampling, tried one after the other. The first temperature gives probable outputs; the second also
ends the repetitions of a model that has learned little (benchmarks/README.md)."""
WIDE_BEAM = 16
"""Beam size and number of outputs of the search that replaces sampling if the engine cannot sample."""
OTHER_BEAM = DecodingConfig().beam_size
"""Beam size of the second search if the first search was greedy."""

_Outputs = list[Translation | None]


@dataclass(frozen=True, slots=True)
class SecondSearches:
    """The further searches for a request, whose outputs may replace suspicious outputs."""

    request: Request
    judge: Judge
    translate: Translate
    draws: bool
    """Whether the engine can sample."""

    def improved(self, found: Iterable[Translation]) -> Iterator[Translation]:
        """Yield the judged translations; the least suspicious output found replaces each suspicious translation."""
        results = list(found)
        best = {place: replace(one, retry="first") for place, one in enumerate(results) if one.reasons}
        for retry, tried in self._attempts(best):
            for place, one in tried:
                if one is not None and one.text != best[place].text:
                    judged = self.judge.judged(one, *self._read(place))
                    candidates = best[place], replace(judged, retry=retry)
                    best[place] = min(candidates, key=lambda other: self._badness(other, place))
        most = self.request.search.n_best - 1
        for place, first in enumerate(results):
            one = best.get(place, first)
            others = (replace(first, alternatives=()), *first.alternatives)[:most]
            yield one if one.retry in ("", "first") else replace(one, alternatives=others)

    def _read(self, place: int) -> tuple[str, Ids]:
        return self.request.texts[place], self.request.sources[place][0]

    def _badness(self, one: Translation, place: int) -> tuple[int, float]:
        return bool(one.reasons) + (one.kept == "lost"), self.judge.suspicion(one, *self._read(place))

    def _attempts(
        self, best: Mapping[int, Translation]
    ) -> Iterator[tuple[Retry, list[tuple[int, Translation | None]]]]:
        """Yield the name of each search in turn, and its outputs for the texts that still have a suspicious output."""
        ways: list[tuple[Retry, Callable[[Sequence[int]], _Outputs]]] = []
        ways.append(("beam" if self.request.search.beam_size == 1 else "greedy", self._by_other_beam))
        if self.draws:
            ways += [("samples", partial(self._by_samples, temperature)) for temperature in TEMPERATURES]
        else:
            ways.append(("n_best", self._by_wide_beam))
        ways.append(("parts", self._by_parts))
        for retry, way in ways:
            if left := [place for place, one in best.items() if one.reasons]:
                yield retry, list(zip(left, way(left), strict=True))

    def _asked(self, places: Sequence[int], **settings: Any) -> Request:
        """Return a request to translate the texts with these indices again, with other settings."""
        texts, prefixes = ([each[place] for place in places] for each in (self.request.texts, self.request.prefixes))
        again = self.request.within(**settings)._replace(texts=texts, prefixes=prefixes, seeds=range(len(places)))
        return again._replace(search=replace(again.search, n_best=1))

    def _by_other_beam(self, places: Sequence[int]) -> _Outputs:
        """Return the outputs of greedy search, or the outputs of beam search if the first search was greedy."""
        size = OTHER_BEAM if self.request.search.beam_size == 1 else 1
        return [*self.translate(self._asked(places, beam_size=size))]

    def _by_samples(self, temperature: float, places: Sequence[int]) -> _Outputs:
        """Return, for each text, the sample that is most like the other samples, preferably an unsuspicious one."""
        once = self._asked(places, temperature=temperature)
        drawn = once._replace(
            texts=[*once.texts] * DRAWN_OUTPUTS,
            prefixes=[*once.prefixes] * DRAWN_OUTPUTS,
            # Each text gets the same seeds, wherever it is in the list.
            seeds=[number for number in range(DRAWN_OUTPUTS) for _ in places],
            search=replace(once.search, sample=True),
        )
        found = list(self.translate(drawn))
        return [self._most_like_others(found[number :: len(places)], place) for number, place in enumerate(places)]

    def _by_wide_beam(self, places: Sequence[int]) -> _Outputs:
        """Return, for each text, the output that is most like the others in a wide beam, preferably unsuspicious."""
        once = self._asked(places, beam_size=WIDE_BEAM)
        found = self.translate(once._replace(search=replace(once.search, n_best=WIDE_BEAM)))
        return [
            self._most_like_others([replace(one, alternatives=()), *one.alternatives], place)
            for one, place in zip(found, places, strict=True)
        ]

    def _most_like_others(self, several: Sequence[Translation], place: int) -> Translation:
        """Return the output with the least risk, preferably among outputs that set off no guard."""
        from glassformer.evaluation.minimum_risk import least_risk

        best = [one for one in several if not self.judge.reasons(one, *self._read(place))] or several
        return best[least_risk([one.text for one in best])]

    def _by_parts(self, places: Sequence[int]) -> _Outputs:
        """Return the joined outputs of each text's clauses; None for a text with only one clause or with a prefix."""
        once = self._asked(places)
        spans = [
            several if len(several := clause_spans(text)) > 1 and not prefix else []
            for text, prefix in zip(once.texts, once.prefixes, strict=True)
        ]
        parts = [text[begin:end] for text, several in zip(once.texts, spans, strict=True) for begin, end in several]
        asked = once._replace(texts=parts, prefixes=[""] * len(parts), seeds=range(len(parts)))
        found = self.translate(asked)
        return [
            _as_one(text, several, [next(found) for _ in several], once.search.settings)
            for text, several in zip(once.texts, spans, strict=True)
        ]


@dataclass(frozen=True, slots=True)
class Retrying:
    """The layer that translates texts with suspicious outputs again."""

    judging: Judging
    translate: Translate
    """Translates by all layers."""
    draws: bool
    """Whether the engine can draw samples."""

    def __call__(self, asked: Request, below: Translate) -> Iterator[Translation]:
        """Start translating; return an iterator over the least suspicious translation of each text."""
        found = below(asked)
        return SecondSearches(asked, self.judging.judge(asked.search), self.translate, self.draws).improved(found)


def _as_one(
    text: str, spans: Sequence[Span], parts: Sequence[Translation], settings: DecodingConfig
) -> Translation | None:
    """Return the translations of a text's clauses as one; None without clauses, or if a clause was not translated."""
    if not parts or any(one.status not in TRANSLATED for one in parts):
        return None
    joined, links = "", list[Link]()
    for one, (begin, _) in zip(parts, spans, strict=True):
        joined += " " if joined and text[begin - 1].isspace() else ""
        links += [one_link.moved(begin, len(joined)) for one_link in one.links]
        joined += one.text
    *ended, last = parts
    tokens = [*(token for one in ended for token in one.tokens[:-1]), *last.tokens]
    log_probs = [*(value for one in ended for value in one.token_log_probs[:-1]), *last.token_log_probs]
    log_prob = math.fsum(log_probs)
    return Translation(
        text=joined,
        log_prob=log_prob,
        score=score_of(log_prob, penalty_of(len(tokens), settings)),
        tokens=tuple(tokens),
        token_log_probs=tuple(log_probs),
        links=tuple(links),
        read=(*(id for one in ended for id in one.read[:-1]), *last.read),
        status="max_length" if any(one.status == "max_length" for one in parts) else "ok",
    )
