"""Round exact numbers to the side that is safe: a reported loss is never too small, nor is noise."""

from __future__ import annotations

import math
from collections.abc import Iterable
from fractions import Fraction


def round_up(exact: Fraction) -> float:
    """Return the smallest float that is not below an exact non-negative number."""
    try:
        nearest = float(exact)
    except OverflowError:
        return math.inf
    return nearest if Fraction(nearest) >= exact else math.nextafter(nearest, math.inf)


def round_down(exact: Fraction) -> float:
    """Return the largest float that is not above an exact number."""
    nearest = float(exact)
    return nearest if Fraction(nearest) <= exact else math.nextafter(nearest, -math.inf)


def sum_up(values: Iterable[float]) -> float:
    """Return the sum of non-negative floats, rounded up once; exact sums stay exact.

    Example:
        >>> sum_up([0.5, 0.25, 0.25])
        1.0
    """
    numbers = list(values)
    if any(math.isinf(number) for number in numbers):
        return math.inf
    return round_up(sum(map(Fraction, numbers), Fraction(0)))


def times_up(value: float, count: int) -> float:
    """Return `count` times a non-negative float, rounded up."""
    return value if math.isinf(value) else round_up(Fraction(value) * count)


def left_over(limit: float, spent: float) -> float:
    """Return the rest of a finite limit, rounded down and never below 0."""
    if spent >= limit:
        return 0.0
    exact = Fraction(limit) - Fraction(spent)
    nearest = float(exact)
    return nearest if Fraction(nearest) <= exact else math.nextafter(nearest, 0.0)


def group_delta(epsilon: float, delta: float, size: int) -> float:
    """Return the delta of a group: delta times 1 + e^eps + ... + e^((size-1) eps), rounded up; at most 1."""
    if size == 1 or delta == 0 or math.isinf(epsilon):
        return delta
    exponent = math.log(delta) + (size - 1) * epsilon
    if exponent >= 0:
        return 1.0
    # A rounding error inside the exponential grows with the size of the rounded number.
    slack = 1 + 2.0**-50 * (4 + abs(math.log(delta)) + (size - 1) * epsilon)
    ratio = math.expm1(-size * epsilon) / math.expm1(-epsilon)
    return math.nextafter(min(math.exp(exponent + math.log(ratio)) * slack, 1.0), 1.0)


def exact(number: float | Fraction) -> str | int:
    """Return a number without rounding: a whole number as it is, any other as a text such as "3/4"."""
    fraction = Fraction(number)
    return int(fraction) if fraction.denominator == 1 else str(fraction)


def power_of_two(exponent: int) -> Fraction:
    """Return 2^exponent exactly."""
    return Fraction(2) ** exponent


def floor_log2(value: Fraction) -> int:
    """Return the largest whole exponent whose power of two is not above the value."""
    guess = value.numerator.bit_length() - value.denominator.bit_length()
    return guess if power_of_two(guess) <= value else guess - 1


def root_above(value: Fraction) -> Fraction:
    """Return a number above the square root, by a share of less than 2^-60."""
    digits = max(0, 64 - floor_log2(value) // 2)
    return Fraction(math.isqrt(math.ceil(value * 4**digits)) + 1, 2**digits)
