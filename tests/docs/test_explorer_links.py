"""Links into the explorer: each link opens what its text names, on the page of the demo."""

import json
import re
import runpy
from collections.abc import Callable
from dataclasses import dataclass
from html import unescape
from pathlib import Path
from time import monotonic, sleep
from typing import Any
from urllib.parse import parse_qsl

import pytest
from chapters import BOOK
from maps import HEADS, MAPS, STRINGS, map_page
from pages import DOCS, ROOT

from glassformer import Translator
from glassformer.built_in import trained_demo
from glassformer.watch.explorer.standalone import write_page

pytestmark = [pytest.mark.docs, pytest.mark.browser]

LINK = re.compile(r"\[([^\[\]]*)\]\([^()\s]*runs/demo/explorer\.html#?([^()\s]*)\)")
ON_MAPS = re.compile(r'<a href="[^"]*explorer\.html#([^"]*)">([^|]*?)</a>')
FRAME = re.compile(r'IFrame\("[^"]*explorer\.html#?([^"]*)"')
SENTENCE_END = re.compile(r"(?<=\. )|(?<=。)")
QUOTED = re.compile(r'[*"“`]([^*"”“`]+)[*"”`]')
LABELS = {label for both in STRINGS.values() for label in both}
BOXES = {
    "self_attention": ("self-attention", "自注意力"),
    "cross_attention": ("cross-attention", "交叉注意力"),
    "feed_forward": ("feed-forward", "前馈网络"),
    "embedding": ("embedding", "嵌入"),
    "positions": ("position", "位置"),
    "linear": ("linear", "线性层"),
    "softmax": ("softmax", "softmax"),
}
"""The names of a box in texts and on the page, in English and Chinese."""
UNAPPLIED = """(wanted) => {
  const { app } = glassformer, { sentence, search } = app.state;
  const { name, index } = app.state.selected ?? { name: "", index: [] };
  const selected = { name, index: wanted.selected?.index.length ? index : [] }; // with [], the page chooses
  const given = { ...app.state, ...app.changes, text: sentence, beam: search.beamSize, selected };
  const isAlike = (key) => JSON.stringify(given[key]) === JSON.stringify(wanted[key]);
  const isStill = document.getAnimations().every((one) => one.playState !== "running");
  return app.state.busy || !isStill ? ["busy"] : Object.keys(wanted).filter((key) => !isAlike(key));
}"""
SEEN = """() => {
  const isSeen = (one) => one.checkVisibility({ opacityProperty: true, visibilityProperty: true });
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  const texts = [...document.querySelectorAll("select")].filter(isSeen).map((one) => one.selectedOptions[0]?.label);
  while (walker.nextNode()) {
    const { parentElement, textContent } = walker.currentNode;
    if (!parentElement.closest("select") && isSeen(parentElement)) texts.push(textContent);
  }
  return texts.join(" ").replace(/\\s+/g, " ");
}"""
"""A script that returns the visible texts on the page; of a drop-down list, only the chosen entry."""


@dataclass(frozen=True, slots=True)
class Link:
    """A link: its file, its label, the sentence around it, and the state in its address."""

    file: str
    label: str
    sentence: str
    address: str

    @property
    def state(self) -> dict[str, Any]:
        """The fields of the address, by key."""
        return {key: _read(value) for key, value in parse_qsl(self.address)}


def _read(value: str) -> Any:
    try:
        return json.loads(value)
    except ValueError:
        return value


