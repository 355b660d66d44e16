"""Translate texts, with an engine and its models' tokenizers. Importing this module does not import torch.

Each text has exactly one result, in order; a text that cannot be translated has an empty result whose status says why.
"""

from collections import deque
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

from glassformer.bundle import Bundle
from glassformer.decoding.engine import Engine, Ids, Job, Need, Search, Sources, check_n_best
from glassformer.decoding.hypothesis import Hypothesis, max_length
from glassformer.decoding.options import EngineName, Quantization
from glassformer.errors import ConfigError, ShapeError, quoted
from glassformer.evaluation.guards import Guards
from glassformer.evaluation.signals import ModelOutput
from glassformer.recipes.configuration import DecodingConfig
from glassformer.recipes.toml import changed_decoding
from glassformer.text.glossary import Glossary
from glassformer.text.links import link_words, source_words, target_words
from glassformer.text.normalisation import is_normal, normalise
from glassformer.text.placeholders import Masked, has_placeholders, masked
from glassformer.text.terms import Terms
from glassformer.text.tokenizer import Tokenizer
from glassformer.translating.judge import Judge
from glassformer.translating.keeping import TermKeeper
from glassformer.translating.request import Request
from glassformer.translating.rescoring import Candidates, Proposal, Rescorer, Rescoring, is_backward
from glassformer.translating.retrying import SecondSearches
from glassformer.translating.translation import Explanation, Status, Translation
from glassformer.translating.tuned_system import System

if TYPE_CHECKING:
    from glassformer.corpus.shortlist import Shortlist
    from glassformer.decoding.torch_engine import TorchEngine
    from glassformer.model.transformer import Transformer

__all__ = ["Translator"]

WINDOW_CHARACTERS = 4_000_000
"""Approximate maximum number of characters of a stream in memory at a time; the last text read may exceed it."""


