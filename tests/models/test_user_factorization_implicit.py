"""What the recommended model must do with choices, besides the proof's sums."""

import dataclasses
import math
from fractions import Fraction

import numpy as np
import pytest

import discreet
from discreet.core import arrays
from discreet.core.arrays import Rows
from discreet.core.randomness import PrivacyRandom
from discreet.data.interactions import Interactions
from discreet.data.splits import leave_one_out
from discreet.evaluation.protocol import evaluate
from discreet.evaluation.scoring import measure
from discreet.models.popularity import Popularity
from discreet.models.scorers.interactions import recency
from discreet.models.user_factorization.estimator import UserFactorization
from discreet.models.user_factorization.implicit_feedback import even_lengths, may_show
from discreet.models.user_factorization.settings import FactorizationSettings
from discreet.privacy.accounting.accountant import epsilon_at
from discreet.privacy.accounting.events import event_from_json
from discreet.privacy.accounting.gaussian import gaussian_multiplier
from discreet.privacy.ledger.ledger import Ledger
from discreet.privacy.mechanisms.additive import Gaussian
from discreet.statistics.item_context import ItemContext
from discreet.testing import refuses
from small_sources import people_of
from toy import toy_interactions


def squared_length(*arrays) -> Fraction:
    return sum((Fraction(float(x)) ** 2 for array in arrays for x in np.ravel(array)), Fraction(0))


def crowds(n_users=1500, n_items=60, per_user=12, seed=0) -> Interactions:
    """Return choices of two crowds: each takes nine of ten items from its own half of the catalog."""
    rng = np.random.default_rng(seed)
    weights = np.where(np.arange(n_items) % 2 == np.arange(2)[:, None], 9.0, 1.0)
    weights /= weights.sum(axis=1, keepdims=True)
    chosen = [rng.choice(n_items, per_user, replace=False, p=weights[user % 2]) for user in range(n_users)]
    return Interactions.from_arrays(
        np.repeat(np.arange(n_users), per_user),
        np.concatenate(chosen),
        times=np.tile(np.arange(per_user), n_users),
        n_items=n_items,
        low=1,
        high=1,
        name="crowds",
    )


@pytest.fixture(scope="module")
def split():
    return leave_one_out(crowds())


def fitted(epsilon, train, seed=3):
    estimator = UserFactorization(epsilon=epsilon, feedback="implicit")
    return estimator.fit(train, random=PrivacyRandom.simulate(seed))


@pytest.mark.parametrize("epsilon", [4.0, math.inf])
def test_finds_the_crowds(split, epsilon):
    model = fitted(epsilon, split.train)
    assert model.scorer.explain()["directions kept"] >= 1
    own = measure(model, split.train, split.test, "hr@10")["hr@10"]
    same = Popularity(epsilon=math.inf).fit(split.train, random=PrivacyRandom.simulate(0))
    assert own > measure(same, split.train, split.test, "hr@10")["hr@10"] + 0.1
    even = [item % 2 for item, _ in model.similar_items(4, k=10)]
    # One direction parts two groups. With noise it cannot show which items of a group are near.
    assert even == ([0] * 10 if math.isinf(epsilon) else [])


def test_is_popularity_when_the_noise_drowns_taste(split):
    model = fitted(0.2, split.train)
    assert not model.scorer.explain()["enough users for factors"]
    scores = model.scores(split.train, np.arange(3))
    np.testing.assert_array_equal(scores[0], scores[1])
    np.testing.assert_array_equal(np.argsort(scores[0]), np.argsort(model.scorer.popularity))


@pytest.mark.parametrize("epsilon", [0.2, 1.3, 8.0])
def test_the_ledger_recounts_the_promise(split, epsilon):
    ledger, estimator = Ledger.in_memory(), UserFactorization(epsilon=epsilon, feedback="implicit")
    estimator.fit(split.train, ledger=ledger, random=PrivacyRandom.simulate(1))
    (entry,) = ledger.entries()
    recounted = epsilon_at([event_from_json(event) for event in entry.events], estimator.delta)
    assert recounted == pytest.approx(epsilon, rel=1e-6) and recounted <= epsilon * (1 + 1e-9)


