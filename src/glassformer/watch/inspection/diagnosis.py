"""Find the classic mistake with which a model was trained, by its loss on given pairs.

The weights of a model fit the computation with which they were trained. If this computation had a mistake, the loss
falls when the mistake is planted in the model. `diagnose` measures the loss of the same pairs without a mistake and
with each classic mistake, and compares the losses pair by pair, by bootstrap.

Each loss is measured at its own best temperature T: the logits are divided by the T that gives the lowest loss. Label
smoothing makes a model less sure than it should be, so at T = 1, every mistake that sharpens the probabilities would
lower the loss. At the best T, only a mistake that puts the tokens in a better order lowers the loss.
"""

import json
import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from glassformer.bundle import Bundle
from glassformer.errors import ConfigError, DataError
from glassformer.model.transformer import Transformer
from glassformer.text.normalisation import normalise
from glassformer.watch.inspection import forced
from glassformer.watch.inspection.forced import batches_of
from glassformer.watch.inspection.mistakes import MISTAKES, Mistake, plant
from glassformer.watch.inspection.subject import Trained, as_it_is, model_and_run

__all__ = ["Diagnosis", "MistakeLoss", "MistakeVerdict", "diagnose"]

_FEWEST = 30
"""Minimum number of pairs for a bootstrap."""
_LEVEL = 0.05
"""Probability that at least one interval misses its value; Bonferroni's correction divides it by the number of
intervals."""
_SAMPLES = 10_000
"""Number of bootstrap samples, so that even a tail of probability _LEVEL / 30 contains 16 samples."""
_SEED = 1
_DRAWN_TOGETHER = 2**22
"""Number of counts drawn in one block, to bound memory."""

_HELD = 2**26
"""Maximum number of log probabilities kept in memory to find a temperature (256 MiB). If the pairs have more, a sample
of the pairs gives the temperature, and all pairs are computed again."""
_SHARPNESS = (1 / 64, 64.0)
"""Lowest and highest factor of the logits (1 / T) that is tried."""
_NARROW = 1.001
"""The search for a factor ends when the ratio of its upper to its lower bound is below this number."""
_THINNED = 8
"""The search begins with every eighth position, which gives a good starting value in an eighth of the time."""
_LOWEST = -1e4
"""Log probability of a token that a model forbids; it is finite, so that means exist."""
_ENOUGH = 0.01
"""The search for a temperature ends when its next step would lower the loss of all pairs by fewer nats than this."""

_UNTOLD = {
    "unbiased_norm": "it scales every norm by √((n − 1) / n), less than training on other pairs would",
    "double_softmax": "it keeps the order of the tokens, so it changes only how sure the model is",
}
"""Mistakes that the loss at the best temperature cannot show, with the reasons."""

MistakeVerdict = Literal["trained with it", "cannot be told apart", "falls less", "does not fall", "undecidable"]
"""What the loss says about a mistake:

- "trained with it": the loss falls, and is lower than with every other mistake;
- "cannot be told apart": the loss falls with this mistake and with another mistake, and the two losses do not differ
  beyond chance;
- "falls less": the loss falls, but it falls further with another mistake;
- "does not fall": the loss is higher than without a mistake, or higher than with the mistake that lowers it;
- "undecidable": the loss changes by no more than chance, or cannot show this mistake.

All verdicts are about losses at the best temperature.
"""

