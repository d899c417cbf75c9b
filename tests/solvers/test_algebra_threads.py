"""The linear-algebra library gets its threads back."""

import subprocess
import sys

import pytest

# Threads that other tests leave set this number for the whole process, so this runs in a process of its own.
SCRIPT = """
import numpy as np
from scipy import linalg
from threadpoolctl import threadpool_info, threadpool_limits

from discreet.core.arrays import one_algebra_thread

assert linalg.norm(np.eye(2)) > 1  # both of them bring a library


def threads():
    return [each["num_threads"] for each in threadpool_info() if each["user_api"] == "blas"]


with threadpool_limits(limits=2, user_api="blas"):
    before = threads()
    assert 2 in before
    try:
        with one_algebra_thread():
            assert set(threads()) == {1}
            {then}
    except ZeroDivisionError:
        pass
    assert threads() == before
print("came back")
"""


@pytest.mark.parametrize("then", ["pass", "1 / 0"])
def test_one_thread_inside_the_block_and_all_of_them_after_it_even_if_it_fails(then):
    script = SCRIPT.replace("{then}", then)
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stdout) == (0, "came back\n"), ran.stderr
