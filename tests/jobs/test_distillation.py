"""A distilled corpus has a record for each line, is made only once, and contains the teacher's outputs."""

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from sacrebleu.metrics import BLEU

import glassformer as gf
import word_by_word
from glassformer.bundle import WEIGHTS, Bundle
from glassformer.errors import CheckpointError, ConfigError
from glassformer.jobs import distillation as module
from glassformer.jobs.bulk import BULK, BulkJob, bulk, finish_bulk
from glassformer.jobs.distillation import distil
from glassformer.jobs.preparation import prepare, read_texts
from glassformer.jobs.prepared.folder import read_valid_pairs
from glassformer.jobs.run_reports import ProgressReport
from glassformer.jobs.student import prepare_student
from glassformer.jobs.student_corpus import DISTILLATION, TeacherSearch
from glassformer.jobs.teacher import nearest_first, teachable
from glassformer.recipes.toml import load
from glassformer.translating.combination import Combination, CombinationWeights

CONFIG = f"""
[data]
source = "train.en"
target = "train.fr"
test_source = "test.en"
test_target = "test.fr"
valid_lines = 13
[cleaning]
duplicates = "keep"
max_ratio = 0
{word_by_word.MODEL}[training]
steps = 160
batch_tokens = 500
learning_rate = 5e-3
warmup = 10
validate_every = 40
[decoding]
beam_size = 3
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    """Return a folder with a corpus, its configuration, and a run trained on it."""
    folder = tmp_path_factory.mktemp("teacher")
    word_by_word.write_sides(folder, "train", word_by_word.pairs(200, 1))
    word_by_word.write_sides(folder, "test", word_by_word.pairs(11, 2))
    (folder / "small.toml").write_text(CONFIG)
    gf.train(folder / "small.toml", data=folder, overrides=[f"run.directory={folder / 'run'}"])
    return folder


@pytest.fixture
def small_parts(monkeypatch) -> None:
    monkeypatch.setattr(module, "PART_LINES", 50)


@pytest.fixture
def files(tmp_path) -> Path:
    """Return a folder with files of lines of all kinds, and their references."""
    lines = [b"the cat sees a dog", b"", b"a big dog \xff", b"the " * 2000, b"the big cat", b"a cat"]
    (tmp_path / "new.en").write_bytes(b"".join(line + b"\n" for line in lines))
    (tmp_path / "new.fr").write_text("le chat voit un chien\n\nun\nle\n\nun chien\n")
    return tmp_path


def without(settings: dict, *names: str) -> dict:
    return {name: value for name, value in settings.items() if name not in names}


def records(corpus) -> list[dict]:
    paths = sorted((corpus.folder / "corpus").iterdir())
    return [json.loads(line) for path in paths for line in path.read_text().splitlines()]


@pytest.mark.slow
def test_each_training_line_gets_the_teachers_translation(folder, tmp_path, small_parts):
    corpus = distil([folder / "run"], tmp_path / "d")
    configuration = Bundle.load(folder / "run").configuration
    held_out = read_valid_pairs(prepare(configuration).folder)
    lines = 200 - len(held_out)
    assert (corpus.lines, corpus.pairs, corpus.made) == (lines, lines, lines)
    assert [record["line"] for record in records(corpus)] == list(range(1, lines + 1))
    assert [path.name for path in sorted((tmp_path / "d" / "corpus").iterdir())] == [f"0000{n}.jsonl" for n in range(4)]
    sources = [record["source"] for record in records(corpus)]
    translations = gf.Translator.load(folder / "run", engine="auto").translate(sources)
    assert [record["target"] for record in records(corpus)] == [one.text for one in translations]
    all_sources = sorted((folder / "train.en").read_text().splitlines())
    assert sorted([*sources, *(source for source, _ in held_out)]) == all_sources
    assert (tmp_path / "d" / "valid.target").read_text().splitlines() == [target for _, target in held_out]
    assert (tmp_path / "d" / "test.source").read_text() == (folder / "test.en").read_text()


@pytest.mark.slow
def test_the_translations_of_bulk_give_the_same_corpus(folder, tmp_path, files, small_parts, monkeypatch):
    source, target, run = str(files / "new.en"), str(files / "new.fr"), folder / "run"
    expected = distil([run], tmp_path / "alone", source=source, target=target, settings={"beam_size": 2})
    job = BulkJob.of([run], [source], str(tmp_path / "bulk"), settings={"beam_size": 2}, part_bytes=20)
    bulk(job)
    stored = tmp_path / "bulk" / BULK
    # as the file was written before this field existed
    stored.write_text(json.dumps(without(json.loads(stored.read_text()), "max_source")))
    given = {"source": source, "translations": str(tmp_path / "bulk")}
    with pytest.raises(
        CheckpointError, match=r"bulk has no manifest\.json: run `glassformer bulk` with --finish first"
    ):
        distil([run], tmp_path / "d", **given)
    finish_bulk(job)
    monkeypatch.setattr(gf.Translator, "load", None)  # nothing is translated
    corpus = distil([run], tmp_path / "d", target=target, **given)
    assert records(corpus) == records(expected)
    assert (tmp_path / "d" / DISTILLATION).read_bytes() == (tmp_path / "alone" / DISTILLATION).read_bytes()
    for changed, message in [
        ({"source": ""}, "expected `source`"),
        ({"search": TeacherSearch(n_best=2)}, "n_best has no effect with translations"),
        ({"settings": {"beam_size": 3}}, "beam_size has no effect with translations"),
        ({"source": target}, "holds translations of different files"),
    ]:
        with pytest.raises(ConfigError, match=message):
            distil([run], tmp_path / "e", **(given | changed))
    with pytest.raises(ConfigError, match="holds translations by different models"):
        distil([run, run], tmp_path / "e", **given)


@pytest.mark.slow
def test_a_second_call_translates_only_missing_lines(folder, tmp_path, small_parts):
    first = distil([folder / "run"], tmp_path / "d")
    before = records(first)
    parts = sorted((tmp_path / "d" / "corpus").iterdir())
    parts[1].unlink()
    parts[2].write_bytes(parts[2].read_bytes()[:-30])  # damages the file
    reports: list = []
    again = distil([folder / "run"], tmp_path / "d", on_progress=reports.append)
    assert (again.made, again.pairs) == (100, first.pairs)
    assert records(again) == before
    done = [report for report in reports if isinstance(report, ProgressReport) and report.unit == "sentences"]
    assert [(report.done, report.total) for report in done] == [(87, 187), (137, 187), (187, 187)]
    assert done[1].seconds_left > 0
    assert distil([folder / "run"], tmp_path / "d").made == 0


@pytest.mark.slow
def test_nothing_is_loaded_when_nothing_is_missing(folder, tmp_path, monkeypatch):
    distil([folder / "run"], tmp_path / "d")
    monkeypatch.setattr(gf.Translator, "load", None)
    assert distil([folder / "run"], tmp_path / "d").made == 0


@pytest.mark.slow
def test_the_folder_of_a_run_is_refused(folder, tmp_path):
    before = sorted(folder.rglob("*"))
    with pytest.raises(ConfigError, match="is a run: choose a different folder for the distilled corpus"):
        distil([folder / "run"], folder / "run")
    assert sorted(folder.rglob("*")) == before


@pytest.mark.slow
def test_a_students_run_may_share_the_folder_of_its_corpus(folder, tmp_path):
    distil([folder / "run"], tmp_path / "d")
    (tmp_path / "d" / WEIGHTS).touch()
    assert distil([folder / "run"], tmp_path / "d").made == 0


@pytest.mark.slow
def test_a_folder_made_with_different_settings_is_refused(folder, tmp_path, files):
    distil([folder / "run"], tmp_path / "d")
    with pytest.raises(ConfigError, match="distilled with beam_size = 3, not 2"):
        distil([folder / "run"], tmp_path / "d", settings={"beam_size": 2})
    with pytest.raises(ConfigError, match="distilled with different files: choose another folder"):
        distil([folder / "run"], tmp_path / "d", source=str(files / "new.en"))


@pytest.mark.slow
def test_a_folder_made_before_a_setting_existed_was_made_with_its_default(folder, tmp_path):
    distil([folder / "run"], tmp_path / "d")
    path = tmp_path / "d" / DISTILLATION
    path.write_text(json.dumps(without(json.loads(path.read_text()), "max_source", "keep_reference")))
    assert distil([folder / "run"], tmp_path / "d").made == 0
    with pytest.raises(ConfigError, match="distilled with max_source = 1024, not 7"):
        distil([folder / "run"], tmp_path / "d", settings={"max_source": 7})


@pytest.mark.slow
def test_every_line_of_given_files_has_a_record_with_its_reason(folder, tmp_path, files):
    corpus = distil([folder / "run"], tmp_path / "d", source=str(files / "new.en"))
    found = records(corpus)
    assert [record["line"] for record in found] == [1, 2, 3, 4, 5, 6]
    assert [record["status"] for record in found] == ["ok", "blank", "undecodable", "too_long", "ok", "ok"]
    assert [bool(record["target"]) for record in found] == [record["status"] == "ok" for record in found]
    assert (corpus.lines, corpus.pairs) == (6, 3)
    assert corpus.untranslated == {"blank": 1, "undecodable": 1, "too_long": 1}
    # the teacher's validation pairs, which the student is not trained on
    assert (tmp_path / "d" / "valid.source").exists()


@pytest.mark.slow
def test_a_truncated_translation_is_not_taught(folder):
    from glassformer.translating.translation import Translation

    cut = Translation(text="le le le", status="max_length")
    whole = Translation(text="le", alternatives=(cut, Translation(text="le"), Translation(text="un")))
    assert teachable(whole) == ["le", "un"]
    assert teachable(cut) == []


@pytest.mark.slow
def test_several_translations_and_the_reference_may_be_kept(folder, tmp_path, files):
    search = TeacherSearch(n_best=2, keep_reference=True)
    corpus = distil([folder / "run"], tmp_path / "d", search=search, source=f"{files}/new.en", target=f"{files}/new.fr")
    first = [record for record in records(corpus) if record["line"] == 1]
    assert len({record["target"] for record in first}) == len(first) in (2, 3)
    assert first[-1]["target"] == "le chat voit un chien"
    assert first[-1]["status"] == "reference"
    assert [record["status"] for record in records(corpus) if record["line"] == 2] == ["blank"]
    assert corpus.untranslated == {"blank": 1, "undecodable": 1, "too_long": 1}


@pytest.mark.slow
def test_several_samples_may_be_drawn_instead(folder, tmp_path, files):
    search, source = TeacherSearch(n_best=5, sample=True), f"{files}/new.en"
    corpus = distil([folder / "run"], tmp_path / "d", search=search, source=source, settings={"temperature": 2.0})
    translator = gf.Translator.load(folder / "run")
    texts = ["the cat sees a dog", "", "", "", "the big cat", "a cat"]  # samples depend on the positions of the texts
    draws = [translator.translate(texts, sample=True, temperature=2.0, seed=seed) for seed in range(1, 6)]
    for line in (1, 5, 6):
        drawn = [one[line - 1].text for one in draws if one[line - 1].status == "ok"]
        found = [record["target"] for record in records(corpus) if record["line"] == line]
        assert found == list(dict.fromkeys(text for text in drawn if text.strip()))
    assert max(sum(record["line"] == line for record in records(corpus)) for line in (1, 5, 6)) > 1
    for changed in ({"settings": {"temperature": 1.5}}, {"search": TeacherSearch()}):
        with pytest.raises(ConfigError, match="was distilled with"):
            distil([folder / "run"], tmp_path / "d", **{"search": search, "source": source, **changed})


@pytest.mark.slow
@pytest.mark.parametrize("metric", ["bleu", "per"])
def test_the_hypothesis_nearest_to_the_reference_is_kept(folder, tmp_path, files, metric):
    search = TeacherSearch(best_of_reference=metric)
    corpus = distil([folder / "run"], tmp_path / "d", search=search, source=f"{files}/new.en", target=f"{files}/new.fr")
    by_line = {record["line"]: record["target"] for record in records(corpus)}
    translator = gf.Translator.load(folder / "run", engine="auto")
    [best] = translator.translate(["a cat"], n_best=3)
    beam = [best.text, *(one.text for one in best.alternatives)]
    if metric == "per":
        scores = [sum(a != b for a, b in zip(text.split(), ["un", "chien"], strict=False)) for text in beam]
    else:
        scores = [-BLEU(effective_order=True).sentence_score(text, ["un chien"]).score for text in beam]
    lengths_equal = all(len(text.split()) == 2 for text in beam)
    if metric == "bleu" or lengths_equal:
        assert by_line[6] == beam[scores.index(min(scores))]
    [plain] = translator.translate(["the big cat"])
    assert by_line[5] == plain.text  # the reference is blank, so the best output of the beam is kept


def test_sorting_by_nearness_is_stable():
    outputs = [["a b", "a c", "x"], ["q"], []]
    assert nearest_first(outputs, ["a c", "", "z"], "per") == [["a c", "a b", "x"], ["q"], []]
    assert nearest_first([["b", "a"]], ["z"], "per") == [["b", "a"]]
    assert nearest_first([["b", "a"]], ["a"], "chrf") == [["a", "b"]]
    assert nearest_first([["b", "a"]], [""], "bleu") == [["b", "a"]]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("search", "options", "message"),
    [
        (TeacherSearch(n_best=4), {}, "expected at most beam_size = 3, got 4"),
        (TeacherSearch(n_best=0), {}, "n_best: expected a positive integer, got 0"),
        (TeacherSearch(best_of_reference="bleu"), {"settings": {"beam_size": 1}}, "expected beam_size > 1"),
        (TeacherSearch(best_of_reference="belu"), {}, "did you mean 'bleu'"),
        (TeacherSearch(), {"target": "new.fr"}, "target: expected `source` as well"),
        (TeacherSearch(), {"source": "new.en", "data": "."}, "expected either data or source"),
        (TeacherSearch(), {"labelled": True}, "labelled: expected `source`"),
        (TeacherSearch(keep_reference=True), {"source": "new.en"}, "no references"),
        (TeacherSearch(sample=True), {"settings": {"beam_size": 2}}, "beam_size chooses among the outputs of a beam"),
        (TeacherSearch(sample=True, best_of_reference="bleu"), {}, "bleu chooses among the outputs of a beam"),
    ],
    ids=[
        "n_best",
        "no n_best",
        "no beam",
        "metric",
        "target",
        "data",
        "labels",
        "no references",
        "beam",
        "nearest sample",
    ],
)
def test_impossible_settings_are_refused(folder, tmp_path, files, monkeypatch, search, options, message):
    monkeypatch.chdir(files)
    with pytest.raises(ConfigError, match=message):
        distil([folder / "run"], tmp_path / "d", search=search, **options)


@pytest.mark.slow
def test_several_teachers_are_an_ensemble(folder, tmp_path, files):
    one = distil([folder / "run"], tmp_path / "one", source=f"{files}/new.en")
    both = distil([folder / "run", folder / "run"], tmp_path / "two", source=f"{files}/new.en")
    assert records(one) == records(both)
    assert len(json.loads((tmp_path / "two" / DISTILLATION).read_text())["teachers"]) == 2


@pytest.mark.slow
def test_a_combination_of_models_may_teach(folder, tmp_path, files):
    path, source = tmp_path / "combination.json", f"{files}/new.en"
    for beam_size in (2, 4):
        weights = CombinationWeights(rescore=(0.5,), length=3.0)
        Combination(run=folder / "run", rescore=(folder / "run",), beam_size=beam_size, weights=weights).save(path)
        corpus = distil([path], tmp_path / f"d{beam_size}", source=source)
        made = [(record["source"], record["target"]) for record in records(corpus) if record["status"] == "ok"]
        expected = gf.Translator.load(path, engine="auto").translate([one for one, _ in made])
        assert [target for _, target in made] == [one.text for one in expected]
    Combination(run=folder / "run", rescore=(folder / "run",), beam_size=4, weights=CombinationWeights.equal(1)).save(
        path
    )
    with pytest.raises(ConfigError, match="holds a corpus that was distilled with different weights"):
        distil([path], tmp_path / "d4", source=source)


@pytest.mark.slow
def test_the_teachers_own_pairs_may_be_taught_beside_new_sources(folder, tmp_path):
    new = tmp_path / "new.en"
    valid = read_valid_pairs(prepare(Bundle.load(folder / "run").configuration).folder)
    labelled, test = ((folder / f"{name}.en").read_text().splitlines()[0] for name in ("train", "test"))
    known = {"labelled": labelled, "valid": f"  {valid[0][0]} ", "test": test, "ok": "a cat " * 6}
    new.write_text("".join(f"{line}\n" for line in known.values()))
    corpus = distil([folder / "run"], tmp_path / "d", source=str(new), data=folder, labelled=True)
    assert (corpus.labelled, corpus.lines, corpus.pairs) == (187, 4, 1)
    made = [record for record in records(corpus) if "line" in record]
    assert [record["status"] for record in made] == list(known)
    configuration = prepare_student(corpus, folder / "small.toml")
    pairs = list(read_texts(configuration, tmp_path / "texts").train)
    own = list(read_texts(Bundle.load(folder / "run").configuration, tmp_path / "own").train)
    assert sorted(pairs) == sorted([*own, *((one["source"], one["target"]) for one in made if one["target"])])
    assert distil([folder / "run"], tmp_path / "d", source=str(new), data=folder, labelled=True).made == 0
    with pytest.raises(ConfigError, match="holds a corpus that was distilled with labelled"):
        distil([folder / "run"], tmp_path / "d", source=str(new))


@pytest.mark.slow
def test_validation_sources_are_left_out_of_new_sources(folder, tmp_path):
    valid = read_valid_pairs(prepare(Bundle.load(folder / "run").configuration).folder)
    (tmp_path / "new.en").write_text(f"a cat\n  {valid[0][0]} \n")
    corpus = distil([folder / "run"], tmp_path / "d", source=str(tmp_path / "new.en"))
    assert (corpus.labelled, corpus.lines, corpus.untranslated["valid"]) == (0, 2, 1)


@pytest.mark.slow
@pytest.mark.usefixtures("small_task")
def test_a_teacher_of_a_built_in_task_provides_its_splits(tmp_path):
    configuration = load("copy", [f"run.directory={tmp_path / 'run'}"])
    pairs = prepare(configuration).valid_pairs
    texts = read_texts(configuration, tmp_path / "texts")
    assert texts.valid == pairs
    assert sum(1 for _ in texts.train) == texts.pairs
    assert texts.test
    assert not set(texts.test) & set(pairs)


# The student


@pytest.mark.slow
def test_a_student_learns_from_the_teachers_translations_in_its_tokens(folder, tmp_path):
    corpus = distil([folder / "run"], tmp_path / "d")
    overrides = ["model.encoder_layers=2", "model.decoder_layers=1", "training.steps=5"]
    configuration = prepare_student(corpus, folder / "small.toml", overrides)
    assert configuration.data.source == f"{tmp_path / 'd'}/corpus/*.jsonl"
    assert configuration.data.test_target == f"{tmp_path / 'd'}/test.target"
    summary = gf.train(configuration)
    student, teacher = Bundle.load(summary.folder), Bundle.load(folder / "run")
    assert summary.folder == tmp_path / "d" / "student"
    assert student.model_config.decoder_layers == 1
    for side in ("source", "target"):
        ours, theirs = (getattr(bundle, f"{side}_tokenizer") for bundle in (student, teacher))
        assert ours.tokens(range(len(ours))) == theirs.tokens(range(len(theirs)))
    assert read_valid_pairs(summary.folder / "prepared") == read_valid_pairs(folder / "run" / "prepared")


@pytest.mark.slow
def test_a_run_of_the_teachers_own_configuration_can_be_the_student(folder, tmp_path):
    corpus = distil([folder / "run"], tmp_path / "d")
    configuration = prepare_student(corpus, folder / "run" / "config.toml", ["model.decoder_layers=1"])
    assert configuration.model["decoder_layers"] == 1
    assert configuration.run.directory == str(tmp_path / "d" / "student")


@pytest.mark.slow
def test_the_student_uses_the_teachers_tokenizer_by_default(folder, tmp_path):
    corpus = distil([folder / "run"], tmp_path / "d")
    with pytest.raises(ConfigError, match=r"tokenizer\.kind: expected 'words' as in the teacher's tokenizer"):
        prepare_student(corpus, folder / "small.toml", ["tokenizer.kind=bpe"])
    overrides = ["tokenizer.kind=characters", "run.directory=" + str(tmp_path / "new")]
    configuration = prepare_student(corpus, folder / "small.toml", overrides, new_tokenizer=True)
    assert configuration.tokenizer.kind == "characters"
    assert not (tmp_path / "new").exists()


@pytest.mark.long
def test_a_killed_distillation_resumes_where_it_stopped(folder, tmp_path):
    word_by_word.write_sides(tmp_path, "many", word_by_word.pairs(6000, 3))
    command = [sys.executable, "-m", "glassformer", "distil", str(folder / "run"), "--output", str(tmp_path / "d")]
    command += ["--source", str(tmp_path / "many.en")]
    with subprocess.Popen(command, stderr=subprocess.DEVNULL) as process:
        while not (tmp_path / "d" / "corpus" / "00001.jsonl").exists():
            assert process.poll() is None
            time.sleep(0.01)
        process.send_signal(signal.SIGKILL)
    parts = {path.name for path in (tmp_path / "d" / "corpus").glob("*.jsonl")}
    assert 2 <= len(parts) < 6
    before = {path.name: path.stat().st_mtime_ns for path in (tmp_path / "d" / "corpus").glob("*.jsonl")}
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "6,000 lines" in done.stdout
    after = {path.name: path.stat().st_mtime_ns for path in (tmp_path / "d" / "corpus").glob("*.jsonl")}
    assert len(after) == 6
    assert all(after[name] == changed for name, changed in before.items())
