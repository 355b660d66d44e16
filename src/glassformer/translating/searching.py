"""Translate by one search with the models, below all layers."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from glassformer.decoding.engine import Engine, Job, check_n_best
from glassformer.decoding.hypothesis import Hypothesis
from glassformer.translating.ranking import Ranking
from glassformer.translating.reading import Reader
from glassformer.translating.request import Request
from glassformer.translating.translation import Translation
from glassformer.translating.writing import Writer

__all__ = ["Searching"]


@dataclass(frozen=True, slots=True)
class Searching:
    """A search with an engine, whose outputs may be ranked by other models."""

    engine: Engine
    reader: Reader
    writer: Writer
    ranking: Ranking | None = None

    def __call__(self, asked: Request) -> Iterator[Translation]:
        """Start decoding a tokenized request; return an iterator that waits for the translations."""
        jobs, search = self.reader.jobs(asked), asked.search
        check_n_best(search.n_best, search.beam_size)
        if self.ranking and not search.sample:
            found = self.ranking.decode(jobs, asked)
        else:
            found = self.engine.decode(list(jobs), search.whole_beam() if search.n_best > 1 else search)
        return self._finish(asked, jobs, self.writer.distinct(found, search.n_best))

    def _finish(
        self, asked: Request, jobs: Mapping[Job, Sequence[int]], found: Iterable[list[Hypothesis]]
    ) -> Iterator[Translation]:
        """Wait for the hypotheses of all jobs; yield one translation per text."""
        outputs = list(found)
        translations = self.writer.translations(outputs, list(jobs))
        results = {place: one for one, places in zip(translations, jobs.values(), strict=True) for place in places}
        if asked.links:
            results = dict(self._linked(asked, jobs, outputs, results))
        for place, status in enumerate(asked.statuses):
            yield results[place] if place in results else Translation(text="", status=status)

    def _linked(
        self,
        asked: Request,
        jobs: Mapping[Job, Sequence[int]],
        found: Sequence[Sequence[Hypothesis]],
        results: Mapping[int, Translation],
    ) -> Iterator[tuple[int, Translation]]:
        """Yield the index and the translation, with links, of each translated text."""
        each = zip(jobs, found, strict=True)
        rows = iter(self.engine.attention([(job.sources, one.tokens) for job, several in each for one in several]))
        for places, several in zip(jobs.values(), found, strict=True):
            attention = [next(rows) for _ in several]
            for place in places:
                yield place, self.writer.linked(results[place], asked.texts[place], several, attention)