@pytest.mark.parametrize(("epsilon", "branch"), [(0.2, "votes twice"), (8.0, "places")])
def test_every_branch_spends_exactly_the_budget(split, monkeypatch, epsilon, branch):
    """Every release passes through one mechanism; what it is asked for adds up to the whole."""
    spent, made = [], Gaussian.__post_init__

    def noted(self):
        made(self)
        spent.append((self.l2_sensitivity / self.sigma) ** 2)

    monkeypatch.setattr(Gaussian, "__post_init__", noted)
    model = fitted(epsilon, split.train)
    # Where order does not inform, co-occurrences are released once more.
    again = model.scorer.explain().get("order informs") == "no"
    assert len(spent) == (3 if branch == "votes twice" else 5 + again)
    multiplier = gaussian_multiplier(epsilon, 1e-6)
    assert sum(spent) == pytest.approx(multiplier**-2, rel=1e-9)
    assert sum(spent) <= multiplier**-2 * (1 + 1e-12)


def test_saving_and_loading_keeps_scores(split, tmp_path):
    model = fitted(4.0, split.train)
    model.save(tmp_path / "m.discreet")
    loaded = discreet.load(tmp_path / "m.discreet")
    assert loaded.parameters["feedback"] == "implicit" and loaded.guarantee == model.guarantee
    rows = np.arange(4)
    np.testing.assert_array_equal(loaded.scores(split.train, rows), model.scores(split.train, rows))
    cells = model.predict(split.train, np.repeat(rows, 2), np.tile([0, 7], 4)).reshape(4, 2)
    np.testing.assert_allclose(cells, model.scores(split.train, rows)[:, [0, 7]], rtol=1e-5)


def test_recommends_from_a_list_of_items(split):
    best = fitted(4.0, split.train).recommend([0, 2, 4, 6], k=5)
    assert len(best) == 5 and all(item % 2 == 0 for item, _ in best)


def test_reads_no_ratings_and_of_times_only_their_order(split):
    train = split.train
    rng = np.random.default_rng(0)
    facts = dataclasses.replace(train.facts, low=1.0, high=5.0)
    other = train.with_values(rng.integers(1, 6, train.n_ratings), facts=facts)
    other = dataclasses.replace(other, times=train.times**3 - 5)
    shuffled = dataclasses.replace(other, times=rng.permutation(other.times))
    found = fitted(4.0, train).scorer.arrays()
    for name, array in found.items():
        np.testing.assert_array_equal(array, fitted(4.0, other).scorer.arrays()[name])
    assert not np.array_equal(found["item_factors"], fitted(4.0, shuffled).scorer.arrays()["item_factors"])


def test_refuses_metrics_of_ratings_and_unknown_feedback(split):
    with refuses("metric-does-not-fit", metric="rmse"):
        evaluate(UserFactorization(epsilon=1.0, feedback="implicit"), split.train, metrics="rmse")
    with refuses("unknown-choice", name="feedback"):
        UserFactorization(epsilon=1.0, feedback="vibes")


def test_later_choices_count_more_and_ties_share_what_they_have():
    data = Interactions.from_arrays(
        ["a"] * 3 + ["b"] * 2, [3, 1, 2, 1, 2], times=[50, 70, 50, 9, 1], n_items=4, low=1, high=1
    )
    # Row a holds items 1, 2, 3: item 1 is the latest, and the other two were chosen at one time.
    np.testing.assert_allclose(recency(data, 1.0), [1, 5 / 12, 5 / 12, 1, 1 / 2])
    assert (recency(dataclasses.replace(data, times=None), 1.0) == 1).all()
    evenly = recency(dataclasses.replace(data, times=None), 1.0, 0.5)
    np.testing.assert_allclose(evenly, [3**-0.5] * 3 + [2**-0.5] * 2)


def test_a_persons_place_is_their_own(split):
    model, row = fitted(4.0, split.train), 7
    alone = split.train.select_users([row])
    np.testing.assert_array_equal(model.scores(alone, [0])[0], model.scores(split.train, [row])[0])


def some_places(n_items, size, seed):
    rng = np.random.default_rng(seed)
    silent = rng.random(n_items) < 0.3
    vectors = np.where(silent[:, None], 0.0, rng.normal(size=(n_items, size)))
    squares = np.where(silent, 0.0, rng.uniform(0.01, 1, n_items))
    return ItemContext(
        vectors=vectors,
        squares=squares,
        longest=math.sqrt(size + 2),
        item_weights=rng.uniform(0.05, 4, n_items),
        count_part=0.7,
        near=0.8,
    )


