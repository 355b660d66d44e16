"""`glassformer learn`: the book, served to this machine, or an error that says what is missing."""

import re
import signal
import socket
import subprocess
import sys
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
    links = "".join(
        f'<a class="reference internal" href="{name}.html">' for name in ("attention", "experiments/beam", "attention")
    )
    (tmp_path / "site" / "index.html").write_text(links, encoding="utf-8")
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
    assert "run `make docs`" in glassformer("learn").err
    (tmp_path / "docs" / "site").mkdir(parents=True)
    (tmp_path / "docs" / "site" / "build.py").touch()
    monkeypatch.setattr(learn, "BUILDER", tmp_path / "docs" / "site" / "build.py")
    assert "needs the demo's model: run `make docs`" in glassformer("learn").err


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
