"""`glassformer translate`: one output line for each input line, whatever the lines are."""

import json
import shutil

import pytest
from hypothesis import given
from hypothesis import strategies as st

from profiles import scaled


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


def test_blank_lines_give_empty_lines(glassformer, trained):
    result = glassformer("translate", trained, stdin=b"the cat\n\n   \n\xe3\x80\x80\na dog\n")
    lines = result.out.split("\n")
    assert [bool(line) for line in lines] == [True, False, False, False, True, False]
    assert "no translation of 3 of 5 lines: 3 blank" in result.err
    assert result.status == 0


@pytest.mark.slow
def test_a_line_of_100_000_characters_gives_an_empty_line(glassformer, trained):
    result = glassformer("translate", trained, stdin=b"cat " * 25_000 + b"\nthe cat\n")
    empty, translated = result.out.splitlines()
    assert not empty
    assert translated
    assert (
        "of 2 lines: 1 too long\nsplit texts of more than 1,024 tokens (decoding.max_source), for example" in result.err
    )
    assert result.status == 0


def test_max_source_limits_the_length_of_a_source(glassformer, trained):
    result = glassformer(
        "translate", trained, "--set", "decoding.max_source=4", stdin=b"the cat sees\nthe cat sees a\n"
    )
    assert [bool(line) for line in result.out.splitlines()] == [True, False]
    assert "1 too long\nsplit texts of more than 4 tokens (decoding.max_source), for example into sent" in result.err
    refused = glassformer("translate", trained, "--set", "decoding.max_source=-5")
    assert (refused.status, refused.err.count("\n")) == (1, 1)
    assert "decoding.max_source: expected an integer from 1 to" in refused.err


def test_unknown_words_do_not_prevent_a_translation(glassformer, trained):
    result = glassformer("translate", trained, stdin="the zebra 日本 🦓\n".encode())
    assert result.status == 0
    assert result.out.count("\n") == 1
    assert "no translation" not in result.err


def test_invalid_utf_8_gives_an_empty_line_and_a_status(glassformer, trained, tmp_path):
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


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("in.txt", ["translate", "demo", "in.txt"]),
        ("stdin", ["translate", "demo"]),
        ("in.txt", ["bulk", "demo", "in.txt", "--output", "out"]),
        ("terms.tsv", ["translate", "demo", "--glossary", "terms.tsv"]),
        ("my.toml", ["prepare", "my.toml"]),
    ],
)
def test_a_text_in_utf_16_is_known_by_its_mark(glassformer, tmp_path, monkeypatch, name, arguments):
    text = '[data]\tsource = "cat"\n'.encode("utf-16")
    (tmp_path / name).write_bytes(text)
    monkeypatch.chdir(tmp_path)
    result = glassformer(*arguments, stdin=text if name == "stdin" else b"the cat\n")
    assert (result.status, result.out) == (1, "")
    assert f"{name}: expected UTF-8, got UTF-16 (it begins with the bytes FF FE); convert it" in result.err


def test_links_are_written_for_every_line(glassformer, trained, tmp_path):
    links = tmp_path / "links.jsonl"
    result = glassformer("translate", trained, "--links", links, stdin=b"the cat sees\n\nthe dog\n")
    entries = [json.loads(line) for line in links.read_text().splitlines()]
    assert [entry["line"] for entry in entries] == [1, 2, 3]
    for text, line, entry in zip(("the cat sees", "", "the dog"), result.out.splitlines(), entries, strict=True):
        spans = dict.fromkeys((begin, end) for _, _, begin, end in entry["links"])
        assert [line[begin:end] for begin, end in spans] == line.split()
        assert {text[begin:end] for begin, end, _, _ in entry["links"]} == set(text.split())
    refused = glassformer("translate", trained, "--links", links, "--explain")
    assert (refused.status, refused.err.count("\n")) == (1, 1)


def test_an_empty_input_gives_an_empty_output(glassformer, trained):
    result = glassformer("translate", trained, stdin=b"")
    assert (result.status, result.out, result.err) == (0, "", "")


def test_lines_end_at_line_feeds_only(glassformer, trained):
    text = "the cat\u2028a dog\nthe\u0085cat\x0cdog\r\nthe cat\rdog".encode()
    assert glassformer("translate", trained, stdin=text).out.count("\n") == 3


@pytest.mark.slow
@given(st.lists(st.binary(max_size=20).filter(lambda line: b"\n" not in line), max_size=8))
@scaled(25)
def test_each_input_line_gives_one_output_line(glassformer, trained, lines):
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
        options = ["--sample", "--set", "decoding.temperature=3", "--set", f"decoding.seed={seed}"]
        return glassformer("translate", trained, *options, stdin=b"the big cat sees\n" * 5).out

    assert drawn(1) == drawn(1) != drawn(2)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--beam-size", 0], "beam_size"),
        (["--n-best", 9], "n_best"),
        (["--set", "decoding.temperature=2"], "no effect without --sample"),
        (["--sample", "--set", "decoding.top_p=1.5"], "decoding.top_p: expected"),
        (["--sample", "--n-best", 2], "sampling"),
        (["--sample", "--set", "decoding.beam_size=2"], "sampling"),
        (["--sample", "--engine", "ctranslate2"], "cannot sample with a seed per text"),
        (["--explain", "--engine", "ctranslate2"], "does not show what it computes"),
        (["--set", "training.steps=9"], "--set: expected decoding.NAME=VALUE"),
        (["--set", "decoding.temprature=2"], "did you mean 'temperature'"),
    ],
)
def test_impossible_options_are_one_line_and_status_1(glassformer, trained, options, message):
    result = glassformer("translate", trained, *options, stdin=b"the cat\n")
    assert result.status == 1
    assert result.err.startswith("error: ")
    assert result.err.count("\n") == 1
    assert message in result.err


