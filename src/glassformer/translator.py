"""Text in, text out: an engine and the tokenizers of its models, put to work. Needs no torch itself.

Each text has exactly one result, in order; one that cannot be translated has an empty text and a status that says why.
"""

import math
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from glassformer.bundle import Bundle
from glassformer.decoding.engine import Engine, EngineName, Ids, Job, Quantization, Sampling, Search, Sources
from glassformer.decoding.hypothesis import Hypothesis, max_length
from glassformer.decoding.search_trace import SearchTree
from glassformer.errors import ConfigError, ShapeError
from glassformer.text.normalisation import is_normal, normalise
from glassformer.text.tokenizer import Tokenizer

if TYPE_CHECKING:
    from glassformer.decoding.torch_engine import TorchEngine
    from glassformer.model.transformer import Transformer

__all__ = ["Explanation", "Sampling", "Status", "Translation", "Translator"]

Status = Literal["ok", "blank", "too_long", "undecodable", "max_length"]

MAX_SOURCE = 1024
"""Longer sources are not translated unless asked for: in tokens, `<eos>` included."""
WINDOW = 2000
"""Lines of a stream that are sorted by length together."""
WINDOW_CHARACTERS = 4_000_000
"""Characters of a stream that are held at most, but for a single longer line: bounds memory when lines are long."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Translation:
    """One output, with what the model thinks of it."""

    text: str
    """The translation; empty when there is none."""
    log_prob: float = 0.0
    """Sum of the tokens' log probabilities, `<eos>` included (natural logarithm, ≤ 0); NaN if not asked for."""
    score: float = 0.0
    """What the search ranks by: log_prob over the length penalty; NaN if not asked for."""
    tokens: tuple[str, ...] = ()
    """The tokens, `<eos>` included."""
    token_log_probs: tuple[float, ...] = ()
    """Log probability of each token (natural logarithm, ≤ 0); none if not asked for."""
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
    tree: SearchTree = field(default_factory=lambda: SearchTree(()))
    """All candidates of the search."""
    tree_tokens: tuple[str, ...] = ()
    """The token of each node of the tree, in a readable form."""


