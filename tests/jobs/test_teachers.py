"""A student learns what its teachers expect at each token, on labelled and unlabelled pairs."""

import json
from dataclasses import replace

import numpy as np
import pytest
import torch

import glassformer as gf
import word_by_word
from glassformer.bundle import Bundle
from glassformer.corpus.batching import TEACHERS, stream
from glassformer.corpus.mixture import MixedExamples
from glassformer.errors import ConfigError
from glassformer.jobs import teachers as module
from glassformer.jobs.distillation import TeacherSearch, distil, prepare_student
from glassformer.jobs.preparation import prepare
from glassformer.jobs.teachers import expectations, with_teachers
from glassformer.jobs.verify_resume import difference_between_runs
from glassformer.recipes.toml import load
from glassformer.text.tokenizer import TokenizerConfig
from glassformer.text.vocabulary import PAD_ID
from glassformer.training.gradients import batch_loss
from glassformer.training.reports import StepReport

pytestmark = pytest.mark.slow

CONFIG = f"""
[data]
source = "train.tsv"
valid_source = "valid.tsv"
test_source = "test.tsv"
{word_by_word.MODEL}[training]
steps = 40
batch_tokens = 500
learning_rate = 5e-3
warmup = 10
validate_every = 20
[decoding]
beam_size = 2
"""
CPU = torch.device("cpu")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Return a folder with a corpus, a list of sources without labels, and two runs that may teach."""
    folder = tmp_path_factory.mktemp("teachers")
    for name, count, seed in (("train", 200, 1), ("valid", 13, 2), ("test", 11, 3)):
        pairs = dict(word_by_word.pairs(count, seed, shortest=4, longest=6))
        (folder / f"{name}.tsv").write_text(word_by_word.tsv(list(pairs.items())))
    (folder / "small.toml").write_text(CONFIG)
    for seed in (1, 2):
        gf.train(folder / "small.toml", data=folder, overrides=[f"run.directory={folder}/{seed}", f"run.seed={seed}"])
    new = [source for source, _ in word_by_word.pairs(150, 4, shortest=7, longest=9)]
    known = [(folder / f"{name}.tsv").read_text().split("\t")[0] for name in ("train", "valid", "test")]
    (folder / "new.txt").write_text("".join(f"{line}\n" for line in [*new, *known, f"  {known[1]} "]))
    return folder


@pytest.fixture
def student(folder, tmp_path):
    """Return a function that returns the configuration of a student."""

    def make(name, *overrides, source="new.txt"):
        runs, source = [folder / "1", folder / "2"], str(folder / source) if source else ""
        corpus = distil(runs, tmp_path / "distilled", level="token", source=source, data=folder)
        given = [f"run.directory={tmp_path / name}", "training.steps=12", "training.checkpoint_every=4", *overrides]
        return prepare_student(corpus, folder / "small.toml", given)

    return make


def dense(tokens, size):
    """Return the distributions of the rows of tokens."""
    shares = torch.from_numpy(tokens["share"].astype(np.float32))
    rest = (1 - shares.sum(-1, keepdim=True)) / size
    return rest.repeat(1, size).scatter_add(-1, torch.from_numpy(tokens["id"].astype(np.int64)), shares)


def test_lines_of_training_validation_and_test_are_left_out_of_the_list(folder, tmp_path):
    corpus = distil([folder / "1"], tmp_path / "d", level="token", source=str(folder / "new.txt"), data=folder)
    cut = corpus.untranslated.pop("max_length", 0)  # an output that does not end teaches nothing
    assert (corpus.lines, corpus.pairs + cut) == (154, 150)
    assert corpus.untranslated == {"labelled": 1, "valid": 2, "test": 1}
    records = [json.loads(line) for line in (tmp_path / "d" / "corpus" / "00000.jsonl").read_text().splitlines()]
    assert [record["status"] for record in records[150:]] == ["labelled", "valid", "test", "valid"]
    labelled = [json.loads(line) for line in (tmp_path / "d" / "labelled.jsonl").read_text().splitlines()]
    assert corpus.labelled == len(labelled)
    assert word_by_word.tsv([(pair["source"], pair["target"]) for pair in labelled]) == (
        (folder / "train.tsv").read_text()
    )


def test_validation_sources_are_left_out_at_sequence_level_too(folder, tmp_path):
    corpus = distil([folder / "1"], tmp_path / "d", source=str(folder / "new.txt"))
    assert (corpus.lines, corpus.untranslated["valid"], corpus.labelled) == (154, 2, 0)


def test_the_expectations_are_the_mean_of_the_teachers_distributions(folder, student, monkeypatch):
    monkeypatch.setattr(module, "PART", 64)
    prepared = prepare(student("s"))
    train = with_teachers(prepared, CPU).train
    models = [Bundle.load(folder / name).model() for name in ("1", "2")]
    size = models[0].config.target_vocab_size or models[0].config.vocab_size
    sides = zip(train.source[:100], train.target[:100], train.teachers[:100], strict=True)
    for source, target, tokens in sides:
        shifted = np.array([1, *target[:-1]])
        rows = [torch.from_numpy(ids.astype(np.int64))[None] for ids in (source, shifted)]
        with torch.no_grad():
            expected = torch.stack([model(*rows)[0].softmax(-1) for model in models]).mean(0)
        found = dense(tokens, size)
        assert tokens.dtype == TEACHERS
        top = torch.from_numpy(tokens["id"].astype(np.int64))
        torch.testing.assert_close(found.gather(1, top), expected.gather(1, top), rtol=2e-3, atol=1e-3)
        torch.testing.assert_close(found.sum(1), torch.ones(len(target)))


def test_epochs_mix_labelled_pairs_of_their_weight_with_unlabelled_ones(student):
    configuration = student("s", "training.teacher_weight=0.25", "data.unlabelled_share=0.5")
    train = with_teachers(prepare(configuration), CPU).train
    assert isinstance(train, MixedExamples)
    trusts, epoch = [], train.of_epoch(1, 0)
    for batch, after in stream(train, 300, seed=1):
        trusts += batch.trust.tolist()
        for place, row in enumerate(batch.rows.tolist()):
            length = int((batch.target_output[place] != PAD_ID).sum())
            assert np.array_equal(batch.teachers[place, :length], epoch.teachers[row])
            assert batch.trust[place] == (0.25 if row < len(train) else 1)
        shares = [batch.share(number, 3) for number in range(3)]
        assert np.array_equal(shares[1].teachers, batch.teachers[1::3])
        if after.epoch:
            break
    assert trusts.count(0.25) == trusts.count(1.0) == len(train)


def test_the_teacher_itself_has_nothing_more_to_learn(folder, tmp_path):
    """At full weight, the loss is the entropy of the teacher's distributions, and its gradient is zero."""
    corpus = distil([folder / "1"], tmp_path / "d", level="token", data=folder)
    assert (corpus.lines, corpus.pairs) == (0, 0)
    configuration = prepare_student(corpus, folder / "small.toml", ["training.teacher_weight=1"])
    train = with_teachers(prepare(configuration), CPU).train
    model = Bundle.load(folder / "1").model()
    batch, _ = next(stream(train, 500, seed=1))
    loss = batch_loss(model, batch, 0.1)
    loss.smoothed.backward()
    norm = torch.linalg.vector_norm(torch.cat([weight.grad.flatten() for weight in model.parameters()]))
    batch.trust[:] = 0
    model.zero_grad()
    batch_loss(model, batch, 0.1).smoothed.backward()
    labels = torch.linalg.vector_norm(torch.cat([weight.grad.flatten() for weight in model.parameters()]))
    assert norm < 0.02 * labels


