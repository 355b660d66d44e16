"""Fine-tuning: the start from another run, replayed pairs, and settings that are refused."""

import json
import shutil
from dataclasses import replace

import pytest
import torch
from benchmarks.resume import difference_between_runs
from safetensors.torch import load_file, save_file

import word_by_word
from glassformer.bundle import Bundle
from glassformer.errors import ConfigError
from glassformer.jobs import train
from glassformer.recipes.toml import load
from glassformer.text.vocabulary import BOS_ID
from glassformer.training.reports import StepReport

pytestmark = pytest.mark.slow  # each test trains a model

BASE = """
[data]
source = "old.tsv"
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
steps = 60
batch_tokens = 400
learning_rate = 1e-2
warmup = 10
schedule = "constant"
checkpoint_every = 60
log_every = 1
"""
ADAPT = """
[data]
source = "new.tsv"
valid_lines = 13
[cleaning]
duplicates = "keep"
max_ratio = 0
[training]
steps = 8
batch_tokens = 100
learning_rate = 5e-3
warmup = 2
validate_every = 4
checkpoint_every = 4
log_every = 1
"""


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """Return a folder with a base run and two corpora."""
    folder = tmp_path_factory.mktemp("fine-tuning")
    (folder / "old.tsv").write_text(word_by_word.tsv(word_by_word.pairs(120, 1, 1, 7)))
    (folder / "new.tsv").write_text(word_by_word.tsv(word_by_word.pairs(80, 2, 1, 7)))
    sources = [source for source, _ in word_by_word.pairs(30, 1, 1, 7)]
    (folder / "alone.txt").write_text("".join(f"{source}\n" for source in sources))
    (folder / "base.toml").write_text(BASE)
    (folder / "adapt.toml").write_text(ADAPT)
    own = [f"run.directory={folder / 'base'}", f"run.seed={1 + word_by_word.SEED}"]
    train(load(folder / "base.toml", own, data=folder))
    return folder


@pytest.fixture
def make(trained, tmp_path):
    """Return a function that loads the configuration of a run that starts from the base run."""

    def make(name="run", *overrides):
        given = [f"run.directory={tmp_path / name}", f"training.start_from={trained / 'base'}", *overrides]
        return load(trained / "adapt.toml", given, data=trained)

    return make


def weights_of(folder, file="model.safetensors"):
    return load_file(folder / file)


def test_a_run_starts_with_the_weights_and_vocabulary_of_its_base(make, trained, tmp_path):
    train(make("run", "training.learning_rate=1e-30", "training.steps=1"))
    base, run = Bundle.load(trained / "base"), Bundle.load(tmp_path / "run")
    for side in ("source_tokenizer", "target_tokenizer"):
        own, before = getattr(run, side), getattr(base, side)
        assert own.tokens(range(len(own))) == before.tokens(range(len(before)))
    assert run.model_config == base.model_config
    before, after = weights_of(trained / "base"), weights_of(tmp_path / "run")
    assert all(torch.equal(before[name], after[name]) for name in before)


def test_a_run_knows_the_usual_spellings_of_its_base(make, trained, tmp_path):
    shutil.copytree(trained / "base", tmp_path / "base")
    (tmp_path / "base" / "spellings.txt").write_text("NASA\nBerlin\n")
    train(make("run", f"training.start_from={tmp_path / 'base'}", "training.steps=1"))
    assert Bundle.load(tmp_path / "run").spellings.read_text().splitlines()[-2:] == ["NASA", "Berlin"]


def test_dropout_may_differ_from_the_base(make, tmp_path):
    train(make("run", "model.dropout=0.25", "training.steps=1"))
    assert Bundle.load(tmp_path / "run").model_config.dropout == 0.25


@pytest.mark.parametrize(
    "overrides",
    [
        ["training.ema=0.9", "training.r_drop=1", "training.snapshots=3"],
        pytest.param([], marks=pytest.mark.long),
        pytest.param(["training.workers=2"], marks=pytest.mark.long),
    ],
    ids=["ema-r_drop-snapshots", "plain", "workers"],
)
def test_a_run_with_replay_resumes_bit_for_bit_even_without_its_base(trained, tmp_path, overrides):
    shutil.copytree(trained / "base", tmp_path / "base")

    def configuration(name):
        given = [f"training.start_from={tmp_path / 'base'}", "data.replay_source=alone.txt", *overrides]
        return load(trained / "adapt.toml", [f"run.directory={tmp_path / name}", *given], data=trained)

    train(configuration("whole"))
    seen = []
    train(
        configuration("broken"),
        on_report=lambda report: seen.append(report) if isinstance(report, StepReport) else None,
        stop=lambda: len(seen) >= 5,
    )
    assert len(seen) == 5
    shutil.rmtree(tmp_path / "base")
    train(configuration("broken"))
    assert difference_between_runs(tmp_path / "whole", tmp_path / "broken") is None


