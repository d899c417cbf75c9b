"""Integer kernels for every small input and at the ends of 64 bits: rounding, shifts, and no overflow."""

from fractions import Fraction

import numpy as np
import pytest

from discreet.core.checks import DataError
from discreet.privacy.accounting.rounding import root_above, round_down, round_up
from discreet.privacy.mechanisms.additive import NoiseGrid
from discreet.privacy.sampling.draws import add_discrete_laplace

FAR = 1 << 62


def grid(exponent):
    return NoiseGrid(exponent=exponent, noise=1.0, off_diagonal=1.0, add=add_discrete_laplace)


@pytest.mark.few(4)
@pytest.mark.parametrize("coarser", range(-6, 11))
def test_shifts_round_every_small_integer_to_the_nearest_step_halves_to_even(coarser):
    counts = np.arange(-4_100, 4_101)
    found = grid(coarser - 20)._shifted(counts, 20)
    # Python rounds fractions to the nearest whole number, halves to even.
    expected = [round(Fraction(int(count), 1) / Fraction(2) ** coarser) for count in counts]
    assert found.tolist() == expected
    assert all(
        abs(Fraction(int(new)) - Fraction(int(old)) / Fraction(2) ** coarser) <= Fraction(1, 2)
        for new, old in zip(found, counts, strict=True)
    )


@pytest.mark.parametrize("coarser", [*range(1, 63), 63, 64, 70])
def test_shifts_at_the_ends_of_64_bits_do_not_overflow(coarser):
    ends = [FAR - 1, 1 - FAR, 2**63 - 1, -(2**63), 2**61 + 1, 0, 1, -1]
    found = grid(coarser - 20)._shifted(np.array(ends, dtype=np.int64), 20)
    for old, new in zip(ends, found.tolist(), strict=True):
        exact = Fraction(old) / Fraction(2) ** coarser
        assert new == round(exact) if coarser <= 62 else abs(new - exact) <= 1


@pytest.mark.parametrize("finer", [*range(63), 63, 64, 90])
def test_a_finer_grid_shifts_exactly_or_rejects(finer):
    # However fine the grid is, zero is on it.
    most = max(FAR >> finer, 1)
    for count in {0, 1, -1, most - 1, 1 - most}:
        if abs(count) < most:
            found = grid(-finer - 20)._shifted(np.array([count]), 20)
            assert int(found[0]) == count << finer and abs(int(found[0])) < FAR
    for count in (most, -most, 2**62, -(2**62)):
        with pytest.raises(DataError):
            grid(-finer - 20)._shifted(np.array([count]), 20)


def test_directed_rounding_of_fractions_near_every_power_of_two():
    for power in range(-60, 61, 3):
        for numerator in (1, 3, 7, 2**53 - 1, 2**53 + 1, 2**54 + 1, 10**17 + 3):
            exact = Fraction(numerator, 3) * Fraction(2) ** power
            below, above = Fraction(round_down(exact)), Fraction(round_up(exact))
            assert below <= exact <= above and above - below <= exact / 2**51
            root = root_above(exact)
            assert exact < root**2 <= exact * (1 + Fraction(1, 2**58))
