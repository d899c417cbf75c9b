"""Let each party solve its own items from its own noisy statistics, and average the items over parties.

This is Algorithm 1 as printed, made private: items start at random, each party's people find their places
among them, each party solves its items from noisy sums, the coordinator averages, and so on. Every party
reads its sums through its own noise before they are averaged, so it reaches less than `SummedStatistics`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any, ClassVar, final

import numpy as np

from discreet.core.arrays import Floats, Indices
from discreet.core.randomness import PrivacyRandom, experiment_generator
from discreet.data.interactions import Interactions
from discreet.federated.noise import OwnNoise
from discreet.federated.protocols.averaged_users import check_averaging, noises_by_share
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
    number,
    only_fields,
)
from discreet.federated.wire import Arrays, Message, Refusal, Refused
from discreet.models.scorers.profiles import ProfileScorer
from discreet.models.scorers.scorer import Scorer
from discreet.papers.dpimf import item_solves as items_of
from discreet.papers.dpimf import questions
from discreet.privacy.mechanisms.additive import Gaussian
from discreet.solvers.spectrum import with_fixed_signs
from discreet.statistics import profile_sums as statistics

_LOSS = items_of.Loss(shared_weight=1.0, chosen_weight=0.0)
_NO_PAIRS = np.zeros((0, 2), dtype=np.int64)
# How the budget is shared: votes, and over all rounds the Gram matrices and the linear terms.
_VOTES, _GRAM, _LINEAR = Fraction(3, 20), Fraction(1, 20), Fraction(16, 20)
# How far items' places spread before anything is known of them.
_START_SPREAD = 0.3


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class AveragedItems(ItemProtocol):
    """Exchange item profiles: parties share items and have people of their own.

    Guarantee
        Each party promises (`epsilon`, `delta`) for a person's whole history at that party, between data
        sets with and without that person, against the coordinator, the other parties and everybody who sees
        the model (proofs/federated.md).

    Parameters:
        rounds: How often items are solved and averaged.
        factors: The length of a profile.
    """

    name: ClassVar[str] = "averaged-items"

    epsilon: float
    delta: float = 1e-6
    rounds: int = 3
    factors: int = 8
    noise: OwnNoise = field(default_factory=OwnNoise)

    def __post_init__(self) -> None:
        check_averaging(self.epsilon, self.delta, self.rounds, self.factors, self.noise)

    def noises(self) -> tuple[Gaussian, list[Gaussian], list[Gaussian]]:
        """Return the noise on votes, and on the Gram matrix and the linear terms of every round."""
        shares = [_VOTES] + [share / self.rounds for share in (_GRAM, _LINEAR) for _ in range(self.rounds)]
        all_noises = noises_by_share(self.epsilon, self.delta, shares)
        return all_noises[0], all_noises[1 : 1 + self.rounds], all_noises[1 + self.rounds :]

    def events(self) -> Sequence[Any]:
        """Return every release of one party."""
        votes, grams, terms = self.noises()
        return [] if math.isinf(self.epsilon) else [noise.event() for noise in (votes, *grams, *terms)]

    def question(self, results: Sequence[StepResult], n_shared: int) -> MessagePart | None:
        """Ask for votes, then send item profiles and ask for better ones."""
        if not results:
            return MessagePart(kind="votes")
        if len(results) == 1 + self.rounds:
            return None
        favor = _favor(results[0])
        profiles = self._profiles(results, n_shared)
        asked = questions.question(favor, profiles.factors, _NO_PAIRS, "l2")
        arrays = {**profile_arrays(profiles, asked), "votes": favor.votes}
        fields = {**profile_fields(profiles, asked), "people": favor.people, "noise": favor.noise}
        return MessagePart(kind="items", fields=fields, arrays=arrays)

    def shapes(self, question: MessagePart | Message, n_shared: int) -> Shapes:
        """Return the arrays that answer a question."""
        if question.kind == "votes":
            only_fields(question, (), ())
            return {"votes": (n_shared + 1,)}
        if question.kind == "items":
            only_fields(question, (*PROFILE_FIELDS, "people", "noise"), (*PROFILE_ARRAYS, "votes"))
            shared = _without_votes(question, n_shared)
            factors = check_profiles(shared, n_shared, self.factors)
            # All that can be wrong with a question is found before it is paid for.
            read_profiles(shared, n_shared, "l2")
            by_item = (n_shared, factors)
            alone = {"bias": (n_shared,), "listed": (n_shared,), "origin": (factors,)}
            return {"factors": by_item, "places": by_item, **alone}
        raise Refused(Refusal.WRONG_KIND)

    def may_ask(self, kind: str, before: Sequence[str]) -> bool:
        """Allow the votes once and items once a round."""
        return before.count(kind) < {"votes": 1, "items": self.rounds}.get(kind, 0)

    def answer(
        self, data: Interactions, question: MessagePart | Message, number: int, random: PrivacyRandom
    ) -> MessagePart:
        """Return noisy votes, or this party's items solved from noisy sums."""
        votes_noise, gram_noises, term_noises = self.noises()
        if question.kind == "votes":
            votes = data.total(statistics.ProfileVotes(n_items=data.n_items, norm="l2"))
            numbers, deviation = self.noise.protect(votes.floats(), votes_noise, False, random)
            return MessagePart(kind="votes", arrays={"votes": numbers}, fields={"noise votes": deviation})
        profiles, asked = read_profiles(_without_votes(question, data.n_items), data.n_items, "l2")
        gram_noise, term_noise = gram_noises[number], term_noises[number]
        gram_sums = data.total(statistics.ProfileGram(profiles=profiles, norm="l2"))
        gram = gram_noise.release_symmetric(gram_sums.steps(), random)
        linear = data.total(statistics.LinearTerms(profiles=profiles, question=asked))
        results = term_noise.release(linear.steps(), random)
        favor = questions.Favor(
            votes=np.asarray(question.arrays["votes"], dtype=np.float64),
            noise=float(question.fields["noise"]),
            people=float(question.fields["people"]),
        )
        solved = items_of.solve_items(
            results,
            term_noise.sigma,
            gram,
            gram_noise.sigma,
            asked=asked,
            profiles=profiles,
            favor=favor,
            loss=_LOSS,
        )
        arrays = {
            "factors": solved.factors,
            "places": solved.places,
            "bias": solved.bias,
            "origin": solved.origin,
            "listed": np.ones(data.n_items),
        }
        return MessagePart(kind="items", arrays=arrays, fields={f"noise {name}": 0.0 for name in arrays})

    def own_deviations(self, question: MessagePart | Message) -> Mapping[str, float]:
        """Return the deviation of the noise on votes; solved items state none."""
        votes = self.noises()[0]
        if question.kind == "votes":
            return {"votes": math.sqrt(votes.variance)}
        return dict.fromkeys(("factors", "places", "bias", "origin", "listed"), 0.0)

    def limited(self, part: MessagePart, listed: Indices | None) -> MessagePart:
        """Leave out of the averages what the party does not list: of that it only has noise."""
        if listed is None or part.kind == "votes":
            return part
        mask = np.zeros_like(np.asarray(part.arrays["listed"]))
        mask[listed] = 1.0
        by_item = {name: np.asarray(part.arrays[name]) for name in ("factors", "places", "bias")}
        kept = {name: array * (mask[:, None] if array.ndim == 2 else mask) for name, array in by_item.items()}
        return replace(part, arrays={**part.arrays, **kept, "listed": mask})

    def check_answer(self, answer: Message) -> None:
        """Refuse a list that is anything but a choice of items: averages divide by it."""
        listed = answer.arrays.get("listed")
        if listed is not None and not np.isin(listed, (0.0, 1.0)).all():
            raise Refused(Refusal.OUT_OF_RANGE)

    def combine(self, totals: Arrays, parties: int) -> dict[str, Floats]:
        """Average each item's profile over the parties that list it; votes add up."""
        if "votes" in totals:
            return {"votes": np.asarray(totals["votes"])}
        holders = np.asarray(totals["listed"])
        share = np.maximum(holders, 1.0)
        bias = np.asarray(totals["bias"]) / share
        # Of an item that nobody lists who answered nothing is known: it comes last.
        bias = np.where(holders > 0, bias, bias.min(initial=0.0))
        return {
            "factors": np.asarray(totals["factors"]) / share[:, None],
            "places": np.asarray(totals["places"]) / share[:, None],
            "bias": bias,
            "listed": holders,
            "origin": np.asarray(totals["origin"]) / parties,
        }

    def scorer(self, results: Sequence[StepResult], n_items: int) -> Scorer:
        """Return the last average, with the profiles it was solved for."""
        last = results[-1].arrays
        return ProfileScorer.of(
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


def _favor(results: StepResult) -> questions.Favor:
    """Return the votes of a party of average size: that is what each party's own sums are set beside."""
    return questions.read_votes(
        results.arrays["votes"] / results.parties, results.noise["votes"] / results.parties
    )


def _spread_out(places: Floats, share: Floats) -> Floats:
    """Return places with equal spread in all directions: otherwise rounds would turn them all into one."""
    centered = places - share @ places
    values, basis = np.linalg.eigh((centered * share[:, None]).T @ centered)
    kept = np.maximum(values, 1e-9 * max(float(values[-1]), 1e-300))
    spread: Floats = centered @ with_fixed_signs(basis) * (math.sqrt(_START_SPREAD) / np.sqrt(kept))
    return spread


def _without_votes(question: MessagePart | Message, n_items: int) -> MessagePart:
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
    return MessagePart(kind=question.kind, fields=question.fields, arrays=arrays)
