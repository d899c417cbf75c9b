"""Experiments of the poster "Differentially private matrix completion revisited" (Jain, Thakkar, Thakurta).

    discreet papers reproduce frank-wolfe [--quick] [--out FOLDER] [--data netflix=FOLDER]

ML-10M is not at hand, so ML-1M is run in its place; `--data ml-10m=FOLDER` runs the poster's own set. Every
panel has the user mean and the biases next to the poster's methods. Claims and results are in
`papers/frank_wolfe`.
"""

from __future__ import annotations

import math
import tracemalloc
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import csr_matrix, diags_array

from discreet import model_settings
from discreet.core import Floats, PrivacyRandom, experiment_generator
from discreet.data import Interactions, Split, random_split, rank_one, read
from discreet.evaluation.scoring import measure as score_model
from discreet.models import Biases, Estimator, RatingScorer
from discreet.papers.frank_wolfe.covariance_svd import CovarianceSvd
from discreet.papers.frank_wolfe.frank_wolfe import FrankWolfe
from discreet.papers.frank_wolfe.printed_frank_wolfe import PrintedFrankWolfe
from discreet.papers.frank_wolfe.projected_gradient import ProjectedGradient
from discreet.papers.frank_wolfe.theory import honest_noise
from discreet.privacy import gaussian_delta, gaussian_epsilon, gaussian_multiplier, simulated_gaussian
from discreet.reproduce import copies
from discreet.reproduce.figures import Panel, PlottedLine, draw, level, measured
from discreet.reproduce.papers import printed_numbers
from discreet.reproduce.running import Found, Run, slope
from discreet.statistics import USER_RIDGE

Curves = dict[str, list[list[float]]]

DELTA, EPSILONS = 1e-6, (0.1, 0.5, 1.0, 2.0, 5.0)
FULL_SIZE = 500_000
PER_USER, HELD_OUT, TOP = 80, 0.01, 400
EMP_EXPONENTS = {"n": -0.4, "epsilon": -0.4, "d": 0.5}
GEN_EXPONENTS = {"n": -0.5, "epsilon": -0.5, "m": -7 / 12}

PLAN, ONE, TWO = "frank-wolfe", "frank-wolfe, one round", "frank-wolfe, two rounds"
SVD, PGD, BIASES, MEAN = "covariance-svd", "projected-gradient", "biases", "user mean"
CLEAR = "frank-wolfe without privacy"
HONEST, OJA = "as printed, honest noise", "as printed with Oja, honest noise"
THEIRS, TEN = "as printed, their noise (NOT PRIVATE)", "as printed, T = 10, honest noise"
# Without item biases, as the printed Frank-Wolfe; and McSherry and Mironov for one rating at epsilon / 80.
SVD_PLAIN, PGD_PLAIN = "svd-poster", "pgd-poster"
MCSHERRY = "McSherry-Mironov, epsilon / 80 per rating"
# The nuclear norm that was printed for all of Jester, scaled by the square root of the users at hand.
SCALED_K, THEIR_K_ON_JESTER = "as printed, their k, honest noise", 11_667.0
_TITLES = {
    "ml-1m-top-400": "ML-1M, 400 most rated films",
    "ml-10m-top-400": "ML-10M, 400 most rated films",
    "netflix-top-400": "Netflix, 400 most rated films",
    "jester": "Jester",
    "rank-one-20000": "Rank one, 20,000 x 400",
    "rank-one-500000": "Rank one, 500,000 x 400",
}
#: Curves of a figure; the others are in the results.
SHOWN = (HONEST, THEIRS, ONE, SVD_PLAIN, PGD_PLAIN, MCSHERRY, BIASES, MEAN, CLEAR)


