"""PG-MF in rounds, the campaign and its devices: item factors go out, one noisy bit per device comes back.

A campaign states everything that decides the noise. A round's question has its number and the item factors;
the projection follows from the campaign and the number, so that it isn't sent. All numbers are little-endian:

    question "DSCG"  campaign 32 bytes  round u16  factors f32 (items times factors)
    answer   "DSCB"  campaign 32 bytes  round u16  sender 16 bytes  coordinate u32  bit u8
"""

from __future__ import annotations

import math
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar, NamedTuple, Self, final

import numpy as np
import numpy.typing as npt

from discreet.collect.campaign import DEVICES, WrittenCampaign
from discreet.collect.device import ItemId, Turn, limit, rated_items
from discreet.collect.errors import AnsweredRound, DifferentCampaign, RoundsCostMore
from discreet.collect.wire import SENDER_BYTES, ReportRefusal, ReportRefused
from discreet.core import (
    Floats,
    Indices,
    PrivacyRandom,
    Rows,
    experiment_generator,
    finite,
    integer,
    residuals,
    within,
)
from discreet.data import Interactions, PublicFacts, Vocabulary
from discreet.privacy import PARTICIPATION, Guarantee, Unit, assumptions_of, round_down
from discreet.privacy.mechanisms.channel import local_epsilon
from discreet.privacy.mechanisms.local import sign_flip
from discreet.privacy.mechanisms.randomized_response import SignFlip
from discreet.privacy.sampling.draws import uniform_below
from discreet.solvers import solve_rows

PROOF = "proofs/private_gradients.md"
_FORMAT, _VERSION = "discreet-gradient-rounds", 1
_QUESTION, _ANSWER = b"DSCG", b"DSCB"
_ASKED = struct.Struct("<4s32sH")
_ANSWERED = struct.Struct(f"<4s32sH{SENDER_BYTES}sIB")
_MOST_ROUNDS = 1000
# Item factors beyond this are those of no server: a device's fit must stay finite.
_LARGEST = 1e3


@final
@dataclass(frozen=True, kw_only=True)
class GradientCampaign(WrittenCampaign):
    """A campaign that asks each device for one bit per round.

    Guarantee
        Pure `epsilon` for a user's whole history, between any two histories, against anyone: each of `rounds`
        bits costs epsilon / rounds (proofs/private_gradients.md).

    Parameters:
        name: Its name on the label.
        epsilon: The cost of all rounds for one user.
        catalog: The items, in the order of the factors.
        low: The least rating.
        high: The largest rating.
        rounds: How often devices are asked.
        factors: The rank.
        projected: Rows of the random projection of the items.
        seed: The seed of the public projections.
    """

    #: Anyone may answer: an answer of a round has no sender that other rounds know.
    invitations: ClassVar[None] = None

    name: str
    epsilon: float
    catalog: Vocabulary
    low: float
    high: float
    rounds: int = 10
    factors: int = 5
    projected: int = 16
    seed: int = 0

    def __post_init__(self) -> None:
        within("high", self.high, above=finite("low", self.low), below=math.inf)
        integer("rounds", self.rounds, least=1, most=_MOST_ROUNDS)
        integer("factors", self.factors, least=1, most=256)
        integer("projected", self.projected, least=1, most=4096)
        local_epsilon(self.share)

    @property
    def share(self) -> float:
        """Return the epsilon of one round: all rounds together cost at most `epsilon`."""
        return round_down(Fraction(self.epsilon) / self.rounds)

    @property
    def facts(self) -> PublicFacts:
        """Return the public facts of the ratings on the devices."""
        return PublicFacts(n_items=len(self.catalog), low=self.low, high=self.high)

    def flip(self) -> SignFlip:
        """Return the mechanism of one bit."""
        return sign_flip(self.share)

    def guarantee(self) -> Guarantee:
        """Return the guarantee of all rounds for a user's whole history."""
        assumes = (*assumptions_of(self.facts), PARTICIPATION, DEVICES)
        return Guarantee.of_reports(self.epsilon, Unit.USER, *assumes, proof=PROOF)

    def signs(self, number: int) -> Floats:
        """Return the public projection of a round: a row of +1 and -1 per projected row."""
        generator = experiment_generator(self.seed, "gradient round", number)
        return generator.choice(np.array([-1.0, 1.0]), size=(self.projected, len(self.catalog)))

    def to_json(self) -> dict[str, Any]:
        """Return a JSON object that `from_json` reads back."""
        record = {name: getattr(self, name) for name in _SETTINGS}
        items = self.catalog.ids.tolist()
        return {"format": _FORMAT, "version": _VERSION, "items": items, **record}

    @classmethod
    def _read(cls, record: Any) -> Self:
        if not is_gradient_campaign(record) or set(record) != {"format", "version", "items", *_SETTINGS}:
            raise DifferentCampaign
        return cls(catalog=Vocabulary.of(record["items"]), **{name: record[name] for name in _SETTINGS})

    def question(self, number: int, items: Floats) -> bytes:
        """Return the question of a round."""
        return _ASKED.pack(_QUESTION, self.digest, number) + items.astype("<f4").tobytes()


