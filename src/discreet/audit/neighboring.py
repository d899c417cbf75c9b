"""Build small neighboring datasets: they differ by one user, one rating, or one rating value.

The search for a worst case tries rows that have broken guarantees before: long rows, rows of one item, the
first and the last id, an item no other user rated, ties, the empty row, extreme values and values outside the
scale.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import final

import numpy as np
import numpy.typing as npt

from discreet.audit.white_box.recording import NoiseScale
from discreet.core import experiment_generator
from discreet.data import Interactions, PublicFacts, Vocabulary
from discreet.models import Estimator, recency_of
from discreet.privacy import Guarantee, Neighbors, Unit

Row = Mapping[int, float]
# Ids that sort before and after all others.
_FIRST, _LAST = "", "~"
# Numbers of users among whom noise hides all, some, or none of the popular items, at epsilons of full runs.
_SIZES = (32, 64, 96, 128, 192, 256, 384, 512, 768, 1024)
# The number of users declared for a wide catalog, so that models also plan the rounds that need many users.
_DECLARED = 1_000_000
_DAY = 86400.0
# The outcomes tried there: as drawn; a very large first release; and large later releases as well.
_OUTCOMES = (None, NoiseScale(first=1e4), NoiseScale(first=1e4, later=10.0))


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class NeighboringDatasets:
    """A base dataset, its neighbors by name, and the outcomes to try.

    With `more_routes` the dataset is only there for models that decide by earlier releases what to release.
    """

    base: Interactions
    others: Mapping[str, Interactions]
    outcomes: tuple[NoiseScale | None, ...] = (None,)
    more_routes: bool = False


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class SyntheticSpec:
    """A synthetic dataset whose last item only a canary rates.

    Added or removed users are also tried in a catalog of `wide` items, where rows can be long and items are
    more and less popular (0: not tried).
    With `similar` all users rate alike.
    """

    people: int = 24
    items: int = 12
    per_person: int = 5
    seed: int = 0
    max_per_user: int | None = None
    wide: int = 48
    similar: bool = False

    def rows(self, facts: PublicFacts) -> list[dict[int, float]]:
        """Return two groups with opposite preferences, or users who all have the same preferences."""
        draw = experiment_generator(self.seed, "audit crowd")
        rows = []
        for person in range(self.people):
            items = np.sort(draw.choice(self.items - 1, self.per_person, replace=False))
            opposite = np.where(items % 2 == person % 2, 0.85, 0.15)
            liking = np.where(items % 2, 0.1, 0.5) if self.similar else opposite
            likes = draw.random(self.per_person) < liking
            rows.append(
                {
                    int(item): facts.high if like else facts.low
                    for item, like in zip(items, likes, strict=True)
                }
            )
        return rows

    def facts(self, *, implicit: bool) -> PublicFacts:
        """Return the public facts of the dataset."""
        low, step = (1.0, None) if implicit else (1.0, 1.0)
        return PublicFacts(
            n_items=self.items,
            low=low,
            high=1.0 if implicit else 5.0,
            step=step,
            n_users=self.people,
            max_per_user=self.max_per_user,
        )


def neighboring(estimator: Estimator, spec: SyntheticSpec | None = None) -> Iterator[NeighboringDatasets]:
    """Yield datasets with neighbors in the sense of the estimator's guarantee."""
    spec = spec or SyntheticSpec()
    facts = spec.facts(implicit=estimator.feedback == "implicit")
    promise = estimator.promise(facts)
    all_users, timing = spec.rows(facts), Timing.of(estimator)
    if promise.unit is Unit.USER:
        yield from _one_user(all_users, facts, promise, timing)
        if spec.wide and promise.neighbors is Neighbors.ADD_OR_REMOVE:
            wide = replace(facts, n_items=spec.wide, n_users=_DECLARED)
            yield from _popular_items(wide, timing)
            yield _wide_catalog(all_users, wide, timing or Timing())
    elif promise.unit is Unit.RATING:
        yield from _one_rating(all_users, facts)
    else:
        yield from _one_rating_value(all_users, facts)


def canary_rows(facts: PublicFacts, neighbor: Row) -> dict[str, Row]:
    """Return the canary rows to try, by name."""
    low, high, n = facts.low, facts.high, facts.n_items
    every = range(n)
    rows: dict[str, Row] = {
        "every item, liked": dict.fromkeys(every, high),
        "every item, disliked": dict.fromkeys(every, low),
        "every item, by turns": {item: high if item % 2 else low for item in every},
        "one item": {0: high},
        "one item, disliked": {1: low},
        "an item without ratings": {n - 1: high},
        "the two ends": {0: low, n - 1: high},
        "a tie with another user": dict(neighbor),
        "the empty row": {},
        "outside the scale": {0: high + 1e6, 1: low - 1e6, n - 1: high},
    }
    # On a scale of one value several of these are the same.
    different: dict[str, Row] = {}
    for name, row in rows.items():
        if row not in different.values():
            different[name] = row
    return different


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Timing:
    """When users interacted: with two items at a time, the last ones first, `apart` seconds between them."""

    latest: float = 0.0
    apart: float = 1.0

    @classmethod
    def of(cls, estimator: Estimator) -> Timing | None:
        """Return times up to an estimator's own date, a day apart, if ratings fade; None if they don't.

        A row's first ratings then count fully, where the cost is highest, and its others have faded.
        """
        half_life, now = (estimator.settings.get(name) for name in ("half_life", "now"))
        recency = recency_of(half_life, now)
        return None if recency is None else cls(latest=recency.now, apart=_DAY)


