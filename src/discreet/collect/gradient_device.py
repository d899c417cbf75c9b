"""Answer the rounds of a gradient campaign on a user's device."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, final

import numpy as np

from discreet.collect.device import ItemId, Turn, limit, rated_items
from discreet.collect.errors import DifferentCampaign, RoundsCostMore
from discreet.collect.gradient_bits import GradientBits
from discreet.collect.gradient_rounds import (
    GradientAnswer,
    GradientCampaign,
    answer_bytes,
    read_answer,
    read_question,
)
from discreet.collect.wire import SENDER_BYTES, ReportRefused
from discreet.core.randomness import PrivacyRandom
from discreet.data.interactions import Interactions
from discreet.data.vocabulary import Vocabulary


@final
class GradientDevice:
    """A device that answers each round of a campaign once, from a history that never leaves it.

    Asked again for a round, with any item factors, it repeats its answer, which reveals nothing new.
    `answers` must outlive the process: a device that loses them would draw again. Keep `state()`, and restore
    the device with `answers=kept_answers(campaign, state)`.

    Parameters:
        campaign: The campaign to answer.
        history: The user's ratings by item.
        budget: The largest epsilon that all rounds may cost this user; default 20.
        answers: What this device answered before, by round.
        random: A source of noise for experiments; by default the operating system's.
    """

    def __init__(
        self,
        campaign: GradientCampaign,
        history: Mapping[ItemId, float],
        *,
        budget: float | None = None,
        answers: Mapping[int, bytes] | None = None,
        random: PrivacyRandom | None = None,
    ) -> None:
        self._random = random or PrivacyRandom.from_os()
        most = limit(budget, self._random)
        if most is not None and campaign.epsilon > most:
            raise RoundsCostMore(cost=campaign.epsilon, budget=most)
        self.campaign, self.answers = campaign, dict(answers or {})
        self._data, self._turn = _one_user(campaign, history), Turn()

    @property
    def spent(self) -> float:
        """Return the epsilon of all answers so far."""
        return min(self.campaign.share * len(self.answers), self.campaign.epsilon)

    def state(self) -> dict[str, Any]:
        """Return the state to keep so that no round is drawn twice: answers, not ratings."""
        return {
            "campaign": self.campaign.digest.hex(),
            "answers": [answer.hex() for answer in self.answers.values()],
        }

    def answer(self, question: bytes) -> bytes:
        """Return the answer to a round's question; the same bytes if the round was answered before."""
        number, items = read_question(self.campaign, question)
        with self._turn.taken():
            if number not in self.answers:
                bits = GradientBits(flip=self.campaign.flip(), items=items, signs=self.campaign.signs(number))
                chosen, flipped = bits.over(self._data, self._random)
                sender = self._random.bytes(SENDER_BYTES).tobytes()
                answer = GradientAnswer(number, sender, int(chosen[0]), int(flipped[0]))
                self.answers[number] = answer_bytes(self.campaign, answer)
            return self.answers[number]


def _one_user(campaign: GradientCampaign, history: Mapping[ItemId, float]) -> Interactions:
    """Return one user's ratings as data, clipped to the scale; an empty history is one, too."""
    items, ratings = rated_items(campaign.catalog, history)
    return Interactions(
        indptr=np.array([0, items.size]),
        items=items.astype(np.int32),
        values=np.clip(ratings, campaign.low, campaign.high).astype(np.float32),
        users=Vocabulary.range(1),
        catalog=campaign.catalog,
        facts=campaign.facts,
        name=campaign.name,
    )


def kept_answers(campaign: GradientCampaign, state: Any) -> dict[int, bytes]:
    """Return the answers by round that `GradientDevice.state` kept; raise if they are of something else."""
    try:
        answers = [bytes.fromhex(text) for text in state["answers"]]
        found = {read_answer(campaign, raw).round: raw for raw in answers}
    except (KeyError, TypeError, ValueError, ReportRefused) as error:
        raise DifferentCampaign from error
    if state.get("campaign") != campaign.digest.hex() or len(found) < len(answers):
        raise DifferentCampaign
    return found
