"""Average the profiles of users whom several parties know, each from its own items.

Algorithm 1 with the roles of users and items exchanged. Users start at random; each party sums over them to
place its items, lets its users find their places among those items and sends the places with noise; the
coordinator averages. What is sent states something about each single user, so each row carries noise that
hides a user: expect little at small epsilon.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import ClassVar, final

import numpy as np

from discreet.core import Floats, experiment_generator, integer, require
from discreet.data import Interactions, Vocabulary
from discreet.federated.noise import OwnNoise
from discreet.federated.protocols.protocol import (
    TAILS,
    OwnNoiseProtocol,
    Shapes,
    StepResult,
    check_arrays,
    check_range,
    number,
    only_fields,
)
from discreet.federated.wire import Arrays, Message, Refusal, Refused
from discreet.models import check_budget
from discreet.privacy import Session
from discreet.solvers import with_fixed_signs
from discreet.statistics import (
    ROUNDING,
    VECTOR_BITS,
    ExactNumbers,
    Part,
    ProfiledItems,
    blocks,
    clipped_rows,
    to_fixed_point,
)
from discreet.statistics.profiles import COUNT_PART

# How the budget is shared: placing items in all rounds, sending users' places, and the fine-tuning.
_PLACING, _SENDING, _TUNING = Fraction(5, 20), Fraction(11, 20), Fraction(4, 20)
#: What a party keeps of its fine-tuning is called so.
TUNED = "tuned"
# How many noises an item's count must exceed to be believed.
_BELIEVED = 2.0


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class LocalItems:
    """One party's own items after the fine-tuning: `bias + factors . profile` is a user's score."""

    bias: Floats
    factors: Floats

    def scores(self, profiles: Floats) -> Floats:
        """Return every item's score for users with these profiles."""
        scores: Floats = profiles @ self.factors.T + self.bias
        return scores


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class AveragedUsers(OwnNoiseProtocol):
    """Exchange user profiles: parties share users, whose names are public, and have items of their own.

    Guarantee
        Each party guarantees (`epsilon`, `delta`) for everything a user chose at that party, between data
        with and without those choices, against the coordinator and the other parties. A user whom several
        parties know is covered by each party's guarantee for that party's items; for all of them together the
        guarantees add up (proofs/federated.md).

    Parameters:
        rounds: How often profiles are sent and averaged.
        factors: The length of a profile.

    Example:
        >>> protocol = AveragedUsers(epsilon=2.0, factors=2)
        >>> protocol.rounds, protocol.noise.masked
        (2, False)

    Stability
        Stable.
    """

    name: ClassVar[str] = "averaged-users"
    joint: ClassVar[bool] = False
    reserved: ClassVar[Fraction] = _TUNING

    epsilon: float
    delta: float = 1e-6
    rounds: int = 2
    factors: int = 4
    noise: OwnNoise = field(default_factory=OwnNoise)

    def __post_init__(self) -> None:
        check_averaging(self.epsilon, self.delta, self.rounds, self.factors, self.noise)

    def shares(self, kind: str) -> Mapping[str, Fraction]:
        """Return the parts of the budget for the sums and the places of one round; sums never leave."""
        users = {"placing": _PLACING / self.rounds, "profiles": _SENDING / self.rounds}
        return {"users": users, TUNED: {"placing": _TUNING}}.get(kind, {})

    def shared(self, data: Interactions) -> Vocabulary:
        """Return the users whom the parties share."""
        return data.users

    def question(self, results: Sequence[StepResult], n_shared: int) -> Message | None:
        """Send profiles and ask for better ones."""
        if len(results) == self.rounds:
            return None
        return Message(kind="users", arrays={"profiles": self.profiles(results, n_shared)})

    def shapes(self, question: Message, n_shared: int) -> Shapes:
        """Return the arrays that answer a question."""
        if question.kind != "users":
            raise Refused(Refusal.WRONG_KIND)
        only_fields(question, (), ("profiles",))
        shapes = {"profiles": (n_shared, self.factors)}
        check_arrays(question, shapes)
        return shapes

    def answer(self, session: Session, question: Message) -> Message:
        """Return users' places among this party's items, with noise on each of them."""
        parts = self.shares("users").values()
        placing, sending = session.split(*(part / self.price(question) for part in parts))
        profiles = np.asarray(question.arrays["profiles"])
        places = UserPlaces(users=len(profiles), factors=self.tune(placing, profiles).factors)
        numbers, deviation = sending.release(places, Fraction(1))
        return Message(kind="users", arrays={"profiles": numbers}, fields={"noise profiles": deviation})

    def own_deviations(self, question: Message) -> Mapping[str, float]:
        """Return the deviation of the noise on places; every round has the same."""
        return {"profiles": math.sqrt(self.planned("users")["profiles"].variance)}

    def check_answer(self, question: Message, answer: Message) -> None:
        """Raise `Refused` if a user's place is longer than 1 and the noise on it."""
        noise = number(answer, "noise profiles", 0.0, math.inf)
        lengths = np.linalg.norm(answer.arrays["profiles"], axis=1)
        check_range(lengths, 1.0 + noise * (math.sqrt(self.factors) + TAILS))

    def combine(self, totals: Arrays, parties: int) -> dict[str, Floats]:
        """Average users' places over the parties."""
        return {name: np.asarray(array) / parties for name, array in totals.items()}

    def profiles(self, results: Sequence[StepResult], n_shared: int) -> Floats:
        """Return users' profiles by the latest average, of equal spread and length at most 1."""
        if not results:
            draw = experiment_generator(0, "averaged users", n_shared, self.factors)
            return clipped_rows(draw.standard_normal((n_shared, self.factors)))
        return clipped_rows(_spread_out(np.asarray(results[-1].arrays["profiles"])))

    def tune(self, session: Session, profiles: Floats) -> LocalItems:
        """Return items placed by noisy sums over their users' profiles, in units of an item's own count."""
        placed = ProfiledItems(n_items=session.n_items, profiles=profiles)
        results, sigma = session.release(placed, Fraction(1))
        counts = results[:, 0] / COUNT_PART
        floor = max(_BELIEVED * sigma / COUNT_PART, 0.1)
        believed = np.maximum(counts, floor)
        middle = results[:, 1:].sum(axis=0) / believed.sum()
        centered = results[:, 1:] / believed[:, None] - middle
        bias = np.log(believed) + np.minimum(counts - floor, 0.0) / floor
        # What noise did to an item with few users is forgotten in proportion.
        trust = counts.clip(0)[:, None] / (counts.clip(0)[:, None] + sigma**2 * self.factors + 1.0)
        return LocalItems(bias=bias, factors=trust * self.factors * centered)


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class UserPlaces:
    """Each user's direction among released items: one row per user, which that user alone decides.

    Which users the parties share is public. A user's row has length at most 1, so the whole matrix changes by
    at most 1 if a user's choices are added or removed.
    """

    users: int
    factors: Floats

    @property
    def parts(self) -> tuple[Part, ...]:
        """Return a direction for each user."""
        return (Part("places", (self.users, self.factors.shape[1])),)

    def over(self, data: Interactions) -> ExactNumbers:
        """Return the directions before noise."""
        return ExactNumbers(_unit_places(data, self.factors))


