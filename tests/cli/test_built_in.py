"""Every command with the model in the package: it works or refuses the model by name, and changes none of its files."""

import os
import re
import signal
import subprocess
import sys
from contextlib import contextmanager
from importlib.util import find_spec
from urllib.request import urlopen

import pytest

import glassformer as gf
from glassformer.built_in import BUILT_IN, built_in_scores, run_folder
from glassformer.cli import COMMANDS
from glassformer.cli.measure.evaluate import print_splits
from glassformer.jobs import SplitResult
from glassformer.system.files import hash_of_file

FOLDER = run_folder(BUILT_IN)
SENTENCE = "The tired animal slept in the park."
FRENCH = "L'animal fatigué dormait dans le parc."

WITHOUT_RUN = {"demo", "learn", "recipes", "prepare", "train", "estimate", "import"}
"""Commands without RUN, or whose RUN is a folder to write."""
WORK = {
    "translate": [["demo", "in.en"], ["demo", "in.en", "--explain"], ["demo", "in.en", "--ensemble", "demo"]],
    "bulk": [["demo", "in.en", "--output", "parts"]],
    "distil": [["demo", "--source", "in.en", "--output", "distilled"]],
    "explore": [["--html", "page.html"], ["demo", SENTENCE, "--html", "page.html", "--snapshots", "2"]],
    "trace": [["demo", SENTENCE]],
    "check": [["demo"]],
    "evaluate": [["demo", "in.en", "in.fr"]],
    "compare": [["demo", "demo", "in.en", "in.fr"]],
    "score": [["demo", "in.en", "in.fr"]],
    "export": [["demo", "mine"]],
}
REFUSED = {
    "average": ["demo"],
    "calibrate": ["demo", "in.en"],
    "tune": ["demo", "in.en", "in.fr", "--lexicon"],
    "report": ["demo", "--output", "report.html"],
}
SERVED = {"explore", "serve"}
"""Commands that run until Ctrl-C."""


@contextmanager
def unchanged():
    """Check that nothing happens to the folder in the package within the context."""

    def state():
        return {path: (path.stat().st_mtime_ns, path.is_dir() or hash_of_file(path)) for path in FOLDER.rglob("*")}

    before = state()
    yield
    assert state() == before


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """Return the current folder, with texts, and an empty cache in it."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    (tmp_path / "in.en").write_text(f"{SENTENCE}\n" * 2, encoding="utf-8")
    (tmp_path / "in.fr").write_text(f"{FRENCH}\n" * 2, encoding="utf-8")
    return tmp_path


def test_every_command_is_tried():
    assert {*WORK, *REFUSED, *SERVED, *WITHOUT_RUN} == {*COMMANDS}


@pytest.mark.slow
@pytest.mark.parametrize("command", WORK)
def test_a_command_that_only_reads_a_run_takes_it(glassformer, command):
    for arguments in WORK[command]:
        with unchanged():
            result = glassformer(command, *arguments)
        assert result.status == 0, result.err


@pytest.mark.slow
def test_it_translates_and_counts_its_words_on_stderr(folder):
    command = [sys.executable, "-m", "glassformer", "translate", "demo", "in.en"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout == f"{FRENCH}\n" * 2
    assert [line for line in done.stderr.splitlines() if "600 English words" in line] == [done.stderr.splitlines()[0]]


@pytest.mark.parametrize("command", REFUSED)
def test_a_command_that_needs_the_files_of_a_training_or_writes_into_its_run_refuses_it_by_name(glassformer, command):
    with unchanged():
        result = glassformer(command, *REFUSED[command])
    assert (result.status, result.out) == (1, "")
    assert f"error: {command}: expected a run that you have trained, got demo, the model in the package" in result.err


@pytest.mark.parametrize(
    ("option", "name"), [(["--lexicon"], "lexicon"), (["--set", "decoding.shortlist=50"], "decoding.shortlist")]
)
def test_an_option_that_needs_more_files_refuses_it_by_name(glassformer, option, name):
    with unchanged():
        result = glassformer("translate", "demo", "in.en", "--engine", "ctranslate2", *option)
    assert result.status == 1
    assert f"{name}: expected a run that you have trained, got demo" in result.err


@pytest.mark.slow
@pytest.mark.skipif(find_spec("ctranslate2") is None, reason="needs CTranslate2")
def test_the_conversion_for_ctranslate2_goes_to_the_cache(glassformer, folder):
    for engine in ("ctranslate2", "auto"):
        with unchanged():
            assert glassformer("translate", "demo", "in.en", "--engine", engine).out == f"{FRENCH}\n" * 2
    assert (folder / "cache" / "glassformer" / "demo" / "ctranslate2" / "float32" / "model.bin").is_file()


@pytest.mark.slow
def test_without_a_cache_pytorch_translates(glassformer, folder, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(folder / "in.en"))  # points to a file, so no cache folder can be created
    with unchanged():
        assert glassformer("translate", "demo", "in.en", "--engine", "auto").out == f"{FRENCH}\n" * 2


@pytest.mark.slow
def test_an_export_goes_to_the_current_folder(glassformer, folder):
    assert glassformer("export", "demo").status == 0
    assert (folder / "demo-ctranslate2-int8" / "model.bin").is_file()


@pytest.mark.slow
@pytest.mark.parametrize(
    "arguments", [["serve", "demo", "--port", "0"], pytest.param(["explore"], marks=pytest.mark.long)]
)
def test_it_is_served(folder, arguments):
    command = [sys.executable, "-m", "glassformer", *arguments]
    with (
        unchanged(),
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=quiet()) as process,
    ):
        url = next(found[0] for line in process.stdout if (found := re.findall(r"http://[\d.]+:\d+/?", line)))
        with urlopen(url) as page:
            assert page.status == 200
        process.send_signal(signal.SIGINT)
        process.communicate()


def quiet():
    return {**os.environ, "DISPLAY": "", "WAYLAND_DISPLAY": ""}


@pytest.mark.parametrize("text", ["The tired animal slept.", "the cat's tail"])
def test_a_sentence_in_place_of_the_run_gets_the_command_to_type(glassformer, text):
    result = glassformer("explore", text)
    assert result.status == 1
    quoted = {"The tired animal slept.": "'The tired animal slept.'", "the cat's tail": "'the cat'\"'\"'s tail'"}[text]
    assert f"`glassformer explore demo {quoted}`" in result.err


def test_a_missing_folder_is_still_named(glassformer):
    assert "'runs/none' does not exist" in glassformer("explore", "runs/none").err


def test_the_demo_prints_its_scores_beside_those_of_the_package(capsys):
    told = built_in_scores()["test"]
    results = [SplitResult(name=name, sentences=1000, exact=98.7, bleu=99.1, pairs={}) for name in ("test", "own")]
    print_splits(results, built_in_scores())
    _, test, own = (line.split() for line in capsys.readouterr().out.splitlines())
    assert test == ["test", "1,000", "98.7", "%", "99.1", f"{told['exact']:.1f}", "%", f"{told['bleu']:.1f}"]
    assert own == ["own", "1,000", "98.7", "%", "99.1"]


@pytest.mark.slow
def test_functions_take_it():
    with unchanged():
        assert repr(gf.explore("demo", SENTENCE)) == f"explorer of demo: {SENTENCE} → {FRENCH}"
        assert repr(gf.explore(live=False)).startswith("explorer of demo: The animal didn't cross the street because")
        assert gf.check("demo").passed
