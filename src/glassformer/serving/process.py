"""One model in a separate process.

The texts of all requests wait in one queue, in the order of a fair share of the work: of two requests, the one whose
texts so far have fewer characters is next (weighted fair queueing). A short request therefore waits only for the
batch that is being translated, however many texts others have sent. The process gets texts with the same options as one
batch, because a batch is translated faster than its texts one by one; a long text is translated alone. No translation
depends on the other texts of its batch. A process is started again if it dies, or if a batch takes more than half the
time that a request may take. The request with the longest text of this batch is refused, because it is probably the
cause; the other texts are translated again.
"""

import asyncio
from collections import Counter, deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from itertools import count
from operator import attrgetter
from pathlib import Path
from time import perf_counter
from typing import Any

from glassformer.errors import GlassformerError
from glassformer.serving.limits import Limits
from glassformer.serving.log import ServiceLog
from glassformer.serving.metrics import Counters
from glassformer.serving.refusals import RequestError, busy, failed
from glassformer.system.machine import keep_memory
from glassformer.system.processes import Worker, place_of
from glassformer.text.glossary import Glossary
from glassformer.translating.translation import Translation
from glassformer.translator import Translator

__all__ = ["MOST_TEXTS", "Asked", "AskedGlossary", "LoadedTranslator", "ModelProcess", "Options"]

WAIT = 0.005
"""Seconds to wait for more texts before an incomplete batch is translated, if several requests come at the same
time."""
MOST_TEXTS = 64
"""Maximum number of texts in a batch."""
MOST_PADDED = 8192
"""Maximum number of texts in a batch times the characters of the longest text, because each text is padded to the
longest, times the searches that `_searches` counts. No request waits long for a batch, and a text of more than half as
many characters is translated alone."""
USUAL_BEAM = 8
"""A larger beam counts as several searches, in the queue and in a batch."""
PER_TEXT = 20
"""Number of characters as which each text counts besides its own, because many short texts are work, too."""
LOOK = 0.5
"""Seconds between two checks whether an idle process is still alive."""
LONGEST_PAUSE = 4.0
"""Maximum pause in seconds before a process that has died several times is started again."""

Options = tuple[tuple[str, Any], ...]
"""The arguments of `Translator.translate` besides the texts, sorted by name; texts with equal options share a batch."""

_Worker = Worker[[Sequence[str], Options], list[Translation]]


@dataclass(frozen=True, slots=True, eq=False)
class AskedGlossary:
    """The terms of a request's glossary, which the model's process reads.

    Two objects are never equal, so comparing options takes no time. Texts of different requests with glossaries
    therefore never share a batch.
    """

    terms: tuple[tuple[str, str], ...]


@lru_cache(maxsize=8)  # the batches of a request have the same glossary
def _glossary(terms: tuple[tuple[str, str], ...]) -> Glossary:
    return Glossary.of(dict(terms))


def _searches(options: Options) -> int:
    """Return how many times as much work the options ask for as a search with a usual beam."""
    given = dict(options)
    return -(-max(given.get("beam_size") or 1, given.get("n_best") or 1) // USUAL_BEAM) * (
        2 if given.get("retry") else 1
    )


def _work(text: str, searches: int) -> int:
    """Return the work of a text, which is compared with that of other texts."""
    return (len(text) + PER_TEXT) * searches


class LoadedTranslator:
    """A function for a worker process, which translates texts; the first call loads the translator."""

    def __init__(self, folder: Path, how: Mapping[str, Any]) -> None:
        self.folder, self.how = folder, dict(how)

    @cached_property
    def translator(self) -> Translator:
        """The translator; loading it raises the errors of `Translator.load`."""
        keep_memory()  # otherwise each large batch would release its memory, and the next batch would request it again
        return Translator.load(self.folder, **self.how)

    def __call__(self, texts: Sequence[str], options: Options) -> list[Translation]:
        """Return one translation per text."""
        given = dict(options)
        if isinstance(asked := given.get("glossary"), AskedGlossary):
            given["glossary"] = _glossary(asked.terms)
        return self.translator.translate(texts, **given)


