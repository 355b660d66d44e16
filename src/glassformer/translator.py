"""Text in, text out: a model and its tokenizers, put to work.

Each text has exactly one result, in order; one that cannot be translated has an empty text and a status that says why.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from glassformer.bundle import Bundle
from glassformer.errors import ConfigError, ShapeError
from glassformer.text.normalisation import normalise

if TYPE_CHECKING:
    from torch import Tensor

    from glassformer.decoding.hypothesis import Hypothesis
    from glassformer.decoding.search_trace import SearchTree
    from glassformer.decoding.transformer_step import TransformerStep
    from glassformer.model.transformer import Transformer

T = TypeVar("T")

__all__ = ["Explanation", "Sampling", "Status", "Translation", "Translator"]

Status = Literal["ok", "blank", "too_long", "undecodable", "max_length"]

MAX_SOURCE = 1024
"""Longer sources are not translated unless asked for: in tokens, `<eos>` included."""
BATCH_TOKENS = 6000
"""Source positions, padding and beams included, that are decoded side by side: bounds memory, whatever the input."""
WINDOW = 2000
"""Lines of a stream that are sorted by length together."""
SCORED_TOKENS = 1000
"""Target positions, padding included, that are scored side by side: each has logits for the whole vocabulary."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Translation:
    """One output, with what the model thinks of it."""

    text: str
    """The translation; empty when there is none."""
    log_prob: float = 0.0
    """Sum of the tokens' log probabilities, `<eos>` included (natural logarithm, ≤ 0)."""
    score: float = 0.0
    """What the search ranks by: log_prob over the length penalty."""
    tokens: tuple[str, ...] = ()
    """The tokens, `<eos>` included."""
    token_log_probs: tuple[float, ...] = ()
    """Log probability of each token (natural logarithm, ≤ 0)."""
    alternatives: tuple["Translation", ...] = ()
    """The next best outputs, best first, when more than one was asked for."""
    status: Status = "ok"
    """"ok"; "max_length": cut at its maximal length; or why nothing was translated."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """How one translation came about; where there is none, only the text, the status and how it was to be searched."""

    text: str
    translation: Translation
    """What `translate` returns; the alternatives are all other hypotheses that the beam finished."""
    beam_size: int
    length_penalty: float
    source: tuple[str, ...] = ()
    """The tokens that the encoder reads, `<eos>` included."""
    unknown: tuple[str, ...] = ()
    """Tokens of the text that are not in the vocabulary: the encoder reads `<unk>`."""
    attention: tuple[tuple[float, ...], ...] = ()
    """For each token of the translation, how much cross-attention looks at each token of the source while the token is
    being chosen: the mean over the heads of one layer; each row sums to 1."""
    attention_layer: str = ""
    """The name of that attention: of the decoder's last layer."""
    tree: "SearchTree" = field(default_factory=lambda: _no_tree())
    """All candidates of the search."""
    tree_tokens: tuple[str, ...] = ()
    """The token of each node of the tree, in a readable form."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sampling:
    """Draw tokens at random instead of searching for the best."""

    temperature: float = 1.0
    """Logits are divided by it: below 1 bolder, above 1 more varied."""
    top_k: int = 0
    """Only the k most probable tokens may be drawn; 0 = all."""
    top_p: float = 1.0
    """Only the most probable tokens that together reach this probability may be drawn."""
    seed: int = 1
    """The draws of a text depend on this and its place in the input alone."""
    first: int = 0
    """The place of the first text in the whole input, of which it may be a part."""

    def seed_of(self, place: int) -> int:
        """Return the seed of the draws for the text at this place, of those that are translated together."""
        return self.seed * 1_000_003 + self.first + place


class Translator:
    """Translates with one model.

    >>> import glassformer as gf
    >>> translator = gf.Translator.load("runs/demo")                                 # doctest: +SKIP
    >>> translator.translate(["The black cat sat on the couch."])[0].text            # doctest: +SKIP
    'Le chat noir était assis sur le canapé.'
    """

    def __init__(self, bundle: Bundle, model: "Transformer") -> None:
        self.bundle = bundle
        self.model = model

    @classmethod
    def load(cls, folder: str | Path) -> "Translator":
        """Return the translator of a run directory or an exported folder.

        Raises:
            CheckpointError: something is missing or damaged there.
        """
        bundle = Bundle.load(folder)
        return cls(bundle, bundle.model())

    def translate(
        self,
        texts: Sequence[str],
        *,
        beam_size: int | None = None,
        length_penalty: float | None = None,
        n_best: int = 1,
        prefix: str | Sequence[str] = "",
        sampling: Sampling | None = None,
        max_source: int = MAX_SOURCE,
    ) -> list[Translation]:
        """Return one translation for each text, in order.

        The same text gives the same translation whatever stands beside it. Unless given, beam size and length penalty
        are those of the run's configuration; `prefix` is what each output (or, as a list, each single one) has to
        begin with. A text that is blank, longer than `max_source` tokens (or than the model's learned positions) or not
        valid Unicode has no translation; its status says so.

        Raises:
            ShapeError: `texts` is one string, or there are not as many prefixes as texts.
            ConfigError: `sampling` and a beam are both asked for.
            DecodingError: an option is out of its range.
        """
        if isinstance(texts, str):
            raise ShapeError(f"texts is one string, expected a list of them: translate([{texts[:20]!r}])")
        prefixes = [prefix] * len(texts) if isinstance(prefix, str) else list(prefix)
        if len(prefixes) != len(texts):
            raise ShapeError(f"got {len(prefixes)} prefixes for {len(texts)} texts")
        if sampling and max(beam_size or 1, n_best) > 1:
            raise ConfigError("sampling draws one output a text: leave out beam_size and n_best")
        search = self._search(beam_size, length_penalty, n_best, sampling)
        results = [Translation(text="", status=self._status(text, self._source_ids, max_source)) for text in texts]
        jobs = self._jobs(texts, prefixes, results, search)
        for batch in _batches(jobs, lambda job: len(job.source) * search.rows, BATCH_TOKENS):
            for job, found in zip(batch, self._decode(batch, search), strict=True):
                for place in jobs[job]:
                    results[place] = self._translation(found, job.max_length)
        return results

    def stream(
        self, texts: Iterable[str], *, window: int = WINDOW, sampling: Sampling | None = None, **options: Any
    ) -> Iterator[Translation]:
        """Yield the translation of each text of a stream, in order, holding `window` of them at a time.

        The options are those of `translate`, but for a list of prefixes.
        """
        texts = iter(texts)
        while held := list(islice(texts, window)):
            yield from self.translate(held, sampling=sampling, **options)
            sampling = sampling and replace(sampling, first=sampling.first + len(held))

    def explain(
        self,
        text: str,
        *,
        beam_size: int | None = None,
        length_penalty: float | None = None,
        prefix: str = "",
        max_source: int = MAX_SOURCE,
    ) -> Explanation:
        """Return the translation of a text, where cross-attention looked for it, and the tree of the search.

        The options are those of `translate`.

        Raises:
            DecodingError: an option is out of its range.
        """
        from glassformer.decoding.beam import search_tree

        search = self._search(beam_size, length_penalty)
        size, alpha = search.beam_size, search.length_penalty
        status = self._status(text, self._source_ids, max_source)
        if status != "ok":
            return Explanation(
                text=text, translation=Translation(text="", status=status), beam_size=size, length_penalty=alpha
            )
        job = self._job(text, prefix)
        hypotheses, tree = search_tree(
            self._step([job]),
            beam_size=size,
            n_best=size,
            length_penalty=alpha,
            max_length=job.max_length,
            prefix=job.prefix,
        )
        return Explanation(
            text=text,
            translation=self._translation(hypotheses, job.max_length),
            beam_size=size,
            length_penalty=alpha,
            source=tuple(self.bundle.source_tokenizer.tokens(job.source)),
            unknown=self.unknown(text),
            attention=self._looks(job.source, hypotheses[0].tokens),
            attention_layer=self._last_attention,
            tree=tree,
            tree_tokens=tuple(self.bundle.target_tokenizer.tokens([node.token for node in tree.nodes])),
        )

    def score(self, pairs: Sequence[tuple[str, str]], *, length_penalty: float | None = None) -> list[Translation]:
        """Return each given target as a Translation: its tokens with the log probabilities that the model gives them.

        A pair with a side that is blank, too long or not valid Unicode is not scored; its status says so.
        """
        alpha = self.bundle.configuration.decoding.length_penalty if length_penalty is None else length_penalty
        results = [Translation(text=target, status=self._pair_status(source, target)) for source, target in pairs]
        encoded = {
            place: (self._source_ids(source), self._target_ids(target))
            for place, (source, target) in enumerate(pairs)
            if results[place].status == "ok"
        }
        for places in _batches(encoded, lambda place: max(map(len, encoded[place])), SCORED_TOKENS):
            for place, log_probs in zip(places, self._forced([encoded[place] for place in places]), strict=True):
                results[place] = self._scored(pairs[place][1], encoded[place][1], log_probs, alpha)
        return results

    def _search(
        self,
        beam_size: int | None,
        length_penalty: float | None,
        n_best: int = 1,
        sampling: Sampling | None = None,
    ) -> "_Search":
        decoding = self.bundle.configuration.decoding
        return _Search(
            beam_size=decoding.beam_size if beam_size is None else beam_size,
            length_penalty=decoding.length_penalty if length_penalty is None else length_penalty,
            n_best=n_best,
            sampling=sampling,
        )

    def _status(self, text: str, ids: Callable[[str], list[int]], longest: int = MAX_SOURCE) -> Status:
        if not normalise(text):
            return "blank"
        if any("\ud800" <= character <= "\udfff" for character in text):
            return "undecodable"
        return "too_long" if len(ids(text)) > min(longest, self.bundle.model_config.longest) else "ok"

    def _pair_status(self, source: str, target: str) -> Status:
        """Return the status of the source, or else of the target."""
        status = self._status(source, self._source_ids)
        return self._status(target, self._target_ids) if status == "ok" else status

    def _jobs(
        self, texts: Sequence[str], prefixes: Sequence[str], results: Sequence[Translation], search: "_Search"
    ) -> dict["_Job", list[int]]:
        """Return what is to be decoded, each different job once, with the places of the texts that wait for it."""
        jobs: dict[_Job, list[int]] = {}
        for place, (text, prefix, result) in enumerate(zip(texts, prefixes, results, strict=True)):
            if result.status != "ok":
                continue
            seed = search.sampling.seed_of(place) if search.sampling else 0
            jobs.setdefault(self._job(text, prefix, seed), []).append(place)
        return jobs

    def _job(self, text: str, prefix: str, seed: int = 0) -> "_Job":
        source = tuple(self._source_ids(text))
        return _Job(source, tuple(self.bundle.target_tokenizer.encode(prefix)), self._max_length(source), seed)

    def _max_length(self, source: Sequence[int]) -> int:
        from glassformer.decoding.transformer_step import max_length

        return max_length(self.bundle.model_config, len(source))

    def _decode(self, batch: Sequence["_Job"], search: "_Search") -> "list[list[Hypothesis]]":
        """Return the hypotheses of each job, best first."""
        from glassformer.decoding.beam import beam_search
        from glassformer.decoding.greedy import greedy
        from glassformer.decoding.sampling import sample

        step, lengths, prefixes = self._step(batch), [job.max_length for job in batch], [job.prefix for job in batch]
        if search.sampling:
            how, seeds = search.sampling, [job.seed for job in batch]
            drawn = sample(
                step,
                seeds=seeds,
                temperature=how.temperature,
                top_k=how.top_k,
                top_p=how.top_p,
                length_penalty=search.length_penalty,
                max_lengths=lengths,
                prefixes=prefixes,
            )
            return [[hypothesis] for hypothesis in drawn]
        if search.beam_size == 1 and search.n_best == 1:
            alpha = search.length_penalty
            return [[one] for one in greedy(step, max_lengths=lengths, prefixes=prefixes, length_penalty=alpha)]
        return beam_search(
            step,
            beam_size=search.beam_size,
            n_best=search.n_best,
            length_penalty=search.length_penalty,
            max_lengths=lengths,
            prefixes=prefixes,
        )

    def _step(self, batch: Sequence["_Job"]) -> "TransformerStep":
        from glassformer.decoding.transformer_step import TransformerStep

        return TransformerStep(self.model, self._padded([job.source for job in batch]))

    @property
    def _last_attention(self) -> str:
        return f"decoder.layers.{self.bundle.model_config.decoder_layers - 1}.cross_attention"

    def _looks(self, source: Sequence[int], target: Sequence[int]) -> tuple[tuple[float, ...], ...]:
        """Return the mean weights of the last cross-attention for each target token, taken where it was predicted."""
        import torch

        from glassformer.model.taps import record

        point = f"{self._last_attention}.weights"
        with torch.no_grad(), record(self.model, point) as trace:
            self.model(self._padded([source]), self._padded([[self.bundle.model_config.bos_id, *target[:-1]]]))
        return tuple(map(tuple, trace[point][0].mean(0).tolist()))

    def unknown(self, text: str) -> tuple[str, ...]:
        """Return the tokens of a source that the vocabulary lacks: the model reads `<unk>` in their places."""
        tokenizer = self.bundle.source_tokenizer
        cut = zip(tokenizer.split(text), tokenizer.encode(text), strict=True)
        return tuple(token for token, id in cut if id == tokenizer.unk_id)

    def _translation(self, hypotheses: "Sequence[Hypothesis]", max_length: int) -> Translation:
        best, *others = (self._one(hypothesis, max_length) for hypothesis in hypotheses)
        return replace(best, alternatives=tuple(others))

    def _one(self, hypothesis: "Hypothesis", max_length: int) -> Translation:
        tokenizer = self.bundle.target_tokenizer
        return Translation(
            text=tokenizer.decode(hypothesis.tokens),
            log_prob=hypothesis.log_prob,
            score=hypothesis.score,
            tokens=tuple(tokenizer.tokens(hypothesis.tokens)),
            token_log_probs=hypothesis.token_log_probs,
            status="max_length" if len(hypothesis.tokens) == max_length else "ok",
        )

    def _forced(self, encoded: Sequence[tuple[Sequence[int], Sequence[int]]]) -> list[list[float]]:
        from glassformer.decoding.transformer_step import target_log_probs

        config = self.bundle.model_config
        output = self._padded([target for _, target in encoded])
        target_input = self._padded([[config.bos_id, *target[:-1]] for _, target in encoded])
        log_probs = target_log_probs(self.model, self._padded([source for source, _ in encoded]), target_input, output)
        return [row[: len(target)] for row, (_, target) in zip(log_probs.tolist(), encoded, strict=True)]

    def _scored(self, text: str, target: Sequence[int], log_probs: Sequence[float], alpha: float) -> Translation:
        from glassformer.decoding.hypothesis import Hypothesis

        hypothesis = Hypothesis.ending_with(self.bundle.model_config.eos_id, target, log_probs, alpha)
        return replace(self._one(hypothesis, 0), text=text)

    def _source_ids(self, text: str) -> list[int]:
        return [*self.bundle.source_tokenizer.encode(text), self.bundle.model_config.eos_id]

    def _target_ids(self, text: str) -> list[int]:
        return [*self.bundle.target_tokenizer.encode(text), self.bundle.model_config.eos_id]

    def _padded(self, rows: Sequence[Sequence[int]]) -> "Tensor":
        from glassformer.decoding.transformer_step import padded

        return padded(self.model, rows)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Search:
    """How to search, whatever the texts."""

    beam_size: int
    length_penalty: float
    n_best: int
    sampling: Sampling | None

    @property
    def rows(self) -> int:
        """Hypotheses that are decoded side by side for each text."""
        return 1 if self.sampling else max(self.beam_size, 1)


@dataclass(frozen=True, slots=True)
class _Job:
    """What decides an output: equal jobs are decoded once."""

    source: tuple[int, ...]
    prefix: tuple[int, ...]
    max_length: int
    seed: int


def _no_tree() -> "SearchTree":
    from glassformer.decoding.search_trace import SearchTree

    return SearchTree(())


def _batches(items: Iterable[T], size: Callable[[T], int], budget: int) -> Iterator[list[T]]:
    """Yield items of about equal size together, largest first; padded to the largest, they keep to the budget."""
    batch: list[T] = []
    for item in sorted(items, key=size, reverse=True):
        if batch and size(batch[0]) * (len(batch) + 1) > budget:
            yield batch
            batch = []
        batch.append(item)
    if batch:
        yield batch