def measure(run: Run) -> Found:
    """Return the values of every claim, by its ID."""
    costs = " ".join(f"{their_epsilon(epsilon):.1f}" for epsilon in EPSILONS)
    run.say(f"The noise of their experiments at epsilon {EPSILONS} really costs {costs}.")
    found: Found = run.part(_rates, run) | run.part(_memory, run)
    if "ml-10m" in run.data or copies.available("movielens-1m", run.say):
        found |= run.part(_on_films, run)
    if copies.available("jester", run.say):
        found |= run.part(_on_jokes, run)
    found |= run.part(_on_small, run)
    if run.size == "full":
        found |= run.part(_full_size, run)
    return found | (run.part(_on_netflix, run) if "netflix" in run.data else _reported_netflix(run))


# Data: each set cut to 80 ratings per user, with 1% held out.


def movielens(seed: int) -> Split:
    """Return the 400 most rated films of ML-1M, or of a copy of ML-10M; both are public, as printed."""
    name = "ml-10m" if copies.copy_of("ml-10m") else "movielens-1m"
    return _split(_most_rated(copies.load(name)), seed)


def netflix(folder: Path, seed: int) -> Split:
    """Return the 400 most rated films of a copy of the Netflix Prize data (`combined_data_*.txt`)."""
    return _split(_most_rated(read(folder, layout="netflix", name="netflix")), seed)


def jester(seed: int) -> Split:
    """Return the parts of Jester at hand, rescaled to 0..5."""
    data = copies.load("jester")
    facts = replace(data.facts, low=0.0, high=5.0, step=None)
    return _split(data.with_values(np.clip((data.values + 10) / 4, 0, 5), facts), seed)


def synthetic(n_users: int, seed: int) -> Split:
    """Return the rank-one matrix of products of uniform numbers."""
    return random_split(rank_one(n_users=n_users, seed=seed).data, HELD_OUT, seed)


def _most_rated(data: Interactions) -> Interactions:
    counts = np.bincount(data.items, minlength=data.n_items)
    return data.select_items(np.sort(np.argsort(-counts, kind="stable")[:TOP]))


def _split(data: Interactions, seed: int) -> Split:
    return random_split(data.bounded(PER_USER), HELD_OUT, seed)


# Methods, each as a function from a split, an epsilon and a seed to an error.


def their_multiplier(epsilon: float) -> float:
    """Return the noise of the poster's experiments over the sensitivity 4 L^2, all rounds together.

    Stated are 2 sqrt(ln(1/delta)) / epsilon; the experiments drew an eighth of it.
    """
    return 2 * math.sqrt(math.log(1 / DELTA)) / (8 * epsilon)


def their_epsilon(epsilon: float) -> float:
    """Return the epsilon that the noise of the poster's experiments really costs."""
    return gaussian_epsilon(their_multiplier(epsilon), DELTA)


def _at_their_noise(epsilon: float) -> Estimator:
    """Return the printed method with a budget that buys exactly their noise.

    A large epsilon is the same noise as a smaller one with a different delta; estimators reject large ones.
    """
    told = min(their_epsilon(epsilon), 20.0)
    return PrintedFrankWolfe(epsilon=told, delta=gaussian_delta(their_multiplier(epsilon), told))


def _at(kind: Callable[..., Estimator], epsilon: float, **settings: object) -> Estimator:
    return kind(epsilon=epsilon, delta=DELTA, **settings)


def _named(name: str, epsilon: float) -> Estimator:
    return model_settings.estimator(name, {"epsilon": epsilon, "delta": DELTA})


