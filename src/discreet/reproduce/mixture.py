"""Experiments of "Local differentially private matrix factorization with MoG" (Neera, Chen, Aslam and Shu).

    discreet papers reproduce mixture [--quick] [--out FOLDER] [--data jester-2=PATH]

Figure 2: noise of the plain and the bounded mechanism. Figures 3 and 4: the mixture against private gradients
and against ISGD, on up to ten folds; each method, epsilon and fold is one step. Table 1: bytes on our own
wire. Claims and results are in `papers/mixture`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import islice, product
from typing import Any, NamedTuple

import numpy as np

from discreet.collect.campaign import Campaign
from discreet.collect.device import Device
from discreet.collect.estimate import collect_from
from discreet.core import Floats, PrivacyRandom, experiment_generator
from discreet.data import Interactions, Split, kfold, random_split
from discreet.evaluation.scoring import measure as score_model
from discreet.models import Estimator, LocalScorer
from discreet.papers.mixture.channel import LocalChannel
from discreet.papers.mixture.mixture import LocalMixture
from discreet.papers.mixture.private_gradients import PrivateGradients
from discreet.papers.mixture.sgd import LocalSgd
from discreet.privacy import simulated_laplace
from discreet.privacy.mechanisms.local import rating_mechanism
from discreet.reproduce import copies
from discreet.reproduce.figures import Panel, PlottedLine, draw, level, measured
from discreet.reproduce.running import Found, Reached, Run

Errors = dict[str, dict[str, list[float]]]
Method = Callable[[Split, float, int], float]

SEED, EPSILONS = 20, (0.1, 0.5, 1.0, 2.0, 3.0)
PAPER, OURS, GRADIENTS = "weighted PCA rank 1", "local-mixture", "private-gradients"
AS_DESCRIBED, RANK_20, TUNED = "local-sgd as described", "local-sgd rank 20", "local-sgd tuned"
ITEM_MEAN = "debiased item mean"
#: Ranks of `local-mixture` and of the paper's weighted PCA beyond 1.
RANKS = (2, 5)
#: The last epsilon of Figure 3, and its methods.
FIGURE3_END, FIGURE3 = 1.6, (OURS, PAPER, GRADIENTS)
#: The paper states that its Jester has 2 million ratings of 73,421 users: this share of all cells.
THINNED, PRINTED_DENSITY = "jester-thinned", 2e6 / (73_421 * 100)
#: What the text prints for Figure 4, in percent at epsilon 0.1 and 1; the figure's own values are lost.
PRINTED_GAPS = {"movielens-100k": (21, 16), "jester": (35, 28)}
SHOWN = {
    "Figure 3": (PAPER, OURS, GRADIENTS),
    "Figure 4": (
        PAPER,
        OURS,
        "local-channel",
        AS_DESCRIBED,
        RANK_20,
        TUNED,
        GRADIENTS,
        "shrunken debiased item mean",
    ),
}


#: Names in figures: those of the paper, where it has one.
LABELS = {
    PAPER: "BLP-MoG-MF, weighted PCA as printed",
    OURS: "BLP-MoG-MF, alternating least squares (ours)",
    "local-channel": "local-channel (ours)",
    AS_DESCRIBED: "ISGD as described",
    RANK_20: "ISGD, rank 20, 30 passes",
    TUNED: "ISGD, tuned on true ratings",
    GRADIENTS: "PG-MF",
}
TITLES = {
    "movielens-100k": "MovieLens 100K",
    "restaurant-consumer": "Restaurants",
    "jester": "Jester",
    THINNED: "Jester, thinned to the printed density",
}


def measure(run: Run) -> Found:
    """Return the values of every claim, by its ID."""
    data = copies.load("movielens-100k")
    drawn = _draw_noise(data, run)
    found = _noise_claims(drawn) | _communication(data, run)
    errors = {
        name: sweep(name, parts, run)
        for name, parts in run.pick(full=FULL, quick=QUICK, toy=TOY).items()
        if copies.available(name.removesuffix("-thinned"), run.say)
    }
    for name in errors:
        found |= run.part(_compare, name, errors)
        _plot_errors(run, name, errors[name])
    if "jester" in errors:
        jokes = copies.load("jester")
        found["jester-sparser"] = [_density(jokes) / _density(data)]
    return found


def _density(data: Interactions) -> float:
    return data.n_ratings / (data.n_users * data.n_items)


# Methods, each as a function from a split, an epsilon and a seed to an error.


def error(estimator: Estimator, split: Split, seed: int) -> float:
    """Fit and return the error on the held-out ratings, predicted from reports (PG-MF: on the device)."""
    model = estimator.fit(split.train, random=PrivacyRandom.simulate(seed), progress=lambda *_: None)
    return score_model(model, split.train, split.test, "rmse")["rmse"]


def _fitted(make: Callable[..., Estimator], **settings: Any) -> Method:
    return lambda split, epsilon, seed: error(make(epsilon=epsilon, **settings), split, seed)


def _on_device(split: Split, epsilon: float, seed: int) -> float:
    """Return the error of local-channel if each user folds in their own true ratings, as PG-MF does."""
    model = LocalChannel(epsilon=epsilon).fit(
        split.train, random=PrivacyRandom.simulate(seed), progress=lambda *_: None
    )
    assert isinstance(model.scorer, LocalScorer)
    device = replace(model, scorer=model.scorer.device)
    return score_model(device, split.train, split.test, "rmse")["rmse"]


def _item_mean(split: Split, epsilon: float, seed: int) -> float:
    """Return the error of every item's mean report, read through the channel and clipped to the scale."""
    means, _, _ = _debiased(split.train, epsilon, seed)
    return _rmse(means[split.test.items], split.test)


