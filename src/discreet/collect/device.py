"""Answer a campaign on a user's own device: perturb once, remember the answer, count the cost."""

from __future__ import annotations

import contextlib
import math
import os
import threading
from collections.abc import Iterator, Mapping
from fractions import Fraction
from typing import Any, Self, final

import numpy as np

from discreet.collect import errors, wire
from discreet.collect.campaign import Campaign
from discreet.collect.estimate import Collected
from discreet.collect.hidden_items import CatalogCampaign, CatalogReport, Items, write
from discreet.collect.mechanisms import encode
from discreet.collect.wire import SENDER_BYTES
from discreet.core import Floats, PrivacyRandom, one_of, positive_finite
from discreet.core.checks import DiscreetError
from discreet.data import Interactions, Vocabulary
from discreet.privacy import Guarantee, times_up
from discreet.privacy.mechanisms.cells import CellMechanism, pretending_cells
from discreet.privacy.sampling.draws import recorded, uniform_below

ItemId = str | int


@final
class Device:
    """Perturb a user's ratings on their own device, with noise from the operating system.

    The device never draws noise twice for one item: asked again, even with another rating, it repeats its
    answer, which reveals nothing new. It remembers answers only; ratings are not kept.

    Parameters:
        campaign: The campaign to answer.
        budget: The largest epsilon that all answers to this campaign may cost this user; default 20. The
            campaign's cap on answers applies, too. The costs of several campaigns add up, and a device
            doesn't know about other campaigns.
        random: Another source of noise; anything but the operating system's is for experiments.

    Example:
        >>> from discreet.data.interactions import Vocabulary
        >>> from discreet.privacy.mechanisms.bounded import BoundedLaplace
        >>> films = Campaign(name="films", mechanism=BoundedLaplace(epsilon=1.0, low=1, high=5),
        ...                  catalog=Vocabulary.of(["Alien", "Brazil"]), max_reports=20)
        >>> device = Device(films, budget=1.5)
        >>> len(device.message({"Alien": 4.5})) < 64, device.spent
        (True, 1.0)

    Stability
        Stable.
    """

    def __init__(
        self, campaign: Campaign, *, budget: float | None = None, random: PrivacyRandom | None = None
    ) -> None:
        self.campaign = campaign
        self._random = random or PrivacyRandom.from_os()
        self.budget = limit(budget, self._random)
        self._turn = Turn()
        self._sender = self._random.token(wire.SENDER_BYTES)
        self._answers: dict[int, int] = {}

    @property
    def answered(self) -> int:
        """Return the number of items this device has answered for."""
        return len(self._answers)

    @property
    def spent(self) -> float:
        """Return the epsilon of all answers so far, for the user as a whole."""
        return times_up(self.campaign.mechanism.epsilon, self.answered) if self.answered else 0.0

    @property
    def most_answers(self) -> int:
        """Return the largest number of items this device will answer for."""
        if self.budget is None:
            return self.campaign.max_reports
        affordable = math.floor(Fraction(self.budget) / Fraction(self.campaign.mechanism.epsilon))
        return min(self.campaign.max_reports, affordable)

    def guarantee(self) -> Guarantee | None:
        """Return the guarantee of all answers so far; None before the first."""
        return self.campaign.for_person(self.answered) if self.answered else None

    def answer(self, item: ItemId, rating: float) -> tuple[int, int]:
        """Return the report for one rating: the item's number and a code."""
        ((number, code),) = self.answer_all({item: rating}).items()
        return number, code

    def answer_all(self, history: Mapping[ItemId, float]) -> dict[int, int]:
        """Return reports for a whole history; ratings are clipped to the scale.

        Raises:
            BudgetError: The answers would cost more than this device may spend; none was given.
        """
        numbers = self._numbers(list(history))
        ratings = np.array([float(rating) for rating in history.values()])
        if not np.isfinite(ratings).all():
            raise errors.UnusableHistory()
        with self._turn.taken():
            self._draw(numbers, ratings)
            return {number: self._answers[number] for number in numbers}

    def _draw(self, numbers: list[int], ratings: Floats) -> None:
        """Draw answers for items without one."""
        new = np.array([number not in self._answers for number in numbers], dtype=np.bool_)
        self._afford(int(new.sum()))
        mechanism = self.campaign.mechanism
        clipped = np.clip(ratings[new], mechanism.low, mechanism.high)
        codes = encode(mechanism, mechanism.release(clipped, self._random)).tolist()
        fresh = [number for number, is_new in zip(numbers, new, strict=True) if is_new]
        self._answers.update(zip(fresh, codes, strict=True))

    def message(self, history: Mapping[ItemId, float], *, form: str = "binary") -> bytes:
        """Return the message with the reports of a history, in `binary` or `json` form."""
        one_of("form", form, ("binary", "json"))
        reports = self.answer_all(history)
        message = wire.RatingReport(self._sender, tuple(reports), tuple(reports.values()))
        return (wire.to_bytes if form == "binary" else wire.to_json)(self.campaign, message)

    def state(self) -> dict[str, Any]:
        """Return the state to keep so that the device never draws twice: answers, not ratings."""
        return {
            "campaign": self.campaign.digest.hex(),
            "sender": self._sender.hex(),
            "budget": self.budget,
            "answers": [list(pair) for pair in self._answers.items()],
        }

    @classmethod
    def restore(
        cls, campaign: Campaign, state: Mapping[str, Any], *, random: PrivacyRandom | None = None
    ) -> Self:
        """Return the device that `state` describes."""
        if not isinstance(state, Mapping):
            raise errors.NotADevice()
        if state.get("campaign") not in (campaign.digest.hex(), campaign.old_digest.hex()):
            raise errors.DifferentCampaign(what="state")
        try:
            device = cls(campaign, budget=state["budget"], random=random)
            device._sender = bytes.fromhex(state["sender"])
            device._answers = dict(_pair(answer) for answer in state["answers"])
        except (KeyError, TypeError, ValueError, OverflowError, DiscreetError) as error:
            raise errors.NotADevice() from error
        # An answer that was never drawn must not be sent in this user's name.
        sound = all(0 <= item < len(campaign.catalog) for item in device._answers)
        codes = campaign.mechanism.channel().outputs.size
        sound = sound and all(0 <= code < codes for code in device._answers.values())
        if not sound or len(device._sender) != wire.SENDER_BYTES:
            raise errors.NotADevice()
        return device

    def _numbers(self, items: list[ItemId]) -> list[int]:
        known = self.campaign.numbers
        numbers = [known[item] if item in known else self._lookup(item) for item in items]
        unknown = sum(number < 0 for number in numbers)
        if unknown:
            raise errors.NotInCatalog(count=unknown, of=len(items))
        return numbers

    def _lookup(self, item: ItemId) -> int:
        """Return the number of an item whose id has another type (7 for "7"), or -1."""
        return int(self.campaign.catalog.index_of([item])[0])

    def _afford(self, new: int) -> None:
        if self.answered + new > self.most_answers:
            raise errors.TooManyAnswers(count=new, most=self.most_answers)