_MAKERS: dict[str, Callable[[float], Estimator]] = {
    PLAN: partial(_at, FrankWolfe),
    ONE: partial(_at, FrankWolfe, rounds=1),
    TWO: partial(_at, FrankWolfe, rounds=2),
    SVD: partial(_at, CovarianceSvd),
    PGD: partial(_at, ProjectedGradient),
    SVD_PLAIN: partial(_named, SVD_PLAIN),
    PGD_PLAIN: partial(_named, PGD_PLAIN),
    BIASES: partial(_at, Biases),
    CLEAR: lambda epsilon: _at(FrankWolfe, math.inf),
    HONEST: partial(_at, PrintedFrankWolfe),
    OJA: partial(_at, PrintedFrankWolfe, solver="oja"),
    THEIRS: _at_their_noise,
    TEN: partial(_at, PrintedFrankWolfe, rounds=10),
    SCALED_K: partial(_at, PrintedFrankWolfe, radius=THEIR_K_ON_JESTER),
}
ONE_FRAME = (PLAN, ONE, SVD, PGD, BIASES, MEAN, CLEAR, HONEST, OJA, THEIRS, SVD_PLAIN, PGD_PLAIN, MCSHERRY)


def score(split: Split, name: str, epsilon: float, seed: int) -> float:
    """Return a method's RMSE on the held-out ratings."""
    if name == MEAN:
        return _error(own_means(split.train)[split.test.rows()], split)
    if name == MCSHERRY:
        return mcsherry_mironov(split, epsilon, seed)
    model = _MAKERS[name](epsilon).fit(split.train, random=PrivacyRandom.simulate(seed))
    return score_model(model, split.train, split.test, "rmse")["rmse"]


def _curve(load: Callable[[int], Split], name: str, epsilons: Sequence[float], *, seed: int) -> list[float]:
    """Return a method's errors; a method that does not depend on epsilon is fitted once."""
    if name in (MEAN, CLEAR):
        return [score(load(seed), name, math.inf, seed)] * len(epsilons)
    return [score(load(seed), name, epsilon, seed) for epsilon in epsilons]


# McSherry and Mironov as the poster ran them: one rating is protected at epsilon / 80.

_FACTORS = 20
# Residuals are clamped to this before they are released, as McSherry and Mironov do.
_CLAMP = 1.0
# One rating moves their weighted covariance by at most this, in units of the squared clamp.
_ONE_RATING = 1 + 2 * math.sqrt(2)
# Their shares for the overall mean, item means and the covariance, and their shrinkage of item means.
_SHARES, _SHRINKAGE = (0.02, 0.19, 0.79), 15.0
# The assumed variance that no method explains, for the ridge of a user's own fit.
_UNEXPLAINED = 0.8


def mcsherry_mironov(split: Split, epsilon: float, seed: int) -> float:
    """Release means and covariance for one rating at epsilon / 80, and fit every user to its directions."""
    train, random = split.train, PrivacyRandom.simulate(seed)
    each = epsilon / PER_USER
    multiplier = gaussian_multiplier(each, DELTA * math.expm1(each) / math.expm1(epsilon))
    # The three releases share one budget: shares of 1 / multiplier^2 add up.
    for_mean, for_items, for_pairs = (multiplier / math.sqrt(share) for share in _SHARES)
    width = train.facts.high - train.facts.low
    residuals = train.values - own_means(train)[train.rows()]
    sums = np.bincount(train.items, weights=residuals, minlength=train.n_items)
    # The number of ratings of an item is used without noise: an advantage for this method.
    counts = np.bincount(train.items, minlength=train.n_items)
    overall = float(sums.sum() + _normal(for_mean * width, 1, random)[0]) / train.n_ratings
    noisy = sums + _normal(for_items * width, sums.size, random)
    biases = (noisy + _SHRINKAGE * overall) / (counts + _SHRINKAGE)
    scorer = RatingScorer(
        mean=(train.facts.low + train.facts.high) / 2,
        item_bias=biases,
        item_factors=_noisy_factors(
            *_covariance(train, residuals - biases[train.items]), for_pairs * _ONE_RATING * _CLAMP**2, random
        ),
        ridge=np.append(USER_RIDGE, np.full(_FACTORS, _UNEXPLAINED)),
        low=train.facts.low,
        high=train.facts.high,
    )
    return _error(scorer.predict(train, split.test.rows(), split.test.items), split)


