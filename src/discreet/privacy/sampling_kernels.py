"""Turn random bytes into exact integer draws: the compiled loops behind `sampling`.

Every kernel takes a stream of random bytes, goes on from draw `done` and returns how far it came before the
bytes could run out; the caller brings more. A probability is a pair of 64-bit words, high and low, in units
of 2^-128, and no floating-point number takes part (proofs/sampling.md).
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from numba import njit

Words = npt.NDArray[np.uint64]
Bytes = npt.NDArray[np.uint8]
Integers = npt.NDArray[np.int64]

# Unsigned constants: numba would turn a mix of int64 and uint64 into a float.
_ZERO, _ONE = np.uint64(0), np.uint64(1)
_BYTE, _HALF, _HALF_MASK = np.uint64(8), np.uint64(32), np.uint64(0xFFFFFFFF)
_TOP_BYTE, _BYTE_MASK = np.uint64(56), np.uint64(0xFF)

BYTES_PER_DECISION = 16
# Bytes of the exponent that the Gaussian's acceptance looks at; what follows is below 2^-89.
EXPONENT_BYTES = 12
# The acceptance keeps |y|/sigma with this many binary digits after the point.
RATIO_BITS = 121
_UNITY_HIGH = np.uint64(1 << (RATIO_BITS - 64))
_FAR_HIGH = np.uint64(1 << (RATIO_BITS + 4 - 64))


@njit(cache=True, nogil=True)
def _word(stream: Bytes, at: int, count: int) -> np.uint64:
    word = _ZERO
    for offset in range(count):
        word = (word << _BYTE) | np.uint64(stream[at + offset])
    return word


@njit(cache=True, nogil=True)
def _decide(stream: Bytes, at: int, high: np.uint64, low: np.uint64) -> tuple[bool, int]:
    """Return true with probability (high, low), and the place after the bytes read: nearly always one."""
    first, lead = np.uint64(stream[at]), high >> _TOP_BYTE
    if first != lead:
        return bool(first < lead), at + 1
    word = (first << _TOP_BYTE) | _word(stream, at + 1, 7)
    if word != high:
        return bool(word < high), at + 8
    return bool(_word(stream, at + 8, 8) < low), at + 16


@njit(cache=True, nogil=True)
def _magnitude(stream: Bytes, at: int, high: Words, low: Words) -> tuple[int, int]:
    """Return a geometric draw put together from its independent binary digits."""
    value = 0
    for digit in range(high.size):
        one, at = _decide(stream, at, high[digit], low[digit])
        value |= int(one) << digit
    return value, at


@njit(cache=True, nogil=True)
def add_geometric(target: Integers, done: int, stream: Bytes, high: Words, low: Words) -> int:
    """Add a geometric draw to each element."""
    last = stream.size - BYTES_PER_DECISION * high.size
    at = 0
    while done < target.size and at <= last:
        value, at = _magnitude(stream, at, high, low)
        target[done] += value
        done += 1
    return done


@njit(cache=True, nogil=True)
def add_laplace(target: Integers, done: int, stream: Bytes, high: Words, low: Words) -> int:
    """Add a two-sided geometric draw to each element; minus zero is drawn again."""
    last = stream.size - BYTES_PER_DECISION * high.size - 1
    at = 0
    while done < target.size and at <= last:
        value, at = _magnitude(stream, at, high, low)
        minus = stream[at] & 1
        at += 1
        if minus:
            if value == 0:
                continue
            value = -value
        target[done] += value
        done += 1
    return done


@njit(cache=True, nogil=True)
def _high_product(a: np.uint64, b: np.uint64) -> np.uint64:
    """Return the upper 64 bits of a * b."""
    a1, a0, b1, b0 = a >> _HALF, a & _HALF_MASK, b >> _HALF, b & _HALF_MASK
    middle = a1 * b0 + ((a0 * b0) >> _HALF)
    other = a0 * b1 + (middle & _HALF_MASK)
    return a1 * b1 + (middle >> _HALF) + (other >> _HALF)


@njit(cache=True, nogil=True)
def _exponent(
    magnitude: np.uint64, rate_high: np.uint64, rate_low: np.uint64
) -> tuple[bool, np.uint64, np.uint64]:
    """Return (x - 1)^2 / 2 for x = magnitude * rate in units of 2^-121, and whether it is below 128."""
    # x = magnitude * rate, rounded down to 121 digits after the point.
    low = magnitude * rate_high
    high = _high_product(magnitude, rate_high)
    carry = _high_product(magnitude, rate_low)
    low += carry
    high += np.uint64(low < carry)
    # |x - 1|
    if high >= _UNITY_HIGH:
        high -= _UNITY_HIGH
    else:
        high = _UNITY_HIGH - high - np.uint64(low != _ZERO)
        low = _ZERO - low
    if high >= _FAR_HIGH:
        return False, _ZERO, _ZERO
    # The square of a number below 16 with 124 digits after the point; halving only moves the point.
    high = (high << np.uint64(3)) | (low >> np.uint64(61))
    low = low << np.uint64(3)
    cross = _high_product(high, low)
    square_low = high * high
    square_high = _high_product(high, high)
    for _ in range(2):
        square_low += cross
        square_high += np.uint64(square_low < cross)
    return True, square_high, square_low


@njit(cache=True, nogil=True)
def _survives(
    stream: Bytes, at: int, exponent_high: np.uint64, exponent_low: np.uint64, high: Words, low: Words
) -> tuple[bool, int]:
    """Return true with probability exp(-exponent): each byte of the exponent must survive on its own."""
    for place in range(EXPONENT_BYTES):
        if place < 8:
            byte = (exponent_high >> np.uint64(56 - 8 * place)) & _BYTE_MASK
        else:
            byte = (exponent_low >> np.uint64(120 - 8 * place)) & _BYTE_MASK
        if byte == _ZERO:
            continue
        survived, at = _decide(stream, at, high[place, byte], low[place, byte])
        if not survived:
            return False, at
    return True, at


@njit(cache=True, nogil=True)
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
    last = stream.size - BYTES_PER_DECISION * (high.size + EXPONENT_BYTES) - 1
    shift = np.uint64(62 - high.size)
    at = 0
    while done < target.size and at <= last:
        value, at = _magnitude(stream, at, high, low)
        minus = stream[at] & 1
        at += 1
        if minus and value == 0:
            continue
        near, exponent_high, exponent_low = _exponent(np.uint64(value) << shift, rate[0], rate[1])
        if not near:
            continue
        accepted, at = _survives(stream, at, exponent_high, exponent_low, decay_high, decay_low)
        if accepted:
            target[done] += -value if minus else value
            done += 1
    return done


@njit(cache=True, nogil=True)
def fill_bernoulli(
    target: npt.NDArray[np.bool_], done: int, stream: Bytes, high: np.uint64, low: np.uint64
) -> int:
    """Set each element to true with probability (high, low)."""
    last = stream.size - BYTES_PER_DECISION
    at = 0
    while done < target.size and at <= last:
        target[done], at = _decide(stream, at, high, low)
        done += 1
    return done


@njit(cache=True, nogil=True)
def fill_uniform(
    target: Integers, done: int, stream: Bytes, bound: np.uint64, mask: np.uint64, width: int
) -> int:
    """Set each element to a number below `bound`; a word that is too large is drawn again."""
    last = stream.size - width
    at = 0
    while done < target.size and at <= last:
        word = _word(stream, at, width) & mask
        at += width
        if word < bound:
            target[done] = np.int64(word)
            done += 1
    return done


@njit(cache=True, nogil=True)
def fill_from_table(target: Integers, done: int, stream: Bytes, starts: Words, rows: Integers) -> int:
    """Set each element to the last outcome of its row that starts at or before a random word."""
    last = stream.size - 8
    at = 0
    while done < target.size and at <= last:
        word = _word(stream, at, 8)
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
