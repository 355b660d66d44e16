"""The self-test of a model: it checks properties of correct Transformers, and names likely mistakes if a check fails.

All checks compute in float64, so that rounding is far smaller than the effect of any mistake. Afterwards, the weights,
the mode and the random state are restored.
"""

import math
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from glassformer.bundle import WEIGHTS, load_weights, read_weights, save_weights
from glassformer.decoding.greedy_search import greedy
from glassformer.decoding.hypothesis import EXTRA_LENGTH, max_length
from glassformer.decoding.transformer_step import TransformerStep, padded
from glassformer.model.config import ModelConfig
from glassformer.model.transformer import Transformer
from glassformer.watch.inspection import probes
from glassformer.watch.inspection.divergence import divergence
from glassformer.watch.inspection.forced import outputs
from glassformer.watch.inspection.mistakes import MISTAKES
from glassformer.watch.inspection.probes import Sentence
from glassformer.watch.inspection.self_test import Check, SelfTest
from glassformer.watch.inspection.subject import Trained, as_it_is, model_and_run

__all__ = ["check"]

TOLERANCE = 1e-9
"""Tolerance of log probabilities and weights, in float64."""
USED = 0.1
"""Minimum number of nats per token by which a different source must make a trained model's own output less probable."""
UNLIKELY = -100.0
"""An untrained model cannot write `<eos>` if its log probability (natural logarithm) is at most this number."""


def check(subject: "Transformer | Trained | str | Path") -> SelfTest:
    """Return the result of the self-test of a model, a translator, or a run, given by its folder.

    A run or a translator is trained, so its outputs must depend on the source, and some must end with `<eos>`. A bare
    model may be untrained, so a different source must only change its numbers, and `<eos>` must only be possible.

    Raises:
        CheckpointError: the folder is not a run.
        ConfigError: the subject is neither a model, nor a run, nor a translator.

    >>> import glassformer as gf
    >>> model = gf.Transformer(gf.ModelConfig.preset("tiny", vocab_size=11))
    >>> gf.check(model).passed
    True
    """
    model, run = model_and_run(subject)
    batch = probes.sentences(model.config)
    with as_it_is(model):
        saved = _tried("save and load", _save_and_load, model)
        with _in_float64(model):
            finite = _tried("finite weights", _finite, model)
            steady = _tried("determinism", _measured, "determinism", probes.determinism, model, batch)
            if "failed" in (finite.status, steady.status):
                return SelfTest(checks=(finite, steady, *_skipped(finite, steady), saved))
            reference = _tried("reference", _reference, model, batch)
            others = [_tried(name, _measured, name, probe, model, batch) for name, probe in _PROBES.items()]
            others.append(_tried("source", _source_matters if run else _source_is_read, model, batch))
            others.append(_tried("<eos>", _eos_ends if run else _eos_is_possible, model, batch))
    return SelfTest(checks=(finite, steady, reference, *(_told_apart(one, reference) for one in others), saved))


@contextmanager
def _in_float64(model: Transformer) -> Iterator[None]:
    """Convert the weights to float64 within the context, in place, so that planted mistakes and listeners stay."""
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
    "reference": "every point equals the paper's formula in NumPy",
    "recording": "recording changes nothing",
    "causality": "later positions change nothing",
    "padding": "padding changes nothing",
    "batch": "neighbours and order change nothing",
    "cache": "steps with a cache equal whole passes",
    "attention": "weights sum to 1, are 0 where masked",
    "source": "a different source gives a different output",
    "<eos>": "outputs can end",
    "save and load": "loading returns what was saved",
}
"""The property that each check tests, by the name of the check."""

_PROBES: dict[str, Callable[[Transformer, Sequence[Sentence]], float]] = {
    "recording": probes.recording,
    "causality": probes.causality,
    "padding": probes.padding,
    "batch": probes.batch,
    "cache": probes.cache,
    "attention": probes.weights_sum_to_one,
}


def _noticed(check: str) -> list[str]:
    """Return the titles of the classic mistakes with which a check fails."""
    return [mistake.title for mistake in MISTAKES.values() if check in mistake.fails]


