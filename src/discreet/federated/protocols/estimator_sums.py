"""Run an estimator's own training over parties: each sum that it releases is one question to all of them.

Training runs once, in a thread of its own, with a session without rows. Each sum that it asks for becomes a
question to the parties, who answer with their exact sums and a share of the noise, and the thread waits until
their sum is handed in. A coordinator that restarts hands in the kept sums of finished rounds first. A change
of the estimator's algorithm changes the federated one too, and without noise both give the same model to the
last bit. Every estimator that needs no rows can run over parties. One that this library does not know lists
the statistics that it brings.
"""

from __future__ import annotations

import contextvars
import math
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cache
from queue import SimpleQueue
from typing import Any, ClassVar, NamedTuple, Self, cast, final

import numpy as np

from discreet.core import Floats, PrivacyRandom, require, silent
from discreet.data import Interactions, PublicFacts, Vocabulary
from discreet.federated.errors import MoreThanSums, NotOverParties, OnlyGaussianShares, TrainingOutOfStep
from discreet.federated.noise import SharedNoise, symmetric_from
from discreet.federated.protocols.asked import Answerable, Asked, size_of
from discreet.federated.protocols.protocol import Protocol, Shapes, StepResult, check_sum, promise_of
from discreet.federated.wire import Message, Refusal, Refused
from discreet.models import Estimator, Scorer, statistics_of
from discreet.privacy import Guarantee, Release, Releases, Session, SharedBudget, ShareUnits, shared_release
from discreet.privacy.mechanisms.additive import Gaussian
from discreet.statistics import Part, Statistic

_SUM = "total"


