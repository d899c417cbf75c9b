"""Experiments on one dataset, each small enough to be one step of a run; every answer is plain numbers.

The protocol: leave one out, rank among 99 sampled items, cut at 10. Federations run Algorithm 1 as printed:
ten parties, local rounds with noise, averages. NOT PRIVATE.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_matrix

from discreet.core import PrivacyRandom, experiment_generator
from discreet.data import Split, leave_one_out
from discreet.evaluation.list_scores import sample_negatives
from discreet.evaluation.scoring import measure as score_model
from discreet.models import ImplicitAls, Popularity
from discreet.papers.dpimf import printed_losses as losses
from discreet.papers.dpimf.estimators import Dpimf, PrintedFactorization, sides_of
from discreet.papers.dpimf.implicit_objective import ImplicitObjective
from discreet.papers.dpimf.neighbors import ItemNeighbors
from discreet.papers.dpimf.printed_losses import VARIANTS, Floats, NoiseSource, Setting, Side, Trained
from discreet.papers.dpimf.theory import printed_epsilon_before
from discreet.reproduce import copies
from discreet.reproduce.running import Found, Run

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
# Federations: how many parties, their rounds, and the alternations inside a party in each round.
PARTIES, ROUNDS, LOCAL = 10, 100, 20
SHARED = {"all shared": True, "own catalogs": False}
_MEAN_WEIGHT = 16.0


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


def curves_of(setting: Setting, side: Side, methods: Sequence[str]) -> Work:
    """Return a function that trains without noise and solves one side once with noise, at every epsilon."""

    def curves(bench: Bench, seed: int) -> dict[str, Curve]:
        kept = lru_cache(lambda alpha0: losses.train(bench.clicks, setting, alpha0, seed))

        def scores(method: str, epsilon: float) -> list[float]:
            model = kept(losses.alpha0_of(method, setting))
            return bench.score(*solve_side(model, method, epsilon, setting, seed, side))

        return {method: [scores(method, epsilon) for epsilon in EPSILONS] for method in methods}

    return curves


def solve_side(
    model: Trained, method: str, epsilon: float, setting: Setting, seed: int, side: Side
) -> tuple[Floats, Floats]:
    """Return user and item factors, one of them solved once more with the noise of a method."""
    noise = experiment_generator(seed, "printed noise", method, str(epsilon), side)
    solved = _noisy(method, *sides_of(model, side), epsilon, setting, noise)
    return (model.users, solved) if side == "items" else (solved, model.items)


def _noisy(
    method: str, rows: csr_matrix, others: Floats, epsilon: float, setting: Setting, noise: NoiseSource
) -> Floats:
    if method == "opt-IS":
        return losses.sampled_rows(rows, others, epsilon, setting, noise)
    if method == "dpmf":
        return losses.dpmf_rows(rows, others, epsilon, setting, noise)
    if method in (*LOWERED, *INVERSE):
        uniform = method in LOWERED
        weights = (
            np.full(len(others), LOWERED[method]) if uniform else losses.inverse_weights(others, _MEAN_WEIGHT)
        )
        at = weights.mean() if method == "inverse-mean" else weights.min()
        before = printed_epsilon_before(epsilon, float(at))
        return losses.lowered_rows(rows, others, weights, before, setting, noise)
    return losses.noisy_rows(
        rows, others, next(one for one in VARIANTS if one == method), epsilon, setting, noise
    )


def neighbors(epsilons: Sequence[float], bench: Bench, seed: int) -> dict[str, Curve]:
    """Run the two methods that flip bits on the device; their epsilon is per cell."""
    found: dict[str, Curve] = {}
    for name, likeness in (("DPLCF", "jaccard"), ("LDPICF", "cosine")):
        for epsilon in epsilons:
            near = ItemNeighbors(epsilon=epsilon, likeness=likeness).fit(
                bench.split.train, random=PrivacyRandom.simulate(seed)
            )
            scores = score_model(near, bench.split.train, bench.split.test, SAMPLED, seed=seed)
            found.setdefault(name, []).append([scores[metric] for metric in SAMPLED])
    return found


def ground_truth(factors: int, run: Run, bench: Bench, seed: int) -> dict[str, Any]:
    """Return the scores of implicit ALS on equation (1), and its settings.

    alpha0 and lambda are chosen on a validation part: each user's last training interaction.
    """
    grid = [(alpha0, ridge) for alpha0 in (0.01, 0.03, 0.1) for ridge in (0.01, 0.05, 0.2)]
    inner = bench_of(leave_one_out(bench.split.train), seed)

    def scores(at: Bench, alpha0: float, ridge: float) -> list[float]:
        setting = Setting(factors=factors, regularization=ridge, epochs=10)
        model = losses.train(at.clicks, setting, alpha0, seed, original=True)
        return at.score(model.users, model.items)

    best = max(run.pick(full=grid, quick=grid[4:5], toy=grid[:1]), key=lambda one: scores(inner, *one)[0])
    return {"scores": scores(bench, *best), "alpha0": best[0], "lambda": best[1]}


def without_noise(setting: Setting, epsilons: Sequence[float], bench: Bench, seed: int) -> dict[str, Curve]:
    """Return the scores of models without noise, and of lists of popular items with and without noise."""
    model = losses.train(bench.clicks, setting, 1.0, seed)
    private = []
    for epsilon in epsilons:
        chosen = Popularity(epsilon=epsilon, delta=1e-5).fit(
            bench.split.train, random=PrivacyRandom.simulate(seed)
        )
        votes = chosen.scorer.arrays()["popularity"]
        private.append(bench.score(np.ones((len(model.users), 1)), votes[:, None]))
    part = losses.train(bench.clicks, setting, setting.alpha0, seed)
    first = losses.train(bench.clicks, setting, setting.alpha0, seed, original=True)
    return {
        "no noise": [bench.score(model.users, model.items)],
        "no noise, complementary loss": [bench.score(part.users, part.items)],
        "no noise, original loss": [bench.score(first.users, first.items)],
        "popularity": [bench.popularity()],
        "private popularity": private,
    }


def best_without_privacy(bench: Bench, seed: int) -> dict[str, float]:
    """Return the best HR@10 of larger models without privacy."""
    scores = []
    for factors, alpha, ridge in ((8, 10.0, 1.0), (32, 10.0, 1.0), (64, 40.0, 20.0)):
        model = ImplicitAls(factors=factors, alpha=alpha, regularization=ridge, seed=seed).fit(
            bench.split.train
        )
        scores.append(score_model(model, bench.split.train, bench.split.test, SAMPLED[:1], seed=seed))
    return {"best": max(one[SAMPLED[0]] for one in scores)}


def noise_on_matrix(setting: Setting, bench: Bench, seed: int) -> dict[str, float]:
    """Return the Laplace scale of the noise on the matrix at epsilon 0.1, which Figure 5 (a) and (e) show."""
    users = losses.train(bench.clicks, setting, setting.alpha0, seed).users
    return {variant: losses.noise_scales(users, variant, 0.1, setting)[1] for variant in VARIANTS[:3]}


def private_model(run: Run) -> Found:
    """Measure this package's own model on ML-1M, next to the private list of popular items."""
    if run.size != "full" or not copies.available("movielens-1m", run.say):
        return {}
    values: Found = {}
    for epsilon in ("1", "2", "5", "10"):
        draws = run.seeds(f"ml1m private {epsilon}", _private_scores, float(epsilon), full=3)
        for name, metric in ((f"private-{epsilon}", "hr@10:99"), (f"private-{epsilon}-full", "hr@10")):
            values[name] = [draw["implicit-objective"][metric] - draw["popularity"][metric] for draw in draws]
    return values


