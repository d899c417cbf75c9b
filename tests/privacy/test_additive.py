import math
import tracemalloc
from fractions import Fraction

import dp_accounting
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import ndtr

from discreet.core.checks import ParameterError
from discreet.core.randomness import PrivacyRandom
from discreet.privacy.accounting import accountant
from discreet.privacy.mechanisms.additive import FixedPoint, Gaussian, Laplace, NoiseGrid
from discreet.testing import refuses
from evidence import follows, gap, samples_to_separate

GRID = np.linspace(-5, 5, 4001)
MECHANISMS = [Laplace(scale=2.0, l1_sensitivity=1.0), Gaussian(sigma=2.0, l2_sensitivity=1.0)]
magnitudes = st.floats(min_value=1e-3, max_value=1e3)
sizes = st.integers(min_value=1, max_value=10**8)


def wide_and_timid(kind, width):
    if kind is Laplace:
        return Laplace(scale=width, l1_sensitivity=width), Laplace(scale=width / 1.1, l1_sensitivity=width)
    return Gaussian(sigma=width, l2_sensitivity=width), Gaussian(sigma=width / 1.1, l2_sensitivity=width)


@pytest.mark.parametrize("width", [1e-3, 1.0, 1e5])
@pytest.mark.parametrize("kind", [Laplace, Gaussian])
def test_the_noise_has_the_width_it_claims(kind, width):
    honest, timid = wide_and_timid(kind, width)
    count = samples_to_separate(gap(honest.cdf, timid.cdf, GRID * width))
    noise = honest.release(np.zeros(count), PrivacyRandom.simulate(1))
    assert follows(noise, honest.cdf)
    assert not follows(noise, timid.cdf)


def reachable_from_one(outputs):
    """Tell which outputs 1 + noise can reach in double arithmetic: near 0 only multiples of 2^-53."""
    return np.ldexp(outputs, 53) == np.rint(np.ldexp(outputs, 53))


def guesses_of_one(outputs):
    """Return how often the attack says "1", among outputs so near 0 that doubles are dense there."""
    near = outputs[np.abs(outputs) < 2.0**-6]
    assert near.size > 200
    return float(np.mean(reachable_from_one(near)))


def test_the_floating_point_attack_beats_numpy_and_fails_on_the_grid():
    count = 60_000
    numpy_laplace = np.random.Generator(np.random.PCG64(1)).laplace
    assert guesses_of_one(1.0 + numpy_laplace(size=count)) == 1.0
    assert guesses_of_one(0.0 + numpy_laplace(size=count)) < 0.2

    ours, source = Laplace(scale=1.0, l1_sensitivity=1.0), PrivacyRandom.simulate(1)
    zero, one = ours.release(np.zeros(count), source), ours.release(np.ones(count), source)
    assert guesses_of_one(one) == guesses_of_one(zero) == 1.0
    # Stronger: a wide range of multiples of one public step is reached from either secret.
    step = math.ldexp(1.0, ours._grid(count).exponent)
    for outputs in (zero, one):
        np.testing.assert_array_equal(outputs / step, np.rint(outputs / step))


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_the_grid_does_not_depend_on_the_data(mechanism):
    step = math.ldexp(1.0, mechanism._grid(1000).exponent)
    for values in (np.zeros(1000), np.full(1000, math.pi), np.linspace(-1e6, 1e6, 1000)):
        steps = mechanism.release(values, PrivacyRandom.simulate(1)) / step
        np.testing.assert_array_equal(steps, np.rint(steps))


@given(scale=magnitudes, sensitivity=magnitudes, size=sizes)
def test_laplace_noise_pays_for_rounding_and_grid(scale, sensitivity, size):
    sensitivity = min(sensitivity, 32 * scale)
    mechanism = Laplace(scale=scale, l1_sensitivity=sensitivity)
    grid = mechanism._grid(size)
    step = Fraction(2) ** grid.exponent
    apart = Fraction(sensitivity) / step + 2 * size
    assert apart / Fraction(grid.noise) <= Fraction(sensitivity) / Fraction(scale)
    assert Fraction(grid.off_diagonal) * 2 >= Fraction(grid.noise) * (1 - Fraction(1, 2**50))
    assert step * Fraction(grid.noise) <= Fraction(scale) * (1 + Fraction(1, 2**11)) or grid.noise > 2**48


