"""`glassformer translate`: as many lines out as in, whatever the lines are."""

import json
import shutil

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st


def test_every_line_has_its_translation(glassformer, trained):
    result = glassformer("translate", trained, stdin=b"the cat sees a dog\na dog\n")
    assert result.status == 0
    first, second = result.out.splitlines()
    assert first.split()
    assert second.split()
    assert first != second


def test_a_file_and_standard_input_give_the_same(glassformer, trained, tmp_path):
    text = b"the cat\na big dog"
    (tmp_path / "in.txt").write_bytes(text)
    from_file = glassformer("translate", trained, tmp_path / "in.txt")
    assert from_file.out == glassformer("translate", trained, stdin=text).out
    assert from_file.out.count("\n") == 2


def test_an_empty_line_and_one_of_spaces_give_empty_lines(glassformer, trained):
    result = glassformer("translate", trained, stdin=b"the cat\n\n   \n\xe3\x80\x80\na dog\n")
    lines = result.out.split("\n")
    assert [bool(line) for line in lines] == [True, False, False, False, True, False]
    assert "no translation of 3 of 5 lines: 3 blank" in result.err
    assert result.status == 0


def test_a_line_of_100_000_characters_gives_an_empty_line(glassformer, trained):
    result = glassformer("translate", trained, stdin=b"cat " * 25_000 + b"\nthe cat\n")
    empty, translated = result.out.splitlines()
    assert not empty
    assert translated
    assert "1 too long" in result.err
    assert result.status == 0


def test_max_source_says_what_is_too_long(glassformer, trained):
    result = glassformer("translate", trained, "--max-source", 4, stdin=b"the cat sees\nthe cat sees a\n")
    assert [bool(line) for line in result.out.splitlines()] == [True, False]


def test_unknown_words_are_translated_somehow(glassformer, trained):
    result = glassformer("translate", trained, stdin="the zebra 日本 🦓\n".encode())
    assert result.status == 0
    assert result.out.count("\n") == 1
    assert "no translation" not in result.err


def test_bytes_that_are_no_utf8_give_an_empty_line_and_a_status(glassformer, trained, tmp_path):
    status = tmp_path / "status.jsonl"
    result = glassformer("translate", trained, "--status", status, stdin=b"the cat\n\xff\xfe\n\n")
    assert result.out.count("\n") == 3
    entries = [json.loads(line) for line in status.read_text().splitlines()]
    assert entries == [
        {"line": 1, "status": "ok"},
        {"line": 2, "status": "undecodable"},
        {"line": 3, "status": "blank"},
    ]
    assert "1 undecodable" in result.err


def test_an_empty_input_gives_an_empty_output(glassformer, trained):
    result = glassformer("translate", trained, stdin=b"")
    assert (result.status, result.out, result.err) == (0, "", "")


def test_lines_end_at_line_feeds_only(glassformer, trained):
    text = "the cat\u2028a dog\nthe\u0085cat\x0cdog\r\nthe cat\rdog".encode()
    assert glassformer("translate", trained, stdin=text).out.count("\n") == 3


@given(st.lists(st.binary(max_size=20).filter(lambda line: b"\n" not in line), max_size=8))
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_as_many_lines_out_as_in(glassformer, trained, lines):
    result = glassformer("translate", trained, "--beam-size", 1, stdin=b"".join(line + b"\n" for line in lines))
    assert result.status == 0
    assert result.out.count("\n") == len(lines)


def test_n_best_prints_number_score_and_text_best_first(glassformer, trained):
    result = glassformer("translate", trained, "--n-best", 3, stdin=b"the cat\na dog\n")
    rows = [line.split("\t") for line in result.out.splitlines()]
    assert [row[0] for row in rows] == ["1"] * 3 + ["2"] * 3
    scores = [float(row[1]) for row in rows]
    assert scores[:3] == sorted(scores[:3], reverse=True)
    assert len({row[2] for row in rows[:3]}) == 3


def test_a_prefix_begins_every_translation(glassformer, trained):
    result = glassformer("translate", trained, "--prefix", "grand chien", stdin=b"the cat\na dog\n")
    assert all(line.startswith("grand chien") for line in result.out.splitlines())


def test_samples_depend_on_the_seed_alone(glassformer, trained):
    def drawn(seed: int) -> str:
        options = ["--sample", "--temperature", 3.0, "--seed", seed]
        return glassformer("translate", trained, *options, stdin=b"the big cat sees\n" * 5).out

    assert drawn(1) == drawn(1) != drawn(2)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--beam-size", 0], "beam_size"),
        (["--n-best", 9], "n_best"),
        (["--temperature", 2.0], "no effect without --sample"),
        (["--sample", "--top-p", 1.5], "top_p"),
        (["--sample", "--n-best", 2], "sampling"),
    ],
)
def test_impossible_options_are_one_line_and_status_1(glassformer, trained, options, message):
    result = glassformer("translate", trained, *options, stdin=b"the cat\n")
    assert result.status == 1
    assert result.err.startswith("error: ")
    assert result.err.count("\n") == 1
    assert message in result.err


