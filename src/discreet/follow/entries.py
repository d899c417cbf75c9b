"""Add each pair of user and item once, with a fixed weight; compute how an erased user's influence fades.

What a user contributes depends on that user's own rows and on public numbers only: which of the pairs are
new, how much of the year's length is used already, and at which release this is.

After erasure nothing of the user is added any more. Later estimates still use earlier releases, in which the
user is; how much of a rating they still hold follows from C alone, so it is public.
"""

from __future__ import annotations

import hashlib
import hmac
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from discreet.core import Floats
from discreet.follow.batches import Batch
from discreet.follow.errors import TooManyUsersInPeriod
from discreet.follow.factorization import FACTOR_BITS
from discreet.follow.settings import (
    COUNT_PART,
    LEVEL_COUNT,
    LEVEL_VALUE,
    PART_BITS,
    USUAL,
    FollowSettings,
    Pace,
)
from discreet.follow.state import LEVEL, Entries, State

#: Sums of so many users stay strictly within 2^62 in whole multiples of 2^-38.
MOST_USERS = (1 << 24) - 1
# Lengths that floats choose stay this far below what is allowed, which is more than they round.
_BELOW = 1 - 2.0**-20


class Entered(NamedTuple):
    """What enters at a release: the contributions, the users who are new, and what was excluded."""

    entries: Entries
    new_users: list[str]
    known_pairs: int
    of_erased: int


class Earlier(NamedTuple):
    """What a batch's users did before.

    That is the squared weight that was used, how many ratings entered, whose mean did, and which pairs did.
    """

    used: npt.NDArray[np.int64]
    rated: npt.NDArray[np.int64]
    leveled: npt.NDArray[np.bool_]
    seen: npt.NDArray[np.bool_]


def user_fingerprint(secret: bytes, user: str) -> bytes:
    """Return what is kept of an erased user: only with the secret can the ID be recognized."""
    return hmac.new(secret, user.encode(errors="surrogatepass"), hashlib.sha256).digest()


def enter(
    batch: Batch, state: State, settings: FollowSettings, release: int, secret: bytes, *, rated: bool
) -> Entered:
    """Return the contributions of a batch: pairs that entered before, and erased users, are excluded."""
    known = state.user_ids()
    codes, new_users = _codes(batch.ids, known, state.fingerprints(), secret)
    n_users = len(known) + len(new_users)
    if n_users > MOST_USERS:
        raise TooManyUsersInPeriod(most=MOST_USERS)
    users = codes[batch.users] if batch.users.size else batch.users
    kept = users >= 0
    users, items, values = users[kept], batch.items[kept], batch.values[kept]
    # An item that a file lists twice for one user enters once.
    keys, first = np.unique(users << 32 | items, return_index=True)
    before = _earlier(state, keys, users, n_users)
    chosen = first[~before.seen]
    users, items, above = users[chosen], items[chosen], values[chosen] - USUAL
    new = np.bincount(users, minlength=n_users)
    when = {"release": release, "releases": settings.releases}
    levels = _levels(settings.pace, before, users, new, above, when) if rated else None
    used = before.used if levels is None else before.used + _squares(levels, n_users)
    weights = settings.pace.weights(used, new, **when, own=before.rated + new)
    counted, valued = _scaled(weights, users, new, above) if rated else (weights[users] << PART_BITS, None)
    entries = Entries.of(users, items, weights[users], counted, valued)
    entries = entries if levels is None else entries.joined(levels)
    return Entered(entries, new_users, int(before.seen.sum()), int(kept.size - kept.sum()))


def _levels(
    pace: Pace,
    before: Earlier,
    users: npt.NDArray[np.int64],
    new: npt.NDArray[np.int64],
    above: Floats,
    when: dict[str, int],
) -> Entries:
    """Return the means of users who rate for the first time: each enters once, as an item of its own would.

    All items' sums estimate the overall mean badly, because each has its own noise; users' means have one.
    A mean that isn't a number counts as zero; whole numbers decide, as for ratings.
    """
    first = np.flatnonzero((new > 0) & ~before.leveled)
    own = before.rated[first] + new[first]
    weights = pace.level_weights(before.used[first], **when, own=own)
    mean = np.bincount(users, weights=above, minlength=new.size)[first] / new[first]
    mean = np.where(np.isfinite(mean), np.clip(mean, -1, 1), 0.0)
    counted, valued = weights * LEVEL_COUNT, np.trunc(weights * LEVEL_VALUE * mean).astype(np.int64)
    fits = counted**2 + valued**2 <= weights**2 << 2 * PART_BITS
    return Entries.of(
        first, np.full(first.size, LEVEL), weights, np.where(fits, counted, 0), np.where(fits, valued, 0)
    )