@pytest.mark.parametrize("overrides", [[], ["training.workers=2"]], ids=["plain", "workers"])
def test_a_student_resumes_bit_for_bit(student, tmp_path, overrides):
    gf.train(student("whole", *overrides))
    seen = []
    gf.train(
        student("broken", *overrides),
        on_report=lambda report: seen.append(report) if isinstance(report, StepReport) else None,
        stop=lambda: len(seen) >= 5,
    )
    assert len(seen) == 5
    gf.train(student("broken", *overrides))
    assert difference_between_runs(tmp_path / "whole", tmp_path / "broken") is None


def test_only_missing_and_damaged_files_are_made_again(student, monkeypatch):
    monkeypatch.setattr(module, "PART", 40)
    prepared, asked = prepare(student("s")), []
    monkeypatch.setattr(module, "expectations", lambda *given: asked.append(len(given[1])) or expectations(*given))
    with_teachers(prepared, CPU)
    files = sorted(prepared.folder.rglob("teachers-*/*.npy"))
    before, count = {file: file.read_bytes() for file in files}, len(asked)
    assert count == len(files) == 9
    with_teachers(prepared, CPU)
    assert len(asked) == count
    files[1].unlink()
    files[2].write_bytes(files[2].read_bytes()[:-1])
    with_teachers(prepared, CPU)
    assert len(asked) == count + 2
    assert {file: file.read_bytes() for file in files} == before


