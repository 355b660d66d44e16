"""Translate texts with an engine and the tokenizers of its models. Importing this module does not import torch.

Each text has exactly one result, in order. A text that cannot be translated has an empty result, whose status gives the
reason.
"""

from collections import deque
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

from glassformer.bundle import Bundle
from glassformer.decoding.engine import Engine, Need, Search
from glassformer.decoding.options import EngineName, Quantization
from glassformer.errors import ConfigError, ShapeError, quoted
from glassformer.evaluation.guards import Guards
from glassformer.evaluation.signals import ModelOutput
from glassformer.recipes.toml import changed_settings
from glassformer.text.glossary import Glossary
from glassformer.text.terms import Terms
from glassformer.translating.combination import Combination
from glassformer.translating.ensemble import check_targets, engine_of
from glassformer.translating.layers import Layers
from glassformer.translating.request import Request
from glassformer.translating.rescoring import Candidates, Rescorer, Rescoring, is_backward
from glassformer.translating.translation import Explanation, Status, Translation, or_empty

if TYPE_CHECKING:
    from glassformer.decoding.torch_engine import TorchEngine
    from glassformer.model.transformer import Transformer

__all__ = ["WINDOW", "Translator"]

WINDOW = 2000
"""Default number of texts of a stream that are read, sorted by length and translated together."""
WINDOW_CHARACTERS = 4_000_000
"""Approximate maximum number of characters of a stream in memory at a time; the last text read may exceed this
maximum."""


