"""Importance sampling: the weights, what a record costs, and the released sum."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import lambertw

from discreet.core.checks import DataError, ParameterError
from discreet.core.randomness import PrivacyRandom
from discreet.privacy.certificate import sampling_release
from discreet.privacy.mechanisms.subsampling import ImportanceSampling
from discreet.testing import refuses
from evidence import cumulative, follows, samples_to_separate


def exact_loss(size, weight):
    """Return log(1 + (e^(w size) - 1) / w) as printed, for sizes where nothing overflows."""
    return np.log1p(np.expm1(weight * size) / weight)


@given(
    epsilon=st.floats(1e-5, 32),
    share=st.floats(0, 0.999),
    scale=st.floats(1e-6, 1e6),
    cap=st.floats(1, 2.0**32),
)
def test_every_weight_costs_at_most_epsilon_and_no_larger_one_does(epsilon, share, scale, cap):
    sampling = ImportanceSampling(epsilon=epsilon, scale=scale, max_weight=cap)
    norm = share * sampling.largest_norm()
    weight = sampling.weights([norm])
    assert 1 <= weight[0] <= cap
    assert sampling.loss([norm], weight)[0] <= epsilon
    if weight[0] < cap:
        assert sampling.loss([norm], weight * 1.001 + 1e-6)[0] > epsilon


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 3.0])
def test_the_weights_solve_the_printed_equation(epsilon):
    sampling = ImportanceSampling(epsilon=epsilon, scale=2.0, max_weight=2.0**32)
    norms = np.linspace(0.01, 0.999, 50) * sampling.largest_norm()
    size, rate = norms / 2.0, math.expm1(epsilon)
    closed = -1 / rate - lambertw(-size / rate * np.exp(-size / rate), -1).real / size
    weights = sampling.weights(norms)
    np.testing.assert_allclose(weights, closed, rtol=1e-6)
    np.testing.assert_allclose(exact_loss(size, weights), epsilon, rtol=1e-7)
    np.testing.assert_allclose(sampling.loss(norms, weights), exact_loss(size, weights), rtol=1e-8)
    assert np.all(np.diff(weights) < 0)


def test_the_printed_equation_without_its_minus_one_has_another_root():
    weight = ImportanceSampling(epsilon=1.0, scale=2.0).weights([1.0])[0]
    printed = math.exp(weight * 1.0 / 2.0) / weight - math.expm1(1.0)
    assert printed == pytest.approx(1 / weight, rel=1e-6)


@pytest.mark.parametrize("size", [0.01, 0.5, 1.0, 2.0])
@pytest.mark.parametrize("weight", [1.0, 1.5, 4.0, 100.0])
def test_the_loss_covers_adding_and_removing_by_enumeration(size, weight):
    """Mix discrete Laplace noise around 0 and around the record's share, and compare with noise around 0."""
    scale, shift = 40.0, round(40.0 * size * weight)
    reports = np.arange(-4000, 4001 + shift)
    without = np.exp(-np.abs(reports) / scale)
    drawn = np.exp(-np.abs(reports - shift) / scale)
    ratio = 1 - 1 / weight + drawn / without / weight
    loss = exact_loss(shift / scale / weight, weight)
    assert np.abs(np.log(ratio)).max() == pytest.approx(loss, rel=1e-9)


def test_records_are_drawn_as_often_as_their_weights_say():
    sampling = ImportanceSampling(epsilon=1.0, scale=4.0)
    norm = 2.0
    weight = sampling.weights([norm])[0]
    honest, twin = 1 / weight, 1 / (1.1 * weight)
    count = samples_to_separate(honest - twin)
    drawn, weights = sampling.sample(np.full(count, norm), PrivacyRandom.simulate(41))
    assert np.all(weights == weight)
    assert follows(drawn.astype(np.int64), cumulative([1 - honest, honest]))
    assert not follows(drawn.astype(np.int64), cumulative([1 - twin, twin]))


def test_the_largest_record_is_always_drawn_and_the_empty_one_rarely():
    sampling = ImportanceSampling.calibrated(epsilon=0.5, largest_norm=3.0, max_weight=50.0)
    assert sampling.largest_norm() >= 3.0 and sampling.scale == pytest.approx(6.0, rel=1e-8)
    drawn, weights = sampling.sample([3.0] * 1000 + [0.0] * 1000, PrivacyRandom.simulate(42))
    assert drawn[:1000].all() and np.all(weights[:1000] < 1 + 1e-6)
    assert np.all(weights[1000:] == 50.0)


