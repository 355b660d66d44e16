"""A training of some seconds in a process of its own, so that its memory is its own: what `estimate` starts."""

import sys
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import islice
from pathlib import Path

import psutil
import torch

from glassformer.decoding.greedy_search import greedy
from glassformer.decoding.transformer_step import TransformerStep, padded
from glassformer.errors import ConfigError, DataError
from glassformer.machine import device_of, keep_memory
from glassformer.model.config import ModelConfig
from glassformer.model.transformer import Transformer
from glassformer.recipes.configuration import TrainingConfig
from glassformer.text.batching import Examples, plan_batches
from glassformer.text.workers import Worker
from glassformer.training.gradients import processes
from glassformer.training.loop import Report, StepReport, steps, validation_loss
from glassformer.training.moving_average import MovingAverage
from glassformer.training.optimiser import make_optimiser
from glassformer.training.precision import decided, matrix_speed
from glassformer.training.work import profiled, shares

__all__ = ["DECODED_POSITIONS", "FEWEST", "WARM_UP", "Job", "Measurement", "measured"]

PROFILED = 4
"""Updates of which it is measured where their time goes."""
FEWEST, WARM_UP = 2, 2
"""Updates that are timed at least, and those before, on the longest sentences."""
DECODED_POSITIONS = 6000
"""Source positions that are decoded side by side, as `Translator` does."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """What is to be measured."""

    model: ModelConfig
    training: TrainingConfig
    examples: Examples
    longest: Examples
    seconds: float
    """Time for updates; as much again goes to validation and translation, where they are measured."""
    threads: int
    """Threads of torch."""
    validate: bool
    """Whether validation and translation are measured, too."""
    profile: bool = False
    """Whether some more updates are made to see where their time goes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Measurement:
    """What came out."""

    batch_tokens: int
    base_bytes: int
    """Resident memory before the model is made: Python, PyTorch and the rest."""
    peak_bytes: int
    """The most resident memory during the updates, of all processes that share them, and of the GPU if there is one."""
    updates: int
    """How many were timed."""
    seconds: float
    """What they took."""
    target_tokens: int
    """Real target tokens in them."""
    matrix_flops_per_second: float
    """What the machine does in large matrix products of the training's precision, measured in the same process by as
    many threads as all its processes have."""
    validation_seconds_per_pair: float
    """Of the validation loss; 0 where it was not measured."""
    translation_seconds_per_line: float
    """Of translating greedily; 0 where it was not measured."""
    padding: float = 0.0
    """Mean share of padding in the batches, in [0, 1)."""
    work: Mapping[str, float] = field(default_factory=dict)
    """The share of each kind of work in the time of some updates of this process, see `work.shares`; empty where that
    was not measured."""


def measured(job: Job) -> Measurement:
    """Return what a training of some seconds, in a process of its own, takes.

    Raises:
        ConfigError: it ended before its time.
    """
    with Worker(_measure, "trains for some seconds") as worker:
        try:
            return worker.ask(job)
        except (DataError, MemoryError, OSError, RuntimeError) as error:
            said = "it was killed" if isinstance(error, DataError) else error
            raise ConfigError(
                f"a training with batches of {job.training.batch_tokens:,} tokens ended after some steps ({said}): is "
                "there enough memory? Choose a smaller model, or lower training.batch_tokens or data.max_length"
            ) from error


