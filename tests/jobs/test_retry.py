"""Second searches for suspicious outputs: other outputs do not change, and the least suspicious output is kept."""

import json
import math
import random
from dataclasses import replace
from pathlib import Path

import pytest

from glassformer.cli import main
from glassformer.errors import ConfigError
from glassformer.evaluation.items import Items
from glassformer.evaluation.minimum_risk import least_risk
from glassformer.jobs.bulk import BulkJob, bulk
from glassformer.jobs.calibration import calibrate
from glassformer.text.splitting import clause_spans
from glassformer.translating.retrying import DRAWN_OUTPUTS, TEMPERATURES
from glassformer.translating.translation import Translation
from glassformer.translator import Translator
from models import random_translator

WORDS = ["the", "cat", "sees", "a", "big", "black", "dog", "and", "sleeps"]
SOURCE = " ".join([*WORDS, ","])


def texts(count: int, seed: int = 1) -> list[str]:
    chance = random.Random(seed)

    def part() -> str:
        return " ".join(chance.choices(WORDS, k=chance.randint(2, 5)))

    return [" , ".join(part() for _ in range(chance.randint(1, 3))) for _ in range(count)]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Translator:
    """Return a translator with random weights; a third of its outputs are suspicious."""
    return calibrated(tmp_path_factory.mktemp("retry"), seed=1)


@pytest.fixture(scope="module")
def talkative(tmp_path_factory: pytest.TempPathFactory) -> Translator:
    """Return a translator like `run` that rarely writes an empty output, because joined parts must not be empty."""
    return calibrated(tmp_path_factory.mktemp("talkative"), seed=9)


@pytest.fixture(scope="module")
def retried(talkative: Translator) -> tuple[list[str], list[Translation], list[Translation]]:
    """Return texts, and their outputs before and after second searches."""
    some = texts(150, seed=2)
    return some, outputs(talkative, some), outputs(talkative, some, retry=True)


@pytest.fixture(scope="module")
def sixty(run: Translator) -> tuple[list[str], list[Translation]]:
    """Return texts, and the outputs of `run` after second searches."""
    some = texts(60, seed=2)
    return some, outputs(run, some, retry=True)


def calibrated(folder: Path, seed: int) -> Translator:
    made = random_translator(folder, source=SOURCE, extra_length=5, seed=seed)
    made.bundle.save(made.model)
    calibrate(made, Items.of([[one] for one in texts(200)], group=False), flagged=0.3).save(made.bundle.folder)
    return made


def outputs(translator: Translator, some: list[str], **settings: object) -> list[Translation]:
    return translator.translate(some, **settings)


def drawn(translator: Translator, text: str, temperature: float) -> list[Translation]:
    """Return the samples for a text; the index of a text decides its random numbers."""
    return translator.translate([text] * DRAWN_OUTPUTS, sample=True, temperature=temperature)


def calm(translator: Translator, text: str, several: list[Translation]) -> list[str]:
    """Return the samples that set off no guard of the run's own search, or all samples if each sets off a guard."""
    guards = translator.guards()
    assert guards is not None
    outputs = translator.outputs([text] * len(several), several)
    good = [one.text for one, output in zip(several, outputs, strict=True) if not guards.reasons(output)]
    return good or [one.text for one in several]


def least_suspicious(translator: Translator, text: str, several: list[Translation]) -> float:
    guards = translator.guards()
    assert guards is not None
    return min(guards.suspicion(one) for one in translator.outputs([text] * len(several), several))


@pytest.mark.slow
def test_only_suspicious_outputs_change_and_only_for_the_better(talkative: Translator, retried) -> None:
    some, before, after = retried
    assert 25 < sum(bool(one.reasons) for one in before) < 125
    for text, first, second in zip(some, before, after, strict=True):
        if not first.reasons:
            assert second == first
            continue
        assert second.retry != ""
        assert bool(second.reasons) <= bool(first.reasons)
        if second.reasons:
            assert least_suspicious(talkative, text, [first]) >= least_suspicious(talkative, text, [second])
        if second.retry == "first":
            assert replace(second, retry="") == first
    assert {one.retry for one in after} == {"", "first", "greedy", "samples", "parts"}


@pytest.mark.slow
def test_each_search_gives_what_it_gives_by_itself(talkative: Translator, retried) -> None:
    some, _, after = retried
    found = {retry: [] for retry in ("greedy", "samples", "parts")}
    for text, one in zip(some, after, strict=True):
        found.get(one.retry, []).append((text, one))
    assert all(found.values())
    for text, one in found["greedy"]:
        assert one.text == outputs(talkative, [text], beam_size=1)[0].text
    for text, one in found["samples"]:
        several = [calm(talkative, text, drawn(talkative, text, temperature)) for temperature in TEMPERATURES]
        assert one.text in [some[least_risk(some)] for some in several]
    for text, one in found["parts"]:
        parts = outputs(talkative, [text[begin:end] for begin, end in clause_spans(text)])
        assert one.text.split() == [word for part in parts for word in part.text.split()]
        assert one.log_prob == pytest.approx(sum(one.token_log_probs))
        assert len(one.tokens) == len(one.token_log_probs) == sum(len(part.tokens) for part in parts) - len(parts) + 1


@pytest.mark.slow
def test_a_retried_output_does_not_depend_on_the_other_texts(run: Translator) -> None:
    some = texts(20, seed=3)
    together = outputs(run, some, retry=True)
    expected = [(one.text, one.tokens, one.retry) for one in together]
    alone = [outputs(run, [text], retry=True)[0] for text in some]
    for found in (alone, run.stream(iter(some), retry=True, window=3)):
        assert [(one.text, one.tokens, one.retry) for one in found] == expected


