"""The panel of changes: each control makes the change that it names, and the page shows the effect."""

from typing import Any

import pytest

from browser.waiting import open_panel, translate
from glassformer.watch.inspection import MISTAKES

SENTENCE = "the black cat sleeps ."
CROSS = "decoder.layers.1.cross_attention"
FIRST = "encoder.layers.0.self_attention"
MASKED = "decoder.layers.0.self_attention.weights"
SECTIONS = ["Words", "Heads", "Mask", "Attention by hand", "Patch", "Leave something out", "Classic mistakes"]


def shown(page: Any, section: str = "") -> Any:
    """Bring the panel to the front, open one of its sections, and return the tab."""
    open_panel(page, "changes")
    if section not in ("", "Words"):
        page.locator("summary", has_text=section).click()
    return page


def expect(page: Any, what: str, value: Any) -> None:
    """Wait until an expression about the app has a value, and nothing is being computed."""
    page.evaluate(
        f"""async (value) => {{
          const app = glassformer.app, wanted = JSON.stringify(value), end = Date.now() + 5000;
          const busy = () => app.state.busy;
          const got = () => JSON.stringify({what});
          while (busy() || got() !== wanted) {{
            if (Date.now() > end) throw new Error(`expected ${{wanted}}, got ${{got()}}`);
            await new Promise(requestAnimationFrame);
          }}
        }}""",
        value,
    )


def expect_first(page: Any, name: str | None) -> None:
    """Wait until the page names this tensor as the first that differs, both in its data and in its text."""
    expect(page, "app.result.firstDifference", name)
    first = page.locator(".gfs-sheet-turned .gf-link")
    first.get_by_text(name, exact=True).wait_for() if name else first.wait_for(state="detached")


def key(page: Any, name: str) -> Any:
    return page.locator(f'[data-key="{name}"]')


# Words


def test_a_word_is_replaced_by_the_typed_text(make_translator, explore):
    page = shown(explore(make_translator(), SENTENCE))
    key(page, "word 2").click()
    page.get_by_role("combobox", name="another word for “cat”").fill("dog")
    page.keyboard.press("Enter")
    expect(page, "app.changes.source", "the black dog sleeps .")
    expect_first(page, "source.embedding")
    assert page.evaluate("glassformer.app.result.reference.text") in page.locator(".gfs-sheet-turned").text_content()


@pytest.mark.parametrize(
    ("sentence", "said"),
    [(0, "“tired” for “wide”"), pytest.param(1, "“wide” for “tired”", marks=pytest.mark.long), (None, "")],
)
def test_only_a_sentence_of_the_pair_is_offered_the_others_word(make_translator, explore, sentence, said):
    pair = ["the tired cat sleeps .", "the wide cat sleeps ."]
    shown_sentence = "a tired dog sleeps ." if sentence is None else pair[sentence]
    page = shown(explore(make_translator(), shown_sentence, story={"opens": "never", "pair": pair}))
    page.get_by_text("Change the words, and see").wait_for()
    swaps = page.get_by_role("button", name="Swap").all_inner_texts()
    assert swaps == ([f"Swap {said}"] if said else [])


def test_words_that_begin_with_the_typed_text_are_offered(make_translator, explore):
    page = shown(explore(make_translator(), SENTENCE))
    key(page, "word 2").click()
    key(page, "replacement").fill("b")
    options = "[...document.querySelectorAll('.gf-changes datalist option')].map((one) => one.value)"
    assert sorted(page.evaluate(options)) == ["big", "black"]


def test_a_similar_word_is_one_click_away(make_translator, explore):
    page = shown(explore(make_translator(), SENTENCE))
    key(page, "word 1").click()
    near = page.locator('[data-key^="near "]')
    near.first.wait_for()
    word = near.first.text_content()
    near.first.click()
    expect(page, "app.changes.source", f"the {word} cat sleeps .")
    assert word != "black"


def test_a_word_can_be_deleted_and_restored(make_translator, explore):
    page = shown(explore(make_translator(), SENTENCE))
    key(page, "word 1").click()
    page.get_by_role("button", name="Delete “black”").click()
    expect(page, "app.changes.source", "the cat sleeps .")
    page.get_by_role("button", name="Undo: source: the cat sleeps .").click()
    expect(page, "app.changed", False)
    assert page.locator(".gf-changes .gf-chips").count() == 0


