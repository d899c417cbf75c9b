"""Average the items that each party solves from its own noisy sums: our protocol in place of Algorithm 1.

It shares the rounds of Algorithm 1 of DPIMF: items start at random, each party solves them for its own users,
and the coordinator averages. Everything inside a round is ours: Gaussian noise on sums in which a user has
norm at most 1, votes, and profiles that are computed from released items alone. `printed_dpimf.py` runs
the printed solves. Each party solves its items from its own noisy sums, so that the average is less accurate
than what `SummedStatistics` solves from the noisy sum over parties.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import ClassVar, final

import numpy as np

from discreet.core import Floats, Indices, experiment_generator, integer
from discreet.federated.noise import OwnNoise
from discreet.federated.protocols.averaged_users import check_averaging
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
    check_range,
    check_sum,
    number,
    only_fields,
)
from discreet.federated.wire import Arrays, Message, Refusal, Refused
from discreet.models import ProfileScorer, Scorer
from discreet.papers.dpimf import item_solves as items_of
from discreet.privacy import Session
from discreet.solvers import with_fixed_signs
from discreet.statistics import profiles as statistics

LISTED = "listed"


def only_listed(part: Message, listed: Indices | None, by_item: Collection[str]) -> Message:
    """Return an answer whose rows of other items are zero; None means that the party lists all items."""
    if listed is None or LISTED not in part.arrays:
        return part
    mask = np.zeros_like(np.asarray(part.arrays[LISTED]))
    mask[listed] = 1.0
    arrays = {name: np.asarray(part.arrays[name]) for name in by_item}
    kept = {name: array * (mask[:, None] if array.ndim == 2 else mask) for name, array in arrays.items()}
    return replace(part, arrays={**part.arrays, **kept, LISTED: mask})


def check_listed(answer: Message) -> None:
    """Raise `Refused` unless a list consists of zeros and ones: averages divide by it."""
    listed = answer.arrays.get(LISTED)
    if listed is not None and not np.isin(listed, (0.0, 1.0)).all():
        raise Refused(Refusal.OUT_OF_RANGE)


def averaged_rows(totals: Arrays, name: str) -> Floats:
    """Return the mean of an array over the parties that list each item; zero where no party does."""
    share = np.maximum(np.asarray(totals[LISTED]), 1.0)
    total = np.asarray(totals[name])
    return np.asarray(total / (share[:, None] if total.ndim == 2 else share))


# How the budget is shared: votes, and over all rounds the Gram matrices and the linear terms.
_VOTES, _GRAM, _LINEAR = Fraction(3, 20), Fraction(1, 20), Fraction(16, 20)
# No honest item is farther out. A party clips what it sends, and is excluded if it sends more.
_FARTHEST = 2.0**10
# How far items' places spread before anything is known of them.
_START_SPREAD = 0.3


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class AveragedItems(OwnNoiseProtocol):
    """Average item profiles of parties that share items and have users of their own.

    Guarantee
        Each party guarantees (`epsilon`, `delta`) for a user's whole history at that party, between datasets
        with and without that user, against the coordinator, the other parties and everyone who sees the
        model (proofs/federated.md).

    Parameters:
        rounds: How often items are solved and averaged.
        factors: The length of a profile.
        users: About how many users one party has at most: a public number. A party whose votes need more
            users is named and excluded.

    Example:
        >>> from discreet import PrivacyRandom
        >>> from discreet.federated import simulate_parties
        >>> from discreet.data.datasets.synthetic import popularity_skewed
        >>> films = popularity_skewed(n_users=100, n_items=40, mean_per_user=15)
        >>> protocol = AveragedItems(epsilon=2.0, rounds=1, factors=2)
        >>> run = simulate_parties(protocol, films.without_ratings(), 3, random=PrivacyRandom.simulate(0))
        >>> run.model.guarantee.epsilon
        2.0

    Stability
        Stable.
    """

    name: ClassVar[str] = "averaged-items"

    epsilon: float
    delta: float = 1e-6
    rounds: int = 3
    factors: int = 8
    users: int | None = None
    noise: OwnNoise = field(default_factory=OwnNoise)

    def __post_init__(self) -> None:
        if self.users is not None:
            integer("users", self.users, least=1)
        check_averaging(self.epsilon, self.delta, self.rounds, self.factors, self.noise)

    def shares(self, kind: str) -> Mapping[str, Fraction]:
        """Return the parts of the budget for votes, and for the sums of one round."""
        items = {"gram": _GRAM / self.rounds, "linear": _LINEAR / self.rounds}
        return {"votes": {"votes": _VOTES}, "items": items}.get(kind, {})

    def question(self, results: Sequence[StepResult], n_shared: int) -> Message | None:
        """Ask for votes, then send item profiles and ask for better ones."""
        if not results:
            return Message(kind="votes")
        if len(results) == 1 + self.rounds:
            return None
        favor = _favor(results[0])
        profiles = self._profiles(results, n_shared)
        asked = items_of.question(favor, profiles.factors, NO_PAIRS, "l2")
        arrays = {**profile_arrays(profiles, asked), "votes": favor.votes}
        fields = {**profile_fields(profiles, asked), "people": favor.people, "noise": favor.noise}
        return Message(kind="items", fields=fields, arrays=arrays)

    def shapes(self, question: Message, n_shared: int) -> Shapes:
        """Return the arrays that answer a question."""
        if question.kind == "votes":
            only_fields(question, (), ())
            return {"votes": (n_shared + 1,)}
        if question.kind == "items":
            only_fields(question, (*PROFILE_FIELDS, "people", "noise"), (*PROFILE_ARRAYS, "votes"))
            shared = _without_votes(question, n_shared)
            factors = check_profiles(shared, n_shared, self.factors)
            # All that can be wrong with a question is found before budget is spent.
            read_profiles(shared, n_shared, "l2")
            by_item = (n_shared, factors)
            alone = {"bias": (n_shared,), "listed": (n_shared,), "origin": (factors,)}
            return {"factors": by_item, "places": by_item, **alone}
        raise Refused(Refusal.WRONG_KIND)

    def answer(self, session: Session, question: Message) -> Message:
        """Return noisy votes, or this party's items solved from noisy sums."""
        n_items, whole = session.n_items, Fraction(1)
        if question.kind == "votes":
            votes = session.release(statistics.ProfileVotes(n_items=n_items, norm="l2"), whole)
            stated = {"noise votes": self.own_deviations(question)["votes"]}
            return Message(kind="votes", arrays={"votes": votes.values.ravel()}, fields=stated)
        profiles, asked = read_profiles(_without_votes(question, n_items), n_items, "l2")
        parts = session.split(*(part / self.price(question) for part in self.shares("items").values()))
        gram = parts[0].release(statistics.ProfileGram(profiles=profiles, norm="l2"), whole)
        terms = parts[1].release(statistics.LinearTerms(profiles=profiles, question=asked), whole)
        favor = items_of.Favor(
            votes=np.asarray(question.arrays["votes"], dtype=np.float64),
            noise=float(question.fields["noise"]),
            people=float(question.fields["people"]),
        )
        solved = items_of.solve_items(
            terms, gram, asked=asked, profiles=profiles, favor=favor, loss=SHARED_LOSS
        )
        arrays = {
            "factors": solved.factors,
            "places": solved.places,
            "bias": solved.bias,
            "origin": solved.origin,
            "listed": np.ones(n_items),
        }
        arrays = {name: np.clip(array, -_FARTHEST, _FARTHEST) for name, array in arrays.items()}
        return Message(kind="items", arrays=arrays, fields={f"noise {name}": 0.0 for name in arrays})

    def own_deviations(self, question: Message) -> Mapping[str, float]:
        """Return the deviation of the noise on votes; solved items state none."""
        if question.kind == "votes":
            return {"votes": math.sqrt(self.planned("votes")["votes"].variance)}
        return dict.fromkeys(("factors", "places", "bias", "origin", "listed"), 0.0)

    def limited(self, part: Message, listed: Indices | None) -> Message:
        """Return an answer without the items that the party doesn't list: of those it only has noise."""
        return only_listed(part, listed, ("factors", "places", "bias"))

    def check_answer(self, question: Message, answer: Message) -> None:
        """Raise `Refused` if no party can send an answer: votes of too many users, or items out of range."""
        if answer.kind == "votes":
            noise = number(answer, "noise votes", 0.0, math.inf)
            check_sum(answer.arrays["votes"], users=self.users, noise=noise, nonnegative=True)
            return
        for array in answer.arrays.values():
            check_range(array, _FARTHEST)
        check_listed(answer)

    def combine(self, totals: Arrays, parties: int) -> dict[str, Floats]:
        """Return each item's average over the parties that list it; votes add up."""
        if "votes" in totals:
            return {"votes": np.asarray(totals["votes"])}
        listed = np.asarray(totals[LISTED])
        bias = averaged_rows(totals, "bias")
        return {
            "factors": averaged_rows(totals, "factors"),
            "places": averaged_rows(totals, "places"),
            # Nothing is known about an item that no answering party lists: it is last.
            "bias": np.where(listed > 0, bias, bias.min(initial=0.0)),
            LISTED: listed,
            "origin": np.asarray(totals["origin"]) / parties,
        }

    def scorer(self, results: Sequence[StepResult], n_items: int) -> Scorer:
        """Return the last average, with the profiles it was solved for."""
        last = results[-1].arrays
        return ProfileScorer(
            item_bias=last["bias"],
            item_factors=last["factors"],
            origin=last["origin"],
            profiles=self._profiles(results[:-1], n_items),
        )

    def _profiles(self, results: Sequence[StepResult], n_items: int) -> statistics.Profiles:
        """Return profiles by the latest places of the items; at first these are random and public."""
        favor = _favor(results[0])
        if len(results) == 1:
            start = experiment_generator(0, "averaged items", n_items, self.factors)
            places = start.standard_normal((n_items, self.factors))
        else:
            places = np.asarray(results[-1].arrays["places"])
        nothing = np.zeros(n_items)
        return items_of.refined_profiles(
            items_of.ItemFactors(
                bias=nothing,
                factors=places,
                origin=np.zeros(self.factors),
                places=_spread_out(places, favor.counts / favor.counts.sum()),
                favor=favor,
            )
        )


