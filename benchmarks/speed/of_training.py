"""Measure the speed of training on this machine, profile an update, and find settings that make it faster."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Literal

import psutil
import torch

from benchmarks.speed.profiling import WAITING, table, work_of_updates
from benchmarks.speed.rates import Speed, Trial, advice_of_trials
from glassformer.jobs.speed.estimate import BUSY, check_memory, count_parameters, training_flops
from glassformer.jobs.speed.measurement import Measurement, Workload, measured
from glassformer.jobs.speed.sample import Sample, read_sample
from glassformer.model.config import ModelConfig
from glassformer.recipes.configuration import Configuration, Precision, TrainingConfig
from glassformer.recipes.toml import model_config
from glassformer.system.machine import cores, device_of
from glassformer.training.local_ranks import count_of_ranks
from glassformer.training.precision import decided

__all__ = ["TrainingSpeed", "concluded_speed", "output_share", "training_speed"]

MUCH = 0.1
"""Share of the time, or of a batch's positions, above which advice is given on how to reduce the share."""
MOST_OUTPUT = 0.4
"""Share of the operations for the output layer above which advice on the vocabulary size is given."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingSpeed(Speed):
    """The speed of training on this machine.

    With several processes, `work` is the time of one process; the time that it waits for slower processes is overhead.
    """

    precision: Precision
    processes: int
    """Number of processes that share an update."""
    tokens_per_second: float
    """Number of real target tokens per second, without the time for validation."""
    seconds_per_update: float
    padding: float
    """Share of padding in the batches."""


def training_speed(
    configuration: Configuration, *, seconds: float = 30.0, on_progress: Callable[[str], object] = lambda _: None
) -> TrainingSpeed:
    """Train for about `seconds` seconds in separate processes; return the speed, with advice on faster settings.

    Nothing is written into the run's folder. The configured settings are measured twice, before and after the other
    settings. Other settings are advised only if they beat the faster of the two results.

    Raises:
        DataError: the corpus cannot be read.
        ConfigError: a setting that is left open depends on a missing corpus, or the model does not fit into memory.
    """
    on_progress("reading the corpus")
    device = device_of(configuration.training.device, "training.device")
    sample = read_sample(replace(configuration, training=decided(configuration.training, device)))
    config = model_config(sample.configuration, sample.source_vocabulary, sample.target_vocabulary)
    busy = psutil.cpu_percent(0.3) / 100
    check_memory(count_parameters(config), psutil.virtual_memory().available)
    training = sample.configuration.training
    others = dict(_others(training, device))
    job = partial(_job, config, sample, seconds / (len(others) + 2))
    on_progress("training as configured")
    before = measured(job(training, validate=True))
    on_progress("profiling")
    work = work_of_updates(job(training))
    tried = {}
    for change, other in others.items():
        on_progress(f"trying {change}")
        tried[change] = measured(job(other))
    on_progress("training as configured")
    best = max(before, measured(job(training)), key=_tokens_per_second)
    trials = tuple(
        Trial.over(_tokens_per_second(best), change, _tokens_per_second(one), _ALSO.get(change.partition(" ")[0], ""))
        for change, one in tried.items()
    )
    return concluded_speed(config, sample, before, best, work, trials, busy)


def _job(
    config: ModelConfig,
    sample: Sample,
    seconds: float,
    training: TrainingConfig,
    *,
    validate: bool = False,
) -> Workload:
    return Workload(
        model=config,
        training=replace(training, workers=count_of_ranks(training)),
        examples=sample.examples,
        longest=sample.longest,
        seconds=seconds,
        threads=torch.get_num_threads(),
        validate=validate,
    )


def _others(training: TrainingConfig, device: torch.device) -> Iterator[tuple[str, TrainingConfig]]:
    """Yield the settings worth trying on this machine, each with a description of the change."""
    other: Literal["fp32", "bf16"] = "bf16" if training.precision == "fp32" else "fp32"
    yield f'training.precision = "{other}"', replace(training, precision=other)
    workers = 1 if count_of_ranks(training) > 1 else cores()
    if device.type == "cpu" and workers != count_of_ranks(training):
        yield f"training.workers = {workers}", replace(training, workers=workers)
    for size in (2 * training.batch_tokens, training.batch_tokens // 2):
        yield f"training.batch_tokens = {size}", replace(training, batch_tokens=size, workers=count_of_ranks(training))


def _tokens_per_second(measurement: Measurement) -> float:
    return measurement.target_tokens / measurement.seconds


_ALSO: Mapping[str, str] = {
    "training.batch_tokens": "this also changes the updates: rescale learning rate and warm-up",
    "training.precision": "only products are rounded to bf16; sums, norms, softmax and weights stay in float32",
}
"""Further effects of a change, by setting."""


def concluded_speed(
    config: ModelConfig,
    sample: Sample,
    first: Measurement,
    best: Measurement,
    work: Mapping[str, float],
    trials: tuple[Trial, ...],
    busy: float,
) -> TrainingSpeed:
    """Return the measured training speed, with advice on how to increase it.

    Args:
        config: The model.
        sample: The part of the corpus that was measured.
        first: The first measurement, which includes validation.
        best: The fastest measurement.
        work: The share of each kind of work in the time of an update.
        trials: The other settings that were tried, with their speed-up.
        busy: The share of the machine's cores that other processes used.
    """
    training = sample.configuration.training
    tokens = sum(map(len, sample.examples.target))
    flops = training_flops(config, sample.examples) / tokens * _tokens_per_second(best)
    ceiling = max(best.matrix_flops_per_second, first.matrix_flops_per_second)
    speed = TrainingSpeed(
        origin=sample.origin,
        precision=training.precision,
        threads=1 if count_of_ranks(training) > 1 else torch.get_num_threads(),
        processes=count_of_ranks(training),
        tokens_per_second=_tokens_per_second(best),
        seconds_per_update=best.seconds / best.updates,
        flops_per_second=flops,
        matrix_flops_per_second=ceiling,
        matrix_share=flops / ceiling,
        padding=best.padding,
        work=table(work, best.seconds / best.updates),
        trials=trials,
        advice=(),
    )
    advice = [*advice_of_trials(trials), *_of_table(speed, config, sample, first, busy)]
    return replace(speed, advice=tuple(advice))


def _of_table(
    speed: TrainingSpeed, config: ModelConfig, sample: Sample, measurement: Measurement, busy: float
) -> Iterator[str]:
    """Yield advice from the time of each kind of work."""
    training = sample.configuration.training
    waiting = next((work.share for work in speed.work if work.kind == WAITING), 0.0)
    if waiting > MUCH:
        sampling = sample.configuration.tokenizer.sampling
        why = "encoding texts again (tokenizer.sampling)" if sampling else "reading the corpus"
        yield f"updates wait for their batches {waiting:.0%} of the time, because of {why}"
    if speed.padding > MUCH:
        yield (
            f"{speed.padding:.0%} of the batches' positions are padding: use smaller batches, whose sentences differ "
            "less in length, or a lower data.max_length, which leaves out very long sentences"
        )
    output = output_share(config, sample)
    if output > MOST_OUTPUT:
        yield (
            f"the output layer takes {output:.0%} of the operations, for a vocabulary of {config.target_vocab_size:,}: "
            f"halving the vocabulary (tokenizer.vocab_size) saves {output / 2:.0%} of the operations"
        )
    validation = measurement.validation_seconds_per_pair * sample.valid_pairs
    if training.metric != "none":
        lines = min(training.metric_lines, sample.valid_pairs)
        validation += measurement.translation_seconds_per_line * lines
    between = training.validate_every * speed.seconds_per_update
    if training.validate_every and validation > MUCH * (between + validation):
        yield (
            f"validation takes {validation:.1f} s every {between:.0f} s, {validation / (between + validation):.0%} of "
            "the time: raise training.validate_every, or lower training.metric_lines"
        )
    if busy > BUSY:
        yield f"other processes used {busy:.0%} of the machine's cores: without them, training is faster"


def output_share(config: ModelConfig, sample: Sample) -> float:
    """Return the share of the operations that the output layer's matrix product takes."""
    tokens = sum(map(len, sample.examples.target))
    return 3 * 2.0 * tokens * config.d_model * config.target_vocab_size / training_flops(config, sample.examples)