def test_words_around_the_replaced_one_stay_as_they_were_typed(make_translator, explore):
    page = shown(explore(make_translator(), "the  zebra (cat) sleeps, the cat."))
    key(page, "word 8").click()
    key(page, "replacement").fill("big dog")
    page.keyboard.press("Enter")
    expect(page, "app.changes.source", "the zebra (cat) sleeps, the big dog.")


def test_characters_including_spaces_are_replaced_and_deleted(make_translator, explore):
    tokens = ["<pad>", "<bos>", "<eos>", "<unk>", "▁", *"abcdefghi"]
    page = shown(explore(make_translator(), source={"kind": "characters", "tokens": tokens}, sentence="ab cab"))
    key(page, "word 3").click()
    key(page, "replacement").fill("a")
    page.keyboard.press("Enter")
    expect(page, "app.changes.source", "ab aab")
    key(page, "word 2").click()
    page.get_by_role("button", name="Delete “▁”").click()
    expect(page, "app.changes.source", "abaab")


def test_the_beginning_of_the_output_can_be_forced(make_translator, explore):
    page = shown(explore(make_translator(), SENTENCE))
    key(page, "prefix").fill("un grand")
    page.keyboard.press("Enter")
    expect(page, "app.changes.prefix", "un grand")
    expect(page, "app.result.current.outputTokens.slice(0, 2)", ["un", "grand"])
    assert key(page, "prefix").input_value() == "un grand"


def test_a_rival_replaces_an_output_word(make_translator, explore):
    page = shown(explore(make_translator(), SENTENCE))
    tokens = page.evaluate("glassformer.app.result.current.outputTokens")
    key(page, "rival 1").click()
    rivals = page.locator('[data-key^="force "]')
    rivals.first.wait_for()
    word = rivals.nth(1).get_attribute("data-key").removeprefix("force ")
    rivals.nth(1).click()
    expect(page, "app.changes.prefix", f"{tokens[0]} {word}")
    expect(page, "app.result.current.outputTokens.slice(0, 2)", [tokens[0], word])
    assert word != tokens[1]


# Heads


def test_heads_are_switched_off_by_keyboard_and_the_focus_stays(make_translator, explore):
    page = shown(explore(make_translator(), SENTENCE), "Heads")
    for head in (3, 0):
        page.get_by_role("button", name=f"head {head} off: Cross-attention, layer 1").focus()
        page.keyboard.press("Space")
        expect(page, f"(app.changes.ablated['{CROSS}'] ?? []).includes({head})", True)
    expect(page, "app.changes.ablated", {CROSS: [0, 3]})
    expect_first(page, f"{CROSS}.heads")
    expect(page, "[document.activeElement.dataset.key, document.activeElement.ariaPressed]", [f"{CROSS} 0", "true"])


def test_quick_clicks_all_count(make_translator, explore):
    page = shown(explore(make_translator(), SENTENCE), "Heads")
    key(page, f"{CROSS} 1").wait_for()
    keys = [f"{CROSS} 1", f"{CROSS} 3", f"{FIRST} 0", f"{CROSS} 0"]
    page.evaluate("(keys) => { for (const key of keys) document.querySelector(`[data-key='${key}']`).click(); }", keys)
    expect(page, "app.changes.ablated", {CROSS: [0, 1, 3], FIRST: [0]})
    page.evaluate("document.querySelectorAll('.gf-chip button:last-child').forEach((one) => one.click())")
    expect(page, "app.changed", False)


def test_a_layer_and_a_whole_set_can_be_switched_off_and_on(make_translator, explore):
    page = shown(explore(make_translator(), SENTENCE), "Heads")
    page.get_by_role("button", name="Encoder self-attention, layer 1: all heads off").click()
    expect(page, "app.changes.ablated", {"encoder.layers.1.self_attention": [0, 1, 2, 3]})
    every = page.get_by_role("button", name="Decoder self-attention: all heads off")
    every.click()
    expect(page, "Object.keys(app.changes.ablated).length", 3)
    every.click()
    expect(page, "Object.keys(app.changes.ablated)", ["encoder.layers.1.self_attention"])


# Masks


def test_a_cell_of_a_mask_is_blocked_by_the_names_of_its_words(make_translator, explore):
    page = shown(explore(make_translator(), SENTENCE), "Mask")
    page.get_by_label("Attention", exact=True).select_option(FIRST)
    page.get_by_label("Who looks (query)").select_option("2")
    page.get_by_label("At what (key)").select_option("1")
    page.get_by_text("“cat” may look at “black”.").wait_for()
    page.get_by_role("button", name="Block it").click()
    expect(page, "app.changes.masks", {FIRST: [[2, 1, False]]})
    page.get_by_text("“cat” may not look at “black”: blocked.").wait_for()
    expect_first(page, f"{FIRST}.weights")
    page.get_by_role("button", name="Let it look").click()
    expect(page, "app.changed", False)


