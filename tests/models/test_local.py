"""Models of ratings that nobody saw: what they promise, what they read, and what they are worth."""

import math
from dataclasses import replace

import numpy as np
import pytest

import discreet
from assumption_examples import stated
from discreet.collect.campaign import Campaign
from discreet.collect.collector import Collector
from discreet.collect.device import Device
from discreet.collect.errors import DifferentEpsilon, WrongReports
from discreet.collect.estimate import collect_from
from discreet.core.checks import ParameterError
from discreet.core.randomness import PrivacyRandom
from discreet.data.facts import PublicFacts
from discreet.data.splits import random_split
from discreet.data.vocabulary import Vocabulary
from discreet.evaluation.scoring import measure
from discreet.models.local import CellEstimator
from discreet.models.scorers.factors import RatingScorer
from discreet.models.scorers.local import LocalScorer
from discreet.models.scorers.scorer import without_history
from discreet.papers.collection.nuclear import LocalNuclear, LocalNuclearPlain
from discreet.papers.dpimf.neighbors import ItemNeighbors
from discreet.papers.mixture.channel import LocalChannel
from discreet.papers.mixture.mixture import LocalMixture
from discreet.papers.mixture.private_gradients import PrivateGradients
from discreet.papers.mixture.sgd import LocalSgd
from discreet.papers.one_bit.estimators import OneBitInput
from discreet.privacy.guarantee import Fact, Guarantee, Kind, Neighbors, Trust, Unit
from discreet.privacy.mechanisms.bounded import BoundedLaplace, ClampedLaplace
from discreet.report.guarantee_wording import against
from discreet.testing import refuses
from toy import toy_interactions

LOCAL = [LocalChannel, LocalMixture, LocalSgd]


@pytest.fixture(scope="module")
def data():
    return toy_interactions(n_users=200, per_user=20, seed=2)


def fit(estimator, data, seed=1):
    return estimator.fit(data, random=PrivacyRandom.simulate(seed))


@pytest.mark.parametrize("kind", LOCAL)
def test_promises_epsilon_a_rating_against_the_collector(kind):
    promise = kind(epsilon=0.5).promise(PublicFacts(n_items=10))
    assert promise.definition == (Unit.VALUE, Neighbors.REPLACE, Trust.LOCAL)
    assert promise.epsilon == 0.5 and promise.delta == 0


@pytest.mark.parametrize("kind", [*LOCAL, LocalNuclear, PrivateGradients, OneBitInput, ItemNeighbors])
def test_a_fit_says_that_it_read_the_raw_ratings(kind):
    promise = kind(epsilon=0.5).promise(PublicFacts(n_items=10))
    assert promise.reads_raw_ratings and promise.to_json()["read_raw_ratings"]
    collected = replace(promise, assumes=[one for one in promise.assumes if one.kind is not Kind.RAW])
    assert against(promise) != against(collected) and not collected.reads_raw_ratings
    assert Guarantee.from_json(promise.to_json()) == promise


@pytest.mark.parametrize(
    ("settings", "facts", "count"),
    [({}, {}, 50), ({}, {"max_per_user": 20}, 20), ({"ratings_per_user": 65}, {"max_per_user": 100}, 65)],
)
def test_label_says_what_it_means_for_a_person(settings, facts, count):
    promise = LocalChannel(epsilon=0.5, **settings).promise(PublicFacts(n_items=10, **facts))
    assert any(f"{count} ratings" in note and f"epsilon = {count * 0.5:g}" in note for note in promise.notes)


def test_private_gradients_protect_the_whole_history():
    estimator = PrivateGradients(epsilon=1.0, rounds=3)
    promise = estimator.promise(PublicFacts(n_items=10))
    assert promise.definition == (Unit.USER, Neighbors.REPLACE, Trust.LOCAL)
    assert math.fsum([estimator.share()] * 3) <= 1.0
    assert len(estimator.events(PublicFacts(n_items=10))) == 3
    assert estimator.sent_bytes(1682) == {"up": 15, "down": 3 * 5 * 4 * 1682}


@pytest.mark.parametrize("kind", LOCAL)
def test_learns_from_reports_and_nothing_else(kind, data, monkeypatch):
    """Swap the ratings for others behind the same reports: the model must not notice."""
    reports = collect_from(data, kind(epsilon=2.0).mechanism(data.facts), PrivacyRandom.simulate(4))
    monkeypatch.setattr(kind, "collect", staticmethod(lambda *_: reports))
    plain = fit(kind(epsilon=2.0), data)
    other = fit(kind(epsilon=2.0), data.with_values(6 - data.values))
    rows, items = np.arange(50), np.arange(50) % 40
    np.testing.assert_array_equal(plain.predict(data, rows, items), other.predict(data, rows, items))


