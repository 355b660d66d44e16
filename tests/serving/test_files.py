"""Files over LibreTranslate's API: a document is uploaded, and its translation has a random address for some time."""

import subprocess
import sys
import time

import pytest

from glassformer.serving.files import MOST_KEPT, MOST_OF_CLIENT, TranslatedFiles
from glassformer.serving.refusals import RequestError
from glassformer.translator import Translator
from serving.conftest import Served, port_of, service

BOUNDARY = "XyZ"


def form(file: bytes, name: str = "a.html", source: str = "en", target: str = "es", **more: str) -> bytes:
    values = {"source": source, "target": target, **more}
    parts = [f'name="{field}"\r\n\r\n{value}' for field, value in values.items()]
    head = "".join(f"--{BOUNDARY}\r\nContent-Disposition: form-data; {part}\r\n" for part in parts)
    head += f'--{BOUNDARY}\r\nContent-Disposition: form-data; name="file"; filename="{name}"\r\n\r\n'
    return head.encode() + file + f"\r\n--{BOUNDARY}--\r\n".encode()


def send(served, body):
    return served.ask("/translate_file", body=body, content_type=f"multipart/form-data; boundary={BOUNDARY}")


@pytest.mark.slow
@pytest.mark.parametrize("name", ["a.html", "../../etc/a.html"])
def test_a_file_comes_back_translated(served, run_folder, name):
    answer = send(served, form(b"<p>the cat\r\nsleeps</p><pre>the cat</pre>\r\n", name))
    assert answer.status == 200
    url = answer.json["translatedFileUrl"]
    assert url.startswith(f"http://127.0.0.1:{served.port}/download_file/")
    path = url.partition(str(served.port))[2]
    assert ".." not in path
    text = Translator.load(run_folder).translate(["the cat sleeps"])[0].text
    got = served.get(path)
    assert got.status == 200
    assert got.headers["Content-Disposition"] == 'attachment; filename="a.es.html"'
    assert b"<pre>the cat</pre>\r\n" in got.body
    assert text.encode() in got.body.replace(b"&lt;", b"<").replace(b"&gt;", b">").replace(b"&amp;", b"&")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "field"),
    [
        ("my page.HTML", "filename*=UTF-8''my%20page.es.HTML"),
        ("页面.html", "filename*=UTF-8''%E9%A1%B5%E9%9D%A2.es.html"),
        ("a;b.c.txt", "filename*=UTF-8''a%3Bb.c.es.txt"),
    ],
)
def test_a_file_keeps_its_name_with_the_language(served, name, field):
    url = send(served, form(b"the cat", name)).json["translatedFileUrl"]
    got = served.get(url.partition(str(served.port))[2])
    assert got.headers["Content-Disposition"] == f"attachment; {field}"


@pytest.mark.slow
def test_each_line_of_a_text_file_may_be_one_sentence(served, run_folder):
    answer = send(served, form(b"the cat\r\nsleeps. a dog\r\n", "a.txt", lines="true"))
    got = served.get(answer.json["translatedFileUrl"].partition(str(served.port))[2])
    lines = ["the cat", "sleeps. a dog"]
    found = Translator.load(run_folder).translate(lines)
    assert got.body.decode() == "".join(f"{one.text or line}\r\n" for one, line in zip(found, lines, strict=True))


@pytest.mark.slow
def test_what_cannot_be_translated_is_refused_in_its_words(served):
    for body, message in (
        (form(b"x", "a.doc"), "Invalid request: file format not supported"),
        (form(b"x", source="zz"), "zz is not supported"),
        (form(b"\xff", "a.txt"), "a.txt, line 1: expected utf-8"),
        (form(b"x", lines="true"), "Invalid request: lines parameter is for .txt files"),
        (form(b"x", "a.txt", lines="yes"), "Invalid request: lines parameter is not true or false"),
    ):
        answer = send(served, body)
        assert answer.status == 400
        assert message in answer.json["error"]
    answer = served.form("/translate_file", source="en", target="es")
    assert (answer.status, answer.json) == (400, {"error": "Invalid request: missing file parameter"})
    for path in ("/download_file/absent.html", "/download_file/..%2f..%2fetc%2fpasswd"):
        assert served.get(path).status == 404
    settings = served.get("/frontend/settings").json
    assert settings["filesTranslation"]
    assert settings["supportedFilesFormat"] == [".txt", ".html", ".htm"]