_NO_PADDING_MASK = "attention to padding: no padding mask, or an inverted one"
LIKELY = {
    "finite weights": ("training diverged: too high a learning rate, half precision that overflowed, or a NaN loss",),
    "determinism": ("dropout left on in evaluation, such as F.dropout without training=self.training",),
    "recording": ("the fused attention and the step-by-step attention have different scales or masks",),
    "causality": tuple(_noticed("causality")),
    "padding": (_NO_PADDING_MASK, *_noticed("padding")),
    "batch": (_NO_PADDING_MASK, *_noticed("batch"), "a state or a norm that sentences share"),
    "cache": (
        "the cache does not follow the beam: its rows are not reordered with the hypotheses",
        "stale keys and values of the memory: a finished sentence's rows are not removed",
        "positions that start from 0 at each step",
        *_noticed("cache"),
    ),
    "attention": (*_noticed("attention"), _NO_PADDING_MASK, "NaN from a row whose scores are all −∞"),
    "save and load": (
        "an unregistered part (in a plain list of modules), or a tensor that is not a parameter",
        "weights of a different configuration",
    ),
    "source": (
        *_noticed("source"),
        "the decoder does not get the memory, or gets zeros",
        "too little training, or training pairs whose sides do not translate each other",
    ),
    "<eos>": ("<eos> missing at the end of the training targets", "an output bias or a mask that forbids <eos>"),
}
"""The likely mistakes, by the name of the failed check."""


def _checked(name: str, passed: bool, measured: float, unit: str, note: str = "") -> Check:
    finite = math.isfinite(measured)
    return Check(
        name=name,
        claim=CLAIMS[name],
        status="passed" if passed else "failed",
        measured=measured if finite else None,
        unit=unit,
        note=note or ("" if finite else "NaN, or a different shape"),
        likely=() if passed else LIKELY[name],
    )


def _tried(name: str, run: Callable[..., Check], *arguments: Any) -> Check:
    """Return the result of a check; an exception counts as a failure, with its message as the note."""
    try:
        return run(*arguments)
    except Exception as error:  # an unfinished model may raise anything
        note = f"it raised {type(error).__name__}: {' '.join(str(error).split())[:200]}"
        return Check(name=name, claim=CLAIMS[name], status="failed", note=note, likely=LIKELY.get(name, ()))


def _skipped(*failed: Check) -> Iterator[Check]:
    reason = " and ".join(one.name for one in failed if one.status == "failed")
    for name in ("reference", *_PROBES, "source", "<eos>"):
        yield Check(name=name, claim=CLAIMS[name], status="skipped", note=f"not meaningful while {reason} fails")


def _told_apart(one: Check, reference: Check) -> Check:
    """Return a failed check; if the reference identified one of the likely mistakes, keep only this mistake."""
    told = one.status == "failed" and len(reference.likely) == 1 and reference.likely[0] in one.likely
    return replace(one, likely=reference.likely) if told else one


def _measured(
    name: str,
    probe: Callable[[Transformer, Sequence[Sentence]], float],
    model: Transformer,
    batch: Sequence[Sentence],
) -> Check:
    """Return the result of checking that a probe measures 0, up to rounding."""
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
    """Return sentences whose two sides have equal lengths (without or with padding) or different lengths."""
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
    """Return the result of checking that the model's outputs are less probable for different sources."""
    written = _written(model, batch)
    own = outputs(model, written)
    swapped = [(other, output) for (other, _), (_, output) in zip([*written[1:], written[0]], written, strict=True)]
    tokens = sum(len(output) for _, output in written)
    loss = sum(one.log_prob for one in own) - sum(one.log_prob for one in outputs(model, swapped))
    return _checked("source", loss / tokens > USED, loss / tokens, "nats per token lost")


def _eos_is_possible(model: Transformer, batch: Sequence[Sentence]) -> Check:
    best = max(log_probs[:, model.config.eos_id].max().item() for log_probs in probes.run(model, batch))
    return _checked("<eos>", best > UNLIKELY, math.exp(best), "largest probability")


def _eos_ends(model: Transformer, batch: Sequence[Sentence]) -> Check:
    ended = sum(len(output) < _longest(model, source) for source, output in _written(model, batch))
    return _checked("<eos>", ended > 0, ended, f"of {len(batch)} outputs ended")


def _written(model: Transformer, batch: Sequence[Sentence]) -> list[tuple[Sequence[int], Sequence[int]]]:
    """Return each source with the model's greedy output."""
    written: list[tuple[Sequence[int], Sequence[int]]] = []
    for source, _ in batch:
        step = TransformerStep(model, padded(model, [source]))
        [found] = greedy(step, max_lengths=[_longest(model, source)])
        written.append((source, found.tokens))
    return written


def _longest(model: Transformer, source: Sequence[int]) -> int:
    """Return the maximum number of tokens of the model's output for a source."""
    return max_length(model.config, len(source), EXTRA_LENGTH)
