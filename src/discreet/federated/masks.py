"""Masks over a party's answer: a stream of numbers that a key opens, added modulo 2^64.

The sum of masked answers without the sum of their masks is the sum of the answers. One masked answer alone is
uniformly random (proofs/federated.md).
"""

from __future__ import annotations

import hashlib
import hmac
import json
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

Words = npt.NDArray[np.uint64]
KEY_BYTES = 32


def fingerprint(key: bytes) -> str:
    """Return what identifies a key and opens nothing: 32 random bytes cannot be guessed from it."""
    return hashlib.sha256(b"discreet: key of a mask\0" + key).hexdigest()


def mask_key(secret: bytes, question: str, arrays: Mapping[str, npt.NDArray[Any]]) -> bytes:
    """Return the key of the mask for one answer to one question.

    Different answers, or answers to different questions, never get the same key, also from the same secret:
    a party that was restored and draws again uses a different mask.
    """
    state = hmac.new(secret, b"discreet: mask of an answer\0" + question.encode(), hashlib.sha256)
    for name in sorted(arrays):
        array = np.ascontiguousarray(arrays[name])
        state.update(f"\0{name} {array.dtype.str} {array.shape}\0".encode() + array.tobytes())
    return state.digest()


def set_token(key: bytes, question: str, names: Iterable[str]) -> str:
    """Return what confirms to the keeper that a party's answer to a question may be summed over a set."""
    text = json.dumps([question, sorted(names)])
    return hmac.new(key, b"discreet: set of a sum\0" + text.encode(), hashlib.sha256).hexdigest()[:32]


def mask(key: bytes, size: int) -> Words:
    """Return the stream of numbers that a key opens (AES-256 in counter mode)."""
    cipher = Cipher(algorithms.AES(key), modes.CTR(bytes(16))).encryptor()
    return np.frombuffer(cipher.update(bytes(8 * size)), dtype="<u8").astype(np.uint64)


def masked(arrays: Mapping[str, npt.NDArray[Any]], key: bytes) -> dict[str, Words]:
    """Return the arrays with one mask over all of them, in the order of their names."""
    names = sorted(arrays)
    stream = mask(key, sum(arrays[name].size for name in names))
    out: dict[str, Words] = {}
    for name in names:
        size = arrays[name].size
        out[name] = arrays[name].astype(np.uint64) + stream[:size].reshape(arrays[name].shape)
        stream = stream[size:]
    return out


def unmasked(arrays: Mapping[str, Words], total: Words) -> dict[str, Words]:
    """Return sums of masked arrays without the sum of their masks."""
    out: dict[str, Words] = {}
    for name in sorted(arrays):
        size = arrays[name].size
        out[name] = arrays[name] - total[:size].reshape(arrays[name].shape)
        total = total[size:]
    return out


class Hidden(NamedTuple):
    """An answer behind its mask, what the keeper gets of the mask's key, and the key's fingerprint."""

    arrays: dict[str, Words]
    sealed: dict[str, str | int | float | bool]
    fingerprint: str


def hidden(arrays: Mapping[str, npt.NDArray[Any]], secret: bytes, question: str, least: int) -> Hidden:
    """Return an answer to a question, given by its digest, behind a mask.

    The keeper takes masks off sums over at least `least` parties, all of one question.
    """
    key = mask_key(secret, question, arrays)
    sealed: dict[str, str | int | float | bool] = {"key": key.hex(), "question": question, "least": least}
    return Hidden(masked(arrays, key), sealed, fingerprint(key))
