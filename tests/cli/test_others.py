"""The other commands: evaluate, score, average, trace, recipes, and the command line as a whole."""

import json
import os
import re
import shlex
import shutil

import pytest
import typer.main

from glassformer.cli import COMMANDS, GROUPS, application


@pytest.fixture
def test_set(tmp_path):
    (tmp_path / "test.en").write_text("the cat\na dog sees\n")
    (tmp_path / "test.fr").write_text("le chat\nun chien voit\n")
    return tmp_path / "test.en", tmp_path / "test.fr"


def test_evaluate_prints_scores_with_signatures(glassformer, trained, test_set):
    result = glassformer("evaluate", trained, *test_set)
    assert [line.split()[0] for line in result.out.splitlines()] == ["BLEU", "chrF2", "exact"]
    assert "version:" in result.out


def test_evaluate_writes_the_scored_outputs(glassformer, trained, test_set, tmp_path):
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
    assert "expected SRC and REF" in glassformer("evaluate", trained, test_set[0]).err


def test_score_gives_the_score_that_translate_found(glassformer, trained, tmp_path):
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


def test_commands_that_search_take_the_settings_of_the_search(glassformer, trained, test_set):
    """With at most 2 source tokens, nothing is translated, scored or right."""
    few = ["--set", "decoding.max_source=2"]
    assert glassformer("score", trained, *test_set, *few).out == "\n\n"
    [score] = json.loads(glassformer("evaluate", trained, *test_set, "--metric", "exact", "--json", *few).out)
    assert score["value"] == 0
    [compared] = json.loads(
        glassformer("compare", trained, trained, *test_set, "--metric", "exact", "--json", *few).out
    )
    assert compared["metrics"][0]["first"] == 0


@pytest.mark.parametrize("command", ["evaluate", "compare", "score"])
def test_a_setting_of_sampling_is_refused_without_sampling(glassformer, trained, test_set, command):
    runs = [trained, trained] if command == "compare" else [trained]
    result = glassformer(command, *runs, *test_set, "--set", "decoding.temperature=2")
    assert result.status == 1
    assert "decoding.temperature has no effect without --sample of translate" in result.err


@pytest.mark.slow
def test_average_makes_a_model_that_translates(glassformer, trained, tmp_path):
    result = glassformer("average", trained, "--last", 2, "--output", tmp_path / "mean")
    assert result.status == 0
    assert glassformer("translate", tmp_path / "mean", stdin=b"the cat\n").out.strip()


def test_average_refuses_more_checkpoints_than_exist(glassformer, trained):
    assert "expected a number from 1 to 3" in glassformer("average", trained, "--last", 9).err


def test_trace_shows_every_point_once(glassformer, trained):
    out = glassformer("trace", trained, "the cat").out
    assert "encoder.layers.1.feed_forward" in out
    # one attention in each of two encoder layers, and two in each of two decoder layers
    assert out.count("query · key / √d_k") == 6
    assert "the cat <eos>" in out


def test_trace_follows_the_steps_of_the_book(glassformer, trained):
    out = glassformer("trace", trained, "the cat").out
    steps = ["source", "ids", "embedding", "positions", "input", "self_attention", "query", "key", "value", "scores"]
    steps += ["mask", "weights", "heads", "joined", "output", "added", "normed", "feed_forward", "hidden", "activated"]
    steps += ["the memory", "cross_attention", "logits", "log_probs", "the next word"]
    for step in steps:
        _, found, out = out.partition(step)
        assert found


def test_trace_says_that_the_padding_at_the_end_of_a_source_is_hidden(glassformer, trained, tmp_path):
    run = shutil.copytree(trained, tmp_path / "run")
    path = run / "tokenizer" / "source.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "with_eos": False}))
    out = glassformer("trace", run, "the cat").out
    assert out.startswith("source  the cat <pad>\n")
    masks = [line for line in out.splitlines() if "  mask " in line]
    assert ["the whole source, but not <pad>" in mask for mask in masks] == [True, True, False, True, False, True]


def test_trace_describes_each_mask_in_words(glassformer, trained):
    masks = [line for line in glassformer("trace", trained, "the cat").out.splitlines() if "  mask " in line]
    assert ["sees all positions (no padding)" in mask for mask in masks] == [True, True, False, False, False, False]
    assert ["itself and earlier positions" in mask for mask in masks] == [False, False, True, False, True, False]
    assert ["the whole source" in mask for mask in masks] == [False, False, False, True, False, True]


@pytest.mark.slow
def test_trace_names_the_input_of_a_norm(glassformer, trained, corpus):
    assert "layer norm of added" in glassformer("trace", trained, "the cat").out
    options = ["--set", "model.norm=pre", "--set", "training.steps=1", "--set", "run.directory=pre"]
    assert glassformer("train", "small.toml", "--data", corpus, *options).status == 0
    out = glassformer("trace", "pre", "the cat").out
    assert out.count("layer norm of input: new x") == 10
    assert "layer norm of added" not in out


@pytest.mark.slow
@pytest.mark.parametrize("columns", [60, 80, 200])
def test_all_numbers_of_a_grid_fit_any_terminal(glassformer, trained, monkeypatch, columns):
    monkeypatch.setenv("COLUMNS", str(columns))
    text = "the cat and the dog and the big cat and a dog"
    lines = glassformer("trace", trained, text, "--point", "encoder.layers.0.self_attention.weights").out.splitlines()
    assert max(map(len, lines)) <= columns
    numbers = [word for line in lines for word in line.split() if word.startswith(("0.", "1."))]
    assert len(numbers) == 4 * 13 * 13
    assert sum(map(float, numbers)) == pytest.approx(4 * 13, abs=0.3)


