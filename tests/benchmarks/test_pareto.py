"""The Pareto curve of trained runs."""

import json
import subprocess
from dataclasses import asdict
from itertools import pairwise
from pathlib import Path

import pytest
from benchmarks.pareto import Point, front, main, markdown, peers, plot, read_list, table

from benchmarks import page, pareto, results
from glassformer.bundle import Bundle
from glassformer.model.transformer import Transformer
from glassformer.recipes.toml import from_dict, load, model_config
from glassformer.text.tokenizer import TokenizerConfig, train_tokenizers


def point(name: str, quality: float, speed: float, *, ours: bool = True) -> Point:
    return Point(
        name=name, quality=quality, sentences_per_second=speed, slowest=speed, fastest=speed, ours=ours, source="page 1"
    )


UNTIMED = Point(name="untimed", quality=35, sentences_per_second=None, ours=False, source="page 2")
POINTS = [point("slow", 40, 10), point("beaten", 39, 9), point("fast", 30, 90, ours=False), point("equal", 40, 10)]


def test_the_front_has_the_points_that_no_point_beats():
    assert [one.name for one in front(POINTS, higher_is_better=True)] == ["fast", "slow"]
    assert [one.name for one in front(POINTS, higher_is_better=False)] == ["fast"]
    between = [*POINTS, point("between", 35, 50)]
    assert [one.name for one in front(between, higher_is_better=True)] == ["fast", "between", "slow"]


def test_the_table_is_sorted_by_speed_with_the_front_in_bold():
    lines = table(POINTS, front(POINTS, higher_is_better=True), "BLEU").splitlines()
    assert lines[2] == "| **fast** | 30.00 | 90 | page 1 |"
    assert lines[3] == "| **slow** | 40.00 | 10 | 10–10 |"
    assert [line.split("|")[1].strip() for line in lines[4:]] == ["equal", "beaten"]


def test_a_peer_of_unknown_speed_is_in_the_table_but_never_on_the_front():
    [known, unknown] = peers(
        {"peers": [{"name": "a", "quality": 1, "sentences_per_second": 2}, {"name": "b", "quality": 9, "from": "c"}]}
    )
    assert front([known, unknown], higher_is_better=True) == [known]
    assert table([unknown, known], [known], "BLEU").splitlines()[2:] == [
        "| **a** | 1.00 | 2 |  |",
        "| b | 9.00 |  | c |",
    ]


@pytest.mark.slow
@pytest.mark.parametrize("higher_is_better", [True, False])
def test_the_picture_and_the_page_show_every_point(tmp_path, higher_is_better):
    figures = {"name": "words", "metric": "BLEU", "higher_is_better": higher_is_better, "rounds": 3, "sentences": 1000}
    figures |= {
        "points": [asdict(one) for one in (*POINTS, UNTIMED)],
        "command": "c",
        "day": "d",
        "machine": results.machine(),
    }
    assert plot(figures, tmp_path) == tmp_path / "pareto-words.png"
    assert (tmp_path / "pareto-words.png").stat().st_size > 5000
    text = markdown(figures)
    assert all(f"{one.name}" in text for one in (*POINTS, UNTIMED))
    assert ("| **slow** |" in text) is higher_is_better


@pytest.mark.parametrize(
    ("change", "message"),
    [({"metric": None}, "'metric' is missing"), ({"runs": [{"name": "a", "rum": "b"}]}, "a run has name, run")],
    ids=["no metric", "unknown field"],
)
def test_a_list_with_mistakes_is_refused(tmp_path, change, message):
    values = {"source": "a", "reference": "b", "metric": "bleu", "runs": [], **change}
    path = tmp_path / "list.json"
    path.write_text(json.dumps({name: value for name, value in values.items() if value is not None}))
    with pytest.raises(SystemExit, match=message):
        read_list(path)


