"""A corpus is prepared once, even with interruptions, and never with parts of a different corpus."""

import gzip
import json
import shutil
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import word_by_word
from glassformer.corpus import files, pool
from glassformer.corpus.batching import Examples
from glassformer.corpus.doctor.problems import ALWAYS_LEFT_OUT, PROBLEMS, PairProblem
from glassformer.corpus.tasks import TASKS
from glassformer.errors import CheckpointError, CheckpointVersionError, ConfigError, DataError
from glassformer.jobs.preparation import prepare
from glassformer.jobs.prepared import shards, tokenizers
from glassformer.jobs.prepared.folder import read_valid_pairs
from glassformer.jobs.prepared.manifest import MANIFEST, Manifest
from glassformer.jobs.run_reports import ExaminedReport, ProgressReport
from glassformer.recipes.toml import load
from glassformer.text.normalisation import normalise
from glassformer.text.tokenizer import load_tokenizers, save_tokenizers, train_tokenizers

CONFIG = """
[data]
source = "train.tsv"
valid_lines = 13
[tokenizer]
kind = "words"
joint = false
"""
FILES = """
[data]
source = "train.en"
target = "train.fr"
valid_source = "valid.en"
valid_target = "valid.fr"
[tokenizer]
kind = "words"
joint = false
"""
SHARDS = ["train-00000", "train-00001", "train-00002", "train-00003"]
PARTS = ("source", "target", "ends")


def made_up(count: int, seed: int = 1) -> list[tuple[str, str]]:
    """Return pairs with different sources, except that a few sources are repeated with a different target."""
    pairs = word_by_word.pairs(count, seed, 3, 11)
    return [*pairs, *((source, f"{target} !") for source, target in pairs[::17])]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a folder with a corpus in one file and in two, and configurations of both."""
    pairs = made_up(200)
    (tmp_path / "train.tsv").write_text(word_by_word.tsv(pairs))
    word_by_word.write_sides(tmp_path, "train", pairs)
    word_by_word.write_sides(tmp_path, "valid", made_up(11, seed=2))
    (tmp_path / "small.toml").write_text(CONFIG)
    (tmp_path / "files.toml").write_text(FILES)
    return tmp_path


@pytest.fixture
def small_shards(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make shards of 60 pairs from small blocks, so that there are four shards."""
    monkeypatch.setattr(shards, "SHARD", 60)
    monkeypatch.setattr(files, "READ_BYTES", 500)


def settings_of(folder: Path, *overrides: str, name: str = "small.toml", run: str = "run"):
    return load(folder / name, [f"run.directory={folder / run}", *overrides], data=folder)


def prepared_with_reports(configuration):
    reports: list[ProgressReport | ExaminedReport] = []
    return prepare(configuration, reports.append), reports


def encoded_pairs(reports) -> int:
    """Return the number of encoded pairs."""
    return max((one.done for one in reports if getattr(one, "stage", "") == "cutting into tokens"), default=0)


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def texts(prepared, examples: Examples) -> list[tuple[str, str]]:
    sides = ((prepared.source_tokenizer, examples.source), (prepared.target_tokenizer, examples.target))
    source, target = ([tokenizer.decode(ids.tolist()) for ids in side] for tokenizer, side in sides)
    return list(zip(source, target, strict=True))


def test_every_pair_is_trained_on_or_held_out(folder: Path, small_shards: None) -> None:
    prepared = prepare(settings_of(folder))
    train, valid = texts(prepared, prepared.train), texts(prepared, prepared.valid)
    lines = [tuple(line.split("\t")) for line in (folder / "train.tsv").read_text().splitlines()]
    kept = list(dict.fromkeys(lines))
    assert Counter(train + valid) == Counter(kept)
    assert [pair for pair in kept if pair in set(train)] == train
    assert valid == prepared.valid_pairs
    assert 10 <= len(valid) <= 13
    assert prepared.dropped == {"duplicate": len(lines) - len(kept)}
    assert prepared.findings["pairs"] == len(lines)


@pytest.mark.slow
def test_training_and_validation_share_no_source(folder: Path) -> None:
    for seed in range(3):
        prepared = prepare(settings_of(folder, f"run.seed={seed}", run=f"run-{seed}"))
        held_out = {normalise(source) for source, _ in prepared.valid_pairs}
        assert not held_out & {source for source, _ in texts(prepared, prepared.train)}