def test_records_clipped_to_the_largest_norm_are_welcome():
    sampling = ImportanceSampling(epsilon=0.7, scale=1.3)
    vectors = np.random.default_rng(1).normal(size=(1000, 7))
    clipped = vectors * (sampling.largest_norm() / np.abs(vectors).sum(axis=1, keepdims=True))
    norms = np.abs(clipped).sum(axis=1)
    assert norms.max() > sampling.largest_norm()
    assert sampling.loss(norms, sampling.weights(norms)).max() <= 0.7
    with refuses("off-grid"):
        sampling.weights(norms * (1 + 1e-9))


def test_a_word_decides_whether_a_record_is_drawn():
    sampling = ImportanceSampling(epsilon=1.0, scale=4.0, max_weight=4.0)
    for word, expected in ((3 * 2**62 - 1, False), (3 * 2**62, True)):
        script = PrivacyRandom.scripted(word.to_bytes(8, "big") * 20)
        assert sampling.sample([0.0], script)[0].tolist() == [expected]


def test_the_sum_is_unbiased():
    sampling = ImportanceSampling(epsilon=2.0, scale=1.0)
    vectors = np.array([[0.5, -0.25], [0.1, 0.1], [1.0, 0.5], [0.0, 0.0]])
    weights = sampling.weights(np.abs(vectors).sum(axis=1))
    repeats, doubt = 20_000, math.log(4e9)
    # Many copies of the data in one call; Bernstein's bound for the sample, and the noise's own tail.
    variance = repeats * ((weights - 1)[:, None] * vectors**2).sum(axis=0)
    third = np.abs(weights[:, None] * vectors).max() * doubt / 3
    off = third + np.sqrt(third**2 + 2 * variance * doubt) + sampling.scale * doubt
    total = sampling.release(np.tile(vectors, (repeats, 1)), PrivacyRandom.simulate(43))
    assert np.all(np.abs(total - repeats * vectors.sum(axis=0)) < off)
    # The twin: what a sum that forgets the weights would have found.
    unweighted = repeats * (vectors / weights[:, None]).sum(axis=0)
    assert np.all(np.abs(unweighted - repeats * vectors.sum(axis=0)) > 2 * off)


def test_the_noise_has_the_scale_it_claims():
    honest = ImportanceSampling(epsilon=1.0, scale=3.0)

    def cdf(scale):
        return lambda x: np.where(x < 0, np.exp(-np.abs(x) / scale) / 2, 1 - np.exp(-np.abs(x) / scale) / 2)

    apart = np.max(np.abs(cdf(3.0)(np.linspace(0, 9, 500)) - cdf(3.3)(np.linspace(0, 9, 500))))
    noise = honest.release(np.zeros((1, samples_to_separate(apart))), PrivacyRandom.simulate(44))
    assert follows(noise, cdf(3.0))
    assert not follows(noise, cdf(3.3))


def test_sums_live_on_a_grid_and_no_records_leave_noise_alone():
    sampling = ImportanceSampling(epsilon=1.0, scale=3.0)
    noise = sampling.release(np.zeros((0, 4)), PrivacyRandom.simulate(45))
    assert noise.shape == (4,)
    steps = noise / 2.0 ** (1 - 30)
    np.testing.assert_array_equal(steps, np.rint(steps))


@pytest.mark.parametrize(
    "change",
    [{"scale": value} for value in (0, -1, math.nan, math.inf, "1", 1e-300)]
    + [{"max_weight": value} for value in (0.5, math.nan, math.inf, 2.0**40)]
    + [{"epsilon": value} for value in (0, -1, 33, math.nan, math.inf)],
)
def test_bad_parameters_are_refused(change):
    with pytest.raises(ParameterError):
        ImportanceSampling(**{"epsilon": 1.0, "scale": 1.0, **change})


def test_bad_records_are_refused_without_quoting_them():
    sampling = ImportanceSampling(epsilon=1.0, scale=1.0)
    random = PrivacyRandom.simulate(1)
    with refuses("off-grid") as error:
        sampling.release([[0.75, 0.5]], random)
    assert "0.75" not in str(error.value)
    for bad in ([0.5, 0.5], [[math.nan]], [["a"]]):
        with pytest.raises(DataError):
            sampling.release(bad, random)
    with refuses("off-grid", name="norms"):
        sampling.weights([-1.0])
    with refuses("broken-rule", name="weights_below_1", value=1):
        sampling.loss([0.5], [0.9])
    with refuses("sum-overflows", vectors=1073741824):
        ImportanceSampling(epsilon=32.0, scale=1.0, max_weight=2.0**32)._require_no_overflow(2**30, 2.0**-34)


def test_a_certificate_states_the_ratio_of_norm_and_noise():
    sampling = ImportanceSampling(epsilon=1.0, scale=2.0)
    release = sampling_release("gradients", sampling)
    stated = Fraction(release["count"]) * Fraction(release["sensitivity"]) / Fraction(release["scale"])
    assert stated == Fraction(sampling.largest_norm()) / 2
