"""The Pareto curve of trained runs."""

import json
from pathlib import Path

import pytest
from benchmarks.pareto import Point, front, main, peers, plot, read_list, table

from benchmarks import pareto
from glassformer.bundle import Bundle
from glassformer.model.transformer import Transformer
from glassformer.recipes.toml import from_dict, model_config
from glassformer.text.tokenizer import TokenizerConfig, train_tokenizers


def point(name: str, quality: float, speed: float, *, ours: bool = True) -> Point:
    return Point(
        name=name, quality=quality, sentences_per_second=speed, slowest=speed, fastest=speed, ours=ours, source="page 1"
    )


POINTS = [point("slow", 40, 10), point("beaten", 39, 9), point("fast", 30, 90, ours=False), point("equal", 40, 10)]


def test_the_front_is_what_nobody_beats():
    assert [one.name for one in front(POINTS, higher_is_better=True)] == ["fast", "slow"]
    assert [one.name for one in front(POINTS, higher_is_better=False)] == ["fast"]
    between = [*POINTS, point("between", 35, 50)]
    assert [one.name for one in front(between, higher_is_better=True)] == ["fast", "between", "slow"]


def test_the_table_is_by_speed_with_the_front_in_bold():
    lines = table(POINTS, front(POINTS, higher_is_better=True), "BLEU").splitlines()
    assert lines[2] == "| **fast** | 30.00 | 90 | page 1 |"
    assert lines[3] == "| **slow** | 40.00 | 10 | 10–10 |"
    assert [line.split("|")[1].strip() for line in lines[4:]] == ["equal", "beaten"]


def test_the_plot_names_every_point(tmp_path):
    plot(POINTS, front(POINTS, higher_is_better=True), "BLEU", tmp_path / "p.svg")
    text = (tmp_path / "p.svg").read_text()
    assert all(f"<!-- {one.name} -->" in text for one in POINTS)


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
    """Return a list of two ways to decode one untrained model, and a peer."""
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


@pytest.mark.slow
def test_runs_are_measured_in_processes_and_written_down(listed, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(Path(pareto.__file__).parent.parent)
    main([str(listed), "--output", str(tmp_path / "out"), "--rounds", "2"])
    made = json.loads((tmp_path / "out" / "pareto.json").read_text())
    assert made["metric"] == "PER"
    assert [one["name"] for one in made["points"]] == ["greedy", "beam", "peer"]
    assert all(one["slowest"] <= one["sentences_per_second"] <= one["fastest"] for one in made["points"])
    assert (tmp_path / "out" / "pareto.svg").exists()
    assert capsys.readouterr().out == (tmp_path / "out" / "pareto.md").read_text()


def test_a_run_that_fails_says_why(listed, monkeypatch, tmp_path):
    monkeypatch.chdir(Path(pareto.__file__).parent.parent)
    wanted = read_list(listed)
    with pytest.raises(SystemExit, match=r"greedy: .*no run in"):
        pareto._in_a_process(wanted, {**wanted["runs"][0], "run": str(tmp_path / "nothing")})
    assert [one.source for one in peers(wanted)] == ["its page"]
