"""Fits that overspend, with the session's own checks switched off: the checker alone must notice.

Two wrong changes once survived the whole suite. `for_synthesis` released histories with the model's share of
the budget, and `half_life` left the model the share that the release of recent ratings had spent.
"""

from fractions import Fraction
from functools import cache

import pytest
from discreet_verify import main

import discreet
from discreet.models.released_items import RecentReleases
from discreet.models.user_factorization.estimator import (
    HISTORY_SHARE,
    UserFactorization,
    learn_ratings,
    release_histories,
)
from discreet.privacy.errors import Overspent
from discreet.privacy.session import Session, share
from discreet.statistics.counts import Recency
from golden.cases import users_in_groups


@cache
def data():
    """Return the ratings; on import nothing is computed."""
    return users_in_groups(n_users=300)


def histories_with_the_share_of_the_model(self, session, progress):
    """Train as `_train` does, but release histories with the model's share."""
    histories, model = self.metered(session).split(1 - HISTORY_SHARE, 1 - HISTORY_SHARE)
    released = release_histories(histories, rated=self.predicts_ratings)
    return self._learn(model, progress).with_parts(**released.fields())


def recent_ratings_on_top(self, session, progress):
    """Learn as `_learn` does, but with the whole budget after a part of it was given away."""
    fading, whole = session.split(share(self.tuned.recent_share), Fraction(1))
    recent = RecentReleases(recency=recency(self), session=fading)
    return learn_ratings(whole, None, progress, self.tuned, purpose=self.purpose, words=None, recent=recent)


def recency(model):
    from discreet.models.user_factorization.estimator import recency_of

    found = recency_of(model.half_life, model.now)
    assert isinstance(found, Recency)
    return found


MUTANTS = {
    "histories": ("_train", histories_with_the_share_of_the_model, {"for_synthesis": True}),
    "half-life": ("_learn", recent_ratings_on_top, {"half_life": 30.0, "now": "1970-01-02"}),
}


def reserve_without_a_limit(self, *shares):
    """Take shares off what is left, or hand them out all the same."""
    if sum(shares) <= self._left:
        self._left -= sum(shares)


def switch_checks_off(monkeypatch):
    monkeypatch.setattr(Session, "_reserve", reserve_without_a_limit)
    monkeypatch.setattr(Session, "check", lambda self, guarantee: None)


def fitted(settings, path):
    discreet.UserFactorization(epsilon=1.0, delta=1e-6, **settings).fit(data()).save(path)
    return path


@pytest.mark.parametrize("name", MUTANTS)
def test_the_checker_rejects_a_fit_that_spends_more_than_its_label(name, tmp_path, monkeypatch, capsys):
    method, wrong, settings = MUTANTS[name]
    switch_checks_off(monkeypatch)
    assert main([str(fitted(settings, tmp_path / "right.discreet"))]) == 0
    monkeypatch.setattr(UserFactorization, method, wrong)
    assert main([str(fitted(settings, tmp_path / "wrong.discreet"))]) == 1
    assert "cost more" in capsys.readouterr().out


@pytest.mark.parametrize("name", MUTANTS)
def test_with_its_checks_the_session_returns_no_such_model(name, tmp_path, monkeypatch):
    method, wrong, settings = MUTANTS[name]
    monkeypatch.setattr(UserFactorization, method, wrong)
    with pytest.raises(Overspent):
        fitted(settings, tmp_path / "wrong.discreet")