@pytest.mark.slow
def test_alternatives_prefixes_and_links_hold_for_the_new_output(run: Translator) -> None:
    some = texts(40, seed=4)
    first = outputs(run, some, n_best=2)
    for before, after in zip(first, outputs(run, some, n_best=2, retry=True, links=True), strict=True):
        assert len(after.alternatives) == len(before.alternatives)
        if after.retry not in ("", "first"):
            assert after.alternatives[0].text == before.text
    for text, one in zip(some, outputs(run, some, retry=True, links=True), strict=True):
        words = [one.text[begin:end] for begin, end in sorted({link.target for link in one.links})]
        assert words == one.text.split()
        assert all(text[begin:end] in text.split() for (begin, end), _ in one.links)
    prefixed = outputs(run, some, prefix="le chat", retry=True)
    assert all(one.text.startswith("le chat") for one in prefixed)
    assert "parts" not in {one.retry for one in prefixed}


def test_samples_are_not_searched_again(run: Translator) -> None:
    with pytest.raises(ConfigError, match=r"decoding\.retry has no effect with sampling"):
        run.translate(["the cat"], sample=True, retry=True)


@pytest.mark.slow
def test_ctranslate2_tries_the_searches_that_it_has(run: Translator) -> None:
    pytest.importorskip("ctranslate2")
    fast = Translator.load(run.bundle.folder, engine="ctranslate2")
    some = texts(60, seed=2)
    before, after = outputs(fast, some), outputs(fast, some, retry=True)
    assert [one for one in after if not one.retry] == [one for one in before if not one.reasons]
    assert {"", "n_best"} < {one.retry for one in after} <= {"", "first", "greedy", "n_best", "parts"}
    for text, first, second in zip(some, before, after, strict=True):
        if second.retry == "n_best":
            badness = [(bool(one.reasons), least_suspicious(fast, text, [one])) for one in (first, second)]
            assert badness[1] < badness[0]


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["torch", "ctranslate2"])
def test_improbable_outputs_are_found_without_log_probabilities_of_tokens(run: Translator, engine: str) -> None:
    translator, some = Translator.load(run.bundle.folder, engine=engine), texts(60, seed=2)
    whole, bare = (translator.translate(some, log_probs=log_probs) for log_probs in (True, False))
    assert [one.text for one in whole] == [one.text for one in bare]
    missing = {"surprise"} if engine == "ctranslate2" else set()
    known = [place for place, one in enumerate(bare) if not math.isnan(one.log_prob)]
    assert [set(bare[place].reasons) for place in known] == [set(whole[place].reasons) - missing for place in known]
    assert any("improbable" in bare[place].reasons for place in known)


@pytest.mark.slow
def test_bulk_records_the_search_and_refuses_other_guards(run: Translator, sixty, tmp_path: Path) -> None:
    some, expected = sixty
    (tmp_path / "some.en").write_text("".join(f"{text}\n" for text in some))
    job = BulkJob.of(
        [run.bundle.folder],
        [str(tmp_path / "some.en")],
        str(tmp_path / "out"),
        settings={"retry": True},
        engine="torch",
    )
    bulk(job)
    [statuses] = (tmp_path / "out" / "parts").glob("*.status.jsonl")
    found = [json.loads(line).get("retry", "") for line in statuses.read_text().splitlines()]
    assert found == [one.retry for one in expected]
    guards = run.bundle.folder / "guards.json"
    kept = guards.read_bytes()
    guards.write_bytes(kept.replace(b'"close_chrf": 60.0', b'"close_chrf": 61.0'))
    try:
        with pytest.raises(ConfigError, match="translated with guards = "):
            bulk(job)
    finally:
        guards.write_bytes(kept)


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("no comma", ["no comma"]),
        ("One, two;  three: 1,000.", ["One,", "two;", "three: 1,000."[:6], "1,000."]),
        ("你好，世界", ["你好，", "世界"]),
        (", a,", [",", "a,"]),
        ("", []),
    ],
)
def test_clauses_end_with_commas(text: str, parts: list[str]) -> None:
    assert [text[begin:end] for begin, end in clause_spans(text)] == parts


def test_the_text_of_least_risk_is_most_like_the_others() -> None:
    sacrebleu = pytest.importorskip("sacrebleu")
    chance = random.Random(7)
    for _ in range(20):
        several = texts(5, seed=chance.randrange(10**6))
        gains = [
            sum(sacrebleu.sentence_chrf(one, [other]).score for place, other in enumerate(several) if place != own)
            for own, one in enumerate(several)
        ]
        assert least_risk(several) == gains.index(max(gains))
    assert least_risk(["alone"]) == 0


@pytest.mark.slow
def test_the_command_searches_again_with_an_option(
    run: Translator, sixty, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (some, expected), statuses = sixty, tmp_path / "status.jsonl"
    (tmp_path / "some.en").write_text("".join(f"{text}\n" for text in some))
    command = ["translate", str(run.bundle.folder), str(tmp_path / "some.en"), "--retry"]
    with pytest.raises(SystemExit) as ended:
        main([*command, "--engine", "torch", "--status", str(statuses)])
    assert not ended.value.code
    assert capsys.readouterr().out == "".join(f"{one.text}\n" for one in expected)
    found = [json.loads(line).get("retry", "") for line in statuses.read_text().splitlines()]
    assert found == [one.retry for one in expected]
    with pytest.raises(SystemExit) as ended:
        main([*command, "--sample"])
    assert ended.value.code == 1
    assert "decoding.retry has no effect with sampling" in capsys.readouterr().err