class Translator:
    """A translator with one model, with an ensemble of models, or with further models that rescore outputs.

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
        self._bundles: tuple[Bundle, ...] = (bundle, *(one for other in others for one in other._bundles))
        for one in self._bundles[1:]:
            check_targets(bundle, one)
        self.engine: Engine = engine_of(bundle, model, *(other.engine for other in others))
        self._layers = Layers(self._bundles, self.engine, rescoring)

    @classmethod
    def load(
        cls,
        folder: str | Path,
        *others: str | Path,
        rescore: Sequence[str | Path] = (),
        lexicon: bool = False,
        engine: EngineName | None = None,
        quantization: Quantization | None = None,
        workers: int = 0,
        device: str = "auto",
        settings: Mapping[str, Any] | None = None,
        needs: Collection[Need] = (),
    ) -> "Translator":
        """Return a translator with the model in a run directory or an exported folder, or with several models.

        At each step, an ensemble averages the probabilities of its models. Each model reads the source with its own
        tokenizer; all models must share the target tokenizer. The first run's decoding settings apply.

        Rescoring models score whole outputs, so they may have any tokenizer, and may write from right to left or
        translate in the opposite direction. The outputs of all searches are ranked by the weighted sum of the models'
        log probabilities. `glassformer tune` fits the weights; without tuning, all models have the same weight.

        Args:
            folder: folder of the run or the export; or a file that `glassformer tune` wrote, which names all models.
            others: folders of the ensemble's other models.
            rescore: folders of the models that rescore the outputs.
            lexicon: whether the run's lexicon also proposes outputs by analogy with training words, and scores them.
            engine: "torch"; "ctranslate2", which is faster on CPUs; or "auto", the fastest engine with equal outputs.
                The default is torch for a run, and ctranslate2 for an export, which has no weights for torch.
            quantization: number format of the weight matrices; by default, as trained or exported.
            workers: number of batches decoded in parallel, each on its own core. With the engine torch, each worker
                except the first is a process with its own copy of the models; these processes start when there are
                enough texts to translate. The default, 0, means one worker per core for CTranslate2, and one worker for
                torch.
            device: the device to compute on: "cpu", "cuda", "cuda:1" or another device of PyTorch; "auto" is a GPU if
                the machine has one, and else the CPU. On a GPU there is one worker.
            settings: decoding settings by name, which override the run's settings.
            needs: abilities that the engine chosen by "auto" must have, such as "sampling".

        Raises:
            CheckpointError: a part of a folder is missing or damaged.
            ConfigError: the models' target vocabularies differ, a setting is unknown or impossible, the device is not
                available, or the engine does not support the request.
            MissingDependencyError: CTranslate2 is requested but not installed.
        """
        from glassformer.interop.choice import EngineRequest, load_engine

        models = {"ensemble": tuple(map(Path, others)), "rescore": tuple(map(Path, rescore))}
        combination = Combination.named(Path(folder), **models, lexicon=lexicon)
        bundle = Bundle.load(combination.run)
        if changes := combination.settings | dict(settings or {}):
            decoding = changed_settings("decoding", bundle.configuration.decoding, changes)
            bundle = replace(bundle, configuration=replace(bundle.configuration, decoding=decoding))
        wanted: set[Need] = {*needs, "ensemble"} if combination.ensemble else {*needs}
        how: dict[str, Any] = {"quantization": quantization, "device": device}
        found = load_engine(bundle, EngineRequest(engine=engine, workers=workers, needs=wanted, **how))
        members = [cls.load(other, **how, engine="torch") for other in combination.ensemble]
        if not combination.rescores:
            return cls(bundle, found, *members)
        rescoring = [cls.load(other, **how, engine=engine, workers=workers) for other in combination.rescore]
        ours = bundle.configuration.data
        rescorers = [Rescorer(one, is_backward(ours, one.bundle.configuration.data)) for one in rescoring]
        return cls(bundle, found, *members, rescoring=Rescoring.of(combination, bundle, rescorers))

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
            n_best: number of different outputs per text: the best one and its `alternatives`. There are
                fewer outputs if the beam has fewer.
            prefix: the text with which each output must begin, or a list with one such text per output. It is
                normalised like other texts.
            sample: whether to draw tokens at random instead of searching for the best output.
            log_probs: whether to compute all log probabilities and scores. CTranslate2 is much faster without them, and
                then gives at most their sums.
            guards: whether to look for suspicious outputs (see `guards`); with the setting `retry`, this is always
                done.
            links: whether to align the words of each output to the words of its text, which takes another pass.
            glossary: how some terms must be translated: target terms by source term, or a `Glossary`.
            settings: decoding settings by name, such as `beam_size=4`, which override the run's settings.

        Raises:
            ShapeError: `texts` is one string, or the numbers of prefixes and texts differ.
            ConfigError: a setting is unknown or out of range, sampling and a beam are both requested, or the engine
                does not support the request.
            DataError: a term of the glossary is blank, or has two translations.
            DecodingError: `n_best` is larger than the beam, a prefix leaves no room for an output, or the vocabulary
                cannot spell a prefix.
        """
        if isinstance(texts, str):
            raise ShapeError(f"texts: expected a list of strings, got one string; call translate([{quoted(texts)}])")
        prefixes = [prefix] * len(texts) if isinstance(prefix, str) else list(prefix)
        if len(prefixes) != len(texts):
            raise ShapeError(f"prefix: expected one for each of {len(texts)} texts, got {len(prefixes)}")
        options: dict[str, Any] = {"log_probs": log_probs, "guards": guards, "links": links, "glossary": glossary}
        asked = self._asked(settings, n_best=n_best, sample=sample, **options)
        return list(self._layers(asked._replace(texts=texts, prefixes=prefixes, seeds=range(len(texts)))))

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
        window: int = WINDOW,
        **settings: Any,
    ) -> Iterator[Translation]:
        """Yield the translation of each text of a stream, in order, reading up to `window` texts at a time.

        Fewer texts are read at a time if the texts are long. If the engine decodes in the background, the next texts
        are read at the same time. A None in the stream means that no more texts are available for now; the translations
        of all earlier texts are then yielded at once. Takes the arguments of `translate`, except a list of prefixes.
        """
        options: dict[str, Any] = {"log_probs": log_probs, "guards": guards, "links": links, "glossary": glossary}
        asked = self._asked(settings, n_best=n_best, sample=sample, **options)
        waiting: deque[Iterator[Translation]] = deque()
        ahead = 1 if self.engine.reads_ahead and window > 1 else 0
        first = 0
        for held in _windows(texts, window):
            if held:
                seeds = range(first, first + len(held))
                waiting.append(self._layers(asked._replace(texts=held, prefixes=[prefix] * len(held), seeds=seeds)))
            first += len(held)
            while len(waiting) > (ahead if held else 0):
                yield from waiting.popleft()

    def explain(self, text: str, *, prefix: str = "", **settings: Any) -> Explanation:
        """Return the translation of a text, its cross-attention to the text, and the search tree.

        The search uses the whole vocabulary and ignores the setting `shortlist`. `prefix` and `settings` are as in
        `translate`.

        Raises:
            ConfigError: the translator is an ensemble, or a setting is unknown or out of range.
            DecodingError: the prefix leaves no room for an output, or the vocabulary cannot spell the prefix.
        """
        torch, search = self._torch(), self._asked({**settings, "shortlist": 0}).search
        [status], sources = self._layers.reader.sources([text], search.settings.max_source)
        if status != "ok":
            return Explanation(text=text, translation=Translation(text="", status=status), settings=search.settings)
        begin = self._layers.reader.beginning(prefix) if prefix else ()
        job = self._layers.reader.job(sources[0], begin, search)
        hypotheses, tree = torch.search_tree(job, search)
        [found] = self._layers.writer.translations([hypotheses], [job])
        [attention] = torch.attention([(job.sources, hypotheses[0].tokens)])
        return Explanation(
            text=text,
            translation=or_empty(self._layers.judging.judge(search).judged(found, text, job.sources[0])),
            settings=search.settings,
            source=tuple(self.bundle.source_tokenizer.tokens(job.sources[0])),
            unknown=self.unknown(text),
            rewritten=None if prefix else self.rewritten(text, **settings),
            attention=attention,
            attention_layer=torch.alignment.module,
            alignment=torch.alignment,
            tree=tree,
            tree_tokens=tuple(self.bundle.target_tokenizer.tokens([node.token for node in tree.nodes])),
        )

    def rewritten(self, text: str, **settings: Any) -> tuple[str, ...] | None:
        """Return what `translate` lets the model read instead of a text, such as the sentences of a line.

        Returns:
            The texts, in order; none if the text is copied; None if the model reads the text itself. `settings` are
            decoding settings by name, which override the run's settings.

        Raises:
            ConfigError: a setting is unknown or out of range.
        """
        asked = self._asked(settings)._replace(texts=[text], prefixes=[""], seeds=[0])
        found = tuple(self._layers.rewritten(asked))
        return None if found == (text,) else found

    def score(self, pairs: Sequence[tuple[str, str]], **settings: Any) -> list[Translation]:
        """Score given translations: return each target with the log probabilities that the model gives its tokens.

        A pair is not scored if its source or target is blank, is not valid Unicode, or has more tokens than
        `max_source`; the `status` of the result gives the reason. `settings` are decoding settings by name, which
        override the run's settings.

        Raises:
            ConfigError: a setting is unknown or out of range.
        """
        decoding = changed_settings("decoding", self.bundle.configuration.decoding, settings)
        statuses, sources = self._layers.reader.sources([source for source, _ in pairs], decoding.max_source)
        targets = self._layers.reader.targets([target for _, target in pairs], decoding.max_source)
        both: list[Status] = [one if one != "ok" else other for one, (other, _) in zip(statuses, targets, strict=True)]
        places = [place for place, status in enumerate(both) if status == "ok"]
        scores = self.engine.score([(sources[place], targets[place][1]) for place in places])
        results = [Translation(text=target, status=status) for (_, target), status in zip(pairs, both, strict=True)]
        for place, log_probs in zip(places, scores, strict=True):
            results[place] = self._layers.writer.scored(pairs[place][1], targets[place][1], log_probs, decoding)
        if self._layers.ranking and places:
            scored = [results[place] for place in places]
            totals = self._layers.ranking.rescoring.scores([pairs[place] for place in places], scored)
            for place, one, score in zip(places, scored, totals, strict=True):
                results[place] = replace(one, score=score)
        return results

    def candidates(self, texts: Sequence[str], **settings: Any) -> list[Candidates]:
        """Return the scored candidates of each text, from which rescoring chooses.

        A text that cannot be translated has no candidates. `settings` are decoding settings by name, which override the
        run's settings.

        Raises:
            ConfigError: the translator has no models that rescore, or a setting is unknown or out of range.
        """
        if self._layers.ranking is None:
            raise ConfigError("no model rescores the outputs; give folders of runs as `rescore`, or set `lexicon`")
        return self._layers.ranking.candidates(self._read(texts, settings))

    def _torch(self) -> "TorchEngine":
        """Return the engine, which must be the engine torch with one model, because only that can be inspected."""
        if self._layers.ranking:
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
                f"{self.bundle.folder}: the engine {self.engine.name} does not show what it computes; give the run "
                "itself, not an export, and the engine torch"
            )
        return self.engine

    def _asked(
        self,
        settings: Mapping[str, Any],
        *,
        n_best: int = 1,
        sample: bool = False,
        log_probs: bool = True,
        guards: bool = True,
        links: bool = False,
        glossary: Glossary | Mapping[str, str] | None = None,
    ) -> Request:
        """Return a request with these settings, but without texts."""
        decoding = changed_settings("decoding", self.bundle.configuration.decoding, settings)
        beam_size = decoding.beam_size if "beam_size" in settings else 1
        if sample and max(beam_size, n_best) > 1:
            raise ConfigError("sampling draws one output per text: leave out beam_size and n_best")
        if sample and self._layers.ranking:
            raise ConfigError("samples are not ranked: leave out sampling, or the models that rescore outputs")
        if sample and settings.get("retry"):
            raise ConfigError("decoding.retry has no effect with sampling: leave one of them out")
        search = Search(settings=decoding, n_best=n_best, sample=sample, log_probs=log_probs or decoding.retry)
        known = glossary if isinstance(glossary, Glossary | None) else Glossary.of(glossary)
        data = self.bundle.configuration.data
        terms = Terms(
            protect=decoding.protect,
            patterns=decoding.protect_also,
            glossary=known,
            source_language=data.source_language,
            target_language=data.target_language,
            signs=self._layers.signs,
        )
        return Request((), (), (), search, terms, links=links, guards=guards)

    def _read(self, texts: Sequence[str], settings: Mapping[str, Any]) -> Request:
        """Return a request for these texts, without prefixes, after the reader has tokenized them."""
        asked = self._asked(settings)._replace(texts=texts, prefixes=[""] * len(texts), seeds=range(len(texts)))
        return self._layers.reader.read(asked)

    def guards(self, **settings: Any) -> Guards | None:
        """Return the run's guards, or None if they were not calibrated on outputs of this search.

        Without guards, only two kinds of translations are suspicious: copies of the source, and translations whose
        numbers differ from the source's. `settings` are decoding settings by name, which override the run's settings.

        Raises:
            CheckpointError: the file of the guards is damaged.
            ConfigError: a setting is unknown or out of range.
        """
        return self._layers.judging.judge(self._asked(settings).search).guards

    def outputs(self, texts: Sequence[str], translations: Sequence[Translation]) -> list[ModelOutput]:
        """Return the outputs for the translatable texts, in the form that guards read."""
        read, judge = self._read(texts, {}), self._layers.judging.uncalibrated
        return [judge.output(translations[place], texts[place], one) for place, (one, *_) in read.sources.items()]

    def unknown(self, text: str) -> tuple[str, ...]:
        """Return the tokens of a text outside the source vocabulary, which the model reads as `<unk>`."""
        return self._layers.reader.unknown(text)


def _windows(texts: Iterable[str | None], window: int) -> Iterator[list[str]]:
    """Yield lists of at most `window` texts, or fewer if the texts have many characters.

    An empty list is yielded at the end, and for each None among the texts, which means that no more texts are available
    for now.
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
