"""Answer which items are like an item, or like each of many, over HTTP."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Annotated, Any

import orjson
from fastapi import FastAPI, Query, Request, Response
from pydantic import BaseModel, ConfigDict, FailFast, Field

from discreet.core.checks import DiscreetError
from discreet.models import FittedModel
from discreet.service.limits import RefusedError, body_of
from discreet.service.publishing import Published
from discreet.service.questions import (
    MOST_BYTES,
    MOST_HISTORY,
    MOST_ITEMS,
    MOST_PEOPLE,
    ItemId,
    NoAnswer,
    loaded,
    refuse_long,
    titles_of,
)
from discreet.service.shared_app import answer_such_as
from discreet.service.workers import Workers


class Neighbor(BaseModel):
    """An item, and how similar it is.

    `above_noise` is the chance that noise alone didn't bring it this near (null: no noise was added). It
    doesn't cover what the model didn't learn.
    """

    item: ItemId
    score: float
    above_noise: float | None
    title: str | None = None


class NeighborsAnswer(BaseModel):
    """Neighbors that stand out of the noise, nearest first; there may be fewer than were asked for.

    `why` states why there are none; it is null if there are some.
    """

    items: list[Neighbor]
    why: str | None = None


class SimilarQuestions(BaseModel):
    """Items whose neighbors are wanted, and how many of each; answers come back in this order."""

    model_config = ConfigDict(extra="forbid")

    items: Annotated[list[ItemId], FailFast()] = Field(min_length=1, max_length=MOST_PEOPLE)
    k: int = Field(default=10, ge=1, le=MOST_ITEMS, strict=True)


class ManyNeighbors(BaseModel):
    """An answer for each of many items, in the order of the question."""

    answers: list[NeighborsAnswer | NoAnswer]


def add_similar(
    app: FastAPI,
    newest: Callable[[], Published],
    limit: Callable[..., None],
    workers: Workers,
    model: FittedModel | None,
) -> None:
    """Add GET /similar for one item and POST /similar for many; examples come from the model's catalog."""
    ids = ["a", "b", "c"] if model is None else model.catalog.ids[:3].tolist()
    near = [
        {"item": item, "score": score, "above_noise": 0.99, "title": title}
        for item, score, title in zip(ids[1:], (0.81, 0.64), titles_of(model, ids[1:]), strict=False)
    ]
    one = {"items": near, "why": None}

    @app.get(
        "/similar",
        summary="Items like one item",
        response_model=NeighborsAnswer,
        openapi_extra={"x-examples": {"item": str(ids[0])}},
        responses=answer_such_as(one),
    )
    async def similar(
        request: Request,
        item: Annotated[str, Query(max_length=1000)],
        k: Annotated[int, Query(ge=1, le=MOST_ITEMS)] = 10,
    ) -> Response:
        limit(request)
        if not request.query_params.keys() <= {"item", "k"}:
            raise RefusedError(422, "The request has an unknown parameter. The parameters are item and k.")
        return _json(await workers.run(lambda: _neighbors(newest().model, item, k)))

    form = {"items": ids[:2], "k": 3}
    body = {"schema": SimilarQuestions.model_json_schema(), "examples": {"": {"summary": "", "value": form}}}

    @app.post(
        "/similar",
        summary="Items like each of many items",
        response_model=ManyNeighbors,
        openapi_extra={"requestBody": {"required": True, "content": {"application/json": body}}},
        responses=answer_such_as({"answers": [one, {"error": "...", "status": 422, "code": "..."}]}),
    )
    async def similar_to_many(request: Request) -> Response:
        """If one item is invalid, the others still get an answer. Each item counts as one request."""
        limit(request)
        raw = await body_of(request, MOST_BYTES)
        asked = await workers.run(lambda: _read(raw, form))
        limit(request, len(asked.items) - 1)
        works = (partial(_or_refusal, newest().model, item, asked.k) for item in asked.items)
        return _json(await workers.run_for_many(request, works))


def _json(body: bytes) -> Response:
    return Response(body, media_type="application/json")


def _neighbors(model: FittedModel, item: ItemId, k: int) -> bytes:
    found = model.similar_items(item, k)
    near = [
        {"item": one.item, "score": one.similarity, "above_noise": one.above_noise, "title": one.title}
        for one in found
    ]
    return orjson.dumps({"items": near, "why": found.why_empty or None})


def _or_refusal(model: FittedModel, item: ItemId, k: int) -> bytes:
    try:
        return _neighbors(model, item, k)
    except DiscreetError as error:
        return RefusedError.of(error).one_of_many()


def _read(raw: bytes, form: dict[str, Any]) -> SimilarQuestions:
    try:
        asked = SimilarQuestions.model_validate(loaded(raw, MOST_HISTORY, form))
        refuse_long(len(asked.items) * asked.k, form)
        return asked
    except (ValueError, RecursionError):
        raise RefusedError(
            422,
            f"The body must be an object with `items`, 1 to {MOST_PEOPLE} ids, and perhaps `k`, from 1 to "
            f"{MOST_ITEMS:,}.",
            form,
        ) from None
