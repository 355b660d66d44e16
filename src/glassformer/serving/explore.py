"""The explorer for the served runs. Each run has a separate process, which the first visit starts.

The explorer computes with the PyTorch model of a run, whichever engine translates. The questions of the explorer's
pages are answered one after another, so visitors keep at most one process busy for each run. The explorer shows the
model's numbers to everybody who can reach the service, so a service with keys has no explorer. Pages of other sites may
use the APIs of the service, but not its explorer.
"""

import asyncio
import re
import socket
from collections.abc import Iterable
from contextlib import ExitStack
from functools import cached_property
from importlib.util import find_spec
from ipaddress import ip_address
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from glassformer.errors import GlassformerError, shortened
from glassformer.interop.ctranslate2.writer import is_export
from glassformer.serving.endpoints import Endpoint
from glassformer.serving.models import ServedModel
from glassformer.serving.own import OWN
from glassformer.serving.refusals import RequestError, busy
from glassformer.serving.requests import json_object
from glassformer.serving.service import Service
from glassformer.system.page_headers import EXPLORER_HEADERS
from glassformer.system.processes import Worker
from glassformer.translating.combination import Combination

__all__ = ["Explorers"]

MOST_WAITING = 64
"""Maximum number of questions that wait for an explorer; a page asks many questions at once."""


class _LoadedExplorer:
    """A function for a worker process, which returns the page about a sentence, or the answer to a page's question.

    The first call loads the model.
    """

    def __init__(self, folder: Path, address: str) -> None:
        self.folder, self.address = folder, address

    @cached_property
    def translator(self) -> Any:
        """The translator with the PyTorch model; loading it raises the errors of `Translator.load`."""
        from glassformer.translator import Translator

        return Translator.load(self.folder, device="cpu")

    @cached_property
    def remote(self) -> Any:
        """The object that answers the questions of all pages."""
        from glassformer.watch.explorer.remote import Remote

        return Remote(self.translator)

    def __call__(self, asked: str | dict[str, Any]) -> bytes:
        """Return the page about a sentence, or the answer to a question."""
        return self._page(asked) if isinstance(asked, str) else self._answer(asked)

    def _page(self, sentence: str) -> bytes:
        from glassformer.watch.explorer.payload import MOST_CHECKPOINTS, payload
        from glassformer.watch.explorer.standalone import page_html, translation

        shown = payload(self.translator, sentence, checkpoints=MOST_CHECKPOINTS, host=self.address)
        return page_html(shown, translation(self.translator, shown)).encode("utf-8", "replace")

    def _answer(self, question: dict[str, Any]) -> bytes:
        from glassformer.watch.explorer.server import framed

        try:
            return framed(*self.remote.answer(question))
        except GlassformerError as error:
            return framed({"error": str(error)}, [])


class _Explorer:
    """The explorer of one run, and its process."""

    def __init__(self, model: ServedModel) -> None:
        self.folder = Combination.named(model.process.load.folder).run
        self._name, self._log = model.name, model.process.log
        address = f"explore/api?{urlencode({'run': model.name})}"
        self._load = _LoadedExplorer(self.folder.absolute(), address)
        self._process = ExitStack()
        self._worker: Worker[[str | dict[str, Any]], bytes] | None = None
        self._turn = asyncio.Lock()
        self._tasks: set[asyncio.Task[bytes]] = set()

    @property
    def missing(self) -> str:
        """The reason why the run cannot be explored here; "" if it can be explored."""
        if find_spec("torch") is None:
            return "the explorer needs PyTorch, which is not installed here: install glassformer with PyTorch"
        if is_export(self.folder):
            return "this model is served from an export; the explorer needs the run itself: serve its own folder"
        return ""

    async def ask(self, asked: str | dict[str, Any]) -> bytes:
        """Return the page about a sentence, or the answer to a question.

        Raises:
            RequestError: too many questions wait, or the process died.
            GlassformerError: the run cannot be loaded, or the sentence cannot be shown.
        """
        if len(self._tasks) >= MOST_WAITING:
            raise busy("the explorer is busy: try again in a moment")
        # A separate task, because the answer must be read before the next question even if the client disconnects.
        task = asyncio.create_task(self._ask(asked))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return await asyncio.shield(task)

    async def _ask(self, asked: str | dict[str, Any]) -> bytes:
        async with self._turn:
            if self._worker is None or not self._worker.is_alive:
                self._process.close()
                self._worker = self._process.enter_context(Worker(self._load, "explores", resumes=False))
            worker = self._worker
            try:
                return await asyncio.to_thread(worker.ask, asked)
            except GlassformerError:
                if worker.is_alive:
                    raise
                self._log.write(event="process ended", process="explorer", model=self._name, reason=worker.end)
                raise busy("the explorer's process has ended and starts again: try again in a moment") from None

    async def close(self) -> None:
        """End the process, even if it is busy."""
        self._process.close()
        await asyncio.gather(*self._tasks, return_exceptions=True)


