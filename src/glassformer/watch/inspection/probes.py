"""Probes: the measurements behind `glassformer check`.

Each probe except `source` returns a number that is 0, up to rounding, for a correct model. A sentence is a pair: a
source with `<eos>`, and the decoder's input with `<bos>`.

Axes: B batch · R rows (hypotheses) · S source positions · T target positions · V vocabulary.
"""

import random
from collections.abc import Sequence

import torch
from torch import Tensor

from glassformer.decoding.transformer_step import padded
from glassformer.model.config import ModelConfig
from glassformer.model.taps import record
from glassformer.model.transformer import Transformer

__all__ = [
    "Sentence",
    "batch",
    "cache",
    "causality",
    "determinism",
    "padding",
    "recording",
    "run",
    "sentences",
    "source",
    "weights_sum_to_one",
]

Sentence = tuple[list[int], list[int]]
LENGTHS = ((6, 4), (4, 7), (9, 5), (2, 3))
EXTRA = 3
NEVER = -1e6
"""A token with at most this log probability counts as impossible. An imported model may have −1e9, which is affected by
rounding."""


def sentences(config: ModelConfig, seed: int = 1) -> list[Sentence]:
    """Return a few sentences of different lengths with random ids."""
    chosen = random.Random(seed)
    longest = max(1, config.longest - EXTRA)
    specials = (config.pad_id, config.bos_id, config.eos_id)
    words = [
        [token for token in range(size) if token not in specials] or [config.eos_id]
        for size in (config.source_vocab_size, config.target_vocab_size)
    ]
    return [
        (
            [*chosen.choices(words[0], k=min(S, longest) - 1), config.eos_id],
            [config.bos_id, *chosen.choices(words[1], k=min(T, longest) - 1)],
        )
        for S, T in LENGTHS
    ]


def run(model: Transformer, batch: Sequence[Sentence], extra: int = 0) -> list[Tensor]:
    """Return the log probabilities (T, V) of each sentence, from one batch with `extra` more positions of padding."""
    log_probs = model(
        padded(model, [source for source, _ in batch], extra), padded(model, [y for _, y in batch], extra)
    )
    return [each[: len(target)] for each, (_, target) in zip(log_probs.log_softmax(-1), batch, strict=True)]


def determinism(model: Transformer, sentences: Sequence[Sentence]) -> float:
    """Return the difference between two runs on the same sentences."""
    return _largest(run(model, sentences), run(model, sentences))


def recording(model: Transformer, sentences: Sequence[Sentence]) -> float:
    """Return the difference between the fused kernel of attention and the step-by-step computation for recordings."""
    unheard = run(model, sentences)
    with record(model):
        return _largest(unheard, run(model, sentences))


def causality(model: Transformer, sentences: Sequence[Sentence]) -> float:
    """Return the effect of later positions on earlier positions."""
    source, target = max(sentences, key=lambda one: len(one[1]))
    [whole] = run(model, [(source, target)])
    prefixes = [run(model, [(source, target[:length])])[0] for length in range(1, len(target))]
    return _largest(prefixes, [whole[: len(prefix)] for prefix in prefixes])


def padding(model: Transformer, sentences: Sequence[Sentence]) -> float:
    """Return the effect of padding after a sentence."""
    alone = [run(model, [one])[0] for one in sentences]
    return _largest(alone, [run(model, [one], extra=EXTRA)[0] for one in sentences])


def batch(model: Transformer, sentences: Sequence[Sentence]) -> float:
    """Return the effect of the other sentences of a batch, and of their order."""
    alone = [run(model, [one])[0] for one in sentences]
    turned = run(model, sentences[::-1])[::-1]
    return max(_largest(alone, run(model, sentences)), _largest(alone, turned))


def cache(model: Transformer, sentences: Sequence[Sentence]) -> float:
    """Return the difference between steps with a cache and whole passes; hypotheses are split, swapped and dropped."""
    chosen, config = random.Random(2), model.config
    source = padded(model, [source for source, _ in sentences[:3]])
    words = [token for _, target in sentences for token in target[1:]] or [config.eos_id]
    moves = [
        ([0, 0, 1, 1, 2, 2], [0, 1, 2]),  # each sentence gets two hypotheses
        # the hypotheses of the first two sentences are swapped; in the third, the second hypothesis replaces the first
        ([1, 0, 3, 2, 5, 5], [0, 1, 2]),
        ([1, 0, 5, 4], [0, 2]),  # the second sentence is dropped
    ]
    prefixes, state, differences = torch.full((3, 1), config.bos_id, device=source.device), model.start(source), []
    for step in range(len(moves) + 1):
        logits, state = model.advance(prefixes[:, -1], state)
        whole = model(source.repeat_interleave(len(prefixes) // len(source), dim=0), prefixes)[:, -1]
        differences.append(_largest([logits.log_softmax(-1)], [whole.log_softmax(-1)]))
        if step < len(moves):
            rows, kept = (torch.tensor(index, device=source.device) for index in moves[step])
            state, source, prefixes = state.select(rows, kept), source[kept], prefixes[rows]
            newest = torch.tensor(chosen.choices(words, k=len(rows)), device=source.device)
            prefixes = torch.cat([prefixes, newest[:, None]], dim=1)
    return max(differences)


def weights_sum_to_one(model: Transformer, sentences: Sequence[Sentence]) -> float:
    """Return the largest error of attention weights: rows must sum to 1, and masked weights must be 0.

    One of the sources is all padding, so its rows of weights must be 0. A NaN at any point counts as an infinite error.
    """
    pad_id = model.config.pad_id
    source = padded(model, [[pad_id], *(source for source, _ in sentences)])
    target = padded(model, [sentences[0][1], *(target for _, target in sentences)])
    with record(model) as trace:
        model(source, target)
    if any(bool(tensor.isnan().any()) for tensor in trace.values()):
        return float("inf")
    memory_mask, own = (source != pad_id)[:, None, None], (target != pad_id)[:, None, None]
    causal = own & torch.ones(target.shape[1], target.shape[1], dtype=torch.bool, device=own.device).tril()
    errors = []
    for name, weights in trace.items():
        if name.endswith(".weights"):
            mask = causal if name.startswith("decoder.") and "self_attention" in name else memory_mask
            sums = (weights.sum(-1) - mask.any(-1).to(weights)).abs().max()
            errors.append(max(sums.item(), (weights * ~mask).abs().max().item()))
    return max(errors, default=0.0)


def source(model: Transformer, sentences: Sequence[Sentence]) -> float:
    """Return the effect of a different source, which must not be 0: the output must depend on the source."""
    others = [*sentences[1:], sentences[0]]
    swapped = [(other, target) for (other, _), (_, target) in zip(others, sentences, strict=True)]
    return _largest(run(model, sentences), run(model, swapped))


def _largest(one: Sequence[Tensor], other: Sequence[Tensor]) -> float:
    """Return the largest absolute difference: infinite if a value is NaN, 0 where both values are at most `NEVER`."""
    differences = [
        torch.where((a == b) | ((a <= NEVER) & (b <= NEVER)), 0.0, (a - b).abs()).max().nan_to_num(nan=torch.inf)
        for a, b in zip(one, other, strict=True)
    ]
    return max((difference.item() for difference in differences), default=0.0)