def _private_scores(epsilon: float, *, seed: int) -> dict[str, dict[str, float]]:
    found, bench = {}, bench_on("movielens-1m", seed)
    for estimator in (ImplicitObjective, Popularity):
        model = estimator(epsilon=epsilon, delta=1e-5).fit(
            bench.split.train, random=PrivacyRandom.simulate(seed)
        )
        scores = score_model(model, bench.split.train, bench.split.test, [*SAMPLED, "hr@10"], seed=seed)
        found[estimator.name] = dict(scores)
    return found


# Federations.


class PrintedParty(NamedTuple):
    """A party's data, shared side first, and the global indices of its rows and columns."""

    shared_by_own: csr_matrix
    own_by_shared: csr_matrix
    shared: npt.NDArray[np.int64]
    own: npt.NDArray[np.int64]


def split_parties(
    clicks: csr_matrix, side: Side, parties: int, seed: int, *, everything: bool = False
) -> list[PrintedParty]:
    """Deal out users (items are shared) or items (users are shared) at random."""
    rows = clicks.T.tocsr() if side == "items" else clicks.tocsr()
    owner = experiment_generator(seed, "parties", side).permutation(rows.shape[1]) % parties
    found = []
    for party in range(parties):
        own = np.flatnonzero(owner == party)
        part = rows[:, own]
        shared = np.arange(rows.shape[0]) if everything else np.flatnonzero(np.diff(part.indptr))
        kept = part[shared].tocsr()
        found.append(PrintedParty(kept, kept.T.tocsr(), shared, own))
    return found


