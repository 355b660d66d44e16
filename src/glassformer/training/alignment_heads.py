"""Find out which cross-attention heads align words, by comparing them with a word aligner on sentence pairs.

Axes: B pairs · H heads · S source tokens · T target tokens · U source words · W target words.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from glassformer.bundle import Bundle
from glassformer.corpus.word_alignment import align_words
from glassformer.decoding.engine import batched_by_size
from glassformer.decoding.transformer_step import padded
from glassformer.model.alignment import Alignment
from glassformer.model.taps import record
from glassformer.model.transformer import Transformer
from glassformer.text.links import membership, source_words, target_words, word_path, word_spans

__all__ = ["COMPARED_PAIRS", "choose_alignment"]

COMPARED_PAIRS = 500
"""Maximum number of sentence pairs that `choose_alignment` reads."""
TOKENS = 4000
"""Maximum number of positions in a batch, including padding, to bound memory."""


class _Pair(NamedTuple):
    """A sentence pair as the model reads it: its words, its token ids, and the words to which each token belongs."""

    words: tuple[list[str], list[str]]
    source: list[int]
    target: list[int]
    source_words: list[range]
    target_words: list[range]

    @property
    def size(self) -> int:
        return max(len(self.source), len(self.target))


class _Looks(NamedTuple):
    """The attention weights between words, for all heads of one layer and one shift (see `Alignment.shift`)."""

    layer: int
    shift: int
    weights: list[NDArray[np.float32]]
    """One array (H, W, U) per pair: the weights, summed over the tokens of each target word and source word."""


_Links = list[int | None]
_Linking = Callable[[NDArray[np.float32]], list[int]]
"""A function that links each target word to a source word, given the weights (W, U) between all words."""


def choose_alignment(bundle: Bundle, model: Transformer, pairs: Sequence[tuple[str, str]]) -> Alignment | None:
    """Return the heads that agree best with a word aligner on these pairs; None if no word can be compared.

    Only the first `COMPARED_PAIRS` pairs are read. For each layer and shift, heads are added to the best single head
    one at a time, and the set with the largest agreement is chosen. The agreement is the share of target words that the
    heads link to the same source word as `align_words`; words for which `align_words` is uncertain do not count. To
    choose the layer and the shift, each target word is linked to the source word with the largest weight, which is
    fast. To choose the heads, the words are linked by `word_path`.
    """
    readable = list(_readable(bundle, model, pairs[:COMPARED_PAIRS]))
    reference = align_words([one.words for one in readable])
    if all(source is None for links in reference for source in links):
        return None
    looks = _looks(model, readable)
    ranked = sorted(looks, key=lambda one: -_best_heads(one, reference, _largest).agreement)
    best = _best_heads(ranked[0], reference, word_path)
    if not best.shift:
        return best
    unshifted = next(one for one in ranked if not one.shift)
    return replace(best, unshifted=_best_heads(unshifted, reference, word_path))


def _largest(sums: NDArray[np.float32]) -> list[int]:
    largest: list[int] = sums.argmax(1).tolist()
    return largest


def _readable(bundle: Bundle, model: Transformer, pairs: Sequence[tuple[str, str]]) -> Iterator[_Pair]:
    """Yield the pairs that are short enough for the model and in which every word has at least one token."""
    of_source, of_target = bundle.source_tokenizer, bundle.target_tokenizer
    for source, target in pairs:
        output = [*of_target.encode(target), of_target.eos_id]
        one = _Pair(
            words=(_words(source), _words(target)),
            source=[*of_source.encode(source), of_source.eos_id],
            target=output,
            source_words=[*source_words(of_source, source), range(0)],
            target_words=target_words(of_target, output),
        )
        whole = all(
            words and set(range(len(words))) == set().union(*places)
            for words, places in zip(one.words, (one.source_words, one.target_words), strict=True)
        )
        if whole and one.size <= model.config.longest:
            yield one


def _words(text: str) -> list[str]:
    return [text[begin:end] for begin, end in word_spans(text)]


@torch.no_grad()
def _looks(model: Transformer, pairs: Sequence[_Pair]) -> list[_Looks]:
    """Return the attention weights between words for each layer and shift."""
    found: dict[int, list[NDArray[np.float32]]] = {}
    for places in batched_by_size(range(len(pairs)), lambda place: pairs[place].size, TOKENS):
        inputs = [[model.config.bos_id, *pairs[place].target[:-1]] for place in places]
        with record(model, "decoder.layers.*.cross_attention.weights") as trace:
            model(padded(model, [pairs[place].source for place in places]), padded(model, inputs))
        layers = torch.stack([*trace.values()]).float().cpu().numpy()  # (layers, B, H, T, S)
        for row, place in enumerate(places):
            one = pairs[place]
            of_source, of_target = (
                membership(of_tokens, len(words))
                for of_tokens, words in zip((one.source_words, one.target_words), one.words, strict=True)
            )
            weights = layers[:, row, :, : len(of_target), : len(of_source)]
            found[place] = [
                np.einsum("tw,lhts,su->lhwu", of_target[: len(of_target) - shift], weights[:, :, shift:], of_source)
                for shift in (0, 1)
            ]
    return [
        _Looks(layer, shift, [found[place][shift][layer] for place in range(len(pairs))])
        for shift in (0, 1)
        for layer in range(model.config.decoder_layers)
    ]


def _best_heads(looks: _Looks, reference: Sequence[_Links], linking: _Linking) -> Alignment:
    """Return the set of heads of one layer with the largest agreement; the compared sets grow by one head at a time."""

    def agreement(heads: list[int]) -> float:
        compared = [
            link == source
            for weights, sources in zip(looks.weights, reference, strict=True)
            for link, source in zip(linking(weights[heads].mean(0)), sources, strict=True)
            if source is not None
        ]
        return float(np.mean(compared))

    chosen, agreements, rest = list[int](), list[float](), set(range(len(looks.weights[0])))
    while rest:
        found = {head: agreement([*chosen, head]) for head in sorted(rest)}
        chosen.append(max(found, key=found.__getitem__))
        agreements.append(found[chosen[-1]])
        rest.remove(chosen[-1])
    best = max(agreements)
    heads = tuple(sorted(chosen[: agreements.index(best) + 1]))
    return Alignment(layer=looks.layer, heads=heads, shift=looks.shift, agreement=best, pairs=len(looks.weights))
