"""Choose the cross-attention heads that align words, by their agreement with a word aligner on some pairs.

Axes: B pairs · H heads · S source tokens · T target tokens · W target words with a reference · U source words.
"""

from collections.abc import Iterator, Sequence
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
from glassformer.text.links import source_words, target_words, word_spans

__all__ = ["COMPARED_PAIRS", "choose_alignment"]

COMPARED_PAIRS = 500
"""Maximum number of pairs that `choose_alignment` looks at."""
TOKENS = 4000
"""Maximum number of positions in a batch, including padding; bounds memory."""


class _Pair(NamedTuple):
    """A pair as the model reads it, with the word of each token."""

    words: tuple[list[str], list[str]]
    source: list[int]
    target: list[int]
    source_words: list[int | None]
    target_words: list[int | None]

    @property
    def size(self) -> int:
        return max(len(self.source), len(self.target))


class _Looks(NamedTuple):
    """Where the heads of one layer look, at the steps of one shift, for the target words with a reference."""

    layer: int
    shift: int
    weights: NDArray[np.float32]
    """Sums of weights, (W, H, U)."""


def choose_alignment(bundle: Bundle, model: Transformer, pairs: Sequence[tuple[str, str]]) -> Alignment | None:
    """Return the heads that agree best with a word aligner on some pairs; None if no word can be compared.

    Only the first `COMPARED_PAIRS` pairs are read.
    For each layer and shift, heads are added to the best single head as long as the agreement rises. A target word
    agrees if the source word with the largest weight is the one that `align_words` finds in these pairs; words whose
    source word is uncertain do not count.
    """
    readable = list(_readable(bundle, model, pairs[:COMPARED_PAIRS]))
    reference = align_words([one.words for one in readable])
    found = np.array([source for links in reference for source in links if source is not None])
    if not len(found):
        return None
    chosen = [_best_heads(looks, found, len(readable)) for looks in _looks(model, readable, reference)]
    best, unshifted = (
        max(several, key=lambda one: one.agreement) for several in (chosen, [one for one in chosen if not one.shift])
    )
    return replace(best, unshifted=unshifted) if best.shift else best


def _readable(bundle: Bundle, model: Transformer, pairs: Sequence[tuple[str, str]]) -> Iterator[_Pair]:
    """Yield the pairs that fit the model's positions and whose tokens make up the words of the texts."""
    of_source, of_target = bundle.source_tokenizer, bundle.target_tokenizer
    for source, target in pairs:
        output = [*of_target.encode(target), of_target.eos_id]
        one = _Pair(
            words=(_words(source), _words(target)),
            source=[*of_source.encode(source), of_source.eos_id],
            target=output,
            source_words=[*source_words(of_source, source), None],
            target_words=target_words(of_target, output),
        )
        whole = all(
            words and set(range(len(words))) == {*places} - {None}
            for words, places in zip(one.words, (one.source_words, one.target_words), strict=True)
        )
        if whole and one.size <= model.config.longest:
            yield one


def _words(text: str) -> list[str]:
    return [text[begin:end] for begin, end in word_spans(text)]


@torch.no_grad()
def _looks(model: Transformer, pairs: Sequence[_Pair], reference: Sequence[Sequence[int | None]]) -> list[_Looks]:
    """Return where each layer looks at each shift; the words with a reference are in the order of the pairs."""
    widest = max(len(one.words[0]) for one in pairs)
    found: dict[int, list[NDArray[np.float32]]] = {}
    for places in batched_by_size(range(len(pairs)), lambda place: pairs[place].size, TOKENS):
        inputs = [[model.config.bos_id, *pairs[place].target[:-1]] for place in places]
        with record(model, "decoder.layers.*.cross_attention.weights") as trace:
            model(padded(model, [pairs[place].source for place in places]), padded(model, inputs))
        layers = torch.stack([*trace.values()]).float().cpu().numpy()  # (layers, B, H, T, S)
        for row, place in enumerate(places):
            of_source = _membership(pairs[place].source_words, widest)
            compared = [word for word, source in enumerate(reference[place]) if source is not None]
            of_target = _membership(pairs[place].target_words, len(pairs[place].words[1]))[:, compared]
            weights = layers[:, row, :, : len(of_target), : len(of_source)]
            found[place] = [
                np.einsum("tw,lhts,su->lwhu", of_target[: len(of_target) - shift], weights[:, :, shift:], of_source)
                for shift in (0, 1)
            ]
    return [
        _Looks(layer, shift, np.concatenate([found[place][shift][layer] for place in range(len(pairs))]))
        for shift in (0, 1)
        for layer in range(model.config.decoder_layers)
    ]


def _membership(words: Sequence[int | None], width: int) -> NDArray[np.float32]:
    """Return for each token (row) and each of `width` words (column) 1 if the token belongs to the word, and else 0."""
    matrix = np.zeros((len(words), width), np.float32)
    for token, word in enumerate(words):
        if word is not None:
            matrix[token, word] = 1.0
    return matrix


def _best_heads(looks: _Looks, reference: NDArray[np.int64], pairs: int) -> Alignment:
    """Return the best single head of one layer, with further heads as long as they raise the agreement."""

    def agreement(heads: list[int]) -> float:
        return float((looks.weights[:, heads].sum(1).argmax(1) == reference).mean())

    heads, best, rest = list[int](), -1.0, set(range(looks.weights.shape[1]))
    while rest:
        more = max(sorted(rest), key=lambda head: agreement([*heads, head]))
        if agreement([*heads, more]) <= best:
            break
        heads, best, rest = [*heads, more], agreement([*heads, more]), rest - {more}
    return Alignment(layer=looks.layer, heads=tuple(sorted(heads)), shift=looks.shift, agreement=best, pairs=pairs)