def test_the_seed_decides_the_held_out_pairs(folder: Path) -> None:
    first, again, other = (
        prepare(settings_of(folder, f"run.seed={seed}", run=f"run-{place}")).valid_pairs
        for place, seed in enumerate((1, 1, 2))
    )
    assert first == again
    assert set(first) != set(other)


@pytest.mark.parametrize(("name", "same"), [("small.toml", False), ("files.toml", True)])
def test_different_seeds_give_the_same_tokens_only_with_validation_files(folder: Path, name: str, same: bool) -> None:
    """Only runs with the same tokens can form an ensemble."""
    pairs = [(f"{source} a{number}", f"{target} b{number}") for number, (source, target) in enumerate(made_up(99))]
    (folder / "train.tsv").write_text(word_by_word.tsv(pairs))
    word_by_word.write_sides(folder, "train", pairs)
    first, other = (
        prepare(settings_of(folder, f"run.seed={seed}", name=name, run=f"run-{seed}")).target_tokenizer
        for seed in (1, 2)
    )
    assert (first.tokens(range(len(first))) == other.tokens(range(len(other)))) == same


def test_validation_pairs_can_be_read_back(folder: Path) -> None:
    assert read_valid_pairs(folder) is None
    prepared = prepare(settings_of(folder))
    assert read_valid_pairs(prepared.folder) == prepared.valid_pairs


@pytest.mark.parametrize("text", [b'["the", "le"', b'["the"]\n', b"7\n", b'["\xff", ""]\n'])
def test_damaged_validation_pairs_are_an_error(tmp_path: Path, text: bytes) -> None:
    (tmp_path / "valid.jsonl").write_bytes(text)
    with pytest.raises(CheckpointError, match=r"cannot read .*valid\.jsonl: .*; run `glassformer prepare` again"):
        read_valid_pairs(tmp_path)


def test_at_most_a_tenth_of_the_pairs_is_held_out(folder: Path) -> None:
    prepared = prepare(settings_of(folder, "data.valid_lines=5000"))
    assert 0 < len(prepared.valid) <= (len(prepared.valid) + len(prepared.train)) / 10
    (folder / "train.tsv").write_text("a cat\tun chat\n" + "a dog\tun chien\n")
    assert len(prepare(settings_of(folder, run="tiny")).valid) == 0


def test_only_blank_lines_are_removed_from_validation_files(folder: Path) -> None:
    word_by_word.write_sides(
        folder, "valid", [("a cat", "un chat")] * 2 + [("", "x"), ("a", "le " * 90), ("dog\x07", "dog\x07")]
    )
    prepared = prepare(settings_of(folder, name="files.toml"))
    assert len(prepared.valid_pairs) == 4
    assert prepared.dropped["blank (validation)"] == 1


def test_too_long_pairs_are_counted(folder: Path, small_shards: None) -> None:
    prepared = prepare(settings_of(folder, "data.max_length=9"))
    train = prepare(settings_of(folder, run="other")).train
    longest = max(max(map(len, side)) for side in (prepared.train.source, prepared.train.target))
    assert longest == 9
    assert len(prepared.train) < len(train)
    assert prepared.dropped["longer than data.max_length"] == len(train) - len(prepared.train) + (
        len(prepared.valid_pairs) - len(prepared.valid)
    )


def test_plain_and_compressed_files_are_the_same_corpus(folder: Path) -> None:
    plain = prepare(settings_of(folder, name="files.toml"))
    for ending in ("en", "fr"):
        (folder / f"train.{ending}.gz").write_bytes(gzip.compress((folder / f"train.{ending}").read_bytes()))
    overrides = ("data.source=train.en.gz", "data.target=train.fr.gz")
    packed = prepare(settings_of(folder, *overrides, name="files.toml", run="packed"))
    assert texts(packed, packed.train) == texts(plain, plain.train)


