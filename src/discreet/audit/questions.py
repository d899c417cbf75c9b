"""Audit a party of a federation: what it sends, and its answers to whatever a hostile coordinator could ask.

`price_a_party` runs honest rounds and computes what a party reveals to an attacker who removes its masks.
`audit_questions` asks about neighboring data sets.
Questions of honest runs are changed in every way that has broken a guarantee before: numbers at or above the
ends of what can be meant, one item made loud and all ridges weak, sides of length 0, fields that name a
price, questions asked again. Each is put to a party with and without one user more. All that comes out
must be the same: the bytes of the reply, a refusal or an error, what is written into the journal and the
ledger, and whether the party got as far as drawing (what it takes in time, roughly). What differs in the
draws has an exact price. The party runs in a process of its own, with the bounds of all arrays checked; one
that fails or dies has answered, too.
"""

from __future__ import annotations

import math
import multiprocessing
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cache
from multiprocessing.connection import Connection
from tempfile import TemporaryDirectory
from typing import Any, final

from discreet.audit.errors import StrayError
from discreet.audit.findings import ROUNDING, ExactSearch, Finding
from discreet.audit.full import REPORT, SMALL
from discreet.audit.hostile_questions import ITEMS, NOISE, HostileQuestion, facts, questions, rows
from discreet.audit.neighboring import neighboring
from discreet.audit.white_box.costs import price
from discreet.audit.white_box.recording import Player, Recorder
from discreet.core import PrivacyRandom
from discreet.data import Interactions
from discreet.federated.coordinator import Coordinator
from discreet.federated.keeper import Keeper
from discreet.federated.party import Party
from discreet.federated.protocols.estimator_sums import protocol_for
from discreet.federated.protocols.protocol import Protocol, names_digest
from discreet.federated.transport import InProcess
from discreet.federated.wire import Message, encode
from discreet.models import Estimator, statistics_of
from discreet.privacy import Ledger, gaussian_epsilon, gaussian_multiplier

QUESTIONS = "questions"
_AUDITED, *_OTHERS = _MEMBERS = ("audited", "second", "third")


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Outputs:
    """All that comes out of a party: replies or errors, journal, ledger, and how far it got."""

    replies: tuple[bytes | str, ...]
    journal: tuple[str, ...]
    ledger: tuple[Any, ...]
    draws: int

    @property
    def failed(self) -> bool:
        """Return whether an error came out, or a draw that was begun ended in one."""
        return any(isinstance(reply, str) for reply in self.replies) or "failed" in self.journal

    @property
    def accepted(self) -> bool:
        """Return whether anything was drawn."""
        return self.draws > 0

    def difference(self, other: Outputs) -> str | None:
        """Return what is not the same, if anything is."""
        for name in ("replies", "journal", "ledger", "draws"):
            if getattr(self, name) != getattr(other, name):
                return name
        return None


@final
@dataclass(slots=True, kw_only=True)
class SearchFindings(ExactSearch):
    """Results of a search so far; its `fits` are answers."""

    tried: int = 0
    accepted: int = 0
    statistics: set[str] = field(default_factory=set)
    costliest: str = ""


def price_a_party(name: str, estimator: Estimator) -> Finding:
    """Return the exact privacy loss of a party's answers against the guarantee of its own share of the noise.

    Raises:
        ParameterError: The model cannot run over parties.
    """
    found = ExactSearch(promised=_own_share(estimator), delta=estimator.delta)
    protocol = protocol_for(estimator, SMALL.facts(implicit=estimator.feedback == "implicit"), NOISE)
    for neighbors in neighboring(estimator, SMALL):
        recorder = Recorder()
        sent = _sent(protocol, neighbors.base, neighbors.base, recorder)
        for dataset, data in neighbors.others.items():
            player = Player(recorder.calls)
            try:
                same = _sent(protocol, data, neighbors.base, player) == sent
                player.finish()
            except StrayError as error:
                found.leaks[dataset] = f"{dataset}: {error}"
                continue
            if not same:
                leak = f"{dataset}: with the same mechanism outputs the party sends other bytes"
                found.leaks[dataset] = leak
            found.paid = max(found.paid, price(recorder.calls, player.calls).epsilon(estimator.delta))
        found.fits += 1 + len(neighbors.others)
    few = list(found.leaks.values())[:3]
    return found.finding(name, REPORT, (*few, f"one of {NOISE.parties} parties, with its masks removed"))