@given(sigma=magnitudes, sensitivity=magnitudes, size=sizes)
def test_gaussian_noise_pays_for_rounding_and_grid(sigma, sensitivity, size):
    sensitivity = min(sensitivity, 8 * sigma)
    grid = Gaussian(sigma=sigma, l2_sensitivity=sensitivity)._grid(size)
    step = Fraction(2) ** grid.exponent
    wanted = Fraction(sensitivity) / Fraction(sigma)
    for noise, weight in ((grid.noise, 1), (grid.off_diagonal, 2)):
        # Off the diagonal half the variance must do, as the entry counts twice.
        continuous = weight * (Fraction(noise) ** 2 - 4)
        root = Fraction(math.isqrt(size * 4**40) + 1, 2**40)
        slack = 1 + Fraction(1, 2**40)
        assert (Fraction(sensitivity) / step + root) ** 2 <= continuous * wanted**2 * slack
    assert step * Fraction(grid.noise) <= Fraction(sigma) * (1 + Fraction(1, 2**11)) or grid.noise > 2**48


def hockey_stick(probabilities, shift, epsilon):
    """Return the divergence at epsilon between a distribution on whole numbers and itself moved."""
    here = np.concatenate([probabilities, np.zeros(shift)])
    there = np.concatenate([np.zeros(shift), probabilities])
    return float(np.maximum(here - math.exp(epsilon) * there, 0).sum())


@pytest.mark.parametrize("shift", [1, 4, 15])
@pytest.mark.parametrize("scale", [2.0, 10.0])
def test_discrete_laplace_noise_hides_as_much_as_continuous_noise_one_step_nearer(scale, shift):
    reach = np.arange(-int(60 * scale), int(60 * scale) + 1)
    weights = np.exp(-np.abs(reach) / scale)
    probabilities = weights / weights.sum()

    def continuous(distance, epsilon):
        return max(0.0, -math.expm1((epsilon - distance / scale) / 2))

    epsilons = np.linspace(0, shift / scale + 0.5, 300)
    discrete = [hockey_stick(probabilities, shift, epsilon) for epsilon in epsilons]
    excess = [have - continuous(shift + 1, at) for have, at in zip(discrete, epsilons, strict=True)]
    unpaid = [have - continuous(shift, at) for have, at in zip(discrete, epsilons, strict=True)]
    assert max(excess) < 1e-12
    assert max(unpaid) > 1e-4


@pytest.mark.parametrize("shift", [1, 4, 15])
@pytest.mark.parametrize("sigma", [3.0, 10.0])
def test_discrete_gaussian_noise_hides_as_much_as_continuous_noise_with_less_variance(sigma, shift):
    reach = np.arange(-int(40 * sigma), int(40 * sigma) + 1)

    def profile(variance, epsilon):
        weights = np.exp(-(reach**2) / (2 * variance))
        return hockey_stick(weights / weights.sum(), shift, epsilon)

    def continuous(epsilon):
        ratio = shift / sigma
        return ndtr(ratio / 2 - epsilon / ratio) - math.exp(epsilon) * ndtr(-ratio / 2 - epsilon / ratio)

    epsilons = np.linspace(0, 4 * shift / sigma, 200)
    assert max(profile(sigma**2 + 4, at) - continuous(at) for at in epsilons) < 1e-12
    assert max(profile(sigma**2, at) - continuous(at) for at in epsilons) > 1e-6


