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
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any, NamedTuple, final

import numpy as np

from discreet.core import Floats, PrivacyRandom, logger
from discreet.data import Interactions, Vocabulary
from discreet.federated import errors
from discreet.federated.catalogs import over, places_in
from discreet.federated.conditions import ASSUMES, named_facts
from discreet.federated.journal import Journal
from discreet.federated.keeper import Line, ask_place, hand_key, require_keeper
from discreet.federated.masks import KEY_BYTES, hidden, set_token
from discreet.federated.noise import OwnNoise, SharedNoise
from discreet.federated.protocols.averaged_users import TUNED, AveragedUsers, LocalItems
from discreet.federated.protocols.protocol import CONFIRM, Protocol, Shapes, names_digest, only_fields
from discreet.federated.wire import (
    CHAIN,
    Arrays,
    Message,
    Refusal,
    Refused,
    Value,
    decode,
    encode,
    known_place,
    own_place,
    read_names,
    refusal,
)
from discreet.models import Scorer
from discreet.privacy import Chain, Guarantee, Ledger, OlderCopy, event_digest

_BEGUN, _KEY, _DRAWING, _FAILED, _DROPPED = "begun", "key", "drawing", "failed", "dropped"
_NOTHING: Mapping[str, Any] = {}
_BESIDE_ANSWERS = (_BEGUN, _KEY, TUNED, _DRAWING, _FAILED, CONFIRM)
# What a party answers in one run (no honest run comes near), and the bytes of answers that it keeps.
_MOST_ANSWERS = 1000
_MOST_BYTES = 1 << 28
# A crash may end a draw that no one saw; one that ends so every time is a failure.
_MOST_ATTEMPTS = 3


class Kept(NamedTuple):
    """An answer that is kept, and for the keeper the key of its mask, if it has one."""

    answer: Message
    key: Message | None = None


class Answering(ABC):
    """A party of one run, which answers bytes with bytes: what those share that fit a model or follow a year.

    It declines with a reason, or answers. Before it draws anything new, it compares its chain of events with
    what its ledger, the coordinator and the keeper know (proofs/rollback.md).
    """

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
        chain = self._chain
        try:
            self._ledger.keep_place(self._counted, chain)
        except OlderCopy as error:
            raise self._older("ledger", error.known, chain) from error

    def _require_current(self, question: Message | None = None) -> None:
        """Raise `Refused` if the ledger, the coordinator or the keeper knows more than this party's chain."""
        known = {"ledger": self._ledger.anchor(self._counted)}
        if question is not None:
            known["coordinator"] = known_place(question, self.name)
        if self._keeper is not None:
            known["keeper of masks"] = ask_place(self._keeper, self.run, self.name)
        chain = self._chain
        for member, place in known.items():
            if not chain.contains(place):
                raise self._older(member, place.events, chain)

    def _older(self, member: str, events: int, chain: Chain) -> Refused:
        """Return the refusal of a party whose chain doesn't contain a place that another member knows."""
        logger.error(
            "This party's state of run %s is an older copy: the %s knows %d events of it, and the state has "
            "%d. Nothing was drawn or sent. The party can't continue this run. Agree on a new run, and keep "
            "the ledger as it is.",
            self.run,
            member,
            events,
            chain.latest.events,
        )
        return Refused(Refusal.BEHIND)


