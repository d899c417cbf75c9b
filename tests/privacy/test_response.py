"""Sign flip and randomized response: enumerated, decoded, and refused where they would reveal too much."""

import math
from decimal import Decimal
from fractions import Fraction
from itertools import permutations

import numpy as np
import pytest

from discreet.core.checks import DataError, ParameterError
from discreet.core.randomness import PrivacyRandom
from discreet.privacy.mechanisms import channel
from discreet.privacy.mechanisms.cells import HiddenNumbers, HiddenStars
from discreet.privacy.mechanisms.channel import CountTable, log_up
from discreet.privacy.mechanisms.local import RATING_MECHANISMS, mechanism_from, mechanism_name
from discreet.privacy.mechanisms.randomized_response import RandomizedResponse, SignFlip
from discreet.testing import refuses
from evidence import cumulative, follows, samples_to_separate

EPSILONS = [1e-6, 0.01, 0.1, 0.5, 1.0, 2.0, 5.0, 20.0, 40.0, 44.3, 50.0, 700.0]


def largest_ratio(table: CountTable) -> float:
    """Go through all pairs of inputs and all outcomes, in exact fractions."""
    rows = [[int(count) for count in row] for row in table.counts()]
    pairs = permutations(rows, 2)
    return log_up(max(Fraction(a, b) for one, other in pairs for a, b in zip(one, other, strict=True)))


def words(*numbers: int) -> PrivacyRandom:
    # More bytes are asked for than are used.
    return PrivacyRandom.scripted(b"".join(number.to_bytes(8, "big") for number in numbers) + bytes(1024))


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("levels", [None, 1, 2, 5, 10])
def test_the_largest_ratio_is_e_to_the_epsilon(epsilon, levels):
    mechanism = (
        SignFlip(epsilon=epsilon) if levels is None else RandomizedResponse(epsilon=epsilon, levels=levels)
    )
    counts = np.round(mechanism.transition() * 2.0**64)
    assert counts.min() >= 1
    loss = mechanism.largest_log_ratio()
    assert loss <= epsilon
    # One word is a share of e^epsilon / 2^64 of the rarest count; beyond 44 the words run out.
    assert loss >= min(epsilon, 43.6) - 1e-15 - 2 * (levels or 1) * math.exp(min(epsilon, 40)) * 2.0**-64


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 3.0])
def test_largest_log_ratio_agrees_with_going_through_all_pairs(epsilon):
    flip, stars = SignFlip(epsilon=epsilon), RandomizedResponse(epsilon=epsilon, levels=5)
    for mechanism in (flip, stars):
        table = CountTable.of_probabilities(mechanism.transition())
        assert table.largest_log_ratio() == largest_ratio(table) == pytest.approx(epsilon, abs=1e-12)


@pytest.mark.parametrize("flips", [(0.2, 0.3), (0.05, 0.6), (0.3, 0.3), (0.6, 0.05), (0.01, 0.02)])
def test_asymmetric_rates_are_held_against_all_four_ratios(flips):
    p1, p2 = flips
    loss = math.log(max((1 - p1) / p2, (1 - p2) / p1, p1 / (1 - p2), p2 / (1 - p1)))
    allowed = SignFlip(epsilon=loss + 1e-12, flip_positive=p1, flip_negative=p2)
    assert allowed.largest_log_ratio() == pytest.approx(loss, abs=1e-13)
    assert allowed.flip_rates() == pytest.approx(flips, abs=1e-15)
    with refuses("broken-rule", name="epsilon"):
        SignFlip(epsilon=loss - 1e-12, flip_positive=p1, flip_negative=p2)


def test_the_printed_condition_on_two_ratios_is_not_enough():
    positive, negative, epsilon = 0.001, 0.4, 1.0
    assert 1 - negative * math.exp(epsilon) <= positive <= (1 - negative) * math.exp(epsilon)
    with refuses("broken-rule", name="epsilon", value=1.0):
        SignFlip(epsilon=epsilon, flip_positive=positive, flip_negative=negative)


@pytest.mark.parametrize(
    ("positive", "negative"), [(0.1, None), (None, 0.1), (0.0, 0.5), (0.5, 0.5), (-0.1, 0.5), (math.nan, 0.5)]
)
def test_impossible_flip_rates_are_refused(positive, negative):
    with refuses(ParameterError) as caught:
        SignFlip(epsilon=1.0, flip_positive=positive, flip_negative=negative)
    assert caught.value.code == "both-flips-needed" or caught.value.name.startswith("flip")


