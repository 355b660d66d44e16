"""The explorer in the service: its page, its questions, and services without an explorer."""

import http.client
import json
import os
import signal
import socket
import struct
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import psutil
import pytest

from glassformer.bundle import Bundle
from glassformer.interop.ctranslate2.writer import export_ctranslate2
from serving.conftest import Answer, Served, service

pytestmark = pytest.mark.slow
SENTENCE = "the cat sees a big dog"
API = "/explore/api?run=en-es"
QUESTION = {"kind": "encode", "side": "source", "text": SENTENCE}


@pytest.fixture(scope="module")
def explored(run_folder: Path) -> Iterator[Served]:
    """Return a service that only these tests visit."""
    with service(str(run_folder), "--languages", "en:es", "--log", "nothing") as one:
        yield one


def page_of(text: str = SENTENCE, **more: str) -> str:
    """Return the address of the explorer for a text."""
    return f"/explore?{urlencode({'run': 'en-es', 'text': text, **more})}"


def page(served: Served, path: str | None = None, **headers: str) -> Answer:
    """Return the answer that a browser gets when it opens an address of the explorer."""
    return served.get(path or page_of(), **{"accept": "text/html,*/*;q=0.8", **headers})


def asked(served: Served, **question: Any) -> Any:
    """Return the JSON of the answer to a question."""
    body = served.json(API, question).body
    [length] = struct.unpack_from("<I", body)
    return json.loads(body[4 : 4 + length])


def explorer_of(served: Served) -> int:
    """Return the id of the explorer's process, which starts after the model's process; ids need not ascend."""
    return max(served.engines(), key=lambda one: psutil.Process(one).create_time())


def test_the_page_is_about_the_sentence_and_questions_are_answered(explored):
    answer = page(explored)
    assert answer.status == 200
    assert answer.headers["Content-Security-Policy"] == "frame-ancestors 'none'"
    assert f'<p dir="auto">{SENTENCE}</p>' in answer.body.decode()
    found = asked(explored, **QUESTION)
    assert found["tokens"] == SENTENCE.split()
    assert asked(explored, kind="nothing")["error"].startswith("kind: expected one of encode, ")


def test_a_busy_explorer_keeps_no_other_request_waiting(explored):
    asked(explored, **QUESTION)
    worker = explorer_of(explored)
    os.kill(worker, signal.SIGSTOP)
    with ThreadPoolExecutor(1) as client:
        waiting = client.submit(asked, explored, **QUESTION)
        assert explored.json("/v1/translate", {"texts": [SENTENCE]}).status == 200
        assert not waiting.done()
        os.kill(worker, signal.SIGCONT)
        assert waiting.result(timeout=30)["tokens"] == SENTENCE.split()


def test_a_killed_explorer_starts_again(explored):
    asked(explored, **QUESTION)
    worker = explorer_of(explored)
    os.kill(worker, signal.SIGSTOP)
    with closing(http.client.HTTPConnection("127.0.0.1", explored.port, timeout=60)) as client:
        client.request("POST", API, json.dumps(QUESTION), {"Content-Type": "application/json"})
        # This later request is answered only after the explorer has received the question above. If the explorer were
        # killed earlier, it would be restarted, and the question would be answered.
        assert explored.json("/v1/translate", {"texts": [SENTENCE]}).status == 200
        os.kill(worker, signal.SIGKILL)
        refused = client.getresponse()
        assert (refused.status, refused.headers["Retry-After"]) == (503, "2")
    assert asked(explored, **QUESTION)["tokens"] == SENTENCE.split()
    assert explored.json("/v1/translate", {"texts": [SENTENCE]}).status == 200


@pytest.mark.parametrize("origin", ["http://evil.example", "null", "https://127.0.0.1.evil:5000", "http://["])
def test_pages_of_other_hosts_are_refused(explored, origin):
    assert explored.json(API, QUESTION, origin=origin).status == 403
    assert page(explored, origin=origin).status == 403
    assert explored.json(API, QUESTION, origin="https://127.0.0.1:8443").status == 200


@pytest.mark.parametrize("host", ["evil.example", "evil.example:5000", "127.0.0.1.evil.example", "", "localhost.evil"])
def test_a_host_that_only_resolves_to_this_machine_is_refused(explored, host):
    assert page(explored, host=host).status == 403
    assert explored.json(API, QUESTION, host=host).status == 403
    assert explored.json(API, QUESTION, host=host, origin=f"http://{host}").status == 403
    for own in ("localhost", "127.0.0.1:80", "[::1]:5000", "192.168.0.7", socket.gethostname()):
        assert explored.json(API, QUESTION, host=own).status == 200


OF_ANOTHER_PAGE = (
    {"accept": "image/avif,image/webp,*/*;q=0.8"},
    {"accept": "*/*"},
    {"sec_fetch_site": "cross-site", "sec_fetch_dest": "image"},
    {"sec_fetch_site": "cross-site", "sec_fetch_dest": "iframe"},
    {"sec_fetch_site": "same-site", "sec_fetch_dest": "document"},
)
"""The headers of a browser that opens the explorer as a picture, or from a link, of another page."""


