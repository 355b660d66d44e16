"""The other commands: evaluate, score, average, estimate, trace, recipes, and the command line as a whole."""

import json

import pytest
import typer.main

from glassformer.cli import app


@pytest.fixture
def test_set(tmp_path):
    (tmp_path / "test.en").write_text("the cat\na dog sees\n")
    (tmp_path / "test.fr").write_text("le chat\nun chien voit\n")
    return tmp_path / "test.en", tmp_path / "test.fr"


def test_evaluate_prints_scores_with_signatures(glassformer, trained, test_set):
    result = glassformer("evaluate", trained, *test_set)
    assert [line.split()[0] for line in result.out.splitlines()] == ["BLEU", "chrF2", "exact"]
    assert "version:" in result.out


def test_evaluate_writes_what_it_scored(glassformer, trained, test_set, tmp_path):
    result = glassformer("evaluate", trained, *test_set, "--metric", "wer", "--json", "--output", tmp_path / "out.txt")
    [score] = json.loads(result.out)
    assert score["name"] == "WER"
    translated = glassformer("translate", trained, test_set[0]).out
    assert (tmp_path / "out.txt").read_text() == translated


def test_evaluate_refuses_files_of_unequal_length(glassformer, trained, test_set):
    test_set[1].write_text("le chat\n")
    result = glassformer("evaluate", trained, *test_set)
    assert result.status == 1
    assert "test.en has 2 lines" in result.err


def test_evaluate_needs_files_unless_the_run_has_a_task(glassformer, trained, test_set):
    assert "SRC and REF" in glassformer("evaluate", trained).err
    assert "both SRC and REF" in glassformer("evaluate", trained, test_set[0]).err


def test_score_gives_what_translate_found(glassformer, trained, tmp_path):
    (tmp_path / "source").write_text("the cat\n\n")
    (tmp_path / "target").write_text(glassformer("translate", trained, stdin=b"the cat\n\n").out)
    found = glassformer("translate", trained, "--n-best", 2, stdin=b"the cat\n").out.split("\t")[1]
    first, blank = glassformer("score", trained, tmp_path / "source", tmp_path / "target").out.splitlines()
    assert float(first.split("\t")[1]) == pytest.approx(float(found), abs=1e-3)
    assert blank == ""


def test_score_as_json_has_each_token(glassformer, trained, test_set):
    lines = glassformer("score", trained, *test_set, "--json").out.splitlines()
    one = json.loads(lines[0])
    assert one["tokens"] == ["le", "chat", "<eos>"]
    assert sum(one["token_log_probs"]) == pytest.approx(one["log_prob"])


def test_average_makes_a_model_that_translates(glassformer, trained, tmp_path):
    result = glassformer("average", trained, "--last", 2, "--output", tmp_path / "mean")
    assert result.status == 0
    assert glassformer("translate", tmp_path / "mean", stdin=b"the cat\n").out.strip()


def test_average_of_more_checkpoints_than_there_are(glassformer, trained):
    assert "the run has 3 checkpoints" in glassformer("average", trained, "--last", 9).err


def test_estimate_counts_the_parameters_of_the_paper(glassformer, corpus):
    overrides = ["--set", "tokenizer.vocab_size=37000", "--set", "tokenizer.joint=true", "--set", "model.preset=base"]
    sizes = ["--set", "model.d_model=512", "--set", "model.heads=8", "--set", "model.d_ff=2048"]
    result = glassformer("estimate", "small.toml", *overrides, *sizes, "--json")
    assert json.loads(result.out)["parameters"] == 63_082_496


def test_estimate_reads_as_a_table(glassformer, corpus):
    out = glassformer("estimate", "small.toml").out
    for name in ("parameters", "operations", "memory", "this machine", "time"):
        assert name in out


def test_estimate_lists_the_presets(glassformer):
    rows = dict(line.split() for line in glassformer("estimate", "--presets").out.splitlines()[1:])
    assert rows["base"] == "63.1"
    assert rows["big"] == "214.2"
    assert "table3-B-dk16" in rows


def test_trace_shows_every_point_once(glassformer, trained):
    out = glassformer("trace", trained, "the cat").out
    assert "encoder.layers.1.feed_forward" in out
    assert out.count("query · key / √d_k") == 6  # two encoder layers, and two attentions in each of two decoder layers
    assert "the cat <eos>" in out


def test_trace_as_json_holds_numbers_that_add_up(glassformer, trained):
    traced = json.loads(glassformer("trace", trained, "the cat", "--json").out)
    weights = traced["points"]["encoder.layers.0.self_attention.weights"]
    assert weights["shape"] == [4, 3, 3]
    assert sum(weights["values"][2][1]) == pytest.approx(1)
    assert traced["source"] == ["the", "cat", "<eos>"]


def test_trace_of_one_point_and_a_given_target(glassformer, trained):
    options = ["--point", "decoder.layers.1.cross_attention.weights", "--target", "chien chien"]
    out = glassformer("trace", trained, "the cat", *options).out
    assert "4 × 3 × 3" in out
    assert out.count("chien") == 8
    assert "did you mean" in glassformer("trace", trained, "the cat", "--point", "decoder.layers.1.weights").err


def test_trace_of_a_blank_text_is_refused(glassformer, trained):
    assert "blank" in glassformer("trace", trained, "  ").err


def test_recipes_are_listed_with_what_they_are_for(glassformer):
    out = glassformer("recipes").out
    for name in ("copy", "demo", "multi30k-de-en", "translation"):
        assert any(line.startswith(name) and len(line) > 30 for line in out.splitlines())


def test_version(glassformer):
    import glassformer as package

    assert glassformer("--version").out == f"glassformer {package.__version__}\n"


def test_every_command_has_few_options_with_help():
    for name, command in typer.main.get_command(app).commands.items():
        options = [parameter for parameter in command.params if parameter.param_type_name == "option"]
        assert len(options) <= 12, name
        assert command.help, name
        assert all(option.help for option in options), name
