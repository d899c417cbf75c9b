"""Change bytes, JSON and arrays the way accidents and attackers do."""

import json
import random

import numpy as np

_NUMBERS = [0, -1, 1, 2**31 - 1, 2**31, 2**63 - 1, -(2**63), 2**64, 10**400, 0.5, -0.0, 1e308, float("nan")]
_NUMBERS += [float("inf"), float("-inf"), True, None]
_TEXTS = ["", "\0", "a" * 5000, "\x1b[31m", "ａ", "nan", "-1", "9" * 400, "[" * 2000, "../../x", "\ud800"]


def bytes_of(raw: bytes, chance: random.Random) -> bytes:
    """Return the bytes with some of them flipped, cut, repeated, moved, or replaced by extreme numbers."""
    data = bytearray(raw)
    for _ in range(chance.choice((1, 1, 2, 4, 16))):
        place = chance.randrange(len(data) + 1)
        length = min(chance.choice((1, 2, 4, 8, 64)), len(data) - place)
        kind = chance.randrange(7)
        if kind == 0 and place < len(data):
            data[place] ^= 1 << chance.randrange(8)
        elif kind == 1:
            del data[place : len(data) if chance.random() < 0.3 else place + length]
        elif kind == 2:
            data[place:place] = data[place : place + length] * chance.choice((1, 2, 50))
        elif kind == 3:
            data[place : place + length] = chance.choice((b"\xff", b"\0", b"\x7f")) * length
        elif kind == 4:
            data[place:place] = chance.randbytes(length)
        elif kind == 5:
            data[place : place + length] = chance.randbytes(length)
        else:
            number = chance.choice(
                (b"9" * 400, b"-1", b"1e999", b"NaN", b'"', b"[" * 500, b"\n", b",", b"\x1b")
            )
            data[place : place + length] = number
    return bytes(data)


def json_of(value, chance: random.Random):
    """Return a JSON value with one part, somewhere in it, replaced, removed or added."""
    if isinstance(value, dict) and value and chance.random() < 0.8:
        key = chance.choice(list(value))
        kind = chance.random()
        if kind < 0.1:
            return {name: part for name, part in value.items() if name != key}
        if kind < 0.2:
            return {**value, chance.choice(_TEXTS): anything(chance)}
        return {**value, key: json_of(value[key], chance)}
    if isinstance(value, list) and value and chance.random() < 0.8:
        place = chance.randrange(len(value))
        kind = chance.random()
        if kind < 0.1:
            return value[:place]
        if kind < 0.2:
            return value * chance.choice((2, 100))
        return [*value[:place], json_of(value[place], chance), *value[place + 1 :]]
    return anything(chance)


def anything(chance: random.Random):
    """Return an extreme JSON value of any type."""
    deep = json.loads("[" * 200 + "]" * 200)
    return chance.choice([*_NUMBERS, *_TEXTS, [], {}, [None], {"": None}, deep])


def array_of(array, chance: random.Random):
    """Return an array of another type, shape or content."""
    kind = chance.randrange(8)
    if kind == 0:
        with np.errstate(all="ignore"):
            return array.astype(
                chance.choice(["<f4", "<f8", ">f8", "<i4", "<i8", "<u8", "<U3", "<f2", "|b1"])
            )
    if kind == 1:
        return array[: chance.randrange(len(array) + 1)] if array.ndim else array.reshape(1)
    if kind == 2:
        return np.concatenate([array, array], axis=chance.randrange(max(array.ndim, 1)))
    if kind == 3:
        return array.reshape(chance.choice([(-1,), (1, *array.shape), (*array.shape, 1)]))
    if kind == 4 and array.ndim == 2:
        return array.T if chance.random() < 0.5 else np.asfortranarray(array)
    changed = array.copy()
    if not changed.size or changed.dtype.kind not in "fiu":
        return changed
    cells = [chance.randrange(changed.size) for _ in range(chance.choice((1, 3, changed.size)))]
    with np.errstate(all="ignore"):
        changed.ravel()[cells] = _extreme(changed.dtype, chance)
    return changed


def _extreme(dtype, chance: random.Random):
    if dtype.kind == "f":
        return dtype.type(
            chance.choice([np.nan, np.inf, -np.inf, 1e300, -1e300, 1e55, -1e55, 0.0, -1.0, 1e-320])
        )
    limits = np.iinfo(dtype)
    return dtype.type(chance.choice([limits.min, limits.max, 0, 11, 12, 13, 99, limits.max // 2]))
