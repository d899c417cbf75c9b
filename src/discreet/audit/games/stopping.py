"""Play games until enough is known, with the error split over all interim checks and both bounds.

Each interim check spends a part of the allowed error, and the last one spends the rest. A guarantee is called
refuted only if a fresh run of the same size refutes it again, at 99.9%: among eighty sound tests at 95% a
few fail by chance.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import final

from discreet.audit.games.bounds import GuessCounts, refuted_epsilon, refuted_on_curve
from discreet.audit.games.playing import Attack
from discreet.audit.games.scores import Cuts

CONFIRMING_ERROR = 1e-3
_CHECKS = 5
_PART = 20_000


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """How long to play.

    Parameters:
        lessons: The number of games on which the cuts are learned.
        games: The most games that are then counted.
        seconds: No new batch starts after this time.
        error: The allowed error of this attack, over all its interim checks.
        enough: Stop when this share of the guarantee is refuted.
    """

    lessons: int = 1_000
    games: int = 8_000
    seconds: float = 60.0
    error: float = 0.01
    enough: float = 0.97


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class GameOutcome:
    """The epsilon that games refuted: without an assumption, and on the curve of the releases."""

    refuted: float
    curve: float | None
    broken: bool
    tally: GuessCounts
    error: float


def play(
    attack: Attack,
    plan: Plan,
    *,
    epsilon: float,
    delta: float,
    distance: Callable[[float], float] | None,
    seed: int,
) -> GameOutcome:
    """Play games until enough is refuted or the plan is used up; confirm a refutation on fresh games."""
    deadline = time.perf_counter() + plan.seconds
    cuts = Cuts.learned(*attack.play(plan.lessons, seed), delta, plan.error)
    tally, left = GuessCounts(games=0, guesses=0, right=0, right_of_all=0), plan.error
    refuted, curve = 0.0, 0.0

    def bounds(tally: GuessCounts, error: float) -> tuple[float, float]:
        """Return both bounds, each at half of the error."""
        on_curve = 0.0 if distance is None else refuted_on_curve(tally, distance, error / 2)
        return refuted_epsilon(tally, delta, error / 2), on_curve

    for check, count in enumerate(_batches(max(plan.games >> (_CHECKS - 1), 1), _CHECKS)):
        for number, size in enumerate(_parts(count)):
            tally += cuts.tally(*attack.play(size, seed + 1 + 1_000_000 * check + number))
            if time.perf_counter() > deadline:
                break
        last = time.perf_counter() > deadline or check == _CHECKS - 1
        error = left if last else left / 4
        left -= error
        refuted, curve = map(max, (refuted, curve), bounds(tally, error))
        if last or max(refuted, curve) >= plan.enough * epsilon:
            break
    broken = max(refuted, curve) > epsilon
    if broken:
        again = cuts.tally(*attack.play(tally.games, seed + 500_000))
        broken = max(bounds(again, CONFIRMING_ERROR)) > epsilon
    shown = None if distance is None else curve
    return GameOutcome(refuted=refuted, curve=shown, broken=broken, tally=tally, error=plan.error)


def _batches(first: int, checks: int) -> Iterator[int]:
    """Yield how many games to add before each interim check: every check sees twice as many as the last."""
    yield first
    for check in range(checks - 1):
        yield first * 2**check


def _parts(count: int) -> list[int]:
    """Split a batch into parts, between which the clock is checked."""
    return [min(_PART, count - start) for start in range(0, count, _PART)]