@pytest.mark.parametrize("kind", LOCAL)
def test_people_of_the_collection_are_predicted_without_their_ratings(kind, data):
    model = fit(kind(epsilon=3.0), data)
    assert isinstance(model.scorer, LocalScorer)
    rows, items = np.arange(60) % 30, np.arange(60) % 40
    blind = data.with_values(np.full(data.n_ratings, 3.0))
    np.testing.assert_array_equal(model.predict(data, rows, items), model.predict(blind, rows, items))
    np.testing.assert_array_equal(model.scores(data, rows), model.scores(blind, rows))


@pytest.mark.parametrize("kind", LOCAL)
def test_people_without_ids_are_predicted_from_reports_also_where_some_are_asked_for(kind, data):
    unnamed = replace(data, users=Vocabulary.range(data.n_users))
    model = fit(kind(epsilon=3.0), unnamed)
    rows, items = np.arange(60) % 30, np.arange(60) % 40
    blind = unnamed.with_values(np.full(data.n_ratings, 3.0))
    np.testing.assert_array_equal(model.predict(unnamed, rows, items), model.predict(blind, rows, items))
    np.testing.assert_array_equal(model.scores(unnamed, rows), model.scores(blind, rows))
    # The twin: fewer people than took part are strangers, and their own ratings count.
    some, blind = (each.select_users(np.arange(30)) for each in (unnamed, blind))
    assert not np.array_equal(model.predict(some, rows, items), model.predict(blind, rows, items))


@pytest.mark.parametrize("kind", LOCAL)
def test_a_stranger_is_folded_in_on_the_own_device(kind, data):
    # One factor is the mean; a second one holds the taste.
    settings = {"factors": 3} if kind is LocalMixture else {}
    model = fit(kind(epsilon=math.inf, **settings), data)
    span = slice(*data.indptr[:2])
    ids = data.catalog.id_at(data.items[span]).tolist()
    history = dict(zip(ids, data.values[span].tolist(), strict=True))
    best = model.recommend(history, k=10, rank_by="stars")
    liked = {item for item, rating in history.items() if rating >= 4}
    even = {item for item in data.catalog.ids.tolist() if int(item[-2:]) % 2 == 0}
    taste = even if len(liked & even) * 2 > len(liked) else set(data.catalog.ids.tolist()) - even
    assert sum(item in taste for item, _ in best) >= 8
    assert model.fold_in({}).shape == (model.scorer.user_vectors.shape[1],)


@pytest.mark.parametrize(
    "estimator",
    [
        LocalChannel(epsilon=math.inf),
        LocalMixture(epsilon=math.inf),
        LocalMixture(epsilon=math.inf, solver="weighted-pca"),
        LocalSgd(epsilon=math.inf),
        LocalNuclear(epsilon=math.inf),
        LocalNuclearPlain(epsilon=math.inf),
    ],
    ids=lambda one: f"{one.name} {getattr(one, 'solver', '')}",
)
def test_a_user_without_a_history_gets_the_predictions_of_the_mean_participant(estimator, data):
    model, everyone = estimator.fit(data), np.arange(data.n_items)
    rows = np.repeat(np.arange(data.n_users), data.n_items)
    usual = model.scorer.expected_stars(data, rows, np.tile(everyone, data.n_users))
    usual = usual.reshape(data.n_users, -1).mean(axis=0)
    nobody = model.scorer.device.predict(without_history(data.select_users([0])), 0 * everyone, everyone)
    # The twin: a prior at zero predicts the lowest rating, which is a third of the scale away.
    assert np.abs(nobody - usual).mean() < 0.1 * (data.facts.high - data.facts.low)
    assert np.abs(data.facts.low - usual).mean() > 0.3 * (data.facts.high - data.facts.low)


@pytest.mark.thorough
def test_the_channel_beats_the_others_and_epsilon_helps(data):
    split = random_split(data, 0.2, 1)
    scores = {}
    for kind in LOCAL:
        for epsilon in (1.0, 8.0):
            errors = [
                measure(fit(kind(epsilon=epsilon), split.train, seed), split.train, split.test, "rmse")[
                    "rmse"
                ]
                for seed in range(3)
            ]
            scores[kind, epsilon] = np.mean(errors)
    for kind in LOCAL:
        assert scores[kind, 8.0] < scores[kind, 1.0]
    for kind in (LocalMixture, LocalSgd):
        assert scores[LocalChannel, 1.0] < scores[kind, 1.0]
        assert scores[LocalChannel, 8.0] < scores[kind, 8.0]


def campaign(data, mechanism, max_reports=20):
    return Campaign(
        name="toy", mechanism=mechanism, catalog=data.catalog, max_reports=max_reports, step=data.facts.step
    )


def collect(data, asked, random=None):
    collector = Collector(asked)
    for row in range(data.n_users):
        span = slice(*data.indptr[row : row + 2])
        history = dict(
            zip(data.catalog.id_at(data.items[span]).tolist(), data.values[span].tolist(), strict=True)
        )
        collector.receive(Device(asked, budget=1e6, random=random).message(history))
    return collector.collected()


