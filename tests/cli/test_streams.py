"""Unusual standard streams, as from pipes, cron and services: closed, slow, full, in a different encoding."""

import os
import signal
import subprocess
import sys
import time

import pytest

pytestmark = pytest.mark.slow

COMMAND = [sys.executable, "-m", "glassformer"]


def shell(line: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run a line of shell, in which `$G` is the command."""
    given = {**os.environ, "G": f"{sys.executable} -m glassformer", **environment}
    return subprocess.run(["bash", "-c", line], capture_output=True, env=given, encoding="utf-8", timeout=120)


def test_closed_standard_input_is_an_error_of_one_sentence(trained):
    done = shell(f"$G translate {trained} <&-")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == "error: standard input is closed; give a FILE, or redirect standard input\n"


def test_a_file_is_translated_whether_standard_input_is_open_or_not(glassformer, trained, tmp_path):
    (tmp_path / "text").write_text("a b\nb a\n", encoding="utf-8")
    closed = shell(f"$G translate {trained} {tmp_path / 'text'} --engine torch <&-")
    assert (closed.returncode, closed.stderr) == (0, "")
    assert closed.stdout == glassformer("translate", trained, stdin=b"a b\nb a\n").out
    assert closed.stdout.count("\n") == 2


@pytest.mark.parametrize(
    "command", ["translate {run}", "recipes", pytest.param("evaluate {run}", marks=pytest.mark.long)]
)
def test_closed_standard_output_is_an_error(trained, command):
    done = shell(f"echo 'a b' | $G {command.format(run=trained)} >&-")
    assert done.returncode == 1
    assert "standard output is closed" in done.stderr


def test_closed_standard_error_does_not_change_the_output(trained):
    done = shell(f"printf 'a b\\n\\n' | $G translate {trained} 2>&-")
    assert done.returncode == 0
    assert done.stdout.count("\n") == 2
    assert "no translation" not in done.stdout


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="the system has no /dev/full")
def test_a_full_disk_behind_standard_output_is_an_error(trained):
    done = shell(f"echo 'a b' | $G translate {trained} > /dev/full")
    assert done.returncode == 1
    assert done.stderr.startswith("error: ")
    assert "No space left" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("encoding", ["ascii", pytest.param("latin-1", marks=pytest.mark.long)])
def test_output_is_utf_8_in_any_locale(trained, encoding):
    done = shell(f"echo 'a b' | $G translate {trained} --explain", PYTHONIOENCODING=encoding, LC_ALL="C")
    assert done.returncode == 0
    assert done.stderr == ""


@pytest.mark.parametrize("columns", ["0", "-3", "wide"])
def test_an_invalid_number_of_columns_does_not_empty_the_output(glassformer, trained, monkeypatch, columns):
    found = []
    for given in ("80", columns):
        monkeypatch.setenv("COLUMNS", given)
        found.append(glassformer("translate", trained, "--explain", stdin=b"a b\n").out)
    assert "a" in found[0]
    assert found[1] == found[0]


@pytest.mark.parametrize(
    ("engine", "options"),
    [
        ("torch", []),
        ("auto", ["--n-best", "2"]),
        pytest.param("torch", ["--n-best", "2"], marks=pytest.mark.long),
        pytest.param("torch", ["--explain"], marks=pytest.mark.long),
        pytest.param("auto", [], marks=pytest.mark.long),
        pytest.param("auto", ["--explain"], marks=pytest.mark.long),
    ],
)
def test_each_line_is_answered_before_the_next_is_read(trained, options, engine):
    command = [*COMMAND, "translate", str(trained), "--engine", engine, *options]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        for _ in range(3):
            process.stdin.write(b"a b\n")
            process.stdin.flush()
            assert process.stdout.readline()  # a deadlock would end in the test's time limit
            while options:  # with an option, the answer to a text has several lines
                time.sleep(0.2)
                os.set_blocking(process.stdout.fileno(), False)
                process.stdout.read()
                os.set_blocking(process.stdout.fileno(), True)
                break
        process.stdin.write(b"b")
        process.stdin.close()
        assert process.stdout.readline()
    assert process.returncode == 0


def test_lines_that_arrive_in_pieces_are_joined(trained):
    whole = shell(f"printf 'a b\\nb a\\r\\nb' | $G translate {trained}").stdout
    pieces = shell(f"(printf 'a '; sleep 0.3; printf 'b\\nb a\\r'; sleep 0.3; printf '\\nb') | $G translate {trained}")
    assert pieces.stdout == whole
    assert whole.count("\n") == 3


def test_ctrl_c_ends_a_long_translation_soon(trained, tmp_path):
    pytest.importorskip("ctranslate2")
    (tmp_path / "text").write_text("a b a b a b a b a b a b\nb a b\n" * 50_000, encoding="utf-8")
    command = [
        *COMMAND,
        "translate",
        str(trained),
        str(tmp_path / "text"),
        "--engine",
        "ctranslate2",
        "--beam-size",
        "4",
    ]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        process.stdout.readline()
        process.send_signal(signal.SIGINT)
        begun = time.monotonic()
        process.stdout.read()
        process.wait()
    assert process.returncode == 130
    assert time.monotonic() - begun < 5  # finishing the whole queue first took 11 seconds
