"""The story: each scene changes what it says, with the model's own numbers, and the page stays as it was."""

import math
import re
from typing import Any

import pytest
import torch

import glassformer as gf
from browser.test_view import problems
from glassformer.watch.explorer.payload import recorded_payload, rounded
from glassformer.watch.inspection import without_heads

SENTENCE = "the cat sees a big black dog ."
PAIR = ["the big cat sleeps .", "the black dog sleeps ."]
STORY = {"opens": "first", "pair": PAIR}
ATTENTIONS = [
    *(f"encoder.layers.{layer}.self_attention" for layer in (0, 1)),
    *(f"decoder.layers.{layer}.{kind}" for kind in ("cross_attention", "self_attention") for layer in (0, 1)),
]
SETTLED = """() => new Promise((done, fail) => {
  const last = performance.now() + 20000;
  const look = () => {
    const button = document.querySelector(".gf-story-act");
    if (button && button.textContent && !button.disabled) setTimeout(done, 60);
    else if (performance.now() > last) fail(new Error("the scene is not ready"));
    else setTimeout(look, 10);
  };
  setTimeout(look, 20);
})"""


def settled(page: Any) -> Any:
    page.evaluate(SETTLED)
    return page


def press(page: Any, name: str) -> None:
    """Press the scene's main button, which has this name, and wait until the scene shows what it made."""
    assert page.locator(".gf-story-act").inner_text() == name
    page.locator(".gf-story-act").click()
    settled(page)


def told(page: Any) -> str:
    return page.locator(".gf-story-told").inner_text()


def data(page: Any, within: str) -> list[float]:
    found: list[float] = page.locator(f"{within} data").evaluate_all("(all) => all.map((one) => Number(one.value))")
    return found


def margins(page: Any) -> list[float]:
    """Return the margin of each sentence on the page: the shares of its two words are p and 1 − p."""
    return [math.log(share / (1 - share)) for share in data(page, ".gf-story-card li:first-child")]


class Contest:
    """The contest of two sentences as PyTorch computes it."""

    def __init__(self, translator: gf.Translator, texts: list[str]) -> None:
        self.model, bundle = rounded(translator.model), translator.bundle
        self.sources = [torch.tensor([[*bundle.source_tokenizer.encode(text), 2]]) for text in texts]
        same = gf.Translator(bundle, self.model)
        ids = [[*bundle.target_tokenizer.encode(one.text), 2] for one in same.translate(texts)]
        self.place = next(at for at, (one, other) in enumerate(zip(*ids, strict=False)) if one != other)
        self.target = torch.tensor([[1, *ids[0][: self.place]]])
        self.words = [one[self.place] for one in ids]

    def margins(self, heads: dict[str, list[int]]) -> list[float]:
        with torch.no_grad(), gf.intervene(self.model, without_heads(heads)):
            rows = [self.model(source, self.target).log_softmax(-1)[0, -1] for source in self.sources]
        (first, other), (word, rival) = rows, self.words
        return [(first[word] - first[rival]).item(), (other[rival] - other[word]).item()]

    def effects(self, off: dict[str, list[int]]) -> list[tuple[float, str, int]]:
        """Return the effect of each further head, the strongest first."""
        whole = sum(self.margins(off))
        heads = [(name, head) for name in ATTENTIONS for head in range(self.model.config.heads)]
        rest = [(name, head) for name, head in heads if head not in off.get(name, [])]
        return sorted((sum(self.margins(plus(off, *one))) - whole, *one) for one in rest)


def plus(off: dict[str, list[int]], name: str, head: int) -> dict[str, list[int]]:
    return off | {name: [*off.get(name, []), head]}


def test_the_first_chapter_opens_at_the_first_visit(make_translator, explore):
    page = explore(make_translator(), SENTENCE, view="stage", story=STORY)
    assert page.evaluate("glassformer.app.state.chapter") == 1
    page.reload()
    page.evaluate("() => glassformer.ready.then(() => null)")
    assert page.evaluate("glassformer.app.state.chapter") == 1  # the address has the state
    page.goto(page.url.partition("#")[0])
    page.evaluate("() => glassformer.ready.then(() => null)")
    assert page.evaluate("glassformer.app.state.chapter") == 0


