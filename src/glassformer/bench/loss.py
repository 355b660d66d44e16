"""Estimate the validation loss of a training run from smaller runs on the same corpus, before it is started."""

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from glassformer.bench.estimate import Estimate, forward_flops
from glassformer.bench.scaling import Exponents, Prediction, ScalingFit, TrainingSize
from glassformer.bundle import TOKENIZER, Bundle
from glassformer.errors import ConfigError, quoted
from glassformer.jobs.log import METRICS_FILE, read_log
from glassformer.jobs.manifest import Manifest
from glassformer.jobs.preparation import PREPARED
from glassformer.model.config import ModelConfig
from glassformer.model.shapes import weight_shapes
from glassformer.recipes.configuration import NOT_CONTENT, Configuration
from glassformer.recipes.toml import model_config
from glassformer.system.files import hash_of_folder

__all__ = ["FARTHEST", "FEWEST_RUNS", "BetterSplit", "FittedRun", "LeftOut", "LossEstimate", "estimate_loss"]

FEWEST_RUNS = 5
"""Minimum number of runs that a fit needs."""
FARTHEST = 16
"""Maximum ratio between the size of the estimated run and of the nearest fitted run, in parameters and in tokens."""
RISEN = 0.02
"""Rise of the validation loss from its minimum to the end, in nats, from which a run counts as overfitted."""
VARIED = 1.5
"""Minimum ratio between the runs' shares of encoder and decoder from which the fit tells a better split."""
MANY_EPOCHS = 4
"""Number of epochs up to which repeated data are nearly as good as new data (Muennighoff et al. 2023)."""

_LENGTH = 20
"""Tokens per sentence for which the costs of layers are compared."""
_RECIPE = ("optimiser", "batch_tokens", "accumulate", "learning_rate", "schedule", "label_smoothing", "r_drop", "ema")
_SIZES = ("d_model", "d_ff", "heads", "d_k", "d_v", "encoder_layers", "decoder_layers")


@dataclass(frozen=True, slots=True, kw_only=True)
class FittedRun:
    """A finished run whose loss is fitted."""

    folder: str
    size: TrainingSize
    loss: float
    """Lowest validation loss, in nats per target token."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LeftOut:
    """A run that is not fitted."""

    folder: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class BetterSplit:
    """The numbers of layers with the lowest predicted loss among models that cost no more to train."""

    encoder_layers: int
    decoder_layers: int
    prediction: Prediction
    confidence: float
    """Share of bootstrap samples of the runs that predict a lower loss than for the configured split."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LossEstimate:
    """The validation loss that a configuration should reach, judging by smaller runs. It says nothing about BLEU."""

    size: TrainingSize
    prediction: Prediction
    exponents: Exponents
    residual: float
    """Root mean square of the differences between the runs' losses and their fit, in nats."""
    farthest: float
    """Ratio of the size to that of the largest run, in parameters or in tokens, whichever is higher."""
    runs: tuple[FittedRun, ...]
    left_out: tuple[LeftOut, ...]
    split: BetterSplit | None
    """None if the runs do not vary the split, which leaves only the prior."""
    warnings: tuple[str, ...]
    """Warnings about the runs and the configuration, one sentence each."""


