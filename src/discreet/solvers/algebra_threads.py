"""Keep the threads of the linear-algebra library out of the way of our own."""

from __future__ import annotations

from contextlib import AbstractContextManager

from threadpoolctl import threadpool_limits


def one_algebra_thread() -> AbstractContextManager[object]:
    """Let the linear-algebra library use one thread inside the block.

    For solves that take turns between thin matrices and sparse products: after a product the library's
    threads wait in a loop for the next one and take the processor from the sparse products. It holds for
    the whole process, like every setting of that library, and costs a few milliseconds: once a solve.
    """
    limited: AbstractContextManager[object] = threadpool_limits(limits=1, user_api="blas")
    return limited
