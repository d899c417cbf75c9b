"""Put members' signatures around what is carried: every side checks who said a thing before reading it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import final

from discreet.federated.identity.agreement import COORDINATOR
from discreet.federated.identity.keys import PrivateKey, PublicKey, opened, sealed
from discreet.federated.keeper import MOST_BYTES, Keeper
from discreet.federated.serving.tls import Service
from discreet.federated.transport import Answered, Endpoint, Transport
from discreet.federated.wire import Message, Refusal, Refused, decode, encode


@final
class SealedTransport(Transport):
    """Seal the coordinator's questions, and take a party's answer only with that party's signature."""

    def __init__(self, inner: Transport, own: PrivateKey, parties: Mapping[str, PublicKey]) -> None:
        self._inner, self._own, self._parties = inner, own, dict(parties)

    def ask(self, question: bytes, parties: Sequence[str], seconds: float) -> Iterator[Answered]:
        """Yield what the parties send, still sealed."""
        return self._inner.ask(sealed(question, self._own), parties, seconds)

    def opened(self, name: str, raw: bytes) -> bytes:
        """Return the message that this party signed, or raise `Refused`."""
        return opened(raw, self._parties[name])


def sealed_endpoint(endpoint: Endpoint, own: PrivateKey, coordinator: PublicKey) -> Endpoint:
    """Return a party's side that hears nobody but the coordinator and signs what it says."""

    def answer(raw: bytes) -> bytes:
        try:
            question = opened(raw, coordinator)
        except Refused as error:
            declined = Message(
                kind="declined", run="-", step=-1, sender="-", fields={"reason": error.reason.value}
            )
            return sealed(encode(declined), own)
        return sealed(endpoint(question), own)

    return answer


def keeper_service(keeper: Keeper) -> Service:
    """Return a keeper that takes a key from its own party alone, and asks of the coordinator alone."""

    def answer(name: str, raw: bytes) -> bytes:
        try:
            message = decode(raw, MOST_BYTES)
        except Refused as error:
            return encode(_refused(error.reason))
        allowed = message.sender == name if message.kind == "key" else name == COORDINATOR
        return keeper(raw) if allowed else encode(_refused(Refusal.WRONG_SENDER))

    return answer


def _refused(reason: Refusal) -> Message:
    return Message(kind="refused", run="-", step=-1, sender="keeper", fields={"reason": reason.value})