def test_fits_reports_of_a_campaign_without_paying_again(data, tmp_path):
    asked = campaign(data, BoundedLaplace(epsilon=3.0, low=1, high=5, points=241))
    collected = collect(data, asked)
    model = LocalChannel(epsilon=3.0).fit_reports(collected)
    assert model.guarantee.is_private and model.guarantee.definition == asked.guarantee().definition
    assert model.guarantee.epsilon == 3.0
    assert (Kind.USE, Fact.DEVICES) in stated(model.guarantee)
    # Only the devices saw ratings here.
    assert not model.guarantee.reads_raw_ratings and not model.guarantee.to_json()["read_raw_ratings"]
    assert any("20 ratings" in note and "epsilon = 60" in note for note in model.guarantee.notes)
    taste = model.predict(collected.reports, collected.reports.rows(), collected.reports.items)
    rows, items = np.repeat(np.arange(200), 20), data.items
    assert np.corrcoef(taste, np.where(rows % 2 == items % 2, 1, -1))[0, 1] > 0.5
    model.save(tmp_path / "m.discreet")
    again = discreet.load(tmp_path / "m.discreet")
    np.testing.assert_array_equal(
        again.predict(collected.reports, [0, 1], [2, 3]), model.predict(collected.reports, [0, 1], [2, 3])
    )


def test_reports_of_another_epsilon_or_mechanism_are_refused(data):
    clamped = collect_from(
        data, ClampedLaplace(epsilon=1.0, low=1, high=5, points=241), PrivacyRandom.simulate(1)
    )
    with pytest.raises(DifferentEpsilon):
        LocalChannel(epsilon=2.0).fit_reports(clamped)
    with pytest.raises(WrongReports):
        LocalMixture(epsilon=1.0).fit_reports(clamped)
    model = LocalChannel(epsilon=1.0).fit_reports(clamped)
    assert model.guarantee.simulated
    assert LocalSgd(epsilon=1.0).fit_reports(clamped).guarantee.simulated


@pytest.mark.parametrize("kind", [*LOCAL, PrivateGradients])
def test_a_scale_of_one_value_is_refused(kind, data):
    flat = data.with_facts(PublicFacts(n_items=data.n_items, low=3, high=3))
    with refuses("scale-too-small", low=3.0, high=3.0):
        fit(kind(epsilon=1.0), flat)


@pytest.mark.parametrize(
    ("kind", "change"),
    [
        (LocalChannel, {"factors": -1}),
        (LocalChannel, {"spread": 0.0}),
        (LocalChannel, {"epsilon": 1e-9}),
        (LocalChannel, {"ratings_per_user": 0}),
        (LocalMixture, {"components": 0}),
        (LocalMixture, {"regularization": 0.0}),
        (LocalSgd, {"rate": 0.0}),
        (LocalSgd, {"epochs": 0}),
        (PrivateGradients, {"rounds": 0}),
        (PrivateGradients, {"epsilon": 1e-6}),
    ],
)
def test_bad_settings_are_refused(kind, change):
    with pytest.raises(ParameterError):
        kind(**{"epsilon": 1.0, **change})


def test_private_gradients_learn_without_noise(data):
    split = random_split(data, 0.2, 1)
    errors = [
        measure(
            fit(PrivateGradients(epsilon=math.inf, rounds=rounds, rate=3.0), split.train),
            split.train,
            split.test,
            "rmse",
        )["rmse"]
        for rounds in (1, 40)
    ]
    assert errors[1] < errors[0]


@pytest.mark.parametrize(("low", "high"), [(-2.5, 2.5), (0.0, 1.0), (-5.0, -1.0)])
def test_a_scale_may_lie_anywhere_and_its_width_counts(low, high, data):
    """A wide sum of both ends, or none, says nothing about the width."""
    moved = data.with_values(
        low + (high - low) * (data.values - 1) / 4, replace(data.facts, low=low, high=high)
    )
    CellEstimator._refuse(LocalNuclear(epsilon=1.0), moved)
    wide = moved.with_facts(replace(data.facts, low=-1e25, high=1e25))
    with refuses("scale-too-wide", width=2e25):
        CellEstimator._refuse(LocalNuclear(epsilon=1.0), wide)


def test_all_who_took_part_are_known_and_nobody_else():
    device = RatingScorer(
        low=1.0,
        high=5.0,
        popularity=np.ones(2),
        item_bias=np.zeros(2),
        item_factors=np.zeros((2, 1)),
        ridge=np.ones(2),
        mean=3.0,
    )
    people = Vocabulary.of(["ann", "bob", "cyd"])
    scorer = LocalScorer.of(people, np.zeros((3, 2)), device)
    assert [scorer.knows(name) for name in ("ann", "bob", "cyd", "dan")] == [True, True, True, False]