def test_the_story_ends_where_the_reader_wants(make_translator, explore):
    page = settled(explore(make_translator(), SENTENCE, story=STORY, fragment="#story=1"))
    assert page.get_by_role("heading", level=2).inner_text() == "1. What is a translation?"
    assert page.locator(".gf-main").count() == 0
    page.get_by_role("button", name="Next scene").click()
    settled(page)
    assert page.url.endswith("#view=numbers&story=2")
    assert page.evaluate("document.activeElement.textContent") == "2. Who looks at whom?"
    page.keyboard.press("Escape")
    assert page.locator(".gf-columns .gf-grid canvas").first.is_visible()
    assert page.evaluate("document.activeElement.textContent") == "Story"
    assert page.evaluate("[location.hash, glassformer.app.state.sentence]") == ["#view=numbers", SENTENCE]
    page.get_by_role("button", name="Story", exact=True).press("Enter")
    assert settled(page).evaluate("glassformer.app.state.story") == 1


@pytest.mark.parametrize(
    ("opens", "fragment", "scene"),
    [
        ("never", "", 0),
        ("first", "#story=0", 0),
        ("first", "#panel=beam", 0),
        ("always", "", 0),
        ("never", "#story=3", 3),
    ],
)
def test_links_decide_where_the_story_opens(make_translator, explore, opens, fragment, scene):
    page = explore(make_translator(), SENTENCE, story={"opens": opens, "pair": PAIR}, fragment=fragment)
    assert page.evaluate("glassformer.app.state.story") == scene
    assert page.locator(".gf-error:visible").count() == 0
    assert page.locator(".gf-main").count() == (scene == 0)


def test_a_recorded_page_has_no_story(make_translator, explore):
    page = explore(make_translator(), SENTENCE, data=recorded_payload, story={"opens": "always", "pair": []})
    assert page.evaluate("glassformer.app.state.story") == 0
    assert page.get_by_role("button", name="Story", exact=True).count() == 0


def test_scene_1_writes_the_likeliest_word_each_time(make_translator, explore):
    translator = make_translator()
    page = settled(explore(translator, SENTENCE, fragment="#story=1"))
    model, bundle = rounded(translator.model), translator.bundle
    source, target = torch.tensor([[*bundle.source_tokenizer.encode(SENTENCE), 2]]), [1]
    for _ in range(3):
        press(page, "Write the next word")
        row = model(source, torch.tensor([target])).softmax(-1)[0, -1]
        row[:2] = 0
        best = row.topk(5)
        assert data(page, ".gf-story-bars") == pytest.approx(best.values.tolist(), abs=1e-4)
        target.append(int(best.indices[0]))
    words = bundle.target_tokenizer.tokens(target[1:])
    assert page.locator(".gf-story-picture .gf-line").nth(1).locator("bdi").all_inner_texts() == [*words, "…"]
    page.get_by_role("textbox").fill("the cat sleeps .")
    page.get_by_role("button", name="Translate").click()
    page.locator(".gf-story-picture .gf-line").first.get_by_text("sleeps").wait_for()
    assert page.evaluate("glassformer.app.state.sentence") == SENTENCE


def test_scene_2_shows_each_head_as_lines(make_translator, explore):
    page = settled(explore(make_translator(), SENTENCE, fragment="#story=2"))
    seen = set()
    for _ in range(8):
        seen.add(page.locator(".gf-story-picture h3").inner_text())
        press(page, "Show another head")
    assert len(seen) == 8
    page.locator(".gf-story .gf-lines path").first.dispatch_event("click")
    page.get_by_role("tab", name="Arithmetic", selected=True).wait_for()
    story, face, point, number = page.evaluate(
        "(({ story, face, point, selected }) => [story, face, point.name, selected.name])(glassformer.app.state)"
    )
    assert (story, face, number) == (0, "lines", point)


