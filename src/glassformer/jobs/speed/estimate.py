"""Estimate the time and memory of a training run on this machine from a few seconds of training."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import psutil
import torch

from glassformer.corpus.batching import Examples, plan_batches
from glassformer.decoding.engine import DECODED_POSITIONS
from glassformer.errors import ConfigError
from glassformer.jobs.speed.measurement import (
    FEWEST,
    WARM_UP,
    Measurement,
    Workload,
    measured,
)
from glassformer.jobs.speed.sample import Sample
from glassformer.model.config import ModelConfig
from glassformer.model.shapes import weight_shapes
from glassformer.recipes.configuration import Configuration, TrainingConfig
from glassformer.recipes.toml import model_config
from glassformer.training.local_ranks import count_of_ranks
from glassformer.training.precision import matrix_speed

__all__ = [
    "Estimate",
    "check_memory",
    "count_parameters",
    "estimate",
    "estimate_warnings",
    "forward_flops",
    "largest_batch",
    "memory_line",
    "training_flops",
    "training_length",
    "update_seconds",
]

REPORTED = 50
"""Number of sentences that the report translates in one batch."""
FREE_MEMORY = 0.1
"""Share of the available memory that a training run should leave free."""
FEW_EPOCHS = 3
"""Smallest number of epochs without a warning."""
BUSY = 0.25
"""Share of the cores used by other processes above which the estimate warns."""
FASTER = 1.15
"""Minimum speed-up per token for which a smaller batch is recommended."""

LOADED = 60_000_000
"""Bytes (measured) of the libraries that a training run loads for validation and report, but a measurement does not."""

_BYTES = 4
_OF_MATRIX_SPEED = 0.4
"""Expected speed of a step, as a share of the speed of matrix products; only used to choose the batches to measure."""
_SIZES = (0.25, 0.5, 1.0)
"""Sizes of the measured batches, as shares of the largest batch size."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """The time and memory that training a configuration takes on this machine. An update changes the weights once."""

    configuration: Configuration
    """The configuration, with values chosen for settings that were left open."""
    origin: str
    """A description of where the sentence lengths come from."""
    pairs: int
    """Number of training pairs; 0 = unknown."""
    valid_pairs: int
    """Number of validation pairs; 0 = unknown or none."""
    source_vocabulary: int
    target_vocabulary: int
    parameters: int
    weights_bytes: int
    """Size of the weights' file."""
    flops_per_step: float
    """Floating-point operations of an update, forward and backward, on real tokens without padding; a multiplication
    and an addition count as two."""
    matrix_flops_per_second: float
    """Speed of large matrix products in the training's precision, measured together with the updates."""
    matrix_share: float
    """Speed of the updates, as a share of `matrix_flops_per_second`."""
    tokens_per_step: float
    """Number of real target tokens (without padding) per update."""
    tokens_per_second: float
    """Number of real target tokens per second, without the time for validation."""
    seconds_per_step: float
    validation_seconds: float
    """Duration of one validation: the loss, and the translations for the metric."""
    steps_per_epoch: float
    """Number of updates per epoch; an epoch uses each pair once. 0 = unknown."""
    seconds_per_epoch: float
    """Duration of an epoch, without validation; 0 = unknown."""
    steps: int
    """Number of updates of the whole training run, if early stopping does not end the run sooner."""
    epochs: float
    """Number of epochs; 0 = unknown."""
    seconds: float
    """Duration of the whole training, including validation."""
    base_bytes: int
    """Resident memory of Python and PyTorch without a model."""
    training_bytes: int
    """Peak resident memory of the process that trains, including `base_bytes`."""
    checkpoint_bytes: int
    """The part of `training_bytes` for the copy of the weights and moments while a checkpoint is written."""
    decoding_bytes: int
    """Memory for translating the validation sentences if a nearly untrained model writes translations of the maximum
    length. Translation reuses the memory of a training batch, so only the larger amount counts."""
    bytes_per_token: float
    """Memory per additional token of a batch."""
    available_bytes: int
    """Memory available on this machine now."""
    largest_batch_tokens: int
    """The largest batch size, in tokens, with which training fits into memory, with a margin; 0 = none fits."""
    measurements: tuple[Measurement, ...]
    """The measurements that the estimate is computed from, smallest batch first."""
    warnings: tuple[str, ...]
    """Warnings to read before the training starts, one sentence each."""


