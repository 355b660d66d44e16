"""Encode many pairs of texts into ids, in several processes where that saves time."""

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

from glassformer.corpus.batching import IdArray
from glassformer.corpus.shards import Encoded, id_type
from glassformer.system.processes import Worker
from glassformer.text.tokenizer import Tokenizer, load_tokenizers

__all__ = ["PART", "POOL_PAIRS", "Part", "Texts", "encode", "encode_all"]

POOL_PAIRS = 100_000
"""Below this number of pairs, no worker processes are started, because starting them takes too long."""
PART = 1 << 11
"""Pairs encoded at a time: few enough that their ids stay in the processor's cache until they are packed. A shard's
size is a multiple of it."""

Texts = tuple[Sequence[str], Sequence[str]]
"""Sources and targets."""


class Part(NamedTuple):
    """The encoding of some pairs of texts."""

    encoded: Encoded
    too_long: int
    """Number of pairs left out because a side has too many ids."""


def encode(texts: Texts, source: Tokenizer, target: Tokenizer, max_length: int) -> Part:
    """Return the encoded pairs, without pairs that have a side of more than `max_length` ids, including `<eos>`."""
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


def encode_all(
    blocks: Iterable[Texts], tokenizers: Path, max_length: int, workers: int, part_pairs: int = PART
) -> Generator[Part, None, None]:
    """Yield the result of `encode` for all pairs of all blocks, in order and `part_pairs` pairs at a time.

    Args:
        blocks: sources and targets, in equal numbers.
        tokenizers: the folder of the tokenizers.
        max_length: maximum number of ids per side, including `<eos>`.
        workers: number of processes; 1 = this process alone.
        part_pairs: pairs per part; the last part may have fewer.

    Raises:
        DataError: a process was killed.
    """
    parts, encoder = _parts(blocks, part_pairs), _PairEncoder(tokenizers, max_length)
    if workers == 1:
        yield from map(encoder, parts)
        return
    waiting: deque[Future[Part]] = deque()
    with ThreadPoolExecutor(workers) as pool, _workers(workers, encoder) as idle:  # workers end before the pool
        try:
            for part in parts:
                waiting.append(pool.submit(_ask, idle, part))
                if len(waiting) > 2 * workers:  # keep all workers busy, but bound the memory
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            for future in waiting:
                future.cancel()


def _flat(sentences: Sequence[list[int]], ends: NDArray[np.int64], tokenizer: Tokenizer) -> IdArray:
    """Return the ids of all sentences, each followed by `<eos>`; `ends` gives each sentence's end."""
    ids = np.full(int(ends[-1]) if len(ends) else 0, tokenizer.eos_id, id_type(len(tokenizer)))
    own = np.ones(len(ids), bool)
    own[ends - 1] = False
    ids[own] = np.fromiter(chain.from_iterable(sentences), ids.dtype, len(ids) - len(ends))
    return ids


def _parts(blocks: Iterable[Texts], pairs: int) -> Iterator[Texts]:
    """Yield all pairs in parts of equal size."""
    sources: list[str] = []
    targets: list[str] = []
    for source, target in blocks:
        sources += source
        targets += target
        while len(sources) >= pairs:
            yield sources[:pairs], targets[:pairs]
            del sources[:pairs], targets[:pairs]
    if sources:
        yield sources, targets


# Workers


class _PairEncoder:
    """Calls `encode` with a folder's tokenizers, which are loaded at the first call."""

    def __init__(self, tokenizers: Path, max_length: int) -> None:
        self.folder, self.max_length = tokenizers.absolute(), max_length

    def __call__(self, texts: Texts) -> Part:
        return encode(texts, *self._tokenizers, self.max_length)

    @cached_property
    def _tokenizers(self) -> tuple[Tokenizer, Tokenizer]:
        return load_tokenizers(self.folder)


_EncodingWorker = Worker[[Texts], Part]


@contextmanager
def _workers(count: int, encoder: _PairEncoder) -> Iterator["SimpleQueue[_EncodingWorker]"]:
    """Yield a queue of idle workers; end the workers at exit."""
    idle: SimpleQueue[_EncodingWorker] = SimpleQueue()
    with ExitStack() as stack:
        for _ in range(count):
            idle.put(stack.enter_context(Worker(encoder, "encodes texts", "cleaning.workers = 1")))
        yield idle


def _ask(idle: "SimpleQueue[_EncodingWorker]", texts: Texts) -> Part:
    """Return the encoding of some pairs, made by an idle worker."""
    worker = idle.get()
    try:
        return worker.ask(texts)
    finally:
        idle.put(worker)
