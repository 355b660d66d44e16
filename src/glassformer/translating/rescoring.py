"""Rescoring: score the outputs of several searches by several models, and rank them again.

A candidate is a text, so that models with different tokens can score it, even models that write from right to left or
translate in the opposite direction.

Not in the paper: noisy-channel reranking (Yee et al. 2019), right-to-left rescoring (Liu et al. 2016).
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from glassformer.bundle import Bundle
from glassformer.corpus.files import files_of, format_of
from glassformer.decoding.engine import Ids
from glassformer.decoding.hypothesis import Hypothesis
from glassformer.recipes.configuration import DataConfig
from glassformer.translating.combination import Combination
from glassformer.translating.translation import Translation

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from glassformer.corpus.analogy import Lexicon

__all__ = ["Candidates", "Proposal", "Rescorer", "Rescoring", "is_backward"]

UNREADABLE = float("-inf")
"""The log probability that stands for a pair of source and candidate that a model cannot score."""


@runtime_checkable
class _Model(Protocol):
    """The part of `Translator` that rescoring uses."""

    def translate(self, texts: Sequence[str], **options: Any) -> list[Translation]: ...

    def score(self, pairs: Sequence[tuple[str, str]]) -> list[Translation]: ...


@dataclass(frozen=True, slots=True)
class Rescorer:
    """A model that scores candidates for a run."""

    model: _Model
    backward: bool
    """Whether the model translates in the opposite direction, and so scores the source, given the candidate."""

    def log_probs(self, pairs: Sequence[tuple[str, str]]) -> list[float]:
        """Return the log probability (natural logarithm) of each pair of a source and a candidate.

        The log probability is −∞ for a pair that the model cannot score, such as a pair that is too long.
        """
        scored = self.model.score([(target, source) for source, target in pairs] if self.backward else pairs)
        return [one.log_prob if one.status == "ok" else UNREADABLE for one in scored]


@dataclass(frozen=True, slots=True)
class Proposal:
    """A candidate before it is scored."""

    text: str
    ids: Ids
    """The ids of the candidate's tokens in the run's vocabulary, including `<eos>`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidates:
    """The candidates of a text, in the order in which they were proposed; the run's own outputs come first."""

    hypotheses: tuple[Hypothesis, ...]
    """The candidates as outputs of the run."""
    texts: tuple[str, ...]
    features: "NDArray[np.float64]"
    """A row for each candidate: the log probabilities by the run and by each model; the number of tokens; the logarithm
    of the lexicon's confidence, or 0 if the lexicon does not propose the candidate; and 1 if the lexicon proposes it,
    else 0."""

    @classmethod
    def none(cls) -> "Candidates":
        """Return an empty set of candidates."""
        import numpy as np

        return cls(hypotheses=(), texts=(), features=np.zeros((0, 0)))

    def ranked(self, weights: Sequence[float]) -> list[Hypothesis]:
        """Return the candidates with their weighted scores, best first; equal scores keep the candidates' order."""
        if not self.hypotheses:
            return []
        import numpy as np

        scores = self.features @ np.array(weights)
        order = np.argsort(-scores, kind="stable").tolist()
        return [replace(self.hypotheses[place], score=float(scores[place])) for place in order]


