"""What a training will take on this machine: measured in a training of some seconds, and worked out from there."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import psutil
import torch

from glassformer.decoding.hypothesis import EXTRA_LENGTH
from glassformer.errors import ConfigError
from glassformer.model.config import ModelConfig
from glassformer.model.transformer import Transformer
from glassformer.recipes.configuration import Configuration, TrainingConfig
from glassformer.recipes.toml import model_config
from glassformer.text.batching import Examples, plan_batches
from glassformer.training.gradients import processes
from glassformer.training.measure import (
    DECODED_POSITIONS,
    FEWEST,
    WARM_UP,
    Job,
    Measurement,
    measured,
)
from glassformer.training.precision import matrix_speed
from glassformer.training.sample import Sample, read_sample

__all__ = ["Estimate", "check_memory", "count_parameters", "estimate", "forward_flops", "training_flops"]

REPORTED = 50
"""Sentences that the report has translated together."""
MARGIN = 0.1
"""The share of the available memory that a training should leave alone."""
FEW_EPOCHS = 3
"""A training that sees each pair less often is warned of."""
BUSY = 0.25
"""The share of the machine that others may take before it is said."""
FASTER = 1.15
"""How much faster per token a smaller batch has to be before it is recommended."""

LOADED = 60_000_000
"""Bytes of what validation and the report load, and a measurement does not: metrics, pictures and so on (measured)."""

_BYTES = 4
_OF_MATRIX_SPEED = 0.4
"""Share of the speed of matrix products that a step is expected to reach, only to choose what can be measured."""
_SIZES = (0.25, 0.5, 1.0)
"""The batches that are measured, as shares of the largest of them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """What a configuration takes on this machine. An update is one change of the weights."""

    configuration: Configuration
    """With all chosen that it left open."""
    origin: str
    """What the lengths of sentences are taken from, in words."""
    pairs: int
    """Training pairs; 0 = nobody knows."""
    valid_pairs: int
    """Validation pairs; 0 = nobody knows, or there are none."""
    source_vocabulary: int
    target_vocabulary: int
    parameters: int
    weights_bytes: int
    """Of the model's file."""
    flops_per_step: float
    """Floating-point operations of an update (forward and backward; a multiplication and an addition are two), of real
    tokens: padding is not counted."""
    matrix_flops_per_second: float
    """What this machine does in large matrix products of the same precision, measured beside the updates."""
    matrix_share: float
    """The share of that speed that the updates reach."""
    tokens_per_step: float
    """Real target tokens of an update."""
    tokens_per_second: float
    """Real target tokens per second, validation not counted."""
    seconds_per_step: float
    validation_seconds: float
    """Of one validation: the loss, and the translations that the metric asks for."""
    steps_per_epoch: float
    """Updates in which each pair is seen once; 0 = nobody knows."""
    seconds_per_epoch: float
    """Without validation; 0 = nobody knows."""
    steps: int
    """Updates of the whole training (early stopping may end it before)."""
    epochs: float
    """How often it sees each pair; 0 = nobody knows."""
    seconds: float
    """Of the whole training, validation included."""
    base_bytes: int
    """Resident memory of Python and PyTorch without a model."""
    training_bytes: int
    """The most resident memory of the training's process, `base_bytes` included."""
    checkpoint_bytes: int
    """Of it, what the copy of a checkpoint takes while it is written."""
    decoding_bytes: int
    """What translating the validation sentences takes, when a model that has hardly learnt anything writes as much as
    it may. It is taken of what a batch has left behind, so that it counts only when it is more."""
    bytes_per_token: float
    """What a batch larger by one token adds."""
    available_bytes: int
    """What this machine could give a program just now."""
    largest_batch_tokens: int
    """The largest batch whose training fits, with a margin; 0 = none."""
    measurements: tuple[Measurement, ...]
    """What all of this was worked out from, smallest batch first."""
    warnings: tuple[str, ...]
    """What should be changed or known before such a training begins, a sentence each."""


