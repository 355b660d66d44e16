"""The sentence as a text field, completed from the vocabulary, which has a sheet of its own."""

from typing import Any

import pytest

from browser.test_view import problems
from browser.waiting import until
from glassformer.recipes.toml import from_dict
from glassformer.translator import Translator
from glassformer.watch.explorer.payload import recorded_payload
from models import EVEN, new_bundle, random_model

SENTENCE = "the black cat sees a big dog ."
WORDS = ["the", "cat", "sees", "a", "big", "black", "dog", "and", "sleeps", "."]
LINES = ["the black cats sleep .", "black cats see the cat !", "cats and cat , the end"]


@pytest.fixture
def typing(make_translator: Any, explore: Any) -> Any:
    """Return a function that opens the sentence as a field in a window, and returns the page."""

    def opened(size: tuple[int, int] = (1440, 900), translator: Any = None, sentence: str = SENTENCE) -> Any:
        page = explore(translator or make_translator(extra_length=6), sentence, start="figure")
        page.set_viewport_size({"width": size[0], "height": size[1]})
        page.get_by_role("button", name="Change the sentence").click()
        page.get_by_role("combobox", name="Source sentence").wait_for()
        return page

    return opened


@pytest.fixture
def of_pieces(tmp_path: Any) -> Any:
    """Return a function that makes a translator of pieces or characters."""

    def made(kind: str) -> Translator:
        tokenizer = {"kind": kind, "joint": True, **({} if kind == "characters" else {"vocab_size": 44})}
        configuration = from_dict({"data": {"source": "a.tsv"}, "tokenizer": tokenizer, "model": EVEN})
        bundle = new_bundle(tmp_path / kind, configuration, LINES, LINES)
        return Translator(bundle, random_model(**bundle.model_config.to_dict()))

    return made


def offered(page: Any) -> list[str]:
    found: list[str] = page.locator(".gfs-typing [role=option]").all_text_contents()
    return found


def typed(page: Any) -> str:
    text: str = page.get_by_role("combobox").input_value()
    return text


def marked(page: Any) -> list[str]:
    found: list[str] = page.locator(".gfs-marks u").all_text_contents()
    return found


@pytest.mark.parametrize("key", ["Tab", pytest.param("ArrowRight", marks=pytest.mark.long)])
def test_the_word_at_the_cursor_is_completed(typing, key):
    page = typing()
    page.keyboard.type("the B")
    field = page.get_by_role("combobox")
    assert offered(page) == ["big", "black"]  # in the vocabulary's order
    assert field.get_attribute("aria-expanded") == "true"
    page.keyboard.press("ArrowDown")
    chosen = page.locator(f"#{field.get_attribute('aria-activedescendant')}")
    assert (chosen.get_attribute("aria-selected"), chosen.text_content()) == ("true", "black")
    page.keyboard.press(key)
    assert (typed(page), offered(page)) == ("the black", [])
    assert field.get_attribute("aria-expanded") == "false"
    page.keyboard.type(" cat .")
    for _ in range(len(" cat .")):
        page.keyboard.press("ArrowLeft")
    page.keyboard.press("Backspace")
    page.locator(".gfs-typing [role=option]", has_text="black").click()
    assert typed(page) == "the black cat ."  # the rest of the sentence is unchanged
    page.keyboard.press("Enter")
    until(page, "glassformer.app.state.sentence === 'the black cat .'")


def test_escape_drops_the_words_and_then_the_field(typing):
    page = typing()
    page.keyboard.type("the bl")
    page.keyboard.press("Escape")
    assert (typed(page), offered(page)) == ("the bl", [])
    page.keyboard.press("Escape")
    assert page.get_by_role("combobox").count() == 0
    assert page.evaluate("document.activeElement.matches('.gfs-figure-svg')")
    assert page.evaluate("glassformer.app.state.sentence") == SENTENCE


def test_tab_leaves_the_field_after_a_whole_word(typing):
    page = typing(translator=None)
    page.keyboard.type("the a")  # "and" begins with these letters, but "a" is a word as well
    assert offered(page) == ["and"]
    page.keyboard.press("Tab")
    assert page.get_by_role("combobox").count() == 0


def test_what_the_vocabulary_lacks_is_marked_while_it_is_typed(typing):
    page = typing()
    assert marked(page) == []
    page.keyboard.type("the bl")
    assert marked(page) == []  # no mark, because "black" begins with these letters
    page.keyboard.type("ue")
    assert marked(page) == ["blue"]
    page.keyboard.type(" cat sees a zebra and blue")
    assert marked(page) == ["blue", "zebra", "blue"]
    assert page.locator(".gfs-typing [role=status]").text_content() == "Not in the vocabulary: blue, zebra"
    marks = page.locator(".gfs-marks").evaluate("(one) => [one.textContent, one.scrollWidth]")
    assert marks[0] == typed(page)  # the mark is below its word
    page.keyboard.press("Control+a")
    page.keyboard.type("the cat .")
    assert marked(page) == []
    assert page.locator(".gfs-typing").is_hidden()


