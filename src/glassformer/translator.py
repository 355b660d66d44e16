"""Translate texts, with an engine and its models' tokenizers. Importing this module does not import torch.

Each text has exactly one result, in order; a text that cannot be translated has an empty result whose status says why.
"""

import json
import math
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from glassformer.bundle import Bundle
from glassformer.decoding.engine import Engine, Ids, Job, Need, Search, Sources, WordEdges
from glassformer.decoding.hypothesis import Hypothesis, max_length, penalty_of, score_of
from glassformer.decoding.options import EngineName, Quantization
from glassformer.decoding.search_trace import SearchTree
from glassformer.errors import ConfigError, ShapeError, quoted
from glassformer.guards.guards import UNCALIBRATED, Confidence, Guards, above, of_search, suspicion
from glassformer.guards.signals import ModelOutput, signals
from glassformer.model.alignment import Alignment
from glassformer.recipes.configuration import DecodingConfig
from glassformer.recipes.toml import changed_decoding
from glassformer.text.glossary import Glossary, Term
from glassformer.text.links import Link, Span, link_words, source_words, target_words, word_spans
from glassformer.text.normalisation import is_normal, normalise
from glassformer.text.placing import placed_spans, replaced_terms, stripped
from glassformer.text.splitting import clause_spans
from glassformer.text.terms import Terms, TextPiece, as_fragment, missing_terms, pieces_around, spellings_of
from glassformer.text.tokenizer import Tokenizer
from glassformer.text.vocabulary import EOS_ID, SPECIALS
from glassformer.text.word_edges import edge_kind

if TYPE_CHECKING:
    from glassformer.decoding.torch_engine import TorchEngine
    from glassformer.model.transformer import Transformer

__all__ = [
    "TRANSLATED",
    "Explanation",
    "Kept",
    "Retry",
    "Status",
    "Translation",
    "Translator",
    "score_line",
    "status_entry",
]

Status = Literal["ok", "suspicious", "blank", "too_long", "undecodable", "max_length"]
TRANSLATED: tuple[Status, ...] = ("ok", "suspicious", "max_length")
"""The statuses of texts that have a translation."""

Retry = Literal["", "first", "greedy", "beam", "samples", "parts"]
DRAWN_OUTPUTS = 8
"""Number of outputs that are drawn for a suspicious one."""
TEMPERATURES = (0.5, 1.0)
"""Temperatures at which they are drawn, one after the other: the first gives probable outputs, the second one also ends
the loops of a model that has learned little (benchmarks/README.md)."""
OTHER_BEAM = DecodingConfig().beam_size
"""Beam size of the second search after greedy search."""

_Attempt = Callable[[Sequence[str], Sequence[str], Search, bool, Terms], Sequence["Translation | None"]]
"""A search to try again: a function of texts, prefixes, the first search, whether to link words, and terms."""

Kept = Literal["", "output", "search", "placed", "cut", "lost"]
"""How the protected spans and glossary terms of a text came into its translation: there are none; the model wrote them;
by a search for outputs with these terms; placed at the aligned words of an output; the text was cut at them, and the
parts translated; or not at all."""

MOST_HYPOTHESES = 500
"""Maximum number of hypotheses of a sentence in a search for terms, of which each token needs a beam of its own."""

WINDOW_CHARACTERS = 4_000_000
"""Approximate maximum number of characters of a stream in memory at a time; the last text read may exceed it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Translation:
    """An output of a model, with its scores."""

    text: str
    """The translation; "" if there is none."""
    log_prob: float = 0.0
    """Sum of the tokens' log probabilities, including `<eos>` (natural logarithm, ≤ 0); NaN if not requested."""
    score: float = 0.0
    """The value by which the search ranks outputs: log_prob / length penalty; NaN if not requested."""
    tokens: tuple[str, ...] = ()
    """The tokens, including `<eos>`."""
    token_log_probs: tuple[float, ...] = ()
    """Log probability of each token (natural logarithm, ≤ 0); empty if not requested."""
    alternatives: tuple["Translation", ...] = ()
    """The next best outputs, best first, if several were requested."""
    links: tuple[Link, ...] = ()
    """The aligned words, in the translation's order: each word of the translation with its source word, and each source
    word that is then left with its word of the translation. Empty if not requested."""
    status: Status = "ok"
    """"ok"; "suspicious": guards were set off; "max_length": cut at its maximum length; or why the text was not
    translated."""
    reasons: tuple[str, ...] = ()
    """The guards that the output set off, by the names in `glassformer.guards.signals.SIGNALS`."""
    confidence: Confidence | None = None
    """How sure one may be of the output; None if the run is not calibrated, or log probabilities were not requested."""
    retry: Retry = ""
    """With the setting `retry`, the search that made the output, if the output of the first search was suspicious:
    "greedy" or "beam"; "samples": of several samples, the one most like the others; "parts": the parts of the text
    between commas, each by itself; or "first", if all of these are more suspicious. "" if nothing was suspicious."""
    kept: Kept = ""
    """How the protected spans and glossary terms came in. If placed, the tokens and their log probabilities are those
    of the output before; if cut, there are no log probabilities."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """How a translation was computed. If the text has no translation, only its text, status and settings are set."""

    text: str
    translation: Translation
    """The result of `translate`; its alternatives are all other finished hypotheses of the beam search."""
    settings: DecodingConfig
    """The settings of the search: the run's decoding settings, changed by the settings given for this text."""
    source: tuple[str, ...] = ()
    """The tokens that the encoder reads, including `<eos>`."""
    unknown: tuple[str, ...] = ()
    """Tokens of the text outside the vocabulary, which the encoder reads as `<unk>`."""
    attention: tuple[tuple[float, ...], ...] = ()
    """Cross-attention weights: for each token of the translation, a row with a weight for each source token. A weight
    is the mean over the heads of `alignment`; each row sums to 1."""
    attention_layer: str = ""
    """The full name of the module that `attention` shows."""
    alignment: Alignment | None = None
    """The heads that `attention` shows: those that align words best, or all of the last layer if not compared."""
    tree: SearchTree = field(default_factory=lambda: SearchTree(()))
    """All candidates of the search."""
    tree_tokens: tuple[str, ...] = ()
    """The token of each node of the tree, in readable form."""