@final
class Party(Answering):
    """One party of a run: its data, its ledger, and what it answered so far.

    Use it on the machine that has the data, and pass `answer` to a transport, as `discreet federation party`
    does.

    Guarantee
        `promise`, for each user of this party, whatever it is asked and by whom: a question that the
        agreement does not cover, or that would cost more, is declined (proofs/federated.md). A party that is
        restored from an older copy draws nothing again (proofs/rollback.md).

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

    Example:
        >>> from discreet import PrivacyRandom
        >>> from discreet.federated import Party, SummedStatistics
        >>> from discreet.data.datasets.synthetic import popularity_skewed
        >>> films = popularity_skewed(n_users=100, n_items=40, mean_per_user=15).without_ratings()
        >>> protocol, random = SummedStatistics(epsilon=2.0), PrivacyRandom.simulate(0)
        >>> Party("north", films, protocol, run="spring", random=random).promise.epsilon
        2.0

    Stability
        Stable.
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
        super().__init__(name, run, protocol.noise, ledger, keeper, random)
        if ledger is None and state is None and not self._random.simulated:
            raise errors.NoMemory
        self.protocol = protocol
        if catalog is not None and isinstance(protocol, AveragedUsers):
            raise errors.NoUnitedList
        self._listed = None if catalog is None else places_in(catalog, data.catalog)
        self._data = (data if catalog is None else over(data, catalog)).bounded()
        self._dataset = data.name
        self._shared = protocol.shared(self._data)
        self._names = names_digest(self._shared)
        promise = protocol.promise(self._data.facts)
        #: What this party guarantees each of its users for the run.
        self.promise = promise.as_simulated() if self._random.simulated else promise
        # All that decides how much noise an answer gets. It may not change in a run.
        self._agreed: dict[str, Value] = {"settings": protocol.settings(), "promise": _terms(self.promise)}
        self._journal = Journal(state)
        self._events = Chain()
        for message in self._own():
            self._events.add_digest(_digest(message))
        self._what = f"federated {protocol.name}, run {run}"

    def profiles(self, scorer: Scorer) -> Floats:
        """Fine-tune: return the profiles of this party's users by the released items; they stay here."""
        return scorer.fold_in(self._data)

    def tune(self, profiles: Floats) -> LocalItems:
        """Fine-tune: return this party's own items by the profiles of shared users; drawn once and kept."""
        if not isinstance(self.protocol, AveragedUsers):
            raise errors.NothingToTune
        with self._turn:
            for message in self._journal.messages:
                if message.kind == TUNED and message.run == self.run:
                    return LocalItems(bias=message.arrays["bias"], factors=message.arrays["factors"])
            self._require_current()
            self._pay()
            price = self.protocol.reserved
            items = self.protocol.tune(self.protocol.session(self._data, self._random, price), profiles)
            arrays = {"bias": items.bias, "factors": items.factors}
            self._keep(TUNED, len(self._answers()), arrays=arrays)
            self._count()
            return items

    def _kept(self, question: Message) -> Kept | None:
        if question.fields.get("settings") != self._agreed["settings"]:
            raise Refused(Refusal.WRONG_VERSION)
        if question.fields.get("shared") != self._names:
            raise Refused(Refusal.WRONG_NAMES)
        if question.kind == CONFIRM:
            return Kept(self._confirmed(question))
        given = self._given(question)
        return None if given is None else self._with_key(given)

    def _draw(self, question: Message) -> Kept:
        shapes = self.protocol.shapes(question, len(self._shared))
        self._require_current(question)
        dropped = self._dropped_for(shapes, question)
        if any(message.kind == _FAILED for message in self._own()):
            raise Refused(Refusal.DECLINED)
        price = self.protocol.price(question)
        if not self.protocol.allows(price, self._drawn(question)):
            raise Refused(Refusal.TWICE)
        self._pay()
        self._drop(dropped)
        return self._with_key(self._attempted(question, price))

    def _with_key(self, answer: Message) -> Kept:
        keys = self._records(_KEY, answer.step)
        return Kept(answer, keys[-1] if keys else None)

    def _confirmed(self, question: Message) -> Message:
        """Return what confirms a set of parties to the keeper; a step has one set, the first."""
        only_fields(question, ("names", "question"), ())
        keys = self._records(_KEY, question.step)
        if not keys or keys[-1].fields["question"] != question.fields["question"]:
            raise Refused(Refusal.WRONG_ROUND)
        earlier = self._records(CONFIRM, question.step)
        if not earlier:
            names = read_names(question.fields["names"])
            if self.name not in names or len(names) < self.protocol.noise.least_parties:
                raise Refused(Refusal.OUT_OF_RANGE)
            self._require_current(question)
            fields: dict[str, Value] = {"names": json.dumps(sorted(names))}
            earlier = [self._keep(CONFIRM, question.step, fields)]
        key, names = keys[-1], read_names(earlier[0].fields["names"])
        token = set_token(bytes.fromhex(str(key.fields["key"])), str(key.fields["question"]), names)
        answered: dict[str, Value] = {"token": token, "question": question.digest}
        return replace(earlier[0], fields={**earlier[0].fields, **answered})

    @property
    def _chain(self) -> Chain:
        return self._events

    @property
    def _counted(self) -> str:
        return f"{self._what} as {self.name}"

    def _keep(
        self, kind: str, step: int, fields: Mapping[str, Value] = _NOTHING, arrays: Arrays = _NOTHING
    ) -> Message:
        """Append a record to the journal and to the chain; return it with its place in the chain."""
        sender = self.name
        record = Message(kind=kind, run=self.run, step=step, sender=sender, fields=fields, arrays=arrays)
        event = encode(record)
        placed = replace(record, fields={**fields, CHAIN: str(self._events.after(event))})
        self._journal.keep(placed)
        self._events.add(event)
        return placed

    def _records(self, kind: str, step: int) -> list[Message]:
        """Return what was kept of this kind at a step."""
        return [one for one in self._own() if one.kind == kind and one.step == step]

    def _dropped_for(self, shapes: Shapes, question: Message) -> frozenset[int]:
        """Return the steps whose answers make room for one more; raise `Refused` if there isn't enough.

        Cost alone does not bound what a party keeps: a question with much noise costs next to nothing. An
        answer can be dropped if the coordinator states, in a signed question, that it has the answer.
        """
        answers = self._answers()
        given = len(answers) + sum(message.kind == _DROPPED for message in self._own())
        sizes = [sum(array.nbytes for array in answer.arrays.values()) for answer in answers]
        excess = sum(sizes) + 8 * sum(math.prod(shape) for shape in shapes.values()) - _MOST_BYTES
        if excess <= 0 and given < _MOST_ANSWERS:
            return frozenset()
        received = known_place(question, self.name).events
        # Earlier versions kept neither places nor, for some protocols, the cost of a draw.
        drawn = {message.step for message in self._own() if message.kind == _DRAWING}
        steps, freed = set(), 0
        for answer, size in zip(answers, sizes, strict=True):
            known = CHAIN in answer.fields and own_place(answer).events <= received
            # Half of the room is freed at once, because the journal is written anew.
            if freed < excess + _MOST_BYTES // 2 and known and answer.step in drawn:
                steps.add(answer.step)
                freed += size
        if freed < excess or given >= _MOST_ANSWERS:
            raise Refused(Refusal.OVERSIZED)
        return frozenset(steps)

    def _drop(self, steps: frozenset[int]) -> None:
        """Replace the answers of these steps by their digests, so that no answer is ever drawn again."""
        if steps:
            answers = {answer.step: answer for answer in self._answers() if answer.step in steps}
            self._journal.replace(
                [
                    _without_arrays(one) if one is answers.get(one.step) else one
                    for one in self._journal.messages
                ]
            )

    def _given(self, question: Message) -> Message | None:
        """Return the answer that was given at this step; another question for the same step is rejected."""
        for message in self._own():
            if message.step == question.step and message.kind not in _BESIDE_ANSWERS:
                if message.fields["question"] != question.digest:
                    raise Refused(Refusal.TWICE)
                if message.kind == _DROPPED:
                    logger.error(
                        "The coordinator of run %s asks again for an answer that it had stated to have. "
                        "The answer was dropped to make room. The coordinator's state is an older copy. "
                        "Agree on a new run.",
                        self.run,
                    )
                    raise Refused(Refusal.DROPPED)
                return message
        return None

    def _own(self) -> list[Message]:
        return [message for message in self._journal.messages if message.run == self.run]

    def _answers(self) -> list[Message]:
        return [message for message in self._own() if message.kind not in (*_BESIDE_ANSWERS, _DROPPED)]

    def _drawn(self, question: Message) -> list[Fraction | float]:
        """Return the prices of all draws at other steps, whether or not they were sent; one draw per step."""
        begun = {message.step: message for message in self._own() if message.kind == _DRAWING}
        same = begun.get(question.step)
        if same is not None and same.fields["question"] != question.digest:
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
        begun = self._records(_BEGUN, -1)
        paid = [entry for entry in self._ledger.entries(self._dataset) if entry.what == what]
        if paid and not begun:
            raise errors.StateForgotten(run=self.run)
        if any(dict(one.fields, **self._agreed) != dict(one.fields) for one in begun) or any(
            _terms(entry.guarantee) != self._agreed["promise"] for entry in paid
        ):
            raise errors.OtherSettings(run=self.run)
        if not begun:
            self._keep(_BEGUN, -1, self._agreed)
        if not paid:
            with self._ledger.spend(self._dataset, self.promise, what=what, events=self.protocol.events()):
                pass

    def _attempted(self, question: Message, price: Fraction | float) -> Message:
        """Draw an answer, or keep that it failed: a failure costs as much, and ends the party's run."""
        attempts = len(self._records(_DRAWING, question.step))
        fields: dict[str, Value] = {"of": question.kind, "question": question.digest, "price": str(price)}
        if attempts < _MOST_ATTEMPTS:
            self._keep(_DRAWING, question.step, fields)
            self._count()
        try:
            if attempts >= _MOST_ATTEMPTS:
                raise errors.DrawEndedProcess(times=_MOST_ATTEMPTS)
            return self._drawn_answer(question, price)
        except Exception as error:
            self._keep(_FAILED, question.step)
            logger.error(
                "A draw of run %s failed (%s). Its cost stays spent. Nothing more is answered in this run.",
                self.run,
                str(error),
            )
            raise Refused(Refusal.DECLINED) from None

    def _drawn_answer(self, question: Message, price: Fraction | float) -> Message:
        """Compute an answer, add noise and keep it; before this returns no one has seen it."""
        session = self.protocol.session(self._data, self._random, price)
        part = self.protocol.answer(session, question)
        part = self.protocol.limited(part, self._listed)
        arrays, own = part.arrays, self._public()
        if self.protocol.noise.masked:
            drawn = {name: np.asarray(array) for name, array in arrays.items()}
            secret, least = self._random.token(KEY_BYTES), self.protocol.noise.least_parties
            behind = hidden(drawn, secret, question.digest, least)
            self._keep(_KEY, question.step, behind.sealed)
            arrays, own["key"] = behind.arrays, behind.fingerprint
        fields: dict[str, Value] = {**part.fields, **own, "question": question.digest}
        return self._keep(part.kind, question.step, fields, arrays)

    def _public(self) -> dict[str, Value]:
        """Return this party's guarantee, and which facts it assumes; both travel with every answer."""
        promise = self.promise
        epsilon: Value = promise.epsilon if promise.epsilon < np.inf else "inf"
        terms: dict[str, Value] = {"epsilon": epsilon, "delta": promise.delta, "simulated": promise.simulated}
        return terms | {ASSUMES: named_facts(self._data.facts)}

    def close(self) -> None:
        """Release the state's file, so that this party can be resumed elsewhere."""
        self._journal.close()


def _without_arrays(answer: Message) -> Message:
    """Return what is left of an answer that was dropped: its question, and its place in the chain."""
    fields: dict[str, Value] = {
        "question": answer.fields["question"],
        "event": _digest(answer).hex(),
        CHAIN: answer.fields[CHAIN],
    }
    return replace(answer, kind=_DROPPED, fields=fields, arrays={})


def _digest(message: Message) -> bytes:
    """Return the digest that a record adds to the chain; a dropped answer adds that of the answer."""
    if message.kind == _DROPPED:
        return bytes.fromhex(str(message.fields["event"]))
    return event_digest(_event(message))


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
