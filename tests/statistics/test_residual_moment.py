"""Sums over people agree with the same sums written out the slow way."""

from dataclasses import replace

import numpy as np
import pytest

from discreet.core import arrays
from discreet.core.arrays import Rows
from discreet.solvers.empirical_bayes import shrink_coordinates
from discreet.statistics import residual_moment
from discreet.statistics.item_context import ItemContext
from discreet.statistics.item_vectors import ItemVectors
from small_sources import people_of


def some_rows(n_rows=40, n_columns=15, seed=0):
    rng = np.random.default_rng(seed)
    counts = rng.integers(2, 9, n_rows)
    columns = np.concatenate([np.sort(rng.choice(n_columns, count, replace=False)) for count in counts])
    indptr = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    values = rng.uniform(-1, 1, columns.size).astype(np.float32)
    return Rows(indptr, columns.astype(np.int32), values)


@pytest.mark.parametrize("threads", [1, 3])
def test_second_moment_is_that_of_the_dense_rows(monkeypatch, threads):
    monkeypatch.setattr(arrays, "thread_count", lambda: threads)
    monkeypatch.setattr(arrays, "_WORTH_THREADS", 0)
    rows, chosen = some_rows(), np.array([1, 2, 5, 7, 11])
    entries = rows.values.astype(np.float64) / 4
    dense = np.zeros((rows.n_rows, 15))
    dense[np.repeat(np.arange(rows.n_rows), np.diff(rows.indptr)), rows.columns] = entries
    expected = dense[:, chosen].T @ dense[:, chosen]
    np.fill_diagonal(expected, 0)
    places = np.full(15, -1, dtype=np.int32)
    places[chosen] = np.arange(chosen.size)
    upper = np.zeros(expected.shape, dtype=np.int64)
    residual_moment.add_rows(rows.indptr, places[rows.columns], entries, upper)
    found = (upper + upper.T) / 2.0**28
    np.testing.assert_allclose(found, expected, atol=40 * 2.0**-13)


def test_factors_leave_their_own_rating_out():
    """The closed form agrees with solving again without the rating."""
    rng, ratings, size = np.random.default_rng(1), 9, 3
    features = np.column_stack([np.ones(12), rng.normal(size=(12, size - 1))])
    offsets, ridge, scale = rng.normal(size=12) / 5, np.array([2.0, 1.0, 3.0]), np.array([1.0, 0.3, 0.2])
    item_weights = rng.uniform(0.5, 2, 12)
    model = ItemVectors(
        middle=0.0,
        half=1.0,
        features=features,
        offsets=offsets,
        ridge=ridge,
        scale=scale,
        longest=100.0,
        item_weights=item_weights,
        count_part=0.2,
    )
    columns = np.sort(rng.choice(12, ratings, replace=False)).astype(np.int32)
    values = rng.uniform(-1, 1, ratings).astype(np.float32)
    told = people_of(Rows(np.array([0, ratings]), columns, values), 12).total(model)
    sums, counts = model.split(told.floats("vectors"))
    vectors = np.zeros((ratings, size))
    residuals = np.zeros(ratings)
    for j in range(ratings):
        others = np.delete(columns, j)
        target = np.delete(values, j) - offsets[others]
        normal = features[others].T @ features[others] + np.diag(ridge)
        solution = np.linalg.solve(normal, features[others].T @ target)
        residuals[j] = values[j] - offsets[columns[j]] - features[columns[j]] @ solution
        vectors[j] = np.append(1.0, scale[1:] * solution[1:])
    lengths = (vectors**2).sum(axis=1)
    weight = 1 / np.sqrt((item_weights[columns] ** 2 * (residuals**2 * lengths + 0.04)).sum())
    expected = (weight * item_weights[columns] * residuals)[:, None] * vectors
    np.testing.assert_allclose(sums[columns], expected, atol=3e-6)
    np.testing.assert_allclose(counts[columns], weight * item_weights[columns] * 0.2, atol=3e-6)
    moment = vectors.T @ vectors / ratings
    np.testing.assert_allclose(told.floats("moment"), moment / np.sqrt(np.trace(moment)) / 100, atol=3e-6)


def _places(vectors, squares):
    return ItemContext(
        vectors=vectors, squares=squares, longest=100.0, item_weights=np.ones(6), count_part=0.5, near=0.5
    )


def test_places_leave_their_own_item_out():
    rng = np.random.default_rng(2)
    vectors, squares = rng.normal(size=(6, 2)), rng.uniform(0.5, 1, 6)
    places = _places(vectors, squares)
    people = people_of(Rows(np.array([0, 3]), np.array([0, 2, 5], np.int32), np.ones(3, np.float32)), 6)
    sums, counts = places.split(people.total(places).floats())
    own = np.array(
        [(vectors[a] + vectors[b]) / np.sqrt(squares[a] + squares[b]) for a, b in ((2, 5), (0, 5), (0, 2))]
    )
    weight = 1 / np.sqrt((own**2).sum() + 3 * 0.25)
    np.testing.assert_allclose(sums[[0, 2, 5]], weight * own, atol=3e-6)
    np.testing.assert_allclose(counts[[0, 2, 5]], weight * 0.5, atol=3e-6)


def test_places_fade_with_every_step_in_time_and_not_among_equal_times():
    rng = np.random.default_rng(2)
    vectors, squares = rng.normal(size=(6, 2)), rng.uniform(0.5, 1, 6)
    places = _places(vectors, squares)
    rows = Rows(np.array([0, 4]), np.array([0, 1, 2, 5], np.int32), np.ones(4, np.float32))
    people = replace(people_of(rows, 6), times=np.array([70, 50, 70, 90]))
    sums, _ = places.split(people.total(places).floats())
    # In time: item 1, then 0 and 2 together, then 5.
    steps = {0: 1, 1: 0, 2: 1, 5: 2}
    own = []
    for item in steps:
        others = {other: 0.5 ** abs(steps[other] - steps[item]) for other in steps if other != item}
        total = sum(weight * vectors[other] for other, weight in others.items())
        own.append(total / np.sqrt(sum(weight**2 * squares[other] for other, weight in others.items())))
    weight = 1 / np.sqrt((np.array(own) ** 2).sum() + 4 * 0.25)
    np.testing.assert_allclose(sums[[0, 1, 2, 5]], weight * np.array(own), atol=3e-6)


def test_coordinates_are_shrunk_by_their_noise():
    rng = np.random.default_rng(3)
    truth = rng.normal(size=(400, 2)) * [1.0, 0.0]
    counts = rng.uniform(1, 5, 400)
    sums = counts[:, None] * truth + rng.normal(size=(400, 2))
    found = shrink_coordinates(sums, counts, np.ones(400))
    plain = sums / counts[:, None]
    assert ((found - truth) ** 2).mean() < 0.75 * ((plain - truth) ** 2).mean()
    assert abs(found[:, 1]).max() < 0.5


def test_moments_beyond_32_bits_are_exact():
    """Many users with large products in one line: 32-bit sums are emptied in time, also of negative ones."""
    users, pair = 61, np.array([0.7, -0.7])
    indptr, places = 2 * np.arange(users + 1, dtype=np.int64), np.tile([0, 2], users).astype(np.int32)
    upper = np.zeros((3, 3), dtype=np.int64)
    residual_moment.add_rows(indptr, places, np.tile(pair, users), upper)
    unit = int(0.7 * 2**14)
    assert upper[0, 2] == -users * unit * unit < -(2**32)
    assert np.count_nonzero(upper) == 1
