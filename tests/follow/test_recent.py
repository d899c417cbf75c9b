"""Lists count with the declared half-life, or with a longer one while the noise would hide them."""

import numpy as np
import pytest

from discreet.follow.releases import estimate_counts, estimate_recent
from discreet.follow.settings import RELEASE_BITS, FollowSettings
from discreet.follow.state import ItemSums

N_ITEMS, MADE = 40, 20
NOTHING = np.zeros(0, dtype=np.int64)


def settings(half_life=2.0):
    return FollowSettings(releases=26, epsilon=2.0, half_life=half_life, days=26.0)


def released(year, increments):
    """Return releases of these sums as they would be without noise, so that nothing here is drawn."""
    mixed = np.ldexp(year.counts(rated=False).whole[:MADE, :MADE].astype(float), -16) @ increments
    return [ItemSums(np.rint(row * 2.0**RELEASE_BITS).astype(np.int64), NOTHING, NOTHING) for row in mixed]


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
        assert found.half_life > year.half_life_in_releases and found.clearness >= 4
    # It is the estimate with that half-life, and nothing else.
    same = estimate_counts(year, drawn, found.half_life, year.multiplier, rated=False)
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
            shorter = estimate_counts(year, drawn, multiple * declared, year.multiplier, rated=False)
            assert shorter.clearness < 4


def test_where_nothing_fades_nothing_is_chosen():
    year = settings(half_life=None)
    found = estimate_recent(year, released(year, steady(0.5)), year.multiplier, rated=False)
    assert found.half_life is None and year.in_days(found.half_life) is None
    assert settings().in_days(3.0) == 3.0


def test_few_items_and_sums_of_zero_are_listed_all_the_same():
    year = settings()
    few = [ItemSums(np.zeros(3, dtype=np.int64), NOTHING, NOTHING)]
    assert estimate_recent(year, few, year.multiplier, rated=False).sums.tolist() == [0.0, 0.0, 0.0]