def test_the_future_can_be_unmasked(make_translator, explore):
    page = shown(explore(make_translator(), SENTENCE), "Mask")
    page.get_by_label("Attention", exact=True).select_option(MASKED.removesuffix(".weights"))
    page.get_by_label("Who looks (query)").select_option("0")
    page.get_by_label("At what (key)").select_option("1")
    page.get_by_text("“<bos>” may not look at").wait_for()
    page.get_by_role("button", name="Let it look").click()
    expect(page, "app.changes.masks", {MASKED.removesuffix(".weights"): [[0, 1, True]]})
    expect_first(page, MASKED)


def test_a_word_hidden_from_everyone_is_also_hidden_from_later_words(make_translator, explore):
    page = shown(explore(make_translator(), SENTENCE), "Mask")
    page.get_by_label("At what (key)").select_option("2")
    page.get_by_role("button", name="Hide “cat” from everyone").click()
    expect(page, "Object.keys(app.changes.masks).length", 4)
    for name in (FIRST, CROSS):
        column = (
            f"Array.from(await glassformer.value('{name}.weights').then((it) => it.data.filter((_, i) => i % 6 === 2)))"
        )
        assert not any(page.evaluate(f"async () => {column}"))
    assert page.evaluate(f"glassformer.app.changes.masks['{CROSS}'].length") == 6 + 50
    page.get_by_role("button", name="Undo: “cat” hidden from 6 words").first.click()
    expect(page, "Object.keys(app.changes.masks).length", 3)


def test_a_row_without_visible_keys_has_a_note(make_translator, explore):
    page = shown(explore(make_translator(), SENTENCE), "Mask")
    page.evaluate(f"glassformer.set({{masks: {{'{CROSS}': [0, 1, 2, 3, 4, 5].map((key) => [1, key, false])}}}})")
    page.get_by_label("Who looks (query)").select_option("1")
    page.get_by_text("” sees no key:").wait_for()
    weights = f"async () => Array.from((await glassformer.value('{CROSS}.weights')).data.slice(6, 12))"
    assert page.evaluate(weights) == [0] * 6


def test_the_cell_chosen_among_all_numbers_is_the_cell_to_change(make_translator, explore):
    page = explore(make_translator(), SENTENCE)
    page.evaluate(f"glassformer.app.select({{name: '{FIRST}.weights', index: [2, 3, 1]}})")
    shown(page, "Mask").get_by_text("“sleeps” may look at “black”.").wait_for()


# Rows by hand


def test_a_row_of_weights_can_be_written_by_hand(make_translator, explore):
    page = shown(explore(make_translator(), SENTENCE), "Attention by hand")
    page.get_by_label("Attention", exact=True).select_option(FIRST)
    page.get_by_label("Head", exact=True).select_option("2")
    page.get_by_label("Who looks (query)").select_option("1")
    page.get_by_role("button", name="Spread evenly").click()
    slider = page.get_by_role("slider", name="cat")
    slider.focus()
    page.keyboard.press("End")
    page.get_by_text("sum 1.833").wait_for()
    page.get_by_role("button", name="Make it sum to 1").click()
    page.get_by_text("sum 1.000").wait_for()
    page.get_by_role("button", name="Apply").click()
    expect(page, "app.changes.overrides", {FIRST: [[2, 1, [0.09091, 0.09091, 0.54545, 0.09091, 0.09091, 0.09091]]]})
    expect_first(page, f"{FIRST}.weights")


def test_the_sliders_start_at_the_models_own_weights(make_translator, explore):
    page = shown(explore(make_translator(), SENTENCE), "Attention by hand")
    page.get_by_role("slider").first.wait_for()
    row = page.evaluate(f"async () => Array.from((await glassformer.value('{CROSS}.weights')).data.slice(0, 6))")
    page.get_by_label("Head", exact=True).select_option("0")
    page.get_by_label("Who looks (query)").select_option("0")
    told = "[...document.querySelectorAll('.gf-weight output')].map((one) => one.textContent)"
    expect(page, told, [f"{weight:.2f}" for weight in row])


# Patches


