"""The attack on synthetic data: sound releases stand, and data that copy users are found out."""

import numpy as np
import pytest

from discreet import Popularity, UserFactorization
from discreet.audit import full
from discreet.audit.full import play_view, views_of
from discreet.audit.synthetic import NearestNeighborAttack, similar_canaries
from discreet.core.randomness import experiment_generator
from discreet.testing import refuses


class Copying(NearestNeighborAttack):
    """A twin that publishes real users, with one of their items left out at random."""

    def synthetic(self, data, seed):
        draw = experiment_generator(seed, "copies")
        return data.where(draw.random(data.n_ratings) > 0.2)


def played(attack, monkeypatch, epsilon=1.0, feedback="implicit"):
    monkeypatch.setattr(full, "_MIRRORED", 3)
    monkeypatch.setattr(full, "_FEWEST_FITS", 10)
    monkeypatch.setattr(full, "NearestNeighborAttack", attack)
    estimator = UserFactorization(epsilon=epsilon, feedback=feedback)
    return play_view("user-factorization", estimator, "synthetic", seconds=0.0)


@pytest.mark.few(1)
@pytest.mark.parametrize("feedback", ["implicit", "explicit"])
def test_a_sound_release_is_not_refuted(monkeypatch, feedback):
    found = played(NearestNeighborAttack, monkeypatch, feedback=feedback)
    assert found.verdict == "not refuted" and found.attack == "synthetic" and found.fits >= 16
    assert max(found.refuted, found.curve) < 1.0


def test_copied_users_are_found_out(monkeypatch):
    found = played(Copying, monkeypatch)
    assert found.verdict == "refuted" and found.refuted > 2.0


def test_the_attacker_sees_members_of_a_copy():
    estimator = UserFactorization(epsilon=1.0, feedback="implicit")
    game = Copying(estimator, similar_canaries(estimator), lessons=2, seed=0).play(7)
    assert np.mean((game.scores > 0) == game.truth) > 0.95


def test_only_models_with_synthetic_data_have_this_view():
    assert "synthetic" in views_of(UserFactorization(epsilon=1.0))
    assert "synthetic" not in views_of(Popularity(epsilon=1.0))
    with refuses("not-auditable", model="popularity", view="synthetic data"):
        play_view("popularity", Popularity(epsilon=1.0), "synthetic")
