"""Nothing on a page is too small, cut off, covered or out of reach: one table of states, sizes and themes.

Each page is loaded once. The sweep then goes from address to address in the same tab, resizes the window, and lets
`measure.js` list all defects of a state. The measure knows roles and positions, no class names; what a new edition of
the page changes is the table below.
"""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any
from urllib.parse import quote_plus

import pytest
from axe_playwright_python.base import AXE_FILE_PATH
from tools import states

import glassformer as gf
from browser import test_chapters, test_numbers, test_stage, test_training_panel, zooms
from browser.test_recorded import KEY, MANY_WORDS
from glassformer.built_in import BUILT_IN
from glassformer.corpus.tasks import CLASSIC
from glassformer.watch.explorer.payload import recorded_payload
from tiers import in_tiers

Size = tuple[int, int]
Looks = tuple[str, str]

MEASURE = (Path(__file__).parent / "measure.js").read_text(encoding="utf-8")
GO = """async ([address, view]) => {
  const { app } = glassformer;
  const field = document.activeElement;
  for (const key of field?.matches("[role=combobox]") ? ["Escape", "Escape"] : []) // closes its list, then the field
    field.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true, cancelable: true }));
  const shown = Promise.withResolvers();
  const leave = [
    app.on(["theme"], () => shown.resolve()),
    app.on(["problem"], ({ problem }) => problem && shown.reject(new Error(problem))),
  ];
  location.hash = location.hash.endsWith("&&") ? `${address}&` : `${address}&&`; // never the page's own spelling
  await shown.promise;
  for (const one of leave) one();
  app.show({ temperature: 1, lecture: false, ...view });
}"""
SETTLE = """async () => {
  const app = globalThis.glassformer?.app;
  let quiet = 0;
  let sizes = "";
  const observer = new MutationObserver(() => (quiet = 0));
  observer.observe(document, { subtree: true, childList: true, attributes: true, characterData: true });
  const sizesNow = () => String([...document.querySelectorAll("section, section > *, section > * > *, h2")]
    .flatMap((one) => [one.offsetTop, one.offsetWidth, one.clientHeight, one.scrollHeight]));
  const isMoving = () => document.getAnimations().some((one) =>
    one.playState === "running" && one.effect.getComputedTiming().endTime < Infinity);
  const lacksText = () =>
    [...document.querySelectorAll("h2")].some((one) => one.checkVisibility() && !one.textContent);
  const isBusy = () => app?.state.busy || document.querySelector("section[aria-busy=true]");
  for (let frame = 0; quiet < 4; frame++) {
    await new Promise(requestAnimationFrame);
    await new Promise((done) => setTimeout(done)); // after the frame's observers of sizes
    const now = sizesNow();
    quiet = now !== sizes || isBusy() || isMoving() || lacksText() ? 0 : quiet + 1;
    sizes = now;
    if (frame > 2000) throw new Error("the page does not come to rest");
  }
  observer.disconnect();
}"""

DESK, LOW, WIDE, HUGE, PHONE, NARROW = (1440, 900), (1280, 720), (1920, 1080), (2560, 1440), (390, 844), (360, 740)
SMALL, FLAT = (1024, 640), (1366, 650)
"""Windows in which the figure is scaled down."""
DESKS: list[Size] = [DESK, LOW]
SIZES: list[Size] = [DESK, LOW, WIDE, PHONE]
ENGLISH, CHINESE, DARK, DARK_CHINESE = (("light", "en"), ("light", "zh"), ("dark", "en"), ("dark", "zh"))
BOTH: list[Looks] = [ENGLISH, CHINESE]
THEMES: list[Looks] = [ENGLISH, DARK_CHINESE]


@dataclass(frozen=True, kw_only=True)
class At:
    """A state of a page, with the sizes of the window and the themes and languages in which the sweep measures it."""

    address: str = ""
    """The fragment; `{each}` stands for each value of `each`."""
    each: Sequence[Any] | str = ("",)
    """Values for the address, or a JavaScript expression that returns them."""
    view: Mapping[str, Any] = field(default_factory=dict)
    """Parts of the page's state that an address cannot have."""
    sizes: Sequence[Size] = (DESK,)
    looks: Sequence[Looks] = (ENGLISH,)
    then: Callable[[Any], None] | None = None
    """What the reader does in this state before the sweep measures it."""
    wanted: Mapping[str, Any] = field(default_factory=dict)
    """Limits that differ from `LIMITS`."""
    known: str = "(?!)"
    """A pattern of the defects that the page still has in this state."""