def _covariance(train: Interactions, residuals: Floats) -> tuple[Floats, float]:
    """Return the covariance of clamped residuals, users weighted by 1 / length, and its usual scale."""
    lengths = np.maximum(np.diff(train.indptr), 1)
    rows = csr_matrix(
        (np.clip(residuals, -_CLAMP, _CLAMP), train.items, train.indptr), shape=(train.n_users, train.n_items)
    )
    # A user with c of d items adds about c / d^2 of their covariance.
    return ((diags_array(1 / lengths) @ rows).T @ rows).toarray(), float(lengths.sum()) / train.n_items**2


def _noisy_factors(moment: Floats, scale: float, noise: float, random: PrivacyRandom) -> Floats:
    """Release a covariance, and return its leading directions; one that the noise could have made is zero."""
    noisy = simulated_gaussian(moment, sigma=noise, bound=_CLAMP**2, random=random, symmetric=True)
    values, vectors = np.linalg.eigh(noisy)
    # Noise has eigenvalues up to the edge.
    spread = np.maximum(values[-_FACTORS:] - 2 * noise * math.sqrt(len(moment)), 0.0) / scale
    found = vectors[:, -_FACTORS:] * np.sqrt(spread)
    return np.pad(found, ((0, 0), (0, _FACTORS - found.shape[1])))


def own_means(train: Interactions) -> Floats:
    """Return each user's mean rating; a user without ratings has the overall mean."""
    counts = np.diff(train.indptr)
    sums = np.bincount(train.rows(), weights=train.values, minlength=train.n_users)
    return np.where(counts > 0, sums / np.maximum(counts, 1), train.values.mean(dtype=np.float64))


def _normal(sigma: float, size: int, random: PrivacyRandom) -> Floats:
    return simulated_gaussian(np.zeros(size), sigma=sigma, bound=1.0, random=random)


def _error(predicted: Floats, split: Split) -> float:
    facts = split.train.facts
    return float(np.sqrt(np.mean((np.clip(predicted, facts.low, facts.high) - split.test.values) ** 2)))


# Figures: errors over epsilon.


def _on_films(run: Run) -> Found:
    name = "ml-10m-top-400" if "ml-10m" in run.data else "ml-1m-top-400"
    lines = gather(name, movielens, 10, ONE_FRAME, run)
    return {
        **_per_epsilon("films-printed", _lead(lines, HONEST, MEAN)),
        **_per_epsilon("films-mean", _lead(lines, ONE, MEAN)),
        **_per_epsilon("films-round", _lead(lines, ONE, BIASES)),
        "films-clear": [line[0] for line in lines[CLEAR]],
        "films-theirs": [line[-1] for line in _lead(lines, THEIRS, MEAN)],
        **_orders("films", lines),
    }


def _on_jokes(run: Run) -> Found:
    lines = gather("jester", jester, 10, (*ONE_FRAME, SCALED_K), run)
    return {
        **_per_epsilon("jester-printed", np.array(lines[HONEST])),
        **_per_epsilon("jester-theirs", np.array(lines[THEIRS])),
        **_per_epsilon("jester-their-k", np.array(lines[SCALED_K])),
        **_per_epsilon("jester", np.array(lines[ONE])),
        "jester-clear": [line[0] for line in lines[CLEAR]],
        "jester-oja": _lead(lines, HONEST, OJA).mean(axis=1).tolist(),
        **_orders("jester", lines),
    }


def _on_small(run: Run) -> Found:
    users = run.pick(full=20_000, quick=5_000, toy=90)
    lines = gather("rank-one-20000", lambda seed: synthetic(users, seed), 10, ONE_FRAME, run)
    return {
        "small-falls": [line[0] - line[-1] for line in lines[ONE]],
        "small-printed-falls": [line[0] - line[-1] for line in lines[HONEST]],
        "small-oja": _lead(lines, HONEST, OJA).mean(axis=1).tolist(),
        **_orders("small", lines),
    }


