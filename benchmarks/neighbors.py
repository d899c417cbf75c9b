"""How many neighbors two fits share: those that `similar_items` names, and the ten nearest of every item.

    python benchmarks/neighbors.py --json                        MovieLens 100K at epsilon 1 and 5
    python benchmarks/neighbors.py --data movielens-1m --reference

Two fits on the same data differ by their noise alone. Prints, for the most popular items and for items drawn
at random, how many neighbors an item has, how many of them both fits name, and that as a part. `plain` names
the ten nearest of every item. `together` is the part of the neighbors that are among the tenth of the catalog
that the same users choose most often in the data (cosine of the interactions), and `stated` is the mean of
`above_noise`. With `--reference`, a third fit without noise (which takes minutes) says which
part of the neighbors is among the nearest tenth of its catalog.
"""

from __future__ import annotations

import math

import harness
import numpy as np

from discreet import Interactions
from discreet.core.checks import DiscreetError
from discreet.core.randomness import PrivacyRandom
from discreet.models.fitted import FittedModel
from discreet.models.user_factorization.estimator import UserFactorization

K = 10
Near = list[list[int]]


def neighbors(model: FittedModel, items: list[int], *, plain: bool) -> Near:
    """Return the places of each item's neighbors: as named, or the nearest whatever the noise."""
    if not plain:
        found = model.similar_items(model.catalog.id_at(items).tolist(), K)
        return [model.catalog.index_of([other for other, _ in near]).tolist() for near in found.values()]
    tell = model.scorer.similarities(noise=0.0)
    nearest = (np.argsort(-tell(item, K).similarity, kind="stable") for item in items)
    return [
        [one for one in order[: K + 1].tolist() if one != item][:K]
        for item, order in zip(items, nearest, strict=True)
    ]


def together(near: Near, items: list[int], data: Interactions) -> float:
    """Return which part of the neighbors is among the tenth that the same users choose most often."""
    chosen = data.to_scipy().astype(np.float64).tocsc()
    chosen.data[:] = 1.0
    counts = np.sqrt(np.maximum(np.bincount(data.items, minlength=data.n_items), 1))
    found: list[bool] = []
    for item, own in zip(items, near, strict=True):
        cosine = np.asarray((chosen.T @ chosen[:, [item]]).todense()).ravel() / counts
        found += (cosine[own] > np.quantile(np.delete(cosine, item), 0.9)).tolist()
    return float(np.mean(found)) if found else math.nan


def stated(model: FittedModel, items: list[int]) -> float:
    """Return the mean chance that named neighbors are above the noise."""
    near = model.similar_items(model.catalog.id_at(items).tolist(), K)
    chances = [one.above_noise for listed in near.values() for one in listed if one.above_noise is not None]
    return float(np.mean(chances)) if chances else math.nan


def right(near: Near, items: list[int], reference: FittedModel) -> float:
    """Return which part of the neighbors is among the nearest tenth by the fit without noise."""
    tell = reference.scorer.similarities(noise=0.0)
    found = []
    for item, own in zip(items, near, strict=True):
        similarity = tell(item, K).similarity
        found += (similarity[own] > np.quantile(np.delete(similarity, item), 0.9)).tolist()
    return float(np.mean(found)) if found else math.nan


def compare(
    fits: list[FittedModel],
    items: list[int],
    data: Interactions,
    reference: FittedModel | None,
    *,
    plain: bool,
) -> dict[str, float]:
    """Return how many neighbors an item has, how many two fits share, and which part is right."""
    first, second = (neighbors(model, items, plain=plain) for model in fits)
    size = sum(len(near) for near in (*first, *second)) / (2 * len(items))
    shared = sum(len(set(a) & set(b)) for a, b in zip(first, second, strict=True)) / len(items)
    told = {"neighbors": size, "shared": shared, "part": shared / size if size else math.nan}
    told |= {"together": together(first, items, data)}
    told |= {} if plain else {"stated": stated(fits[0], items)}
    return told if reference is None else told | {"right": right(first, items, reference)}


def main() -> None:
    options = harness.options(
        __doc__,
        toy={"epsilons": "5", "items": 5},
        data=harness.option(default="movielens-100k", help="names, separated by commas"),
        epsilons="1,5",
        items=200,
        reference=harness.flag("fit without noise as well"),
    )
    results: dict = {}
    for name in options.data.split(","):
        data = harness.ratings(name, toy=options.toy)
        for feedback in ("explicit", "implicit"):

            def fit(epsilon: float, seed: int, data=data, feedback=feedback) -> FittedModel:
                estimator = UserFactorization(epsilon=epsilon, delta=1e-6, feedback=feedback)
                return estimator.fit(data, random=PrivacyRandom.simulate(seed))

            reference = fit(math.inf, 0) if options.reference else None
            for epsilon in options.epsilons.split(","):
                fits = [fit(float(epsilon), seed) for seed in (0, 1)]
                popular = np.argsort(-fits[0].scorer.part("popularity"), kind="stable")
                drawn = np.random.default_rng(0).permutation(data.n_items)
                for which, order in (("popular", popular), ("drawn", drawn)):
                    items = order[: options.items].tolist()
                    for rule in ("plain", "named"):
                        try:
                            told = compare(fits, items, data, reference, plain=rule == "plain")
                        except DiscreetError as error:
                            told = {"refused": str(error)}
                        results[f"{name} {feedback} {epsilon} {which} {rule}"] = told
    harness.tell(results, options)


if __name__ == "__main__":
    main()
