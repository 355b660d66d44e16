"""Measure `glassformer serve` under load: `python -m benchmarks.service RUN [--minutes 10]`.

Five measurements, on the loopback address, with the demo's grammar as texts:

- *Endurance.* 100 clients each send their next request when they have an answer. A request has 1 to 16 texts; one
  request in twenty has 256 texts. The benchmark counts the statuses, and the translations that differ from the
  translation of the text alone. Every second, it reads the memory of all processes of the service.
- *Lines per CPU second.* The same lines by `translate` and by 100 clients of the service, in turns. CPU seconds are
  summed over the service's processes. For `translate`, the CPU seconds of translating one line are subtracted, so that
  its start is not counted.
- *Latency compared with LibreTranslate's own server*, with the same CTranslate2 model and Argos' search, in turns, one
  text per request. This measurement needs `--subwords RUN`, a run with joint subwords, because Argos' packages support
  no other tokenizers. It also needs the environment of `make .clients/libretranslate/installed`.
- *The adversary* (`--adversary MINUTES`). Clients that send ordinary requests, clients that send the worst known
  inputs, and clients without a valid key send requests at the same time. Another process requests /health and tries a
  wrong key, in a header and in the body, in turns. A key in the body is timed from the last byte of the body. The
  benchmark counts the statuses. The goals: at most 0.2 s at the 99th percentile of /health, at most 50 ms for a wrong
  key on an idle service, and no status of 500 or more except 503.
- *The page*, in headless Chromium: texts are typed with 60 ms per key. The time is measured from the last key until the
  frame that shows the translation.

Writes results/service.json.
"""

import argparse
import asyncio
import http.client
import io
import json
import os
import random
import re
import socket
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from statistics import quantiles
from typing import Any
from zipfile import ZipFile

import aiohttp
import psutil
from playwright.sync_api import sync_playwright

from benchmarks.browser import FLAGS, chromium
from benchmarks.command import as_command
from benchmarks.processes import rotated
from benchmarks.results import Spread, described, machine, number, read, spread, table, write
from glassformer.bundle import Bundle
from glassformer.corpus.tasks import english_french
from glassformer.interop.argos.writer import export_argos
from glassformer.interop.exporting import ExportOptions
from glassformer.serving.limits import add_key
from glassformer.translator import Translator