def test_without_a_target_the_base_translates_the_source_once(make, tmp_path):
    configuration = make("run", "data.replay_source=alone.txt", "training.steps=2")
    train(configuration)
    corpus = tmp_path / "run" / "prepared" / "replay" / "distilled" / "corpus" / "00000.jsonl"
    records = [json.loads(line) for line in corpus.read_text().splitlines()]
    assert len(records) == 30
    written = corpus.stat().st_mtime_ns
    train(make("run", "data.replay_source=alone.txt", "training.steps=4"))
    assert corpus.stat().st_mtime_ns == written


def test_another_base_is_refused_on_resume(make, trained, tmp_path):
    shutil.copytree(trained / "base", tmp_path / "base")
    start = f"training.start_from={tmp_path / 'base'}"
    train(make("run", start, "training.steps=1"))
    weights = weights_of(tmp_path / "base")
    save_file({name: weight + 1 for name, weight in weights.items()}, tmp_path / "base" / "model.safetensors")
    with pytest.raises(ConfigError, match="started from different weights than"):
        train(make("run", start))
    with pytest.raises(ConfigError, match=r"holds a run with training.start_from = "):
        train(make("run"))


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("tokenizer.kind=bpe", "tokenizer.kind: expected 'words' as in training.start_from, got 'bpe'; leave"),
        ("model.d_model=32", "model.d_model: expected 16 as in training.start_from, got 32; leave it out"),
        ("model.preset=small", "model.preset: expected no value with training.start_from"),
        ("training.init_std=0.02", "training.init_std: expected 0 with training.start_from"),
        ("embeddings.source=a.vec", "embeddings.source: expected no vectors with training.start_from"),
        ("training.start_from=nowhere", "training.start_from: 'nowhere' does not exist"),
        ("training.start_from=", "data.replay_source: expected no value without training.start_from"),
        ("data.replay_source=", "data.replay_target: |data.replay_source: expected the source of data.replay_target"),
    ],
)
def test_what_contradicts_the_start_is_refused(make, override, message):
    extra = ["data.replay_target=b.txt"] if override == "data.replay_source=" else []
    with pytest.raises(ConfigError, match=message.replace("[", r"\[")):
        train(make("run", "data.replay_source=alone.txt", override, *extra))


def test_the_runs_own_folder_and_a_run_without_weights_are_refused(make, trained, tmp_path):
    with pytest.raises(ConfigError, match=r"training.start_from: expected another run"):
        train(make("run", f"training.start_from={tmp_path / 'run'}"))
    shutil.copytree(trained / "base", tmp_path / "bare", ignore=shutil.ignore_patterns("*.safetensors"))
    with pytest.raises(ConfigError, match=r"training.start_from: .*model.safetensors"):
        train(make("run", f"training.start_from={tmp_path / 'bare'}"))


@pytest.mark.parametrize(
    "overrides",
    [["training.optimiser=adamw", "training.weight_decay=0.1", "training.ema=0.9"], ["training.optimiser=muon"]],
    ids=["adamw-ema", "muon"],
)
def test_a_bias_that_rules_out_bos_stays_and_does_not_enter_the_loss(trained, tmp_path, overrides):
    given = [f"run.directory={tmp_path / 'base'}", "training.steps=2"]
    base = load(trained / "base.toml", given, data=trained)
    train(replace(base, model={**base.model, "output_bias": True}))
    weights = weights_of(tmp_path / "base")
    weights["output.bias"][BOS_ID] = -1e9  # imported models have this bias
    save_file(weights, tmp_path / "base" / "model.safetensors")
    losses = []
    start = [f"run.directory={tmp_path / 'run'}", f"training.start_from={tmp_path / 'base'}", *overrides]
    train(
        load(trained / "adapt.toml", start, data=trained),
        on_report=lambda report: losses.append(report.loss) if isinstance(report, StepReport) else None,
    )
    assert max(losses) < 20
    assert weights_of(tmp_path / "run")["output.bias"][BOS_ID] == -1e9
