"""Answer for a model over HTTP: recommend from a history that comes with the request and is forgotten."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import orjson
from fastapi import FastAPI, Request, Response
from pydantic.json_schema import models_json_schema

from discreet.core.checks import DiscreetError
from discreet.models.fitted import FittedModel
from discreet.service.bundles import add_bundle
from discreet.service.counting import AnswerCounters, Counting
from discreet.service.limits import Peers, RateLimit, RefusedError, body_of
from discreet.service.publishing import ModelShelf, Published
from discreet.service.questions import (
    MOST_BYTES,
    Answer,
    ManyAnswers,
    Question,
    Questions,
    answer,
    answer_example,
    example,
    examples,
    parsed,
    question,
)
from discreet.service.running import log
from discreet.service.similar import add_similar
from discreet.service.web_app import add_metrics, answer_such_as, new_app, over_http
from discreet.service.workers import Workers

_SCHEMAS = "#/components/schemas/"


def answering_app(
    model: Path,
    *,
    per_minute: int = 0,
    proxies: Sequence[str] = (),
    metrics_token: str | None = None,
    bundle: bool = False,
) -> FastAPI:
    """Return the application that answers for a model file, read again whenever it is replaced.

    Parameters:
        model: The model file.
        per_minute: How many people one peer may ask about a minute; 0 for no limit.
        proxies: The proxies whose word is taken for who asks.
        metrics_token: Who shows it may read /metrics; without one nobody may.
        bundle: Whether /bundle/ hands out what recommends on the device (`discreet bundle`).
    """
    shelf = ModelShelf(model)
    app = new_app("discreet: recommendations", "Answers from a history that is used once and forgotten.")
    rate, peers, workers, counters = RateLimit(per_minute), Peers(proxies), Workers(), AnswerCounters()

    @asynccontextmanager
    async def life(_: FastAPI) -> AsyncIterator[None]:
        yield
        workers.stop()

    app.router.lifespan_context = life
    app.add_middleware(Counting, counters=counters)

    def newest() -> Published:
        published = shelf.newest()
        if published is None:
            raise RefusedError(404, "There is no model yet.")
        return published

    def limit(request: Request, count: int = 1) -> None:
        rate.check(peers.of(request), count)

    first = _model(shelf)
    _add_recommend(app, newest, limit, workers, first)
    _describe_questions(app)
    add_similar(app, newest, limit, workers, first)
    _add_state(app, newest, shelf)
    add_metrics(app, lambda: counters.text(shelf.newest() is not None), metrics_token)
    if bundle:
        add_bundle(app, newest, workers, limit)
    return app


def _model(shelf: ModelShelf) -> FittedModel | None:
    published = shelf.newest()
    return None if published is None else published.model


def _add_recommend(
    app: FastAPI,
    newest: Callable[[], Published],
    limit: Callable[..., None],
    workers: Workers,
    model: FittedModel | None,
) -> None:
    either = {"anyOf": [{"$ref": f"{_SCHEMAS}{kind.__name__}"} for kind in (Question, Questions)]}
    named = {name: {"summary": name, "value": body} for name, body in examples(model).items()}
    body = {"required": True, "content": {"application/json": {"schema": either, "examples": named}}}

    @app.post(
        "/recommend",
        summary="Recommend from a history, or from many",
        openapi_extra={"requestBody": body},
        responses=answer_such_as(answer_example(model)),
        response_model=Answer | ManyAnswers,
    )
    async def recommend(request: Request) -> Response:
        """Nothing of a history is stored or logged. With `people`, one that is refused loses no other."""
        limit(request)
        raw = await body_of(request, MOST_BYTES)
        model = newest().model

        def read() -> list[Any] | bytes:
            form = example(model)
            asked = parsed(raw, form)
            return asked if isinstance(asked, list) else orjson.dumps(_answer(model, asked, form))

        found = await workers.run(read)
        if isinstance(found, list):
            limit(request, len(found) - 1)
            answers = [await workers.run(partial(_or_refusal, model, each)) for each in found]
            found = await workers.run(lambda: orjson.dumps({"answers": answers}))
        return Response(found, media_type="application/json")

    @app.get("/recommend", include_in_schema=False)
    async def how_to_ask() -> None:
        """Say how, with a body to copy: a history in an address would be logged on its way."""
        form = example(newest().model)
        raise RefusedError(405, "Ask with POST /recommend, and a body such as the example.", form)


def _answer(model: FittedModel, asked: Any, form: dict[str, Any]) -> dict[str, Any]:
    try:
        return answer(model, question(asked, form))
    except RefusedError:
        raise
    except DiscreetError as error:
        raise RefusedError(422, over_http(str(error)), form) from error
    except Exception as error:
        # Its words and its traceback may quote the history; one person's trouble is nobody else's.
        log("question failed", kind=type(error).__name__)
        raise RefusedError(500, "This question could not be answered.") from None


def _or_refusal(model: FittedModel, asked: Any) -> dict[str, Any]:
    """Answer one of many; between them, others are answered."""
    try:
        return _answer(model, asked, {})
    except RefusedError as refused:
        return {"error": refused.sentence, "status": refused.status}


def _describe_questions(app: FastAPI) -> None:
    """Add to the description what FastAPI does not read by itself: a body is parsed beside the event loop."""
    kinds = [(Question, "validation"), (Questions, "validation")]
    _, found = models_json_schema(kinds, ref_template=f"{_SCHEMAS}{{model}}")  # type: ignore[arg-type]
    plain = app.openapi

    def described() -> dict[str, Any]:
        whole = plain()
        whole["components"]["schemas"].update(found["$defs"])
        return whole

    app.openapi = described  # type: ignore[method-assign]


def _add_state(app: FastAPI, newest: Callable[[], Published], shelf: ModelShelf) -> None:
    promised = {"epsilon": 1.0, "delta": 1e-6, "unit": "user", "sentence": "...", "...": "..."}
    told = {"name": "user-factorization", "guarantee": promised, "...": "..."}

    @app.get("/label", summary="What the model promises", responses=answer_such_as(told))
    async def label() -> dict[str, Any]:
        return newest().label

    @app.get("/health", summary="Whether the service is up", responses=answer_such_as({"status": "ok"}))
    async def health() -> dict[str, str]:
        return {"status": "ok" if shelf.newest() else "no model yet"}

    is_ready = answer_such_as({"status": "ready", "model": "user-factorization"})

    @app.get("/ready", summary="Whether the service can answer; 503 until it has a model", responses=is_ready)
    async def ready() -> dict[str, str]:
        published = shelf.newest()
        if published is None:
            raise RefusedError(503, "There is no model yet.")
        return {"status": "ready", "model": published.model.name}
