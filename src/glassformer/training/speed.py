"""How fast a training is on this machine, where its time goes, and which change of a setting would make it faster."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Literal

import psutil
import torch

from glassformer.machine import cores, device_of
from glassformer.model.config import ModelConfig
from glassformer.recipes.configuration import Configuration, Precision, TrainingConfig
from glassformer.recipes.toml import model_config
from glassformer.training.estimate import BUSY, check_memory, count_parameters, training_flops
from glassformer.training.gradients import processes
from glassformer.training.measure import Job, Measurement, measured
from glassformer.training.precision import decided
from glassformer.training.sample import Sample, read_sample
from glassformer.training.work import WAITING, Work, table

__all__ = ["TrainingSpeed", "Trial", "advice_of_trials", "training_speed"]

GAIN = 1.1
"""How much faster a change has to be, measured here, before it is advised: less may be chance."""
MUCH = 0.1
"""The share of the time (or of the places of a batch) from which on something is worth a remark."""
MOST_OUTPUT = 0.4
"""The share of the operations that the output's product may take before the vocabulary is remarked on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """Another setting that was tried."""

    change: str
    """What was changed, as one would write it: 'training.precision = "bf16"'."""
    per_second: float
    """Target tokens (or sentences) a second with it."""
    gain: float
    """How many times as fast that is."""
    remark: str = ""
    """What else it changes, in words."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingSpeed:
    """What a training reaches on this machine."""

    origin: str
    """What the lengths of sentences are taken from, in words."""
    precision: Precision
    threads: int
    """Of each process."""
    processes: int
    """That share an update."""
    tokens_per_second: float
    """Real target tokens; validation is not counted."""
    seconds_per_update: float
    flops_per_second: float
    """Floating-point operations of the model's matrix products, those of padding not counted."""
    matrix_flops_per_second: float
    """What the machine does in one large product of this precision, with as many threads."""
    matrix_share: float
    """The share of that which the training reaches."""
    padding: float
    """Share of the batches' places that hold no token."""
    work: tuple[Work, ...]
    """Where the time of an update goes, the largest part first; the shares add up to 1. With several processes it is
    the time of one of them; where the others take longer, it waits for them, which is overhead."""
    trials: tuple[Trial, ...]
    advice: tuple[str, ...]
    """What to change, with what was measured as the reason; a sentence each."""


def training_speed(
    configuration: Configuration, *, seconds: float = 30.0, on_progress: Callable[[str], object] = lambda _: None
) -> TrainingSpeed:
    """Train for about so many seconds, in processes of their own, and return how fast that is and what would be faster.

    Nothing is written into the run's folder. As configured it is measured twice, before and after the other settings,
    and the faster of both counts: what is advised has to beat that.

    Raises:
        DataError: the corpus cannot be read.
        ConfigError: the corpus is not there and decides something; or the model does not fit into the memory.
    """
    on_progress("reading the corpus")
    device = device_of(configuration.training.device)
    sample = read_sample(replace(configuration, training=decided(configuration.training, device)))
    config = model_config(sample.configuration, sample.source_vocabulary, sample.target_vocabulary)
    busy = psutil.cpu_percent(0.3) / 100
    check_memory(count_parameters(config), psutil.virtual_memory().available)
    training = sample.configuration.training
    others = dict(_others(training))
    job = partial(_job, config, sample, seconds / (len(others) + 2))
    on_progress("training as configured")
    before = measured(job(training, profile=True, validate=True))
    tried = {}
    for change, other in others.items():
        on_progress(f"trying {change}")
        tried[change] = measured(job(other))
    on_progress("training as configured")
    best = max(before, measured(job(training)), key=_tokens_per_second)
    trials = tuple(_trial(change, one, best) for change, one in tried.items())
    return _concluded(config, sample, before, best, trials, busy)


def _job(
    config: ModelConfig,
    sample: Sample,
    seconds: float,
    training: TrainingConfig,
    *,
    profile: bool = False,
    validate: bool = False,
) -> Job:
    return Job(
        model=config,
        training=replace(training, workers=processes(training)),
        examples=sample.examples,
        longest=sample.longest,
        seconds=seconds,
        threads=torch.get_num_threads(),
        validate=validate,
        profile=profile,
    )


