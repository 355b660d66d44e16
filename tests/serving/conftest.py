"""Services that translate with small runs, as processes that listen on the loopback address."""

import asyncio
import http.client
import json
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Coroutine, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import urlencode

import psutil
import pytest

from models import random_translator

T = TypeVar("T")


@dataclass
class Answer:
    """An answer over HTTP."""

    status: int
    headers: http.client.HTTPMessage
    body: bytes

    @property
    def json(self) -> Any:
        """The body as JSON."""
        return json.loads(self.body)


@dataclass
class Served:
    """A running service."""

    process: subprocess.Popen[str]
    port: int

    def ask(self, path: str, method: str = "POST", body: bytes = b"", seconds: float = 60, **headers: str) -> Answer:
        """Send a request and return the answer; headers are keyword arguments, such as `content_type=`."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=seconds)
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        try:
            connection.request(method, path, body or None, named)
            got = connection.getresponse()
            return Answer(got.status, got.headers, got.read())
        finally:
            connection.close()

    def get(self, path: str, **headers: str) -> Answer:
        """Send a GET request."""
        return self.ask(path, "GET", **headers)

    def json(self, path: str, fields: object, **headers: str) -> Answer:
        """Send fields as JSON."""
        return self.ask(path, body=json.dumps(fields).encode(), content_type="application/json", **headers)

    def form(self, path: str, **fields: str) -> Answer:
        """Send fields as a form."""
        return self.ask(path, body=urlencode(fields).encode(), content_type="application/x-www-form-urlencoded")

    def metric(self, name: str) -> float:
        """Return the value of a counter, such as 'glassformer_queue{model="en-es"}', or 0 if it has not counted yet."""
        lines = self.get("/metrics").body.decode().splitlines()
        return next((float(line.rpartition(" ")[2]) for line in lines if line.startswith(f"{name} ")), 0.0)

    def engines(self) -> list[int]:
        """Return the ids of the models' processes and of the processes that read long texts, oldest first."""
        children = psutil.Process(self.process.pid).children()
        return [child.pid for child in sorted(children, key=psutil.Process.create_time)]


def finished(work: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine in a new thread, because browser tests keep an event loop in this thread; return the result."""
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(asyncio.run, work).result()


def until(holds: Callable[[], object], what: str, seconds: float = 30) -> None:
    """Wait until a condition holds; fail after a time that is long even on a busy machine."""
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline, what
        time.sleep(0.05)


QUEUE = 'glassformer_queue{model="en-es"}'


def until_in_engine(served: Served) -> None:
    """Wait until of two texts that share no batch one is in the engine, which is stopped, and the other waits."""
    until(lambda: served.metric(QUEUE) == 1, "no text is in the engine, or no other waits")


def connected(served: Served, data: bytes = b"") -> socket.socket:
    """Return a connection on which some bytes have been sent."""
    client = socket.create_connection(("127.0.0.1", served.port), timeout=30)
    client.sendall(data)
    return client


def connections(served: Served) -> int:
    """Return the number of open connections of a service."""
    open_ones = psutil.Process(served.process.pid).net_connections()
    return sum(one.status == psutil.CONN_ESTABLISHED for one in open_ones)


def until_ended(served: Served, before: bytes, drop: bytes) -> None:
    """Send some bytes, and then a few more bytes at a time, until the service ends the connection."""
    with connected(served, before) as client:
        client.settimeout(0.1)

        def is_ended() -> bool:
            try:
                client.sendall(drop)
                return client.recv(65536) == b""
            except TimeoutError:
                return False
            except OSError:
                return True

        until(is_ended, "the connection is still open")


def port_of(process: subprocess.Popen[str]) -> int:
    """Return the port that a starting service prints after its other messages."""
    assert process.stderr
    lines = []
    for line in process.stderr:
        lines.append(line)
        if found := re.search(r"http://127.0.0.1:(\d+)/", line):
            return int(found[1])
    raise AssertionError("".join(lines))


@contextmanager
def service(*arguments: str, files: int | None = None) -> Iterator[Served]:
    """Run `glassformer serve` on a free port; end it with SIGTERM, and check that it ends without an error.

    `files` is the maximum number of files that the service may open at the same time.
    """
    command = [sys.executable, "-m", "glassformer", "serve", *arguments, "--port", "0"]
    if files:
        command = ["bash", "-c", f'ulimit -n {files}; exec "$@"', "--", *command]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    port = port_of(process)
    try:
        yield Served(process, port)
    finally:
        process.send_signal(signal.SIGTERM)
        _, rest = process.communicate(timeout=60)
    assert process.returncode == 0, rest
    assert "Traceback" not in rest


@pytest.fixture(scope="session")
def run_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a small run with random weights."""
    translator = random_translator(tmp_path_factory.mktemp("serving"), extra_length=5)
    translator.bundle.save(translator.model)
    return translator.bundle.folder


@pytest.fixture(scope="session")
def english_french_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a small run with random weights that names its languages."""
    translator = random_translator(tmp_path_factory.mktemp("named"), extra_length=5)
    configuration = translator.bundle.configuration
    data = replace(configuration.data, source_language="en", target_language="fr")
    bundle = replace(translator.bundle, configuration=replace(configuration, data=data))
    bundle.save(translator.model)
    return bundle.folder


@pytest.fixture(scope="session")
def served(run_folder: Path) -> Iterator[Served]:
    """Return a service that translates from English to Spanish, with small limits."""
    limits = ("--set", "serving.characters=5000", "--set", "serving.texts=50", "--log", "nothing")
    with service(str(run_folder), "--languages", "en:es", *limits) as one:
        yield one


@pytest.fixture
def start() -> Callable[..., Any]:
    """Return `service`."""
    return service
