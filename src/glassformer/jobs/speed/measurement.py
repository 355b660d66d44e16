"""Measure a few seconds of training in a separate process, which needs memory only for the training."""

import sys
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TypeVar

import psutil
import torch

from glassformer.corpus.batching import Examples, plan_batches
from glassformer.decoding.engine import DECODED_POSITIONS
from glassformer.decoding.greedy_search import greedy
from glassformer.decoding.transformer_step import TransformerStep, padded
from glassformer.errors import ConfigError, DataError
from glassformer.model.config import ModelConfig
from glassformer.model.transformer import Transformer
from glassformer.recipes.configuration import TrainingConfig
from glassformer.system.machine import device_of, keep_memory
from glassformer.system.processes import Worker
from glassformer.training.gradients import products_to_keep
from glassformer.training.local_ranks import count_of_ranks
from glassformer.training.loop import steps, validation_loss
from glassformer.training.moving_average import MovingAverage
from glassformer.training.optimiser import make_optimiser
from glassformer.training.precision import decided, matrix_speed
from glassformer.training.reports import StepReport, TrainingReport

__all__ = ["FEWEST", "WARM_UP", "Measurement", "Workload", "answered", "measured", "training_of", "warmed_up"]

Answer = TypeVar("Answer")
FEWEST, WARM_UP = 2, 2
"""Minimum number of timed updates; number of untimed updates before the timed ones, with the longest sentences."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """A training run to measure."""

    model: ModelConfig
    training: TrainingConfig
    examples: Examples
    longest: Examples
    seconds: float
    """Time for updates, in seconds; measuring validation and translation takes this time again."""
    threads: int
    """Number of PyTorch's threads."""
    validate: bool
    """Whether to measure validation and translation too."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Measurement:
    """The result of measuring a workload."""

    batch_tokens: int
    base_bytes: int
    """Resident memory before the model is built: Python, PyTorch and other libraries."""
    peak_bytes: int
    """Peak memory during the updates: resident memory of all processes that share the updates, plus GPU memory."""
    updates: int
    """Number of timed updates."""
    seconds: float
    """Duration of the timed updates."""
    target_tokens: int
    """Number of real target tokens in the timed updates."""
    matrix_flops_per_second: float
    """Speed of large matrix products in the training's precision. One process measures it, with as many threads as
    all training processes have together."""
    validation_seconds_per_pair: float
    """Time to compute the validation loss of a pair; 0 = not measured."""
    translation_seconds_per_line: float
    """Time to translate a line greedily; 0 = not measured."""
    padding: float = 0.0
    """Mean share of padding in the batches, in [0, 1)."""


def measured(job: Workload) -> Measurement:
    """Measure a workload in a separate process, and return the measurement.

    Raises:
        ConfigError: the process ended early.
    """
    return answered(_measure, job)


def answered(function: Callable[[Workload], Answer], job: Workload) -> Answer:
    """Return what a function computes from a workload, in a separate process.

    Raises:
        ConfigError: the process ended early.
    """
    with Worker(function, "measures a few seconds of training") as worker:
        try:
            return worker.ask(job)
        except (DataError, MemoryError, OSError, RuntimeError) as error:
            said = "the process was killed" if isinstance(error, DataError) else error
            raise ConfigError(
                f"training with batches of {job.training.batch_tokens:,} tokens stopped early: {said}; "
                "if memory ran out, choose a smaller model, or lower training.batch_tokens or data.max_length"
            ) from error


def _measure(job: Workload) -> Measurement:
    """Train for a few seconds, and return the measurement. Call this function in a fresh process: it reads the
    process's peak memory.
    """
    base = psutil.Process().memory_info().rss
    training = training_of(job)
    threads = max(torch.get_num_threads(), count_of_ranks(training))
    device = device_of(training.device, "training.device")
    speed = matrix_speed(precision=training.precision, threads=threads, device=device)
    model, updates = warmed_up(job, training)
    reports, others = [], 0
    for report in _for_seconds(updates, job.seconds):
        reports.append(report)
        others = max(others, sum(child.memory_info().rss for child in psutil.Process().children()))
    peak = _peak_memory() + others + (torch.cuda.max_memory_reserved(device) if device.type == "cuda" else 0)
    validation, translation = _validated(model, job) if job.validate else (0.0, 0.0)
    return Measurement(
        batch_tokens=training.batch_tokens,
        base_bytes=base,
        peak_bytes=peak,
        updates=len(reports),
        seconds=sum(report.target_tokens / report.tokens_per_second for report in reports),
        target_tokens=sum(report.target_tokens for report in reports),
        matrix_flops_per_second=speed,
        validation_seconds_per_pair=validation,
        translation_seconds_per_line=translation,
        padding=sum(report.padding for report in reports) / len(reports),
    )


def training_of(job: Workload) -> TrainingConfig:
    """Prepare this process for a workload; return the training, with the precision decided, and without an end."""
    torch.set_num_threads(job.threads)
    torch.manual_seed(1)
    keep_memory(products_to_keep(job.examples))
    training = decided(job.training, device_of(job.training.device, "training.device"))
    # The model does not need to learn. With this small learning rate, training cannot diverge.
    return replace(training, minutes=0.0, steps=10**12, learning_rate=1e-6, validate_every=0, patience=0)


def warmed_up(job: Workload, training: TrainingConfig) -> tuple[Transformer, Iterator[TrainingReport]]:
    """Return a new model and its endless updates, after a few updates with the longest sentences."""
    model = Transformer(job.model).to(device_of(training.device, "training.device"))
    optimiser = make_optimiser(model, training)
    average = MovingAverage(model, training.ema) if training.ema else None
    updates = partial(steps, model, optimiser=optimiser, average=average)
    deque(updates(_batch_of_longest(job), replace(training, steps=WARM_UP)), maxlen=0)
    return model, updates(job.examples, training)


def _batch_of_longest(job: Workload) -> Examples:
    """Return one batch of the longest pairs; if there are too few pairs for a batch, they are repeated."""
    longest = max(len(job.longest.source[0]), len(job.longest.target[0]))
    rows = [row % len(job.longest) for row in range(max(job.training.batch_tokens // longest, 1))]
    return _chosen(job.longest, rows)


def _for_seconds(reports: Iterable[TrainingReport], seconds: float) -> Iterator[StepReport]:
    for count, report in enumerate(reports, start=1):
        assert isinstance(report, StepReport)
        yield report
        if report.seconds > seconds and count >= FEWEST:
            return


def _validated(model: Transformer, job: Workload) -> tuple[float, float]:
    """Return the seconds per validation pair for the loss, and per line for the translation."""
    model.eval()
    size = job.training.batch_tokens
    loss = _seconds_each(lambda some: validation_loss(model, some, size), _parts(job.examples, size, job.seconds / 2))
    return loss, _seconds_each(
        lambda some: _translate(model, some), _parts(job.examples, DECODED_POSITIONS, job.seconds / 2)
    )


def _parts(examples: Examples, positions: int, seconds: float) -> Iterator[Examples]:
    """Yield batches of up to `positions` positions until `seconds` seconds have passed."""
    ends = time.perf_counter() + seconds
    for rows in plan_batches(examples, positions, seed=1, epoch=0):
        yield _chosen(examples, rows.tolist())
        if time.perf_counter() > ends:
            return


def _chosen(examples: Examples, rows: Sequence[int]) -> Examples:
    return Examples(source=[examples.source[row] for row in rows], target=[examples.target[row] for row in rows])


def _translate(model: Transformer, examples: Examples) -> None:
    """Translate greedily, up to the references' lengths, because an untrained model rarely ends a sentence."""
    source = padded(model, [ids.tolist() for ids in examples.source])
    greedy(TransformerStep(model, source), max_lengths=[len(ids) for ids in examples.target])


def _seconds_each(work: Callable[[Examples], object], parts: Iterable[Examples]) -> float:
    """Return the mean time of `work` per example, in seconds."""
    spent, count = 0.0, 0
    for part in parts:
        begun = time.perf_counter()
        work(part)
        spent, count = spent + time.perf_counter() - begun, count + len(part)
    return spent / count


def _peak_memory() -> int:
    """Return the peak resident memory of this process, in bytes."""
    status = Path("/proc/self/status")
    if status.exists():  # on Linux, ru_maxrss would include the peak memory of the parent process
        return 1024 * int(status.read_text().partition("VmHWM:")[2].split()[0])
    import resource  # not available on Windows

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
