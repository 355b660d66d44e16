"""The seven chapters: each has a sentence with the model's own numbers, a button, and something to try."""

import re
from typing import Any

import numpy as np
import pytest
from tools.states import ACTS

import glassformer as gf
from browser.waiting import settled, until
from glassformer.built_in import BUILT_IN
from glassformer.watch.explorer.payload import recorded_payload

SENTENCE = "the cat sees a big black dog ."
ANIMAL = "The animal didn't cross the street because it was too tired."
PAIR = ["the big cat sleeps .", "the black dog sleeps ."]
STORY = {"opens": "first", "pair": PAIR}
ATTENTIONS = [
    *(f"encoder.layers.{layer}.self_attention" for layer in (0, 1)),
    *(f"decoder.layers.{layer}.{kind}" for kind in ("cross_attention", "self_attention") for layer in (0, 1)),
]
PLACE = "[glassformer.app.state.chapter, glassformer.app.state.act]"


@pytest.fixture
def opened(make_translator: Any, explore: Any) -> Any:
    """Return a function that opens a chapter of a model's page, and returns the page when the sentence is shown."""

    def open_page(fragment: str = "chapter=2", size: tuple[int, int] = (1440, 900), **settings: Any) -> Any:
        data = settings.pop("data", {})
        more = {name: settings.pop(name) for name in ("story", "label_smoothing", "checkpoints") if name in settings}
        translator = make_translator(**{"extra_length": 6, **settings})
        return explore(translator, SENTENCE, start="figure", fragment=fragment, size=size, **data, **more)

    return open_page


def said(page: Any, act: str = "") -> str:
    """Wait until the page shows the conclusion of the present act, and return the conclusion."""
    settled(page)
    until(page, "document.querySelector('.gfs-conclusion').textContent")
    text: str = page.locator(".gfs-conclusion").inner_text()
    return text


def place(page: Any) -> list[int]:
    found: list[int] = page.evaluate(PLACE)
    return found


def value(page: Any, name: str) -> Any:
    found = page.evaluate(
        "async (name) => { const { shape, data } = await glassformer.value(name); return [shape, [...data]]; }", name
    )
    return np.array(found[1]).reshape(found[0])


@pytest.mark.usefixtures("page")
def test_the_first_chapter_opens_at_the_first_visit(make_translator, explore):
    page = explore(make_translator(), SENTENCE, start="figure", story=STORY)
    assert place(page) == [1, 0]
    page.reload()
    page.evaluate("() => glassformer.ready.then(() => null)")
    assert place(page) == [1, 0]  # the address contains the chapter and the act
    page.goto(page.url.partition("#")[0])
    page.evaluate("() => glassformer.ready.then(() => null)")
    assert place(page) == [0, 0]


@pytest.mark.usefixtures("page")
def test_a_model_without_a_pair_begins_with_the_outline(opened):
    page = opened("", story={"opens": "always", "pair": []})
    page.get_by_role("heading", name="This is the Transformer.").wait_for()
    picture = page.get_by_role("img", name="The model as Figure 1")
    assert picture.locator("text", has_text="nothing yet").count() == 1
    page.get_by_role("button", name="Write the first word").click()
    # a dot moves to the first word
    assert page.locator(".gfs-flying circle").evaluate("(one) => one.getAnimations().length") == 2
    onward = page.get_by_role("button", name="Words become numbers →")
    onward.wait_for()
    until(page, "!document.querySelector('.gfs-flying circle')")
    word, probability = page.evaluate(
        "(({ outputTokens: [word], hypothesis: { tokenLogProbs: [logp] } }) => [word, Math.exp(logp)])"
        "(glassformer.app.result.current)"
    )
    texts = picture.locator("text").all_text_contents()
    # when the decoder writes the first word, it has read no word yet
    assert any("nothing yet" in text for text in texts)
    assert texts[texts.index(word) + 1] == f"{probability:.3f}"
    assert "?" not in texts
    onward.click()
    assert place(page) == [2, 0]
    assert "is 24 numbers" in said(page)