@given(epsilon=st.floats(min_value=1e-3, max_value=32), sensitivity=magnitudes)
def test_laplace_is_calibrated_to_a_pure_promise(epsilon, sensitivity):
    mechanism = Laplace.calibrated(epsilon=epsilon, l1_sensitivity=sensitivity)
    assert Fraction(sensitivity) / Fraction(mechanism.scale) <= Fraction(epsilon)
    assert accountant.epsilon_at(mechanism.event(), 0.0) <= epsilon
    assert mechanism.scale <= sensitivity / epsilon * (1 + 1e-11)


@pytest.mark.parametrize("epsilon", [0.01, 1.0, 20.0])
@pytest.mark.parametrize("delta", [1e-9, 1e-3])
def test_gaussian_is_calibrated_to_an_approximate_promise(epsilon, delta):
    mechanism = Gaussian.calibrated(epsilon=epsilon, delta=delta, l2_sensitivity=3.0)
    assert accountant.epsilon_at(mechanism.event(), delta) <= epsilon
    smaller = Gaussian(sigma=mechanism.sigma * 0.999, l2_sensitivity=3.0)
    assert accountant.epsilon_at(smaller.event(), delta) > epsilon


def test_events_say_noise_over_sensitivity_and_never_too_much():
    assert Laplace(scale=3.0, l1_sensitivity=2.0).event() == dp_accounting.LaplaceDpEvent(1.5)
    assert Gaussian(sigma=3.0, l2_sensitivity=2.0).event() == dp_accounting.GaussianDpEvent(1.5)
    multiplier = Gaussian(sigma=1.0, l2_sensitivity=3.0).event().noise_multiplier
    assert Fraction(multiplier) <= Fraction(1, 3)


def test_variances_are_those_of_the_noise():
    assert Laplace(scale=3.0, l1_sensitivity=1.0).variance == 18.0
    assert Gaussian(sigma=3.0, l2_sensitivity=1.0).variance == 9.0


@pytest.mark.few(1)
@pytest.mark.parametrize("kind", [Laplace, Gaussian])
def test_a_symmetric_matrix_gets_symmetric_noise_and_less_of_it_off_the_diagonal(kind):
    source = PrivacyRandom.simulate(1)
    whole, _ = wide_and_timid(kind, 1.0)
    part, _ = wide_and_timid(kind, 1 / 2 if kind is Laplace else math.sqrt(0.5))
    size = 150
    matrix = np.random.Generator(np.random.PCG64(1)).normal(size=(size, size))
    matrix += matrix.T
    diagonal, above = [], []
    while sum(map(len, diagonal)) < samples_to_separate(gap(whole.cdf, part.cdf, GRID)):
        noisy = whole.release_symmetric(matrix, source)
        np.testing.assert_array_equal(noisy, noisy.T)
        diagonal.append(np.diag(noisy - matrix))
        above.append((noisy - matrix)[np.triu_indices(size, 1)])
    assert follows(np.concatenate(diagonal), whole.cdf)
    assert not follows(np.concatenate(diagonal), part.cdf)
    assert follows(np.concatenate(above), part.cdf)
    assert not follows(np.concatenate(above), whole.cdf)


@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.parametrize("size", [0, 1, 63, 64, 65, 130])
def test_only_the_upper_triangle_is_read(mechanism, size):
    matrix = np.arange(size * size, dtype=float).reshape(size, size) * 100
    symmetric = np.triu(matrix) + np.triu(matrix, 1).T
    noisy, same = (mechanism.release_symmetric(m, PrivacyRandom.simulate(1)) for m in (matrix, symmetric))
    np.testing.assert_array_equal(noisy, same)
    assert noisy.shape == (size, size)
    assert np.all(np.abs(noisy - symmetric) < 100)
    assert np.all(noisy != symmetric)


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_any_layout_gives_the_same_answer(mechanism):
    whole = np.arange(600, dtype=np.float32).reshape(20, 30)
    expected = mechanism.release(whole[::2, ::3].astype(np.float64).copy(), PrivacyRandom.simulate(1))
    for view in (
        whole[::2, ::3],
        whole.astype(np.int32)[::2, ::3],
        np.asfortranarray(whole[::2, ::3]),
        whole[::2, ::3].tolist(),
    ):
        np.testing.assert_array_equal(mechanism.release(view, PrivacyRandom.simulate(1)), expected)
    assert expected.dtype == np.float64
    assert expected.shape == (10, 10)
    assert mechanism.release(3.0, PrivacyRandom.simulate(1)).shape == ()


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_the_input_stays_as_it_is(mechanism):
    values = np.linspace(-1, 1, 100).reshape(10, 10)
    before = values.copy()
    mechanism.release(values, PrivacyRandom.simulate(1))
    mechanism.release_symmetric(values, PrivacyRandom.simulate(1))
    np.testing.assert_array_equal(values, before)


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_nothing_in_gives_nothing_out(mechanism):
    assert mechanism.release([], PrivacyRandom.simulate(1)).shape == (0,)
    assert mechanism.release(np.zeros((3, 0)), PrivacyRandom.simulate(1)).shape == (3, 0)