class Translator:
    """Translates with one model, or with the ensemble of several.

    >>> import glassformer as gf
    >>> translator = gf.Translator.load("runs/demo")                                 # doctest: +SKIP
    >>> translator.translate(["The black cat sat on the couch."])[0].text            # doctest: +SKIP
    'Le chat noir était assis sur le canapé.'
    """

    def __init__(self, bundle: Bundle, model: "Transformer | Engine", *others: "Translator") -> None:
        self.bundle = bundle
        self._bundles: tuple[Bundle, ...] = (bundle, *(one for other in others for one in other._bundles))
        for one in self._bundles[1:]:
            _check_targets(bundle, one)
        self.engine: Engine = _engine(model, *(other.engine for other in others))

    @classmethod
    def load(
        cls,
        folder: str | Path,
        *others: str | Path,
        engine: EngineName = "torch",
        quantization: Quantization | None = None,
        workers: int = 0,
    ) -> "Translator":
        """Return the translator of a run directory or an exported folder, or of several: their ensemble.

        At each step an ensemble takes the mean of the probabilities that its models give. Each model reads the source
        with its own tokenizer; all of them write with the same. How to search is the first one's configuration.

        Args:
            folder: of the run, or of the export.
            others: of the ensemble's other models.
            engine: "torch"; "ctranslate2", which is faster on CPUs; or "auto", the fastest that gives the same answers.
            quantization: how the matrices are held; as trained, or as they were exported, unless given.
            workers: how many batches are decoded side by side. Each needs a core; with the engine torch each but the
                first is a process with a copy of the models, which starts once there is enough to translate. Unless
                given, CTranslate2 has one for each core, and torch has one.

        Raises:
            CheckpointError: something is missing or damaged there.
            ConfigError: the models' target vocabularies differ, or the engine cannot do what is asked for.
            MissingDependencyError: CTranslate2 is asked for and not installed.
        """
        from glassformer.interop.choice import load_engine

        if others and engine == "ctranslate2":
            raise ConfigError("CTranslate2 has no ensembles: leave out all models but one, or choose the engine torch")
        bundle = Bundle.load(folder)
        found = load_engine(bundle, "torch" if others else engine, quantization, workers)
        return cls(bundle, found, *(cls.load(other, quantization=quantization) for other in others))

    @property
    def model(self) -> "Transformer":
        """The model.

        Raises:
            ConfigError: there are several, or the engine is none of PyTorch.
        """
        return self._torch().models[0]

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
        log_probs: bool = True,
    ) -> list[Translation]:
        """Return one translation for each text, in order.

        With weights in float32 the same text gives the same translation whatever stands beside it. Unless given, beam
        size and length penalty are those of the run's configuration; `prefix` is what each output (or, as a list, each
        single one) has to begin with. A text that is blank, longer than `max_source` tokens (or than the model has
        positions) or not valid Unicode has no translation; its status says so. Without `log_probs`, log probabilities
        and scores are left out, which saves some engines a good part of the time.

        Raises:
            ShapeError: `texts` is one string, or there are not as many prefixes as texts.
            ConfigError: `sampling` and a beam are both asked for, or the engine cannot do what is asked for.
            DecodingError: an option is out of its range.
        """
        if isinstance(texts, str):
            raise ShapeError(f"texts is one string, expected a list of them: translate([{texts[:20]!r}])")
        prefixes = [prefix] * len(texts) if isinstance(prefix, str) else list(prefix)
        if len(prefixes) != len(texts):
            raise ShapeError(f"got {len(prefixes)} prefixes for {len(texts)} texts")
        search = self._search(beam_size, length_penalty, n_best, sampling, log_probs)
        return self._begin(texts, prefixes, search, max_source)()

    def stream(
        self,
        texts: Iterable[str],
        *,
        window: int = WINDOW,
        prefix: str = "",
        max_source: int = MAX_SOURCE,
        **options: Any,
    ) -> Iterator[Translation]:
        """Yield the translation of each text of a stream, in order, holding `window` of them at a time.

        Fewer are held where they are long, and twice as many where the engine works on while the next ones are read.
        The options are those of `translate`, but for a list of prefixes.
        """
        waiting: deque[Callable[[], list[Translation]]] = deque()
        ahead = 1 if self.engine.reads_ahead and window > 1 else 0
        search = self._search(**options)
        for held in _windows(texts, window):
            waiting.append(self._begin(held, [prefix] * len(held), search, max_source))
            if search.sampling:
                sampling = replace(search.sampling, first=search.sampling.first + len(held))
                search = replace(search, sampling=sampling)
            if len(waiting) > ahead:
                yield from waiting.popleft()()
        for finish in waiting:
            yield from finish()

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
            ConfigError: the translator is an ensemble.
            DecodingError: an option is out of its range.
        """
        from glassformer.decoding.beam import search_tree

        torch = self._torch()
        search = self._search(beam_size, length_penalty)
        size, alpha = search.beam_size, search.length_penalty
        [status], sources = self._read([text], max_source)
        if status != "ok":
            return Explanation(
                text=text, translation=Translation(text="", status=status), beam_size=size, length_penalty=alpha
            )
        job = self._job(sources[0], prefix)
        hypotheses, tree = search_tree(
            torch.step([job]),
            beam_size=size,
            n_best=size,
            length_penalty=alpha,
            max_length=job.max_length,
            prefix=job.prefix,
        )
        [translation] = self._translations([hypotheses], [job], search)
        return Explanation(
            text=text,
            translation=translation,
            beam_size=size,
            length_penalty=alpha,
            source=tuple(self.bundle.source_tokenizer.tokens(job.sources[0])),
            unknown=self.unknown(text),
            attention=self._looks(job.sources[0], hypotheses[0].tokens),
            attention_layer=self._last_attention,
            tree=tree,
            tree_tokens=tuple(self.bundle.target_tokenizer.tokens([node.token for node in tree.nodes])),
        )

    def score(self, pairs: Sequence[tuple[str, str]], *, length_penalty: float | None = None) -> list[Translation]:
        """Return each given target as a Translation: its tokens with the log probabilities that the model gives them.

        A pair with a side that is blank, too long or not valid Unicode is not scored; its status says so.
        """
        alpha = self.bundle.configuration.decoding.length_penalty if length_penalty is None else length_penalty
        statuses, sources = self._read([source for source, _ in pairs])
        targets = self._targets([target for _, target in pairs])
        both: list[Status] = [one if one != "ok" else other for one, (other, _) in zip(statuses, targets, strict=True)]
        places = [place for place, status in enumerate(both) if status == "ok"]
        scores = self.engine.score([(sources[place], targets[place][1]) for place in places])
        results = [Translation(text=target, status=status) for (_, target), status in zip(pairs, both, strict=True)]
        for place, log_probs in zip(places, scores, strict=True):
            results[place] = self._scored(pairs[place][1], targets[place][1], log_probs, alpha)
        return results

    def _torch(self) -> "TorchEngine":
        """Return the engine, if one can look into it."""
        if len(self._bundles) > 1:
            folders = ", ".join(str(bundle.folder) for bundle in self._bundles)
            raise ConfigError(f"an ensemble ({folders}) cannot be looked into: explain and explore one of its models")
        from glassformer.decoding.torch_engine import TorchEngine

        if not isinstance(self.engine, TorchEngine):
            raise ConfigError(
                f"the engine {self.engine.name} does not show what it computes: choose the engine torch, on a run's "
                "own folder"
            )
        return self.engine

    def _search(
        self,
        beam_size: int | None = None,
        length_penalty: float | None = None,
        n_best: int = 1,
        sampling: Sampling | None = None,
        log_probs: bool = True,
    ) -> Search:
        if sampling and max(beam_size or 1, n_best) > 1:
            raise ConfigError("sampling draws one output a text: leave out beam_size and n_best")
        decoding = self.bundle.configuration.decoding
        return Search(
            beam_size=decoding.beam_size if beam_size is None else beam_size,
            length_penalty=decoding.length_penalty if length_penalty is None else length_penalty,
            n_best=n_best,
            sampling=sampling,
            log_probs=log_probs,
        )

    def _begin(
        self, texts: Sequence[str], prefixes: Sequence[str], search: Search, max_source: int
    ) -> Callable[[], list[Translation]]:
        """Ask the engine for the translations of some texts; what is returned waits for them and returns them."""
        statuses, sources = self._read(texts, max_source)
        jobs: dict[Job, list[int]] = {}  # each different job once, with the places of the texts that wait for it
        for place, source in sources.items():
            seed = search.sampling.seed_of(place) if search.sampling else 0
            jobs.setdefault(self._job(source, prefixes[place], seed), []).append(place)
        different = list(jobs)
        found = self.engine.decode(different, search)

        def finish() -> list[Translation]:
            results = [Translation(text="", status=status) for status in statuses]
            translations = self._translations(list(found), different, search)
            for one, places in zip(translations, jobs.values(), strict=True):
                for place in places:
                    results[place] = one
            return results

        return finish

    def _read(self, texts: Sequence[str], longest: int = MAX_SOURCE) -> tuple[list[Status], dict[int, Sources]]:
        """Return each text's status and, of those that can be translated, by their places, what the models read."""
        statuses = [_status(text) for text in texts]
        places = [place for place, status in enumerate(statuses) if status == "ok"]
        readable = [texts[place] for place in places]
        longest = min(longest, self.engine.longest)
        each = [_with_eos(bundle.source_tokenizer, readable) for bundle in self._bundles]
        read: dict[int, Sources] = {}
        for place, sources in zip(places, zip(*each, strict=True), strict=True):
            if max(map(len, sources)) <= longest:
                read[place] = sources
            else:
                statuses[place] = "too_long"
        return statuses, read

    def _targets(self, texts: Sequence[str]) -> list[tuple[Status, Ids]]:
        """Return the status of each target that is to be scored, and its ids, none where it cannot be."""
        statuses = [_status(text) for text in texts]
        writable = [text for text, status in zip(texts, statuses, strict=True) if status == "ok"]
        encoded = iter(_with_eos(self.bundle.target_tokenizer, writable))
        longest = min(MAX_SOURCE, self.engine.longest)
        targets: list[tuple[Status, Ids]] = []
        for status in statuses:
            ids = next(encoded) if status == "ok" else ()
            targets.append(("too_long" if len(ids) > longest else status, ids))
        return targets

    def _job(self, sources: Sources, prefix: str, seed: int = 0) -> Job:
        lengths = (
            max_length(bundle.model_config, len(one)) for bundle, one in zip(self._bundles, sources, strict=True)
        )
        begin = tuple(self.bundle.target_tokenizer.encode(prefix)) if prefix else ()
        return Job(sources, begin, min(self.engine.longest, *lengths), seed)

    @property
    def _last_attention(self) -> str:
        return f"decoder.layers.{self.bundle.model_config.decoder_layers - 1}.cross_attention"

    def _looks(self, source: Sequence[int], target: Sequence[int]) -> tuple[tuple[float, ...], ...]:
        """Return the mean weights of the last cross-attention for each target token, taken where it was predicted."""
        import torch

        from glassformer.decoding.transformer_step import padded
        from glassformer.model.taps import record

        point, model = f"{self._last_attention}.weights", self.model
        target_input = [self.bundle.model_config.bos_id, *target[:-1]]
        with torch.no_grad(), record(model, point) as trace:
            model(padded(model, [source]), padded(model, [target_input]))
        return tuple(map(tuple, trace[point][0].mean(0).tolist()))

    def unknown(self, text: str) -> tuple[str, ...]:
        """Return the tokens of a source that the vocabulary lacks: the model reads `<unk>` in their places."""
        tokenizer = self.bundle.source_tokenizer
        cut = zip(tokenizer.split(text), tokenizer.encode(text), strict=True)
        return tuple(token for token, id in cut if id == tokenizer.unk_id)

    def _translations(
        self, found: Sequence[Sequence[Hypothesis]], jobs: Sequence[Job], search: Search
    ) -> list[Translation]:
        """Return what was found for each job, with the next best outputs as alternatives of the best."""
        texts = iter(self.bundle.target_tokenizer.decode_all([one.tokens for several in found for one in several]))
        results = []
        for several, job in zip(found, jobs, strict=True):
            best, *others = [self._one(next(texts), one, job.max_length, search.log_probs) for one in several]
            results.append(replace(best, alternatives=tuple(others)) if others else best)
        return results

    def _one(self, text: str, hypothesis: Hypothesis, longest: int, log_probs: bool = True) -> Translation:
        return Translation(
            text=_one_line(text),
            log_prob=hypothesis.log_prob if log_probs else math.nan,
            score=hypothesis.score if log_probs else math.nan,
            tokens=tuple(map(self._tokens.__getitem__, hypothesis.tokens)),
            token_log_probs=hypothesis.token_log_probs if log_probs else (),
            status="max_length" if len(hypothesis.tokens) == longest else "ok",
        )

    @cached_property
    def _tokens(self) -> list[str]:
        """The target's vocabulary."""
        return self.bundle.target_tokenizer.tokens(range(len(self.bundle.target_tokenizer)))

    def _scored(self, text: str, target: Ids, log_probs: Sequence[float], alpha: float) -> Translation:
        hypothesis = Hypothesis.ending_with(self.bundle.model_config.eos_id, target, log_probs, alpha)
        return replace(self._one(text, hypothesis, longest=0), text=text)