@pytest.mark.slow
@pytest.mark.usefixtures("small_task")
def test_a_built_in_task_is_prepared_like_files(tmp_path: Path) -> None:
    (tmp_path / "task.toml").write_text('[data]\ntask = "copy"\n[tokenizer]\nkind = "words"\n')
    configuration = load(tmp_path / "task.toml", [f"run.directory={tmp_path / 'run'}"])
    prepared = prepare(configuration)
    splits = TASKS["copy"](1).splits
    assert texts(prepared, prepared.train) == [
        (normalise(one.source), normalise(one.target)) for one in splits["train"]
    ]
    assert prepared.valid_pairs == [(one.source, one.target) for one in splits["valid"]]
    assert prepared.findings is None
    again, reports = prepared_with_reports(configuration)
    assert reports == []
    assert texts(again, again.train) == texts(prepared, prepared.train)


def test_an_unknown_task_is_an_error_and_leaves_nothing(tmp_path: Path) -> None:
    (tmp_path / "task.toml").write_text('[data]\ntask = "paint"\n')
    with pytest.raises(ConfigError, match=r"data\.task: expected one of copy, .*, got 'paint'"):
        prepare(load(tmp_path / "task.toml", [f"run.directory={tmp_path / 'runs' / 'run'}"]))
    assert not (tmp_path / "runs").exists()


@pytest.mark.slow
def test_the_size_of_blocks_and_shards_changes_nothing(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = prepare(settings_of(folder))
    assert len(Manifest.load(whole.folder).shards) == 1
    monkeypatch.setattr(shards, "SHARD", 21)
    monkeypatch.setattr(files, "READ_BYTES", 200)
    monkeypatch.setattr(pool, "POOL_BYTES", 1)
    monkeypatch.setattr(tokenizers, "APART_PAIRS", 1)
    for workers in (1, 2):
        cut = prepare(settings_of(folder, f"cleaning.workers={workers}", run=f"cut-{workers}"))
        assert len(Manifest.load(cut.folder).shards) == 10
        assert texts(cut, cut.train) == texts(whole, whole.train)


def test_the_manifest_has_the_counts_of_the_corpus(folder: Path, small_shards: None) -> None:
    prepared = prepare(settings_of(folder))
    manifest = Manifest.load(prepared.folder)
    assert [shard.name for shard in manifest.shards] == SHARDS
    assert [shard.pairs for shard in manifest.shards] == [60, 60, 60, manifest.pairs - 180]
    assert sum(shard.source_tokens for shard in manifest.shards) == sum(map(len, prepared.train.source))
    assert sum(shard.target_tokens for shard in manifest.shards) == sum(map(len, prepared.train.target))
    assert manifest.valid_pairs == len(prepared.valid_pairs)
    assert [Path(file.name).name for file in manifest.files] == ["train.tsv"]
    values = json.loads((prepared.folder / MANIFEST).read_text())
    assert values["format_version"] == 1
    assert len(values["tokenizer"]) == 32


def test_a_second_run_does_nothing(folder: Path, small_shards: None) -> None:
    first, reports = prepared_with_reports(settings_of(folder))
    assert encoded_pairs(reports) == len(first.train)
    assert sum(isinstance(one, ExaminedReport) for one in reports) == 1
    before = contents(first.folder)
    second, reports = prepared_with_reports(settings_of(folder))
    assert reports == []
    assert (first.made, second.made) == (True, False)
    assert contents(first.folder) == before
    assert texts(second, second.train) == texts(first, first.train)
    assert second.valid_pairs == first.valid_pairs
    assert (second.dropped, second.findings) == (first.dropped, first.findings)


def test_the_names_of_the_languages_do_not_change_the_corpus(folder: Path, small_shards: None) -> None:
    prepared_with_reports(settings_of(folder))
    again, reports = prepared_with_reports(settings_of(folder, "data.source_language=en", "data.target_language=fr"))
    assert reports == []
    assert not again.made


DAMAGED = [
    "kept.npy",
    "sample.jsonl",
    "valid.jsonl",
    "spellings.txt",
    "tokenizer/source.json",
    "tokenizer/tokenizer.json",
    MANIFEST,
]


@pytest.mark.slow
@pytest.mark.parametrize("damage", ["missing", "cut", "a bit"])
@pytest.mark.parametrize("name", [*DAMAGED, *(f"train-00002.{part}.npy" for part in PARTS)])
def test_only_damaged_parts_are_made_again(folder: Path, small_shards: None, name: str, damage: str) -> None:
    prepared = prepare(settings_of(folder))
    before, train = contents(prepared.folder), texts(prepared, prepared.train)
    path = prepared.folder / name
    content = path.read_bytes()
    if damage == "missing":
        path.unlink()
    else:
        path.write_bytes(content[:-2] if damage == "cut" else content[:-3] + b"\xff" + content[-2:])
    again, reports = prepared_with_reports(settings_of(folder))
    assert contents(prepared.folder) == before
    assert texts(again, again.train) == train
    assert encoded_pairs(reports) == {"train-00002": 60, "manifest": len(again.train)}.get(name.split(".")[0], 0)


def test_shards_of_a_different_tokenizer_are_made_again(folder: Path, small_shards: None) -> None:
    """The prepared tokenizers were lost, and the resumed run has different tokenizers."""
    prepared = prepare(settings_of(folder))
    shutil.rmtree(prepared.folder / "tokenizer")
    others = train_tokenizers(["the a big dog"], ["le un grand chien"], settings_of(folder).tokenizer)
    save_tokenizers(folder / "run" / "tokenizer", *others)
    again, reports = prepared_with_reports(settings_of(folder))
    assert encoded_pairs(reports) == len(again.train)
    assert len(again.source_tokenizer) == len(others[0]) < len(prepared.source_tokenizer)
    assert len(load_tokenizers(again.folder / "tokenizer")[1]) == len(others[1])


@pytest.mark.parametrize("name", ["cleaning.copies", "cleaning.leakage", "tokenizer.byte_fallback", "data.max_length"])
def test_a_folder_older_than_a_setting_need_not_be_made_again(folder: Path, name: str) -> None:
    prepared = prepare(settings_of(folder))
    values = json.loads((prepared.folder / MANIFEST).read_text())
    del values["settings"][name]
    (prepared.folder / MANIFEST).write_text(json.dumps(values))
    assert not prepare(settings_of(folder)).made


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("cleaning.copies=drop", r"cleaning\.copies = 'keep', not 'drop'"),
        ("cleaning.max_ratio=5", r"cleaning\.max_ratio = 9\.0, not 5\.0"),
    ],
)
def test_a_folder_older_than_a_setting_was_made_with_its_default(folder: Path, override: str, message: str) -> None:
    prepared = prepare(settings_of(folder))
    values = json.loads((prepared.folder / MANIFEST).read_text())
    del values["settings"][override.partition("=")[0]]
    (prepared.folder / MANIFEST).write_text(json.dumps(values))
    with pytest.raises(ConfigError, match=message):
        prepare(settings_of(folder, override))