def links_of(path: Path) -> list[Link]:
    """Return the links of a chapter, an experiment or a document."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".py":
        text = re.sub(r"^# ?(?!%%)", "", text, flags=re.MULTILINE)
    found = [Link(str(path.relative_to(ROOT)), "", "", address) for address in FRAME.findall(text)]
    for paragraph in re.split(r"\n\s*\n|\n(?=- )", text):
        joined = " ".join(paragraph.split())
        for match in LINK.finditer(joined):
            [sentence] = [one for one in SENTENCE_END.split(joined) if match[0] in one]
            found.append(Link(str(path.relative_to(ROOT)), match[1], LINK.sub(r"\1", sentence), match[2]))
    return found


def links_of_map(name: str, language: str) -> list[Link]:
    """Return the links of a reading map."""
    page, _ = map_page(name, {f"maps/{name}"}, language)
    labelled = [(address, label.replace("<wbr>", "")) for address, label in ON_MAPS.findall(page)]
    return [Link(f"maps/{name}.{language}", label, label, unescape(address)) for address, label in labelled]


FILES = [*BOOK.rglob("*.py"), *BOOK.rglob("*.md"), *DOCS.rglob("*.md"), ROOT / "README.md"]
LINKS = [link for path in sorted(FILES) for link in links_of(path)]
LINKS += [link for name in MAPS for language in HEADS for link in links_of_map(name, language)]


@pytest.fixture(scope="module")
def explorer(window, tmp_path_factory):
    """Return a function that opens a state on the page of the demo, as trained here or else as in the package."""
    path = tmp_path_factory.mktemp("demo") / "explorer.html"
    write_page(Translator.load(trained_demo(ROOT / "runs" / "demo")), path, snapshots=3)
    page = window.new_page()
    page.set_viewport_size({"width": 1440, "height": 900})
    page.emulate_media(reduced_motion="reduce")
    page.goto(f"{path.as_uri()}#chapter=0")
    page.evaluate("() => glassformer.ready.then(() => null)")

    def show(link: Link) -> Any:
        page.evaluate("(hash) => { location.hash = hash; }", f"#{link.address or 'chapter=0'}")
        assert awaited(lambda: page.evaluate(UNAPPLIED, link.state)) == []
        assert page.locator("[role=alert]").all_text_contents() == [""]
        return page

    yield show
    page.close()


def names(page: Any, state: dict[str, Any]) -> list[str]:
    """Return the page's names for what a state opens; empty for the whole figure, or if a task names it."""
    if "task" in state:
        return []
    keys = [f"mistake.{one}" for one in state.get("mistakes", [])]
    if chapter := state.get("chapter"):
        # the strip shows a short name for the first chapter
        keys.append("chapter.short.1" if chapter == 1 else f"chapter.{chapter}")
    if "panel" in state:
        keys.append(f"panel.{state['panel']}")
    found = [page.evaluate("(key) => glassformer.app.t(key)", key) for key in keys]
    if "zoom" in state and "panel" not in state:
        box = state["zoom"]["box"].removesuffix(".add").rpartition(".")[2]
        found.append(BOXES[box][state.get("language") == "zh"])
    return found + ([state["selected"]["name"]] if "selected" in state else [])


def parts(name: str) -> list[str]:
    """Return the parts in which the page shows the name of a point; other names have one part."""
    return [one for one in re.split(r"\.(?=[a-z]+$)", name) if one]


def unseen(page: Any, words: list[str]) -> list[str]:
    """Return the words that are not visible on a page."""
    seen = page.evaluate(SEEN).casefold()
    return [one for one in words if one.casefold() not in seen]


def awaited(missing: Callable[[], list[str]]) -> list[str]:
    """Wait until nothing is missing; give up after half a minute, and return what is still missing."""
    last = monotonic() + 30
    while (found := missing()) and monotonic() < last:
        sleep(0.02)
    return found


def check_seen(page: Any, state: dict[str, Any], named: list[str]) -> None:
    """Check that everything that a state names is visible: its things, the layer of an opened box, and the lit word."""
    wanted = [part for name in named for part in parts(name)]
    layers = re.findall(r"layers\.(\d+)", state.get("zoom", {}).get("box", ""))
    wanted += [f"第 {one} 层" if state.get("language") == "zh" else f"layer {one}" for one in layers]
    if "row" in state:
        wanted.append(page.evaluate("(row) => glassformer.app.result.current.outputTokens[row]", state["row"]))
    assert awaited(lambda: unseen(page, wanted)) == []


@pytest.mark.parametrize(
    "link", sorted(LINKS, key=lambda link: link.address), ids=lambda link: f"{link.file}-{link.label}"
)
def test_a_link_opens_what_its_sentence_names(explorer, link):
    page, state = explorer(link), link.state
    named = names(page, state)
    assert not named or any(one.casefold() in link.sentence.casefold() for one in named), (named, link.sentence)
    quoted = [*QUOTED.findall(link.label), *(one for one in QUOTED.findall(link.sentence) if one in LABELS)]
    check_seen(page, state, [*named, *quoted])


def test_each_box_of_the_overview_opens_in_the_explorer(explorer):
    for box in runpy.run_path(str(BOOK / "overview.py"))["boxes"].values():
        link = Link("overview.py", box.text, box.text, box.more["numbers"].partition("#")[2])
        page = explorer(link)
        named = names(page, link.state)
        assert bool(named) == ("zoom" in link.state), box.text
        check_seen(page, link.state, named)
