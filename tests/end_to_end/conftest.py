"""A small training with every feature, and training processes that start quickly."""

import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from end_to_end.zygote import Zygote

CONFIG = """
[data]
source = "train.tsv"
valid_lines = 5
[tokenizer]
kind = "words"
[model]
preset = "tiny"
d_model = 16
heads = 2
d_ff = 24
dropout = 0.1
[training]
steps = 48
batch_tokens = 60
learning_rate = 0.01
warmup = 5
validate_every = 11
checkpoint_every = 7
keep_checkpoints = 2
metric = "exact"
metric_lines = 2
log_every = 1
snapshots = 2
ema = 0.9
average = 2
"""


def write_corpus(folder: Path) -> None:
    letters = random.Random(3)
    lines = (" ".join(letters.choices("abcdefgh", k=letters.randint(1, 7))) for _ in range(101))
    (folder / "train.tsv").write_text("".join(f"{line}\t{line[::-1]}\n" for line in lines))
    (folder / "small.toml").write_text(CONFIG)


@pytest.fixture(scope="module")
def zygote(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Zygote]:
    """Return a starter of training runs in a folder with a corpus and its configuration, small.toml."""
    folder = tmp_path_factory.mktemp("zygote")
    write_corpus(folder)
    zygote = Zygote(folder)
    yield zygote
    zygote.close()
