"""Answer for a model over HTTP: recommend from a history that comes with the request and is forgotten.

The bundle of the newest model lets browsers recommend by themselves.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Annotated, Any, final

import orjson
from fastapi import FastAPI, Request, Response
from fastapi import Path as InPath
from fastapi.responses import RedirectResponse
from pydantic import BaseModel
from pydantic.json_schema import models_json_schema
from starlette.middleware import Middleware
from starlette.types import ASGIApp, Receive, Scope, Send

from discreet.core.checks import DiscreetError
from discreet.export.bundle.folder import INDEX, MANIFEST, bundle_files, bundle_names
from discreet.models import FittedModel
from discreet.service.counting import AnswerCounters, Counting
from discreet.service.limits import Peers, RateLimit, RefusedError, SharedCounts, body_of
from discreet.service.pages import POLICY, TYPES
from discreet.service.publishing import QUICK_BYTES, ModelShelf, Published
from discreet.service.questions import (
    MOST_BYTES,
    Answer,
    ManyAnswers,
    Question,
    Questions,
    answer,
    answer_example,
    examples,
    parsed,
    question,
)
from discreet.service.running import log
from discreet.service.shared_app import add_metrics, answer_such_as, new_app, problem
from discreet.service.similar import add_similar
from discreet.service.workers import Turns, Workers

_SCHEMAS = "#/components/schemas/"


def answering_app(
    model: Path,
    *,
    per_minute: int = 0,
    proxies: Sequence[str] = (),
    metrics_token: str | None = None,
    bundle: bool = False,
    shared: SharedCounts | None = None,
) -> FastAPI:
    """Return the application that answers for a model file, read again whenever it is replaced.

    Parameters:
        model: The model file.
        per_minute: How many users one peer may ask about per minute; 0 for no limit.
        proxies: The proxies whose word is taken for who asks.
        metrics_token: Bearer token required to read /metrics; without one it can't be read.
        bundle: Whether /bundle/ hands out what recommends on the device (`discreet model bundle`).
        shared: Counts that several processes of one service share.
    """
    shelf = ModelShelf(model)
    rate, peers, workers, counters = (
        RateLimit(per_minute, shared),
        Peers(proxies),
        Workers(),
        AnswerCounters(),
    )
    about = "Answers from a history that is used once and forgotten."
    app = new_app("discreet: recommendations", about, workers.stop)
    app.add_middleware(Counting, counters=counters)
    newest = shelf.required

    def limit(request: Request, count: int = 1) -> None:
        if per_minute:
            rate.check(peers.of(request), count)

    first = _model(shelf)
    # Next to the routes, and inside of all that is done for every answer.
    app.user_middleware.append(Middleware(_Recommend, newest=newest, limit=limit, workers=workers))
    _describe_recommend(app, first)
    _show_how_to_ask(app, newest)
    add_similar(app, newest, limit, workers, first)
    _add_state(app, newest, shelf)
    add_metrics(app, lambda: counters.text(shelf.newest() is not None), metrics_token)
    if bundle:
        add_bundle(app, newest, workers, limit)
    return app


def _model(shelf: ModelShelf) -> FittedModel | None:
    published = shelf.newest()
    return None if published is None else published.model


@final
class _Recommend:
    """POST /recommend in one call: what FastAPI does for each request costs as much as a list."""

    def __init__(
        self, app: ASGIApp, newest: Callable[[], Published], limit: Callable[..., None], workers: Workers
    ) -> None:
        self._app, self._newest, self._limit, self._workers = app, newest, limit, workers
        self._turns = Turns()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a question, and leave everything else to the application."""
        if scope["type"] != "http" or scope["path"] != "/recommend" or scope["method"] != "POST":
            await self._app(scope, receive, send)
            return
        try:
            found = await self._found(Request(scope, receive))
        except RefusedError as refused:
            await problem(refused)(scope, receive, send)
            return
        headers = [(b"content-length", b"%d" % len(found)), (b"content-type", b"application/json")]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": found})

    async def _found(self, request: Request) -> bytes:
        """Answer for one user or for many; if one entry is invalid, the others still get an answer."""
        self._limit(request)
        raw = await body_of(request, MOST_BYTES)
        published = self._newest()
        model, form = published.model, published.form

        def read() -> list[Any] | bytes:
            asked = parsed(raw, form)
            return asked if isinstance(asked, list) else _answer(model, asked, form)

        # A hop to a thread and back takes longer than a short question to a small model.
        short = published.is_quick and len(raw) <= QUICK_BYTES
        found = await (self._turns if short else self._workers).run(read)
        if not isinstance(found, list):
            return found
        self._limit(request, len(found) - 1)
        return await self._workers.run_for_many(
            request, (partial(_or_refusal, model, each) for each in found)
        )


def _show_how_to_ask(app: FastAPI, newest: Callable[[], Published]) -> None:
    @app.api_route("/recommend", methods=["GET", "PUT", "PATCH", "DELETE"], include_in_schema=False)
    async def how_to_ask() -> None:
        """Explain how, with a body to copy: a history in an address would be logged on its way."""
        raise RefusedError(405, "Use POST /recommend, with a body like the example.", newest().form)


def _answer(model: FittedModel, asked: Any, form: dict[str, Any]) -> bytes:
    try:
        return orjson.dumps(answer(model, question(asked, form)))
    except RefusedError:
        raise
    except DiscreetError as error:
        raise RefusedError.of(error, form) from error
    except Exception as error:
        # The message and the traceback of this error may quote the history.
        log("question failed", kind=type(error).__name__)
        raise RefusedError(500, "This question can't be answered.") from None