class _Asked(NamedTuple):
    """Texts whose translations must contain terms."""

    texts: Sequence[str]
    seeds: Sequence[int]
    """The indices of the texts in the whole input."""
    terms: Mapping[int, Sequence[Term]]
    """The terms of each text that has some, by the index of the text."""
    jobs: Mapping[int, Job]
    wanted: Terms
    search: Search
    linked: bool
    """Whether the translations need links."""


class Translator:
    """A translator with one model, or with an ensemble of several.

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
        self.engine: Engine = _engine(bundle, model, *(other.engine for other in others))

    @classmethod
    def load(
        cls,
        folder: str | Path,
        *others: str | Path,
        engine: EngineName = "torch",
        quantization: Quantization | None = None,
        workers: int = 0,
        device: str = "auto",
        settings: Mapping[str, Any] | None = None,
        needs: Collection[Need] = (),
    ) -> "Translator":
        """Return a translator with the model in a run directory or an exported folder, or an ensemble of several.

        At each step an ensemble averages the probabilities of its models. Each model reads the source with its own
        tokenizer; all models must share the target tokenizer. The first run's decoding settings apply.

        Args:
            folder: folder of the run or the export.
            others: folders of the ensemble's other models.
            engine: "torch"; "ctranslate2", which is faster on CPUs; or "auto", the fastest that gives the same outputs.
            quantization: number format of the matrices; by default, as trained or as exported.
            workers: number of batches decoded in parallel, each on its own core. With the engine torch, each worker but
                the first is a process with its own copy of the models; these processes start when there is enough to
                translate. The default, 0, means one worker per core for CTranslate2, and one worker for torch.
            device: where to compute: "cpu", "cuda", "cuda:1" or another device of PyTorch; "auto" is a GPU if there is
                one. On a GPU there is one worker.
            settings: decoding settings by name, which override the run's own.
            needs: abilities that the engine chosen by "auto" must have, such as "sampling".

        Raises:
            CheckpointError: a part of a folder is missing or damaged.
            ConfigError: the models' target vocabularies differ, a setting is unknown or impossible, the device is not
                available, or the engine does not support the request.
            MissingDependencyError: CTranslate2 is requested but not installed.
        """
        from glassformer.interop.choice import EngineRequest, load_engine

        bundle = Bundle.load(folder)
        if settings:
            decoding = changed_decoding(bundle.configuration.decoding, settings)
            bundle = replace(bundle, configuration=replace(bundle.configuration, decoding=decoding))
        wanted: set[Need] = {*needs, "ensemble"} if others else {*needs}
        how: dict[str, Any] = {"quantization": quantization, "device": device}
        found = load_engine(bundle, EngineRequest(engine=engine, workers=workers, needs=wanted, **how))
        return cls(bundle, found, *(cls.load(other, **how) for other in others))

    @property
    def model(self) -> "Transformer":
        """The PyTorch model.

        Raises:
            ConfigError: there are several models, or the engine does not use PyTorch.
        """
        return self._torch().models[0]

    def translate(
        self,
        texts: Sequence[str],
        *,
        n_best: int = 1,
        prefix: str | Sequence[str] = "",
        sample: bool = False,
        log_probs: bool = True,
        guards: bool = True,
        links: bool = False,
        glossary: Glossary | Mapping[str, str] | None = None,
        **settings: Any,
    ) -> list[Translation]:
        """Return one translation per text, in order.

        With weights in float32, a text's translation does not depend on the other texts. A text gets an empty
        translation, whose `status` gives the reason, if it is blank, is not valid Unicode, or has more tokens
        (including `<eos>`) than the setting `max_source` or the model's positions.

        Args:
            texts: the texts to translate.
            n_best: number of outputs per text: the best one and its `alternatives`.
            prefix: the beginning of each output, or a list with one beginning per output.
            sample: whether to draw tokens at random instead of searching for the best output.
            log_probs: whether to compute log probabilities and scores; some engines are much faster without them.
            guards: whether to look for suspicious outputs (see `guards`), as the setting `retry` does in any case.
            links: whether to align the words of each output to the words of its text, which takes another pass.
            glossary: how some terms must be translated: target terms by source term, or a `Glossary`.
            settings: decoding settings by name, such as `beam_size=4`, which override the run's own.

        Raises:
            ShapeError: `texts` is one string, or the numbers of prefixes and texts differ.
            ConfigError: a setting is unknown or out of range, sampling and a beam are both requested, or the engine
                does not support the request.
            DataError: a term of the glossary is blank, or has two translations.
            DecodingError: `n_best` is larger than the beam, or a prefix does not fit.
        """
        if isinstance(texts, str):
            raise ShapeError(f"texts: expected a list of strings, got one string; call translate([{quoted(texts)}])")
        prefixes = [prefix] * len(texts) if isinstance(prefix, str) else list(prefix)
        if len(prefixes) != len(texts):
            raise ShapeError(f"prefix: expected one for each of {len(texts)} texts, got {len(prefixes)}")
        search = self._search(settings, n_best, sample, log_probs)
        terms = _terms(search, glossary)
        return list(self._begin(texts, prefixes, search, range(len(texts)), links=links, guards=guards, terms=terms))

    def stream(
        self,
        texts: Iterable[str | None],
        *,
        n_best: int = 1,
        prefix: str = "",
        sample: bool = False,
        log_probs: bool = True,
        guards: bool = True,
        links: bool = False,
        glossary: Glossary | Mapping[str, str] | None = None,
        **settings: Any,
    ) -> Iterator[Translation]:
        """Yield the translation of each text of a stream, in order, reading up to `window` texts (a setting) at a time.

        Fewer texts are read at a time if they are long. If the engine decodes in the background, the next texts are
        read meanwhile. If the stream yields None, no more texts are available for now, and the translations of all
        earlier texts are yielded at once. Takes the arguments of `translate`, except a list of prefixes.
        """
        search = self._search(settings, n_best, sample, log_probs)
        window, options = search.settings.window, {"links": links, "guards": guards}
        terms = _terms(search, glossary)
        waiting: deque[Iterator[Translation]] = deque()
        ahead = 1 if self.engine.reads_ahead and window > 1 else 0
        first = 0
        for held in _windows(texts, window):
            if held:
                seeds = range(first, first + len(held))
                waiting.append(self._begin(held, [prefix] * len(held), search, seeds, terms=terms, **options))
            first += len(held)
            while len(waiting) > (ahead if held else 0):
                yield from waiting.popleft()

    def explain(self, text: str, *, prefix: str = "", **settings: Any) -> Explanation:
        """Return the translation of a text, its cross-attention to the text, and the tree of the search.

        Takes the arguments of `translate`.

        Raises:
            ConfigError: the translator is an ensemble, or a setting is unknown or out of range.
            DecodingError: the prefix does not fit.
        """
        torch, search = self._torch(), self._search(settings)
        [status], sources = self._read([text], search.settings.max_source)
        if status != "ok":
            return Explanation(text=text, translation=Translation(text="", status=status), settings=search.settings)
        job = self._job(sources[0], prefix, search)
        hypotheses, tree = torch.search_tree(job, search)
        [translation] = self._guarded(self._translations([hypotheses], [job], search), [text], sources, search)
        [attention] = torch.attention([(job.sources, hypotheses[0].tokens)])
        return Explanation(
            text=text,
            translation=translation,
            settings=search.settings,
            source=tuple(self.bundle.source_tokenizer.tokens(job.sources[0])),
            unknown=self.unknown(text),
            attention=attention,
            attention_layer=torch.alignment.module,
            alignment=torch.alignment,
            tree=tree,
            tree_tokens=tuple(self.bundle.target_tokenizer.tokens([node.token for node in tree.nodes])),
        )

    def score(self, pairs: Sequence[tuple[str, str]], **settings: Any) -> list[Translation]:
        """Score given translations: return each target with the log probabilities that the model gives its tokens.

        A pair is not scored, and its `status` gives the reason, if its source or target is blank, is not valid Unicode,
        or has more tokens than `max_source`. `settings` are decoding settings by name, which override the run's own.

        Raises:
            ConfigError: a setting is unknown or out of range.
        """
        decoding = changed_decoding(self.bundle.configuration.decoding, settings)
        statuses, sources = self._read([source for source, _ in pairs], decoding.max_source)
        targets = self._targets([target for _, target in pairs], decoding.max_source)
        both: list[Status] = [one if one != "ok" else other for one, (other, _) in zip(statuses, targets, strict=True)]
        places = [place for place, status in enumerate(both) if status == "ok"]
        scores = self.engine.score([(sources[place], targets[place][1]) for place in places])
        results = [Translation(text=target, status=status) for (_, target), status in zip(pairs, both, strict=True)]
        for place, log_probs in zip(places, scores, strict=True):
            results[place] = self._scored(pairs[place][1], targets[place][1], log_probs, decoding)
        return results

    def _torch(self) -> "TorchEngine":
        """Return the engine if it is the engine torch with one model, whose computation can be inspected."""
        if len(self._bundles) > 1:
            folders = ", ".join(str(bundle.folder) for bundle in self._bundles)
            raise ConfigError(f"an ensemble ({folders}) cannot be inspected: explain or explore one of its models")
        from glassformer.decoding.torch_engine import TorchEngine

        if not isinstance(self.engine, TorchEngine):
            raise ConfigError(
                f"the engine {self.engine.name} does not show what it computes: choose the engine torch, on a run's "
                "own folder"
            )
        return self.engine

    def _search(
        self, settings: Mapping[str, Any], n_best: int = 1, sample: bool = False, log_probs: bool = True
    ) -> Search:
        decoding = changed_decoding(self.bundle.configuration.decoding, settings)
        beam_size = decoding.beam_size if "beam_size" in settings else 1
        if sample and max(beam_size, n_best) > 1:
            raise ConfigError("sampling draws one output per text: leave out beam_size and n_best")
        if sample and settings.get("retry"):
            raise ConfigError("decoding.retry searches again, and samples are not searched: leave one of them out")
        return Search(settings=decoding, n_best=n_best, sample=sample, log_probs=log_probs or decoding.retry)

    def _begin(
        self,
        texts: Sequence[str],
        prefixes: Sequence[str],
        search: Search,
        seeds: Sequence[int],
        *,
        links: bool = False,
        guards: bool = True,
        terms: Terms,
    ) -> Iterator[Translation]:
        """Start translating some texts; return an iterator that waits for the translations.

        For sampling, `seeds` tells the random numbers of the texts apart, such as by their indices in the whole input.
        """
        statuses, sources = self._read(texts, search.settings.max_source)
        jobs: dict[Job, list[int]] = {}  # each distinct job, with the indices of its texts
        for place, source in sources.items():
            seed = search.settings.seed * 1_000_003 + seeds[place] if search.sample else 0
            jobs.setdefault(self._job(source, prefixes[place], search, seed), []).append(place)
        linked = texts if links else None
        found = self._finish(statuses, jobs, self.engine.decode(list(jobs), search), search, linked)
        retries = search.settings.retry and not search.sample
        once = replace(search, settings=replace(search.settings, retry=False))
        with_terms = {place: some for place in sources if (some := terms.of(texts[place]))}
        if with_terms:
            job_of = {place: job for job, places in jobs.items() for place in places}
            found = self._with_terms(found, _Asked(texts, seeds, with_terms, job_of, terms, once, links))
        if not (guards or retries):
            return found
        guarded = self._guarded(found, texts, sources, search)
        return self._retried(guarded, texts, prefixes, sources, search, links, terms) if retries else guarded

    def _finish(
        self,
        statuses: Sequence[Status],
        jobs: Mapping[Job, Sequence[int]],
        found: Iterable[list[Hypothesis]],
        search: Search,
        linked: Sequence[str] | None,
    ) -> Iterator[Translation]:
        """Yield one translation per text, once the hypotheses of all jobs are found, with links to `linked` texts."""
        results = self._results(jobs, list(found), search, linked)
        for place, status in enumerate(statuses):
            yield results[place] if place in results else Translation(text="", status=status)

    def _results(
        self,
        jobs: Mapping[Job, Sequence[int]],
        found: Sequence[list[Hypothesis]],
        search: Search,
        linked: Sequence[str] | None,
    ) -> dict[int, Translation]:
        """Return the translation of each job's texts, by the indices of the texts, with links to `linked` texts."""
        translations = self._translations(found, list(jobs), search)
        results = {place: one for one, places in zip(translations, jobs.values(), strict=True) for place in places}
        return results if linked is None else dict(self._linked(linked, jobs, found, results))

    def _with_terms(self, found: Iterable[Translation], asked: "_Asked") -> Iterator[Translation]:
        """Yield the translations, with the terms of their texts in them.

        A search for outputs with spans or untranslated terms often goes astray after them, because the model has never
        seen their tokens there; so they are placed in the translation of the rest, if possible.
        """
        results, terms = dict(enumerate(found)), asked.terms
        lacking = {place: some for place in terms if (some := missing_terms(terms[place], results[place].text))}
        for place in terms:
            results[place] = _kept(results[place], terms[place], "lost" if place in lacking else "output")
        odd = {place for place, some in lacking.items() if any(term.kind != "translated" for term in some)}
        ways = ((self._placed, odd), (self._searched, lacking), (self._placed, lacking), (self._cut, lacking))
        for way, places in ways:
            still = {place: lacking[place] for place in places if results[place].kept == "lost"}
            for place, one in way(asked, still) if still else ():
                if not missing_terms(terms[place], one.text):
                    results[place] = _kept(one if asked.linked else _without_links(one), terms[place], one.kept)
        yield from (results[place] for place in range(len(asked.texts)))

    def _searched(self, asked: "_Asked", lacking: Mapping[int, Sequence[Term]]) -> Iterator[tuple[int, Translation]]:
        """Yield the index and the translation of each text whose terms a search can write."""
        if asked.search.sample or not self.engine.constrains:
            return
        jobs: dict[Job, list[int]] = {}
        for place in lacking:
            phrases = tuple(spellings_of(term, self.bundle.target_tokenizer) for term in asked.terms[place])
            size = asked.search.beam_size * (1 + sum(max(map(len, each), default=0) for each in phrases))
            if all(phrases) and size <= MOST_HYPOTHESES:
                jobs.setdefault(asked.jobs[place]._replace(phrases=phrases), []).append(place)
        found = list(self.engine.decode(list(jobs), replace(asked.search, edges=self._edges)))
        several = {job: each for job, each in zip(jobs, found, strict=True) if each}
        linked = asked.texts if asked.linked else None
        results = self._results({job: jobs[job] for job in several}, list(several.values()), asked.search, linked)
        for place, one in results.items():
            if one.status == "ok" or asked.jobs[place].prefix:  # an output that does not end went astray
                yield place, replace(one, kept="search")

    def _placed(self, asked: "_Asked", lacking: Mapping[int, Sequence[Term]]) -> Iterator[tuple[int, Translation]]:
        """Yield the index of each text, and its translation with its terms at the aligned places.

        Spans are taken out of a text before it is translated; terms of a glossary replace their translations.
        """
        free = {place: some for place, some in lacking.items() if not asked.jobs[place].prefix}
        spans = {
            place: stripped(asked.texts[place], [term for term in some if term.kind == "span"])
            for place, some in free.items()
        }
        whole = [place for place, one in spans.items() if not one.gaps]
        spans = {place: one for place, one in spans.items() if one.gaps and asked.wanted.leave_words(one.text)}
        found = self._linked_outputs(asked, {place: [one.text] for place, one in spans.items()}, asked.wanted)
        for (place, without), one in zip(spans.items(), found, strict=True):
            made = [placed_spans(without, output.text, output.links) for output in (one, *one.alternatives)]
            yield place, _arranged(asked.texts[place], one, made)
        found = self._linked_outputs(asked, {place: [asked.texts[place]] for place in whole}, Terms(protect=False))
        for place, one in zip(whole, found, strict=True):
            each = [replaced_terms(output.text, output.links, free[place]) for output in (one, *one.alternatives)]
            if each[0]:
                yield place, _arranged(asked.texts[place], one, each)

    def _cut(self, asked: "_Asked", lacking: Mapping[int, Sequence[Term]]) -> Iterator[tuple[int, Translation]]:
        """Yield the index of each text, and its translation, which is that of its pieces between all of its terms."""
        cuts = {
            place: pieces_around(asked.texts[place], asked.terms[place])
            for place in lacking
            if not asked.jobs[place].prefix
        }
        sides = {place: [one.text for one in pieces if one.is_translated] for place, pieces in cuts.items()}
        found = self._linked_outputs(asked, sides, asked.wanted)
        for place, pieces in cuts.items():
            yield place, _joined(asked.texts[place], pieces, found)

    def _linked_outputs(
        self, asked: "_Asked", texts: Mapping[int, Sequence[str]], terms: Terms
    ) -> Iterator[Translation]:
        """Yield the translations, with links, of the texts that take the place of some of those that were asked."""
        every = [text for several in texts.values() for text in several]
        seeds = [asked.seeds[place] for place, several in texts.items() for _ in several]
        if every:
            yield from self._begin(every, [""] * len(every), asked.search, seeds, links=True, guards=False, terms=terms)

    @cached_property
    def _edges(self) -> WordEdges:
        """How the target vocabulary's tokens join."""
        return WordEdges(*(tuple(edge_kind(token[one:][:1]) for token in self._tokens) for one in (0, -1)))

    def guards(self, **settings: Any) -> Guards | None:
        """Return the run's guards, or None if they were not calibrated on outputs of this search.

        Without them, translations are only suspicious if they are copies of the source, or if their numbers differ.
        `settings` are decoding settings by name, which override the run's own.

        Raises:
            CheckpointError: the file of the guards is damaged.
            ConfigError: a setting is unknown or out of range.
        """
        return self._guards(self._search(settings))

    def _guards(self, search: Search) -> Guards | None:
        found = self._stored_guards
        fits = found and not search.sample and found.search == of_search(search.settings)
        return found if fits else None

    @cached_property
    def _stored_guards(self) -> Guards | None:
        return Guards.load(self.bundle.folder) if len(self._bundles) == 1 else None

    def _guarded(
        self, found: Iterable[Translation], texts: Sequence[str], sources: Mapping[int, Sources], search: Search
    ) -> Iterator[Translation]:
        """Yield the translations of some texts with what the guards say of them."""
        guards = self._guards(search)
        for place, one in enumerate(found):
            yield self._judged(one, texts[place], sources[place][0], guards) if place in sources else one

    def outputs(self, texts: Sequence[str], translations: Sequence[Translation]) -> list[ModelOutput]:
        """Return the translated ones of some texts as the guards look at them."""
        _, sources = self._read(texts, self.bundle.configuration.decoding.max_source)
        pairs = list(zip(texts, translations, strict=True))
        return [self._output(*pairs[place], source) for place, (source, *_) in sources.items()]

    def _output(self, text: str, one: Translation, source: Ids) -> ModelOutput:
        tokenizers = (self.bundle.source_tokenizer, self.bundle.target_tokenizer)
        return ModelOutput(
            source=text,
            target=one.text,
            source_ids=source,
            tokens=one.tokens,
            token_log_probs=one.token_log_probs,
            unknown=source.count(tokenizers[0].unk_id) + one.tokens.count(self._tokens[tokenizers[1].unk_id]),
        )

    def _retried(
        self,
        found: Iterable[Translation],
        texts: Sequence[str],
        prefixes: Sequence[str],
        sources: Mapping[int, Sources],
        search: Search,
        links: bool,
        terms: Terms,
    ) -> Iterator[Translation]:
        """Yield the translations; in place of a suspicious one, the least suspicious that other searches find."""
        results = list(found)
        best = {place: replace(one, retry="first") for place, one in enumerate(results) if one.reasons}
        once = replace(search, settings=replace(search.settings, retry=False), n_best=1)
        guards = self._guards(search)

        def suspicion(place: int) -> Callable[[Translation], tuple[int, float]]:
            return lambda one: (
                bool(one.reasons) + (one.kept == "lost"),
                self._suspicion(one, texts[place], sources[place][0], guards),
            )

        for retry, attempt in self._attempts(once):
            if not (left := [place for place, one in best.items() if one.reasons]):
                break
            asked = [texts[place] for place in left], [prefixes[place] for place in left]
            tried = attempt(*asked, once, links, terms)
            for place, one in zip(left, tried, strict=True):
                if one is not None and one.text != best[place].text:
                    other = replace(self._judged(one, texts[place], sources[place][0], guards), retry=retry)
                    best[place] = min(best[place], other, key=suspicion(place))
        for place, first in enumerate(results):
            one = best.get(place, first)
            others = (replace(first, alternatives=()), *first.alternatives)[: search.n_best - 1]
            yield one if one.retry in ("", "first") else replace(one, alternatives=others)

    def _attempts(self, search: Search) -> Iterator[tuple[Retry, "_Attempt"]]:
        """Yield the searches to try after this one."""
        yield ("beam" if search.beam_size == 1 else "greedy"), self._by_other_beam
        if "sampling" not in self.engine.cannot:
            for temperature in TEMPERATURES:
                yield "samples", partial(self._by_samples, temperature)
        yield "parts", self._by_parts

    def _by_other_beam(
        self, texts: Sequence[str], prefixes: Sequence[str], search: Search, links: bool, terms: Terms
    ) -> list[Translation | None]:
        """Return the outputs of greedy search, or of a beam after greedy search."""
        size = OTHER_BEAM if search.beam_size == 1 else 1
        other = replace(search, settings=replace(search.settings, beam_size=size))
        return [*self._begin(texts, prefixes, other, range(len(texts)), links=links, guards=False, terms=terms)]

    def _by_samples(
        self,
        temperature: float,
        texts: Sequence[str],
        prefixes: Sequence[str],
        search: Search,
        links: bool,
        terms: Terms,
    ) -> list[Translation | None]:
        """Return for each text the sample that is most like the others, if possible one that sets off no guard."""
        from glassformer.evaluation.minimum_risk import least_risk

        seeds = [number for number in range(DRAWN_OUTPUTS) for _ in texts]  # the same for each text, wherever it stands
        sampling = replace(search, sample=True, settings=replace(search.settings, temperature=temperature))
        drawn = [*texts] * DRAWN_OUTPUTS, [*prefixes] * DRAWN_OUTPUTS, sampling, seeds
        found = list(self._begin(*drawn, links=links, guards=False, terms=terms))
        guards, (_, sources) = self._guards(search), self._read(texts, search.settings.max_source)
        chosen: list[Translation | None] = []
        for place, text in enumerate(texts):
            several, source = found[place :: len(texts)], sources[place][0]
            calm = [one for one in several if not self._reasons(self._output(text, one, source), guards)]
            best = calm or several
            chosen.append(best[least_risk([one.text for one in best])])
        return chosen

    def _by_parts(
        self, texts: Sequence[str], prefixes: Sequence[str], search: Search, links: bool, terms: Terms
    ) -> list[Translation | None]:
        """Return the joined outputs of the parts of each text; None for a text with one part or with a prefix."""
        spans = [
            several if len(several := clause_spans(text)) > 1 and not prefix else []
            for text, prefix in zip(texts, prefixes, strict=True)
        ]
        parts = [text[begin:end] for text, several in zip(texts, spans, strict=True) for begin, end in several]
        options: dict[str, Any] = {"links": links, "guards": False, "terms": terms}
        found = iter(list(self._begin(parts, [""] * len(parts), search, range(len(parts)), **options)))
        return [
            self._joined(text, several, [next(found) for _ in several], search)
            for text, several in zip(texts, spans, strict=True)
        ]

    def _joined(
        self, text: str, spans: Sequence[Span], parts: Sequence[Translation], search: Search
    ) -> Translation | None:
        """Return the translations of the parts of a text as one; None if there are none."""
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
            score=score_of(log_prob, penalty_of(len(tokens), search.settings)),
            tokens=tuple(tokens),
            token_log_probs=tuple(log_probs),
            links=tuple(links),
            status="max_length" if any(one.status == "max_length" for one in parts) else "ok",
        )

    def _suspicion(self, one: Translation, text: str, source: Ids, guards: Guards | None) -> float:
        output = self._output(text, one, source)
        if guards is None:
            return suspicion(signals(output, None, UNCALIBRATED), UNCALIBRATED, {})
        return guards.suspicion(output)

    def _reasons(self, output: ModelOutput, guards: Guards | None) -> tuple[str, ...]:
        if guards is None:
            return above(signals(output, None, UNCALIBRATED), UNCALIBRATED)
        return guards.reasons(output)

    def _judged(self, one: Translation, text: str, source: Ids, guards: Guards | None) -> Translation:
        output = self._output(text, one, source)
        why = self._reasons(output, guards)
        confidence = guards.confidence(one.token_log_probs) if guards else None
        if not why and confidence is None:
            return one
        status: Status = "suspicious" if why and one.status == "ok" else one.status
        return replace(one, status=status, reasons=why, confidence=confidence)

    def _read(self, texts: Sequence[str], longest: int) -> tuple[list[Status], dict[int, Sources]]:
        """Return each text's status and, by the index of each translatable text, the ids that the models read."""
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

    def _targets(self, texts: Sequence[str], longest: int) -> list[tuple[Status, Ids]]:
        """Return the status of each target to score, and its ids, empty if it cannot be scored."""
        statuses = [_status(text) for text in texts]
        writable = [text for text, status in zip(texts, statuses, strict=True) if status == "ok"]
        encoded = iter(_with_eos(self.bundle.target_tokenizer, writable))
        longest = min(longest, self.engine.longest)
        targets: list[tuple[Status, Ids]] = []
        for status in statuses:
            ids = next(encoded) if status == "ok" else ()
            targets.append(("too_long" if len(ids) > longest else status, ids))
        return targets

    def _job(self, sources: Sources, prefix: str, search: Search, seed: int = 0) -> Job:
        extra = search.settings.extra_length
        lengths = (
            max_length(bundle.model_config, len(one), extra) for bundle, one in zip(self._bundles, sources, strict=True)
        )
        begin = tuple(self.bundle.target_tokenizer.encode(prefix)) if prefix else ()
        return Job(sources, begin, min(self.engine.longest, *lengths), seed)

    def unknown(self, text: str) -> tuple[str, ...]:
        """Return a text's tokens that are not in the source vocabulary, which the model reads as `<unk>`."""
        tokenizer = self.bundle.source_tokenizer
        tokens, ids = tokenizer.split(text), tokenizer.encode(text)
        of_tokens = ids[len(ids) - len(tokens) :]  # without `<bos>`, with which some tokenizers begin
        return tuple(token for token, id in zip(tokens, of_tokens, strict=True) if id == tokenizer.unk_id)

    def _translations(
        self, found: Sequence[Sequence[Hypothesis]], jobs: Sequence[Job], search: Search
    ) -> list[Translation]:
        """Return each job's best translation, with the next best outputs as its alternatives."""
        texts = iter(self.bundle.target_tokenizer.decode_all([one.tokens for several in found for one in several]))
        results = []
        for several, job in zip(found, jobs, strict=True):
            best, *others = [self._one(next(texts), one, job.max_length, search.log_probs) for one in several]
            results.append(replace(best, alternatives=tuple(others)) if others else best)
        return results

    def _linked(
        self,
        texts: Sequence[str],
        jobs: Mapping[Job, Sequence[int]],
        found: Sequence[Sequence[Hypothesis]],
        translations: Mapping[int, Translation],
    ) -> Iterator[tuple[int, Translation]]:
        """Yield the index and the translation, with links, of each translated text."""
        several_each = zip(jobs, found, strict=True)
        attention = iter(
            self.engine.attention([(job.sources, one.tokens) for job, several in several_each for one in several])
        )
        for places, several in zip(jobs.values(), found, strict=True):
            looks = [(target_words(self.bundle.target_tokenizer, one.tokens), next(attention)) for one in several]
            for place in places:
                best, text = translations[place], texts[place]
                words = source_words(self.bundle.source_tokenizer, text)
                outputs = zip((best, *best.alternatives), looks, strict=True)
                first, *others = [replace(one, links=link_words(text, one.text, words, *look)) for one, look in outputs]
                yield place, replace(first, alternatives=tuple(others))

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
        """The target vocabulary's tokens."""
        return self.bundle.target_tokenizer.tokens(range(len(self.bundle.target_tokenizer)))

    def _scored(self, text: str, target: Ids, log_probs: Sequence[float], decoding: DecodingConfig) -> Translation:
        hypothesis = Hypothesis.ending_with(self.bundle.model_config.eos_id, target, log_probs, decoding)
        return replace(self._one(text, hypothesis, longest=0), text=text)


