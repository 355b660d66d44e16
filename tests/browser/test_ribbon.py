"""The step ribbon: each step shows its tensor, and the animation runs the encoder once, the decoder for every word."""

from typing import Any

import numpy as np
import pytest

SENTENCE = "the big dog sees a cat ."
STEPS = [
    *["tokens", "embedding ×√d_model", "position", "Q / K / V", "scores", "mask", "softmax", "weighted sum"],
    *["heads joined", "add & norm", "cross-attention", "feed-forward", "logits", "next word"],
]
WATCH = """() => {
  globalThis.frames = [];
  const { app } = glassformer;
  app.on(["step"], ({ step, shown }) => frames.push([step, shown]));
  app.show({ pace: 1 });
}"""
TIMERS = """
globalThis.timers = new Set();
const [later, never] = [setTimeout, clearTimeout];
globalThis.setTimeout = (action, ...more) => {
  const id = later(() => { timers.delete(id); action(); }, ...more);
  timers.add(id);
  return id;
};
globalThis.clearTimeout = (id) => { timers.delete(id); never(id); };
"""

NO_LISTENERS = """() => {
  const refuse = () => { throw new Error("this listener would outlive the view"); };
  window.addEventListener = document.addEventListener = refuse;
}"""


@pytest.fixture
def ribbon(make_translator, explore):
    """Return a page whose animation records each of its frames."""
    page = explore(make_translator(), SENTENCE)
    page.evaluate(WATCH)
    return page


def until(page: Any, condition: str) -> None:
    """Wait until an expression is true; the page's policy forbids Playwright's own way of waiting."""
    page.evaluate(
        """(condition) => new Promise((done, fail) => {
      const last = performance.now() + 20000;
      const look = () => {
        if (CONDITION) done(null);
        else if (performance.now() > last) fail(new Error(condition));
        else requestAnimationFrame(look);
      };
      look();
    })""".replace("CONDITION", condition),
        condition,
    )


def play(page: Any) -> None:
    page.get_by_role("button", name="Play").click()


def played(page: Any) -> list[Any]:
    """Return the frames of the whole animation: step and how many target positions were shown."""
    play(page)
    until(page, "frames.length && frames.at(-1)[0] === null")
    return page.evaluate("frames")


def looks(page: Any) -> Any:
    """Return a part of the selection."""
    return page.evaluate("(({ stage, point, step, heads }) => ({ stage, point, step, heads }))(glassformer.app.state)")


def words(page: Any) -> int:
    return page.evaluate("glassformer.app.result.current.hypothesis.ids.length")


def test_the_steps_follow_the_paper_in_order(ribbon):
    assert ribbon.locator(".gf-step span:last-child").all_inner_texts() == STEPS
    assert ribbon.locator(".gf-step span:first-child").all_inner_texts() == [str(place) for place in range(1, 15)]


def test_a_step_shows_its_tensor_in_the_chosen_layer(ribbon):
    for step, stack, layer, point in (
        ("embedding", "encoder", "0", "source.embedding"),
        ("positions", "decoder", "1", "target.positions"),
        ("scores", "decoder", "1", "decoder.layers.1.self_attention.scores"),
        ("softmax", "decoder", "1", "decoder.layers.1.self_attention.weights"),
        ("feed_forward", "encoder", "1", "encoder.layers.1.feed_forward.activated"),
        ("cross", "decoder", "1", "decoder.layers.1.cross_attention.weights"),
        ("next", "decoder", "0", "log_probs"),
    ):
        ribbon.get_by_label("Encoder or decoder").select_option(stack)
        ribbon.get_by_label("layer", exact=True).select_option(layer)
        ribbon.locator(f"[data-step={step}]").click()
        assert looks(ribbon)["stage"] == "point"
        assert looks(ribbon)["point"]["name"] == point
        assert ribbon.locator(".gf-step[aria-current=step]").get_attribute("data-step") == step
        assert "§3." in ribbon.locator(".gf-about").inner_text()
        ribbon.locator(".gf-ribbon").get_by_role("button", name="Map").click()
        assert looks(ribbon)["stage"] == "map"
        assert looks(ribbon)["step"] is None


