"""Guards that are calibrated on a run's outputs, and then used by its translator."""

import json
import random
from pathlib import Path

import pytest

from glassformer.errors import DataError
from glassformer.evaluation.guards import GUARDS
from glassformer.evaluation.items import Items
from glassformer.jobs.calibration import calibrate
from glassformer.translating.translation import TRANSLATED
from glassformer.translator import Translator
from models import random_translator

WORDS = ["the", "cat", "sees", "a", "big", "black", "dog", "and", "sleeps"]


def texts(count: int) -> list[str]:
    chance = random.Random(count)
    return [" ".join(chance.choices(WORDS, k=chance.randint(2, 8))) for _ in range(count)]


@pytest.fixture
def translator(tmp_path: Path) -> Translator:
    made = random_translator(tmp_path, extra_length=5)
    made.bundle.folder.mkdir()
    return made


def test_a_calibrated_run_flags_few_of_its_own_outputs_and_says_why(translator: Translator) -> None:
    some = texts(300)
    before = translator.translate(some)
    assert all(one.confidence is None for one in before)
    pairs = [(text, one.text) for text, one in zip(some, before, strict=True)]
    guards = calibrate(translator, Items.of(pairs, group=False), flagged=0.05)
    guards.save(translator.bundle.folder)
    again = Translator(translator.bundle, translator.model)
    assert again.guards() == guards
    found = again.translate(some)
    assert [one.text for one in found] == [one.text for one in before]
    suspicious = [one for one in found if one.reasons]
    assert 0 < len(suspicious) <= 0.05 * len(some)
    assert all(set(one.reasons) <= guards.thresholds.keys() for one in suspicious)
    assert {one.status for one in found} <= {*TRANSLATED, "empty"}
    assert [one for one in again.translate(some, guards=False) if one.reasons] == []
    assert again.explain(some[0]).translation.reasons == found[0].reasons


def test_guards_belong_to_one_search(translator: Translator) -> None:
    calibrate(translator, Items.of([[one] for one in texts(120)], group=False)).save(translator.bundle.folder)
    again = Translator(translator.bundle, translator.model)
    assert again.guards(top_k=7, temperature=0.5) is not None
    assert again.guards(beam_size=1) is None
    assert again.guards(length_penalty=0.0) is None


@pytest.mark.parametrize(("name", "different"), [("max_source", 7), ("length_penalty", 0.0)])
def test_a_setting_added_after_the_calibration_counts_with_its_default(
    translator: Translator, name: str, different: float
) -> None:
    folder = translator.bundle.folder
    calibrate(translator, Items.of([[one] for one in texts(120)], group=False)).save(folder)
    values = json.loads((folder / GUARDS).read_text())
    del values["search"][name]
    (folder / GUARDS).write_text(json.dumps(values))
    again = Translator(translator.bundle, translator.model)
    assert again.guards() is not None
    assert again.guards(**{name: different}) is None


def test_without_references_or_with_few_there_is_no_confidence(translator: Translator) -> None:
    guards = calibrate(translator, Items.of([[one] for one in texts(120)], group=False))
    assert guards.exact is None
    assert guards.unfitted == dict.fromkeys(("exact", "close"), "the texts have no references")
    assert guards.confidence((-0.5,)) is None
    few = calibrate(translator, Items.of([(one, one) for one in texts(120)], group=False))
    assert few.unfitted["exact"] == "expected at least 500 outputs with references, got 120"


def test_too_few_texts_are_refused(translator: Translator) -> None:
    with pytest.raises(DataError, match="expected at least 100 texts that can be translated, got 99"):
        calibrate(translator, Items.of([[one] for one in texts(99)], group=False))