def _unit_places(data: Interactions, factors: Floats) -> Floats:
    """Return each user's direction among released items, of length at most 1; none for who chose none."""
    places = np.zeros((data.n_users, factors.shape[1]))
    for block in blocks(data):
        for column in range(factors.shape[1]):
            own = block.per_person(factors[block.items, column])
            places[block.start : block.stop, column] = own
    lengths = np.linalg.norm(places, axis=1, keepdims=True)
    unit = np.divide(places, lengths, out=np.zeros_like(places), where=lengths > 0)
    cut: Floats = np.ldexp(to_fixed_point(unit * ROUNDING), -VECTOR_BITS)
    return cut


def _spread_out(places: Floats) -> Floats:
    """Return places of equal spread in all directions: otherwise rounds would turn them all into one."""
    centered = places - places.mean(axis=0)
    values, basis = np.linalg.eigh(centered.T @ centered / len(places))
    kept = np.maximum(values, 1e-9 * max(float(values[-1]), 1e-300))
    spread: Floats = centered @ with_fixed_signs(basis) / np.sqrt(kept * places.shape[1])
    return spread


def check_averaging(epsilon: float, delta: float, rounds: int, factors: int, noise: OwnNoise) -> None:
    """Reject settings that no averaging protocol can run with."""
    check_budget(epsilon, delta, gaussian=True)
    integer("rounds", rounds, least=1, most=100)
    integer("factors", factors, least=1, most=256)
    require(not noise.masked, "noise", noise, must="be OwnNoise()", do="Averages are not sums.")