def test_the_keys_of_a_clicker_lead_through_all_chapters_and_back(opened):
    page = opened("chapter=1", extra_length=1)
    keys = ["ArrowRight", "PageDown", " "]
    ways = [[chapter, act] for chapter, acts in ACTS.items() for act in range(acts)]
    for at, expected in enumerate(ways):
        assert place(page) == expected
        page.keyboard.press(keys[at % 3])
        settled(page)  # the focus leaves a hidden button only in the next frame
    assert place(page) == ways[-1]  # after the last act, nothing changes
    page.keyboard.press("Escape")
    assert place(page) == ways[-1]
    for expected in reversed(ways[:-1]):
        page.keyboard.press("ArrowLeft" if expected[1] else "PageUp")
        settled(page)
        assert place(page) == expected
    page.get_by_role("button", name="Explore freely").click()
    assert place(page) == [0, 0]


def test_the_buttons_stand_at_one_place_and_lead_through_the_acts_to_the_readers_own_sentence(opened):
    page = opened("chapter=1&act=0")
    dark = page.locator(".gfs-act-buttons .gfs-dark:visible")
    places = set()

    def measure() -> None:
        if dark.count():
            box = dark.bounding_box()
            places.add((round(box["x"] + box["width"]), round(box["y"])))

    for chapter, act in ((1, 0), (1, 1), (1, 2), (2, 0)):
        measure()
        page.evaluate("([chapter, act]) => glassformer.app.show({chapter, act})", [chapter, act])
    while place(page) != [7, 3]:
        here = place(page)
        said(page)
        measure()
        more = page.get_by_role("button", name="Make a mistake")
        (more if more.count() else page.locator(".gfs-act-buttons:visible .gfs-pill").last).click()
        until(page, f"String([glassformer.app.state.chapter, glassformer.app.state.act]) !== '{here[0]},{here[1]}'")
    said(page)
    measure()
    assert len(places) == 1
    page.get_by_role("button", name="Type a sentence").click()
    page.get_by_label("Source sentence").wait_for()
    assert place(page) == [0, 0]
    assert page.evaluate("glassformer.app.changed") is False


def test_the_strip_is_one_stop_and_names_why_a_chapter_is_not_here(opened):
    page = opened("chapter=3")
    strip = page.locator(".gfs-plane .gfs-strip:visible [role=toolbar]")
    assert strip.locator("button[tabindex='0']").count() == 1
    strip.locator("[aria-current=step]").focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Enter")
    assert place(page) == [4, 0]
    page.evaluate("glassformer.app.show({chapter: 6, act: 0})")
    assert "no snapshots" in said(page)
    needed = page.locator(".gfs-more-text").inner_text()
    assert "training.snapshots = 6" in needed
    assert "glassformer explore RUN --html FILE --snapshots 6" in needed
    assert strip.locator("[data-missing]").count() == 1
    assert "no snapshots" in strip.locator("[data-missing]").get_attribute("title")
    page.get_by_role("button", name="← Choosing").click()
    until(page, "glassformer.app.state.chapter === 5")


def test_a_recording_keeps_the_chapters_that_need_no_model(opened):
    page = opened("chapter=2", data={"data": recorded_payload})
    strip = page.locator(".gfs-strip:visible [data-missing]")
    assert [one.get_attribute("aria-label")[0] for one in strip.all()] == ["1", "6", "7"]
    assert "24 numbers" in said(page)
    page.evaluate("glassformer.app.show({chapter: 7, act: 0})")
    assert "a recording" in said(page)
    for chapter, acts in ((2, 2), (3, 2), (4, 3), (5, 2)):
        for act in range(acts):
            page.evaluate("([chapter, act]) => glassformer.app.show({chapter, act})", [chapter, act])
            assert said(page)
            assert page.locator(".gf-error:visible").count() == 0


