"""What a run asks and what parties answer: both sides of every step in one place, so they cannot drift.

A protocol is a value that coordinator and parties share: public settings. Everything the coordinator knows is
the results of the finished steps; the next question is a pure function of them, and so is the model.
"""

from __future__ import annotations

import hashlib
import json
import math
from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from fractions import Fraction
from typing import Any, ClassVar, final
from typing import Protocol as Interface

import numpy as np

from discreet.core import Floats, Indices, PrivacyRandom
from discreet.data import Interactions, PublicFacts, Vocabulary
from discreet.federated.errors import UseRunRounds
from discreet.federated.noise import OwnNoise, SharedNoise, total_deviation
from discreet.federated.wire import Arrays, Message, Refusal, Refused
from discreet.models import Scorer
from discreet.privacy import (
    Assumption,
    Basis,
    Fact,
    Guarantee,
    Kind,
    Neighbors,
    Release,
    Session,
    Trust,
    Unit,
    assumptions_of,
    pure_event,
)
from discreet.privacy.mechanisms.additive import Gaussian, Laplace, gaussian_event, planned_noise
from discreet.report import WEAKEST_PARTY

Shapes = Mapping[str, tuple[int, ...]]
# No honest number comes near; sums of so many stay finite.
LARGEST = 2.0**50
#: What every question states with its own fields: which run it belongs to, and what parties answered so far.
AGREED = frozenset({"settings", "shared", "chains"})

#: The question that names the parties of a sum, of which every one of them is asked to confirm the set.
CONFIRM = "confirm"


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class StepResult:
    """The result of one step: combined arrays, the noise on them, and how many parties answered."""

    kind: str
    arrays: Arrays
    noise: Mapping[str, float]
    parties: int


class Exchange(Interface):
    """One run as the coordinator sees it: what is asked next, and what was answered."""

    def question(self) -> Message | None:
        """Return the next question, or None when nothing is left to ask."""

    def answer(self, result: StepResult) -> None:
        """Take the result of the step that was asked for."""

    def scorer(self) -> Scorer:
        """Return the model of the shared items; raise if the run is not finished."""

    def certified(self) -> list[Release] | None:
        """Return the releases for the model's certificate; None if no certificate can cover them."""

    def close(self) -> None:
        """Release what the run occupies."""


class Judge(ABC):
    """What a coordinator judges answers and their sums by: arrays, types, noise, and what users can give."""

    __slots__ = ()

    noise: OwnNoise | SharedNoise

    @property
    @abstractmethod
    def number_type(self) -> str:
        """Return the type of an answer's numbers."""

    @abstractmethod
    def shapes(self, question: Message, n_shared: int) -> Shapes:
        """Return the arrays that answer a question; raise `Refused` if it makes no sense."""

    @abstractmethod
    def deviations(self, question: Message, epsilon: float, delta: float) -> Mapping[str, float]:
        """Return the deviation of a party's noise on each array, by what was agreed with the party."""

    @abstractmethod
    def check_answer(self, question: Message, answer: Message) -> None:
        """Raise `Refused` if no users and no noise can give an answer; behind a mask every answer can be."""

    def check_sums(self, question: Message, results: StepResult) -> None:
        """Raise `Refused` for sums that users and noise can't give."""
        return

    @abstractmethod
    def combine(self, totals: Arrays, parties: int) -> Arrays:
        """Turn sums of answers, without masks, into the result of a step."""

    def combined_noise(self, deviations: Sequence[float]) -> float:
        """Return the noise deviation of the result, from those of the answers."""
        return total_deviation(deviations)

    def called(self, step: int) -> str:
        """Return what users call a step."""
        return f"step {step}"


