"""Send questions to parties as bytes, and validate every answer."""

from __future__ import annotations

import math
import re
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol, final

from discreet.core.checks import require
from discreet.federated.chains import CHAIN, own_place
from discreet.federated.conditions import ASSUMES, read_facts
from discreet.federated.keeper import read_names
from discreet.federated.noise import OwnNoise, SharedNoise
from discreet.federated.protocols.protocol import Shapes, StepResult, check_arrays, number
from discreet.federated.wire import Arrays, Message, Refusal, Refused, decode, encode

#: A party's endpoint: the bytes of a question in, the bytes of an answer out.
Endpoint = Callable[[bytes], bytes]
#: A party's name and its answer; None means that the party is gone.
Answered = tuple[str, bytes | None]


class Transport(ABC):
    """Reach parties by name.

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

    Example:
        >>> from discreet import Popularity, PrivacyRandom
        >>> from discreet.federated import Coordinator, InProcess, Keeper, Party, SharedNoise, protocol_for
        >>> from discreet.federated.simulation import split_users
        >>> from discreet.data.datasets.synthetic import popularity_skewed
        >>> films = popularity_skewed(n_users=100, n_items=40, mean_per_user=15)
        >>> own = split_users(films, 3)
        >>> protocol = protocol_for(Popularity(epsilon=2.0), films.facts, SharedNoise(parties=3, missing=1))
        >>> keeper = Keeper(roster=list(own), least=protocol.noise.least_parties)
        >>> parties = {name: Party(name, data, protocol, run="spring", keeper=keeper,
        ...         random=PrivacyRandom.simulate(0)).answer for name, data in own.items()}
        >>> coordinator = Coordinator(protocol, InProcess(parties), parties=list(own), shared=films.catalog,
        ...         run="spring", simulated=True, keeper=keeper)
        >>> coordinator.train(films.facts).model.guarantee.epsilon
        2.0

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


class Terms(NamedTuple):
    """The guarantee that was agreed with a party, and whether its noise may be simulated."""

    epsilon: float
    delta: float
    simulated: bool = False


class Judge(Protocol):
    """What answers and their sums are judged by: arrays, types, noise, and what users can give."""

    @property
    def noise(self) -> OwnNoise | SharedNoise:
        """Return who adds how much noise."""

    @property
    def number_type(self) -> str:
        """Return the type of all numbers."""

    def shapes(self, question: Message, n_shared: int) -> Shapes:
        """Return the arrays that answer a question."""

    def deviations(self, question: Message, epsilon: float, delta: float) -> Mapping[str, float]:
        """Return the standard deviation of a party's noise on each array, by what was agreed with it."""

    def check_answer(self, question: Message, answer: Message) -> None:
        """Raise `Refused` if no users and no noise can give an answer."""

    def combine(self, totals: Arrays, parties: int) -> Arrays:
        """Turn sums of answers, without masks, into the result of a step."""

    def combined_noise(self, deviations: Sequence[float]) -> float:
        """Return the noise deviation of the result, from those of the answers."""

    def check_sums(self, question: Message, results: StepResult) -> None:
        """Raise `Refused` for sums that users and noise can't give."""

    def called(self, step: int) -> str:
        """Return what users call a step."""


# What an answer states next to the noise on its arrays.
_STATED = frozenset({"epsilon", "delta", "simulated", "question", CHAIN, "key", ASSUMES})
_TOKEN = re.compile("[0-9a-f]{32}")
# Platforms may round a standard deviation differently, and nothing else in it.
_ROUNDING = 1e-9


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class RoundAnswers:
    """The valid answers to a question, why other parties are excluded, and the rejected messages."""

    answers: dict[str, Message]
    left_out: dict[str, str]
    refused: Counter[str]


def collect(
    question: Message,
    transport: Transport,
    parties: Mapping[str, Terms],
    protocol: Judge,
    n_shared: int,
    seconds: float,
) -> RoundAnswers:
    """Ask once and return the valid answers by party, and why the others are excluded.

    `parties` maps names to what was agreed with them.
    The first valid answer counts. A second one from the same party, equal or not, changes nothing.
    """
    refused: Counter[str] = Counter()
    answers: dict[str, Message] = {}
    reasons: dict[str, str] = {}
    gone: set[str] = set()
    shapes = protocol.shapes(question, n_shared)
    incoming = transport.ask(encode(question), list(parties), seconds)
    for name, raw in incoming:
        if raw is None:
            gone.add(name)
        elif name not in parties or name in answers:
            refused[Refusal.TWICE.value if name in answers else Refusal.WRONG_SENDER.value] += 1
        else:
            try:
                answer = addressed(question, name, transport.opened(name, raw))
                check_arrays(answer, shapes, protocol.number_type)
                _check_terms(question, answer, protocol, parties[name])
                protocol.check_answer(question, answer)
                answers[name] = answer
                reasons.pop(name, None)
            except Refused as error:
                refused[error.reason.value] += 1
                reasons[name] = error.reason.value
                # An answer to an earlier question may be followed by one to this question.
                if error.reason not in (Refusal.WRONG_ROUND, Refusal.WRONG_QUESTION):
                    gone.add(name)
        if set(answers) | gone >= set(parties):
            break
    for name in parties:
        if name not in answers:
            reasons.setdefault(name, Refusal.SILENT.value)
    return RoundAnswers(answers=answers, left_out=reasons, refused=refused)


