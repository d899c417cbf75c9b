"""Decide from samples whether they follow a distribution, with both errors below 1e-9.

The Dvoretzky-Kiefer-Wolfowitz inequality (with Massart's constant) bounds the distance between an empirical
and the true distribution function: it exceeds t with probability at most 2 exp(-2 n t^2), whatever the
distribution. A sample of `samples_to_separate(gap)` is accepted under its own distribution and rejected under
any other at least `gap` away, except with probability 1e-9 each: so a test needs no retries, and its twin,
which must be rejected, shows that it is able to fail.
"""

import math

import numpy as np

ERROR = 1e-9


def tolerance(count, error=ERROR):
    """Return how far the empirical distribution function of `count` samples may be from the true one."""
    return math.sqrt(math.log(2 / error) / (2 * count))


def samples_to_separate(gap, error=ERROR):
    """Return how many samples tell two distribution functions apart that differ by `gap` somewhere."""
    assert 0 < gap <= 1, f"a gap of {gap} cannot be seen"
    return math.ceil(2 * math.log(2 / error) / gap**2) + 1


def samples_to_separate_two(gap, error=ERROR):
    """Return how many samples of each of two sources tell them apart when they differ by `gap` somewhere."""
    assert 0 < gap <= 1, f"a gap of {gap} cannot be seen"
    return math.ceil(8 * math.log(4 / error) / gap**2) + 1


def gap(cdf_a, cdf_b, grid):
    """Return the largest difference of two distribution functions on a grid; the true one is no smaller."""
    return float(np.max(np.abs(np.asarray(cdf_a(grid)) - np.asarray(cdf_b(grid)))))


def distance(sample, cdf):
    """Return the largest distance between the empirical distribution function and `cdf`.

    Whole numbers (an integer dtype) are taken as discrete: `cdf` jumps at them and nowhere else.
    """
    sample = np.asarray(sample).reshape(-1)
    values, counts = np.unique(sample, return_counts=True)
    reached = np.cumsum(counts) / sample.size
    before = reached - counts / sample.size
    left = values - 1 if np.issubdtype(values.dtype, np.integer) else values
    return max(np.max(np.abs(reached - cdf(values))), np.max(np.abs(before - cdf(left))))


def follows(sample, cdf, error=ERROR):
    """Tell whether the sample may come from `cdf`; wrongly no with probability at most `error`."""
    return bool(distance(sample, cdf) <= tolerance(np.size(sample), error))


def agree(sample_a, sample_b, error=ERROR):
    """Tell whether two samples may come from one source; wrongly no with probability at most `error`."""
    a, b = np.sort(np.ravel(sample_a)), np.sort(np.ravel(sample_b))
    points = np.concatenate([a, b])
    difference = (
        np.searchsorted(a, points, side="right") / a.size - np.searchsorted(b, points, side="right") / b.size
    )
    return bool(np.max(np.abs(difference)) <= tolerance(a.size, error / 2) + tolerance(b.size, error / 2))


def cumulative(probabilities, first=0):
    """Return the distribution function of `first`, `first` + 1, ... with these probabilities."""
    steps = np.concatenate([[0.0], np.cumsum(probabilities)])

    def cdf(values):
        index = np.clip(np.floor(np.asarray(values)).astype(np.int64) - first + 1, 0, len(steps) - 1)
        return steps[index]

    return cdf
