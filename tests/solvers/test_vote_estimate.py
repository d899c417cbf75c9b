"""Votes merged from several releases are better than the best of them, whatever weighed them."""

import numpy as np
import pytest

from discreet.solvers.empirical_bayes import VoteEstimate


def truth(n_items=2000):
    return 3000.0 / np.arange(1, n_items + 1)


def test_merging_beats_either_release_and_knows_its_error():
    draw = np.random.default_rng(0)
    votes = truth()
    item_weights = votes**-0.5
    first = votes + draw.normal(size=votes.size) * 10
    second = 0.7 * item_weights * votes + draw.normal(size=votes.size) * 0.7 * np.median(item_weights) * 10
    tally = VoteEstimate.of(first, 10.0).with_more(second, 0.7 * np.median(item_weights) * 10, item_weights)
    off = (tally.votes - votes) / tally.error
    assert np.sqrt(np.mean(off**2)) == pytest.approx(1.0, abs=0.1)
    assert np.mean((tally.votes - votes) ** 2) < 0.75 * np.mean((first - votes) ** 2)


def test_what_a_release_counted_is_read_off_the_merged_votes():
    votes = truth(50)
    item_weights = votes**-0.5
    tally = VoteEstimate.of(votes, 0.01)
    np.testing.assert_allclose(
        tally.expected(3.0 * item_weights * votes, 0.01, item_weights), 3.0 * item_weights * votes, rtol=1e-6
    )


@pytest.mark.parametrize("sign", [-1.0, 1.0])
def test_pure_noise_neither_breaks_nor_takes_over(sign):
    draw = np.random.default_rng(1)
    noise = draw.normal(size=400) * 100 + sign * 20
    tally = VoteEstimate.of(noise, 100.0).with_more(-noise, 100.0, np.ones(400))
    assert np.isfinite(tally.votes).all() and (tally.raised > 0).all()
    assert np.isfinite(tally.expected(-noise, 100.0, np.ones(400))).all()


def test_a_second_release_of_the_same_votes_is_merged_by_its_known_scale():
    """With noise that hides the sums, an estimated scale is far off: the twin that estimates it is worse."""
    draw, votes = np.random.default_rng(2), truth()
    first, second = (votes + draw.normal(size=votes.size) * noise for noise in (600.0, 200.0))
    again = VoteEstimate.of(first, 600.0).with_again(second, 200.0)
    off = (again.votes - votes) / again.error
    assert np.sqrt(np.mean(off**2)) == pytest.approx(1.0, abs=0.1)
    guessed = VoteEstimate.of(first, 600.0).with_more(second, 200.0, np.ones(votes.size))
    assert np.mean((again.votes - votes) ** 2) < 0.8 * np.mean((guessed.votes - votes) ** 2)


def test_counts_whose_sum_is_below_its_noise_do_not_vanish():
    """A mean per count would be as large as one likes: the sum of 400 counts has 20 times their noise."""
    counted = np.full(400, -1.0)
    tally = VoteEstimate.of(truth(400), 1.0)
    expected = tally.expected(counted, 5.0, np.ones(400))
    assert expected.sum() == pytest.approx(5.0 * 20, rel=0.02)


def test_chosen_items_are_merged_and_the_others_replaced():
    tally, rest = VoteEstimate.of(np.array([4.0, 2.0, 9.0]), 2.0), VoteEstimate.of(np.ones(3), 0.5)
    found = tally.with_some(np.array([0, 2]), np.array([6.0, 5.0]), 2.0, rest)
    np.testing.assert_allclose(found.votes, [5.0, 1.0, 7.0])
    np.testing.assert_allclose(found.variance, [2.0, 0.25, 2.0])
