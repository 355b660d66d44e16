"""The page as a file: no text of a model or a user becomes code, and the page loads nothing from elsewhere."""

import base64
import hashlib
import json
import re
from html.parser import HTMLParser

import numpy as np
import pytest

import glassformer as gf
from glassformer.errors import ConfigError, DataError
from glassformer.training.snapshots import Snapshots
from glassformer.watch.explorer.packing import dequantised, quantised
from glassformer.watch.explorer.payload import payload
from glassformer.watch.explorer.standalone import check_path, page_html, write_page

HOSTILE = "</script><!--<script>alert(1)</script>\"'&<img/src=x> שלום مرحبا 😀 \u2028"


class Outline(HTMLParser):
    """The outline of an HTML text: the elements in order, and the texts of scripts."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[str] = []
        self.scripts: list[str] = []
        self.words = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.elements.append(tag)

    def handle_data(self, data: str) -> None:
        if self.elements[-1:] == ["script"] and self.cdata_elem == "script":
            self.scripts.append(data)
        else:
            self.words += data


def policy(text: str) -> dict[str, str]:
    """Return the rules of a page's Content-Security-Policy."""
    rules = re.search(r'Content-Security-Policy" content="([^"]*)"', text)[1].replace("&#x27;", "'")
    return dict(rule.split(" ", 1) for rule in rules.split("; "))


def test_the_page_contains_the_payload(make_translator):
    shown = payload(make_translator(), "the cat sleeps .")
    assert json.loads(Outline(page_html(shown)).scripts[0]) == shown


def test_hostile_words_stay_data_everywhere(make_translator):
    plain = make_translator()
    hostile = make_translator(HOSTILE, HOSTILE, name="<b>run&amp;")
    outlines = [Outline(page_html(payload(one), "<i>" * (one is hostile))) for one in (plain, hostile)]
    assert outlines[0].elements == outlines[1].elements
    assert "<b>run&amp;" in outlines[1].words
    assert "<i>" in outlines[1].words
    assert "<" not in outlines[1].scripts[0]
    assert set(HOSTILE.split()) <= set(json.loads(outlines[1].scripts[0])["source"]["tokens"])


def test_only_the_module_may_run_and_nothing_may_be_fetched(make_translator):
    text = page_html(payload(make_translator()))
    digest = base64.b64encode(hashlib.sha256(Outline(text).scripts[1].encode()).digest()).decode()
    assert policy(text)["script-src"] == f"'sha256-{digest}'"
    assert policy(text)["default-src"] == policy(text)["connect-src"] == "'none'"


def test_a_served_page_may_ask_only_its_server(make_translator):
    assert policy(page_html(payload(make_translator(), host="api")))["connect-src"] == "'self'"


def test_the_same_payload_makes_the_same_page(make_translator):
    shown = payload(make_translator(), "the cat sleeps .")
    assert page_html(shown) == page_html(json.loads(json.dumps(shown)))


def test_writing_returns_the_size_of_the_page(make_translator, tmp_path):
    page = write_page(make_translator(), tmp_path / "page.html", "the cat sleeps .")
    text = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert page.size == len(text.encode())
    assert page.left_out == ()
    assert '<p dir="auto">the cat sleeps .</p>' in text


def test_the_page_contains_the_translation_before_its_script_runs(make_translator, tmp_path):
    translator = make_translator()
    write_page(translator, tmp_path / "page.html", "the cat sleeps .")
    [output] = translator.translate(["the cat sleeps ."])
    assert f'<p dir="auto">{output.text}</p>' in (tmp_path / "page.html").read_text(encoding="utf-8")


def test_a_page_that_cannot_be_made_leaves_the_old_page(make_translator, tmp_path):
    (tmp_path / "page.html").write_text("old")
    with pytest.raises(DataError, match="tokens"):
        write_page(make_translator(), tmp_path / "page.html", "cat " * 1100)
    assert (tmp_path / "page.html").read_text() == "old"


def test_writing_through_a_symbolic_link_keeps_the_link(make_translator, tmp_path):
    (tmp_path / "real.html").touch()
    (tmp_path / "link.html").symlink_to("real.html")
    page = write_page(make_translator(), tmp_path / "link.html")
    assert (tmp_path / "link.html").is_symlink()
    assert (tmp_path / "real.html").stat().st_size == page.size


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("", "is a folder"),
        ("missing/page.html", "the folder "),
        ("/dev/null", "is not a regular file"),
    ],
)
def test_a_path_that_cannot_be_a_file_is_refused(tmp_path, name, message):
    with pytest.raises(ConfigError, match=message):
        check_path(tmp_path / name)


