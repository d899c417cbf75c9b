"""Draw exact integer noise, fast: discrete Laplace, discrete Gaussian, geometric, Bernoulli, uniform, tables.

A draw is within 2^-60 of its distribution in total variation (the bounds proved in proofs/sampling.md are
far smaller), given bytes that are uniform and independent. That AES in counter mode supplies such bytes is a
separate, computational assumption. No floating-point number decides a random bit: a float parameter
is read as its exact fraction, and its probabilities are rounded once, to 128 binary digits.

An audit can record draws of a simulated source. Everything such a source touches is marked, so no release
that protects a user is recorded. Without a recording, a draw costs one more attribute lookup.

Written by hand because one training run needs a hundred million draws, and exact libraries make tens of
thousands per second.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import ROUND_FLOOR, Context, Decimal
from fractions import Fraction
from functools import lru_cache, wraps
from inspect import signature
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

import numpy as np
import numpy.typing as npt

from discreet.core import PrivacyRandom, integer, positive_finite, require
from discreet.core.exports import Later
from discreet.privacy.errors import BadTable, OffGrid

if TYPE_CHECKING:
    from discreet.privacy.sampling import kernels
else:
    # A model that only answers draws nothing, and the compiler takes longer to import than an answer.
    kernels = Later("discreet.privacy.sampling.kernels")

Given = ParamSpec("Given")
Output = TypeVar("Output")


def recorded(draw: Callable[Given, Output]) -> Callable[Given, Output]:
    """Return a wrapped draw: if its argument `random` has a recording, arguments and result go through it."""
    form = signature(draw)
    position = list(form.parameters).index("random")

    @wraps(draw)
    def through(*arguments: Given.args, **options: Given.kwargs) -> Output:
        random: Any = options["random"] if "random" in options else arguments[position]
        if random.recording is None:
            return draw(*arguments, **options)
        given = form.bind(*arguments, **options).arguments
        # Nested draws belong to this draw and are not recorded again.
        drawn: Output = random.recording.passing(draw, {**given, "random": random.unrecorded()})
        return drawn

    return through


Integers = npt.NDArray[np.int64]
Words = npt.NDArray[np.uint64]

# Any draw has at most 62 binary digits, so noise added to a number below 2^62 stays an int64.
LARGEST_SCALE = 2.0**55
_CHUNK = 1 << 20
# 199 binary digits, to round to 128 of them; decimal's exp is correctly rounded.
_PRECISE = Context(prec=60, rounding=ROUND_FLOOR, Emin=-(10**6), Emax=10**6)
_UNIT = Decimal(2**128)
_WORD = (1 << 64) - 1


@recorded
def geometric(scale: float, size: int, random: PrivacyRandom) -> Integers:
    """Return draws of k = 0, 1, 2, ... with probability proportional to exp(-k / scale)."""
    target = np.zeros(integer("size", size, least=0), dtype=np.int64)
    high, low = geometric_digits(scale)
    _feed(kernels.add_geometric, target, random, high.size, 0, high, low)
    return target


def geometric_digits(scale: float) -> tuple[Words, Words]:
    """Return the chance of each binary digit of a geometric draw, in units of 2^-128: high and low words."""
    return _digits(_checked_scale("scale", scale), _laplace_digit_count(float(scale)))


def discrete_laplace(scale: float, size: int, random: PrivacyRandom) -> Integers:
    """Return draws of any integer k with probability proportional to exp(-|k| / scale)."""
    target = np.zeros(integer("size", size, least=0), dtype=np.int64)
    add_discrete_laplace(target, scale, random)
    return target


def discrete_gaussian(sigma: float, size: int, random: PrivacyRandom) -> Integers:
    """Return draws of any integer k with probability proportional to exp(-k^2 / (2 sigma^2))."""
    target = np.zeros(integer("size", size, least=0), dtype=np.int64)
    add_discrete_gaussian(target, sigma, random)
    return target


@recorded
def add_discrete_laplace(target: Integers, scale: float, random: PrivacyRandom) -> None:
    """Add `discrete_laplace` draws to `target` in place, with constant memory for any size.

    The elements must be strictly within 2^62 of zero, which isn't checked. Every draw is, too.
    """
    flat = _flat(target)
    high, low = geometric_digits(scale)
    _feed(kernels.add_laplace, flat, random, high.size, 1, high, low)


@recorded
def add_discrete_gaussian(target: Integers, sigma: float, random: PrivacyRandom) -> None:
    """Add `discrete_gaussian` draws to `target` in place, with constant memory for any size.

    The elements must be strictly within 2^62 of zero, which isn't checked. Every draw is, too.

    References:
        Canonne, Kamath and Steinke, The Discrete Gaussian for Differential Privacy (2020): rejection from
        the discrete Laplace distribution, here of scale sigma itself.
    """
    flat, (high, low, rate) = _flat(target), _gaussian_tables(sigma)
    decisions = high.size + kernels.ACCEPTANCE_DECISIONS
    _feed(kernels.add_gaussian, flat, random, decisions, 1, high, low, rate, *_decay())


@recorded
def bernoulli(probability: float | Fraction, size: int, random: PrivacyRandom) -> npt.NDArray[np.bool_]:
    """Return draws that are true with the given probability, rounded down to a multiple of 2^-128."""
    ok = isinstance(probability, int | float | Fraction | np.floating) and 0 <= probability <= 1
    require(ok, "probability", probability, must="be in [0, 1]")
    target = np.ones(integer("size", size, least=0), dtype=np.bool_)
    if probability != 1:
        high, low = _split(math.floor(Fraction(probability) * 2**128))
        _feed(kernels.fill_bernoulli, target, random, 1, 0, high, low)
    return target


@recorded
def uniform_below(bound: int, size: int, random: PrivacyRandom) -> Integers:
    """Return draws of 0, 1, ..., bound - 1, all equally likely, without any error."""
    integer("bound", bound, least=1, most=2**63)
    target = np.zeros(integer("size", size, least=0), dtype=np.int64)
    bits = (int(bound) - 1).bit_length()
    if bits:
        width = (bits + 7) // 8
        words = np.uint64(bound), np.uint64((1 << bits) - 1), width
        _feed_bytes(kernels.fill_uniform, target, random, width, 2 * width, *words)
    return target


@recorded
def draw_from_table(starts: Words, row_index: npt.ArrayLike, random: PrivacyRandom) -> Integers:
    """Return one outcome for each row index, drawn from that row without any error.

    Parameters:
        starts: Entry [i, j] is the first of the 2^64 words that yields outcome j in row i. So the gap to
            entry [i, j+1], or to 2^64 at the end, over 2^64 is the outcome's probability. Rows begin with
            0 and never fall; an outcome with an empty gap is never drawn.
        row_index: Which row to draw from, in any shape.
    """
    table = np.ascontiguousarray(starts)
    ok = table.dtype == np.uint64 and table.ndim == 2 and table.size > 0
    require(ok, "starts", table.shape, must="be a matrix of uint64")
    if table[:, 0].any() or (table[:, 1:] < table[:, :-1]).any():
        raise BadTable(name="Each row of starts", must="begin with 0 and never fall")
    index = np.asarray(row_index)
    if index.size and (index.dtype.kind not in "iu" or index.min() < 0 or index.max() >= table.shape[0]):
        raise OffGrid(name="row_index", must=f"have whole numbers from 0 to {table.shape[0] - 1}")
    rows = np.ascontiguousarray(index, dtype=np.int64).reshape(-1)
    target = np.zeros(rows.size, dtype=np.int64)
    _feed_bytes(kernels.fill_from_table, target, random, 8, 8, table, rows)
    return target.reshape(index.shape)


def _feed(
    kernel: Callable[..., int],
    target: npt.NDArray[Any],
    random: PrivacyRandom,
    decisions: int,
    extra: int,
    *tables: Any,
) -> None:
    """Run a kernel whose draw takes up to `decisions` comparisons and `extra` bytes."""
    most = kernels.BYTES_PER_DECISION * decisions + extra
    _feed_bytes(kernel, target, random, most, decisions + extra + 1, *tables)


def _feed_bytes(
    kernel: Callable[..., int],
    target: npt.NDArray[Any],
    random: PrivacyRandom,
    most: int,
    usual: int,
    *tables: Any,
) -> None:
    """Supply random bytes until every element is drawn. Unused bytes are discarded."""
    done = 0
    while done < target.size:
        left = target.size - done
        stream = random.bytes(min(_CHUNK, most * min(kernels.BLOCK, left) + usual * left))
        done = kernel(target, done, stream, *tables)


def _flat(target: Integers) -> Integers:
    ok = isinstance(target, np.ndarray) and target.dtype == np.int64 and target.flags.c_contiguous
    if not ok or not target.flags.writeable:
        raise BadTable(name="target", must="be a writable, contiguous array of int64")
    return target.reshape(-1)


def _checked_scale(name: str, value: float) -> Fraction:
    number = positive_finite(name, value)
    require(number <= LARGEST_SCALE, name, value, must="be at most 2^55", do="Measure in coarser units.")
    return Fraction(number)


def _laplace_digit_count(scale: float) -> int:
    """Return how many binary digits a geometric draw outgrows with probability below 2^-128."""
    return max(1, math.ceil(math.log2(89 * scale)))


def _gaussian_digit_count(sigma: Fraction) -> int:
    """Return how many binary digits reach 16 sigma, where the Gaussian's tail is below 2^-180."""
    return max(1, (math.ceil(16 * sigma) - 1).bit_length())