def table(page: Any) -> list[list[str]]:
    """Return the cells of the step's own table."""
    return page.evaluate("""() => [...document.querySelectorAll(".gf-step-view tbody tr")]
      .map((row) => [...row.cells].map((cell) => cell.innerText))""")


def test_each_step_has_a_picture_of_its_own(ribbon):
    ribbon.get_by_label("Encoder or decoder").select_option("decoder")
    ribbon.locator("[data-step=tokens]").click()
    ids = ribbon.locator(".gf-step-view sub").all_inner_texts()
    current = "glassformer.app.result.current"
    assert [int(id) for id in ids] == ribbon.evaluate(f"[...{current}.sourceIds, ...{current}.targetIds]")
    ribbon.locator("[data-step=mask]").click()
    until(ribbon, "document.querySelectorAll('.gf-step-view tbody tr').length > 1")
    for row, cells in enumerate(table(ribbon)):
        assert cells[1:] == ["✓"] * (row + 1) + ["−∞"] * (words(ribbon) - row - 1)
    ribbon.locator("[data-step=softmax]").click()
    until(ribbon, "document.querySelectorAll('.gf-step-view tbody tr').length === 3")
    ribbon.get_by_label("Row", exact=True).select_option("1")
    until(ribbon, "document.querySelector('.gf-step-view caption').innerText.includes('head')")
    scores, masked, weights = table(ribbon)
    assert masked[1:4] == [*scores[1:3], "−∞"]
    assert sum(map(float, weights[1:-1])) == pytest.approx(1, abs=2e-3)
    assert float(weights[3]) == 0
    assert [line[-1] for line in (scores, masked, weights)] == ["", "", "1.000"]


STAGES = {
    "mask_zero": ["scores", "mask", "softmax"],
    "mask_after_softmax": ["scores", "softmax", "mask"],
    "softmax_over_queries": ["scores", "mask", "softmax of each column"],
    "no_scale": ["scores", "mask", "softmax"],
    "no_causal_mask": ["scores", "mask", "softmax"],
}


@pytest.mark.parametrize("mistake", STAGES)
def test_the_row_from_score_to_weight_shows_what_a_mistaken_model_does(ribbon, mistake):
    name, row = "decoder.layers.0.self_attention", 1
    ribbon.evaluate("(id) => glassformer.set({mistakes: [id], prefix: 'le chat voit'})", mistake)
    ribbon.get_by_label("Encoder or decoder").select_option("decoder")
    ribbon.get_by_label("layer", exact=True).select_option("0")
    ribbon.locator("[data-step=softmax]").click()
    until(ribbon, "document.querySelectorAll('.gf-step-view tbody tr').length === 3")
    ribbon.get_by_label("Row", exact=True).select_option(str(row))
    stages = f"{STAGES[mistake]!r}.join(' → ')"
    until(ribbon, f"document.querySelector('.gf-step-view caption').innerText.includes({stages})")
    lines = {line[0]: [cell.replace("−∞", "-inf").replace("−", "-") for cell in line[1:]] for line in table(ribbon)}
    assert list(lines) == STAGES[mistake]
    head = ribbon.evaluate("glassformer.app.state.point.head")
    value = "async (name) => { const {shape, data} = await glassformer.value(name); return [shape, [...data]]; }"
    scores, weights = (
        np.array(data, np.float64).reshape(shape)[head]
        for shape, data in (ribbon.evaluate(value, f"{name}.{end}") for end in ("scores", "weights"))
    )
    future = np.arange(len(scores))[None] > np.arange(len(scores))[:, None]
    filled = scores.copy()
    if mistake not in ("mask_after_softmax", "no_causal_mask"):
        filled[future] = 0 if mistake == "mask_zero" else -np.inf
    axis = 0 if mistake == "softmax_over_queries" else 1
    shares = np.exp(filled - filled.max(axis, keepdims=True))
    shares /= shares.sum(axis, keepdims=True)
    stages = {"scores": scores, "softmax": shares, "softmax of each column": shares}
    stages["mask"] = weights if mistake == "mask_after_softmax" else filled
    for stage, cells in lines.items():
        assert [float(cell) for cell in cells[:-1]] == pytest.approx(stages[stage][row], abs=6e-4), stage
    last = lines[STAGES[mistake][-1]]
    assert [float(cell) for cell in last[:-1]] == pytest.approx(weights[row], abs=5.1e-4)
    assert float(last[-1]) == pytest.approx(weights[row].sum(), abs=6e-4)
    assert (abs(float(last[-1]) - 1) < 1e-3) == (mistake in ("mask_zero", "no_scale", "no_causal_mask"))
    ribbon.locator("[data-step=mask]").click()
    until(ribbon, "document.querySelector('.gf-step-view caption').innerText.startsWith('Mask of')")
    told = {"mask_zero": "0", "mask_after_softmax": "· 0", "no_causal_mask": "✓"}.get(mistake, "−∞")
    assert table(ribbon)[0][2].removeprefix("+").removesuffix(".000") == told


