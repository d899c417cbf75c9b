"""Kernels that draw write no element too many and use every whole draw that the bytes hold."""

import numpy as np
import pytest

from discreet.privacy.sampling import kernels

_HALF = np.uint64(1 << 63)
# Each kernel with how many bytes one draw takes, and how many must be there before it is tried.
FILLING = {
    "bernoulli": (
        lambda target, done, stream: kernels.fill_bernoulli(target, done, stream, _HALF, np.uint64(0)),
        np.bool_,
        1,
        kernels.BYTES_PER_DECISION,
    ),
    "uniform": (
        lambda target, done, stream: kernels.fill_uniform(
            target, done, stream, np.uint64(256), np.uint64(255), 8
        ),
        np.int64,
        8,
        8,
    ),
    "table": (
        lambda target, done, stream: kernels.fill_from_table(
            target, done, stream, np.array([[0, 1 << 63]], dtype=np.uint64), np.zeros(target.size, np.int64)
        ),
        np.int64,
        8,
        8,
    ),
}


@pytest.mark.parametrize("name", FILLING)
def test_nothing_behind_the_target_is_written(name):
    """The target lies within a larger array, and there are bytes for far more draws than asked for."""
    fill, kind, _, _ = FILLING[name]
    for fillers in (0, 1):
        around = np.full(12, fillers, dtype=kind)
        # Bytes of which every draw is the other number.
        stream = np.full(400, 0 if fillers == 1 else 255, dtype=np.uint8)
        if name == "bernoulli":
            stream = 255 - stream
        assert fill(around[:7], 2, stream) == 7
        assert (around[[0, 1, 7, 8, 9, 10, 11]] == fillers).all() and (around[2:7] != fillers).all()


@pytest.mark.parametrize("name", FILLING)
def test_every_whole_draw_that_the_bytes_hold_is_made(name):
    fill, kind, each, most = FILLING[name]
    for draws in (1, 2, 5):
        size = most + (draws - 1) * each
        # Bytes unlike the first of a half, so that no tie takes more of them.
        stream = np.full(size, 7, dtype=np.uint8)
        assert fill(np.zeros(20, dtype=kind), 0, stream) == draws
        assert fill(np.zeros(20, dtype=kind), 0, stream[:-1]) == draws - 1
