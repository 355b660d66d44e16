"""Language detection: the served language of a text is detected with lingua, if lingua is installed."""

import os
import sys
from collections.abc import Iterator
from importlib.util import find_spec

import pytest

from glassformer.serving import detection
from glassformer.serving.detection import detected_languages

TEXTS = {
    "en": "The black cat slept on the rug because it was tired.",
    "fr": "Le chat noir dormait sur le tapis parce qu'il était fatigué.",
    "de": "Die schwarze Katze schlief auf dem Teppich, weil sie müde war.",
    "pt-BR": "O gato preto dormia no tapete porque estava muito cansado.",
    "zh-Hans": "黑猫因为累了所以睡在地毯上。",
}


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    """Forget the detectors before and after a test."""
    detection._detector.cache_clear()
    yield
    detection._detector.cache_clear()


@pytest.fixture
def lingua() -> None:
    """Skip the test if lingua is not installed; in CI, fail."""
    if find_spec("lingua") is None and os.environ.get("CI"):
        pytest.fail("no lingua-language-detector: install the extra `dev`")
    if find_spec("lingua") is None:
        pytest.skip("no lingua-language-detector")


@pytest.mark.parametrize("code", TEXTS)
def test_the_language_of_a_sentence_is_found(lingua, code):
    found = detected_languages(TEXTS[code], list(TEXTS))
    assert found[0]["language"] == code
    assert found[0]["confidence"] > 50
    assert [one["confidence"] for one in found] == sorted((one["confidence"] for one in found), reverse=True)
    assert sum(one["confidence"] for one in found) == pytest.approx(100, abs=len(found) / 2)  # rounding
    assert all(isinstance(one["confidence"], float) and one["confidence"].is_integer() for one in found)


def test_only_served_languages_are_found(lingua):
    assert {one["language"] for one in detected_languages(TEXTS["fr"], ["en", "de"])} <= {"en", "de"}
    assert detected_languages(TEXTS["zh-Hans"], ["en", "zh-Hant", "zh-Hans"])[0]["language"] == "zh-Hant"
    assert detected_languages(TEXTS["en"], ["en"]) == []
    assert detected_languages(TEXTS["en"], ["en", "tlh"]) == []


@pytest.mark.parametrize("text", ["", " \n", "12 + 3", "!?…", "😀"])
def test_a_text_without_letters_tells_nothing(lingua, text):
    assert detected_languages(text, list(TEXTS)) == []


def test_without_the_package_nothing_is_detected(monkeypatch):
    monkeypatch.setitem(sys.modules, "lingua", None)
    assert detected_languages(TEXTS["en"], list(TEXTS)) == []
