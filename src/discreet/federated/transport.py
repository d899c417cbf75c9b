"""Send questions to parties as bytes, and validate every answer."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, final

import numpy as np

from discreet.federated.protocols.protocol import Shapes, check_arrays, number
from discreet.federated.wire import Message, Refusal, Refused, decode, encode

#: A party's endpoint: the bytes of a question in, the bytes of an answer out.
Endpoint = Callable[[bytes], bytes]
#: A party's name and its answer; None means that the party is gone.
Answered = tuple[str, bytes | None]


class Transport(ABC):
    """Reach parties by name."""

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
    """Call the parties in this process in turn; one that raises is gone for this question."""

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


class Judge(Protocol):
    """What an answer is judged by: its arrays, their type, and what else cannot be meant."""

    @property
    def number_type(self) -> str:
        """Return the type of all numbers."""

    def shapes(self, question: Message, n_shared: int) -> Shapes:
        """Return the arrays that answer a question."""

    def check_answer(self, answer: Message) -> None:
        """Refuse an answer that fits by shape and cannot be meant."""


# A user adds at most 1 to a number, so it is at most the number of users plus the largest plausible noise.
_MOST_PEOPLE = _MOST_NOISE = 2.0**33
_TAILS = 64


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class RoundAnswers:
    """Hold the valid answers to a question, why other parties are left out, and the refused messages."""

    answers: dict[str, Message]
    left_out: dict[str, str]
    refused: Counter[str]


def collect(
    question: Message,
    transport: Transport,
    parties: Sequence[str],
    protocol: Judge,
    n_shared: int,
    seconds: float,
) -> RoundAnswers:
    """Ask once and return the valid answers by party, and why the others are left out.

    The first valid answer counts. A second one from the same party, equal or not, changes nothing.
    """
    refused: Counter[str] = Counter()
    answers: dict[str, Message] = {}
    reasons: dict[str, str] = {}
    gone: set[str] = set()
    shapes = protocol.shapes(question, n_shared)
    incoming = transport.ask(encode(question), parties, seconds)
    for name, raw in incoming:
        if raw is None:
            gone.add(name)
        elif name not in parties or name in answers:
            refused[Refusal.TWICE.value if name in answers else Refusal.WRONG_SENDER.value] += 1
        else:
            try:
                answers[name] = judged(question, name, transport.opened(name, raw), protocol, shapes)
                reasons.pop(name, None)
            except Refused as error:
                refused[error.reason.value] += 1
                reasons[name] = error.reason.value
                # An answer to an earlier question may be followed by one to this question.
                if error.reason is not Refusal.WRONG_ROUND:
                    gone.add(name)
        if set(answers) | gone >= set(parties):
            break
    for name in parties:
        if name not in answers:
            reasons.setdefault(name, Refusal.SILENT.value)
    return RoundAnswers(answers=answers, left_out=reasons, refused=refused)


def judged(
    question: Message, name: str, raw: bytes, protocol: Judge, shapes: Mapping[str, tuple[int, ...]]
) -> Message:
    """Return a party's answer if it is valid for the question; raise `Refused` with the reason otherwise."""
    answer = decode(raw)
    if answer.sender != name:
        raise Refused(Refusal.WRONG_SENDER)
    if answer.run != question.run:
        raise Refused(Refusal.WRONG_RUN)
    if answer.kind == "declined":
        raise Refused(Refusal.DECLINED)
    if answer.step != question.step:
        raise Refused(Refusal.WRONG_ROUND)
    if answer.kind != question.kind:
        raise Refused(Refusal.WRONG_KIND)
    check_arrays(answer, shapes, protocol.number_type)
    for array in shapes:
        noise = number(answer, f"noise {array}", 0.0, _MOST_NOISE)
        numbers = answer.arrays[array]
        if numbers.dtype.kind == "f" and np.abs(numbers).max(initial=0.0) > _MOST_PEOPLE + _TAILS * noise:
            raise Refused(Refusal.OUT_OF_RANGE)
    protocol.check_answer(answer)
    promised(answer)
    return answer


def promised(answer: Message) -> tuple[float, float, bool]:
    """Return the promise that a party states: epsilon, delta, and whether its noise is simulated."""
    fields = answer.fields
    epsilon = math.inf if fields.get("epsilon") == "inf" else number(answer, "epsilon", 1e-12, 1e6)
    simulated = fields.get("simulated")
    if not isinstance(simulated, bool):
        raise Refused(Refusal.MALFORMED)
    return epsilon, number(answer, "delta", 0.0, 0.999), simulated
