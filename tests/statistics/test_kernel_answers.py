"""Kernels of contributions by known answers: the first item, and users whose numbers are not finite."""

import math

import numpy as np
import pytest

from discreet.core.kernels import compiled
from discreet.statistics.item_vectors import Room, Totals, VectorsAsked, _add_contribution
from discreet.statistics.profiles import Lens, place


@pytest.mark.few(3)
@pytest.mark.parametrize("item", [-1, 0, 1, 2])
@pytest.mark.parametrize("grows", [False, True])
def test_a_profile_leaves_out_exactly_the_item_it_is_seen_from(item, grows):
    rng = np.random.default_rng(4)
    vectors, squares = rng.normal(size=(3, 2)), np.array([0.5, 1.0, 2.0])
    growth = np.array([0.3, 0.7]) if grows else np.zeros(0)
    center, scale = np.array([0.1, -0.2]), np.array([1.5, 0.5])
    lens = Lens(vectors, squares, growth, center, scale, 100.0)
    kept = [one for one in range(3) if one != item]
    size = squares[kept].sum()
    divisor = 1 + growth * size if grows else math.sqrt(size)
    expected = (vectors[kept].sum(axis=0) / divisor - center) * scale
    found = np.full(2, np.nan)
    place(lens, np.append(vectors.sum(axis=0), squares.sum()), item, found)
    np.testing.assert_allclose(found, expected, rtol=1e-12)


@compiled
def add_contribution(columns, asked, room, out):
    _add_contribution(columns, asked, room, out)


def told(residuals, lengths, count_part=0.5):
    """Return what one user with two ratings adds to sums, counts and the moment."""
    sums, counts, moment = np.zeros((3, 2), np.int64), np.zeros(3, np.int64), np.zeros((2, 2), np.int64)
    own = np.array([[1.0, 0.5], [1.0, -0.25]])
    products = own.T @ own
    asked = VectorsAsked(np.zeros(3), np.zeros((3, 2)), np.ones(2), np.ones(2), 2.0, np.ones(3), count_part)
    room = Room.of(2, 2)._replace(
        own=own,
        residuals=np.array(residuals),
        lengths=np.array(lengths),
        products=products,
    )
    add_contribution(np.array([0, 2], np.int32), asked, room, Totals(sums, counts, moment))
    return sums, counts, moment


def test_a_user_with_finite_numbers_adds_to_their_own_items_only():
    sums, counts, moment = told([0.5, -1.0], [1.25, 1.0625])
    assert sums[[0, 2]].all() and counts[[0, 2]].all() and np.triu(moment).any()
    assert not sums[1].any() and counts[1] == 0 and moment[1, 0] == 0


@pytest.mark.parametrize(
    ("residuals", "lengths", "count_part"),
    [
        ([math.inf, 1.0], [1.0, 1.0], 0.5),
        ([math.nan, 1.0], [1.0, 1.0], 0.5),
        ([1.0, 1.0], [math.inf, 1.0], 0.5),
        ([1e300, 1.0], [1.0, 1.0], 0.5),
        ([0.0, 0.0], [1.0, 1.0], 0.0),  # no length to divide by
        ([1.0, 1.0], [0.0, 0.0], 0.5),
    ],
)
def test_a_user_whose_numbers_are_not_finite_adds_nothing_at_all(residuals, lengths, count_part):
    """Not even to the parts whose own numbers are finite: a contribution is whole or none."""
    for part in told(residuals, lengths, count_part):
        assert not part.any()