def _pair(answer: Any) -> tuple[int, int]:
    item, code = answer
    if type(item) is not int or type(code) is not int:
        raise TypeError("answers are whole numbers")
    return item, code


# Users are simulated in blocks of about this many entries (pairs of user and item).
_ENTRIES = 1 << 24


@final
class CatalogDevice:
    """Answer a campaign over a catalog with noise from the operating system.

    The device answers once; asked again it repeats its message, which reveals nothing new. `sent` must
    outlive the process: a device that loses its message would draw all answers again.

    Parameters:
        campaign: The campaign to answer.
        budget: The largest epsilon that the whole message may cost this user; default 20.
        sent: The message that this device sent before, if any.
        random: Another source of noise; anything but the operating system's is for experiments.

    Example:
        >>> from discreet.collect import CatalogCampaign
        >>> from discreet.data.vocabulary import Vocabulary
        >>> films = CatalogCampaign.spread(10.0, catalog=Vocabulary.of(range(10)))
        >>> device = CatalogDevice(films)
        >>> device.message({3: 1}) == device.message({3: 1}) == device.sent
        True

    Stability
        Stable.
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
            raise errors.AnswerCostsMore(cost=cost, budget=most)
        self.campaign = campaign
        self._turn = Turn()
        self._sent = sent

    @property
    def sent(self) -> bytes | None:
        """Return the message that was sent; keep it and pass it to the next device object."""
        return self._sent

    def message(self, history: Mapping[ItemId, float]) -> bytes:
        """Return the message for a history; ratings are clipped to the scale."""
        with self._turn.taken():
            if self._sent is None:
                self._sent = write(self.campaign, self._answer(history))
            return self._sent

    def _answer(self, history: Mapping[ItemId, float]) -> CatalogReport:
        items, ratings = rated_items(self.campaign.catalog, history)
        sender = self._random.token(SENDER_BYTES)
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


def rated_items(catalog: Vocabulary, history: Mapping[ItemId, float]) -> tuple[Items, Floats]:
    """Return the numbers of a history's items in increasing order, and their ratings."""
    ids = list(history)
    items = catalog.index_of(ids).astype(np.int64) if ids else np.zeros(0, np.int64)
    ratings = np.array([float(rating) for rating in history.values()])
    unknown = int(np.count_nonzero(items < 0))
    if unknown:
        raise errors.NotInCatalog(count=unknown, of=len(ids))
    if np.unique(items).size < items.size or not np.isfinite(ratings).all():
        raise errors.UnusableHistory()
    order = np.argsort(items)
    return items[order], ratings[order]


