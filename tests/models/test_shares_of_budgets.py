"""Parts of a budget: exactly the whole where floats allow it, and never more."""

import math
from dataclasses import replace
from fractions import Fraction

import pytest

from assumption_examples import stated
from discreet.models.popularity import Popularity
from discreet.models.private_catalog import PrivateFacts, whole_promise
from discreet.models.user_factorization.settings import BudgetShares, FactorizationSettings, refits
from discreet.papers.mixture.private_gradients import PrivateGradients
from discreet.privacy.guarantee import Fact, Kind
from discreet.testing import refuses
from toy import toy_interactions


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


def test_shares_of_a_part_of_the_budget_are_that_part_of_the_shares():
    whole = BudgetShares.of(FactorizationSettings())
    half = whole.scaled(Fraction(1, 2))
    for name in ("effects", "pilot_moment", "co_occurrences", "embeddings"):
        assert 2 * getattr(half, name) == getattr(whole, name)
    assert (half.moment, half.factor_moment) == (whole.moment, whole.factor_moment)


@pytest.mark.parametrize(("purpose", "effects"), [("both", 0.27 * 7 / 24), ("ratings", 0.175)])
def test_effects_get_the_same_part_of_what_lists_leave(purpose, effects):
    shares = BudgetShares.of(FactorizationSettings(), purpose)
    assert math.isclose(shares.effects, effects)
    left = 1 - shares.co_occurrences - shares.embeddings
    assert math.isclose(shares.effects / left, 7 / 24)


@pytest.mark.parametrize(
    ("strong", "ratio", "times"), [(False, 0.0, 1), (True, 0.0, 2), (False, math.inf, 3)]
)
def test_item_vectors_are_refitted_more_often_with_less_noise(strong, ratio, times):
    assert refits(strong, ratio, FactorizationSettings()) == times


@pytest.mark.parametrize(("epsilon", "delta"), [(1.0, 0.0), (math.inf, 1e-6)])
def test_a_selection_needs_a_delta_and_a_guarantee(epsilon, delta):
    with refuses("selection-needs-budget"):
        PrivateFacts.share_of(0.5, epsilon, delta, scale=False)


def test_the_guarantee_on_synthetic_data_states_what_they_were_drawn_from():
    data, model = toy_interactions(), Popularity(epsilon=1.0)
    plain = whole_promise(model, data, PrivateFacts())
    assert (Kind.SYNTHETIC, Fact.DATA) not in stated(plain)
    drawn = whole_promise(model, replace(data, origin="epsilon 1"), PrivateFacts())
    assert stated(drawn)[Kind.SYNTHETIC, Fact.DATA] == {"origin": "epsilon 1"}