def test_the_sentences_have_the_models_numbers(opened):
    page = opened("chapter=2&row=2")
    state = page.evaluate(
        "(({sourceIds, outputTokens, hypothesis}) => ({sourceIds, outputTokens, ids: hypothesis.ids}))"
        "(glassformer.app.result.current)"
    )
    lit = page.locator(".gfs-word[data-word=encoder] text[style*='650']").text_content()
    source = SENTENCE.split().index(lit)
    assert f"“{lit}” is 24 numbers: row {state['sourceIds'][source]} of the" in said(page)
    page.keyboard.press("ArrowRight")
    assert f"I stand at position {source}" in said(page)
    page.evaluate("glassformer.app.show({chapter: 3, act: 0})")
    heads = page.evaluate("glassformer.app.state.heads.encoder")
    weights = value(page, f"encoder.layers.{heads['layer']}.self_attention.weights")[heads["head"], source]
    assert f"{weights.max():.3f} of its attention." in said(page)
    page.evaluate("glassformer.app.show({chapter: 4, act: 2})")
    layer = page.evaluate("glassformer.app.state.heads.cross.layer")
    units = value(page, f"decoder.layers.{layer}.feed_forward.activated")[2]
    assert f"{(units > 0).sum()} of its {len(units)} units are active" in said(page)
    page.evaluate("glassformer.app.show({chapter: 5, act: 0})")
    chances = np.exp(value(page, "log_probs")[2])
    rival = np.delete(chances, state["ids"][2]).max()
    assert f"gets {chances[state['ids'][2]]:.3f}; its strongest rival" in said(page)
    assert f"{rival:.3f}." in said(page)


def test_arrows_go_on_after_a_click_on_a_chapter(opened):
    page = opened("chapter=2")
    page.locator(".gfs-strip:visible").get_by_role("button", name="3. Words mix").click()
    until(page, "glassformer.app.state.chapter === 3")
    page.keyboard.press("ArrowRight")
    until(page, "glassformer.app.state.act === 1")
    assert page.evaluate("glassformer.app.state.chapter") == 3


def test_the_temperature_divides_the_scores(opened):
    page = opened("chapter=5&act=1&row=2")
    page.get_by_label("Temperature").fill("0.5")
    said(page)
    scores = value(page, "logits")[2] / 0.5
    expected = np.exp(scores - np.logaddexp.reduce(scores))
    word = page.evaluate("glassformer.app.result.current.hypothesis.ids[2]")
    assert "At temperature 0.5" in said(page)
    assert f"has {expected[word]:.3f} instead of" in said(page)
    bars = page.locator(".gfs-g-softmax text").all_text_contents()[::2]
    np.testing.assert_allclose([float(bar) for bar in bars], np.sort(expected)[::-1][: len(bars)], atol=5e-4)


def test_label_smoothing_is_named_where_the_training_had_it(opened):
    page = opened("chapter=5", label_smoothing=0.1)
    said(page)
    assert "label smoothing 0.1, the model aims at 0.9" in page.locator(".gfs-more-text").inner_text()
    page = opened("chapter=5", label_smoothing=0)
    said(page)
    assert "label smoothing" not in page.locator(".gfs-more-text").inner_text()


def test_another_head_of_the_encoder_keeps_the_word(opened):
    page = opened("chapter=3")
    said(page)
    page.locator("[data-word=encoder][data-column='2']").click()
    first = said(page)
    page.locator(".gfs-head[data-head='0']").click()
    assert "“sees” gives" in first
    assert "“sees” gives" in said(page)


@pytest.mark.parametrize(("chapter", "box"), [(3, "encoder.layers.1.self_attention"), (2, "encoder.embedding")])
def test_an_act_about_a_box_opens_it(opened, chapter, box):
    page = opened(f"chapter={chapter}", extra_length=50)
    said(page)
    page.get_by_role("button", name="Open this box").click()
    until(page, "document.querySelector('.gfs-zoom')?.checkVisibility()")
    assert page.evaluate("glassformer.app.state.zoom.box") == box
    page.keyboard.press("Escape")
    assert place(page) == [chapter, 0]


