"""The self-test of a model: what has to hold whatever it has learned, with the likely mistake where it does not.

All is computed in float64 on the model as it is, so that rounding is far below every mistake. Weights, mode and random
state are afterwards what they were before.
"""

import math
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import torch

from glassformer.bundle import WEIGHTS, Bundle, load_weights, read_weights, save_weights
from glassformer.decoding.greedy_search import greedy
from glassformer.decoding.hypothesis import max_length
from glassformer.decoding.transformer_step import TransformerStep, padded
from glassformer.errors import ConfigError
from glassformer.inspection import probes
from glassformer.inspection.divergence import divergence
from glassformer.inspection.forced import outputs
from glassformer.inspection.mistakes import MISTAKES
from glassformer.inspection.probes import Sentence
from glassformer.inspection.report import Check, Report
from glassformer.model.config import ModelConfig
from glassformer.model.transformer import Transformer

__all__ = ["Trained", "check"]

TOLERANCE = 1e-9
"""Of log probabilities and weights, in float64."""
USED = 0.1
"""Nats per token that a trained model's own output has to lose when the source is another one."""
NEVER = -100.0
"""A log probability that is as good as impossible."""


@runtime_checkable
class Trained(Protocol):
    """A model with what belongs to its run, such as a Translator."""

    @property
    def model(self) -> Transformer:
        """The model."""

    @property
    def bundle(self) -> Bundle:
        """Its configuration and tokenizers."""


def check(subject: "Transformer | Trained | str | Path") -> Report:
    """Return the self-test of a model, of a run (its folder) or of a translator.

    Of a run, which is trained, the output has to depend on the source and to end by itself. Of a bare model, which may
    be untrained, it is enough that both are possible.

    Raises:
        CheckpointError: the folder is no run.
        ConfigError: the subject is none of these.

    >>> import glassformer as gf
    >>> model = gf.Transformer(gf.ModelConfig.preset("tiny", vocab_size=11))
    >>> gf.check(model).passed
    True
    """
    model, trained = _opened(subject)
    batch = probes.sentences(model.config)
    with _as_it_is(model):
        saved = _tried("save and load", _save_and_load, model)
        with _in_float64(model):
            finite = _tried("finite weights", _finite, model)
            steady = _tried("determinism", _measured, "determinism", probes.determinism, model, batch)
            if "failed" in (finite.status, steady.status):
                return Report(checks=(finite, steady, *_skipped(finite, steady), saved))
            reference = _tried("reference", _reference, model, batch)
            others = [_tried(name, _measured, name, probe, model, batch) for name, probe in _PROBES.items()]
            others.append(_tried("source", _source_matters if trained else _source_is_read, model, batch))
            others.append(_tried("<eos>", _eos_ends if trained else _eos_is_possible, model, batch))
    return Report(checks=(finite, steady, reference, *(_told_apart(one, reference) for one in others), saved))


def _opened(subject: "Transformer | Trained | str | Path") -> tuple[Transformer, bool]:
    """Return the model, and whether it is a run's."""
    if isinstance(subject, Transformer):
        return subject, False
    if isinstance(subject, str | Path):
        return Bundle.load(subject).model(), True
    if isinstance(subject, Trained):
        return subject.model, True
    raise ConfigError(
        f"cannot check a {type(subject).__name__}: give a Transformer, the folder of a run, or a Translator"
    )


@contextmanager
def _as_it_is(model: Transformer) -> Iterator[None]:
    """Evaluate a model for a while: afterwards, its mode and torch's random state are what they were."""
    training = [part for part in model.modules() if part.training]
    model.eval()
    try:
        with torch.no_grad(), torch.random.fork_rng(devices=[]):
            yield
    finally:
        for part in training:
            part.training = True


@contextmanager
def _in_float64(model: Transformer) -> Iterator[None]:
    """Compute in float64 for a while, on the same objects: what is planted or listens there stays where it is."""
    tensors = [tensor for tensor in (*model.parameters(), *model.buffers()) if tensor.is_floating_point()]
    before = [tensor.data for tensor in tensors]
    for tensor in tensors:
        tensor.data = tensor.data.double()
    try:
        yield
    finally:
        for tensor, data in zip(tensors, before, strict=True):
            tensor.data = data