class Beginning(PairProblem):
    """A problem for these tests: sources with a given beginning."""

    id = "beginning"
    text = b""

    def find(self, pairs):
        return np.array([line.startswith(self.text) for line in pairs.lines[0]])


@pytest.fixture
def add_problem(monkeypatch: pytest.MonkeyPatch):
    """Return a function that adds a problem without a setting: sources that begin with `text`."""

    def add(text: bytes) -> None:
        monkeypatch.setattr(Beginning, "text", text)
        monkeypatch.setattr("glassformer.corpus.doctor.examine.PROBLEMS", (Beginning, *PROBLEMS))
        monkeypatch.setattr("glassformer.jobs.prepared.texts.ALWAYS_LEFT_OUT", (*ALWAYS_LEFT_OUT, Beginning.id))

    return add


def test_a_new_problem_leaves_pairs_out_of_a_new_folder(folder: Path, add_problem) -> None:
    prepared = prepare(settings_of(folder, name="files.toml"))
    first = texts(prepared, prepared.train)[0][0].encode()
    add_problem(first)
    new = prepare(settings_of(folder, name="files.toml", run="new"))
    assert new.dropped["beginning"] == len(prepared.train) - len(new.train) > 0
    assert not any(source.encode().startswith(first) for source, _ in texts(new, new.train))


