"""Lists count with the declared half-life, or with a longer one while the noise would hide them."""

import numpy as np
import pytest

from discreet.follow.factorization import Factorization
from discreet.follow.releases import Estimate, estimate_level, estimate_rated, estimate_recent
from discreet.follow.settings import RELEASE_BITS, FollowSettings
from discreet.follow.state import ItemSums
from discreet.testing import refuses

N_ITEMS, MADE = 40, 20
NOTHING = np.zeros(0, dtype=np.int64)


def settings(half_life=2.0):
    return FollowSettings(releases=26, epsilon=2.0, half_life=half_life, days=26.0)


def released(year, increments):
    """Return releases of these sums as they would be without noise, so that nothing here is drawn."""
    mixed = np.ldexp(year.counts(rated=False).whole[:MADE, :MADE].astype(float), -16) @ increments
    return [ItemSums(np.rint(row * 2.0**RELEASE_BITS).astype(np.int64), NOTHING, NOTHING) for row in mixed]


def counted(year, drawn, half_life):
    """Return current counts with this half-life, in releases."""
    weights = year.counts(rated=False).estimator(len(drawn), half_life)
    sums = weights @ np.ldexp(np.stack([one.counts for one in drawn]).astype(float), -RELEASE_BITS)
    noise = year.multiplier * float(np.linalg.norm(weights))
    return Estimate(sums=sums, noise=noise, half_life=half_life)


def steady(size):
    """Return ten items that are chosen evenly, and others that nobody chooses."""
    return np.tile(np.where(np.arange(N_ITEMS) < 10, size, 0.0), (MADE, 1))


@pytest.mark.parametrize(("size", "longer"), [(50.0, 1.0), (2.0, 1.5), (0.5, None)])
def test_noise_decides_how_long_lists_remember(size, longer):
    year = settings()
    drawn = released(year, steady(size))
    found = estimate_recent(year, drawn, year.multiplier, rated=False)
    if longer is None:
        assert found.half_life is None or found.half_life > 2 * year.half_life
    elif longer == 1.0:
        assert found.half_life == year.half_life_in_releases
    else:
        assert found.half_life > year.half_life_in_releases and found.signal_to_noise >= 4
    # It is the estimate with that half-life, and nothing else.
    same = counted(year, drawn, found.half_life)
    assert np.array_equal(found.sums, same.sums) and found.noise == same.noise


def test_without_noise_nothing_but_the_declared_half_life_counts():
    """The twin: the same weak sums as above, released with less noise."""
    year = settings()
    found = estimate_recent(year, released(year, steady(0.5)), 0.001, rated=False)
    assert found.half_life == year.half_life_in_releases


def test_the_shortest_half_life_that_stands_out_is_taken():
    year = settings()
    drawn = released(year, steady(2.0))
    found = estimate_recent(year, drawn, year.multiplier, rated=False)
    declared = year.half_life_in_releases
    for multiple in (1.0, 1.5, 2.0, 3.0, 4.0, 6.0, 8.0, 16.0):
        if found.half_life is None or multiple * declared < found.half_life:
            shorter = counted(year, drawn, multiple * declared)
            assert shorter.signal_to_noise < 4


def test_where_nothing_fades_nothing_is_chosen():
    year = settings(half_life=None)
    found = estimate_recent(year, released(year, steady(0.5)), year.multiplier, rated=False)
    assert found.half_life is None and year.in_days(found.half_life) is None
    assert settings().in_days(3.0) == 3.0


def test_few_items_and_sums_of_zero_are_listed_all_the_same():
    year = settings()
    few = [ItemSums(np.zeros(3, dtype=np.int64), NOTHING, NOTHING)]
    assert estimate_recent(year, few, year.multiplier, rated=False).sums.tolist() == [0.0, 0.0, 0.0]


@pytest.mark.parametrize("made", [1, 2, 13, 26])
def test_steady_sums_are_exact_and_less_noisy(made):
    plan = Factorization(releases=26)
    mix = np.ldexp(plan.whole[:made, :made].astype(float), -16)
    for part in (0.0, 0.75, 1.0):
        weights = plan.steady_estimator(made, part)
        assert np.isclose(weights @ mix @ np.ones(made), made), "as much at every release"
        assert np.linalg.norm(weights) <= plan.deviation(made) * (1 + 1e-12)
    if made > 2:
        # The twin: where all enters late, less of it counts; the plain estimate is right there, too.
        late = np.arange(made) == made - 1
        assert plan.steady_estimator(made, 1.0) @ mix @ late < 0.7
        assert np.isclose(plan.steady_estimator(made, 0.0) @ mix @ late, 1.0)
        assert np.linalg.norm(plan.steady_estimator(made, 1.0)) < plan.deviation(made)
    with refuses("out-of-range", name="released", value=27, least=1, most=26):
        plan.steady_estimator(27, 1.0)


def rated(year, counts, values, level):
    """Return releases of these sums by release, without noise."""
    mix = np.ldexp(year.values.whole[: len(counts), : len(counts)].astype(float), -16)
    parts = [mix @ np.asarray(one) for one in (counts, values, level)]
    whole = [np.rint(one * 2.0**RELEASE_BITS).astype(np.int64) for one in parts]
    return [ItemSums(*row) for row in zip(*whole, strict=True)]


def test_how_items_are_rated_does_not_depend_on_when_they_are():
    """Counts and values weigh releases alike, so an item of one week has the same ratio as a steady one."""
    year = settings()
    counts = np.column_stack([np.full(MADE, 3.0), np.arange(MADE) == MADE - 1, np.arange(MADE) == 0])
    drawn = rated(year, 0.4 * counts, -0.5 * counts, np.zeros((MADE, 2)))
    found, values = estimate_rated(year, drawn, year.multiplier)
    assert np.allclose(values.sums / found.sums, -0.5, atol=1e-9)
    # The twin: all the same the sums do not count every release alike.
    assert found.sums[1] < 0.9 < found.sums[2]


def test_the_level_is_that_of_late_users_where_late_users_are_asked_for():
    year = settings()
    means = np.where(np.arange(MADE) < MADE // 2, 0.0, 0.2)
    level = 1000.0 * np.column_stack([np.full(MADE, 409 / 1024), means * 921 / 1024])
    drawn = rated(year, np.zeros((MADE, 3)), np.zeros((MADE, 3)), level)
    assert abs(estimate_level(year, drawn, 0.0).mean - 0.1) < 1e-3
    assert estimate_level(year, drawn, 0.0, days=2.0).mean > 0.19
