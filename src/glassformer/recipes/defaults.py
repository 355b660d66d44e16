"""What a configuration leaves open, chosen by the size and the kind of the corpus.

The two tables are the whole of it; docs/decisions/defaults.md says where they come from.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

from glassformer.recipes.configuration import Configuration, Optimiser, TrainingConfig
from glassformer.text.tokenizer import TokenizerConfig

__all__ = ["SENTENCES", "WORDS", "Sizes", "chosen", "fit", "is_open"]

SAMPLE = 10_000
"""Pairs that are looked at to find out what kind of corpus it is."""


@dataclass(frozen=True, slots=True)
class Sizes:
    """What suits a corpus of up to so many pairs."""

    pairs: float
    """The largest corpus that it is for."""
    vocab_size: int
    """Entries of the vocabulary; of characters and words at most so many."""
    model: Mapping[str, Any]
    """Fields of ModelConfig."""
    batch_tokens: int
    """As in [training]."""
    warmup: int
    """As in [training]."""
    rates: Mapping[Optimiser, float]
    """The learning rate of each optimiser; the first is the one that suits."""


_SMALL: Mapping[str, Any] = {"d_model": 128, "heads": 4, "encoder_layers": 4, "decoder_layers": 4, "norm": "pre"}
_SMALLEST = {**_SMALL, "encoder_layers": 2, "decoder_layers": 2}
_WIDTH_512 = {"d_model": 512, "heads": 4, "d_ff": 1024, "encoder_layers": 6, "decoder_layers": 6}
_BASE = {"d_model": 512, "heads": 8, "d_ff": 2048, "encoder_layers": 6, "decoder_layers": 6}
_MUON: Mapping[Optimiser, float] = {"muon": 5e-3, "adam": 2e-3}

SENTENCES = (
    Sizes(8_000, 2_000, {**_SMALLEST, "d_ff": 256, "dropout": 0.3}, 1_500, 400, _MUON),
    Sizes(20_000, 4_000, {**_SMALL, "d_ff": 256, "dropout": 0.3}, 3_000, 400, _MUON),
    Sizes(80_000, 8_000, {**_SMALL, "d_ff": 256, "dropout": 0.3}, 4_096, 400, _MUON),
    Sizes(400_000, 10_000, {**_WIDTH_512, "dropout": 0.3}, 4_096, 4_000, {"adam": 5e-4, "muon": 2e-3}),
    Sizes(2_000_000, 16_000, {**_BASE, "dropout": 0.2}, 4_096, 4_000, {"adam": 7e-4, "muon": 2e-3}),
    Sizes(math.inf, 32_000, {**_BASE, "dropout": 0.1}, 8_192, 4_000, {"adam": 7e-4, "muon": 2e-3}),
)
"""For sentences, smallest corpora first."""

WORDS = (
    Sizes(3_000, 8_000, {**_SMALLEST, "d_ff": 512, "dropout": 0.3}, 1_500, 400, _MUON),
    Sizes(50_000, 8_000, {**_SMALL, "d_ff": 512, "dropout": 0.3}, 3_000, 400, _MUON),
    Sizes(math.inf, 8_000, {**_SMALL, "d_ff": 512, "dropout": 0.1}, 4_096, 400, _MUON),
)
"""For single words and their pronunciations, or their spellings in other letters."""

_SIZE_FIELDS = ("preset", "d_model", "heads", "d_k", "d_v", "d_ff", "encoder_layers", "decoder_layers")


def fit(configuration: Configuration, pairs: int, sample: Iterable[tuple[str, str]]) -> Configuration:
    """Return the configuration with all that it leaves open chosen for a corpus of so many pairs; what it says stays.

    `sample` are pairs of the corpus, as many as are at hand: the first 10 000 are looked at. Open are a tokenizer of
    kind "auto", a vocab_size of 0; a model whose preset is "auto", or that has neither a preset nor a size;
    batch_tokens of 0, a warmup of 0 with its learning rate, the optimiser "auto" and the metric "auto".

    Raises:
        ConfigError: a setting has no effect together with what was chosen.
    """
    kind = _Kind.of(list(islice(sample, SAMPLE)))
    sizes = next(row for row in (WORDS if kind.words else SENTENCES) if pairs <= row.pairs)
    return replace(
        configuration,
        tokenizer=_tokenizer(configuration.tokenizer, kind, sizes),
        model=_model(configuration.model, sizes),
        training=_training(configuration.training, kind, sizes),
    )


def is_open(configuration: Configuration) -> bool:
    """Return whether something is left for `fit` to choose."""
    tokenizer, training = configuration.tokenizer, configuration.training
    left = (tokenizer.kind == "auto", tokenizer.vocab_size == 0, _is_open_model(configuration.model))
    zero = 0 in (training.batch_tokens, training.warmup)
    return any(left) or zero or "auto" in (training.metric, training.optimiser)


def chosen(before: Configuration, after: Configuration, pairs: int) -> str:
    """Return in words what `fit` chose: "29,000 pairs: unigram vocabulary of 8,000, 4 + 4 layers …"; or "".

    >>> from glassformer.recipes.configuration import DataConfig
    >>> before = Configuration(data=DataConfig(source="a", target="b"))
    >>> chosen(before, fit(before, 29_000, [("Zwei Hunde", "two dogs")]), 29_000)
    '29,000 pairs: unigram vocabulary of 8,000, 4 + 4 layers of width 128, dropout 0.3'
    """
    parts = []
    old, new = before.tokenizer, after.tokenizer
    if old != new:
        source, target = new.kinds
        parts.append(f"{source if source == target else f'{source} to {target},'} vocabulary of {new.vocab_size:,}")
        if "words" in new.kinds or "characters" in new.kinds:
            parts[-1] = f"{source} to {target}"
    if _is_open_model(before.model):
        model = after.model
        layers = f"{model['encoder_layers']} + {model['decoder_layers']} layers"
        parts.append(f"{layers} of width {model['d_model']}, dropout {model['dropout']}")
    if before.training != after.training:
        parts += _chosen_for_training(before.training, after.training)
    return f"{pairs:,} pairs: {', '.join(parts)}" if parts else ""


def _chosen_for_training(before: TrainingConfig, after: TrainingConfig) -> list[str]:
    words = {
        "optimiser": after.optimiser.capitalize(),
        "batch_tokens": f"batches of {after.batch_tokens:,} tokens",
        "warmup": f"{after.warmup:,} steps of warm-up",
        "learning_rate": f"learning rate {after.learning_rate:g}",
        "metric": f"scored by {after.metric}",
    }
    return [text for name, text in words.items() if getattr(before, name) != getattr(after, name)]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Kind:
    """What kind of corpus it is."""

    words: bool
    """Single words in letters, with their pronunciation or their spelling in other letters."""
    symbols: bool
    """The target's symbols stand between spaces."""
    characters: int
    """How many different characters there are."""

    @classmethod
    def of(cls, pairs: Sequence[tuple[str, str]]) -> "_Kind":
        """Return the kind that a sample is of."""
        sources, targets = [pair[0] for pair in pairs], [pair[1] for pair in pairs]
        characters = len(set().union(*sources, *targets))
        symbols = _are_symbols(targets)
        words = _are_words(sources) and (symbols or _are_words(targets))
        return cls(words=words, symbols=words and symbols, characters=characters)


