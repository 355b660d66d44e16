"""The page in its three hosts: a file without a network, this machine's server, a notebook's cell."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import glassformer as gf
from browser.test_box_zooms import shown
from browser.test_why_panel import PLACE, Word
from browser.test_why_panel import numbers as table
from glassformer.corpus.tasks import CLASSIC
from glassformer.model.taps import Trace
from glassformer.training.snapshots import Snapshots
from glassformer.watch.explorer.module import explorer_module
from glassformer.watch.explorer.packing import dequantised, quantised
from glassformer.watch.explorer.remote import Remote, unbatched
from glassformer.watch.explorer.standalone import write_page
from glassformer.watch.inspection.changes import Changes, changed
from models import pair_translator
from tiers import in_tiers

SENTENCE = "the black cat sleeps ."
CROSS = "decoder.layers.0.cross_attention"
LARGE = {"d_model": 256, "d_ff": 1310, "encoder_layers": 1, "decoder_layers": 1, "extra_length": 5}
"""Settings of a model that has a few parameters too many for a page."""
HOSTILE = [
    "</script><script>pwned()</script>",
    "<!--<script>",
    "<img/src=x/onerror=pwned()>",
    "</iframe>",
    "\"'&quot;&lt;",
    "${pwned()}",
    "שלום",
    "مرحبا",
    "👩‍👩‍👧",
]
HOSTS = ["written", "served", "cell", "exported"]
SHOW = "(looks) => glassformer.app.show(looks)"
READY = "() => glassformer.ready.then(() => null)"
FORBIDDEN = """async () => {
  const refused = [];
  document.addEventListener("securitypolicyviolation", (event) => refused.push(event.effectiveDirective));
  const put = (tag, values) => document.body.appendChild(Object.assign(document.createElement(tag), values));
  put("img", { src: "https://example.org/x.png" });
  await fetch("https://example.org/").catch(() => null);
  put("script", { textContent: "globalThis.harm = 1" });
  put("div", { innerHTML: "<b onclick='globalThis.harm = 2'>x</b>" }).firstChild.click();
  for (let waited = 0; refused.length < 4 && waited < 200; waited++) await new Promise((done) => setTimeout(done, 50));
  return refused.sort();
}"""
VALUE = """async (name) => {
  const { shape, data } = await glassformer.value(name);
  return { shape, text: data.join(" ") };
}"""
"""Returns the numbers as a text, because each number of an array would be an object for Playwright."""
CELL = """async (code) => {
  const url = URL.createObjectURL(new Blob([code], { type: "text/javascript" }));
  const listeners = new Set();
  const bytes = (text) => new DataView(Uint8Array.from(atob(text), (one) => one.charCodeAt(0)).buffer);
  const model = {
    on: (_, listener) => listeners.add(listener),
    off: (_, listener) => listeners.delete(listener),
    async send(message) {
      const [answer, buffers] = await askKernel(message);
      for (const listener of listeners) listener(answer, buffers.map(bytes));
    },
  };
  const el = document.body.appendChild(document.createElement("div"));
  globalThis.closeCell = await (await import(url)).default.render({ model, el });
}"""


@pytest.fixture
def tab(browser: Any) -> Iterator[Any]:
    """Return a tab that may connect only to this machine; an error or another request fails the test.

    The tab's `requests` list its requests.
    """
    context = browser.new_context()
    tab, problems, tab_requests = context.new_page(), [], []
    tab.on("pageerror", lambda error: problems.append(str(error)))
    tab.on("console", lambda message: problems.append(message.text) if message.type == "error" else None)
    tab.on("request", lambda request: tab_requests.append(request.url))
    yield tab
    context.close()
    assert problems == []
    assert {url.split("/")[2].split(":")[0] for url in tab_requests if url.startswith("http")} <= {"127.0.0.1"}


@pytest.fixture
def served(tab: Any, serving: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that serves a translator and opens its page."""

    def open_page(translator: gf.Translator, sentence: str = SENTENCE) -> Any:
        tab.goto(serving(translator, sentence).url + "#chapter=0")
        tab.evaluate(READY)
        return tab

    return open_page


@pytest.fixture
def cell(page: Any) -> Callable[..., Any]:
    """Return a function that shows a live notebook cell; its messages reach the widget as in a notebook."""
    from base64 import b64encode

    def show(translator: gf.Translator, sentence: str = SENTENCE) -> Any:
        widget = gf.explore(translator, sentence, live=True)

        def ask(message: dict[str, Any]) -> list[Any]:
            header, buffers = widget.answer(message)
            return [header, [b64encode(buffer).decode() for buffer in buffers]]

        page.expose_function("askKernel", ask)
        page.evaluate(CELL, explorer_module())
        page.evaluate(READY)
        return page

    return show