def _scaled(
    weights: npt.NDArray[np.int64],
    users: npt.NDArray[np.int64],
    new: npt.NDArray[np.int64],
    above: Floats,
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Return counts and values of ratings, scaled so that a user's together have all the length they may.

    Floats choose the scale; whole numbers decide: who is too long by them contributes nothing.
    """
    squares = np.bincount(users, weights=above**2 + COUNT_PART**2, minlength=new.size)
    stretch = np.sqrt(new / np.maximum(squares, COUNT_PART**2)) * _BELOW
    scale = np.ldexp(weights * stretch, PART_BITS)[users]
    # Cut toward zero, so that no part of a contribution can grow.
    counted, valued = np.trunc(scale * COUNT_PART), np.trunc(scale * above)
    length = np.bincount(users, weights=counted**2 + valued**2, minlength=new.size)
    fits = (length <= np.ldexp((new * weights**2).astype(np.float64), 2 * PART_BITS))[users]
    return np.where(fits, counted, 0).astype(np.int64), np.where(fits, valued, 0).astype(np.int64)


def _squares(entered: Entries, n_users: int) -> npt.NDArray[np.int64]:
    squares = entered.weights.astype(np.int64) ** 2
    return np.bincount(entered.users, weights=squares, minlength=n_users).astype(np.int64)


def _codes(
    ids: list[str], known: list[str | None], erased: set[bytes], secret: bytes
) -> tuple[npt.NDArray[np.int64], list[str]]:
    """Return each user's code, -1 for those who were erased, and the ids that got a new one."""
    place = {one: code for code, one in enumerate(known) if one is not None}
    codes = np.full(len(ids), -1, dtype=np.int64)
    new: list[str] = []
    for number, one in enumerate(ids):
        if erased and user_fingerprint(secret, one) in erased:
            continue
        if one not in place:
            place[one] = len(known) + len(new)
            new.append(one)
        codes[number] = place[one]
    return codes, new


def _earlier(
    state: State, keys: npt.NDArray[np.int64], users: npt.NDArray[np.int64], n_users: int
) -> Earlier:
    """Return what the users of a batch did before, and which of the sorted keys of pairs entered."""
    active = np.zeros(n_users, dtype=np.bool_)
    active[users] = True
    used, seen = np.zeros(n_users, dtype=np.int64), np.zeros(keys.size, dtype=np.bool_)
    rated, leveled = np.zeros(n_users, dtype=np.int64), np.zeros(n_users, dtype=np.bool_)
    for _, block in state.entries():
        own = block.where(active[block.users])
        used += _squares(own, n_users)
        leveled[own.users[own.items == LEVEL]] = True
        pairs = own.where(own.items != LEVEL)
        rated += np.bincount(pairs.users, minlength=n_users)
        entered = pairs.users.astype(np.int64) << 32 | pairs.items
        place = np.minimum(np.searchsorted(keys, entered), max(keys.size - 1, 0))
        if keys.size:
            seen[place[keys[place] == entered]] = True
    return Earlier(used, rated, leveled, seen)


# After so many more releases.
_LATER = (1, 4, 13, 26)


def influence_left(
    settings: FollowSettings, released: int, entered: int = 0, *, rated: bool = False, fading: bool = True
) -> dict[int, float]:
    """Return, by how many more releases, the part of a rating that is left in the estimate of current counts.

    The rating entered at release `entered` (from 0), and was erased after `released` releases. Without
    erasure the part would be 1 where nothing fades, and halve with every half-life otherwise. Values of
    ratings do not fade (`fading=False`). A part below zero is missing beyond what was taken out.
    """
    factorization = settings.counts(rated=rated)
    half_life = settings.half_life_in_releases if fading else None
    if released <= entered:
        return {}
    left = {}
    for more in _LATER:
        total = released + more
        if total > settings.releases:
            break
        column = np.ldexp(factorization.whole[:total, entered].astype(np.float64), -FACTOR_BITS)
        column[released:] = 0.0
        left[more] = float(factorization.estimator(total, half_life) @ column)
    return left