# The checks

CLAIMS = {
    "finite weights": "every weight is a number",
    "determinism": "the same input, the same output",
    "reference": "every point is the paper's, in NumPy",
    "recording": "watching changes nothing",
    "causality": "what comes later changes nothing",
    "padding": "padding changes nothing",
    "batch": "neighbours and order change nothing",
    "cache": "steps with a cache equal whole passes",
    "attention": "weights sum to 1, are 0 where masked",
    "source": "another source, another output",
    "<eos>": "outputs can end",
    "save and load": "what is loaded is what was saved",
}
"""What has to hold, by the name of the check."""

_PROBES: dict[str, Callable[[Transformer, Sequence[Sentence]], float]] = {
    "recording": probes.recording,
    "causality": probes.causality,
    "padding": probes.padding,
    "batch": probes.batch,
    "cache": probes.cache,
    "attention": probes.attention,
}
_LEAKS = tuple(
    MISTAKES[mistake].title
    for mistake in ("no_causal_mask", "mask_zero", "mask_after_softmax", "decoder_keys", "no_transpose")
)
_PADDED = tuple(MISTAKES[mistake].title for mistake in ("target_padding_mask", "mask_zero", "mask_after_softmax"))
_SPLIT = MISTAKES["no_transpose"].title
LIKELY = {
    "finite weights": ("training diverged: too high a learning rate, half precision that overflowed, or a NaN loss",),
    "determinism": ("dropout left on in evaluation, such as F.dropout without training=self.training",),
    "recording": ("the fused attention has another scale or another mask than the one that is written out",),
    "causality": (*_LEAKS, MISTAKES["target_padding_mask"].title),
    "padding": ("padding attended: no padding mask, or one upside down", *_PADDED, _SPLIT),
    "batch": (
        "padding attended: no padding mask, or one upside down",
        *_PADDED,
        _SPLIT,
        "a state or a norm that sentences share",
    ),
    "cache": (
        "the cache does not follow the beam: its rows stay when hypotheses change places",
        "stale keys and values of the memory: they stay when a sentence has left",
        "positions counted anew at each step",
        *_LEAKS,
    ),
    "attention": (
        *(*_PADDED, *(MISTAKES[mistake].title for mistake in ("no_causal_mask", "decoder_keys"))),
        *("padding attended: no padding mask, or one upside down", "NaN of a row with nothing but −∞"),
    ),
    "save and load": (
        "a part that is not registered (a plain list of modules), or a tensor that is no parameter",
        "weights of another configuration",
    ),
    "source": (
        MISTAKES["decoder_keys"].title,
        "the memory is not handed on, or zeroed",
        "trained too little, or on pairs whose sides do not belong together",
    ),
    "<eos>": ("<eos> missing at the end of the training targets", "an output bias or a mask that forbids <eos>"),
}
"""The likely mistakes, by the name of the check that fails."""


def _checked(name: str, passed: bool, measured: float, unit: str, note: str = "") -> Check:
    finite = math.isfinite(measured)
    return Check(
        name=name,
        claim=CLAIMS[name],
        status="passed" if passed else "failed",
        measured=measured if finite else None,
        unit=unit,
        note=note or ("" if finite else "NaN, or another shape"),
        likely=() if passed else LIKELY[name],
    )


def _tried(name: str, run: Callable[..., Check], *arguments: Any) -> Check:
    """Return what a check finds; one that stops has failed, with its reason."""
    try:
        return run(*arguments)
    except Exception as error:  # whatever a model in development may raise
        note = f"it stops with {type(error).__name__}: {' '.join(str(error).split())[:200]}"
        return Check(name=name, claim=CLAIMS[name], status="failed", note=note, likely=LIKELY.get(name, ()))


def _skipped(*failed: Check) -> Iterator[Check]:
    reason = " and ".join(one.name for one in failed if one.status == "failed")
    for name in ("reference", *_PROBES, "source", "<eos>"):
        yield Check(name=name, claim=CLAIMS[name], status="skipped", note=f"means nothing while {reason} fails")


