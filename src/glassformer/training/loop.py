"""The training loop, as a generator of reports: whoever drives it prints or plots, and stops by no longer asking.

Axes: B batch · S source positions · T target positions.
"""

import math
import time
from collections import deque
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, NamedTuple

import torch
from torch.nn.utils import clip_grad_norm_
from torch.optim import Optimizer

from glassformer.errors import DataError, DivergenceError
from glassformer.model.transformer import Transformer
from glassformer.recipes.configuration import TrainingConfig
from glassformer.text.batching import Batch, Examples, Position, Resample, batches, stream
from glassformer.training.checkpoint import Checkpoints, TrainingState, step_of
from glassformer.training.divergence import LossWatch
from glassformer.training.gradients import Gradients, batch_loss, gradients
from glassformer.training.moving_average import MovingAverage
from glassformer.training.optimiser import make_optimiser
from glassformer.training.precision import decided
from glassformer.training.schedule import learning_rate, paper_peak

__all__ = [
    "CheckpointReport",
    "EndReport",
    "Measured",
    "Report",
    "StepReport",
    "ValidationReport",
    "badness",
    "steps",
    "validation_loss",
]


SCALE_UP_AFTER = 2000
"""Updates in fp16 after which the scale of the loss is tried twice as large."""
RECENT = 200
"""Updates whose speed says how long a training will still take."""