def test_scenes_3_and_4_find_the_deciding_heads_and_switch_them_off(make_translator, explore):
    translator = make_translator()
    page = settled(explore(translator, SENTENCE, story=STORY, fragment="#story=3"))
    contest = Contest(translator, PAIR)
    assert margins(page) == pytest.approx(contest.margins({}), abs=1e-4)
    press(page, "Switch off each head in turn")
    effects = contest.effects({})
    assert data(page, ".gf-story .gf-table") == pytest.approx([effect for effect, *_ in effects[:6]], abs=1e-4)
    _, name, head = effects[0]
    assert f"layer {name.split('.')[2]}, head {head} of" in told(page)
    page.get_by_role("button", name="Next scene").click()
    press(settled(page), "Switch the deciding head off")
    off = plus({}, name, head)
    assert margins(page) == pytest.approx(contest.margins(off), abs=1e-4)
    if min(contest.margins(off)) > 0:
        press(page, "Switch the next head off, too")
        off = plus(off, *contest.effects(off)[0][1:])
        assert margins(page) == pytest.approx(contest.margins(off), abs=1e-4)
    words = page.evaluate("(ids) => glassformer.app.engine.tokens('target', ids)", contest.words)
    if min(contest.margins(off)) < 0:
        assert told(page).startswith("The translation changes: the model now writes “")
        assert all(f"“\u2068{one}\u2069”" in told(page) for one in words)
    else:
        assert re.match("The translation (does not change|changes, but not the word “)", told(page))
    page.get_by_role("button", name="Open this on the page").click()
    page.locator(".gf-change").wait_for()
    assert page.evaluate("glassformer.app.changes.ablated") == off


def test_the_button_says_that_the_story_is_measuring(make_translator, explore):
    page = settled(explore(make_translator(), SENTENCE, story=STORY, fragment="#story=3"))
    page.evaluate("""() => {
      globalThis.seen = [];
      const act = document.querySelector(".gf-story-act");
      new MutationObserver(() => seen.push(act.textContent)).observe(act, { childList: true });
    }""")
    press(page, "Switch off each head in turn")
    assert [*dict.fromkeys(page.evaluate("seen"))] == ["Measuring…", "Measure again"]


def test_without_its_sentences_scene_3_asks_about_the_closest_call(make_translator, explore):
    translator = make_translator()
    page = settled(explore(translator, SENTENCE, fragment="#story=3"))
    ids, source = (
        page.evaluate(f"glassformer.app.result.reference.{what}") for what in ("hypothesis.ids", "sourceIds")
    )
    rows = rounded(translator.model)(torch.tensor([source]), torch.tensor([[1, *ids[:-1]]])).log_softmax(-1)[0]
    best = rows.scatter(1, torch.tensor(ids)[:, None], -torch.inf).max(-1).values
    calls = [(rows[at, id] - best[at]).item() for at, id in enumerate(ids[:-1])]
    closest = min([call for call in calls if call >= 0] or calls)
    assert margins(page) == pytest.approx([closest], abs=1e-4)
    assert "closest call" in page.locator(".gf-story-say").inner_text()


def test_scene_5_makes_the_mistake_and_corrects_it(make_translator, explore):
    page = settled(explore(make_translator(), SENTENCE, fragment="#story=5"))
    page.get_by_role("combobox", name="Mistake").select_option("no_scale")
    settled(page)
    press(page, "Make this mistake")
    assert "The first tensor that differs is encoder.layers.0.self_attention.scores." in told(page)
    after = page.locator(".gf-story-picture .gf-line").last.locator("bdi").all_inner_texts()
    page.evaluate("glassformer.set({ mistakes: ['no_scale'] })")
    assert page.evaluate("glassformer.app.result.current.outputTokens") == after
    press(page, "Correct the mistake")
    assert told(page) == ""


@pytest.mark.parametrize(("scheme", "language"), [("light", "en"), ("dark", "zh")])
def test_every_scene_is_accessible_and_fits_a_phone(make_translator, explore, page, scheme, language):
    page.emulate_media(color_scheme=scheme)
    page.set_viewport_size({"width": 390, "height": 844})
    explore(make_translator(), SENTENCE, story=STORY, fragment=f"#story=1&language={language}")
    for scene in range(1, 6):
        page.evaluate("(story) => glassformer.app.show({ story })", scene)
        settled(page).locator(".gf-story-act").click()
        settled(page)
        assert problems(page) == []
        assert page.evaluate("document.documentElement.scrollWidth") <= 390
        assert page.locator(".gf-story-act").bounding_box()["y"] < 700
