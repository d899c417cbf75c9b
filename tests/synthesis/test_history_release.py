"""The release of histories: what it counts, what it costs, and what it does not read."""

import math

import numpy as np
import pytest

from budgets import budget
from discreet import PrivacyRandom, UserFactorization, load
from discreet.data.facts import PublicFacts
from discreet.data.interactions import Interactions
from discreet.models.scorers.released_histories import ReleasedHistories, nearest_counts
from discreet.models.user_factorization.estimator import HISTORY_SHARE, history_question, release_histories
from discreet.privacy.session import Session
from discreet.statistics.history_summary import LENGTH_STARTS, SummedHistories
from discreet.testing import refuses
from toy import toy_interactions


def fitted(data, *, epsilon=math.inf, feedback="explicit"):
    recipe = UserFactorization(epsilon=epsilon, delta=1e-5, feedback=feedback, for_synthesis=True)
    return recipe.fit(data, random=PrivacyRandom.simulate(1))


def test_without_noise_it_holds_the_counts():
    data = toy_interactions(n_users=120, n_items=40)
    released = ReleasedHistories.of(fitted(data).scorer)
    lengths = np.diff(data.indptr)
    bins = np.searchsorted(LENGTH_STARTS, lengths[lengths > 0], side="right") - 1
    np.testing.assert_allclose(
        released.lengths, np.bincount(bins, minlength=released.lengths.size), atol=1e-3
    )
    rows, steps = data.rows(), np.rint(data.values - data.facts.low).astype(int)
    shares = np.zeros((data.n_users, 5))
    np.add.at(shares, (rows, steps), 1.0)
    shares = shares[lengths > 0] / lengths[lengths > 0][:, None]
    np.testing.assert_allclose(released.levels, shares.mean(axis=0), atol=1e-4)


def test_it_knows_whether_histories_have_an_order():
    users, items = np.repeat(np.arange(30), 4), np.tile(np.arange(4), 30)
    with_times = Interactions.from_arrays(users, items, times=np.arange(120))
    at_once = Interactions.from_arrays(users, items, times=users)
    without = Interactions.from_arrays(users, items)
    nothing = budget(math.inf)
    found = [
        release_histories(Session.open(data, nothing, PrivacyRandom.simulate(0)), rated=False).ordered
        for data in (with_times, at_once, without)
    ]
    assert found == pytest.approx([1.0, 0.0, 0.0], abs=1e-5)


def test_histories_and_the_model_share_the_whole_budget():
    releases = fitted(toy_interactions(n_users=80, n_items=30), epsilon=2.0).releases
    histories = [one.share for one in releases if one.statistic == "HistorySummary"]
    assert histories == [HISTORY_SHARE] and sum(one.share for one in releases) == 1


def test_implicit_feedback_does_not_read_ratings():
    data = toy_interactions(n_users=80, n_items=30)
    other = data.with_values(np.full(data.n_ratings, data.facts.high, dtype=np.float32))
    one, two = (fitted(part, epsilon=2.0, feedback="implicit").scorer.arrays() for part in (data, other))
    assert one.keys() == two.keys() and "history_lengths" in one
    for name in one:
        np.testing.assert_array_equal(one[name], two[name])
    # The twin: a fit from ratings does.
    rated = [fitted(part, epsilon=2.0).scorer.part("rating_levels") for part in (data, other)]
    assert not np.array_equal(*rated)


def test_a_file_keeps_it_and_other_fits_have_none(tmp_path):
    data = toy_interactions(n_users=60, n_items=20)
    model = fitted(data, epsilon=3.0)
    model.save(tmp_path / "m.discreet")
    again = load(tmp_path / "m.discreet").scorer
    np.testing.assert_array_equal(again.part("history_lengths"), model.scorer.part("history_lengths"))
    assert again.part("history_lengths").min() >= 0 and again.part("rating_levels").sum() == pytest.approx(
        1.0
    )
    plain = UserFactorization(epsilon=3.0).fit(data, random=PrivacyRandom.simulate(1))
    assert ReleasedHistories.of(plain.scorer) is None and "history_lengths" not in plain.scorer.arrays()


def test_the_question_depends_on_public_facts():
    facts = PublicFacts(n_items=100, low=0.5, high=5.0, step=0.5)
    question = history_question(facts, rated=True)
    assert question.levels == 10 and LENGTH_STARTS[question.bins - 1] <= 100
    assert history_question(facts, rated=False).levels == 1
    assert history_question(PublicFacts(n_items=100, max_per_user=1), rated=True).bins == 1
    assert history_question(PublicFacts(n_items=10, low=0.0, high=1.0), rated=True).levels > 10


def test_noise_alone_makes_no_history():
    """A few users as long as the catalog would outweigh all others."""
    lengths = np.array([0.0, 900.0, 500.0, 4.0, -6.0, 11.0])
    noisy = SummedHistories(lengths, 1000.0, np.array([1400.0]))
    found = ReleasedHistories.cleaned(noisy, 5.0)
    assert found.lengths[3:].tolist() == [0.0, 0.0, 0.0] and found.lengths.sum() == pytest.approx(1409)
    # The twin: with less noise the last bin stands out.
    assert ReleasedHistories.cleaned(noisy, 1.0).lengths[5] > 0
    alone = ReleasedHistories.cleaned(noisy._replace(lengths=np.array([-3.0, 2.0])), 5.0)
    assert alone.lengths.tolist() == [0.0, 1.0]


def test_nearest_counts_keep_the_total():
    rng = np.random.default_rng(0)
    for _ in range(20):
        noisy = rng.normal(5, 20, 12)
        found = nearest_counts(noisy, 60.0)
        assert found.min() >= 0 and found.sum() == pytest.approx(60.0)
        # Nothing that is possible lies nearer.
        other = rng.dirichlet(np.ones(12)) * 60
        assert np.sum((found - noisy) ** 2) <= np.sum((other - noisy) ** 2) + 1e-9


def test_the_setting_is_true_or_false():
    with refuses("wrong-kind", name="for_synthesis", found="'yes'"):
        UserFactorization(epsilon=1.0, for_synthesis="yes")
