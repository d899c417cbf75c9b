"""Figures 2 to 4 and Table 1 of the paper on bounded Laplace noise and mixtures of Gaussians.

    discreet reproduce local-mixture [--quick] [--json]

Every number is measured again, ten folds a data set. Plots and numbers go to results/.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from discreet.collect.ratings.campaign import Campaign
from discreet.collect.ratings.device import Device
from discreet.data.datasets import catalog
from discreet.models.local.private_gradients import PrivateGradients
from discreet.privacy.mechanisms.additive import Laplace
from discreet.privacy.mechanisms.bounded import BoundedLaplace
from discreet.randomness import PrivacyRandom
from discreet.reproduce import Run

from .figures import plot_errors, plot_noise
from .methods import EPSILONS
from .sweep import sweep

NOISE_SAMPLES = 100_000
RIVALS = ("local-mixture", "local-sgd as described", "local-sgd tuned", "debiased item mean")
PRINTED_GAPS = {("movielens-100k", 0.1), ("movielens-100k", 1.0), ("jester", 0.1), ("jester", 1.0)}


def measure(run: Run) -> dict[str, Sequence[float]]:
    """Return the runs of every claim; `quick` takes two folds of MovieLens at two epsilons."""
    quick, say = run.size != "full", run.say
    found: dict[str, Sequence[float]] = {}
    data = catalog.load("movielens-100k")
    found |= noise(data, say, None if quick else run.folder)
    found |= communication(data, run)
    names = ("movielens-100k",) if quick else ("movielens-100k", "jester")
    epsilons = run.pick(full=EPSILONS, quick=(0.1, 1.0), toy=(1.0,))
    for name in names:
        errors = sweep(name, say, folds=run.pick(full=10, quick=2, toy=1), epsilons=epsilons, run=run)
        found |= compare(name, errors, epsilons)
        if run.folder and not quick:
            plot_errors(name, errors, run.folder)
    return found


def noise(data, say, folder: Path | None) -> dict[str, Sequence[float]]:
    """Draw Figure 2: noise of the plain and the bounded mechanism on MovieLens ratings."""
    random = PrivacyRandom.simulate(2)
    ratings = data.values[:NOISE_SAMPLES].astype(np.float64)
    drawn, found = {}, {}
    for epsilon in (0.1, 1.0):
        plain = Laplace.calibrated(epsilon=epsilon, l1_sensitivity=4.0).release(ratings, random) - ratings
        bounded = BoundedLaplace(epsilon=epsilon, low=1, high=5).release(ratings, random) - ratings
        drawn[epsilon] = (plain, bounded)
        # Laplace noise of scale 4 / epsilon leaves [-4, 4] with probability e^-epsilon.
        found[f"laplace-outside-{epsilon:g}"] = [float(np.mean(np.abs(plain) > 4))]
        found[f"bounded-outside-{epsilon:g}"] = [float(np.mean(np.abs(bounded) > 4))]
        say(f"noise at epsilon {epsilon:g}: {plain.std():.3f} plain, {bounded.std():.3f} bounded")
    if folder:
        plot_noise(drawn, folder)
    return found


def communication(data, run: Run) -> dict[str, Sequence[float]]:
    """Count bytes on the wire for every person of MovieLens, and what PG-MF would send."""
    lengths = np.diff(data.indptr)
    asked = Campaign(
        name="films",
        mechanism=BoundedLaplace(epsilon=1.0, low=1, high=5, points=241),
        catalog=data.catalog,
        max_reports=int(lengths.max()),
        step=1.0,
        version=1,
    )
    sizes = []
    for row in range(data.n_users):
        span = slice(*data.indptr[row : row + 2])
        ids = data.catalog.id_at(data.items[span]).tolist()
        sizes.append(
            len(Device(asked, budget=1e6).message(dict(zip(ids, data.values[span].tolist(), strict=True))))
        )
    alone = len(Device(asked, budget=1e6).message({ids[0]: 3.0}))
    rivals = PrivateGradients(epsilon=1.0).sent_bytes(data.n_items)
    table = {
        "bytes_a_rating": float(np.sum(sizes) / data.n_ratings),
        "bytes_a_person_median": float(np.median(sizes)),
        "bytes_of_one_rating_sent_alone": alone,
        "private_gradients_bytes_down": rivals["down"],
        "private_gradients_bytes_up": rivals["up"],
    }
    run.write("communication.json", table)
    return {
        "bytes-a-rating": [table["bytes_a_rating"]],
        "pg-megabytes-a-round": [rivals["down"] / PrivateGradients(epsilon=1.0).rounds / 1e6],
    }


def compare(name: str, errors, epsilons) -> dict[str, Sequence[float]]:
    """Return gaps in percent, fold by fold, as the claims name them."""
    found: dict[str, Sequence[float]] = {}
    for epsilon in epsilons:
        key = f"{epsilon:g}"
        if (name, epsilon) in PRINTED_GAPS:
            for variant in ("as described", "tuned"):
                found[f"gap-{variant.replace(' ', '-')}-{name}-{key}"] = gaps(
                    errors["local-mixture"][key], errors[f"local-sgd {variant}"][key]
                )
        best = np.min([errors[rival][key] for rival in RIVALS], axis=0)
        found[f"channel-over-best-rival-{name}-{key}"] = gaps(errors["local-channel"][key], best)
        found[f"channel-over-mixture-{name}-{key}"] = gaps(
            errors["local-channel"][key], errors["local-mixture"][key]
        )
    return found


def gaps(better: Sequence[float], worse: Sequence[float]) -> list[float]:
    """Return by how many percent each error of `better` lies below that of `worse`."""
    return (100 * (1 - np.asarray(better) / np.asarray(worse))).tolist()
