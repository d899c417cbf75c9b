"""Generate ratings whose best possible error is known: low-rank taste and normal noise on a wide scale."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from discreet.data.interactions import Interactions
from discreet.data.splits import random_split
from discreet.solvers.als import solve_rows
from discreet.statistics.statistic import rows_of

ITEMS, RANK, PER_PERSON = 400, 8, 40
NOISE, OWN, QUALITY, TASTE = 0.8, 0.4, 0.4, 0.5
LOW, HIGH = 0.5, 5.5


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """Hold ratings, and the truth about items they were drawn from."""

    data: Interactions
    quality: np.ndarray
    vectors: np.ndarray

    def best_error(self, seed: int) -> float:
        """Return the error of who knows the truth about items and about how people differ, on a split."""
        split = random_split(self.data, 0.1, seed)
        design = np.column_stack([np.ones(ITEMS), self.vectors])
        ridge = NOISE**2 * np.r_[OWN**-2.0, np.ones(RANK)]
        people = solve_rows(rows_of(split.train), design, ridge=ridge, offsets=3 + self.quality)
        rows, items = split.test.rows(), split.test.items
        guesses = 3 + self.quality[items] + np.einsum("ij,ij->i", people[rows], design[items])
        return float(np.sqrt(np.mean((np.clip(guesses, LOW, HIGH) - split.test.values) ** 2)))


def known_world(n_users: int, seed: int = 0) -> World:
    """Return ratings of `n_users` people, about forty of 400 items each."""
    rng = np.random.default_rng(seed)
    quality = QUALITY * rng.standard_normal(ITEMS)
    vectors = rng.standard_normal((ITEMS, RANK)) * TASTE * 0.8 ** np.arange(RANK)
    fame = np.sort(rng.pareto(2.0, ITEMS) + 0.3)[::-1]
    chance = np.minimum(PER_PERSON * fame / fame.sum(), 0.6)
    users, items, values = [], [], []
    for start in range(0, n_users, 20_000):
        size = min(20_000, n_users - start)
        rows, columns = np.nonzero(rng.random((size, ITEMS), dtype=np.float32) < chance)
        own, taste = OWN * rng.standard_normal(size), rng.standard_normal((size, RANK))
        value = 3 + quality[columns] + own[rows] + np.einsum("ij,ij->i", taste[rows], vectors[columns])
        value += NOISE * rng.standard_normal(rows.size)
        users.append(rows + start)
        items.append(columns)
        values.append(np.clip(value, LOW, HIGH).astype(np.float32))
    data = Interactions.from_arrays(
        *(np.concatenate(part) for part in (users, items, values)), low=LOW, high=HIGH, n_items=ITEMS
    )
    return World(data=data, quality=quality, vectors=vectors)
