"""Adding one person moves the sums by exactly that person's vector, and the vector is at most 1 long."""

import dataclasses
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from budgets import budget
from discreet.core import arrays
from discreet.core.arrays import Rows
from discreet.core.randomness import PrivacyRandom
from discreet.models.released_items import ItemView, pilot_release
from discreet.models.tuned_settings import ItemSettings
from discreet.models.user_factorization.latent_factors import LatentFactors, _by_spread, free_directions
from discreet.models.user_factorization.settings import FactorizationSettings
from discreet.privacy.session import Session
from discreet.statistics.counts import (
    MEAN_LENGTH,
    ItemResiduals,
    ItemVotes,
    RatingShares,
    Recency,
    RecentVotes,
    ScaleVotes,
    UserCount,
    UserMeans,
)
from discreet.statistics.domain import Number, Numbers, Places, Ranges
from discreet.statistics.item_vectors import ItemVectors
from discreet.statistics.residual_moment import ResidualMoment, add_rows
from discreet.statistics.statistic import blocks
from discreet.testing import refuses
from small_sources import people_of
from toy import toy_interactions


def squared_length(*arrays) -> Fraction:
    return sum((Fraction(float(x)) ** 2 for array in arrays for x in np.ravel(array)), Fraction(0))


def seen(data) -> ItemView:
    session = Session.open(data, budget(math.inf), PrivacyRandom.simulate(0))
    return pilot_release(session.gaussian(), (Fraction(1, 2), Fraction(1, 2)), ItemSettings())


def item_sums(data, effects):
    """Return what all people tell about items: the release of item effects without its noise."""
    item_weights = np.linspace(0.3, 2.0, data.n_items)
    told = ItemResiduals(
        middle=3.0, half=2.0, mean=0.1, effects=effects, item_weights=item_weights, count_part=0.2
    )
    return data.total(told).floats()


@pytest.mark.parametrize("scale", [(1, 5), (-10, 10), (0.1, 0.1 + 1e-12), (1000.00001, 1000.00002)])
def test_the_mean_and_the_count_move_by_at_most_the_sensitivity(scale):
    low, high = scale
    data = toy_interactions(seed=9)
    data = data.with_facts(dataclasses.replace(data.facts, low=low, high=high, step=None)).bounded()
    means = UserMeans(middle=(low + high) / 2, half=(high - low) / 2)
    with_them, without = (
        one.total(means).floats() for one in (data, data.select_users(np.arange(1, data.n_users)))
    )
    assert 0 < squared_length(with_them - without) <= Fraction(MEAN_LENGTH) ** 2


def test_one_person_moves_item_sums_by_exactly_their_own_vector():
    data, rng = toy_interactions(seed=4), np.random.default_rng(0)
    effects = rng.normal(size=data.n_items) / 3
    for person in (0, 17, 149):
        keep = np.arange(data.n_users) != person
        others = rng.permutation(np.flatnonzero(keep))
        with_them, without = item_sums(data, effects), item_sums(data.select_users(others), effects)
        alone = item_sums(data.select_users(~keep), effects)
        np.testing.assert_array_equal(with_them - without, alone)
        assert 0.99 < squared_length(alone) <= 1


def test_plain_floating_point_sums_would_not_be_exact():
    """The twin: without the grid the same test fails, so the grid is what makes it pass."""
    rng = np.random.default_rng(1)
    terms = rng.normal(size=(1000, 50)) / 7
    alone = terms[0]
    assert not np.array_equal(terms.sum(axis=0) - terms[1:].sum(axis=0), alone)


def test_blocks_cover_everybody_once_whatever_their_size():
    data = toy_interactions(seed=5)
    for most in (1, 7, 1000):
        parts = list(blocks(data, most_people=most))
        assert [part.start for part in parts] == [0, *(part.stop for part in parts[:-1])]
        assert parts[-1].stop == data.n_users
        np.testing.assert_array_equal(np.concatenate([part.items for part in parts]), data.items)


def local_model(n_items, size, rng):
    features = np.column_stack([np.ones(n_items), rng.normal(size=(n_items, size - 1))])
    return ItemVectors(
        middle=0.0,
        half=1.0,
        features=features,
        offsets=rng.normal(size=n_items) / 4,
        ridge=rng.uniform(0.05, 4, size),
        scale=rng.uniform(0.2, 3, size),
        longest=math.sqrt(size + 1),
        item_weights=rng.uniform(0.01, 5, n_items),
        count_part=0.2,
    )