def test_a_word_of_a_different_sentence_can_be_patched_in(make_translator, explore):
    page = shown(explore(make_translator(), SENTENCE, examples=["the black dog sleeps .", "a cat ."]), "Patch")
    page.get_by_text("cat ← dog").wait_for()
    point = "encoder.layers.1.feed_forward.normed"
    page.get_by_label("Where").select_option(point)
    page.get_by_role("button", name="Apply").click()
    patch = {"point": point, "sentence": "the black dog sleeps .", "positions": [[2, 2]]}
    expect(page, "app.changes.patches", [patch])
    expect_first(page, point)


def test_positions_heads_and_sentence_of_a_patch_can_be_chosen(make_translator, explore):
    page = shown(explore(make_translator(), SENTENCE), "Patch")
    page.get_by_role("textbox", name="the other sentence").fill("a big dog sees .")
    page.keyboard.press("Enter")
    page.get_by_text("sleeps ← sees").wait_for()
    page.get_by_label("Where").select_option(f"{FIRST}.value")
    page.get_by_label("head", exact=True).select_option("3")
    for pair in ("the ← a", "black ← big", "sleeps ← sees"):
        page.get_by_role("button", name=f"Undo: {pair}").click()
    page.get_by_label("Here", exact=True).select_option("0")
    page.get_by_label("There", exact=True).select_option("2")
    page.get_by_role("button", name="Add", exact=True).click()
    page.get_by_text("the ← dog").wait_for()
    page.get_by_role("button", name="Apply").click()
    expect(page, "app.changes.patches[0].positions", [[2, 2], [0, 2]])
    expect(page, "app.changes.patches[0].heads", [3])
    expect_first(page, f"{FIRST}.value")


# Switches


def test_a_part_of_the_model_can_be_left_out(make_translator, explore):
    page = shown(explore(make_translator(), SENTENCE), "Leave something out")
    parts = {"positions": ("No positions", "source.positions"), "scale": ("No √d_k", f"{FIRST}.scores")}
    for part, (name, first) in parts.items():
        page.get_by_role("checkbox", name=name).check()
        expect(page, f"app.changes.{part}", False)
        expect_first(page, first)
        page.get_by_role("checkbox", name=name).uncheck()
        expect(page, "app.changed", False)


def test_a_mistake_shows_the_tensor_at_which_it_begins(make_translator, explore):
    translator = make_translator(extra_length=1)
    page = shown(explore(translator, SENTENCE), "Classic mistakes")
    for mistake in MISTAKES:
        first = MISTAKES[mistake].first(translator.bundle.model_config)
        name = page.evaluate("(id) => glassformer.app.t(`mistake.${id}`)", mistake)
        page.get_by_role("checkbox", name=name, exact=True).focus()
        page.keyboard.press("Space")
        expect(page, "app.changes.mistakes", [mistake])
        expect_first(page, first)
        told = page.locator(".gf-switch", has=page.get_by_role("checkbox", name=name, exact=True))
        assert told.get_by_role("button").text_content() == first
        page.get_by_role("button", name=f"Undo: {name}", exact=True).click()
        expect(page, "app.changed", False)


def test_the_sheet_of_the_figure_names_the_first_tensor_that_differs_and_opens_it(make_translator, explore):
    opened = ["numbers", f"{FIRST}.scores"]
    for place in (".gfs-sheet-turned", ".gf-switch"):
        state = '#sheet=true&panel=changes&mistakes=["no_scale"]'
        page = explore(make_translator(), SENTENCE, fragment=state)
        if place == ".gf-switch":
            page.locator(".gfs-sheet summary", has_text="Classic mistakes").click()
        page.locator(f".gfs-sheet {place} button", has_text=f"{FIRST}.scores").first.click()
        assert page.evaluate("(({ panel, selected }) => [panel, selected.name])(glassformer.app.state)") == opened


def test_several_mistakes_can_be_on_together(make_translator, explore):
    page = shown(explore(make_translator(), SENTENCE), "Classic mistakes")
    for name in ("Softmax twice", "No causal mask"):
        page.get_by_role("checkbox", name=name).check()
        page.get_by_role("button", name=f"Undo: {name}").wait_for()
    expect(page, "app.changes.mistakes", ["double_softmax", "no_causal_mask"])
    expect_first(page, MASKED)


