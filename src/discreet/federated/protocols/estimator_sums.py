"""Run an estimator's own training over parties: each sum that it releases is one question to all of them.

Training sees a data source without rows. What it asks for is put to the parties, who answer with their exact
sums and a share of the noise; released numbers are played to it from the start until it asks for the next
one, or is done. So a change of the estimator's algorithm is a change of the federated one, and without noise
both give the same model to the last bit. Every estimator that asks for no rows can run so, also one that this
library does not know: it lists the statistics that it brings.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, ClassVar, Self, cast, final

import numpy as np

from discreet.core.arrays import Floats
from discreet.core.checks import ParameterError, require
from discreet.core.progress import silent
from discreet.core.randomness import PrivacyRandom
from discreet.data.facts import PublicFacts
from discreet.data.interactions import Interactions
from discreet.data.vocabulary import Vocabulary
from discreet.federated.noise import SharedNoise, symmetric_from
from discreet.federated.protocols.asked import Answerable, Asked, size_of
from discreet.federated.protocols.protocol import Drawn, ItemProtocol, MessagePart, Shapes, StepResult
from discreet.federated.wire import FederationError, Message, Refusal, Refused
from discreet.models.estimator import Estimator
from discreet.models.scorers.scorer import Scorer
from discreet.models.sums_estimator import statistics_of
from discreet.privacy.accounting.gaussian import gaussian_epsilon, gaussian_multiplier
from discreet.privacy.mechanisms.additive import Gaussian
from discreet.privacy.mechanisms.fixed_point import RemoteSum
from discreet.privacy.session import Session
from discreet.statistics.statistic import Part as Added
from discreet.statistics.statistic import Statistic

# People who may be there if nobody declared about how many are: more than live.
_MOST_PEOPLE = 2**33
# "About" so many people are at most so many times as many; noise beyond so many deviations does not happen.
_ABOUT, _TAILS = 4.0, 64.0
# Shares of a budget add up to 1 but for rounding; the noise is widened by more than that.
_SLACK = 1e-9
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

    def events(self) -> Sequence[Any]:
        """Return one Gaussian release: all that a party answers costs no more."""
        if math.isinf(self.epsilon):
            return ()
        return [Gaussian(sigma=self._least(), l2_sensitivity=1.0).event()]

    def _least(self) -> float:
        """Return the multiplier of one release that keeps the promise."""
        return gaussian_multiplier(self.epsilon, self.delta)

    def planned(self) -> Estimator:
        """Return the estimator that knows how much noise there is if all parties answer.

        Shares are so wide that the parties that must be there are enough; when all are, there is more.
        """
        if math.isinf(self.epsilon):
            return self.estimator
        wide = self._least() * math.sqrt(self.noise.parties / self.noise.least_parties)
        epsilon = min(gaussian_epsilon(wide, self.delta), self.epsilon)
        return cast(Estimator, replace(cast(Any, self.estimator), epsilon=epsilon))

    def question(self, results: Sequence[StepResult], n_shared: int) -> MessagePart | None:
        """Ask for what training needs after these results."""
        asked = self._played(results)
        return self._answerable().write(asked) if isinstance(asked, Asked) else None

    def _answerable(self) -> Answerable:
        return _answerable(statistics_of(self.estimator))

    def read(self, question: MessagePart | Message, n_items: int) -> Asked:
        """Return what a question asks for, or raise `Refused`."""
        return self._answerable().read(question, n_items)

    def scorer(self, results: Sequence[StepResult], n_items: int) -> Scorer:
        """Return what training ends with."""
        result = self._played(results)
        if isinstance(result, Asked):
            raise FederationError("The run is not finished.")
        return result

    def _played(self, results: Sequence[StepResult]) -> Asked | Scorer:
        """Train on the results; return what training needs next, or the model."""
        recording = [np.asarray(entry.arrays[_SUM]) for entry in results]
        source = cast(Interactions, _Nobody(self.facts, recording))
        try:
            planned = self.planned()
            random = cast(PrivacyRandom, _NoNoise())
            return planned._train(Session.open(source, planned.promise(self.facts), random), silent)
        except _Asking as asking:
            return asking.asked

    def shapes(self, question: MessagePart | Message, n_shared: int) -> Shapes:
        """Return the one array that answers a question."""
        return {_SUM: (size_of(self.read(question, n_shared).part),)}

    def may_ask(self, kind: str, before: Sequence[str]) -> bool:
        """Allow any number of sums; what they cost together decides."""
        return kind == "sum"

    def allows(self, question: Message, before: Sequence[Drawn]) -> bool:
        """Tell whether a sum, with all that were drawn before, costs no more than the promise."""
        if math.isinf(self.epsilon):
            return True
        spent = math.fsum([*(one.price for one in before), self.price(question)])
        allowed = gaussian_multiplier(self.planned().epsilon, self.delta) ** -2
        return spent <= allowed * (1 + _SLACK)

    def price(self, question: Message) -> float:
        """Return the square of a person's length over the noise: the length is the statistic's own."""
        if math.isinf(self.epsilon):
            return 0.0
        asked = self.read(question, self.facts.n_items)
        return (asked.part.bound / asked.sigma) ** 2 if asked.sigma > 0 else math.inf

    def kept_price(self, answer: Message) -> float:
        """Return the price of an answer by what the party itself wrote beside it."""
        bound, sigma = answer.fields.get("bound"), answer.fields.get("sigma")
        known = isinstance(bound, float) and isinstance(sigma, float) and sigma > 0
        return (bound / sigma) ** 2 if known else math.inf  # type: ignore[operator]

    def check_sums(self, question: Message, results: StepResult) -> None:
        """Refuse sums that are larger than the declared people and the planned noise give, or below zero.

        One that is wrong by chance, as behind a mask that nobody has the key of, is so with near certainty.
        """
        asked, numbers = self.read(question, self.facts.n_items), results.arrays[_SUM]
        people = _MOST_PEOPLE if self.facts.n_users is None else _ABOUT * self.facts.n_users
        most = people * asked.part.bound
        noise = 0.0 if math.isinf(self.epsilon) else asked.sigma * (1 + _SLACK)
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
        numbers, deviation = self.noise.share(sums, self._noise(asked), asked.part.symmetric, random)
        return MessagePart(kind=question.kind, arrays={_SUM: numbers}, fields={f"noise {_SUM}": deviation})

    def own_deviations(self, question: MessagePart | Message) -> Mapping[str, float]:
        """Return the deviation of a party's share of the noise."""
        asked = self.read(question, self.facts.n_items)
        return {_SUM: self.noise.deviation(self._noise(asked).sigma)}

    def _noise(self, asked: Asked) -> Gaussian:
        """Return the noise that the parties which must be there add together."""
        if math.isinf(self.epsilon):
            return Gaussian(sigma=0.0, l2_sensitivity=asked.part.bound)
        planned = gaussian_multiplier(self.planned().epsilon, self.delta)
        sigma = asked.sigma * (self._least() / planned) * (1 + _SLACK)
        return Gaussian(sigma=sigma, l2_sensitivity=asked.part.bound)


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


