"""Make ratings of which the whole truth is known: rank 2 exactly, on the scale without clipping."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.random import Generator

from discreet.core.randomness import experiment_generator
from discreet.data.facts import PublicFacts
from discreet.data.interactions import Interactions
from discreet.data.vocabulary import Vocabulary

RANK = 2
RATED = 0.3
# What an item's quality and a person's taste may add: together the ends of the scale and no further.
_QUALITY, _TASTE = 0.4, 0.6


@dataclass(frozen=True)
class World:
    """Hold the truth, the ratings, and how far ratings lie from it (root mean square)."""

    truth: np.ndarray
    data: Interactions
    intrinsic: float

    def everywhere(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return all cells with their true ratings."""
        rows, items = np.indices(self.truth.shape)
        return rows.ravel(), items.ravel(), self.truth.ravel()


def make_world(kind: str, *, seed: int, people: int, items: int) -> World:
    """Return stars from 1 to 5, or numbers in [-1, 1]; 30 % of the cells are rated.

    A person's vector is (1, t), an item's (middle + quality, s), with |t|, |s| in [1/2, 1]: their products
    are a matrix of rank 2 inside the scale. Only ratings, the truth with noise, are rounded and clipped.
    """
    rng = experiment_generator(seed, "world", kind)
    quality = _QUALITY * rng.uniform(-1, 1, items)
    place = quality[None, :] + _TASTE * np.outer(_leaning(rng, people), _leaning(rng, items))
    truth = 3 + 2 * place if kind == "stars" else place
    rated = rng.random((people, items)) < RATED
    return _world(kind, truth, rated, truth + rng.normal(scale=_noise(kind), size=truth.shape))


def worst_world(kind: str, *, seed: int, people: int, items: int) -> World:
    """Return the world that reports stray furthest from: all truth at one end of the scale."""
    rng = experiment_generator(seed, "worst world", kind)
    truth = np.full((people, items), 1.0)
    return _world(kind, truth, rng.random((people, items)) < RATED, truth)


def _leaning(rng: Generator, size: int) -> np.ndarray:
    return rng.choice([-1.0, 1.0], size) * rng.uniform(0.5, 1, size)


def _noise(kind: str) -> float:
    return 0.2 if kind == "stars" else 0.1


def _world(kind: str, truth: np.ndarray, rated: np.ndarray, noisy: np.ndarray) -> World:
    stars = kind == "stars"
    low, high = (1.0, 5.0) if stars else (-1.0, 1.0)
    rows, columns = np.nonzero(rated)
    told = noisy[rows, columns]
    ratings = np.clip(np.rint(told) if stars else told, low, high)
    people, items = truth.shape
    data = Interactions.from_arrays(
        rows,
        columns,
        ratings,
        facts=PublicFacts(n_items=items, low=low, high=high, step=1.0 if stars else None),
        people=Vocabulary.of(range(people)),
        catalog=Vocabulary.of(range(items)),
        name="world",
    )
    return World(truth, data, float(np.sqrt(np.mean((truth[rows, columns] - ratings) ** 2))))
