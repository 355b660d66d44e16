"""Whole jobs: the files of a run, resuming without loss, and learning the copy task."""

import gzip
import json
import math
import shutil
from dataclasses import replace
from itertools import groupby

import pytest
import torch
from safetensors.torch import load_file

import glassformer as gf
import word_by_word
from glassformer.bundle import Bundle
from glassformer.corpus.tasks import TASKS, Example, Task, copy_task
from glassformer.errors import CheckpointError, ConfigError, DataError
from glassformer.evaluation.guards import GUARDS, Guards
from glassformer.evaluation.metrics import bleu, exact_match
from glassformer.jobs import (
    AlignmentReport,
    AverageReport,
    CalibrationReport,
    average,
    evaluate,
    evaluate_splits,
    train,
)
from glassformer.jobs.calibration import calibrate
from glassformer.jobs.evaluation import validation_items
from glassformer.jobs.preparation import prepare
from glassformer.jobs.run_reports import ExaminedReport, PreparedReport, ProgressReport
from glassformer.model.masks import padding_mask
from glassformer.recipes.toml import load
from glassformer.training.alignment_heads import choose_alignment
from glassformer.training.checkpoint import Checkpoints, average_weights
from glassformer.training.reports import CheckpointReport, StepReport, ValidationReport
from glassformer.translator import Translator

CONFIG = """
[data]
source = "train.tsv"
valid_lines = 13
[cleaning]
duplicates = "keep"
max_ratio = 0
[tokenizer]
kind = "words"
joint = false
[model]
d_model = 16
heads = 2
d_ff = 24
encoder_layers = 1
decoder_layers = 1
[training]
steps = 20
batch_tokens = 200
learning_rate = 5e-3
warmup = 5
validate_every = 8
checkpoint_every = 5
log_every = 1
"""
WHEN = ("seconds", "seconds_left", "tokens_per_second", "waited", "path")


@pytest.fixture
def corpus(tmp_path):
    """Write a corpus and a configuration; return their folder."""
    return written(tmp_path)


def written(folder):
    (folder / "train.tsv").write_text(word_by_word.tsv(made_up(200)))
    (folder / "small.toml").write_text(CONFIG)
    return folder


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """Return the summary of an uninterrupted run with the settings of small.toml; tests must not change its folder."""
    folder = written(tmp_path_factory.mktemp("whole"))
    return train(load(folder / "small.toml", [f"run.directory={folder / 'whole'}"], data=folder))


@pytest.fixture
def make_configuration(corpus):
    """Return a function that loads the configuration for a run, given the run's name and overrides."""

    def make(name="run", *overrides):
        return load(corpus / "small.toml", [f"run.directory={corpus / name}", *overrides], data=corpus)

    return make


def made_up(count, seed=1):
    return word_by_word.pairs(count, seed, 1, 7)


def metrics(folder):
    """Return the rows of metrics.jsonl without the fields that differ between runs: times, speed and path."""
    lines = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    return [{name: value for name, value in line.items() if name not in WHEN} for line in lines]


class AbandonedError(Exception):
    """Raised to leave a training run as if its process had been killed."""


def abandoned(configuration, when):
    """Train until `when(report)` is true, and abandon the run; return this report."""

    def watch(report):
        if when(report):
            seen.append(report)
            raise AbandonedError

    seen = []
    with pytest.raises(AbandonedError):
        train(configuration, on_report=watch)
    return seen[0]


def at_step(step):
    return lambda report: isinstance(report, StepReport) and report.step == step


def prepared_only(configuration):
    """Abandon a run before its first step; return its `PreparedReport`."""
    return abandoned(configuration, lambda report: isinstance(report, PreparedReport))


def reports_of(configuration):
    """Train to the end; return all reports except progress reports."""
    seen = []
    train(configuration, on_report=seen.append)
    return [report for report in seen if not isinstance(report, ProgressReport | ExaminedReport)]


def stop_at(step):
    """Return callbacks that stop a training run at this step."""
    seen = []
    return {"on_report": lambda report: seen.append(getattr(report, "step", 0)), "stop": lambda: seen[-1] >= step}


# The files of a run


def test_the_receiver_gets_all_reports_in_the_order_of_the_work(make_configuration):
    told = []
    train(make_configuration("run", "training.steps=1", "training.validate_every=0"), on_report=told.append)
    kinds = (type(report).__name__.removesuffix("Report") for report in told)
    assert [kind for kind, _ in groupby(kinds)] == [
        *("Progress", "Examined", "Progress", "Prepared", "Step"),
        *("Validation", "Checkpoint", "Progress", "Alignment", "End"),
    ]


