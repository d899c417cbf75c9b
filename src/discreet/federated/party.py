"""Answer a coordinator's questions: check, pay once, compute, add noise, keep, send.

A party trusts no one. It answers one run that its operator agreed to, each step once, and only what its
guarantee covers. The whole run is spent in the party's own ledger before its data are touched. An answer is
kept before it is sent; a repeated question gets the same bytes, so nothing is spent or drawn twice.

Everything that is kept extends a hash chain, whose latest place is in the party's ledger before an answer is
sent, in the answer itself and, with shared noise, at the keeper. A party that was restored from an older copy
finds a later place there, and declines (proofs/rollback.md).

Whether a question is accepted depends on the question, on what was drawn before and on the ledger. From then
on no row can change whether an answer is sent: a user whose numbers cannot be used contributes zero. A
draw is written down, with its cost, before the data are touched. If it fails all the same, for want of
memory say, its cost stays spent, and the party answers nothing more in that run.
"""

from __future__ import annotations

import json
import math
import threading
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import final

import numpy as np

from discreet.core.arrays import Floats
from discreet.core.checks import require
from discreet.core.progress import logger
from discreet.core.randomness import PrivacyRandom
from discreet.data.interactions import Interactions
from discreet.data.vocabulary import Vocabulary
from discreet.federated.catalogs import over, places_in
from discreet.federated.chains import CHAIN, count_in, known_place, require_contained
from discreet.federated.conditions import ASSUMES, named_facts
from discreet.federated.errors import (
    DrawEndedProcess,
    NoMemory,
    NothingToTune,
    NoUnitedList,
    OtherSettings,
    StateForgotten,
)
from discreet.federated.journal import Journal
from discreet.federated.keeper import (
    KEY_BYTES,
    Line,
    ask_place,
    fingerprint,
    hand_key,
    mask_key,
    masked,
    read_names,
    set_token,
)
from discreet.federated.protocols.averaged_users import TUNED, AveragedUsers, LocalItems
from discreet.federated.protocols.protocol import (
    CONFIRM,
    MessagePart,
    Protocol,
    Shapes,
    names_digest,
    only_fields,
)
from discreet.federated.wire import Message, Refusal, Refused, Value, decode, encode
from discreet.models.scorers.scorer import Scorer
from discreet.privacy.guarantee import Guarantee
from discreet.privacy.ledger.book import Ledger
from discreet.privacy.ledger.chain import Chain

_BEGUN, _KEY, _DRAWING, _FAILED = "begun", "key", "drawing", "failed"
_OWN_RECORDS = (_BEGUN, _KEY, TUNED, _DRAWING, _FAILED, CONFIRM)
# What a party keeps of one run: no honest run comes near. Answers stay in memory.
_MOST_ANSWERS = 1000
_MOST_BYTES, _MOST_BYTES_PER_ITEM = 1 << 28, 1 << 12
# A crash may end a draw that no one saw; one that ends so every time is a failure.
_MOST_ATTEMPTS = 3