class Protocol(Judge):
    """Describe a run; a concrete protocol is a final, frozen, keyword-only dataclass."""

    __slots__ = ()

    name: ClassVar[str]
    #: Whether a run ends in one model of shared items; parties that share users get one each.
    joint: ClassVar[bool] = True

    epsilon: float
    delta: float

    @property
    def number_type(self) -> str:
        """Return the type of an answer's numbers."""
        return self.noise.number_type

    @abstractmethod
    def events(self) -> Sequence[Any]:
        """Return the dp-accounting events of all that a party answers in a run."""

    @abstractmethod
    def begin(self, n_shared: int) -> Exchange:
        """Return a run; it begins without results."""

    @abstractmethod
    def answer(self, session: Session, question: Message) -> Message:
        """Return a party's answer; the session owns the part of the budget that the question costs."""

    @abstractmethod
    def own_deviations(self, question: Message) -> Mapping[str, float]:
        """Return the standard deviation of the noise that a party puts on each array of an answer."""

    def deviations(self, question: Message, epsilon: float, delta: float) -> Mapping[str, float]:
        """Return the deviation of the noise of a party with its own epsilon and delta."""
        delta = delta or self.delta
        if (epsilon, delta) == (self.epsilon, self.delta):
            return self.own_deviations(question)
        own = replace(self, epsilon=epsilon, delta=delta)  # type: ignore[type-var]
        return own.own_deviations(question)

    @abstractmethod
    def price(self, question: Message) -> Fraction | float:
        """Return what a question costs, by the party's own reading; a party keeps it with the draw."""

    @abstractmethod
    def kept_price(self, kept: Message) -> Fraction | float:
        """Return the price of a draw that an earlier version kept without one."""

    @abstractmethod
    def allows(self, price: Fraction | float, before: Sequence[Fraction | float]) -> bool:
        """Return whether a party whose draws cost `before` may pay a price within its guarantee."""

    @abstractmethod
    def session(self, data: Interactions, random: PrivacyRandom, price: Fraction | float) -> Session:
        """Return a session on a party's data that may spend this price, and nothing more."""

    def limited(self, part: Message, listed: Indices | None) -> Message:
        """Return an answer of a party that lists these items only (all, if None); sums need no such thing."""
        return part

    def shared(self, data: Interactions) -> Vocabulary:
        """Return what the parties share, as one party's data show it."""
        return data.catalog

    def combine(self, totals: Arrays, parties: int) -> dict[str, Floats]:
        """Turn sums of answers into the result of the step."""
        return {name: self.noise.read(array) for name, array in totals.items()}

    def settings(self) -> str:
        """Return the public settings that all sides of a run share; guarantees may differ."""
        given = [entry.name for entry in fields(self) if entry.init]  # type: ignore[arg-type]
        shared = {name: repr(getattr(self, name)) for name in given}
        if not self.noise.masked:
            shared = {name: text for name, text in shared.items() if name not in ("epsilon", "delta")}
            # Laplace and Gaussian noise bound users in different norms, whose sums do not mix.
            shared["pure"] = repr(self.delta == 0)
        return f"{self.name} {json.dumps(shared, sort_keys=True)}"

    def promise(self, facts: PublicFacts) -> Guarantee:
        """Return what a party guarantees to each of its users for the whole run; needs no data."""
        return promise_of(self.epsilon, self.delta, (*assumptions_of(facts), *self.assumes()))

    def outcome(self, facts: PublicFacts, epsilon: float, delta: float) -> Guarantee:
        """Return the guarantee of a model, given the weakest epsilon and delta of all parties."""
        promise = promise_of(epsilon, delta, (*assumptions_of(facts), *self.assumes()))
        return replace(promise, notes=(WEAKEST_PARTY,))

    def assumes(self) -> tuple[Assumption, ...]:
        """Return what the guarantee assumes in addition to the public facts."""
        return self.noise.assumes(self.epsilon, self.delta)


class OwnNoiseProtocol(Protocol):
    """A run in which each party adds its own noise; a question's price is its part of the party's budget."""

    __slots__ = ()

    #: The part of the budget that a party spends without a question.
    reserved: ClassVar[Fraction] = Fraction(0)

    @abstractmethod
    def question(self, results: Sequence[StepResult], n_shared: int) -> Message | None:
        """Return the next question after these results, or None when nothing is left to ask."""

    def scorer(self, results: Sequence[StepResult], n_items: int) -> Scorer:
        """Return the model of shared items."""
        raise UseRunRounds

    def begin(self, n_shared: int) -> Exchange:
        """Return a run whose next question is computed from all results so far."""
        return _Results(self, n_shared)

    @abstractmethod
    def shares(self, kind: str) -> Mapping[str, Fraction]:
        """Return what each release of an answer costs, as parts of the budget; nothing for unknown kinds."""

    def events(self) -> Sequence[Any]:
        """Return one release of the whole budget: a coordinator chooses how questions divide it."""
        if math.isinf(self.epsilon):
            return []
        pure = self.delta == 0
        return [pure_event(self.epsilon) if pure else gaussian_event(self.epsilon, self.delta)]

    def planned(self, kind: str) -> dict[str, Gaussian | Laplace]:
        """Return the noise of each release of an answer, for sensitivity 1."""
        shares = self.shares(kind)
        noises = planned_noise(self.epsilon, self.delta, list(shares.values()))
        return dict(zip(shares, noises, strict=True))

    def price(self, question: Message) -> Fraction:
        """Return the exact part of the budget that a question costs."""
        return sum(self.shares(question.kind).values(), Fraction(0))

    def kept_price(self, kept: Message) -> Fraction:
        """Return the price of a kind of question, which earlier versions kept alone."""
        return sum(self.shares(str(kept.fields.get("of", kept.kind))).values(), Fraction(0))

    def allows(self, price: Fraction | float, before: Sequence[Fraction | float]) -> bool:
        """Return whether all draws and this one cost at most the budget."""
        spent = sum((Fraction(one) for one in before), self.reserved)
        return price > 0 and spent + price <= 1

    def session(self, data: Interactions, random: PrivacyRandom, price: Fraction | float) -> Session:
        """Return a session that owns this part of the budget."""
        opened = Session.open(data, self.promise(data.facts), random)
        whole = opened.laplace() if self.delta == 0 else opened.gaussian()
        return whole.split(Fraction(price))[0]


