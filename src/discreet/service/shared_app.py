"""Set up what every application of the service shares: headers, refusals in one sentence, and plain docs."""

from __future__ import annotations

import asyncio
import hmac
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import cache
from typing import Any

import orjson
from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import HTMLResponse, JSONResponse, PlainTextResponse
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from discreet.core.checks import DiscreetError
from discreet.service.docs_page import STYLE, at_host, docs_page
from discreet.service.limits import RefusedError
from discreet.service.pages import HEADERS


def new_app(title: str, description: str, *at_end: Callable[[], None]) -> FastAPI:
    """Return an application whose every answer has our headers and whose every refusal is a sentence.

    Before it ends, it calls `at_end` in order.
    """

    @asynccontextmanager
    async def life(_: FastAPI) -> AsyncIterator[None]:
        yield
        for stop in at_end:
            await asyncio.to_thread(stop)

    # The usual page of documentation loads scripts from elsewhere; ours is at /docs. Traces of FastAPI's own,
    # which a variable of the environment turns on, would show others who asked when, and for which item.
    app = FastAPI(
        title=title,
        description=description,
        docs_url=None,
        redoc_url=None,
        openapi_url=None,
        lifespan=life,
        telemetry={"tracing": False, "metrics": False, "logs": False, "auto_configure": False},
    )

    app.add_middleware(_WithHeaders)

    # Written once, when they are first asked for: all routes are known then.
    described, page = cache(lambda: orjson.dumps(app.openapi())), cache(lambda: docs_page(app.openapi()))

    @app.get("/openapi.json", include_in_schema=False)
    async def openapi() -> Response:
        return Response(described(), media_type="application/json")

    @app.get("/docs", include_in_schema=False)
    async def docs(request: Request) -> HTMLResponse:
        return HTMLResponse(at_host(page(), request.headers.get("host", "")))

    @app.get("/docs.css", include_in_schema=False)
    async def style() -> PlainTextResponse:
        return PlainTextResponse(STYLE, media_type="text/css")

    _answer_in_sentences(app)
    return app


def answer_such_as(shown: Any, kind: str = "application/json") -> dict[int | str, dict[str, Any]]:
    """Return what FastAPI takes to describe an answer by an example."""
    return {200: {"content": {kind: {"example": shown}}}}


# Of a large answer so much is handed to the server at a time: it waits until its peer has read most of it.
_PIECE = 1 << 15


_HEADERS = [
    (name.encode(), value.encode()) for name, value in {**HEADERS, "cache-control": "no-store"}.items()
]


class _WithHeaders:
    """Add our headers to every answer unless it has them, and send large answers in pieces."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                own = {name.lower() for name, _ in message["headers"]}
                message["headers"] = [
                    *message["headers"],
                    *((name, value) for name, value in _HEADERS if name not in own),
                ]
            body = memoryview(message.get("body", b""))
            while len(body) > _PIECE:
                await send({"type": "http.response.body", "body": body[:_PIECE], "more_body": True})
                body = body[_PIECE:]
                message = {**message, "body": body}
            await send(message)

        await self._app(scope, receive, send_with_headers)


def _answer_in_sentences(app: FastAPI) -> None:
    async def refused(_: Request, error: Exception) -> JSONResponse:
        assert isinstance(error, RefusedError)
        return problem(error)

    async def unmendable(_: Request, error: Exception) -> JSONResponse:
        assert isinstance(error, DiscreetError)
        return problem(RefusedError.of(error))

    async def no_such(_: Request, error: Exception) -> JSONResponse:
        assert isinstance(error, HTTPException)
        allowed = (error.headers or {}).get("Allow", "another method")
        words = {
            404: "Nothing is here. GET /docs lists what there is.",
            405: f"Use {allowed} here. GET /docs shows how.",
        }
        return problem(
            RefusedError(error.status_code, words.get(error.status_code, "The request can't be answered."))
        )

    async def invalid(_: Request, error: Exception) -> JSONResponse:
        assert isinstance(error, RequestValidationError)
        # Names of parameters are declared here; what was sent is not quoted.
        for each in error.errors():
            if each["loc"][0] in ("query", "path") and len(each["loc"]) > 1:
                rule = (
                    "is missing"
                    if each["type"] == "missing"
                    else "doesn't have the form that /docs describes"
                )
                name = str(each["loc"][1])
                words = f"The parameter `{name}` {rule}."
                return problem(RefusedError(422, words, code="invalid-parameter", fields={"parameter": name}))
        return problem(RefusedError(422, "The request doesn't have the form that /docs describes."))

    app.add_exception_handler(RefusedError, refused)
    app.add_exception_handler(DiscreetError, unmendable)
    app.add_exception_handler(HTTPException, no_such)
    app.add_exception_handler(RequestValidationError, invalid)


def problem(error: RefusedError) -> JSONResponse:
    """Return a rejection, with a body that is answered if there is one."""
    return JSONResponse(error.to_json(), status_code=error.status, media_type="application/problem+json")


_NO_TOKEN = (
    "Counts are for the operator: start the service with --metrics-token, and send the token as "
    "`Authorization: Bearer TOKEN`."
)


def add_metrics(app: FastAPI, text: Callable[[], str], token: str | None) -> None:
    """Show counts to the operator, who has the token: they reveal when users ask."""
    expected = f"Bearer {token}".encode()

    @app.get(
        "/metrics",
        summary="Counts for the operator, as Prometheus reads them; needs the token",
        openapi_extra={"x-headers": {"Authorization": "Bearer TOKEN"}},
        responses=answer_such_as("discreet_...", "text/plain"),
        response_class=PlainTextResponse,
    )
    async def metrics(request: Request) -> PlainTextResponse:
        shown = request.headers.get("authorization", "").encode()
        if not token or not hmac.compare_digest(shown, expected):
            raise RefusedError(401, _NO_TOKEN)
        return PlainTextResponse(text())
