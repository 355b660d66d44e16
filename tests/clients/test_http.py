"""The clients that people already have, unmodified, against `glassformer serve`; and LibreTranslate's own tests."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from serving.conftest import service

pytestmark = [pytest.mark.client, pytest.mark.long]
TEXTS = ["the cat sleeps", "a big black dog sees the cat"]
CONFTEST = """
import json
import pytest
import urllib.error
import urllib.request
from types import SimpleNamespace
from urllib.parse import urlencode


def ask(method, path, data=None, json_fields=None):
    body, kind = None, None
    if json_fields is not None:
        body, kind = json.dumps(json_fields).encode(), "application/json"
    elif data is not None:
        body, kind = urlencode(data).encode(), "application/x-www-form-urlencoded"
    headers = {{"Content-Type": kind}} if kind else {{}}
    request = urllib.request.Request("{url}" + path, body, headers, method=method)
    try:
        answer = urllib.request.urlopen(request)
    except urllib.error.HTTPError as error:
        answer = error
    with answer:
        text = answer.read()
    try:
        parsed = json.loads(text)
    except ValueError:
        parsed = None
    return SimpleNamespace(status_code=answer.status, data=text, json=parsed)


@pytest.fixture
def client():
    return SimpleNamespace(
        get=lambda path: ask("GET", path), post=lambda path, data=None, json=None: ask("POST", path, data, json)
    )
"""


@pytest.fixture(scope="module")
def served(run_folder):
    with service(str(run_folder), "--languages", "en:es", "--log", "nothing") as one:
        yield one


@pytest.fixture(scope="module")
def expected(served):
    answer = served.json("/translate", {"q": TEXTS, "source": "en", "target": "es"}).json
    return answer["translatedText"]


def test_libretranslates_own_tests(client, served, tmp_path):
    [tests] = (client("http") / "lib").glob("python3*/site-packages/libretranslate/tests/test_api")
    shutil.copytree(tests, tmp_path / "test_api")
    (tmp_path / "test_api/conftest.py").write_text(CONFTEST.format(url=f"http://127.0.0.1:{served.port}"))
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        "--rootdir",
        str(tmp_path),
        str(tmp_path),
    ]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
    assert "14 passed" in done.stdout


def test_the_clients_of_python(ask, run_folder, expected, tmp_path):
    made = [sys.executable, "-m", "glassformer", "serve", "--keys", str(tmp_path / "keys"), "--new-key", "me"]
    key = subprocess.check_output(made, text=True).strip()
    options = ("--languages", "en:es", "--log", "nothing", "--keys", str(tmp_path / "keys"))
    with service(str(run_folder), *options) as served:
        found = ask("http", "http_clients", url=f"http://127.0.0.1:{served.port}", texts=TEXTS, key=key)
    for name in ("libretranslatepy", "deep-translator", "deepl", "deepl command"):
        assert found[name] == expected, name
    assert [one["code"] for one in found["languages"]] == ["en", "es"]
    assert found["detected"][0]["language"] == "en"
    assert found["detected by deepl"] == ["EN", "EN"]
    assert found["billed"] == [len(text) for text in TEXTS]
    assert (found["sources"], found["targets"]) == ([["EN", "English"]], [["ES", "Spanish"]])
    assert found["usage"][0] >= 2 * sum(map(len, TEXTS))
    assert found["usage"][1] is False
    assert found["wrong key"] == ["AuthorizationException", "AuthorizationException"]


def test_the_clients_of_node(ask, served, expected):
    found = ask("node", "http_clients", url=f"http://127.0.0.1:{served.port}", texts=TEXTS, key="any")
    assert found["translate"] == found["deepl-node"] == expected
    assert found["languages"] == ["es"]


def test_schemathesis_finds_nothing_wrong(client, served, tmp_path):
    """Generated requests, right and wrong ones: each answer is one that the description names."""
    program = client("http") / "bin/schemathesis"
    config = Path(__file__).parent / "programs/schemathesis.toml"
    url = f"http://127.0.0.1:{served.port}/openapi.json"
    command = [program, "--config-file", config, "run", url, "--max-examples", "60", "--seed", "1"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
