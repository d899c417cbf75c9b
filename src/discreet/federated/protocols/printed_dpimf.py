"""Algorithm 1 of DPIMF as printed: parties alternate locally, solve the shared side with noise, and average.

NOT PRIVATE. Each party fits the profiles of its own side to its rows without noise, and the printed noise of
a solve protects no user (proofs/implicit_objective.md). `averaged_items.py` and `averaged_users.py` have the
rounds with a guarantee.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import ClassVar, Self, final

import numpy as np

from discreet.core import Floats, Indices, experiment_generator, one_of
from discreet.data import Interactions, PublicFacts, Vocabulary
from discreet.federated.errors import NoGuaranteeAsPrinted
from discreet.federated.noise import OwnNoise
from discreet.federated.protocols.averaged_items import LISTED, averaged_rows, check_listed, only_listed
from discreet.federated.protocols.protocol import (
    OwnNoiseProtocol,
    Shapes,
    StepResult,
    check_arrays,
    check_range,
    only_fields,
)
from discreet.federated.wire import Arrays, Message, Refusal, Refused
from discreet.models import Scorer
from discreet.papers.dpimf import printed_losses as printed
from discreet.papers.dpimf.estimators import (
    PrintedFactorization,
    PublishedNoise,
    interactions_matrix,
    profiles_scorer,
)
from discreet.privacy import Guarantee, Session

_PROFILES = "profiles"
# Profiles are in a ball; the last digits of a solve may be outside it.
_SLACK = 1.001


@dataclass(frozen=True, slots=True, kw_only=True)
class PrintedAverages(OwnNoiseProtocol):
    """Base of both printed protocols: profiles of the shared side go around, and the coordinator averages.

    Guarantee
        NOT PRIVATE: `estimator.epsilon` is the printed epsilon of one solve and guarantees nothing.

    Parameters:
        estimator: `Dpimf` or `Dpmf`, with the loss, the printed epsilon, `rounds` and `local`.
        epsilon: The guarantee: none.
    """

    side: ClassVar[printed.Side]

    estimator: PrintedFactorization
    epsilon: float = math.inf
    delta: float = 0.0
    noise: OwnNoise = field(default_factory=OwnNoise)

    def __post_init__(self) -> None:
        if math.isfinite(self.epsilon):
            raise NoGuaranteeAsPrinted(epsilon=self.epsilon)
        one_of("solve", self.estimator.solve, (self.side,))

    @classmethod
    def of(cls, estimator: PrintedFactorization) -> Self:
        """Return the protocol that runs an estimator over parties."""
        return cls(estimator=estimator)

    def promise(self, facts: PublicFacts) -> Guarantee:
        """Return no guarantee, and why the printed one does not hold."""
        return self.estimator.promise(facts)

    def outcome(self, facts: PublicFacts, epsilon: float, delta: float) -> Guarantee:
        """Return no guarantee, whatever the parties state."""
        return self.promise(facts)

    def question(self, results: Sequence[StepResult], n_shared: int) -> Message | None:
        """Return the latest average, and ask for the next; None after the last round."""
        if len(results) == self.estimator.rounds:
            return None
        return Message(kind=self.side, arrays={_PROFILES: self.profiles(results, n_shared)})

    def profiles(self, results: Sequence[StepResult], n_shared: int) -> Floats:
        """Return the latest average; at first, public random numbers in [0, 1]."""
        if results:
            return np.asarray(results[-1].arrays[_PROFILES])
        start = experiment_generator(self.estimator.seed, "printed averages", n_shared)
        return start.uniform(size=(n_shared, self.estimator.factors))

    def shapes(self, question: Message, n_shared: int) -> Shapes:
        """Return the arrays that answer a question: profiles, and which of them the party lists."""
        if question.kind != self.side:
            raise Refused(Refusal.WRONG_KIND)
        only_fields(question, (), (_PROFILES,))
        shape = (n_shared, self.estimator.factors)
        check_arrays(question, {_PROFILES: shape})
        check_range(np.asarray(question.arrays[_PROFILES]), self._largest)
        return {_PROFILES: shape, LISTED: (n_shared,)}

    @property
    def _largest(self) -> float:
        """Return the largest number that a profile can have."""
        return _SLACK * max(1.0, self.estimator.setting().radius)

    def shares(self, kind: str) -> Mapping[str, Fraction]:
        """Return an equal part for each of the agreed rounds, though no budget protects anybody here."""
        return {_PROFILES: Fraction(1, self.estimator.rounds)} if kind == self.side else {}

    def answer(self, session: Session, question: Message) -> Message:
        """Return the shared side after this party's alternations: its own side exactly, then with noise."""
        noise = PublishedNoise(session)
        rows = interactions_matrix(session.rows())
        shared_rows, own_rows = (rows.T.tocsr(), rows) if self.side == "items" else (rows, rows.T.tocsr())
        shared: Floats = np.asarray(question.arrays[_PROFILES], dtype=np.float64)
        for _ in range(self.estimator.local):
            own = self.estimator.exact(own_rows, shared)
            shared = self.estimator.solved(shared_rows, own, noise)
        arrays = {_PROFILES: shared, LISTED: np.ones(len(shared))}
        return Message(kind=self.side, arrays=arrays, fields={f"noise {name}": 0.0 for name in arrays})

    def own_deviations(self, question: Message) -> Mapping[str, float]:
        """Return zeros: solved profiles state no deviation."""
        return {_PROFILES: 0.0, LISTED: 0.0}

    def check_answer(self, question: Message, answer: Message) -> None:
        """Raise `Refused` if a profile is outside the ball, or what a party lists isn't a choice."""
        check_range(np.asarray(answer.arrays[_PROFILES]), self._largest)
        check_listed(answer)

    def combine(self, totals: Arrays, parties: int) -> dict[str, Floats]:
        """Return each profile's average over the parties that list it."""
        return {_PROFILES: averaged_rows(totals, _PROFILES), LISTED: np.asarray(totals[LISTED])}


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class PrintedItems(PrintedAverages):
    """Algorithm 1 of DPIMF as printed, for parties that share items and have users of their own.

    Guarantee
        NOT PRIVATE: the label states why the printed claim doesn't hold. `AveragedItems` is private.
    """

    name: ClassVar[str] = "dpimf-items"
    side: ClassVar[printed.Side] = "items"

    def limited(self, part: Message, listed: Indices | None) -> Message:
        """Return an answer without the items that the party doesn't list."""
        return only_listed(part, listed, (_PROFILES,))

    def scorer(self, results: Sequence[StepResult], n_items: int) -> Scorer:
        """Return the last average; users' profiles are fitted to it, which is the fine-tuning."""
        items = self.profiles(results, n_items)
        return profiles_scorer(self.estimator, profiles=items, items=items)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class PrintedUsers(PrintedAverages):
    """Algorithm 1 of DPIMF as printed, for parties that share users and have items of their own.

    Guarantee
        NOT PRIVATE: the label states why the printed claim doesn't hold. `AveragedUsers` is private.
    """

    name: ClassVar[str] = "dpimf-users"
    joint: ClassVar[bool] = False
    side: ClassVar[printed.Side] = "users"

    def shared(self, data: Interactions) -> Vocabulary:
        """Return the users whom the parties share."""
        return data.users

    def tuned(self, data: Interactions, users: Floats) -> Floats:
        """Return a party's own items, fitted to the averaged users without noise: the fine-tuning."""
        return self.estimator.exact(interactions_matrix(data).T.tocsr(), users)