@pytest.mark.slow
def test_a_run_has_configuration_tokenizers_weights_checkpoints_and_metrics(make_configuration, corpus):
    summary = train(make_configuration())
    assert {path.name for path in (corpus / "run").iterdir() if path.name != ".lock"} == {
        *("config.toml", "tokenizer", "model.safetensors", "alignment.json", "habits.json", "spellings.txt"),
        *("checkpoints", "metrics.jsonl", "prepared"),
    }
    assert [path.name for path in sorted((corpus / "run" / "checkpoints").iterdir())] == [
        f"step-{step:08d}" for step in (5, 10, 15, 20)
    ]
    assert (summary.folder, summary.steps, summary.reason) == (corpus / "run", 20, "steps")
    assert load(corpus / "run" / "config.toml").training == make_configuration().training
    assert Translator.load(corpus / "run").translate(["the cat"], beam_size=1)[0].tokens


@pytest.mark.slow
def test_updates_validations_and_the_end_are_logged_as_lines(make_configuration, corpus):
    summary = train(make_configuration())
    lines = metrics(corpus / "run")
    counts = {
        kind: [line["step"] for line in lines if line["type"] == kind] for kind in {line["type"] for line in lines}
    }
    assert counts == {
        "step": list(range(1, 21)),
        "validation": [8, 16, 20],
        "alignment": [20],
        "end": [20],
    }
    best = min(line["loss"] for line in lines if line["type"] == "validation")
    assert summary.valid_loss == best


@pytest.mark.slow
def test_the_heads_that_align_words_are_chosen_with_the_kept_weights(make_configuration, corpus):
    train(make_configuration())
    bundle = Bundle.load(corpus / "run")
    valid = prepare(make_configuration()).valid_pairs
    assert bundle.alignment == choose_alignment(bundle, bundle.model(), valid)
    explanation = Translator.load(corpus / "run").explain(valid[0][0])
    assert explanation.alignment == bundle.alignment
    train(make_configuration())  # a finished run does not choose its heads again
    assert [line["type"] for line in metrics(corpus / "run")].count("alignment") == 1


@pytest.fixture
def with_many_pairs(corpus, make_configuration):
    """Return a function that loads a configuration with enough validation pairs to calibrate guards."""
    (corpus / "valid.tsv").write_text(word_by_word.tsv(made_up(200, seed=2)))
    return lambda *overrides: make_configuration("run", "data.valid_source=valid.tsv", *overrides)


@pytest.mark.slow
def test_the_guards_are_calibrated_at_the_end_on_the_outputs_of_the_kept_weights(with_many_pairs, corpus):
    reports, folder = [], corpus / "run"
    train(with_many_pairs(), on_report=reports.append)
    [report] = [one for one in reports if isinstance(one, CalibrationReport)]
    made = report.guards
    assert made == Guards.load(folder)
    assert (made.outputs, report.texts) == (100, 174)  # as many texts as updates, which are 20, but at least 100
    items = validation_items(with_many_pairs(), prepare(with_many_pairs()).valid_pairs, most=made.outputs)
    assert calibrate(Translator.load(folder), items) == made
    guards = (folder / GUARDS).stat()
    assert len(reports_of(with_many_pairs())) == 2  # a finished run is not calibrated again
    assert (folder / GUARDS).stat() == guards
    (folder / GUARDS).unlink()
    train(with_many_pairs())  # a finished run without a calibration is calibrated
    assert (folder / GUARDS).exists()


@pytest.mark.slow
def test_a_stop_while_the_guards_are_calibrated_loses_nothing(with_many_pairs, corpus):
    calibrating, reports = [], []

    def watch(report):
        reports.append(report)
        calibrating.append(isinstance(report, ProgressReport) and report.stage.startswith("calibrating"))

    summary = train(with_many_pairs(), on_report=watch, stop=lambda: any(calibrating))
    assert (summary.steps, summary.reason) == (20, "steps")
    assert not [one for one in reports if isinstance(one, CalibrationReport)]
    assert not (corpus / "run" / GUARDS).exists()
    train(with_many_pairs())
    train(with_many_pairs(f"run.directory={corpus / 'whole'}"))
    assert (corpus / "run" / GUARDS).read_bytes() == (corpus / "whole" / GUARDS).read_bytes()


@pytest.mark.slow
def test_guards_are_removed_with_the_weights_that_they_belong_to(with_many_pairs, corpus):
    train(with_many_pairs())
    seen = []

    def watch(report):
        if isinstance(report, ValidationReport):
            seen.append((report.best, (corpus / "run" / GUARDS).exists()))

    train(with_many_pairs("training.steps=40"), on_report=watch)
    assert seen[0] == (True, False)
    assert (corpus / "run" / GUARDS).exists()


