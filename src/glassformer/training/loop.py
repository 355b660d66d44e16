"""The training loop, a generator of reports. The caller prints or plots the reports, and may stop iterating at any
time.

Axes: B batch · S source positions · T target positions.
"""

import math
import time
from collections import deque
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import AbstractContextManager, closing, nullcontext
from dataclasses import dataclass
from pathlib import Path

import torch
from torch.nn.utils import clip_grad_norm_
from torch.optim import Optimizer

from glassformer.corpus.batching import Batch, Examples, Position, Resample, batches, stream
from glassformer.errors import DataError, DivergenceError
from glassformer.model.transformer import Transformer
from glassformer.recipes.configuration import TrainingConfig
from glassformer.training.checkpoint import Checkpoints, TrainingState, step_of
from glassformer.training.gradients import AddGradients, batch_loss
from glassformer.training.loss_watch import LossWatch
from glassformer.training.moving_average import MovingAverage
from glassformer.training.optimiser import make_optimiser
from glassformer.training.precision import decided
from glassformer.training.ranks import ALONE, Ranks, hash_of_weights
from glassformer.training.reports import (
    CheckpointReport,
    Ending,
    EndReport,
    Measured,
    StepReport,
    TrainingReport,
    ValidationReport,
)
from glassformer.training.schedule import learning_rate, paper_peak

__all__ = [
    "badness",
    "steps",
    "validation_loss",
]


SCALE_UP_AFTER = 2000
"""Number of updates after which the loss scale of fp16 is doubled, if no gradient overflows in between."""
RECENT = 200
"""Number of recent updates from whose speed the remaining time is estimated."""

_Update = tuple[Sequence[Batch], Position, float]
"""The batches of an update, the position in the data after these batches, and the seconds spent on building them."""


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
    ranks: Ranks = ALONE,
) -> Generator[TrainingReport, None, None]:
    """Yield a report after each update, validation and checkpoint, and a last report at the end.

    `state`, `optimiser` and `average` continue an earlier training run (see `Checkpoints.restore`). `stop` is called
    after each update and each validation; once it returns True, the loop writes a checkpoint and ends. If `average` is
    given, the model has the averaged weights during a validation and while the caller handles its report. `resample`
    encodes the texts again in each epoch. With several `ranks`, each rank passes the same arguments, except that only
    rank 0 passes `checkpoints`.

    Raises:
        DataError: `examples` is empty.
        DivergenceError: the gradient is not finite, or the loss has climbed back towards its first value.
        RankError: another rank was killed, does not answer, or has different weights.

    >>> import glassformer as gf
    >>> from glassformer.recipes.configuration import TrainingConfig
    >>> from glassformer.corpus.batching import Examples
    >>> import numpy as np
    >>> ids = [np.array([4, 5, 6, 2]), np.array([7, 8, 2])]
    >>> model = gf.Transformer(gf.ModelConfig.preset("tiny", vocab_size=11))
    >>> [report.step for report in steps(model, Examples(source=ids, target=ids), TrainingConfig(steps=2))]
    [1, 2, 2]
    """
    if not len(examples):
        raise DataError("examples: expected training examples, got none; give at least one")
    config = decided(config, model.output.weight.device)
    state = TrainingState() if state is None else state
    optimiser = optimiser or make_optimiser(model, config)
    model.train()
    close = closing(checkpoints) if checkpoints else nullcontext()
    with ranks.sharing(model, config, optimiser) as add_gradients, close:
        training = _Training(
            model=model,
            optimiser=optimiser,
            config=config,
            state=state,
            average=average,
            add_gradients=add_gradients,
            ranks=ranks,
            started=time.perf_counter() - state.seconds,
            recent=deque([(state.seconds, _progress(config, state))], maxlen=RECENT),
        )
        updates = _updates(examples, config, seed, state, resample)
        ending = _ending(config, state, stopped=False)  # already set if a finished run is started again
        # ranks with different first weights would otherwise train apart until the first checkpoint
        training.check_weights()
        # If a run was stopped before a due validation, it resumes with the validation.
        validation_due = bool(valid) and _due(state.step, config.validate_every) and state.validated < state.step
        while not ending or validation_due:
            if not validation_due:
                yield training.update(*next(updates))
                ending = training.ending(stop)
                # The last weights are always validated, but a request to stop does not wait for a validation.
                validation_due = ending != "stopped" and bool(ending or _due(state.step, config.validate_every))
            if valid and validation_due:
                with training.averaged():  # includes the yield, because the caller may save these weights as the best
                    yield training.validate(valid, metric)
                # This validation may have used up the patience, or a request to stop may have come meanwhile.
                ending = training.ending(stop) or ending
            validation_due = False
            yield from training.checkpoint(checkpoints, ending)
        yield EndReport(step=state.step, reason=ending, seconds=state.seconds)


