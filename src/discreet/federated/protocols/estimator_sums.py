"""Run an estimator's own training over parties: each sum that it releases is one question to all of them.

Training sees a crowd that holds nobody. What it asks for is put to the parties, who answer with their exact
sums and a share of the noise; told numbers are played back to it from the start until it asks for the next
one, or is done. So a change of the estimator's algorithm is a change of the federated one, and without noise
both give the same model to the last bit.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self, cast, final

import numpy as np

from discreet.arrays import Floats
from discreet.checks import ParameterError, require
from discreet.contributions.statistic import Part as Added
from discreet.contributions.statistic import Statistic
from discreet.data.facts import PublicFacts
from discreet.data.interactions import Interactions
from discreet.data.vocabulary import Vocabulary
from discreet.federated.noise import STEP_BITS, SharedNoise, symmetric_from
from discreet.federated.protocols.asked import Asked, read_asked, size_of, write_asked
from discreet.federated.protocols.protocol import ItemProtocol, Part, Shapes, Told
from discreet.federated.wire import FederationError, Message, Refusal, Refused
from discreet.models.estimator import Estimator
from discreet.models.progress import silent
from discreet.models.scorers.scorer import Scorer
from discreet.privacy.accounting.gaussian import gaussian_epsilon, gaussian_multiplier
from discreet.privacy.mechanisms.additive import Gaussian
from discreet.privacy.mechanisms.fixed_point import Elsewhere
from discreet.randomness import PrivacyRandom

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
        answered add up to no more than the promise allows, whatever it is asked.
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

    def question(self, told: Sequence[Told], n_shared: int) -> Part | None:
        """Ask for what training asks for after what was told."""
        asked = self._played(told)
        return write_asked(asked) if isinstance(asked, Asked) else None

    def scorer(self, told: Sequence[Told], n_items: int) -> Scorer:
        """Return what training ends with."""
        result = self._played(told)
        if isinstance(result, Asked):
            raise FederationError("The run is not finished.")
        return result

    def _played(self, told: Sequence[Told]) -> Asked | Scorer:
        """Train on what was told; return what training asks for next, or the model."""
        tape = [np.asarray(entry.arrays[_SUM]) for entry in told]
        crowd = cast(Interactions, _Nobody(self.facts, tape))
        try:
            return self.planned()._train(crowd, cast(PrivacyRandom, _NoNoise()), silent)
        except _Asking as asking:
            return asking.asked

    def shapes(self, question: Part | Message, n_shared: int) -> Shapes:
        """Return the one array that answers a question."""
        return {_SUM: (size_of(read_asked(question, n_shared).part),)}

    def may_ask(self, kind: str, before: Sequence[str]) -> bool:
        """Allow any number of sums; what they cost together decides."""
        return kind == "sum"

    def allows(self, question: Message, before: Sequence[Message]) -> bool:
        """Tell whether a sum, with all that were answered before, costs no more than the promise."""
        if math.isinf(self.epsilon):
            return True
        spent = math.fsum(self._cost(entry) for entry in (*before, question))
        allowed = gaussian_multiplier(self.planned().epsilon, self.delta) ** -2
        return spent <= allowed * (1 + _SLACK)

    def _cost(self, question: Message) -> float:
        """Return the square of a person's length over the noise, as planned."""
        bound, sigma = question.fields.get("bound"), question.fields.get("sigma")
        if bound is None:
            bound = read_asked(question, self.facts.n_items).part.bound
        if not isinstance(sigma, float) or not isinstance(bound, float) or sigma <= 0:
            return math.inf
        return (bound / sigma) ** 2

    def answer(
        self, data: Interactions, question: Part | Message, number: int, random: PrivacyRandom
    ) -> Part:
        """Return a party's exact sum with its share of the noise."""
        asked = read_asked(question, data.n_items)
        if asked.part.bits > STEP_BITS:
            raise Refused(Refusal.WRONG_KIND)
        sums = data.total(asked.statistic).steps(asked.part.name)
        numbers, deviation = self.noise.share(sums, self._noise(asked), asked.part.symmetric, random)
        fields = {f"noise {_SUM}": deviation, "sigma": asked.sigma, "bound": float(asked.part.bound)}
        return Part(kind=question.kind, arrays={_SUM: numbers}, fields=fields)

    def _noise(self, asked: Asked) -> Gaussian:
        """Return the noise that the parties which must be there add together."""
        if math.isinf(self.epsilon):
            return Gaussian(sigma=0.0, l2_sensitivity=asked.part.bound)
        planned = gaussian_multiplier(self.planned().epsilon, self.delta)
        sigma = asked.sigma * (self._least() / planned) * (1 + _SLACK)
        return Gaussian(sigma=sigma, l2_sensitivity=asked.part.bound)


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
    """Stand for people that parties hold: facts, and totals as they were told, in order."""

    def __init__(self, facts: PublicFacts, tape: Sequence[Floats]) -> None:
        self.facts, self.n_items = facts, facts.n_items
        # Names are for tables of items, which no run over parties has.
        self.catalog = Vocabulary.range(facts.n_items)
        self._tape = iter(tape)

    def __getattr__(self, name: str) -> Any:
        raise ParameterError("This model looks at more than sums over people and cannot run over parties.")

    def total(self, statistic: Statistic) -> _Totals:
        return _Totals(statistic, self)

    def next_told(self, asked: Asked) -> Floats:
        numbers = next(self._tape, None)
        if numbers is None:
            raise _Asking(asked)
        return numbers


class _Totals:
    """Stand for the sums of a statistic; each part is asked for when it is released."""

    def __init__(self, statistic: Statistic, crowd: _Nobody) -> None:
        self._statistic, self._crowd = statistic, crowd

    def floats(self, name: str | None = None) -> Floats:
        """Return one part without noise; parties tell it only where nothing is promised."""
        awaited = self.steps(name)
        return awaited.released(Gaussian(sigma=0.0, l2_sensitivity=1.0), symmetric=awaited.part.symmetric)

    def steps(self, name: str | None = None) -> _Awaited:
        """Return what stands for one part."""
        parts = self._statistic.parts
        part = parts[0] if name is None else next(part for part in parts if part.name == name)
        return _Awaited(self._statistic, part, self._crowd)


class _Awaited(Elsewhere):
    """Stand for one part of a sum that parties hold."""

    def __init__(self, statistic: Statistic, part: Added, crowd: _Nobody) -> None:
        self._statistic, self.part, self._crowd = statistic, part, crowd

    def released(self, noise: object, *, symmetric: bool) -> Floats:
        """Return what the parties told, or ask them."""
        if not isinstance(noise, Gaussian) or symmetric != self.part.symmetric:
            raise ParameterError("Parties share Gaussian noise only.")
        told = self._crowd.next_told(Asked(self._statistic, self.part, noise.sigma))
        return symmetric_from(told) if symmetric else told.reshape(self.part.shape)
