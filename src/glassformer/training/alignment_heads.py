"""Choose the cross-attention heads that align words, by their agreement with a word aligner on some pairs.

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
from glassformer.text.placeholders import Masked, has_placeholders, masked

__all__ = ["COMPARED_PAIRS", "choose_alignment"]

COMPARED_PAIRS = 500
"""Maximum number of pairs that `choose_alignment` looks at."""
TOKENS = 4000
"""Maximum number of positions in a batch, including padding; bounds memory."""


class _Pair(NamedTuple):
    """A pair as the model reads it, with the words of each token."""

    words: tuple[list[str], list[str]]
    source: list[int]
    target: list[int]
    source_words: list[range]
    target_words: list[range]

    @property
    def size(self) -> int:
        return max(len(self.source), len(self.target))


class _Looks(NamedTuple):
    """Where the heads of one layer look, at the steps of one shift."""

    layer: int
    shift: int
    weights: list[NDArray[np.float32]]
    """Sums of weights of each pair, (H, W, U)."""


_Links = list[int | None]
_Linking = Callable[[NDArray[np.float32]], list[int]]
"""A function that returns the source word of each target word, given the weights of all links, (W, U)."""


def choose_alignment(bundle: Bundle, model: Transformer, pairs: Sequence[tuple[str, str]]) -> Alignment | None:
    """Return the heads that agree best with a word aligner on some pairs; None if no word can be compared.

    Only the first `COMPARED_PAIRS` pairs are read.
    For each layer and shift, heads are added to the best single head one after another, and the set with the largest
    agreement is kept. A target word agrees if it is linked to the source word that `align_words` finds in these pairs;
    words whose source word is uncertain do not count. The layer and the shift are chosen by the largest weights, which
    is fast; then the heads are chosen by the links of `word_path`.
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
    """Yield the pairs that fit the model's positions and whose tokens make up the words of the texts."""
    of_source, of_target = bundle.source_tokenizer, bundle.target_tokenizer
    reads_placeholders = has_placeholders(of_source) and has_placeholders(of_target)
    for text, translation in pairs:
        read = masked(text, of_source) if reads_placeholders else Masked(text, text)
        source, target = read.text, read.in_target(translation)
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
    """Return where each layer looks at each shift."""
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
    """Return the heads of one layer that agree best, among sets that grow by the best further head."""

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