def estimate(
    sample: Sample, *, seconds: float = 15.0, on_progress: Callable[[str], object] = lambda _: None
) -> Estimate:
    """Train for about `seconds` seconds, in separate processes, and return an estimate of the whole training.

    `sample` is a sample of the corpus, with the configuration (see `read_sample`). Nothing is written into the run's
    folder. `on_progress` receives a description of each step.

    Raises:
        ConfigError: training has no limit, or the model does not fit into memory.
    """
    sample.configuration.training.check_limit()
    config = model_config(sample.configuration, sample.source_vocabulary, sample.target_vocabulary)
    busy, available = psutil.cpu_percent(0.3) / 100, psutil.virtual_memory().available
    parameters = count_parameters(config)
    check_memory(parameters, available)
    training = sample.configuration.training
    sizes = _sizes(config, training, sample, seconds, available)
    measurements = []
    for size in sizes:
        on_progress(f"training with batches of {size:,} tokens")
        job = Workload(
            model=config,
            training=replace(training, batch_tokens=size, accumulate=1, workers=count_of_ranks(training)),
            examples=sample.examples,
            longest=sample.longest,
            seconds=seconds / 4,
            threads=torch.get_num_threads(),
            validate=size == sizes[-1],
        )
        measurements.append(measured(job))
    return _concluded(sample, config, parameters, measurements, available, busy)


def count_parameters(config: ModelConfig) -> int:
    """Return the number of a model's weights without allocating the weights; shared weights count once."""
    return sum(math.prod(shape) for _, shape in weight_shapes(config))


def forward_flops(config: ModelConfig, source: int, target: int) -> float:
    """Return the floating-point operations of all matrix products in one sentence pair's forward pass."""
    d, query, value = config.d_model, config.heads * config.d_k, config.heads * config.d_v
    own = 2 * d * (2 * query + 2 * value)  # Q, K, V and W_O of one position
    inner = 2 * 2 * d * config.d_ff

    def mixing(queries: int, keys: int) -> int:
        return 2 * queries * keys * (query + value)  # Q Kᵀ and weights · V

    encoder = source * (own + inner) + mixing(source, source)
    decoder = target * (own + inner) + mixing(target, target)
    cross = target * 2 * d * (query + value) + source * 2 * d * (query + value) + mixing(target, source)
    output = target * 2 * d * config.target_vocab_size
    return float(config.encoder_layers * encoder + config.decoder_layers * (decoder + cross) + output)


def check_memory(parameters: int, available: int) -> None:
    """Raise an error if the weights, their gradients and Adam's two moments alone exceed the available memory."""
    needed = 4 * _BYTES * parameters
    if needed > available:
        raise ConfigError(
            f"the model's {parameters:,} parameters need {needed / 1e9:.1f} GB in training, even without a batch, but "
            f"only {available / 1e9:.1f} GB are available: choose a smaller model, such as model.preset = 'small'"
        )


def _sizes(config: ModelConfig, training: TrainingConfig, sample: Sample, seconds: float, available: int) -> list[int]:
    """Return the batch sizes to measure, in tokens: the configured or the largest feasible size, and smaller sizes.

    A size is feasible if several steps take at most about `seconds` seconds and surely fit into memory.
    """
    per_token = training_flops(config, sample.examples) / _target_tokens(sample.examples)
    affordable = seconds / (WARM_UP + FEWEST) * _OF_MATRIX_SPEED * matrix_speed(0.2) / per_token
    # A rough bound on the activations that each layer keeps for the backward pass. The bound grows with the sentence
    # length because of the attention matrices.
    length = max(len(sample.longest.source[0]), len(sample.longest.target[0]))
    layers = config.encoder_layers + 2 * config.decoder_layers
    kept = _BYTES * layers * (8 * config.d_model + 3 * config.d_ff + 4 * config.heads * length)
    largest = int(min(training.batch_tokens, max(affordable, 4 * length), 0.5 * available / kept))
    sizes = sorted({max(int(largest * share), length) for share in _SIZES})
    return sizes if len(sizes) > 1 else [sizes[0], 2 * sizes[0]]