@pytest.mark.parametrize("damaged", [False, True])
def test_a_folder_with_pairs_that_a_new_problem_leaves_out_is_refused(folder: Path, add_problem, damaged: bool) -> None:
    """Otherwise, the folder's run would resume with different pairs, and validate on pairs that it was trained on."""
    prepared = prepare(settings_of(folder))
    if damaged:
        (prepared.folder / "kept.npy").unlink()
    before = contents(prepared.folder)
    add_problem(prepared.valid_pairs[0][0].encode())
    with pytest.raises(ConfigError, match=r"of \d+ training pairs, but this version of glassformer chooses \d+ "):
        prepare(settings_of(folder))
    assert contents(prepared.folder) == before


def test_a_new_problem_that_no_pair_has_changes_nothing_in_a_prepared_folder(folder: Path, add_problem) -> None:
    before = contents(prepare(settings_of(folder)).folder)
    add_problem(b"nobody says this")
    prepared, reports = prepared_with_reports(settings_of(folder))
    assert sum(isinstance(one, ExaminedReport) for one in reports) == 1
    assert encoded_pairs(reports) == 0
    assert {**contents(prepared.folder), MANIFEST: before[MANIFEST]} == before


def test_a_manifest_of_a_newer_version_is_left_alone(folder: Path) -> None:
    prepared = prepare(settings_of(folder))
    values = json.loads((prepared.folder / MANIFEST).read_text())
    (prepared.folder / MANIFEST).write_text(json.dumps({**values, "format_version": 2}))
    with pytest.raises(CheckpointVersionError, match=r"manifest\.json"):
        prepare(settings_of(folder))


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("data.max_length=255", r"data\.max_length = 256, not 255"),
        ("tokenizer.vocab_size=9", r"tokenizer\.vocab_size = 8000, not 9"),
        ("cleaning.duplicates=keep", r"cleaning\.duplicates = 'drop', not 'keep'"),
        ("run.seed=2", r"run\.seed = 1, not 2"),
    ],
)
def test_a_folder_with_different_settings_is_an_error_that_names_one(folder: Path, override: str, message: str) -> None:
    before = contents(prepare(settings_of(folder)).folder)
    with pytest.raises(ConfigError, match=f"{message}: choose another folder"):
        prepare(settings_of(folder, override))
    assert contents(folder / "run" / "prepared") == before


@pytest.mark.parametrize("override", ["tokenizer.sampling=0.0", "cleaning.workers=1", "training.steps=9"])
def test_settings_without_effect_on_the_corpus_may_change(folder: Path, override: str) -> None:
    prepare(settings_of(folder))
    assert prepared_with_reports(settings_of(folder, override))[1] == []


def test_runs_with_different_seeds_share_a_folder_with_validation_files(folder: Path) -> None:
    shared = f"data.prepared={folder / 'shared'}"
    first = prepare(settings_of(folder, shared, name="files.toml"))
    second, reports = prepared_with_reports(settings_of(folder, shared, "run.seed=2", name="files.toml", run="second"))
    assert first.folder == second.folder == folder / "shared"
    assert reports == []
    assert not (folder / "run").exists()


def test_a_changed_corpus_is_an_error_that_names_the_file(folder: Path) -> None:
    prepare(settings_of(folder))
    text = (folder / "train.tsv").read_text()
    (folder / "train.tsv").write_text(text.replace("cat", "cow", 1))
    with pytest.raises(ConfigError, match=r"train\.tsv has changed since: choose another folder"):
        prepare(settings_of(folder))
    (folder / "train.tsv").write_text(text)  # changes the file's time, but not its content
    assert prepared_with_reports(settings_of(folder))[1] == []


def test_a_moved_corpus_is_the_same_corpus(folder: Path) -> None:
    prepare(settings_of(folder))
    moved = folder / "moved"
    moved.mkdir()
    (folder / "train.tsv").rename(moved / "train.tsv")
    configuration = load(folder / "small.toml", [f"run.directory={folder / 'run'}"], data=moved)
    assert prepared_with_reports(configuration)[1] == []


def test_an_added_file_is_an_error(folder: Path) -> None:
    (folder / "b.tsv").write_text("a cat\tun chat\n")
    prepare(settings_of(folder, "data.source=[tb]*.tsv"))
    (folder / "t2.tsv").write_text("a dog\tun chien\n")
    with pytest.raises(ConfigError, match="of 2 files, not 3"):
        prepare(settings_of(folder, "data.source=[tb]*.tsv"))