def test_an_act_makes_its_change_and_the_next_one_undoes_it(opened):
    page = opened("chapter=2&act=1")
    said(page)
    page.get_by_role("button", name="Take the waves away").click()
    until(page, "glassformer.app.changes.positions === false")
    sentence = said(page)
    assert page.evaluate("glassformer.app.result.current.text.slice(0, 80)") in sentence
    page.keyboard.press("ArrowRight")
    until(page, "glassformer.app.changed === false")
    page = opened("chapter=7&act=2")  # the same chapter, opened by its address
    until(page, "glassformer.app.changes.mistakes.length === 1")
    sentence = said(page)
    assert page.evaluate("glassformer.app.result.current.text.slice(0, 80)") in sentence
    assert page.evaluate("glassformer.firstDifference") in page.locator(".gfs-more-text").inner_text()
    other = page.get_by_label("Mistake").locator("option").nth(1).get_attribute("value")
    page.get_by_label("Mistake").select_option(other)
    until(page, f"glassformer.app.changes.mistakes[0] === '{other}'")


def test_a_change_that_is_in_force_is_named_in_each_chapter_and_can_be_let_go(opened):
    page = opened("chapter=0", (1280, 720))
    page.evaluate("glassformer.set({mistakes: ['softmax_over_queries']}).then(() => null)")
    name = page.evaluate("glassformer.app.t('mistake.softmax_over_queries')")
    words = page.get_by_text(f"Your changes are in force: {name}.")
    for chapter in (2, 3, 4, 5):
        page.evaluate("(chapter) => glassformer.app.show({chapter, act: Number(chapter === 4)})", chapter)
        said(page)
        assert words.is_visible()
        if chapter in (3, 4):  # these chapters must not speak of shares, because the weights need not sum to 1
            assert "of its attention" not in page.locator(".gfs-said-box").inner_text()
    page.get_by_role("button", name="Let go").click()
    until(page, "glassformer.app.changed === false")
    said(page)
    assert words.count() == 0
    page.evaluate("glassformer.set({mistakes: ['no_scale'], positions: false}).then(() => null)")
    page.evaluate("glassformer.app.show({chapter: 1, act: 0})")
    page.locator(".gf-ray-lead", has_text="Your changes are in force: ").wait_for()
    page.get_by_role("button", name="Let go").click()
    until(page, "glassformer.app.changed === false")
    until(page, "!document.querySelector('.gf-ray-lead').textContent.includes('in force')")


def test_a_row_that_is_turned_in_the_act_about_deciding_heads_can_be_let_go(opened):
    page = opened("chapter=7")
    before = said(page)
    page.locator(".gfs-knot").focus()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    page.get_by_text("Your changes are in force: by hand").wait_for()
    until(page, "!document.querySelector('.gfs-act-buttons').textContent.includes('computing')")
    page.get_by_role("button", name="Let go").click()
    until(page, "glassformer.app.changed === false")
    assert said(page) == before


def test_nothing_asks_why_before_the_word_is_written(opened):
    page = opened("chapter=4")
    why = page.locator(".gfs-why")
    for act in range(ACTS[4] - 1):  # the last act ends with the written word
        page.evaluate("(act) => glassformer.app.show({chapter: 4, act})", act)
        said(page)
        assert why.count() == 0
    page.evaluate("glassformer.app.show({chapter: 5, act: 0})")
    why.wait_for()


def test_a_large_window_has_an_acts_buttons_on_one_line(opened):
    page = opened("chapter=7&act=1")
    said(page)
    page.get_by_role("button", name="All heads").wait_for()
    middles = page.locator(".gfs-act-buttons:visible > *").evaluate_all(
        "(all) => all.map((one) => one.getBoundingClientRect()).map(({ top, bottom }) => (top + bottom) / 2)"
    )
    assert max(middles) - min(middles) < 3


def test_the_act_about_the_head_that_counts_most_says_by_what_measure(opened):
    page = opened("chapter=7")
    said(page)
    measure = page.locator(".gfs-said-box .gfs-more-text").inner_text()
    opening = page.evaluate("glassformer.app.payload.openings[glassformer.app.state.sentence]")
    margins = {(name, at): one["margin"] for name, all in opening["without"].items() for at, one in enumerate(all)}
    name, head = min(margins, key=margins.__getitem__)
    logs = value(page, "log_probs")[opening["row"]]
    usual = logs[opening["ids"][opening["row"]]] - logs[opening["rival"]]
    found = re.search(r"head (\d) of layer (\d) .* is ([\d.]+) times as likely as .* No other head", measure)
    assert [int(found[1]), found[2]] == [head, name.split(".")[2]]
    assert float(found[3]) == pytest.approx(np.exp(usual), rel=0.05)  # two digits