def score_line(scored: Translation) -> str:
    """Return log_prob, score and number of tokens of a scored target, separated by tabs; "" if it was not scored."""
    return f"{scored.log_prob:.4f}\t{scored.score:.4f}\t{len(scored.tokens)}" if scored.status == "ok" else ""


def status_entry(line: int, one: Translation) -> str:
    """Return the line of a file of statuses (JSONL) for a line of the input, from 1."""
    why = f', "reasons": {json.dumps(one.reasons)}' if one.reasons else ""
    how = "".join(f', "{name}": "{value}"' for name in ("retry", "kept") if (value := getattr(one, name)))
    status = f'"status": "{one.status}"{why}{how}'
    return f'{{"line": {line}, {status}}}\n'  # json.dumps of everything takes ten times as long


def _engine(bundle: Bundle, model: "Transformer | Engine", *others: Engine) -> Engine:
    """Return the engine of a model, or of an ensemble."""
    if isinstance(model, Engine) and not others:
        return model
    from glassformer.decoding.torch_engine import TorchEngine

    first = model if isinstance(model, Engine) else TorchEngine(model, alignment=bundle.alignment)
    members = [one for one in (first, *others) if isinstance(one, TorchEngine)]
    if len(members) <= len(others):
        raise ConfigError("an ensemble needs models on the engine torch: choose the engine torch for all of them")
    return TorchEngine(
        *(model for member in members for model in member.models),
        workers=members[0].workers,
        budget=members[0].budget,
        alignment=members[0].alignment,
    )


