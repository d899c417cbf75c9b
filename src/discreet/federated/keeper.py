"""Hide each party's answer behind a mask, and take the masks off the sum only.

A party derives a key, adds the stream of numbers it opens to its answer modulo 2^64 and hands the key to a
keeper, who has no data. The coordinator sees answers that are each uniformly random. When it has enough
answers it asks the keeper for the sum of their masks, which it gets once per step, for one set of parties
that were all asked the same. A party that falls silent costs nothing: its mask is not needed. With an answer
comes a fingerprint of its key, so that a party whose key is a different one is excluded by name.

Two sums over different sets would show a single answer by their difference. So every party of a set confirms
the set with its key, and confirms one set per step. The keeper reveals only what was confirmed. It can forget
what it revealed, because it was restored from an old copy, and still no second set is confirmed.

The keeper also records each party's latest place in its chain of answered questions (`wire.py`).
"""

from __future__ import annotations

import hmac
import json
import threading
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple, Protocol, final

import numpy as np

from discreet.core import integer, require
from discreet.federated import wire
from discreet.federated.errors import KeeperSilent, KeyNotAccepted, SetNotConfirmed, SumNotRevealed
from discreet.federated.journal import Journal
from discreet.federated.masks import KEY_BYTES, Words, fingerprint, mask, set_token
from discreet.federated.noise import OwnNoise, SharedNoise
from discreet.federated.wire import (
    CHAIN,
    Message,
    Refusal,
    Refused,
    decode,
    encode,
    own_place,
    read_names,
    read_texts,
    refusal,
)
from discreet.privacy import Anchor

# A sum that no answer can carry need not be made.
_MOST_WORDS = wire.MOST_BYTES // 8
_MOST_STEPS = 1 << 14
#: Nothing that a keeper is sent is longer: a key, or the names of the parties.
MOST_BYTES = 1 << 17
_MOST_KEY_BYTES = 1 << 12
_FIELDS = {
    "key": frozenset({"key", "question", "least", CHAIN}),
    "chain": frozenset[str](),
    "reveal": frozenset({"names", "size", "question", "keys", "tokens"}),
}
_LONGEST_DIGEST = 64
#: What a party sends a keeper; all else comes from the coordinator.
PARTY_KINDS = ("key", "chain")


class _Key(NamedTuple):
    """A party's key, the fingerprint of the question it answered, and how many parties share the noise."""

    secret: bytes
    question: str
    least: int


class Line(Protocol):
    """What reaches a keeper: bytes there, bytes back; any failure is a `FederationError`."""

    def __call__(self, raw: bytes) -> bytes:
        """Return the answer."""