def _own_share(estimator: Estimator) -> float:
    """Return the epsilon of one party's own share of the noise."""
    own = gaussian_multiplier(estimator.epsilon, estimator.delta) / math.sqrt(NOISE.least_parties)
    return gaussian_epsilon(own, estimator.delta)


def _sent(
    protocol: Protocol, data: Interactions, others: Interactions, recording: Recorder | Player
) -> list[bytes]:
    """Run a federation with the first party's mechanism calls recorded; return all that this party sends."""
    sent: list[bytes] = []
    keeper = Keeper(roster=list(_MEMBERS), least=NOISE.least_parties)
    members = {
        name: Party(
            name,
            data if name == _AUDITED else others,
            protocol,
            run="audit",
            ledger=Ledger.in_memory(),
            random=PrivacyRandom.recorded(0, recording)
            if name == _AUDITED
            else PrivacyRandom.simulate(number),
            keeper=keeper,
        )
        for number, name in enumerate(_MEMBERS)
    }

    def audited(question: bytes) -> bytes:
        sent.append(members[_AUDITED].answer(question))
        return sent[-1]

    endpoints = {_AUDITED: audited, **{name: members[name].answer for name in _OTHERS}}
    Coordinator(
        protocol,
        InProcess(endpoints),
        parties=list(_MEMBERS),
        shared=others.catalog,
        run="audit",
        keeper=keeper,
        simulated=True,
    ).train(others.facts)
    return sent


def has_questions(estimator: Estimator) -> bool:
    """Return whether parties answer questions of this model: it learns from sums with Gaussian noise.

    Public features have no part in that: parties don't agree on a table.
    """
    from_sums = estimator.rows_needed() is None and estimator.settings.get("item_features") is None
    return from_sums and estimator.delta > 0 and math.isfinite(estimator.epsilon)


def audit_questions(name: str, estimator: Estimator) -> Finding:
    """Search for a question that distinguishes neighboring data sets beyond the guarantee.

    Raises:
        ParameterError: The model cannot run over parties.
    """
    started = time.perf_counter()
    protocol_for(estimator, facts(), NOISE)
    found = _searched(_Budget(estimator))
    output = (
        f"{found.tried:,} questions about {len(found.statistics)} statistics, {found.accepted:,} accepted; "
        f"the costliest answer costs {found.paid:.4g} ({found.costliest})"
    )
    return replace(found, started=started).finding(name, QUESTIONS, (*found.leaks.values(), output))


@final
class _Budget:
    """A party's budget, and an estimator of any kind that has it.

    A party accounts for a question by the statistic that it asks for, whichever model asks. Its answers
    depend on the model only through epsilon, delta, and the statistics that the model brings, so estimators
    that agree on these are equal here, and one search serves all of them.
    """

    def __init__(self, estimator: Estimator) -> None:
        self.estimator = estimator
        self._key = (estimator.epsilon, estimator.delta, statistics_of(estimator))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Budget) and self._key == other._key

    def __hash__(self) -> int:
        return hash(self._key)


@cache
def _searched(budget: _Budget) -> SearchFindings:
    """Search in a process of its own; where it dies, the question is a leak, and the next one follows."""
    estimator = budget.estimator
    context = multiprocessing.get_context("spawn")
    found, begin = SearchFindings(promised=_own_share(estimator), delta=estimator.delta), 0
    while True:
        here, there = context.Pipe(duplex=False)
        with TemporaryDirectory() as cache, _checked_bounds(cache):
            child = context.Process(target=_search, args=(estimator, found.promised, begin, there))
            child.start()
            there.close()
            ended, begin, last = _heard(here, found)
            child.join()
        if ended:
            return found
        begin += 1
        leak = f"{last}: the party's process ends with {child.exitcode}"
        found.leaks.setdefault("the process", leak)


def _heard(here: Connection, found: SearchFindings) -> tuple[bool, int, str]:
    """Follow a search until it ends; return whether it reached its end, and the last question."""
    place, label, so_far = 0, "the beginning", SearchFindings()
    try:
        while True:
            news = here.recv()
            if isinstance(news, SearchFindings):
                _join(found, news)
                return True, place, label
            place, label, so_far = news
    except EOFError:
        _join(found, so_far)
        return False, place, label


