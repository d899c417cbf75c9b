"""Reach parties by name: bytes of a question go to each, and bytes of answers come back."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import final

#: A party's endpoint: the bytes of a question in, the bytes of an answer out.
Endpoint = Callable[[bytes], bytes]
#: A party's name and its answer; None means that the party is gone.
Answered = tuple[str, bytes | None]


class Transport(ABC):
    """Reach parties by name. Make a subclass for a network of your own.

    Guarantee
        None is needed: whatever arrives is checked by the coordinator and by the parties.

    Example:
        >>> from discreet.federated import InProcess
        >>> line = InProcess({"north": lambda question: question.upper()})
        >>> [answer[1] for answer in line.ask(b"votes", ["north"], 1.0)]
        [b'VOTES']

    Stability
        Stable.
    """

    @abstractmethod
    def ask(self, question: bytes, parties: Sequence[str], seconds: float) -> Iterator[Answered]:
        """Send a question to all parties and yield what they send, as it arrives, for at most `seconds`.

        Anything may arrive: answers to older questions, several from one party, invalid bytes. The iterator
        may be closed early. Parties that never answer are not yielded.
        """

    def opened(self, name: str, raw: bytes) -> bytes:
        """Return the message that arrived under a party's name; raise `Refused` if another party sent it."""
        return raw


@final
class InProcess(Transport):
    """Call the parties in this process in turn; one that raises is gone for this question.

    Use it for simulations, or if a function of yours carries the bytes.

    Example:
        >>> line = InProcess({"north": lambda question: question.upper()})
        >>> list(line.ask(b"votes", ["north", "east"], 1.0))
        [('north', b'VOTES'), ('east', None)]

    Stability
        Stable.
    """

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
