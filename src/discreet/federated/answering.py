"""What every party does with a question, whether it fits a model or follows a stream of ratings.

It declines with a reason, or answers. Before it draws anything new, it compares its chain of answers with
what its ledger, the coordinator and the keeper know (proofs/rollback.md). An answer is kept before it is
sent, and a repeated question gets the same bytes.
"""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from dataclasses import replace
from typing import NamedTuple

from discreet.core.progress import logger
from discreet.core.randomness import PrivacyRandom
from discreet.federated.chains import CHAIN, known_place, require_contained
from discreet.federated.keeper import Line, ask_place, hand_key, require_keeper
from discreet.federated.noise import OwnNoise, SharedNoise
from discreet.federated.wire import Message, Refusal, Refused, decode, encode, refusal
from discreet.privacy.ledger.chain import Chain
from discreet.privacy.ledger.ledger import Ledger


class Kept(NamedTuple):
    """An answer that is kept, and for the keeper the key of its mask, if it has one."""

    answer: Message
    key: Message | None = None


class Answering(ABC):
    """A party of one run, which answers bytes with bytes, one question at a time."""

    def __init__(
        self,
        name: str,
        run: str,
        noise: OwnNoise | SharedNoise,
        ledger: Ledger | None,
        keeper: Line | None,
        random: PrivacyRandom | None,
    ) -> None:
        require_keeper(keeper, noise)
        self.name, self.run = name, run
        self._ledger = ledger or Ledger.in_memory()
        self._keeper, self._random = keeper, random or PrivacyRandom.from_os()
        # Two threads that ask at once must not get two draws for one payment.
        self._turn = threading.Lock()

    @property
    @abstractmethod
    def _chain(self) -> Chain:
        """Return the chain of all that was kept."""

    @property
    @abstractmethod
    def _counted(self) -> str:
        """Return how the ledger calls the chain."""

    @abstractmethod
    def _kept(self, question: Message) -> Kept | None:
        """Return what was answered before; None if nothing was, and raise for what is never answered."""

    @abstractmethod
    def _draw(self, question: Message) -> Kept:
        """Draw a new answer and keep it, or raise."""

    def answer(self, raw: bytes) -> bytes:
        """Return the answer to a question, or a message that declines it and states why."""
        step = -1
        try:
            question = decode(raw)
            step = question.step
            with self._turn:
                return encode(self._answer(question))
        except Refused as error:
            reason = error.reason
        except Exception as error:
            # The reason, a budget that is used up for instance, is the operator's business alone; and what a
            # stranger's numbers can do to arithmetic isn't a reason to stop answering others.
            logger.warning("A question of run %s was declined: %s", self.run, str(error))
            reason = Refusal.DECLINED
        return refusal("declined", reason, run=self.run, step=step, sender=self.name)

    def _answer(self, question: Message) -> Message:
        if question.run != self.run:
            raise Refused(Refusal.WRONG_RUN)
        answer, key = self._kept(question) or self._draw(question)
        # A crash may have come between the state and the ledger; nothing is sent before both know.
        self._count()
        if self._keeper is not None and key is not None:
            # Handing a key twice changes nothing. Its place is the answer's; earlier versions kept none.
            fields = {name: value for name, value in key.fields.items() if name != CHAIN}
            placed = {CHAIN: answer.fields[CHAIN]} if CHAIN in answer.fields else {}
            hand_key(self._keeper, replace(key, fields={**fields, **placed}))
        return answer

    def _count(self) -> None:
        """Record the chain's latest place in the ledger, or raise `Refused` if that knows a later one."""
        chain, name = self._chain, self._counted
        require_contained(chain, {"ledger": self._ledger.anchor(name)}, self.run)
        self._ledger.keep_anchor(name, chain.latest)

    def _require_current(self, question: Message | None = None) -> None:
        """Raise `Refused` if the ledger, the coordinator or the keeper knows more than this party's chain."""
        known = {"ledger": self._ledger.anchor(self._counted)}
        if question is not None:
            known["coordinator"] = known_place(question, self.name)
        if self._keeper is not None:
            known["keeper of masks"] = ask_place(self._keeper, self.run, self.name)
        require_contained(self._chain, known, self.run)