@torch.no_grad()
def validation_loss(model: Transformer, examples: Examples, batch_tokens: int) -> float:
    """Return the mean −log p of the examples' target tokens, in nats, without label smoothing and dropout."""
    was_training, total, tokens = model.training, 0.0, 0
    model.eval()
    for batch in batches(examples, batch_tokens, seed=0, epoch=0):
        total += float(batch_loss(model, batch, 0.0).plain)
        tokens += batch.target_tokens
    model.train(was_training)
    return total / tokens


def badness(loss: float, measured: Measured | None, config: TrainingConfig) -> float:
    """Return a number that is lower for better weights: the validation loss, the metric, or the negated metric."""
    if measured is None:
        return loss
    match config.best_by:
        case "loss":
            return loss
        case "metric":
            return -measured.value if measured.higher_is_better else measured.value


def _updates(
    examples: Examples, config: TrainingConfig, seed: int, state: TrainingState, resample: Resample | None
) -> Iterator[_Update]:
    """Yield, for each update, its batches, the position after them, and the seconds spent on building them."""
    after = Position(epoch=state.epoch, window=state.window, batch=state.batch)
    coming = stream(examples, config.batch_tokens, seed=seed, start=after, resample=resample)
    while True:
        begun, epoch = time.perf_counter(), after.epoch
        chosen: list[Batch] = []
        # the last update of an epoch may have fewer batches
        while len(chosen) < config.accumulate and after.epoch == epoch:
            batch, after = next(coming)
            chosen.append(batch)
        yield chosen, after, time.perf_counter() - begun