def test_a_row_by_hand_is_the_last_stage(ribbon):
    ribbon.get_by_label("Encoder or decoder").select_option("encoder")
    ribbon.evaluate(
        """() => {
          const { heads } = glassformer.app.config;
          const rows = Array.from({length: heads}, (_, head) => [head, 0, [0.25, 0.5]]);
          return glassformer.set({overrides: {"encoder.layers.0.self_attention": rows}});
        }"""
    )
    ribbon.locator("[data-step=softmax]").click()
    until(ribbon, "document.querySelectorAll('.gf-step-view tbody tr').length === 4")
    *_, softmax, hand = table(ribbon)
    assert hand[:4] == ["Attention by hand", "0.250", "0.500", "0.000"]
    assert (softmax[-1], hand[-1]) == ("1.000", "0.750")


def test_the_likeliest_words_are_sorted_and_follow_the_sliders(ribbon):
    ribbon.locator("[data-step=next]").click()
    until(ribbon, "document.querySelectorAll('.gf-step-view tbody tr').length === 10")
    rows = table(ribbon)
    log_probs = [float(row[1].replace("−", "-")) for row in rows]
    assert log_probs == sorted(log_probs, reverse=True)
    for row, log_prob in zip(rows, log_probs, strict=True):
        assert float(row[2]) == pytest.approx(float(row[3]), abs=1e-4)
        assert float(row[2]) == pytest.approx(2.718281828**log_prob, abs=1e-3)
    ribbon.get_by_role("button", name="As a table").click()
    until(ribbon, "document.querySelector('.gf-point tbody td')")
    assert all(text.startswith("−") for text in ribbon.locator(".gf-point tbody td").all_inner_texts())
    top_k = ribbon.get_by_label("Top-k")
    top_k.focus()
    ribbon.keyboard.press("ArrowRight")
    ribbon.keyboard.press("ArrowRight")
    until(ribbon, "document.querySelector('.gf-step-view').innerText.includes('can draw 2 of')")
    assert [float(row[3]) > 0 for row in table(ribbon)] == [True] * 2 + [False] * 8
    assert ribbon.evaluate("document.activeElement.getAttribute('aria-label')") == "Top-k"


def test_columns_of_words_that_are_not_written_yet_have_no_label(ribbon):
    ribbon.evaluate("glassformer.app.show({ stage: 'map', shown: 2, step: 'softmax' })")
    labels = ribbon.locator(".gf-step-view thead th")
    ribbon.get_by_label("Encoder or decoder").select_option("decoder")
    ribbon.evaluate("glassformer.app.show({ shown: 2, step: 'softmax' })")
    until(ribbon, "document.querySelectorAll('.gf-step-view thead th').length === 3")  # two words, and their sum
    assert labels.first.inner_text() == "<bos>"
    ribbon.evaluate("glassformer.app.show({ stage: 'point', shown: 2 })")
    ribbon.get_by_role("button", name="As a table").click()
    until(
        ribbon, "document.querySelectorAll('.gf-point thead th').length === WORDS".replace("WORDS", str(words(ribbon)))
    )
    heads = ribbon.locator(".gf-point thead th").all_inner_texts()
    assert [bool(head) for head in heads] == [True] * 2 + [False] * (words(ribbon) - 2)


