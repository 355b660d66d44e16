"""A diversified corpus is the union of a corpus and its translations in both directions, without held-out pairs."""

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import glassformer as gf
import word_by_word
from glassformer.bundle import Bundle
from glassformer.errors import ConfigError
from glassformer.jobs.distillation import distil
from glassformer.jobs.diversification import diversify
from glassformer.jobs.prepared.folder import read_valid_pairs
from glassformer.jobs.student import prepare_student
from glassformer.jobs.student_corpus import DISTILLATION, TeacherSearch

CONFIG = f"""
[cleaning]
duplicates = "keep"
{word_by_word.MODEL}[training]
steps = 60
batch_tokens = 500
learning_rate = 5e-3
warmup = 10
validate_every = 30
[decoding]
beam_size = 3
[data]
"""
VALID = word_by_word.pairs(11, 2, shortest=3)
TEST = word_by_word.pairs(7, 5, shortest=3)


def sides(names: str, source: str, target: str) -> str:
    """Return the fields of [data] that name these splits' files."""
    prefixes = {"train": "", "valid": "valid_", "test": "test_"}
    return "".join(
        f'{prefixes[name]}source = "{name}.{source}"\n{prefixes[name]}target = "{name}.{target}"\n'
        for name in names.split()
    )


def write_corpus(folder: Path, count: int) -> None:
    """Write a corpus of `count` training pairs; one of them is also a validation pair, and one is also a test pair."""
    train = [*word_by_word.pairs(count - 2, 1), VALID[3], TEST[4]]
    for name, pairs in {"train": train, "valid": VALID, "test": TEST}.items():
        word_by_word.write_sides(folder, name, pairs)


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    """Return a folder with a corpus and runs of both directions, and a run that holds out pairs of its own."""
    folder = tmp_path_factory.mktemp("runs")
    write_corpus(folder, 150)
    files = {
        "forward": sides("train valid test", "en", "fr"),
        "backward": sides("train valid", "fr", "en"),
        "alone": sides("train", "fr", "en") + "valid_lines = 9\n",
    }
    for name, data in files.items():
        (folder / f"{name}.toml").write_text(CONFIG + data)
        steps = [] if name != "alone" else ["training.steps=1"]
        gf.train(folder / f"{name}.toml", data=folder, overrides=[f"run.directory={folder / name}", *steps])
    return folder


def records(folder: Path) -> list[dict]:
    return [json.loads(line) for line in (folder / "corpus" / "00000.jsonl").read_text().splitlines()]


def outputs(run: Path, texts: list[str]) -> list[list[str]]:
    """Return the two best outputs of each text that are complete and different."""
    found = gf.Translator.load(run, engine="auto").translate(texts, n_best=2)
    beams = [(one, *one.alternatives) for one in found]
    return [list(dict.fromkeys(one.text for one in beam if one.status == "ok" and one.text.strip())) for beam in beams]


@pytest.mark.slow
def test_the_union_has_each_pair_once_and_no_held_out_pair(folder, tmp_path):
    corpus = diversify([folder / "forward"], [folder / "backward"], tmp_path / "d", search=TeacherSearch(n_best=2))
    train = list(zip(*((folder / f"train.{side}").read_text().splitlines() for side in ("en", "fr")), strict=True))
    expected = [(pair, "original") for pair in train]
    by_line = outputs(folder / "forward", [source for source, _ in train])
    expected += [((pair[0], text), "forward") for pair, some in zip(train, by_line, strict=True) for text in some]
    by_line = outputs(folder / "backward", [target for _, target in train])
    expected += [((text, pair[1]), "backward") for pair, some in zip(train, by_line, strict=True) for text in some]
    held_out = {*VALID, *TEST}
    first = dict[tuple[str, str], str]()
    for pair, origin in expected:
        if pair not in held_out:
            first.setdefault(pair, origin)
    found = [((one["source"], one["target"]), one["origin"]) for one in records(tmp_path / "d")]
    assert found == list(first.items())
    origins = list(first.values())
    assert corpus.pairs == {origin: origins.count(origin) for origin in ("original", "forward", "backward")}
    assert min(corpus.pairs.values()) > 20
    assert corpus.held_out == sum(pair in held_out for pair, _ in expected) >= 2
    assert corpus.repeated == len(expected) - corpus.held_out - len(found) > 0
    assert corpus.made == 2 * len(train)


@pytest.mark.slow
def test_each_of_several_runs_translates_by_itself(folder, tmp_path):
    """Two runs with the same weights give the pairs of one run; an ensemble of two seeds would give different pairs."""
    one = diversify([folder / "forward"], [folder / "backward"], tmp_path / "one")
    two = diversify([folder / "forward"] * 2, [folder / "backward"], tmp_path / "two")
    assert records(tmp_path / "two") == records(tmp_path / "one")
    assert two.made == one.made + 150
    left_out = (two.untranslated - one.untranslated) + (two.held_out - one.held_out)
    assert two.repeated == one.repeated + 150 - left_out