def build(rows: Mapping[str, Row], facts: PublicFacts, timing: Timing | None = None) -> Interactions:
    """Return the dataset with these rows, in the order of their ids; empty rows stay."""
    names = sorted(rows)
    lengths = [len(rows[name]) for name in names]
    ratings = [(item, value) for name in names for item, value in sorted(rows[name].items())]
    return Interactions(
        indptr=np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64),
        items=np.array([item for item, _ in ratings], dtype=np.int32),
        values=np.array([value for _, value in ratings], dtype=np.float32),
        times=None if timing is None else _times(lengths, timing),
        users=Vocabulary.of(names),
        catalog=Vocabulary.of(np.arange(facts.n_items)),
        facts=facts,
        name="audit",
    )


def _times(lengths: list[int], timing: Timing) -> npt.NDArray[np.int64]:
    places = np.array([index // 2 for length in lengths for index in range(length)])
    return np.round(timing.latest - timing.apart * places).astype(np.int64)


def _named(rows: list[dict[int, float]]) -> dict[str, Row]:
    return {f"user {number:03d}": row for number, row in enumerate(rows)}


def _one_user(
    all_users: list[dict[int, float]], facts: PublicFacts, promise: Guarantee, timing: Timing | None
) -> Iterator[NeighboringDatasets]:
    others, canaries = _named(all_users), canary_rows(facts, all_users[0])
    if promise.neighbors is Neighbors.ADD_OR_REMOVE:
        found = {name: build({**others, _LAST: row}, facts, timing) for name, row in canaries.items()}
        first = next(iter(canaries.values()))
        found["every item, liked, first"] = build({**others, _FIRST: first}, facts, timing)
        yield NeighboringDatasets(base=build(others, facts, timing), others=found)
        # With two other users the canary's row is most of the data.
        few = dict(list(others.items())[:2])
        yield NeighboringDatasets(
            base=build(few, facts, timing),
            others={
                f"{name}, hardly anybody else": build({**few, _LAST: row}, facts, timing)
                for name, row in canaries.items()
            },
        )
        return
    for start in ("every item, liked", "the empty row"):
        if start in canaries:
            yield NeighboringDatasets(
                base=build({**others, _LAST: canaries[start]}, facts, timing),
                others={
                    f"{start}, then {name}": build({**others, _LAST: row}, facts, timing)
                    for name, row in canaries.items()
                    if name != start
                },
            )


def _popular_items(facts: PublicFacts, timing: Timing | None) -> Iterator[NeighboringDatasets]:
    """Yield users of whom the part 1/n rates item n, without and with a user who rates every item."""
    for people in _SIZES:
        rows = [
            {
                item: facts.low if person // (item + 1) % 2 else facts.high
                for item in range(facts.n_items)
                if person % (item + 1) == 0
            }
            for person in range(people)
        ]
        others, own = _named(rows), replace(facts, n_users=people)
        canary = dict.fromkeys(range(facts.n_items), facts.high)
        yield NeighboringDatasets(
            base=build(others, own, timing),
            others={f"every item, among {people} users": build({**others, _LAST: canary}, own, timing)},
            more_routes=True,
        )


def _wide_catalog(
    all_users: list[dict[int, float]], facts: PublicFacts, timing: Timing
) -> NeighboringDatasets:
    """Return long rows with times next to two other users; moments of rows reach their full cost there."""
    few = dict(list(_named(all_users).items())[:2])
    every = range(facts.n_items)
    rows: dict[str, Row] = {
        "by turns": {item: facts.high if item % 2 else facts.low for item in every},
        "liked": dict.fromkeys(every, facts.high),
    }
    if facts.low >= facts.high:
        del rows["by turns"]
    return NeighboringDatasets(
        base=build(few, facts, timing),
        others={
            f"every item of a wide catalog, {name}": build({**few, _LAST: row}, facts, timing)
            for name, row in rows.items()
        },
        outcomes=_OUTCOMES,
    )


def _one_rating(all_users: list[dict[int, float]], facts: PublicFacts) -> Iterator[NeighboringDatasets]:
    others = _named(all_users)
    answers = {"empty": None, "low": facts.low, "high": facts.high}
    for item in (0, facts.n_items - 1):
        rest: dict[int, float] = {1: facts.high, 2: facts.low}
        neighbors = {
            f"item {item} {name}": build(
                {**others, _LAST: rest if value is None else {**rest, item: value}}, facts
            )
            for name, value in answers.items()
            if name != "low" or facts.low < facts.high
        }
        (_, base), *found = neighbors.items()
        yield NeighboringDatasets(base=base, others=dict(found))
        if len(found) > 1:
            yield NeighboringDatasets(base=found[0][1], others=dict(found[1:]))


def _one_rating_value(all_users: list[dict[int, float]], facts: PublicFacts) -> Iterator[NeighboringDatasets]:
    others = _named(all_users)
    for item, name in ((0, _FIRST), (facts.n_items - 1, _LAST)):
        rest = {1: facts.high, 2: facts.low}
        base = build({**others, name: {**rest, item: facts.low}}, facts)
        yield NeighboringDatasets(
            base=base,
            others={
                f"item {item}, {value:g}": build({**others, name: {**rest, item: value}}, facts)
                for value in (facts.high, (facts.low + facts.high) / 2, facts.high + 1e6)
            },
        )


def additive_neighbors(
    facts: PublicFacts, spec: SyntheticSpec, timing: Timing | None = None
) -> tuple[tuple[Interactions, Interactions], tuple[Interactions, Interactions]]:
    """Return many users without and with a canary, and few users without and with the same canary."""
    all_users = _named(spec.rows(facts))
    few = dict(list(all_users.items())[:3])
    canary = {item: facts.high if item % 3 else facts.low for item in range(facts.n_items)}
    many, less = (
        (build(rows, facts, timing), build({**rows, _LAST: canary}, facts, timing))
        for rows in (all_users, few)
    )
    return many, less
