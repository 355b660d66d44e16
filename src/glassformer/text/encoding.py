"""Pairs of texts into ids: many at a time, by several processes where that pays."""

from collections import deque
from collections.abc import Generator, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from functools import cached_property
from itertools import chain
from pathlib import Path
from queue import SimpleQueue
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from glassformer.text.batching import Ids
from glassformer.text.shards import Encoded, id_type
from glassformer.text.tokenizer import Tokenizer, load_tokenizers
from glassformer.text.workers import Worker

__all__ = ["PART", "POOL_PAIRS", "Part", "Texts", "encode", "encode_all"]

POOL_PAIRS = 100_000
"""Smaller corpora are encoded before other processes would have started."""
PART = 1 << 11
"""Pairs that are encoded at a time: so few that their ids stay in the processor's cache until they are packed; a shard
is a multiple of it."""

Texts = tuple[Sequence[str], Sequence[str]]
"""Sources and targets."""


class Part(NamedTuple):
    """What has become of some pairs of texts."""

    encoded: Encoded
    too_long: int
    """How many pairs were left out because a side has too many ids."""


def encode(texts: Texts, source: Tokenizer, target: Tokenizer, max_length: int) -> Part:
    """Return the encoded pairs, without those of which a side has more than `max_length` ids, `<eos>` included."""
    sides = [tokenizer.encode_all(side) for tokenizer, side in zip((source, target), texts, strict=True)]
    lengths = np.array([np.fromiter(map(len, side), np.int32, len(side)) + 1 for side in sides])
    fits = lengths.max(0, initial=0) <= max_length
    if not fits.all():
        sides = [[ids for ids, fit in zip(side, fits.tolist(), strict=True) if fit] for side in sides]
        lengths = lengths[:, fits]
    flat = [
        _flat(side, ends, tokenizer)
        for side, ends, tokenizer in zip(sides, lengths.cumsum(1, np.int64), (source, target), strict=True)
    ]
    return Part(Encoded(flat[0], flat[1], lengths), int((~fits).sum()))


def encode_all(blocks: Iterable[Texts], tokenizers: Path, max_length: int, workers: int) -> Generator[Part, None, None]:
    """Yield what `encode` returns for all pairs of all blocks, in order and `PART` at a time.

    Args:
        blocks: sources and targets, as many of one as of the other.
        tokenizers: the folder in which they are.
        max_length: longest side, in ids.
        workers: processes that share the work; 1 = this one alone.

    Raises:
        DataError: a process was killed.
    """
    parts, encoder = _parts(blocks), _Encoder(tokenizers, max_length)
    if workers == 1:
        yield from map(encoder, parts)
        return
    waiting: deque[Future[Part]] = deque()
    with ThreadPoolExecutor(workers) as pool, _workers(workers, encoder) as idle:  # none is waited for in the end
        try:
            for part in parts:
                waiting.append(pool.submit(_ask, idle, part))
                if len(waiting) > 2 * workers:  # enough for all to have work, and no more in memory
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            for future in waiting:
                future.cancel()


def _flat(sentences: Sequence[list[int]], ends: NDArray[np.int64], tokenizer: Tokenizer) -> Ids:
    """Return the ids of all sentences, `<eos>` behind each, where `ends` says that they end."""
    ids = np.full(int(ends[-1]) if len(ends) else 0, tokenizer.eos_id, id_type(len(tokenizer)))
    own = np.ones(len(ids), bool)
    own[ends - 1] = False
    ids[own] = np.fromiter(chain.from_iterable(sentences), ids.dtype, len(ids) - len(ends))
    return ids


def _parts(blocks: Iterable[Texts]) -> Iterator[Texts]:
    """Yield all pairs in parts of the same size."""
    sources: list[str] = []
    targets: list[str] = []
    for source, target in blocks:
        sources += source
        targets += target
        while len(sources) >= PART:
            yield sources[:PART], targets[:PART]
            del sources[:PART], targets[:PART]
    if sources:
        yield sources, targets


# Workers


class _Encoder:
    """`encode` with a folder's tokenizers, which are loaded where it is called first."""

    def __init__(self, tokenizers: Path, max_length: int) -> None:
        self.folder, self.max_length = tokenizers.absolute(), max_length

    def __call__(self, texts: Texts) -> Part:
        return encode(texts, *self._tokenizers, self.max_length)

    @cached_property
    def _tokenizers(self) -> tuple[Tokenizer, Tokenizer]:
        return load_tokenizers(self.folder)


_Worker = Worker[[Texts], Part]


@contextmanager
def _workers(count: int, encoder: _Encoder) -> Iterator["SimpleQueue[_Worker]"]:
    """Start workers, and end them in the end; those in the queue have nothing to do."""
    idle: SimpleQueue[_Worker] = SimpleQueue()
    with ExitStack() as stack:
        for _ in range(count):
            idle.put(stack.enter_context(Worker(encoder, "cuts texts into tokens", "cleaning.workers = 1")))
        yield idle


def _ask(idle: "SimpleQueue[_Worker]", texts: Texts) -> Part:
    """Let a worker that is idle encode some pairs."""
    worker = idle.get()
    try:
        return worker.ask(texts)
    finally:
        idle.put(worker)
