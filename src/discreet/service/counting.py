"""Count what a service answers: numbers of requests and seconds, nothing of what was asked.

Counts show when people ask, so only the operator reads them (`add_metrics` needs a token).
"""

from __future__ import annotations

import time
from bisect import bisect_left
from collections import Counter
from typing import final

from starlette.types import ASGIApp, Message, Receive, Scope, Send

# Requests for other paths are one kind: a stranger must not be able to name new ones.
_PATHS = ("/recommend", "/similar", "/label")
_OTHER = "other"
_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)


@final
class AnswerCounters:
    """Count answers by path and status, and how long each path took."""

    def __init__(self) -> None:
        self._answers: Counter[tuple[str, int]] = Counter()
        self._buckets: Counter[tuple[str, int]] = Counter()
        self._seconds: dict[str, float] = dict.fromkeys(_PATHS, 0.0)

    def add(self, path: str, status: int, seconds: float) -> None:
        """Count one answer."""
        known = path if path in _PATHS else _OTHER
        self._answers[known, status] += 1
        if known in _PATHS:
            self._buckets[known, bisect_left(_SECONDS, seconds)] += 1
            self._seconds[known] += seconds

    def text(self, has_model: bool) -> str:
        """Return the counts in the text form that Prometheus reads."""
        lines = [
            "# HELP discreet_model_loaded Whether there is a model to answer with.",
            "# TYPE discreet_model_loaded gauge",
            f"discreet_model_loaded {int(has_model)}",
            "# HELP discreet_answers_total Requests answered, by path and status.",
            "# TYPE discreet_answers_total counter",
        ]
        lines += [
            f'discreet_answers_total{{path="{path}",status="{status}"}} {count}'
            for (path, status), count in sorted(self._answers.items())
        ]
        lines += [
            "# HELP discreet_answer_seconds How long answers took.",
            "# TYPE discreet_answer_seconds histogram",
        ]
        for path in _PATHS:
            lines += self._histogram(path)
        return "\n".join(lines) + "\n"

    def _histogram(self, path: str) -> list[str]:
        lines, below = [], 0
        for place, bound in enumerate((*map(str, _SECONDS), "+Inf")):
            below += self._buckets[path, place]
            lines.append(f'discreet_answer_seconds_bucket{{path="{path}",le="{bound}"}} {below}')
        lines.append(f'discreet_answer_seconds_sum{{path="{path}"}} {self._seconds[path]:.6f}')
        return [*lines, f'discreet_answer_seconds_count{{path="{path}"}} {below}']


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
