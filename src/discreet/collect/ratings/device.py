"""Answer a campaign on a person's own device: perturb, remember the answer, and keep count."""

from __future__ import annotations

import math
from collections.abc import Mapping
from fractions import Fraction
from typing import Any, Self, final

import numpy as np

from discreet.arrays import Floats
from discreet.checks import BudgetError, DataError, DiscreetError, ParameterError
from discreet.collect.once import Turn, limit
from discreet.collect.ratings import wire
from discreet.collect.ratings.campaign import Campaign
from discreet.collect.ratings.mechanisms import encode
from discreet.privacy.accounting.rounding import times_up
from discreet.privacy.guarantee import Guarantee
from discreet.randomness import PrivacyRandom

ItemId = str | int

_NO_STATE = "This is not the state of a device that discreet wrote."


@final
class Device:
    """Perturb a person's ratings where they are, with noise from the operating system.

    The device never draws twice for one item: asked again, even with another rating, it repeats its answer,
    which reveals nothing new. It remembers answers and nothing else; the ratings are forgotten at once.

    Parameters:
        campaign: What was asked for.
        budget: The largest epsilon all answers to this campaign may cost this person, 20 if nothing is said;
            the campaign's cap counts, too. What several campaigns cost adds up, and no device knows of the
            others.
        random: Another source of noise; anything but the operating system's is for experiments.

    Example:
        >>> from discreet.data.interactions import Vocabulary
        >>> from discreet.privacy.mechanisms.bounded import BoundedLaplace
        >>> films = Campaign(name="films", mechanism=BoundedLaplace(epsilon=1.0, low=1, high=5),
        ...                  catalog=Vocabulary.of(["Alien", "Brazil"]), max_reports=20)
        >>> device = Device(films, budget=1.5)
        >>> len(device.message({"Alien": 4.5})) < 64, device.spent
        (True, 1.0)
    """

    def __init__(
        self, campaign: Campaign, *, budget: float | None = None, random: PrivacyRandom | None = None
    ) -> None:
        self.campaign = campaign
        self._random = random or PrivacyRandom.from_os()
        self.budget = limit(budget, self._random)
        self._turn = Turn()
        self._sender = self._random.bytes(wire.SENDER_BYTES).tobytes()
        self._answers: dict[int, int] = {}

    @property
    def answered(self) -> int:
        """Return for how many items this device has answered."""
        return len(self._answers)

    @property
    def spent(self) -> float:
        """Return the epsilon of all answers so far, for the person as a whole."""
        return times_up(self.campaign.mechanism.epsilon, self.answered) if self.answered else 0.0

    @property
    def most_answers(self) -> int:
        """Return for how many items this device will ever answer."""
        if self.budget is None:
            return self.campaign.max_reports
        affordable = math.floor(Fraction(self.budget) / Fraction(self.campaign.mechanism.epsilon))
        return min(self.campaign.max_reports, affordable)

    def guarantee(self) -> Guarantee | None:
        """Return what the answers so far mean for this person; None before the first."""
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
            raise DataError("A rating is not a finite number; nothing was answered.")
        with self._turn.taken():
            self._draw(numbers, ratings)
            return {number: self._answers[number] for number in numbers}

    def _draw(self, numbers: list[int], ratings: Floats) -> None:
        """Draw answers for the items that have none."""
        new = np.array([number not in self._answers for number in numbers], dtype=np.bool_)
        self._afford(int(new.sum()))
        mechanism = self.campaign.mechanism
        clipped = np.clip(ratings[new], mechanism.low, mechanism.high)
        codes = encode(mechanism, mechanism.release(clipped, self._random)).tolist()
        fresh = [number for number, is_new in zip(numbers, new, strict=True) if is_new]
        self._answers.update(zip(fresh, codes, strict=True))

    def message(self, history: Mapping[ItemId, float], *, form: str = "binary") -> bytes:
        """Return the message that carries the reports of a history, in `binary` or `json` form."""
        if form not in ("binary", "json"):
            raise ParameterError(f"form={form!r} must be 'binary' or 'json'.")
        reports = self.answer_all(history)
        message = wire.RatingReport(self._sender, tuple(reports), tuple(reports.values()))
        return (wire.to_bytes if form == "binary" else wire.to_json)(self.campaign, message)

    def state(self) -> dict[str, Any]:
        """Return what the device must keep so that it never answers twice: answers, not ratings."""
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
            raise ParameterError(_NO_STATE)
        if state.get("campaign") not in (campaign.digest.hex(), campaign.old_digest.hex()):
            raise ParameterError("This device answered another campaign. Start a new one for this.")
        try:
            device = cls(campaign, budget=state["budget"], random=random)
            device._sender = bytes.fromhex(state["sender"])
            device._answers = dict(_pair(answer) for answer in state["answers"])
        except (KeyError, TypeError, ValueError, OverflowError, DiscreetError) as error:
            raise ParameterError(_NO_STATE) from error
        # What nobody drew would be sent on in this person's name.
        sound = all(0 <= item < len(campaign.catalog) for item in device._answers)
        codes = campaign.mechanism.channel().outputs.size
        sound = sound and all(0 <= code < codes for code in device._answers.values())
        if not sound or len(device._sender) != wire.SENDER_BYTES:
            raise ParameterError(_NO_STATE)
        return device

    def _numbers(self, items: list[ItemId]) -> list[int]:
        known = self.campaign.numbers
        numbers = [known[item] if item in known else self._lookup(item) for item in items]
        unknown = sum(number < 0 for number in numbers)
        if unknown:
            raise DataError(f"{unknown} of {len(items)} items are not in the campaign's catalog.")
        return numbers

    def _lookup(self, item: ItemId) -> int:
        """Return the number of an item written in another way (7 for "7"), or -1."""
        return int(self.campaign.catalog.index_of([item])[0])

    def _afford(self, new: int) -> None:
        if self.answered + new > self.most_answers:
            raise BudgetError(
                f"{new} more answers would exceed the {self.most_answers} this device may give. "
                "Answer for fewer items."
            )


def _pair(answer: Any) -> tuple[int, int]:
    item, code = answer
    if type(item) is not int or type(code) is not int:
        raise TypeError("answers are whole numbers")
    return item, code
