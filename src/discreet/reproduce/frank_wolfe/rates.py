"""The error bounds E_emp and E_gen as rates: slopes of log errors over log n, d, m and epsilon.

The poster's example: rank one, entries in [-1, 1], m ratings a person, L = sqrt(m), k from the nuclear norm.
There the bounds become E_emp ~ sqrt(d) (n epsilon)^(-2/5) at T ~ (n epsilon)^(2/5) and m = sqrt(d); and
E_gen ~ (sqrt(d) / m)^(2/3) + n^(-1/2) epsilon^(-1/2) m^(-7/12) (d fixed) at T ~ (d^2 / m)^(1/3).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from discreet.core.randomness import experiment_generator
from discreet.reproduce.frank_wolfe.poster import Poster

# With steps of 1/T from zero, T of them reach 1 - 1/e of a target at the edge of the ball.
ROOM = 1 / (1 - 1 / math.e)
# The bounds leave the constant of T open.
PEOPLE_PER_ROUND = 1000


class RateErrors(NamedTuple):
    """Hold the mean squared error on the seen cells and on all."""

    seen: float
    everywhere: float


def errors(
    n: int, d: int, m: int, epsilon: float, rounds: int, seed: int, *, room: float = ROOM
) -> RateErrors:
    """Complete a rank-one matrix with entries of mean square 1/9 whose rows have m seen cells."""
    draw = experiment_generator(seed, "rates", n, d, m)
    items = draw.uniform(-1, 1, d)
    items *= math.sqrt(d / 3) / np.linalg.norm(items)
    truth = np.outer(draw.uniform(-1, 1, n), items).astype(np.float32)
    # Entries may leave [-1, 1] a little where the items were scaled up; rows then are clipped as printed.
    seen = (draw.random((n, d), dtype=np.float32).argsort(axis=1) < m).astype(np.float32)
    bound = math.sqrt(m)
    values = truth * seen
    values *= np.minimum(1, bound / np.maximum(np.linalg.norm(values, axis=1), 1e-12))[:, None]
    method = Poster(row_bound=bound, radius=room * float(np.linalg.norm(truth)), rounds=rounds)
    found = method.complete(values, seen, method.honest_noise(epsilon), seed)
    squares = (found - truth) ** 2
    return RateErrors(float((seen * squares).sum() / seen.sum()), float(squares.mean()))


def rounds_for_seen(n: int, epsilon: float) -> int:
    """Return T that balances the two terms of E_emp."""
    return max(1, round((n * epsilon / PEOPLE_PER_ROUND) ** 0.4))


def rounds_everywhere(d: int, m: int) -> int:
    """Return T of the bound on E_gen."""
    return max(1, round((d * d / m) ** (1 / 3)))


def slope(x: Sequence[float], y: Sequence[float]) -> float:
    """Return the slope of log y over log x."""
    return float(np.polyfit(np.log(x), np.log(y), 1)[0])


def emp_curves(seed: int, scale: int) -> dict[str, list[list[float]]]:
    """Return E_emp over n, epsilon and d; `scale` people stand for the smallest crowd."""
    people = [scale, 4 * scale, 16 * scale, 64 * scale]
    epsilons, widths, many = [1.0, 2.0, 4.0, 8.0, 16.0], [16, 64, 256], 16 * scale
    by_n = [errors(n, 16, 4, 4.0, rounds_for_seen(n, 4.0), seed).seen for n in people]
    by_epsilon = [errors(many, 16, 4, e, rounds_for_seen(many, e), seed).seen for e in epsilons]
    fixed = rounds_for_seen(4 * scale, 4.0)
    by_d = [errors(4 * scale, d, math.isqrt(d), 4.0, fixed, seed).seen for d in widths]
    return {"n": [people, by_n], "epsilon": [epsilons, by_epsilon], "d": [widths, by_d]}


def gen_curves(seed: int, scale: int) -> dict[str, list[list[float]]]:
    """Return E_gen over n, epsilon and m."""
    people = [scale, 4 * scale, 16 * scale, 64 * scale]
    epsilons, cells, many = [1.0, 2.0, 4.0, 8.0, 16.0], [4, 8, 16, 32], 16 * scale
    by_n = [errors(n, 16, 8, 4.0, rounds_everywhere(16, 8), seed).everywhere for n in people]
    by_epsilon = [errors(many, 16, 8, e, rounds_everywhere(16, 8), seed).everywhere for e in epsilons]
    by_m = [errors(2 * scale, 64, m, 16.0, rounds_everywhere(64, m), seed).everywhere for m in cells]
    return {"n": [people, by_n], "epsilon": [epsilons, by_epsilon], "m": [cells, by_m]}


def over_rounds(seed: int, scale: int) -> dict[str, list[float]]:
    """Return E_emp without noise over T, with k the nuclear norm itself and with room beyond it."""
    return {
        "rounds": [4, 8, 16, 32],
        "k is the nuclear norm": [
            errors(4 * scale, 16, 4, math.inf, rounds, seed, room=1.0).seen for rounds in (4, 8, 16, 32)
        ],
        "k is 1.58 times the nuclear norm": [
            errors(4 * scale, 16, 4, math.inf, rounds, seed).seen for rounds in (4, 8, 16, 32)
        ],
    }