_SETTINGS = ("name", "epsilon", "low", "high", "rounds", "factors", "projected", "seed")


def is_gradient_campaign(record: Any) -> bool:
    """Return whether an unpacked campaign asks for gradients."""
    known = isinstance(record, dict) and record.get("format") == _FORMAT
    return known and record.get("version") == _VERSION


class GradientAnswer(NamedTuple):
    """A checked answer: its round, a random number, the sampled coordinate, and the flipped bit."""

    round: int
    sender: bytes
    coordinate: int
    bit: int


def answer_bytes(campaign: GradientCampaign, answer: GradientAnswer) -> bytes:
    """Return an answer as it is sent."""
    bit = int(answer.bit > 0)
    return _ANSWERED.pack(_ANSWER, campaign.digest, answer.round, answer.sender, int(answer.coordinate), bit)


def read_answer(campaign: GradientCampaign, raw: bytes) -> GradientAnswer:
    """Return an untrusted answer to a round; raise `ReportRefused` unless all of it is valid."""
    if not isinstance(raw, bytes) or len(raw) != _ANSWERED.size or raw[:4] != _ANSWER:
        raise ReportRefused(ReportRefusal.MALFORMED)
    _, digest, number, sender, coordinate, bit = _ANSWERED.unpack(raw)
    if digest != campaign.digest:
        raise ReportRefused(ReportRefusal.WRONG_CAMPAIGN)
    if number >= campaign.rounds or coordinate >= campaign.projected * campaign.factors or bit > 1:
        raise ReportRefused(ReportRefusal.OUT_OF_RANGE)
    return GradientAnswer(number, sender, coordinate, 2 * bit - 1)


def read_question(campaign: GradientCampaign, question: bytes) -> tuple[int, Floats]:
    """Return a round's number and item factors, of a question that a stranger sent."""
    size = len(campaign.catalog) * campaign.factors
    if len(question) != _ASKED.size + 4 * size or question[:4] != _QUESTION:
        raise DifferentCampaign
    _, digest, number = _ASKED.unpack_from(question)
    if digest != campaign.digest:
        raise DifferentCampaign
    if number >= campaign.rounds:
        raise AnsweredRound(number=number)
    items = np.frombuffer(question, "<f4", size, _ASKED.size).astype(np.float64)
    # What isn't finite is replaced, not rejected: an answer must not depend on the history.
    items = np.clip(np.nan_to_num(items), -_LARGEST, _LARGEST)
    return number, items.reshape(len(campaign.catalog), campaign.factors)


# A device fits its user's factors to the public item factors and computes the gradient of its error. It
# projects the gradient to few rows, samples one coordinate, rounds it at random to +1 or -1, and flips that
# with a known probability. The flip alone hides the history (proofs/private_gradients.md).

#: A user's projected gradient is clamped to this, in units in which the scale is [0, 1].
BOUND = 0.5
#: The ridge on a user's own factors: about the variance of a rating over the variance of factors.
RIDGE = 0.5


class ReportedGradients(NamedTuple):
    """The sampled coordinate of each user (row of the projection times factors, plus factor), and its bit."""

    chosen: Indices
    bits: npt.NDArray[np.int8]


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class GradientBits:
    """One bit per user about the gradient at public item factors, for a session to perturb.

    `signs` is the public projection: a row of +1 and -1 per projected row, a column per item.
    """

    flip: SignFlip
    items: Floats
    signs: Floats
    name: ClassVar[str] = "sign-flip"
    of: ClassVar[str] = "person"

    @property
    def epsilon(self) -> float:
        """Return the epsilon of one user's bit."""
        return self.flip.epsilon

    def over(self, data: Interactions, random: PrivacyRandom, /) -> ReportedGradients:
        """Return one coordinate and one flipped bit per user."""
        unit, factors = on_unit_scale(data), self.items.shape[1]
        people, errors = own_errors(unit, self.items)
        chosen = uniform_below(len(self.signs) * factors, len(people), random)
        row, factor = chosen // factors, chosen % factors
        owner = np.repeat(np.arange(len(people)), np.diff(unit.indptr))
        projected = np.bincount(
            owner, weights=self.signs[row[owner], unit.columns] * errors, minlength=len(people)
        ) / math.sqrt(len(self.signs))
        own = np.clip(projected * people[np.arange(len(people)), factor] / BOUND, -1, 1)
        return ReportedGradients(chosen, self.flip.release(_rounded(own, random), random))