def overlap(parties: list[PrintedParty]) -> list[float]:
    """Return which share of the union a party has on average, and which share of it all have."""
    held = np.zeros(1 + max(int(party.shared.max()) for party in parties))
    for party in parties:
        held[party.shared] += 1
    union = np.count_nonzero(held)
    sizes = [party.shared.size for party in parties]
    return [float(np.mean(sizes) / union), float(np.count_nonzero(held == len(parties)) / union)]


def federate(
    clicks: csr_matrix,
    estimator: PrintedFactorization,
    seed: int,
    *,
    parties: int = PARTIES,
    everything: bool = True,
) -> tuple[Floats, Floats]:
    """Run all rounds and the fine-tuning; return user and item factors.

    With `everything`, all parties share all of one side, as in Section VI-A. Otherwise a party knows the
    items (or users) of its own data, and an average is over those who have it.
    """
    generator = experiment_generator(seed, "federation", "opt", str(estimator.epsilon), estimator.solve)
    members = split_parties(clicks, estimator.solve, parties, seed, everything=everything)
    n_shared, n_own = clicks.shape[::-1] if estimator.solve == "items" else clicks.shape
    shared = generator.uniform(size=(n_shared, estimator.factors))
    for _ in range(estimator.rounds):
        total, held = np.zeros_like(shared), np.zeros((n_shared, 1))
        for party in members:
            profiles = shared[party.shared]
            for _ in range(estimator.local):
                own_profiles = estimator.exact(party.own_by_shared, profiles)
                profiles = estimator.solved(party.shared_by_own, own_profiles, generator)
            total[party.shared] += profiles
            held[party.shared] += 1
        shared = np.where(held > 0, total / np.maximum(held, 1), shared)
    own = np.zeros((n_own, estimator.factors))
    for party in members:
        own[party.own] = estimator.exact(party.own_by_shared, shared[party.shared])
    return (own, shared) if estimator.solve == "items" else (shared, own)


def federations(place: Place, run: Run, gather: Callable[..., None]) -> None:
    """Run `opt` with ten parties: two rounds at every epsilon, all 100 rounds at epsilon 1 and 10."""
    local, rounds = run.pick(full=LOCAL, quick=LOCAL, toy=1), run.pick(full=2, quick=2, toy=1)
    high = run.pick(full=HIGH_EPSILONS, quick=(1.0, 10.0), toy=(1.0, 10.0))

    def scores(estimator: Dpimf, everything: bool, bench: Bench, seed: int) -> list[float]:
        return bench.score(*federate(bench.clicks, estimator, seed, everything=everything))

    def curve(estimator: Dpimf, everything: bool, bench: Bench, seed: int) -> dict[str, Curve]:
        each = (replace(estimator, epsilon=epsilon) for epsilon in high)
        return {"opt": [scores(one, everything, bench, seed) for one in each]}

    def shares(side: Side, bench: Bench, seed: int) -> list[float]:
        return overlap(split_parties(bench.clicks, side, PARTIES, seed))

    setting = place.setting
    for side in SIDES:
        gather(f"overlap {side}", partial(shares, side), full=1)
        estimator = Dpimf(
            solve=side,
            factors=setting.factors,
            regularization=setting.regularization,
            rounds=rounds,
            local=local,
        )
        for what, everything in SHARED.items():
            gather(f"two rounds {what} {side}", partial(curve, estimator, everything))
        for epsilon in (1.0, 10.0) if run.size == "full" else ():
            long = replace(estimator, rounds=ROUNDS, epsilon=epsilon)
            gather(f"federated {ROUNDS} rounds {side} {epsilon:g} opt", partial(scores, long, True), full=3)