def _favor(results: StepResult) -> items_of.Favor:
    """Return the votes of a party of average size: that is what each party's own sums are compared with."""
    return items_of.read_votes(
        results.arrays["votes"] / results.parties, results.noise["votes"] / results.parties
    )


def _spread_out(places: Floats, share: Floats) -> Floats:
    """Return places with equal spread in all directions: otherwise rounds would turn them all into one."""
    centered = places - share @ places
    values, basis = np.linalg.eigh((centered * share[:, None]).T @ centered)
    kept = np.maximum(values, 1e-9 * max(float(values[-1]), 1e-300))
    spread: Floats = centered @ with_fixed_signs(basis) * (math.sqrt(_START_SPREAD) / np.sqrt(kept))
    return spread


def _without_votes(question: Message, n_items: int) -> Message:
    """Check what comes on top of profiles, which only the post-processing reads, and set it aside."""
    votes = question.arrays.get("votes")
    if votes is None or votes.shape != (n_items,) or votes.dtype != np.float64:
        raise Refused(Refusal.WRONG_SHAPE)
    if not np.isfinite(votes).all():
        raise Refused(Refusal.NOT_FINITE)
    if np.abs(votes).max(initial=0.0) > LARGEST:
        raise Refused(Refusal.OUT_OF_RANGE)
    for name, least in (("noise", 0.0), ("people", 1.0)):
        number(question, name, least, LARGEST)
    arrays = {name: array for name, array in question.arrays.items() if name != "votes"}
    return Message(kind=question.kind, fields=question.fields, arrays=arrays)
