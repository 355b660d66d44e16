"""The explorer in a notebook: live if possible, and otherwise a static page."""

import re
import sys
from html import unescape
from html.parser import HTMLParser

import nbformat
import numpy as np
import pytest
from nbclient import NotebookClient
from nbconvert import HTMLExporter

import glassformer as gf
from glassformer.errors import MissingDependencyError
from glassformer.training.snapshots import Snapshots
from glassformer.watch.explorer.payload import payload
from glassformer.watch.explorer.standalone import page_html
from glassformer.watch.explorer.widget import StaticExplorer

SENTENCE = "the black cat sleeps ."
VIEW = "application/vnd.jupyter.widget-view+json"


class Frames(HTMLParser):
    """The pages in the frames of an HTML text, and the names of all its elements."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.pages: list[str] = []
        self.elements: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.elements.append(tag)
        if tag == "iframe":
            self.pages.append(dict(attributes)["srcdoc"])


@pytest.fixture
def without_anywidget(monkeypatch):
    monkeypatch.setitem(sys.modules, "anywidget", None)


def test_the_output_of_a_cell_contains_the_page(make_translator):
    translator = make_translator()
    [page] = Frames(gf.explore(translator, SENTENCE, live=False)._repr_html_()).pages
    [output] = translator.translate([SENTENCE])
    assert page == page_html(payload(translator, SENTENCE), output.text)


def test_a_cell_opens_the_story_only_if_asked(make_translator):
    translator = make_translator()
    for story, opens in ((False, "never"), (True, "always")):
        [page] = Frames(gf.explore(translator, SENTENCE, live=False, story=story)._repr_html_()).pages
        assert f'"story":{{"opens":"{opens}"' in page


@pytest.mark.parametrize("hostile", ['</iframe><script>alert("1")</script>', "\"'><img/src=x>&quot;&lt;"])
def test_hostile_words_stay_inside_the_frame(make_translator, hostile):
    static = gf.explore(make_translator(hostile, hostile, name="<b>'\""), hostile, live=False)
    assert Frames(static._repr_html_()).elements == ["iframe"]
    assert "srcdoc" not in unescape(static._repr_html_().partition("title=")[2].partition("sandbox=")[0])


def test_the_frame_may_run_scripts_but_not_touch_the_notebook(make_translator):
    sandbox = gf.explore(make_translator(), live=False)._repr_html_().partition('sandbox="')[2].partition('"')[0]
    assert "allow-scripts" in sandbox
    assert "allow-same-origin" not in sandbox


def test_the_explorer_has_a_text_form(make_translator):
    translator = make_translator()
    [output] = translator.translate([SENTENCE])
    for live in (False, True):
        assert repr(gf.explore(translator, SENTENCE, live=live)) == f"explorer of run: {SENTENCE} → {output.text}"


@pytest.mark.slow
def test_a_run_can_be_given_instead_of_its_translator(make_translator):
    translator = make_translator()
    translator.bundle.save(translator.model)
    one, other = (gf.explore(what, live=False) for what in (translator, str(translator.bundle.folder)))
    assert one._repr_html_() == other._repr_html_()


def test_a_live_cell_contains_the_page_for_use_without_a_kernel(make_translator):
    translator = make_translator()
    data, _ = gf.explore(translator, SENTENCE)._repr_mimebundle_()
    assert data.keys() == {"text/plain", "text/html", VIEW}
    assert data["text/html"] == gf.explore(translator, SENTENCE, live=False)._repr_html_()


def test_a_live_cell_does_not_save_the_weights_with_its_state(make_translator):
    widget = gf.explore(make_translator(d_model=96), SENTENCE)
    assert len(str(widget.get_state())) < 500_000 < len(payload(make_translator(d_model=96))["weights"]["data"])


def test_a_view_gets_the_payload_with_numbers_as_buffers(make_translator):
    translator = make_translator()
    header, buffers = gf.explore(translator, SENTENCE).answer({"kind": "payload", "id": "a"})
    shown, parameters = header["payload"], dict(translator.model.named_parameters())
    assert header["id"] == "a"
    assert [shown[part]["data"] for part in ("weights", "trace")] == [{"buffer": 0}, {"buffer": 1}]
    halves = np.concatenate([parameters[one["name"]].detach().numpy().ravel() for one in shown["weights"]["tensors"]])
    np.testing.assert_array_equal(np.frombuffer(buffers[0], "<f2"), halves.astype(np.float16))
    assert shown["source"] == payload(translator)["source"]


@pytest.mark.slow
def test_a_view_of_a_large_model_asks_the_kernel_and_saves_a_recording(make_translator):
    widget = gf.explore(make_translator(d_model=256, d_ff=1024), SENTENCE)
    header, buffers = widget.answer({"kind": "payload"})
    assert header["payload"]["weights"] is None
    assert header["payload"]["trace"]["data"] == {"buffer": 0}
    assert len(buffers) == 1
    [page] = Frames(widget._repr_mimebundle_()[0]["text/html"]).pages
    assert '"recorded":true' in page


@pytest.mark.slow
def test_a_recording_that_is_too_long_is_replaced_by_the_reason(make_translator):
    static = gf.explore(make_translator(d_ff=12_000, extra_length=0), "the cat " * 120, live=False)
    assert re.fullmatch(r"<p>.*: expected a page of at most 10 MB, got 3\d\.\d MB for 241 .*</p>", static._repr_html_())


def test_a_view_gets_answers_and_errors_with_the_number_of_its_question(make_translator):
    widget = gf.explore(make_translator())
    header, [numbers] = widget.answer({"kind": "trace", "source_ids": [4, 2], "target_ids": [1], "id": "b"})
    assert header["id"] == "b"
    assert len(numbers) == 4 * (header["points"][-1]["offset"] + np.prod(header["points"][-1]["shape"]))
    assert widget.answer({"kind": "nothing", "id": "c"})[0]["id"] == "c"
    assert "got 'nothing'" in widget.answer({"kind": "nothing", "id": "c"})[0]["error"]


@pytest.mark.slow
def test_snapshots_are_offered_if_python_can_send_them(make_translator):
    translator = make_translator()
    Snapshots(translator.bundle.folder / "snapshots", keep=3).save(translator.model, 16)
    widget = gf.explore(translator)
    assert widget.answer({"kind": "payload"})[0]["payload"]["checkpoints"] == [{"step": 16, "data": None}]
    assert len(widget.answer({"kind": "checkpoint", "step": 16})[1][0]) == 2 * sum(
        one.numel() for one in translator.model.parameters()
    )
    assert '"checkpoints":[]' in Frames(gf.explore(translator, live=False)._repr_html_()).pages[0]


@pytest.mark.usefixtures("without_anywidget")
def test_without_anywidget_the_page_is_shown(make_translator):
    assert isinstance(gf.explore(make_translator()), StaticExplorer)
    with pytest.raises(MissingDependencyError, match=r"run `pip install .* '\.\[notebook\]'`"):
        gf.explore(make_translator(), live=True)


@pytest.mark.slow
@pytest.mark.usefixtures("without_anywidget")
def test_without_anywidget_a_large_model_gives_a_warning(make_translator):
    with pytest.warns(UserWarning, match=r"too large for a page.*'\.\[notebook\]'"):
        gf.explore(make_translator(d_model=256, d_ff=1024))


# A real notebook


@pytest.fixture
def executed(make_translator, tmp_path, monkeypatch):
    """Return an executed notebook that explores a model with hostile words."""
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))
    monkeypatch.setenv("JUPYTER_RUNTIME_DIR", str(tmp_path / "runtime"))
    translator = make_translator("</script><script>a</script> the cat", "le chat <b>", name="<i>run")
    translator.bundle.save(translator.model)
    code = f"import glassformer as gf\ngf.explore({str(translator.bundle.folder)!r}, 'the cat')"
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(code, id="explored")])
    NotebookClient(notebook, timeout=120, kernel_name="python3").execute()
    return notebook


@pytest.mark.slow
def test_a_notebook_that_a_program_executes_and_exports_shows_the_page(executed):
    [output] = executed.cells[0].outputs
    assert output.data.keys() == {"text/plain", "text/html"}
    assert output.data["text/plain"].startswith("explorer of <i>run: the cat →")
    assert "widgets" not in executed.metadata
    [page] = Frames(HTMLExporter().from_notebook_node(executed)[0]).pages
    assert page == Frames(output.data["text/html"]).pages[0]