def test_without_privacy_nothing_is_added_and_the_event_says_so():
    for mechanism in (
        Laplace.calibrated(epsilon=math.inf, l1_sensitivity=1.0),
        Gaussian.calibrated(epsilon=math.inf, delta=0.0, l2_sensitivity=1.0),
    ):
        values = np.array([[1.5, 2.5], [2.5, 3.0]])
        source = PrivacyRandom.scripted(b"")
        np.testing.assert_array_equal(mechanism.release(values, source), values)
        np.testing.assert_array_equal(mechanism.release_symmetric(values, source), values)
        assert mechanism.event() == dp_accounting.NonPrivateDpEvent()
        assert mechanism.cdf([-1.0, 0.0, 1.0]).tolist() == [0.0, 1.0, 1.0]


@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_values_that_are_not_finite_are_refused_without_being_quoted(mechanism, bad):
    with refuses("not-finite-array", name="values"):
        mechanism.release([1.0, bad], PrivacyRandom.simulate(1))
    with refuses("not-finite-array", name="values"):
        mechanism.release_symmetric([[bad]], PrivacyRandom.simulate(1))


@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.parametrize(
    "values", [["a"], [1j], [None], np.array([1], dtype=np.longdouble), np.array([10**30])]
)
def test_values_that_are_not_numbers_are_refused(mechanism, values):
    with refuses("off-grid", name="values"):
        mechanism.release(values, PrivacyRandom.simulate(1))


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_values_beyond_the_grid_are_refused(mechanism):
    for value in (1e300, -1e18):
        with refuses("sum-too-large"):
            mechanism.release([value, 0.0], PrivacyRandom.simulate(1))
    with refuses("sum-too-large", exponent=53):
        mechanism.release(np.array([2**53 + 3]), PrivacyRandom.simulate(1))


@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.parametrize("matrix", [np.zeros((2, 3)), np.zeros(4), 1.0])
def test_a_symmetric_matrix_must_be_square(mechanism, matrix):
    with refuses("broken-rule", name="matrix"):
        mechanism.release_symmetric(matrix, PrivacyRandom.simulate(1))


@pytest.mark.parametrize("bad", [-1.0, math.nan, math.inf, "1", None])
def test_bad_parameters_are_refused(bad):
    for make in (
        lambda: Laplace(scale=bad, l1_sensitivity=1.0),
        lambda: Laplace(scale=1.0, l1_sensitivity=bad),
        lambda: Gaussian(sigma=bad, l2_sensitivity=1.0),
        lambda: Gaussian(sigma=1.0, l2_sensitivity=bad),
        lambda: Laplace.calibrated(epsilon=1.0, l1_sensitivity=bad),
        lambda: Gaussian.calibrated(epsilon=1.0, delta=bad, l2_sensitivity=1.0),
    ):
        with pytest.raises(ParameterError):
            make()


@pytest.mark.parametrize("epsilon", [0.0, -1.0, math.nan, "1"])
def test_a_bad_epsilon_is_refused(epsilon):
    with refuses(ParameterError, name="epsilon"):
        Laplace.calibrated(epsilon=epsilon, l1_sensitivity=1.0)
    with refuses(ParameterError, name="epsilon"):
        Gaussian.calibrated(epsilon=epsilon, delta=1e-6, l2_sensitivity=1.0)


