"""Find along which directions tastes differ: free ones, noisy ones, and one refit of all item vectors.

Ratings are in units in which the scale runs from -1 to 1. A person explains their own ratings by a ridge over
the released directions; everything a person tells is a function of their own row and of earlier releases,
scaled to length 1. The proof is in proofs/user_factorization.md.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple, final

import numpy as np
import numpy.typing as npt

from discreet.data.interactions import Interactions
from discreet.models.biases import (
    COUNT_PART,
    TYPICAL_RESIDUAL,
    USER_RIDGE,
    FirstLook,
    raise_counts,
    sum_variance,
)
from discreet.models.contributions import Block, blocks
from discreet.privacy.gaussian import split_gaussian
from discreet.privacy.mechanisms.additive import Gaussian
from discreet.randomness import PrivacyRandom
from discreet.solvers.als import solve_rows
from discreet.solvers.item_statistics import ItemStatistics, LocalModel, item_statistics
from discreet.solvers.rows import Rows, residuals
from discreet.solvers.shrinkage import shrink_vectors

Floats = npt.NDArray[np.float64]

# Factors pay only with this many people for each unit of noise, and this many ratings a person.
_PEOPLE_PER_NOISE = 4000.0
_RATINGS_PER_PERSON = 32.0
# What is left after the first look, if factors pay: item effects, second moment, refit, moment of factors.
_SHARES = (0.30, 0.27, 0.42, 0.01)
# How many items take part in the second moment, for each square root of people per noise.
_ITEMS_PER_ROOT = 5.0
_FEWEST_ITEMS, _MOST_ITEMS = 32, 1500
_MOST_FACTORS = 32
# An eigenvalue counts from this much above the edge of the noise.
_ABOVE_EDGE = 1.03
# Items known better count less: powers of the noisy count in the second moment and in the refit.
_MOMENT_POWER, _REFIT_POWER = -0.25, -0.25
# How strongly a person's taste for "better than average" and for "better known" is pulled to zero.
_QUALITY_RIDGE, _FAME_RIDGE = 10.0, 200.0
# Variance of a rating around its prediction; ridges are stated in units of it.
_NOISE = TYPICAL_RESIDUAL**2
# Rows are weighed by their own length, which makes the mean of the squared weights larger than the square of
# the mean weight by about this factor.
_WEIGHT_SPREAD = 1.3
_LEAST_MOMENT = 0.02
# Entries of a person's row are cut to this grid: products are whole steps of 2^-24, and their sums exact.
_ROW_GRID = 2.0**-12
_CELLS_PER_BLOCK = 1 << 23


class Taste(NamedTuple):
    """Hold item offsets and directions; the first direction is the constant, `ridge` pulls each one."""

    offsets: Floats
    features: Floats
    ridge: Floats


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """Hold how the rest of the budget is spent: noise multipliers, and how many items take part."""

    people_per_noise: float
    ratings_per_person: float
    factors: bool
    items: int
    effects: float
    moment: float
    refit: float
    scales: float

    def explain(self) -> dict[str, Any]:
        """Return the rule's inputs and what it chose."""
        return {
            "people per noise": round(self.people_per_noise, 1)
            if np.isfinite(self.people_per_noise)
            else "inf",
            "people per noise needed": _PEOPLE_PER_NOISE,
            "ratings a person, about": round(self.ratings_per_person, 1),
            "ratings a person needed": _RATINGS_PER_PERSON,
            "factors pay": self.factors,
            "items in the second moment": self.items,
        }


def plan(seen: FirstLook, total: float, rest: float, n_items: int) -> Plan:
    """Choose from released numbers whether factors pay and share the rest of the budget accordingly.

    Both choices cost the same: the multipliers compose to `rest`.
    """
    people_per_noise = seen.people / total if total else np.inf
    pays = people_per_noise >= _PEOPLE_PER_NOISE and seen.typical_length >= _RATINGS_PER_PERSON
    effects, moment, refit_noise, scales = (
        split_gaussian(rest, _SHARES) if pays and rest else (rest, 0.0, 0.0, 0.0)
    )
    wanted = _ITEMS_PER_ROOT * np.sqrt(seen.people / moment) if moment else _MOST_ITEMS
    items = min(max(int(min(wanted, _MOST_ITEMS)), _FEWEST_ITEMS), n_items) if pays else 0
    return Plan(
        people_per_noise=people_per_noise,
        ratings_per_person=seen.typical_length,
        factors=bool(pays),
        items=items,
        effects=effects,
        moment=moment,
        refit=refit_noise,
        scales=scales,
    )


def free_directions(seen: FirstLook, effects: Floats) -> Taste:
    """Return the directions that cost nothing: people differ in how much quality and fame mean to them."""
    quality = effects - np.average(effects, weights=seen.counts)
    features = np.column_stack([np.ones(effects.size), quality, seen.features[:, 1]])
    ridge = np.array([USER_RIDGE, _QUALITY_RIDGE * _NOISE, _FAME_RIDGE * _NOISE])
    return Taste(seen.mean + effects, features, ridge)


