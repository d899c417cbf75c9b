"""Turn random bytes into exact integer draws: the compiled loops behind `sampling`.

Every kernel reads a stream of random bytes, continues from draw `done`, and returns the number of draws done
before the bytes could run out. The caller supplies more. A probability is a pair of 64-bit words, high and
low, in units of 2^-128. No floating-point number is involved (proofs/sampling.md).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from discreet.core.kernels import strict, strict_inner

Words = npt.NDArray[np.uint64]
Bytes = npt.NDArray[np.uint8]
Integers = npt.NDArray[np.int64]

# Unsigned constants: numba would turn a mix of int64 and uint64 into a float.
_ZERO, _ONE, _MOST = np.uint64(0), np.uint64(1), np.uint64((1 << 64) - 1)
_BYTE, _HALF, _HALF_MASK = np.uint64(8), np.uint64(32), np.uint64(0xFFFFFFFF)
_TOP_BYTE, _BYTE_MASK, _REST_MASK = np.uint64(56), np.uint64(0xFF), np.uint64((1 << 56) - 1)

# With a declared type: for a plain 0, numba would compile the called function a second time.
_START: Any = np.int64(0)
_SEVEN: Any = np.int64(7)
_EIGHT: Any = np.int64(8)

# Draws made together, so that bytes are compared by vector instructions.
BLOCK = 64

BYTES_PER_DECISION = 16
# The Gaussian's acceptance looks up this many bytes of the exponent and loops this often over the rest.
TABLED_BYTES = 2
MOST_TURNS = np.uint64(12)
ACCEPTANCE_DECISIONS = 14
# The acceptance keeps |y|/sigma with this many binary digits after the point.
RATIO_BITS = 121
_UNITY_HIGH = np.uint64(1 << (RATIO_BITS - 64))
_FAR_HIGH = np.uint64(1 << (RATIO_BITS + 4 - 64))


@strict_inner
def _word(stream: Bytes, at: int, count: int) -> np.uint64:
    """Return this many bytes as one number, the first one highest."""
    word = _ZERO
    for offset in range(count):
        word = (word << _BYTE) | np.uint64(stream[at + offset])
    return word


@strict_inner
def _break_tie(stream: Bytes, at: int, high: np.uint64, low: np.uint64) -> tuple[bool, int]:
    """Decide where the first byte equals that of (high, low): by seven bytes more, or by fifteen."""
    word, rest = _word(stream, at, _SEVEN), high & _REST_MASK
    if word != rest:
        return bool(word < rest), at + 7
    return bool(_word(stream, at + 7, _EIGHT) < low), at + 15


@strict_inner
def _decide(stream: Bytes, at: int, high: np.uint64, low: np.uint64) -> tuple[bool, int]:
    """Return true with probability (high, low), and the position after the bytes read: nearly always one."""
    first, lead = np.uint64(stream[at]), high >> _TOP_BYTE
    if first == lead:
        return _break_tie(stream, at + 1, high, low)
    return bool(first < lead), at + 1


@strict_inner
def _fill_magnitudes(values: Integers, stream: Bytes, at: int, high: Words, low: Words) -> int:
    """Set each value to a geometric draw, put together from its independent binary digits."""
    count = values.size
    spare = at + count * high.size
    values[:] = 0
    for digit in range(high.size):
        lead = np.uint8(high[digit] >> _TOP_BYTE)
        firsts = stream[at + digit * count : at + (digit + 1) * count]
        ties = 0
        # Without a branch in it, this loop is compiled to vector instructions.
        for index in range(count):
            values[index] |= np.int64(firsts[index] < lead) << digit
            ties += firsts[index] == lead
        if ties:
            for index in range(count):
                if firsts[index] == lead:
                    one, spare = _break_tie(stream, spare, high[digit], low[digit])
                    values[index] |= np.int64(one) << digit
    return spare


@strict
def add_geometric(target: Integers, done: int, stream: Bytes, high: Words, low: Words) -> int:
    """Add a geometric draw to each element."""
    values = np.empty(BLOCK, dtype=np.int64)
    at = _START
    while done < target.size:
        block = values[: min(BLOCK, target.size - done)]
        if at + block.size * BYTES_PER_DECISION * high.size > stream.size:
            break
        at = _fill_magnitudes(block, stream, at, high, low)
        target[done : done + block.size] += block
        done += block.size
    return done


@strict
def add_laplace(target: Integers, done: int, stream: Bytes, high: Words, low: Words) -> int:
    """Add a two-sided geometric draw to each element; minus zero is drawn again."""
    values = np.empty(BLOCK, dtype=np.int64)
    at = _START
    while done < target.size:
        block = values[: min(BLOCK, target.size - done)]
        if at + block.size * (BYTES_PER_DECISION * high.size + 1) > stream.size:
            break
        at = _fill_magnitudes(block, stream, at, high, low)
        for index in range(block.size):
            minus, value = np.int64(stream[at + index] & 1), block[index]
            if value != 0 or minus == 0:
                target[done] += (value ^ -minus) + minus
                done += 1
        at += block.size
    return done


@strict_inner
def _high_product(a: np.uint64, b: np.uint64) -> np.uint64:
    """Return the upper 64 bits of a * b."""
    a1, a0, b1, b0 = a >> _HALF, a & _HALF_MASK, b >> _HALF, b & _HALF_MASK
    middle = a1 * b0 + ((a0 * b0) >> _HALF)
    other = a0 * b1 + (middle & _HALF_MASK)
    return a1 * b1 + (middle >> _HALF) + (other >> _HALF)


@strict_inner
def exponent(magnitude: np.uint64, rate_high: np.uint64, rate_low: np.uint64) -> tuple[np.uint64, np.uint64]:
    """Return (x - 1)^2 / 2 in units of 2^-121, for x = magnitude * rate; at or above 128, just below 128."""
    # x, rounded down to 121 digits after the point.
    carry = _high_product(magnitude, rate_low)
    low = magnitude * rate_high + carry
    high = _high_product(magnitude, rate_high) + np.uint64(low < carry)
    # |x - 1|: flipping all digits negates a number up to its last digit.
    flip = _ZERO - np.uint64(high < _UNITY_HIGH)
    high, low = (high - _UNITY_HIGH) ^ flip, low ^ flip
    far = _ZERO - np.uint64(high >= _FAR_HIGH)
    # The square of a number below 16 with 124 digits after the point; halving only moves the point.
    high = (high << np.uint64(3)) | (low >> np.uint64(61))
    cross = _high_product(high, low << np.uint64(3))
    square_low = high * high
    square_high = _high_product(high, high)
    for _ in range(2):
        square_low += cross
        square_high += np.uint64(square_low < cross)
    return square_high | far, square_low | far


@strict_inner
def _survives(
    stream: Bytes, at: int, exponent_high: np.uint64, exponent_low: np.uint64, high: Words, low: Words
) -> tuple[bool, int]:
    """Return true with probability exp(-exponent), an exponent below 128 in units of 2^-121."""
    for position in range(TABLED_BYTES):
        byte = (exponent_high >> np.uint64(56 - 8 * position)) & _BYTE_MASK
        survived, at = _decide(stream, at, high[position, byte], low[position, byte])
        if not survived:
            return False, at
    rest_high = ((exponent_high << np.uint64(16)) >> np.uint64(9)) | (exponent_low >> np.uint64(57))
    return _survives_rest(stream, at, rest_high, exponent_low << np.uint64(7))


@strict_inner
def _survives_rest(stream: Bytes, at: int, high: np.uint64, low: np.uint64) -> tuple[bool, int]:
    """Return true with probability exp(-r) for r = (high, low) below 2^-9.

    The first k for which a decision of probability r / k fails is odd with just that probability.
    """
    again, at = _decide(stream, at, high, low)
    turn = _ONE
    while again and turn < MOST_TURNS:
        turn += _ONE
        share_low = (high % turn) * (_MOST // turn) + low // turn
        again, at = _decide(stream, at, high // turn, share_low)
    return bool(turn & _ONE), at


@strict
def add_gaussian(
    target: Integers,
    done: int,
    stream: Bytes,
    high: Words,
    low: Words,
    rate: Words,
    decay_high: Words,
    decay_low: Words,
) -> int:
    """Add a discrete Gaussian draw to each element: a two-sided geometric one that survived its test."""
    values = np.empty(BLOCK, dtype=np.int64)
    exponents = np.empty((2, BLOCK), dtype=np.uint64)
    shift = np.uint64(62 - high.size)
    most = BYTES_PER_DECISION * (high.size + ACCEPTANCE_DECISIONS) + 1
    at = _START
    while done < target.size:
        block = values[: min(BLOCK, target.size - done)]
        if at + block.size * most > stream.size:
            break
        at = _fill_magnitudes(block, stream, at, high, low)
        for index in range(block.size):
            upper, lower = exponent(np.uint64(block[index]) << shift, rate[0], rate[1])
            exponents[0, index], exponents[1, index] = upper, lower
        for index in range(block.size):
            minus, value = np.int64(stream[at] & 1), block[index]
            at += 1
            if value == 0 and minus == 1:
                continue
            accepted, at = _survives(
                stream, at, exponents[0, index], exponents[1, index], decay_high, decay_low
            )
            if accepted:
                target[done] += (value ^ -minus) + minus
                done += 1
    return done


@strict
def fill_bernoulli(
    target: npt.NDArray[np.bool_], done: int, stream: Bytes, high: np.uint64, low: np.uint64
) -> int:
    """Set each element to true with probability (high, low)."""
    last = stream.size - BYTES_PER_DECISION
    at = _START
    while done < target.size and at <= last:
        target[done], at = _decide(stream, at, high, low)
        done += 1
    return done


@strict
def fill_uniform(
    target: Integers, done: int, stream: Bytes, bound: np.uint64, mask: np.uint64, width: int
) -> int:
    """Set each element to a number below `bound`; a word that is too large is drawn again."""
    last = stream.size - width
    at = _START
    while done < target.size and at <= last:
        word = _word(stream, at, width) & mask
        at += width
        if word < bound:
            target[done] = np.int64(word)
            done += 1
    return done


@strict
def fill_from_table(target: Integers, done: int, stream: Bytes, starts: Words, rows: Integers) -> int:
    """Set each element to the last outcome of its row that starts at or before a random word."""
    last = stream.size - 8
    at = _START
    while done < target.size and at <= last:
        word = _word(stream, at, _EIGHT)
        at += 8
        row = rows[done]
        below, above = 0, starts.shape[1]
        while above - below > 1:
            middle = (below + above) // 2
            if starts[row, middle] <= word:
                below = middle
            else:
                above = middle
        target[done] = below
        done += 1
    return done