def told_by(data, places):
    return places.split(data.total(places).floats())


@pytest.mark.parametrize("threads", [1, 2])
def test_one_person_moves_the_places_by_exactly_their_own_vector(monkeypatch, threads):
    monkeypatch.setattr(arrays, "thread_count", lambda: threads)
    monkeypatch.setattr(arrays, "_WORTH_THREADS", 0)
    data = toy_interactions(seed=2)
    places = some_places(data.n_items, 3, 5)
    whole = told_by(data, places)
    for person in (0, 70, 149):
        keep = np.arange(data.n_users) != person
        without, alone = told_by(data.select_users(keep), places), told_by(data.select_users(~keep), places)
        for all_of_them, rest, one in zip(whole, without, alone, strict=True):
            np.testing.assert_array_equal(all_of_them - rest, one)
        assert 0.99 < squared_length(*alone) <= 1


def in_sessions(n_users=1500, n_items=80, sessions=4, seed=0) -> Interactions:
    """Return choices of people whose mood changes: each session of three takes items of one eighth."""
    rng = np.random.default_rng(seed)
    moods = np.array([rng.permutation(8)[:sessions] for _ in range(n_users)])
    within = rng.random((n_users, sessions, n_items // 8)).argsort(axis=2)[:, :, :3]
    items = (moods[:, :, None] + 8 * within).reshape(-1)
    times = np.tile(np.arange(3 * sessions), n_users)
    people = np.repeat(np.arange(n_users), 3 * sessions)
    return Interactions.from_arrays(people, items, times=times, n_items=n_items, low=1, high=1, name="moods")


def test_what_is_chosen_at_about_the_same_time_tells_where_an_item_stands():
    split = leave_one_out(in_sessions())
    timeless = dataclasses.replace(split.train, times=None, listed=None)
    with_order, without = fitted(4.0, split.train), fitted(4.0, timeless)
    # Both lists are made from the same histories with times; only the fits differ.
    own = measure(with_order, split.train, split.test, "hr@10")["hr@10"]
    assert own > measure(without, split.train, split.test, "hr@10")["hr@10"] + 0.1


def test_broken_numbers_and_single_choices_tell_nothing():
    data = toy_interactions(seed=2)
    places = some_places(data.n_items, 3, 5)
    for bad in (np.nan, np.inf):
        with refuses("domain", name="vectors", shape=False):
            dataclasses.replace(places, vectors=np.full_like(places.vectors, bad))
    single = Rows(np.array([0, 1]), np.array([2], np.int32), np.ones(1, np.float32))
    assert not any(piece.any() for piece in told_by(people_of(single, data.n_items), places))


@pytest.mark.parametrize(("directions", "ratio"), [(1, 3.0), (40, 1.081)])
def test_embeddings_keep_their_lengths_in_one_direction_and_have_about_one_in_many(directions, ratio):
    some = np.random.default_rng(directions).normal(size=(125, directions))
    some /= np.linalg.norm(some, axis=1, keepdims=True)
    vectors, popularity = np.concatenate([some, -some, 3 * some, -3 * some]), np.full(500, 2.0)
    found, centered = (
        even_lengths(vectors, popularity),
        vectors - vectors.mean(axis=0),
    )
    lengths = np.linalg.norm(found, axis=1)
    assert np.median(lengths[250:]) / np.median(lengths[:250]) == pytest.approx(ratio, rel=0.02)
    cosines = (found * centered).sum(axis=1) / lengths / np.linalg.norm(centered, axis=1)
    assert cosines.min() > 1 - 1e-9
    assert not even_lengths(np.zeros((5, directions)), np.ones(5)).any()


@pytest.mark.parametrize("multiplier", [1.0, 10.0])
def test_co_occurrences_show_from_the_users_on_whose_items_exceed_the_noise(multiplier):
    """With 5 r^(1/2) items for r users per unit of noise, 12 edges of the noise are reached at r = 127."""
    settings = FactorizationSettings()
    assert (settings.items_per_root, settings.users_per_edge) == (5.0, 12.0)
    shows = [may_show(ratio * multiplier, 10**6, multiplier, settings) for ratio in (110, 125, 130, 150, 250)]
    assert shows == [False, False, True, True, True]
