"""Decoding without a cache, for changes at given positions of the target: each step runs the whole prefix.

Each sentence runs alone and without padding, so the result does not depend on the other sentences of a batch.

Axes: B sentences · R rows (hypotheses) · S source positions · T target positions · D model width · V vocabulary.
"""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor

from glassformer.model.transformer import Transformer
from glassformer.watch.inspection.mistakes import replaced

__all__ = ["uncached"]


class _Sentence(NamedTuple):
    """A source, its memory, and the tokens so far of each of its hypotheses, including `<bos>`."""

    source: Int[Tensor, "1 S"]
    memory: Float[Tensor, "1 S D"]
    prefixes: Int[Tensor, "R T"]


class _Prefixes(tuple[_Sentence, ...]):
    """The replacement for a cache. Sentences have equal numbers of rows, but may have prefixes of different lengths."""

    def select(self, rows: Int[Tensor, "R2"], sentences: Int[Tensor, "B2"]) -> "_Prefixes":
        """Return these sentences with these rows; each sentence has the same number of rows."""
        before = len(self[0].prefixes)
        kept = (rows.view(len(sentences), -1) - before * sentences[:, None]).unbind()
        chosen = zip(sentences.tolist(), kept, strict=True)
        return _Prefixes(self[place]._replace(prefixes=self[place].prefixes[within]) for place, within in chosen)

    def join(self, newcomers: "_Prefixes") -> "_Prefixes":
        """Return these sentences followed by the sentences of `newcomers`."""
        return _Prefixes((*self, *newcomers))


@contextmanager
def uncached(model: Transformer, one_length: bool = False) -> Iterator[None]:
    """Within the context, let each step of a search run the whole prefix.

    `one_length` says whether source and target must be padded to the same length; the model's `forward` pads them.
    """

    def start(source: Int[Tensor, "B S"]) -> _Prefixes:
        sources = [row[row != model.config.pad_id][None] for row in source]
        return _Prefixes(_Sentence(one, model.encode(one), one.new_empty(1, 0)) for one in sources)

    def after(tokens: Int[Tensor, "R"], state: _Prefixes) -> _Prefixes:
        each = tokens.view(len(state), -1, 1)
        return _Prefixes(
            one._replace(prefixes=torch.cat([one.prefixes.expand(len(new), -1), new], dim=1))
            for one, new in zip(state, each, strict=True)
        )

    def advance_output(tokens: Int[Tensor, "R"], state: _Prefixes) -> tuple[Float[Tensor, "R D"], _Prefixes]:
        following = after(tokens, state)
        rows = len(following[0].prefixes)
        outputs = [
            model.decoder_output(prefixes, memory.expand(rows, -1, -1), source.expand(rows, -1))[:, -1]
            for source, memory, prefixes in following
        ]
        return torch.cat(outputs), following

    def advance(tokens: Int[Tensor, "R"], state: _Prefixes) -> tuple[Float[Tensor, "R V"], _Prefixes]:
        if not one_length:
            output, following = advance_output(tokens, state)
            return model.logits(output), following
        following = after(tokens, state)
        logits = [model(one.source.expand(len(one.prefixes), -1), one.prefixes)[:, -1] for one in following]
        return torch.cat(logits), following

    with ExitStack() as stack:
        for name, step in {"start": start, "advance": advance, "advance_output": advance_output}.items():
            stack.enter_context(replaced(model, name, step))
        yield
