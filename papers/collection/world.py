"""Make ratings of which the whole truth is known: low rank, on the scale, some cells rated."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from discreet.data.facts import PublicFacts
from discreet.data.interactions import Interactions
from discreet.data.vocabulary import Vocabulary
from discreet.randomness import experiment_generator

RANK = 2


@dataclass(frozen=True)
class World:
    """Hold the truth, the ratings, and origin and unit of the paper's numbers."""

    truth: np.ndarray
    data: Interactions
    origin: float
    unit: float
    intrinsic: float

    def everywhere(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return all cells with their true ratings."""
        rows, items = np.indices(self.truth.shape)
        return rows.ravel(), items.ravel(), self.truth.ravel()


def make_world(kind: str, *, seed: int, people: int, items: int) -> World:
    """Return stars from 1 to 5, or numbers in [-1, 1]; 30 % of the cells are rated."""
    rng = experiment_generator(seed, "world", kind)
    taste = rng.uniform(-1, 1, (people, RANK)) @ rng.uniform(-1, 1, (RANK, items))
    quality = 0.5 * rng.uniform(-1, 1, items)
    place = np.clip(0.7 * taste + quality[None, :], -1, 1)
    stars = kind == "stars"
    truth = 3 + 2 * place if stars else place
    rows, columns = np.nonzero(rng.random((people, items)) < 0.3)
    ratings = truth[rows, columns] + rng.normal(scale=0.2 if stars else 0.1, size=rows.size)
    low, high = (1.0, 5.0) if stars else (-1.0, 1.0)
    ratings = np.clip(np.rint(ratings) if stars else ratings, low, high)
    data = Interactions.from_arrays(
        rows,
        columns,
        ratings,
        facts=PublicFacts(n_items=items, low=low, high=high, step=1.0 if stars else None),
        people=Vocabulary.of(range(people)),
        catalog=Vocabulary.of(range(items)),
        name="world",
    )
    intrinsic = float(np.sqrt(np.mean((truth[rows, columns] - ratings) ** 2)))
    return World(truth=truth, data=data, origin=0.0, unit=1.0, intrinsic=intrinsic)