NAME = "service"
CLIENTS = 100
MOST_TEXTS = 16
MANY_TEXTS = 256
MANY_SHARE = 0.05
SETTLED = 120.0
"""Number of seconds after which the memory must not change any more."""
LINES = 3200
TEXTS_PER_REQUEST = (1, 8, 64)
REQUESTS = 200
"""Number of requests to each server in a round of the latency measurement."""
ARGOS_SEARCH = ("decoding.beam_size=4", "decoding.length_penalty=0.2", "decoding.extra_length=256")
"""The decoding settings that Argos always uses, so that both services do the same work."""
START_SECONDS = 180.0
KEY_MS = 60
WATCH = """() => {
  const [source, target] = ["textarea", ".target"].map((one) => document.querySelector(one));
  const state = (globalThis.measured = { typed: 0, shown: null });
  source.addEventListener("input", ({ timeStamp }) => Object.assign(state, { typed: timeStamp, shown: null }));
  new MutationObserver(() => {
    const { typed } = state;
    if (target.ariaBusy !== "false" || !target.textContent) return;
    requestAnimationFrame(() => typed === state.typed && (state.shown ??= performance.now()));
  }).observe(target, { attributes: true, childList: true });
}"""
DELAY = """() => new Promise((done) => {
  const { measured } = globalThis;
  const look = () => (measured.shown === null ? setTimeout(look, 10) : done(measured.shown - measured.typed));
  look();
})"""
JSON = "application/json"
FORM = "application/x-www-form-urlencoded"
WORST_CLIENTS = 8
ALONE_SECONDS = 10.0
ARRIVAL_SECONDS = 0.5
"""Time after which the service has certainly read all bytes of a body that were sent so far."""
PROBE = """
import http.client, json, sys, time
port, seconds, every = int(sys.argv[1]), float(sys.argv[2]), float(sys.argv[3])
ORDINARY = json.dumps({"q": ["a cat"] * 64, "source": "en", "target": "fr", "api_key": "wrong"}).encode()
found, end = [], time.monotonic() + seconds
while time.monotonic() < end:
    for name, method, path, headers, body in (
        ("health", "GET", "/health", {}, b""),
        ("wrong key", "POST", "/v1/translate", {"Authorization": "Bearer wrong", "Content-Length": "100000"}, b""),
        ("wrong key in the body", "POST", "/translate", {"Content-Type": "application/json"}, ORDINARY),
    ):
        client = http.client.HTTPConnection("127.0.0.1", port, timeout=120)
        began = time.perf_counter()
        client.putrequest(method, path)
        for header in headers.items():
            client.putheader(*header)
        if body:
            client.putheader("Content-Length", str(len(body)))
        client.endheaders(body[:-1])
        if body:
            time.sleep(0.01)
            began = time.perf_counter()
            client.send(body[-1:])
        status = client.getresponse().status
        found.append((name, status, time.perf_counter() - began))
        client.close()
    time.sleep(every)
print(json.dumps(found))
"""
"""A program that requests /health, sends a wrong key in a header before a body that never comes, and a wrong key in a
body."""
LIBRETRANSLATE = Path(".clients/libretranslate")
BLANK = "import sys, spacy; spacy.blank(sys.argv[1]).to_disk(sys.argv[2])"
"""Without a network, LibreTranslate splits texts only by a pipeline of spaCy inside a package."""


@dataclass
class Load:
    """The answers that clients have got."""

    statuses: Counter[int] = field(default_factory=Counter)
    seconds: list[float] = field(default_factory=list)
    """Seconds of each answered request; sorted in ascending order after the load has ended."""
    texts: int = 0
    different: int = 0
    """Number of translations that differ from the translation of the same text alone."""
    wall: float = 0.0


@dataclass
class Server:
    """A running server: its address and its processes."""

    url: str
    process: psutil.Process

    @property
    def processes(self) -> list[psutil.Process]:
        """The server's process and the processes that it has started."""
        return [self.process, *self.process.children(recursive=True)]

    def cpu_seconds(self) -> float:
        """Return the CPU seconds of all processes so far."""
        return float(sum(sum(one.cpu_times()[:2]) for one in self.processes))

    def memory(self) -> float:
        """Return the resident megabytes of all processes."""
        return float(sum(one.memory_info().rss for one in self.processes)) / 1e6


@contextmanager
def ours(run: Path, *settings: str, keys: Path | None = None) -> Iterator[Server]:
    """Serve a run until the context ends."""
    changed = [part for one in settings for part in ("--set", one)]
    changed += ["--keys", str(keys)] if keys else []
    command = [sys.executable, "-m", "glassformer", "serve", str(run), "--port", "0", "--log", "nothing", *changed]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr
        said = ""
        while not (found := re.search(r"http://\S+:\d+", said)):
            line = process.stderr.readline()
            if not line:
                raise OSError(f"the service has not started: {said}")
            said += line
        try:
            yield Server(found[0], psutil.Process(process.pid))
        finally:
            process.terminate()
            process.stderr.read()


