"""Read what is asked of a model over HTTP, for one user or for many, and show how to ask it.

A rejection shows a body that this model answers, made from its own catalog, which the author of a client can
copy. What was sent is never quoted.
"""

from __future__ import annotations

import json
from typing import Annotated, Any

import orjson
from pydantic import BaseModel, ConfigDict, Discriminator, Field, Tag, ValidationError

from discreet.models import FittedModel, Wanted, one_list, person_row, titles_in_order
from discreet.service.limits import RefusedError

#: The largest body, the longest list, and the longest history that is answered for.
MOST_BYTES, MOST_ITEMS, MOST_HISTORY = 1 << 20, 1000, 10_000
#: How many users may be asked about in one request; their histories together have one history's limit, and
#: so have their lists.
MOST_PEOPLE = 100

ItemId = str | int


class Row(BaseModel):
    """One item of a history; where rows have times, these are its order."""

    model_config = ConfigDict(extra="forbid")

    item: ItemId
    rating: float | None = None
    time: int | float | str | None = None


def _form(history: Any) -> str | None:
    """Return which form a history has, by its first entry."""
    if not isinstance(history, list):
        return "by item" if isinstance(history, dict) else None
    first = history[0] if history else None
    if isinstance(first, dict | Row):
        return "rows"
    return "pairs" if isinstance(first, list | tuple) else "items"


class Question(BaseModel):
    """What a user rated or interacted with, and how many items to recommend.

    `history` is a list, read oldest first: of items, of [item, rating] pairs, or of rows with times. An
    object of ratings by item has no order. `user` states who asks, for models that contain rows of their own
    users. If rows have times, `now` is when the list is requested: a date or seconds since 1970, by default
    the service's clock.
    """

    model_config = ConfigDict(extra="forbid")

    # The first entry decides: trying every form on every entry takes as long as a short list.
    history: Annotated[
        Annotated[dict[str, float], Tag("by item")]
        | Annotated[list[ItemId], Field(fail_fast=True), Tag("items")]
        | Annotated[list[tuple[ItemId, float]], Field(fail_fast=True), Tag("pairs")]
        | Annotated[list[Row], Field(fail_fast=True), Tag("rows")],
        Discriminator(_form),
        # An empty list has several of these forms.
        Field(json_schema_extra=lambda schema: schema.update(anyOf=schema.pop("oneOf"))),
    ]
    user: ItemId | None = None
    now: float | str | None = None
    k: int = Field(default=10, ge=1, le=MOST_ITEMS, strict=True)
    exclude_seen: bool = Field(default=True, strict=True)
    ignore_unknown: bool = Field(default=False, strict=True)


# What each field of a question must be. A refusal names fields that this module declares, and nothing sent.
_RULES = {
    "history": "`history` must be a list of items, of [item, rating] pairs or of rows, or ratings by item.",
    "user": "`user` must be an id: text or a whole number.",
    "now": "`now` must be a date such as 2026-01-31T12:00, or seconds since 1970.",
    "k": f"`k` must be a whole number from 1 to {MOST_ITEMS:,}.",
    "exclude_seen": "`exclude_seen` must be true or false.",
    "ignore_unknown": "`ignore_unknown` must be true or false.",
}
_UNKNOWN_FIELD = f"The question has an unknown field. The fields are {', '.join(_RULES)}."


class Questions(BaseModel):
    """Questions about many users, each answered as it is alone; answers have the same order."""

    people: list[Question] = Field(min_length=1, max_length=MOST_PEOPLE)


class Listed(BaseModel):
    """An item, the score that the list is sorted by, the expected rating, and the model's title of it."""

    item: ItemId
    score: float
    expected_stars: float | None = None
    title: str | None = None


class Answer(BaseModel):
    """Items, best first, and what they are sorted by."""

    items: list[Listed]
    ranked_by: str


class NoAnswer(BaseModel):
    """Why one of many users has no recommendations, with the status and the code of the question alone."""

    error: str
    status: int
    code: str


class ManyAnswers(BaseModel):
    """An answer for each of many users, in the order of the question."""

    answers: list[Answer | NoAnswer]


def parsed(raw: bytes, example: dict[str, Any]) -> list[Any] | dict[str, Any]:
    """Return the questions about many users, or about one user, unread."""
    try:
        asked = loaded(raw, MOST_HISTORY, example)
    except (ValueError, RecursionError):
        raise RefusedError(422, "The body is not JSON.", example) from None
    if not isinstance(asked, dict) or not ({"history", "people"} & asked.keys()):
        raise RefusedError(422, "The body must be an object with `history`, or with `people`.", example)
    if "people" not in asked:
        return asked
    people, example = asked["people"], {"people": [example, {**example, "k": 3}]}
    if not isinstance(people, list) or not 1 <= len(people) <= MOST_PEOPLE or len(asked) > 1:
        raise RefusedError(
            422, f"`people` must be a list of 1 to {MOST_PEOPLE} questions, with nothing next to it.", example
        )
    if sum(_length(one) for one in people) > MOST_HISTORY:
        raise RefusedError(
            422, f"Histories of one request may have {MOST_HISTORY:,} items together; ask in parts.", example
        )
    # A length that no list has is rejected for its user alone.
    lengths = [one.get("k", 10) for one in people if isinstance(one, dict)]
    refuse_long(sum(one for one in lengths if isinstance(one, int) and 1 <= one <= MOST_ITEMS), example)
    return people