def directions(
    data: Interactions, seen: FirstLook, taste: Taste, chosen: Plan, random: PrivacyRandom
) -> Taste:
    """Release the second moment of what the free directions leave, and keep what stands out of its noise."""
    top = np.argsort(-seen.raw_counts, kind="stable")[: chosen.items]
    pull = seen.counts**_MOMENT_POWER
    moment = _second_moment(data, seen, taste, top, pull)
    if chosen.moment:
        moment = Gaussian(sigma=chosen.moment, l2_sensitivity=1.0).release_symmetric(moment, random)
    np.fill_diagonal(moment, 0.0)
    values, vectors = np.linalg.eigh(moment)
    # Off the diagonal the noise has a standard deviation of sigma/sqrt(2): a semicircle with this edge.
    edge = max(-float(values[0]), np.sqrt(2 * chosen.items) * chosen.moment)
    kept = np.flatnonzero(values > edge * _ABOVE_EDGE)[::-1][:_MOST_FACTORS]
    strength = np.sqrt(np.maximum(values[kept] ** 2 - edge**2, 1e-12))
    found = np.zeros((data.n_items, kept.size))
    found[top] = vectors[:, kept] * np.sqrt(strength) / _row_weight(seen, top, pull)[:, None]
    ridge = np.concatenate([taste.ridge, np.full(kept.size, _NOISE)])
    return Taste(taste.offsets, np.column_stack([taste.features, found]), ridge)


def _row_weight(seen: FirstLook, top: npt.NDArray[np.int64], pull: Floats) -> Floats:
    """Return, for each item, by how much weighing shrank its column against a column of plain residuals."""
    counts = seen.counts[top]
    typical = np.sqrt((counts * pull[top] ** 2).sum() / counts.sum())
    share = counts.sum() / max(float(seen.raw_counts.sum()), float(counts.sum()))
    weight: Floats = counts * pull[top] / (typical * np.sqrt(share)) * np.sqrt(_WEIGHT_SPREAD / seen.people)
    return weight


def _second_moment(
    data: Interactions, seen: FirstLook, taste: Taste, top: npt.NDArray[np.int64], pull: Floats
) -> Floats:
    """Return the sum over people of x x', where x holds their weighted residuals and is at most 1 long."""
    place = np.full(data.n_items, -1)
    place[top] = np.arange(top.size)
    total = np.zeros((top.size, top.size))
    for block, people in _unit_blocks(data, seen, max(_CELLS_PER_BLOCK // top.size, 1)):
        left = _left_over(people, taste)
        taking_part = place[block.items] >= 0
        weighted = pull[block.items] * left
        squares = np.where(taking_part, weighted**2 + (pull[block.items] * COUNT_PART) ** 2, 0.0)
        entries = weighted * block.unit_weights(squares)
        rows = np.zeros((block.counts.size, top.size))
        rows[block.people[taking_part], place[block.items[taking_part]]] = (
            np.trunc(entries[taking_part] / _ROW_GRID) * _ROW_GRID
        )
        total += rows.T @ rows
    return total


def refit(data: Interactions, seen: FirstLook, taste: Taste, chosen: Plan, random: PrivacyRandom) -> Taste:
    """Release, for every item, what people's factors say about its vector, and shrink by the known noise."""
    size = taste.features.shape[1]
    scale = np.sqrt(taste.ridge / _NOISE)
    pull = seen.counts**_REFIT_POWER
    model = LocalModel(
        taste.features, taste.offsets, taste.ridge, scale, float(np.sqrt(size + 1)), pull, COUNT_PART
    )
    parts = [item_statistics(people, model) for _, people in _unit_blocks(data, seen)]
    told = ItemStatistics(*(np.sum(piece, axis=0) for piece in zip(*parts, strict=True)))
    sums, counts, moment = _with_noise(told, chosen, random)
    counts = raise_counts(counts / COUNT_PART, chosen.refit)
    moment = _usable(moment)
    current = taste.features / scale
    current[:, 0] = 0.0
    # Quality and fame are expected to stay what they are; the noisy directions are shrunk to zero.
    center = np.zeros_like(current)
    center[:, 1:3] = current[:, 1:3]
    variance = sum_variance(counts, pull, seen.people, chosen.refit)
    vectors = shrink_vectors(sums + counts[:, None] * (current @ moment), counts, moment, variance, center)
    features = vectors * scale
    features[:, 0] = 1.0
    return Taste(taste.offsets + vectors[:, 0], features, taste.ridge)


def _with_noise(told: ItemStatistics, chosen: Plan, random: PrivacyRandom) -> ItemStatistics:
    if not chosen.refit:
        return told
    flat = np.concatenate([told.sums.ravel(), told.counts])
    noisy = Gaussian(sigma=chosen.refit, l2_sensitivity=1.0).release(flat, random)
    moment = Gaussian(sigma=chosen.scales, l2_sensitivity=1.0).release_symmetric(told.moment, random)
    return ItemStatistics(noisy[: told.sums.size].reshape(told.sums.shape), noisy[told.sums.size :], moment)


def _usable(moment: Floats) -> Floats:
    """Return the factors' second moment relative to the constant's, with all eigenvalues above zero."""
    values, basis = np.linalg.eigh(moment / max(float(moment[0, 0]), _LEAST_MOMENT))
    raised: Floats = (basis * np.maximum(values, _LEAST_MOMENT)) @ basis.T
    return raised


def _unit_blocks(
    data: Interactions, seen: FirstLook, most_people: int | None = None
) -> Iterator[tuple[Block, Rows]]:
    """Yield people in blocks, with their ratings in units of the scale as solvers read them."""
    for block in blocks(data, most_people=most_people):
        indptr = data.indptr[block.start : block.stop + 1] - data.indptr[block.start]
        yield block, Rows(indptr, block.items, seen.unit(block.values).astype(np.float32))


def _left_over(people: Rows, taste: Taste) -> Floats:
    """Return what each person's own ridge over the directions leaves of their ratings."""
    solved = solve_rows(people, taste.features, ridge=taste.ridge, offsets=taste.offsets)
    left: Floats = residuals(people, solved, taste.features, np.zeros(people.n_rows), taste.offsets)
    return left