class _Asking(Exception):
    """Carry what training asks for out of it."""

    def __init__(self, asked: Asked) -> None:
        super().__init__()
        self.asked = asked


class _NoNoise:
    """Stand where noise comes from: a coordinator draws none."""

    def __getattr__(self, name: str) -> Any:
        raise ParameterError("This model draws noise beside its sums and cannot run over parties.")


@final
class _Nobody:
    """Stand for people that parties hold: facts, and totals in the order in which they came."""

    def __init__(self, facts: PublicFacts, recording: Sequence[Floats]) -> None:
        self.facts, self.n_items = facts, facts.n_items
        # Names are for tables of items, which no run over parties has.
        self.catalog = Vocabulary.range(facts.n_items)
        # Parties do not say; those without times contribute nothing to what is asked of order.
        self.has_times = True
        self._recording = iter(recording)

    def __getattr__(self, name: str) -> Any:
        raise ParameterError("This model looks at more than sums over people and cannot run over parties.")

    def total(self, statistic: Statistic) -> _Totals:
        return _Totals(statistic, self)

    def next_result(self, asked: Asked) -> Floats:
        numbers = next(self._recording, None)
        if numbers is None:
            raise _Asking(asked)
        return numbers


class _Totals:
    """Stand for the sums of a statistic; each part is asked for when it is released."""

    def __init__(self, statistic: Statistic, source: _Nobody) -> None:
        self._statistic, self._source = statistic, source

    def floats(self, name: str | None = None) -> Floats:
        """Return one part without noise; parties send it only where nothing is promised."""
        awaited = self.steps(name)
        return awaited.released(Gaussian(sigma=0.0, l2_sensitivity=1.0), symmetric=awaited.part.symmetric)

    def steps(self, name: str | None = None) -> _Awaited:
        """Return what stands for one part."""
        parts = self._statistic.parts
        part = parts[0] if name is None else next(part for part in parts if part.name == name)
        return _Awaited(self._statistic, part, self._source)


class _Awaited(RemoteSum):
    """Stand for one part of a sum that parties hold."""

    def __init__(self, statistic: Statistic, part: Added, source: _Nobody) -> None:
        self._statistic, self.part, self._source = statistic, part, source

    def released(self, noise: object, *, symmetric: bool) -> Floats:
        """Return what the parties answered, or ask them."""
        if not isinstance(noise, Gaussian) or symmetric != self.part.symmetric:
            raise ParameterError("Parties share Gaussian noise only.")
        results = self._source.next_result(Asked(self._statistic, self.part, noise.sigma))
        return symmetric_from(results) if symmetric else results.reshape(self.part.shape)