@pytest.mark.slow
def test_a_run_keeps_the_weights_of_its_best_validation(make_configuration, corpus):
    kept = []

    def watch(report):
        if type(report).__name__ == "ValidationReport":
            kept.append(load_file(corpus / "run" / "model.safetensors"))

    # with these settings, the first validation is the best, by 0.15
    overrides = ["training.learning_rate=0.1", "training.schedule=constant", "run.seed=4"]
    train(make_configuration("run", *overrides), on_report=watch)
    losses = [line["loss"] for line in metrics(corpus / "run") if line["type"] == "validation"]
    final = load_file(corpus / "run" / "model.safetensors")
    best = kept[losses.index(min(losses))]
    assert losses[-1] > min(losses)
    assert all(torch.equal(final[name], best[name]) for name in best)


def test_two_files_with_validation_files_are_a_corpus(make_configuration, corpus):
    sides = {"a": made_up(50), "v": made_up(7, seed=2)}
    for name, pairs in sides.items():
        (corpus / f"{name}.source").write_text("".join(f"{source}\n" for source, _ in pairs))
        with gzip.open(corpus / f"{name}.target.gz", "wt") as file:
            file.writelines(f"{target}\n" for _, target in pairs)
    files = {"source": "a.source", "target": "a.target.gz", "valid_source": "v.source", "valid_target": "v.target.gz"}
    overrides = [f"data.{field}={name}" for field, name in files.items()]
    prepared = prepared_only(make_configuration("run", *overrides))
    assert (prepared.train_pairs, prepared.valid_pairs, prepared.resumed_step) == (50, 7, 0)


def test_dropped_pairs_are_counted(make_configuration, corpus):
    with (corpus / "train.tsv").open("a") as file:
        file.write("\tle\nthe\t \n" + "cat " * 30 + "\tchat\n")
    prepared = prepared_only(make_configuration("run", "data.max_length=13"))
    assert prepared.dropped == {"blank": 2, "longer than data.max_length": 1}
    assert prepared.train_pairs + prepared.valid_pairs == 200


def test_held_out_pairs_are_not_trained_on(make_configuration, corpus):
    pairs = [(f"the cat {number}", f"le chat {number}") for number in range(200)]
    (corpus / "train.tsv").write_text(word_by_word.tsv(pairs))
    bundle_words = []
    for seed in (1, 1, 2):
        prepared = prepared_only(make_configuration(f"run{len(bundle_words)}", f"run.seed={seed}"))
        tokenizer = Bundle.load(prepared.folder).source_tokenizer
        bundle_words.append({text for text, _ in pairs if tokenizer.unk_id in tokenizer.encode(text)})
        assert (prepared.train_pairs, prepared.valid_pairs) == (187, 13)
        # each of the held-out numbers occurs in no other pair, so 13 words are unknown
        assert len(bundle_words[-1]) == 13
    assert bundle_words[0] == bundle_words[1] != bundle_words[2]


def test_at_most_a_tenth_of_the_pairs_is_held_out(make_configuration, corpus):
    prepared = prepared_only(make_configuration("run", "data.valid_lines=500"))
    assert prepared.train_pairs + prepared.valid_pairs == 200
    # all pairs of a source are held out or none, so there may be a few less than 20
    assert 15 <= prepared.valid_pairs <= 20


def test_all_targets_of_a_source_are_held_out_or_none(make_configuration, corpus):
    pairs = [(f"word {number // 3}", f"mot {number}") for number in range(300)]
    (corpus / "train.tsv").write_text(word_by_word.tsv(pairs))
    prepared = prepare(make_configuration("run", "data.valid_lines=20"))
    sources = {source for source, _ in prepared.valid_pairs}
    assert len(prepared.valid_pairs) == 3 * len(sources) == 18
    assert len(prepared.train) == 300 - 18


def test_each_checkpoint_is_the_best_without_validation(make_configuration, corpus):
    (corpus / "train.tsv").write_text("the cat\tle chat\n" * 7)
    summary = train(make_configuration())
    assert summary.valid_loss is None
    weights = load_file(corpus / "run" / "model.safetensors")
    last = load_file(corpus / "run" / "checkpoints" / "step-00000020" / "model.safetensors")
    assert all(torch.equal(weights[name], last[name]) for name in last)


@pytest.mark.slow
def test_a_path_and_a_configuration_object_train_the_same(make_configuration, corpus):
    gf.train(make_configuration("a"))
    gf.train(corpus / "small.toml", overrides=[f"run.directory={corpus / 'b'}"], data=corpus)
    first, second = ((corpus / name / "model.safetensors").read_bytes() for name in "ab")
    assert first == second