def _or_refusal(model: FittedModel, asked: Any) -> bytes:
    try:
        return _answer(model, asked, {})
    except RefusedError as refused:
        return refused.one_of_many()


def _describe_recommend(app: FastAPI, model: FittedModel | None) -> None:
    """Add POST /recommend to the description, which FastAPI writes for its own routes only."""
    kinds = [(kind, "validation") for kind in (Question, Questions, Answer, ManyAnswers)]
    _, found = models_json_schema(kinds, ref_template=f"{_SCHEMAS}{{model}}")  # type: ignore[arg-type]
    named = {name: {"summary": name, "value": body} for name, body in examples(model).items()}
    answered = {"schema": _either(Answer, ManyAnswers), "example": answer_example(model)}
    operation = {
        "summary": "Recommend from a history, or from many",
        "description": "Histories are neither stored nor logged. If one of the `people` is invalid, the "
        "others still get an answer.",
        "operationId": "recommend",
        "requestBody": {
            "required": True,
            "content": {"application/json": {"schema": _either(Question, Questions), "examples": named}},
        },
        "responses": {
            "200": {"description": "Successful Response", "content": {"application/json": answered}}
        },
    }
    plain = app.openapi

    def described() -> dict[str, Any]:
        whole = plain()
        whole["paths"] = {"/recommend": {"post": operation}, **whole["paths"]}
        whole["components"]["schemas"].update(found["$defs"])
        return whole

    app.openapi = described  # type: ignore[method-assign]


def _either(*kinds: type[BaseModel]) -> dict[str, Any]:
    return {"anyOf": [{"$ref": f"{_SCHEMAS}{kind.__name__}"} for kind in kinds]}


def _add_state(app: FastAPI, newest: Callable[[], Published], shelf: ModelShelf) -> None:
    promised = {"epsilon": 1.0, "delta": 1e-6, "unit": "user", "sentence": "...", "...": "..."}
    told = {"name": "user-factorization", "guarantee": promised, "...": "..."}

    @app.get("/label", summary="The guarantee of the model", responses=answer_such_as(told))
    async def label() -> Response:
        return Response(newest().label, media_type="application/json")

    @app.get("/health", summary="Whether the service is up", responses=answer_such_as({"status": "ok"}))
    async def health() -> dict[str, str]:
        return {"status": "ok" if shelf.newest() else "no model yet"}

    is_ready = answer_such_as({"status": "ready", "model": "user-factorization"})

    @app.get("/ready", summary="Whether the service can answer; 503 until it has a model", responses=is_ready)
    async def ready() -> dict[str, str]:
        published = shelf.newest()
        if published is None:
            raise RefusedError(503, "The service doesn't have a model yet.")
        return {"status": "ready", "model": published.model.name}


# The page of a bundle starts one worker, which keeps it for use without a connection.
_POLICY = POLICY.replace("trusted-types 'none'", "trusted-types discreet-worker") + "; worker-src 'self'"
_TYPES = {**TYPES, "json": "application/json", "md": "text/markdown; charset=utf-8"}
_LONGEST_PATH = 100


@final
class BundleShelf:
    """The bundle of the newest model, or why it has none; it is made once for each published model."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._made: tuple[FittedModel, dict[str, bytes] | RefusedError] | None = None

    def files(self, published: Published) -> dict[str, bytes]:
        """Return the files of the bundle by path; a model that cannot be bundled is a `RefusedError`."""
        with self._lock:
            if self._made is None or self._made[0] is not published.model:
                self._made = published.model, _made(published.model)
            found = self._made[1]
        if isinstance(found, RefusedError):
            raise RefusedError(found.status, found.sentence)
        return found


def _made(model: FittedModel) -> dict[str, bytes] | RefusedError:
    """Return the files, or the refusal: trying again would take as long and end alike."""
    try:
        return bundle_files(model)
    except DiscreetError as error:
        return RefusedError(422, str(error))
    except Exception as error:
        log("bundle failed", kind=type(error).__name__)
        return RefusedError(500, "The bundle of this model could not be made.")


def add_bundle(
    app: FastAPI, newest: Callable[[], Published], workers: Workers, limit: Callable[[Request], None]
) -> None:
    """Add /bundle/ to an application; `limit` rejects a peer that asks too often."""
    shelf, names = BundleShelf(), bundle_names()

    @app.get("/bundle", include_in_schema=False)
    async def folder() -> RedirectResponse:
        return RedirectResponse("/bundle/", 307)

    @app.get(
        "/bundle/{path:path}",
        summary="A file of the bundle that recommends on the device",
        response_class=Response,
        openapi_extra={"x-examples": {"path": MANIFEST}},
    )
    async def bundled(request: Request, path: Annotated[str, InPath(max_length=_LONGEST_PATH)]) -> Response:
        """The page is at /bundle/; it sends nothing."""
        limit(request)
        name = path or INDEX
        if name not in names:
            raise RefusedError(404, "Nothing is here. GET /docs lists what there is.")
        made = await workers.run(lambda: shelf.files(newest()))
        kind = _TYPES.get(name.rpartition(".")[2], "application/octet-stream")
        headers = {"content-security-policy": _POLICY, "cache-control": "no-cache"}
        return Response(made[name], media_type=kind, headers=headers)
