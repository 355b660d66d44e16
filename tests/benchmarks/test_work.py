import gzip
import json

import numpy as np
import pytest
from benchmarks.peers.task import (
    BATCHES,
    EXAMPLES,
    TOKENIZER,
    Task,
    read_batches,
    read_sentences,
    read_task,
    read_weights,
    write_weights,
)
from benchmarks.work import TEST, bleu, epoch, make_work, synthetic

from glassformer.corpus.batching import Examples, Position, stream
from glassformer.text.subwords import SentencePieceTokenizer


def test_the_list_has_the_batches_of_the_training_loop(work):
    task, batches = read_task(work), read_batches(work / BATCHES)
    source, target = read_sentences(work / EXAMPLES)
    coming = stream(Examples(source=source, target=target), task.batch_tokens, seed=task.seed, start=Position())
    assert len(batches) > 5
    for ours, (theirs, _) in zip(batches, coming, strict=False):
        for name in ours._fields:
            np.testing.assert_array_equal(getattr(ours, name), getattr(theirs, name))
        assert ours.target_tokens == theirs.target_tokens


def test_an_epoch_has_each_sentence_once_and_the_next_has_a_different_order(work):
    source, target = read_sentences(work / EXAMPLES)
    examples, rows = Examples(source=source, target=target), []
    for number in range(2):
        batches = epoch(examples, 60, 1, number)
        rows.append([tuple(row[row != 0]) for batch in batches for row in batch.target_output])
    assert rows[0] != rows[1]
    assert sorted(rows[0]) == sorted(rows[1]) == sorted(tuple(ids) for ids in target)


def test_synthetic_sentences_make_batches_of_exactly_the_given_shape():
    source, target = synthetic(rows=3, source=7, target=5, count=4, vocabulary=19)
    shapes = [
        batch.source.shape + batch.target_output.shape for batch in epoch(Examples(source=source, target=target), 21, 1)
    ]
    assert shapes == [(3, 7, 3, 5)] * 4
    assert max(ids.max() for ids in source) < 19


def test_written_weights_are_read_back_exactly(tmp_path):
    weights = {"a.weight": np.arange(6, dtype=np.float32).reshape(2, 3), "b": np.zeros(1, dtype=np.float32)}
    write_weights(weights, tmp_path)
    found = read_weights(tmp_path)
    assert found.keys() == weights.keys()
    np.testing.assert_array_equal(found["a.weight"], weights["a.weight"])


def test_a_corpus_is_turned_into_tokenizer_sentences_batches_and_test_set(tmp_path):
    data, folder = tmp_path / "data", tmp_path / "work"
    data.mkdir()
    text = {"de": "ein Hund läuft\nzwei Hunde laufen\n", "en": "a dog runs\ntwo dogs run\n"}
    for language, lines in text.items():
        with gzip.open(data / f"train.{language}.gz", "wt", encoding="utf-8") as file:
            file.write(lines)
        (data / f"test_2016_flickr.{language}").write_text(lines, encoding="utf-8")
    task = make_work(folder, data, Task(vocabulary=40))
    tokenizer = SentencePieceTokenizer("unigram", (folder / TOKENIZER).read_bytes())
    source, target = read_sentences(folder / EXAMPLES)
    assert task == read_task(folder)
    assert task.vocabulary == len(tokenizer) <= 40  # sentencepiece may find fewer pieces than it is asked for
    assert [tokenizer.decode(ids.tolist()) for ids in source] == text["de"].splitlines()
    assert [tokenizer.decode(ids.tolist()) for ids in target] == text["en"].splitlines()
    assert json.loads((folder / TEST).read_text()) == {
        "texts": text["de"].splitlines(),
        "references": text["en"].splitlines(),
    }


def test_a_missing_corpus_is_named(tmp_path):
    with pytest.raises(SystemExit, match=r"train\.de"):
        make_work(tmp_path / "work", tmp_path, Task())


def test_bleu_of_the_references_themselves_is_100():
    lines = ["the quick brown fox jumps", "over the lazy dog today"]
    assert bleu(lines, lines) == pytest.approx(100)
    assert bleu(["something else entirely here", "nothing of it fits"], lines) < 20