def _full_size(run: Run) -> Found:
    """Run the poster's own size; a fit takes half a minute of a processor there."""
    methods = (HONEST, THEIRS, TWO, MEAN)
    lines = gather(f"rank-one-{FULL_SIZE}", lambda seed: synthetic(FULL_SIZE, seed), 3, methods, run)
    found: Found = {}
    for key, method in (("rank-one-printed", HONEST), ("rank-one-theirs", THEIRS), ("rank-one", TWO)):
        found |= _per_epsilon(key, np.array(lines[method]))
    return found


def _on_netflix(run: Run) -> Found:
    """Run the poster's Netflix experiment on your own copy: T = 5 and 10, honest noise."""
    all_methods, few = (HONEST, TEN, SVD_PLAIN, MCSHERRY, MEAN), (HONEST, MEAN)
    methods = run.pick(full=all_methods, quick=few, toy=few)
    lines = gather("netflix-top-400", partial(netflix, run.data["netflix"]), 3, methods, run)
    found = _per_epsilon("netflix", np.array(lines[HONEST]))
    return found | (_per_epsilon("netflix-ten", np.array(lines[TEN])) if TEN in lines else {})


def _reported_netflix(run: Run) -> Found:
    """Return numbers from a copy that may not be redistributed; printed.json states their origin."""
    if run.size != "full":
        return {}
    kept = printed_numbers("frank-wolfe")["netflix reported"]
    _plot("netflix-top-400", kept["epsilons"], {HONEST: [kept["rounds 5"]]}, run)
    found: Found = {
        f"netflix-{epsilon:g}": [error]
        for epsilon, error in zip(kept["epsilons"], kept["rounds 5"], strict=True)
    }
    return found | {"netflix-ten-5": [kept["rounds 10 at epsilon 5"]]}


def gather(name: str, load: Callable[[int], Split], runs: int, names: Sequence[str], run: Run) -> Curves:
    """Score the methods on `runs` splits, one step per method and split; write a figure."""
    kept = lru_cache(maxsize=1)(load)
    epsilons = run.pick(full=EPSILONS, quick=(0.1, 5.0), toy=(0.1, 5.0))
    lines: Curves = {
        method: run.seeds(f"{name}, {method}, split", _curve, kept, method, epsilons, full=runs)
        for method in names
    }
    _plot(name, epsilons, lines, run)
    return lines


def _plot(
    name: str, epsilons: Sequence[float], lines: Mapping[str, Sequence[Sequence[float]]], run: Run
) -> None:
    curves = [
        level(method, epsilons, float(np.mean(lines[method])))
        if method in (MEAN, CLEAR)
        else measured(method, epsilons, lines[method])
        for method in (*SHOWN, TWO, TEN, SCALED_K)
        if method in lines
    ]
    printed = printed_numbers("frank-wolfe").get(name)
    if printed:
        values = [printed["rmse"][EPSILONS.index(epsilon)] for epsilon in epsilons]
        curves.append(PlottedLine("DP Frank-Wolfe of the poster", list(epsilons), values, kind="printed"))
    # Noise for one rating at epsilon / 80 leaves the panel; everything else stays in it.
    seen = [value for line in curves if line.method != MCSHERRY for value in line.y if value is not None]
    margin = 0.05 * (max(seen) - min(seen)) or 0.01
    note = f", {printed['note']}" if printed and "note" in printed else ""
    panel = Panel(
        f"{_TITLES.get(name, name)}{note}",
        "epsilon (delta = 1e-6, per user)",
        "RMSE",
        curves,
        x_scale="log",
        heights=(min(seen) - margin, max(seen) + margin),
        ticks={epsilon: f"{epsilon:g}" for epsilon in epsilons},
    )
    draw(run, name, [panel])


def _per_epsilon(key: str, runs: np.ndarray) -> Found:
    """Return the values at each epsilon that was run: all five, or the ends of a small run."""
    epsilons = EPSILONS if runs.shape[1] == len(EPSILONS) else (0.1, 5.0)
    return {f"{key}-{epsilon:g}": runs[:, place].tolist() for place, epsilon in enumerate(epsilons)}