def _concluded(
    sample: Sample,
    config: ModelConfig,
    parameters: int,
    measurements: Sequence[Measurement],
    available: int,
    busy: float,
) -> Estimate:
    training, last = sample.configuration.training, measurements[-1]
    tokens = training.accumulate * _tokens_per_batch(sample.examples, training.batch_tokens)
    per_pair = _target_tokens(sample.examples) / len(sample.examples)
    flops = training_flops(config, sample.examples) / len(sample.examples) * tokens / per_pair
    per_step = update_seconds(measurements, training, tokens)
    validation = last.validation_seconds_per_pair * sample.valid_pairs
    if training.metric != "none":
        validation += last.translation_seconds_per_line * min(training.metric_lines, sample.valid_pairs)
    steps_per_epoch = sample.pairs * per_pair / tokens
    steps, seconds = training_length(training, per_step, validation)
    start, slope = memory_line(measurements)
    start += LOADED
    checkpoint = _BYTES * (4 if training.ema else 3) * parameters
    decoding = _decoding_bytes(config, training, sample)
    # the maximum, because another process may have slowed down a measurement
    speed = max(one.matrix_flops_per_second for one in measurements)
    made = Estimate(
        configuration=sample.configuration,
        origin=sample.origin,
        pairs=sample.pairs,
        valid_pairs=sample.valid_pairs,
        source_vocabulary=config.source_vocab_size,
        target_vocabulary=config.target_vocab_size,
        parameters=parameters,
        weights_bytes=_BYTES * parameters,
        flops_per_step=flops,
        matrix_flops_per_second=speed,
        matrix_share=flops / per_step / speed,
        tokens_per_step=tokens,
        tokens_per_second=tokens / per_step,
        seconds_per_step=per_step,
        validation_seconds=validation,
        steps_per_epoch=steps_per_epoch,
        seconds_per_epoch=steps_per_epoch * per_step,
        steps=steps,
        epochs=steps / steps_per_epoch if steps_per_epoch else 0.0,
        seconds=seconds,
        base_bytes=min(one.base_bytes for one in measurements),
        training_bytes=round(start + max(slope * training.batch_tokens + checkpoint, decoding)),
        checkpoint_bytes=checkpoint,
        decoding_bytes=decoding,
        bytes_per_token=slope,
        available_bytes=available,
        largest_batch_tokens=largest_batch(start + checkpoint, slope, available),
        measurements=tuple(measurements),
        warnings=(),
    )
    return replace(made, warnings=tuple(estimate_warnings(made, sample.too_long, busy)))


def _target_tokens(examples: Examples) -> int:
    return sum(map(len, examples.target))


def training_flops(config: ModelConfig, examples: Examples) -> float:
    """Return the operations of one epoch. A backward pass takes twice as many operations as a forward pass."""
    lengths = [(len(source), len(target)) for source, target in zip(examples.source, examples.target, strict=True)]
    return 3 * sum(forward_flops(config, source, target) for source, target in lengths)


def _tokens_per_batch(examples: Examples, batch_tokens: int) -> float:
    """Return the mean number of real target tokens per batch, without the smallest batch, which may be incomplete."""
    plan = plan_batches(examples, batch_tokens, seed=1, epoch=0)
    batches = sorted(sum(len(examples.target[row]) for row in rows.tolist()) for rows in plan)
    if len(batches) > 1:
        return float(np.mean(batches[1:]))
    longest = max(map(len, (*examples.source, *examples.target)))
    # the sample is smaller than a batch, so its number of tokens is scaled up
    return batches[0] * batch_tokens / (longest * len(examples))


def update_seconds(measurements: Sequence[Measurement], training: TrainingConfig, tokens: float) -> float:
    """Return the seconds per update, extrapolated from the measured batches: a constant time plus a time per token."""
    last = measurements[-1]
    if last.batch_tokens == training.batch_tokens:
        return tokens * last.seconds / last.target_tokens
    sizes, times = zip(
        *((one.target_tokens / one.updates, one.seconds / one.updates) for one in measurements), strict=True
    )
    slope, start = np.polyfit(sizes, times, 1)
    if start < 0 or slope <= 0:
        start, slope = 0.0, last.seconds / last.target_tokens
    return float(training.accumulate * start + tokens * slope)