@contextmanager
def libretranslate(environment: Path, run: Path, folder: Path) -> Iterator[Server]:
    """Serve the run with LibreTranslate, as a package for Argos, until the context ends."""
    bundle = Bundle.load(run)
    for source, target in (("en", "fr"), ("fr", "en")):  # LibreTranslate downloads a missing direction
        data = replace(bundle.configuration.data, source_language=source, target_language=target)
        turned = replace(bundle, configuration=replace(bundle.configuration, data=data))
        package = folder / f"{source}.argosmodel"
        export_argos(turned, package, ExportOptions(quantization="float32", verified=False))
        with ZipFile(package) as file:
            file.extractall(folder / "packages")
            top = folder / "packages" / file.namelist()[0].split("/")[0]
        subprocess.run([environment / "bin/python", "-c", BLANK, source, top / "spacy"], check=True)
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        port = one.getsockname()[1]
    homes = {f"XDG_{name}_HOME": f"{folder}/{name}" for name in ("DATA", "CONFIG", "CACHE")}
    homes |= {"ARGOS_PACKAGES_DIR": f"{folder}/packages", "ARGOS_CHUNK_TYPE": "SPACY", "HOME": str(folder)}
    alone = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    options = ["--host", "127.0.0.1", "--port", str(port), "--load-only", "en,fr", "--disable-web-ui"]
    with open(folder / "log", "w") as log:
        command = [str(environment / "bin/libretranslate"), *options]
        process = subprocess.Popen(command, env={**alone, **homes}, stdout=log, stderr=log, cwd=folder)
        try:
            _wait_for(port, process)
            yield Server(f"http://127.0.0.1:{port}", psutil.Process(process.pid))
        finally:
            process.terminate()
            process.wait()


