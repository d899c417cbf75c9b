"""Score from the parts of a bundle as a device does, and measure how far quantized lists agree.

This is what `web/recommender.js` and `onnx_graph.py` compute. The histories that lists are compared on are
drawn from released numbers: no user's history shows how good a bundle is, so the measure costs nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from discreet.core.arrays import Floats, Indices
from discreet.data.interactions import Interactions
from discreet.data.vocabulary import Vocabulary
from discreet.export.bundle.encoding import decoded
from discreet.export.bundle.parts import VECTORS, ScorePart
from discreet.models.fitted import FittedModel
from discreet.models.lists import best_places, listable
from discreet.models.scorers.elapsed import damped, missed_steps
from discreet.models.scorers.interactions import known_part, recency
from discreet.models.scorers.log_chance import log_chance
from discreet.models.scorers.ranking import LOGISTIC
from discreet.solvers.few_rows import FEW

K = 10
_PEOPLE, _SEED = 200, 7
_LENGTHS = (3, 40)


class ListAgreement(NamedTuple):
    """Agreement between lists of a bundle and of the model: shared places, and equal lists."""

    shared: float
    equal: float
    lists: int

    def to_json(self) -> dict[str, Any]:
        """Return the numbers, rounded down so that none is flattered."""
        return {
            "shared_at_10": np.floor(self.shared * 1e4) / 1e4,
            "equal_lists": np.floor(self.equal * 1e4) / 1e4,
            "lists": self.lists,
            "histories": "drawn from released numbers",
        }


def own_lists(model: FittedModel, people: Interactions) -> Indices:
    """Return the first places of each user's list, as `recommend` makes it."""
    found = []
    for start in range(0, people.n_users, FEW):
        some = people.span(start, min(start + FEW, people.n_users))
        rows = np.arange(some.n_users)
        worth = model.worth(some, rows).astype(np.float64)
        listable(worth, some, rows)
        found.append(best_places(worth, K))
    return np.concatenate(found)


def agreement(
    wanted: Indices, parts: Sequence[ScorePart], precision: str, people: Interactions
) -> ListAgreement:
    """Return how the lists from a file of this precision agree with those `wanted` for these users."""
    read, one_row = [decoded(part, precision) for part in parts], np.zeros(1, dtype=np.int64)
    shared, equal = 0.0, 0
    for row, ours in enumerate(wanted):
        person = people.span(row, row + 1)
        scores = scores_of(read, person)[None, :]
        listable(scores, person, one_row)
        theirs = best_places(scores, K)[0]
        shared += np.intersect1d(ours, theirs).size / max(ours.size, 1)
        equal += bool(np.array_equal(ours, theirs))
    return ListAgreement(shared / len(wanted), equal / len(wanted), len(wanted))