@pytest.fixture
def exported(page: Any, tmp_path: Path) -> Callable[..., Any]:
    """Return a function that shows the page in the frame of an exported notebook, and returns the frame."""

    def show(translator: gf.Translator, sentence: str = SENTENCE) -> Any:
        static = gf.explore(translator, sentence, live=False)
        path = tmp_path / "notebook.html"
        path.write_text(f"<!DOCTYPE html><meta charset=utf-8><body>{static._repr_html_()}", encoding="utf-8")
        page.goto(path.as_uri())
        [frame] = page.main_frame.child_frames
        frame.evaluate(READY)
        return frame

    return show


@pytest.fixture
def written(page: Any, tmp_path: Path) -> Callable[..., Any]:
    """Return a function that writes a translator's page into a file and opens it."""

    def show(translator: gf.Translator, sentence: str = SENTENCE, **options: Any) -> Any:
        write_page(translator, tmp_path / "page.html", sentence, **options)
        page.goto((tmp_path / "page.html").as_uri() + "#chapter=0")
        page.evaluate(READY)
        return page

    return show


def numbers(frame: Any, name: str) -> np.ndarray:
    """Return a point's value on the page."""
    value = frame.evaluate(VALUE, name)
    return np.array(value["text"].split(), np.float32).reshape(value["shape"])


def expected(translator: gf.Translator, name: str, changes: dict[str, Any]) -> np.ndarray:
    """Return PyTorch's value of a point, as in `expected_trace`."""
    return unbatched(expected_trace(translator, changes, name)[name]).numpy()


def expected_trace(translator: gf.Translator, changes: dict[str, Any], points: str = "*") -> Trace:
    """Return PyTorch's values of these points for SENTENCE and the changed model's translation of SENTENCE."""
    model, source_ids = translator.model, [*translator.bundle.source_tokenizer.encode(SENTENCE), 2]
    with torch.no_grad(), changed(model, Changes.from_dict(changes)):
        [output] = translator.translate([SENTENCE])
        ids = translator.bundle.target_tokenizer
        target_ids = [1, *(ids.vocabulary.id(token) for token in output.tokens[:-1])]
        with gf.record(model, points) as trace:
            model(torch.tensor([source_ids]), torch.tensor([target_ids]))
    return trace


def test_a_page_from_a_file_requests_nothing(make_translator, page, written):
    requests: list[str] = []
    page.on("request", lambda request: requests.append(request.url))
    written(make_translator())
    page.evaluate("glassformer.set({mistakes: ['no_scale']})")
    assert page.evaluate("glassformer.parity") <= 1e-4
    assert {url.partition(":")[0] for url in requests} <= {"file", "blob", "data"}
    assert sum(url.startswith("file:") for url in requests) == 1


def test_a_served_page_asks_little_of_python(make_translator, tab, served):
    """The page contains the first search, and Python compares traces, so only tensors that are shown are sent."""
    asked: list[Any] = []
    tab.on("request", lambda request: asked.append(request.post_data_json) if request.method == "POST" else None)
    page = served(make_translator(**LARGE))
    page.evaluate("glassformer.app.show({chapter: 0})")  # leaves the first chapter, which needs the probabilities
    assert [one["kind"] for one in asked if one["kind"] != "trace" or one["names"] is None] == ["trace"]
    asked.clear()
    page.evaluate("(name) => glassformer.set({ ablated: { [name]: [0] } })", CROSS)
    assert page.evaluate("glassformer.firstDifference") == f"{CROSS}.heads"
    assert {one["kind"] for one in asked} == {"search", "trace", "difference", "score"}
    page.wait_for_load_state("networkidle")  # the figure requests what it shows
    assert not [one["names"] for one in asked if one["kind"] == "trace" and "log_probs" in (one["names"] or [])]


def test_a_page_from_a_file_cannot_request_anything_or_run_other_code(make_translator, browser, tmp_path):
    write_page(make_translator(), tmp_path / "page.html", SENTENCE)
    context = browser.new_context(offline=True)
    page = context.new_page()
    page.goto((tmp_path / "page.html").as_uri())
    assert page.evaluate(FORBIDDEN) == ["connect-src", "img-src", "script-src-attr", "script-src-elem"]
    assert page.evaluate("globalThis.harm ?? null") is None
    context.close()