@pytest.mark.slow
def test_a_metric_of_the_validation_set_is_measured_and_can_decide(make_configuration, corpus):
    overrides = ["training.metric=per", "training.best_by=metric", "training.metric_lines=5"]
    summary = train(make_configuration("run", *overrides))
    measured = [line["metric"] for line in metrics(corpus / "run") if line["type"] == "validation"]
    assert [(name, higher) for name, _, higher in measured] == [("PER", False)] * 3
    assert summary.metric.value == min(value for _, value, _ in measured)


# Stopping and resuming


@pytest.mark.slow
@pytest.mark.parametrize("stops", [(3, 10), *(pytest.param((step,), marks=pytest.mark.long) for step in (7, 19))])
def test_a_resumed_run_equals_an_uninterrupted_run(make_configuration, corpus, whole, stops):
    for step in stops:
        assert train(make_configuration("parts"), **stop_at(step)).reason == "stopped"
    parts = train(make_configuration("parts"))
    for path in ("model.safetensors", "checkpoints/step-00000020/model.safetensors"):
        assert (corpus / "parts" / path).read_bytes() == (whole.folder / path).read_bytes()
    assert (parts.valid_loss, parts.steps) == (whole.valid_loss, whole.steps)
    assert metrics(corpus / "parts") == metrics(whole.folder)


@pytest.mark.slow
@pytest.mark.parametrize("step", [7, *(pytest.param(step, marks=pytest.mark.long) for step in (2, 18))])
def test_a_killed_run_resumes_from_its_last_checkpoint(make_configuration, corpus, whole, step):
    abandoned(make_configuration("parts"), at_step(step))
    with (corpus / "parts" / "metrics.jsonl").open("a") as file:
        file.write('{"type": "step", "st')  # as if the run had been killed while writing a line
    prepared, *_ = reports_of(make_configuration("parts"))
    assert prepared.resumed_step == step // 5 * 5
    assert metrics(corpus / "parts") == metrics(whole.folder)
    first, second = ((one / "model.safetensors").read_bytes() for one in (whole.folder, corpus / "parts"))
    assert first == second


@pytest.mark.slow
@pytest.mark.parametrize("begun", ["fp32", "bf16"])
def test_a_run_resumes_in_its_first_precision(make_configuration, corpus, begun):
    train(make_configuration("run", f"training.precision={begun}"), **stop_at(3))
    train(make_configuration("run", "training.precision=auto"))
    train(make_configuration("whole", f"training.precision={begun}"))
    assert load(corpus / "run" / "config.toml").training.precision == begun
    assert metrics(corpus / "run") == metrics(corpus / "whole")


@pytest.mark.slow
def test_a_finished_run_has_nothing_more_to_do(make_configuration, corpus):
    first = train(make_configuration())
    before = {path: path.read_bytes() for path in corpus.rglob("*") if path.is_file()}
    second = train(make_configuration())
    assert (second.valid_loss, second.metric, second.reason) == (first.valid_loss, first.metric, first.reason)
    changed = {path.name for path, content in before.items() if path.read_bytes() != content}
    assert changed <= {"metrics.jsonl"}
    assert [line["type"] for line in metrics(corpus / "run")].count("end") == 1


@pytest.mark.slow
def test_a_run_can_be_trained_for_longer_and_its_data_moved(make_configuration, corpus):
    train(make_configuration())
    (corpus / "moved").mkdir()
    (corpus / "train.tsv").rename(corpus / "moved" / "train.tsv")
    configuration = make_configuration("run", "training.steps=30", "training.optimiser=adamw")
    configuration = replace(configuration, data=replace(configuration.data, directory=str(corpus / "moved")))
    assert train(configuration).steps == 30
    assert [line["step"] for line in metrics(corpus / "run") if line["type"] == "step"] == list(range(1, 31))


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("model.d_ff=32", "holds a run with model.d_ff = 24, not 32: choose another run.directory, or delete"),
        ("model.norm=pre", "model.norm = 'post', not 'pre'"),
        ("tokenizer.vocab_size=9", "tokenizer.vocab_size = 8000, not 9"),
        ("data.valid_lines=7", "data.valid_lines = 13, not 7"),
        ("run.seed=2", "run.seed = 1, not 2"),
    ],
)
def test_a_different_configuration_in_the_same_folder_is_refused(make_configuration, corpus, override, message):
    prepared_only(make_configuration())
    before = {path: path.read_bytes() for path in corpus.rglob("*") if path.is_file()}
    with pytest.raises(ConfigError, match=message):
        train(make_configuration("run", override))
    assert {path: path.read_bytes() for path in corpus.rglob("*") if path.is_file()} == before