@pytest.mark.slow
def test_a_page_of_a_large_model_is_refused_with_its_size_or_recorded(make_translator, tmp_path):
    translator = make_translator(d_model=256, d_ff=1024)
    with pytest.raises(ConfigError, match=r"got 3,\d+,\d+, which would make a page of about 10 MB; use --recorded"):
        write_page(translator, tmp_path / "page.html")
    assert list(tmp_path.iterdir()) == []
    page = write_page(translator, tmp_path / "page.html", "the cat sleeps .", recorded=True)
    assert page.size < 1_500_000
    assert page.left_out == ()


def terse(translator: gf.Translator) -> gf.Translator:
    """Make a translator end its outputs at once, because long recordings would hide the page's size; return it."""
    model, eos_id = translator.model, translator.bundle.model_config.eos_id
    bias = model.decoder.layers[-1].feed_forward_residual.norm.bias.data
    model.output.weight.data[eos_id] = 100 * bias / bias.square().sum()
    return translator


@pytest.mark.slow
def test_twenty_tokens_of_a_large_model_fit_into_ten_megabytes(make_translator, tmp_path):
    words = [f"w{number}" for number in range(200)]
    sizes = {"d_model": 512, "heads": 8, "d_ff": 2048, "encoder_layers": 6, "decoder_layers": 6}
    translator = make_translator(" ".join(words), " ".join(words), extra_length=0, **sizes)
    translator.model.output.weight.data[2] *= -1  # makes <eos> improbable
    page = write_page(translator, tmp_path / "page.html", " ".join(words[:20]), recorded=True)
    assert 8_000_000 < page.size < 10_000_000
    data = json.loads(Outline((tmp_path / "page.html").read_text(encoding="utf-8")).scripts[0])
    assert [len(data["trace"][ids]) for ids in ("source_ids", "target_ids")] == [21, 21]
    with pytest.raises(DataError, match=r"at most 10 MB, got 1\d\.\d MB for 27 source and 27 target tokens"):
        write_page(translator, tmp_path / "page.html", " ".join(words[:26]), recorded=True)


@pytest.mark.parametrize(("d_model", "parameters", "megabytes"), [(160, 1e6, 3.5), (220, 1.9e6, 7.0)])
def test_pages_of_small_models_are_small(make_translator, tmp_path, d_model, parameters, megabytes):
    translator = terse(make_translator(d_model=d_model, d_ff=2 * d_model))
    assert parameters < sum(one.numel() for one in translator.model.parameters()) < 2e6
    assert write_page(translator, tmp_path / "page.html").size <= megabytes * 1e6


def test_shrunk_weights_are_off_by_half_a_step_of_their_row():
    weights = np.random.default_rng(3).normal(size=(5, 7)).astype("float32")
    weights[2] = 0
    scale, numbers = quantised(weights)
    assert (numbers.dtype, np.abs(numbers).max(1).tolist()) == (np.int8, [127, 127, 0, 127, 127])
    # At most half a quantisation step, plus the rounding of float32.
    assert (np.abs(dequantised([scale, numbers]) - weights) <= 0.5001 * scale).all()
    vector = weights[0]
    np.testing.assert_array_equal(dequantised(quantised(vector)), vector.astype("float16"))


@pytest.mark.slow
def test_snapshots_fit_into_ten_megabytes_and_the_rest_is_listed(make_translator, tmp_path):
    translator = terse(make_translator(d_model=160, d_ff=320))
    snapshots = Snapshots(translator.bundle.folder / "snapshots", keep=9)
    for power in range(3, 10):
        snapshots.save(translator.model, 2**power)
    page = write_page(translator, tmp_path / "page.html", snapshots=6)
    assert 8_000_000 < page.size <= 10_000_000
    assert "step" in page.left_out[0]
    assert write_page(translator, tmp_path / "page.html").size < 4_000_000


def test_an_empty_translation_makes_a_page(make_translator, tmp_path):
    translator = terse(make_translator())
    assert translator.translate(["the cat"])[0].tokens == ("<eos>",)
    assert write_page(translator, tmp_path / "page.html", "the cat").size > 0


def test_a_diverged_training_makes_a_page(make_translator, tmp_path):
    translator = terse(make_translator())
    translator.bundle.folder.mkdir()
    line = '{{"type": "step", "step": {}, "loss": {}, "epoch": 1, "seconds": 1}}\n'
    lines = line.format(1, 7.5) + line.format(2, "NaN")
    (translator.bundle.folder / "metrics.jsonl").write_text(lines)
    write_page(translator, tmp_path / "page.html")
    data = json.loads(Outline((tmp_path / "page.html").read_text(encoding="utf-8")).scripts[0])
    assert data["curve"]["loss"] == [[1, 7.5]]
