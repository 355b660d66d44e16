"""Encode the training pairs, and write the token ids as shards in the format of corpus/shards.py."""

import math
from collections.abc import Container, Iterable, Iterator
from contextlib import closing

import numpy as np

from glassformer.corpus.encoding import PairEncoder, Part, joined_parts
from glassformer.corpus.kept_pairs import KeptBlock
from glassformer.corpus.shards import SHARD, write_shard
from glassformer.jobs.prepared.folder import PreparedFolder
from glassformer.jobs.prepared.texts import SplitTexts
from glassformer.jobs.prepared.tokenizers import read_tokenizers
from glassformer.jobs.run_reports import OnProgress, ProgressReport
from glassformer.recipes.configuration import Configuration

__all__ = ["ensure_shards"]


def ensure_shards(
    folder: PreparedFolder, configuration: Configuration, texts: SplitTexts, on_progress: OnProgress
) -> None:
    """Write the shards that are missing or damaged.

    Raises:
        DataError: the corpus cannot be read, or has changed.
        CheckpointError: a file cannot be written.
    """
    pairs = folder.manifest.pairs
    there = {shard.name: shard for shard in folder.manifest.shards if shard.is_whole(folder.path)}
    names = [f"train-{number:05d}" for number in range(math.ceil(pairs / SHARD))]
    counts = {number: min(SHARD, pairs - number * SHARD) for number in range(len(names))}
    missing = {number: count for number, count in counts.items() if names[number] not in there}
    if not missing:
        return
    todo, done = sum(missing.values()), 0
    encoder = PairEncoder(*read_tokenizers(folder, configuration), configuration.data.max_length)
    with closing(texts.pool.map(encoder, _of_shards(texts.training_blocks(), missing))) as parts:
        for number, count in missing.items():
            some, end = list[Part](), done + count
            while done < end:
                some.append(next(parts))
                done += some[-1].encoded.pairs + some[-1].too_long
                on_progress(ProgressReport(stage="cutting into tokens", done=done, total=todo, unit="pairs"))
            encoded, too_long = joined_parts(some)
            there[names[number]] = write_shard(folder.path, names[number], encoded, too_long=too_long)
            folder.save(shards=tuple(there[name] for name in names if name in there))


def _of_shards(blocks: Iterable[KeptBlock], numbers: Container[int]) -> Iterator[KeptBlock]:
    """Yield the pairs of the shards with these numbers, in blocks. Each block belongs to a single shard."""
    first = 0
    for block in blocks:
        here = 0
        while here < block.pairs:
            number = (first + here) // SHARD
            end = min(block.pairs, (number + 1) * SHARD - first)
            if number in numbers:
                yield block if end - here == block.pairs else block.only(np.arange(here, end))
            here = end
        first += block.pairs
