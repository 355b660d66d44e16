"""Another program's answers are compared with the run's own; a program that cannot answer is reported."""

import json

import pytest

from glassformer.errors import CheckpointError, ConfigError, MissingDependencyError
from glassformer.interop import verification
from glassformer.interop.exporting import ExportOptions
from glassformer.interop.verification import NEAR_TIE, verify_outside
from glassformer.translator import Translator
from interop.small_runs import WORDS, some

ANSWERS = """
import json, sys
questions = json.load(sys.stdin)
with open(sys.argv[1]) as file:
    known = json.load(file)
assert [known[text]["target"] for text in questions["sources"]] == questions["targets"]
print("a message of a package")
names = ("source_ids", "log_probs", "texts")
print(json.dumps({name: [known[text][name] for text in questions["sources"]] for name in names}))
"""
"""A program that knows its answers."""

ROUNDING = 1e-5
"""Largest difference in a log probability that other sentences in the batch may cause."""


@pytest.fixture
def program(tmp_path, monkeypatch):
    """Return a function that verifies a run with a program; the program has this code and reads these answers."""
    monkeypatch.setattr(verification, "PROGRAMS", tmp_path)

    def verified(run, code=ANSWERS, answers=None, **options):
        (tmp_path / "toy").mkdir(exist_ok=True)
        (tmp_path / "toy" / "probe.py").write_text(code)
        (tmp_path / "answers.json").write_text(json.dumps(answers))
        options = ExportOptions(probes=[*(answers or some(3))], **options)
        return verify_outside("toy", "toy-package", run, tmp_path / "answers.json", options)

    return verified


def own_answers(run, texts):
    results = Translator.load(run.folder).translate(texts, beam_size=1)
    return {
        text: {
            "target": [*run.target_tokenizer.encode(one.text), 2],
            "source_ids": [*run.source_tokenizer.encode(text), 2],
            "log_probs": one.token_log_probs,
            "texts": one.text,
        }
        for text, one in zip(texts, results, strict=True)
        if one.status == "ok"
    }


def test_a_program_that_answers_as_the_run_verifies_it(run, program):
    answers = own_answers(run, some(7))
    found = program(run, answers=answers)
    assert (found.outputs, found.equal, found.cut_differently) == (len(answers),) * 2 + (0,)
    assert found.tokens == sum(len(one["target"]) for one in answers.values())
    assert found.largest < ROUNDING


@pytest.mark.slow
def test_differences_are_measured(run, program):
    answers = own_answers(run, some(7))
    first, *_ = answers.values()
    first["log_probs"] = [one - 0.0005 for one in first["log_probs"]]
    found = program(run, answers=answers)
    assert found.largest == pytest.approx(0.0005, abs=ROUNDING)
    assert (found.equal, found.preference) == (len(answers), 0)
    first["log_probs"][0] -= 0.01
    with pytest.raises(CheckpointError, match=r"expected a largest difference .* of at most 0\.001, got 0\.01"):
        program(run, answers=answers)
    assert program(run, answers=answers, quantization="int8").largest == pytest.approx(0.0105, abs=ROUNDING)
    first["log_probs"][0] = float("nan")
    with pytest.raises(CheckpointError, match="got nan"):
        program(run, answers=answers)


@pytest.mark.slow
def test_outputs_may_differ_at_near_ties_only(run, program):
    """The other program goes on where the run ends."""
    answers = own_answers(run, some(40))
    longer = [(text, f"{one['texts']} {word}") for text, one in answers.items() for word in WORDS.values()]
    scored = Translator.load(run.folder).score(longer)
    own = [answers[text]["log_probs"] for text, _ in longer]
    preferences = [ours[-1] - one.token_log_probs[len(ours) - 1] for ours, one in zip(own, scored, strict=True)]
    found = sorted(zip(preferences, longer, strict=True))
    tie, other = found[0], next(one for one in found if one[0] > NEAR_TIE)

    def verified(text, output):
        return program(run, answers={**answers, text: {**answers[text], "texts": output}}, quantization="int8")

    assert verified(*tie[1]).preference == pytest.approx(tie[0], abs=ROUNDING)
    assert verified(*tie[1]).equal == len(answers) - 1
    got = rf"is at most 1 below .* got {other[0]:.2g} below \({len(answers) - 1} of {len(answers)} outputs are equal\)"
    with pytest.raises(CheckpointError, match=got):
        verified(*other[1])


@pytest.mark.slow
def test_texts_that_are_cut_differently_are_counted_and_not_compared(run, program):
    answers = own_answers(run, some(7))
    first, *others = answers.values()
    first["source_ids"], first["log_probs"] = [5, 2], [-9.0] * len(first["target"])
    found = program(run, answers=answers)
    assert (found.outputs, found.cut_differently) == (len(others), 1)
    assert found.largest < ROUNDING
    for one in others:
        one["source_ids"] = [5, 2]
    with pytest.raises(CheckpointError, match=rf"it cuts {len(answers)} of {len(answers)} texts into different tokens"):
        program(run, answers=answers)


@pytest.mark.parametrize(
    ("code", "error", "message"),
    [
        (
            "import not_there",
            MissingDependencyError,
            "not verified: not_there is not installed; run `pip install toy-pack",
        ),
        ("raise ValueError('no such weight')", CheckpointError, r"\(toy\) failed: ValueError: no such weight"),
        ("import os; os._exit(3)", CheckpointError, "failed: exit status 3"),
        ("print('hello')", CheckpointError, "gave no answers"),
        ("print('[]')", CheckpointError, "gave no answers"),
        ('print(\'{"source_ids": [], "log_probs": [], "texts": []}\')', CheckpointError, "gave no answers"),
    ],
)
def test_a_program_that_cannot_answer_is_a_clear_error(run, program, code, error, message):
    with pytest.raises(error, match=message):
        program(run, code)


def test_a_python_that_does_not_exist_is_named(run, program, tmp_path):
    with pytest.raises(ConfigError, match=r"--python: .*nothing cannot be run \(No such file or directory\)"):
        program(run, python=str(tmp_path / "nothing"))


def test_probe_programs_import_nothing_of_glassformer():
    probes = list(verification.PROGRAMS.glob("*/probe.py"))
    assert len(probes) == 3
    for file in probes:
        assert "import glassformer" not in file.read_text()
        assert "from glassformer" not in file.read_text()
