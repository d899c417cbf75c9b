"""Run an estimator's own training over parties: each sum that it releases is one question to all of them.

Training gets a session without rows (`training.py`). What it asks for is put to the parties, who answer with
their exact sums and a share of the noise. A change of the estimator's algorithm changes the federated one
too, and without noise both give the same model to the last bit. Every estimator that needs no rows can run
over parties. One that this library does not know lists the statistics that it brings.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cache
from typing import Any, ClassVar, Self, cast, final

import numpy as np

from discreet.core.checks import ParameterError, require
from discreet.core.progress import silent
from discreet.core.randomness import PrivacyRandom
from discreet.data.facts import PublicFacts
from discreet.data.interactions import Interactions
from discreet.federated.noise import SharedNoise
from discreet.federated.protocols.asked import Answerable, Asked, size_of
from discreet.federated.protocols.protocol import Drawn, ItemProtocol, MessagePart, Shapes, StepResult
from discreet.federated.protocols.training import RemoteTraining, RemoteUsers
from discreet.federated.wire import Message, Refusal, Refused
from discreet.models.estimator import Estimator
from discreet.models.scorers.scorer import Scorer
from discreet.models.sums_estimator import statistics_of
from discreet.privacy.session import Releases, Session
from discreet.privacy.shared_budget import SharedBudget
from discreet.statistics.statistic import Statistic

# People who may be there if nobody declared about how many are: more than live.
_MOST_PEOPLE = 2**33
# "About" so many people are at most so many times as many; noise beyond so many deviations does not happen.
_ABOUT, _TAILS = 4.0, 64.0
_SUM = "total"


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class EstimatorSums(ItemProtocol):
    """Train an estimator that sees people only through sums, with noise that the parties share.

    Guarantee
        Each party promises (`epsilon`, `delta`) for a person's whole history at that party, between data
        sets with and without that person, under the assumptions of `SharedNoise` (proofs/federated.md). A
        party keeps the account itself: it answers as long as the squares of length over noise of all that it
        drew add up to no more than the promise allows, whatever it is asked. Lengths are those that the
        statistic declares, as the party reads it; nothing a question says about them counts.
    """

    name: ClassVar[str] = "estimator-sums"

    epsilon: float
    delta: float
    estimator: Estimator
    facts: PublicFacts
    noise: SharedNoise

    def __post_init__(self) -> None:
        private = math.isfinite(self.epsilon)
        do = "Shares of noise add up for Gaussian noise only."
        require(not private or self.delta > 0, "delta", self.delta, "must be greater than 0", do)
        features = self.estimator.settings.get("item_features")
        require(features is None, "item_features", features, "cannot be used over parties")

    @classmethod
    def of(cls, estimator: Estimator, facts: PublicFacts, noise: SharedNoise) -> Self:
        """Return the protocol that runs an estimator."""
        return cls(
            epsilon=estimator.epsilon, delta=estimator.delta, estimator=estimator, facts=facts, noise=noise
        )

    @property
    def budget(self) -> SharedBudget:
        """Return the exact account of a party."""
        return SharedBudget(
            epsilon=self.epsilon,
            delta=self.delta,
            parties=self.noise.parties,
            least=self.noise.least_parties,
        )

    def events(self) -> Sequence[Any]:
        """Return one Gaussian release: all that a party answers costs no more."""
        return self.budget.events()

    def planned(self) -> Estimator:
        """Return the estimator that knows how much noise there is if all parties answer."""
        if math.isinf(self.epsilon):
            return self.estimator
        return cast(Estimator, replace(cast(Any, self.estimator), epsilon=self.budget.planned_epsilon))

    def begin(self, n_shared: int) -> SumsRun:
        """Return a training that asks parties for its sums."""
        return SumsRun(self)

    def question(self, results: Sequence[StepResult], n_shared: int) -> MessagePart | None:
        """Ask for what training needs after these results; a run that goes on uses `begin`."""
        run = self._after(results)
        try:
            return run.question()
        finally:
            run.close()

    def scorer(self, results: Sequence[StepResult], n_items: int) -> Scorer:
        """Return what training ends with."""
        run = self._after(results)
        try:
            return run.scorer()
        finally:
            run.close()

    def _after(self, results: Sequence[StepResult]) -> SumsRun:
        run = SumsRun(self)
        for result in results:
            run.answer(result)
        return run

    def answerable(self) -> Answerable:
        """Return the statistics that parties answer in this run."""
        return _answerable(statistics_of(self.estimator))

    def read(self, question: MessagePart | Message, n_items: int) -> Asked:
        """Return what a question asks for, or raise `Refused`."""
        return self.answerable().read(question, n_items)

    def shapes(self, question: MessagePart | Message, n_shared: int) -> Shapes:
        """Return the one array that answers a question."""
        asked = self.read(question, n_shared)
        if not self.noise.can_draw(self.budget.noise(asked.part.bound, asked.sigma).sigma):
            raise Refused(Refusal.OUT_OF_RANGE)
        return {_SUM: (size_of(asked.part),)}

    def may_ask(self, kind: str, before: Sequence[str]) -> bool:
        """Allow any number of sums; what they cost together decides."""
        return kind == "sum"

    def allows(self, question: Message, before: Sequence[Drawn]) -> bool:
        """Return whether a sum, with all that were drawn before, costs no more than the guarantee."""
        return self.budget.covers([*(one.price for one in before), self.price(question)])

    def price(self, question: Message) -> Fraction | float:
        """Return the square of a user's length over the noise: the length is the statistic's own."""
        asked = self.read(question, self.facts.n_items)
        return self.budget.price(asked.part.bound, asked.sigma)

    def kept_price(self, answer: Message) -> Fraction | float:
        """Return the price of an answer by what the party itself wrote with it."""
        bound, sigma = answer.fields.get("bound"), answer.fields.get("sigma")
        known = isinstance(bound, float) and isinstance(sigma, float)
        return self.budget.price(bound, sigma) if known else math.inf  # type: ignore[arg-type]

    def check_sums(self, question: Message, results: StepResult) -> None:
        """Refuse sums that are larger than the declared people and the planned noise give, or below zero.

        One that is wrong by chance, as behind a mask that nobody has the key of, is so with near certainty.
        """
        asked, numbers = self.read(question, self.facts.n_items), results.arrays[_SUM]
        people = _MOST_PEOPLE if self.facts.n_users is None else _ABOUT * self.facts.n_users
        most = people * asked.part.bound
        noise = 0.0 if math.isinf(self.epsilon) else asked.sigma
        too_far = np.abs(numbers).max(initial=0.0) > most + _TAILS * noise
        too_long = np.linalg.norm(numbers) > most + noise * (math.sqrt(numbers.size) + _TAILS)
        below = asked.part.nonnegative and numbers.min(initial=0.0) < -_TAILS * noise
        if too_far or too_long or below:
            raise Refused(Refusal.OUT_OF_RANGE)

    def answer(
        self, data: Interactions, question: MessagePart | Message, number: int, random: PrivacyRandom
    ) -> MessagePart:
        """Return a party's exact sum with its share of the noise."""
        asked = self.read(question, data.n_items)
        sums = data.total(asked.statistic).steps(asked.part.name)
        noise = self.budget.noise(asked.part.bound, asked.sigma)
        numbers, deviation = self.noise.share(sums, noise, asked.part.symmetric, random)
        return MessagePart(kind=question.kind, arrays={_SUM: numbers}, fields={f"noise {_SUM}": deviation})

    def own_deviations(self, question: MessagePart | Message) -> Mapping[str, float]:
        """Return the deviation of a party's share of the noise."""
        asked = self.read(question, self.facts.n_items)
        return {_SUM: self.noise.deviation(self.budget.noise(asked.part.bound, asked.sigma).sigma)}