@final
class Party:
    """One party of a run: its data, its ledger, and what it answered so far.

    Parameters:
        name: How the coordinator's roster calls this party.
        data: The party's users over its own catalog; never leaves.
        protocol: What was agreed, with this party's own epsilon and delta.
        run: The run that the party takes part in; questions of others are declined.
        ledger: Where the cost of the run is recorded.
        state: A file that makes the party resumable after a crash. One of both must outlive the process: a
            party that remembers nothing would answer, and draw, again after each restart.
        keeper: The line to the keeper of masks, for protocols with shared noise.
        catalog: The united list of all parties' items, if the party's own is a part of it only. Which items
            the party lists is public; no user of this party chose the others' items.
    """

    def __init__(
        self,
        name: str,
        data: Interactions,
        protocol: Protocol,
        *,
        run: str,
        ledger: Ledger | None = None,
        state: str | Path | None = None,
        random: PrivacyRandom | None = None,
        keeper: Line | None = None,
        catalog: Vocabulary | None = None,
    ) -> None:
        need = "A keeper is needed for shared noise."
        require(keeper is not None or not protocol.noise.masked, "keeper", keeper, must="be given", do=need)
        self._random = random or PrivacyRandom.from_os()
        if ledger is None and state is None and not self._random.simulated:
            raise NoMemory
        # Two threads that ask at once must not get two draws for one payment.
        self._turn = threading.Lock()
        self.name, self.protocol, self.run = name, protocol, run
        if catalog is not None and isinstance(protocol, AveragedUsers):
            raise NoUnitedList
        self._listed = None if catalog is None else places_in(catalog, data.catalog)
        self._data = (data if catalog is None else over(data, catalog)).bounded()
        self._dataset = data.name
        self._names = names_digest(protocol.shared(self._data))
        self._ledger = ledger or Ledger.in_memory()
        self._keeper = keeper
        self._journal = Journal(state)
        self._chain = Chain(_event(message) for message in self._own())
        self._what = f"federated {protocol.name}, run {run}"

    @property
    def promise(self) -> Guarantee:
        """Return what this party guarantees each of its users for the run."""
        promise = self.protocol.promise(self._data.facts)
        return promise.as_simulated() if self._random.simulated else promise

    def answer(self, raw: bytes) -> bytes:
        """Return the answer to a question, or a message that declines it and states why."""
        try:
            question = decode(raw)
        except Refused as error:
            return encode(self._declined(-1, error.reason))
        try:
            with self._turn:
                return encode(self._answer(question))
        except Refused as error:
            return encode(self._declined(question.step, error.reason))
        except Exception as error:
            # The reason, a budget that is used up for instance, is the operator's business alone; and what a
            # stranger's numbers can do to arithmetic isn't a reason to stop answering others.
            logger.warning("A question of run %s was declined: %s", self.run, str(error))
            return encode(self._declined(question.step, Refusal.DECLINED))

    def profiles(self, scorer: Scorer) -> Floats:
        """Fine-tune: return the profiles of this party's users by the released items; they stay here."""
        return scorer.fold_in(self._data)

    def tune(self, profiles: Floats) -> LocalItems:
        """Fine-tune: return this party's own items by the profiles of shared users; drawn once and kept."""
        if not isinstance(self.protocol, AveragedUsers):
            raise NothingToTune
        with self._turn:
            for message in self._journal.messages:
                if message.kind == TUNED and message.run == self.run:
                    return LocalItems(bias=message.arrays["bias"], factors=message.arrays["factors"])
            self._require_current()
            self._pay()
            price = self.protocol.reserved
            items = self.protocol.tune(self.protocol.session(self._data, self._random, price), profiles)
            arrays = {"bias": items.bias, "factors": items.factors}
            self._keep(self._message(MessagePart(kind=TUNED, arrays=arrays), len(self._answers())))
            self._count()
            return items

    def _answer(self, question: Message) -> Message:
        if question.run != self.run:
            raise Refused(Refusal.WRONG_RUN)
        if question.fields.get("settings") != self.protocol.settings():
            raise Refused(Refusal.WRONG_VERSION)
        if question.fields.get("shared") != self._names:
            raise Refused(Refusal.WRONG_NAMES)
        if question.kind == CONFIRM:
            return self._confirmed(question)
        kept = self._kept(question)
        if kept is None:
            n_shared = len(self.protocol.shared(self._data))
            self._require_room(self.protocol.shapes(question, n_shared), n_shared)
            self._require_current(question)
            if any(message.kind == _FAILED for message in self._own()):
                raise Refused(Refusal.DECLINED)
            before = self._drawn(question)
            if not self.protocol.allows(question, before):
                raise Refused(Refusal.TWICE)
            self._pay()
            kept = self._draw(question)
        # A crash may have come between the journal and the ledger; nothing is sent before both know.
        self._count()
        self._hand_key(kept)
        return kept

    def _confirmed(self, question: Message) -> Message:
        """Return what confirms a set of parties to the keeper; a step has one set, the first."""
        only_fields(question, ("names", "question"), ())
        keys = [one for one in self._own() if one.kind == _KEY and one.step == question.step]
        if not keys or keys[-1].fields["question"] != question.fields["question"]:
            raise Refused(Refusal.WRONG_ROUND)
        earlier = [one for one in self._own() if one.kind == CONFIRM and one.step == question.step]
        if not earlier:
            names = read_names(question.fields["names"])
            if self.name not in names or len(names) < self.protocol.noise.least_parties:
                raise Refused(Refusal.OUT_OF_RANGE)
            self._require_current(question)
            fields: dict[str, Value] = {"names": json.dumps(sorted(names))}
            earlier = [self._keep(self._message(MessagePart(kind=CONFIRM, fields=fields), question.step))]
        self._count()
        key, names = keys[-1], read_names(earlier[0].fields["names"])
        token = set_token(bytes.fromhex(str(key.fields["key"])), str(key.fields["question"]), names)
        answered: dict[str, Value] = {"token": token, "question": question.digest()}
        return replace(earlier[0], fields={**earlier[0].fields, **answered})

    @property
    def _counted(self) -> str:
        """Return how the ledger calls this party's chain."""
        return f"{self._what} as {self.name}"

    def _require_current(self, question: Message | None = None) -> None:
        """Raise `Refused` if the ledger, the coordinator or the keeper knows more than this party."""
        known = {"ledger": self._ledger.anchor(self._counted)}
        if question is not None:
            known["coordinator"] = known_place(question, self.name)
        if self._keeper is not None:
            known["keeper of masks"] = ask_place(self._keeper, self.run, self.name)
        require_contained(self._chain, known, self.run)

    def _keep(self, message: Message) -> Message:
        """Append a record to the journal and to the chain; return it with its place in the chain."""
        event = _event(message)
        placed = replace(message, fields={**message.fields, CHAIN: str(self._chain.after(event))})
        self._journal.keep(placed)
        self._chain.add(event)
        return placed

    def _count(self) -> None:
        """Record the chain's latest place in the ledger, after the journal: the ledger never knows more."""
        count_in(self._ledger, self._counted, self._chain, self.run)

    def _require_room(self, shapes: Shapes, n_shared: int) -> None:
        """Raise `Refused` if a run asks for more answers, or longer ones, than any run needs.

        Price alone does not bound them: a question with much noise costs next to nothing.
        """
        answers = self._answers()
        kept = sum(array.nbytes for answer in answers for array in answer.arrays.values())
        more = 8 * sum(math.prod(shape) for shape in shapes.values())
        if len(answers) >= _MOST_ANSWERS or kept + more > max(_MOST_BYTES, _MOST_BYTES_PER_ITEM * n_shared):
            raise Refused(Refusal.OVERSIZED)

    def _kept(self, question: Message) -> Message | None:
        """Return the answer that was given at this step; another question for the same step is rejected."""
        for message in self._answers():
            if message.step == question.step:
                if message.fields["question"] != question.digest():
                    raise Refused(Refusal.TWICE)
                return message
        return None

    def _own(self) -> list[Message]:
        return [message for message in self._journal.messages if message.run == self.run]

    def _answers(self) -> list[Message]:
        return [message for message in self._own() if message.kind not in _OWN_RECORDS]

    def _drawn(self, question: Message) -> list[Fraction | float]:
        """Return the prices of all draws at other steps, whether or not they were sent; one draw per step."""
        begun = {message.step: message for message in self._own() if message.kind == _DRAWING}
        same = begun.get(question.step)
        if same is not None and same.fields["question"] != question.digest():
            raise Refused(Refusal.TWICE)
        # Earlier versions kept no price where the kind of a question settled it, or answers alone.
        prices = {
            step: _price(one.fields["price"]) or self.protocol.kept_price(one) for step, one in begun.items()
        }
        for answer in self._answers():
            prices.setdefault(answer.step, self.protocol.kept_price(answer))
        return [price for step, price in prices.items() if step != question.step]

    def _pay(self) -> None:
        """Spend the cost of the whole run once: the journal has what began, the ledger that it was spent."""
        what = self._what
        begun = [m for m in self._journal.messages if m.kind == _BEGUN and m.run == self.run]
        paid = [entry for entry in self._ledger.entries(self._dataset) if entry.what == what]
        if paid and not begun:
            raise StateForgotten(run=self.run)
        if any(dict(one.fields, **self._agreed()) != dict(one.fields) for one in begun) or any(
            _terms(entry.guarantee) != _terms(self.promise) for entry in paid
        ):
            raise OtherSettings(run=self.run)
        if not begun:
            self._keep(self._message(MessagePart(kind=_BEGUN, fields=self._agreed()), -1))
        if not paid:
            with self._ledger.spend(self._dataset, self.promise, what=what, events=self.protocol.events()):
                pass

    def _agreed(self) -> dict[str, Value]:
        """Return all that decides how much noise an answer gets; it may not change in a run."""
        return {"settings": self.protocol.settings(), "promise": _terms(self.promise)}

    def _draw(self, question: Message) -> Message:
        """Draw an answer, or keep that it failed: a failure costs as much, and ends the party's run."""
        records = [one for one in self._own() if one.kind == _DRAWING and one.step == question.step]
        fields: dict[str, Value] = {
            "of": question.kind,
            "question": question.digest(),
            "price": str(self.protocol.price(question)),
        }
        attempts = len(records)
        if attempts < _MOST_ATTEMPTS:
            self._keep(self._message(MessagePart(kind=_DRAWING, fields=fields), question.step))
            self._count()
        try:
            if attempts >= _MOST_ATTEMPTS:
                raise DrawEndedProcess(times=_MOST_ATTEMPTS)
            return self._drawn_answer(question)
        except Exception as error:
            self._keep(self._message(MessagePart(kind=_FAILED), question.step))
            logger.error(
                "A draw of run %s failed (%s). Its cost stays spent. Nothing more is answered in this run.",
                self.run,
                str(error),
            )
            raise Refused(Refusal.DECLINED) from None

    def _drawn_answer(self, question: Message) -> Message:
        """Compute an answer, add noise and keep it; before this returns no one has seen it."""
        session = self.protocol.session(self._data, self._random, self.protocol.price(question))
        part = self.protocol.answer(session, question)
        part = self.protocol.limited(part, self._listed)
        arrays, own = part.arrays, self._public()
        if self.protocol.noise.masked:
            drawn = {name: np.asarray(array) for name, array in arrays.items()}
            key = mask_key(self._random.token(KEY_BYTES), question.digest(), drawn)
            arrays = masked(drawn, key)
            # The keeper sums masks of one question only, over as many parties as the noise is shared by.
            least = self.protocol.noise.least_parties
            sealed: dict[str, Value] = {"key": key.hex(), "question": question.digest(), "least": least}
            self._keep(self._message(MessagePart(kind=_KEY, fields=sealed), question.step))
            own["key"] = fingerprint(key)
        fields: dict[str, Value] = {**part.fields, **own, "question": question.digest()}
        kept = self._message(MessagePart(kind=part.kind, fields=fields, arrays=arrays), question.step)
        return self._keep(kept)

    def _public(self) -> dict[str, Value]:
        """Return this party's guarantee, and which facts it assumes; both travel with every answer."""
        promise = self.promise
        epsilon: Value = promise.epsilon if promise.epsilon < np.inf else "inf"
        stated: dict[str, Value] = {
            "epsilon": epsilon,
            "delta": promise.delta,
            "simulated": promise.simulated,
        }
        return stated | {ASSUMES: named_facts(self._data.facts)}

    def _hand_key(self, answer: Message) -> None:
        """Give the keeper the key of an answer, and its place; handing it twice changes nothing."""
        if self._keeper is None:
            return
        keys = [one for one in self._own() if one.kind == _KEY and one.step == answer.step]
        if keys:
            placed = {CHAIN: answer.fields[CHAIN]} if CHAIN in answer.fields else {}
            fields = {name: value for name, value in keys[-1].fields.items() if name != CHAIN}
            hand_key(self._keeper, replace(keys[-1], fields={**fields, **placed}))

    def close(self) -> None:
        """Let go of the state's file, so that this party can be resumed elsewhere."""
        self._journal.close()

    def _message(self, part: MessagePart, step: int) -> Message:
        return Message(
            kind=part.kind, run=self.run, step=step, sender=self.name, fields=part.fields, arrays=part.arrays
        )

    def _declined(self, step: int, reason: Refusal) -> Message:
        return Message(
            kind="declined", run=self.run, step=step, sender=self.name, fields={"reason": reason.value}
        )


def _event(message: Message) -> bytes:
    """Return what a record adds to the chain: all of it but its own place."""
    fields = {name: value for name, value in message.fields.items() if name != CHAIN}
    return encode(replace(message, fields=fields))


def _price(kept: Value) -> Fraction | float:
    """Return the exact price of a draw; earlier versions kept it as a float."""
    infinite = kept in ("inf", math.inf)
    return math.inf if infinite else Fraction(kept)


def _terms(promise: Guarantee) -> str:
    """Return what a guarantee states in numbers, and whether it is one at all."""
    return f"epsilon={promise.epsilon!r}, delta={promise.delta!r}, simulated={promise.simulated}"
