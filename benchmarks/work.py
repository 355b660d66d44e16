"""Write the reference work for all peers: Multi30k with a joint vocabulary, a list of batches and a test set.

`peers/task.py` reads the files that this module writes.
"""

import json
from collections.abc import Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path

import numpy as np

from benchmarks.peers.task import (
    BATCHES,
    EXAMPLES,
    TOKENIZER,
    Batch,
    Ids,
    Task,
    write_batches,
    write_sentences,
    write_task,
)
from glassformer.corpus.batching import Examples, Position, plan_batches, stream
from glassformer.corpus.files import opened
from glassformer.text.normalisation import normalise
from glassformer.text.subwords import SentencePieceTokenizer

WORK = Path("benchmarks/work")
"""The default folder for the reference work; --work names a different folder."""
TEST = "test.json"
PIECES = 127
"""Maximum number of tokens of a sentence, without `<eos>`. Longer sentences are cut, so that every peer can read all
sentences."""


def lines(data: Path, name: str) -> list[str]:
    """Return the normalised lines of a corpus file, compressed or not."""
    path = next((path for path in (data / name, data / f"{name}.gz") if path.exists()), None)
    if path is None:
        raise SystemExit(f"{data} has neither {name} nor {name}.gz; set --data to the folder of Multi30k's files")
    with opened(str(path)) as file:
        return [normalise(line) for line in file.read().decode("utf-8").split("\n")[:-1]]


def make_work(folder: Path, data: Path, task: Task, source: str = "de", target: str = "en") -> Task:
    """Write task, tokenizer, sentences, batches and test set into a folder; return the task with its vocabulary."""
    task = write_pairs(folder, task, *(lines(data, f"train.{language}") for language in (source, target)))
    test = {name: lines(data, f"test_2016_flickr.{name}") for name in (source, target)}
    (folder / TEST).write_text(json.dumps({"texts": test[source], "references": test[target]}, ensure_ascii=False))
    return task


def write_pairs(folder: Path, task: Task, source: Sequence[str], target: Sequence[str]) -> Task:
    """Write task, tokenizer and training pairs into a folder; return the task with its vocabulary."""
    tokenizer = SentencePieceTokenizer.train("unigram", [*source, *target], task.vocabulary)
    task = replace(task, vocabulary=len(tokenizer))
    write_task(task, folder)
    tokenizer.save(folder / TOKENIZER)
    sources, targets = (
        [np.array([*ids[:PIECES], tokenizer.eos_id]) for ids in tokenizer.encode_all(side)] for side in (source, target)
    )
    write_examples(folder, task, sources, targets)
    return task


def write_examples(folder: Path, task: Task, source: Sequence[Ids], target: Sequence[Ids]) -> None:
    """Write the sentences, and the batches of their first epoch, made by glassformer's training loop."""
    write_sentences(source, target, folder / EXAMPLES)
    write_batches(epoch(Examples(source=source, target=target), task.batch_tokens, task.seed), folder / BATCHES)


def epoch(examples: Examples, batch_tokens: int, seed: int, number: int = 0) -> list[Batch]:
    """Return the batches of an epoch in the order of a training run with this seed."""
    count = len(plan_batches(examples, batch_tokens, seed=seed, epoch=number))
    coming = stream(examples, batch_tokens, seed=seed, start=Position(epoch=number))
    return [Batch(batch.source, batch.target_input, batch.target_output) for batch, _ in islice(coming, count)]


def bleu(outputs: Sequence[str], references: Sequence[str]) -> float:
    """Return sacrebleu's BLEU of the translations."""
    from sacrebleu.metrics.bleu import BLEU

    return float(BLEU().corpus_score(list(outputs), [list(references)]).score)


def synthetic(rows: int, source: int, target: int, count: int, vocabulary: int) -> tuple[list[Ids], list[Ids]]:
    """Return random sentences of these lengths, enough for `count` batches of `rows` rows."""
    random = np.random.default_rng(1)
    sides = []
    for length in (source, target):
        ids = random.integers(4, vocabulary, (rows * count, length))
        ids[:, -1] = 2
        sides.append(list(ids))
    return sides[0], sides[1]