@final
class SumsRun:
    """One run over parties: training that waits for sums, and its questions as messages."""

    def __init__(self, protocol: EstimatorSums) -> None:
        self._answerable = protocol.answerable()
        self._training = RemoteTraining(lambda sums: _trained(protocol, sums))

    def question(self) -> MessagePart | None:
        """Return what training waits for, or None when it has ended."""
        asked = self._training.question()
        return None if asked is None else self._answerable.write(asked)

    def answer(self, result: StepResult) -> None:
        """Hand in the parties' sum."""
        self._training.question()
        self._training.answer(np.asarray(result.arrays[_SUM]))

    def scorer(self) -> Scorer:
        """Return the model that training ends with."""
        return self._training.scorer()

    def close(self) -> None:
        """End a training that nobody answers any more."""
        self._training.close()


def _trained(protocol: EstimatorSums, sums: Releases) -> Scorer:
    """Return what training gives if its sums come from elsewhere."""
    planned = protocol.planned()
    promise = planned.promise(protocol.facts)
    session = Session.open(RemoteUsers(protocol.facts), promise, None, releases=sums)
    scorer = planned._train(session, silent)
    session.check(promise)
    return scorer


@cache
def _answerable(brought: tuple[type[Statistic], ...]) -> Answerable:
    """Return what parties answer; the domains of all statistics are checked once, not for each question."""
    return Answerable.of(brought)


def protocol_for(estimator: Estimator, facts: PublicFacts, noise: SharedNoise) -> EstimatorSums:
    """Return the protocol with the estimator's settings and noise that the parties share.

    Every estimator that needs no rows learns from sums, which is all that parties give.
    """
    reason = estimator.rows_needed()
    if reason is not None:
        raise ParameterError(f"{estimator.name} cannot run over parties: {reason}.")
    return EstimatorSums.of(estimator, facts, noise)