def test_a_missing_file_is_named_with_its_neighbour(glassformer, trained, tmp_path):
    (tmp_path / "input.txt").write_text("the cat\n")
    result = glassformer("translate", trained, tmp_path / "inptu.txt")
    assert result.status == 1
    assert "inptu.txt does not exist (did you mean 'input.txt'?)" in result.err


def test_a_missing_run_is_named(glassformer, tmp_path):
    result = glassformer("translate", tmp_path / "nowhere")
    assert result.status == 1
    assert "there is no such folder" in result.err
    assert result.err.count("\n") == 1


def test_a_file_in_the_place_of_a_run_is_named(glassformer, tmp_path):
    (tmp_path / "run").write_text("")
    assert "is a file: give the folder of a run" in glassformer("translate", tmp_path / "run").err


@pytest.mark.parametrize("damage", ["truncated", "corrupted", "empty", "missing"])
def test_damaged_weights_are_one_line_that_names_the_file(glassformer, trained, tmp_path, damage):
    run = shutil.copytree(trained, tmp_path / "run")
    weights = run / "model.safetensors"
    whole = weights.read_bytes()
    match damage:
        case "truncated":
            weights.write_bytes(whole[: len(whole) // 2])
        case "corrupted":
            weights.write_bytes(b"\xff" * 64 + whole[64:])
        case "empty":
            weights.write_bytes(b"")
        case "missing":
            weights.unlink()
    result = glassformer("translate", run, stdin=b"the cat\n")
    assert result.status == 1
    assert result.out == ""
    assert "model.safetensors" in result.err
    assert result.err.count("\n") == 1


def test_debug_shows_the_traceback(trained, tmp_path):
    from glassformer.cli import main
    from glassformer.errors import CheckpointError

    with pytest.raises(CheckpointError):
        main(["translate", str(tmp_path / "nowhere"), "--debug"])


@pytest.fixture
def second(glassformer, trained, tmp_path):
    """Return a run on the same corpus that was trained for a shorter time."""
    folder = trained.parent
    options = ["--set", f"run.directory={tmp_path / 'second'}", "--set", "training.steps=40"]
    assert glassformer("train", folder / "small.toml", "--data", folder, *options).status == 0
    return tmp_path / "second"


def test_an_ensemble_translates_with_several_runs(glassformer, trained, second):
    text = b"the big cat sees\na dog and the cat\n\n"
    alone = glassformer("translate", trained, "--n-best", 1, stdin=text)
    same = glassformer("translate", trained, "--ensemble", trained, stdin=text)
    assert same.out == alone.out
    mixed = glassformer("translate", trained, "--ensemble", second, "--ensemble", trained, "--n-best", 2, stdin=text)
    assert mixed.status == 0
    scored = [line.split("\t") for line in mixed.out.splitlines()]
    assert [row[0] for row in scored] == ["1", "1", "2", "2", "3"]
    first = glassformer("translate", trained, "--n-best", 2, stdin=text).out.splitlines()[0].split("\t")
    assert scored[0][1] != first[1]


def test_a_score_of_an_ensemble_is_what_its_search_found(glassformer, trained, second, tmp_path):
    found = glassformer("translate", trained, "--ensemble", second, "--n-best", 2, stdin=b"the cat\n").out.split("\t")
    (tmp_path / "src").write_text("the cat\n")
    (tmp_path / "tgt").write_text(found[2].split("\n")[0] + "\n")
    scored = glassformer("score", trained, tmp_path / "src", tmp_path / "tgt", "--ensemble", second).out
    assert float(scored.split("\t")[1]) == pytest.approx(float(found[1]), abs=1e-3)


def test_an_ensemble_is_not_explained(glassformer, trained):
    result = glassformer("translate", trained, "--ensemble", trained, "--explain", stdin=b"the cat\n")
    assert result.status == 1
    assert "cannot be looked into" in result.err


def test_runs_with_other_words_are_no_ensemble(glassformer, trained, corpus):
    (corpus / "train.tsv").write_text("the cat\tel gato\nthe dog\tel perro\n" * 20)
    options = ["--set", "run.directory=spanish", "--set", "training.steps=2"]
    assert glassformer("train", "small.toml", "--data", corpus, *options).status == 0
    result = glassformer("translate", trained, "--ensemble", "spanish", stdin=b"the cat\n")
    assert result.status == 1
    assert "must write with the same tokens" in result.err