def test_a_page_from_a_file_plays_the_training_back(make_translator, written):
    translator, early = make_translator(), make_translator(seed=5)
    Snapshots(translator.bundle.folder / "snapshots", keep=3).save(early.model, 16)
    page = written(translator, snapshots=3)
    page.evaluate("glassformer.set({checkpoint: 16})")
    early.model.half().float()
    trace, [checkpoint] = page.evaluate("[glassformer.app.payload.trace, glassformer.app.payload.checkpoints]")

    def log_prob() -> float:
        """Return log p of the page's translation, without <eos>."""
        source, target = torch.tensor([trace["source_ids"]]), torch.tensor([trace["target_ids"]])
        with torch.no_grad():
            log_probs = early.model(source, target).log_softmax(-1)[0]
        return log_probs[:-1].gather(1, target[0, 1:, None]).sum().item()

    exact = log_prob()
    for weight in early.model.parameters():
        weight.data = torch.from_numpy(dequantised(quantised(weight.detach().numpy())))
    np.testing.assert_allclose(numbers(page, "logits"), expected(early, "logits", {}), atol=1e-4)
    assert checkpoint["loss"] == pytest.approx(abs(log_prob() - exact), abs=1e-4)


@pytest.mark.parametrize("host", HOSTS)
def test_all_hosts_show_the_same_numbers(make_translator, request, host):
    translator = make_translator()
    frame = request.getfixturevalue(host)(translator)
    translator.model.half().float()
    for name in ("encoder.output", f"{CROSS}.weights", "logits"):
        np.testing.assert_allclose(numbers(frame, name), expected(translator, name, {}), atol=1e-4)


@pytest.mark.parametrize("host", in_tiers(HOSTS, {"exported"}))
def test_the_first_chapter_begins_alike_and_leads_to_the_other_sentence(tmp_path, request, host):
    tired, wide = (example.source for example in CLASSIC[1:3])
    frame = request.getfixturevalue(host)(pair_translator(tmp_path), tired)
    frame.evaluate("glassformer.app.show({chapter: 1})")
    frame.get_by_role("heading", name="Who is too tired?").wait_for()
    frame.get_by_role("button", name="tired ⇄").click()
    frame.get_by_role("heading", name="Who is too wide?").wait_for()
    assert frame.evaluate("glassformer.app.state.sentence") == wide


@pytest.mark.parametrize("host", in_tiers(HOSTS, {"served", "exported"}))
def test_hostile_words_are_shown_and_nothing_runs(make_translator, request, host):
    words = " ".join(HOSTILE)
    translator = make_translator(words, words, name="<b onclick=pwned()>run")
    frame = request.getfixturevalue(host)(translator, words)
    frame.evaluate("() => { globalThis.pwned = () => { globalThis.harm = true; }; }")
    frame.evaluate("glassformer.app.show({chapter: 0})")
    frame.locator(".gfs-about", has_text="<b onclick=pwned()>run").wait_for(state="attached")
    frame.evaluate(f"glassformer.app.select({{name: '{CROSS}.weights', index: [0, 0, 0]}})")
    frame.locator(".gfn-said bdi").first.wait_for()
    frame.evaluate("glassformer.set({source: document.querySelector('.gfn-said bdi').textContent})")
    shown = frame.evaluate("glassformer.app.result.current.sourceTokens")
    assert shown == [*translator.bundle.source_tokenizer.split(words), "<eos>"]
    frame.get_by_role("button", name="Table").click()
    assert frame.locator(".gfn-table thead th").count() == len(shown)
    assert frame.locator(".glassformer img, .glassformer script, .glassformer b").count() == 0
    assert frame.evaluate("globalThis.harm ?? null") is None