def test_trace_as_json_has_numbers_that_add_up(glassformer, trained):
    traced = json.loads(glassformer("trace", trained, "the cat", "--json").out)
    weights = traced["points"]["encoder.layers.0.self_attention.weights"]
    assert weights["shape"] == [4, 3, 3]
    assert sum(weights["values"][2][1]) == pytest.approx(1)
    assert traced["source"] == ["the", "cat", "<eos>"]


def test_trace_can_show_one_point_for_a_given_target(glassformer, trained):
    options = ["--point", "decoder.layers.1.cross_attention.weights", "--target", "chien chien"]
    out = glassformer("trace", trained, "the cat", *options).out
    assert "4 × 3 × 3" in out
    assert out.count("chien") == 8
    assert "did you mean" in glassformer("trace", trained, "the cat", "--point", "decoder.layers.1.weights").err


def test_trace_of_a_blank_text_is_refused(glassformer, trained):
    assert "blank" in glassformer("trace", trained, "  ").err


def test_recipes_are_listed_with_their_purpose(glassformer):
    out = glassformer("recipes").out
    for name in ("copy", "demo", "multi30k-de-en", "translation"):
        assert any(line.startswith(name) and len(line) > 30 for line in out.splitlines())


def test_the_version_is_printed(glassformer):
    import glassformer as package

    assert glassformer("--version").out == f"glassformer {package.__version__} ({package.__released__})\n"


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_works_alike_alone_and_among_all_commands(name):
    def helps(commands):
        command = typer.main.get_command(application(commands)).commands[name]
        return command.get_help(typer.Context(command, info_name=name)), [one.name for one in command.params]

    assert helps([name]) == helps(COMMANDS)


@pytest.mark.parametrize("given", [["--help"], []])
def test_the_help_lists_all_commands_by_group(glassformer, given):
    result = glassformer(*given)
    sections = re.findall(r"^([A-Z][\w ]+):\n((?:  .+\n)+)", result.out + result.err, flags=re.MULTILINE)
    listed = {group: tuple(re.findall(r"^  (\w+)  ", rows, flags=re.MULTILINE)) for group, rows in sections}
    listed.pop("Options")
    assert listed == GROUPS


def test_a_misspelt_command_is_answered_by_the_nearest_name(glassformer):
    result = glassformer("tranlsate", "runs/demo")
    assert result.status == 2
    assert "'tranlsate'" in result.err
    assert "'translate'" in result.err


@pytest.mark.parametrize(
    ("given", "spins"),
    [({}, "3000"), ({"GOMP_SPINCOUNT": "7"}, "7"), ({"OMP_WAIT_POLICY": "active"}, None)],
    ids=["nothing", "how often", "the policy"],
)
def test_waiting_threads_sleep_soon_unless_the_user_sets_otherwise(glassformer, monkeypatch, given, spins):
    for name in ("GOMP_SPINCOUNT", "OMP_WAIT_POLICY"):
        monkeypatch.setenv(name, "")  # monkeypatch then undoes the command's changes after the test
        monkeypatch.delenv(name)
    for name, value in given.items():
        monkeypatch.setenv(name, value)
    glassformer("recipes")
    assert os.environ.get("GOMP_SPINCOUNT") == spins


@pytest.mark.parametrize(
    ("command", "options"),
    [("recipes", []), ("trace", ["the cat", "--point"]), ("export", ["folder", "--to"])],
    ids=["recipes", "trace", "export"],
)
def test_a_message_quotes_at_most_100_characters(glassformer, trained, command, options):
    word = "x" * 1000
    run = [] if command == "recipes" else [trained]
    result = glassformer(command, *run, *options, word)
    assert result.status == 1
    assert f"got '{'x' * 97}…'" in result.err
    assert "x" * 98 not in result.err


@pytest.mark.slow
def test_printed_commands_can_be_pasted_into_a_shell(glassformer, trained, tmp_path):
    """Each printed command names a folder that exists, although the name has spaces and quotes."""
    home = tmp_path / "Ж 'a' \"b\" $c"
    shutil.copytree(trained.parent, home / "the data")
    run, config = home / "the data" / "run", home / "the data" / "small.toml"
    shutil.copytree(run, home / "to resume")
    files = ["--data", home / "the data", "--set", f"run.directory={home / 'to resume'}"]
    shown = [
        glassformer("train", config, *files),
        glassformer("prepare", config, "--data", home / "the data", "--set", f"run.directory={home / 'new'}"),
        glassformer("average", run, "--last", 2),
        glassformer("export", run, home / "ex port"),
    ]
    assert not [one.err for one in shown if one.status]
    commands = [re.search(r":  (glassformer .+)", one.out)[1] for one in shown]
    words = [shlex.split(command) for command in commands]
    assert [word[2] for word in words] == [
        *map(str, (home / "to resume", config, run / "averaged-2", home / "ex port"))
    ]
    assert words[1][3:] == ["--data", str(home / "the data"), "--set", f"run.directory={home / 'new'}"]
