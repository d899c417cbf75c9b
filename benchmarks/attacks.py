"""Attack published models: which users were in the data? Models without privacy, and ours against its bound.

    python benchmarks/attacks.py                      MovieLens 1M: EASE, implicit ALS, and ours
    python benchmarks/keep.py attacks.py              the same, kept for docs/results.md

The attack is a likelihood ratio from shadow models (LiRA; for recommenders, RecLiRA). Every model is trained
on a random half of the users. The attacker knows all histories, and for the shadow models also who was in.
From a published model the attacker computes how well the model explains each user's history, and compares
that with the shadow models that had this user and with those that had not. The other models are the targets.
None of the targets' coins is known to the attacker.

Among the users are canaries: made-up users with a few unpopular items that no other canary has.

`power` is the share of users in the data that are detected at a rate of false alarms. For ours, `bound` is
the most that epsilon and delta allow with any noise, and `bound_of_noise` with its Gaussian noise. `refuted`
is the largest epsilon that the guesses rule out at 99%, whatever the noise is. Deviations are
standard errors over targets. Noise is simulated.
"""

from __future__ import annotations

from typing import Any

import harness
import numpy as np

DELTA = 1e-6
ALARMS = (0.01, 0.001)
# Rates of false alarms at which the curve is drawn.
DRAWN = np.geomspace(1e-3, 1.0, 31)
RIDGE = 300.0
ALS = {"factors": 32, "regularization": 0.1, "alpha": 5.0, "iterations": 10, "num_threads": 1}
CANARY_ITEMS = 4
TOY = {"users": 40, "items": 40, "canaries": 4, "shadows": 6, "targets": 3}


def all_users(options):
    """Return a sample of the users with their most popular items, and the canaries, who are last."""
    from discreet.audit.canaries.planting import Canaries
    from discreet.data.facts import PublicFacts

    data = harness.ratings("movielens-1m", toy=options.toy)
    counts = np.bincount(data.items, minlength=data.n_items)
    places = np.full(data.n_items, -1)
    places[np.argsort(-counts, kind="stable")[: options.items]] = np.arange(options.items)
    draw = np.random.default_rng(0)
    chosen = np.sort(draw.choice(data.n_users, options.users, replace=False))
    rows = {}
    for user in chosen:
        own = places[data.items[data.indptr[user] : data.indptr[user + 1]]]
        rows[f"user {user:06d}"] = dict.fromkeys(own[own >= 0].tolist(), 1.0)
    unpopular = draw.permutation(np.arange(options.items - options.canaries * CANARY_ITEMS, options.items))
    for number, items in enumerate(unpopular.reshape(options.canaries, CANARY_ITEMS)):
        rows[f"~{number:06d}"] = dict.fromkeys(items.tolist(), 1.0)
    half = (options.users + options.canaries) // 2
    facts = PublicFacts(n_items=options.items, low=1.0, high=1.0, step=None, n_users=half)
    return Canaries(background={}, rows=rows, facts=facts)


def ease(data, histories, seed):
    """Return all scores of EASE for all users."""
    from discreet import Ease

    return Ease(regularization=RIDGE, fading=0.0).fit(data).scores(histories, np.arange(histories.n_users))


def implicit_als(data, histories, seed):
    """Return all scores of the `implicit` package; users are folded in."""
    from implicit.als import AlternatingLeastSquares

    learned = AlternatingLeastSquares(**ALS, random_state=seed)
    learned.fit(data.to_scipy().astype(np.float32), show_progress=False)
    own = histories.to_scipy().astype(np.float32)
    return learned.recalculate_user(np.arange(histories.n_users), own) @ np.asarray(learned.item_factors).T


def ours(epsilon):
    """Return all scores of the recommended model for implicit feedback at this epsilon."""

    def scores(data, histories, seed):
        from discreet import UserFactorization
        from discreet.core.randomness import PrivacyRandom

        estimator = UserFactorization(epsilon=epsilon, delta=DELTA, feedback="implicit")
        scorer = estimator.rehearse(data, PrivacyRandom.simulate(seed))
        return scorer.scores(histories, np.arange(histories.n_users))

    return scores


TARGETS = {
    "EASE": (ease, None),
    "implicit ALS": (implicit_als, None),
    "user-factorization, epsilon 5": (ours(5.0), 5.0),
    "user-factorization, epsilon 1": (ours(1.0), 1.0),
}


def explained(scores, histories):
    """Return how well a model explains each history: its items' mean score, also against all items."""
    rows = histories.rows()
    each = np.maximum(np.diff(histories.indptr), 1)
    numbers = np.asarray(scores, dtype=np.float64)
    standard = (numbers - numbers.mean(axis=1, keepdims=True)) / (numbers.std(axis=1, keepdims=True) + 1e-12)
    columns = [
        np.bincount(rows, weights=table[rows, histories.items], minlength=each.size) / each
        for table in (numbers, standard)
    ]
    return np.stack(columns, axis=1)


