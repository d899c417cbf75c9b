"""The linear-algebra library gets its threads back."""

import pytest
from threadpoolctl import threadpool_info

from discreet.solvers.algebra_threads import one_algebra_thread


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
