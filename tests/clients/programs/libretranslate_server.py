"""Translations by a LibreTranslate server that hosts exported packages.

{"packages": [FILE, …], "source": CODE, "target": CODE, "texts": [TEXT, …]} → the translations.
Without a network, LibreTranslate can split texts into sentences only with a spaCy pipeline inside a package, so a blank
pipeline is put into the package.
"""

import json
import os
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from pathlib import Path
from zipfile import ZipFile

import spacy
from libretranslatepy import LibreTranslateAPI

ROOM = 120
"""Seconds in which the server must answer."""


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def install(file, folder):
    with ZipFile(file) as package:
        package.extractall(folder)
        top = folder / package.namelist()[0].split("/")[0]
    language = json.loads((top / "metadata.json").read_text())["from_code"]
    spacy.blank(language).to_disk(top / "spacy")


def wait_for(address):
    for _ in range(ROOM):
        try:
            return urllib.request.urlopen(f"{address}/languages", timeout=5).read()
        except (urllib.error.URLError, OSError):
            time.sleep(1)
    raise SystemExit(f"the server did not answer for {ROOM} s")


asked = json.load(sys.stdin)
with tempfile.TemporaryDirectory() as home:
    for file in asked["packages"]:
        install(file, Path(home) / "packages")
    settings = {f"XDG_{name}_HOME": f"{home}/{name}" for name in ("DATA", "CONFIG", "CACHE")}
    settings |= {"ARGOS_PACKAGES_DIR": f"{home}/packages", "ARGOS_CHUNK_TYPE": "SPACY", "HOME": home}
    port = free_port()
    program = Path(sys.executable).with_name("libretranslate")
    options = ["--host", "127.0.0.1", "--port", str(port), "--load-only", f"{asked['source']},{asked['target']}"]
    with open(f"{home}/log", "w+") as log:
        server = subprocess.Popen(
            [program, *options, "--disable-web-ui"], env={**os.environ, **settings}, stdout=log, stderr=log, cwd=home
        )
        try:
            wait_for(f"http://127.0.0.1:{port}")
            api = LibreTranslateAPI(f"http://127.0.0.1:{port}/")
            answers = [api.translate(text, asked["source"], asked["target"]) for text in asked["texts"]]
        except BaseException:
            log.seek(0)
            sys.stderr.write(log.read())
            raise
        finally:
            server.terminate()
            server.wait()
json.dump(answers, sys.stdout)