def _measure(job: Job) -> Measurement:
    """Train for some seconds and return what that took; it is all that the process has done so far."""
    torch.set_num_threads(job.threads)
    torch.manual_seed(1)
    keep_memory()
    base = psutil.Process().memory_info().rss
    threads = max(torch.get_num_threads(), processes(job.training))
    device = device_of(job.training.device)
    training = decided(job.training, device)
    speed = matrix_speed(precision=training.precision, threads=threads, device=device)
    model = Transformer(job.model).to(device)
    optimiser = make_optimiser(model, training)
    average = MovingAverage(model, training.ema) if training.ema else None
    # Nothing is to be learnt: a rate at which nothing can go wrong.
    training = replace(training, minutes=0.0, steps=2**62, learning_rate=1e-6, validate_every=0, patience=0)
    updates = partial(steps, model, optimiser=optimiser, average=average)
    deque(updates(_batch_of_longest(job), replace(training, steps=WARM_UP)), maxlen=0)
    reports, others = [], 0
    for report in _for_seconds(updates(job.examples, training), job.seconds):
        reports.append(report)
        others = max(others, sum(child.memory_info().rss for child in psutil.Process().children()))
    peak = _peak_memory() + others + (torch.cuda.max_memory_reserved(device) if device.type == "cuda" else 0)
    work = _work(model, updates(job.examples, training)) if job.profile else {}
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
        work=work,
    )


def _batch_of_longest(job: Job) -> Examples:
    """Return as many of the longest pairs as one batch holds, again and again if there are too few."""
    longest = max(len(job.longest.source[0]), len(job.longest.target[0]))
    rows = [row % len(job.longest) for row in range(max(job.training.batch_tokens // longest, 1))]
    return _chosen(job.longest, rows)


def _for_seconds(reports: Iterable[Report], seconds: float) -> Iterator[StepReport]:
    for count, report in enumerate(reports, start=1):
        assert isinstance(report, StepReport)
        yield report
        if report.seconds > seconds and count >= FEWEST:
            return


def _work(model: Transformer, updates: Iterator[Report]) -> dict[str, float]:
    """Return the share of each kind of work in the time of some updates, after one that is not counted."""
    next(updates)
    reports: list[StepReport] = []

    def some() -> None:
        reports.extend(report for report in islice(updates, PROFILED) if isinstance(report, StepReport))

    seconds = profiled(model, some)
    whole = sum(report.target_tokens / report.tokens_per_second for report in reports)
    return shares(seconds, whole, sum(report.waited for report in reports))


def _validated(model: Transformer, job: Job) -> tuple[float, float]:
    """Return the seconds of the loss of a validation pair, and of a line's translation."""
    model.eval()
    size = job.training.batch_tokens
    loss = _seconds_each(lambda some: validation_loss(model, some, size), _parts(job.examples, size, job.seconds / 2))
    return loss, _seconds_each(
        lambda some: _translate(model, some), _parts(job.examples, DECODED_POSITIONS, job.seconds / 2)
    )


def _parts(examples: Examples, positions: int, seconds: float) -> Iterator[Examples]:
    """Yield batches of so many positions, as long as the time lasts."""
    ends = time.perf_counter() + seconds
    for rows in plan_batches(examples, positions, seed=1, epoch=0):
        yield _chosen(examples, rows.tolist())
        if time.perf_counter() > ends:
            return


def _chosen(examples: Examples, rows: Sequence[int]) -> Examples:
    return Examples(source=[examples.source[row] for row in rows], target=[examples.target[row] for row in rows])


def _translate(model: Transformer, examples: Examples) -> None:
    """Translate greedily, as long as the references are: an untrained model would not find an end."""
    source = padded(model, [ids.tolist() for ids in examples.source])
    greedy(TransformerStep(model, source), max_lengths=[len(ids) for ids in examples.target])


def _seconds_each(work: Callable[[Examples], object], parts: Iterable[Examples]) -> float:
    """Return the seconds of work for each example."""
    spent, count = 0.0, 0
    for part in parts:
        begun = time.perf_counter()
        work(part)
        spent, count = spent + time.perf_counter() - begun, count + len(part)
    return spent / count


def _peak_memory() -> int:
    """Return the most memory that was resident since the process began, in bytes."""
    status = Path("/proc/self/status")
    if status.exists():  # Linux's ru_maxrss begins with that of the process that started this one
        return 1024 * int(status.read_text().partition("VmHWM:")[2].split()[0])
    import resource  # which Windows has not

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