LIMITS: dict[str, Any] = {
    "least": {"*": 12},  # px of letters, by selector
    "targets": {},  # width and height of controls in px, by selector
    "dragged": ":not(*)",  # what a finger drags
    "stops": 999,  # stops of the Tab key
    "scrolls": [],  # what may scroll: "page" (down), parts of the page "across" and "down"
    "order": [],  # selectors of what stands one below the other
    "alike": "",  # what has one background
    "inside": {},  # what is seen as a whole inside a container, by selector; "": without scrolling
    "counts": {},  # the number of elements, or a JavaScript expression for it, by selector
    "named": ":not(*)",  # what has room for its letters
    "apart": False,  # whether no text lies on a picture
    "edges": ":not(*)",  # the texts of a picture that cross no edge of a box
    "axe": False,
}
AXE = {"axe": True}
DOWN, PARTS = {"scrolls": ["page", "across"]}, {"scrolls": ["across", "down"]}
ANYWHERE = {"scrolls": ["page", "across", "down"]}
NAMES = {"edges": "[data-box] text"}
FIGURE = {"apart": True, "edges": "[data-box] text, [data-guess] text, [data-word] text"}

STAGE, ZOOMS, CHAPTERS = test_stage.SENTENCE, zooms.SENTENCE, test_chapters.SENTENCE
LONG = "the big black dog sees a cat and a big black cat ."
CROSS, MASKED = "decoder.layers.1.cross_attention", "decoder.layers.0.self_attention"
NETWORK, SUM = "decoder.layers.1.feed_forward", "encoder.layers.0.self_attention.add"
SLIDER = "[role=slider]"
PREFIX = "prefix=le+grand+chien+noir+et+dort"
WORDS = "[0, 1, 2, 3, 20, -2, -1].map((at) => at < 0 ? at + glassformer.app.result.current.outputTokens.length : at)"
ALL_WORDS = """(({ sourceTokens, targetTokens, outputTokens }) => sourceTokens.length + targetTokens.length
  + outputTokens.length)(glassformer.app.result.current)"""
BOXES = "[...new Set([...document.querySelectorAll('svg [data-box]')].map((one) => one.dataset.box))]"
ROWS = "row=2&sourceWord=2"
NOTE = "^(p|h2|bdi) .* (crosses text|lies on the picture's)|^text .* crosses (p|h2|bdi) |text “Memory"
"""In a low window, and with the norm first, the sentence and the note below it grow over the figure when the head's
effect has been measured."""
MORE = "^summary “More” overlaps the text of h2 “Softmax"
"""On a phone, the button of the menu touches the longest sentence."""
EXPLANATION = "^div “← .* scrolls down by "
"""In a low window, the explanation of a word is longer than its column; on a phone, until the panel is drawn."""
FIELD = {
    "order": ["[role=listbox]", "[role=combobox]"],
    "inside": {":has(> [role=combobox]) > [aria-hidden]": ":has(> [role=combobox])"},
}
ONE_GROUND = {"alike": "[data-stop^=step]:not([aria-current]) > i"}


def coded(value: Any) -> str:
    return quote_plus(json.dumps(value))


def of(sentence: str, rest: str) -> str:
    return f"text={quote_plus(sentence)}&{rest}"


def zoom(box: str, *, key: int | None = None, **more: Any) -> str:
    return f"zoom={coded({'box': box, 'key': key, **more})}"


def cell(name: str, *index: int) -> str:
    return f"selected={coded({'name': name, 'index': index})}"


def types(page: Any) -> None:
    """Begin a sentence of one's own with a word that the model lacks."""
    page.get_by_role("button", name=re.compile("Change the sentence|修改句子")).click()
    page.keyboard.type("the zebra b")


def opens_everything(page: Any) -> None:
    """Open each section of a panel, and what can be done with a word."""
    word = page.locator("[data-key='word 1']")
    if word.count():
        word.click()
    page.evaluate("document.querySelectorAll('section details').forEach((one) => { one.open = true; })")


def opens_details(page: Any) -> None:
    page.evaluate("document.querySelectorAll('details').forEach((one) => { one.open = true; })")


def chooses_another_word(page: Any) -> None:
    page.locator("[data-stop^='word ']").nth(3).click()


