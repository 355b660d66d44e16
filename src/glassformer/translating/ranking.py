"""Rank the outputs of a run and the proposals of other models by the scores of all models."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from glassformer.decoding.engine import Engine, Ids, Job, Search
from glassformer.decoding.hypothesis import Hypothesis
from glassformer.translating.reading import Reader, status_of, with_eos
from glassformer.translating.request import Request
from glassformer.translating.rescoring import Candidates, Proposal, Rescoring
from glassformer.translating.writing import on_one_line

__all__ = ["Ranking"]


@dataclass(frozen=True, slots=True)
class Ranking:
    """An engine and the models that rank its outputs."""

    engine: Engine
    reader: Reader
    rescoring: Rescoring

    def decode(self, jobs: Mapping[Job, Sequence[int]], asked: Request) -> Iterator[list[Hypothesis]]:
        """Start decoding; return an iterator over the candidates of each job, ranked by all models.

        If no candidate can be scored by all models, the run's own outputs are returned.
        """
        return self._ranked(jobs, self.engine.decode(list(jobs), asked.search.whole_beam()), asked)

    def _ranked(
        self, jobs: Mapping[Job, Sequence[int]], found: Iterable[list[Hypothesis]], asked: Request
    ) -> Iterator[list[Hypothesis]]:
        texts, own = [asked.texts[places[0]] for places in jobs.values()], list(found)
        scored = self._scored(texts, list(jobs), own, asked.search)
        for candidates, several in zip(scored, own, strict=True):
            yield candidates.ranked(self.rescoring.weights) or several

    def candidates(self, asked: Request) -> list[Candidates]:
        """Return the scored candidates of each text of a tokenized request; none for an untranslatable text."""
        jobs = [self.reader.job(one, (), asked.search) for one in asked.sources.values()]
        found = list(self.engine.decode(jobs, asked.search.whole_beam()))
        scored = self._scored([asked.texts[place] for place in asked.sources], jobs, found, asked.search)
        there = dict(zip(asked.sources, scored, strict=True))
        return [there.get(place) or Candidates.none() for place in range(len(asked.texts))]

    def _scored(
        self, texts: Sequence[str], jobs: Sequence[Job], found: Sequence[Sequence[Hypothesis]], search: Search
    ) -> list[Candidates]:
        """Return the scored candidates of each job: the run's outputs, then the proposals of the other models."""
        proposed = self.rescoring.proposed(texts, search.beam_size)
        written = self._written({text for several in proposed for text in several})
        own = iter(self._decoded(found))
        proposals = []
        for job, several, more in zip(jobs, found, proposed, strict=True):
            known: dict[str, Ids] = {}
            for one in several:  # different tokens may spell the same text; keep the best output for each text
                known.setdefault(next(own), one.tokens)
            for text in more:
                ids = written.get(text, ())
                if 0 < len(ids) <= job.max_length and ids[: len(job.prefix)] == job.prefix:
                    known.setdefault(text, ids)
            proposals.append([Proposal(text, ids) for text, ids in known.items() if status_of(text) == "ok"])
        eos_id = self.reader.bundle.model_config.eos_id

        def score(items: Sequence[tuple[int, Ids]]) -> list[Hypothesis]:
            log_probs = self.engine.score([(jobs[place].sources, ids) for place, ids in items])
            pairs = zip(items, log_probs, strict=True)
            return [Hypothesis.ending_with(eos_id, ids, each, search.settings) for (_, ids), each in pairs]

        return self.rescoring.candidates(texts, proposals, score)

    def _decoded(self, found: Sequence[Sequence[Hypothesis]]) -> list[str]:
        """Return the text of each hypothesis of each job."""
        tokenizer = self.reader.bundle.target_tokenizer
        return list(map(on_one_line, tokenizer.decode_all([one.tokens for several in found for one in several])))

    def _written(self, texts: Collection[str]) -> Mapping[str, Ids]:
        """Return the ids, including `<eos>`, of those texts that the run's vocabulary can spell."""
        tokenizer, each = self.reader.bundle.target_tokenizer, sorted(texts)
        encoded = with_eos(tokenizer, each)
        pairs = zip(each, encoded, tokenizer.decode_all(encoded), strict=True)
        return {text: ids for text, ids, decoded in pairs if decoded == text and tokenizer.unk_id not in ids}
