"""The law of spending finds what it is there for: too much, too little, and settings not declared."""

import dataclasses
from fractions import Fraction
from typing import ClassVar, final

import numpy as np
import pytest

from discreet.core.randomness import PrivacyRandom
from discreet.models.estimator import Estimator
from discreet.models.popularity import Popularity
from discreet.models.scorers.item_item import PopularityScorer
from discreet.models.user_factorization import estimator as flagship
from discreet.models.user_factorization.estimator import UserFactorization
from discreet.privacy.errors import Overspent
from discreet.privacy.session import Session
from discreet.statistics.counts import ItemVotes
from discreet.testing.estimator_contract import (
    cases,
    data_for,
    metered,
    recounted,
    runs_over_parties,
    spends_exactly,
    spends_exactly_at_a_party,
    undeclared,
)
from discreet.testing.small_data import timed_data

SYNTHESIS = UserFactorization(epsilon=1.0, for_synthesis=True)
FADING = UserFactorization(epsilon=1.0, half_life=7.0, now="2000-08-01")


def test_the_twins_spend_exactly_while_they_are_sound():
    for sound in (SYNTHESIS, FADING):
        assert spends_exactly(sound, timed_data()) == ""


def test_histories_released_from_the_models_budget_are_too_much(monkeypatch):
    """Before the session, this change made a label say epsilon 1 where the truth was 1.43."""
    real = Session.split

    def wrong(self, *shares):
        parts = real(self, *shares)
        return (parts[1], parts[1]) if len(parts) == 2 and shares[0] == flagship.HISTORY_SHARE else parts

    monkeypatch.setattr(Session, "split", wrong)
    with pytest.raises(Overspent):
        SYNTHESIS.fit(timed_data())


def test_a_half_life_that_leaves_the_rest_its_whole_budget_is_too_much(monkeypatch):
    """Before the session, this change made a label say epsilon 1 where the truth was 1.078."""
    real = Session.split

    def wrong(self, *shares):
        parts = real(self, *shares)
        return (parts[0], self) if shares[0] == Fraction(15, 100) else parts

    monkeypatch.setattr(Session, "split", wrong)
    with pytest.raises(Overspent):
        FADING.fit(timed_data())


@final
@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Thrifty(Estimator):
    """A model that spends a part of its budget."""

    name: ClassVar[str] = "thrifty"
    feedback = "implicit"
    epsilon: float
    delta: float = 1e-6
    part: float = 0.5

    def rows_needed(self):
        return None

    def promise(self, facts):
        return Popularity(epsilon=self.epsilon).promise(facts)

    def _train(self, session, progress):
        votes = ItemVotes(n_items=session.n_items, norm="l2")
        released = session.gaussian().release(votes, Fraction(str(self.part))).values
        return PopularityScorer(popularity=np.maximum(released, 0.0))


def test_spending_too_little_and_undeclared_settings_are_found():
    assert "never spent" in spends_exactly(Thrifty(epsilon=1.0), timed_data())
    assert spends_exactly(Thrifty(epsilon=1.0, part=1.0), timed_data()) == ""
    Thrifty(epsilon=1.0).fit(timed_data(), random=PrivacyRandom.simulate(0))
    assert undeclared(Thrifty, {}) == {"part"}
    assert undeclared(Thrifty, {"part": [{"part": 1.0}]}) == set()
    assert {one.part for one in cases(Thrifty, {"part": [{"part": 1.0}]})} == {0.5, 1.0}


def test_the_recount_does_not_trust_shares():
    session, promise = metered(FADING, timed_data())
    log = session.log
    assert recounted(log, promise.delta) == pytest.approx(1.0, rel=1e-6)
    louder = [dataclasses.replace(log[0], scale=log[0].scale / 2), *log[1:]]
    assert recounted(louder, promise.delta) > 1.001
    assert recounted(log[:-1], promise.delta) < 0.999


def test_little_noise_reaches_the_routes_of_the_flagship():
    """The law covers embeddings, factors and refits only if some case makes these releases."""
    kinds = {
        one.statistic
        for estimator in cases(UserFactorization, {})
        for one in metered(estimator, data_for(estimator))[0].log
    }
    assert kinds >= {"UserMeans", "ItemResiduals", "CoOccurrence", "OrderEvidence", "ItemVotes", "UserCount"}
    assert kinds >= {"RecentVotes", "RecentResiduals", "HistorySummary", "ContentSimilarity", "ItemContext"}
    assert kinds >= {"ResidualMoment", "ItemVectors"}


def test_a_party_that_spends_too_little_is_found():
    assert runs_over_parties(FADING) and spends_exactly_at_a_party(FADING, timed_data()) == ""
    assert "the log costs" in spends_exactly_at_a_party(Thrifty(epsilon=1.0), timed_data())