def test_the_word_at_the_threshold_decides():
    flip = SignFlip(epsilon=1.0)
    lie = int(Decimal(2**64) / (1 + Decimal(1).exp())) + 1
    # The last words turn a -1 into a +1, the first ones a +1 into a -1.
    assert flip.release([-1] * 2, words(2**64 - lie - 1, 2**64 - lie)).tolist() == [-1, 1]
    assert flip.release([1] * 2, words(lie - 1, lie)).tolist() == [-1, 1]


def test_every_outcome_of_randomized_response_starts_where_its_words_start():
    stars = RandomizedResponse(epsilon=1.0, levels=5)
    lie = int(Decimal(2**64) / (5 + Decimal(1).exp())) + 1
    # Code 2 is reported as 0 and 1 by the first words, as itself by the next, and as 3, 4, 5 by the last.
    starts = [0, lie, 2 * lie, 2**64 - 3 * lie, 2**64 - 2 * lie, 2**64 - lie]
    assert stars.release([2] * 6, words(*starts)).tolist() == [0, 1, 2, 3, 4, 5]
    assert stars.release([2] * 5, words(*(start - 1 for start in starts[1:]))).tolist() == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("code", [0, 3])
def test_reports_follow_the_table_and_not_a_neighboring_one(code):
    honest, bold = RandomizedResponse(epsilon=1.0, levels=5), RandomizedResponse(epsilon=1.1, levels=5)
    gap = np.abs(honest.channel().cdf(code) - bold.channel().cdf(code)).max()
    reports = honest.release(np.full(samples_to_separate(gap), code), PrivacyRandom.simulate(11))
    assert follows(reports, cumulative(honest.transition()[code]))
    assert not follows(reports, cumulative(bold.transition()[code]))


def test_flipped_verdicts_follow_the_table_and_not_a_neighboring_one():
    honest, bold = SignFlip(epsilon=1.0), SignFlip(epsilon=1.1)
    gap = abs(honest.flip_rates()[0] - bold.flip_rates()[0])
    reports = honest.release(np.ones(samples_to_separate(gap)), PrivacyRandom.simulate(12))
    kept = (reports > 0).astype(np.int64)
    assert follows(kept, cumulative(honest.transition()[1]))
    assert not follows(kept, cumulative(bold.transition()[1]))


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 5.0])
def test_the_channel_is_inverted(epsilon):
    stars = RandomizedResponse(epsilon=epsilon, levels=5)
    np.testing.assert_allclose(stars.transition().sum(axis=1), 1, atol=1e-15)
    np.testing.assert_allclose(stars.transition() @ stars.inverse(), np.eye(6), atol=1e-11)
    truth, lie = stars.keep(), stars.fake() / 5
    np.testing.assert_allclose(stars.inverse(), (np.eye(6) - lie) / (truth - lie), rtol=1e-9)
    assert stars.channel().condition() == pytest.approx(1 / (truth - lie))
    assert truth == pytest.approx(math.exp(epsilon) / (math.exp(epsilon) + 5))
    flip = (
        SignFlip(epsilon=epsilon, flip_positive=0.48, flip_negative=0.49)
        if epsilon < 1
        else SignFlip(epsilon=epsilon)
    )
    np.testing.assert_allclose(flip.transition() @ flip.inverse(), np.eye(2), atol=1e-11)


def test_decoding_is_unbiased_by_enumeration():
    stars = RandomizedResponse(epsilon=0.7, levels=5)
    scores = np.array([0.0, -2.0, -1.0, 0.5, 1.0, 2.0])
    decoded = stars.decode(np.arange(6), scores)
    np.testing.assert_allclose(stars.transition() @ decoded, scores, atol=1e-12)
    np.testing.assert_allclose(stars.mean(np.arange(6)), stars.transition() @ np.arange(6), atol=1e-12)
    np.testing.assert_allclose(stars.inverse_mean(stars.mean([0, 2, 5])), [0, 2, 5], atol=1e-9)
    np.testing.assert_array_equal(stars.likelihood(np.arange(6)[:, None], np.arange(6)), stars.transition().T)
    squares = stars.transition() @ np.arange(6) ** 2
    np.testing.assert_allclose(
        stars.variance(np.arange(6)), squares - stars.mean(np.arange(6)) ** 2, atol=1e-12
    )


