"""Reports read through their channel: the means are unbiased, their errors honest, the table right."""

import numpy as np
import pytest

from discreet.collect.estimate import Collected, collect_from, unit_levels
from discreet.collect.mechanisms import Exact, encode
from discreet.core.randomness import PrivacyRandom
from discreet.data.facts import PublicFacts
from discreet.data.interactions import Interactions
from discreet.privacy.mechanisms.bounded import BoundedLaplace, ClampedLaplace
from discreet.solvers.channel_fit import respond
from discreet.testing import refuses
from evidence import follows, gap, samples_to_separate

KINDS = [BoundedLaplace, ClampedLaplace]


def ratings(n_users=4000, low=1.0, high=5.0):
    """Return two items that everybody rated: one spreads around 4, one around 2."""
    rng = np.random.default_rng(3)
    values = np.stack([rng.choice([3, 4, 5], n_users), rng.choice([1, 2, 3], n_users)], axis=1).astype(float)
    rows = np.repeat(np.arange(n_users), 2)
    return Interactions.from_arrays(
        rows,
        np.tile([0, 1], n_users),
        values.ravel(),
        facts=PublicFacts(n_items=2, low=low, high=high, step=1),
    )


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("epsilon", [0.5, 2.0])
def test_item_means_are_debiased_with_honest_standard_errors(kind, epsilon):
    data = ratings()
    found = collect_from(data, kind(epsilon=epsilon, low=1, high=5, points=241), PrivacyRandom.simulate(1))
    told = found.item_means(spread=0.204)
    truth = [data.values[data.items == item].mean() for item in (0, 1)]
    # Six standard errors: wrong with probability below 1e-8; the plain mean of the reports is far outside.
    assert np.all(np.abs(told.means - truth) < 6 * told.standard_errors)
    assert told.counts.tolist() == [4000, 4000]
    if epsilon == 2.0:
        assert np.all(np.abs(told.mean_reports - truth) > 6 * told.standard_errors)


def test_standard_errors_are_those_of_repeated_collections():
    data, mechanism = ratings(n_users=300), BoundedLaplace(epsilon=3.0, low=1, high=5, points=241)
    runs = [collect_from(data, mechanism, PrivacyRandom.simulate(seed)).item_means() for seed in range(200)]
    spread = np.std([run.means for run in runs], axis=0)
    claimed = np.mean([run.standard_errors for run in runs], axis=0)
    # The ratings stand still here, so only the channel's part of the error shows: never more than claimed.
    assert np.all(spread < 1.15 * claimed) and np.all(spread > 0.7 * claimed)


def test_items_without_reports_have_the_middle_and_no_accuracy():
    data = ratings(n_users=50)
    found = collect_from(
        data.where(data.items == 0), BoundedLaplace(epsilon=1.0, low=1, high=5), PrivacyRandom.simulate(1)
    )
    told = found.item_means()
    assert told.means[1] == 3.0 and np.isinf(told.standard_errors[1])
    assert told.largest_shift(0.0).tolist() == [0.0, 0.0]
    with refuses("broken-rule", name="share", value=1.5):
        told.largest_shift(1.5)


@pytest.mark.parametrize("kind", KINDS)
def test_reports_of_spread_ratings_follow_the_likelihood_and_not_that_of_a_neighbor(kind):
    mechanism = kind(epsilon=2.0, low=0.0, high=1.0, points=241)
    channel, levels = mechanism.channel(), np.linspace(0, 1, 5)
    rows = channel.transition[np.rint(levels * 240).astype(int)]
    response = respond(levels, rows, channel.outputs, spread=0.22)
    place = int(np.argmin(np.abs(response.grid - 0.7)))
    # The score integrates to the likelihood: rebuild it from the shares that have this mean.
    shares = np.exp(-0.5 * ((levels - _center(levels, response.grid[place])) / 0.22) ** 2)
    shares /= shares.sum()
    assert shares @ levels == pytest.approx(response.grid[place], abs=1e-9)
    np.testing.assert_allclose(shares @ rows @ channel.outputs, response.mean[place], rtol=1e-9)

    def cdf(weights):
        sums = np.cumsum(weights @ rows)
        return lambda values: np.concatenate([[0.0], sums])[
            np.clip(np.floor(np.asarray(values)).astype(int) + 1, 0, 241)
        ]

    other = np.exp(-0.5 * ((levels - _center(levels, 0.6)) / 0.22) ** 2)
    claimed, twin = cdf(shares), cdf(other / other.sum())
    count = samples_to_separate(gap(claimed, twin, np.arange(241)))
    drawn = np.random.default_rng(1).choice(levels, size=count, p=shares)
    codes = encode(mechanism, mechanism.release(drawn, PrivacyRandom.simulate(9)))
    assert follows(codes, claimed)
    assert not follows(codes, twin)


def _center(levels, mean, spread=0.22):
    low, high = -3.0, 4.0
    for _ in range(80):
        middle = (low + high) / 2
        weights = np.exp(-0.5 * ((levels - middle) / spread) ** 2)
        low, high = (middle, high) if weights @ levels / weights.sum() < mean else (low, middle)
    return middle


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 10.0])
def test_scores_have_mean_zero_and_variance_information(epsilon):
    mechanism = BoundedLaplace(epsilon=epsilon, low=0.0, high=1.0, points=241)
    channel, levels = mechanism.channel(), np.linspace(0, 1, 5)
    rows = channel.transition[np.rint(levels * 240).astype(int)]
    response = respond(levels, rows, channel.outputs)
    for place in (20, 64, 100):
        weights = np.exp(-0.5 * ((levels - _center(levels, response.grid[place])) / 0.22) ** 2)
        likelihood = weights / weights.sum() @ rows
        score = response.score[place].astype(np.float64)
        assert likelihood @ score == pytest.approx(0.0, abs=1e-5)
        assert likelihood @ score**2 == pytest.approx(response.information[place], rel=1e-5)
    assert np.all(np.diff(response.mean) > 0)


def test_fakes_among_the_reports_leave_less_information():
    mechanism = BoundedLaplace(epsilon=2.0, low=0.0, high=1.0, points=241)
    channel, levels = mechanism.channel(), np.linspace(0, 1, 5)
    rows = channel.transition[np.rint(levels * 240).astype(int)]
    clean = respond(levels, rows, channel.outputs)
    mixed = respond(levels, rows, channel.outputs, rated=0.5, background=channel.transition[120])
    assert np.all(mixed.information < clean.information) and np.all(mixed.information > 0)


def test_without_noise_reports_are_the_ratings():
    data = ratings(n_users=20)
    found = collect_from(data, Exact(low=1, high=5, points=5), PrivacyRandom.simulate(1))
    np.testing.assert_array_equal(found.reports.values, data.values)
    assert unit_levels(data.facts).tolist() == [0, 0.25, 0.5, 0.75, 1]
    with refuses("broken-rule", name="codes"):
        Collected(reports=data, codes=np.zeros(3, dtype=np.int32), mechanism=found.mechanism)