ACTS = [f"{chapter}&act={act}" for chapter, acts in states.ACTS.items() for act in range(acts)]
SECOND = of("the black cat sleeps .", f"second={coded({'text': 'the big cat sleeps .'})}")
CHANGES = f"masks={coded({SUM.removesuffix('.add'): [[0, 0, 0, False]]})}&mistakes={coded(['no_scale'])}"
TENSORS = [
    cell(f"{CROSS}.weights", 1, 1, 2),
    cell("log_probs", 0, 5),
    cell("encoder.layers.0.self_attention.normed", 1, 2),
]
SEGMENTS = [
    f"{zoom(CROSS)}&panel=weights",
    f"{zoom(CROSS)}&panel=rollout",
    f"{zoom(NETWORK)}&panel=weights",
    f"{zoom(SUM)}&panel=guesses",
]

BESIDE = {"apart": True, "scrolls": ["across"]}
FIGURE_STATES = [
    At(address="row={each}", each=WORDS, sizes=[DESK, WIDE, PHONE], wanted=DOWN),
    At(address="row={each}", each=WORDS, sizes=[LOW], wanted=DOWN, known=NOTE),
    At(address="row={each}", each=[2, 3], sizes=[SMALL, FLAT], wanted=DOWN, known=NOTE),
    At(sizes=[DESK, PHONE], looks=THEMES, wanted=DOWN | AXE),
    At(sizes=[DESK, PHONE], looks=[CHINESE, DARK], wanted=DOWN),
    At(address=f"{SECOND}&row={{each}}", each=range(2), sizes=DESKS, looks=THEMES, wanted=BESIDE),
    At(address=f"{SECOND}&row={{each}}", each=range(2), sizes=[PHONE], looks=THEMES, wanted=DOWN),
    At(address=f"{SECOND}&row=2", sizes=DESKS, looks=THEMES, wanted=BESIDE | AXE),
    At(address=f"{SECOND}&row=2", sizes=[PHONE], looks=THEMES, wanted=DOWN | AXE),
    At(sizes=[DESK], looks=BOTH, then=types, wanted=DOWN | FIELD),
    At(sizes=[PHONE], looks=BOTH, then=types, wanted=DOWN | FIELD | AXE),
    At(sizes=[LOW], looks=BOTH, then=types, wanted=DOWN | FIELD, known=NOTE),
    At(
        address=of("the black cat sleeps .", f"sheet=true&panel=changes&{CHANGES}"),
        looks=[ENGLISH, DARK],
        then=opens_everything,
        wanted=PARTS | AXE,
    ),
]
NAME_STATES = [
    At(address="box={each}", each=BOXES, sizes=[DESK], wanted=DOWN | NAMES),
    At(address="box={each}", each=BOXES, sizes=[PHONE], wanted=DOWN | NAMES, known=MORE),
    At(address="box={each}", each=BOXES, sizes=[LOW], wanted=DOWN | NAMES, known=NOTE),
]
HEADS = [zoom(CROSS), zoom(MASKED, mask=True)]
SUMS = [zoom(NETWORK), zoom(f"{NETWORK}.add"), zoom(SUM)]
BOX_STATES = [
    At(address=of(LONG, f"{PREFIX}&{ROWS}&{{each}}"), each=HEADS, looks=THEMES, wanted=AXE),
    At(address=of(LONG, f"{PREFIX}&{ROWS}&{{each}}"), each=HEADS, sizes=[LOW], looks=BOTH),
    At(address=f"{ROWS}&{{each}}", each=SUMS, looks=THEMES, wanted=AXE),
    At(address=f"{ROWS}&{{each}}", each=SUMS, sizes=[LOW], looks=BOTH),
    At(
        address=f"{ROWS}&{{each}}",
        each=[*HEADS, *SUMS, zoom("encoder.embedding")],
        sizes=[SMALL],
        wanted={"scrolls": ["across"]},
    ),
    At(
        address="row=1&{each}",
        each=[zoom("decoder.softmax"), zoom("decoder.linear")],
        sizes=DESKS,
        wanted=ONE_GROUND,
        known=EXPLANATION,
    ),
    At(
        address="row=1&{each}",
        each=[zoom("decoder.softmax"), zoom("decoder.linear")],
        sizes=DESKS,
        looks=[ENGLISH, DARK],
        then=chooses_another_word,
        wanted=PARTS | ONE_GROUND,
    ),
    At(address=f"{ROWS}&{zoom('encoder.embedding')}", looks=[ENGLISH, DARK], wanted=AXE),
    At(address=f"{ROWS}&{zoom('encoder.embedding')}", sizes=[LOW], looks=[ENGLISH, DARK]),
    At(address=f"{ROWS}&{{each}}", each=[zoom("decoder.softmax"), zoom("decoder.linear")], wanted=AXE),
    At(address="{each}", each=SEGMENTS, looks=THEMES, wanted=AXE),
    At(address="{each}", each=SEGMENTS, sizes=[LOW], looks=BOTH),
    At(address="{each}", each=SEGMENTS, sizes=[PHONE], looks=BOTH, wanted=ANYWHERE),
    At(
        address=f"{ROWS}&{zoom(CROSS)}",
        sizes=[PHONE],
        wanted=DOWN | {"order": ["h2", "table", "svg[data-stop^=query]:not(table *)"]},
        known=EXPLANATION,
    ),
    At(
        address=f"{ROWS}&{{each}}",
        each=[zoom(NETWORK), zoom(f"{NETWORK}.add"), zoom("encoder.embedding")],
        sizes=[PHONE],
        wanted=DOWN | {"order": ["h2", "[aria-description]"]},
        known=EXPLANATION,
    ),
    At(
        address=f"row=1&{zoom('decoder.softmax')}",
        sizes=[PHONE],
        wanted=DOWN | {"order": ["h2", "table", "[data-stop=ticks]"], "targets": {"tbody tr:has(button)": [24, 24]}},
        known=EXPLANATION,
    ),
    At(
        address=f"row=1&{zoom('decoder.softmax')}&panel={{each}}",
        each=["why", "beam"],
        sizes=[PHONE],
        wanted=ANYWHERE | AXE,
    ),
]
HALF = "^text “(K V|[^“]+ [0-9.]+)” is covered by rect"
"""Where an act veils the other boxes, the edge of the veil crosses the labels that stand on the edge of a box."""
ACT = {"stops": 9}
SHORT = ["4&act=0", "4&act=1", "4&act=2", "5&act=0", "5&act=1"]
"""The acts whose explanation has one paragraph below its heading in a low window."""
CHAPTER_STATES = [
    At(address="chapter={each}", each=ACTS[:3], sizes=[DESK], wanted=ACT | AXE),
    At(address="chapter={each}", each=ACTS[3:], sizes=[DESK], wanted=ACT | AXE | {"apart": True}, known=HALF),
    At(address=f"chapter={ACTS[0]}", sizes=[LOW], wanted=ACT | DOWN),
    At(address="chapter={each}", each=ACTS[1:3], sizes=[LOW], wanted=ACT),
    At(
        address="chapter={each}",
        each=[act for act in ACTS[3:] if act not in SHORT],
        sizes=[LOW],
        wanted=ACT | {"apart": True},
        known=HALF,
    ),
    At(
        address="chapter={each}",
        each=SHORT,
        sizes=[LOW],
        wanted=ACT | {"apart": True, "counts": {"h2 + p": 1}},
        known=HALF,
    ),
    At(address="chapter={each}", each=ACTS[:3], sizes=[SMALL, FLAT], wanted=ACT | DOWN),
    At(address="chapter={each}", each=ACTS[3:], sizes=[SMALL, FLAT], wanted=ACT, known=HALF),
    At(address="chapter={each}", each=ACTS[:3], sizes=[HUGE], looks=[CHINESE], wanted=ACT),
    At(
        address="chapter={each}", each=ACTS[3:], sizes=[HUGE], looks=[CHINESE], wanted=ACT | {"apart": True}, known=HALF
    ),
    At(address="chapter={each}", each=ACTS, sizes=[PHONE], looks=[CHINESE], wanted=ACT | DOWN | AXE, known=HALF),
]
IN_A_COLUMN = ANYWHERE | {
    "targets": {"section :is(button, input, select)": [24, 40]},
    "order": ["h2", "nav", ".gfn-room"],
}
NUMBER_STATES = [
    At(address="{each}", each=TENSORS, looks=THEMES, wanted=PARTS | AXE),
    At(address="{each}", each=TENSORS, looks=[CHINESE, DARK], wanted=PARTS),
    At(address="{each}", each=TENSORS, sizes=[PHONE], looks=THEMES, wanted=IN_A_COLUMN | AXE),
    At(address="{each}", each=TENSORS, sizes=[PHONE], looks=[CHINESE, DARK], wanted=IN_A_COLUMN),
]
TRAINING_STATES = [
    At(
        address="sheet=true&panel=training",
        sizes=DESKS,
        wanted={"scrolls": ["down"], "inside": {"button:has(+ input[type=range])": ""}},
    )
]
RECORDED_STATES = [
    At(
        address="{each}",
        each=[cell(KEY["name"], *KEY["index"]), cell("log_probs", 0, 5), "panel=beam", "panel=positions"],
        looks=[ENGLISH, DARK],
        wanted=PARTS | AXE,
    ),
    At(
        address="{each}",
        each=[cell(KEY["name"], *KEY["index"]), "panel=beam", "panel=positions"],
        sizes=[NARROW],
        looks=BOTH,
        wanted=ANYWHERE,
    ),
]
REPORT_STATES = [
    At(sizes=[(390, 800)], looks=[ENGLISH, DARK], then=opens_details, wanted=ANYWHERE | AXE | {"least": {"*": 7}}),
    At(sizes=[(1280, 800)], looks=[ENGLISH, DARK], then=opens_details, wanted=ANYWHERE | AXE),
]
TURN = {"targets": {SLIDER: [44, 44]}, "dragged": SLIDER} | AXE
TURNING_STATES = [
    At(address="chapter=1", sizes=[DESK], looks=[ENGLISH], wanted=TURN),
    At(address="chapter=1", sizes=[LOW], looks=[DARK_CHINESE], wanted=TURN),
    At(address="chapter=1", sizes=[PHONE], looks=[CHINESE, DARK], wanted=TURN),
]
DEMO_STATES = [
    At(
        address="box=decoder.cross_attention",
        view={"lecture": True},
        sizes=[LOW, WIDE, HUGE],
        wanted=FIGURE
        | {
            "named": "[data-word] text",
            "least": {"*": 12, "[data-word]": 20},
            "counts": {"[data-word] text": ALL_WORDS},
        },
    ),
    At(address="box={each}", each=BOXES, view={"lecture": True}, sizes=[LOW, WIDE], wanted={"apart": True}),
    At(
        address="chapter=4&act=1",
        view={"lecture": True},
        sizes=[LOW, WIDE],
        wanted={"counts": {"button[title^='Explore freely']": 1}},
    ),
    At(address=of(CLASSIC[1].source, f"panel=guesses&{zoom(f'{CROSS}.add')}"), sizes=DESKS),
]