def test_another_sentence_is_told_in_the_same_act(opened):
    page = opened("chapter=7&act=1")
    assert "Without this head" in said(page)
    page.evaluate("glassformer.app.open('the big cat sleeps .')")
    until(page, "Object.keys(glassformer.app.changes.ablated).length === 1")
    assert "Without this head" in said(page)


def test_without_the_causal_mask_no_box_is_called_masked(opened):
    page = opened("chapter=0")
    names = page.locator(".gfs-g-names")
    names.get_by_text("Masked").wait_for()
    page.evaluate("glassformer.set({mistakes: ['no_causal_mask']}).then(() => null)")
    until(page, "!glassformer.app.state.busy")
    until(page, "!document.querySelector('.gfs-g-names').textContent.includes('Masked')")
    assert names.get_by_text("Multi-head").count() == 3
    page.evaluate("glassformer.app.show({chapter: 1, act: 1})")
    page.locator(".gfs-outline").get_by_text("Softmax").wait_for()
    assert page.locator(".gfs-outline").get_by_text("Masked").count() == 0


def test_the_head_that_costs_most_is_switched_off_and_then_the_next(opened):
    page = opened("chapter=7")
    sentence = said(page)
    page.get_by_role("button", name="It will stay").click()
    until(page, "Object.keys(glassformer.app.changes.ablated).length === 1")
    stays = "still writes" in said(page)
    page.get_by_text("You guessed it." if stays else "Not what you guessed.").wait_for()
    [[attention, [head]]] = page.evaluate("Object.entries(glassformer.app.changes.ablated)")
    word, row = page.evaluate(
        "[glassformer.app.result.reference, glassformer.app.state.row].map((one, at) => at ? one : one.hypothesis.ids)"
    )
    word = word[row]
    margins = page.evaluate(
        """async ([names, heads, row, word]) => {
          const { sourceIds, targetIds } = glassformer.app.result.reference;
          const odds = async (ablated) => {
            const { shape, data } = await (await glassformer.app.engine.trace(
              { sourceIds, targetIds, changes: { ablated } })).get("log_probs");
            return [...data.slice(row * shape[1], (row + 1) * shape[1])];
          };
          const found = {};
          for (const name of names)
            for (let head = 0; head < heads; head++) found[`${name} ${head}`] = await odds({ [name]: [head] });
          return { found, plain: await odds({}) };
        }""",
        [ATTENTIONS, 4, row, word],
    )
    plain = np.array(margins["plain"])
    plain[[0, 1, word]] = -np.inf  # a search writes neither <pad> nor <bos>
    rival = plain.argmax()
    least = min(margins["found"], key=lambda name: margins["found"][name][word] - margins["found"][name][rival])
    assert least == f"{attention} {head}"
    assert "counts most for" in sentence
    place = page.evaluate("glassformer.app.state.heads")
    stack, _, layer, kind = attention.split(".")
    family = "encoder" if stack == "encoder" else "cross" if kind == "cross_attention" else "decoder"
    assert place[family] == {"layer": int(layer), "head": head}  # the head that the sentence names is lit
    assert page.evaluate("glassformer.app.state.box") == f"{stack}.{kind}"
    lit = page.locator(".gfs-box rect[stroke='var(--ink)']")
    assert lit.locator("xpath=..").get_attribute("data-box") == f"{stack}.{kind}"
    more = page.get_by_role("button", name="Switch off the next, too")
    said(page)
    for count in range(2, 4):
        if not more.count():
            break
        more.click()
        until(page, f"Object.values(glassformer.app.changes.ablated).flat().length === {count}")
        assert f"With {count} heads off" in said(page)
    page.keyboard.press("ArrowLeft")
    until(page, "glassformer.app.changed === false")