def _others(training: TrainingConfig) -> Iterator[tuple[str, TrainingConfig]]:
    """Yield the settings that are worth trying here."""
    other: Literal["fp32", "bf16"] = "bf16" if training.precision == "fp32" else "fp32"
    yield f'training.precision = "{other}"', replace(training, precision=other)
    workers = 1 if processes(training) > 1 else cores()
    if workers != processes(training):
        yield f"training.workers = {workers}", replace(training, workers=workers)
    for size in (2 * training.batch_tokens, training.batch_tokens // 2):
        yield f"training.batch_tokens = {size}", replace(training, batch_tokens=size, workers=processes(training))


def _tokens_per_second(measurement: Measurement) -> float:
    return measurement.target_tokens / measurement.seconds


_ALSO: Mapping[str, str] = {
    "training.batch_tokens": "the updates are others, too: the learning rate and its warm-up go with the batch",
    "training.precision": "products are rounded to it; sums, norms, softmax and weights stay in float32",
}
"""What else a change means."""


def _trial(change: str, measurement: Measurement, best: Measurement) -> Trial:
    speed = _tokens_per_second(measurement)
    return Trial(
        change=change,
        per_second=speed,
        gain=speed / _tokens_per_second(best),
        remark=_ALSO.get(change.partition(" ")[0], ""),
    )


def _concluded(
    config: ModelConfig,
    sample: Sample,
    profiled: Measurement,
    best: Measurement,
    trials: tuple[Trial, ...],
    busy: float,
) -> TrainingSpeed:
    training = sample.configuration.training
    tokens = sum(map(len, sample.examples.target))
    flops = training_flops(config, sample.examples) / tokens * _tokens_per_second(best)
    ceiling = max(best.matrix_flops_per_second, profiled.matrix_flops_per_second)
    speed = TrainingSpeed(
        origin=sample.origin,
        precision=training.precision,
        threads=1 if processes(training) > 1 else torch.get_num_threads(),
        processes=processes(training),
        tokens_per_second=_tokens_per_second(best),
        seconds_per_update=best.seconds / best.updates,
        flops_per_second=flops,
        matrix_flops_per_second=ceiling,
        matrix_share=flops / ceiling,
        padding=best.padding,
        work=table(profiled.work, best.seconds / best.updates),
        trials=trials,
        advice=(),
    )
    advice = [*advice_of_trials(trials), *_of_table(speed, config, sample, profiled, busy)]
    return replace(speed, advice=tuple(advice))


def advice_of_trials(trials: Sequence[Trial]) -> Iterator[str]:
    """Yield what to change, by the changes that were faster than by chance, the fastest first."""
    for trial in sorted(trials, key=lambda one: -one.gain):
        if trial.gain >= GAIN:
            also = f"; {trial.remark}" if trial.remark else ""
            yield f"{trial.change}: {trial.gain:.2f} times as fast, measured here{also}"


def _of_table(
    speed: TrainingSpeed, config: ModelConfig, sample: Sample, measurement: Measurement, busy: float
) -> Iterator[str]:
    """Yield what follows from where the time goes."""
    training = sample.configuration.training
    waiting = next((work.share for work in speed.work if work.kind == WAITING), 0.0)
    if waiting > MUCH:
        why = "cutting its texts anew (tokenizer.sampling)" if sample.configuration.tokenizer.sampling else "reading it"
        yield f"{waiting:.0%} of the time each update waits for its batch: {why} takes that long"
    if speed.padding > MUCH:
        yield (
            f"{speed.padding:.0%} of the batches' places are padding: larger batches hold sentences of more equal "
            "length, and a lower data.max_length keeps outliers out"
        )
    output = _output_share(config, sample)
    if output > MOST_OUTPUT:
        yield (
            f"the output layer takes {output:.0%} of the operations, for a vocabulary of {config.target_vocab_size:,}: "
            f"with half of it (tokenizer.vocab_size) an update has {output / 2:.0%} fewer"
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
        yield f"other programs used {busy:.0%} of the machine's cores: alone, training is faster than measured"


def _output_share(config: ModelConfig, sample: Sample) -> float:
    """Return the share of the operations that the product with the output's matrix takes."""
    tokens = sum(map(len, sample.examples.target))
    return 3 * 2.0 * tokens * config.d_model * config.target_vocab_size / training_flops(config, sample.examples)