# Snapshots


def snapshots_of(folder):
    """Return the snapshots of a run: name and content."""
    return {path.name: path.read_bytes() for path in (folder / "snapshots").iterdir()}


@pytest.mark.slow
def test_a_snapshot_holds_the_weights_of_its_step(make_configuration, corpus):
    configuration = make_configuration("run", "training.snapshots=3", "training.checkpoint_every=8")
    train(configuration)
    assert set(snapshots_of(corpus / "run")) == {"step-00000008.safetensors", "step-00000016.safetensors"}
    for step in (8, 16):
        snapshot = load_file(corpus / "run" / "snapshots" / f"step-{step:08d}.safetensors")
        checkpoint = load_file(corpus / "run" / "checkpoints" / f"step-{step:08d}" / "model.safetensors")
        assert snapshot.keys() == checkpoint.keys()
        assert all(torch.equal(snapshot[name], checkpoint[name].half()) for name in checkpoint)


@pytest.mark.slow
def test_snapshots_change_nothing_else(make_configuration, corpus):
    for name, snapshots in (("without", 0), ("with", 2)):
        train(make_configuration(name, f"training.snapshots={snapshots}"))
    assert metrics(corpus / "with") == metrics(corpus / "without")
    first, second = ((corpus / name / "model.safetensors").read_bytes() for name in ("with", "without"))
    assert first == second


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kept", "step"),
    [(3, 12), *(pytest.param(1, step, marks=pytest.mark.long) for step in (7, 9, 12, 17))]
    + [pytest.param(3, step, marks=pytest.mark.long) for step in (7, 9, 17)],
)
def test_a_stopped_or_killed_run_has_the_snapshots_of_an_uninterrupted_run(make_configuration, corpus, step, kept):
    setting = f"training.snapshots={kept}"
    train(make_configuration("whole", setting))
    train(make_configuration("stopped", setting), **stop_at(step))
    abandoned(make_configuration("killed", setting), at_step(step))
    for name in ("stopped", "killed"):
        train(make_configuration(name, setting))
        assert snapshots_of(corpus / name) == snapshots_of(corpus / "whole")


@pytest.mark.slow
def test_a_run_resumed_from_an_earlier_step_drops_later_snapshots(make_configuration, corpus):
    abandoned(make_configuration("run", "training.snapshots=3", "training.checkpoint_every=12"), at_step(18))
    assert len(snapshots_of(corpus / "run")) == 2
    prepared_only(make_configuration("run", "training.snapshots=3"))
    assert set(snapshots_of(corpus / "run")) == {"step-00000008.safetensors"}


# Averages


@pytest.mark.slow
def test_the_mean_of_the_last_checkpoints_is_a_separate_model(make_configuration, corpus):
    train(make_configuration())
    before = (corpus / "run" / "model.safetensors").read_bytes()
    folder = average(corpus / "run", last=3)
    assert folder == corpus / "run" / "averaged-3"
    weights = load_file(folder / "model.safetensors")
    expected = average_weights(Checkpoints(corpus / "run" / "checkpoints", 3).paths()[-3:])
    assert all(torch.equal(weights[name], expected[name]) for name in expected)
    assert (corpus / "run" / "model.safetensors").read_bytes() == before
    assert Translator.load(average(corpus / "run", 2, corpus / "other")).translate(["the cat"], beam_size=1)


@pytest.mark.slow
@pytest.mark.parametrize("last", [0, 5, -1])
def test_a_mean_of_more_checkpoints_than_exist_is_refused(whole, corpus, last):
    with pytest.raises(ConfigError, match=rf"expected a number from 1 to 4 .*, got {last};"):
        average(whole.folder, last)
    with pytest.raises(CheckpointError, match="does not exist; give the folder of a run"):
        average(corpus / "elsewhere", 2)


@pytest.mark.slow
@pytest.mark.parametrize(("rate", "better"), [(0.2, True), (1e-4, False)])
def test_a_mean_replaces_the_best_weights_if_it_is_better(make_configuration, corpus, rate, better):
    overrides = ["training.average=4", f"training.learning_rate={rate}", "training.schedule=constant", "run.seed=4"]
    reports = []
    summary = train(make_configuration("run", *overrides), on_report=reports.append)
    [report] = [one for one in reports if isinstance(one, AverageReport)]
    best = min(line["loss"] for line in metrics(corpus / "run") if line["type"] == "validation")
    assert report.kept == (report.loss < best) == better
    assert summary.valid_loss == min(report.loss, best)
    weights = load_file(corpus / "run" / "model.safetensors")
    mean = average_weights(Checkpoints(corpus / "run" / "checkpoints", 4).paths())
    assert all(torch.equal(weights[name], mean[name]) for name in mean) == report.kept