def test_other_teachers_have_files_of_their_own(folder, student):
    prepared = prepare(student("s", source=""))
    configuration = prepared.configuration
    one = replace(configuration, training=replace(configuration.training, teachers=f"{folder}/1"))
    both, alone = (with_teachers(replace(prepared, configuration=given), CPU).train for given in (configuration, one))
    assert len(list(prepared.folder.glob("teachers-*"))) == 2
    assert not np.array_equal(both.teachers[0], alone.teachers[0])


def test_resampled_tokens_are_refused(student):
    prepared = prepare(student("s", source=""))
    sampling = TokenizerConfig(kind="bpe", vocab_size=100, sampling=0.1)
    with pytest.raises(ConfigError, match=r"tokenizer\.sampling: expected 0 with training\.teachers"):
        with_teachers(replace(prepared, configuration=replace(prepared.configuration, tokenizer=sampling)), CPU)


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        (["training.teachers="], "data.unlabelled_source: expected no value without training.teachers"),
        (["data.reverse_target=true"], "expected runs with data.reverse_target = true, as here"),
    ],
)
def test_settings_that_do_not_fit_teachers_are_refused(student, overrides, message):
    with pytest.raises(ConfigError, match=message):
        gf.train(student("s", *overrides))


def test_a_teacher_with_another_vocabulary_is_refused(folder, tmp_path):
    (tmp_path / "train.tsv").write_text("a\tb\nc\td\n" * 20)
    given = [f"run.directory={tmp_path / 'run'}", "data.valid_source=", "data.test_source=", "cleaning.duplicates=keep"]
    configuration = load(folder / "small.toml", [*given, f"training.teachers={folder}/1"], data=tmp_path)
    with pytest.raises(ConfigError, match="expected runs with the source vocabulary of this run, got"):
        gf.train(configuration)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"source": "new.txt", "target": "new.txt"}, "target has no effect at token level"),
        ({"source": "new.txt", "search": TeacherSearch(keep_reference=True)}, "keep_reference has no effect"),
        ({"search": TeacherSearch(n_best=2)}, "n_best has no effect at token level"),
    ],
)
def test_options_without_effect_at_token_level_are_refused(folder, tmp_path, options, message):
    with pytest.raises(ConfigError, match=message):
        distil([folder / "1"], tmp_path / "d", level="token", **options)


def test_a_folder_made_at_another_level_and_a_new_tokenizer_are_refused(folder, tmp_path):
    corpus = distil([folder / "1"], tmp_path / "d", level="token", data=folder)
    with pytest.raises(ConfigError, match="level = 'token', not 'sequence'"):
        distil([folder / "1"], tmp_path / "d", data=folder)
    with pytest.raises(ConfigError, match="new_tokenizer has no meaning at token level"):
        prepare_student(corpus, folder / "small.toml", new_tokenizer=True)
