"""What is compared: every method as one function from a split, an epsilon and a seed to an error."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from discreet.collect.estimate import collect_from
from discreet.core.randomness import PrivacyRandom, experiment_generator
from discreet.data.interactions import Interactions
from discreet.data.splits import Split, random_split
from discreet.evaluation.scoring import measure
from discreet.models.estimator import Estimator
from discreet.models.scorers.local import LocalScorer
from discreet.papers.mixture.channel import LocalChannel
from discreet.papers.mixture.mixture import LocalMixture
from discreet.papers.mixture.private_gradients import PrivateGradients
from discreet.papers.mixture.sgd import LocalSgd

EPSILONS = (0.1, 0.5, 1.0, 2.0, 3.0)
Method = Callable[[Split, float, int], float]

# The grid on which the gradient descent is tuned: rank, step and regularization.
TUNING: list[dict[str, Any]] = [
    {"factors": factors, "rate": rate, "regularization": item_weights}
    for factors in (1, 3, 10)
    for rate in (0.002, 0.01)
    for item_weights in (0.001, 0.005, 0.02, 0.06)
]
# People used for tuning where there are many: enough to rank settings.
TUNING_PEOPLE = 4000


def error(estimator: Estimator, split: Split, seed: int) -> float:
    """Fit and return the error on the held-out ratings, predicted from reports (PG-MF: on the device)."""
    model = estimator.fit(split.train, random=PrivacyRandom.simulate(seed), progress=lambda *_: None)
    return measure(model, split.train, split.test, "rmse")["rmse"]


def fitted(make: Callable[..., Estimator], **settings) -> Method:
    return lambda split, epsilon, seed: error(make(epsilon=epsilon, **settings), split, seed)


def on_device(split: Split, epsilon: float, seed: int) -> float:
    """Return the error of local-channel when each person folds in their own true ratings, as PG-MF does."""
    model = LocalChannel(epsilon=epsilon).fit(
        split.train, random=PrivacyRandom.simulate(seed), progress=lambda *_: None
    )
    assert isinstance(model.scorer, LocalScorer)
    device = replace(model, scorer=model.scorer.device)
    return measure(device, split.train, split.test, "rmse")["rmse"]


def tune(
    data: Interactions, epsilon: float, seed: int, grid: Sequence[dict[str, Any]] = TUNING
) -> dict[str, Any]:
    """Return the settings of local-sgd that predict held-out validation ratings best.

    The validation ratings are true ones, which no collector has: a gift to this method.
    """
    if data.n_users > TUNING_PEOPLE:
        chosen = experiment_generator(seed, "tuning people").choice(
            data.n_users, TUNING_PEOPLE, replace=False
        )
        data = data.select_users(np.sort(chosen))
    split = random_split(data, 0.1, seed)
    return min(grid, key=lambda settings: error(LocalSgd(epsilon=epsilon, **settings), split, seed))


def item_mean(split: Split, epsilon: float, seed: int) -> float:
    """Return the error of every item's mean report, read through the channel and clipped to the scale."""
    means, _, _ = _debiased(split.train, epsilon, seed)
    return _rmse(means[split.test.items], split.test)


def shrunken_item_mean(split: Split, epsilon: float, seed: int) -> float:
    """Return the error of the debiased item means, pulled to the overall one by their standard errors."""
    means, errors, overall = _debiased(split.train, epsilon, seed)
    noise = np.minimum(errors, 1e6) ** 2
    width = split.train.facts.high - split.train.facts.low
    # How much true item means differ: a public guess, one tenth of the scale.
    weighted = overall + (0.1 * width) ** 2 / ((0.1 * width) ** 2 + noise) * (means - overall)
    return _rmse(weighted[split.test.items], split.test)


def global_mean(split: Split, epsilon: float, seed: int) -> float:
    """Return the error of the one debiased mean of everything."""
    _, _, overall = _debiased(split.train, epsilon, seed)
    return _rmse(np.full(split.test.n_ratings, overall), split.test)


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


#: What `local-mixture` and the paper's weighted PCA are run with beyond rank 1.
RANKS = (2, 5)
#: Every method that needs no tuning, by the name it has in results and claims.
METHODS: dict[str, Method] = {
    "local-channel": fitted(LocalChannel),
    "local-channel without patterns": fitted(LocalChannel, directions=0),
    "local-channel on the device": on_device,
    "local-mixture": fitted(LocalMixture),
    **{f"local-mixture rank {rank}": fitted(LocalMixture, factors=rank) for rank in RANKS},
    **{
        f"weighted PCA rank {rank}": fitted(LocalMixture, solver="weighted-pca", factors=rank)
        for rank in (1, *RANKS)
    },
    "local-sgd as described": fitted(LocalSgd),
    "private-gradients": fitted(PrivateGradients),
    "debiased item mean": item_mean,
    "shrunken debiased item mean": shrunken_item_mean,
    "debiased global mean": global_mean,
}
TUNED = "local-sgd tuned"


def tuned_error(split: Split, epsilon: float, seed: int, settings: dict[str, Any]) -> float:
    """Return the error of local-sgd with the settings that were chosen for this epsilon."""
    return error(LocalSgd(epsilon=epsilon, **settings), split, seed)