@pytest.mark.slow
def test_a_mean_that_a_stop_prevented_is_made_on_resuming(make_configuration, corpus):
    configuration = make_configuration("run", "training.average=2")
    abandoned(configuration, lambda report: isinstance(report, CheckpointReport) and report.step == 20)
    _, averaged, aligned, end = reports_of(configuration)
    assert isinstance(averaged, AverageReport)
    assert isinstance(aligned, AlignmentReport)
    assert end.step == 20
    assert len(reports_of(configuration)) == 2


# Pretrained vectors


@pytest.fixture
def vectors(corpus):
    """Write vectors for two words of the source; return them."""
    rows = {"cat": torch.arange(16.0), "dog": -torch.arange(16.0) / 7}
    lines = (f"{word} {' '.join(str(number) for number in row.tolist())}\n" for word, row in rows.items())
    (corpus / "words.vec").write_text("2 16\n" + "".join(lines))
    return rows


def rows_of(folder, side, words):
    bundle = Bundle.load(folder)
    tokenizer = getattr(bundle, f"{side}_tokenizer")
    weight = getattr(bundle.model(), side).tokens.weight
    return {word: weight[tokenizer.encode(word)[0]].detach() for word in words}


def test_matrices_start_with_the_requested_width(make_configuration, corpus):
    """A step with the rate 10⁻⁹ leaves the initial weights."""
    few = ["training.steps=1", "training.learning_rate=1e-9", "training.warmup=1"]
    starts = {}
    for name, overrides in (("shape", []), ("narrow", ["training.init_std=0.02"])):
        train(make_configuration(name, *few, *overrides))
        starts[name] = load_file(corpus / name / "model.safetensors")
    for name, weight in starts["narrow"].items():
        if weight.dim() == 1:
            assert torch.allclose(weight, starts["shape"][name], rtol=0, atol=1e-6)
        else:
            # The standard deviation of n numbers has a relative error of 1/√(2n); the tolerance is four times that.
            assert weight.std() == pytest.approx(0.02, rel=4 / math.sqrt(2 * weight.numel()))
            assert starts["shape"][name].std() > 0.05


@pytest.mark.slow
@pytest.mark.parametrize("freeze", [True, False])
def test_vectors_are_loaded_and_frozen_on_request(make_configuration, corpus, vectors, freeze):
    overrides = [f"embeddings.source={corpus / 'words.vec'}", f"embeddings.freeze={str(freeze).lower()}"]
    train(make_configuration("run", *overrides))
    found = rows_of(corpus / "run", "source", vectors)
    same = {word: torch.allclose(found[word], vectors[word], rtol=0, atol=1e-6) for word in vectors}
    assert same == {"cat": freeze, "dog": freeze}
    assert all(torch.dist(found[word], vectors[word]) < 1 for word in vectors)


@pytest.mark.slow
@pytest.mark.parametrize("freeze", [pytest.param("true", marks=pytest.mark.long), "false"])
def test_a_resumed_run_does_not_need_its_vectors(make_configuration, corpus, vectors, freeze):
    overrides = [f"embeddings.source={corpus / 'words.vec'}", f"embeddings.freeze={freeze}"]
    train(make_configuration("whole", *overrides))
    abandoned(make_configuration("run", *overrides), at_step(11))
    (corpus / "words.vec").unlink()
    train(make_configuration("run", *overrides))
    assert (corpus / "run" / "model.safetensors").read_bytes() == (corpus / "whole" / "model.safetensors").read_bytes()


@pytest.mark.slow
@pytest.mark.parametrize("tied", ["true", "false"])
def test_source_vectors_serve_both_sides_of_a_joint_vocabulary(make_configuration, corpus, vectors, tied):
    overrides = [f"embeddings.source={corpus / 'words.vec'}", "embeddings.freeze=true", "tokenizer.joint=true"]
    train(make_configuration("run", *overrides, f"model.tie_embeddings={tied}"))
    for side in ("source", "target"):
        found = rows_of(corpus / "run", side, vectors)
        assert all(torch.equal(found[word], vectors[word].float()) for word in vectors)


def test_vectors_of_a_different_width_are_refused_before_the_run_exists(make_configuration, corpus, vectors):
    overrides = [f"embeddings.target={corpus / 'words.vec'}", "model.d_model=18"]
    with pytest.raises(
        ConfigError, match=r"embeddings\.target: expected vectors of width model\.d_model = 18, got width 16"
    ):
        train(make_configuration("run", *overrides))
    assert not (corpus / "run" / "config.toml").exists()