@pytest.mark.parametrize("host", in_tiers(["served", "cell"], {"served"}))
def test_python_computes_a_model_too_large_for_the_page(make_translator, request, host):
    translator = make_translator(**LARGE)
    frame = request.getfixturevalue(host)(translator)
    changes: dict[str, Any]
    for changes in ({}, {"ablated": {CROSS: [0, 2]}, "mistakes": ["no_causal_mask"]}):
        frame.evaluate("(changes) => glassformer.set(changes)", changes)
        for name in ("encoder.output", f"{CROSS}.weights", "logits"):
            np.testing.assert_allclose(numbers(frame, name), expected(translator, name, changes), atol=1e-4)
    frame.evaluate("glassformer.reset()")
    box = f"decoder.layers.{translator.model.config.decoder_layers - 1}.feed_forward.add"
    looks = {"chapter": 0, "zoom": {"box": box, "key": None}, "panel": "guesses"}
    frame.evaluate("(looks) => glassformer.app.show(looks)", looks)
    last = frame.locator(".gfz-guesses tbody tr:first-child small")
    last.first.wait_for()  # appears when Python has sent the output matrix
    found = [float(text) for text in last.all_inner_texts()]
    np.testing.assert_allclose(found, np.exp(expected(translator, "log_probs", {}).max(-1)), atol=5.1e-4)
    looks |= {"zoom": {"box": CROSS, "key": None}, "panel": "weights"}
    frame.evaluate("(looks) => glassformer.app.show(looks)", looks)
    frame.locator(".gfz-pixels").nth(3).wait_for()
    said = frame.locator(".gfz-receipt tfoot td").last.inner_text().replace("\N{MINUS SIGN}", "-")
    query = expected(translator, f"{CROSS}.query", {})[frame.evaluate("glassformer.app.state.heads.cross.head")]
    query = np.asarray(query)
    largest = query[np.arange(len(query)), np.abs(query).argmax(-1)]  # one of these is open, with its arithmetic
    assert np.abs(largest - float(said)).min() <= 0.0051


def test_a_served_model_opens_the_words_that_its_search_has_weighed(make_translator, served):
    translator = make_translator(**LARGE)
    tab = served(translator)
    tab.evaluate("""() => {
      const { trace } = glassformer.app.result.current;
      const { get } = trace;
      globalThis.fetched = [];
      trace.get = (name) => (fetched.push(name), get(name));
      glassformer.app.show({ chapter: 0, row: 0, zoom: { box: "decoder.softmax", key: null } });
    }""")
    tab.locator(".gfz-note", has_text="the search has weighed").wait_for()
    rows = tab.locator(".gfz-words tbody tr:not(.gfz-sums)").evaluate_all(
        """(all) => all.map(({ cells }) =>
          [cells[0].firstChild.dataset.stop, cells[1].innerText, cells[4].innerText])"""
    )
    ids = [int(stop.split()[1]) for stop, _, _ in rows]
    shown = [[float(text.replace("\u2212", "-")) for text in row[1:]] for row in rows]
    logits, log_probs = (expected(translator, name, {})[0, ids] for name in ("logits", "log_probs"))
    np.testing.assert_allclose(shown, np.stack([logits, np.exp(log_probs)], 1), atol=0.0051)
    assert tab.locator(".gfz-sliders").count() == 0
    assert not {"logits", "log_probs"} & {*tab.evaluate("fetched")}
    tab.evaluate("glassformer.app.show({ zoom: { box: 'encoder.embedding', key: null } })")
    tab.locator("[data-stop='entry']").wait_for()
    tab.locator(".gfz-note", has_text="nearest words need the whole table").wait_for()


@pytest.mark.parametrize("host", in_tiers(["served", "cell"], {"served"}))
def test_the_words_of_a_large_models_units_are_fetched_when_asked_for(make_translator, request, host):
    translator = make_translator(**LARGE)
    frame = request.getfixturevalue(host)(translator)
    network = "decoder.layers.0.feed_forward"
    frame.evaluate("(box) => glassformer.app.show({chapter: 0, zoom: {box, key: null}})", network)
    rows = frame.locator(".gfz-rows tbody tr")
    rows.locator("svg").first.wait_for()
    assert rows.locator("bdi").count() == 0
    frame.get_by_role("button", name="Name the words of the units").click()
    rows.locator("bdi").first.wait_for()
    weights = translator.model.half().float().state_dict()
    unit = int(rows.first.locator("th").inner_text().split()[1])
    scores = weights["output.weight"] @ weights[f"{network}.contract.weight"][:, unit]
    words = translator.bundle.target_tokenizer.tokens(scores.topk(5).indices.tolist())
    assert rows.first.locator("bdi").get_attribute("title") == " ".join(map(shown, words))
    assert frame.get_by_role("button", name="Name the words of the units").count() == 0