@recorded
def answer_cells(
    mechanism: CellMechanism, rated: Items, ratings: np.ndarray, cells: int, random: PrivacyRandom
) -> tuple[Items, Items]:
    """Return which of `cells` entries are reported as rated, in increasing order, and the reported codes."""
    kept, codes = mechanism.report(ratings, random)
    pretending = pretending_cells(mechanism.gap, cells, random)
    pretending = pretending[~np.isin(pretending, rated, assume_unique=True)]
    places = np.concatenate([rated[kept], pretending])
    answers = np.concatenate([codes, mechanism.pretend(pretending.size, random)])
    order = np.argsort(places, kind="stable")
    return places[order], answers[order]


def sample_items(total: int, count: int, random: PrivacyRandom) -> Items:
    """Return `count` of `total` items in increasing order, all sets equally likely (Floyd's algorithm)."""
    chosen: set[int] = set()
    for last in range(total - count, total):
        drawn = int(uniform_below(last + 1, 1, random)[0])
        chosen.add(last if drawn in chosen else drawn)
    return np.array(sorted(chosen), dtype=np.int64)


def collect_cells(data: Interactions, mechanism: CellMechanism, random: PrivacyRandom) -> Collected:
    """Answer for every item as each user's device would, and collect the items reported as rated."""
    n_items, block = data.n_items, max(1, _ENTRIES // data.n_items)
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


#: The largest epsilon of all answers to one campaign, for a user who did not set a limit.
USUAL_BUDGET = 20.0


@final
class Turn:
    """Allow one thread of one process to answer at a time: copies of a device would draw noise again."""

    __slots__ = ("_lock", "_process")

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._process = os.getpid()

    @contextlib.contextmanager
    def taken(self) -> Iterator[None]:
        """Wait for the turn; raise in a process that was forked from the device's own."""
        if os.getpid() != self._process:
            raise errors.CopiedDevice()
        with self._lock:
            yield


def limit(budget: float | None, random: PrivacyRandom) -> float | None:
    """Return the budget that applies: the default if none was set, and no limit for experiments only."""
    if budget is not None:
        return positive_finite("budget", budget)
    return None if random.simulated else USUAL_BUDGET