_Ids = Sequence[int]
_Rows = NDArray[np.float64]
_Batch = tuple[Tensor, Tensor, NDArray[np.intp]]
"""Log probabilities at P positions, (P, V), their target tokens, and the indices of their pairs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MistakeLoss:
    """The loss under a classic mistake, compared with the loss of the model as it is."""

    id: str
    title: str
    verdict: MistakeVerdict
    loss: float | None = None
    """Nats per target token; None if the mistake changes nothing in this configuration."""
    temperature: float | None = None
    """The best temperature: dividing the logits by it gives the lowest loss."""
    best: float | None = None
    """The loss at the best temperature; the verdict is about this loss."""
    difference: float | None = None
    """`best` minus the `best` of the model as it is."""
    low: float | None = None
    """Lower end of the difference's interval, by paired bootstrap."""
    high: float | None = None
    """Upper end of the same interval."""
    note: str = ""
    """The reason why the loss cannot decide, or why a loss that falls proves nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Diagnosis:
    """The losses of given pairs, in nats per target token, without a mistake and with each classic mistake."""

    pairs: int
    tokens: int
    """Number of target tokens of the pairs, including `<eos>`."""
    left_out: int
    """Number of pairs that were not used, because a side is blank or longer than the model allows."""
    loss: float
    """The loss of the model as it is."""
    temperature: float
    """The temperature with the lowest loss: above 1 if the model is too sure, below 1 if it is not sure enough."""
    best: float
    """The loss at the best temperature, with which the losses of the mistakes are compared."""
    low: float
    """Lower end of the interval of `best`."""
    high: float
    """Upper end of the same interval."""
    guess: float
    """The loss of a model that only knows the frequency of each token in the given targets."""
    confidence: float
    """The probability with which a single interval contains its value."""
    mistakes: tuple[MistakeLoss, ...]
    """The classic mistakes, in the order of their losses at the best temperature."""

    @property
    def fits(self) -> bool:
        """Whether the model, without a mistake or with one, predicts the targets better than token frequencies do."""
        return min([self.best, *(one.best for one in self.mistakes if one.best is not None)]) < self.guess

    @property
    def suspects(self) -> tuple[MistakeLoss, ...]:
        """The mistake with which the model was trained; several mistakes if the pairs cannot tell them apart."""
        return tuple(one for one in self.mistakes if one.verdict in ("trained with it", "cannot be told apart"))

    @property
    def passed(self) -> bool:
        """Whether the pairs fit the model, and no mistake lowers their loss."""
        return self.fits and not self.suspects

    @property
    def summary(self) -> str:
        """The result in one or two sentences."""
        if not self.fits:
            return (
                f"The pairs do not fit the model: guessing each token by its frequency has a loss of {self.guess:.2f}, "
                f"and the model {self.best:.2f}; check the pairs, the vocabularies and the special tokens."
            )
        if not self.suspects:
            return f"No mistake lowers the loss of {_number(self.best)} at the best temperature."
        if len(self.suspects) > 1:
            each = ", ".join(f"{one.title} ({_number(one.best)})" for one in self.suspects)
            return (
                f"This model was trained with one of {len(self.suspects)} mistakes, which these pairs cannot tell "
                f"apart: {each}. At the best temperature, its loss is {_number(self.best)} without a mistake."
            )
        [suspect] = self.suspects
        return (
            f"This model was trained with a mistake: {suspect.title}. At the best temperature, its loss is "
            f"{_number(suspect.best)} with the mistake, {_number(self.best)} without."
        )

    @property
    def notes(self) -> tuple[str, ...]:
        """For each mistake that is undecidable, or whose lower loss proves nothing, a sentence with the reason."""
        return tuple(f"{one.verdict}: {one.title}: {one.note}" for one in self.mistakes if one.note)

    def to_dict(self) -> dict[str, Any]:
        """Return the result as plain data."""
        values = {"passed": self.passed, "fits": self.fits, "suspects": [one.id for one in self.suspects]}
        plain: dict[str, Any] = json.loads(json.dumps({**values, **asdict(self)}))
        return plain

    def __str__(self) -> str:
        """Return one line per loss at its best temperature, the summary, and the notes."""
        rows = [f"{_number(self.best):>8}  {'':<21} no mistake"]
        rows += [f"{_number(one.best):>8}  {one.verdict:<21} {one.title}" for one in self.mistakes]
        return "\n".join([*rows, self.summary, *self.notes])


def diagnose(
    subject: "Transformer | Trained | str | Path",
    pairs: "Sequence[tuple[str, str]] | Sequence[tuple[_Ids, _Ids]]",
    *,
    limit: int | None = None,
    on_progress: Callable[[int, int], object] = lambda *_: None,
) -> Diagnosis:
    """Return the losses of given pairs with each classic mistake, and the mistake with which the loss falls.

    The pairs are sources with correct translations, or with the model's own outputs. For a run or a translator, the
    pairs are texts. For a bare model, they are ids: a source as the model reads it, and a target with `<eos>` and
    without `<bos>`.

    Each loss is measured at its own best temperature, so a mistake that only makes the probabilities sharper or flatter
    is never a suspect.

    A mistake is a suspect only if its loss is lower beyond chance. Three conditions must hold. The interval of the
    difference, by paired bootstrap, does not contain 0. The loss with the mistake is outside the interval of the loss
    without a mistake; training on other pairs moves the loss by about the width of this interval. The mistake makes the
    pairs at least 20 n times as probable, where n is the number of mistakes; this excludes tiny differences between
    losses near 0.

    Args:
        subject: a model, a translator, or the folder of a run.
        pairs: sources and targets.
        limit: maximum number of pairs, spread evenly over the given pairs; by default, all pairs.
        on_progress: function called with the number of losses computed so far, and the total number.

    Raises:
        CheckpointError: the folder is not a run.
        ConfigError: the subject is neither a model, nor a run, nor a translator; or a bare model got texts.
        DataError: there are fewer than 30 usable pairs.
    """
    model, run = model_and_run(subject)
    count = min(len(pairs), limit or len(pairs))
    chosen = [pairs[place * len(pairs) // count] for place in range(count)]
    usable = [pair for pair in _encoded(run, chosen) if all(0 < len(side) <= model.config.longest for side in pair)]
    if len(usable) < _FEWEST:
        raise DataError(
            f"expected at least {_FEWEST} pairs that are not blank and fit the model's positions, got {len(usable)} of "
            f"{count}; give more pairs"
        )
    with as_it_is(model):
        scored = _scored(model, usable, on_progress)
    targets = [target for _, target in usable]
    compared = _Comparison({name: one.sums for name, one in scored.items()}, targets)
    rows = [_measured(mistake, compared, scored) for mistake in MISTAKES.values()]
    return Diagnosis(
        pairs=len(usable),
        tokens=sum(map(len, targets)),
        left_out=count - len(usable),
        loss=scored[""].loss,
        temperature=scored[""].temperature,
        best=compared.loss[""],
        low=compared.whole[0],
        high=compared.whole[1],
        guess=compared.guess,
        confidence=1 - compared.level,
        mistakes=tuple(sorted(rows, key=lambda one: math.inf if one.best is None else one.best)),
    )


def _encoded(run: Bundle | None, pairs: Sequence[tuple[Any, Any]]) -> list[tuple[_Ids, _Ids]]:
    """Return the ids of pairs; if one side of a pair is blank, both sides have no ids.

    Raises:
        ConfigError: the pairs are texts, but there is no run whose tokenizers could encode them.
    """
    if run is None:
        if any(isinstance(side, str) for pair in pairs for side in pair):
            raise ConfigError("pairs: expected ids for a bare model, got texts; give the run, or a Translator")
        return list(pairs)
    encoded: list[tuple[_Ids, _Ids]] = []
    for texts in pairs:
        blank = not all(normalise(text, "plain") for text in texts)
        sides = zip(texts, (run.source_tokenizer, run.target_tokenizer), strict=True)
        source, target = ([] if blank else [*tokenizer.encode(text), tokenizer.eos_id] for text, tokenizer in sides)
        encoded.append((source, target))
    return encoded


class _Scored(NamedTuple):
    """The losses of all pairs in one computation: at temperature 1, and at the best temperature."""

    loss: float
    """Nats per target token at temperature 1."""
    temperature: float
    sums: _Rows
    """−log p of each target at the best temperature."""


def _scored(
    model: Transformer, pairs: Sequence[tuple[_Ids, _Ids]], on_progress: Callable[[int, int], object]
) -> dict[str, _Scored]:
    """Return the losses without a mistake (key "") and with each mistake that has an effect on this model."""
    effective = ["", *(one.id for one in MISTAKES.values() if one.first(model.config))]
    scored: dict[str, _Scored] = {}
    positions = sum(len(target) for _, target in pairs)
    sample = pairs[:: math.ceil(positions * model.config.target_vocab_size / _HELD)]
    sharpness = 1.0
    for done, mistake in enumerate(effective):
        on_progress(done, len(effective))
        with plant(model, *filter(None, [mistake])):
            held = [*_positions(model, sample)]
            thinned = [(log_probs[::_THINNED], ids[::_THINNED], owners) for log_probs, ids, owners in held]
            sharpness = _best_sharpness(held, _best_sharpness(thinned, sharpness))
            each = held if len(sample) == len(pairs) else _positions(model, pairs)
            sums, total = np.zeros(len(pairs)), 0.0
            for log_probs, ids, owners in each:
                given = log_probs.gather(-1, ids[:, None]).squeeze(-1)
                losses = (sharpness * log_probs).logsumexp(-1) - sharpness * given
                np.add.at(sums, owners, losses.cpu().double().numpy())
                total -= given.double().sum().item()
        scored[mistake] = _Scored(total / positions, 1 / sharpness, sums)
    on_progress(len(effective), len(effective))
    return scored


def _positions(model: Transformer, pairs: Sequence[tuple[_Ids, _Ids]]) -> Iterator[_Batch]:
    """Yield the target positions of each batch, without padding."""
    for batch in batches_of(pairs):
        log_probs, output = forced.log_probs(model, [pairs[place] for place in batch])
        real = output != model.config.pad_id
        owners = np.repeat(batch, [len(pairs[place][1]) for place in batch])
        yield log_probs[real].clamp_(min=_LOWEST), output[real], owners


def _best_sharpness(held: Sequence[_Batch], start: float) -> float:
    """Return the factor of the logits, 1 / T, with the lowest loss.

    The loss is convex in the factor, so Newton's method finds the minimum. Each step narrows an interval that contains
    the minimum. If a step would leave this interval, the geometric mean of the interval's ends is the next factor
    instead.
    """
    low, high = _SHARPNESS
    sharpness = start
    while high / low > _NARROW:
        slope = curvature = 0.0
        for log_probs, ids, _ in held:
            shares = (sharpness * log_probs).softmax(-1).mul_(log_probs)
            mean = shares.sum(-1)
            slope += (mean - log_probs.gather(-1, ids[:, None]).squeeze(-1)).double().sum().item()
            curvature += (torch.linalg.vecdot(shares, log_probs) - mean.square()).double().sum().item()
        if slope**2 <= 2 * _ENOUGH * curvature:
            break
        low, high = (low, sharpness) if slope > 0 else (sharpness, high)
        step = sharpness - slope / curvature if curvature > 0 else math.inf
        sharpness = step if low < step < high else math.sqrt(low * high)
    return sharpness


# The comparison


class _Comparison:
    """Losses per token, by mistake ("" = no mistake), and the same losses in bootstrap samples of the pairs."""

    def __init__(self, sums: Mapping[str, _Rows], targets: Sequence[_Ids]) -> None:
        tokens = np.array([len(target) for target in targets], dtype=np.float64)
        self.tokens = float(tokens.sum())
        rows = np.stack([*sums.values(), tokens], axis=1)  # (pairs, mistakes + 1)
        self.loss = {name: float(each.sum() / self.tokens) for name, each in sums.items()}
        drawn = np.concatenate([counts @ rows for counts in _draws(len(targets))])
        self.drawn = dict(zip(sums, (drawn[:, :-1] / drawn[:, -1:]).T, strict=True))
        self.level = _LEVEL / max(len(sums) - 1, 1)
        self.whole = self._interval(self.drawn[""])
        self.guess = _guess(targets)
        self.fits = min(self.loss.values()) < self.guess
        told = [name for name in self.loss if name and name not in _UNTOLD]
        self.lowest = min(filter(self.falls, told), key=self.loss.__getitem__, default=None)
        self.tied = list(filter(self._ties, told))

    def difference(self, name: str, other: str = "") -> tuple[float, float]:
        """Return the interval of the loss `name` minus the loss `other`, from the same samples of pairs."""
        return self._interval(self.drawn[name] - self.drawn[other])

    def changed(self, name: str) -> bool:
        """Return whether a mistake changes the loss of any pair."""
        return not np.array_equal(self.drawn[name], self.drawn[""])

    def falls(self, name: str) -> bool:
        """Return whether a mistake lowers the loss beyond chance."""
        certain = self.fits and self.difference(name)[1] < 0 and self.loss[name] < self.whole[0]
        # If the model without a mistake is the true model, another model makes the pairs 1 / level times as probable
        # with a probability of at most `level`.
        return certain and (self.loss[""] - self.loss[name]) * self.tokens > -math.log(self.level)

    def rises(self, name: str) -> bool:
        """Return whether a mistake raises the loss beyond chance."""
        return self.fits and self.difference(name)[0] > 0 and self.loss[name] > self.whole[1]

    def _ties(self, name: str) -> bool:
        return self.lowest is not None and self.difference(name, self.lowest)[0] <= 0

    def _interval(self, values: _Rows) -> tuple[float, float]:
        low, high = np.quantile(values, [self.level / 2, 1 - self.level / 2])
        return float(low), float(high)


def _draws(pairs: int) -> Iterator[_Rows]:
    """Yield blocks of bootstrap samples; a sample says how often each pair is drawn."""
    chance = np.random.default_rng(_SEED)
    block = max(1, _DRAWN_TOGETHER // pairs)
    for start in range(0, _SAMPLES, block):
        size = min(block, _SAMPLES - start)
        yield chance.multinomial(pairs, np.full(pairs, 1 / pairs), size=size).astype(np.float64)


def _guess(targets: Sequence[_Ids]) -> float:
    """Return the entropy of the targets' tokens: the loss of a model that only knows each token's frequency."""
    counts = np.array([*Counter(id for target in targets for id in target).values()], dtype=np.float64)
    shares = counts / counts.sum()
    return float(-(shares * np.log(shares)).sum())


def _measured(mistake: Mistake, compared: _Comparison, scored: Mapping[str, _Scored]) -> MistakeLoss:
    """Return the verdict on a mistake."""
    if mistake.id not in scored:
        return MistakeLoss(id=mistake.id, title=mistake.title, verdict="undecidable", note=mistake.unseen)
    low, high = compared.difference(mistake.id)
    right, wrong = scored[""], scored[mistake.id]
    verdict, note = _verdict(mistake, compared)
    if not note and verdict == "does not fall" and wrong.loss < right.loss:
        note = "it only makes the probabilities sharper or flatter"
    if note and wrong.loss < right.loss:
        note += f" (the loss falls from {_number(right.loss)} to {_number(wrong.loss)} at temperature 1 alone)"
    return MistakeLoss(
        id=mistake.id,
        title=mistake.title,
        verdict=verdict,
        loss=wrong.loss,
        temperature=wrong.temperature,
        best=compared.loss[mistake.id],
        difference=compared.loss[mistake.id] - compared.loss[""],
        low=low,
        high=high,
        note=note,
    )


def _verdict(mistake: Mistake, compared: _Comparison) -> tuple[MistakeVerdict, str]:
    """Return the verdict on a mistake that has an effect, with the reason if the loss cannot decide."""
    if mistake.id in compared.tied:
        return ("trained with it" if len(compared.tied) == 1 else "cannot be told apart"), ""
    if not compared.changed(mistake.id):
        return "undecidable", "it changes nothing for these pairs"
    if mistake.id in _UNTOLD:
        return "undecidable", _UNTOLD[mistake.id]
    if compared.tied:
        return ("falls less" if compared.difference(mistake.id)[1] < 0 else "does not fall"), ""
    if compared.rises(mistake.id):
        return "does not fall", ""
    return (
        "undecidable",
        "the loss changes by no more than chance" if compared.fits else "the pairs do not fit the model",
    )


def _number(value: float | None) -> str:
    """Return a loss with three significant digits (four if it is at least 10); "" if there is no loss."""
    return "" if value is None else f"{value:#.3g}" if value < 10 else f"{value:.1f}"
