"""What every party does with a question, whether it fits a model or follows a stream of ratings.

It declines with a reason, or answers. Before it draws anything new, it compares its chain of answers with
what its ledger, the coordinator and the keeper know (proofs/rollback.md).
"""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod

from discreet.core.progress import logger
from discreet.core.randomness import PrivacyRandom
from discreet.federated.chains import known_place, require_contained
from discreet.federated.keeper import Line, ask_place, require_keeper
from discreet.federated.noise import OwnNoise, SharedNoise
from discreet.federated.wire import Message, Refusal, Refused, decode, encode
from discreet.privacy.ledger.chain import Chain
from discreet.privacy.ledger.ledger import Ledger


class Answering(ABC):
    """A party of one run, which answers bytes with bytes, one question at a time."""

    def __init__(
        self,
        name: str,
        run: str,
        noise: OwnNoise | SharedNoise,
        keeper: Line | None,
        random: PrivacyRandom | None,
    ) -> None:
        require_keeper(keeper, noise)
        self.name, self.run = name, run
        self._keeper, self._random = keeper, random or PrivacyRandom.from_os()
        # Two threads that ask at once must not get two draws for one payment.
        self._turn = threading.Lock()

    @abstractmethod
    def _answer(self, question: Message) -> Message:
        """Return the answer to a question, or raise."""

    def answer(self, raw: bytes) -> bytes:
        """Return the answer to a question, or a message that declines it and states why."""
        step = -1
        try:
            question = decode(raw)
            step = question.step
            with self._turn:
                return encode(self._answer(question))
        except Refused as error:
            return self._declined(step, error.reason)
        except Exception as error:
            # The reason, a budget that is used up for instance, is the operator's business alone; and what a
            # stranger's numbers can do to arithmetic isn't a reason to stop answering others.
            logger.warning("A question of run %s was declined: %s", self.run, str(error))
            return self._declined(step, Refusal.DECLINED)

    def _declined(self, step: int, reason: Refusal) -> bytes:
        fields = {"reason": reason.value}
        return encode(Message(kind="declined", run=self.run, step=step, sender=self.name, fields=fields))

    def _require_current(
        self, chain: Chain, ledger: Ledger | None, counted: str, question: Message | None = None
    ) -> None:
        """Raise `Refused` if the ledger, the coordinator or the keeper knows more than this party's chain.

        `counted` is how the ledger calls the chain.
        """
        known = {} if ledger is None else {"ledger": ledger.anchor(counted)}
        if question is not None:
            known["coordinator"] = known_place(question, self.name)
        if self._keeper is not None:
            known["keeper of masks"] = ask_place(self._keeper, self.run, self.name)
        require_contained(chain, known, self.run)