def log_ratios(features, coins, shadows):
    """Return each user's log-likelihood ratio in each target, from normal distributions of the shadows."""
    known, inside = features[:shadows], coins[:shadows]
    means = [
        np.sum(known * mask[:, :, None], axis=0) / np.maximum(mask.sum(axis=0), 1)[:, None]
        for mask in (inside, ~inside)
    ]
    apart = known - np.where(inside[:, :, None], means[0], means[1])
    spread = np.sqrt(np.mean(apart**2, axis=0)) + 1e-9
    standard = (apart / spread).reshape(-1, features.shape[2])
    inverse = np.linalg.inv(np.cov(standard.T) + 1e-3 * np.eye(features.shape[2]))
    shift = (means[0] - means[1]) / spread
    middle = (means[0] + means[1]) / 2
    return np.einsum("tuf,fg,ug->tu", (features[shadows:] - middle) / spread, inverse, shift)


def judged(scores, coins, epsilon):
    """Return power, area under the curve, and the refuted epsilon."""
    from discreet.audit.canaries.planting import Game
    from discreet.audit.full import settled
    from discreet.report.odds import power

    outcome = settled([Game(*one) for one in zip(scores, coins, strict=True)], DELTA, None, 0.01)
    areas = [area(one, truth) for one, truth in zip(scores, coins, strict=True)]
    bound = None if epsilon is None else {f"{rate:g}": power(epsilon, DELTA, rate) for rate in ALARMS}
    of_noise = None if epsilon is None else {f"{rate:g}": gaussian_power(epsilon, rate) for rate in ALARMS}
    return {
        "games": int(coins.size),
        "area": float(np.mean(areas)),
        "area_deviation": float(np.std(areas) / np.sqrt(len(areas))),
        "right": float(np.mean((scores > np.median(scores)) == coins)),
        "power": {f"{rate:g}": detected(scores, coins, rate) for rate in ALARMS},
        "power_deviation": {f"{rate:g}": deviation(scores, coins, rate) for rate in ALARMS},
        "bound": bound,
        "bound_of_noise": of_noise,
        "refuted": outcome.refuted,
        "curve": [detected(scores, coins, rate) for rate in DRAWN],
    }


def gaussian_power(epsilon, rate):
    """Return the most that Gaussian noise of this guarantee allows to detect."""
    from scipy.special import ndtr, ndtri

    from discreet.privacy.accounting.gaussian import gaussian_multiplier

    return float(ndtr(ndtri(rate) + 1 / gaussian_multiplier(epsilon, DELTA)))


def detected(scores, coins, rate):
    """Return the share of users in the data above the threshold with this rate of false alarms."""
    return float(np.mean(scores[coins] > np.quantile(scores[~coins], 1 - rate, method="higher")))


def deviation(scores, coins, rate):
    """Return the standard error of the power: each target in turn is left out, its false alarms, too."""
    left = [
        detected(np.delete(scores, target, axis=0), np.delete(coins, target, axis=0), rate)
        for target in range(len(scores))
    ]
    return float(np.sqrt((len(left) - 1) * np.var(left)))


def area(scores, coins):
    """Return the probability that a user in the data has a higher score than one who is not."""
    ranks = np.argsort(np.argsort(scores)) + 1
    inside = int(coins.sum())
    return (ranks[coins].sum() - inside * (inside + 1) / 2) / max(inside * (coins.size - inside), 1)


def main():
    options = harness.options(
        __doc__, toy=TOY, users=1_500, items=1_000, canaries=200, shadows=32, targets=24
    )
    users = all_users(options)
    fits = options.shadows + options.targets
    coins = np.random.default_rng(1).random((fits, len(users.rows))) < 0.5
    histories = users.dataset(np.ones(len(users.rows), dtype=bool))
    rows: list[dict[str, Any]] = []
    for name, (train, epsilon) in TARGETS.items():
        trained = (train(users.dataset(inside), histories, fit) for fit, inside in enumerate(coins))
        features = np.stack([explained(scores, histories) for scores in trained])
        scores, truth = log_ratios(features, coins, options.shadows), coins[options.shadows :]
        who = {"users": slice(None, options.users), "canaries": slice(options.users, None)}
        for kind, part in who.items():
            found = judged(scores[:, part], truth[:, part], epsilon)
            rows.append({"model": name, "epsilon": epsilon, "attacked": kind, "fits": fits, **found})
    keys = ("users", "items", "canaries", "shadows", "targets")
    shape = {key: getattr(options, key) for key in keys}
    answer = {"benchmark": "attacks", **shape, "alarms": DRAWN.tolist(), "delta": DELTA, "rows": rows}
    harness.tell(answer, options)


if __name__ == "__main__":
    main()