@final
class Keeper:
    """Keep the keys of a run's masks and reveal one sum a step, over at least `least` parties.

    Use it with `SharedNoise`, on a machine that is neither the coordinator's nor a party's.

    Guarantee
        No one sees the sum of fewer than `least` parties, nor two sums of one step, unless the keeper and the
        coordinator work together (proofs/federated.md, proofs/rollback.md).

    Parameters:
        roster: The names of the parties; keys of others are rejected.
        least: The fewest parties whose sum may be seen; more if a party among them states so with its key.
        run: The name of the run; messages of other runs are rejected. Without it every run is served.
        journal: The keys and what was revealed. Without a file, a keeper that restarts asks parties for
            their keys again.

    Example:
        >>> keeper = Keeper(roster=["north", "east", "south"], least=2, run="spring")
        >>> ask_place(keeper, "spring", "north").events
        0

    Stability
        Stable.
    """

    def __init__(
        self, *, roster: Sequence[str], least: int, run: str | None = None, journal: Journal | None = None
    ) -> None:
        integer("least", least, least=2)
        require(least <= len(set(roster)), "least", least, must="be at most the number of parties")
        self._roster, self._least, self._run = frozenset(roster), least, run
        self._journal = journal or Journal()
        self._keys: dict[tuple[str, int, str], _Key] = {}
        self._places: dict[tuple[str, str], Anchor] = {}
        self._revealed: dict[tuple[str, int], frozenset[str]] = {}
        # Two who ask at once about different parties must not both get an answer.
        self._turn = threading.Lock()
        for message in self._journal.messages:
            self._remember(message)

    def __call__(self, raw: bytes) -> bytes:
        """Answer a message of a party (a key, or a chain) or of the coordinator (a set of names)."""
        try:
            message = decode(raw, MOST_BYTES)
            self._expect(message, len(raw))
            answer = {"key": self._key, "chain": self._chain}.get(message.kind, self._reveal)
            with self._turn:
                return encode(answer(message))
        except Refused as error:
            return refusal("refused", error.reason, sender="keeper")

    def _expect(self, message: Message, size: int) -> None:
        """Reject what cannot be of this run before it is looked at: what is kept must stay small."""
        if self._run is not None and message.run != self._run:
            raise Refused(Refusal.WRONG_RUN)
        if not 0 <= message.step < _MOST_STEPS:
            raise Refused(Refusal.WRONG_ROUND)
        of_party = message.kind in PARTY_KINDS
        if of_party and message.sender not in self._roster:
            raise Refused(Refusal.WRONG_SENDER)
        if of_party and size > _MOST_KEY_BYTES:
            raise Refused(Refusal.OVERSIZED)
        if message.arrays or not message.fields.keys() <= _FIELDS.get(message.kind, frozenset()):
            raise Refused(Refusal.MALFORMED)

    def _chain(self, message: Message) -> Message:
        """Return the latest place that is known of a party's chain."""
        known = self._places.get((message.run, message.sender), Anchor())
        return _reply(message, {CHAIN: str(known)})

    def _key(self, message: Message) -> Message:
        place = (message.run, message.step, message.sender)
        key = _read_key(message)
        if CHAIN in message.fields:
            own_place(message)
        if not 0 < key.least <= len(self._roster):
            raise Refused(Refusal.OUT_OF_RANGE)
        if self._keys.get(place, key) != key:
            raise Refused(Refusal.TWICE)
        if place not in self._keys:
            self._journal.keep(message)
            self._remember(message)
        return _reply(message, {"kept": True})

    def _reveal(self, message: Message) -> Message:
        names, size = read_names(message.fields.get("names")), message.fields.get("size")
        if message.kind != "reveal" or type(size) is not int or not 0 <= size <= _MOST_WORDS:
            raise Refused(Refusal.MALFORMED)
        if not names <= self._roster:
            raise Refused(Refusal.WRONG_SENDER)
        known = {name: self._keys.get((message.run, message.step, name)) for name in sorted(names)}
        asked = message.fields.get("question")
        expected = read_texts(message.fields.get("keys", "{}"))
        keys = {
            name: key
            for name, key in known.items()
            if key is not None
            and key.question == asked
            and expected.get(name, fingerprint(key.secret)) == fingerprint(key.secret)
        }
        # Who wants more company than there is may be excluded, if enough others remain.
        content = {name: key for name, key in keys.items() if key.least <= len(names)}
        keys = content if len(content) >= self._least else keys
        missing = sorted(names - set(keys))
        if missing or len(content) < self._least:
            return _reply(message, {"missing": json.dumps(missing)})
        first = self._revealed.get((message.run, message.step), names)
        if first != names:
            return _reply(message, {"only": json.dumps(sorted(first))})
        tokens = read_texts(message.fields.get("tokens", "{}"))
        unconfirmed = [name for name, key in keys.items() if not self._confirmed(name, key, names, tokens)]
        if unconfirmed:
            return _reply(message, {"unconfirmed": json.dumps(unconfirmed)})
        if (message.run, message.step) not in self._revealed:
            self._journal.keep(message)
            self._remember(message)
        total = np.zeros(size, dtype=np.uint64)
        for key in keys.values():
            total += mask(key.secret, size)
        return Message(
            kind="masks", run=message.run, step=message.step, sender="keeper", arrays={"total": total}
        )

    def _confirmed(self, name: str, key: _Key, names: Iterable[str], tokens: Mapping[str, str]) -> bool:
        """Return whether a party confirmed a set; one that asks for all parties can be in no other set."""
        expected = set_token(key.secret, key.question, names)
        return key.least == len(self._roster) or hmac.compare_digest(
            tokens.get(name, "").encode(errors="replace"), expected.encode()
        )

    def _remember(self, message: Message) -> None:
        if message.kind == "key":
            self._keys[message.run, message.step, message.sender] = _read_key(message)
            if CHAIN in message.fields:
                member = (message.run, message.sender)
                # A key that is handed late comes with an earlier place.
                self._places[member] = max(self._places.get(member, Anchor()), own_place(message))
        else:
            self._revealed[message.run, message.step] = read_names(message.fields.get("names"))