_PORT = re.compile(r":\d+$")


def _is_foreign(request: Request) -> bool:
    """Return whether a request comes from a page of another host; ports may differ, because a proxy may change them.

    A browser sends the origin with the requests of scripts. With the requests of links and pictures, the browser says
    whether the page that contains them belongs to another site.
    """
    headers = request.headers
    origin = headers.get("origin", "").partition("://")[2]
    if "origin" in headers and _PORT.sub("", origin) != _PORT.sub("", headers.get("host", "")):
        return True
    return headers.get("sec-fetch-site", "none") not in ("none", "same-origin")


def _is_own_name(host: str) -> bool:
    """Return whether a host is this machine's address or name; other names may be DNS rebinding by a foreign site."""
    name = _PORT.sub("", host).strip("[]").lower()
    try:
        return bool(ip_address(name))
    except ValueError:
        return name in ("localhost", socket.gethostname().lower())


class Explorers:
    """The explorers of all runs of a service."""

    def __init__(self, models: Iterable[ServedModel]) -> None:
        self._by_name = {one.name: _Explorer(one) for one in models}

    def endpoints(self) -> list[Endpoint]:
        """Return the endpoints for the explorer's page and for the page's questions."""
        return [
            Endpoint(OWN, "GET", "/explore", self._page),
            Endpoint(OWN, "POST", "/explore/api", self._answer),
        ]

    async def close(self) -> None:
        """End all processes."""
        for one in self._by_name.values():
            await one.close()

    async def _page(self, service: Service, request: Request) -> Response:
        # such a request comes from an element of another page, for example a picture or a script
        if "text/html" not in request.headers.get("accept", ""):
            raise RequestError(406, "the explorer is a page: open it in a browser")
        explorer, text = self._explorer(service, request), request.query_params.get("text", "").strip()
        if request.method == "HEAD":  # the client asks whether an explorer exists, so the explorer need not start
            return Response(media_type="text/html", headers=EXPLORER_HEADERS)
        if len(text) > service.limits.characters:
            raise RequestError(413, f"text: expected at most {service.limits.characters} characters, got {len(text)}")
        service.admit(request, [text])
        return HTMLResponse(await explorer.ask(text), headers=EXPLORER_HEADERS)

    async def _answer(self, service: Service, request: Request) -> Response:
        explorer = self._explorer(service, request)
        service.admit(request, [""])
        question = await json_object(service, request)
        return Response(await explorer.ask(question), media_type="application/octet-stream", headers=EXPLORER_HEADERS)

    def _explorer(self, service: Service, request: Request) -> _Explorer:
        """Return the explorer for the run that a request names."""
        if _is_foreign(request):
            raise RequestError(403, "the explorer answers only its own page")
        if not service.proxies and not _is_own_name(host := request.headers.get("host", "")):
            raise RequestError(403, f"the explorer is at an address of this machine, not at {shortened(host)}")
        if service.keys is not None:
            raise RequestError(403, "a service with keys has no explorer: run glassformer explore instead")
        name = request.query_params.get("run", next(iter(self._by_name)))
        if name not in self._by_name:
            raise RequestError(404, f"run: expected one of {', '.join(self._by_name)}, got {shortened(name)}")
        explorer = self._by_name[name]
        if explorer.missing:
            raise RequestError(501, explorer.missing)
        return explorer