def test_a_file_is_forgotten_after_its_time():
    files = TranslatedFiles(life=-1.0)
    assert files.find(files.keep("me", "x.txt", b"x")) is None
    files.close()
    files = TranslatedFiles()
    name = files.keep("me", "x.txt", b"x")
    assert files.find(name) == ("x.txt", b"x")
    assert files.find(f"../{name}") is None
    files.close()
    assert files.find(name) is None


def test_a_file_that_was_fetched_goes_soon():
    files = TranslatedFiles(life_fetched=0.05)
    name, other = (files.keep("me", "x.txt", b"x") for _ in range(2))
    files.fetched(name)
    files.fetched("absent")
    assert files.find(name) == ("x.txt", b"x")
    time.sleep(0.1)
    assert files.find(name) is None
    assert files.find(other) == ("x.txt", b"x")
    files.close()


def test_a_client_cannot_keep_the_others_out():
    files = TranslatedFiles()
    for number in range(MOST_OF_CLIENT):
        files.keep("greedy", "x.txt", b"%d" % number)
    with pytest.raises(RequestError, match="of your translated files wait") as refused:
        files.keep("greedy", "x.txt", b"x")
    assert refused.value.status == 429
    assert 1 <= int(refused.value.headers["Retry-After"]) <= 1200
    assert files.find(files.keep("other", "x.txt", b"y")) == ("x.txt", b"y")
    files.close()


def test_many_clients_cannot_keep_another_out():
    files = TranslatedFiles()
    first = files.keep("0", "x.txt", b"first")
    second = [files.keep(str(number // 2), "x.txt", b"x") for number in range(1, MOST_KEPT)]
    new = files.keep("new", "x.txt", b"new")
    assert files.find(new) == ("x.txt", b"new")
    assert files.find(first) is None  # the oldest file of the clients with the most files is deleted
    assert all(files.find(name) for name in second)
    files.close()


@pytest.mark.slow
def test_nothing_stays_in_the_temporary_folder_after_a_kill(run_folder, tmp_path, monkeypatch):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    command = [sys.executable, "-m", "glassformer", "serve", str(run_folder), "--languages", "en:es", "--port", "0"]
    process = subprocess.Popen([*command, "--log", "nothing"], stderr=subprocess.PIPE, text=True)
    served = Served(process, port_of(process))
    answer = send(served, form(b"<p>the cat sleeps</p><!--" + b"x" * 1_100_000 + b"-->"))
    assert served.get(answer.json["translatedFileUrl"].partition(str(served.port))[2]).status == 200
    process.kill()
    process.communicate()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_a_fetched_file_leaves_room_unless_only_its_head_was_asked_for(run_folder):
    with service(str(run_folder), "--languages", "en:es", "--log", "nothing") as served:
        paths = []
        for _ in range(MOST_OF_CLIENT):
            answer = send(served, form(b"x", "a.txt"))
            assert answer.status == 200
            paths.append(answer.json["translatedFileUrl"].partition(str(served.port))[2])
        assert served.ask(paths[0], "HEAD").status == 200
        refused = send(served, form(b"x", "a.txt"))
        assert (refused.status, refused.json["error"][:9]) == (429, "Slowdown:")
        assert int(refused.headers["Retry-After"]) > 60
        assert served.get(paths[0]).body == served.get(paths[0]).body
        refused = send(served, form(b"x", "a.txt"))
        assert int(refused.headers["Retry-After"]) <= 61
        assert served.json("/translate", {"q": "a", "source": "en", "target": "es"}).status == 200
