"""Every recipe starts, with small samples in files with the recipe's names."""

import gzip
import json
import random
import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from glassformer.cli import main
from glassformer.corpus.files import files_of
from glassformer.jobs import train
from glassformer.recipes.configuration import Configuration, DataConfig
from glassformer.recipes.files import recipes
from glassformer.recipes.toml import load

FILES = sorted(set(recipes()) - {"adapt", "copy", "demo", "translation"})
ALIKE = re.compile(r"multi30k-en|wikipron-(?!isl)|sigmorphon|tatoeba|netrans|.*-big|.*-base-en-fr")
"""Recipes whose files and settings are of the same kinds as those of another recipe."""
TINY = ["d_model=16", "heads=2", "d_ff=24", "encoder_layers=1", "decoder_layers=1"]
SHORT = ["steps=2", "minutes=0", "batch_tokens=200", "metric_lines=3", "validate_every=1", "precision=fp32"]
QUICK = [f"model.{value}" for value in TINY] + [f"training.{value}" for value in SHORT]
LINES = 60


def sentences(chosen: random.Random, count: int, most: int = 12) -> Iterator[tuple[str, str]]:
    """Yield pairs of made-up sentences of at most `most` words."""
    words = ["".join(chosen.choices("abcdefghijklmnop", k=chosen.randint(2, 9))) for _ in range(40)]
    for _ in range(count):
        line = chosen.choices(words, k=chosen.randint(3, most))
        yield " ".join(line) + ".", " ".join(word[::-1] for word in line) + "."


def words(chosen: random.Random, count: int, spaced: bool) -> Iterator[tuple[str, str]]:
    """Yield made-up words with their pronunciations, or spellings."""
    for _ in range(count):
        word = "".join(chosen.choices("abcdefghij", k=chosen.randint(2, 9)))
        yield word, (" " if spaced else "").join(word.upper())


def write_sample(configuration: Configuration, folder: Path, count: int = LINES) -> None:
    """Write samples with different lines under the names of a configuration's files."""
    chosen, data, kinds = random.Random(5), configuration.data, configuration.tokenizer.kinds
    for part in ("", "valid_", "test_"):
        sources, targets = (files_of(getattr(data, f"{part}{side}")) for side in ("source", "target"))
        for source, target in zip(filter(None, sources), targets, strict=bool(sources[0])):
            alone = kinds[0] == "characters"
            pairs = list(words(chosen, count, kinds[1] == "words") if alone else sentences(chosen, count))
            if target:
                write(folder / source, [pair[0] for pair in pairs])
                write(folder / target, [pair[1] for pair in pairs])
            else:
                write(folder / source, ["\t".join(pair) for pair in pairs])


def write(path: Path, lines: list[str]) -> None:
    text = "".join(f"{line}\n" for line in lines).encode()
    path.write_bytes(gzip.compress(text) if path.suffix == ".gz" else text)


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[..., Path]]:
    """Return a function that trains a recipe on a sample for two steps, and returns the run's folder."""

    def begin(name: str, *overrides: str, count: int = LINES) -> Path:
        values = [f"run.directory={tmp_path / 'run'}", *overrides]
        configuration = load(name, values, data=tmp_path)
        write_sample(configuration, tmp_path, count)
        assert train(configuration).steps == 2
        return tmp_path / "run"

    yield begin
    shutil.rmtree(tmp_path / "run", ignore_errors=True)  # a checkpoint of the big model takes 2.6 GB


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.long if ALIKE.match(name) else ()) for name in FILES]
)
def test_a_recipe_finds_its_files_and_starts(start, name):
    run = start(name, *QUICK)
    kinds = [json.loads(line)["type"] for line in (run / "metrics.jsonl").read_text().splitlines()]
    assert kinds.count("validation") == 2
    assert kinds[-1] == "end"


@pytest.mark.long
@pytest.mark.parametrize("name", ["wmt14-base", "wmt14-big", "iwslt14"])
def test_a_model_of_the_paper_takes_its_first_steps_here_at_full_size(start, name):
    batch = ["training.batch_tokens=300", "training.accumulate=2", "training.log_every=1"]
    run = start(name, "training.steps=2", "training.average=0", *batch)
    assert load(run / "config.toml").model["d_model"] == (1024 if "big" in name else 512)
    first = json.loads((run / "metrics.jsonl").read_text().splitlines()[0])
    # an untrained model's loss is about the logarithm of its vocabulary's few hundred entries
    assert 3 < first["loss"] < 20


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "kinds"),
    [("sentences", ("unigram",) * 2), pytest.param("words", ("characters", "words"), marks=pytest.mark.long)],
)
def test_the_recipe_for_any_corpus_is_one_command(tmp_path, monkeypatch, name, kinds):
    """The command runs in a folder with only the files."""
    chosen = random.Random(5)
    pairs = list(sentences(chosen, 300, most=5) if name == "sentences" else words(chosen, 300, spaced=True))
    write(tmp_path / "mine.source", [pair[0] for pair in pairs])
    write(tmp_path / "mine.target", [pair[1] for pair in pairs])
    settings = ["data.source=mine.source", "data.target=mine.target", *QUICK[5:], "data.valid_lines=7"]
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit) as end:
        main(["train", "translation", *(f"--set={setting}" for setting in settings)])
    assert not end.value.code
    found = load(tmp_path / "runs/translation/config.toml")
    assert found.tokenizer.kinds == kinds
    assert found.model["d_model"] == 128
    assert found.data == DataConfig(source="mine.source", target="mine.target", valid_lines=7)
