"""Local models spend exactly what they guarantee, through devices whose mechanism states its own epsilon."""

import math
from dataclasses import replace

import numpy as np
import pytest

from discreet.collect.device import collect_cells
from discreet.collect.estimate import DeviceReports, collect_from
from discreet.collect.gradient_rounds import GradientBits
from discreet.core.randomness import PrivacyRandom
from discreet.data.facts import PublicFacts
from discreet.papers.collection.nuclear import LocalNuclear, LocalNuclearPlain
from discreet.papers.dpimf.neighbors import InteractionBits, ItemNeighbors
from discreet.papers.mixture.channel import LocalChannel
from discreet.papers.mixture.mixture import LocalMixture
from discreet.papers.mixture.private_gradients import PrivateGradients
from discreet.papers.mixture.sgd import LocalSgd
from discreet.privacy.errors import Overspent
from discreet.privacy.mechanisms.local import hidden_numbers, hidden_stars, rating_mechanism, sign_flip
from discreet.privacy.session import Session
from discreet.testing import refuses
from spending import costs_all_of, trained
from toy import toy_interactions

DATA = toy_interactions(n_users=30, n_items=12, per_user=6, seed=2)
COARSE = DATA.with_facts(PublicFacts(n_items=12, low=1.0, high=5.0, step=None))
ESTIMATORS = {
    LocalChannel: ("bounded-laplace", 1),
    LocalMixture: ("bounded-laplace", 1),
    LocalSgd: ("clamped-laplace", 1),
    LocalNuclear: ("hidden-stars", 1),
    LocalNuclearPlain: ("hidden-stars", 1),
    ItemNeighbors: ("sign-flip", 1),
    PrivateGradients: ("sign-flip", 10),
}


@pytest.mark.parametrize("epsilon", [0.3, 1.0, 2.7])
@pytest.mark.parametrize("kind", ESTIMATORS)
def test_spends_what_it_guarantees(kind, epsilon):
    session, _ = trained(kind(epsilon=epsilon), DATA)
    name, releases = ESTIMATORS[kind]
    assert [entry.mechanism for entry in session.log] == [name] * releases
    assert costs_all_of(session, epsilon)
    session.check(kind(epsilon=epsilon).promise(DATA.facts))


def test_numbers_are_hidden_where_the_scale_has_no_steps():
    session, _ = trained(LocalNuclear(epsilon=1.0), COARSE)
    assert [entry.mechanism for entry in session.log] == ["hidden-numbers"] and costs_all_of(session, 1.0)


@pytest.mark.parametrize("kind", ESTIMATORS)
def test_spends_nothing_without_privacy(kind):
    session, _ = trained(kind(epsilon=math.inf), DATA)
    assert not any(entry.scale or entry.epsilon for entry in session.log)


@pytest.mark.parametrize("kind", ESTIMATORS)
def test_devices_that_reveal_a_last_bit_more_are_rejected_before_they_answer(kind, monkeypatch):
    """The twin of every estimator: its devices use a mechanism of another epsilon than the guarantee's."""
    for channel, mechanism in (
        (DeviceReports, "mechanism"),
        (InteractionBits, "flip"),
        (GradientBits, "flip"),
    ):
        more = property(lambda self, name=mechanism: np.nextafter(getattr(self, name).epsilon, 9))
        monkeypatch.setattr(channel, "epsilon", more)
        monkeypatch.setattr(channel, "over", lambda *_: pytest.fail("a device answered"))
    with pytest.raises(Overspent):
        trained(kind(epsilon=1.0), DATA)


@pytest.mark.parametrize("kind", ESTIMATORS)
def test_one_more_answer_is_rejected(kind, monkeypatch):
    plain = Session.perturb

    def twice(self, channel):
        plain(self, channel)
        return plain(self, channel)

    monkeypatch.setattr(Session, "perturb", twice)
    with pytest.raises(Overspent):
        trained(kind(epsilon=1.0), DATA)


def test_one_round_too_many_is_rejected(monkeypatch):
    plain = Session.rounds
    monkeypatch.setattr(Session, "rounds", lambda self, count: (*plain(self, count), *plain(self, 1)))
    with pytest.raises(Overspent):
        trained(PrivateGradients(epsilon=1.0, rounds=4), DATA)


def test_rounds_that_each_cost_the_whole_budget_are_rejected(monkeypatch):
    monkeypatch.setattr(Session, "rounds", lambda self, count: (self,) * count)
    with pytest.raises(Overspent):
        trained(PrivateGradients(epsilon=1.0, rounds=4), DATA)


@pytest.mark.parametrize(
    "channel",
    [
        DeviceReports(
            mechanism=rating_mechanism("bounded-laplace", epsilon=0.7, low=1, high=5, points=241),
            collect=collect_from,
        ),
        DeviceReports(mechanism=hidden_stars(epsilon=0.7, low=1, high=5, step=1), collect=collect_cells),
        DeviceReports(mechanism=hidden_numbers(epsilon=0.7, low=1, high=5), collect=collect_cells),
        InteractionBits(flip=sign_flip(0.7)),
        GradientBits(flip=sign_flip(0.7), items=np.ones((12, 2)), signs=np.ones((3, 12))),
    ],
)
def test_the_cost_of_a_channel_is_its_mechanisms(channel):
    assert channel.epsilon == 0.7
    with pytest.raises((AttributeError, TypeError)):
        channel.epsilon = 0.1


def test_a_device_of_ratings_does_not_serve_a_guarantee_for_users(monkeypatch):
    monkeypatch.setattr(GradientBits, "of", "rating")
    with refuses("wrong-secret", name="sign-flip", of="rating", unit="user"):
        trained(PrivateGradients(epsilon=1.0), DATA)


def test_reports_have_no_times():
    timed = replace(DATA, times=np.arange(DATA.n_ratings))
    mechanism = LocalChannel(epsilon=1.0).mechanism(timed.facts)
    reports = (
        DeviceReports(mechanism=mechanism, collect=collect_from)
        .over(timed, PrivacyRandom.simulate(1))
        .reports
    )
    assert reports.times is None and not np.array_equal(reports.values, timed.values)
    np.testing.assert_array_equal(reports.items, timed.items)