def go(page: Any, address: str, view: Mapping[str, Any], theme: str, language: str) -> None:
    """Bring the page into a state; a page other than the explorer's has only a theme, that of the system."""
    page.emulate_media(color_scheme=theme, reduced_motion="reduce")  # what glides has the same end
    if page.evaluate("'glassformer' in globalThis"):
        page.evaluate(GO, [f"#{address}&theme={theme}&language={language}", view])


def defects(page: Any, wanted: Mapping[str, Any]) -> list[str]:
    """Return all defects of the page as it stands."""
    if wanted.get("axe") and not page.evaluate("'axe' in globalThis"):
        page.evaluate(AXE_FILE_PATH.read_text(encoding="utf-8") + "; null")
    page.evaluate(SETTLE)
    counts = wanted.get("counts", {})
    counted = {one: page.evaluate(count) if isinstance(count, str) else count for one, count in counts.items()}
    found: list[str] = page.evaluate(MEASURE, {**LIMITS, **wanted, "counts": counted})
    return found


def swept(page: Any, states: Sequence[At]) -> dict[str, list[str]]:
    """Return the defects of a page by state."""
    found = {}
    for at in states:
        for size in at.sizes:
            page.set_viewport_size({"width": size[0], "height": size[1]})
            each = at.each
            if isinstance(each, str):
                page.evaluate(SETTLE)
                each = page.evaluate(each)
            for one in each:
                for theme, language in at.looks:
                    address = at.address.replace("{each}", str(one))
                    go(page, address, at.view, theme, language)
                    if at.then:
                        page.evaluate(SETTLE)
                        at.then(page)
                    wrong = [one for one in defects(page, at.wanted) if not re.search(at.known, one)]
                    if wrong:
                        found[f"{address} {size[0]}×{size[1]} {theme} {language} {at.view or ''}"] = wrong
    return found