@given(st.integers(0, 10**6), st.integers(1, 30), st.integers(1, 6), st.sampled_from([1e-9, 1.0, 1e4]))
def test_what_a_person_tells_about_vectors_is_at_most_1_long(seed, ratings, size, spread):
    rng = np.random.default_rng(seed)
    model = local_model(30, size, rng)
    columns = np.sort(rng.choice(30, ratings, replace=False)).astype(np.int32)
    values = np.clip(rng.normal(size=ratings) * spread, -1, 1).astype(np.float32)
    vectors, moment = told_by(Rows(np.array([0, ratings]), columns, values), model)
    assert squared_length(vectors) <= 1
    assert squared_length(moment) <= 1
    np.testing.assert_array_equal(moment, moment.T)


def test_a_person_without_ratings_tells_nothing():
    model = local_model(5, 3, np.random.default_rng(0))
    empty = Rows(np.array([0, 0]), np.zeros(0, np.int32), np.zeros(0, np.float32))
    assert not any(piece.any() for piece in told_by(empty, model))


def told_by(rows, model):
    told = people_of(rows, len(model.features)).total(model)
    return told.floats("vectors"), told.floats("moment")


def told_about_vectors(data, model):
    values = ((data.values - 3) / 2).astype(np.float32)
    return told_by(Rows(data.indptr, data.items, values), model)


@pytest.mark.parametrize("threads", [1, 2])
def test_statistics_of_vectors_add_up_exactly_over_people(monkeypatch, threads):
    """Neither other people, nor their order, nor the number of threads touches a bit of what one tells."""
    monkeypatch.setattr(arrays, "thread_count", lambda: threads)
    monkeypatch.setattr(arrays, "_WORTH_THREADS", 0)
    rng, data = np.random.default_rng(3), toy_interactions(seed=6)
    model = local_model(data.n_items, 6, rng)
    whole = told_about_vectors(data, model)
    shuffled = told_about_vectors(data.select_users(rng.permutation(data.n_users)), model)
    for piece, other in zip(whole, shuffled, strict=True):
        np.testing.assert_array_equal(piece, other)
    for person in (0, 71, 149):
        keep = np.arange(data.n_users) != person
        without = told_about_vectors(data.select_users(keep), model)
        alone = told_about_vectors(data.select_users(~keep), model)
        for piece, rest, one in zip(whole, without, alone, strict=True):
            np.testing.assert_array_equal(piece - rest, one)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_a_person_whose_numbers_are_not_finite_tells_nothing(bad):
    rng, data = np.random.default_rng(3), toy_interactions(seed=6)
    model = local_model(data.n_items, 4, rng)
    values = ((data.values - 3) / 2).astype(np.float32)
    values[0] = bad
    broken = Rows(data.indptr, data.items, values)
    first = slice(0, int(data.indptr[1]))
    alone = told_by(Rows(data.indptr[:2], data.items[first], values[first]), model)
    assert not any(piece.any() for piece in alone)
    others = told_about_vectors(data.select_users(np.arange(1, data.n_users)), model)
    for piece, only in zip(told_by(broken, model), others, strict=True):
        np.testing.assert_array_equal(piece, only)
    with refuses("domain", name="features", shape=False):
        dataclasses.replace(model, features=np.full_like(model.features, bad))


def test_a_singular_problem_tells_nothing_and_raises_nothing():
    model = local_model(5, 3, np.random.default_rng(0))
    singular = dataclasses.replace(model, features=np.ones((5, 3)), ridge=np.full(3, 1e-30))
    people = Rows(np.array([0, 2]), np.array([1, 3], np.int32), np.ones(2, np.float32))
    assert not any(piece.any() for piece in told_by(people, singular))


def test_a_row_that_is_not_finite_adds_no_moment():
    moment = np.zeros((4, 4), dtype=np.int64)
    indptr, places = np.array([0, 2, 4]), np.array([0, 1, 2, 3], np.int32)
    add_rows(indptr, places, np.array([0.5, np.nan, 0.5, 0.5]), moment)
    assert np.argwhere(moment).tolist() == [[2, 3]]