@dataclass(frozen=True, slots=True, kw_only=True)
class Rescoring:
    """The models that rescore the outputs of a run, and their weights."""

    models: tuple[Rescorer, ...]
    lexicon: "Lexicon | None"
    weights: tuple[float, ...]
    """The weights of the features, in the order of `Candidates.features`."""

    @classmethod
    def of(cls, combination: Combination, run: Bundle, models: Sequence[Rescorer]) -> "Rescoring":
        """Return the rescoring for a combination; `models` are its rescoring models, in the combination's order.

        Raises:
            CheckpointError: the run's lexicon is missing or damaged.
        """
        from glassformer.corpus.analogy import LEXICON, Lexicon

        lexicon = Lexicon.load(combination.run / LEXICON, run.target_tokenizer) if combination.lexicon else None
        return cls(models=tuple(models), lexicon=lexicon, weights=combination.weights.vector)

    def proposed(self, texts: Sequence[str], size: int) -> list[list[str]]:
        """Return the candidates for each text from the other models and the lexicon, up to `size` from each."""
        found: list[list[str]] = [[] for _ in texts]
        how: dict[str, Any] = {"beam_size": size, "n_best": size, "log_probs": False, "guards": False}
        how |= dict.fromkeys(("retry", "protect", "split", "recase"), False)
        for one in self.models:
            outputs = [] if one.backward else one.model.translate(texts, **how)
            for several, output in zip(found, outputs, strict=bool(outputs)):
                several += (each.text for each in (output, *output.alternatives))
        if self.lexicon is not None:
            for several, text in zip(found, texts, strict=True):
                several += list(self.lexicon.analogies(text))[:size]
        return found

    def features(
        self, pairs: Sequence[tuple[str, str]], own: Sequence[float], lengths: Sequence[int]
    ) -> "NDArray[np.float64]":
        """Return the features of pairs of a source and a candidate (see `Candidates`).

        Args:
            pairs: the pairs.
            own: the log probability that the run gives to each candidate.
            lengths: the number of tokens of each candidate in the run's vocabulary.
        """
        import numpy as np

        listed: list[Mapping[str, float]] = [{}] * len(pairs)
        if self.lexicon is not None:
            known = {source: self.lexicon.analogies(source) for source in dict.fromkeys(source for source, _ in pairs)}
            listed = [known[source] for source, _ in pairs]
        confidence = [some.get(target, 0.0) for some, (_, target) in zip(listed, pairs, strict=True)]
        columns = [own, *(one.log_probs(pairs) for one in self.models), lengths]
        columns += [[np.log(one) if one else 0.0 for one in confidence], [float(one > 0) for one in confidence]]
        return np.array(columns, np.float64).T

    def scores(self, pairs: Sequence[tuple[str, str]], own: Sequence[Translation]) -> list[float]:
        """Return the weighted score of each pair of a source and a target; `own` are the run's scored targets."""
        import numpy as np

        features = self.features(pairs, [one.log_prob for one in own], [len(one.tokens) for one in own])
        weights = np.array(self.weights)
        used = weights != 0  # a model with weight 0 may give −∞, and 0 · −∞ is not a number
        scores: list[float] = (features[:, used] @ weights[used]).tolist()
        return scores

    def candidates(
        self,
        texts: Sequence[str],
        proposals: Sequence[Sequence[Proposal]],
        score: Callable[[Sequence[tuple[int, Ids]]], Sequence[Hypothesis]],
    ) -> list[Candidates]:
        """Return the scored candidates of each text, without candidates that a model cannot score.

        Args:
            texts: the source texts.
            proposals: the candidates of each text.
            score: returns the run's scored hypothesis for each pair of a text's index and a candidate's ids.
        """
        places = [(place, one) for place, several in enumerate(proposals) for one in several]
        if not places:
            return [Candidates.none() for _ in texts]
        hypotheses = score([(place, one.ids) for place, one in places])
        pairs = [(texts[place], one.text) for place, one in places]
        features = self.features(pairs, [one.log_prob for one in hypotheses], [len(one.ids) for _, one in places])
        ends = list(accumulate(map(len, proposals), initial=0))
        return [
            _chosen(hypotheses[begin:end], [text for _, text in pairs[begin:end]], features[begin:end])
            for begin, end in pairwise(ends)
        ]


def _chosen(hypotheses: Sequence[Hypothesis], texts: Sequence[str], features: "NDArray[np.float64]") -> Candidates:
    """Return the candidates that all models can score."""
    import numpy as np

    whole = np.flatnonzero(np.isfinite(features).all(1)).tolist()
    return Candidates(
        hypotheses=tuple(hypotheses[place] for place in whole),
        texts=tuple(texts[place] for place in whole),
        features=features[whole],
    )


def is_backward(run: DataConfig, other: DataConfig) -> bool:
    """Return whether a run translates in the opposite direction of another run.

    It does so if its configuration names the same languages, or the same files or columns, in the opposite order.
    """
    ours, theirs = _sides(run), _sides(other)
    languages = (run.source_language, run.target_language), (other.target_language, other.source_language)
    swapped = all(languages[0]) and languages[0] == languages[1] and languages[0][0] != languages[0][1]
    return swapped or (ours[0] != ours[1] and ours == theirs[::-1])


def _sides(data: DataConfig) -> tuple[Any, Any]:
    """Return the source's files and column, and the target's files and column."""
    if data.target:
        return (data.source, None), (data.target, None)
    jsonl = {format_of(file) for file in files_of(data.source)} == {"jsonl"}
    default: Iterable[int | str] = ("source", "target") if jsonl else (0, 1)
    columns = (data.source_column, data.target_column)
    source, target = (one if given is None else given for one, given in zip(default, columns, strict=True))
    return (data.source, source), (data.source, target)
