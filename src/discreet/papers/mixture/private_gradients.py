"""Learn item factors from one noisy bit per user and round; ratings and history stay on the device."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar, Self, final

import numpy as np

from discreet.collect.gradient_rounds import (
    BOUND,
    RIDGE,
    GradientAnswer,
    GradientBits,
    GradientCampaign,
    on_unit_scale,
    own_errors,
    read_answer,
)
from discreet.collect.wire import ReportRefusal, ReportRefused
from discreet.core import (
    Floats,
    Indices,
    Progress,
    Rows,
    experiment_generator,
    integer,
    positive,
    positive_finite,
)
from discreet.data import PublicFacts
from discreet.models import PINNED, Estimator, FittedModel, RatingScorer, ScaleTooSmall, Scorer
from discreet.privacy import (
    PARTICIPATION,
    Guarantee,
    Session,
    Unit,
    assumptions_of,
    response_release,
    round_down,
)
from discreet.privacy.certificate import certificate
from discreet.privacy.mechanisms.channel import local_epsilon
from discreet.privacy.mechanisms.local import sign_flip
from discreet.statistics import DataSource

_START = 0.1
# The step is shortened until the known noise moves an entry by about this much per round.
_MOST_NOISE = 0.02


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class PrivateGradients(Estimator):
    """Send item factors to devices and one noisy bit of a projected gradient back, in each round.

    In each round a device computes its user's factors from the item factors, then the gradient of its error.
    It projects the gradient to `projected` rows, samples one coordinate, rounds it at random to +1 or -1 and
    flips that with a known probability.

    Guarantee
        Pure `epsilon` for a user's whole history, which items were rated included, between any two
        histories, against anyone, the collector included (proofs/private_gradients.md). Each of `rounds`
        bits costs epsilon / rounds.

    Noise
        A bit is flipped with probability 1 / (1 + e^(epsilon / rounds)).

    Parameters:
        epsilon: The loss of all rounds together.
        factors: The rank.
        rounds: How often item factors are sent and bits returned.
        projected: Rows of the random projection of the items.
        rate: The largest step size; the known noise reduces it.

    References:
        Shin, Kim, Shin and Xiao, Privacy Enhanced Matrix Factorization for Recommendation with Local
        Differential Privacy (2018): PG-MF.

    Example:
        >>> from discreet import PrivacyRandom, PrivateGradients
        >>> from discreet.data.datasets.synthetic import popularity_skewed
        >>> films = popularity_skewed(n_users=100, n_items=40, mean_per_user=15)
        >>> model = PrivateGradients(epsilon=1.0).fit(films, random=PrivacyRandom.simulate(0))
        >>> model.guarantee.unit.value, model.guarantee.proof
        ('user', 'proofs/private_gradients.md')
        >>> film = films.catalog.id_at(0)
        >>> len(model.recommend({film: 5}, k=3))
        3

    Stability
        Stable.
    """

    name: ClassVar[str] = "private-gradients"
    source: ClassVar[str] = "Shin et al. 2018"

    epsilon: float
    factors: int = 5
    rounds: int = 10
    projected: int = 16
    rate: float = 2.0
    seed: int = 0

    def __post_init__(self) -> None:
        positive("epsilon", self.epsilon)
        integer("factors", self.factors, least=1)
        integer("rounds", self.rounds, least=1)
        integer("projected", self.projected, least=1)
        positive_finite("rate", self.rate)
        if math.isfinite(self.epsilon):
            local_epsilon(self.share())

    def share(self) -> float:
        """Return the epsilon of one round: all rounds together cost at most `epsilon`."""
        return math.inf if math.isinf(self.epsilon) else round_down(Fraction(self.epsilon) / self.rounds)

    def promise(self, facts: PublicFacts) -> Guarantee:
        """Return the guarantee, which covers a user's whole history."""
        assumes, proof = (*assumptions_of(facts), PARTICIPATION), "proofs/private_gradients.md"
        return Guarantee.of_reports(self.epsilon, Unit.USER, *assumes, proof=proof).from_raw_ratings()

    def events(self, facts: PublicFacts) -> Sequence[Any]:
        """Return one flipped bit per round."""
        return () if math.isinf(self.epsilon) else [sign_flip(self.share()).event()] * self.rounds

    def sent_bytes(self, n_items: int) -> dict[str, int]:
        """Return how many bytes a device sends and is sent over all rounds, in 32-bit floats and integers."""
        return {"up": 5 * self.rounds, "down": 4 * n_items * self.factors * self.rounds}

    def _refuse(self, data: DataSource) -> None:
        if data.facts.low >= data.facts.high:
            raise ScaleTooSmall(low=data.facts.low, high=data.facts.high)

    def _train(self, session: Session, progress: Progress) -> Scorer:
        generator = experiment_generator(self.seed, "private gradients")
        items = self.start(session.n_items, generator)
        for done, part in enumerate(session.laplace().rounds(self.rounds)):
            signs = generator.choice(np.array([-1.0, 1.0]), size=(self.projected, session.n_items))
            items = items - self._step(part, items, signs)
            progress(self.name, done + 1, self.rounds)
        return self.scorer(items, session.facts)

    def start(self, n_items: int, generator: np.random.Generator | None = None) -> Floats:
        """Return the public item factors before the first round."""
        drawn = generator or experiment_generator(self.seed, "private gradients")
        start: Floats = np.sqrt(0.5 / self.factors) + _START * drawn.standard_normal((n_items, self.factors))
        return start

    def scorer(self, items: Floats, facts: PublicFacts) -> RatingScorer:
        """Return the scorer of item factors in units in which the scale is [0, 1]."""
        width = facts.high - facts.low
        return RatingScorer(
            mean=facts.low,
            item_bias=np.zeros(len(items)),
            item_factors=width * items,
            ridge=np.append(PINNED, np.full(self.factors, width**2 * RIDGE)),
            low=facts.low,
            high=facts.high,
        )

    def _step(self, session: Session, items: Floats, signs: Floats) -> Floats:
        """Return the step along the mean gradient of the items, estimated from all devices' bits."""
        if not session.is_private:
            return self.rate * _mean_gradient(on_unit_scale(session.rows()), items)
        flip = sign_flip(session.epsilon)
        chosen, bits = session.perturb(GradientBits(flip=flip, items=items, signs=signs))
        return self.moved(chosen, flip.decode(bits), signs)

    def moved(self, chosen: Indices, decoded: Floats, signs: Floats) -> Floats:
        """Return the step that sampled coordinates and their unbiased bits give."""
        coordinates = self.projected * self.factors
        sums = np.bincount(chosen, weights=decoded, minlength=coordinates)
        scale = BOUND * coordinates / len(decoded)
        gradient = signs.T @ sums.reshape(self.projected, self.factors)
        return np.asarray(self._rate(len(decoded)) * (gradient * (scale / math.sqrt(self.projected))))

    def _rate(self, people: int) -> float:
        """Return the step size, chosen so that the known noise of the mean gradient moves entries little."""
        coordinates = self.projected * self.factors
        noise = BOUND * math.sqrt(coordinates / people) / math.tanh(self.share() / 2)
        return min(self.rate, _MOST_NOISE / noise)


