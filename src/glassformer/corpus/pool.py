"""The processes that prepare a corpus."""

from glassformer.corpus.files import stored_bytes
from glassformer.corpus.readers import Corpus
from glassformer.system.machine import cores
from glassformer.system.pools import HERE, Processes

__all__ = ["processes_for"]

POOL_BYTES = 1 << 24
"""A corpus with fewer stored bytes is prepared by one process, because starting more processes would take too long."""


def processes_for(corpus: Corpus, workers: int) -> Processes:
    """Return the pool for a corpus: `workers` processes (0 = one per core), or only this process for a small corpus."""
    sizes = [stored_bytes(file) for file in (*corpus.source, *corpus.target)]
    if all(sizes) and sum(sizes) < POOL_BYTES:
        return HERE
    return Processes(workers or cores(), "prepares the corpus", "cleaning.workers = 1")