class _Reading(NamedTuple):
    """A question over so many items, what it asks for, and the deviation of a party's share of the noise."""

    question: Message
    n_items: int
    asked: Asked
    share: float


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class EstimatorSums(Protocol):
    """Train an estimator that sees users only through sums, with noise that the parties share.

    Guarantee
        Each party guarantees (`epsilon`, `delta`) for a user's whole history at that party, between data
        sets with and without that user, under the assumptions of `SharedNoise` (proofs/federated.md). A
        party keeps the account itself: it answers as long as the squares of length over noise of all that it
        drew add up to no more than the guarantee allows, whatever it is asked. Lengths are those that the
        statistic declares, as the party reads it; nothing a question states about them counts.

    Example:
        >>> from discreet import Biases, PrivacyRandom
        >>> from discreet.federated import SharedNoise, protocol_for, simulate_parties
        >>> from discreet.data.datasets.synthetic import popularity_skewed
        >>> films = popularity_skewed(n_users=100, n_items=40, mean_per_user=15)
        >>> protocol = protocol_for(Biases(epsilon=2.0), films.facts, SharedNoise(parties=3, missing=1))
        >>> simulate_parties(protocol, films, 3, random=PrivacyRandom.simulate(0)).model.guarantee.epsilon
        2.0

    Stability
        Stable.
    """

    name: ClassVar[str] = "estimator-sums"

    epsilon: float
    delta: float
    estimator: Estimator
    facts: PublicFacts
    noise: SharedNoise
    #: How the parties share noise.
    units: ShareUnits = field(init=False, repr=False, compare=False)
    #: The exact account of a party.
    budget: SharedBudget = field(init=False, repr=False, compare=False)
    #: The statistics that parties answer in this run.
    answerable: Answerable = field(init=False, repr=False, compare=False)
    # The guarantee without what it assumes, by which a session divides the budget.
    _bare: Guarantee = field(init=False, repr=False, compare=False)
    # The latest questions, as they were read: both sides of a step look at one several times.
    _latest: list[_Reading] = field(init=False, repr=False, compare=False, default_factory=list)

    def __post_init__(self) -> None:
        private = math.isfinite(self.epsilon)
        do = "Shares of noise add up for Gaussian noise only."
        require(not private or self.delta > 0, "delta", self.delta, must="be greater than 0", do=do)
        features = self.estimator.settings.get("item_features")
        require(features is None, "item_features", features, must="be None over parties")
        budget = SharedBudget(
            epsilon=self.epsilon,
            delta=self.delta,
            parties=self.noise.parties,
            least=self.noise.least_parties,
        )
        object.__setattr__(self, "units", self.noise.units)
        object.__setattr__(self, "budget", budget)
        object.__setattr__(self, "_bare", promise_of(self.epsilon, self.delta, ()))
        object.__setattr__(self, "answerable", _answerable(statistics_of(self.estimator)))

    @classmethod
    def of(cls, estimator: Estimator, facts: PublicFacts, noise: SharedNoise) -> Self:
        """Return the protocol that runs an estimator."""
        return cls(
            epsilon=estimator.epsilon, delta=estimator.delta, estimator=estimator, facts=facts, noise=noise
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

    def read(self, question: Message, n_items: int) -> Asked:
        """Return what a question asks for, or raise `Refused`."""
        return self._reading(question, n_items).asked

    def _reading(self, question: Message, n_items: int) -> _Reading:
        for place, known in enumerate(self._latest):
            if known.question.digest == question.digest and known.n_items == n_items:
                self._latest.append(self._latest.pop(place))
                return known
        asked = self.answerable.read(question, n_items)
        share = self.units.deviation(self.budget.deviation(asked.part.bound, asked.sigma))
        found = _Reading(question, n_items, asked, share)
        self._latest[:] = [*self._latest[-1:], found]
        return found

    def shapes(self, question: Message, n_shared: int) -> Shapes:
        """Return the one array that answers a question."""
        found = self._reading(question, n_shared)
        if not self.units.draws(found.share):
            raise Refused(Refusal.OUT_OF_RANGE)
        return {_SUM: (size_of(found.asked.part),)}

    def allows(self, price: Fraction | float, before: Sequence[Fraction | float]) -> bool:
        """Return whether a sum, with all that were drawn before, costs no more than the guarantee."""
        return self.budget.covers([*before, price])

    def price(self, question: Message) -> Fraction | float:
        """Return the square of a user's length over the noise: the length is the statistic's own."""
        asked = self.read(question, self.facts.n_items)
        return self.budget.price(asked.part.bound, asked.sigma)

    def kept_price(self, kept: Message) -> Fraction | float:
        """Return the price of an answer by what the party itself wrote with it."""
        bound, sigma = kept.fields.get("bound"), kept.fields.get("sigma")
        known = isinstance(bound, float) and isinstance(sigma, float)
        return self.budget.price(bound, sigma) if known else math.inf  # type: ignore[arg-type]

    def check_sums(self, question: Message, results: StepResult) -> None:
        """Raise `Refused` if the declared users and the planned noise can't give these sums.

        A sum with a mask that no one has the key of is rejected with near certainty.
        """
        asked = self.read(question, self.facts.n_items)
        check_sum(
            results.arrays[_SUM],
            users=self.facts.n_users,
            noise=0.0 if math.isinf(self.epsilon) else asked.sigma,
            bound=asked.part.bound,
            nonnegative=asked.part.nonnegative,
        )

    def check_answer(self, question: Message, answer: Message) -> None:
        """Accept every answer: behind a mask every number is possible."""
        return

    def session(self, data: Interactions, random: PrivacyRandom, price: Fraction | float) -> Session:
        """Return a session that owns the part of the budget that this price is."""
        whole = Session.open(data, self._bare, random).gaussian()
        budget = self.budget
        return whole.split(budget.part(price))[0] if budget.is_private else whole

    def answer(self, session: Session, question: Message) -> Message:
        """Return a party's exact sum with its share of the noise."""
        found = self._reading(question, session.n_items)
        numbers = session.release_share(found.asked.statistic, found.asked.part.name, self.units)
        return Message(kind=question.kind, arrays={_SUM: numbers}, fields={f"noise {_SUM}": found.share})

    def own_deviations(self, question: Message) -> Mapping[str, float]:
        """Return the deviation of a party's share of the noise."""
        return {_SUM: self._reading(question, self.facts.n_items).share}


@final
class SumsRun:
    """One run over parties: training that waits for sums, and its questions as messages."""

    def __init__(self, protocol: EstimatorSums) -> None:
        self._protocol, self._answerable = protocol, protocol.answerable
        self._answered: list[Asked] = []
        self._training = RemoteTraining(lambda sums: _trained(protocol, sums))

    def question(self) -> Message | None:
        """Return what training waits for, or None when it has ended."""
        asked = self._training.question()
        return None if asked is None else self._answerable.write(asked)

    def answer(self, result: StepResult) -> None:
        """Hand in the parties' sum."""
        asked = self._training.question()
        self._answered += [] if asked is None else [asked]
        self._training.answer(np.asarray(result.arrays[_SUM]))

    def scorer(self) -> Scorer:
        """Return the model that training ends with."""
        return self._training.scorer()

    def certified(self) -> list[Release] | None:
        """Return each answered sum with the noise that every party's share adds to it."""
        if math.isinf(self._protocol.epsilon):
            return None
        return [self._certified(asked) for asked in self._answered]

    def _certified(self, asked: Asked) -> Release:
        noise, units, part = self._protocol.noise, self._protocol.units, asked.part
        deviation = self._protocol.budget.deviation(part.bound, asked.sigma)
        return shared_release(
            f"{type(asked.statistic).__name__}.{part.name}",
            sensitivity=Fraction(part.bound) * 2**units.bits,
            width=units.width(deviation),
            off_diagonal=units.width(deviation, Fraction(1, 2)) if part.symmetric else None,
            coordinates=size_of(part),
            honest=noise.least_parties,
            parties=noise.parties,
        )

    def close(self) -> None:
        """End a training that no one answers any more."""
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
        raise NotOverParties(model=estimator.name, reason=reason)
    return EstimatorSums.of(estimator, facts, noise)


class _Closed(BaseException):
    """The end of a training whose answers no one waits for any more; no handler of training catches it."""


@final
class RemoteUsers:
    """The users of all parties, as a coordinator sees them: public facts, and no row."""

    def __init__(self, facts: PublicFacts) -> None:
        self.facts, self.n_items = facts, facts.n_items
        # Names are for tables of items, which no run over parties has.
        self.catalog = Vocabulary.range(facts.n_items)
        # Parties do not state it; a party without times contributes nothing to sums over the order.
        self.has_times = True

    def __getattr__(self, name: str) -> Any:
        raise MoreThanSums(what=name)


@final
class RemoteTraining:
    """One training whose sums come from parties: what it asks next, and the model that it ends with.

    `train` receives the source of released sums, and runs in a thread that starts with the first question.
    Close it: a training that no one answers waits forever.
    """

    def __init__(self, train: Callable[[Releases], Scorer]) -> None:
        self._train = train
        self._asked: SimpleQueue[Asked | Scorer | BaseException] = SimpleQueue()
        self._answers: SimpleQueue[Floats | None] = SimpleQueue()
        self._thread: threading.Thread | None = None
        self._now: Asked | Scorer | None = None

    def question(self) -> Asked | None:
        """Return what training waits for, or None when it has ended."""
        if self._thread is None:
            run = contextvars.copy_context().run
            self._thread = threading.Thread(target=run, args=(self._run,), name="training", daemon=True)
            self._thread.start()
            self._now = self._next()
        return self._now if isinstance(self._now, Asked) else None

    def answer(self, numbers: Floats) -> None:
        """Hand in the sum that training waits for, as one array in the order of the wire."""
        if not isinstance(self._now, Asked):
            raise TrainingOutOfStep
        part = self._now.part
        self._now = None
        self._answers.put(symmetric_from(numbers) if part.symmetric else numbers.reshape(part.shape))
        self._now = self._next()

    def scorer(self) -> Scorer:
        """Return the model; raise if training still waits for a sum."""
        if self.question() is not None or not isinstance(self._now, Scorer):
            raise TrainingOutOfStep
        return self._now

    def close(self) -> None:
        """End a training that waits; one that has ended stays as it is."""
        if self._thread is not None and isinstance(self._now, Asked):
            self._now = None
            self._answers.put(None)
            self._thread.join()

    def _next(self) -> Asked | Scorer:
        found = self._asked.get()
        if isinstance(found, BaseException):
            raise found
        return found

    def _run(self) -> None:
        try:
            self._asked.put(self._train(self))
        except _Closed:
            return
        except BaseException as error:
            # Raised where the coordinator waits, not in a thread that no one looks at.
            self._asked.put(error)

    def released(self, query: Any, asked: Sequence[tuple[Any, Any]], /) -> list[Floats]:
        """Return what the parties answer; called by the session, in the thread of the training."""
        return [self._released(query, part, noise) for part, noise in asked]

    def _released(self, statistic: Statistic, part: Part, noise: object) -> Floats:
        if not isinstance(noise, Gaussian):
            raise OnlyGaussianShares
        self._asked.put(Asked(statistic, part, noise.sigma))
        numbers = self._answers.get()
        if numbers is None:
            raise _Closed
        return numbers
