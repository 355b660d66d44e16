"""The files in deploy/: an environment without PyTorch serves an exported folder; the unit of systemd is right."""

import http.client
import json
import re
import shutil
import signal
import subprocess
from pathlib import Path

import pytest

from glassformer.interop.ctranslate2.writer import export_ctranslate2
from glassformer.translator import Translator
from models import random_translator

pytestmark = [pytest.mark.client, pytest.mark.long]
ROOT = Path(__file__).parents[2]
MEGABYTES = 400
TEXT = "the cat sleeps. A big black dog sees the cat."


def test_an_environment_without_torch_serves_an_exported_folder(client, tmp_path):
    environment = client("serve")
    translator = random_translator(tmp_path / "run", extra_length=5)
    translator.bundle.save(translator.model)
    export_ctranslate2(translator.bundle, tmp_path / "exported")
    command = [environment / "bin/glassformer", "serve", tmp_path / "exported", "--languages", "en:fr", "--port", "0"]
    with subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE, text=True) as process:
        said = process.stderr.readline()
        port = re.search(r"http://127.0.0.1:(\d+)/", said)
        assert port, said + process.stderr.read()
        connection = http.client.HTTPConnection("127.0.0.1", int(port[1]), timeout=60)
        connection.request("POST", "/v1/translate", json.dumps({"texts": [TEXT]}))
        answer = json.loads(connection.getresponse().read())
        connection.request("GET", "/explore", headers={"Accept": "text/html"})
        refused = connection.getresponse()
        why = json.loads(refused.read())["error"]
        connection.close()
        process.send_signal(signal.SIGTERM)
        process.stderr.read()
    assert process.returncode == 0
    assert refused.status == 501
    assert why.startswith("the explorer needs PyTorch")
    own = Translator.load(tmp_path / "exported", engine="ctranslate2").translate(
        ["the cat sleeps.", "A big black dog sees the cat."]
    )
    assert answer["translations"][0]["text"] == " ".join(one.text for one in own)


def test_the_environment_is_small_and_has_no_torch(client):
    packages = next((client("serve") / "lib").glob("python*/site-packages"))
    assert not (packages / "torch").exists()
    own = [path for path in packages.rglob("*") if path.is_file() and "pip" not in path.relative_to(packages).parts[0]]
    assert sum(path.stat().st_size for path in own) < MEGABYTES * 1e6


def test_the_packages_are_those_of_the_constraints():
    pinned = set((ROOT / "constraints.txt").read_text().splitlines())
    wanted = [line for line in (ROOT / "deploy/serve.txt").read_text().splitlines() if not line.startswith("#")]
    assert [line for line in wanted if line not in pinned] == []


@pytest.mark.skipif(not shutil.which("systemd-analyze"), reason="systemd-analyze is not installed")
def test_the_unit_is_one_that_systemd_understands(tmp_path):
    unit = (ROOT / "deploy/glassformer.service").read_text()
    program = re.search(r"ExecStart=(\S+)", unit)[1]
    (tmp_path / "glassformer.service").write_text(unit.replace(program, "/bin/true"))
    checked = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", tmp_path / "glassformer.service"], capture_output=True, text=True
    )
    assert "glassformer.service" not in checked.stderr, checked.stderr
