"""`glassformer estimate`."""

import json

import pytest

from glassformer.cli.measure.estimate import clock


@pytest.mark.long
def test_the_estimate_is_a_table_and_leaves_no_run(glassformer, corpus):
    result = glassformer("estimate", "small.toml", "--seconds", 0.1)
    assert result.status == 0
    names = ["corpus", "model", "a step", "speed", "an epoch", "validation", "in all", "memory", "batch"]
    lines = [line for line in result.out.splitlines() if not line.startswith(("warning", " "))]
    assert [line[:11].strip() for line in lines] == names
    assert "187 pairs" in result.out  # 13 of 200 pairs are held out
    assert sorted(path.name for path in corpus.iterdir()) == ["small.toml", "train.tsv"]


@pytest.mark.long
def test_the_estimate_as_json_has_every_figure(glassformer, corpus):
    made = json.loads(glassformer("estimate", "small.toml", "--seconds", 0.1, "--json").out)
    assert (made["pairs"], made["valid_pairs"], made["steps"]) == (187, 13, 60)
    assert made["training_bytes"] > made["base_bytes"] > 0
    assert {one["batch_tokens"] for one in made["measurements"]} <= {125, 250, 500}


def test_the_estimate_needs_a_configuration(glassformer):
    assert "CONFIG: expected a TOML file or the name of a recipe, got nothing" in glassformer("estimate").err


def test_a_missing_corpus_folder_is_an_error(glassformer, corpus):
    result = glassformer("estimate", "small.toml", "--data", corpus / "nowhere")
    assert result.status == 1
    assert "does not exist" in result.err


def test_the_presets_are_listed(glassformer):
    rows = dict(line.split() for line in glassformer("estimate", "--presets").out.splitlines()[1:])
    assert rows["base"] == "63.1"
    assert rows["big"] == "214.2"
    assert "table3-B-dk16" in rows


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.0042, "4 ms"),
        (1.25, "1.2 s"),
        (59.0, "59 s"),
        (600.0, "10.0 minutes"),
        (9000.0, "2.5 hours"),
        (1e6, "11.6 days"),
    ],
)
def test_times_are_printed_in_a_suitable_unit(seconds, text):
    assert clock(seconds) == text