def test_a_mark_after_a_space_is_read_as_the_vocabulary_knows_it(typing, make_translator):
    page = typing(translator=make_translator(source="the cat sleeps."), sentence="the cat.")
    page.keyboard.type("the cat sleeps .")
    assert marked(page) == []
    page.keyboard.press("Enter")
    until(page, "glassformer.app.state.sentence === 'the cat sleeps.' && !glassformer.app.state.busy")
    assert page.evaluate("glassformer.app.result.current.unknown") == []
    page.evaluate("glassformer.app.show({ second: { text: '' } })")
    page.get_by_label("Second sentence").fill("the cat .")
    page.keyboard.press("Enter")
    until(page, "glassformer.app.state.second.text === 'the cat.'")
    page.evaluate("glassformer.app.show({ second: null, sheet: true, panel: 'changes' })")
    page.locator("[data-key='word 2']").click()
    page.get_by_role("button", name="Delete “sleeps”").click()
    until(page, "glassformer.app.changes.source === 'the cat.'")
    page.locator("[data-key='word 1']").click()
    page.locator("[data-key=replacement]").fill("zebra !")  # unknown with and without the space, so it stays as typed
    page.keyboard.press("Enter")
    until(page, "glassformer.app.changes.source === 'the zebra !.'")


@pytest.mark.parametrize(
    "kind", ["bpe", *(pytest.param(one, marks=pytest.mark.long) for one in ("unigram", "characters"))]
)
def test_nothing_is_unknown_that_the_tokenizer_can_spell(typing, of_pieces, kind):
    page = typing(translator=of_pieces(kind), sentence="the cat .")
    page.keyboard.type("catseb the")
    assert (offered(page), marked(page)) == ([], [])
    page.keyboard.type(" ca7t")
    assert marked(page) == ["7"]


def rows(page: Any) -> list[str]:
    found: list[str] = page.locator(".gf-vocabulary li").all_text_contents()
    return found


def test_the_vocabulary_is_a_sheet_with_a_search(make_translator, explore):
    page = explore(make_translator(), SENTENCE, start="figure", examples=[SENTENCE])
    page.get_by_role("button", name="A–Z").click()
    assert sorted(rows(page)) == sorted(WORDS)
    sheet = page.locator(".gfs-sheet")
    assert "The model knows 10 words" in sheet.inner_text()
    assert "With special symbols such as <unk>, its vocabulary has 14 rows." in sheet.inner_text()
    assert problems(page) == []
    sheet.get_by_role("searchbox").fill("E")
    assert rows(page) == [word for word in rows(page) if "e" in word]
    assert "3 of 3 shown" in sheet.inner_text()
    assert set(rows(page)) == {"the", "sees", "sleeps"}
    page.keyboard.press("Escape")
    assert sheet.is_hidden()
    page.locator(".gfs-more summary").click()
    page.get_by_role("button", name="The words that it knows", exact=True).click()
    assert sheet.is_visible()
    assert "panel=vocabulary" in page.url  # the link opens the panel


@pytest.mark.parametrize(("kind", "said"), [("bpe", "The model spells words from"), ("characters", "characters, one")])
def test_a_vocabulary_of_pieces_says_so(explore, of_pieces, kind, said):
    translator = of_pieces(kind)
    page = explore(translator, "the cat .", start="figure", fragment="sheet=true&panel=vocabulary")
    assert said in page.locator(".gfs-sheet").inner_text()
    tokens = translator.bundle.source_tokenizer.tokens(range(4, len(translator.bundle.source_tokenizer)))
    assert len(rows(page)) == len({*tokens})
    if kind == "bpe":
        assert "␣the" in rows(page)


def test_a_recording_has_the_tokens_that_occur(make_translator, explore):
    page = explore(
        make_translator(), SENTENCE, start="figure", data=recorded_payload, fragment="sheet=true&panel=vocabulary"
    )
    assert "This recording has" in page.locator(".gfs-sheet").inner_text()
    assert {"black", "dog"} <= {*rows(page)}
    assert page.locator(".gfs-edit").count() == 0


def test_the_sheet_repeats_the_sentence_that_it_covers(make_translator, explore):
    page = explore(make_translator(seed=6), SENTENCE, start="figure", fragment="row=1")
    page.get_by_role("button", name="What if?").click()
    sheet, heading = page.locator(".gfs-sheet"), page.locator(".gfs-said-box h2")
    assert sheet.locator(".gfs-sheet-said").inner_text() == heading.inner_text()
    before = page.evaluate("glassformer.app.result.reference.text")
    assert sheet.locator(".gfs-sheet-turned").inner_text() == before
    off = {f"decoder.layers.{layer}.cross_attention": [0, 1, 2, 3] for layer in (0, 1)}
    page.evaluate("(ablated) => glassformer.set({ ablated }).then(() => null)", off)
    after = page.evaluate("glassformer.app.result.current.text")
    assert after != before
    until(page, "document.querySelector('.gfs-sheet-turned ins')")
    assert sheet.locator(".gfs-sheet-turned del").inner_text() == before
    assert sheet.locator(".gfs-sheet-turned ins").inner_text() == after
    top = sheet.bounding_box()["y"]
    assert sheet.locator(".gfs-sheet-turned").bounding_box()["y"] < top + 110  # fixed at the top of the sheet


def test_words_are_counted_from_one_and_positions_from_zero(make_translator, explore):
    page = explore(make_translator(), SENTENCE, start="figure", fragment="row=2")
    count = page.evaluate("glassformer.app.result.current.outputTokens.length")
    assert page.locator(".gfs-kicker").inner_text() == f"Word 3 of {count}"
    zoom = "glassformer.app.show({ zoom: { box: 'decoder.softmax', key: null } })"
    page.evaluate(zoom)
    page.locator(".gf-zoom", has_text=f"Word 3 of {count}").wait_for()
    page.evaluate("glassformer.app.show({ zoom: { box: 'decoder.positions', key: null } })")
    page.locator(".gf-zoom .gfz-place", has_text="position 2").wait_for()
    page.evaluate("glassformer.app.show({ zoom: { box: 'decoder.softmax', key: null }, panel: 'why' })")
    page.locator(".gf-why", has_text="At position 2, counted from 0, the decoder reads").wait_for()