def _mean_gradient(unit: Rows, items: Floats) -> Floats:
    people, errors = own_errors(unit, items)
    owner = np.repeat(np.arange(len(people)), np.diff(unit.indptr))
    columns = [
        np.bincount(unit.columns, weights=errors * people[owner, factor], minlength=len(items))
        for factor in range(people.shape[1])
    ]
    return np.column_stack(columns) / len(people)


# The server of a campaign in rounds.


@final
class GradientServer:
    """Item factors that move once per round, from answers that the server doesn't trust.

    A malformed answer, a second one of a sender, and one to a different round are rejected and counted.

    Parameters:
        campaign: The campaign that devices answer.
        rate: The largest step size; the known noise reduces it.
    """

    def __init__(self, campaign: GradientCampaign, *, rate: float = 2.0) -> None:
        self.campaign = campaign
        self.refusals: Counter[ReportRefusal] = Counter()
        self._model = PrivateGradients(
            epsilon=campaign.epsilon,
            factors=campaign.factors,
            rounds=campaign.rounds,
            projected=campaign.projected,
            rate=rate,
            seed=campaign.seed,
        )
        self._items = self._model.start(len(campaign.catalog))
        self._number = 0
        self._answers: dict[bytes, GradientAnswer] = {}

    @classmethod
    def replayed(cls, campaign: GradientCampaign, answers: Iterable[bytes], rounds: int) -> Self:
        """Return the server after so many rounds, given the answers to all of them in any order."""
        server, by_round = cls(campaign), defaultdict(list)
        for raw in sorted(answers):
            by_round[read_answer(campaign, raw).round].append(raw)
        for number in range(rounds):
            for raw in by_round[number]:
                server.receive(raw)
            server.close_round()
        return server

    @property
    def finished(self) -> bool:
        """Return whether all rounds are over."""
        return self._number == self.campaign.rounds

    def question(self) -> bytes:
        """Return what this round asks of all devices."""
        return self.campaign.question(self._number, self._items)

    def receive(self, raw: bytes) -> bool:
        """Receive one answer and return whether it was kept."""
        try:
            answer = read_answer(self.campaign, raw)
            if answer.round != self._number:
                raise ReportRefused(ReportRefusal.WRONG_ROUND)
            if answer.sender in self._answers:
                raise ReportRefused(ReportRefusal.REPLAYED)
        except ReportRefused as refused:
            self.refusals[refused.reason] += 1
            return False
        self._answers[answer.sender] = answer
        return True

    def close_round(self) -> None:
        """Move the item factors by the answers of this round, and begin the next; without answers, stay."""
        if self._answers:
            chosen = np.array([answer.coordinate for answer in self._answers.values()])
            bits = np.array([answer.bit for answer in self._answers.values()])
            signs, flip = self.campaign.signs(self._number), self.campaign.flip()
            self._items = self._items - self._model.moved(chosen, flip.decode(bits), signs)
        self._number += 1
        self._answers = {}

    def model(self) -> FittedModel:
        """Return the model of the item factors so far; its guarantee is that of all rounds."""
        promise, rounds = self.campaign.guarantee(), self.campaign.rounds
        return FittedModel(
            guarantee=promise,
            certificate=certificate(promise, [response_release("bits", self.campaign.flip(), count=rounds)]),
            facts=self.campaign.facts,
            catalog=self.campaign.catalog,
            name=self._model.name,
            parameters=self._model.settings,
            scorer=self._model.scorer(self._items, self.campaign.facts),
        )