def _lead(lines: Curves, better: str, worse: str) -> np.ndarray:
    """Return by how much one method's errors are below another's, over the splits that both have."""
    splits = min(len(lines[better]), len(lines[worse]))
    return np.array(lines[worse][:splits]) - np.array(lines[better][:splits])


def _orders(data: str, lines: Curves) -> Found:
    """Return how much better methods are than others on average over epsilon; the plan, where it is worst.

    `round`: all three with item biases; `plain`: none with them; `printed`: only the others have them.
    """
    found: Found = {f"{data}-plan": _lead(lines, PLAN, ONE).min(axis=1).tolist()}
    pairs = (
        ("printed", HONEST, (SVD, PGD)),
        ("round", ONE, (SVD, PGD)),
        ("plain", HONEST, (SVD_PLAIN, PGD_PLAIN)),
    )
    for mine, ours, others in pairs:
        for other, name in zip(("svd", "pgd"), others, strict=True):
            found[f"order-{data}-{mine}-{other}"] = _lead(lines, ours, name).mean(axis=1).tolist()
    found[f"order-{data}-mcsherry"] = _lead(lines, HONEST, MCSHERRY).mean(axis=1).tolist()
    return found


# Theorems: E_emp and E_gen as slopes of log errors over log n, d, m and epsilon. The poster's example has
# rank one, entries in [-1, 1], m ratings per user, L = sqrt(m) and k from the nuclear norm. The bounds become
# E_emp ~ sqrt(d) (n epsilon)^(-2/5) at T ~ (n epsilon)^(2/5) and m = sqrt(d), and
# E_gen ~ (sqrt(d) / m)^(2/3) + n^(-1/2) epsilon^(-1/2) m^(-7/12) (d fixed) at T ~ (d^2 / m)^(1/3).

# With steps of 1/T from zero, T steps reach 1 - 1/e of a target at the edge of the ball.
_ROOM = 1 / (1 - 1 / math.e)
# Where errors are measured: users in multiples of the fewest, epsilons, and rounds.
_USERS, _OVER_EPSILON, _OVER_ROUNDS = (1, 4, 16, 64), [1.0, 2.0, 4.0, 8.0, 16.0], (4, 8, 16, 32)
# The bounds leave the constant of T open.
_USERS_PER_ROUND = 1000
# How often the bound on the noise may fail: beta of the poster.
_FAILURE = 0.05


@dataclass(frozen=True, kw_only=True)
class Poster:
    """The printed procedure in dense algebra: row bound L, nuclear norm k and T rounds, all assumed public.

    `standard` takes steps of 2 / (t + 2) instead of 1 / T: the "standard FW" that the poster names.
    """

    row_bound: float
    radius: float
    rounds: int
    standard: bool = False

    def complete(self, values: Any, seen: Any, noise: float, seed: int) -> Any:
        """Return the completed matrix; `values` are zero where nothing was seen, and rows at most L long."""
        n_items, random = values.shape[1], PrivacyRandom.simulate(seed)
        matrix = np.zeros_like(values)
        raised = math.sqrt(noise * math.log(n_items / _FAILURE)) * n_items**0.25
        for number in range(self.rounds):
            errors = seen * matrix - values
            moment = (errors.T @ errors).astype(np.float64)
            if noise:
                bound = 4 * self.row_bound**2
                moment = simulated_gaussian(moment, sigma=noise, bound=bound, random=random, symmetric=True)
            eigenvalues, vectors = np.linalg.eigh(moment)
            direction = vectors[:, -1].astype(values.dtype)
            places = errors @ direction / (math.sqrt(max(eigenvalues[-1], 0.0)) + raised)
            step = 2 / (number + 2) if self.standard else 1 / self.rounds
            matrix *= 1 - step
            matrix -= (step * self.radius) * np.outer(places, direction)
            lengths = np.linalg.norm(seen * matrix, axis=1)
            matrix *= np.minimum(1, self.row_bound / np.maximum(lengths, 1e-12))[:, None].astype(values.dtype)
        return matrix


