"""The linear-algebra library gets its threads back."""

import numpy as np
import pytest
from scipy import linalg
from threadpoolctl import threadpool_info, threadpool_limits

from discreet.core.arrays import one_algebra_thread


@pytest.fixture(autouse=True)
def two_threads():
    """Give libraries two threads, however many the tests around have; some that peers bring stay at one."""
    assert linalg.norm(np.eye(2)) > 1  # both of them bring a library
    with threadpool_limits(limits=2, user_api="blas"):
        assert 2 in threads()
        yield


def threads() -> list[int]:
    return [each["num_threads"] for each in threadpool_info() if each["user_api"] == "blas"]


def test_one_thread_inside_the_block_and_all_of_them_after_it():
    before = threads()
    with one_algebra_thread():
        assert set(threads()) == {1}
    assert threads() == before


def test_threads_come_back_after_a_failure():
    before = threads()
    with pytest.raises(ZeroDivisionError), one_algebra_thread():
        _ = 1 / 0
    assert threads() == before
