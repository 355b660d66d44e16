"""`glassformer learn`: the book, served to this machine, or an error that says what is missing."""

import re
import signal
import socket
import subprocess
import sys
from threading import Thread
from urllib.error import HTTPError
from urllib.request import urlopen

import pytest

from glassformer.cli.use import learn


@pytest.fixture
def site(tmp_path, monkeypatch):
    """Return a small site that replaces the book's."""
    for name in ("index", "attention", "experiments/beam", "zh/attention"):
        path = tmp_path / "site" / f"{name}.html"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"<title>{name}</title>", encoding="utf-8")
    (tmp_path / "site" / "contents.txt").write_text("index\nattention\nexperiments/beam\n", encoding="utf-8")
    monkeypatch.setattr(learn, "SITE", tmp_path / "site")
    return tmp_path / "site"


def test_the_chapters_are_listed_in_order(glassformer, site):
    assert glassformer("learn", "--list").out.split() == ["index", "attention", "experiments/beam"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["atention"], "got 'atention' (did you mean 'attention'?)"),
        (["experiments/beam", "--zh"], "'experiments/beam' has no Chinese edition"),
        (["../secret"], "got '../secret'"),
    ],
)
def test_a_missing_chapter_is_named(glassformer, site, arguments, message):
    result = glassformer("learn", *arguments)
    assert result.status == 1
    assert message in result.err


def test_a_missing_book_is_an_error_with_advice(glassformer, tmp_path, monkeypatch):
    monkeypatch.setattr(learn, "SITE", tmp_path)
    monkeypatch.setattr(learn, "BUILDER", tmp_path / "build.py")
    assert "run `make site` in a clone of glassformer, then `.venv/bin/glassformer learn`" in glassformer("learn").err


def test_a_checkout_builds_its_book_without_a_trained_demo(glassformer, tmp_path, monkeypatch):
    builder = tmp_path / "docs" / "site" / "build.py"
    builder.parent.mkdir(parents=True)
    monkeypatch.setattr(learn, "SITE", tmp_path)
    monkeypatch.setattr(learn, "BUILDER", builder)
    builder.write_text(f"open({str(tmp_path / 'contents.txt')!r}, 'w').write('index attention')", encoding="utf-8")
    result = glassformer("learn", "--list")
    assert (result.status, result.out.split()) == (0, ["index", "attention"])
    (tmp_path / "contents.txt").unlink()
    builder.write_text("raise SystemExit(1)", encoding="utf-8")
    assert "the documentation could not be built; see the error above" in glassformer("learn", "--list").err


def test_a_source_file_that_the_wheel_leaves_out_of_the_site_comes_from_the_package(site):
    found = learn._left_out("/source/src/glassformer/model/attention.py.html#attention")
    assert found.content == (learn.PACKAGE / "model" / "attention.py").read_bytes()
    for secret in ("/source/src/../../../README.md.html", "/source/src/glassformer/%2e%2e/%2e%2e/README.md", "/x.html"):
        assert learn._left_out(secret) is None


@pytest.mark.slow
def test_the_explorer_that_the_wheel_leaves_out_of_the_site_shows_the_model_in_the_package(site):
    with learn._server(0) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        with urlopen(f"http://127.0.0.1:{server.server_port}/explorer.html#chapter=0") as page:
            assert b"<title>demo" in page.read()
        (site / "explorer.html").write_text("the site's own", encoding="utf-8")
        with urlopen(f"http://127.0.0.1:{server.server_port}/explorer.html") as page:
            assert page.read() == b"the site's own"
        server.shutdown()


@pytest.mark.slow
def test_the_book_is_served_until_ctrl_c(site):
    code = (
        "import pathlib; from glassformer.cli import main; from glassformer.cli.use import learn\n"
        f"learn.SITE = pathlib.Path({str(site)!r})\n"
        "main(['learn', 'attention', '--zh', '--port', '0', '--no-browser'])"
    )
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as process:
        line = process.stdout.readline()
        [url] = re.findall(r"http://127\.0\.0\.1:\d+/zh/attention\.html", line)
        with urlopen(url) as answer:
            assert answer.read() == b"<title>zh/attention</title>"
        with pytest.raises(HTTPError):
            urlopen(url.replace("zh/attention", "none"))
        process.send_signal(signal.SIGINT)
        assert process.wait(10) == 0


def test_a_port_in_use_is_named(glassformer, site):
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        assert f"port {port} cannot be used" in glassformer("learn", "--port", port).err


@pytest.mark.slow
def test_a_readers_file_is_checked(glassformer, tmp_path):
    mine = tmp_path / "mine.py"
    mine.write_text("")
    empty = glassformer("learn", "--check", mine)
    assert empty.status == 0
    assert empty.out.startswith("step 1 is next: write `attention(query, key, value, mask)`\n")
    mine.write_text("def attention(query, key, value, mask):\n    weights = (query @ key.mT).softmax(-1) * mask\n"
                    "    return weights @ value, weights\n")  # fmt: skip
    wrong = glassformer("learn", "--check", mine)
    assert wrong.status == 1
    assert "✗  1 mine.py, line 1: the first tensor that differs is `weights`: expected " in wrong.out
    assert "step 1 is next: mend `attention(query, key, value, mask)`" in wrong.out


def test_options_that_exclude_each_other_are_named(glassformer, tmp_path):
    assert "CHAPTER: has no effect with --check" in glassformer("learn", "attention", "--check", tmp_path).err
    assert "--json: has an effect only with --check" in glassformer("learn", "--json").err
    assert "expected a Python file, got a folder" in glassformer("learn", "--check", tmp_path).err