def addressed(question: Message, name: str, raw: bytes) -> Message:
    """Return a party's message if it answers this question; raise `Refused` with the reason otherwise."""
    answer = decode(raw)
    if answer.sender != name:
        raise Refused(Refusal.WRONG_SENDER)
    if answer.run != question.run:
        raise Refused(Refusal.WRONG_RUN)
    if answer.kind == "declined":
        # If a party or the coordinator was restored, a new run is needed. Other reasons are the party's own.
        stated = [one for one in (Refusal.BEHIND, Refusal.DROPPED) if one == answer.fields.get("reason")]
        raise Refused(stated[0] if stated else Refusal.DECLINED)
    if answer.step != question.step:
        raise Refused(Refusal.WRONG_ROUND)
    if answer.kind != question.kind:
        raise Refused(Refusal.WRONG_KIND)
    if answer.fields.get("question") != question.digest():
        raise Refused(Refusal.WRONG_QUESTION)
    own_place(answer)
    return answer


def _check_terms(question: Message, answer: Message, protocol: Judge, agreed: Terms) -> None:
    """Raise `Refused` if a party states a guarantee or noise that was not agreed with it."""
    epsilon, delta, simulated = promised(answer)
    if (epsilon, delta) != (agreed.epsilon, agreed.delta) or simulated > agreed.simulated:
        raise Refused(Refusal.WRONG_GUARANTEE)
    read_facts(answer)
    deviations = protocol.deviations(question, agreed.epsilon, agreed.delta)
    if not answer.fields.keys() <= _STATED | {f"noise {array}" for array in deviations}:
        raise Refused(Refusal.UNKNOWN_FIELD)
    for array, expected in deviations.items():
        noise = number(answer, f"noise {array}", 0.0, math.inf)
        if not math.isclose(noise, expected, rel_tol=_ROUNDING):
            raise Refused(Refusal.WRONG_GUARANTEE)


def agreed_terms(
    parties: Sequence[str],
    epsilon: float,
    delta: float,
    promises: Mapping[str, tuple[float, float]],
    *,
    simulated: bool,
) -> dict[str, Terms]:
    """Return what was agreed with each party: its own guarantee, or that of the run."""
    require(len(set(parties)) == len(parties) > 0, "parties", list(parties), must="be different names")
    require(set(promises) <= set(parties), "promises", sorted(promises), must="be of parties of the run")
    pairs = {name: promises.get(name, (epsilon, delta)) for name in parties}
    # Without noise there is nothing that a delta could be about.
    return {
        name: Terms(one, 0.0 if math.isinf(one) else other, simulated) for name, (one, other) in pairs.items()
    }


def promised(answer: Message) -> tuple[float, float, bool]:
    """Return the guarantee that a party states: epsilon, delta, and whether its noise is simulated."""
    fields = answer.fields
    epsilon = math.inf if fields.get("epsilon") == "inf" else number(answer, "epsilon", 1e-12, 1e6)
    simulated = fields.get("simulated")
    if not isinstance(simulated, bool):
        raise Refused(Refusal.MALFORMED)
    return epsilon, number(answer, "delta", 0.0, 0.999), simulated


def confirmations(
    question: Message, transport: Transport, parties: Sequence[str], seconds: float
) -> dict[str, Message]:
    """Ask parties to confirm a set, and return what they confirm by party; invalid answers are none."""
    found: dict[str, Message] = {}
    gone: set[str] = set()
    for name, raw in transport.ask(encode(question), parties, seconds):
        try:
            if raw is not None and name in parties:
                answer = addressed(question, name, transport.opened(name, raw))
                token = answer.fields.get("token")
                if name not in read_names(answer.fields.get("names")) or not _TOKEN.fullmatch(str(token)):
                    raise Refused(Refusal.MALFORMED)
                found.setdefault(name, answer)
            else:
                gone.add(name)
        except Refused as error:
            # A late answer to the question before may come first.
            if error.reason not in (Refusal.WRONG_KIND, Refusal.WRONG_QUESTION):
                gone.add(name)
        if set(found) | gone >= set(parties):
            break
    return found