class RateErrors(NamedTuple):
    """Mean squared error on the seen cells and on all."""

    seen: float
    everywhere: float


class Shape(NamedTuple):
    """Users, items, and seen cells of each user."""

    n: int
    d: int
    m: int


def rate_errors(
    shape: Shape, epsilon: float, rounds: int, seed: int, *, room: float = _ROOM, standard: bool = False
) -> RateErrors:
    """Complete a rank-one matrix with entries of mean square 1/9 whose rows have m seen cells."""
    n, d, m = shape
    drawn = experiment_generator(seed, "rates", n, d, m)
    items = drawn.uniform(-1, 1, d)
    items *= math.sqrt(d / 3) / np.linalg.norm(items)
    truth = np.outer(drawn.uniform(-1, 1, n), items).astype(np.float32)
    # Entries may leave [-1, 1] a little where the items were scaled up; rows then are clipped as printed.
    seen = (drawn.random((n, d), dtype=np.float32).argsort(axis=1) < m).astype(np.float32)
    bound = math.sqrt(m)
    values = truth * seen
    values *= np.minimum(1, bound / np.maximum(np.linalg.norm(values, axis=1), 1e-12))[:, None]
    radius = room * float(np.linalg.norm(truth))
    method = Poster(row_bound=bound, radius=radius, rounds=rounds, standard=standard)
    noise = 0.0 if math.isinf(epsilon) else honest_noise(epsilon, bound, rounds, DELTA)
    squares = (method.complete(values, seen, noise, seed) - truth) ** 2
    return RateErrors(float((seen * squares).sum() / seen.sum()), float(squares.mean()))


def _emp_rounds(n: int, epsilon: float) -> int:
    """Return T that balances the two terms of E_emp."""
    return max(1, round((n * epsilon / _USERS_PER_ROUND) ** 0.4))


def _gen_rounds(d: int, m: int) -> int:
    """Return T of the bound on E_gen."""
    return max(1, round((d * d / m) ** (1 / 3)))


def _emp_curves(seed: int, scale: int) -> dict[str, list[Any]]:
    """Return E_emp over n, epsilon and d; `scale` is the smallest number of users."""
    users, widths, many = [scale * times for times in _USERS], [16, 64, 256], 16 * scale
    by_n = [rate_errors(Shape(n, 16, 4), 4.0, _emp_rounds(n, 4.0), seed).seen for n in users]
    by_epsilon = [rate_errors(Shape(many, 16, 4), e, _emp_rounds(many, e), seed).seen for e in _OVER_EPSILON]
    fixed = _emp_rounds(4 * scale, 4.0)
    by_d = [rate_errors(Shape(4 * scale, d, math.isqrt(d)), 4.0, fixed, seed).seen for d in widths]
    return {"n": [users, by_n], "epsilon": [_OVER_EPSILON, by_epsilon], "d": [widths, by_d]}


def _gen_curves(seed: int, scale: int) -> dict[str, list[Any]]:
    """Return E_gen over n, epsilon and m."""
    users, cells, rounds = [scale * times for times in _USERS], [4, 8, 16, 32], _gen_rounds(16, 8)
    by_n = [rate_errors(Shape(n, 16, 8), 4.0, rounds, seed).everywhere for n in users]
    by_epsilon = [rate_errors(Shape(16 * scale, 16, 8), e, rounds, seed).everywhere for e in _OVER_EPSILON]
    by_m = [rate_errors(Shape(2 * scale, 64, m), 16.0, _gen_rounds(64, m), seed).everywhere for m in cells]
    return {"n": [users, by_n], "epsilon": [_OVER_EPSILON, by_epsilon], "m": [cells, by_m]}