Ending = Literal["steps", "minutes", "patience", "stopped"]
"""Why a training ends."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StepReport:
    """One update of the weights."""

    step: int
    epoch: int
    """Which pass over the data this is, from 1."""
    loss: float
    """What is minimised: smoothed cross-entropy per target token, in nats."""
    learning_rate: float
    gradient_norm: float
    """Norm of the gradient, before it is clipped."""
    target_tokens: int
    """Real target tokens of the update, padding not counted."""
    tokens_per_second: float
    """Target tokens per second of this update."""
    waited: float
    """Seconds of this update that were spent on making its batches."""
    padding: float
    """Share of padding in its batches, source and target together, in [0, 1)."""
    seconds: float
    """Time spent so far, over all starts."""
    seconds_left: float
    """Estimate of the time until the end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ValidationReport:
    """A look at the validation set."""

    step: int
    loss: float
    """−log p per target token, in nats, without smoothing."""
    perplexity: float
    metric: "Measured | None"
    best: bool
    """Whether these weights are the best so far."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointReport:
    """A checkpoint is on the disk: that of this step, although training has gone on since."""

    step: int
    path: Path


@dataclass(frozen=True, slots=True, kw_only=True)
class EndReport:
    """Training has ended: all steps or minutes are spent, validation no longer improves, or it was asked to stop."""

    step: int
    reason: Ending
    seconds: float


class Measured(NamedTuple):
    """A metric of decoded validation sentences."""

    name: str
    value: float
    higher_is_better: bool


Report = StepReport | ValidationReport | CheckpointReport | EndReport
_Update = tuple[Sequence[Batch], Position, float]
"""Batches, the position behind them, and the seconds that it took to make them."""


def steps(
    model: Transformer,
    examples: Examples,
    config: TrainingConfig,
    *,
    seed: int = 1,
    optimiser: Optimizer | None = None,
    state: TrainingState | None = None,
    valid: Examples | None = None,
    metric: Callable[[Transformer], Measured] | None = None,
    checkpoints: Checkpoints | None = None,
    average: MovingAverage | None = None,
    resample: Resample | None = None,
    stop: Callable[[], bool] = lambda: False,
) -> Generator[Report, None, None]:
    """Yield a report after each update, validation and checkpoint, and one at the end.

    `state`, `optimiser` and `average` continue an earlier training (see `Checkpoints.restore`). `stop` is asked after
    each update and each validation: once it says yes, a checkpoint is written and the loop ends. With an `average`, its
    weights are in the model while a validation is reported; `resample` cuts a batch's texts anew.

    Raises:
        DataError: there are no examples.
        DivergenceError: the loss is no longer a number, or has climbed back towards where it started.

    >>> import glassformer as gf
    >>> from glassformer.recipes.configuration import TrainingConfig
    >>> from glassformer.text.batching import Examples
    >>> import numpy as np
    >>> ids = [np.array([4, 5, 6, 2]), np.array([7, 8, 2])]
    >>> model = gf.Transformer(gf.ModelConfig.preset("tiny", vocab_size=11))
    >>> [report.step for report in steps(model, Examples(source=ids, target=ids), TrainingConfig(steps=2))]
    [1, 2, 2]
    """
    if not len(examples):
        raise DataError("there are no training examples: every pair was blank or longer than data.max_length")
    config = decided(config, model.output.weight.device)
    state = TrainingState() if state is None else state
    optimiser = optimiser or make_optimiser(model, config)
    model.train()
    with gradients(model, config) as add_gradients:
        job = _Job(
            model=model,
            optimiser=optimiser,
            config=config,
            state=state,
            average=average,
            gradients=add_gradients,
            started=time.perf_counter() - state.seconds,
            recent=deque([(state.seconds, _progress(config, state))], maxlen=RECENT),
        )
        updates = _updates(examples, config, seed, state, resample)
        try:
            yield from _reports(job, updates, valid, metric, checkpoints, stop)
        finally:
            if checkpoints:
                checkpoints.close()


def _reports(
    job: "_Job",
    updates: Iterator[_Update],
    valid: Examples | None,
    metric: Callable[[Transformer], Measured] | None,
    checkpoints: Checkpoints | None,
    stop: Callable[[], bool],
) -> Iterator[Report]:
    """Yield all reports of `steps`."""
    config, state = job.config, job.state
    ending = _ending(config, state, lambda: False)
    # A run that was stopped before a validation that was due begins with it.
    validation_due = bool(valid) and _due(state.step, config.validate_every) and state.validated < state.step
    while not ending or validation_due:
        if not validation_due:
            yield job.update(*next(updates))
            ending = _ending(config, state, stop)
            validation_due = ending != "stopped" and bool(ending or _due(state.step, config.validate_every))
        if valid and validation_due:
            with job.averaged():
                yield job.validate(valid, metric)
            ending = ending or _ending(config, state, stop)
        validation_due = False
        if checkpoints:
            yield from job.checkpoint(checkpoints, ending)
    yield EndReport(step=state.step, reason=ending, seconds=state.seconds)


@torch.no_grad()
def validation_loss(model: Transformer, examples: Examples, batch_tokens: int) -> float:
    """Return −log p per target token of the examples, in nats, without smoothing and dropout."""
    training, total, tokens = model.training, 0.0, 0
    model.eval()
    for batch in batches(examples, batch_tokens, seed=0, epoch=0):
        total += float(batch_loss(model, batch, 0.0).plain)
        tokens += batch.target_tokens
    model.train(training)
    return total / tokens


def badness(loss: float, measured: Measured | None, config: TrainingConfig) -> float:
    """Return what the best weights have least of: the validation loss, or the metric turned so that lower is better."""
    if measured is None or config.best_by == "loss":
        return loss
    return -measured.value if measured.higher_is_better else measured.value


def _updates(
    examples: Examples, config: TrainingConfig, seed: int, state: TrainingState, resample: Resample | None
) -> Iterator[_Update]:
    """Yield what each update needs."""
    after = Position(epoch=state.epoch, window=state.window, batch=state.batch)
    coming = stream(examples, config.batch_tokens, seed=seed, start=after, resample=resample)
    while True:
        begun, epoch = time.perf_counter(), after.epoch
        chosen: list[Batch] = []
        while len(chosen) < config.accumulate and after.epoch == epoch:  # the last update of an epoch may be smaller
            batch, after = next(coming)
            chosen.append(batch)
        yield chosen, after, time.perf_counter() - begun


@dataclass(slots=True, kw_only=True)
class _Job:
    """A training on its way: what an update and a validation change."""

    model: Transformer
    optimiser: Optimizer
    config: TrainingConfig
    state: TrainingState
    average: MovingAverage | None
    gradients: Gradients
    started: float
    """The moment at which it would have begun had it never been stopped, on the clock of `time.perf_counter`."""
    recent: deque[tuple[float, float]]
    """Seconds and progress when this process began and after its updates; of the last ones only."""

    @property
    def watch(self) -> LossWatch:
        """What notices that the loss climbs back."""
        return self.state.watch

    def update(self, batches: Sequence[Batch], after: Position, waited: float) -> StepReport:
        """Change the weights once, by the mean gradient over all target tokens of the batches."""
        begun, state, epoch = time.perf_counter() - waited, self.state, self.state.epoch
        state.step += 1
        state.epoch, state.window, state.batch = after.epoch, after.window, after.batch
        rate = _learning_rate(self.model, self.config, state)
        tokens = sum(batch.target_tokens for batch in batches)
        scale = state.loss_scale if self.config.precision == "fp16" else 1.0
        loss = self.gradients(batches, tokens / scale) / scale
        norm = self._clip(scale)
        if self._in_range(norm, scale):
            self._check(loss, norm, rate)
            for group in self.optimiser.param_groups:
                group["lr"] = rate
            self.optimiser.step()
        self.optimiser.zero_grad()
        if self.average:
            self.average.update(self.model, state.step)
        now = self._tick()
        return StepReport(
            step=state.step,
            epoch=epoch + 1,
            loss=loss,
            learning_rate=rate,
            gradient_norm=norm,
            target_tokens=tokens,
            tokens_per_second=tokens / (now - begun),
            waited=waited,
            padding=_padding(batches),
            seconds=state.seconds,
            seconds_left=self._left(),
        )

    def validate(self, valid: Examples, metric: Callable[[Transformer], Measured] | None) -> ValidationReport:
        """Look at the validation set, and remember whether the weights are the best so far."""
        state = self.state
        loss = validation_loss(self.model, valid, self.config.batch_tokens)
        measured = _measure(self.model, metric) if metric else None
        now = badness(loss, measured, self.config)
        best = state.best is None or now < state.best
        if best:
            state.best, state.best_step = now, state.step
        state.since_best = 0 if best else state.since_best + 1
        state.validated = state.step
        self._tick()
        perplexity = math.exp(min(loss, 700))
        return ValidationReport(step=state.step, loss=loss, perplexity=perplexity, metric=measured, best=best)

    def checkpoint(self, checkpoints: Checkpoints, ending: Ending | None) -> Iterator[CheckpointReport]:
        """Begin a checkpoint where one is due; yield those that have come to the disk, at the end all of them."""
        due = _due(self.state.step, self.config.checkpoint_every) and not self.watch.suspicious
        if due or ending:
            yield from _written(checkpoints.wait())  # the new one may drop it
            passing = ending == "stopped" and not due
            checkpoints.begin(self.model, self.optimiser, self.state, self.average, passing=passing)
        yield from _written(checkpoints.wait() if ending else checkpoints.finished())

    def averaged(self) -> AbstractContextManager[None]:
        """Return a context in which the model has the averaged weights, if there is an average."""
        return self.average.applied(self.model) if self.average else nullcontext()

    def _clip(self, scale: float) -> float:
        """Take the scale of the loss out of the gradients, and limit their norm; return what it was."""
        if scale != 1.0:
            torch._foreach_div_([weight.grad for weight in self.model.parameters() if weight.grad is not None], scale)
        return float(clip_grad_norm_(self.model.parameters(), self.config.clip_norm or math.inf))

    def _in_range(self, norm: float, scale: float) -> bool:
        """Say whether fp16 could hold the gradients with this scale of the loss; where not, the next one is smaller.

        It is halved then, and doubled after so many updates in which they were in range (Micikevicius et al. 2018,
        Mixed precision training, §3.2). At 1 it is not the scale that is to blame.
        """
        state, fits = self.state, math.isfinite(norm)
        if self.config.precision != "fp16" or (not fits and scale <= 1.0):
            return True
        state.unscaled += 1
        if not fits or state.unscaled == SCALE_UP_AFTER:
            state.loss_scale, state.unscaled = scale * (2.0 if fits else 0.5), 0
        return fits

    def _check(self, loss: float, norm: float, rate: float) -> None:
        """Stop a training that goes wrong, before its weights are spoilt."""
        self.watch.see(loss)
        if not math.isfinite(norm):
            raise DivergenceError(_advice(f"the gradient is no longer a number at step {self.state.step}", loss, rate))
        if self.watch.diverged:
            what = f"the loss was down to {self.watch.lowest:.3g} and has climbed back by step {self.state.step}"
            raise DivergenceError(_advice(what, loss, rate))

    def _left(self) -> float:
        """Return the seconds that are left at the speed of the last updates; a machine that was busy is forgotten."""
        (then, before), (seconds, progress) = self.recent[0], (self.state.seconds, _progress(self.config, self.state))
        self.recent.append((seconds, progress))
        return max((seconds - then) / max(progress - before, 1e-9) * (1 - progress), 0.0)

    def _tick(self) -> float:
        now = time.perf_counter()
        self.state.seconds = now - self.started
        return now


def _written(paths: Sequence[Path]) -> Iterator[CheckpointReport]:
    for path in paths:
        yield CheckpointReport(step=step_of(path), path=path)


def _measure(model: Transformer, metric: Callable[[Transformer], Measured]) -> Measured:
    model.eval()
    measured = metric(model)
    model.train()
    return measured


def _learning_rate(model: Transformer, config: TrainingConfig, state: TrainingState) -> float:
    peak = config.learning_rate or paper_peak(model.config.d_model, config.warmup)
    progress = _progress(config, state)
    return learning_rate(config.schedule, state.step, peak=peak, warmup=config.warmup, progress=progress)


def _progress(config: TrainingConfig, state: TrainingState) -> float:
    """Return the share of the training that is done, by steps or by time, whichever is further."""
    by_time = state.seconds / (60 * config.minutes) if config.minutes else 0.0
    return max(state.step / config.last_step, by_time)


def _ending(config: TrainingConfig, state: TrainingState, stop: Callable[[], bool]) -> Ending | None:
    if state.step >= config.last_step:
        return "steps"
    if config.minutes and state.seconds >= 60 * config.minutes:
        return "minutes"
    if config.patience and state.since_best >= config.patience:
        return "patience"
    return "stopped" if stop() else None


def _due(step: int, every: int) -> bool:
    return every > 0 and step % every == 0


def _padding(batches: Sequence[Batch]) -> float:
    """Return the share of padding in all of the batches."""
    tokens = sum(batch.source_tokens + batch.target_tokens for batch in batches)
    return 1 - tokens / sum(batch.places for batch in batches)


def _advice(what: str, loss: float, rate: float) -> str:
    return (
        f"training has diverged: {what} (loss {loss:.3g}, learning rate {rate:.3g}). Lower training.learning_rate, "
        'raise training.warmup, set training.clip_norm = 1 or model.norm = "pre"; the checkpoints from before and the '
        "best weights are kept"
    )
