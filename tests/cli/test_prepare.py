"""`glassformer prepare --check`: the corpus doctor's findings, as a table and as JSON."""

import json
import os
from pathlib import Path

import pytest

PAIRS = [(b"source %d" % number, b"target %d" % number) for number in range(1, 51)]


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the current folder, with two parallel files that have one fault of each kind, and held-out files."""
    pairs = [*PAIRS]
    pairs[4] = (b"", b"nothing")
    pairs[6] = (b"a\xff", b"b")
    pairs[9] = (b"bell\x07", b"b")
    pairs[11] = (b"a", b"b" * 70)
    pairs[13] = (b"a" * 5000, b"b" * 5000)
    pairs[20] = pairs[2]
    write(tmp_path, "train", pairs)
    write(tmp_path, "valid", [PAIRS[30], PAIRS[31]])
    write(tmp_path, "test", [PAIRS[32]])
    (tmp_path / "files.toml").write_text(
        "[data]\n"
        + "".join(
            f'{name}{kind} = "{name or "train_"}{kind}"\n'
            for name in ("", "valid_", "test_")
            for kind in ("source", "target")
        )
    )
    monkeypatch.chdir(tmp_path)
    return tmp_path


def write(folder: Path, name: str, pairs: list[tuple[bytes, bytes]]) -> None:
    for side, kind in enumerate(["source", "target"]):
        (folder / f"{name}_{kind}").write_bytes(b"".join(pair[side] + b"\n" for pair in pairs))


def test_two_files_need_no_configuration(glassformer, files):
    result = glassformer("prepare", "--check", "--json", "--source", "train_source", "--target", "train_target")
    assert (result.status, result.err) == (0, "")
    report = json.loads(result.out)
    assert (report["pairs"], report["kept"]) == (50, 44)
    assert {reason: (found["count"], found["lines"]) for reason, found in report["dropped"].items()} == {
        "invalid_utf8": (1, [7]),
        "blank": (1, [5]),
        "control_characters": (1, [10]),
        "too_long": (1, [14]),
        "length_ratio": (1, [12]),
        "duplicate": (1, [21]),
    }
    content = (files / "train_source").read_bytes()
    assert report["dropped"]["invalid_utf8"]["offsets"] == [content.index(0xFF)]
    assert report["dropped"]["invalid_utf8"]["files"] == ["train_source"]
    assert [warning.split(":")[0] for warning in report["warnings"]] == ["invalid UTF-8"]


def test_the_table_shows_the_dropped_pairs_and_their_lines(glassformer, files):
    result = glassformer("prepare", "--check", "--source", "train_source", "--target", "train_target")
    assert (result.status, result.err) == (0, "")
    rows = [line.split() for line in result.out.splitlines()]
    assert ["control", "characters", "1", "2.00", "%", "10"] in rows
    assert "train_source:10  control characters\n    bell\\x07\n    b\n" in result.out
    assert "train_source:7  invalid utf8\n    a\\xff\n    b\n" in result.out
    assert "warning: invalid UTF-8: prepare and train stop at an invalid line" in result.out
    assert result.out.endswith("50 pairs, 44 kept (88.00 %). Look at the warnings before training.\n")
    assert sorted(path.name for path in files.iterdir() if path.is_dir()) == []  # nothing is written


def test_pipes_are_checked_like_files(glassformer, files):
    """The same as `--source <(cat train_source) --target <(cat train_target)` in a shell."""
    pipes = []
    for side in ("train_source", "train_target"):
        read, write = os.pipe()
        assert (files / side).stat().st_size < 2**16  # small enough for the pipe's buffer
        with os.fdopen(write, "wb") as file:
            file.write((files / side).read_bytes())
        pipes.append((read, f"/dev/fd/{read}"))
    options = ["prepare", "--check", "--source", pipes[0][1], "--target", pipes[1][1]]
    result = glassformer(*options)
    plain = glassformer("prepare", "--check", "--source", "train_source", "--target", "train_target")
    assert (result.status, result.err) == (0, "")
    assert result.out.splitlines()[-1] == plain.out.splitlines()[-1]
    assert f"{pipes[0][1]}:10  control characters\n    bell\\x07\n    b\n" in result.out
    for read, _ in pipes:
        os.close(read)


def test_a_clean_corpus_is_reported_as_ready(glassformer, files):
    write(files, "clean", [(b"source %d" % number, b"target %d" % number) for number in range(100)])
    result = glassformer("prepare", "--check", "--source", "clean_source", "--target", "clean_target")
    assert (result.status, result.out) == (0, "100 pairs, 100 kept (100.00 %). Ready to train on.\n")


def test_a_corpus_from_which_nothing_can_be_learned_is_not_ready(glassformer, files):
    write(files, "few", PAIRS[:1])
    result = glassformer("prepare", "--check", "--source", "few_source", "--target", "few_target")
    few = "A model learns almost nothing from 1 pair; give at least a few hundred."
    assert (result.status, result.out) == (0, f"1 pair, 1 kept (100.00 %). {few}\n")


def test_a_configuration_gives_files_thresholds_and_held_out_pairs(glassformer, files):
    result = glassformer(
        "prepare", "files.toml", "--check", "--json", "--set", "cleaning.leakage=drop", "--set", "cleaning.max_ratio=0",
        "--set", "cleaning.on_invalid=skip",
    )  # fmt: skip
    report = json.loads(result.out)
    assert report["dropped"]["leakage"]["lines"] == [31, 32, 33]
    assert "length_ratio" not in report["dropped"]
    assert {name: found["pairs"] for name, found in report["leakage"].items()} == {"valid": 2, "test": 1}
    assert [warning.split(":")[0] for warning in report["warnings"]] == ["leakage", "leakage"]


def test_settings_can_be_set_without_a_configuration(glassformer, files):
    options = ["--source", "train_source", "--target", "train_target", "--set", "cleaning.duplicates=keep"]
    report = json.loads(glassformer("prepare", "--check", "--json", *options).out)
    assert report["kept"] == 45
    assert report["duplicates"] == {"count": 1, "lines": [21]}


def test_one_file_may_hold_both_sides(glassformer, files):
    (files / "words.tsv").write_text("cat\tK AE T\ndog\tD AO G\n")
    (files / "words.jsonl").write_text('{"source": "cat", "target": "K AE T"}\n')
    assert json.loads(glassformer("prepare", "--check", "--json", "--source", "words.tsv").out)["kept"] == 2
    assert json.loads(glassformer("prepare", "--check", "--json", "--source", "words.jsonl").out)["kept"] == 1
    assert (
        json.loads(glassformer("prepare", "--check", "--json", "--source", "words.tsv", "--data", files).out)["kept"]
        == 2
    )


@pytest.mark.slow
def test_files_on_the_command_line_are_those_of_the_configuration(glassformer, files):
    for name in ("train", "my own"):
        write(files, name, PAIRS)
    given = ["--source", "my own_source", "--target", "my own_target"]
    checked = glassformer("prepare", "--check", "files.toml", *given, "--json")
    assert json.loads(checked.out)["pairs"] == len(PAIRS)
    made = glassformer("prepare", "files.toml", *given, "--set", "run.directory=run")
    assert made.status == 0
    typed = "glassformer train files.toml --source 'my own_source' --target 'my own_target' --set run.directory=run"
    assert f"train on it:  {typed}" in made.out
    estimated = glassformer("estimate", "files.toml", *given, "--seconds", "0.1", "--set", "training.steps=3")
    assert estimated.status == 0


def test_files_of_unequal_length_are_an_error_in_one_line(glassformer, files):
    write(files, "other", PAIRS[:7])
    result = glassformer("prepare", "--check", "--source", "train_source", "--target", "other_target")
    assert (result.status, result.out) == (1, "")
    assert result.err.count("\n") == 1
    assert "train_source has 50 lines, other_target has 7: expected equal numbers" in result.err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "got nothing; give one, or --check with"),
        (["--check"], "give a CONFIG, or --source and --target"),
        (["--check", "--target", "x"], "give a CONFIG, or --source and --target"),
        (["files.toml", "--target", "x"], "--target is for the translations of --source"),
        (["--check", "demo"], "got the built-in task 'english-french'"),
        (["--check", "--source", "train_sourc", "--target", "x"], "did you mean 'train_source'?"),
        (["--check", "--source", "train_source"], "data.target: expected the translation of"),
    ],
    ids=["nothing", "no-files", "both", "no-check", "task", "misspelt", "one-side"],
)
def test_a_users_mistake_is_one_line_on_stderr(glassformer, files, arguments, message):
    result = glassformer("prepare", *arguments)
    assert (result.status, result.out) == (1, "")
    assert result.err.count("\n") == 1
    assert message in result.err


def test_empty_files_are_reported(glassformer, files):
    write(files, "empty", [])
    result = glassformer("prepare", "--check", "--source", "empty_source", "--target", "empty_target")
    assert result.status == 1
    assert "warning: no pair is kept" in result.out
    assert result.out.endswith("0 pairs, 0 kept. Nothing to train on.\n")