def memory_line(measurements: Sequence[Measurement]) -> tuple[float, float]:
    """Return a and b of the line "peak memory = a + b · tokens", fitted by least squares, with b ≥ 0."""
    sizes = [one.batch_tokens for one in measurements]
    slope, start = np.polyfit(sizes, [one.peak_bytes for one in measurements], 1)
    return (float(start), float(slope)) if slope > 0 else (float(max(one.peak_bytes for one in measurements)), 0.0)


def _decoding_bytes(config: ModelConfig, training: TrainingConfig, sample: Sample) -> int:
    """Return the memory for decoding: twice the size of the key and value caches, which each step copies."""
    length = sum(map(len, sample.examples.source)) / len(sample.examples)
    lines = REPORTED if training.metric == "none" else max(training.metric_lines, REPORTED)
    rows = min(DECODED_POSITIONS / length, lines)
    longest = length + sample.configuration.decoding.extra_length
    positions = rows * (length + longest)  # positions of the source, and of the longest possible translation
    return round(2 * _BYTES * positions * config.decoder_layers * config.heads * (config.d_k + config.d_v))


def largest_batch(start: float, slope: float, available: int) -> int:
    """Return the largest batch size that fits into memory, rounded down to hundreds of tokens."""
    room = (1 - FREE_MEMORY) * available - start
    return max(int(room / max(slope, 1.0)) // 100 * 100, 0)


def training_length(training: TrainingConfig, per_step: float, validation: float) -> tuple[int, float]:
    """Return the number of updates of the training, and its duration in seconds."""
    with_validation = per_step + (validation / training.validate_every if training.validate_every else 0.0)
    by_time = 60 * training.minutes / with_validation if training.minutes else training.last_step
    steps = max(min(training.last_step, round(by_time)), 1)
    return steps, steps * with_validation


def estimate_warnings(made: Estimate, too_long: float, busy: float) -> list[str]:
    """Return warnings about the training run, the pairs or the machine, one sentence each.

    Args:
        made: The estimate.
        too_long: The share of the pairs that are left out because they are too long.
        busy: The share of the machine's cores that other processes used.
    """
    training = made.configuration.training
    found = []
    if made.training_bytes > (1 - FREE_MEMORY) * made.available_bytes:
        smaller = (
            f"lower training.batch_tokens to at most {made.largest_batch_tokens:,} and raise training.accumulate "
            "by the same factor: the updates remain the same"
            if made.largest_batch_tokens
            else "choose a smaller model"
        )
        found.append(
            f"the training may not fit into memory: {made.training_bytes / 1e9:.1f} GB are needed, "
            f"{made.available_bytes / 1e9:.1f} GB are available: {smaller}"
        )
    if 0 < made.epochs < FEW_EPOCHS:
        found.append(
            f"each pair is seen {made.epochs:.1f} times: most models need more epochs, unless the corpus is very "
            f"large; {FEW_EPOCHS} epochs take {FEW_EPOCHS * made.seconds_per_epoch / 60:.0f} minutes"
        )
    fastest = max(made.measurements, key=lambda one: one.target_tokens / one.seconds)
    gain = fastest.target_tokens / fastest.seconds / made.tokens_per_second
    if gain > FASTER and fastest.batch_tokens < training.batch_tokens:
        found.append(
            f"batches of {fastest.batch_tokens:,} tokens were {100 * gain - 100:.0f} % faster per token than batches "
            f"of {training.batch_tokens:,}: on this machine, large batches are not faster"
        )
    if too_long > 0.01:
        found.append(f"{100 * too_long:.0f} % of the pairs are longer than data.max_length and are left out")
    if busy > BUSY:
        found.append(
            f"other processes used {100 * busy:.0f} % of the machine's cores: without them, training is faster"
        )
    if training.batch_tokens > 4 * made.measurements[-1].batch_tokens:
        found.append(
            f"the largest measured batch has {made.measurements[-1].batch_tokens:,} tokens, far from "
            f"{training.batch_tokens:,}: use --seconds 60 to measure larger batches"
        )
    return found
