"""The edge of the noise is where noise and chance alone end, and the diagonal comes back from the signal."""

import numpy as np
import pytest

from discreet.solvers.spectrum import edge_of_noise, outstanding


def release(size, noise, draw):
    """Return symmetric noise as a release with this multiplier has it off the diagonal."""
    upper = np.triu(draw.normal(size=(size, size)) * noise / np.sqrt(2), 1)
    return upper + upper.T


def signal(size, strengths, draw):
    basis = np.linalg.qr(draw.normal(size=(size, len(strengths))))[0]
    return (basis * strengths) @ basis.T, basis


def bare(matrix):
    return matrix - np.diag(np.diag(matrix))


@pytest.mark.parametrize("noise", [0.3, 5.0])
def test_noise_alone_stays_inside_the_edge(noise):
    draw = np.random.default_rng(1)
    moment = release(400, noise, draw)
    assert np.linalg.eigvalsh(moment)[-1] == pytest.approx(edge_of_noise(400, noise, 0.0), rel=0.04)
    assert outstanding(moment, noise, 0.0, most=20).values.size == 0


def test_chance_alone_stays_inside_the_edge():
    """Rows of length 1 that have nothing in common, and no noise at all; a smaller edge would be passed."""
    draw = np.random.default_rng(2)
    rows = draw.choice([-1.0, 1.0], size=(3000, 120)) / np.sqrt(120)
    moment = bare(rows.T @ rows)
    assert outstanding(moment, 0.0, 3000.0, most=20).values.size == 0
    assert outstanding(moment, 0.0, 300.0, most=20).values.size > 0


def test_the_diagonal_comes_back_and_with_it_every_direction():
    """Without its diagonal the signal has negative eigenvalues that are no noise."""
    draw = np.random.default_rng(3)
    strengths = np.linspace(300, 40, 12)
    whole, basis = signal(100, strengths, draw)
    moment = bare(whole) + release(100, 1.0, draw)
    assert -np.linalg.eigvalsh(bare(moment))[0] > strengths[-1]
    found = outstanding(moment, 1.0, 0.0, most=20)
    assert found.values.size == 12
    np.testing.assert_allclose(found.strengths, strengths, rtol=0.1)
    assert (np.linalg.norm(basis.T @ found.vectors, axis=0) > 0.9).all()


def test_the_diagonal_that_was_told_is_not_looked_at():
    draw = np.random.default_rng(4)
    moment = signal(60, [50.0, 30.0], draw)[0] + release(60, 1.0, draw)
    other = moment + np.diag(draw.normal(size=60) * 1e3)
    one, two = outstanding(moment, 1.0, 0.0, most=5), outstanding(other, 1.0, 0.0, most=5)
    np.testing.assert_array_equal(one.values, two.values)


def test_many_columns_find_the_same_as_few(monkeypatch):
    draw = np.random.default_rng(5)
    moment = bare(signal(200, [90.0, 60.0, 50.0], draw)[0]) + release(200, 1.0, draw)
    whole = outstanding(moment, 1.0, 0.0, most=5)
    monkeypatch.setattr("discreet.solvers.spectrum._SMALL", 10)
    part = outstanding(moment, 1.0, 0.0, most=5)
    assert whole.values.size == 3
    np.testing.assert_allclose(part.strengths, whole.strengths, rtol=1e-6)


def test_an_empty_moment_has_no_directions():
    assert outstanding(np.zeros((5, 5)), 0.0, 0.0, most=3).values.size == 0
