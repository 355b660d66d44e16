"""Choose the settings that a configuration leaves open, by the size and the kind of its corpus.

The two tables below contain all choices; docs/decisions/defaults.md explains the choices.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

from glassformer.errors import counted
from glassformer.recipes.configuration import Configuration, Optimiser, TrainingConfig
from glassformer.text.tokenizer import TOKENIZER_KINDS, TokenizerConfig

__all__ = ["SENTENCE_SIZES", "WORD_SIZES", "Sizes", "describe_choice", "fit", "is_open"]

PAIRS_LOOKED_AT = 10_000
"""Number of pairs from which the kind of the corpus is determined."""


@dataclass(frozen=True, slots=True)
class Sizes:
    """The settings for a corpus of up to `pairs` pairs."""

    pairs: float
    """Largest number of pairs for which these settings are chosen."""
    vocab_size: int
    """Number of vocabulary entries; for characters and words, an upper limit."""
    model: Mapping[str, Any]
    """Fields of ModelConfig."""
    batch_tokens: int
    """The setting training.batch_tokens."""
    warmup: int
    """The setting training.warmup."""
    rates: Mapping[Optimiser, float]
    """The learning rate of each optimiser; the first optimiser is the default."""
    r_drop: float = 0.0
    """The setting training.r_drop, if the model has dropout; without dropout, r_drop is 0."""
    sampling: float = 0.0
    """The setting tokenizer.sampling for subword tokenizers; for other tokenizers, sampling is 0."""


_SMALL: Mapping[str, Any] = {"d_model": 128, "heads": 4, "encoder_layers": 4, "decoder_layers": 4, "norm": "pre"}
_SMALLEST = {**_SMALL, "encoder_layers": 2, "decoder_layers": 2}
_WIDTH_512 = {"d_model": 512, "heads": 4, "d_ff": 1024, "encoder_layers": 6, "decoder_layers": 6}
_BASE = {"d_model": 512, "heads": 8, "d_ff": 2048, "encoder_layers": 6, "decoder_layers": 6}
_MUON: Mapping[Optimiser, float] = {"muon": 5e-3, "adam": 2e-3}

SENTENCE_SIZES = (
    Sizes(8_000, 2_000, {**_SMALLEST, "d_ff": 256, "dropout": 0.2}, 1_500, 400, _MUON, r_drop=3.0, sampling=0.3),
    Sizes(20_000, 4_000, {**_SMALL, "d_ff": 256, "dropout": 0.2}, 3_000, 400, _MUON, r_drop=3.0, sampling=0.3),
    Sizes(80_000, 8_000, {**_SMALL, "d_ff": 256, "dropout": 0.3}, 4_096, 400, _MUON),
    Sizes(400_000, 10_000, {**_WIDTH_512, "dropout": 0.3}, 4_096, 4_000, {"adam": 5e-4, "muon": 2e-3}),
    Sizes(2_000_000, 16_000, {**_BASE, "dropout": 0.2}, 4_096, 4_000, {"adam": 7e-4, "muon": 2e-3}),
    Sizes(math.inf, 32_000, {**_BASE, "dropout": 0.1}, 8_192, 4_000, {"adam": 7e-4, "muon": 2e-3}),
)
"""Settings for corpora of sentences, smallest corpora first."""

WORD_SIZES = (
    Sizes(3_000, 8_000, {**_SMALLEST, "d_ff": 512, "dropout": 0.3}, 1_500, 400, _MUON),
    Sizes(50_000, 8_000, {**_SMALL, "d_ff": 512, "dropout": 0.3}, 3_000, 400, _MUON),
    Sizes(math.inf, 8_000, {**_SMALL, "d_ff": 512, "dropout": 0.1}, 4_096, 400, _MUON),
)
"""Settings for corpora of single words with their pronunciation or transliteration, smallest corpora first."""

_SIZE_FIELDS = ("preset", "d_model", "heads", "d_k", "d_v", "d_ff", "encoder_layers", "decoder_layers")


def fit(configuration: Configuration, pairs: int, sample: Iterable[tuple[str, str]]) -> Configuration:
    """Choose the open settings of a configuration for a corpus of `pairs` pairs; the other settings do not change.

    `sample` yields pairs of the corpus; the first 10 000 pairs are read. Open settings are: a tokenizer of kind "auto";
    a vocab_size of 0; sampling "auto"; a model with preset "auto", or with neither preset nor sizes; batch_tokens of 0;
    a warmup of 0, together with the learning rate; r_drop "auto"; the optimiser "auto"; the metric "auto".

    Raises:
        ConfigError: a setting has no effect with a chosen value.
    """
    kind = _Kind.of(list(islice(sample, PAIRS_LOOKED_AT)))
    sizes = next(row for row in (WORD_SIZES if kind.words else SENTENCE_SIZES) if pairs <= row.pairs)
    model = _model(configuration.model, sizes)
    return replace(
        configuration,
        tokenizer=_tokenizer(configuration.tokenizer, kind, sizes),
        model=model,
        training=_training(configuration.training, kind, sizes, dropout=model.get("dropout") != 0),
    )


def is_open(configuration: Configuration) -> bool:
    """Return whether a configuration has open settings."""
    tokenizer, training = configuration.tokenizer, configuration.training
    left = (tokenizer.kind == "auto", tokenizer.vocab_size == 0, _is_open_model(configuration.model))
    zero = 0 in (training.batch_tokens, training.warmup)
    return any(left) or zero or "auto" in (training.metric, training.optimiser, training.r_drop, tokenizer.sampling)


def describe_choice(before: Configuration, after: Configuration, pairs: int) -> str:
    """Return a description of the choices of `fit`, or "" if nothing was chosen.

    >>> from glassformer.recipes.configuration import DataConfig
    >>> before = Configuration(data=DataConfig(source="a", target="b"))
    >>> describe_choice(before, fit(before, 29_000, [("Zwei Hunde", "two dogs")]), 29_000)
    '29,000 pairs: unigram vocabulary of 8,000, 4 + 4 layers of width 128, dropout 0.3'
    """
    parts = []
    old, new = before.tokenizer, after.tokenizer
    if old != new:
        source, target = new.kinds
        parts.append(f"{source if source == target else f'{source} to {target},'} vocabulary of {new.vocab_size:,}")
        if not all(TOKENIZER_KINDS[kind].subwords for kind in new.kinds):
            parts[-1] = f"{source} to {target}"
        if new.sampling and new.sampling != old.sampling:
            parts.append(f"subword sampling {new.sampling:g}")
    if _is_open_model(before.model):
        model = after.model
        layers = f"{model['encoder_layers']} + {model['decoder_layers']} layers"
        parts.append(f"{layers} of width {model['d_model']}, dropout {model['dropout']}")
    if before.training != after.training:
        parts += _chosen_for_training(before.training, after.training)
    return f"{counted(pairs, 'pair')}: {', '.join(parts)}" if parts else ""


def _chosen_for_training(before: TrainingConfig, after: TrainingConfig) -> list[str]:
    words = {
        "optimiser": after.optimiser.capitalize(),
        "batch_tokens": f"batches of {after.batch_tokens:,} tokens",
        "warmup": f"{after.warmup:,} steps of warm-up",
        "learning_rate": f"learning rate {after.learning_rate:g}",
        "r_drop": f"R-Drop {after.r_drop:g}",
        "metric": f"scored by {after.metric}",
    }
    changed = [name for name in words if getattr(before, name) != getattr(after, name)]
    return [words[name] for name in changed if name != "r_drop" or after.r_drop]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Kind:
    """The kind of a corpus."""

    words: bool
    """Whether the sources are single words, with their pronunciation or transliteration as targets."""
    symbols: bool
    """Whether the targets are symbols separated by spaces, such as phones."""
    characters: int
    """Number of different characters."""

    @classmethod
    def of(cls, pairs: Sequence[tuple[str, str]]) -> "_Kind":
        """Return the kind of a corpus, given a sample of its pairs."""
        sources, targets = [pair[0] for pair in pairs], [pair[1] for pair in pairs]
        characters = len(set().union(*sources, *targets))
        symbols = _are_symbols(targets)
        words = _are_words(sources) and (symbols or _are_words(targets))
        return cls(words=words, symbols=words and symbols, characters=characters)


def _are_words(lines: Sequence[str]) -> bool:
    """Return whether nearly all lines are single words; sentences in a script without spaces do not count as words."""
    single = sum(len(line.split()) == 1 for line in lines)
    return 0 < len(lines) * 0.95 <= single and sum(map(len, lines)) <= 20 * len(lines)


def _are_symbols(lines: Sequence[str]) -> bool:
    """Return whether lines are phones or letters separated by spaces: several symbols of about two characters each."""
    symbols = [symbol for line in lines for symbol in line.split()]
    return len(symbols) >= 2 * len(lines) > 0 and sum(map(len, symbols)) <= 2.5 * len(symbols)


def _tokenizer(config: TokenizerConfig, kind: _Kind, sizes: Sizes) -> TokenizerConfig:
    if config.kind == "auto" and kind.words:
        target = config.target_kind or ("words" if kind.symbols else None)
        config = replace(config, kind="characters", joint=False, target_kind=target)
    elif config.kind == "auto":
        config = replace(config, kind="unigram")
    if config.sampling == "auto":
        config = replace(config, sampling=sizes.sampling if config.has_subwords else 0.0)
    if config.vocab_size:
        return config
    # A script with thousands of characters needs an entry for each character, and more entries for combinations.
    return replace(config, vocab_size=max(sizes.vocab_size, min(4 * kind.characters, 32_000)))


def _model(section: Mapping[str, Any], sizes: Sizes) -> Mapping[str, Any]:
    if not _is_open_model(section):
        return section
    given = {name: value for name, value in section.items() if name != "preset"}
    return {**sizes.model, **given}


def _is_open_model(section: Mapping[str, Any]) -> bool:
    return section.get("preset") == "auto" or not any(name in section for name in _SIZE_FIELDS)


def _training(config: TrainingConfig, kind: _Kind, sizes: Sizes, *, dropout: bool) -> TrainingConfig:
    optimiser = next(iter(sizes.rates)) if config.optimiser == "auto" else config.optimiser
    rate = config.learning_rate or (0.0 if config.warmup else sizes.rates["muon" if optimiser == "muon" else "adam"])
    return replace(
        config,
        optimiser=optimiser,
        batch_tokens=config.batch_tokens or sizes.batch_tokens,
        warmup=config.warmup or sizes.warmup,
        learning_rate=rate,
        r_drop=(sizes.r_drop if dropout else 0.0) if config.r_drop == "auto" else config.r_drop,
        metric=("exact" if kind.words else "bleu") if config.metric == "auto" else config.metric,
    )
