"""Settle what is public: facts that were declared, and facts taken from the ratings, which say so."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal, TypedDict

import numpy as np
import numpy.typing as npt

from discreet.checks import DataError
from discreet.data.facts import N_ITEMS, SCALE, PublicFacts, count_off_step, step_of
from discreet.data.vocabulary import Vocabulary

Duplicates = Literal["refuse", "last", "mean"]


class Declarations(TypedDict, total=False):
    """Say what is known before the ratings are seen; what is absent (or None) is taken from them.

    `facts` stands for all the single ones. A `catalog` may hold items nobody rated; `n_items` alone stands
    for the ids 0..n-1 or 1..n. `people` fixes the rows. `duplicates` says what to do when a pair of person
    and item comes again, `drop_unknown` leaves out ratings of items that a declared catalog does not hold.
    """

    facts: PublicFacts | None
    low: float | None
    high: float | None
    step: float | None
    max_per_user: int | None
    n_items: int | None
    n_users: int | None
    catalog: Vocabulary | None
    people: Vocabulary | None
    duplicates: Duplicates
    drop_unknown: bool


def settle_facts(
    values: npt.NDArray[np.float32], n_users: int, n_items: int, implicit: bool, declared: Declarations
) -> PublicFacts:
    """Return the facts: those declared, and those taken from the ratings, which are named in `from_file`."""
    facts = declared.get("facts")
    if facts is not None:
        # Facts say how many items there are; which ones they are came from the ratings all the same.
        listed = declared.get("catalog") is not None
        return facts if listed else replace(facts, from_file=(*facts.from_file, N_ITEMS))
    if n_items == 0:
        raise DataError("There are no ratings and no catalog is declared; a catalog needs at least one item.")
    # A bare number of items does not say whether they are counted from 0 or from 1: that is read off the ids.
    listed = declared.get("catalog") is not None
    from_file = [] if listed else [N_ITEMS]
    low, high, step = declared.get("low"), declared.get("high"), declared.get("step")
    if implicit and low is None and high is None:
        low, high = 1.0, 1.0
    if low is None or high is None:
        from_file.append(SCALE)
        low, high = _seen_scale(values, low, high)
        step = step_of(values, low) if step is None else step
    return PublicFacts(
        n_items=n_items,
        low=low,
        high=high,
        step=step,
        max_per_user=declared.get("max_per_user"),
        n_users=declared.get("n_users"),
        from_file=tuple(from_file),
    )


def _seen_scale(
    values: npt.NDArray[np.float32], low: float | None, high: float | None
) -> tuple[float, float]:
    if values.size == 0:
        raise DataError("There are no ratings to take the scale from; declare low= and high=.")
    return float(values.min()) if low is None else low, float(values.max()) if high is None else high


def check_scale(values: npt.NDArray[np.float32], facts: PublicFacts) -> None:
    """Refuse ratings outside the scale or off its steps; say how many, never which."""
    low, high = np.float32(facts.low), np.float32(facts.high)
    if values.size and (values.min() < low or values.max() > high):
        outside = int(np.count_nonzero((values < low) | (values > high)))
        raise DataError(
            f"{outside:,} of {values.size:,} ratings lie outside the declared scale "
            f"{facts.low:g} to {facts.high:g}; declare the scale they are on."
        )
    if facts.step is not None and SCALE not in facts.from_file:
        off = count_off_step(values, facts.low, facts.step)
        if off:
            raise DataError(
                f"{off:,} of {values.size:,} ratings are not on the declared steps of {facts.step:g} "
                f"from {facts.low:g}; declare the step they are on, or none."
            )