def estimate_loss(whole: Estimate, folders: Sequence[Path]) -> LossEstimate:
    """Return the validation loss of a configuration, predicted from finished runs on the same corpus.

    `whole` is the estimate of the configuration, whose length it gives.

    Raises:
        CheckpointError: a folder is not a run.
        ConfigError: fewer than FEWEST_RUNS runs remain, or the configuration is more than FARTHEST times as large as
            each of them, or as small.
    """
    bundles = {str(folder): Bundle.load(folder) for folder in folders}
    prints = {folder: _fingerprint(bundle) for folder, bundle in bundles.items()}
    runs, left_out = [], []
    candidates = {folder: _mismatch(bundle.configuration, whole.configuration) for folder, bundle in bundles.items()}
    same = Counter(prints[folder] for folder, reason in candidates.items() if not reason)
    for folder, bundle in bundles.items():
        reason = candidates[folder] or _unlike(prints[folder], same.most_common(1)[0][0])
        found = _finished(bundle)
        if reason or isinstance(found, str):
            left_out.append(LeftOut(folder=folder, reason=reason or str(found)))
        else:
            runs.append(found)
    if len(runs) < FEWEST_RUNS:
        reasons = "".join(f"; {one.folder} is left out: {one.reason}" for one in left_out)
        raise ConfigError(
            f"--fit: expected at least {FEWEST_RUNS} finished runs on one corpus, got {len(runs)}; train more small "
            f"runs{reasons}"
        )
    config = model_config(whole.configuration, whole.source_vocabulary, whole.target_vocabulary)
    size = _size(config, whole.steps * whole.tokens_per_step)
    farthest = _checked(size, runs)
    fitted = ScalingFit([run.size for run in runs], [run.loss for run in runs])
    kept = [bundles[run.folder] for run in runs]
    return LossEstimate(
        size=size,
        prediction=fitted.predict(size),
        exponents=fitted.exponents,
        residual=fitted.residual,
        farthest=farthest,
        runs=tuple(runs),
        left_out=tuple(left_out),
        split=_better_split(config, size, fitted) if _varies(runs) else None,
        warnings=tuple(_warnings(whole, config, kept)),
    )


def _size(config: ModelConfig, tokens: float) -> TrainingSize:
    """Return the size of a training run: weights in matrices without embeddings, and tokens."""
    parts = dict.fromkeys(("encoder", "decoder"), 0)
    for name, shape in weight_shapes(config):
        stack = name.partition(".")[0]
        if stack in parts and len(shape) > 1:
            parts[stack] += math.prod(shape)
    return TrainingSize(**parts, tokens=tokens)


def _finished(bundle: Bundle) -> FittedRun | str:
    """Return a run with its loss, or why it cannot be fitted."""
    log = read_log(bundle.folder / METRICS_FILE)
    losses = [(line["step"], line["loss"]) for line in log if line["type"] == "validation"]
    updates = [line["target_tokens"] for line in log if line["type"] == "step" and "target_tokens" in line]
    if not log or log[-1]["type"] != "end":
        return "its training has not ended"
    if log[-1].get("reason") not in ("steps", "minutes"):
        return f"it was stopped early, at step {log[-1]['step']:,} ({log[-1].get('reason', 'for an unknown reason')})"
    if not losses or not updates:
        return "its log has no validation loss" if updates else "its log has no updates; lower training.log_every"
    (step, lowest), (_, last) = min(losses, key=lambda found: found[1]), losses[-1]
    if last > lowest + RISEN:
        return f"it is overfitted: its validation loss rose from {lowest:.3f} at step {step:,} to {last:.3f} at the end"
    tokens = log[-1]["step"] * sum(updates) / len(updates)
    return FittedRun(folder=str(bundle.folder), size=_size(bundle.model_config, tokens), loss=lowest)


def _mismatch(run: Configuration, wanted: Configuration) -> str:
    """Return how the corpus of a run differs from the wanted one; "" if it does not."""
    for name, value in _content(run).items():
        expected = _content(wanted)[name]
        if value != expected:
            what = "tokenizer" if name.startswith("tokenizer") else "corpus"
            what = "validation set" if "valid" in name or name == "run.seed" else what
            return f"it has another {what}: {name} = {quoted(value)}, not {quoted(expected)}"
    return ""


def _content(configuration: Configuration) -> dict[str, Any]:
    """Return the settings that decide the training pairs, the validation pairs and the tokens."""
    sections = {name: asdict(getattr(configuration, name)) for name in ("data", "cleaning", "tokenizer")}
    for name in NOT_CONTENT:
        sections["data"].pop(name, None)
    found = {f"{section}.{name}": value for section, values in sections.items() for name, value in values.items()}
    data = configuration.data
    if data.task or not data.valid_source:  # the seed chooses the validation pairs
        found["run.seed"] = configuration.run.seed
    return found


def _fingerprint(bundle: Bundle) -> tuple[str, ...]:
    """Return hashes of a run's tokenizers, validation pairs and training pairs; "" where they are no longer there."""
    folder = Path(bundle.configuration.data.prepared or bundle.folder / PREPARED)
    manifest = Manifest.load(folder)
    valid = manifest.hashes.get("valid.jsonl", "") if manifest else ""
    pairs = str([sorted(shard.hashes) for shard in manifest.shards]) if manifest else ""
    return hash_of_folder(bundle.folder / TOKENIZER), valid, pairs


