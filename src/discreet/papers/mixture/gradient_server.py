"""The server of PG-MF: it asks devices in rounds, and moves item factors along their noisy bits."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from typing import Self, final

import numpy as np

from discreet.collect.gradient_rounds import GradientAnswer, GradientCampaign, read_answer
from discreet.collect.wire import ReportRefusal, ReportRefused
from discreet.models.fitted import FittedModel
from discreet.papers.mixture.private_gradients import PrivateGradients
from discreet.privacy.certificate import certificate, response_release


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
