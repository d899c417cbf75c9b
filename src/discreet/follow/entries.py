"""Let every pair of user and item enter once, with a fixed weight; say how an erased user's influence fades.

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

from discreet.core.checks import DataError
from discreet.follow.batches import Batch
from discreet.follow.factorization import FACTOR_BITS
from discreet.follow.settings import REACH, USUAL, FollowSettings
from discreet.follow.state import Entries, State

#: Sums of so many users stay strictly within 2^62 in whole multiples of 2^-38.
MOST_USERS = (1 << 24) - 1


class Entered(NamedTuple):
    """Hold what enters at a release: the contributions, the users who are new, and what was left out."""

    entries: Entries
    new_users: list[str]
    known_pairs: int
    of_erased: int


def user_fingerprint(secret: bytes, user: str) -> bytes:
    """Return what is kept of an erased user: only the holder of the secret can know the id again."""
    return hmac.new(secret, user.encode(errors="surrogatepass"), hashlib.sha256).digest()


def enter(
    batch: Batch, state: State, settings: FollowSettings, parts: tuple[int, int], release: int, secret: bytes
) -> Entered:
    """Return the contributions of a batch: pairs that entered before, and erased users, are left out."""
    known = state.user_ids()
    codes, new_users = _codes(batch.ids, known, state.fingerprints(), secret)
    n_users = len(known) + len(new_users)
    if n_users > MOST_USERS:
        raise DataError(f"Sums are exact for at most {MOST_USERS:,} users a year; there are more.")
    users = codes[batch.users] if batch.users.size else batch.users
    kept = users >= 0
    users, items, values = users[kept], batch.items[kept], batch.values[kept]
    # An item that a file lists twice for one user enters once.
    keys, first = np.unique(users << 32 | items, return_index=True)
    used, seen = _earlier(state, keys, users, n_users)
    chosen = first[~seen]
    users, items, values = users[chosen], items[chosen], values[chosen]
    new = np.bincount(users, minlength=n_users)
    weights = settings.pace.weights(used, new, release=release, releases=settings.releases)[users]
    above = np.clip((values - USUAL) / REACH, -1, 1)
    entries = Entries(
        users=users.astype(np.int32),
        items=items.astype(np.int32),
        weights=weights.astype(np.int32),
        # Cut toward zero, so that no part of a contribution can grow.
        values=np.trunc(weights * parts[1] * above).astype(np.int32),
    )
    return Entered(entries, new_users, int(seen.sum()), int(kept.size - kept.sum()))


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
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.bool_]]:
    """Return the squared weight that each user has used, and which of the sorted keys entered before."""
    active = np.zeros(n_users, dtype=np.bool_)
    active[users] = True
    used, seen = np.zeros(n_users, dtype=np.int64), np.zeros(keys.size, dtype=np.bool_)
    for _, block in state.entries():
        own = block.where(active[block.users])
        squares = own.weights.astype(np.int64) ** 2
        used += np.bincount(own.users, weights=squares, minlength=n_users).astype(np.int64)
        entered = own.users.astype(np.int64) << 32 | own.items
        place = np.minimum(np.searchsorted(keys, entered), max(keys.size - 1, 0))
        if keys.size:
            seen[place[keys[place] == entered]] = True
    return used, seen


# After so many more releases.
_LATER = (1, 4, 13, 26)


def influence_left(settings: FollowSettings, released: int, entered: int = 0) -> dict[int, float]:
    """Return, by how many more releases, the part of a rating that is left in the estimate of current counts.

    The rating entered at release `entered` (from 0), and was erased after `released` releases. Without
    erasure the part would be 1 where nothing fades, and halve with every half-life otherwise.
    """
    factorization = settings.counts
    if released <= entered:
        return {}
    left = {}
    for more in _LATER:
        total = released + more
        if total > settings.releases:
            break
        column = np.ldexp(factorization.whole[:total, entered].astype(np.float64), -FACTOR_BITS)
        column[released:] = 0.0
        left[more] = float(factorization.estimator(total, settings.half_life_in_releases) @ column)
    return left
