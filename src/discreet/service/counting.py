"""Count what a service answers: numbers of requests and seconds, nothing of what was asked.

Counts show when users ask, so only the operator reads them (`add_metrics` needs a token). Several worker
processes count together: prometheus_client keeps their counts in a folder that `several.py` names.
"""

from __future__ import annotations

import os
import time
from typing import final

import prometheus_client
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from prometheus_client.multiprocess import MultiProcessCollector
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from discreet.collect.wire import ReportRefusal
from discreet.service.admission import Receipt

# Requests for other paths are one kind: a stranger must not be able to name new ones.
_PATHS = ("/recommend", "/similar", "/label")
_OTHER = "other"
_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
#: Where worker processes keep their counts; prometheus_client reads this variable when it is imported.
COUNTS_VARIABLE = "PROMETHEUS_MULTIPROC_DIR"

prometheus_client.disable_created_metrics()  # type: ignore[no-untyped-call]


def _text(own: CollectorRegistry) -> str:
    """Return the counts of this process, or of all workers of the service."""
    registry = own
    if os.environ.get(COUNTS_VARIABLE):
        registry = CollectorRegistry()
        MultiProcessCollector(registry)  # type: ignore[no-untyped-call]
    return prometheus_client.generate_latest(registry).decode()


@final
class AnswerCounters:
    """Answers by path and status, and how long each path took."""

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        self._model = Gauge(
            "discreet_model_loaded",
            "Whether there is a model to answer with.",
            registry=self._registry,
            multiprocess_mode="livemin",
        )
        self._answers = Counter(
            "discreet_answers",
            "Requests answered, by path and status.",
            ("path", "status"),
            registry=self._registry,
        )
        self._seconds = Histogram(
            "discreet_answer_seconds",
            "How long answers took.",
            ("path",),
            buckets=_SECONDS,
            registry=self._registry,
        )
        for path in _PATHS:
            self._seconds.labels(path)

    def add(self, path: str, status: int, seconds: float) -> None:
        """Count one answer."""
        known = path if path in _PATHS else _OTHER
        self._answers.labels(known, status).inc()
        if known in _PATHS:
            self._seconds.labels(known).observe(seconds)

    def text(self, has_model: bool) -> str:
        """Return the counts in the text form that Prometheus reads."""
        self._model.set(int(has_model))
        return _text(self._registry)


@final
class Counting:
    """Count every answer that an application begins."""

    def __init__(self, app: ASGIApp, counters: AnswerCounters) -> None:
        self._app, self._counters = app, counters

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer as the application does."""
        begun = time.monotonic()

        async def counted(message: Message) -> None:
            if message["type"] == "http.response.start":
                self._counters.add(scope["path"], message["status"], time.monotonic() - begun)
            await send(message)

        await self._app(scope, receive, counted)


@final
class ServiceCounters:
    """Receipts and refusals since the service began."""

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        self._kept = Counter("discreet_reports_kept", "Reports kept.", registry=self._registry)
        self._repeated = Counter("discreet_reports_repeated", "Reports sent again.", registry=self._registry)
        self._refused = Counter(
            "discreet_refused", "Reports rejected, by reason.", ("reason",), registry=self._registry
        )
        for reason in ReportRefusal:
            self._refused.labels(reason.value)

    def add(self, receipt: Receipt) -> None:
        """Count one receipt."""
        self._kept.inc(receipt.kept)
        self._repeated.inc(receipt.repeated)
        for reason, count in receipt.refused.items():
            self._refused.labels(reason.value).inc(count)

    def refuse(self, reason: ReportRefusal) -> None:
        """Count a message that was rejected as a whole."""
        self._refused.labels(reason.value).inc()

    def text(self) -> str:
        """Return the counts in the text form that Prometheus reads."""
        return _text(self._registry)