@dataclass(slots=True)
class Asked:
    """A text that waits for its translation."""

    text: str
    options: Options
    answer: "asyncio.Future[Translation]"
    request: int
    """The number of the text's request."""
    due: int
    """The place in the queue: the work of the request up to and with this text, added to the place at which the queue
    was when the request came."""
    since: float = field(default_factory=perf_counter)


class ModelProcess:
    """The process of one model, and its queue; `run` works off the queue until it is cancelled."""

    def __init__(self, name: str, load: LoadedTranslator, limits: Limits, metrics: Counters, log: ServiceLog) -> None:
        self.name, self.load, self.limits, self.metrics, self.log = name, load, limits, metrics, log
        self._is_loaded = False
        self._task: asyncio.Task[Any] | None = None
        self._queue = metrics.queue.labels(name)
        self._waiting: deque[Asked] = deque()
        self._requests = 0
        self._number = count()
        self._now = 0
        """The place at which the queue is: where the first text of the last batch began."""
        self._arrived = asyncio.Event()
        self._translating = 0
        self._worker: _Worker | None = None

    @property
    def is_ready(self) -> bool:
        """Whether the process has loaded the model, and `run` works off the queue."""
        return self._is_loaded and self._task is not None and not self._task.done()

    @property
    def room(self) -> int:
        """The number of texts that the queue has room for."""
        return self.limits.queue - len(self._waiting)

    def full(self) -> RequestError:
        """Return the refusal of a request for which the queue has no room, and count it."""
        self.metrics.refused.labels("queue").inc()
        return busy("the service is busy: try again in a moment, or with fewer texts")

    async def translate(self, texts: Sequence[str], options: Mapping[str, Any]) -> list[Translation]:
        """Return one translation per text, in order; `options` are arguments of `Translator.translate`.

        Raises:
            RequestError: the queue is full, or the process died while it was translating.
            GlassformerError: the options are not possible for this model.
        """
        if len(texts) > self.room:
            raise self.full()
        loop, key = asyncio.get_running_loop(), tuple(sorted(options.items()))
        number, due, searches = next(self._number), self._now, _searches(key)
        asked = [Asked(one, key, loop.create_future(), number, due := due + _work(one, searches)) for one in texts]
        self._requests += 1
        self._waiting = deque(sorted((*self._waiting, *asked), key=attrgetter("due")))
        self._queue.set(len(self._waiting))
        self._arrived.set()
        try:
            return list(await asyncio.gather(*(one.answer for one in asked)))
        finally:
            self._requests -= 1
            for one in asked:
                one.answer.cancel()
            if any(one.answer.cancelled() for one in asked):  # remove texts whose client has disconnected
                self._waiting = deque(one for one in self._waiting if not one.answer.done())
                self._queue.set(len(self._waiting))

    async def run(self) -> None:
        """Start the process, translate the waiting texts, and start the process again whenever it has died.

        Raises:
            Exception: the model cannot be loaded when the service starts.
        """
        self._task = asyncio.current_task()
        deaths, has_served = 0, False
        while True:
            try:
                with Worker(self.load, "translates", resumes=False) as self._worker:
                    await self._ask([], ())
                    if has_served:
                        self.log.write(event="engine ready", model=self.name)
                    self._is_loaded, deaths, has_served = True, 0, True
                    await self._serve(self._worker)
            except Exception as error:  # whatever happened, the model must be served again
                if not has_served:
                    raise
                is_known = isinstance(error, GlassformerError)
                reason = str(error) if is_known else f"{type(error).__name__} at {place_of(error)}"
                self.log.write(event="engine ended", model=self.name, reason=reason, texts=self._translating)
                self._is_loaded = False
                deaths += 1
                self.metrics.restarts.labels(self.name).inc()
                await asyncio.sleep(min(0.25 * 2**deaths, LONGEST_PAUSE))

    async def _serve(self, worker: _Worker) -> None:
        has_company = False  # with a single client, no more texts will come
        while True:
            with suppress(TimeoutError):
                async with asyncio.timeout(LOOK):
                    await self._arrived.wait()
            if not worker.is_alive:  # the process died while idle, so no text has to be refused
                raise _EndedError(worker.end)
            if not self._arrived.is_set():
                continue
            if has_company and len(self._waiting) < MOST_TEXTS:
                await asyncio.sleep(WAIT)
            if not (batch := list(self._next())):
                self._arrived.clear()
                continue
            has_company = self._requests > 1
            await self._translate(batch)

    def _next(self) -> Iterator[Asked]:
        """Take texts with the same options from the queue, up to a full batch, and yield them."""
        kept: deque[Asked] = deque()
        options, taken, longest, searches = None, 0, 0, 1
        while self._waiting and taken < MOST_TEXTS:
            one = self._waiting.popleft()
            if one.answer.done():  # the client has disconnected
                continue
            longest_with = max(longest, len(one.text))
            if taken and (options != one.options or (taken + 1) * longest_with * searches > MOST_PADDED):
                kept.append(one)
                continue
            if not taken:
                options, searches = one.options, _searches(one.options)
                self._now = max(self._now, one.due - _work(one.text, searches))
            taken, longest = taken + 1, longest_with
            yield one
        self._waiting.extendleft(reversed(kept))
        self._queue.set(len(self._waiting))

    async def _translate(self, batch: Sequence[Asked]) -> None:
        """Answer the texts of a batch; if a text causes an error, only this text is refused."""
        parts = [batch]
        while parts:
            part, began = [one for one in parts.pop() if not one.answer.done()], perf_counter()
            self._translating = len(part)
            try:
                answers = await self._ask([one.text for one in part], batch[0].options) if part else []
            except _EndedError:
                self._refuse_longest(part)
                self._waiting.extendleft(one for one in reversed(batch) if not one.answer.done())
                self._queue.set(len(self._waiting))
                raise
            except Exception as error:
                if len(part) > 1:
                    parts += [part[len(part) // 2 :], part[: len(part) // 2]]
                elif isinstance(error, GlassformerError):
                    _fail(part, error)
                else:
                    _fail(part, failed(error, self.log, self.metrics, model=self.name))
                continue
            for one, answer in zip(part, answers, strict=True):
                if not one.answer.done():
                    one.answer.set_result(answer)
            self._count(part, answers, began)
        self._translating = 0

    def _refuse_longest(self, batch: Sequence[Asked]) -> None:
        """Refuse the request that has probably ended the process; the others are translated again."""
        if batch:
            longest = max(batch, key=lambda one: len(one.text))
            refused = [one for one in batch if one.request == longest.request]
            _fail(refused, busy("the model's process has ended and starts again: try again in a moment"))

    async def _ask(self, texts: Sequence[str], options: Options) -> list[Translation]:
        worker = self._worker
        assert worker is not None
        most = self.limits.seconds / 2  # so that the other texts can still be translated in time
        limit = asyncio.timeout(most if self._is_loaded else None)
        try:
            async with limit:
                return await asyncio.to_thread(worker.ask, texts, options)
        except Exception:
            if limit.expired():
                raise _EndedError(f"took more than {most:g} s") from None
            if worker.is_alive:
                raise
            raise _EndedError(worker.end) from None

    def _count(self, batch: Sequence[Asked], answers: Sequence[Translation], began: float) -> None:
        metrics, now = self.metrics, perf_counter()
        metrics.batch.labels(self.name).observe(len(batch))
        metrics.engine_seconds.labels(self.name).observe(now - began)
        metrics.tokens.labels(self.name).inc(sum(len(answer.tokens) for answer in answers))
        for status, texts in Counter(answer.status for answer in answers).items():
            metrics.texts.labels(self.name, status).inc(texts)
        queued = metrics.queue_seconds.labels(self.name)
        for one in batch:
            queued.observe(began - one.since)


class _EndedError(GlassformerError):
    """The process has ended; the message gives the reason."""


def _fail(batch: Sequence[Asked], error: Exception) -> None:
    for one in batch:
        with suppress(asyncio.InvalidStateError):
            one.answer.set_exception(error)