def on_unit_scale(data: Interactions) -> Rows:
    """Return the ratings in units in which the scale is [0, 1]."""
    low, width = data.facts.low, data.facts.high - data.facts.low
    return Rows(data.indptr, data.items, ((data.values - low) / width).astype(np.float32))


def own_errors(unit: Rows, items: Floats) -> tuple[Floats, Floats]:
    """Return each user's factors, fitted to their own ratings, and the error of each prediction."""
    people = solve_rows(unit, items, ridge=RIDGE)
    return people, -residuals(unit, people, items, np.zeros(len(people)), np.zeros(len(items)))


def _rounded(values: Floats, random: PrivacyRandom) -> npt.NDArray[np.int64]:
    """Round numbers in [-1, 1] to -1 or +1 at random without bias; privacy comes from the flip after it."""
    words = random.bytes(4 * values.size).view(np.uint32).astype(np.float64)
    return np.where(words < (values + 1) / 2 * 2.0**32, 1, -1)


@final
class GradientDevice:
    """A device that answers each round of a campaign once, from a history that never leaves it.

    Asked again for a round, with any item factors, it repeats its answer, which reveals nothing new.
    `answers` must outlive the process: a device that loses them would draw again. Keep `state()`, and restore
    the device with `answers=kept_answers(campaign, state)`.

    Parameters:
        campaign: The campaign to answer.
        history: The user's ratings by item.
        budget: The largest epsilon that all rounds may cost this user; default 20.
        answers: What this device answered before, by round.
        random: A source of noise for experiments; by default the operating system's.
    """

    def __init__(
        self,
        campaign: GradientCampaign,
        history: Mapping[ItemId, float],
        *,
        budget: float | None = None,
        answers: Mapping[int, bytes] | None = None,
        random: PrivacyRandom | None = None,
    ) -> None:
        self._random = random or PrivacyRandom.from_os()
        most = limit(budget, self._random)
        if most is not None and campaign.epsilon > most:
            raise RoundsCostMore(cost=campaign.epsilon, budget=most)
        self.campaign, self.answers = campaign, dict(answers or {})
        self._data, self._turn = _one_user(campaign, history), Turn()

    @property
    def spent(self) -> float:
        """Return the epsilon of all answers so far."""
        return min(self.campaign.share * len(self.answers), self.campaign.epsilon)

    def state(self) -> dict[str, Any]:
        """Return the state to keep so that no round is drawn twice: answers, not ratings."""
        return {
            "campaign": self.campaign.digest.hex(),
            "answers": [answer.hex() for answer in self.answers.values()],
        }

    def answer(self, question: bytes) -> bytes:
        """Return the answer to a round's question; the same bytes if the round was answered before."""
        number, items = read_question(self.campaign, question)
        with self._turn.taken():
            if number not in self.answers:
                bits = GradientBits(flip=self.campaign.flip(), items=items, signs=self.campaign.signs(number))
                chosen, flipped = bits.over(self._data, self._random)
                sender = self._random.bytes(SENDER_BYTES).tobytes()
                answer = GradientAnswer(number, sender, int(chosen[0]), int(flipped[0]))
                self.answers[number] = answer_bytes(self.campaign, answer)
            return self.answers[number]


def _one_user(campaign: GradientCampaign, history: Mapping[ItemId, float]) -> Interactions:
    """Return one user's ratings as data, clipped to the scale; an empty history is one, too."""
    items, ratings = rated_items(campaign.catalog, history)
    return Interactions(
        indptr=np.array([0, items.size]),
        items=items.astype(np.int32),
        values=np.clip(ratings, campaign.low, campaign.high).astype(np.float32),
        users=Vocabulary.range(1),
        catalog=campaign.catalog,
        facts=campaign.facts,
        name=campaign.name,
    )


def kept_answers(campaign: GradientCampaign, state: Any) -> dict[int, bytes]:
    """Return the answers by round that `GradientDevice.state` kept; raise if they are of something else."""
    try:
        answers = [bytes.fromhex(text) for text in state["answers"]]
        found = {read_answer(campaign, raw).round: raw for raw in answers}
    except (KeyError, TypeError, ValueError, ReportRefused) as error:
        raise DifferentCampaign from error
    if state.get("campaign") != campaign.digest.hex() or len(found) < len(answers):
        raise DifferentCampaign
    return found
