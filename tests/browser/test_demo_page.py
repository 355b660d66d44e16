"""The page that the demo writes, used as its reader would: the trained model in the browser is the one in Python."""

from pathlib import Path
from typing import Any

import pytest

from glassformer.explorer.payload import rounded
from glassformer.tasks import TASKS
from glassformer.translator import Translator

SENTENCES = 200
PAGE = 3_500_000
TRANSLATE = """async ([texts, beamSize]) => {
  const outputs = [];
  for (const text of texts) outputs.push(await glassformer.translate(text, { beamSize }));
  return outputs;
}"""

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("demo")]


@pytest.fixture
def opened(demo: tuple[Path, str], page: Any) -> Any:
    """Return the tab with the demo's own page, and all that it asked for."""
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.goto((demo[0] / "explorer.html").as_uri())
    page.evaluate("() => glassformer.ready.then(() => null)")
    assert [url.split(":")[0] for url in asked if not url.startswith("data:")] == ["file"]
    return page


def test_the_page_is_small_and_equals_pytorch(demo, opened):
    assert (demo[0] / "explorer.html").stat().st_size <= PAGE
    assert "explorer.html" in demo[1]
    assert opened.evaluate("glassformer.parity") <= 1e-4


@pytest.mark.parametrize("beam_size", [1, 4])
def test_the_page_translates_as_python_does(demo, opened, beam_size):
    """Python gets the same weights, which are halves in the page."""
    translator = Translator.load(demo[0])
    translator = Translator(translator.bundle, rounded(translator.model))
    texts = [one.source for one in TASKS["english-french"](1).splits["test"][:SENTENCES]]
    got = opened.evaluate(TRANSLATE, [texts, beam_size])
    for expected, output in zip(translator.translate(texts, beam_size=beam_size), got, strict=True):
        assert output["text"] == expected.text
        assert output["tokens"] == list(expected.tokens)
        assert output["logProb"] == pytest.approx(expected.log_prob, abs=1e-4)
        assert output["score"] == pytest.approx(expected.score, abs=1e-4)


def test_one_word_decides_the_pronoun(opened):
    """The sentence that everybody knows, edited word by word in the page."""
    text = "The animal didn't cross the street because it was too {}."
    opened.evaluate("(text) => glassformer.set({source: text})", text.format("tired"))
    assert "qu'il était trop fatigué" in opened.evaluate("glassformer.app.result.current.text")
    opened.evaluate("(text) => glassformer.set({source: text})", text.format("wide"))
    assert "qu'elle était trop large" in opened.evaluate("glassformer.app.result.current.text")
