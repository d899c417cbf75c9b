"""Carry questions to parties and answers back; what is carried is bytes, and nobody is believed."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import final

#: A party's side: a question's bytes in, an answer's bytes out.
Endpoint = Callable[[bytes], bytes]
#: Who answered and what; None means that the party is gone.
Answered = tuple[str, bytes | None]


class Transport(ABC):
    """Reach parties by name."""

    @abstractmethod
    def ask(self, question: bytes, parties: Sequence[str], seconds: float) -> Iterator[Answered]:
        """Send a question to all and yield whatever comes back, as it comes, for at most `seconds`.

        Anything may come: answers to older questions, several from one party, bytes that mean nothing. The
        iterator may be closed early. Parties that never answer are not mentioned.
        """

    def opened(self, name: str, raw: bytes) -> bytes:
        """Return the message in what came under a party's name, or raise `Refused` if it is another's."""
        return raw


@final
class InProcess(Transport):
    """Call parties of this process one after the other; one that raises is gone for this question."""

    def __init__(self, endpoints: Mapping[str, Endpoint]) -> None:
        self._endpoints = dict(endpoints)

    def ask(self, question: bytes, parties: Sequence[str], seconds: float) -> Iterator[Answered]:
        """Yield each party's answer."""
        for name in parties:
            endpoint = self._endpoints.get(name)
            try:
                yield name, None if endpoint is None else endpoint(question)
            except GeneratorExit:
                raise
            except Exception:
                yield name, None
