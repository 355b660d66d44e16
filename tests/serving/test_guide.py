"""The guide's page on the service works as printed: its commands, its clients and its browser page."""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from serving.conftest import Served, service

PAGE = Path(__file__).parents[2] / "docs/guide/service.md"
ADDRESS = "127.0.0.1:5000"
ELSEWHERE = ("pip ", "deepl ")
"""Commands that are not executed here: an installation, and a client below."""
TEXT = "The cat slept on the rug."


def blocks(*languages: str) -> list[str]:
    """Return the page's code blocks in some languages, in order."""
    found = re.findall(r"```(\w+)\n(.*?)```", PAGE.read_text(encoding="utf-8"), flags=re.DOTALL)
    return [text for language, text in found if language in languages]


@pytest.fixture(scope="module")
def folder(english_french_run: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with the files that the page names; a small random run takes the place of the demo's run."""
    folder = tmp_path_factory.mktemp("guide")
    shutil.copytree(english_french_run, folder / "runs/demo")
    (folder / "page.html").write_text("<p>The <b>cat</b> slept.</p>\n", encoding="utf-8")
    return folder


@pytest.fixture
def served(folder: Path) -> Iterator[Served]:
    """Return a service of the run."""
    with service(str(folder / "runs/demo"), "--log", "nothing") as one:
        yield one


def shell(line: str, folder: Path) -> str:
    """Run a line with the environment's commands on the path; return what it prints."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        ["bash", "-ec", line], cwd=folder, env={**os.environ, "PATH": path}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, f"{line}\n{done.stderr}"
    return done.stdout


def answers_of(printed: str) -> list[dict[str, Any]]:
    """Return the JSON of an answer, or of each event of a stream."""
    if not printed.startswith("event: "):
        return [json.loads(printed)]
    events = [event.splitlines() for event in printed.strip().split("\n\n")]
    assert events[-1] == ["event: end", "data: {}"]
    return [json.loads(data.removeprefix("data: ")) for _, data in events[:-1]]


@pytest.mark.slow
def test_the_commands_run_as_printed(folder, monkeypatch):
    monkeypatch.chdir(folder)
    lines = [line for block in blocks("bash") for line in block.splitlines() if not line.startswith(ELSEWHERE)]
    answers, keys, port = [], [], 0
    with ExitStack() as services:
        for line in lines:
            if line.startswith("glassformer serve") and "--new-key" not in line:
                services.close()
                port = services.enter_context(service(*shlex.split(line)[2:], "--log", "nothing")).port
            elif line.startswith("glassformer"):
                keys.append(shell(line, folder).strip())
            else:
                assert line.startswith("curl "), line
                answers += answers_of(shell(line.replace(ADDRESS, f"127.0.0.1:{port}"), folder))
        asked = f"curl http://127.0.0.1:{port}/translate -d q=cat -d source=en -d target=fr -d api_key={keys[0]}"
        # the last service on the page needs the key that was created before
        answers += answers_of(shell(asked, folder))
    assert len(answers) >= 4
    assert all("error" not in answer for answer in answers)
    assert answers[0].keys() == {"translatedText"}


@pytest.mark.client
@pytest.mark.long
def test_the_clients_run_as_printed(client: Callable[[str], Path], served, folder):
    bin = client("http") / "bin"
    expected = served.json("/translate", {"q": TEXT, "source": "en", "target": "fr"}).json["translatedText"]
    [program] = blocks("python")
    [command] = [line for block in blocks("bash") for line in block.splitlines() if line.startswith("deepl ")]
    alone = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    for arguments in ([bin / "python", "-c", program], [bin / "python", bin / "deepl", *shlex.split(command)[1:]]):
        here = [str(one).replace(ADDRESS, f"127.0.0.1:{served.port}") for one in arguments]
        printed = subprocess.run(here, env=alone, capture_output=True, text=True, check=False)
        assert printed.stdout.strip() == expected.strip(), printed.stderr


@pytest.mark.browser
def test_the_page_translates_what_is_typed(served, browser: Any):
    expected = served.json("/translate", {"q": TEXT, "source": "en", "target": "fr"}).json["translatedText"]
    page = browser.new_page()
    page.goto(f"http://127.0.0.1:{served.port}/")
    page.locator("textarea").press_sequentially(TEXT)
    page.locator(".target[aria-busy=false] .word").first.wait_for()
    assert page.locator(".target .word").all_text_contents() == expected.split()
    page.close()
