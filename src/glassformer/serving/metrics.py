"""The counters of the service, for Prometheus. No label contains a text, a key or an address."""

from functools import cache

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

__all__ = ["Counters"]

_SECONDS = (0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30)
_SIZES = (1, 2, 4, 8, 16, 32, 64)


class Counters:
    """The counters of one service, in a separate registry."""

    def __init__(self) -> None:
        self.registry = registry = CollectorRegistry()
        # Each counter is looked up by its labels once, because `labels` takes longer than counting.
        requests = Counter("glassformer_requests", "Answered requests.", ["endpoint", "status"], registry=registry)
        self._requests = cache(requests.labels)
        seconds = Histogram(
            "glassformer_request_seconds",
            "Time to answer a request.",
            ["endpoint"],
            buckets=_SECONDS,
            registry=registry,
        )
        self._seconds = cache(seconds.labels)
        self.refused = Counter("glassformer_refused", "Refused requests, by limit.", ["limit"], registry=registry)
        self.failed = Counter(
            "glassformer_failed", "Unexpected errors, by the type of the error.", ["error"], registry=registry
        )
        self.texts = Counter("glassformer_texts", "Texts given to a model.", ["model", "status"], registry=registry)
        self.tokens = Counter("glassformer_tokens", "Tokens that a model wrote.", ["model"], registry=registry)
        self.queue = Gauge("glassformer_queue", "Texts that wait for a model.", ["model"], registry=registry)
        self.batch = Histogram(
            "glassformer_batch_texts", "Texts of a batch.", ["model"], buckets=_SIZES, registry=registry
        )
        self.queue_seconds = Histogram(
            "glassformer_queue_seconds", "Time that a text waits.", ["model"], buckets=_SECONDS, registry=registry
        )
        self.engine_seconds = Histogram(
            "glassformer_engine_seconds", "Time of a batch.", ["model"], buckets=_SECONDS, registry=registry
        )
        self.restarts = Counter(
            "glassformer_restarts", "Starts of a model's process after it had ended.", ["model"], registry=registry
        )

    def answered(self, endpoint: str, status: int, seconds: float) -> None:
        """Count an answered request."""
        self._requests(endpoint, status).inc()
        self._seconds(endpoint).observe(seconds)