@dataclass(slots=True, kw_only=True)
class _Training:
    """The mutable state of a training run: what an update and a validation change."""

    model: Transformer
    optimiser: Optimizer
    config: TrainingConfig
    state: TrainingState
    average: MovingAverage | None
    add_gradients: AddGradients
    ranks: Ranks
    started: float
    """Start time of the training as if it had never been interrupted, on the clock of `time.perf_counter`."""
    recent: deque[tuple[float, float]]
    """Training time and progress after each of the last `RECENT` updates; at first also those at the start of the
    process."""

    @property
    def watch(self) -> LossWatch:
        """The history of the losses, from which divergence is detected."""
        return self.state.watch

    def update(self, batches: Sequence[Batch], after: Position, waited: float) -> StepReport:
        """Update the weights once, with the gradient averaged over all target tokens of the batches."""
        # `waited` counts, so that the reported speed also falls if building batches is what takes long
        begun, state, epoch = time.perf_counter() - waited, self.state, self.state.epoch
        state.step += 1
        state.epoch, state.window, state.batch = after.epoch, after.window, after.batch
        rate = _learning_rate(self.model, self.config, state)
        tokens = sum(batch.target_tokens for batch in batches)
        scale = state.loss_scale if self.config.precision == "fp16" else 1.0
        # In fp16, the divisor makes all gradients `scale` times as large, so that small gradients do not become 0.
        loss = self.add_gradients(batches, tokens / scale) / scale
        norm = self._clip(scale)
        if self._in_range(norm, scale):
            self._check(loss, norm, rate)
            for group in self.optimiser.param_groups:
                group["lr"] = rate
            self.optimiser.step()
        self.optimiser.zero_grad()  # also after an overflow, whose gradients must not be added to the next ones
        if self.average:
            self.average.update(self.model, state.step)
        now = time.perf_counter()
        state.seconds = now - self.started
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
        """Validate the model, and record whether its weights are the best so far."""
        state = self.state
        loss, measured = self.ranks.decide(lambda: self._validated(valid, metric))
        now = badness(loss, measured, self.config)
        best = state.best is None or now < state.best
        if best:
            state.best, state.best_step = now, state.step
        state.since_best = 0 if best else state.since_best + 1
        state.validated = state.step
        state.seconds = time.perf_counter() - self.started
        perplexity = math.exp(min(loss, 700))  # beyond 709, `math.exp` raises an OverflowError
        return ValidationReport(step=state.step, loss=loss, perplexity=perplexity, metric=measured, best=best)

    def ending(self, stop: Callable[[], bool]) -> Ending | None:
        """Return why training ends now, or None if training continues; all ranks use the training time of rank 0."""
        self.state.seconds, stopped = self.ranks.agree(self.state.seconds, stop())
        return _ending(self.config, self.state, stopped=stopped)

    def checkpoint(self, checkpoints: Checkpoints | None, ending: Ending | None) -> Iterator[CheckpointReport]:
        """Start a checkpoint if due, and report each completed checkpoint; at the end, wait for all checkpoints."""
        due = _due(self.state.step, self.config.checkpoint_every) and not self.watch.suspicious
        wait = checkpoints.wait if checkpoints else list
        if due or ending:
            self.check_weights()
            # finish the previous checkpoint first, because writing a new checkpoint may delete an older one
            yield from _written(self.ranks.decide(wait))
            if checkpoints:
                passing = ending == "stopped" and not due
                checkpoints.begin(self.model, self.optimiser, self.state, self.average, passing=passing)
        if ending:
            yield from _written(self.ranks.decide(wait))
        elif checkpoints:
            yield from _written(checkpoints.finished())

    def check_weights(self) -> None:
        """Check that all ranks have the same weights, bit for bit."""
        self.ranks.check_same(f"weights after step {self.state.step}", lambda: hash_of_weights(self.model))

    def averaged(self) -> AbstractContextManager[None]:
        """Return a context in which the model has the averaged weights, if there is a moving average."""
        return self.average.applied(self.model) if self.average else nullcontext()

    def _validated(
        self, valid: Examples, metric: Callable[[Transformer], Measured] | None
    ) -> tuple[float, Measured | None]:
        loss = validation_loss(self.model, valid, self.config.batch_tokens)
        return loss, _measure(self.model, metric) if metric else None

    def _clip(self, scale: float) -> float:
        """Divide the gradients by the loss scale, then clip their norm; return the norm before clipping."""
        if scale != 1.0:
            torch._foreach_div_([weight.grad for weight in self.model.parameters() if weight.grad is not None], scale)
        # with an infinite limit, nothing is clipped, but the norm is computed
        return float(clip_grad_norm_(self.model.parameters(), self.config.clip_norm or math.inf))

    def _in_range(self, norm: float, scale: float) -> bool:
        """Return whether the gradients fit into fp16 with this loss scale, and adapt the scale.

        The scale is halved if they do not fit, and doubled after `SCALE_UP_AFTER` updates in which they fit
        (Micikevicius et al. 2018, Mixed precision training, §3.2). At scale 1 or below, an infinite gradient counts as
        divergence, not as overflow.
        """
        state, fits = self.state, math.isfinite(norm)
        if self.config.precision != "fp16" or (not fits and scale <= 1.0):
            return True
        state.unscaled += 1
        if not fits or state.unscaled == SCALE_UP_AFTER:
            state.loss_scale, state.unscaled = scale * (2.0 if fits else 0.5), 0
        return fits

    def _check(self, loss: float, norm: float, rate: float) -> None:
        """Raise an error if training diverges, before this update spoils the weights."""
        self.watch.see(loss)
        if not math.isfinite(norm):
            raise DivergenceError(_advice(f"the gradient is not finite at step {self.state.step}", loss, rate))
        if self.watch.diverged:
            what = f"the loss was down to {self.watch.lowest:.3g} and has climbed back by step {self.state.step}"
            raise DivergenceError(_advice(what, loss, rate))

    def _left(self) -> float:
        """Return the estimated number of seconds left, from the speed of recent updates only."""
        (then, before), (seconds, progress) = self.recent[0], (self.state.seconds, _progress(self.config, self.state))
        self.recent.append((seconds, progress))
        return max((seconds - then) / max(progress - before, 1e-9) * (1 - progress), 0.0)


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
    return learning_rate(
        config.schedule,
        state.step,
        peak=peak,
        warmup=config.warmup,
        progress=_progress(config, state),
        time=_time_share(config, state),
    )


def _progress(config: TrainingConfig, state: TrainingState) -> float:
    """Return the finished share of the training: the share of steps or the share of time, whichever is larger."""
    return max(state.step / config.last_step, _time_share(config, state))


def _time_share(config: TrainingConfig, state: TrainingState) -> float:
    """Return the share of `config.minutes` that has passed, or 0 if there is no such limit."""
    return state.seconds / (60 * config.minutes) if config.minutes else 0.0


def _ending(config: TrainingConfig, state: TrainingState, *, stopped: bool) -> Ending | None:
    if state.step >= config.last_step:
        return "steps"
    if config.minutes and state.seconds >= 60 * config.minutes:
        return "minutes"
    if config.patience and state.since_best >= config.patience:
        return "patience"
    return "stopped" if stopped else None


def _due(step: int, every: int) -> bool:
    return every > 0 and step % every == 0


def _padding(batches: Sequence[Batch]) -> float:
    """Return the share of padding among all positions of the batches."""
    tokens = sum(batch.source_tokens + batch.target_tokens for batch in batches)
    return 1 - tokens / sum(batch.places for batch in batches)


def _advice(what: str, loss: float, rate: float) -> str:
    return (
        f"training has diverged: {what} (loss {loss:.3g}, learning rate {rate:.3g}); lower training.learning_rate, "
        'raise training.warmup, set training.clip_norm = 1 or model.norm = "pre"; earlier checkpoints and the best '
        "weights are kept"
    )
