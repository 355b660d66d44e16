"""The models and limits that all APIs share."""

import asyncio
from collections.abc import Awaitable, Coroutine, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from starlette.requests import ClientDisconnect, Request

from glassformer.errors import GlassformerError
from glassformer.serving.detection import READ_CHARACTERS, DetectedLanguage, detected_languages
from glassformer.serving.files import TranslatedFiles
from glassformer.serving.limits import Keys, Limits, Rates
from glassformer.serving.log import ServiceLog
from glassformer.serving.metrics import Counters
from glassformer.serving.models import Direction, Models
from glassformer.serving.passages import Passage, check_unicode, translate_passages
from glassformer.serving.process import MOST_TEXTS
from glassformer.serving.readers import Readers
from glassformer.serving.refusals import RequestError, busy, failed
from glassformer.translating.translation import Translation

__all__ = ["Service", "address"]

T = TypeVar("T")
READERS = 2
"""Number of processes for documents, and also for long texts; more processes would take time from the models."""


@dataclass(slots=True, kw_only=True, eq=False)
class Service:
    """The models and the limits of a service."""

    models: Models
    proxies: int = 0
    """Number of trusted reverse proxies in front of the service."""
    limits: Limits = field(default_factory=Limits)
    rates: Rates = field(default_factory=Rates)
    keys: Keys | None = None
    metrics: Counters = field(default_factory=Counters)
    files: TranslatedFiles = field(default_factory=TranslatedFiles)
    log: ServiceLog = field(default_factory=ServiceLog)
    characters: dict[str, int] = field(default_factory=dict)
    """Number of characters translated so far for each client, by the name of its key ("" without keys)."""
    open: int = 0
    """Number of requests that are being answered."""
    texts: Readers = field(init=False)
    """The processes that read long texts and bodies."""
    documents: Readers = field(init=False)
    """The processes that read and write documents, which takes longer than for texts."""

    def __post_init__(self) -> None:
        """Create the readers, whose processes start when they are needed."""
        self.texts, self.documents = Readers(READERS, self.log), Readers(READERS, self.log)

    def identify(self, request: Request, key: object) -> None:
        """Check the key of a request and record its client, unless a key in the headers has identified the client.

        Raises:
            RequestError: the key is not a text (400), missing (401) or unknown (403).
        """
        if hasattr(request.state, "client"):
            return
        if key is not None and not isinstance(key, str):
            raise RequestError(400, "Invalid request: the key is not a text")
        request.state.client = "" if self.keys is None else self._name_of(self.keys, key or "")
        if request.state.client:
            request.state.entry["client"] = request.state.client

    def _name_of(self, keys: Keys, key: str) -> str:
        if not key:
            raise RequestError(401, "a key is needed")
        name = keys.name_of(key)
        if name is None:
            self.metrics.refused.labels("key").inc()
            raise RequestError(403, "Invalid API key")
        return name

    def admit(self, request: Request, texts: Sequence[str]) -> None:
        """Count the texts of a request whose client is known, and prepare its log entry.

        Raises:
            RequestError: the client has sent too many texts.
        """
        name = request.state.client
        request.state.entry |= {"texts": len(texts), "characters": sum(map(len, texts))}
        if self.log.has_texts:
            request.state.entry["text"] = list(texts)
        try:
            self.rates.check(name or address(request), len(texts))
        except RequestError:
            self.metrics.refused.labels("rate").inc()
            raise
        self.characters[name] = self.characters.get(name, 0) + sum(map(len, texts))

    async def in_time(self, work: Awaitable[T]) -> T:
        """Return the result of the work on a request.

        Raises:
            RequestError: the work fails, or takes too long.
        """
        try:
            async with asyncio.timeout(self.limits.seconds):
                return await work
        except TimeoutError as error:
            raise busy(f"the answer would take longer than {self.limits.seconds:g} s: send less text") from error
        except GlassformerError as error:
            raise RequestError(400, str(error)) from error
        except (RequestError, ClientDisconnect):
            raise
        except Exception as error:
            raise failed(error, self.log, self.metrics) from error

    async def detect(self, texts: Iterable[str], among: Sequence[str]) -> list[DetectedLanguage]:
        """Return the languages of `among` that texts may be in, best first.

        If there are none, return only the first language of `among`, with confidence 0.
        """
        looked_at = "\n".join(texts)[:READ_CHARACTERS]
        check_unicode("the text", looked_at)
        found = await self.texts.ask(detected_languages, looked_at, list(self.models.languages))
        return [one for one in found if one["language"] in among] or [{"confidence": 0.0, "language": among[0]}]

    async def translate(
        self, request: Request, model: Direction, texts: Sequence[str], **options: Any
    ) -> list[Passage]:
        """Return the translation of each text; the options are those of `translate_passages`.

        Raises:
            RequestError: a text cannot be translated, or the service is busy.
            ClientDisconnect: the client has disconnected.
        """
        request.state.entry["model"] = model.name
        return await _unless_gone(request, translate_passages(self.texts, model, texts, **options))

    async def translate_sentences(
        self, request: Request, model: Direction, sentences: Sequence[str], *, links: bool
    ) -> list[Translation]:
        """Return the translation of each sentence of a document, a few at a time, so that other clients need not wait.

        With `links`, each translation has the alignment of its words.

        Raises:
            RequestError: the service is busy.
            ClientDisconnect: the client has disconnected.
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
    """Return the result of some work, but cancel the work if the client disconnects.

    Raises:
        ClientDisconnect: the client has disconnected.
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
    # The body has been read, so the next message can only be a disconnection.
    while (await request.receive())["type"] != "http.disconnect":
        pass
    stay.reschedule(0)


def address(request: Request) -> str:
    """Return the address of a request's client."""
    return request.client.host if request.client else ""