def test_files_of_unequal_length_are_an_error_and_leave_nothing(folder: Path) -> None:
    with (folder / "train.fr").open("a") as file:
        file.write("encore\n")
    with pytest.raises(DataError, match=r"expected equal numbers"):
        prepare(settings_of(folder, name="files.toml"))
    assert not (folder / "run").exists()


def test_a_corpus_without_usable_pairs_is_an_error_after_its_report(folder: Path) -> None:
    (folder / "train.tsv").write_text("\tun chat\n" * 3)
    reports: list[ProgressReport | ExaminedReport] = []
    with pytest.raises(DataError, match=r"none of the 3 pairs can be used"):
        prepare(settings_of(folder), reports.append)
    [examined] = [one for one in reports if isinstance(one, ExaminedReport)]
    assert examined.findings.dropped["blank"].count == 3


def test_a_missing_run_directory_is_an_error(folder: Path) -> None:
    with pytest.raises(ConfigError, match=r"run\.directory: expected a folder, got nothing"):
        prepare(load(folder / "small.toml", ["run.directory="], data=folder))


def test_tokenizers_learn_from_a_sample_of_a_large_corpus(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tokenizers, "TOKENIZER_PAIRS", 3)
    first, again = (prepare(settings_of(folder, run=run)) for run in ("one", "other"))
    assert 4 < len(first.source_tokenizer) <= 4 + len(word_by_word.WORDS)
    assert contents(first.folder / "tokenizer") == contents(again.folder / "tokenizer")


def test_open_settings_are_chosen_from_the_training_pairs(folder: Path) -> None:
    prepared = prepare(settings_of(folder, "tokenizer.kind=auto", "tokenizer.vocab_size=0", "tokenizer.joint=true"))
    assert prepared.configuration.tokenizer.kind == "unigram"
    assert prepared.chosen.startswith(f"{len(prepared.train)} pairs: unigram vocabulary of")
    again = prepare(settings_of(folder, "tokenizer.kind=auto", "tokenizer.vocab_size=0", "tokenizer.joint=true"))
    assert again.configuration == prepared.configuration


def test_a_run_finds_its_corpus_by_the_settings_that_were_chosen(folder: Path) -> None:
    """A finished run stores chosen settings, and later commands read the run's corpus, for example for a lexicon."""
    prepared = prepare(settings_of(folder, "tokenizer.kind=auto", "tokenizer.vocab_size=0"))
    assert not prepare(prepared.configuration).made
    tokenizer = replace(prepared.configuration.tokenizer, vocab_size=9)
    with pytest.raises(ConfigError, match=r"tokenizer\.vocab_size = 0, not 9: choose another folder"):
        prepare(replace(prepared.configuration, tokenizer=tokenizer))
    (prepared.folder / "sample.jsonl").write_text("damaged")
    with pytest.raises(ConfigError, match=r"tokenizer\.kind = 'auto', not 'unigram': choose another folder"):
        prepare(prepared.configuration)


def test_progress_reaches_its_end(folder: Path, small_shards: None) -> None:
    _, reports = prepared_with_reports(settings_of(folder))
    progress = [one for one in reports if isinstance(one, ProgressReport)]
    assert list(dict.fromkeys(one.stage for one in progress)) == [
        "checking the corpus",
        "training the tokenizer",
        "cutting into tokens",
    ]
    for stage in ("checking the corpus", "cutting into tokens"):
        done = [(one.done, one.total) for one in progress if one.stage == stage]
        assert done == sorted(done)
        assert done[-1][0] == done[-1][1] > 0


def test_ids_come_from_the_tokenizers(folder: Path, small_shards: None) -> None:
    configuration = settings_of(folder, "tokenizer.kind=bpe", "tokenizer.vocab_size=40", "tokenizer.joint=true")
    prepared = prepare(configuration)
    pairs = texts(prepared, prepared.train)
    tokenizers = (prepared.source_tokenizer, prepared.target_tokenizer)
    expected, _ = Examples.encode(pairs, *tokenizers, max_length=256)
    for ours, theirs in ((prepared.train.source, expected.source), (prepared.train.target, expected.target)):
        assert all(np.array_equal(one, other) for one, other in zip(ours, theirs, strict=True))