def test_a_mistake_that_cannot_show_here_is_disabled_with_its_reason(make_translator, explore):
    page = shown(explore(make_translator(heads=1, positions="learned"), SENTENCE), "Classic mistakes")
    for name in (
        "√d_model instead of √d_k",
        "Exponent of the positions doubled",
        "Heads split without the transpose",
    ):
        row = page.locator(".gf-switch", has=page.get_by_label(name))
        assert row.get_by_role("checkbox").is_disabled()
        assert "Not here:" in row.text_content()
    assert page.locator(".gf-switch input:disabled").count() == 3


# The whole panel


def test_changes_can_be_undone_and_redone(make_translator, explore):
    page = shown(explore(make_translator(), SENTENCE))
    undo, redo = (page.get_by_role("button", name=name, exact=True) for name in ("↶ Undo", "↷ Redo"))
    assert undo.is_disabled()
    page.evaluate("glassformer.set({positions: false}).then(() => glassformer.set({mistakes: ['no_scale']}))")
    expect(page, "app.changes.mistakes", ["no_scale"])
    undo.click()
    expect(page, "[app.changes.positions, app.changes.mistakes]", [False, []])
    undo.click()
    expect(page, "app.changed", False)
    redo.click()
    expect(page, "app.changes.positions", False)
    page.get_by_role("button", name="Undo all", exact=True).click()
    expect(page, "app.changed", False)
    undo.click()
    expect(page, "app.changes.positions", False)


def test_every_change_can_be_undone_separately(make_translator, explore):
    page = shown(explore(make_translator(extra_length=6), SENTENCE))
    page.evaluate(
        """glassformer.set({
          source: "the dog .", prefix: "le", ablated: {"encoder.layers.0.self_attention": [1]},
          masks: {"encoder.layers.0.self_attention": [[0, 1, false]]}, positions: false, scale: false,
          overrides: {"encoder.layers.0.self_attention": [[0, 1, [1]]]}, mistakes: ["mask_zero"],
          patches: [{point: "encoder.output", sentence: "a cat", positions: [[0, 0]]}]})"""
    )
    removals = page.get_by_role("button", name="Undo: ")
    for left in range(9, 0, -1):
        expect(page, "document.querySelectorAll('.gf-chip').length", left)
        removals.first.click()
    expect(page, "app.changed", False)


def test_the_reader_chooses_which_changes_outlive_the_sentence(make_translator, explore):
    page = shown(explore(make_translator(), SENTENCE))
    masks, heads = {FIRST: [[5, 0, False]]}, {CROSS: [1]}
    page.evaluate(
        "(made) => glassformer.set({...made, mistakes: ['no_scale'], prefix: 'le'})", {"masks": masks, "ablated": heads}
    )
    # the forced word has no pin, because it belongs to its sentence
    assert page.get_by_role("button", name="Pin: ").count() == 3
    scale = page.evaluate("glassformer.app.t('mistake.no_scale')")
    for name in (scale, "“the” hidden from “<eos>”"):
        pin = page.get_by_role("button", name=f"Pin: {name}")
        assert pin.get_attribute("aria-pressed") == "false"
        pin.focus()
        page.keyboard.press("Space")
        expect(page, "document.activeElement.ariaPressed", "true")
    assert page.get_by_role("button", name="Pin all").first.get_attribute("aria-pressed") == "false"
    translate(page, "a cat .")
    expect(page, "[app.state.sentence, app.changes.mistakes, app.changes.masks]", ["a cat .", ["no_scale"], {}])
    expect(page, "[app.changes.ablated, app.changes.prefix ?? '']", [{}, ""])
    notice = page.locator(".gfs-notice")
    place = "Encoder self-attention, layer 0"
    assert notice.text_content().split("sentence ", 1)[1].removesuffix(".").split(". ") == [
        f"Kept: {scale}",
        f"Pinned, but impossible in this sentence: “the” hidden from “<eos>” · {place}",
        "Dropped: output begins: le; off: head 1 · Cross-attention, layer 1",
    ]
    notice.get_by_role("button").click()
    expect(page, "[app.state.sentence, app.changes.masks, app.changes.ablated]", [SENTENCE, masks, heads])
    pressed = "[...document.querySelectorAll('.gf-pin')].map((one) => one.ariaPressed)"
    expect(page, pressed, ["false", "true", "true"])
    page.get_by_role("button", name="Pin all").first.click()
    expect(page, pressed, ["true"] * 3)