@lru_cache(maxsize=256)
def _digits(scale: Fraction, count: int) -> tuple[Words, Words]:
    """Return the probability 1 / (1 + exp(2^j / scale)) that binary digit j of a geometric draw is set."""
    words = []
    for digit in range(count):
        ratio = Fraction(2**digit) / scale
        if ratio > 100:  # The probability is below 2^-144.
            words.append(0)
            continue
        power = _PRECISE.exp(_decimal(ratio))
        words.append(
            int(_PRECISE.multiply(_PRECISE.divide(Decimal(1), _PRECISE.add(power, Decimal(1))), _UNIT))
        )
    return _split_all(words)


@lru_cache(maxsize=1)
def _decay() -> tuple[Words, Words]:
    """Return exp(-byte / 2^(1 + 8 position)): the acceptance probability of one byte of the exponent."""
    words = []
    for position in range(kernels.TABLED_BYTES):
        for byte in range(256):
            power = _PRECISE.exp(-_decimal(Fraction(byte, 2 ** (1 + 8 * position))))
            words.append(min(int(_PRECISE.multiply(power, _UNIT)), 2**128 - 1))
    high, low = _split_all(words)
    shape = (kernels.TABLED_BYTES, 256)
    return high.reshape(shape), low.reshape(shape)


@lru_cache(maxsize=256, typed=True)
def _gaussian_tables(sigma: float) -> tuple[Words, Words, Words]:
    """Return the digits of a Gaussian draw, and 1 / sigma for the acceptance step.

    That step has a magnitude shifted up to 62 binary digits.
    """
    exact = _checked_scale("sigma", sigma)
    high, low = _digits(exact, _gaussian_digit_count(exact))
    rate = math.floor(Fraction(2 ** (kernels.RATIO_BITS + 64)) / (exact * 2 ** (62 - high.size)))
    return high, low, np.array(_split(min(rate, 2**128 - 1)), dtype=np.uint64)


def _decimal(value: Fraction) -> Decimal:
    return _PRECISE.divide(Decimal(value.numerator), Decimal(value.denominator))


def _split(number: int) -> tuple[np.uint64, np.uint64]:
    return np.uint64(number >> 64), np.uint64(number & _WORD)


def _split_all(numbers: list[int]) -> tuple[Words, Words]:
    high = np.array([number >> 64 for number in numbers], dtype=np.uint64)
    low = np.array([number & _WORD for number in numbers], dtype=np.uint64)
    return high, low
