"""Figures 2 to 4 and Table 1 of the paper on bounded Laplace noise and mixtures of Gaussians.

    discreet reproduce mixture [--quick] [--json]

Every number is measured again on up to ten folds of a data set; each method, epsilon and fold is one step.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from discreet.collect.campaign import Campaign
from discreet.collect.device import Device
from discreet.data.interactions import Interactions
from discreet.papers.mixture.private_gradients import PrivateGradients
from discreet.privacy.mechanisms.local import rating_mechanism
from discreet.reproduce import Run, copies
from discreet.reproduce.mixture.comparisons import compare
from discreet.reproduce.mixture.figures import plot_errors, plot_figure3, plot_noise
from discreet.reproduce.mixture.noise import draw_noise, noise_claims
from discreet.reproduce.mixture.sweep import FULL, QUICK, TOY, sweep

Found = dict[str, Sequence[float]]


def measure(run: Run) -> Found:
    """Return the runs of every claim."""
    found: Found = {}
    data = copies.load("movielens-100k")
    drawn = draw_noise(data)
    found |= noise_claims(drawn)
    found |= communication(data, run)
    errors = {
        name: sweep(name, parts, run)
        for name, parts in run.pick(full=FULL, quick=QUICK, toy=TOY).items()
        if copies.find(name.removesuffix("-thinned")) is not None
    }
    for name in errors:
        found |= run.part(compare, name, errors)
    if "jester" in errors:
        jokes = copies.load("jester")
        found["jester-sparser"] = [_density(jokes) / _density(data)]
    if run.folder and run.size == "full" and run.complete:
        plot_noise(drawn, run.folder)
        plot_figure3(errors["movielens-100k"], run.folder)
        for name, by_method in errors.items():
            plot_errors(name, by_method, run.folder)
    return found


def _density(data: Interactions) -> float:
    return data.n_ratings / (data.n_users * data.n_items)


def communication(data: Interactions, run: Run) -> Found:
    """Count bytes on the wire for every person of MovieLens, and what PG-MF would send."""
    lengths = np.diff(data.indptr)
    asked = Campaign(
        name="films",
        mechanism=rating_mechanism("bounded-laplace", epsilon=1.0, low=1, high=5, points=241),
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