@pytest.fixture
def listed(tmp_path) -> Path:
    """Return a benchmark list with two ways to decode an untrained model, and with a peer."""
    lines = ["a b c", "b a", "c c a"]
    (tmp_path / "test.txt").write_text("".join(f"{line}\n" for line in lines))
    values = {"data": {"task": "copy"}, "model": {"preset": "tiny", "d_model": 16, "heads": 2, "d_ff": 16}}
    configuration = from_dict(values)
    tokenizers = train_tokenizers(lines, lines, TokenizerConfig(kind="words"))
    config = model_config(configuration, *map(len, tokenizers))
    bundle = Bundle(
        folder=tmp_path / "run",
        configuration=configuration,
        model_config=config,
        source_tokenizer=tokenizers[0],
        target_tokenizer=tokenizers[1],
    )
    bundle.save(Transformer(config))
    test = str(tmp_path / "test.txt")
    runs = [{"name": "greedy", "run": str(tmp_path / "run"), "beam_size": 1, "one_by_one": True}]
    runs += [{"name": "beam", "run": str(tmp_path / "run"), "beam_size": 2}]
    peer = {"name": "peer", "quality": 50, "sentences_per_second": 0.001, "from": "its page"}
    content = {"source": test, "reference": test, "metric": "per", "runs": runs, "peers": [peer]}
    (tmp_path / "list.json").write_text(json.dumps(content))
    return tmp_path / "list.json"


@pytest.mark.long
def test_runs_are_measured_in_processes_and_written_down(listed, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(Path(pareto.__file__).parent.parent)
    main([str(listed), "--rounds", "2", "--work", str(tmp_path / "work")], tmp_path / "out")
    made = json.loads((tmp_path / "out" / "pareto-list.json").read_text())
    assert (made["metric"], made["sentences"]) == ("PER", 3)
    assert [one["name"] for one in made["points"]] == ["greedy", "beam", "peer"]
    ours = (one for one in made["points"] if one["ours"])
    assert all(one["slowest"] <= one["sentences_per_second"] <= one["fastest"] for one in ours)
    assert (tmp_path / "out" / "pareto-list.png").exists()
    assert capsys.readouterr().out == markdown(made) + "\n"
    assert markdown(made) in page.page(tmp_path / "out")


def test_a_word_may_equal_any_of_its_references(listed, tmp_path):
    (tmp_path / "words.tsv").write_text("a b c\tx\na b c\ty\nb a\tz\n")
    wanted = {**read_list(listed), "source": str(tmp_path / "words.tsv"), "metric": "word_error"}
    del wanted["reference"]
    found = pareto.measure(wanted, wanted["runs"][1])
    assert found["quality"] in (0.0, 50.0, 100.0)  # there are three lines, but only two words to score
    assert found["sentences_per_second"] > 0


@pytest.mark.long
def test_a_run_that_fails_says_why(listed, monkeypatch, tmp_path):
    monkeypatch.chdir(Path(pareto.__file__).parent.parent)
    wanted = read_list(listed)
    missing = {**wanted["runs"][0], "run": str(tmp_path / "nothing")}
    with pytest.raises(SystemExit, match=r"greedy: .*' does not exist"):
        pareto.measured({**wanted, "runs": [missing]}, 1)
    assert [one.source for one in peers(wanted)] == ["its page"]


@pytest.mark.slow
def test_models_are_trained_once(tmp_path, monkeypatch):
    monkeypatch.chdir(Path(pareto.__file__).parent.parent)
    models = {"a": ["recipes"], "b": ["--version"]}
    pareto.make(models, tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == {"a.finished", "b.finished"}
    pareto.make({**models, "a": ["no such command"]}, tmp_path)
    with pytest.raises(subprocess.CalledProcessError):
        pareto.make({"c": ["no such command"]}, tmp_path)


@pytest.mark.parametrize("path", sorted(pareto.LISTS.glob("*.json")), ids=lambda path: path.stem)
def test_the_committed_lists_can_be_read_and_their_models_trained(path):
    wanted = read_list(path, "DATA", "WORK")
    folders = {f"WORK/{name}" for name in wanted["models"]}
    runs = [one for run in wanted["runs"] for one in (run["run"], *run.get("ensemble", ()))]
    assert {Path(run).parts[1] for run in runs} <= {Path(folder).parts[1] for folder in folders}
    for arguments in wanted["models"].values():
        sets = [value for flag, value in pairwise(arguments) if flag == "--set"]
        config = arguments[arguments.index("--student") + 1] if "--student" in arguments else arguments[1]
        load(config, sets)