@final
class _Results:
    """A run whose next question is computed from all results so far."""

    def __init__(self, protocol: OwnNoiseProtocol, n_shared: int) -> None:
        self._protocol, self._n_shared = protocol, n_shared
        self._results: list[StepResult] = []

    def question(self) -> Message | None:
        return self._protocol.question(self._results, self._n_shared)

    def answer(self, result: StepResult) -> None:
        self._results.append(result)

    def scorer(self) -> Scorer:
        return self._protocol.scorer(self._results, self._n_shared)

    def certified(self) -> list[Release] | None:
        return None

    def close(self) -> None:
        return


def names_digest(shared: Vocabulary) -> str:
    """Return a fingerprint of shared names in order: items numbered in two ways must not be summed."""
    ids = shared.ids
    if not shared.is_text:
        raw = np.asarray(ids, dtype="<i8").tobytes()
    elif any("\0" in text for text in ids):
        # Joined they could read like other names; no list begins with two empty names, as each comes once.
        raw = b"\0\0" + json.dumps(ids.tolist()).encode()
    else:
        raw = "\0".join(ids).encode()
    return hashlib.sha256(raw).hexdigest()


def promise_of(epsilon: float, delta: float, assumes: Sequence[Assumption]) -> Guarantee:
    """Return a guarantee to a user about everything they chose at one party."""
    return Guarantee(
        epsilon=epsilon,
        delta=0.0 if math.isinf(epsilon) else delta,
        unit=Unit.USER,
        neighbors=Neighbors.ADD_OR_REMOVE,
        trust=Trust.JOINT,
        assumes=(*assumes, Assumption.of(Kind.PARTY, Fact.ONE_PARTY)),
        basis=Basis.PROVED,
        proof="proofs/federated.md",
    )


def only_fields(question: Message, names: Collection[str], arrays: Collection[str]) -> None:
    """Raise `Refused` if a question lacks a field, or states more than is read."""
    own = set(question.fields) - AGREED
    if not own <= set(names):
        raise Refused(Refusal.UNKNOWN_FIELD)
    if own != set(names):
        raise Refused(Refusal.MALFORMED)
    if set(question.arrays) != set(arrays):
        raise Refused(Refusal.WRONG_SHAPE)


def check_arrays(message: Message, shapes: Shapes, number_type: str = "<f8") -> None:
    """Raise `Refused` for arrays of other names, shapes or types than agreed, or with impossible numbers."""
    if set(message.arrays) != set(shapes):
        raise Refused(Refusal.WRONG_SHAPE)
    for name, shape in shapes.items():
        array = message.arrays[name]
        if array.shape != tuple(shape) or array.dtype != np.dtype(number_type):
            raise Refused(Refusal.WRONG_SHAPE)
        if array.dtype.kind == "f":
            if not np.isfinite(array).all():
                raise Refused(Refusal.NOT_FINITE)
            if array.size and float(np.abs(array).max()) > LARGEST:
                raise Refused(Refusal.OUT_OF_RANGE)


def number(message: Message, name: str, low: float, high: float) -> float:
    """Return a number that a stranger sent, inside [low, high]."""
    value = message.fields.get(name)
    if type(value) not in (int, float):
        raise Refused(Refusal.MALFORMED)
    if not low <= value <= high:  # type: ignore[operator]
        raise Refused(Refusal.OUT_OF_RANGE)
    return float(value)  # type: ignore[arg-type]


# More users than there are humans, for runs that declare no number of users.
_MOST_USERS = 2.0**33
# "About" so many users are at most so many times as many.
_ABOUT = 4.0
#: Noise beyond so many standard deviations doesn't happen.
TAILS = 64.0


def check_sum(
    numbers: Floats, *, users: int | None, noise: float, bound: float = 1.0, nonnegative: bool = False
) -> None:
    """Raise `Refused` unless about `users` users, of norm `bound` each, and noise can give a sum.

    Parameters:
        users: The declared number of users; None if no number was declared.
        noise: The standard deviation of the noise on each number.
        nonnegative: Whether users only add to the numbers.
    """
    most = (_MOST_USERS if users is None else _ABOUT * users) * bound
    too_far = np.abs(numbers).max(initial=0.0) > most + TAILS * noise
    too_long = np.linalg.norm(numbers) > most + noise * (math.sqrt(numbers.size) + TAILS)
    below = nonnegative and numbers.min(initial=0.0) < -TAILS * noise
    if too_far or too_long or below:
        raise Refused(Refusal.OUT_OF_RANGE)


def check_range(numbers: Floats, largest: float) -> None:
    """Raise `Refused` if a number is farther from zero than `largest`."""
    if np.abs(numbers).max(initial=0.0) > largest:
        raise Refused(Refusal.OUT_OF_RANGE)
