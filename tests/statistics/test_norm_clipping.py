"""Whatever a row is, what is clipped is no longer than its bound, and a short row stays as it is."""

import numpy as np
import pytest
from numba import njit

from discreet.statistics import norm_clipping
from discreet.statistics.norm_clipping import clipped_rows

# Only compiled loops can call these.
embedding, factor_of, factors = (
    norm_clipping.clip_embedding,
    norm_clipping.clip_factor,
    norm_clipping.clip_factors,
)
clip_factor = njit(lambda row, bound: factor_of(row, bound))
clip_embedding = njit(lambda own, left, longest: embedding(own, left, longest))
clip_factors = njit(lambda own, length, longest: factors(own, length, longest))

BOUNDS = [1.0, 1.5, 4.0]


def rows(bound, count=200):
    """Return rows of all lengths, many of them close to the bound."""
    rng = np.random.default_rng(7)
    found = rng.standard_normal((count, 6))
    lengths = np.concatenate(
        [bound * (1 + 0.02 * rng.standard_normal(count // 2)), np.geomspace(1e-9, 1e9, count // 2)]
    )
    return found / np.linalg.norm(found, axis=1, keepdims=True) * lengths[:, None]


@pytest.mark.parametrize("bound", BOUNDS)
def test_a_factor_clips_to_the_bound_and_changes_nothing_else(bound):
    for row in rows(bound):
        clipped = row * clip_factor(row, bound)
        assert np.linalg.norm(clipped) <= bound * (1 + 1e-12)
        assert np.linalg.norm(row) > bound or np.array_equal(clipped, row)


@pytest.mark.parametrize("bound", BOUNDS)
@pytest.mark.parametrize("left", [1e-9, 0.3, 2.0])
def test_an_embedding_is_clipped_and_its_square_is_stated(bound, left):
    for row in rows(bound):
        factor, square = clip_embedding(row, left, bound)
        assert np.linalg.norm(row * factor) <= bound * (1 + 1e-12)
        assert square == pytest.approx(np.sum((row * factor) ** 2), rel=1e-9)
    assert clip_embedding(row, 0.0, bound) == (0.0, 0.0), "nothing is left of it"


def test_rows_are_clipped_each_by_itself():
    found = rows(1.0)
    clipped = clipped_rows(found)
    assert np.linalg.norm(clipped, axis=1).max() <= 1
    short = np.linalg.norm(found, axis=1) <= 1
    np.testing.assert_allclose(clipped[short], found[short], rtol=1e-5)


@pytest.mark.parametrize("longest", BOUNDS)
def test_factors_with_their_constant_are_clipped(longest):
    for row in rows(longest):
        own = np.append(np.nan, row)
        square = clip_factors(own, np.sum(row**2), longest)
        assert own[0] == 1 and np.linalg.norm(own) <= longest * (1 + 1e-12)
        assert square == pytest.approx(np.sum(own**2), rel=1e-9)
