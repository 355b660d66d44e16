"""The translation page in a browser, with a real service: each task, the keyboard, and nothing that jumps."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from browser.test_view import problems
from serving.conftest import Served

pytestmark = pytest.mark.browser
TEXT = "The cat sleeps. a big black dog sees the cat.\n\nthe dog!"
SENTENCES = 3
SECOND = ".sentence[data-sentence='1']"
WORD = ".target[aria-busy=false] .word"
EVERYTHING = "header *, main > *:not(.about), select, .bar:not(.about *), .under *, .box, .box > *"
"""All elements besides the texts and what is said about a sentence."""

Open = Callable[..., Any]


@pytest.fixture
def visit(served: Served, browser: Any) -> Iterator[Open]:
    """Return a function that opens the page in a window of its own; errors and requests elsewhere fail the test."""
    windows, wrong = [], []
    own = f"http://127.0.0.1:{served.port}/"

    def opened(**how: Any) -> Any:
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
    """Return whether a message of the console is about the page, not about an answer that refuses a request."""
    return message.type == "error" and not message.text.startswith("Failed to load resource")


def translation(served: Served, text: str, **fields: Any) -> Any:
    """Return the service's own answer for a text."""
    return served.json("/v1/translate", {"texts": [text], **fields}).json["translations"][0]


def enter(page: Any, text: str) -> None:
    """Enter a text at once, and wait for its translation."""
    page.locator("textarea").fill(text)
    page.locator(WORD).first.wait_for()


def shown(page: Any, part: str = ".target") -> str:
    """Return the translation that the page shows, or a part of it, without what it says about sentences."""
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
    assert page.locator(f"{SECOND} .word[title]").count() == len(wordings[2].split())  # the model has judged it
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
    each = dict(zip(sentence["tokens"], sentence["token_log_probs"], strict=True))  # this model's tokens are words
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
    assert "exactly right: 83 %. Probability that it is close to right: 95 %" in about


def test_a_part_of_the_confidence_that_is_not_known_is_not_shown(visit):
    page = visit()
    changed_answers(page, lambda one: one.update(confidence={"exact": None, "close": 0.95}))
    enter(page, "the cat sleeps")
    page.locator(WORD).first.wait_for()
    about = page.locator(".about").text_content()
    assert "Probability that it is close to right: 95 %" in about
    assert "exactly right" not in about


def test_no_answer_to_an_older_text_is_shown(served, visit):
    page = visit()
    page.evaluate("""() => {
      globalThis.seen = [];
      const [target, source] = [".target", "textarea"].map((one) => document.querySelector(one));
      const see = () => target.ariaBusy === "false" && seen.push([source.value, target.textContent]);
      new MutationObserver(see).observe(target, { attributes: true, childList: true });
    }""")
    [engine] = served.engines()
    os.kill(engine, signal.SIGSTOP)  # so that the first text is in the model while the next ones are typed
    try:
        for word in ("the cat", " sees", " a big dog"):
            with page.expect_request("**/v1/translate"):
                page.locator("textarea").press_sequentially(word)
    finally:
        os.kill(engine, signal.SIGCONT)
    page.locator(WORD).first.wait_for()
    page.wait_for_timeout(300)  # for late answers
    text = "the cat sees a big dog"
    seen = page.evaluate("seen")
    assert seen
    assert [one for one in seen if one != [text, translation(served, text)["text"]]] == []


def boxes(page: Any) -> list[Any]:
    """Return where the elements of the page are, besides the texts and what is said about a sentence."""
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


def test_a_file_is_translated_by_one_choice_and_saved_by_a_click(served, visit, tmp_path):
    page = visit()
    window = page.context
    settings = served.get("/frontend/settings").json | {"filesTranslation": True, "supportedFilesFormat": [".txt"]}
    saved = f"http://127.0.0.1:{served.port}/languages"
    sent = []

    def take(route: Any) -> None:
        sent.append(route.request.post_data)
        route.fulfill(json={"translatedFileUrl": saved})

    window.route("**/frontend/settings", lambda route: route.fulfill(json=settings))
    window.route("**/translate_file", take)
    page.reload()
    (tmp_path / "text.txt").write_text("the cat sleeps")
    page.locator("input[type=file]").set_input_files(tmp_path / "text.txt")
    with page.expect_download() as download:
        page.get_by_role("link", name="Save text.txt").click()
    assert download.value.url == saved
    [form] = sent
    for field, value in (("source", "en"), ("target", "es"), ("api_key", "")):
        assert f'name="{field}"\r\n\r\n{value}\r\n' in form
    assert 'filename="text.txt"' in form


def test_errors_are_said_in_words(visit):
    page = visit()
    page.locator("textarea").fill("the " * 3000)
    page.locator(".message", has_text="expected at most 5000 characters").wait_for()


def test_a_service_with_keys_asks_for_one(run_folder, start, browser, tmp_path):
    made = [sys.executable, "-m", "glassformer", "serve", "--keys", str(tmp_path / "keys"), "--new-key", "me"]
    key = subprocess.check_output(made, text=True).strip()
    options = ("--languages", "en:es", "--keys", str(tmp_path / "keys"), "--log", "nothing")
    with start(str(run_folder), *options) as served, browser.new_context(locale="en") as window:
        page = window.new_page()
        page.goto(f"http://127.0.0.1:{served.port}/")
        page.locator("textarea").fill("the cat sleeps")
        page.locator(".message", has_text="a key is needed").wait_for()
        page.get_by_label("Key").fill(key)
        page.get_by_label("Key").press("Enter")
        page.locator(WORD).first.wait_for()