def test_so_little_noise_that_a_secret_could_leave_its_support_is_refused():
    with refuses("broken-rule", name="scale", value=1.0):
        Laplace(scale=1.0, l1_sensitivity=32.1)
    with refuses("broken-rule", name="sigma", value=1.0):
        Gaussian(sigma=1.0, l2_sensitivity=8.1)
    with refuses("broken-rule", name="scale"):
        Laplace.calibrated(epsilon=128.0, l1_sensitivity=1.0)


def test_more_noise_than_numbers_can_hold_is_refused():
    with refuses("broken-rule", name="epsilon", value=1e-200):
        Laplace.calibrated(epsilon=1e-200, l1_sensitivity=1e200)
    with refuses("broken-rule", name="sigma", value=1e200):
        Gaussian(sigma=1e200, l2_sensitivity=1e-200)
    with refuses("broken-rule", name="noise"):
        Laplace(scale=1e14, l1_sensitivity=1.0).release(np.zeros(1000), PrivacyRandom.simulate(1))


@pytest.mark.parametrize(
    ("width", "sensitivity"), [(1e-320, 1e-322), (1e-200, 5e-200), (1e300, 1e299), (3.0, 1e-3)]
)
def test_extreme_magnitudes_keep_their_noise(width, sensitivity):
    for mechanism in (
        Laplace(scale=width, l1_sensitivity=sensitivity),
        Gaussian(sigma=width, l2_sensitivity=sensitivity),
    ):
        noise = mechanism.release(np.zeros(1000), PrivacyRandom.simulate(1))
        assert 0.1 * width < np.max(np.abs(noise)) < 30 * width


@pytest.mark.few(1)
@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_the_result_is_the_only_large_array(mechanism):
    values = np.zeros(2_000_000, dtype=np.float32)
    mechanism.release(values[:10], PrivacyRandom.simulate(1))
    tracemalloc.start()
    mechanism.release(values, PrivacyRandom.simulate(1))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 16_000_000 + 5_000_000


def quiet_grid(exponent):
    return NoiseGrid(exponent=exponent, noise=1.0, off_diagonal=1.0, add=lambda steps, noise, random: None)


@given(
    st.lists(st.integers(-(2**62) + 1, 2**62 - 1), min_size=1, max_size=5),
    st.sampled_from([24, 26, 28]),
    st.integers(-90, 40),
)
def test_whole_steps_are_rounded_to_the_grid_exactly(counts, bits, exponent):
    """As fractions say, halves to even, where a float would already have lost digits."""
    exact = [Fraction(count) / 2**bits / Fraction(2) ** exponent for count in counts]
    grid = quiet_grid(exponent)
    if any(abs(one) >= 2**62 for one in exact):
        with refuses("sum-too-large"):
            grid._shifted(np.array(counts), bits)
    else:
        assert grid._shifted(np.array(counts), bits).tolist() == [round(one) for one in exact]


def test_a_float_would_move_a_large_sum_by_more_than_the_person_did():
    """The twin: beyond 2^53 steps the float of a sum does not see one step, or sees two."""
    assert float(2**60 + 1) - float(2**60) != 1
    grid = quiet_grid(-28)
    large, larger = (grid._shifted(np.array([2**60 + more]), 28) for more in (0, 1))
    assert larger - large == 1


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_whole_steps_get_the_noise_that_the_same_floats_get(mechanism):
    counts = np.random.default_rng(0).integers(-(2**50), 2**50, (40, 40))
    steps, floats = FixedPoint(counts, 28), np.ldexp(counts.astype(np.float64), -28)
    for release in ("release", "release_symmetric"):
        one, other = (getattr(mechanism, release)(it, PrivacyRandom.simulate(3)) for it in (steps, floats))
        np.testing.assert_array_equal(one, other)
