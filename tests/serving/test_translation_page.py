"""The translation page in a browser, with a real service: each task works, also by keyboard, and nothing jumps."""

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from browser.test_view import problems
from browser.waiting import until
from browser.zooms import FRAMES
from models import random_translator
from serving.conftest import Served, service

pytestmark = pytest.mark.browser
TEXT = "The cat sleeps. a big black dog sees the cat.\n\nthe dog!"
SENTENCES = 3
SECOND = ".sentence[data-sentence='1']"
WORD = ".target[aria-busy=false] .word"
EVERYTHING = "header *, main > *:not(.about), select, .bar:not(.about *), .under *, .box, .box > *"
"""All elements except the texts and the notes about a sentence."""

Open = Callable[..., Any]


@pytest.fixture(scope="module")
def both(run_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """Return a service that translates from English to Spanish and back."""
    back = random_translator(tmp_path_factory.mktemp("back"), seed=34, extra_length=5)
    back.bundle.save(back.model)
    languages = ("--languages", "en:es", "--languages", "es:en")
    with service(str(run_folder), str(back.bundle.folder), *languages, "--log", "nothing") as one:
        yield one


@pytest.fixture
def visit(served: Served, browser: Any) -> Iterator[Open]:
    """Return a function that opens the page in a new window; errors and requests to other hosts fail the test."""
    windows, wrong = [], []

    def opened(of: Served = served, **how: Any) -> Any:
        own = f"http://127.0.0.1:{of.port}/"
        window = browser.new_context(**{"viewport": {"width": 1280, "height": 800}, "locale": "en", **how})
        windows.append(window)
        page = window.new_page()
        page.on("pageerror", lambda error: wrong.append(str(error)))
        page.on("request", lambda one: wrong.append(one.url) if not one.url.startswith((own, "data:")) else None)
        page.goto(own)
        page.locator("textarea:focus").wait_for()
        return page

    yield opened
    for window in windows:
        window.close()
    assert wrong == []


def _is_error(message: Any) -> bool:
    """Return whether a console message is about an error of the page, not about a request that the service refused."""
    return message.type == "error" and not message.text.startswith("Failed to load resource")


def translation(served: Served, text: str, **fields: Any) -> Any:
    """Return the service's own answer for a text."""
    return served.json("/v1/translate", {"texts": [text], **fields}).json["translations"][0]


def enter(page: Any, text: str) -> None:
    """Enter a whole text, not key by key, and wait for its translation."""
    page.locator("textarea").fill(text)
    page.locator(WORD).first.wait_for()


def shown(page: Any, part: str = ".target") -> str:
    """Return the translation that the page shows, or a part of it, without the notes about sentences."""
    script = """part => {
      const copy = document.querySelector(part).cloneNode(true);
      for (const said of copy.querySelectorAll(".reason")) said.remove();
      return copy.textContent;
    }"""
    return page.evaluate(script, part)


def changed_answers(page: Any, change: Callable[[Any], None]) -> None:
    """Change each sentence of the service's answers to the page."""

    def answer(route: Any) -> None:
        answered = route.fetch()
        found = answered.json()
        for one in found["translations"]:
            for sentence in one["sentences"]:
                change(sentence)
        route.fulfill(response=answered, body=json.dumps(found))

    page.route("**/v1/translate", answer)


def test_a_text_is_translated_while_it_is_typed(served, visit):
    page = visit()
    page.keyboard.type(TEXT)
    page.locator(WORD).first.wait_for()
    assert shown(page) == translation(served, TEXT)["text"]
    assert page.locator(".sentence").count() == SENTENCES


def test_only_the_pages_own_script_may_run(served):
    answer = served.get("/")
    policy = dict(rule.split(" ", 1) for rule in answer.headers["Content-Security-Policy"].split("; "))
    assert policy["default-src"] == policy["base-uri"] == policy["form-action"] == "'none'"
    assert policy["connect-src"] == "'self'"
    for kind in ("script-src", "style-src"):
        assert policy[kind].startswith("'sha256-")
    page = answer.body.decode()
    assert "http://" not in page
    assert "https://" not in page


def test_another_wording_replaces_its_sentence_and_stays(served, visit):
    page = visit()
    enter(page, TEXT)
    page.locator(f"{SECOND} .word").first.click()
    page.locator(".wordings button").nth(2).click()
    page.locator(".wordings").wait_for(state="detached")
    source = "a big black dog sees the cat."
    found = translation(served, source, n_best=4)
    wordings = list(dict.fromkeys([translation(served, source)["text"], found["text"], *found["alternatives"]]))
    assert shown(page, SECOND) == wordings[2] != wordings[0]
    # every word has a probability, so the model has scored this wording
    assert page.locator(f"{SECOND} .word[title]").count() == len(wordings[2].split())
    enter(page, f"{TEXT}!")
    assert shown(page, SECOND) == wordings[2]


def test_the_translation_is_copied(served, visit):
    page = visit(permissions=["clipboard-read", "clipboard-write"])
    enter(page, TEXT)
    page.get_by_role("button", name="Copy").click()
    page.locator(".message", has_text="Copied").wait_for()
    assert page.evaluate("navigator.clipboard.readText()") == translation(served, TEXT)["text"]


def test_words_are_marked_by_their_probabilities(served, visit):
    page = visit()
    enter(page, "the cat sleeps")
    [sentence] = translation(served, "the cat sleeps")["sentences"]
    # in this model, every word is one token
    each = dict(zip(sentence["tokens"], sentence["token_log_probs"], strict=True))
    words = page.locator(".word").all()
    assert [word.text_content() for word in words] == sentence["text"].split()
    for word in words:
        is_unsure = each[word.text_content()] < -0.6931471805599453
        assert ("unsure" in word.get_attribute("class")) == is_unsure
    assert page.locator(".unsure").count() > 0


@pytest.mark.parametrize("side", ["pointer", "focus", "source", "caret"])
def test_a_word_lights_the_words_aligned_to_it(visit, side):
    page = visit()
    changed_answers(page, lambda one: one.update(links=[[4, 7, 0, len(one["text"].split()[0])]]))
    enter(page, "😀 The cat sleeps. the dog sees 😀.")
    lit = page.locator(".lit")
    if side == "pointer":
        page.locator(f"{SECOND} .word").first.hover()
    elif side == "focus":
        page.keyboard.press("Tab")
        for _ in range(page.locator(".sentence[data-sentence='0'] .word").count()):
            page.keyboard.press("ArrowRight")
    elif side == "source":
        box = page.locator(".mirror span").nth(1).bounding_box()
        page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    else:
        for _ in range(len("sees .") + 2):
            page.keyboard.press("ArrowLeft")
    first = page.locator(f"{SECOND} .word").first.text_content()
    assert sorted(lit.all_text_contents()) == sorted(["dog", first])


def test_a_sentence_says_why_it_may_be_wrong_and_how_sure_the_model_is(visit):
    page = visit()
    said = {"reasons": ["loop", "numbers"], "confidence": {"exact": 0.834, "close": 0.95}, "status": "suspicious"}
    changed_answers(page, lambda one: one.update(said))
    enter(page, "the cat sleeps")
    assert page.locator(".sentence .reason").text_content() == " ⚠ repeats itself, different numbers"
    about = page.locator(".about").text_content()
    assert "exactly right: 83%. Probability that it is close to right: 95%." in about


def test_a_part_of_the_confidence_that_is_not_known_is_not_shown(visit):
    page = visit()
    changed_answers(page, lambda one: one.update(confidence={"exact": None, "close": 0.95}))
    enter(page, "the cat sleeps")
    page.locator(WORD).first.wait_for()
    about = page.locator(".about").text_content()
    assert "Probability that it is close to right: 95%" in about
    assert "exactly right" not in about


def test_no_answer_to_an_older_text_is_shown(served, visit):
    page = visit()
    page.evaluate("""() => {
      globalThis.seen = [];
      const [target, source] = [".target", "textarea"].map((one) => document.querySelector(one));
      const see = () => target.ariaBusy === "false" && seen.push([source.value, target.textContent]);
      new MutationObserver(see).observe(target, { attributes: true, childList: true });
    }""")
    # includes the processes that read long texts, because the model's process need not have the lowest number
    processes = served.engines()
    for process in processes:
        os.kill(process, signal.SIGSTOP)  # keeps the first text in the model while the next ones are typed
    asked = []
    try:
        for word in ("the cat", " sees", " a big dog"):
            with page.expect_request("**/v1/translate") as request:
                page.locator("textarea").press_sequentially(word)
            asked.append(request.value)
    finally:
        for process in processes:
            os.kill(process, signal.SIGCONT)
    page.locator(WORD).first.wait_for()
    for one in asked:
        answer = one.response()  # None if the page has aborted the request
        if answer:
            answer.finished()
    page.evaluate(FRAMES)  # the page handles its answers
    text = "the cat sees a big dog"
    seen = page.evaluate("seen")
    assert seen
    assert [one for one in seen if one != [text, translation(served, text)["text"]]] == []


def boxes(page: Any) -> list[Any]:
    """Return the positions of the page's elements, except the texts and the notes about a sentence."""
    script = "which => [...document.querySelectorAll(which)].map(one => [one.className, one.getBoundingClientRect()])"
    return page.evaluate(f"JSON.parse(JSON.stringify(({script})({json.dumps(EVERYTHING)})))")


@pytest.mark.parametrize("width", [1280, 360])
def test_nothing_moves_while_a_text_grows(visit, width):
    page = visit(viewport={"width": width, "height": 800})
    before = boxes(page)
    for _ in range(12):
        page.keyboard.insert_text("the cat sees a big black dog. ")
        assert boxes(page) == before
    page.locator(WORD).first.wait_for()
    assert boxes(page) == before
    assert page.evaluate("document.documentElement.scrollWidth") <= width


@pytest.mark.parametrize(("scheme", "width", "locale"), [("light", 1280, "en"), ("dark", 360, "zh")])
def test_axe_finds_nothing_serious(visit, scheme, width, locale):
    page = visit(color_scheme=scheme, viewport={"width": width, "height": 800}, locale=locale)
    changed_answers(page, lambda one: one.update(reasons=["loop"]))
    enter(page, TEXT)
    page.locator(".word").first.click()
    page.locator(".wordings button").first.wait_for()
    assert problems(page) == []
    assert page.evaluate("document.documentElement.lang") == locale
    assert page.evaluate("document.documentElement.scrollWidth") <= width


@pytest.mark.parametrize(("scheme", "width", "locale"), [("dark", 1280, "en"), ("light", 360, "zh")])
def test_axe_finds_nothing_serious_where_something_is_refused(both, visit, tmp_path, scheme, width, locale):
    page = visit(both, color_scheme=scheme, viewport={"width": width, "height": 800}, locale=locale)
    page.route("**/explore?*", lambda route: route.fulfill(status=501))
    page.locator("select").first.select_option("auto")
    changed_answers(page, lambda one: one.update(status="empty"))
    enter(page, "the black cat sleeps in the house with the dogs")
    choose_file(page, tmp_path / "a.txt", b"\xff")
    page.locator(".files .bad").wait_for()
    assert problems(page) == []
    page.locator("textarea").fill("the " * 6000)
    page.locator(".message.bad").first.wait_for()
    assert problems(page) == []
    assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_the_keyboard_does_everything(served, visit):
    page = visit()
    page.keyboard.type("the cat sleeps")
    page.locator(WORD).first.wait_for()
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    page.locator(".wordings button").nth(1).wait_for()
    for _ in range(10):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.closest('.wordings li + li') !== null"):
            break
    wording = page.evaluate("document.activeElement.textContent")
    page.keyboard.press("Enter")
    page.locator(".wordings").wait_for(state="detached")
    assert shown(page) == wording
    assert page.evaluate("document.activeElement.className").startswith("word")


def test_texts_from_right_to_left_stand_right(visit):
    page = visit()
    changed_answers(page, lambda one: one.update(text="שלום עולם", tokens=[]))
    enter(page, "مرحبا")
    for which in ("textarea", ".target"):
        assert page.evaluate("(which) => getComputedStyle(document.querySelector(which)).direction", which) == "rtl"


def choose_file(page: Any, path: Path, data: bytes = b"the cat sleeps") -> None:
    """Write a file and choose it on the page."""
    path.write_bytes(data)
    page.locator("input[type=file]").set_input_files(path)


def test_a_file_is_translated_by_one_choice_and_saved_under_its_name(served, visit, tmp_path):
    page = visit()
    sent = []
    page.route("**/translate_file", lambda route: sent.append(route.request) or route.continue_())
    choose_file(page, tmp_path / "my text.txt")
    with page.expect_download() as download:
        page.get_by_role("link", name="Save my text.es.txt").click()
    assert download.value.suggested_filename == "my text.es.txt"
    assert Path(download.value.path()).read_text() == translation(served, "the cat sleeps")["text"]
    [request] = sent
    for field, value in (("source", "en"), ("target", "es")):
        assert f'name="{field}"\r\n\r\n{value}\r\n' in request.post_data
    assert 'filename="my text.txt"' in request.post_data


@pytest.mark.parametrize("next_one", ["refused", "of another kind", "under way"])
def test_the_link_of_the_former_file_goes_with_the_next_one(visit, tmp_path, next_one):
    page = visit()
    choose_file(page, tmp_path / "a.txt")
    link = page.locator(".files a")
    link.wait_for()
    if next_one == "refused":
        choose_file(page, tmp_path / "b.txt", b"\xff")
        page.locator(".files", has_text="The service cannot translate this. b.txt, line 1: expected utf-8").wait_for()
    elif next_one == "of another kind":
        choose_file(page, tmp_path / "b.pdf")
        page.locator(".files", has_text="b.pdf cannot be translated: choose a file of the kinds .txt, .html").wait_for()
    else:
        page.route("**/translate_file", lambda _: None)
        choose_file(page, tmp_path / "b.txt")
        page.locator(".files", has_text="Translating b.txt …").wait_for()
    assert link.count() == 0


@pytest.mark.parametrize("width", [1280, 360])
def test_nothing_moves_while_a_file_is_translated(visit, tmp_path, width):
    page = visit(viewport={"width": width, "height": 800})
    places = ".box, .files, .files button, .legend"
    script = f"JSON.stringify([...document.querySelectorAll('{places}')].map(one => one.getBoundingClientRect()))"
    before = page.evaluate(script)
    choose_file(page, tmp_path / "a.txt")
    assert page.evaluate(script) == before
    page.locator(".files a").wait_for()
    assert page.evaluate(script) == before


DROP = """([type, on, value]) => {
  const data = new DataTransfer();
  if (type === "file") data.items.add(new File([value], "dropped.txt"));
  else data.setData("text/plain", value);
  const how = { dataTransfer: data, bubbles: true, cancelable: true };
  const given = type => document.querySelector(on).dispatchEvent(new DragEvent(type, how));
  return ["dragover", "drop"].map(given);
}"""


def test_a_file_is_dropped_onto_the_page(visit):
    page = visit()
    # the page handles the file, so the browser does not open it
    assert page.evaluate(DROP, ["file", "h1", "the cat sleeps"]) == [False, False]
    page.get_by_role("link", name="Save dropped.es.txt").wait_for()
    assert page.locator("textarea").input_value() == ""


def test_a_text_is_dropped_onto_the_page(served, visit):
    page = visit()
    enter(page, "a dog")
    assert page.evaluate(DROP, ["text", ".target", "the cat sleeps"]) == [False, False]
    assert page.locator("textarea").input_value() == "the cat sleeps"
    page.locator(WORD).first.wait_for()
    assert shown(page) == translation(served, "the cat sleeps")["text"]
    assert page.evaluate(DROP, ["text", "textarea", "x"]) == [True, True]  # the browser inserts the text at the pointer


def test_languages_are_swapped_with_the_texts(both, visit):
    page = visit(both)
    enter(page, "the cat sleeps")
    before = shown(page)
    held = []
    page.route("**/v1/translate", lambda route: held.append(route))
    with page.expect_request("**/v1/translate"):
        page.get_by_role("button", name="Swap the languages").click()
    assert shown(page) == "the cat sleeps"  # the old text stays until the model has translated
    assert page.locator(".target").get_attribute("aria-busy") == "true"
    assert page.get_by_label("From").input_value() == "es"
    assert page.get_by_label("To", exact=True).input_value() == "en"
    assert page.locator("textarea").input_value() == before
    assert page.evaluate("document.querySelector('textarea').lang") == "es"
    held[-1].continue_()
    page.locator(WORD).first.wait_for()
    assert shown(page) == translation(both, before, source="es", target="en")["text"]
    assert page.evaluate("document.activeElement.ariaLabel") == "Swap the languages"


def test_languages_without_a_way_back_are_not_swapped(visit):
    page = visit()
    assert page.get_by_role("button", name="Swap the languages").count() == 0
    assert page.locator("option[value=auto]").count() == 0


def test_the_language_of_a_text_is_detected(both, visit):
    page = visit(both)
    page.get_by_label("From").select_option("auto")
    assert page.evaluate("document.activeElement.ariaLabel") != "Swap the languages"
    enter(page, "el gato negro duerme en la casa con los perros")
    page.locator(".detected", has_text="Detected: Spanish").wait_for()
    # the target language changes, because Spanish cannot be translated into Spanish
    assert page.get_by_label("To", exact=True).input_value() == "en"
    enter(page, "the black cat sleeps in the house with the dogs")
    page.locator(".detected", has_text="Detected: English").wait_for()
    assert page.get_by_label("To", exact=True).input_value() == "es"
    page.get_by_role("button", name="Swap the languages").click()
    assert [page.get_by_label(one, exact=True).input_value() for one in ("From", "To")] == ["es", "en"]


def test_a_detected_language_that_is_not_served_is_named(both, visit):
    page = visit(both)
    page.route("**/detect", lambda route: route.fulfill(json=[{"language": "de", "confidence": 90}]))
    page.get_by_label("From").select_option("auto")
    page.locator("textarea").fill("die Katze")
    page.locator(".message.bad", has_text="seems to be in de, from which this service does not translate").wait_for()


def test_characters_are_counted_as_the_service_counts_them(served, visit):
    page = visit()
    count = page.locator("#count")
    assert count.text_content() == "0 of 5,000 characters"
    enter(page, "the 😀")
    assert count.text_content() == "5 of 5,000 characters"
    with page.expect_request("**/v1/translate"):  # the page waits for a pause in typing before it asks
        page.locator("textarea").fill("the " * 1250)
    assert "bad" not in (count.get_attribute("class") or "")
    asked = []
    page.on("request", lambda one: asked.append(one.post_data_json))
    page.locator("textarea").fill("the " * 1250 + "x")
    page.locator(".message", has_text="The text is too long: shorten it to 5,000 characters.").wait_for()
    assert count.get_attribute("class") == "bad"
    with page.expect_request("**/v1/translate"):  # a request for the long text would come before this one
        page.locator("textarea").fill("the cat")
    assert [one["texts"] for one in asked] == [["the cat"]]


def test_both_boxes_scroll_together(visit):
    page = visit(viewport={"width": 1280, "height": 500})
    enter(page, "the cat sees a big black dog. " * 60)
    share = """which => {
      const { scrollTop, scrollHeight, clientHeight } = document.querySelector(which);
      return scrollTop / (scrollHeight - clientHeight);
    }"""

    def shares() -> list[float]:
        return [page.evaluate(share, which) for which in ("textarea", ".target", ".mirror")]

    for which in ("textarea", ".target"):
        before = page.locator(which).evaluate("(one) => one.scrollTop")
        page.locator(which).hover()
        page.mouse.wheel(0, -150)
        until(page, f"Math.abs(document.querySelector('{which}').scrollTop - {before} + 150) < 1")
        page.evaluate(FRAMES)  # the other boxes follow in the next frame
        one, *others = shares()
        assert 0 < one < 1
        assert others == pytest.approx([one, one], abs=0.02)
    page.locator("textarea").press("Control+Home")
    until(page, f"({share})('textarea') < 0.05")  # the first line is visible, with or without the space above it
    page.evaluate(FRAMES)
    before = shares()
    assert max(before) < 0.05
    # scrolls as a change of the text would, while the reader uses the other box
    page.evaluate("document.querySelector('.target').scrollTop = 100")
    page.evaluate(FRAMES)
    assert shares()[0] == before[0]


def test_errors_are_said_in_words(visit):
    page = visit()
    page.locator("textarea").fill("the " * 1200)
    page.locator(".message.bad", has_text="The service cannot translate this. sentence 1 is too long").wait_for()


CHINESE = re.compile(r"English|Tab|PyTorch|\.(txt|html|htm)|[Gg]lassformer")
"""Words that are the same in Chinese."""
WORDS = """() => {
  const texts = [document.title];
  for (const one of document.querySelectorAll("body *:not(script, style)")) {
    if (one.closest(".sentence, .quoted, .wordings, .mirror") && !one.matches(".reason, [title]")) continue;
    texts.push(...["title", "aria-label", "placeholder"].map(name => one.getAttribute(name) ?? ""));
    if (!one.matches(".word"))
      texts.push([...one.childNodes].filter(({ nodeType }) => nodeType === 3).map(one => one.data).join(""));
  }
  return texts;
}"""


def english_in(page: Any) -> list[str]:
    """Return the texts of a Chinese page that have Latin letters."""
    return [one for one in page.evaluate(WORDS) if re.search("[A-Za-z]", CHINESE.sub("", one))]


def test_everything_is_chinese_for_a_chinese_reader(both, visit):
    page = visit(both, locale="zh-CN")
    assert page.evaluate("document.documentElement.lang") == "zh"
    assert page.title() == "翻译 – glassformer"
    changed_answers(page, lambda one: one.update(reasons=["loop"], confidence={"exact": 0.5, "close": 0.9}))
    page.get_by_label("源语言").select_option("auto")
    enter(page, "the black cat sleeps in the house with the dogs")
    page.locator(".word").first.click()
    page.locator(".wordings button").first.wait_for()
    assert english_in(page) == []
    changed_answers(page, lambda one: one.update(status="empty", reasons=["another one"]))
    enter(page, "the cat sees the dog")
    assert english_in(page) == []


@pytest.mark.parametrize("status", [400, 401, 403, 404, 408, 413, 429, 500, 502, 503])
def test_refusals_are_said_in_chinese(visit, tmp_path, status):
    page = visit(locale="zh-CN")
    error = {"status": status, "headers": {"Retry-After": "90", "Content-Type": "application/json"}}
    error["body"] = "<h1>Bad Gateway</h1>" if status == 502 else '{"error": "some English words"}'
    for path in ("translate_file", "v1/translate"):
        page.route(f"**/{path}", lambda route: route.fulfill(**error))
    page.locator("textarea").fill("the cat")
    page.locator(".message.bad").first.wait_for()
    choose_file(page, tmp_path / "a.txt")
    page.locator(".files .bad").wait_for()
    assert english_in(page) == []
    said = page.locator(".message.bad").text_content()
    assert said == page.locator(".files .bad").text_content()
    assert ("90秒" in said) == (status == 429)
    page.get_by_role("button", name="English").click()  # the page's messages change their language as well
    assert page.locator(".message.bad").text_content() != said
    assert re.search("[A-Za-z]{4}", page.locator(".files .bad").text_content())
    assert page.evaluate("document.activeElement.textContent") == "中文"


def test_a_service_that_does_not_answer_is_said(visit):
    page = visit(locale="zh-CN")
    page.route("**/languages", lambda route: route.abort())
    page.reload()
    page.get_by_role("alert").filter(has_text="服务没有响应").wait_for()


def test_an_empty_output_is_said_calmly(visit):
    page = visit()
    empty = {"text": "the cat sleeps", "status": "empty", "tokens": ["<eos>"], "token_log_probs": [-0.1]}
    changed_answers(page, lambda one: one.update(empty))
    enter(page, "the cat sleeps")
    assert shown(page) == "the cat sleeps"
    assert page.locator(".unsure").count() == 0
    assert page.locator(".sentence .reason").text_content() == " (left as it is: the model gives no translation)"
    assert page.locator(".bad:visible").count() == 0


@pytest.mark.parametrize(
    ("status", "said"),
    [(403, "This service shows no explorer here"), (501, "This model has no explorer here"), (503, "does not answer")],
)
def test_a_sentence_without_an_explorer_says_so(visit, status, said):
    page = visit()
    page.route("**/explore?*", lambda route: route.fulfill(status=status))
    enter(page, "the cat sleeps")
    assert said in page.locator(".about").text_content()
    assert page.get_by_role("link", name="Why?").count() == 0


def test_a_service_with_keys_asks_for_one(run_folder, start, browser, tmp_path):
    made = [sys.executable, "-m", "glassformer", "serve", "--keys", str(tmp_path / "keys"), "--new-key", "me"]
    key = subprocess.check_output(made, text=True).strip()
    options = ("--languages", "en:es", "--keys", str(tmp_path / "keys"), "--log", "nothing")
    with start(str(run_folder), *options) as served, browser.new_context(locale="en") as window:
        page = window.new_page()
        page.goto(f"http://127.0.0.1:{served.port}/")
        page.locator("textarea").fill("the cat sleeps")
        page.locator(".message", has_text="A key is needed: enter it above.").wait_for()
        page.get_by_label("Key").fill(key)
        page.get_by_label("Key").press("Enter")
        page.locator(WORD).first.wait_for()
        assert "This service shows no explorer here" in page.locator(".about").text_content()
        choose_file(page, tmp_path / "a.txt")
        page.get_by_role("link", name="Save a.es.txt").wait_for()
        page.get_by_label("Key").fill("wrong")
        page.get_by_label("Key").press("Enter")
        page.locator(".message", has_text="The service does not know this key.").wait_for()