@pytest.mark.parametrize(
    "settings",
    [
        {"norm": "pre"},
        {"positions": "none"},
        pytest.param({"positions": "learned"}, marks=pytest.mark.long),
        pytest.param({"encoder_layers": 6, "decoder_layers": 6}, marks=pytest.mark.long),
    ],
    ids=str,
)
def test_the_chapters_of_any_model_have_a_sentence(opened, settings):
    page = opened("chapter=1&act=1", **settings)
    acts = ACTS | {2: 2 if settings.get("positions") == "none" else 3}
    for chapter in range(2, 8):
        for act in range(acts[chapter]):
            page.evaluate("([chapter, act]) => glassformer.app.show({chapter, act})", [chapter, act])
            sentence = said(page)
            assert sentence
            assert not {"{", "NaN", "undefined", "chapter."} & {*sentence, *sentence.split()}
            assert page.locator(".gf-error:visible").count() == 0


def test_an_act_about_the_encoder_fills_the_width(opened):
    page = opened("chapter=3")
    said(page)
    box = page.locator(".gfs-box[data-box='encoder.self_attention'] rect").bounding_box()
    assert box["width"] > 1300
    words = page.locator(".gfs-word[data-word=encoder] text").all()
    assert max(one.bounding_box()["x"] for one in words) > 1200
    page.evaluate("glassformer.app.show({chapter: 4, act: 0})")
    said(page)
    until(page, "document.getAnimations().every((one) => one.playState !== 'running')")
    box = page.locator(".gfs-box[data-box='encoder.self_attention'] rect").bounding_box()
    assert box["width"] < 700


@pytest.mark.parametrize("size", [pytest.param((1440, 900), marks=pytest.mark.long), (1280, 720)])
def test_an_encoder_that_stands_alone_leaves_no_empty_half(opened, size):
    page = opened("chapter=2&act=0", size, extra_length=50)
    heights = {}
    for chapter, act in ((2, 0), (2, 1), (3, 0), (3, 1)):
        page.evaluate("([chapter, act]) => glassformer.app.show({chapter, act})", [chapter, act])
        said(page)
        page.locator(".gfs-more-text:not(:empty)").wait_for()
        until(page, "document.getAnimations().every((one) => one.playState !== 'running')")
        text = page.locator(".gfs-more-text").bounding_box()
        top = page.locator(".gfs-g-names text", has_text="Encoder").bounding_box()["y"]
        # if the sentence has one line, the space of its second line stays empty
        assert 0 < top - text["y"] - text["height"] < 130
        box = page.locator(".gfs-box rect[stroke='var(--ink)']").bounding_box()
        heights[chapter, act] = box["height"]
        assert box["width"] > 0.9 * size[0]
    assert min(heights.values()) > 0.1 * size[1]  # the lit box gets the remaining height


FOOT = """() => {
  const box = (one) => one.getBoundingClientRect().toJSON();
  const foot = document.querySelector(".gfs-tour");
  const conclusion = [...foot.querySelectorAll(".gfs-conclusion, .gf-ray-said")].find((one) => one.checkVisibility());
  const buttons = [...foot.querySelectorAll(".gfs-act-buttons")].find((one) => one.checkVisibility());
  const lines = conclusion.offsetHeight / parseFloat(getComputedStyle(conclusion).lineHeight);
  return { foot: box(foot), conclusion: box(conclusion), buttons: box(buttons), lines };
}"""


@pytest.mark.parametrize(
    ("size", "lecture"), [((1440, 900), False), ((1920, 1080), True), ((1280, 720), True), ((1024, 640), False)]
)
def test_each_act_ends_in_one_foot_with_its_conclusion_and_its_buttons(explore, size, lecture):
    page = explore(gf.Translator.load(BUILT_IN), ANIMAL, start="figure", fragment="chapter=1", size=size)
    page.evaluate("(lecture) => glassformer.app.show({ lecture })", lecture)
    feet = set()
    for chapter, acts in ACTS.items():
        for act in range(acts):
            page.evaluate("([chapter, act]) => glassformer.app.show({chapter, act})", [chapter, act])
            settled(page)
            until(
                page,
                "[...document.querySelectorAll('.gfs-conclusion, .gf-ray-said')]"
                ".some((one) => one.checkVisibility() && one.textContent)",
            )
            seen = page.evaluate(FOOT)
            foot, conclusion, buttons = seen["foot"], seen["conclusion"], seen["buttons"]
            feet.add(tuple(round(foot[side]) for side in ("left", "top", "right", "bottom")))
            assert seen["lines"] < 2.1, (chapter, act)
            assert conclusion["right"] <= buttons["left"], (chapter, act)
            assert foot["top"] <= min(conclusion["top"], buttons["top"]), (chapter, act)
            assert max(conclusion["bottom"], buttons["bottom"]) <= foot["bottom"] <= size[1] + 1, (chapter, act)
            assert buttons["right"] <= foot["right"] + 1, (chapter, act)
    assert len(feet) == 1