class Translator:
    """A translator with one model, with an ensemble of several, or with models that rescore its outputs.

    >>> import glassformer as gf
    >>> translator = gf.Translator.load("runs/demo")                                 # doctest: +SKIP
    >>> translator.translate(["The black cat sat on the couch."])[0].text            # doctest: +SKIP
    'Le chat noir était assis sur le canapé.'
    """

    def __init__(
        self,
        bundle: Bundle,
        model: "Transformer | Engine",
        *others: "Translator",
        rescoring: Rescoring | None = None,
    ) -> None:
        self.bundle = bundle
        self._rescoring = rescoring
        self._bundles: tuple[Bundle, ...] = (bundle, *(one for other in others for one in other._bundles))
        for one in self._bundles[1:]:
            _check_targets(bundle, one)
        self.engine: Engine = _engine(bundle, model, *(other.engine for other in others))

    @classmethod
    def load(
        cls,
        folder: str | Path,
        *others: str | Path,
        rescore: Sequence[str | Path] = (),
        lexicon: bool = False,
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

        Rescoring models score whole outputs, so they may have any tokenizer, order and direction. The outputs of all
        searches are ranked by the weighted sum of the models' log probabilities. `glassformer tune` fits the weights;
        without it, all models count alike.

        Args:
            folder: folder of the run or the export; or a file that `glassformer tune` wrote, which names all models.
            others: folders of the ensemble's other models.
            rescore: folders of the models that rescore the outputs.
            lexicon: whether the run's lexicon proposes and weighs outputs by analogy with training words.
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

        system = _system(Path(folder), list(map(Path, others)), list(map(Path, rescore)), lexicon)
        bundle = Bundle.load(system.run)
        if changes := system.settings | dict(settings or {}):
            decoding = changed_decoding(bundle.configuration.decoding, changes)
            bundle = replace(bundle, configuration=replace(bundle.configuration, decoding=decoding))
        wanted: set[Need] = {*needs, "ensemble"} if system.ensemble else {*needs}
        how: dict[str, Any] = {"quantization": quantization, "device": device}
        found = load_engine(bundle, EngineRequest(engine=engine, workers=workers, needs=wanted, **how))
        members = [cls.load(other, **how) for other in system.ensemble]
        if not system.rescores:
            return cls(bundle, found, *members)
        how |= {"engine": engine, "workers": workers}
        return cls(bundle, found, *members, rescoring=cls._rescorers(system, bundle, how))

    @classmethod
    def _rescorers(cls, system: System, bundle: Bundle, how: Mapping[str, Any]) -> Rescoring:
        """Load the models of a system that rescore the outputs of its run; `how` are arguments of `load`."""
        from glassformer.corpus.analogy import LEXICON, Lexicon

        models = [cls.load(folder, **how) for folder in system.rescore]
        ours = bundle.configuration.data
        return Rescoring(
            models=tuple(Rescorer(one, is_backward(ours, one.bundle.configuration.data)) for one in models),
            lexicon=Lexicon.load(system.run / LEXICON, bundle.target_tokenizer) if system.lexicon else None,
            weights=system.weights.vector,
        )

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
            log_probs: whether to compute all log probabilities and scores; CTranslate2 is much faster without them, and
                gives at most the sums.
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
        how: dict[str, Any] = {"terms": _terms(search, glossary), "links": links, "guards": guards}
        return list(self._begin(Request(texts, prefixes, range(len(texts)), search, **how)))

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
        how: dict[str, Any] = {"terms": _terms(search, glossary), "links": links, "guards": guards}
        window = search.settings.window
        waiting: deque[Iterator[Translation]] = deque()
        ahead = 1 if self.engine.reads_ahead and window > 1 else 0
        first = 0
        for held in _windows(texts, window):
            if held:
                seeds = range(first, first + len(held))
                waiting.append(self._begin(Request(held, [prefix] * len(held), seeds, search, **how)))
            first += len(held)
            while len(waiting) > (ahead if held else 0):
                yield from waiting.popleft()

    def explain(self, text: str, *, prefix: str = "", **settings: Any) -> Explanation:
        """Return the translation of a text, its cross-attention to the text, and the tree of the search.

        The search is among all tokens, whatever the setting `shortlist` says.

        Takes the arguments of `translate`.

        Raises:
            ConfigError: the translator is an ensemble, or a setting is unknown or out of range.
            DecodingError: the prefix does not fit.
        """
        torch, search, masked = self._torch(), self._search({**settings, "shortlist": 0}), self.masked(text)
        [status], sources = self._read([masked.text], search.settings.max_source)
        if status != "ok":
            return Explanation(text=text, translation=Translation(text="", status=status), settings=search.settings)
        job = self._job(sources[0], masked.in_target(prefix), search)
        hypotheses, tree = torch.search_tree(job, search)
        [found] = self._translations([hypotheses], [job])
        found = _restored(found, masked) if self._has_placeholders else found
        [attention] = torch.attention([(job.sources, hypotheses[0].tokens)])
        return Explanation(
            text=text,
            translation=self._judge(self._guards(search)).judged(found, text, job.sources[0]),
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
        masked = [self.masked(source) for source, _ in pairs]
        statuses, sources = self._read([one.text for one in masked], decoding.max_source)
        written = [one.in_target(target) for one, (_, target) in zip(masked, pairs, strict=True)]
        targets = self._targets(written, decoding.max_source)
        both: list[Status] = [one if one != "ok" else other for one, (other, _) in zip(statuses, targets, strict=True)]
        places = [place for place, status in enumerate(both) if status == "ok"]
        scores = self.engine.score([(sources[place], targets[place][1]) for place in places])
        results = [Translation(text=target, status=status) for (_, target), status in zip(pairs, both, strict=True)]
        for place, log_probs in zip(places, scores, strict=True):
            results[place] = self._scored(pairs[place][1], targets[place][1], log_probs, decoding)
        if self._rescoring and places:
            scored = [results[place] for place in places]
            totals = self._rescoring.scores([pairs[place] for place in places], scored)
            for place, one, score in zip(places, scored, totals, strict=True):
                results[place] = replace(one, score=score)
        return results

    def candidates(self, texts: Sequence[str], **settings: Any) -> list[Candidates]:
        """Return the scored candidates of each text, among which rescoring chooses.

        There are none for a text that cannot be translated. `settings` are decoding settings by name, which override
        the run's own.

        Raises:
            ConfigError: the translator has no models that rescore, or a setting is unknown or out of range.
        """
        search = self._search(settings)
        masked = [self.masked(text) for text in texts]
        _, sources = self._read([one.text for one in masked], search.settings.max_source)
        jobs = [self._job(one, "", search) for one in sources.values()]
        found = list(self.engine.decode(jobs, _wide(search)))
        scored = self._candidates([masked[place] for place in sources], jobs, found, search)
        there = dict(zip(sources, scored, strict=True))
        return [there.get(place) or Candidates.none() for place in range(len(texts))]

    def _torch(self) -> "TorchEngine":
        """Return the engine if it is the engine torch with one model, whose computation can be inspected."""
        if self._rescoring:
            raise ConfigError(
                f"outputs that several models have scored cannot be inspected: explain or explore {self.bundle.folder} "
                "without the other models"
            )
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
        if sample and self._rescoring:
            raise ConfigError("samples are not ranked: leave out sampling, or the models that rescore outputs")
        if sample and settings.get("retry"):
            raise ConfigError("decoding.retry searches again, and samples are not searched: leave one of them out")
        return Search(settings=decoding, n_best=n_best, sample=sample, log_probs=log_probs or decoding.retry)

    def _begin(self, asked: Request) -> Iterator[Translation]:
        """Start translating some texts; return an iterator that waits for the translations."""
        retries = asked.search.settings.retry and not asked.search.sample
        guards = self._guards(asked.search) if asked.guards or retries else None
        search = replace(asked.search, sums=guards is not None)
        asked = asked._replace(search=search, masked=[self.masked(text) for text in asked.texts])
        statuses, sources = self._read([one.text for one in asked.masked], search.settings.max_source)
        jobs: dict[Job, list[int]] = {}  # each distinct job, with the indices of its texts
        for place, source in sources.items():
            seed = search.settings.seed * 1_000_003 + asked.seeds[place] if search.sample else 0
            prefix = asked.masked[place].in_target(asked.prefixes[place])
            jobs.setdefault(self._job(source, prefix, search, seed), []).append(place)
        terms = {place: some for place in sources if (some := asked.terms.of(asked.texts[place]))}
        if self._rescoring and not search.sample:
            check_n_best(search.n_best, search.beam_size)
            hypotheses = self._rescored(jobs, self.engine.decode(list(jobs), _wide(search)), asked)
        else:
            hypotheses = self.engine.decode(list(jobs), search)
        found = self._finish(statuses, jobs, hypotheses, asked)
        if terms:
            found = TermKeeper(asked.within(), terms, self.bundle.target_tokenizer, self._begin).kept(found)
        if not (asked.guards or retries):
            return found
        judge, read = self._judge(guards), {place: source for place, (source, *_) in sources.items()}
        judged = _judged(judge, found, asked.texts, read)
        draws = "sampling" not in self.engine.cannot
        return SecondSearches(asked, read, judge, self._begin, draws).improved(judged) if retries else judged

    def _rescored(
        self, jobs: Mapping[Job, Sequence[int]], found: Iterable[list[Hypothesis]], asked: Request
    ) -> Iterator[list[Hypothesis]]:
        """Yield the best candidates of each job by all models; the run's own outputs if a model can score none."""
        assert self._rescoring
        texts, own = [asked.masked[places[0]] for places in jobs.values()], list(found)
        scored = self._candidates(texts, list(jobs), own, asked.search)
        for candidates, several in zip(scored, own, strict=True):
            yield (candidates.ranked(self._rescoring.weights) or several)[: asked.search.n_best]

    def _candidates(
        self, texts: Sequence[Masked], jobs: Sequence[Job], found: Sequence[Sequence[Hypothesis]], search: Search
    ) -> list[Candidates]:
        """Return the scored candidates of each job: the run's outputs, then the proposals of the other models.

        The other models get the texts as they are, without this run's placeholder tokens.
        """
        if self._rescoring is None:
            raise ConfigError("no model rescores the outputs: give folders of runs as `rescore`, or set `lexicon`")
        own = iter(self.bundle.target_tokenizer.decode_all([one.tokens for several in found for one in several]))
        originals = [one.original for one in texts]
        others = [
            {text: one.in_target(text) for text in several}
            for one, several in zip(texts, self._rescoring.proposed(originals, search.beam_size), strict=True)
        ]
        written = self._written({text for several in others for text in several.values()})
        proposals = []
        for read, job, several, more in zip(texts, jobs, found, others, strict=True):
            known: dict[str, Ids] = {}
            for one in several:  # the same text may be cut into different tokens: its best output counts
                text = _one_line(next(own))
                known.setdefault(read.restored(text)[0] if self._has_placeholders else text, one.tokens)
            for text, in_target in more.items():
                ids = written.get(in_target, ())
                if 0 < len(ids) <= job.max_length and ids[: len(job.prefix)] == job.prefix:
                    known.setdefault(text, ids)
            proposals.append([Proposal(text, ids) for text, ids in known.items() if _status(text) == "ok"])
        eos_id = self.bundle.model_config.eos_id

        def score(items: Sequence[tuple[int, Ids]]) -> list[Hypothesis]:
            log_probs = self.engine.score([(jobs[place].sources, ids) for place, ids in items])
            pairs = zip(items, log_probs, strict=True)
            return [Hypothesis.ending_with(eos_id, ids, each, search.settings) for (_, ids), each in pairs]

        return self._rescoring.candidates(originals, proposals, score)

    def _written(self, texts: Collection[str]) -> dict[str, Ids]:
        """Return the tokens, including `<eos>`, of each of these texts that the run's vocabulary can write."""
        tokenizer, each = self.bundle.target_tokenizer, sorted(texts)
        encoded = _with_eos(tokenizer, each)
        pairs = zip(each, encoded, tokenizer.decode_all(encoded), strict=True)
        return {text: ids for text, ids, decoded in pairs if decoded == text and tokenizer.unk_id not in ids}

    def _finish(
        self,
        statuses: Sequence[Status],
        jobs: Mapping[Job, Sequence[int]],
        found: Iterable[list[Hypothesis]],
        asked: Request,
    ) -> Iterator[Translation]:
        """Yield one translation per text, once the hypotheses of all jobs are found."""
        results = self._results(jobs, list(found), asked)
        for place, status in enumerate(statuses):
            yield results[place] if place in results else Translation(text="", status=status)

    def _results(
        self, jobs: Mapping[Job, Sequence[int]], found: Sequence[list[Hypothesis]], asked: Request
    ) -> dict[int, Translation]:
        """Return the translation of each job's texts, by the indices of the texts."""
        translations = self._translations(found, list(jobs))
        results = {place: one for one, places in zip(translations, jobs.values(), strict=True) for place in places}
        if asked.links:
            results = dict(self._linked([one.text for one in asked.masked], jobs, found, results))
        if not self._has_placeholders:
            return results
        return {place: _restored(one, asked.masked[place]) for place, one in results.items()}

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
        return found if found and not search.sample and found.fit(search.settings) else None

    @cached_property
    def _stored_guards(self) -> Guards | None:
        return Guards.load(self.bundle.folder) if len(self._bundles) == 1 and not self._rescoring else None

    def _judge(self, guards: Guards | None) -> Judge:
        unknown = self._tokens[self.bundle.target_tokenizer.unk_id]
        return Judge(guards, self.bundle.source_tokenizer.unk_id, unknown)

    def outputs(self, texts: Sequence[str], translations: Sequence[Translation]) -> list[ModelOutput]:
        """Return the translated ones of some texts as the guards look at them."""
        masked = [self.masked(text).text for text in texts]
        _, sources = self._read(masked, self.bundle.configuration.decoding.max_source)
        judge = self._judge(None)
        return [judge.output(translations[place], texts[place], source) for place, (source, *_) in sources.items()]

    def masked(self, text: str) -> Masked:
        """Return a text as the models read it: with placeholder tokens, if the models have them."""
        is_readable = self._has_placeholders and _status(text) == "ok"
        return masked(text, self.bundle.source_tokenizer) if is_readable else Masked(text, text)

    @cached_property
    def _has_placeholders(self) -> bool:
        tokenizers = [self.bundle.target_tokenizer, *(one.source_tokenizer for one in self._bundles)]
        return all(map(has_placeholders, tokenizers))

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
        if prefix and self.bundle.configuration.data.reverse_target:
            raise ConfigError(
                f"{self.bundle.folder} writes from right to left (data.reverse_target = true), so its outputs cannot "
                "begin with a given text: leave out the prefix, or use a run that writes from left to right"
            )
        tokenizer, count = self.bundle.target_tokenizer, search.settings.shortlist
        begin = tuple(tokenizer.encode(prefix)) if prefix else ()
        job = Job(sources, begin, min(self.engine.longest, *lengths), seed)
        if not count or begin:
            return job
        return job._replace(candidates=self._shortlist.of(sources[0], count, (tokenizer.eos_id, tokenizer.unk_id)))

    @cached_property
    def _shortlist(self) -> "Shortlist":
        """The candidates of the first model's source tokens."""
        return self.bundle.shortlist()

    def unknown(self, text: str) -> tuple[str, ...]:
        """Return a text's tokens that are not in the source vocabulary, which the model reads as `<unk>`."""
        tokenizer, text = self.bundle.source_tokenizer, self.masked(text).text
        tokens, ids = tokenizer.split(text), tokenizer.encode(text)
        of_tokens = ids[len(ids) - len(tokens) :]  # without `<bos>`, with which some tokenizers begin
        return tuple(token for token, id in zip(tokens, of_tokens, strict=True) if id == tokenizer.unk_id)

    def _translations(self, found: Sequence[Sequence[Hypothesis]], jobs: Sequence[Job]) -> list[Translation]:
        """Return each job's best translation, with the next best outputs as its alternatives."""
        texts = iter(self.bundle.target_tokenizer.decode_all([one.tokens for several in found for one in several]))
        results = []
        for several, job in zip(found, jobs, strict=True):
            best, *others = [self._one(next(texts), one, job.max_length) for one in several]
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

    def _one(self, text: str, hypothesis: Hypothesis, longest: int) -> Translation:
        return Translation(
            text=_one_line(text),
            log_prob=hypothesis.log_prob,
            score=hypothesis.score,
            tokens=tuple(map(self._tokens.__getitem__, hypothesis.tokens)),
            token_log_probs=hypothesis.token_log_probs,
            status="max_length" if len(hypothesis.tokens) == longest else "ok",
        )

    @cached_property
    def _tokens(self) -> list[str]:
        """The target vocabulary's tokens."""
        return self.bundle.target_tokenizer.tokens(range(len(self.bundle.target_tokenizer)))

    def _scored(self, text: str, target: Ids, log_probs: Sequence[float], decoding: DecodingConfig) -> Translation:
        hypothesis = Hypothesis.ending_with(self.bundle.model_config.eos_id, target, log_probs, decoding)
        return replace(self._one(text, hypothesis, longest=0), text=text)


def _system(run: Path, others: Sequence[Path], rescore: Sequence[Path], lexicon: bool) -> System:
    """Return the system in a file, or the system of these models."""
    system = System.named(run)
    if system.rescores and (others or rescore or lexicon):
        raise ConfigError(
            f"{run} names all models of its system: leave out the ensemble, rescoring models and the lexicon"
        )
    if rescore or lexicon:
        return System.of(run, ensemble=others, rescore=rescore, lexicon=lexicon)
    return replace(system, ensemble=(*system.ensemble, *others))


def _wide(search: Search) -> Search:
    """Return a search for all hypotheses of the beam."""
    return replace(search, n_best=search.beam_size)


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


def _restored(one: Translation, masked: Masked) -> Translation:
    """Return the translation of a masked text with the spans of the text."""
    text, links = masked.restored(one.text, one.links)
    if text == one.text and links == one.links and not one.alternatives:
        return one
    others = tuple(_restored(other, masked) for other in one.alternatives)
    return replace(one, text=text, links=links, alternatives=others)


def _terms(search: Search, glossary: Glossary | Mapping[str, str] | None) -> Terms:
    known = glossary if isinstance(glossary, Glossary | None) else Glossary.of(glossary)
    return Terms(protect=search.settings.protect, glossary=known)


def _judged(
    judge: Judge, found: Iterable[Translation], texts: Sequence[str], sources: Mapping[int, Ids]
) -> Iterator[Translation]:
    """Yield the translations of some texts with what the guards say of them."""
    for place, one in enumerate(found):
        yield judge.judged(one, texts[place], sources[place]) if place in sources else one


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
    if first.configuration.data.reverse_target != other.configuration.data.reverse_target:
        raise ConfigError(
            f"the models of an ensemble write an output together, but of {first.folder} and {other.folder}, one writes "
            "from right to left (data.reverse_target): combine their outputs by --rescore instead of --ensemble"
        )
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