def test_steps_that_the_encoder_lacks_are_shown_in_the_decoder(ribbon):
    ribbon.locator("[data-step=cross]").click()
    assert ribbon.get_by_label("Encoder or decoder").input_value() == "decoder"
    ribbon.get_by_label("Encoder or decoder").select_option("encoder")
    assert looks(ribbon)["point"]["name"] == "encoder.layers.0.feed_forward.activated"


def test_the_mask_is_shown_on_the_map_in_the_chosen_layer(ribbon):
    ribbon.get_by_label("Encoder or decoder").select_option("decoder")
    ribbon.get_by_label("layer", exact=True).select_option("0")
    ribbon.locator("[data-step=mask]").click()
    assert looks(ribbon)["stage"] == "map"
    assert [looks(ribbon)["heads"][family]["layer"] for family in ("cross", "decoder")] == [0, 0]


def test_the_mask_opens_where_it_blocks_something(ribbon):
    ribbon.locator("[data-step=mask]").click()
    ribbon.locator(".gf-step-view").get_by_text("Mask of decoder.layers.0.self_attention").wait_for()
    assert ribbon.locator(".gf-step-view td.gf-masked").count() == words(ribbon) * (words(ribbon) - 1) // 2
    ribbon.get_by_label("Encoder or decoder").select_option("encoder")
    ribbon.locator(".gf-step-view").get_by_text("Mask of encoder.layers.0.self_attention").wait_for()


def test_selecting_something_else_leaves_the_step(ribbon):
    ribbon.locator("[data-step=scores]").click()
    ribbon.evaluate("glassformer.app.show({ stage: 'point', point: { name: 'logits', head: 0 } })")
    assert looks(ribbon)["step"] is None


def test_the_encoder_runs_once_and_the_decoder_for_every_word(ribbon):
    *frames, end = played(ribbon)
    encoder = [step for step, shown in frames if shown == 0]
    assert len(encoder) == len(set(encoder)) == 11
    assert "cross" not in encoder
    for word in range(words(ribbon)):
        steps = [step for step, shown in frames if shown == word + 1]
        assert len(steps) == len(set(steps)) == 14
        assert steps[-4:] == ["cross", "feed_forward", "logits", "next"]
    assert len(frames) == 11 + 14 * words(ribbon)
    assert end == [None, None]
    assert looks(ribbon)["stage"] == "map"


def test_the_next_word_is_shown_with_its_probability_and_its_rivals(ribbon):
    ribbon.evaluate("""() => glassformer.app.on(["step"], ({ step }) => {
      const note = () => frames.push(document.querySelector(".gf-next").innerText);
      if (step === "next") queueMicrotask(note);
    })""")
    said = [text.split("\n") for text in played(ribbon) if isinstance(text, str)]
    current = ribbon.evaluate("""() => {
      const { outputTokens, hypothesis } = glassformer.app.result.current;
      return outputTokens.map((token, at) => [token, Math.exp(hypothesis.tokenLogProbs[at])]);
    }""")
    assert [text[1] for text in said] == [token for token, _ in current]
    for text, (token, probability) in zip(said, current, strict=True):
        assert float(text[2]) == pytest.approx(probability, abs=5e-4)
        assert token not in text[4::2]
        assert len(text[4::2]) == 3


def test_words_that_are_not_written_yet_are_hidden(ribbon):
    visible = """() => [...document.querySelectorAll(".gf-outcome [data-side=output]")]
      .filter((one) => getComputedStyle(one).visibility === "visible").length"""
    for shown, step, count in ((0, "tokens", 0), (1, "tokens", 0), (1, "next", 1), (None, None, words(ribbon))):
        ribbon.evaluate("(looks) => glassformer.app.show(looks)", {"shown": shown, "step": step})
        assert ribbon.evaluate(visible) == count