def _unlike(run: tuple[str, ...], most: tuple[str, ...]) -> str:
    """Return how the files of a run differ from those of most runs; "" if they do not."""
    for what, own, other in zip(("tokenizer", "validation set", "corpus"), run, most, strict=True):
        if own and other and own != other:
            return f"it has another {what} than most of these runs"
    return ""


def _checked(size: TrainingSize, runs: Sequence[FittedRun]) -> float:
    """Return the ratio of a size to the largest run; raise an error if it is too far from all runs."""
    ratios = []
    for what, own, others in (
        (
            "parameters in matrices without embeddings",
            size.encoder + size.decoder,
            [_parameters(run.size) for run in runs],
        ),
        ("target tokens to train on", size.tokens, [run.size.tokens for run in runs]),
    ):
        ratios.append(own / max(others))
        if ratios[-1] > FARTHEST or min(others) / own > FARTHEST:
            end = max(others) if ratios[-1] > FARTHEST else min(others)
            raise ConfigError(
                f"--fit: expected a configuration within {FARTHEST} times the size of the runs, got {own:,.0f} {what}, "
                f"where the nearest run has {end:,.0f}; train runs nearer to it"
            )
    return max(ratios)


def _parameters(size: TrainingSize) -> int:
    return size.encoder + size.decoder


def _varies(runs: Sequence[FittedRun]) -> bool:
    ratios = [run.size.decoder / run.size.encoder for run in runs]
    return max(ratios) >= VARIED * min(ratios)


def _better_split(config: ModelConfig, size: TrainingSize, fitted: ScalingFit) -> BetterSplit | None:
    """Return the numbers of layers with the lowest predicted loss among models of at most the same cost."""
    best = None
    for split in _splits(config):
        own = _size(split, size.tokens)
        found = BetterSplit(
            encoder_layers=split.encoder_layers,
            decoder_layers=split.decoder_layers,
            prediction=fitted.predict(own),
            confidence=fitted.confidence(own, size),
        )
        if best is None or found.prediction.loss < best.prediction.loss:
            best = found
    return best


def _splits(config: ModelConfig) -> Iterator[ModelConfig]:
    """Yield the configuration for each number of decoder layers, with as many encoder layers as cost allows.

    Each model has at least one layer of each kind. The cost is the computation of a pair of typical length.
    """
    limit = _cost(config)
    for decoder in range(1, 2 * (config.encoder_layers + config.decoder_layers)):
        one, two = (_cost(replace(config, encoder_layers=layers, decoder_layers=decoder)) for layers in (1, 2))
        encoder = 1 + math.floor((limit - one) / (two - one) + 1e-9)
        if encoder >= 1:
            yield replace(config, encoder_layers=encoder, decoder_layers=decoder)


def _cost(config: ModelConfig) -> float:
    return forward_flops(config, _LENGTH, _LENGTH)


def _warnings(whole: Estimate, config: ModelConfig, bundles: Sequence[Bundle]) -> Iterator[str]:
    """Yield warnings about a configuration that repeats its data often, and about runs with different recipes."""
    if whole.epochs > MANY_EPOCHS:
        yield (
            f"the configuration sees each pair {whole.epochs:.1f} times: repeated data teach less than the new data "
            f"that the fit assumes, so above {MANY_EPOCHS} epochs the loss may be higher, or rise again"
        )
    wanted, found = _recipe(whole.configuration, config), set[str]()
    for bundle in bundles:
        own = _recipe(bundle.configuration, bundle.model_config)
        found |= {name for name, value in own.items() if value != wanted[name]}
    if found:
        yield f"some runs differ from the configuration in {', '.join(sorted(found))}, which the fit cannot know"


def _recipe(configuration: Configuration, config: ModelConfig) -> dict[str, Any]:
    """Return the settings, apart from sizes and length, that change the loss."""
    training, model = asdict(configuration.training), config.to_dict()
    return {
        **{f"training.{name}": training[name] for name in _RECIPE},
        **{f"model.{name}": value for name, value in model.items() if name not in _SIZES and "vocab" not in name},
    }
