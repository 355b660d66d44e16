"""`glassformer explore`: a page in a file, or a page that is served until Ctrl-C."""

import os
import re
import signal
import socket
import subprocess
import sys
from urllib.request import urlopen

import pytest


def test_html_writes_one_page_and_prints_its_size(glassformer, trained, tmp_path):
    result = glassformer("explore", trained, "the cat sees a dog", "--html", tmp_path / "page.html")
    size = (tmp_path / "page.html").stat().st_size
    assert result.out == f"{tmp_path / 'page.html'}: {size / 1e6:.1f} MB; open it in a browser, no network is needed\n"
    assert "the cat sees a dog" in (tmp_path / "page.html").read_text(encoding="utf-8")


def test_a_recorded_page_of_a_small_model_is_for_sharing_a_sentence(glassformer, trained, tmp_path):
    result = glassformer("explore", trained, "the cat sees a dog", "--html", tmp_path / "page.html", "--recorded")
    assert (result.status, result.out.count("\n")) == (0, 1)
    assert '"recorded":true' in (tmp_path / "page.html").read_text(encoding="utf-8")


def test_a_page_without_the_snapshots_asked_for_reports_it(glassformer, trained, tmp_path):
    left_out = "left out: the training: the run has no snapshots; train with training.snapshots = 6 to keep some"
    result = glassformer("explore", trained, "--html", tmp_path / "page.html", "--snapshots", 3)
    assert (result.out.splitlines()[1], result.err) == (left_out, "")


def test_unknown_words_are_named_and_shown_as_unknown(glassformer, trained, tmp_path):
    result = glassformer("explore", trained, "the <b>gnu</b> sees", "--html", tmp_path / "page.html")
    assert result.status == 0
    first, second = result.err.splitlines()
    assert first == "not in the vocabulary, so the model reads <unk> instead: '<b>gnu</b>'"
    assert second == "this is the line as it is; `translate` lets the model read 'the gnu sees'"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["", "--html", "page.html"], "the text is blank"),
        (["  "], "the text is blank"),
        (["\udcff"], "not valid Unicode"),
        (["cat " * 1100, "--html", "page.html"], "expected 1 to 1023 tokens, got 1100"),
        (["--html", "."], ". is a folder: give a file name"),
        (["--html", "missing/page.html"], "the folder missing of page.html does not exist"),
        (["--html", "page.html", "--port", "80"], "--port 80 has no effect with --html"),
        (["--recorded"], "--recorded has no effect without --html FILE"),
        (["--html", "page.html", "--recorded", "--snapshots", "2"], "because a recording has no weights"),
        (["--snapshots", "2"], "--snapshots has no effect without --html FILE"),
    ],
)
def test_invalid_input_is_refused_and_writes_nothing(glassformer, trained, tmp_path, monkeypatch, arguments, message):
    monkeypatch.chdir(tmp_path)
    result = glassformer("explore", trained, *arguments)
    assert (result.status, result.out) == (1, "")
    assert message in result.err
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_is_not_a_run_is_refused(glassformer, tmp_path):
    assert "does not exist; give the folder of a run" in glassformer("explore", tmp_path / "none").err


@pytest.mark.slow
def test_help_does_not_load_torch():
    code = "import sys\ntry:\n    main(['explore', '--help'])\nfinally:\n    assert 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", f"from glassformer.cli import main\n{code}"], check=True, capture_output=True)


@pytest.mark.slow
@pytest.mark.parametrize("port", [[], pytest.param(["--port", "0"], marks=pytest.mark.long)])
def test_the_page_is_served_until_ctrl_c(trained, port):
    command = [sys.executable, "-m", "glassformer", "explore", str(trained), *port]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen(command, **pipes, text=True, env={**os.environ, "DISPLAY": ""}) as process:
        line = process.stdout.readline()
        [url] = re.findall(r"http://127\.0\.0\.1:\d+/", line)
        with urlopen(url) as page:
            assert b"<title>run" in page.read()
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=30)
    assert (process.returncode, out) == (0, "\n")
    assert "Traceback" not in err


@pytest.mark.slow
def test_a_port_in_use_is_an_error(glassformer, trained):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        result = glassformer("explore", trained, "--port", port)
    assert result.status == 1
    assert f"cannot listen on port {port}: Address already in use; give another --port" in result.err
