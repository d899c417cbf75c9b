"""Add up the parties' noisy statistics and solve the items from the sums, as one model over all data does."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, ClassVar, NamedTuple, final

import numpy as np
import numpy.typing as npt

from discreet.core import integer, require
from discreet.federated.noise import OwnNoise, symmetric_from
from discreet.federated.protocols.profiles import (
    NO_PAIRS,
    PROFILE_ARRAYS,
    PROFILE_FIELDS,
    SHARED_LOSS,
    check_profiles,
    profile_arrays,
    profile_fields,
    read_profiles,
)
from discreet.federated.protocols.protocol import (
    LARGEST,
    OwnNoiseProtocol,
    Shapes,
    StepResult,
    check_sum,
    number,
    only_fields,
)
from discreet.federated.wire import Message, Refusal, Refused
from discreet.models import ProfileScorer, Scorer
from discreet.papers.dpimf import item_solves as items_of
from discreet.papers.dpimf.implicit_objective import GRAM, LINEAR, MOMENT, VOTES, ImplicitObjective
from discreet.privacy import Noisy, Session, upper
from discreet.statistics import Norm
from discreet.statistics import profiles as statistics


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class SummedStatistics(OwnNoiseProtocol):
    """Run `implicit-objective` over parties that share a catalog and have users of their own.

    Guarantee
        Each party guarantees (`epsilon`, `delta`) for a user's whole history at that party, between data
        sets with and without that user, against the coordinator, the other parties and everyone who sees
        the model (proofs/federated.md). Guarantees of parties may differ, also pure ones. With noise that
        parties share, the same model is an `EstimatorSums`.

    Parameters:
        rounds: How often profiles are refined and items solved again.
        factors: The most coordinates a profile may have; None leaves it to what exceeds the noise.
        users: About how many users one party has at most: a public number. A party whose sums need more
            users is named and excluded.
        noise: Every party adds its own.

    Example:
        >>> from discreet import PrivacyRandom
        >>> from discreet.federated import simulate_parties
        >>> from discreet.data.datasets.synthetic import popularity_skewed
        >>> films = popularity_skewed(n_users=100, n_items=40, mean_per_user=15)
        >>> protocol = SummedStatistics(epsilon=2.0)
        >>> run = simulate_parties(protocol, films.without_ratings(), 3, random=PrivacyRandom.simulate(0))
        >>> len(run.model.recommend([films.catalog.id_at(0)], k=3))
        3

    Stability
        Stable.
    """

    name: ClassVar[str] = "summed-statistics"

    epsilon: float
    delta: float = 1e-6
    rounds: int = 1
    factors: int | None = None
    users: int | None = None
    noise: OwnNoise = field(default_factory=OwnNoise)

    def __post_init__(self) -> None:
        self._estimator()
        if self.users is not None:
            integer("users", self.users, least=1)
        do = "For noise that parties share call protocol_for(ImplicitObjective(...), facts, noise)."
        require(not self.noise.masked, "noise", self.noise, must="be OwnNoise()", do=do)

    def _estimator(self) -> ImplicitObjective:
        return ImplicitObjective(
            epsilon=self.epsilon, delta=self.delta, rounds=self.rounds, factors=self.factors
        )

    @property
    def norm(self) -> Norm:
        """Return the norm in which a user's contribution is bounded: that of the noise."""
        return "l1" if self.delta == 0 and math.isfinite(self.epsilon) else "l2"

    def shares(self, kind: str) -> Mapping[str, Fraction]:
        """Return the parts of the budget; a recount takes the place of all releases after the votes."""
        terms = {"gram": GRAM / self.rounds, "linear": LINEAR / self.rounds}
        planned = {"votes": {"votes": VOTES}, "recount": {"votes": 1 - VOTES}, "moment": {"moment": MOMENT}}
        return {**planned, "terms": terms}.get(kind, {})

    def question(self, results: Sequence[StepResult], n_shared: int) -> Message | None:
        """Ask for votes, then a second moment, then rounds of terms; or, at once, for votes again."""
        view = _View(self, results)
        if not results:
            return Message(kind="votes")
        if len(results) == 1:
            noise = view.moment_noise
            if not items_of.shows_factors(view.favor, noise, self.norm):
                return Message(kind="recount")
            items, item_weights = items_of.starting_items(view.favor, noise)
            return Message(kind="moment", arrays={"items": items, "item_weights": item_weights})
        if results[1].kind == "recount" or len(results) == 2 + self.rounds:
            return None
        begun = view.next_round()
        profiles, asked = begun.profiles, view.asked(begun)
        return Message(
            kind="terms", fields=profile_fields(profiles, asked), arrays=profile_arrays(profiles, asked)
        )

    def shapes(self, question: Message, n_shared: int) -> Shapes:
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
            # All that can be wrong with a question is found before budget is spent.
            read_profiles(question, n_shared, self.norm)
            return {"gram": ((factors + 1) * (factors + 2) // 2,), "linear": (n_shared * (factors + 1),)}
        raise Refused(Refusal.WRONG_KIND)

    def answer(self, session: Session, question: Message) -> Message:
        """Return a party's noisy statistics."""
        n_items, whole = session.n_items, Fraction(1)
        if question.kind in ("votes", "recount"):
            votes = statistics.ProfileVotes(n_items=n_items, norm=self.norm)
            found = {"votes": session.release(votes, whole).values.ravel()}
        elif question.kind == "moment":
            items, item_weights = _moment_items(question, n_items), question.arrays["item_weights"]
            moment = statistics.StartMoment(
                items=items, item_weights=np.asarray(item_weights), norm=self.norm
            )
            found = {"moment": upper(session.release(moment, whole).values)}
        else:
            profiles, asked = read_profiles(question, n_items, self.norm)
            parts = self.shares("terms")
            gram, linear = session.split(*(part / self.price(question) for part in parts.values()))
            squares = gram.release(statistics.ProfileGram(profiles=profiles, norm=self.norm), whole)
            terms = linear.release(statistics.LinearTerms(profiles=profiles, question=asked), whole)
            found = {"gram": upper(squares.values), "linear": terms.values.ravel()}
        stated = {f"noise {name}": value for name, value in self.own_deviations(question).items()}
        return Message(kind=question.kind, arrays=found, fields=stated)

    def own_deviations(self, question: Message) -> Mapping[str, float]:
        """Return the deviation of the planned noise; every round has the same."""
        return {name: math.sqrt(noise.variance) for name, noise in self.planned(question.kind).items()}

    def check_answer(self, question: Message, answer: Message) -> None:
        """Raise `Refused` if the declared users and a party's noise can't give an answer."""
        for name, array in answer.arrays.items():
            noise = number(answer, f"noise {name}", 0.0, math.inf)
            check_sum(array, users=self.users, noise=noise, nonnegative=name in ("votes", "moment"))

    def scorer(self, results: Sequence[StepResult], n_items: int) -> Scorer:
        """Return the model that the sums give."""
        view = _View(self, results)
        if results[1].kind == "recount":
            solved = items_of.recounted(view.favor, results[1].arrays["votes"], results[1].noise["votes"])
            profiles = items_of.no_profiles(n_items)
        else:
            begun, solved = view.last_round()
            profiles = begun.profiles
        return ProfileScorer(
            item_bias=solved.bias, item_factors=solved.factors, origin=solved.origin, profiles=profiles
        )


class _Begun(NamedTuple):
    """What a round begins with: users' profiles, and how items are favored."""

    profiles: statistics.Profiles
    favor: items_of.Favor


class _View:
    """Compute what follows from the sums received so far; everything here is post-processing."""

    def __init__(self, protocol: SummedStatistics, results: Sequence[StepResult]) -> None:
        self._protocol, self._results = protocol, results

    @property
    def favor(self) -> items_of.Favor:
        votes = self._results[0]
        return items_of.read_votes(votes.arrays["votes"], votes.noise["votes"])

    @property
    def moment_noise(self) -> float:
        """Return the deviation that the second moment will have."""
        planned = [self._protocol.planned(kind)[kind].variance for kind in ("moment", "votes")]
        # As many times the planned deviation as that of the votes was.
        measured = self._results[0].noise["votes"]
        return measured * math.sqrt(planned[0] / planned[1]) if planned[1] else 0.0

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
        items, item_weights = items_of.starting_items(favor, self.moment_noise)
        moment, most = symmetric_from(results.arrays["moment"]), self._protocol._estimator().most_factors()
        profiles = items_of.starting_profiles(
            moment, items, item_weights, favor, results.noise["moment"], most
        )
        return _Begun(profiles, favor)

    def asked(self, begun: _Begun) -> statistics.ProfileQuestion:
        """Return what users are asked in a round."""
        return items_of.question(begun.favor, begun.profiles.factors, NO_PAIRS, self._protocol.norm)

    def solved(self, begun: _Begun, terms: StepResult) -> items_of.ItemFactors:
        """Return the items as a round's sums give them."""
        return items_of.solve_items(
            Noisy(terms.arrays["linear"].reshape(-1, begun.profiles.factors + 1), terms.noise["linear"]),
            Noisy(symmetric_from(terms.arrays["gram"]), terms.noise["gram"]),
            asked=self.asked(begun),
            profiles=begun.profiles,
            favor=begun.favor,
            loss=SHARED_LOSS,
        )


def _after(solved: items_of.ItemFactors) -> _Begun:
    """Return what follows a round that gave these items."""
    return _Begun(items_of.refined_profiles(solved), solved.favor)


def _moment_items(question: Message, n_items: int) -> npt.NDArray[np.int64]:
    """Return the items whose second moment is asked for, or raise `Refused`."""
    arrays: Mapping[str, npt.NDArray[Any]] = question.arrays
    if (
        set(arrays) != {"items", "item_weights"}
        or arrays["items"].ndim != 1
        or arrays["items"].dtype != np.int64
    ):
        raise Refused(Refusal.WRONG_SHAPE)
    items, item_weights = arrays["items"], arrays["item_weights"]
    # A party has a square of that size: no one may ask for more than the rules ever do.
    if items.size > items_of.MOST_ITEMS:
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
