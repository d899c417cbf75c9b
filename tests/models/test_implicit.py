"""The implicit objective: what one person can move, what noise costs, and that it learns taste."""

import dataclasses
import math
from fractions import Fraction

import numpy as np
import pytest

from budgets import budget
from discreet.core.checks import ParameterError
from discreet.core.randomness import PrivacyRandom
from discreet.data.facts import PublicFacts
from discreet.data.interactions import Interactions
from discreet.papers.dpimf import item_solves as items_of
from discreet.papers.dpimf.implicit_objective import ImplicitObjective, SampledTerms
from discreet.privacy.accounting.accountant import epsilon_at
from discreet.privacy.mechanisms.additive import Laplace
from discreet.privacy.session import Session
from discreet.statistics import profiles as party
from discreet.statistics.statistic import rows_of
from discreet.testing import refuses

LOSSES = ["shared", "symmetric", "complementary", "strawman"]


def choices(n_users=300, n_items=40, seed=0, *, groups=2, heavy=True) -> Interactions:
    """Return choices of people who prefer one of two groups of items; one person chose nearly everything."""
    rng = np.random.default_rng(seed)
    users, items = [], []
    for person in range(n_users):
        weight = np.where(np.arange(n_items) % groups == person % groups, 8.0, 1.0) * np.linspace(
            3, 1, n_items
        )
        count = n_items - 1 if heavy and person == 0 else int(rng.integers(1, 12))
        chosen = rng.choice(n_items, count, replace=False, p=weight / weight.sum())
        users += [person] * count
        items += chosen.tolist()
    return Interactions.from_arrays(
        np.array(users), np.array(items), facts=PublicFacts(n_items=n_items, low=1, high=1), name="choices"
    )


def profiles_for(data: Interactions, factors=3, seed=1, *, growing=False) -> party.Profiles:
    rng = np.random.default_rng(seed)
    return party.Profiles(
        vectors=rng.standard_normal((data.n_items, factors)) * 3,
        squares=rng.uniform(0.1, 1, data.n_items),
        center=rng.standard_normal(factors) * 0.1,
        scale=np.full(factors, 1.5),
        clip=math.sqrt(factors + 2),
        growth=np.full(factors, 0.7) if growing else np.zeros(0),
    )


def ask(data: Interactions, loss: str, norm: str, factors=3) -> party.ProfileQuestion:
    _, pairs = ImplicitObjective(epsilon=1.0, loss=loss).objective(factors)
    favor = items_of.Favor(votes=np.linspace(1, 50, data.n_items), noise=1.0, people=300.0)
    return items_of.question(favor, factors, pairs, norm)


def told_by_all(data: Interactions, loss: str, norm: str, *, growing: bool) -> dict[str, np.ndarray]:
    profiles = profiles_for(data, growing=growing)
    return {
        "votes": votes_of(data, norm),
        "moment": data.total(
            party.StartMoment(items=np.arange(3, 30), item_weights=np.linspace(1, 2, data.n_items), norm=norm)
        ).floats(),
        "gram": data.total(party.ProfileGram(profiles=profiles, norm=norm)).floats(),
        "linear": terms_of(data, profiles, ask(data, loss, norm)),
    }


def votes_of(data, norm):
    return data.total(party.ProfileVotes(n_items=data.n_items, norm=norm)).floats()


def terms_of(data, profiles, asked):
    return data.total(party.LinearTerms(profiles=profiles, question=asked)).floats()


@pytest.mark.few(8)
@pytest.mark.parametrize("growing", [False, True])
@pytest.mark.parametrize("norm", ["l1", "l2"])
@pytest.mark.parametrize("loss", LOSSES)
def test_nobody_moves_a_release_by_more_than_one(loss, norm, growing):
    data = choices(n_users=60)
    whole = told_by_all(data, loss, norm, growing=growing)
    for person in range(0, 60, 4):
        without = told_by_all(
            data.select_users(np.flatnonzero(np.arange(60) != person)), loss, norm, growing=growing
        )
        for name, total in whole.items():
            moved = (total - without[name]).ravel()
            length = np.abs(moved).sum() if norm == "l1" else np.linalg.norm(moved)
            assert length <= 1.0, name
            # The bound is used: a looser one would add more noise than needed.
            if name in ("votes", "linear"):
                assert length > 0.99