def test_sign_flip_moments_are_those_of_its_two_outcomes():
    flip = SignFlip(epsilon=2.0, flip_positive=0.2, flip_negative=0.3)
    np.testing.assert_allclose(flip.mean([1, -1]), [1 - 2 * 0.2, 2 * 0.3 - 1], atol=1e-14)
    np.testing.assert_allclose(flip.variance([1, -1]), [4 * 0.2 * 0.8, 4 * 0.3 * 0.7], atol=1e-14)
    np.testing.assert_allclose(flip.transition()[1] @ flip.decode([-1, 1]), 1, atol=1e-14)
    np.testing.assert_allclose(flip.transition()[0] @ flip.decode([-1, 1]), -1, atol=1e-14)
    np.testing.assert_allclose(flip.inverse_mean(flip.mean([-1, 0.25, 1])), [-1, 0.25, 1], atol=1e-14)
    assert flip.inverse_mean(1.0) == 1.0
    np.testing.assert_allclose(flip.likelihood([1, -1, 1], [1, 1, -1]), [0.8, 0.2, 0.3], atol=1e-15)


@pytest.mark.parametrize("bad", [[0], [2], [0.5], ["a"], [math.inf]])
def test_verdicts_are_plus_or_minus_one(bad):
    with pytest.raises(DataError):
        SignFlip(epsilon=1.0).release(bad, PrivacyRandom.simulate(1))


@pytest.mark.parametrize("bad", [[-1], [6], [0.5], ["a"], [math.inf]])
def test_codes_lie_in_the_alphabet(bad):
    with pytest.raises(DataError):
        RandomizedResponse(epsilon=1.0, levels=5).release(bad, PrivacyRandom.simulate(1))


@pytest.mark.parametrize("levels", [0, -1, 1.5, 2000, "5"])
def test_levels_are_few_whole_numbers(levels):
    with refuses(ParameterError, name="levels"):
        RandomizedResponse(epsilon=1.0, levels=levels)


def test_a_table_that_reveals_too_much_is_not_used():
    table = CountTable.of_probabilities(np.array([[0.9, 0.1], [0.1, 0.9]]))
    assert table.kept(math.log(9) + 1e-12) is table
    with refuses("table-reveals"):
        table.kept(math.log(9) - 1e-12)
    with refuses("broken-rule", name="counts", must="be at least 1"):
        CountTable.of_counts(np.array([[0, 0]], dtype=np.uint64))
    with refuses("broken-rule", name="counts", must="add up to 2^64 in every row"):
        CountTable.of_counts(np.array([[1, 2]], dtype=np.uint64))


@pytest.mark.parametrize("mechanism", [HiddenStars(epsilon=2.0), HiddenNumbers(epsilon=2.0, points=5)])
def test_which_items_were_rated_is_not_reported(mechanism):
    with refuses("whole-catalog-needed"):
        mechanism.release([1.0], PrivacyRandom.simulate(1))


def test_only_square_channels_are_inverted():
    channel = SignFlip(epsilon=1.0).channel()
    oblong = type(channel)(inputs=channel.inputs, outputs=channel.outputs[:1], transition=np.ones((2, 1)))
    with refuses("no-inverse"):
        oblong.inverse()


def test_the_largest_quotient_of_counts_is_exact_also_below_one():
    big = 2**62
    tops, bottoms = (np.array(some, dtype=np.uint64) for some in ([1, 2, 1], [2, 3, 3]))
    assert channel.largest_ratio(tops, bottoms) == Fraction(2, 3)
    # Floats cannot tell these apart.
    tops, bottoms = np.array([big - 1, big], dtype=np.uint64), np.array([big, big + 1], dtype=np.uint64)
    assert channel.largest_ratio(tops, bottoms) == Fraction(big, big + 1)


def test_a_mechanism_is_read_with_all_its_settings_or_not_at_all():
    record = {"name": "bounded-laplace", "epsilon": 2.0, "low": 1.0, "high": 5.0, "points": 9}
    found = mechanism_from(record, RATING_MECHANISMS)
    assert (mechanism_name(found), found.epsilon, found.points) == ("bounded-laplace", 2.0, 9)
    for wrong in (record | {"more": 1}, {key: record[key] for key in ("name", "epsilon")}):
        with refuses("wrong-mechanism"):
            mechanism_from(wrong, RATING_MECHANISMS)


def test_stars_need_two_levels_or_a_scale_of_one_value():
    assert HiddenStars(epsilon=2.0, low=1.0, high=1.0).levels == 1
    with refuses("broken-rule", name="step"):
        HiddenStars(epsilon=2.0, low=1.0, high=1.4)