# Mistakes


def test_a_run_needs_a_folder(make_configuration):
    configuration = make_configuration()
    with pytest.raises(ConfigError, match=r"run\.directory: expected a folder, got nothing"):
        train(replace(configuration, run=replace(configuration.run, directory="")))


def test_overrides_do_not_apply_to_an_object(make_configuration):
    for options in ({"overrides": ["training.steps=3"]}, {"data": "folder"}):
        with pytest.raises(ConfigError, match="need a configuration file or a recipe: with a Configuration"):
            train(make_configuration(), **options)


def test_an_unknown_task_is_named(make_configuration):
    configuration = make_configuration()
    data = replace(configuration.data, source="", directory="", task="cpoy")
    with pytest.raises(ConfigError, match=r"data\.task: expected one of copy, english-french, got 'cpoy'"):
        train(replace(configuration, data=data))


@pytest.mark.parametrize("setting", ["average = 2", "patience = 3"])
@pytest.mark.parametrize(
    ("pairs", "reason"),
    [
        ([f"the cat {number}\tle chat" for number in range(9)], "the corpus is too small to hold out pairs: 9 of at"),
        ([f"the cat\tle chat {number}" for number in range(11)], "none are held out, because all pairs with the same"),
    ],
)
def test_settings_that_need_validation_pairs_are_refused_without_them(
    make_configuration, corpus, setting, pairs, reason
):
    (corpus / "train.tsv").write_text("\n".join(pairs))
    with pytest.raises(ConfigError, match=rf"training\.{setting} needs validation pairs, but {reason}.*; give"):
        train(make_configuration("run", f"training.{setting}"))
    assert not (corpus / "run" / "config.toml").exists()


@pytest.mark.parametrize(
    ("lines", "reason"),
    [("the cat\t\n\tle chat\n", "2 blank"), ("", "no pairs")],
)
def test_validation_files_of_which_no_pair_is_left_are_named_before_training(make_configuration, corpus, lines, reason):
    (corpus / "valid.tsv").write_text(lines)
    configuration = make_configuration("run", f"data.valid_source={corpus / 'valid.tsv'}")
    with pytest.raises(DataError, match=rf"valid\.tsv: expected validation pairs, got {reason}; correct the files, or"):
        train(configuration)
    assert not (corpus / "run" / "config.toml").exists()
    (corpus / "valid.tsv").write_text("the cat\tle chat\n")
    assert len(prepare(configuration).valid) == 1


def test_validation_pairs_that_are_all_too_long_are_named_before_training(make_configuration, corpus):
    (corpus / "valid.tsv").write_text("the cat " * 50 + "\tle chat\n")
    settings = [f"data.valid_source={corpus / 'valid.tsv'}", "data.max_length=40"]
    message = r"data\.max_length: .* keeps validation pairs, got 40, but each of them is longer; delete .*prepared, and"
    with pytest.raises(ConfigError, match=message):
        train(make_configuration("run", *settings))
    assert not (corpus / "run" / "config.toml").exists()
    shutil.rmtree(corpus / "run" / "prepared")
    assert len(prepare(make_configuration("run", settings[0], "data.max_length=200")).valid) == 1


def test_a_corpus_of_too_long_pairs_is_an_error(make_configuration, corpus):
    (corpus / "train.tsv").write_text("the big cat\tle grand chat\n" * 9)
    with pytest.raises(
        ConfigError, match=r"expected a maximum that keeps training pairs, got 3, but each of them is long"
    ):
        train(make_configuration("run", "data.max_length=3"))


# Evaluation


@pytest.mark.slow
def test_evaluation_scores_what_it_translates(make_configuration, corpus):
    train(make_configuration())
    translator = Translator.load(corpus / "run")
    sources, references = zip(*made_up(11, seed=3), strict=True)
    scores, translations = evaluate(translator, sources, references, ["bleu", "exact"], beam_size=2)
    assert translations == translator.translate(sources, beam_size=2)
    texts = [one.text for one in translations]
    assert scores == [bleu(texts, references), exact_match(texts, references)]


@pytest.fixture
def copier(make_configuration, monkeypatch):
    """Return the translator of a run on the copy task that has learned nothing in three steps."""
    monkeypatch.setitem(TASKS, "copy", lambda seed: copy_task(seed, train=50, valid=5, test=7, length=3))
    configuration = make_configuration("copier", "training.steps=3", "tokenizer.joint=true")
    configuration = replace(configuration, data=replace(configuration.data, source="", directory="", task="copy"))
    return Translator.load(train(configuration).folder)