def test_sums_of_parties_are_the_sum_of_all_exactly():
    data = choices()
    parts = [data.select_users(np.arange(a, a + 100)) for a in (0, 100, 200)]
    whole = told_by_all(data, "shared", "l2", growing=False)
    split = [told_by_all(part, "shared", "l2", growing=False) for part in parts]
    for name, total in whole.items():
        np.testing.assert_array_equal(sum(part[name] for part in split), total)


def test_a_profile_leaves_out_the_item_it_is_told_to():
    data = choices(n_users=50)
    profiles = profiles_for(data)
    asked = dataclasses.replace(ask(data, "shared", "l2"), item_weights=np.ones(data.n_items))
    told = terms_of(data, profiles, asked)
    item, expected = 5, np.zeros(3)
    dense = data.to_scipy().toarray() > 0
    for person in np.flatnonzero(dense[:, item]):
        row = data.select_users(np.array([person]))
        norm = party.norms_of_all(row, profiles, asked)[0]
        if dense[person].sum() > 1:
            expected += profiles.places(rows_of(row.where(row.items != item)))[0] / norm
    np.testing.assert_allclose(told[item, 1:], expected, atol=1e-5)


def test_profiles_never_exceed_their_length():
    data = choices()
    for growing in (False, True):
        profiles = profiles_for(data, growing=growing)
        lengths = np.linalg.norm(profiles.places(rows_of(data)), axis=1)
        assert lengths.max() == pytest.approx(profiles.lens.clip)


@pytest.mark.parametrize("clip", [0.5, 2.5])
def test_only_profiles_that_are_too_long_are_shortened(clip):
    """Each user has one item of known length: inside it stays as it is, outside it ends at the clip."""
    lengths = clip * np.array([0.0, 0.2, 0.9, 1.1, 30.0])
    vectors = lengths[:, None] * np.array([0.6, -0.8])
    alone = Interactions.from_arrays(
        np.arange(5), np.arange(5), facts=PublicFacts(n_items=5, low=1, high=1), name="one item each"
    )
    profiles = party.Profiles(
        vectors=vectors, squares=np.ones(5), center=np.zeros(2), scale=np.ones(2), clip=clip
    )
    found = profiles.places(rows_of(alone))
    np.testing.assert_allclose(found, np.minimum(lengths, clip)[:, None] * np.array([0.6, -0.8]), rtol=1e-12)


@pytest.mark.parametrize("rounds", [1, 3])
@pytest.mark.parametrize("delta", [0.0, 1e-5])
@pytest.mark.parametrize("shows", [True, False])
def test_all_releases_of_both_routes_cost_exactly_the_budget(delta, rounds, shows, monkeypatch):
    """Noisy votes decide the route; both spend all of the budget, and no more."""
    monkeypatch.setattr(items_of, "shows_factors", lambda *_: shows)
    model = ImplicitObjective(epsilon=2.0, delta=delta, rounds=rounds).fit(choices(n_users=200))
    assert sum(one.share for one in model.releases) == 1
    assert len(model.releases) == (2 + 2 * rounds if shows else 2)
    assert {one.mechanism for one in model.releases} == {"gaussian" if delta else "laplace"}


def test_events_recount_to_the_promise():
    events = ImplicitObjective(epsilon=1.5, delta=1e-6).events(PublicFacts(n_items=40))
    assert 1.49 < epsilon_at(events, 1e-6) <= 1.5


def hits(model, data, groups=2) -> float:
    """Return how often an unseen item of the person's own group is ranked first."""
    scores = model.scores(data, np.arange(data.n_users)).astype(np.float64)
    scores[data.rows(), data.items] = -np.inf
    best = scores.argmax(axis=1)
    return float(np.mean(best % groups == np.arange(data.n_users) % groups))


def test_learns_taste_without_noise_and_with_a_little():
    data = choices(n_users=1500, heavy=False)
    plain = ImplicitObjective(epsilon=math.inf).fit(data)
    assert plain.scorer.item_factors.shape[1] >= 1 and hits(plain, data) > 0.8
    noisy = ImplicitObjective(epsilon=8.0).fit(data, random=PrivacyRandom.simulate(0))
    assert noisy.scorer.item_factors.shape[1] >= 1 and hits(noisy, data) > 0.7