@pytest.mark.slow
def test_a_second_call_translates_nothing(folder, tmp_path, monkeypatch):
    first = diversify([folder / "forward"], [folder / "backward"], tmp_path / "d")
    before = (tmp_path / "d" / "corpus" / "00000.jsonl").read_bytes()
    monkeypatch.setattr(gf.Translator, "load", None)
    again = diversify([folder / "forward"], [folder / "backward"], tmp_path / "d")
    assert (again.made, again.pairs) == (0, first.pairs)
    assert (tmp_path / "d" / "corpus" / "00000.jsonl").read_bytes() == before


@pytest.mark.slow
@pytest.mark.parametrize(
    ("forward", "backward", "message"),
    [
        (["forward"], ["forward"], "forward translates in the wrong direction for a backward run of"),
        (["forward", "backward"], ["backward"], "backward translates in the wrong direction for a forward run of"),
        (["forward"], ["alone"], "alone holds out different pairs from .*same validation and test files"),
        ([], ["backward"], "forward: expected at least one run, got none"),
        (["forward"], [], "backward: expected at least one run, got none"),
    ],
    ids=["backward", "forward", "held out", "no forward", "no backward"],
)
def test_runs_that_do_not_fit_are_refused(folder, tmp_path, forward, backward, message):
    with pytest.raises(ConfigError, match=message):
        diversify([folder / one for one in forward], [folder / one for one in backward], tmp_path / "d")
    assert not (tmp_path / "d" / "corpus").exists()


@pytest.mark.slow
def test_a_folder_made_in_a_different_way_is_refused(folder, tmp_path):
    forward, backward = folder / "forward", folder / "backward"
    diversify([forward], [backward], tmp_path / "d")
    before = (tmp_path / "d" / "corpus" / "00000.jsonl").read_bytes()
    with pytest.raises(ConfigError, match="distilled with beam_size = 3, not 2"):
        diversify([forward], [backward], tmp_path / "d", settings={"beam_size": 2})
    with pytest.raises(ConfigError, match="distilled with different runs"):
        diversify([forward, forward], [backward], tmp_path / "d")
    with pytest.raises(ConfigError, match="distilled with different teachers"):
        distil([forward], tmp_path / "d")
    with pytest.raises(ConfigError, match="is a run"):
        diversify([forward], [backward], backward)
    distil([forward], tmp_path / "distilled")
    with pytest.raises(ConfigError, match="distilled with different runs"):
        diversify([forward], [backward], tmp_path / "distilled")
    assert (tmp_path / "d" / "corpus" / "00000.jsonl").read_bytes() == before


@pytest.mark.slow
def test_a_student_learns_the_union_and_is_validated_on_the_same_pairs(folder, tmp_path):
    corpus = diversify([folder / "forward"], [folder / "backward"], tmp_path / "d")
    overrides = ["training.steps=5", "tokenizer.kind=unigram", "tokenizer.vocab_size=40", "tokenizer.sampling=0.1"]
    summary = gf.train(prepare_student(corpus, folder / "forward.toml", overrides, new_tokenizer=True))
    student = Bundle.load(summary.folder)
    assert summary.folder == tmp_path / "d" / "student"
    assert student.configuration.tokenizer.sampling == 0.1
    assert read_valid_pairs(summary.folder / "prepared") == VALID
    manifest = json.loads((summary.folder / "prepared" / "manifest.json").read_text())
    assert manifest["pairs"] == sum(corpus.pairs.values())


@pytest.mark.long
def test_a_killed_diversification_resumes_where_it_stopped(folder, tmp_path):
    write_corpus(tmp_path, 3000)
    runs = [str(folder / "forward"), "--backward", str(folder / "backward")]
    command = [sys.executable, "-m", "glassformer", "distil", *runs, "--data", str(tmp_path), "--output"]
    parts: set[Path] = set()
    for waited in ("forward-1/corpus/00000.jsonl", "backward-1/corpus/00001.jsonl"):
        with subprocess.Popen([*command, str(tmp_path / "d")], stderr=subprocess.DEVNULL) as process:
            while not (tmp_path / "d" / waited).exists():
                assert process.poll() is None
                time.sleep(0.01)
            process.send_signal(signal.SIGKILL)
        there = {path: path.stat().st_mtime_ns for path in (tmp_path / "d").glob("*/corpus/*.jsonl")}
        assert len(parts) < len(there) < 6
        assert not (tmp_path / "d" / "corpus").exists()
        parts = set(there)
    student = ["--student", str(folder / "forward.toml"), "--set", "training.steps=2"]
    done = subprocess.run([*command, str(tmp_path / "d"), *student], capture_output=True, text=True, check=True)
    assert "2 steps" in done.stdout
    assert f"translated now: {6000 - 1000 * len(parts):,} lines" in done.stdout
    assert all(path.stat().st_mtime_ns == changed for path, changed in there.items())
    whole = diversify([folder / "forward"], [folder / "backward"], tmp_path / "whole", data=tmp_path)
    assert records(tmp_path / "d") == records(tmp_path / "whole")
    assert whole.made == 6000
    assert (tmp_path / "d" / DISTILLATION).read_bytes() == (tmp_path / "whole" / DISTILLATION).read_bytes()