def require_keeper(keeper: Line | None, noise: OwnNoise | SharedNoise) -> None:
    """Raise if parties share noise and no one takes the masks off."""
    need = "A keeper is needed for shared noise."
    require(keeper is not None or not noise.masked, "keeper", keeper, must="be given", do=need)


def hand_key(line: Line, message: Message) -> None:
    """Give the keeper a message with the key of an answer; raise unless it was kept."""
    if not decode(line(encode(message))).fields.get("kept"):
        raise KeyNotAccepted


def ask_place(line: Line, run: str, name: str) -> Anchor:
    """Return the latest place of a party's chain that the keeper knows."""
    reply = decode(line(encode(Message(kind="chain", run=run, step=0, sender=name))))
    if reply.kind != "reply":
        raise KeeperSilent
    return own_place(reply)


class SumStep(NamedTuple):
    """What answers are summed over: a step of a run, and its question by its digest."""

    run: str
    step: int
    question: str


def ask_masks(
    line: Line,
    asked: SumStep,
    names: Sequence[str],
    size: int,
    keys: Mapping[str, str] | None = None,
    tokens: Mapping[str, str] | None = None,
) -> Words | frozenset[str]:
    """Return the sum of the masks on these parties' answers to a question.

    Or return those of them that the keeper can speak for, if not for all.

    The latter happens if keys are not there or have other fingerprints than in `keys`, or if a sum over
    other parties was revealed before a crash. `tokens` are what the parties confirmed the set with.

    Raises:
        SetNotConfirmed: The keeper has all keys, and a party did not confirm this set.
    """
    fields: dict[str, str | int] = {
        "names": json.dumps(sorted(names)),
        "size": size,
        "question": asked.question,
        "keys": json.dumps(dict(keys or {})),
        "tokens": json.dumps(dict(tokens or {})),
    }
    reply = decode(
        line(encode(Message(kind="reveal", run=asked.run, step=asked.step, sender="-", fields=fields)))
    )
    if reply.kind == "masks":
        total = reply.arrays.get("total")
        if total is None or total.shape != (size,) or total.dtype != np.uint64:
            raise KeeperSilent
        return total
    if "unconfirmed" in reply.fields:
        raise SetNotConfirmed(parties=tuple(sorted(read_names(reply.fields["unconfirmed"]))), step=asked.step)
    missing, only = read_names(reply.fields.get("missing", "[]")), read_names(reply.fields.get("only", "[]"))
    possible = only if only else frozenset(names) - missing
    if not possible < frozenset(names):
        raise SumNotRevealed
    return possible


def _reply(message: Message, fields: Mapping[str, str | bool]) -> Message:
    return Message(kind="reply", run=message.run, step=message.step, sender="keeper", fields=fields)


def _read_key(message: Message) -> _Key:
    secret, question, least = (message.fields.get(name) for name in ("key", "question", "least"))
    try:
        opened = bytes.fromhex(secret)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        raise Refused(Refusal.MALFORMED) from None
    if len(opened) != KEY_BYTES or not isinstance(question, str) or type(least) is not int:
        raise Refused(Refusal.MALFORMED)
    if len(question) > _LONGEST_DIGEST:
        raise Refused(Refusal.OVERSIZED)
    return _Key(opened, question, least)
