"""What the APIs share: the models and the limits."""

import asyncio
from collections.abc import Awaitable, Coroutine, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, TextIO, TypeVar

from starlette.requests import ClientDisconnect, Request

from glassformer.errors import GlassformerError
from glassformer.serving.files import TranslatedFiles
from glassformer.serving.limits import Keys, Limits, Rates
from glassformer.serving.metrics import Counters
from glassformer.serving.models import Models, ServedModel
from glassformer.serving.passages import Passage, translate_passages
from glassformer.serving.process import MOST_TEXTS
from glassformer.serving.refusals import RequestError, busy
from glassformer.serving.requests import gone
from glassformer.translating.translation import Translation

__all__ = ["Service"]

T = TypeVar("T")
DOCUMENTS = 2
"""Number of documents that are read or written at once; more would take memory and time from everybody else."""


@dataclass(slots=True, kw_only=True)
class Service:
    """The models and the limits of a service."""

    models: Models
    limits: Limits = field(default_factory=Limits)
    rates: Rates = field(default_factory=Rates)
    keys: Keys | None = None
    metrics: Counters = field(default_factory=Counters)
    files: TranslatedFiles = field(default_factory=TranslatedFiles)
    documents: ThreadPoolExecutor = field(default_factory=lambda: ThreadPoolExecutor(DOCUMENTS, "documents"))
    log: TextIO | None = None
    """Where each request is logged as a line of JSON, without its texts."""
    log_texts: bool = False
    characters: dict[str, int] = field(default_factory=dict)
    """Characters that each client has had translated, by the name of its key ("" without keys)."""
    open: int = 0
    """Number of requests that are being answered."""

    def client(self, key: str) -> str:
        """Return the name of a key, "" if the service wants none.

        Raises:
            RequestError: the key is missing (401) or unknown (403).
        """
        if self.keys is None:
            return ""
        if not key:
            raise RequestError(401, "a key is needed")
        name = self.keys.name_of(key)
        if name is None:
            self.metrics.refused.labels("key").inc()
            raise RequestError(403, "Invalid API key")
        return name

    def admit(self, request: Request, key: str, texts: Sequence[str]) -> None:
        """Count a request's texts; note what the log says of it.

        Raises:
            RequestError: the key is missing or unknown, or the client has sent too many texts.
        """
        name = self.client(key)
        request.state.entry |= {"texts": len(texts), "characters": sum(map(len, texts))}
        if name:
            request.state.entry["client"] = name
        if self.log_texts:
            request.state.entry["text"] = list(texts)
        try:
            self.rates.check(name or (request.client.host if request.client else ""), len(texts))
        except RequestError:
            self.metrics.refused.labels("rate").inc()
            raise
        self.characters[name] = self.characters.get(name, 0) + sum(map(len, texts))

    async def in_time(self, work: Awaitable[T]) -> T:
        """Return the result of the work on a request.

        Raises:
            RequestError: the work is impossible, or takes too long.
        """
        try:
            async with asyncio.timeout(self.limits.seconds):
                return await work
        except TimeoutError as error:
            raise busy(f"the answer would take longer than {self.limits.seconds:g} s: send less text") from error
        except GlassformerError as error:
            raise RequestError(400, str(error)) from error

    async def translate(
        self, request: Request, model: ServedModel, texts: Sequence[str], **options: Any
    ) -> list[Passage]:
        """Return the translation of each text; takes the arguments of `translate_passages`.

        Raises:
            RequestError: a text cannot be translated, or the service is busy.
            ClientDisconnect: the client went away.
        """
        request.state.entry["model"] = model.name
        return await _unless_gone(request, translate_passages(model, texts, **options))

    async def translate_sentences(
        self, request: Request, model: ServedModel, sentences: Sequence[str], *, links: bool
    ) -> list[Translation]:
        """Return the translation of each sentence of a document, a few at a time, so that others need not wait.

        `links` asks for the aligned words.

        Raises:
            RequestError: the service is busy.
            ClientDisconnect: the client went away.
        """
        request.state.entry["model"] = model.name

        async def all_of_them() -> list[Translation]:
            found: list[Translation] = []
            options = {"log_probs": False, "links": links}
            for begin in range(0, len(sentences), MOST_TEXTS):
                found += await model.process.translate(sentences[begin : begin + MOST_TEXTS], options)
            return found

        return await _unless_gone(request, all_of_them())


async def _unless_gone(request: Request, work: Coroutine[Any, Any, T]) -> T:
    """Return the result of some work; give it up when the client goes away.

    Raises:
        ClientDisconnect: the client went away.
    """
    try:
        async with asyncio.timeout(None) as stay:
            watch = asyncio.create_task(_end_when_gone(request, stay))
            try:
                return await work
            finally:
                watch.cancel()
    except TimeoutError as error:
        raise ClientDisconnect from error


async def _end_when_gone(request: Request, stay: asyncio.Timeout) -> None:
    await gone(request)
    stay.reschedule(0)