def _shrunken_item_mean(split: Split, epsilon: float, seed: int) -> float:
    """Return the error of the debiased item means, shrunk to the overall mean by their standard errors."""
    means, errors, overall = _debiased(split.train, epsilon, seed)
    noise = np.minimum(errors, 1e6) ** 2
    # How much true item means differ: a public guess, one tenth of the scale.
    spread = (0.1 * (split.train.facts.high - split.train.facts.low)) ** 2
    weighted = overall + spread / (spread + noise) * (means - overall)
    return _rmse(weighted[split.test.items], split.test)


def _debiased(train: Interactions, epsilon: float, seed: int) -> tuple[np.ndarray, np.ndarray, float]:
    mechanism = LocalChannel(epsilon=epsilon).mechanism(train.facts)
    means = collect_from(train, mechanism, PrivacyRandom.simulate(seed)).item_means()
    together = replace(
        means,
        counts=means.counts.sum(keepdims=True),
        mean_reports=np.array([np.average(means.mean_reports, weights=means.counts)]),
    )
    overall = float(together.means[0])
    return np.where(means.counts > 0, means.means, overall), means.standard_errors, overall


def _rmse(predicted: np.ndarray, test: Interactions) -> float:
    return float(np.sqrt(np.mean((predicted - test.values) ** 2)))


#: Every method that needs no tuning, by its name in results and claims.
METHODS: dict[str, Method] = {
    "local-channel": _fitted(LocalChannel),
    "local-channel on the device": _on_device,
    OURS: _fitted(LocalMixture),
    AS_DESCRIBED: _fitted(LocalSgd),
    GRADIENTS: _fitted(PrivateGradients),
    ITEM_MEAN: _item_mean,
    "shrunken debiased item mean": _shrunken_item_mean,
}
COMPARED = (*METHODS, TUNED)
METHODS |= {
    RANK_20: _fitted(LocalSgd, factors=20, rate=0.05, regularization=0.02, epochs=30),
    **{f"local-mixture rank {rank}": _fitted(LocalMixture, factors=rank) for rank in RANKS},
    **{
        f"weighted PCA rank {rank}": _fitted(LocalMixture, solver="weighted-pca", factors=rank)
        for rank in (1, *RANKS)
    },
}
# The grid on which the gradient descent is tuned, and enough users to rank settings.
TUNING: list[dict[str, Any]] = [
    {"factors": factors, "rate": rate, "regularization": ridge}
    for factors in (1, 3, 10)
    for rate in (0.002, 0.01)
    for ridge in (0.001, 0.005, 0.02, 0.06)
]
TUNING_USERS = 4000