def test_a_missing_file_is_named_with_the_nearest_file(glassformer, trained, tmp_path):
    (tmp_path / "input.txt").write_text("the cat\n")
    result = glassformer("translate", trained, tmp_path / "inptu.txt")
    assert result.status == 1
    assert "inptu.txt does not exist (did you mean 'input.txt'?)" in result.err


def test_a_missing_run_is_named(glassformer, tmp_path):
    result = glassformer("translate", tmp_path / "nowhere")
    assert result.status == 1
    assert "does not exist; give the folder of a run" in result.err
    assert result.err.count("\n") == 1


def test_a_file_instead_of_a_run_is_an_error(glassformer, tmp_path):
    (tmp_path / "run").write_text("")
    assert "is a file; give the folder of a run" in glassformer("translate", tmp_path / "run").err


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
        main(["translate", str(tmp_path / "nowhere"), str(tmp_path / "text"), "--debug"])


@pytest.fixture
def second(glassformer, trained, tmp_path):
    """Return a run on the same corpus, trained for a shorter time."""
    folder = trained.parent
    options = ["--set", f"run.directory={tmp_path / 'second'}", "--set", "training.steps=40"]
    assert glassformer("train", folder / "small.toml", "--data", folder, *options).status == 0
    return tmp_path / "second"


@pytest.mark.slow
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


@pytest.mark.slow
def test_the_score_of_an_ensemble_is_the_score_of_its_search(glassformer, trained, second, tmp_path):
    found = glassformer("translate", trained, "--ensemble", second, "--n-best", 2, stdin=b"the cat\n").out.split("\t")
    (tmp_path / "src").write_text("the cat\n")
    (tmp_path / "tgt").write_text(found[2].split("\n")[0] + "\n")
    scored = glassformer("score", trained, tmp_path / "src", tmp_path / "tgt", "--ensemble", second).out
    assert float(scored.split("\t")[1]) == pytest.approx(float(found[1]), abs=1e-3)


def test_an_ensemble_cannot_be_explained(glassformer, trained):
    result = glassformer("translate", trained, "--ensemble", trained, "--explain", stdin=b"the cat\n")
    assert result.status == 1
    assert "cannot be inspected" in result.err


@pytest.mark.slow
def test_runs_with_different_vocabularies_cannot_form_an_ensemble(glassformer, trained, corpus):
    (corpus / "train.tsv").write_text("the cat\tel gato\nthe dog\tel perro\n" * 20)
    options = ["--set", "run.directory=spanish", "--set", "training.steps=2"]
    assert glassformer("train", "small.toml", "--data", corpus, *options).status == 0
    result = glassformer("translate", trained, "--ensemble", "spanish", stdin=b"the cat\n")
    assert result.status == 1
    assert "must share their target tokens" in result.err


# Decoding settings


def test_a_setting_overrides_the_runs_own(glassformer, trained):
    for size, status in ((2, 1), (3, 0)):
        options = ["--n-best", 3, "--set", f"decoding.beam_size={size}"]
        assert glassformer("translate", trained, *options, stdin=b"the cat\n").status == status


def test_the_engine_is_chosen_by_its_abilities(glassformer, trained):
    def engine(*options: object) -> str:
        return glassformer("translate", trained, "--verbose", *options, stdin=b"the cat\n").err

    assert "engine ctranslate2 (float32)" in engine()
    assert "engine torch: CTranslate2 cannot sample" in engine("--sample")
    assert "engine torch: CTranslate2 does not show" in engine("--explain")
    assert "engine torch: CTranslate2 finds a hypothesis that ends right after a prefix" in engine("--prefix", "le")
    steeper = ("--set", "decoding.length_penalty=3")
    assert "engine torch: length_penalty = 3: CTranslate2 searches with at most 2" in engine(*steeper)
    asked = engine(*steeper, "--engine", "ctranslate2")
    assert "engine ctranslate2 (float32)" in asked
    assert "outputs can differ from the engine torch: length_penalty = 3" in asked


@pytest.mark.parametrize("place", ["before", "behind"])
def test_verbose_may_come_before_or_after_the_command(glassformer, trained, place):
    words = ["--verbose", "translate", trained] if place == "before" else ["translate", trained, "--verbose"]
    result = glassformer(*words, stdin=b"the cat\n")
    assert result.err.count("engine ctranslate2") == 1
    assert "engine" not in glassformer("translate", trained, stdin=b"the cat\n").err


def test_words_after_two_dashes_are_arguments(glassformer, trained, corpus):
    (corpus / "--verbose").write_text("the cat\n")
    result = glassformer("translate", trained, "--", "--verbose")
    assert result.out == glassformer("translate", trained, stdin=b"the cat\n").out
    assert result.err == ""
    result = glassformer("translate", trained, "--", "--debug")
    assert result.status == 1
    assert "--debug" in result.err


def test_a_value_may_be_spelled_like_a_switch(glassformer, trained):
    result = glassformer("translate", trained, "--prefix", "--debug", stdin=b"the cat\n")
    assert result.status == 1
    assert "the prefix '--debug' cannot begin an output" in result.err