def drawn_histories(model: FittedModel, count: int = _PEOPLE) -> Interactions:
    """Return histories drawn by released popularity where the model has it, with ratings and an order."""
    random = np.random.default_rng(_SEED)
    items = len(model.catalog)
    weights = np.asarray(getattr(model.scorer, "popularity", np.zeros(0)), dtype=np.float64)
    weights = np.maximum(weights, 1e-9) if weights.size == items else np.ones(items)
    lengths = np.minimum(random.integers(*_LENGTHS, size=count), max(items // 2, 1))
    chosen = [random.choice(items, n, replace=False, p=weights / weights.sum()) for n in lengths]
    facts = model.facts
    grid = np.linspace(facts.low, facts.high, 5) if facts.step is None else _steps(facts)
    people = np.repeat(np.arange(count), lengths)
    return Interactions.from_arrays(
        people,
        model.catalog.id_at(np.concatenate(chosen)).tolist(),
        random.choice(grid, people.size).astype(np.float32),
        np.concatenate([np.arange(n) for n in lengths]),
        catalog=model.catalog,
        people=Vocabulary.of(range(count)),
        facts=facts,
        name="drawn histories",
    )


def _steps(facts: Any) -> Floats:
    count = round((facts.high - facts.low) / facts.step) + 1
    grid: Floats = facts.low + facts.step * np.arange(count)
    return grid


def scores_of(parts: Sequence[ScorePart], person: Interactions) -> Floats:
    """Return the scores of all items for one user, from parts as a device reads them."""
    total, stars, own = np.zeros(person.n_items), np.zeros(0), np.zeros(0)
    for part in parts:
        if part.kind == "popularity":
            total = total + part.arrays["bias"]
        elif part.kind == "embedding":
            own, known = _embedded(part, person)
            total = total + (part.arrays[VECTORS] @ own - known * part.arrays["penalty"])
        elif part.kind == "confidence":
            total = total + part.arrays[VECTORS] @ _confident(part, person)
        elif part.kind == "item-item":
            total = total + _from_items(part, person)
        elif part.kind == "next-items":
            total = _blended(part, person, total)
        elif part.kind == "ratings":
            own, stars = _rated(part, person)
            total = total + part.numbers["weight"] * stars
        else:
            total = _single(total) + _liked(part, person, stars, own, parts)
    return _single(total)


def _single(numbers: Floats) -> Floats:
    """Round to single precision, as scores are compared in."""
    return numbers.astype(np.float32).astype(np.float64)


def _embedded(part: ScorePart, person: Interactions) -> tuple[Floats, float]:
    """Return a user's embedding, and the part of it that the history determines."""
    numbers = part.numbers
    weights = recency(person, numbers["fading"], numbers["evenly"], missed_steps(person))
    total, spread = weights.sum(), part.arrays["spread"]
    place = weights.astype(np.float32).astype(np.float64) @ part.arrays[VECTORS][person.items]
    own = (place - total * part.arrays["mean"]) / (total * spread + numbers["ridge"])
    return own, float(known_part(total[None], spread, numbers["ridge"])[0])


def _confident(part: ScorePart, person: Interactions) -> Floats:
    own, alpha = part.arrays[VECTORS][person.items], part.numbers["alpha"]
    if not len(own):
        return np.zeros(part.arrays[VECTORS].shape[1])
    normal = part.arrays["gram"] + alpha * own.T @ own
    normal = normal + part.numbers["regularization"] * np.eye(own.shape[1])
    found: Floats = np.linalg.solve(normal, (1 + alpha) * own.sum(axis=0))
    return found


def _from_items(part: ScorePart, person: Interactions) -> Floats:
    weights = recency(person, part.numbers["fading"], part.numbers["evenly"]).astype(np.float32)
    starts, total = part.arrays["starts"].astype(np.int64), np.zeros(person.n_items)
    for item, weight in zip(person.items, weights.tolist(), strict=True):
        span = slice(int(starts[item]), int(starts[item + 1]))
        np.add.at(total, part.arrays["columns"][span], weight * part.arrays["values"][span])
    total *= part.numbers["weight"]
    return total


def _blended(part: ScorePart, person: Interactions, scores: Floats) -> Floats:
    """Mix the probabilities of the part's items with what the history's items say of them."""
    items, starts = part.arrays["items"].astype(np.int64), part.arrays["starts"].astype(np.int64)
    rows = np.full(person.n_items, -1)
    rows[items] = np.arange(items.size)
    missed = missed_steps(person)
    weights = recency(person, part.numbers["fading"], part.numbers["evenly"], missed).astype(np.float32)
    blend = damped(part.numbers["blend"], missed)[0]
    # The library adds up in single precision, item after item.
    sums, values = np.zeros(items.size, dtype=np.float32), part.arrays["values"].astype(np.float32)
    for row, weight in zip(rows[person.items], weights, strict=True):
        span = slice(int(starts[row]), int(starts[row + 1])) if row >= 0 else slice(0)
        sums[part.arrays["columns"][span]] += weight * values[span]
    follows = np.maximum(sums, 0.0).astype(np.float64)
    if not follows.any():
        return scores
    base, kept = scores[items], np.log1p(-blend)
    together = np.log(np.exp(base - base.max()).sum()) + base.max()
    with np.errstate(divide="ignore"):
        new = np.log(follows / follows.sum()) + together + np.log(blend)
    found: Floats = scores + kept
    found[items] = np.logaddexp(base + kept, new)
    return found


def _rated(part: ScorePart, person: Interactions) -> tuple[Floats, Floats]:
    """Return a user's own bias and factors, and the stars of all items in single precision."""
    design = np.column_stack([np.ones(person.n_items), part.arrays[VECTORS]])
    base = part.numbers["mean"] + part.arrays["bias"]
    own = np.zeros(design.shape[1])
    if person.n_ratings:
        chosen = design[person.items]
        scale = max(person.n_ratings, 1) ** part.numbers["power"]
        normal = chosen.T @ chosen + np.diag(scale * part.arrays["ridge"])
        own = np.linalg.solve(normal, chosen.T @ (person.values - base[person.items]))
    return own, _single(base + design @ own)


def _liked(
    part: ScorePart, person: Interactions, stars: Floats, own: Floats, parts: Sequence[ScorePart]
) -> Floats:
    numbers = part.numbers
    if numbers["usual"] == "own":
        mean = next(one.numbers["mean"] for one in parts if one.kind == "ratings")
        usual = (float(person.values.sum(dtype=np.float64)) + mean) / (person.n_ratings + 1)
    else:
        usual = float(part.arrays["usual"][0] + part.arrays["usual"][1:] @ own)
    above = (stars - usual) / numbers["deviation"]
    liked = log_chance(above) if numbers["link"] == "normal" else -np.logaddexp(0.0, -LOGISTIC * above)
    found: Floats = numbers["weight"] * liked
    return found