def refuse_long(items: int, example: dict[str, Any]) -> None:
    """Reject a request whose lists have too many items together: they are in memory until they are sent."""
    if items > MOST_HISTORY:
        raise RefusedError(
            422, f"Lists of one request may have {MOST_HISTORY:,} items together; ask in parts.", example
        )


# A row of a history has at most two commas in it and one after it. IDs may contain a few more.
_COMMAS_PER_ENTRY = 4


def loaded(raw: bytes, most_entries: int, example: dict[str, Any]) -> Any:
    """Return the value of a JSON body; one with many more parts than entries are allowed is not parsed.

    Whatever thread parses, all others wait until it is done: 0.1 seconds for a megabyte of small parts.
    """
    parts = raw.count(b"[") + raw.count(b"{")
    if raw.count(b",") > _COMMAS_PER_ENTRY * most_entries or parts > 2 * most_entries:
        raise RefusedError(
            422, f"The body has too many parts: at most {most_entries:,} items are answered for.", example
        )
    try:
        return orjson.loads(raw)
    except ValueError:
        # Half of a surrogate pair in one of many questions must not lose the others: json reads it.
        return json.loads(raw)


def question(asked: Any, example: dict[str, Any]) -> Question:
    """Read a question; a history that is too long is rejected before its entries are looked at."""
    if _length(asked) > MOST_HISTORY:
        raise RefusedError(
            422, f"A history may have {MOST_HISTORY:,} items; send the newest of them.", example
        )
    if isinstance(asked, dict) and not asked.keys() <= _RULES.keys():
        raise RefusedError(422, _UNKNOWN_FIELD, example)
    try:
        orjson.dumps(asked)
        return Question.model_validate(asked)
    except orjson.JSONEncodeError:
        raise RefusedError(
            422,
            "The question has half of a surrogate pair, which no ID contains, or a number beyond 64 bits. "
            "Send text as UTF-8, and long IDs as text.",
            example,
        ) from None
    except ValidationError as error:
        raise RefusedError(422, _broken_rule(error), example) from None
    except (ValueError, RecursionError):
        raise RefusedError(422, "The question doesn't have the form that /docs describes.", example) from None


def _broken_rule(error: ValidationError) -> str:
    """Return the rule of the first field that is wrong."""
    places = [each["loc"] for each in error.errors(include_url=False, include_input=False)]
    names = [str(place[0]) for place in places if place]
    if names:
        return _RULES[names[0]]
    return "A question must be an object with `history`."


def _length(asked: Any) -> int:
    history = asked.get("history") if isinstance(asked, dict) else None
    return len(history) if isinstance(history, list | dict) else 0


def answer(model: FittedModel, asked: Question) -> dict[str, Any]:
    """Return the list of one user, in the form of `Answer`."""
    history: Any = asked.history
    if isinstance(history, list):
        history = [one.model_dump(exclude_none=True) if isinstance(one, Row) else one for one in history]
    now = "now" if asked.now is None else asked.now
    person = person_row(model, history, ignore_unknown=asked.ignore_unknown, user=asked.user, now=now)
    # As `FittedModel.recommend`, without an object for each place of the list.
    found = one_list(model, person, Wanted(k=asked.k, exclude_seen=asked.exclude_seen))
    listed = [
        {"item": item, "score": score, "expected_stars": stars, "title": title}
        for item, score, stars, title in found
    ]
    return {"items": listed, "ranked_by": model.scorer.ranked_by}


def examples(model: FittedModel | None) -> dict[str, dict[str, Any]]:
    """Return bodies that a model answers, by name; without a model yet, their form."""
    ids = ["a", "b"] if model is None else model.catalog.ids[:2].tolist()
    facts = (1.0, 5.0) if model is None else (model.facts.low, model.facts.high)
    rated = model is None or model.scorer.needs_ratings
    stars = list(zip(ids, reversed(facts), strict=False))
    plain: dict[str, Any] = {"history": [[item, star] for item, star in stars] if rated else ids, "k": 10}
    timed = [
        {"item": item, **({"rating": star} if rated else {}), "time": 1700000000 + place}
        for place, (item, star) in enumerate(stars)
    ]
    return {
        "one user": plain,
        "one user, with times": {"history": timed, "k": 10},
        "many users": {"people": [plain, {**plain, "k": 3}]},
    }


def answer_example(model: FittedModel | None) -> dict[str, Any]:
    """Return the form of an answer, with items of a model's own; its numbers are made up."""
    ids = ["a", "b"] if model is None else model.catalog.ids[:2].tolist()
    stars = model is None or model.scorer.needs_ratings
    listed = [
        {"item": item, "score": score, "expected_stars": star if stars else None, "title": title}
        for item, score, star, title in zip(
            ids, (0.93, 0.87), (4.2, 4.1), titles_of(model, ids), strict=False
        )
    ]
    return {"items": listed, "ranked_by": "..." if model is None else model.scorer.ranked_by}


def titles_of(model: FittedModel | None, ids: list[ItemId]) -> list[str | None]:
    """Return the model's titles of these items, or none."""
    return [None] * len(ids) if model is None else titles_in_order(model, ids)


def example(model: FittedModel | None) -> dict[str, Any]:
    """Return the body that a refusal shows."""
    return next(iter(examples(model).values()))