def _wait_for(port: int, process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + START_SECONDS
    while process.poll() is None and time.monotonic() < deadline:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
            return
        except OSError:
            time.sleep(0.5)
    raise OSError(f"LibreTranslate's server has not started within {START_SECONDS:g} s")


async def under_load(
    server: Server, next_request: Callable[[], list[str] | None], clients: int, alone: dict[str, str]
) -> Load:
    """Return the answers that clients get. Each client sends its next request when it has an answer, until no requests
    are left.
    """
    load, began = Load(), time.perf_counter()
    connector = aiohttp.TCPConnector(limit=0)
    async with aiohttp.ClientSession(connector=connector, timeout=aiohttp.ClientTimeout(total=120)) as session:

        async def client() -> None:
            while texts := next_request():
                before = time.perf_counter()
                fields = {"q": texts, "source": "en", "target": "fr"}
                async with session.post(f"{server.url}/translate", json=fields) as answer:
                    found = await answer.json()
                load.seconds.append(time.perf_counter() - before)
                load.statuses[answer.status] += 1
                if answer.status == 200:
                    load.texts += len(texts)
                    pairs = zip(texts, found["translatedText"], strict=True)
                    load.different += sum(alone[text] != got for text, got in pairs)
                else:
                    await asyncio.sleep(float(answer.headers.get("Retry-After", 1)))

        await asyncio.gather(*(client() for _ in range(clients)))
    load.wall = time.perf_counter() - began
    load.seconds.sort()
    return load


def percentiles(seconds: Sequence[float]) -> dict[str, float]:
    """Return p50, p95 and p99 in milliseconds."""
    cut = quantiles(seconds, n=100, method="inclusive")
    return {f"p{one}": round(1000 * cut[one - 1], 2) for one in (50, 95, 99)}


@asynccontextmanager
async def watched(server: Server, memory: list[float], every: float = 1.0) -> AsyncIterator[None]:
    """Read the server's memory every `every` seconds until the context ends."""

    async def watch() -> None:
        while True:
            memory.append(server.memory())
            await asyncio.sleep(every)

    task = asyncio.create_task(watch())
    try:
        yield
    finally:
        task.cancel()


async def endurance(
    server: Server, texts: Sequence[str], alone: dict[str, str], seconds: float, *, clients: int = CLIENTS
) -> dict[str, Any]:
    """Return the statuses, the number of different translations, and the memory, for a load of some seconds."""
    chance, end = random.Random(1), time.monotonic() + seconds

    def next_request() -> list[str] | None:
        if time.monotonic() >= end:
            return None
        count = MANY_TEXTS if chance.random() < MANY_SHARE else chance.randint(1, MOST_TEXTS)
        return chance.choices(texts, k=count)

    memory: list[float] = []
    async with watched(server, memory):
        load = await under_load(server, next_request, clients, alone)
    settled = memory[int(SETTLED) :] or memory[-1:]
    return {
        "seconds": round(load.wall, 1),
        "clients": clients,
        "statuses": {str(status): count for status, count in sorted(load.statuses.items())},
        "texts": load.texts,
        "different": load.different,
        "memory_after_2_minutes_mb": round(settled[0], 1),
        "memory_least_then_mb": round(min(settled), 1),
        "memory_most_then_mb": round(max(settled), 1),
        "memory_each_minute_mb": [round(one, 1) for one in memory[::60]],
        **percentiles(load.seconds),
    }


@dataclass(frozen=True)
class Request:
    """A request of an adversary."""

    name: str
    path: str
    body: bytes
    kind: str = JSON
    chunk: int = 0
    """Number of bytes of each chunk; 0 sends the body whole."""

    def data(self) -> io.BytesIO | AsyncIterator[bytes]:
        """Return the body, whole or in chunks, as it is sent."""
        return self._chunks() if self.chunk else io.BytesIO(self.body)

    async def _chunks(self) -> AsyncIterator[bytes]:
        for begin in range(0, len(self.body), self.chunk):
            yield self.body[begin : begin + self.chunk]


def worst_inputs(characters: int = 20_000, size: int = 3_900_000) -> list[Request]:
    """Return requests that once took much time, and similar ones: with long texts, and with bodies of `size` bytes."""
    units = ["%" + "0" * characters, "http://a" + "." * characters, "a." * characters + "@", "{{" + "a" * characters]
    units += [
        "$" + "a" * characters,
        " " * characters + "\n",
        "\u201c" * characters,
        "a\n" * characters,
        "1" * characters,
    ]
    units += ["<b>" * characters, "&" * characters, "<![" * characters, "猫" * characters, ". " * characters]
    texts = [unit[:characters] for unit in units]
    few = {"source": "en", "target": "fr"}
    found = [Request(f"text {text[:4]!r}", "/translate", json.dumps({**few, "q": text}).encode()) for text in texts]
    found += [
        Request(f"auto {text[:4]!r}", "/translate", json.dumps({**few, "source": "auto", "q": text}).encode())
        for text in texts[:4]
    ]
    for text in texts:
        for name in ("a.html", "a.txt"):
            found.append(_upload(name, (text * 6)[:110_000]))
    many = ["\u201c" * characters] * (size // characters // 6)
    terms = {f"a {'b ' * 40}{one}": "|".join(f"{'z' * 50}{form}" for form in range(16)) for one in range(1000)}
    found += [
        Request("many texts", "/v2/translate", json.dumps({"text": many, "target_lang": "FR"}).encode()),
        Request("many lines", "/translate", json.dumps({**few, "q": ["a? " * 6000] * 100}).encode()),
        Request("glossary", "/v1/translate", json.dumps({"texts": ["a b " * 250] * 64, "glossary": terms}).encode()),
        Request("prefix", "/v1/translate", json.dumps({"texts": ["a cat."] * 64, "prefix": "a " * 9000}).encode()),
        Request("lists", "/translate", b'{"q": [' + b"[]," * (size // 3) + b"1]}"),
        Request("numbers", "/v1/translate", b'{"texts": [' + b"1.0," * (size // 4) + b"1]}"),
        Request("chunks of 1 byte", "/translate", b" " * 100_000, chunk=1),
        Request("chunks of 512 bytes", "/translate", b" " * size, chunk=512),
        Request("names", "/translate", b"{" + b",".join(b'"%d":1' % one for one in range(size // 11)) + b"}"),
        Request("escapes", "/translate", b'{"q": "' + b"\\u00e9" * (size // 6) + b'"}'),
        Request("no fields", "/translate", b"&" * size, FORM),
        Request("escaped form", "/translate", b"source=en&target=fr&q=" + b"%41" * (size // 3), FORM),
        _upload("a.html", "\r\n--adversar" * (size // 12)),
        _upload("a.txt", "a\n" * (size // 2)),
        _upload("a.html", "<p>a cat.</p>" * (size // 13)),
    ]
    return found


def _upload(name: str, text: str) -> Request:
    parts = [("source", "", "en"), ("target", "", "fr"), ("file", f'; filename="{name}"', text)]
    body = "".join(
        f'--adversary\r\nContent-Disposition: form-data; name="{field}"{more}\r\n\r\n{value}\r\n'
        for field, more, value in parts
    )
    kind = "multipart/form-data; boundary=adversary"
    return Request(f"{name} {text[:4]!r}", "/translate_file", f"{body}--adversary--\r\n".encode(), kind)


def probe(server: Server, seconds: float, every: float = 0.05) -> "subprocess.Popen[str]":
    """Start a process that requests /health and tries a wrong key for some seconds; return the process."""
    port = server.url.rpartition(":")[2]
    command = [sys.executable, "-c", PROBE, port, str(seconds), str(every)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def probed(process: "subprocess.Popen[str]") -> dict[str, dict[str, Any]]:
    """Return the statuses and the percentiles that a probe has found."""
    found = json.loads(process.communicate()[0])
    names = dict.fromkeys(name for name, *_ in found)
    return {
        name: {
            "statuses": dict(Counter(str(status) for one, status, _ in found if one == name)),
            **percentiles(own := [seconds for one, _, seconds in found if one == name]),
            "most": round(1000 * max(own), 2),
        }
        for name in names
    }


def keys_in_bodies(server: Server, worst: Sequence[Request]) -> dict[str, float]:
    """Return, for each worst input with a wrong key, the milliseconds from its last byte to the refusal."""
    found, address = dict[str, float](), server.url.partition("//")[2]
    more = {JSON: b', "api_key": "wrong"}', FORM: b"&api_key=wrong"}
    for one in (*worst, *worst):  # in the second round, the process for long bodies is already running
        if one.path != "/translate" or one.kind not in more or one.chunk:
            continue
        body = (one.body[:-1] if one.kind == JSON else one.body) + more[one.kind]
        client = http.client.HTTPConnection(address, timeout=60)
        client.putrequest("POST", one.path)
        client.putheader("Content-Type", one.kind)
        client.putheader("Content-Length", str(len(body)))
        client.endheaders(body[:-1])
        time.sleep(ARRIVAL_SECONDS)
        began = time.perf_counter()
        client.send(body[-1:])
        status = client.getresponse().status
        found[f"{one.name}, {len(body)} bytes, {status}"] = round(1000 * (time.perf_counter() - began), 1)
        client.close()
    return dict(sorted(found.items(), key=lambda item: -item[1])[:8])


async def adversary(
    server: Server, texts: Sequence[str], worst: Sequence[Request], key: str, seconds: float
) -> dict[str, Any]:
    """Send all kinds of requests at once; return the statuses by kind, and the results of a probe."""
    end, statuses = time.monotonic() + seconds, dict[str, Counter[str]]()
    slowest = dict[str, float]()
    chance = random.Random(1)
    process = probe(server, seconds)
    timeout = aiohttp.ClientTimeout(total=180)
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0), timeout=timeout) as session:

        async def send(name: str, one: Request, key: str) -> None:
            scheme = "DeepL-Auth-Key" if one.path.startswith("/v2/") else "Bearer"
            headers = {"Content-Type": one.kind, "Authorization": f"{scheme} {key}"}
            began = time.perf_counter()
            try:
                async with session.post(server.url + one.path, data=one.data(), headers=headers) as answer:
                    await answer.read()
                    status = str(answer.status)
            # a refused request may lose its connection while its body is being sent
            except aiohttp.ClientError as error:
                status = type(error).__name__
            statuses.setdefault(name, Counter())[status] += 1
            slowest[one.name] = max(slowest.get(one.name, 0.0), time.perf_counter() - began)

        async def client(name: str, choose: Callable[[], Request], key: str, pause: float) -> None:
            while time.monotonic() < end:
                await send(name, choose(), key)
                await asyncio.sleep(pause)

        def ordinary() -> Request:
            fields = {"q": chance.choices(texts, k=chance.randint(1, 4)), "source": "en", "target": "fr"}
            return Request("ordinary", "/translate", json.dumps(fields).encode())

        await asyncio.gather(
            *(client("ordinary", ordinary, key, 0.2) for _ in range(WORST_CLIENTS)),
            *(client("worst", partial(chance.choice, worst), key, 0.0) for _ in range(WORST_CLIENTS)),
            *(client("without a key", partial(chance.choice, worst), "wrong", 0.1) for _ in range(2)),
        )
    found = await asyncio.to_thread(probed, process)
    ranked = sorted(slowest, key=slowest.__getitem__, reverse=True)[:12]
    return {
        "seconds": seconds,
        "worst_inputs": len(worst),
        "statuses": {name: dict(counts) for name, counts in statuses.items()},
        "probe": found,
        "slowest_inputs_s": {name: round(slowest[name], 1) for name in ranked},
        "load_average": round(os.getloadavg()[1], 1),
    }


def beside_an_adversary(
    run: Path, texts: Sequence[str], seconds: float, folder: Path, *, alone_seconds: float = ALONE_SECONDS
) -> dict[str, Any]:
    """Return the figures of a service with keys: while it is idle, and while an adversary sends requests."""
    keys = folder / "keys"
    key = add_key(keys, "benchmark")
    with ours(run, keys=keys) as server:
        worst = worst_inputs()
        alone = probed(probe(server, alone_seconds))
        bodies = keys_in_bodies(server, worst)
        found = asyncio.run(adversary(server, texts, worst, key, seconds))
        return {
            "alone": alone,
            "slowest_keys_in_bodies_ms": bodies,
            **found,
            "memory_mb": round(server.memory(), 1),
            "processes": len(server.processes),
        }


def translate_cpu(run: Path, file: Path) -> tuple[float, float]:
    """Return the CPU seconds and the wall-clock seconds that `translate` takes for a file."""
    before, began = os.times(), time.perf_counter()
    command = [sys.executable, "-m", "glassformer", "translate", str(run), str(file)]
    subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)
    after = os.times()
    used = after.children_user + after.children_system - before.children_user - before.children_system
    return used, time.perf_counter() - began


def lines_per_cpu_second(
    server: Server, run: Path, lines: Sequence[str], alone: dict[str, str], rounds: int, folder: Path
) -> list[dict[str, Any]]:
    """Return the lines per CPU second and per second, for `translate` and the service, in each round."""
    whole, one_line = folder / "lines", folder / "line"
    whole.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    one_line.write_text(f"{lines[0]}\n", encoding="utf-8")
    found: list[dict[str, Any]] = []
    sizes = (0, *TEXTS_PER_REQUEST)  # 0 stands for the endpoint `translate`
    for at in range(rounds):
        for size in rotated(sizes, at):
            one = by_service(server, lines, alone, size) if size else by_translate(run, whole, one_line, len(lines))
            found.append({"round": at, **one})
            print(found[-1], flush=True)
    return found


def by_translate(run: Path, whole: Path, one_line: Path, lines: int) -> dict[str, Any]:
    """Return the speed of `translate`, without its start-up time."""
    start_cpu, start = translate_cpu(run, one_line)
    cpu, wall = translate_cpu(run, whole)
    return {"way": "translate", "per_cpu_second": lines / (cpu - start_cpu), "per_second": lines / (wall - start)}


def by_service(server: Server, lines: Sequence[str], alone: dict[str, str], size: int) -> dict[str, Any]:
    """Return the speed of the service for requests of a number of texts.

    Raises:
        OSError: the service refused a request, or its translation of a text differs from the text's translation alone.
    """
    requests = iter([list(lines[at : at + size]) for at in range(0, len(lines), size)])
    before = server.cpu_seconds()
    load = asyncio.run(under_load(server, partial(next, requests, None), CLIENTS, alone))
    used = server.cpu_seconds() - before
    if set(load.statuses) != {200} or load.different:
        raise OSError(f"the service answered {dict(load.statuses)}, {load.different} texts differ")
    way = f"service, {size} text{'s' * (size > 1)} a request"
    return {"way": way, "per_cpu_second": len(lines) / used, "per_second": len(lines) / load.wall}


def latency(
    servers: dict[str, Server], texts: Sequence[str], alone: dict[str, str], rounds: int
) -> dict[str, dict[str, Any]]:
    """Return the latency percentiles of each server, by its name and the number of clients. The servers take turns."""
    loads: dict[str, list[Load]] = {}
    for at in range(rounds):
        for clients in (1, 8):
            for name in rotated(list(servers), at):
                asked = iter([[text] for text in texts[at * REQUESTS : (at + 1) * REQUESTS]])
                load = asyncio.run(under_load(servers[name], partial(next, asked, None), clients, alone))
                loads.setdefault(f"{name}, {clients} client{'s' * (clients > 1)}", []).append(load)
    return {
        name: {
            "requests": sum(len(load.seconds) for load in each),
            "statuses": dict(sum((load.statuses for load in each), Counter())),
            "different": sum(load.different for load in each),
            "per_second": sum(load.texts for load in each) / sum(load.wall for load in each),
            **percentiles([one for load in each for one in load.seconds]),
        }
        for name, each in loads.items()
    }


def page_delays(server: Server, texts: Sequence[str]) -> dict[str, Any]:
    """Return the milliseconds from the last key until the page shows the translation of the text."""
    delays = []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium(), args=FLAGS)
        page = browser.new_page()
        page.goto(server.url)
        page.locator("textarea").wait_for()
        page.evaluate(WATCH)
        for text in texts:
            page.locator("textarea").fill("")
            page.locator("textarea").press_sequentially(text, delay=KEY_MS)
            delays.append(page.evaluate(DELAY))
        version = browser.version
        browser.close()
    cut = quantiles(delays, n=100, method="inclusive")
    found = {"p50": cut[49], "p95": cut[94], "most": max(delays)}
    return {"chromium": version, "texts": len(texts), **{name: round(value, 1) for name, value in found.items()}}


def translated_alone(run: Path, texts: Sequence[str], **settings: Any) -> dict[str, str]:
    """Return the translation of each text in a call of its own; if the model writes nothing, return the text itself."""
    translator = Translator.load(run, engine="ctranslate2")
    return {text: translator.translate([text], **settings)[0].text or text for text in texts}


def markdown(figures: dict[str, Any]) -> str:
    """Return the figures as Markdown tables."""
    parts = [f"{figures['day']}, {described(figures['machine'])}.\n"]
    if found := figures.get("endurance"):
        parts.append(table(["endurance", "value"], [[name, str(value)] for name, value in found.items()]))
    if rounds := figures.get("rounds"):
        parts.append(_speeds(rounds))
    if latencies := figures.get("latency"):
        head = ["server", "requests", "p50 ms", "p95 ms", "p99 ms", "texts per second", "different texts"]
        columns: dict[str, int] = {"requests": 0, "p50": 1, "p95": 1, "p99": 1, "per_second": 0, "different": 0}
        rows = [
            [name, *(number(one[key], digits) for key, digits in columns.items())] for name, one in latencies.items()
        ]
        parts.append(table(head, rows))
    if found := figures.get("adversary"):
        parts.append(table(["adversary", "value"], [[name, str(value)] for name, value in found.items()]))
    if page := figures.get("page"):
        parts.append(table(["page", "value"], [[name, str(value)] for name, value in page.items()]))
    return "\n".join(parts)


def _speeds(rounds: Sequence[dict[str, Any]]) -> str:
    ways = list(dict.fromkeys(one["way"] for one in rounds))
    base = {one["round"]: one["per_cpu_second"] for one in rounds if one["way"] == "translate"}
    rows = []
    for way in sorted(ways, key=lambda way: way != "translate"):
        own = [one for one in rounds if one["way"] == way]
        ratio: Spread = spread([one["per_cpu_second"] / base[one["round"]] for one in own])
        cpu, wall = (spread([one[key] for one in own]) for key in ("per_cpu_second", "per_second"))
        rows.append([way, cpu.text(), ratio.text(2), wall.text()])
    return table(["way", "lines per CPU second", "of `translate`", "lines per second"], rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=Path, metavar="RUN", help="the demo's run")
    parser.add_argument("--minutes", type=float, default=10.0, help="duration of the endurance test; 0 leaves it out")
    parser.add_argument("--adversary", type=float, default=5.0, help="minutes beside an adversary; 0 leaves it out")
    parser.add_argument("--rounds", type=int, default=5, help="rounds of the speeds; 0 leaves them out")
    parser.add_argument("--turns", type=int, default=5, help="rounds of the latencies; 0 leaves them out")
    parser.add_argument("--page", type=int, default=20, help="texts typed on the page; 0 leaves it out")
    parser.add_argument("--subwords", type=Path, metavar="RUN", help="a run with joint subwords, for LibreTranslate")
    parser.add_argument("--libretranslate", type=Path, default=LIBRETRANSLATE, help="LibreTranslate's environment")
    options = parser.parse_args()
    of, figures = machine(), read(NAME)
    texts = list(dict.fromkeys(one.source for one in english_french(7, train=LINES + 600).splits["train"]))[:LINES]
    with tempfile.TemporaryDirectory() as folder, ours(options.run) as server:
        if options.page:
            figures["page"] = page_delays(server, texts[: options.page])
            print(figures["page"], flush=True)
        if options.minutes or options.rounds:
            alone = translated_alone(options.run, texts)
        if options.rounds:
            figures["rounds"] = lines_per_cpu_second(server, options.run, texts, alone, options.rounds, Path(folder))
        if options.minutes:
            figures["endurance"] = asyncio.run(endurance(server, texts, alone, 60 * options.minutes))
            print(json.dumps(figures["endurance"], indent=1), flush=True)
    if options.adversary:
        with tempfile.TemporaryDirectory() as folder:
            figures["adversary"] = beside_an_adversary(options.run, texts, 60 * options.adversary, Path(folder))
            print(json.dumps(figures["adversary"], indent=1, ensure_ascii=False), flush=True)
    if options.turns and options.subwords:
        with tempfile.TemporaryDirectory() as folder:
            figures["latency"] = beside_libretranslate(options, texts, Path(folder))
    print(f"wrote {write(NAME, figures, of)}\n\n{markdown(read(NAME))}")


def beside_libretranslate(options: argparse.Namespace, texts: Sequence[str], folder: Path) -> dict[str, dict[str, Any]]:
    """Return the latencies of the service and of LibreTranslate's server with the same model."""
    run, rounds = options.subwords, options.turns
    some = texts[: rounds * REQUESTS]
    alone = translated_alone(run, some, beam_size=4, length_penalty=0.2, extra_length=256)
    with (
        ours(run, *ARGOS_SEARCH) as own,
        libretranslate(options.libretranslate.absolute(), run, folder) as theirs,
    ):
        return latency({"glassformer": own, "LibreTranslate 1.9.6": theirs}, some, alone, rounds)


if __name__ == "__main__":
    as_command(main)
