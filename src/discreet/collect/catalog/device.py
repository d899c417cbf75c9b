"""Answer for a whole catalog on a person's own device, once, and in proportion to what is sent."""

from __future__ import annotations

from collections.abc import Mapping
from typing import final

import numpy as np

from discreet.checks import BudgetError, DataError
from discreet.collect.catalog.campaign import CatalogCampaign, CatalogReport, Items, write
from discreet.collect.estimate import Collected
from discreet.collect.once import Turn, limit
from discreet.collect.ratings.wire import SENDER_BYTES
from discreet.data.interactions import Interactions
from discreet.privacy.mechanisms.cells import CellMechanism
from discreet.privacy.mechanisms.gaps import pretending_cells
from discreet.privacy.sampling.draws import uniform_below
from discreet.privacy.sampling.taping import taped
from discreet.randomness import PrivacyRandom

ItemId = str | int

# People are simulated in blocks of about this many cells.
_CELLS = 1 << 24


@final
class CatalogDevice:
    """Answer a campaign over a catalog with noise from the operating system.

    The device answers once; asked again it repeats its message, which reveals nothing new. What `sent` holds
    must outlive the process: a device that forgets its message would answer every cell afresh.

    Parameters:
        campaign: What was asked for.
        budget: The largest epsilon the whole message may cost this person; 20 if nothing is said.
        sent: The message this device sent before, if it did.
        random: Another source of noise; anything but the operating system's is for experiments.
    """

    def __init__(
        self,
        campaign: CatalogCampaign,
        *,
        budget: float | None = None,
        sent: bytes | None = None,
        random: PrivacyRandom | None = None,
    ) -> None:
        self._random = random or PrivacyRandom.from_os()
        cost, most = campaign.for_person().epsilon, limit(budget, self._random)
        if most is not None and cost > most:
            raise BudgetError(
                f"Answering costs epsilon = {cost:g}, more than the budget of {most:g}. "
                "Ask for a campaign that spreads it over fewer items, or allow it with budget=."
            )
        self.campaign = campaign
        self._turn = Turn()
        self._sent = sent

    @property
    def sent(self) -> bytes | None:
        """Return the message that was sent, to be kept and handed to the next device object."""
        return self._sent

    def message(self, history: Mapping[ItemId, float]) -> bytes:
        """Return the message for a history; ratings are clipped to the scale."""
        with self._turn.taken():
            if self._sent is None:
                self._sent = write(self.campaign, self._answer(history))
            return self._sent

    def _answer(self, history: Mapping[ItemId, float]) -> CatalogReport:
        ids = list(history)
        items = self.campaign.catalog.index_of(ids).astype(np.int64) if ids else np.zeros(0, np.int64)
        ratings = np.array([float(rating) for rating in history.values()])
        unknown = int(np.count_nonzero(items < 0))
        if unknown:
            raise DataError(f"{unknown} of {len(ids)} items are not in the campaign's catalog.")
        if np.unique(items).size < items.size:
            raise DataError("The history names an item twice; a cell is answered once.")
        if not np.isfinite(ratings).all():
            raise DataError("A rating is not a finite number; nothing was answered.")
        order = np.argsort(items)
        items, ratings = items[order], ratings[order]
        sender = self._random.bytes(SENDER_BYTES).tobytes()
        total, count = len(self.campaign.catalog), self.campaign.answers
        if count is None:
            return CatalogReport(
                sender, None, *answer_cells(self.campaign.mechanism, items, ratings, total, self._random)
            )
        asked = sample_items(total, count, self._random)
        rated = np.isin(items, asked)
        places, codes = answer_cells(
            self.campaign.mechanism, np.searchsorted(asked, items[rated]), ratings[rated], count, self._random
        )
        return CatalogReport(sender, asked, asked[places], codes)


@taped
def answer_cells(
    mechanism: CellMechanism, rated: Items, ratings: np.ndarray, cells: int, random: PrivacyRandom
) -> tuple[Items, Items]:
    """Return which of `cells` cells are reported as rated, rising, and the codes reported."""
    told, codes = mechanism.report(ratings, random)
    pretending = pretending_cells(mechanism.gap, cells, random)
    pretending = pretending[~np.isin(pretending, rated, assume_unique=True)]
    places = np.concatenate([rated[told], pretending])
    answers = np.concatenate([codes, mechanism.pretend(pretending.size, random)])
    order = np.argsort(places, kind="stable")
    return places[order], answers[order]


def sample_items(total: int, count: int, random: PrivacyRandom) -> Items:
    """Return `count` of `total` items, rising, all sets equally likely (Floyd's algorithm)."""
    chosen: set[int] = set()
    for last in range(total - count, total):
        drawn = int(uniform_below(last + 1, 1, random)[0])
        chosen.add(last if drawn in chosen else drawn)
    return np.array(sorted(chosen), dtype=np.int64)


def collect_cells(data: Interactions, mechanism: CellMechanism, random: PrivacyRandom) -> Collected:
    """Answer for every cell as its person's device would, and collect what is reported as rated."""
    n_items, block = data.n_items, max(1, _CELLS // data.n_items)
    indptr, items, codes = np.zeros(data.n_users + 1, np.int64), [], []
    for start in range(0, data.n_users, block):
        stop = min(start + block, data.n_users)
        some = slice(data.indptr[start], data.indptr[stop])
        people = np.repeat(np.arange(stop - start), np.diff(data.indptr[start : stop + 1]))
        rated = people * n_items + data.items[some]
        places, answers = answer_cells(mechanism, rated, data.values[some], (stop - start) * n_items, random)
        indptr[start + 1 : stop + 1] = np.bincount(places // n_items, minlength=stop - start)
        items.append((places % n_items).astype(np.int32))
        codes.append(answers.astype(np.int32))
    np.cumsum(indptr, out=indptr)
    numbers = np.concatenate(codes)
    reports = Interactions(
        indptr=indptr,
        items=np.concatenate(items),
        values=mechanism.outputs()[numbers].astype(np.float32),
        users=data.users,
        catalog=data.catalog,
        facts=data.facts,
        name=data.name,
    )
    return Collected(reports=reports, codes=numbers, mechanism=mechanism, simulated=random.simulated)
