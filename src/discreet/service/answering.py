"""Answer for a model over HTTP: recommend from a history that comes with the request and is forgotten."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Annotated, Any

from fastapi import FastAPI, Query, Request
from pydantic import BaseModel, ConfigDict, Field

from discreet.service.bundles import add_bundle
from discreet.service.limits import Peers, RateLimit, RefusedError, body_of
from discreet.service.publishing import ModelShelf, Published
from discreet.service.web_app import new_app
from discreet.service.workers import Workers

_MOST_BYTES = 1 << 20
_MOST_ITEMS = 1000
#: The longest history that is answered for; it bounds how long one answer takes.
MOST_HISTORY = 10_000

ItemId = str | int


class Row(BaseModel):
    """One item of a history; where rows have times, these are its order."""

    model_config = ConfigDict(extra="forbid")

    item: ItemId
    rating: float | None = None
    time: int | float | str | None = None


class Question(BaseModel):
    """What a person rated or chose, and how many items to recommend.

    `history` is a list, read oldest first: of items, of [item, rating] pairs, or of rows with times. An
    object of ratings by item has no order. `user` says who asks, for models that hold rows of their own
    people.
    """

    history: dict[str, float] | list[ItemId] | list[tuple[ItemId, float]] | list[Row]
    user: ItemId | None = None
    k: int = Field(default=10, ge=1, le=_MOST_ITEMS)
    exclude_seen: bool = True
    ignore_unknown: bool = False


class Listed(BaseModel):
    """An item, the score that the list is sorted by, and the rating that the person is expected to give."""

    item: ItemId
    score: float
    expected_stars: float | None = None


class Answer(BaseModel):
    """Items, best first, and what they are sorted by."""

    items: list[Listed]
    ranked_by: str


class Neighbor(BaseModel):
    """An item, how similar it is, and how likely that is no work of the noise (null: no noise was added)."""

    item: ItemId
    score: float
    confidence: float | None


class NeighborsAnswer(BaseModel):
    """Neighbors that stand out of the noise, nearest first; there may be fewer than were asked for."""

    items: list[Neighbor]


def answering_app(
    model: Path, *, per_minute: int = 0, proxies: Sequence[str] = (), bundle: bool = False
) -> FastAPI:
    """Return the application that answers for a model file, read again whenever it is replaced.

    Parameters:
        model: The model file.
        per_minute: How many questions one peer may ask a minute; 0 for no limit.
        proxies: The proxies whose word is taken for who asks.
        bundle: Whether /bundle/ hands out what recommends on the device (`discreet bundle`).
    """
    shelf = ModelShelf(model)
    app = new_app("discreet: recommendations", "Answers from a history that is used once and forgotten.")
    rate, peers, workers = RateLimit(per_minute), Peers(proxies), Workers()

    @asynccontextmanager
    async def life(_: FastAPI) -> AsyncIterator[None]:
        yield
        workers.stop()

    app.router.lifespan_context = life

    def newest() -> Published:
        published = shelf.newest()
        if published is None:
            raise RefusedError(404, "There is no model yet.")
        return published

    schema = {"application/json": {"schema": Question.model_json_schema()}}

    @app.post(
        "/recommend", summary="Recommend from a history", openapi_extra={"requestBody": {"content": schema}}
    )
    async def recommend(request: Request) -> Answer:
        """Nothing of the history is stored or logged."""
        rate.check(peers.of(request))
        raw = await body_of(request, _MOST_BYTES)
        return await workers.run(lambda: _best(newest(), _question(raw)))

    @app.get("/similar", summary="Items like one item")
    async def similar(
        request: Request,
        item: Annotated[str, Query(max_length=1000)],
        k: Annotated[int, Query(ge=1, le=_MOST_ITEMS)] = 10,
    ) -> NeighborsAnswer:
        rate.check(peers.of(request))
        found = await workers.run(lambda: newest().model.similar_items(item, k))
        return NeighborsAnswer(
            items=[Neighbor(item=one[0], score=one[1], confidence=one.confidence) for one in found]
        )

    @app.get("/label", summary="What the model promises")
    def label() -> dict[str, Any]:
        return newest().label

    @app.get("/health", summary="Whether the service is up")
    def health() -> dict[str, str]:
        return {"status": "ok" if shelf.newest() else "no model yet"}

    if bundle:
        add_bundle(app, newest, workers, lambda request: rate.check(peers.of(request)))
    return app


def _question(raw: bytes) -> Question:
    """Read a question; a history that is too long is refused before its entries are looked at."""
    try:
        asked = json.loads(raw)
        if len(asked["history"]) > MOST_HISTORY:
            raise RefusedError(422, f"A history may have {MOST_HISTORY:,} items; send the newest of them.")
        return Question.model_validate(asked)
    except (ValueError, TypeError, KeyError, RecursionError):
        raise RefusedError(422, "The question does not have the form that /docs describes.") from None


def _best(published: Published, question: Question) -> Answer:
    history: Any = question.history
    if isinstance(history, list):
        history = [one.model_dump(exclude_none=True) if isinstance(one, Row) else one for one in history]
    found = published.model.recommend(
        history,
        question.k,
        exclude_seen=question.exclude_seen,
        ignore_unknown=question.ignore_unknown,
        user=question.user,
    )
    listed = [Listed(item=one[0], score=one[1], expected_stars=one.stars) for one in found]
    return Answer(items=listed, ranked_by=published.model.scorer.ranked_by)