@pytest.mark.few(4)
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_every_loss_gives_finite_scores_and_the_plain_ones_learn(loss, delta):
    data = choices(n_users=600, heavy=False)
    noisy = ImplicitObjective(epsilon=30.0, delta=delta, loss=loss, rounds=2).fit(
        data, random=PrivacyRandom.simulate(1)
    )
    assert np.isfinite(noisy.scores(data, np.arange(20))).all()
    plain = ImplicitObjective(epsilon=math.inf, loss=loss, rounds=2).fit(data)
    assert hits(plain, data) > 0.8


def test_too_little_budget_for_taste_goes_to_popularity():
    data = choices(n_users=200, heavy=False)
    model = ImplicitObjective(epsilon=0.5).fit(data, random=PrivacyRandom.simulate(2))
    assert model.scorer.item_factors.shape == (data.n_items, 0)
    scores = model.scores(data, np.arange(5))
    np.testing.assert_array_equal(scores, np.broadcast_to(scores[0], scores.shape))
    assert np.unique(scores[0]).size == data.n_items


def test_factors_are_capped():
    data = choices(n_users=1500, groups=4, heavy=False)
    model = ImplicitObjective(epsilon=math.inf, factors=2).fit(data)
    assert model.scorer.item_factors.shape[1] == 2


@pytest.mark.thorough
def test_importance_sampling_is_unbiased_and_reads_fewer_people():
    data = choices(n_users=400, n_items=12)
    profiles, noise = profiles_for(data), Laplace.calibrated(epsilon=1.0, l1_sensitivity=1.0)
    asked = ask(data, "shared", "l1")
    terms = SampledTerms(profiles=profiles, question=asked)
    sessions = (Session.open(data, budget(1.0), PrivacyRandom.simulate(seed)) for seed in range(400))
    draws = np.array([one.laplace().sampled(terms, Fraction(1), max_weight=8.0).values for one in sessions])
    norms = party.norms_of_all(data, profiles, asked)
    bound = np.mean(asked.item_weights) * (asked.count_part + 3) * 64
    weights = np.minimum(norms / bound, 1.0) / norms
    honest = party.weighted_terms(data, profiles, asked, weights) / 2.0**24
    error = np.abs(draws.mean(axis=0) - honest)
    # Six deviations of a mean of 400; twice the noise's own variance covers what sampling adds.
    assert error.max() < 6 * math.sqrt(2 * noise.variance / 400) + 0.02
    twin = np.abs(draws.mean(axis=0) - terms_of(data, profiles, asked))
    assert twin.max() > 6 * math.sqrt(2 * noise.variance / 400) + 0.02


def test_importance_sampling_fits_and_needs_a_pure_promise(monkeypatch):
    data = choices(n_users=300)
    monkeypatch.setattr(items_of, "shows_factors", lambda *_: True)
    options = {"epsilon": 30.0, "delta": 0.0, "importance_sampling": True}
    model = ImplicitObjective(**options).fit(data, random=PrivacyRandom.simulate(3))
    assert np.isfinite(model.scores(data, np.arange(4))).all()
    with refuses("broken-rule", name="importance_sampling"):
        ImplicitObjective(epsilon=1.0, delta=1e-6, importance_sampling=True)


def test_people_are_counted_with_noise_only():
    told = votes_of(choices(n_users=250), "l2")
    assert items_of.read_votes(told, 0.0).people == pytest.approx(250, rel=1e-6)
    assert items_of.read_votes(told * 0, 3.0).people >= 1


def test_covariance_follows_the_gram_and_forgets_it_under_noise():
    data = choices(n_users=400)
    profiles = profiles_for(data)
    shared = data.total(party.ProfileGram(profiles=profiles, norm="l2")).floats()
    places = profiles.places(rows_of(data))
    close = items_of._covariance(shared, 0.0, profiles, "l2")
    true = np.cov(places.T, bias=True)
    np.testing.assert_allclose(close, true, atol=0.1 + 1e-3)
    drowned = items_of._covariance(shared, 1e6, profiles, "l2")
    np.testing.assert_allclose(drowned, np.eye(3), atol=1e-3)


@pytest.mark.parametrize(
    "bad", [{"loss": "none"}, {"alpha0": 1.5}, {"factors": 0}, {"rounds": 0}, {"rounds": 1000}]
)
def test_refuses_settings_out_of_range(bad):
    with pytest.raises(ParameterError):
        ImplicitObjective(epsilon=1.0, **bad)