def _terms(search: Search, glossary: Glossary | Mapping[str, str] | None) -> Terms:
    known = glossary if isinstance(glossary, Glossary | None) else Glossary.of(glossary)
    return Terms(protect=search.settings.protect, glossary=known)


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
            for source_span, target_span in one.links:
                aligned.append(Link(_moved(source_span, piece.begin), _moved(target_span, begin)))
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


def _moved(span: Span, by: int) -> Span:
    return span[0] + by, span[1] + by


def _links_of_words(source: str, target: str, aligned: Sequence[Link]) -> Iterator[Link]:
    """Yield a link for each word of the target in an aligned part, to the first word of the part of the source."""
    words = word_spans(source)
    for word in word_spans(target):
        parts = (link.source for link in aligned if _overlap(link.target, word))
        found = next((one for part in parts for one in words if _overlap(one, part)), None)
        if found:
            yield Link(found, word)


def _overlap(one: Span, other: Span) -> bool:
    return one[0] < other[1] and other[0] < one[1]


def _with_eos(tokenizer: Tokenizer, texts: Sequence[str]) -> list[Ids]:
    return [(*ids, tokenizer.eos_id) for ids in tokenizer.encode_all(texts)]


def _status(text: str) -> Status:
    """Return "ok" if a text can be tokenised at all, and the reason otherwise."""
    if is_normal(text):
        return "ok" if text else "blank"
    if not normalise(text):
        return "blank"
    return "undecodable" if any("\ud800" <= character <= "\udfff" for character in text) else "ok"