@pytest.mark.parametrize("person", [0, 33])
def test_one_person_moves_the_second_moment_by_exactly_their_own_square(person):
    data = toy_interactions(seed=7)
    look = seen(data)
    start: LatentFactors = free_directions(look, FactorizationSettings())
    top, item_weights = np.arange(0, data.n_items, 2), look.counts**-0.25
    keep = np.arange(data.n_users) != person

    told = ResidualMoment(
        top=top,
        item_weights=item_weights,
        middle=look.middle,
        half=look.half,
        offsets=start.offsets,
        features=start.features,
        ridge=start.ridge,
    )

    def moment(one):
        return one.total(told).floats()

    alone = moment(data.select_users(~keep))
    np.testing.assert_array_equal(moment(data) - moment(data.select_users(keep)), alone)
    assert 0.1 < squared_length(alone) <= 1
    np.testing.assert_array_equal(alone, alone.T)
    assert not np.diag(alone).any()


@pytest.mark.parametrize(
    "statistic",
    [
        ItemVotes(n_items=4, norm="l1"),
        RecentVotes(n_items=4, norm="l2", recency=Recency(now=0.0, half_life=1.0)),
        UserCount(),
        RatingShares(low=1.0, width=4.0),
        ScaleVotes(scales=((0.0, 1.0), (1.0, 5.0))),
    ],
    ids=lambda one: type(one).__name__,
)
def test_counts_state_that_they_are_never_negative(statistic):
    """A coordinator rejects a sum that such counts and the noise can't give."""
    assert all(part.nonnegative for part in statistic.parts)


def test_a_vector_that_is_too_long_is_outside_its_domain():
    vectors = Numbers(("n",), -1.0, 1.0, longest=1.0)
    vectors.check("vectors", np.array([0.6, 0.8]), {})
    with refuses("domain"):
        vectors.check("vectors", np.array([0.8, 0.8]), {})


@pytest.mark.parametrize("wrong", [0.5, 3.0, math.nan, math.inf])
def test_a_number_beyond_its_range_is_outside_its_domain(wrong):
    for right in (1.0, 2.0):
        Number(1.0, 2.0).check("half", right, {})
    with refuses("domain"):
        Number(1.0, 2.0).check("half", wrong, {})


def test_places_are_whole_numbers():
    Places(("k",), "n").check("top", np.array([0, 2]), {"n": 3})
    with refuses("domain"):
        Places(("k",), "n").check("top", np.array([0.0, 2.0]), {"n": 3})


@pytest.mark.parametrize("wrong", [(), ((2.0, 1.0),), ((0.0, 3.0),), [(0.0, 1.0)]])
def test_ranges_rise_within_their_bounds(wrong):
    Ranges(0.0, 2.0).check("scales", ((0.0, 1.0), (1.0, 2.0)), {})
    with refuses("domain"):
        Ranges(0.0, 2.0).check("scales", wrong, {})


def test_the_second_moment_does_not_know_the_scale_of_ratings():
    """Ratings from 1 to 5 contribute as the same ratings from -1 to 1 do."""
    rng = np.random.default_rng(4)
    columns, values = np.arange(6, dtype=np.int32), rng.uniform(-1, 1, 6).astype(np.float32)
    model = ResidualMoment(
        top=np.arange(6),
        item_weights=np.ones(6),
        middle=0.0,
        half=1.0,
        offsets=np.zeros(6),
        features=np.ones((6, 1)),
        ridge=np.ones(1),
    )
    plain = people_of(Rows(np.array([0, 6]), columns, values), 6).total(model).floats()
    wide = dataclasses.replace(model, middle=3.0, half=2.0)
    scaled = people_of(Rows(np.array([0, 6]), columns, 3 + 2 * values), 6).total(wide).floats()
    np.testing.assert_allclose(scaled, plain, atol=1e-5)
    assert np.abs(plain).max() > 0.01


def test_factors_are_longer_along_which_users_differ_more():
    part = np.array([[3.0, 1.0], [1.0, 1.0]])
    moment = np.eye(5)
    moment[3:, 3:] = part
    found = _by_spread(np.eye(5), moment, 2, 1.0)
    np.testing.assert_allclose(found[3:, 3:] @ found[3:, 3:], part / 2, atol=1e-12)
    np.testing.assert_array_equal(found[:3, :3], np.eye(3))