BOX = """() => {
  const about = document.querySelector(".gfs-mind") ?? document.querySelector(".gfs-box rect[stroke='var(--ink)']");
  const lit = about.getBoundingClientRect();
  const seen = (from, to, most) => Math.min(to, most) - Math.max(from, 0);
  return [seen(lit.left, lit.right, innerWidth), seen(lit.top, lit.bottom, innerHeight)];
}"""


@pytest.mark.parametrize("size", [(1440, 900), (1280, 720), (1100, 700), (1024, 640), (390, 844)])
def test_what_an_act_is_about_is_in_the_window_and_large_enough(opened, size):
    page = opened("chapter=2", size, extra_length=50)
    wide, tall = (200, 40) if size[0] < 1024 else (200, 100)
    for chapter, acts in ACTS.items():
        for act in range(acts if chapter not in (1, 6) else 0):  # chapter 1 has figures of its own, 6 needs snapshots
            page.evaluate("([chapter, act]) => glassformer.app.show({chapter, act})", [chapter, act])
            said(page)
            until(page, "document.querySelector(\".gfs-box rect[stroke='var(--ink)']\")")
            across, down = page.evaluate(BOX)
            is_low = (chapter, act, size) == (2, 2, (1280, 720))  # the memory's lines and the text need the room
            assert across >= wide, (chapter, act)
            assert down >= (50 if is_low else tall), (chapter, act)


def test_all_beginnings_open_from_the_act_and_from_its_address(opened):
    page = opened("chapter=5&act=2")
    said(page)
    page.get_by_role("button", name="See all beginnings").click()
    page.locator(".gfz-beam svg, .gfz-beam table").first.wait_for()
    page.keyboard.press("Escape")
    assert place(page) == [5, 2]
    page = opened("chapter=5&act=2&sheet=true&panel=beam")
    page.locator(".gfz-beam svg, .gfz-beam table").first.wait_for()


def test_an_address_opens_lecture_mode_with_the_act_s_button_and_the_menu(opened):
    page = opened("chapter=4&act=0&lecture=true")
    said(page)
    assert page.locator(".glassformer[data-lecture]").count() == 1
    assert page.locator(".gfs-more summary").first.is_visible()
    page.locator(".gfs-act-buttons:visible .gfs-pill").first.click()
    until(page, f"String({PLACE}) === '4,1'")
    page.keyboard.press("Escape")
    until(page, "!location.hash.includes('lecture')")


def test_lecture_mode_begins_at_the_strip_and_shows_whole_sentences(opened):
    page = opened("chapter=4&act=1")
    said(page)
    page.locator(".gfs-strip:visible").get_by_role("button", name="Larger").click()
    until(page, "glassformer.app.state.lecture")
    said(page)
    size = "(one) => parseFloat(getComputedStyle(one).fontSize)"
    assert page.locator(".gfs-said-box h2").evaluate(size) >= 40
    whole = page.locator(".gfs-field-text")
    assert (whole.inner_text(), whole.evaluate(size)) == (SENTENCE, 18)
    written = page.evaluate("glassformer.app.result.current.outputTokens.length")
    line = page.locator(".gfs-written-line")
    assert line.locator("span").count() == written
    assert line.evaluate(size) == 18
    labels = page.locator(".gfs-g-names text, .gfs-g-softmax text").all()
    assert min(one.evaluate(size) for one in labels) >= 14
    page.locator(".gfs-strip:visible").get_by_role("button", name="Smaller").click()
    until(page, "!glassformer.app.state.lecture")