def test_sixteen_words_are_played_in_forty_seconds_at_the_faster_speed(ribbon):
    paces = [
        int(one.get_attribute("value")) for one in ribbon.get_by_label("Time for each step").locator("option").all()
    ]
    assert len(paces) == 2
    assert (11 + 14 * 17) * min(paces) <= 40_000


def test_the_whole_translation_is_shown_at_the_end(ribbon):
    played(ribbon)
    assert f"the decoder {words(ribbon)} times" in ribbon.locator(".gf-writer").inner_text()
    assert ribbon.evaluate("glassformer.app.result.current.text") in ribbon.locator(".gf-writer").inner_text()
    assert ribbon.get_by_role("button", name="Play").is_visible()


def test_the_keyboard_pauses_steps_and_restarts_the_animation(ribbon):
    ribbon.evaluate("glassformer.app.show({ pace: 100000 })")
    ribbon.get_by_role("button", name="Play").focus()
    ribbon.keyboard.press("Enter")
    ribbon.get_by_role("button", name="Pause").wait_for()
    ribbon.keyboard.press("Enter")
    assert ribbon.get_by_role("button", name="Play").is_visible()
    for name, step in [("forward", "embedding"), ("forward", "positions"), ("back", "embedding")]:
        ribbon.get_by_role("button", name=f"One step {name}").press("Enter")
        until(ribbon, f"glassformer.app.state.step === '{step}'")
    ribbon.get_by_role("button", name="From the beginning").press("Enter")
    assert looks(ribbon)["step"] == "tokens"


def test_arrow_keys_move_along_the_steps(ribbon):
    ribbon.locator("[data-step=tokens]").focus()
    for key in ("ArrowRight", "ArrowRight", "ArrowLeft"):
        ribbon.keyboard.press(key)
    assert ribbon.evaluate("document.activeElement.dataset.step") == "embedding"
    ribbon.keyboard.press("Enter")
    assert looks(ribbon)["point"]["name"] == "source.embedding"
    assert ribbon.locator(".gf-step[tabindex='0']").count() == 1


@pytest.mark.parametrize("action", ["glassformer.app.open('a cat sees the dog .')", "glassformer.close()"])
def test_a_new_sentence_or_closing_the_view_stops_the_animation(page, make_translator, explore, action):
    page.add_init_script(TIMERS)
    ribbon = explore(make_translator(), SENTENCE)
    ribbon.evaluate(WATCH)
    ribbon.evaluate("globalThis.app = glassformer.app")
    ribbon.evaluate(NO_LISTENERS)
    play(ribbon)
    until(ribbon, "app.state.shown > 0")
    ribbon.evaluate(action)
    assert ribbon.evaluate("timers.size") == 0
    if "open" in action:
        assert ribbon.evaluate("[app.state.shown, app.state.step]") == [None, None]


def test_nothing_moves_by_itself_with_reduced_motion(page, make_translator, explore):
    page.emulate_media(reduced_motion="reduce")
    page.add_init_script(TIMERS)
    ribbon = explore(make_translator(), SENTENCE)
    play(ribbon)
    until(ribbon, "glassformer.app.state.step === 'tokens'")
    assert ribbon.evaluate("timers.size") == 0
    ribbon.get_by_role("button", name="One step forward").click()
    until(ribbon, "glassformer.app.state.step === 'embedding'")


def test_on_a_phone_the_strip_scrolls_and_the_page_does_not(ribbon):
    ribbon.set_viewport_size({"width": 360, "height": 740})
    ribbon.locator("[data-step=next]").click()
    until(ribbon, "document.querySelector('.gf-strip').scrollLeft > 100")
    assert ribbon.evaluate("[document.documentElement.scrollWidth, scrollX]") == [360, 0]