def plain(make_translator: Any, explore: Any) -> Any:
    return explore(make_translator(), STAGE, start="figure")


PAGES: dict[str, tuple[Callable[[Any, Any], Any], list[At]]] = {
    "figure": (plain, [*FIGURE_STATES, *NAME_STATES]),
    "pre": (
        lambda make, explore: explore(make(norm="pre"), STAGE, start="figure"),
        [replace(at, known=NOTE) for at in NAME_STATES[:1]],
    ),
    "pre in small windows": (
        lambda make, explore: explore(make(norm="pre"), STAGE, start="figure"),
        [replace(at, known=NOTE) for at in NAME_STATES[1:]],
    ),
    "boxes": (lambda make, explore: explore(make(), ZOOMS, start="figure"), BOX_STATES),
    "chapters": (lambda make, explore: explore(make(), CHAPTERS, start="figure"), CHAPTER_STATES),
    "numbers": (lambda make, explore: explore(make(), test_numbers.SENTENCE, start="figure"), NUMBER_STATES),
    "training": (
        lambda make, explore: explore(
            make(),
            test_training_panel.SENTENCE,
            start="figure",
            label_smoothing=0.1,
            **test_training_panel.checkpoints(make),
        ),
        TRAINING_STATES,
    ),
    "recorded": (
        lambda make, explore: explore(make(target=MANY_WORDS), data=recorded_payload, start="figure"),
        RECORDED_STATES,
    ),
    "turning": (
        lambda make, explore: explore(make(seed=6, extra_length=1), CHAPTERS, start="figure"),
        TURNING_STATES,
    ),
    "demo": (
        lambda make, explore: explore(gf.Translator.load(BUILT_IN), test_stage.ANIMAL, start="figure"),
        DEMO_STATES,
    ),
}