@pytest.mark.parametrize(
    ("host", "settings"),
    [("served", {}), ("cell", LARGE), pytest.param("served", LARGE, marks=pytest.mark.long)],
)
def test_python_behind_the_page_adds_gradients_to_the_reasons_for_a_word(make_translator, request, host, settings):
    translator = make_translator(**settings)
    frame, word = request.getfixturevalue(host)(translator), Word(translator, SENTENCE)
    zoom = {"box": "decoder.softmax", "key": None}
    frame.evaluate(SHOW, {"chapter": 0, "row": PLACE, "zoom": zoom, "panel": "why"})
    frame.get_by_text("gradient × input", exact=True).wait_for()
    frame.locator(".gf-measured:empty").wait_for(state="attached")  # the table of heads changes until then
    [rival] = [id for id in word.row({}).argsort(descending=True).tolist() if id != word.word][:1]
    parts = sorted(part for part, _ in table(frame, 1) if part is not None)
    assert parts == pytest.approx(sorted(word.direct(rival).values()), abs=1e-4)
    source, target = frame.evaluate(
        "(({sourceIds, targetIds}) => [sourceIds, targetIds])(glassformer.app.result.current)"
    )
    asked = {"kind": "gradient", "source_ids": source, "target_ids": target, "row": PLACE, "word": word.word}
    effects = sorted(Remote(translator).answer(asked | {"rival": rival})[0]["effects"])
    assert sorted(gradient for _, gradient in table(frame, 2)) == pytest.approx(effects, abs=1e-4)


@pytest.mark.parametrize(
    ("host", "options"), [("written", {"recorded": True}), pytest.param("exported", {}, marks=pytest.mark.long)]
)
def test_a_large_model_without_python_shows_its_recording_and_a_note(make_translator, request, host, options):
    requests: list[str] = []
    request.getfixturevalue("page").on("request", lambda one: requests.append(one.url))
    translator = make_translator(**LARGE)
    frame = request.getfixturevalue(host)(translator, **options)
    exact = expected_trace(translator, {})
    for name in frame.evaluate("glassformer.points()"):
        value = unbatched(exact[name]).numpy()
        # Half precision has a relative error of at most 2⁻¹¹, and PyTorch sums in a different order here.
        np.testing.assert_allclose(numbers(frame, name), value, rtol=2**-11, atol=1e-4, err_msg=name)
    failed = "glassformer.set({mistakes: ['no_scale']}).then(() => '', (error) => error.message)"
    assert "needs the model (glassformer explore RUN)" in frame.evaluate(failed)
    frame.evaluate("glassformer.app.select({name: 'encoder.output', index: [0, 0]})")
    frame.locator(".gfn-said", has_text="Changes and other sentences need the model").wait_for()
    frame.locator(".gfz-about h2").wait_for()
    assert {url.partition(":")[0] for url in requests} <= {"file", "blob", "data", "about"}


@pytest.mark.parametrize("host", in_tiers(["served", "cell"], {"served"}))
def test_snapshots_are_fetched_when_they_are_chosen(make_translator, request, host):
    translator, early = make_translator(), make_translator(seed=5)
    Snapshots(translator.bundle.folder / "snapshots", keep=3).save(early.model, 16)
    frame = request.getfixturevalue(host)(translator)
    frame.evaluate("glassformer.set({checkpoint: 16})")
    early.model.half().float()
    np.testing.assert_allclose(numbers(frame, "logits"), expected(early, "logits", {}), atol=1e-4)
    frame.evaluate("glassformer.app.show({sheet: true, chapter: 0, panel: 'training'})")
    frame.get_by_role("row", name="step 16").wait_for()
    assert "8 bits" not in frame.locator(".gf-training").inner_text()


def test_the_badge_of_a_written_page_says_that_weights_are_rounded(make_translator, written):
    page = written(make_translator())
    page.evaluate("glassformer.app.show({chapter: 0})")
    page.locator(".gfs-about", has_text="both with weights in half precision").wait_for(state="attached")


def test_a_model_stored_in_half_precision_agrees_with_its_trace(make_translator, written):
    translator = make_translator()
    in_float32 = expected(translator, "logits", {})
    translator.model.half().float()
    page = written(translator)
    exact = expected_trace(translator, {})
    for name in page.evaluate("glassformer.points()"):
        value = unbatched(exact[name]).numpy()
        np.testing.assert_allclose(numbers(page, name), value, atol=1e-5, err_msg=name)
    assert np.abs(numbers(page, "logits") - in_float32).max() > 1e-4  # so weights in float32 would be noticed
    page.evaluate("glassformer.app.show({chapter: 0})")
    page.locator(".gfs-about", has_text="equals PyTorch to").wait_for(state="attached")
    assert page.evaluate("glassformer.app.parity") <= 1e-5


def test_a_closed_cell_leaves_nothing_behind(make_translator, cell):
    page = cell(make_translator())
    page.evaluate("closeCell()")
    assert page.locator(".glassformer").count() == 0
    assert page.evaluate("globalThis.glassformer ?? null") is None