def tune(data: Interactions, epsilon: float, seed: int, grid: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Return the settings of local-sgd that predict held-out validation ratings best.

    The validation ratings are true ones, which no collector has: an advantage for this method.
    """
    if data.n_users > TUNING_USERS:
        chosen = experiment_generator(seed, "tuning people").choice(data.n_users, TUNING_USERS, replace=False)
        data = data.select_users(np.sort(chosen))
    split = random_split(data, 0.1, seed)
    return min(grid, key=lambda settings: error(LocalSgd(epsilon=epsilon, **settings), split, seed))


# Sweeps over methods, epsilons and folds.


class SweepPart(NamedTuple):
    """Methods, epsilons, and the number of folds of ten that they are run on."""

    methods: Sequence[str]
    epsilons: Sequence[float]
    folds: int


_ALS_RANKS = tuple(f"local-mixture rank {rank}" for rank in RANKS)
_PCA_RANKS = tuple(f"weighted PCA rank {rank}" for rank in RANKS)
#: A full run of each dataset: all ten folds, as in the paper.
FULL: dict[str, tuple[SweepPart, ...]] = {
    "movielens-100k": (
        SweepPart(COMPARED, EPSILONS, 10),
        SweepPart(("local-channel", TUNED), (math.inf,), 10),
        SweepPart(FIGURE3, (FIGURE3_END,), 10),
        SweepPart(_ALS_RANKS, EPSILONS, 10),
        SweepPart((PAPER,), EPSILONS, 10),
        SweepPart(_PCA_RANKS, (0.1, 1.0, 3.0), 10),
        SweepPart((RANK_20,), (0.1, 1.0, 3.0), 10),
    ),
    "restaurant-consumer": (SweepPart((*COMPARED, PAPER), EPSILONS, 10),),
    "jester": (
        SweepPart(COMPARED, EPSILONS, 10),
        SweepPart(("local-channel", TUNED), (math.inf,), 10),
        SweepPart((PAPER, *_ALS_RANKS, *_PCA_RANKS), (0.1, 1.0, 3.0), 10),
        SweepPart((RANK_20,), (0.1, 1.0), 3),
    ),
    THINNED: (SweepPart((*FIGURE3, AS_DESCRIBED), (0.1, 1.0), 10),),
}
QUICK = {"movielens-100k": (SweepPart((*COMPARED, PAPER, RANK_20), (0.1, 1.0), 2),)}
TOY = {
    "movielens-100k": (SweepPart((*COMPARED, *_ALS_RANKS, PAPER, RANK_20), (1.0,), 1),),
    "restaurant-consumer": (SweepPart((OURS,), (1.0,), 1),),
    "jester": (SweepPart((OURS,), (1.0,), 1),),
}


def sweep(name: str, parts: Sequence[SweepPart], run: Run) -> Errors:
    """Return {method: {epsilon: [error of each fold]}}; the first fold's training part is tuned on."""
    splits = list(islice(kfold(_load(name), 10, SEED), max(part.folds for part in parts)))
    found: Errors = Reached()
    for part in parts:
        for epsilon, method in product(part.epsilons, part.methods):
            step = f"{name} {method} {epsilon:g} fold"
            given = (_error, name, method, epsilon, splits, run)
            reached = run.part(run.by, f"{epsilon:g}", step, *given, full=part.folds, quick=part.folds)
            if reached:
                found.setdefault(method, Reached()).update(reached)
    return found


def _error(name: str, method: str, epsilon: float, splits: Sequence[Split], run: Run, *, seed: int) -> float:
    """Return the error on the fold of this number."""
    split, number = splits[seed], 1000 * SEED + seed
    if method != TUNED:
        return round(METHODS[method](split, epsilon, number), 5)
    grid = run.pick(full=TUNING, quick=TUNING, toy=TUNING[:2])
    best = run.step(f"{name} tuning {epsilon:g}", tune, splits[0].train, epsilon, SEED, grid)
    return round(error(LocalSgd(epsilon=epsilon, **best), split, number), 5)


def _load(name: str) -> Interactions:
    """Return a dataset; the thinned Jester is a random part of ours, as sparse as the paper states."""
    if name != THINNED:
        return copies.load(name)
    whole = copies.load("jester")
    share = PRINTED_DENSITY * whole.n_users * whole.n_items / whole.n_ratings
    return whole.where(experiment_generator(SEED, THINNED).random(whole.n_ratings) < share)


# Claims.


def _compare(name: str, errors: Mapping[str, Errors]) -> Found:
    """Return the values of every claim about one dataset, fold by fold."""
    own = errors[name]
    found: Found = {}
    for epsilon in own[OURS]:
        found |= _compare_at(name, epsilon, own)
    if {"0.1", "3"} <= own[OURS].keys():
        found[f"falls-{name}"] = _difference(own[OURS]["0.1"], own[OURS]["3"])
    if name == THINNED and "jester" in errors:
        for epsilon in ("0.1", "1"):
            sparse, dense = (
                gaps(at[OURS][epsilon], at[AS_DESCRIBED][epsilon]) for at in (own, errors["jester"])
            )
            found[f"sparse-gains-{epsilon}"] = _difference(sparse, dense)
    return found


def _compare_at(name: str, epsilon: str, own: Errors) -> Found:
    """Return the claims at one epsilon; methods that were not run at it make none."""
    at = Reached({method: of[epsilon] for method, of in own.items() if epsilon in of})
    key = f"{name}-{epsilon}"
    found: Found = {}
    if PAPER in at:
        found[f"figure3-{key}"] = gaps(at[PAPER], at[GRADIENTS])
        found[f"swap-{key}"] = _difference(at[OURS], at[PAPER])
        for kind, base in (("local-mixture", OURS), ("weighted PCA", PAPER)):
            label = "als" if base == OURS else "pca"
            for rank in RANKS:
                if f"{kind} rank {rank}" in at:
                    found[f"rank{rank}-{label}-{key}"] = _difference(at[f"{kind} rank {rank}"], at[base])
    if epsilon == f"{FIGURE3_END:g}":
        return found
    for method in (AS_DESCRIBED, RANK_20, TUNED):
        label = method.removeprefix("local-sgd ").replace(" ", "-")
        if method in at and PAPER in at:
            found[f"gap-{label}-{key}"] = found[f"beats-{label}-{key}"] = gaps(at[PAPER], at[method])
    rivals = (OURS, AS_DESCRIBED, TUNED, ITEM_MEAN)
    if set(rivals) <= at.keys():
        # The rival that is best on average: the best on each fold would be ahead by luck.
        best = min(rivals, key=lambda rival: float(np.mean(at[rival])))
        found[f"channel-over-best-rival-{key}"] = gaps(at["local-channel"], at[best])
        found[f"channel-over-mixture-{key}"] = gaps(at["local-channel"], at[OURS])
    return found


def gaps(better: Sequence[float], worse: Sequence[float]) -> list[float]:
    """Return by how many percent each error of `better` is below that of `worse` on the same fold."""
    return [100 * (1 - one / other) for one, other in zip(better, worse, strict=False)]


def _difference(left: Sequence[float], right: Sequence[float]) -> list[float]:
    return [one - other for one, other in zip(left, right, strict=False)]


# Table 1: bytes.


def _communication(data: Interactions, run: Run) -> Found:
    """Return the bytes on the wire per rating of MovieLens, and the bytes of PG-MF."""
    lengths = np.diff(data.indptr)
    asked = Campaign(
        name="films",
        mechanism=rating_mechanism("bounded-laplace", epsilon=1.0, low=1, high=5, points=241),
        catalog=data.catalog,
        max_reports=int(lengths.max()),
        step=1.0,
        version=1,
    )
    users = run.pick(full=data.n_users, quick=100, toy=5)
    sizes = []
    for row in range(min(users, data.n_users)):
        span = slice(*data.indptr[row : row + 2])
        ids = data.catalog.id_at(data.items[span]).tolist()
        sizes.append(
            len(Device(asked, budget=1e6).message(dict(zip(ids, data.values[span].tolist(), strict=True))))
        )
    gradients = PrivateGradients(epsilon=1.0)
    return {
        "bytes-a-rating": [float(np.sum(sizes) / lengths[: len(sizes)].sum())],
        "pg-megabytes-a-round": [gradients.sent_bytes(data.n_items)["down"] / gradients.rounds / 1e6],
    }


# Figure 2: noise, and how well a mixture of Gaussians describes it.

_SAMPLES = 100_000
_GAUSSIANS, _EM_STEPS = 3, 200
# Parts of the samples that are fitted apart, so that gains have a standard error.
_NOISE_PARTS = 10


def _draw_noise(data: Interactions, run: Run) -> dict[float, tuple[Floats, Floats]]:
    """Return plain and bounded noise on MovieLens ratings at epsilon 0.1 and 1."""
    random = PrivacyRandom.simulate(2)
    ratings = data.values[:_SAMPLES].astype(np.float64)
    drawn = {}
    for epsilon in (0.1, 1.0):
        plain = simulated_laplace(ratings, epsilon=epsilon, bound=4.0, random=random)
        mechanism = rating_mechanism("bounded-laplace", epsilon=epsilon, low=1, high=5, points=1025)
        drawn[epsilon] = plain - ratings, mechanism.release(ratings, random) - ratings
    edges = np.linspace(-12, 12, 49)
    middles = ((edges[:-1] + edges[1:]) / 2).tolist()
    draw(
        run,
        "figure-2",
        [
            Panel(
                f"Noise on MovieLens ratings, epsilon {epsilon:g}",
                "noise, in units of the rating scale",
                "density",
                [
                    PlottedLine(
                        name,
                        middles,
                        (np.histogram(values, edges)[0] / (values.size * 0.5)).round(6).tolist(),
                    )
                    for name, values in zip(("Laplace", "bounded Laplace"), pair, strict=True)
                ],
            )
            for epsilon, pair in drawn.items()
        ],
    )
    return drawn


def _noise_claims(drawn: Mapping[float, tuple[Floats, Floats]]) -> Found:
    """Return shares outside the scale, and the gains of a mixture and of a mean over one Gaussian."""
    found: Found = {}
    for epsilon, (plain, bounded) in drawn.items():
        key = f"{epsilon:g}"
        # Laplace noise of scale 4 / epsilon leaves [-4, 4] with probability e^-epsilon.
        found[f"laplace-outside-{key}"] = [float(np.mean(np.abs(plain) > 4))]
        found[f"bounded-outside-{key}"] = [float(np.mean(np.abs(bounded) > 4))]
        halves = [(part[::2], part[1::2]) for part in np.array_split(bounded, _NOISE_PARTS)]
        one = [_gaussian(first, second, 0.0) for first, second in halves]
        shifted = [_gaussian(first, second, float(first.mean())) for first, second in halves]
        found[f"mixture-gain-{key}"] = _difference([_zero_mean_mixture(*pair) for pair in halves], one)
        found[f"mean-gain-{key}"] = _difference(shifted, one)
    return found


def _gaussian(first: Floats, second: Floats, mean: float) -> float:
    """Return the log-likelihood per rating of the second half under a Gaussian fitted to the first."""
    variance = float(np.mean((first - mean) ** 2))
    return float(-0.5 * np.log(2 * np.pi * variance) - np.mean((second - mean) ** 2) / (2 * variance))


def _zero_mean_mixture(first: Floats, second: Floats) -> float:
    """Return the same for a mixture of Gaussians of mean zero, fitted by expectation-maximization."""
    shares = np.full(_GAUSSIANS, 1 / _GAUSSIANS)
    variances = np.mean(first**2) * 4.0 ** np.arange(1 - _GAUSSIANS, 1)
    squares = first[:, None] ** 2
    for _ in range(_EM_STEPS):
        density = _densities(squares, shares, variances)
        likely = density / density.sum(axis=1, keepdims=True)
        counts = likely.sum(axis=0)
        shares, variances = counts / counts.sum(), (likely * squares).sum(axis=0) / counts
    return float(np.mean(np.log(_densities(second[:, None] ** 2, shares, variances).sum(axis=1))))


def _densities(squares: Floats, shares: Floats, variances: Floats) -> Floats:
    heights: Floats = shares / np.sqrt(2 * np.pi * variances) * np.exp(-squares / (2 * variances))
    return heights


# Figures 3 and 4.


def _plot_errors(run: Run, name: str, errors: Errors) -> None:
    """Draw Figure 4 of a dataset, with ISGD from the printed gaps; for MovieLens also Figure 3."""
    draw(run, f"figure-4-{name}", [_error_panel(name, errors, SHOWN["Figure 4"], PRINTED_GAPS.get(name))])
    if name == "movielens-100k":
        near = {
            method: {key: of[key] for key in of if float(key) <= FIGURE3_END} for method, of in errors.items()
        }
        near[TUNED] = errors.get(TUNED, {})
        draw(run, "figure-3", [_error_panel(name, near, SHOWN["Figure 3"], None)])


def _error_panel(name: str, errors: Errors, shown: Sequence[str], printed: tuple[int, int] | None) -> Panel:
    lines = []
    for method in shown:
        curve = sorted((float(key), values) for key, values in errors.get(method, {}).items() if key != "inf")
        folds = min((len(values) for _, values in curve), default=0)
        if folds:
            lines.append(
                measured(
                    LABELS.get(method, method),
                    [key for key, _ in curve],
                    np.array([values[:folds] for _, values in curve]).T,
                )
            )
    base = errors.get(PAPER, {})
    if printed and {"0.1", "1"} <= base.keys():
        heights = [
            float(np.mean(base[key])) / (1 - percent / 100)
            for key, percent in zip(("0.1", "1"), printed, strict=True)
        ]
        lines.append(PlottedLine("ISGD from the text's percentages", [0.1, 1.0], heights, kind="printed"))
    if "inf" in errors.get(TUNED, {}):
        places = [x for line in lines for x in line.x]
        lines.append(level("non-private MF (SGD)", places, float(np.mean(errors[TUNED]["inf"]))))
    return Panel(TITLES.get(name, name), "epsilon per rating (PG-MF: per user)", "RMSE", lines)
