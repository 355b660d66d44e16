import os
import signal
import subprocess
import sys
from itertools import islice, pairwise
from pathlib import Path

import numpy as np
import psutil
import pytest

from glassformer.corpus.batching import Examples
from glassformer.corpus.encoding import encode, encode_all
from glassformer.corpus.shards import Encoded
from glassformer.errors import DataError
from glassformer.system.machine import cores
from glassformer.text.tokenizer import TOKENIZER_KINDS, TokenizerConfig, save_tokenizers, train_tokenizers

TRAINABLE = [kind for kind, row in TOKENIZER_KINDS.items() if row.trainable]
SOURCE = [
    "the black cat didn't sleep",
    "",
    "the brown  dog slept",
    "a cat, a\u00a0dog",
    "Щ▁the cat",
    "the dog's dog " * 9,
]
TARGET = ["le chat noir", "le chien", "n'a pas dormi", "un chat, un chien", "", "\u2028"]


def tokenizers_of(kind):
    return train_tokenizers(SOURCE, TARGET, TokenizerConfig(kind=kind, vocab_size=150, joint=kind == "bpe"))


def lists(encoded: Encoded):
    examples = encoded.examples()
    return [(source.tolist(), target.tolist()) for source, target in zip(examples.source, examples.target, strict=True)]


def expected(source, target, tokenizers, max_length: int):
    examples, _ = Examples.encode(zip(source, target, strict=True), *tokenizers, max_length=max_length)
    return [(one.tolist(), other.tolist()) for one, other in zip(examples.source, examples.target, strict=True)]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    save_tokenizers(tmp_path / "tokenizer", *tokenizers_of("unigram"))
    return tmp_path / "tokenizer"


def corpus(count: int):
    source = [SOURCE[place % 6] + f" {place}" for place in range(count)]
    return source, [TARGET[place % 5] for place in range(count)]


@pytest.mark.parametrize("kind", TRAINABLE)
@pytest.mark.parametrize("max_length", [1, 9, 23, 1000])
def test_many_pairs_are_encoded_like_single_pairs(kind, max_length: int) -> None:
    tokenizers = tokenizers_of(kind)
    encoded, too_long = encode((SOURCE, TARGET), *tokenizers, max_length)
    pairs = expected(SOURCE, TARGET, tokenizers, max_length)
    assert lists(encoded) == pairs
    assert too_long == len(SOURCE) - len(pairs)
    assert encoded.source.dtype == np.uint16


def test_no_pairs_give_no_examples() -> None:
    encoded, too_long = encode(([], []), *tokenizers_of("words"), 10)
    assert (lists(encoded), too_long, encoded.pairs) == ([], 0, 0)


@pytest.mark.slow
@pytest.mark.parametrize("workers", [1, 2, 3])
def test_all_pairs_come_in_order_with_any_blocks_and_workers(folder: Path, workers: int) -> None:
    source, target = corpus(61)
    cuts = [0, 3, 3, 20, 41, 61]
    blocks = ((source[begin:end], target[begin:end]) for begin, end in pairwise(cuts))
    parts = list(encode_all(blocks, folder, 30, workers, part_pairs=7))
    assert [part.encoded.pairs + part.too_long for part in parts] == [7] * 8 + [5]
    pairs = expected(source, target, tokenizers_of("unigram"), 30)
    assert [pair for part in parts for pair in lists(part.encoded)] == pairs
    assert 0 < sum(part.too_long for part in parts) == 61 - len(pairs)


@pytest.mark.slow
def test_only_as_much_is_read_ahead_as_the_workers_need(folder: Path) -> None:
    read = []

    def blocks():
        for number in range(1000):
            read.append(number)
            yield corpus(7)

    parts = encode_all(blocks(), folder, 100, 2, part_pairs=7)
    list(islice(parts, 3))
    parts.close()
    assert len(read) <= 3 + 2 * 2 + 1


@pytest.mark.slow
def test_workers_end_with_the_generator(folder: Path) -> None:
    before = set(psutil.Process().children())
    parts = encode_all([corpus(70)], folder, 100, 2, part_pairs=7)
    next(parts)
    workers = set(psutil.Process().children()) - before
    assert len(workers) == 2
    parts.close()
    assert not any(worker.is_running() for worker in workers)


@pytest.mark.slow
def test_a_killed_worker_is_an_error_with_advice(folder: Path) -> None:
    before = set(psutil.Process().children())
    parts = encode_all([corpus(700)], folder, 100, 2, part_pairs=7)
    next(parts)
    for worker in set(psutil.Process().children()) - before:
        worker.kill()
    with pytest.raises(DataError, match=r"killed.*cleaning\.workers = 1"):
        list(parts)


@pytest.mark.parametrize("workers", [1, 2])
def test_an_error_in_a_worker_is_raised_in_the_caller(folder: Path, workers: int) -> None:
    with pytest.raises(DataError, match="surrogate"):
        list(encode_all([(["half \ud83d pair"], ["x"])], folder, 100, workers))


@pytest.mark.slow
def test_a_program_without_a_main_guard_can_use_workers(tmp_path: Path, folder: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(
        "from pathlib import Path\n"
        "from glassformer.corpus.encoding import encode_all\n"
        f"parts = encode_all([(['a cat'] * 9000, ['un chat'] * 9000)], Path({str(folder)!r}), 100, 2)\n"
        "print(sum(part.encoded.pairs for part in parts))\n"
    )
    run = subprocess.run([sys.executable, script], capture_output=True, text=True)
    assert (run.stdout, run.stderr) == ("9000\n", "")


@pytest.mark.slow
def test_workers_end_when_the_program_is_killed(tmp_path: Path, folder: Path) -> None:
    program = (
        "import itertools, sys\n"
        "from pathlib import Path\n"
        "from glassformer.corpus.encoding import encode_all\n"
        "blocks = ((['a cat'] * 9000, ['un chat'] * 9000) for _ in itertools.count())\n"
        f"for part in encode_all(blocks, Path({str(folder)!r}), 100, 2):\n"
        "    print('.', flush=True)\n"
    )
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        process.stdout.readline()
        workers = psutil.Process(process.pid).children()
        os.kill(process.pid, signal.SIGKILL)
        _, errors = process.communicate()
    assert len(workers) == 2
    _, alive = psutil.wait_procs(workers, timeout=30)
    assert alive == []
    assert errors == b""


def test_the_number_of_cores_is_positive() -> None:
    assert 1 <= cores() <= os.cpu_count()
