"""Protocol of the DPIMF experiments: leave one out, rank among 99 sampled items, cut at 10."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_matrix

from discreet.data.splits import Split, leave_one_out
from discreet.evaluation.list_scores import sample_negatives
from discreet.papers.dpimf.printed_losses import VARIANTS, Floats, Setting, Side
from discreet.reproduce import copies

#: HR@10 and NDCG@10, one pair for each epsilon.
Curve = list[list[float]]
#: Draws of each experiment, by its name.
Parts = Mapping[str, list[Any]]


EPSILONS = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)
#: Methods that take long are run at these.
FEW_EPSILONS = (0.1, 0.3, 0.5, 0.7, 1.0)
#: The printed axis of the figures, at which federations are run as well.
HIGH_EPSILONS = (1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0)
LOSS_EPSILONS = (0.1, 0.3, 1.0)
SAMPLED = ["hr@10:99", "ndcg@10:99"]
METRICS = ("hr", "ndcg")
SIDES: tuple[Side, ...] = ("items", "users")
TITLES = {"ml100k": "ML-100K", "yahoo": "YahooMusic", "amazon": "Amazon", "ml10m": "ML-10M"}
#: Readings of the budget's parts and alpha0, which are printed for the noise panels of Figure 5 alone.
BUDGETS: dict[str, tuple[float, tuple[float, float, float]]] = {
    "noise-panel": (0.8, (0.1, 0.8, 0.1)),
    "half": (0.8, (0.5, 0.4, 0.1)),
    "thirds": (0.8, (1 / 3, 1 / 3, 1 / 3)),
    "ours": (0.95, (1 / 3, 1 / 3, 1 / 3)),
}
#: Readings of Theorem 2 that lower the noise: weights c / |p_u|_1, and uniform weights. NOT PRIVATE.
INVERSE = ("inverse-least", "inverse-mean")
LOWERED = {"opt-IS lower 2": 2.0, "opt-IS lower 4": 4.0}
#: The four variants, `opt` with importance sampling, and the matrix factorization they are compared with.
METHODS = (*VARIANTS, "opt-IS", "dpmf")
#: Readings of importance sampling, by the names of claims and of methods. All but the first are NOT PRIVATE.
SAMPLING = {"kept": "opt-IS", "uniform-2": "opt-IS lower 2", "uniform-4": "opt-IS lower 4"} | {
    name: name for name in INVERSE
}
#: Curves of Figures 7 and 8 and their names here.
CURVES = {"DPIMF": "opt", "DPIMF-IS": "inverse-least", "DPMF": "dpmf", "DPLCF": "DPLCF", "LDPICF": "LDPICF"}
#: Density (Table II) and lambda (Section VI-A) as printed.
PRINTED_DENSITIES = {"ml10m": (0.043, 0.07), "yahoo": (0.034, 1.0), "amazon": (0.007, 1.0)}


class Place(NamedTuple):
    """A dataset, its name in claims, the setting found for it and the printed one."""

    data: str
    label: str
    setting: Setting
    printed: Setting

    def bench(self, seed: int) -> Bench:
        """Return the protocol on this dataset."""
        return bench_on(self.data, seed)


def _found_setting(regularization: float, epochs: int) -> Setting:
    alpha0, budget = BUDGETS["ours"]
    return Setting(factors=8, regularization=regularization, epochs=epochs, alpha0=alpha0, budget=budget)


#: The paper prints lambda 0.07, 1.0 and 1.0 and 20, 16 and 8 factors; it prints no number of epochs.
FILMS = Place(
    "movielens-100k", "ml100k", _found_setting(0.015, 10), Setting(factors=20, regularization=0.07, epochs=10)
)
SHOP = Place(
    "amazon-instant-video",
    "amazon",
    _found_setting(0.01, 3),
    Setting(factors=8, regularization=1.0, epochs=10),
)
COPIES = (
    Place("ml-10m", "ml10m", FILMS.printed, FILMS.printed),
    Place(
        "yahoo",
        "yahoo",
        replace(FILMS.printed, factors=16, regularization=1.0),
        replace(FILMS.printed, factors=16, regularization=1.0),
    ),
)


@dataclass(frozen=True, kw_only=True)
class Bench:
    """Interactions to train on, and for each user the held-out item and 99 others."""

    split: Split
    clicks: csr_matrix
    users: npt.NDArray[np.int64]
    held_out: npt.NDArray[np.int64]
    others: npt.NDArray[np.int64]

    def score(self, users: Floats, items: Floats) -> list[float]:
        """Return HR@10 and NDCG@10 of scores `user . item`; ties count half."""
        own = np.einsum("ij,ij->i", users[self.users], items[self.held_out])
        rest = np.einsum("ij,ikj->ik", users[self.users], items[self.others])
        rank = np.sum(rest > own[:, None], axis=1) + 0.5 * np.sum(rest == own[:, None], axis=1)
        hit = rank < 10
        return [float(hit.mean()), float(np.where(hit, 1 / np.log2(rank + 2), 0.0).mean())]

    def popularity(self) -> list[float]:
        """Return the scores of the list of most chosen items, without any noise."""
        counts = np.asarray(self.clicks.sum(axis=0)).ravel()
        return self.score(np.ones((self.clicks.shape[0], 1)), counts[:, None])


def bench_of(split: Split, seed: int) -> Bench:
    """Return the protocol on a split in which every rating is an interaction."""
    clicks = csr_matrix(split.train.to_scipy(), dtype=np.float64)
    clicks.data[:] = 1.0
    users = split.test.rows().astype(np.int64)
    others = sample_negatives(split.train, split.test, users, 99, seed=seed).astype(np.int64)
    held_out = split.test.items.astype(np.int64)
    return Bench(split=split, clicks=clicks, users=users, held_out=held_out, others=others)


#: An experiment on one dataset: a function of the protocol on it and a seed, with plain numbers as answer.
Work = Callable[[Bench, int], Any]


@lru_cache(maxsize=2)
def bench_on(name: str, seed: int) -> Bench:
    return bench_of(leave_one_out(copies.load(name)), seed)
