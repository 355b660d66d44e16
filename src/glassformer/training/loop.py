"""The training loop, as a generator of reports: whoever drives it prints or plots, and stops by no longer asking.

Axes: B batch · S source positions · T target positions.
"""

import math
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, NamedTuple

import torch
from torch import Tensor
from torch.nn.utils import clip_grad_norm_
from torch.optim import Optimizer

from glassformer.errors import ConfigError, DataError
from glassformer.model.transformer import Transformer
from glassformer.recipes.configuration import TrainingConfig
from glassformer.text.batching import Batch, Examples, batches, make_batch, plan_batches
from glassformer.training.checkpoint import Checkpoints, TrainingState
from glassformer.training.objective import Loss, smoothed_cross_entropy
from glassformer.training.optimiser import make_optimiser
from glassformer.training.schedule import learning_rate, paper_peak

__all__ = [
    "CheckpointReport",
    "EndReport",
    "Measured",
    "Report",
    "StepReport",
    "ValidationReport",
    "badness",
    "batch_loss",
    "steps",
    "validation_loss",
]


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
    """A checkpoint was written."""

    step: int
    path: Path


@dataclass(frozen=True, slots=True, kw_only=True)
class EndReport:
    """Training has ended: all steps or minutes are spent, validation no longer improves, or it was asked to stop."""

    step: int
    reason: Literal["steps", "minutes", "patience", "stopped"]
    seconds: float


class Measured(NamedTuple):
    """A metric of decoded validation sentences."""

    name: str
    value: float
    higher_is_better: bool


Report = StepReport | ValidationReport | CheckpointReport | EndReport


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
    stop: Callable[[], bool] = lambda: False,
) -> Iterator[Report]:
    """Yield a report after each update, validation and checkpoint, and one at the end.

    `state` and `optimiser` continue an earlier training (see `Checkpoints.restore`). `stop` is asked after each update
    and each validation: once it says yes, a checkpoint is written and the loop ends.

    Raises:
        DataError: there are no examples.
        ConfigError: the loss is no longer a number.

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
    state = TrainingState() if state is None else state
    optimiser = optimiser or make_optimiser(model, config)
    started = time.perf_counter() - state.seconds
    ending = _ending(config, state, lambda: False)
    updates = _updates(examples, config, seed, state)
    model.train()
    while not ending:
        yield _update(model, optimiser, next(updates), config, state, started)
        ending = _ending(config, state, stop)
        if valid and ending != "stopped" and (ending or _due(state.step, config.validate_every)):
            yield _validate(model, valid, metric, config, state)
            state.seconds = time.perf_counter() - started
            ending = ending or _ending(config, state, stop)
        if checkpoints and (ending or _due(state.step, config.checkpoint_every)):
            yield CheckpointReport(step=state.step, path=checkpoints.save(model, optimiser, state))
    yield EndReport(step=state.step, reason=ending, seconds=state.seconds)


def batch_loss(model: Transformer, batch: Batch, smoothing: float) -> Loss:
    """Return the loss of a batch, summed over its real target tokens."""
    device = model.output.weight.device
    source, target_input, target_output = (
        torch.from_numpy(ids).to(device) for ids in (batch.source, batch.target_input, batch.target_output)
    )
    hidden = model.hidden(target_input, model.encode(source), source)
    real = target_output != model.config.pad_id
    return smoothed_cross_entropy(hidden[real], model.output.weight, target_output[real], smoothing)


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


def _updates(examples: Examples, config: TrainingConfig, seed: int, state: TrainingState) -> Iterator[Sequence[Batch]]:
    """Yield the batches of each update from where `state` stands, and count in it what was handed out."""
    while True:
        plan = plan_batches(examples, config.batch_tokens, seed=seed, epoch=state.epoch)
        while state.batch < len(plan):
            chosen = plan[state.batch : state.batch + config.accumulate]
            state.batch += len(chosen)
            yield [make_batch(examples, rows) for rows in chosen]
        state.epoch, state.batch = state.epoch + 1, 0


def _update(
    model: Transformer,
    optimiser: Optimizer,
    batches: Sequence[Batch],
    config: TrainingConfig,
    state: TrainingState,
    started: float,
) -> StepReport:
    """Change the weights once, by the mean gradient over all target tokens of the batches."""
    begun = time.perf_counter()
    state.step += 1
    rate = _learning_rate(model, config, state)
    for group in optimiser.param_groups:
        group["lr"] = rate
    tokens, loss = sum(batch.target_tokens for batch in batches), 0.0
    for batch in batches:
        with _precision(config, model.output.weight):
            mean = batch_loss(model, batch, config.label_smoothing).smoothed / tokens
        mean.backward()
        loss += float(mean.detach())
    norm = float(clip_grad_norm_(model.parameters(), config.clip_norm or math.inf))
    if not math.isfinite(norm):
        raise ConfigError(_diverged(state, loss, rate))
    optimiser.step()
    optimiser.zero_grad()
    now = time.perf_counter()
    state.seconds = now - started
    left = state.seconds * (1 / max(_progress(config, state), 1e-9) - 1)
    return StepReport(
        step=state.step,
        epoch=state.epoch + 1,
        loss=loss,
        learning_rate=rate,
        gradient_norm=norm,
        target_tokens=tokens,
        tokens_per_second=tokens / (now - begun),
        seconds=state.seconds,
        seconds_left=max(left, 0.0),
    )


def _validate(
    model: Transformer,
    valid: Examples,
    metric: Callable[[Transformer], Measured] | None,
    config: TrainingConfig,
    state: TrainingState,
) -> ValidationReport:
    loss = validation_loss(model, valid, config.batch_tokens)
    measured = _measure(model, metric) if metric else None
    now = badness(loss, measured, config)
    best = state.best is None or now < state.best
    state.best = now if best else state.best
    state.since_best = 0 if best else state.since_best + 1
    return ValidationReport(step=state.step, loss=loss, perplexity=math.exp(min(loss, 700)), metric=measured, best=best)


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


def _ending(
    config: TrainingConfig, state: TrainingState, stop: Callable[[], bool]
) -> Literal["steps", "minutes", "patience", "stopped"] | None:
    if state.step >= config.last_step:
        return "steps"
    if config.minutes and state.seconds >= 60 * config.minutes:
        return "minutes"
    if config.patience and state.since_best >= config.patience:
        return "patience"
    return "stopped" if stop() else None


def _due(step: int, every: int) -> bool:
    return every > 0 and step % every == 0


def _precision(config: TrainingConfig, weight: Tensor) -> AbstractContextManager[object]:
    """Return the context in which the forward pass runs: bf16 products where the configuration asks for them."""
    return torch.autocast(weight.device.type, torch.bfloat16) if config.precision == "bf16" else nullcontext()


def _diverged(state: TrainingState, loss: float, rate: float) -> str:
    return (
        f"training has diverged at step {state.step} (loss {loss:.3g}, learning rate {rate:.3g}): lower "
        "training.learning_rate, raise training.warmup, or set training.clip_norm = 1; its checkpoints are kept"
    )
