"""Answer requests: a search, and around it the layers that each request needs."""

from collections.abc import Iterator, Sequence
from functools import partial

from glassformer.bundle import Bundle
from glassformer.decoding.engine import Engine
from glassformer.text.signs import Signs
from glassformer.translating.copying import unread_texts
from glassformer.translating.inside_messages import InsideMessages, messages_of
from glassformer.translating.judge import Judging
from glassformer.translating.keeping import KeepingTerms
from glassformer.translating.plain import plain_rewrites, reads_sentences
from glassformer.translating.ranking import Ranking
from glassformer.translating.reading import Reader
from glassformer.translating.request import Layer, Request, Translate
from glassformer.translating.rescoring import Rescoring
from glassformer.translating.retrying import Retrying
from glassformer.translating.rewriting import Rewrite, rewriting, rewritten_texts
from glassformer.translating.searching import Searching
from glassformer.translating.tagging import tagged
from glassformer.translating.translation import Translation, or_empty
from glassformer.translating.writing import Writer

__all__ = ["Layers"]


class Layers:
    """Translates requests with an engine, whose outputs may be ranked by other models."""

    def __init__(self, bundles: Sequence[Bundle], engine: Engine, rescoring: Rescoring | None) -> None:
        self.reader = Reader(bundles, engine.longest)
        self.writer = Writer(bundles[0])
        self.ranking = Ranking(engine, self.reader, rescoring) if rescoring else None
        self.judging = Judging(bundles[0], is_alone=len(bundles) == 1 and not rescoring)
        self.search: Translate = Searching(engine, self.reader, self.writer, self.ranking)
        self.rewrites: tuple[Rewrite, ...] = (tagged, *plain_rewrites(bundles[0], whole=bool(rescoring)))
        """How texts are rewritten before they are translated, in this order; each way is tried on the parts of the ways
        before it."""
        self.signs = Signs(bundles[0].source_tokenizer) if reads_sentences(bundles[0]) else None
        """What the source vocabulary has signs for, if the run reads sentences."""
        self._draws = "sampling" not in engine.cannot

    def __call__(self, asked: Request) -> Iterator[Translation]:
        """Start translating the texts of a request; return an iterator that waits for the translations."""
        for number, way in enumerate(self.rewrites[asked.rewritten :], start=asked.rewritten + 1):
            if found := rewritten_texts(way, asked):
                return rewriting(found, asked._replace(rewritten=number), self)
        read, answer = self.reader.read(asked), self.search
        if not self.ranking and (copies := unread_texts(read, self.reader.bundle.source_tokenizer)):
            return rewriting(copies, asked._replace(rewritten=len(self.rewrites)), self)
        for layer in reversed([*self.needed(read)]):
            answer = partial(layer, below=answer)
        return map(or_empty, answer(read))

    def rewritten(self, asked: Request) -> list[str]:
        """Return the texts that the model reads for the texts of a request; for a copied text, there is none."""
        for way in self.rewrites:
            found = rewritten_texts(way, asked)
            texts = [
                part
                for place, text in enumerate(asked.texts)
                for part in (found[place].parts if place in found else (text,))
            ]
            asked = asked._replace(texts=texts, prefixes=[""] * len(texts), seeds=range(len(texts)))
        return [*asked.texts]

    def needed(self, asked: Request) -> Iterator[Layer]:
        """Yield the layers that a request needs, from the outermost to the innermost; the request is tokenized."""
        # Some layers, and `rewriting`, translate further texts with `self`, that is by all layers. This ends, because a
        # further text is shorter (the text without lost spans, or the inside of a message), or is
        # translated without terms, without second searches (`Request.within`) or without more rewriting.
        retries = asked.search.settings.retry and not asked.search.sample
        if inside := messages_of(asked):
            yield InsideMessages(inside, self)
        if retries:
            yield Retrying(self.judging, self, self._draws)
        if retries or asked.guards:
            yield self.judging
        if terms := {place: some for place in asked.sources if (some := asked.terms.of(asked.texts[place]))}:
            yield KeepingTerms(terms, self.reader.bundle.target_tokenizer, self)