def _check_targets(first: Bundle, other: Bundle) -> None:
    """Raise an error if the models of an ensemble have different target vocabularies."""
    ours, theirs = first.target_tokenizer, other.target_tokenizer
    problem = f"the models of an ensemble must share their target tokens, but {first.folder} and {other.folder}"
    remedy = (
        "train both with the same [data] and [tokenizer] settings, and with the same run.seed unless data.valid_source "
        "names validation files"
    )
    if (ours.kind, len(ours)) != (theirs.kind, len(theirs)):
        sizes = f"{len(ours):,} {ours.kind} and {len(theirs):,} {theirs.kind}"
        raise ConfigError(f"{problem} have {sizes} tokens; {remedy}")
    pairs = zip(ours.tokens(range(len(ours))), theirs.tokens(range(len(theirs))), strict=True)
    for id, (one, another) in enumerate(pairs):
        if one != another:
            raise ConfigError(f"{problem} differ first in id {id}, {quoted(one)} and {quoted(another)}; {remedy}")


def _one_line(text: str) -> str:
    """Return the text with spaces in place of line ends, which a model with byte fallback can produce."""
    return text.replace("\n", " ").replace("\r", " ")


def _windows(texts: Iterable[str | None], window: int) -> Iterator[list[str]]:
    """Yield lists of at most `window` texts, or fewer if the texts have many characters.

    An empty list is yielded for each None among the texts (no more are available for now), and at the end.
    """
    held: list[str] = []
    characters = 0
    for text in chain(texts, [None]):
        if text is not None:
            held.append(text)
            characters += len(text)
        if held and (text is None or len(held) == window or characters >= WINDOW_CHARACTERS):
            yield held
            held, characters = [], 0
        if text is None:
            yield []
