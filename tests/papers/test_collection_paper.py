"""The collection paper's worlds have the rank they claim, and its sharp bounds are those of draws."""

import numpy as np
import pytest

from discreet.collect.hidden_items import cell_mechanism
from discreet.reproduce import collection


@pytest.mark.parametrize("kind", ["stars", "numbers"])
def test_the_true_matrix_has_rank_two_without_clipping(kind):
    world = collection.make_world(kind, seed=3, users=40, items=30)
    low, high = world.data.facts.low, world.data.facts.high
    assert np.linalg.matrix_rank(world.truth) == 2
    assert low <= world.truth.min() and world.truth.max() <= high
    clipped = np.clip(1.5 * (world.truth - world.truth.mean()) + world.truth.mean(), low, high)
    assert np.linalg.matrix_rank(clipped) > 2


@pytest.mark.few(1)
@pytest.mark.parametrize("kind", ["stars", "numbers"])
def test_moments_of_the_misfit_are_those_of_draws(kind):
    """Mean and spread of 200 draws fit their own epsilon, and not a neighboring one."""
    world = collection.make_world(kind, seed=0, users=30, items=25)
    mechanism, other = (cell_mechanism(epsilon, world.data.facts) for epsilon in (2.0, 2.3))
    squares = collection.misfits(world, mechanism, 200) ** 2

    def off(moments):
        return abs(squares.mean() - moments.mean) / np.sqrt(moments.variance / squares.size)

    told = collection.misfit_moments(mechanism, world)
    assert off(told) < 4 < off(collection.misfit_moments(other, world))
    assert 0.7 < squares.var() / told.variance < 1.4


def test_the_largest_loss_of_a_cell_is_epsilon():
    for kind in ("stars", "numbers"):
        facts = collection.make_world(kind, seed=0, users=3, items=4).data.facts
        assert collection.largest_loss(cell_mechanism(2.0, facts)) == pytest.approx(2.0, rel=1e-6)