def _told_apart(one: Check, reference: Check) -> Check:
    """Return the check with the one mistake that the reference tells, where that is among its likely ones."""
    told = one.status == "failed" and len(reference.likely) == 1 and reference.likely[0] in one.likely
    return replace(one, likely=reference.likely) if told else one


def _measured(
    name: str,
    probe: Callable[[Transformer, Sequence[Sentence]], float],
    model: Transformer,
    batch: Sequence[Sentence],
) -> Check:
    """Return the check of a number that has to be 0."""
    difference = probe(model, batch)
    unit = "of a weight" if name == "attention" else "in log p"
    return _checked(name, difference <= TOLERANCE, difference, unit)


def _finite(model: Transformer) -> Check:
    wrong = {name: int((~weight.isfinite()).sum()) for name, weight in model.named_parameters()}
    first = next((name for name, count in wrong.items() if count), "")
    return _checked("finite weights", not first, sum(wrong.values()), "not finite", first)


def _reference(model: Transformer, batch: Sequence[Sentence]) -> Check:
    found = divergence(model, _lengths(model.config, batch))
    if found is None:
        return _checked("reference", True, 0.0, "points differ")
    note = f"first difference at {found.point}" + ("" if found.exact else ", which no single known mistake explains")
    return Check(
        name="reference",
        claim=CLAIMS["reference"],
        status="failed",
        measured=found.size if math.isfinite(found.size) else None,
        unit="there",
        note=note,
        likely=found.mistakes,
    )


def _lengths(config: ModelConfig, batch: Sequence[Sentence]) -> list[Sentence]:
    """Return pairs of equal length, of different lengths padded to one, and of different lengths."""
    source, target = batch[0]
    length = min(len(source), len(target))
    ends = [config.pad_id] * (len(source) - len(target))
    return [
        (source[-length:], target[:length]),
        (source, target + ends),
        (source[:4] + [config.pad_id] * 2, (target + batch[1][1][1:])[:6]),
        (source, target),
    ]


def _save_and_load(model: Transformer) -> Check:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / WEIGHTS
        save_weights(model, path)
        read = read_weights(path)
        loaded = Transformer(ModelConfig.from_json(model.config.to_json()))
        load_weights(loaded, path)
    before, after = model.state_dict(), loaded.to(model.output.weight).state_dict()
    lost = [name for name in before if name not in after or not torch.equal(before[name], after[name])]
    lost += [name for name, _ in model.named_parameters() if name not in read and name not in lost]
    return _checked("save and load", not lost, len(lost), "weights differ", ", ".join(lost[:3]))


def _source_is_read(model: Transformer, batch: Sequence[Sentence]) -> Check:
    difference = probes.source(model, batch)
    return _checked("source", difference > TOLERANCE, difference, "in log p")


def _source_matters(model: Transformer, batch: Sequence[Sentence]) -> Check:
    """Compare the model's own outputs with the same outputs for other sources."""
    written = _written(model, batch)
    own = outputs(model, written)
    swapped = [(other, output) for (other, _), (_, output) in zip([*written[1:], written[0]], written, strict=True)]
    tokens = sum(len(output) for _, output in written)
    loss = sum(one.log_prob for one in own) - sum(one.log_prob for one in outputs(model, swapped))
    return _checked("source", loss / tokens > USED, loss / tokens, "nats a token lost")


def _eos_is_possible(model: Transformer, batch: Sequence[Sentence]) -> Check:
    best = max(log_probs[:, model.config.eos_id].max().item() for log_probs in probes.run(model, batch))
    return _checked("<eos>", best > NEVER, math.exp(best), "largest probability")


def _eos_ends(model: Transformer, batch: Sequence[Sentence]) -> Check:
    ended = sum(len(output) < max_length(model.config, len(source)) for source, output in _written(model, batch))
    return _checked("<eos>", ended > 0, ended, f"of {len(batch)} outputs ended")


def _written(model: Transformer, batch: Sequence[Sentence]) -> list[tuple[Sequence[int], Sequence[int]]]:
    """Return each source with the model's own greedy output."""
    written: list[tuple[Sequence[int], Sequence[int]]] = []
    for source, _ in batch:
        step = TransformerStep(model, padded(model, [source]))
        [found] = greedy(step, max_lengths=[max_length(model.config, len(source))])
        written.append((source, found.tokens))
    return written