def test_a_picture_a_link_of_another_page_or_a_head_alone_does_not_start_the_explorer(run_folder):
    """A page asks for the head to learn whether there is an explorer."""
    with service(str(run_folder), "--languages", "en:es", "--log", "nothing") as served:
        assert served.ask(page_of(), "HEAD", accept="text/html").status == 200
        assert served.ask(page_of(run="zz"), "HEAD", accept="text/html").status == 404
        assert len(served.engines()) == 1
        for headers in OF_ANOTHER_PAGE:
            assert page(served, **headers).status in (403, 406), headers
            assert len(served.engines()) == 1, headers
        assert page(served, sec_fetch_site="same-origin").status == 200
        assert len(served.engines()) == 2


def test_questions_count_for_the_rate(run_folder):
    rate = ("--set", "serving.rate=3/hour")
    with service(str(run_folder), "--languages", "en:es", "--log", "nothing", *rate) as served:
        assert page(served).status == 200
        assert [served.json(API, QUESTION).status for _ in range(3)] == [200, 200, 429]
        assert page(served).status == 429


@pytest.mark.parametrize(
    ("path", "status", "error"),
    [
        (page_of(run="zz"), 404, "run: expected one of en-es, got zz"),
        (page_of("a" * 20_001), 413, "text: expected at most 20000 characters, got 20001"),
        (page_of("cat " * 1100), 400, "expected 1 to 1023 tokens, got 1100"),
    ],
)
def test_wrong_requests_are_refused(explored, path, status, error):
    answer = page(explored, path)
    assert answer.status == status
    assert error in answer.json["error"]


def test_an_export_has_no_explorer(run_folder, tmp_path):
    export_ctranslate2(Bundle.load(run_folder), tmp_path / "exported")
    with service(str(tmp_path / "exported"), "--languages", "en:es", "--log", "nothing") as served:
        answer = page(served)
        assert answer.status == served.ask(page_of(), "HEAD", accept="text/html").status == 501
        assert answer.json["error"].startswith("this model is served from an export; the explorer needs the run itself")


def test_a_service_with_keys_has_no_explorer(run_folder, tmp_path):
    (tmp_path / "keys").touch()
    options = ("--languages", "en:es", "--keys", str(tmp_path / "keys"), "--log", "nothing")
    with service(str(run_folder), *options) as served:
        assert page(served).status == 403
        assert served.json(API, {"kind": "encode"}).status == 403


@pytest.mark.browser
@pytest.mark.long
def test_why_opens_the_explorer_of_the_sentence(explored, browser):
    with browser.new_context(locale="en") as window:
        page = window.new_page()
        page.goto(f"http://127.0.0.1:{explored.port}/")
        page.locator("textarea").fill(f"the cat sleeps. {SENTENCE}")
        page.locator(".sentence[data-sentence='1'] .word").first.click()
        with window.expect_page() as opened:
            page.get_by_role("link", name="Why?").click()
        explorer = opened.value
        explorer.wait_for_load_state()
        explorer.evaluate("() => glassformer.ready.then(() => null)")
        assert explorer.evaluate("glassformer.app.state.sentence") == SENTENCE


@pytest.mark.browser
def test_why_opens_what_speaks_for_the_clicked_word(explored, browser):
    with browser.new_context(locale="en", viewport={"width": 1440, "height": 900}) as window:
        page = window.new_page()
        page.goto(f"http://127.0.0.1:{explored.port}/")
        page.locator("textarea").fill(f"the cat sleeps. {SENTENCE}")
        clicked = page.locator(".sentence[data-sentence='1'] .word").nth(1)
        clicked.click()
        word = clicked.inner_text()
        with window.expect_page() as opened:
            page.get_by_role("link", name="Why?").click()
        explorer = opened.value
        explorer.get_by_role("heading", name=f"Why “{word}”?").wait_for()
        assert explorer.locator(".gf-zoom .gfz-place", has_text="Softmax").is_visible()
        assert explorer.evaluate("glassformer.app.state.sentence") == SENTENCE
        assert explorer.locator(".gf-zoom .gfz-room").get_by_text(word, exact=True).first.is_visible()


@pytest.mark.browser
def test_why_opens_the_wording_that_the_reader_has_chosen(explored, browser):
    with browser.new_context(locale="en") as window:
        page = window.new_page()
        page.goto(f"http://127.0.0.1:{explored.port}/")
        page.locator("textarea").fill(SENTENCE)
        page.locator(".word").first.click()
        chosen = page.locator(".wordings [aria-pressed=false]").first
        wording = chosen.inner_text()
        chosen.click()
        page.locator(".target", has_text=wording).wait_for()
        page.locator(".word").first.click()
        with window.expect_page() as opened:
            page.get_by_role("link", name="Why?").click()
        explorer = opened.value
        explorer.locator(".gf-zoom h3", has_text="Why").wait_for()
        assert explorer.evaluate("glassformer.app.result.current.text") == wording