@pytest.mark.parametrize("name", in_tiers(PAGES, PAGES.keys() - {"pre in small windows"}))
def test_nothing_is_small_cut_off_covered_or_out_of_reach(make_translator, explore, name):
    opened, states = PAGES[name]
    found = swept(opened(make_translator, explore), states)
    assert found == {}, "\n".join(f"{at}: {wrong}" for at, wrong in found.items())


def test_nothing_in_a_report_is_small_cut_off_covered_or_out_of_reach(page, report):
    page.goto(report.as_uri())
    assert swept(page, REPORT_STATES) == {}


PLANT = """([rule, html]) => {
  const sheet = new CSSStyleSheet(), added = document.createElement("div");
  sheet.replaceSync(rule);
  for (const { style } of sheet.cssRules)
    for (const name of [...style]) style.setProperty(name, style.getPropertyValue(name), "important");
  document.adoptedStyleSheets.push(sheet);
  added.innerHTML = html;
  if (html) [...document.querySelectorAll("section")].find((one) => one.checkVisibility()).append(added);
  globalThis.dig = () => {
    added.remove();
    document.adoptedStyleSheets = document.adoptedStyleSheets.filter((one) => one !== sheet);
  };
}"""
PANEL = of(ZOOMS, f"{ROWS}&{zoom(NETWORK)}")
ON_A_PHONE = {"sizes": [PHONE], "wanted": DOWN}
NUMBERS = At(address=TENSORS[0], sizes=[PHONE], wanted=IN_A_COLUMN)
ABOVE = "position: absolute; left: 0; top: 0;"
PLANTED: dict[str, tuple[At, str, str]] = {
    "small letters": (At(), "h2 { font-size: 11px }", "h2 .* has letters of 11.0 px"),
    "small letters in a picture": (At(), "svg text { font-size: 11px }", "text .* has letters of 11.0 px"),
    "a shrunk picture": (At(), "svg text { transform: scale(0.5) }", "text .* px, at least 12 are wanted"),
    "small letters in a panel": (At(address=PANEL), "section td { font-size: 11px }", "has letters of 11.0 px"),
    "small letters of a kind": (At(wanted={"least": {"h2": 20}}), "h2 { font-size: 18px }", "at least 20 are wanted"),
    "a text cut by its frame": (At(), "h2 { overflow: hidden; max-width: 90px; height: 36px }", "is cut off"),
    "two texts of a picture": (At(), "svg text { font-size: 40px }", "text .* crosses text"),
    "two texts of a panel": (At(address=PANEL), "section h2 { margin-bottom: -40px }", "crosses"),
    "a sentence over the figure": (At(wanted=FIGURE), "h2 { font-size: 90px }", "h2 .* lies on the picture's"),
    "a box over a text": (
        At(),
        f"<p style='{ABOVE} right: 0; bottom: 0; background: red'>red</p>",
        "is covered by p",
    ),
    "a name outside its box": (At(wanted=NAMES), "[data-box] text { font-size: 40px }", "crosses the edge of its box"),
    "a text outside the page": (At(), "h2 { position: fixed; left: -60px }", "h2 .* begins outside the page"),
    "a text below the window": (At(), "h2 { position: fixed; top: 890px }", "h2 .* ends below the window"),
    "a wide page": (At(**ON_A_PHONE), "body { min-width: 999px }", "the page is 999 px wide"),
    "a high page": (At(), "body { min-height: 999px }", "the page is 999 px high"),
    "a panel that scrolls": (
        At(address=PANEL),
        "[aria-description] { height: 200px; overflow: auto }",
        "group .* scrolls down",
    ),
    "an explanation that scrolls": (At(address=PANEL), "section h2 { min-height: 900px }", "scrolls down"),
    "two controls on one place": (At(), "button { margin-left: -40px }", "button .* overlaps button"),
    "a control over a text": (At(), "summary { position: relative; left: -60px }", "overlaps the text of h1"),
    "a control that is covered": (At(), f"<i style='{ABOVE} right: 0; height: 60px'></i>", "button .* is covered by i"),
    "a control for no finger": (NUMBERS, "section button { height: 30px; min-height: 0 }", "24 × 40 are wanted"),
    "parts in the wrong order": (NUMBERS, ".gfn-room { position: relative; top: -2000px }", "gfn-room begins above"),
    "a panel above its explanation": (
        At(address=PANEL, sizes=[PHONE], wanted=ANYWHERE | {"order": ["h2", "[aria-description]"]}),
        "[aria-description] { position: relative; top: -700px }",
        "begins above the end of h2",
    ),
    "a step that looks different": (
        At(address=f"row=1&{zoom('decoder.softmax')}", wanted=ONE_GROUND),
        "thead [data-stop^=step] > i { background: red }",
        "has 2 backgrounds",
    ),
    "a handle that scrolls": (
        At(address="chapter=1", wanted=TURN),
        f"{SLIDER} {{ touch-action: auto }}",
        "scrolls the page when a finger drags it",
    ),
    "a small handle": (At(address="chapter=1", wanted=TURN), f"{SLIDER} {{ width: 30px }}", "44 × 44 are wanted"),
    "many stops": (
        At(wanted={"stops": 9}),
        f"<p style='{ABOVE} top: 40px'>{'<button>stop</button>' * 9}</p>",
        "the Tab key stops",
    ),
    "a pale text": (At(), "h2 { color: #999 }", "h2 .* has a contrast of"),
    "a pale text of a picture": (At(), "svg text { fill: #999 }", "text .* has a contrast of"),
    "a pale text in the dark": (At(looks=[DARK]), "h2 { color: #555 }", "h2 .* has a contrast of"),
    "a control without a name": (At(wanted=AXE), "<button></button>", "axe: button-name"),
    "a field that is cut": (
        At(then=types, wanted=FIELD),
        ":has(> [role=combobox]) > [aria-hidden] { height: 70px }",
        "is not seen as a whole",
    ),
    "a control below the edge of its panel": (
        At(address=PANEL, wanted={"inside": {"[aria-description] button": ""}}),
        "[aria-description] { height: 100px; overflow: auto }",
        "is not seen as a whole",
    ),
    "a word that is left out": (
        At(wanted={"counts": {"h2": 1}}),
        "h2 { display: none }",
        "0 are h2, 1 are wanted",
    ),
    "a word without room": (
        At(address="chapter=1", wanted={"named": "[data-word]"}),
        f"<p data-word style='{ABOVE}'>…</p>",
        "stands for a word that has no room",
    ),
}
"""For each kind of defect: a state, what plants the defect in it (a rule or an element), and what the sweep says."""


def test_each_planted_defect_is_found_and_none_before(make_translator, explore):
    page = plain(make_translator, explore)
    missed = {}
    state = None
    for name, (at, planted, said) in sorted(PLANTED.items(), key=lambda one: repr(one[1][0])):
        if at != state:
            assert swept(page, [at]) == {}
            state = at
        page.evaluate(PLANT, ["", planted] if planted.startswith("<") else [planted, ""])
        found = defects(page, at.wanted)
        page.evaluate("dig()")
        if not any(re.search(said, one) for one in found):
            missed[name] = found
    assert missed == {}