def _engine(model: "Transformer | Engine", *others: Engine) -> Engine:
    """Return the engine of a model, or of an ensemble."""
    if isinstance(model, Engine) and not others:
        return model
    from glassformer.decoding.torch_engine import TorchEngine

    first = model if isinstance(model, Engine) else TorchEngine(model)
    members = [one for one in (first, *others) if isinstance(one, TorchEngine)]
    if len(members) <= len(others):
        raise ConfigError("only models on the engine torch can translate together")
    return TorchEngine(*(model for member in members for model in member.models), workers=members[0].workers)


def _with_eos(tokenizer: Tokenizer, texts: Sequence[str]) -> list[Ids]:
    return [(*ids, tokenizer.eos_id) for ids in tokenizer.encode_all(texts)]


def _status(text: str) -> Status:
    """Return "ok" if a text can be cut into tokens at all."""
    if is_normal(text):
        return "ok" if text else "blank"
    if not normalise(text):
        return "blank"
    return "undecodable" if any("\ud800" <= character <= "\udfff" for character in text) else "ok"


def _check_targets(first: Bundle, other: Bundle) -> None:
    """Refuse an ensemble whose models write with different tokens."""
    ours, theirs = first.target_tokenizer, other.target_tokenizer
    problem = f"an ensemble must write with the same tokens, but those of {first.folder} and {other.folder}"
    remedy = "train both from one prepared corpus (data.prepared), or with the same data.valid_source"
    if (ours.kind, len(ours)) != (theirs.kind, len(theirs)):
        sizes = f"{len(ours):,} {ours.kind} and {len(theirs):,} {theirs.kind}"
        raise ConfigError(f"{problem} are {sizes}: {remedy}")
    pairs = zip(ours.tokens(range(len(ours))), theirs.tokens(range(len(theirs))), strict=True)
    for id, (one, another) in enumerate(pairs):
        if one != another:
            raise ConfigError(f"{problem} differ first in id {id}, {one!r} and {another!r}: {remedy}")


def _one_line(text: str) -> str:
    """Return the text with spaces for line ends, which a vocabulary with byte fallback can spell."""
    return text.replace("\n", " ").replace("\r", " ")


def _windows(texts: Iterable[str], window: int) -> Iterator[list[str]]:
    """Yield texts in runs of at most `window`, each of them shorter than it would be once it holds many characters."""
    held: list[str] = []
    characters = 0
    for text in texts:
        held.append(text)
        characters += len(text)
        if len(held) == window or characters >= WINDOW_CHARACTERS:
            yield held
            held, characters = [], 0
    if held:
        yield held