def estimate(
    configuration: Configuration, *, seconds: float = 15.0, on_progress: Callable[[str], object] = lambda _: None
) -> Estimate:
    """Train for about so many seconds, in processes of their own, and return what the whole training will take.

    Nothing is written into the run's folder. `on_progress` is told what is being done.

    Raises:
        DataError: the corpus cannot be read.
        ConfigError: the corpus is not there and decides something; or the model does not fit into the memory.
    """
    on_progress("reading the corpus")
    sample = read_sample(configuration)
    config = model_config(sample.configuration, sample.source_vocabulary, sample.target_vocabulary)
    busy, available = psutil.cpu_percent(0.3) / 100, psutil.virtual_memory().available
    parameters = count_parameters(config)
    check_memory(parameters, available)
    training = sample.configuration.training
    sizes = _sizes(config, training, sample, seconds, available)
    measurements = []
    for size in sizes:
        on_progress(f"training with batches of {size:,} tokens")
        job = Job(
            model=config,
            training=replace(training, batch_tokens=size, accumulate=1, workers=processes(training)),
            examples=sample.examples,
            longest=sample.longest,
            seconds=seconds / 4,
            threads=torch.get_num_threads(),
            validate=size == sizes[-1],
        )
        measurements.append(measured(job))
    return _concluded(sample, config, parameters, measurements, available, busy)


def count_parameters(config: ModelConfig) -> int:
    """Return the number of weights, shared ones counted once; nothing is allocated."""
    with torch.device("meta"):
        return sum(parameter.numel() for parameter in Transformer(config).parameters())


def forward_flops(config: ModelConfig, source: int, target: int) -> float:
    """Return the floating-point operations of one sentence pair's forward pass: all matrix products in it."""
    d, query, value = config.d_model, config.heads * config.d_k, config.heads * config.d_v
    own = 2 * d * (2 * query + 2 * value)  # one position's Q, K, V and W_O
    inner = 2 * 2 * d * config.d_ff

    def mixing(queries: int, keys: int) -> int:
        return 2 * queries * keys * (query + value)  # Q Kᵀ and weights · V

    encoder = source * (own + inner) + mixing(source, source)
    decoder = target * (own + inner) + mixing(target, target)
    cross = target * 2 * d * (query + value) + source * 2 * d * (query + value) + mixing(target, source)
    output = target * 2 * d * config.target_vocab_size
    return float(config.encoder_layers * encoder + config.decoder_layers * (decoder + cross) + output)


def check_memory(parameters: int, available: int) -> None:
    """Refuse what cannot even be tried: a weight needs itself, its gradient, and Adam's two means."""
    needed = 4 * _BYTES * parameters
    if needed > available:
        raise ConfigError(
            f"the model's {parameters:,} parameters need {needed / 1e9:.1f} GB in training, even without a batch, but "
            f"{available / 1e9:.1f} GB are available: choose a smaller model, such as model.preset = 'small'"
        )


def _sizes(config: ModelConfig, training: TrainingConfig, sample: Sample, seconds: float, available: int) -> list[int]:
    """Return the batches to measure: that of the configuration, or the largest that is sure to fit, and smaller ones.

    A step of the largest has to take place several times in about as many seconds, and must not exhaust the memory.
    """
    per_token = training_flops(config, sample.examples) / _target_tokens(sample.examples)
    affordable = seconds / (WARM_UP + FEWEST) * _OF_MATRIX_SPEED * matrix_speed(0.2) / per_token
    # Each layer keeps about so much for the backward pass; attention's matrices grow with the length.
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
    per_step = _seconds_per_step(measurements, training, tokens)
    validation = last.validation_seconds_per_pair * sample.valid_pairs
    if training.metric != "none":
        validation += last.translation_seconds_per_line * min(training.metric_lines, sample.valid_pairs)
    steps_per_epoch = sample.pairs * per_pair / tokens
    steps, seconds = _length(training, per_step, validation)
    start, slope = _memory(measurements)
    start += LOADED
    checkpoint = _BYTES * (4 if training.ema else 3) * parameters
    decoding = _decoding_bytes(config, training, sample)
    speed = max(one.matrix_flops_per_second for one in measurements)  # others may have slowed one of them down
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
        largest_batch_tokens=_largest(start + checkpoint, slope, available),
        measurements=tuple(measurements),
        warnings=(),
    )
    return replace(made, warnings=tuple(_warnings(made, sample.too_long, busy)))


def _target_tokens(examples: Examples) -> int:
    return sum(map(len, examples.target))


def training_flops(config: ModelConfig, examples: Examples) -> float:
    """Return the operations of training on all of the examples once: the backward pass is two products for each one."""
    lengths = [(len(source), len(target)) for source, target in zip(examples.source, examples.target, strict=True)]
    return 3 * sum(forward_flops(config, source, target) for source, target in lengths)


