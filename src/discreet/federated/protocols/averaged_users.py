"""Average the profiles of users whom several parties know, each from its own items.

Algorithm 1 with the roles of people and items exchanged. People start at random; each party sums over them to
place its items, lets its people find their places among those items and sends the places with noise; the
coordinator averages. What is sent says something about each single person, so each row carries noise that
hides a person: expect little at small epsilon.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, ClassVar, cast, final

import numpy as np

from discreet.core.arrays import Floats
from discreet.core.checks import integer, require
from discreet.core.randomness import PrivacyRandom, experiment_generator
from discreet.data.interactions import Interactions
from discreet.data.vocabulary import Vocabulary
from discreet.federated.noise import OwnNoise
from discreet.federated.protocols.protocol import (
    MessagePart,
    Protocol,
    Shapes,
    StepResult,
    check_arrays,
    only_fields,
)
from discreet.federated.wire import Arrays, Message, Refusal, Refused
from discreet.models.estimator import check_budget
from discreet.privacy.mechanisms.additive import Gaussian
from discreet.privacy.session import planned_noise
from discreet.solvers.spectrum import with_fixed_signs
from discreet.statistics.blocks import blocks
from discreet.statistics.fixed_point import ROUNDING, VECTOR_BITS, to_fixed_point
from discreet.statistics.profiles import COUNT_PART, ProfiledItems, shortened

# How the budget is shared: placing items in all rounds, sending people's places, and the fine-tuning.
_PLACING, _SENDING, _TUNING = Fraction(5, 20), Fraction(11, 20), Fraction(4, 20)
# How many noises an item's count must exceed to be believed.
_BELIEVED = 2.0


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class LocalItems:
    """Hold one party's own items after the fine-tuning: `bias + factors . profile` is a person's score."""

    bias: Floats
    factors: Floats

    def scores(self, profiles: Floats) -> Floats:
        """Return every item's score for people with these profiles."""
        scores: Floats = profiles @ self.factors.T + self.bias
        return scores


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class AveragedUsers(Protocol):
    """Exchange user profiles: parties share users, whose names are public, and have items of their own.

    Guarantee
        Each party promises (`epsilon`, `delta`) for everything a person chose at that party, between data
        with and without those choices, against the coordinator and the other parties. A person whom several
        parties know is covered by each party's promise for that party's items; for all of them together the
        promises add up (proofs/federated.md).

    Parameters:
        rounds: How often profiles are sent and averaged.
        factors: The length of a profile.
    """

    name: ClassVar[str] = "averaged-users"

    epsilon: float
    delta: float = 1e-6
    rounds: int = 2
    factors: int = 4
    noise: OwnNoise = field(default_factory=OwnNoise)

    def __post_init__(self) -> None:
        check_averaging(self.epsilon, self.delta, self.rounds, self.factors, self.noise)

    def noises(self) -> tuple[list[Gaussian], list[Gaussian], Gaussian]:
        """Return the noise on the items' sums and on people's places in each round, and on the last sums."""
        each = [share / self.rounds for share in (_PLACING, _SENDING) for _ in range(self.rounds)]
        noises = noises_by_share(self.epsilon, self.delta, [*each, _TUNING])
        return noises[: self.rounds], noises[self.rounds : -1], noises[-1]

    def events(self) -> Sequence[Any]:
        """Return every release of one party; the sums never leave it and are paid for all the same."""
        placing, sending, tuning = self.noises()
        return [] if math.isinf(self.epsilon) else [noise.event() for noise in (*placing, *sending, tuning)]

    def shared(self, data: Interactions) -> Vocabulary:
        """Return the people whom the parties share."""
        return data.users

    def question(self, results: Sequence[StepResult], n_shared: int) -> MessagePart | None:
        """Send profiles and ask for better ones."""
        if len(results) == self.rounds:
            return None
        return MessagePart(kind="users", arrays={"profiles": self.profiles(results, n_shared)})

    def shapes(self, question: MessagePart | Message, n_shared: int) -> Shapes:
        """Return the arrays that answer a question."""
        if question.kind != "users":
            raise Refused(Refusal.WRONG_KIND)
        only_fields(question, (), ("profiles",))
        shapes = {"profiles": (n_shared, self.factors)}
        check_arrays(question, shapes)
        return shapes

    def may_ask(self, kind: str, before: Sequence[str]) -> bool:
        """Allow one question a round."""
        return kind == "users" and len(before) < self.rounds

    def answer(
        self, data: Interactions, question: MessagePart | Message, number: int, random: PrivacyRandom
    ) -> MessagePart:
        """Return people's places among this party's items, with noise on each of them."""
        placing, sending, _ = self.noises()
        items = self._items(data, np.asarray(question.arrays["profiles"]), placing[number], random)
        places = _unit_places(data, items.factors)
        numbers = sending[number].release(places, random)
        return MessagePart(
            kind="users", arrays={"profiles": numbers}, fields={"noise profiles": sending[number].sigma}
        )

    def own_deviations(self, question: MessagePart | Message) -> Mapping[str, float]:
        """Return the deviation of the noise on places; every round has the same."""
        return {"profiles": self.noises()[1][0].sigma}

    def combine(self, totals: Arrays, parties: int) -> dict[str, Floats]:
        """Average people's places over the parties."""
        return {name: np.asarray(array) / parties for name, array in totals.items()}

    def profiles(self, results: Sequence[StepResult], n_shared: int) -> Floats:
        """Return people's profiles by the latest average, of equal spread and length at most 1."""
        if not results:
            draw = experiment_generator(0, "averaged users", n_shared, self.factors)
            return shortened(draw.standard_normal((n_shared, self.factors)))
        return shortened(_spread_out(np.asarray(results[-1].arrays["profiles"])))

    def tune(self, data: Interactions, profiles: Floats, random: PrivacyRandom) -> LocalItems:
        """Fine-tune: return this party's items by everybody's profiles; paid for with the run."""
        return self._items(data, profiles, self.noises()[2], random)

    def _items(
        self, data: Interactions, profiles: Floats, noise: Gaussian, random: PrivacyRandom
    ) -> LocalItems:
        """Place items by noisy sums over the people who chose them, in units of an item's own count."""
        placed = data.total(ProfiledItems(n_items=data.n_items, profiles=profiles))
        results = noise.release(placed.steps(), random)
        counts = results[:, 0] / COUNT_PART
        floor = max(_BELIEVED * noise.sigma / COUNT_PART, 0.1)
        believed = np.maximum(counts, floor)
        middle = results[:, 1:].sum(axis=0) / believed.sum()
        centered = results[:, 1:] / believed[:, None] - middle
        bias = np.log(believed) + np.minimum(counts - floor, 0.0) / floor
        # What noise did to an item with few people is forgotten in proportion.
        trust = counts.clip(0)[:, None] / (counts.clip(0)[:, None] + noise.sigma**2 * self.factors + 1.0)
        return LocalItems(bias=bias, factors=trust * self.factors * centered)


def _unit_places(data: Interactions, factors: Floats) -> Floats:
    """Return each person's direction among released items, of length at most 1; none for who chose none."""
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
    """Refuse settings that no averaging protocol can run with."""
    check_budget(epsilon, delta, gaussian=True)
    integer("rounds", rounds, least=1, most=100)
    integer("factors", factors, least=1, most=256)
    require(not noise.masked, "noise", noise, "must be OwnNoise()", "Averages are not sums.")


def noises_by_share(epsilon: float, delta: float, shares: Sequence[Fraction]) -> list[Gaussian]:
    """Return noises for releases that one person moves by at most 1, together (epsilon, delta)."""
    return cast(list[Gaussian], planned_noise(epsilon, delta, shares))