@pytest.mark.parametrize("size", [(1280, 720), pytest.param((1280, 800), marks=pytest.mark.long), (390, 844)], ids=str)
def test_the_notice_of_a_new_sentence_covers_no_control_and_goes(make_translator, explore, size):
    page = explore(make_translator(), SENTENCE, start="figure", fragment="chapter=0")
    page.set_viewport_size({"width": size[0], "height": size[1]})
    page.evaluate(
        "glassformer.set({positions: false, scale: false, mistakes: ['no_scale', 'mask_zero', 'no_transpose']})"
    )
    state = "[app.state.sentence, app.changes.positions]"
    notice = page.locator(".gfs-notice")
    translate(page, "a cat .")
    expect(page, state, ["a cat .", True])
    notice.get_by_text("Dropped: ").wait_for()
    covered = """(notice) => {
      const { left, right, top, bottom } = notice.getBoundingClientRect();
      return [...document.querySelectorAll("button, summary, input, [tabindex='0']:not(svg)")]
        .filter((one) => !notice.contains(one) && one.checkVisibility())
        .filter((one) => {
          const box = one.getBoundingClientRect();
          return box.left < right && box.right > left && box.top < bottom && box.bottom > top;
        }).map((one) => one.ariaLabel || one.textContent);
    }"""
    assert notice.evaluate(covered) == []
    assert notice.evaluate("(one) => [one.scrollWidth - one.clientWidth, document.body.scrollWidth]") == [0, size[0]]
    page.keyboard.press("Tab")
    assert notice.inner_text()  # Tab moves the focus to the notice's button, so the notice stays
    page.locator(".gfs-word[data-word=encoder]").first.click()
    assert notice.inner_text() == ""
    open_panel(page, "changes").get_by_role("button", name="↶ Undo", exact=True).click()
    expect(page, state, [SENTENCE, False])


def test_a_mask_cell_that_the_sentence_lacks_is_listed_as_such(make_translator, explore):
    page = shown(explore(make_translator(), SENTENCE))
    page.evaluate(f"glassformer.set({{masks: {{'{FIRST}': [[2, 9, false], [9, 1, true]]}}}})")
    page.get_by_text("“9” hidden from “cat” · Encoder self-attention, layer 0 (not in this sentence)").wait_for()
    page.get_by_text("“black” shown to “9” · Encoder self-attention, layer 0 (not in this sentence)").wait_for()
    expect_first(page, None)


def test_a_first_try_is_one_click_away(make_translator, explore):
    page = shown(explore(make_translator(), SENTENCE))
    page.get_by_role("group", name="Try first:").get_by_role("button", name="last cross-attention off").click()
    expect(page, "app.changes.ablated", {CROSS: [0, 1, 2, 3]})
    expect_first(page, f"{CROSS}.heads")


def test_a_change_that_cannot_be_computed_is_reported_and_undone(make_translator, explore):
    page = shown(explore(make_translator(), SENTENCE))
    key(page, "prefix").fill("le chat " * 40)
    page.get_by_role("button", name="Force").click()
    page.get_by_role("alert").get_by_text("the prefix has 80 tokens").wait_for()
    assert page.evaluate("glassformer.app.changed") is False
    key(page, "prefix").fill("le")
    page.get_by_role("button", name="Force").click()
    expect(page, "app.changes.prefix", "le")
    assert not page.get_by_role("alert").is_visible()


@pytest.mark.parametrize("language", ["en", pytest.param("zh", marks=pytest.mark.long)])
def test_128_tokens_need_few_elements(make_translator, explore, language):
    page = explore(make_translator(extra_length=1), " ".join(["the cat"] * 63 + ["."]))
    open_panel(page, "changes").evaluate("(language) => glassformer.app.show({language})", language)
    for place in range(len(SECTIONS)):
        page.evaluate("(at) => { document.querySelectorAll('.gf-changes details')[at].open = true; }", place)
        body = page.locator(".gf-changes details").nth(place).locator(":scope > div > *")
        body.first.wait_for()
        assert page.evaluate("document.querySelectorAll('.gf-changes *').length") <= 1000


def test_hostile_words_stay_text(make_translator, explore):
    words = "<img/src=x/onerror=alert(1)> $& </script><!-- {0}"
    page = shown(explore(make_translator(source=words), words))
    key(page, "word 0").click()
    key(page, "prefix").fill(words)
    page.keyboard.press("Enter")
    expect(page, "app.changes.prefix", words)
    page.get_by_role("button", name=f"Undo: output begins: {words}").wait_for()
    assert page.locator(".gf-changes img, .gf-changes script").count() == 0
