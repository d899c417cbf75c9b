"""Parts of a budget: exactly the whole where floats allow it, and never more."""

from fractions import Fraction

import pytest

from discreet.models.private_facts import PrivateFacts
from discreet.papers.mixture.private_gradients import PrivateGradients


@pytest.mark.parametrize(("epsilon", "rounds"), [(1.0, 4), (0.75, 3), (8.0, 1), (1.0, 64)])
def test_rounds_that_divide_a_budget_use_all_of_it(epsilon, rounds):
    assert PrivateGradients(epsilon=epsilon, rounds=rounds).share() == epsilon / rounds


@pytest.mark.parametrize("rounds", range(2, 60, 3))
def test_rounds_together_never_cost_more_than_the_budget(rounds):
    for epsilon in (0.1, 0.3, 1.0, 1.7, 5.0):
        share = Fraction(PrivateGradients(epsilon=epsilon, rounds=rounds).share())
        assert Fraction(epsilon) * (1 - Fraction(1, 2**50)) <= share * rounds <= Fraction(epsilon)


def test_a_catalog_alone_takes_the_whole_share_and_leaves_a_quarter_to_a_scale():
    alone = PrivateFacts.share_of(0.5, 2.0, 1e-6, scale=False)
    assert alone.scale is None
    assert (alone.catalog.epsilon, alone.catalog.delta) == (1.0, 5e-7)
    both = PrivateFacts.share_of(0.5, 2.0, 1e-6, scale=True)
    assert (both.catalog.epsilon, both.scale.epsilon, both.catalog.delta) == (0.75, 0.25, 5e-7)
    assert both.epsilon == alone.epsilon == 1.0 and both.delta == alone.delta == 5e-7
