"""Turn the hypotheses of a search into translations."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from glassformer.bundle import Bundle
from glassformer.decoding.engine import AttentionRows, Ids, Job
from glassformer.decoding.hypothesis import Hypothesis
from glassformer.recipes.configuration import DecodingConfig
from glassformer.text.links import link_words, source_words, target_words
from glassformer.translating.translation import Translation

__all__ = ["Writer", "on_one_line"]


class Writer:
    """Turns hypotheses into translations, with the target tokenizer of a run."""

    def __init__(self, bundle: Bundle) -> None:
        self.bundle = bundle
        self.tokens = bundle.target_tokenizer.tokens(range(len(bundle.target_tokenizer)))
        """The tokens of the target vocabulary, by id."""

    def distinct(self, found: Iterable[Sequence[Hypothesis]], count: int) -> Iterator[list[Hypothesis]]:
        """Yield, for each job, up to `count` best hypotheses with different texts.

        Different tokens may spell the same text; only the best of such hypotheses is kept.
        """
        for several in found:
            if count == 1:
                yield [several[0]]
                continue
            best: dict[str, Hypothesis] = {}
            for text, one in zip(self._texts([several]), several, strict=True):
                best.setdefault(text, one)
            yield list(best.values())[:count]

    def translations(self, found: Sequence[Sequence[Hypothesis]], jobs: Sequence[Job]) -> list[Translation]:
        """Return the best translation of each job, with the next best outputs as its alternatives."""
        texts = iter(self._texts(found))
        results = []
        for several, job in zip(found, jobs, strict=True):
            best, *others = [self._one(next(texts), one, job.max_length, job.sources[0]) for one in several]
            results.append(replace(best, alternatives=tuple(others)) if others else best)
        return results

    def scored(self, text: str, target: Ids, log_probs: Sequence[float], decoding: DecodingConfig) -> Translation:
        """Return a given target text as a translation, with the log probability of each of its tokens."""
        hypothesis = Hypothesis.ending_with(self.bundle.model_config.eos_id, target, log_probs, decoding)
        return replace(self._one(text, hypothesis, longest=0), text=text)

    def linked(
        self, one: Translation, text: str, several: Sequence[Hypothesis], attention: Sequence[AttentionRows]
    ) -> Translation:
        """Return a translation with links from its words, and from its alternatives' words, to the words of the text.

        Args:
            one: the translation.
            text: the text that was translated.
            several: the hypotheses of the translation and its alternatives.
            attention: the cross-attention of each hypothesis.
        """
        words = source_words(self.bundle.source_tokenizer, text)
        outputs = zip((one, *one.alternatives), several, attention, strict=True)
        first, *others = [
            replace(output, links=link_words(text, output.text, words, self._words(hypothesis), rows))
            for output, hypothesis, rows in outputs
        ]
        return replace(first, alternatives=tuple(others))

    def _texts(self, found: Sequence[Sequence[Hypothesis]]) -> list[str]:
        tokens = [one.tokens for several in found for one in several]
        return list(map(on_one_line, self.bundle.target_tokenizer.decode_all(tokens)))

    def _words(self, hypothesis: Hypothesis) -> list[range]:
        return target_words(self.bundle.target_tokenizer, hypothesis.tokens)

    def _one(self, text: str, hypothesis: Hypothesis, longest: int, read: Ids = ()) -> Translation:
        return Translation(
            text=text,
            log_prob=hypothesis.log_prob,
            score=hypothesis.score,
            tokens=tuple(map(self.tokens.__getitem__, hypothesis.tokens)),
            token_log_probs=hypothesis.token_log_probs,
            read=read,
            status="max_length" if len(hypothesis.tokens) == longest else "ok",
        )


def on_one_line(text: str) -> str:
    """Return the text with spaces in place of line ends, which a model with byte fallback can produce."""
    return text.replace("\n", " ").replace("\r", " ")