def _over_rounds(seed: int, scale: int, *, room: float = 1.0, standard: bool = False) -> list[float]:
    """Return E_emp without noise over T, with k `room` times the nuclear norm."""
    return [
        rate_errors(Shape(4 * scale, 16, 4), math.inf, rounds, seed, room=room, standard=standard).seen
        for rounds in _OVER_ROUNDS
    ]


def _scale(run: Run) -> int:
    """Return the smallest number of users."""
    return run.pick(full=8000, quick=500, toy=20)


def _rates(run: Run) -> Found:
    """Return slopes of both errors, and how E_emp falls with T under each reading of the steps."""
    found: Found = {}
    for name, curves, exponents in (("emp", _emp_curves, EMP_EXPONENTS), ("gen", _gen_curves, GEN_EXPONENTS)):
        seeds = run.seeds(f"E_{name}, draw", curves, scale=_scale(run))
        for over in exponents:
            found[f"{name}-{over}"] = [slope(*one[over]) for one in seeds]
        panels = [_rate_panel(f"E_{name}", over, exponents[over], seeds) for over in exponents]
        draw(run, f"E_{name}", panels)
    readings = {
        "at-the-norm": ("1/T steps, k the nuclear norm", {}),
        "beyond": ("1/T steps, k 1.58 times it", {"room": _ROOM}),
        "standard": ("2/(t+2) steps, k the nuclear norm", {"standard": True}),
    }
    lines: list[PlottedLine] = []
    for key, (words, options) in readings.items():
        found |= run.part(_falls, run, key, words, options, lines)
    first = np.mean([line.y[0] for line in lines] or [math.nan])
    lines.append(
        PlottedLine("slope -1", _OVER_ROUNDS, [float(first * 4 / t) for t in _OVER_ROUNDS], kind="printed")
    )
    ticks = {float(rounds): str(rounds) for rounds in _OVER_ROUNDS}
    panel = Panel("First term of E_emp, no noise", "T", "E_emp", lines, "log", "log", ticks=ticks)
    draw(run, "E_emp_rounds", [panel])
    return found


def _falls(run: Run, key: str, words: str, options: Mapping[str, Any], lines: list[PlottedLine]) -> Found:
    """Return E_emp at T = 32 over that at T = 4 for one reading, and add its curve to the lines."""
    falls = run.seeds(f"E_emp over T, {key}, draw", _over_rounds, scale=_scale(run), **options)
    lines.append(measured(words, _OVER_ROUNDS, falls))
    return {f"emp-rounds-{key}": [one[-1] / one[0] for one in falls]}


def _rate_panel(name: str, over: str, exponent: float, seeds: Sequence[Mapping[str, Any]]) -> Panel:
    x = seeds[0][over][0]
    line = measured("measured", x, [one[over][1] for one in seeds])
    first = line.y[0] or 0.0
    said = PlottedLine("slope", x, [float(first * (value / x[0]) ** exponent) for value in x], kind="printed")
    ticks = {value: f"{value:,g}" for value in x}
    return Panel(
        f"{name} over {over}, slope {exponent:.2f}", over, name, [line, said], "log", "log", ticks=ticks
    )


def _memory(run: Run) -> Found:
    """Compare the memory of the matrix and of Oja's algorithm for a catalog of many items."""
    items = run.pick(full=3000, quick=1000, toy=300)
    peaks = run.step(f"memory at {items} items", _peaks, items)
    return {"oja-memory": [peaks["oja"] / peaks["covariance"]]}


def _peaks(items: int) -> dict[str, int]:
    data = rank_one(n_users=300, n_items=items, per_user=10, seed=0).data
    peaks = {}
    for solver in ("covariance", "oja"):
        tracemalloc.start()
        PrintedFrankWolfe(epsilon=5.0, rounds=1, solver=solver).fit(data, random=PrivacyRandom.simulate(0))
        peaks[solver] = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    return peaks