def _tokens_per_batch(examples: Examples, batch_tokens: int) -> float:
    """Return the mean of the real target tokens of batches; the smallest one, which is a remainder, is left out."""
    plan = plan_batches(examples, batch_tokens, seed=1, epoch=0)
    batches = sorted(sum(len(examples.target[row]) for row in rows.tolist()) for rows in plan)
    if len(batches) > 1:
        return float(np.mean(batches[1:]))
    longest = max(map(len, (*examples.source, *examples.target)))
    return batches[0] * batch_tokens / (longest * len(examples))  # the sample is too small to fill a batch


def _seconds_per_step(measurements: Sequence[Measurement], training: TrainingConfig, tokens: float) -> float:
    """Return how long an update takes, by the largest batch measured; a part of it does not grow with the batch."""
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


def _memory(measurements: Sequence[Measurement]) -> tuple[float, float]:
    """Return a and b of peak memory = a + b · tokens, by least squares; b is not negative."""
    sizes = [one.batch_tokens for one in measurements]
    slope, start = np.polyfit(sizes, [one.peak_bytes for one in measurements], 1)
    return (float(start), float(slope)) if slope > 0 else (float(max(one.peak_bytes for one in measurements)), 0.0)


def _decoding_bytes(config: ModelConfig, training: TrainingConfig, sample: Sample) -> int:
    """Return what the caches of keys and values take, twice, for each step makes them anew."""
    length = sum(map(len, sample.examples.source)) / len(sample.examples)
    lines = REPORTED if training.metric == "none" else max(training.metric_lines, REPORTED)
    rows = min(DECODED_POSITIONS / length, lines)
    positions = rows * (length + length + EXTRA_LENGTH)  # what is read, and what may be written
    return round(2 * _BYTES * positions * config.decoder_layers * config.heads * (config.d_k + config.d_v))


def _largest(start: float, slope: float, available: int) -> int:
    """Return the largest batch that fits, in hundreds of tokens."""
    room = (1 - MARGIN) * available - start
    return max(int(room / max(slope, 1.0)) // 100 * 100, 0)


def _length(training: TrainingConfig, per_step: float, validation: float) -> tuple[int, float]:
    """Return how many updates the training has, and how many seconds it takes."""
    with_validation = per_step + (validation / training.validate_every if training.validate_every else 0.0)
    by_time = 60 * training.minutes / with_validation if training.minutes else training.last_step
    steps = max(min(training.last_step, round(by_time)), 1)
    return steps, steps * with_validation


def _warnings(made: Estimate, too_long: float, busy: float) -> list[str]:
    training = made.configuration.training
    found = []
    if made.training_bytes > (1 - MARGIN) * made.available_bytes:
        smaller = (
            f"lower training.batch_tokens to at most {made.largest_batch_tokens:,} and raise training.accumulate "
            "instead, which gives the same updates"
            if made.largest_batch_tokens
            else "choose a smaller model"
        )
        found.append(
            f"it may not fit: {made.training_bytes / 1e9:.1f} GB are needed, {made.available_bytes / 1e9:.1f} GB are "
            f"available: {smaller}"
        )
    if 0 < made.epochs < FEW_EPOCHS:
        found.append(
            f"each pair is seen {made.epochs:.1f} times: most models need it more often, if the corpus is not very "
            f"large; {FEW_EPOCHS} epochs take {FEW_EPOCHS * made.seconds_per_epoch / 60:.0f} minutes"
        )
    fastest = max(made.measurements, key=lambda one: one.target_tokens / one.seconds)
    gain = fastest.target_tokens / fastest.seconds / made.tokens_per_second
    if gain > FASTER and fastest.batch_tokens < training.batch_tokens:
        found.append(
            f"batches of {fastest.batch_tokens:,} tokens were {100 * gain - 100:.0f} % faster per token than those of "
            f"{training.batch_tokens:,}: this machine gains nothing from large ones"
        )
    if too_long > 0.01:
        found.append(f"{100 * too_long:.0f} % of the pairs are longer than data.max_length and left out")
    if busy > BUSY:
        found.append(
            f"other programs used {100 * busy:.0f} % of the machine's cores: alone, training is faster than measured"
        )
    if training.batch_tokens > 4 * made.measurements[-1].batch_tokens:
        found.append(
            f"the largest batch measured has {made.measurements[-1].batch_tokens:,} tokens, far from "
            f"{training.batch_tokens:,}: --seconds 60 measures larger ones"
        )
    return found