def test_every_split_except_training_is_evaluated(copier):
    results = {result.name: result for result in evaluate_splits(copier, beam_size=1)}
    assert {name: result.sentences for name, result in results.items()} == {"valid": 5, "test": 7}
    for result in results.values():
        assert (result.exact, result.pairs) == (0.0, {})
        assert 0 <= result.bleu < 20


def test_both_members_of_a_minimal_pair_must_be_right(copier, monkeypatch):
    texts = ["1 2 3", "4 5 6", "7 8 9", "3 2 1", "6 5 4", "9 8 7"]
    right = [one.text for one in copier.translate(texts)]
    kinds = [("word", 1), ("word", 1), ("word", 2), ("word", 2), ("gender", 3), ("gender", 3)]
    targets = [right[0], right[1], right[2], "wrong", right[4], right[5]]
    examples = [
        Example(source=source, target=target, kind=kind, pair=pair)
        for source, target, (kind, pair) in zip(texts, targets, kinds, strict=True)
    ]
    monkeypatch.setitem(TASKS, "copy", lambda seed: Task(splits={"train": [], "pairs": examples}))
    [result] = evaluate_splits(copier)
    assert result.pairs == {"word": (50.0, 2), "gender": (100.0, 1)}
    assert result.exact == pytest.approx(100 * 5 / 6)


def test_a_run_on_a_users_corpus_has_no_splits(make_configuration, corpus):
    train(make_configuration("run", "training.steps=1"))
    with pytest.raises(ConfigError, match="not on a built-in task: give a test set as SRC and REF"):
        list(evaluate_splits(Translator.load(corpus / "run")))


# The copy task


def exact_on_the_test_split(folder):
    train("copy", overrides=[f"run.directory={folder}"])
    [result] = [one for one in evaluate_splits(Translator.load(folder), beam_size=1) if one.name == "test"]
    return result.exact


@pytest.mark.long
def test_the_copy_task_is_learned(tmp_path):
    assert exact_on_the_test_split(tmp_path / "run") >= 99.5


@pytest.mark.long
def test_a_decoder_that_sees_the_future_does_not_learn_the_copy_task(tmp_path, monkeypatch):
    def sees_the_future(ids, pad_id):
        return padding_mask(ids, pad_id).expand(-1, -1, ids.shape[1], -1)

    monkeypatch.setattr("glassformer.model.transformer.target_mask", sees_the_future)
    assert exact_on_the_test_split(tmp_path / "run") < 5
    losses = [line["loss"] for line in metrics(tmp_path / "run") if line["type"] == "validation"]
    assert losses[-1] < 0.2  # a misleading loss: the model copied each token from the future input


@pytest.mark.slow
def test_a_change_applies_to_training_and_validation_of_its_model_only(make_configuration):
    """The change sets all scores to 0, so no gradient reaches the queries, and their weights stay initial."""
    seen = []

    def change(model):
        seen.append(model)
        return gf.intervene(model, {"*.scores": torch.zeros_like})

    train(make_configuration("plain"))
    # despite two workers, only one process trains, because the change would not reach a second process
    train(make_configuration("changed", "training.workers=2"), change=change)
    model, _ = seen  # the second model has the best weights, and is loaded to compare its heads
    torch.manual_seed(make_configuration().run.seed)
    drawn = gf.Transformer(model.config).state_dict()
    for name in ("encoder.layers.0.self_attention", "decoder.layers.0.cross_attention"):
        rows = slice(model.config.heads * model.config.d_k)  # the rows of W_Q come first
        weight = f"{name}.input_projection.weight"
        plain, changed = (
            Translator.load(make_configuration(run).run.directory).model.state_dict()[weight][rows]
            for run in ("plain", "changed")
        )
        assert torch.equal(changed, drawn[weight][rows])
        assert not torch.equal(plain, drawn[weight][rows])
    with gf.record(model.eval(), "*.scores") as trace:
        model(torch.tensor([[4, 5, 2]]), torch.tensor([[1, 4]]))
    assert all(bool(scores.any()) for scores in trace.values())


@pytest.mark.slow
def test_the_mean_and_the_best_weights_are_compared_under_the_same_change(make_configuration):
    changed = []

    def change(model):
        changed.append(model)
        return gf.intervene(model, {"*.scores": torch.zeros_like})

    train(make_configuration("run", "training.average=2"), change=change)
    # The four models: the trained model, the best model so far, the mean, and the model whose heads are compared.
    assert len({id(model) for model in changed}) == 4