@contextmanager
def _checked_bounds(cache: str) -> Iterator[None]:
    """Make processes started here compile loops that check bounds before they read or write."""
    names = {"NUMBA_BOUNDSCHECK": "1", "NUMBA_CACHE_DIR": cache}
    before = {name: os.environ.get(name) for name in names}
    os.environ.update(names)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def _join(found: SearchFindings, more: SearchFindings) -> None:
    for count in ("tried", "accepted", "fits"):
        setattr(found, count, getattr(found, count) + getattr(more, count))
    found.statistics |= more.statistics
    if more.paid > found.paid:
        found.paid, found.costliest = more.paid, more.costliest
    for kind, leak in more.leaks.items():
        found.leaks.setdefault(kind, leak)


def _search(estimator: Estimator, promised: float, begin: int, output: Connection) -> None:
    """Try all questions from a place on; say before each one which it is."""
    found = SearchFindings(promised=promised)
    for place, asked in enumerate(questions(estimator)):
        if place >= begin:
            output.send((place, asked.label, found))
            try_question(estimator, asked, found)
    output.send(found)


def try_question(estimator: Estimator, asked: HostileQuestion, found: SearchFindings) -> None:
    """Put a question to a party with and without each canary, and note what distinguishes them."""
    found.tried += 1
    found.statistics.add(str(asked.question.fields.get("statistic")))
    data, others = _neighbors()
    recorder = Recorder()
    here = outputs(estimator, asked.question, data, recorder)
    found.fits += 1
    found.accepted += here.accepted
    if here.failed:
        found.leaks.setdefault(f"error {asked.change}", f"{asked.label}: the party fails")
    # A refusal that hangs on a row shows where the row is long.
    for canary, other in others.items() if here.accepted else [*others.items()][:1]:
        player = Player(recorder.calls)
        found.fits += 1
        try:
            there = outputs(estimator, asked.question, other, player)
        except StrayError as error:
            found.leaks.setdefault("draws", f"{asked.label}, {canary}: {error}")
            continue
        if difference := here.difference(there):
            same = f"{asked.label}, {canary}: the same answer, the {difference} differ"
            found.leaks.setdefault(f"{difference} {asked.change}", same)
            continue
        if len(player.calls) == len(recorder.calls):
            paid = price(recorder.calls, player.calls).epsilon(estimator.delta)
            if paid > found.paid:
                found.paid, found.costliest = paid, f"{asked.label}, {canary}"
            if paid > found.promised * (1 + ROUNDING):
                leak = f"{asked.label}, {canary}: the answer costs {paid:.4g}"
                found.leaks.setdefault(f"price {asked.change}", leak)


def outputs(
    estimator: Estimator, question: Message, data: Interactions, recording: Recorder | Player
) -> Outputs:
    """Return all that comes out of a party that is asked a question, and asked it again as the next step."""
    ledger = Ledger.in_memory()
    protocol = protocol_for(estimator, facts(), NOISE)
    party = Party(
        _AUDITED,
        data,
        protocol,
        run="audit",
        ledger=ledger,
        random=PrivacyRandom.recorded(0, recording),
        keeper=Keeper(roster=list(_MEMBERS), least=NOISE.least_parties),
    )
    agreed = {"settings": protocol.settings(), "shared": names_digest(data.catalog)}
    replies: list[bytes | str] = []
    for step in (0, 1):
        asked = replace(question, step=step, fields={**agreed, **question.fields})
        try:
            replies.append(party.answer(encode(asked)))
        except StrayError:
            raise
        except Exception as error:
            replies.append(f"{type(error).__name__}: {error}")
        if not recording.calls:
            break
    return Outputs(
        replies=tuple(replies),
        journal=tuple(message.kind for message in party._journal.messages),
        ledger=tuple((one.what, one.state, str(one.events)) for one in ledger.entries()),
        draws=len(recording.calls),
    )


@cache
def _neighbors() -> tuple[Interactions, dict[str, Interactions]]:
    """Return a few users, none of whom rated the last item, and the same with one odd user more."""
    canaries = {
        "a user with all items": {item: 1.0 + 4.0 * (item % 2) for item in range(ITEMS)},
        "a user with the last item": {ITEMS - 1: 5.0},
        "a user with the first item": {0: 5.0},
    }
    few = [{0: 4.0, 1: 2.0, 3: 5.0}, {1: 1.0, 2: 3.0}]
    return rows(few), {name: rows([*few, row]) for name, row in canaries.items()}
