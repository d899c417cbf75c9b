"""Products alone lead to the leading direction, and the number of products is what was agreed."""

import numpy as np
import pytest

from discreet.solvers.spectrum import oja, random_signs, unit
from discreet.testing import refuses


@pytest.fixture
def matrix():
    draw = np.random.default_rng(0)
    basis = np.linalg.qr(draw.normal(size=(30, 30)))[0]
    values = np.concatenate([[100.0, 20.0], draw.uniform(-5, 5, 28)])
    return (basis * values) @ basis.T, basis[:, 0]


def test_finds_the_leading_direction(matrix):
    moment, leading = matrix
    found = oja(lambda vector: moment @ vector, random_signs(30, "test"), steps=20)
    assert abs(found.vector @ leading) > 1 - 1e-9
    assert found.value == pytest.approx(100.0, rel=1e-6)
    np.testing.assert_allclose(found.product, moment @ found.vector, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("steps", [1, 2, 7, 8])
def test_asks_for_exactly_the_products_it_may(matrix, steps):
    asked = []

    def product(vector):
        assert np.linalg.norm(vector) == pytest.approx(1.0)
        asked.append(vector)
        return matrix[0] @ vector

    found = oja(product, random_signs(30, "test"), steps=steps)
    assert len(asked) == steps and found.averaged == steps - steps // 2


def test_averages_noise_away(matrix):
    moment, leading = matrix
    draw = np.random.default_rng(1)

    def angle(steps):
        def noisy(vector):
            return moment @ vector + draw.normal(0, 10, 30)

        turns = [oja(noisy, random_signs(30, "test", turn), steps=steps).vector for turn in range(40)]
        return np.mean([1 - (turn @ leading) ** 2 for turn in turns])

    assert angle(40) < angle(8) / 2


def test_nothing_leads_nowhere():
    found = oja(np.zeros_like, np.ones(4), steps=4)
    assert found.value == 0 and not found.product.any()
    np.testing.assert_array_equal(unit(np.zeros(3)), np.zeros(3))


def test_starting_signs_are_public_and_differ_by_purpose():
    np.testing.assert_array_equal(random_signs(50, "a", 1), random_signs(50, "a", 1))
    assert not np.array_equal(random_signs(50, "a", 1), random_signs(50, "a", 2))


def test_refuses_no_steps():
    with refuses("out-of-range", name="steps", least=1):
        oja(np.zeros_like, np.ones(2), steps=0)