def _are_words(lines: Sequence[str]) -> bool:
    """Return whether nearly all lines are one word: not a sentence in a script that writes no spaces either."""
    single = sum(len(line.split()) == 1 for line in lines)
    return 0 < len(lines) * 0.95 <= single and sum(map(len, lines)) <= 20 * len(lines)


def _are_symbols(lines: Sequence[str]) -> bool:
    """Return whether lines are phones or letters with spaces between: several each, of two characters or so."""
    symbols = [symbol for line in lines for symbol in line.split()]
    return len(symbols) >= 2 * len(lines) > 0 and sum(map(len, symbols)) <= 2.5 * len(symbols)


def _tokenizer(config: TokenizerConfig, kind: _Kind, sizes: Sizes) -> TokenizerConfig:
    if config.kind == "auto" and kind.words:
        target = config.target_kind or ("words" if kind.symbols else None)
        config = replace(config, kind="characters", joint=False, target_kind=target)
    elif config.kind == "auto":
        config = replace(config, kind="unigram")
    if config.vocab_size:
        return config
    # A script of thousands of characters needs room for them, and for what is written with several.
    return replace(config, vocab_size=max(sizes.vocab_size, min(4 * kind.characters, 32_000)))


def _model(section: Mapping[str, Any], sizes: Sizes) -> Mapping[str, Any]:
    if not _is_open_model(section):
        return section
    given = {name: value for name, value in section.items() if name != "preset"}
    return {**sizes.model, **given}


def _is_open_model(section: Mapping[str, Any]) -> bool:
    return section.get("preset") == "auto" or not any(name in section for name in _SIZE_FIELDS)


def _training(config: TrainingConfig, kind: _Kind, sizes: Sizes) -> TrainingConfig:
    optimiser = next(iter(sizes.rates)) if config.optimiser == "auto" else config.optimiser
    rate = config.learning_rate or (0.0 if config.warmup else sizes.rates["muon" if optimiser == "muon" else "adam"])
    return replace(
        config,
        optimiser=optimiser,
        batch_tokens=config.batch_tokens or sizes.batch_tokens,
        warmup=config.warmup or sizes.warmup,
        learning_rate=rate,
        metric=("exact" if kind.words else "bleu") if config.metric == "auto" else config.metric,
    )
