"""Add up the parties' noisy statistics and solve the items from the sums, as one model over all data does."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple, final

import numpy as np
import numpy.typing as npt

from discreet.core.arrays import Floats
from discreet.core.checks import require
from discreet.core.randomness import PrivacyRandom
from discreet.data.facts import PublicFacts
from discreet.data.interactions import Interactions
from discreet.federated.noise import OwnNoise, symmetric_from
from discreet.federated.protocols.profiles import (
    PROFILE_ARRAYS,
    PROFILE_FIELDS,
    check_profiles,
    profile_arrays,
    profile_fields,
    read_profiles,
)
from discreet.federated.protocols.protocol import (
    LARGEST,
    ItemProtocol,
    MessagePart,
    Shapes,
    StepResult,
    only_fields,
)
from discreet.federated.wire import Message, Refusal, Refused
from discreet.models.scorers.profiles import ProfileScorer
from discreet.models.scorers.scorer import Scorer
from discreet.papers.dpimf import item_solves as items_of
from discreet.papers.dpimf import questions
from discreet.papers.dpimf.objective import GRAM, LINEAR, MOMENT, VOTES, ImplicitObjective
from discreet.privacy.mechanisms.additive import Gaussian, Laplace
from discreet.privacy.session import planned_noise
from discreet.statistics import profile_sums as statistics
from discreet.statistics.statistic import Norm

_LOSS = items_of.Loss(shared_weight=1.0, chosen_weight=0.0)
_NO_PAIRS = np.zeros((0, 2), dtype=np.int64)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class SharePlan:
    """The noise of every release of a run; in each, a user's contribution has norm at most 1."""

    votes: Gaussian | Laplace
    recount: Gaussian | Laplace
    moment: Gaussian | Laplace
    rounds: tuple[tuple[Gaussian | Laplace, Gaussian | Laplace], ...]
    norm: Norm

    @classmethod
    def of(cls, epsilon: float, delta: float, rounds: int) -> SharePlan:
        """Split (epsilon, delta), or a pure epsilon, between the releases; no noise at infinity."""
        shares = [VOTES, MOMENT] + [share / rounds for share in (GRAM, LINEAR) for _ in range(rounds)]
        noises = planned_noise(epsilon, delta, shares)
        pairs = zip(noises[2 : 2 + rounds], noises[2 + rounds :], strict=True)
        pure = delta == 0 and math.isfinite(epsilon)
        recount = planned_noise(epsilon, delta, [VOTES, 1 - VOTES])[1]
        return cls(
            votes=noises[0],
            recount=recount,
            moment=noises[1],
            rounds=tuple(pairs),
            norm="l1" if pure else "l2",
        )

    def all(self) -> list[Gaussian | Laplace]:
        """Return every release in order; a recount replaces all releases after the votes at the same cost."""
        return [self.votes, self.moment, *(noise for pair in self.rounds for noise in pair)]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class SummedStatistics(ItemProtocol):
    """Run `implicit-objective` over parties that share a catalog and have people of their own.

    Guarantee
        Each party promises (`epsilon`, `delta`) for a person's whole history at that party, between data
        sets with and without that person, against the coordinator, the other parties and everybody who sees
        the model (proofs/federated.md). Parties may promise different things, also pure ones. With noise that
        parties share the same model is an `EstimatorSums`.

    Parameters:
        rounds: How often profiles are refined and items solved again.
        factors: The most coordinates a profile may have; None leaves it to what stands out from the noise.
        noise: Every party adds its own.
    """

    name: ClassVar[str] = "summed-statistics"

    epsilon: float
    delta: float = 1e-6
    rounds: int = 1
    factors: int | None = None
    noise: OwnNoise = field(default_factory=OwnNoise)

    def __post_init__(self) -> None:
        self._estimator()
        do = "For noise that parties share call protocol_for(ImplicitObjective(...), facts, noise)."
        require(not self.noise.masked, "noise", self.noise, "must be OwnNoise()", do)

    def _estimator(self) -> ImplicitObjective:
        return ImplicitObjective(
            epsilon=self.epsilon, delta=self.delta, rounds=self.rounds, factors=self.factors
        )

    def plan(self) -> SharePlan:
        """Return the noise of every release of the whole run."""
        return SharePlan.of(self.epsilon, self.delta, self._estimator().rounds or 1)

    def events(self) -> Sequence[Any]:
        """Return what all releases of one party cost together; the facts do not matter."""
        return self._estimator().events(PublicFacts(n_items=2))

    def question(self, results: Sequence[StepResult], n_shared: int) -> MessagePart | None:
        """Ask for votes, then a second moment, then rounds of terms; or, at once, for votes again."""
        view = _View(self, results)
        if not results:
            return MessagePart(kind="votes")
        if len(results) == 1:
            noise = view.moment_noise
            if not questions.shows_factors(view.favor, noise, self.plan().norm):
                return MessagePart(kind="recount")
            items, item_weights = questions.starting_items(view.favor, noise)
            return MessagePart(kind="moment", arrays={"items": items, "item_weights": item_weights})
        if results[1].kind == "recount" or len(results) == 2 + self.rounds:
            return None
        begun = view.next_round()
        profiles, asked = begun.profiles, view.asked(begun)
        return MessagePart(
            kind="terms", fields=profile_fields(profiles, asked), arrays=profile_arrays(profiles, asked)
        )

    def shapes(self, question: MessagePart | Message, n_shared: int) -> Shapes:
        """Return the arrays that answer a question."""
        if question.kind in ("votes", "recount"):
            only_fields(question, (), ())
            return {"votes": (n_shared + 1,)}
        if question.kind == "moment":
            only_fields(question, (), ("items", "item_weights"))
            size = _moment_items(question, n_shared).size
            return {"moment": (size * (size + 1) // 2,)}
        if question.kind == "terms":
            only_fields(question, PROFILE_FIELDS, PROFILE_ARRAYS)
            factors = check_profiles(question, n_shared, self._estimator().most_factors())
            # All that can be wrong with a question is found before it is paid for.
            read_profiles(question, n_shared, self.plan().norm)
            return {"gram": ((factors + 1) * (factors + 2) // 2,), "linear": (n_shared * (factors + 1),)}
        raise Refused(Refusal.WRONG_KIND)

    def may_ask(self, kind: str, before: Sequence[str]) -> bool:
        """Allow each release of the plan once, and a recount only instead of all after the votes."""
        most = {"votes": 1, "moment": 1, "terms": self.rounds, "recount": 1}.get(kind, 0)
        either = not set(before) & {"moment", "terms"} if kind == "recount" else "recount" not in before
        return before.count(kind) < most and either

    def answer(
        self, data: Interactions, question: MessagePart | Message, number: int, random: PrivacyRandom
    ) -> MessagePart:
        """Return a party's noisy statistics."""
        plan = self.plan()
        found: dict[str, tuple[Floats, Gaussian | Laplace, bool]]
        if question.kind in ("votes", "recount"):
            noise = plan.votes if question.kind == "votes" else plan.recount
            results = data.total(statistics.ProfileVotes(n_items=data.n_items, norm=plan.norm))
            found = {"votes": (results.floats(), noise, False)}
        elif question.kind == "moment":
            items, item_weights = _moment_items(question, data.n_items), question.arrays["item_weights"]
            results = data.total(
                statistics.StartMoment(items=items, item_weights=np.asarray(item_weights), norm=plan.norm)
            )
            found = {"moment": (results.floats(), plan.moment, True)}
        else:
            profiles, asked = read_profiles(question, data.n_items, plan.norm)
            gram = data.total(statistics.ProfileGram(profiles=profiles, norm=plan.norm))
            linear = data.total(statistics.LinearTerms(profiles=profiles, question=asked))
            shared_noise, linear_noise = plan.rounds[number]
            found = {
                "gram": (gram.floats(), shared_noise, True),
                "linear": (linear.floats(), linear_noise, False),
            }
        sent = {name: self.noise.protect(*parts, random) for name, parts in found.items()}
        return MessagePart(
            kind=question.kind,
            arrays={name: numbers for name, (numbers, _) in sent.items()},
            fields={f"noise {name}": deviation for name, (_, deviation) in sent.items()},
        )

    def own_deviations(self, question: MessagePart | Message) -> Mapping[str, float]:
        """Return the deviation of the planned noise; every round has the same."""
        plan = self.plan()
        gram, linear = plan.rounds[0]
        noises = {"votes": {"votes": plan.votes}, "recount": {"votes": plan.recount}}
        noises |= {"moment": {"moment": plan.moment}, "terms": {"gram": gram, "linear": linear}}
        return {name: math.sqrt(noise.variance) for name, noise in noises[question.kind].items()}

    def scorer(self, results: Sequence[StepResult], n_items: int) -> Scorer:
        """Return the model that the sums give."""
        view = _View(self, results)
        if results[1].kind == "recount":
            solved = items_of.recounted(view.favor, results[1].arrays["votes"], results[1].noise["votes"])
            profiles = questions.no_profiles(n_items)
        else:
            begun, solved = view.last_round()
            profiles = begun.profiles
        return ProfileScorer.of(
            item_bias=solved.bias, item_factors=solved.factors, origin=solved.origin, profiles=profiles
        )


class _Begun(NamedTuple):
    """Hold what a round begins with: people's profiles, and how items are favored."""

    profiles: statistics.Profiles
    favor: questions.Favor


class _View:
    """Compute what follows from the sums received so far; everything here is post-processing."""

    def __init__(self, protocol: SummedStatistics, results: Sequence[StepResult]) -> None:
        self._protocol, self._results = protocol, results
        self._plan = protocol.plan()

    @property
    def favor(self) -> questions.Favor:
        votes = self._results[0]
        return questions.read_votes(votes.arrays["votes"], votes.noise["votes"])

    @property
    def moment_noise(self) -> float:
        """Return the deviation that the second moment will have."""
        return _planned(self._plan.moment, self._plan.votes, self._results[0].noise["votes"])

    def next_round(self) -> _Begun:
        """Return what the next round begins with, after all finished rounds."""
        begun = self._first_round()
        for terms in self._results[2:]:
            begun = _after(self.solved(begun, terms))
        return begun

    def last_round(self) -> tuple[_Begun, items_of.ItemFactors]:
        """Return what the last finished round began with, and the items that its sums give."""
        begun = self._first_round()
        for terms in self._results[2:-1]:
            begun = _after(self.solved(begun, terms))
        return begun, self.solved(begun, self._results[-1])

    def _first_round(self) -> _Begun:
        results = self._results[1]
        favor = self.favor
        items, item_weights = questions.starting_items(favor, self.moment_noise)
        moment, most = symmetric_from(results.arrays["moment"]), self._protocol._estimator().most_factors()
        profiles = questions.starting_profiles(
            moment, items, item_weights, favor, results.noise["moment"], most
        )
        return _Begun(profiles, favor)

    def asked(self, begun: _Begun) -> statistics.ProfileQuestion:
        """Return what people are asked in a round."""
        return questions.question(begun.favor, begun.profiles.factors, _NO_PAIRS, self._plan.norm)

    def solved(self, begun: _Begun, terms: StepResult) -> items_of.ItemFactors:
        """Return the items as a round's sums give them."""
        return items_of.solve_items(
            terms.arrays["linear"].reshape(-1, begun.profiles.factors + 1),
            terms.noise["linear"],
            symmetric_from(terms.arrays["gram"]),
            terms.noise["gram"],
            asked=self.asked(begun),
            profiles=begun.profiles,
            favor=begun.favor,
            loss=_LOSS,
        )


def _after(solved: items_of.ItemFactors) -> _Begun:
    """Return what follows a round that gave these items."""
    return _Begun(items_of.refined_profiles(solved), solved.favor)


def _planned(noise: Gaussian | Laplace, known: Gaussian | Laplace, measured: float) -> float:
    """Guess the deviation of a sum that is still to come: as many times the plan's as the known one was."""
    if known.variance == 0:
        return 0.0
    return measured * math.sqrt(noise.variance / known.variance)


def _moment_items(question: MessagePart | Message, n_items: int) -> npt.NDArray[np.int64]:
    """Return the items whose second moment is asked for, or raise `Refused`."""
    arrays: Mapping[str, npt.NDArray[Any]] = question.arrays
    if (
        set(arrays) != {"items", "item_weights"}
        or arrays["items"].ndim != 1
        or arrays["items"].dtype != np.int64
    ):
        raise Refused(Refusal.WRONG_SHAPE)
    items, item_weights = arrays["items"], arrays["item_weights"]
    # A party holds a square of that size: nobody may ask for more than the rules ever do.
    if items.size > questions.MOST_ITEMS:
        raise Refused(Refusal.OVERSIZED)
    if item_weights.shape != (n_items,) or item_weights.dtype != np.float64:
        raise Refused(Refusal.WRONG_SHAPE)
    known = bool(items.size and items.min() >= 0 and items.max() < n_items)
    if not known or np.unique(items).size != items.size:
        raise Refused(Refusal.OUT_OF_RANGE)
    if (
        not np.isfinite(item_weights).all()
        or item_weights.min() < 1 / LARGEST
        or item_weights.max() > LARGEST
    ):
        raise Refused(Refusal.OUT_OF_RANGE)
    return items
