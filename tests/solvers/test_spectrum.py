"""The edge of the noise is where noise and chance alone end, and the diagonal comes back from the signal."""

import numpy as np
import pytest

from discreet.solvers.spectrum import clearest_part, edge_of_noise, outstanding


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


@pytest.mark.few(2)
@pytest.mark.parametrize("first", [1, 4, 12])
def test_many_columns_find_the_same_as_few(first, monkeypatch):
    """Also if fewer directions are looked for at first than there are, and the limit cuts some off."""
    draw = np.random.default_rng(5)
    moment = bare(signal(200, [90.0, 60.0, 50.0, 45.0, 40.0], draw)[0]) + release(200, 1.0, draw)
    whole = {most: outstanding(moment, 1.0, 0.0, most=most) for most in (3, 20)}
    assert [whole[most].values.size for most in (3, 20)] == [3, 5]
    for name, value in (("_FEW", 10), ("_SMALL", 10), ("_FIRST", first)):
        monkeypatch.setattr(f"discreet.solvers.spectrum.{name}", value)
    for most, expected in whole.items():
        part = outstanding(moment, 1.0, 0.0, most=most)
        np.testing.assert_allclose(part.strengths, expected.strengths, rtol=1e-6)
        np.testing.assert_allclose(part.vectors, expected.vectors, atol=1e-5)


def test_an_empty_moment_has_no_directions():
    assert outstanding(np.zeros((5, 5)), 0.0, 0.0, most=3).values.size == 0


def look(moment, noise, beyond=0):
    best_first = np.arange(len(moment))
    return clearest_part(moment, best_first, noise, 0.0, fewest=20, most=10, above_edge=1.1, beyond=beyond)


@pytest.mark.few(3)
@pytest.mark.parametrize("seed", range(6))
def test_what_drowns_among_weak_columns_shows_among_the_best(seed):
    """The twin, all columns at once, sees nothing of it."""
    draw = np.random.default_rng(seed)
    moment = np.zeros((400, 400))
    moment[:60, :60] = bare(signal(60, [13.0], draw)[0])
    moment += release(400, 1.0, draw)
    assert outstanding(moment, 1.0, 0.0, most=10, above_edge=1.1).values.size == 0
    columns, found = look(moment, 1.0)
    assert columns.size < 200 and found.strengths.size == 1


def test_all_columns_are_kept_where_all_carry_the_signal_or_nothing_is_hidden():
    draw = np.random.default_rng(7)
    moment = bare(signal(100, [90.0, 60.0], draw)[0])
    assert look(moment + release(100, 1.0, draw), 1.0)[0].size == 100
    assert look(moment, 0.0)[0].size == 100


def test_the_first_direction_does_not_count_if_it_is_known_already():
    """One strong direction over all columns, and a weaker one that only the best columns have."""
    draw = np.random.default_rng(8)
    moment = bare(signal(400, [300.0], draw)[0])
    moment[:60, :60] += bare(signal(60, [13.0], draw)[0])
    moment += release(400, 1.0, draw)
    assert look(moment, 1.0)[0].size == 400
    assert look(moment, 1.0, beyond=1)[0].size < 200
