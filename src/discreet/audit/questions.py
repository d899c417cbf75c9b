"""Ask a party of a federation whatever a hostile coordinator could ask, about neighboring data sets.

Questions of honest runs are changed in every way that has broken a promise before: numbers at and beyond the
ends of what can be meant, one item made loud and all ridges weak, sides of length 0, fields that name a
price, questions asked again. Each is put to a party with and without one person more. All that comes out
must be the same: the bytes of the reply, a refusal or an error, what is written into the journal and the
ledger, and whether the party got as far as drawing (what it takes in time, roughly). What differs in the
draws has an exact price. The party runs in a process of its own; one that dies has answered, too.
"""

from __future__ import annotations

import math
import multiprocessing
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from multiprocessing.connection import Connection
from typing import Any, final

import numpy as np
import numpy.typing as npt

from discreet.audit.findings import Finding
from discreet.audit.white_box.prices import price
from discreet.audit.white_box.structure import ROUNDING
from discreet.audit.white_box.tape import Player, Recorder, StrayError
from discreet.checks import DiscreetError
from discreet.data.facts import PublicFacts
from discreet.data.interactions import Interactions
from discreet.data.vocabulary import Vocabulary
from discreet.federated.keeper import Keeper
from discreet.federated.noise import SharedNoise
from discreet.federated.party import Party
from discreet.federated.protocols.choosing import protocol_for
from discreet.federated.protocols.protocol import names_digest
from discreet.federated.wire import Message, decode, encode
from discreet.models.estimator import Estimator
from discreet.privacy.accounting.gaussian import gaussian_epsilon, gaussian_multiplier
from discreet.privacy.ledger.book import Ledger
from discreet.randomness import PrivacyRandom, experiment_generator

QUESTIONS = "questions"
_NOISE = SharedNoise(parties=3, missing=1)
_ITEMS, _PEOPLE = 8, 60
_NUMBERS = (0.0, 5e-324, 1e-30, 1e-9, 1e-3, 0.5, 1.0, 1e6, 1e9, 1e30, 1e300)
_LOUD, _WEAK = (1e6, 1e9, 1e30), (1e-9, 1e-30)
# Fields that a question might try to settle its own price with.
_PRICES = ("bound", "price", "cost", "given bound", "noise total")


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """Hold a question and how it came about."""

    label: str
    question: Message


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Outputs:
    """Hold all that comes out of a party: replies or errors, journal, ledger, and how far it got."""

    replies: tuple[bytes | str, ...]
    journal: tuple[str, ...]
    ledger: tuple[Any, ...]
    draws: int

    @property
    def accepted(self) -> bool:
        """Tell whether anything was drawn."""
        return self.draws > 0

    def difference(self, other: Outputs) -> str | None:
        """Return what is not the same, if anything is."""
        for name in ("replies", "journal", "ledger", "draws"):
            if getattr(self, name) != getattr(other, name):
                return name
        return None


@final
@dataclass(slots=True, kw_only=True)
class Found:
    """Hold what a search found so far."""

    tried: int = 0
    accepted: int = 0
    answers: int = 0
    statistics: set[str] = field(default_factory=set)
    paid: float = 0.0
    costliest: str = ""
    leaks: dict[str, str] = field(default_factory=dict)


def has_questions(estimator: Estimator) -> bool:
    """Tell whether parties answer questions of this model: it learns from sums with Gaussian noise."""
    return estimator.rows_needed() is None and estimator.delta > 0 and math.isfinite(estimator.epsilon)


def audit_questions(name: str, estimator: Estimator) -> Finding:
    """Search for a question that tells neighboring data sets apart beyond what is promised.

    Raises:
        ParameterError: The model cannot run over parties.
    """
    start = time.perf_counter()
    protocol_for(estimator, _facts(), _NOISE)
    own = gaussian_multiplier(estimator.epsilon, estimator.delta) / math.sqrt(_NOISE.least_parties)
    promised = gaussian_epsilon(own, estimator.delta)
    found = _searched(estimator)
    told = (
        f"{found.tried:,} questions about {len(found.statistics)} statistics, {found.accepted:,} accepted; "
        f"the costliest answer pays {found.paid:.4g} ({found.costliest})"
    )
    return Finding(
        model=name,
        attack=QUESTIONS,
        promised=promised,
        delta=estimator.delta,
        refuted=math.inf if found.leaks else found.paid,
        confidence=1.0,
        fits=found.answers,
        seconds=time.perf_counter() - start,
        notes=(*found.leaks.values(), told),
        broken=bool(found.leaks) or found.paid > promised * (1 + ROUNDING),
    )


def _searched(estimator: Estimator) -> Found:
    """Search in a process of its own; where it dies, the question is a leak, and the next one follows."""
    context = multiprocessing.get_context("spawn")
    found, begin = Found(), 0
    while True:
        here, there = context.Pipe(duplex=False)
        child = context.Process(target=_search, args=(estimator, begin, there))
        child.start()
        there.close()
        last = Asked(label="the beginning", question=_message("-", {}, {}))
        try:
            while True:
                news = here.recv()
                if isinstance(news, Found):
                    return _joined(found, news, child)
                begin, last, so_far = news
        except EOFError:
            child.join()
            _join(found, so_far)
            begin += 1
            found.leaks.setdefault(
                "the process", f"{last.label}: the party's process ends ({child.exitcode})"
            )


def _joined(found: Found, last: Found, child: Any) -> Found:
    child.join()
    _join(found, last)
    return found


def _join(found: Found, more: Found) -> None:
    for count in ("tried", "accepted", "answers"):
        setattr(found, count, getattr(found, count) + getattr(more, count))
    found.statistics |= more.statistics
    if more.paid > found.paid:
        found.paid, found.costliest = more.paid, more.costliest
    for kind, leak in more.leaks.items():
        found.leaks.setdefault(kind, leak)


def _search(estimator: Estimator, begin: int, told: Connection) -> None:
    """Try all questions from a place on; say before each one which it is."""
    found = Found()
    for place, asked in enumerate(questions(estimator)):
        if place >= begin:
            told.send((place, asked, found))
            try_question(estimator, asked, found)
    told.send(found)


def try_question(estimator: Estimator, asked: Asked, found: Found) -> None:
    """Put a question to a party with and without each canary, and note what tells them apart."""
    found.tried += 1
    found.statistics.add(str(asked.question.fields.get("statistic")))
    data, others = _neighbors()
    recorder = Recorder()
    here = outputs(estimator, asked.question, data, recorder)
    found.answers += 1
    found.accepted += here.accepted
    # A refusal that hangs on a row shows where the row is long.
    for canary, other in others.items() if here.accepted else [*others.items()][:1]:
        player = Player(recorder.passages)
        found.answers += 1
        try:
            there = outputs(estimator, asked.question, other, player)
        except StrayError as error:
            found.leaks.setdefault("draws", f"{asked.label}, {canary}: {error}")
            continue
        if difference := here.difference(there):
            same = f"{asked.label}, {canary}: told the same, the {difference} differ"
            found.leaks.setdefault(difference, same)
            continue
        if len(player.passages) == len(recorder.passages):
            paid = price(recorder.passages, player.passages).epsilon(estimator.delta)
            if paid > found.paid:
                found.paid, found.costliest = paid, f"{asked.label}, {canary}"


def outputs(estimator: Estimator, question: Message, data: Interactions, tape: Recorder | Player) -> Outputs:
    """Return all that comes out of a party that is asked a question, and asked it again as the next step."""
    names = ["audited", "second", "third"]
    ledger = Ledger.in_memory()
    protocol = protocol_for(estimator, _facts(), _NOISE)
    party = Party(
        names[0],
        data,
        protocol,
        run="audit",
        ledger=ledger,
        random=PrivacyRandom.taped(0, tape),
        keeper=Keeper(roster=names, least=_NOISE.least_parties),
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
        if not tape.passages:
            break
    return Outputs(
        replies=tuple(replies),
        journal=tuple(message.kind for message in party._journal.messages),
        ledger=tuple((one.what, one.state, str(one.events)) for one in ledger.entries()),
        draws=len(tape.passages),
    )


def questions(estimator: Estimator) -> Iterator[Asked]:
    """Yield hostile questions: those of honest runs, changed in one way or another."""
    whole = _whole(estimator)
    for seed in honest_questions():
        name = f"{seed.fields['statistic']} {seed.fields['part']}"
        # One question may take nearly all that is promised; of some statistics a person is longer than 1.
        plain = _with(seed, sigma=1.12 * whole)
        yield Asked(label=name, question=plain)
        for label, changed in _changed(plain):
            yield Asked(label=f"{name} with {label}", question=changed)
        for field_name in _PRICES:
            cheap = _with(seed, **{field_name: 1e-12}, sigma=1e-9 * whole)
            yield Asked(label=f"{name} with {field_name}=1e-12", question=cheap)
        yield Asked(label=f"{name} without noise", question=_with(seed, sigma=0.0))


def _changed(seed: Message) -> Iterator[tuple[str, Message]]:
    """Yield a question changed in one way."""
    for name, value in seed.fields.items():
        if isinstance(value, float) and name.startswith("given "):
            for number in (*_NUMBERS, -1.0, -1e300):
                yield f"{name.removeprefix('given ')}={number:g}", _with(seed, **{name: number})
    for name, array in seed.arrays.items():
        if array.dtype == np.float64 and array.size:
            for number in _NUMBERS:
                yield f"{name} all {number:g}", _with_arrays(seed, **{name: np.full_like(array, number)})
    flat = {
        name: array for name, array in seed.arrays.items() if array.ndim == 2 and array.shape[0] == _ITEMS
    }
    for name, array in flat.items():
        yield from _one_loud_item(seed, name, array)
        for width in (0, 1):
            yield f"{width} factors", _of_width(seed, array.shape[1], width)


def _one_loud_item(seed: Message, name: str, array: npt.NDArray[Any]) -> Iterator[tuple[str, Message]]:
    """Yield questions in which the last item, which few hold, drowns what keeps equations solvable."""
    short = [other for other, one in seed.arrays.items() if one.shape == (array.shape[1],)]
    for loud in _LOUD:
        features = array.copy()
        features[-1] = loud
        yield f"{name} of one item {loud:g}", _with_arrays(seed, **{name: features})
        for weak in _WEAK if short else ():
            weakened = {other: np.full_like(seed.arrays[other], weak) for other in short}
            label = f"{name} of one item {loud:g} and {', '.join(short)} {weak:g}"
            yield label, _with_arrays(seed, **{name: features}, **weakened)


def _of_width(seed: Message, before: int, width: int) -> Message:
    """Return a question whose sides of one length have another one."""
    changed: dict[str, npt.NDArray[Any]] = {}
    for name, array in seed.arrays.items():
        if array.ndim == 2 and array.shape[1] == before:
            changed[name] = np.ascontiguousarray(array[:, :width])
        elif array.shape == (before,) and before != _ITEMS:
            changed[name] = array[:width]
    return _with_arrays(seed, **changed)


def honest_questions() -> list[Message]:
    """Return one question about each part of each statistic that honest runs of all models ask for."""
    from discreet.models import biases, popularity
    from discreet.models.implicit_objective import estimator as implicit
    from discreet.models.low_rank import covariance_svd, frank_wolfe, printed_frank_wolfe
    from discreet.models.user_factorization import estimator as factors

    infinite: dict[str, Any] = {"epsilon": math.inf}
    models: list[Estimator] = [
        popularity.Popularity(**infinite),
        biases.Biases(**infinite),
        factors.UserFactorization(**infinite),
        factors.UserFactorization(**infinite, feedback="implicit"),
        implicit.ImplicitObjective(**infinite),
        covariance_svd.CovarianceSvd(**infinite),
        frank_wolfe.FrankWolfe(**infinite, rounds=2, solver="oja", steps=2),
        printed_frank_wolfe.PrintedFrankWolfe(**infinite, rounds=2),
        printed_frank_wolfe.PrintedFrankWolfe(**infinite, rounds=1, solver="oja", steps=1),
    ]
    found: dict[tuple[Any, Any], Message] = {}
    for model in models:
        for question in _asked_by(model):
            found[question.fields.get("statistic"), question.fields.get("part")] = question
    return [question for (statistic, _), question in found.items() if statistic is not None]


def _asked_by(model: Estimator) -> Sequence[Message]:
    """Return what a run without noise asks for; nothing where this version cannot run the model so."""
    from discreet.federated.coordinator import Coordinator
    from discreet.federated.simulation import dealt_out
    from discreet.federated.transport import InProcess

    try:
        protocol = protocol_for(model, _facts(), _NOISE)
    except DiscreetError:
        return []
    heard: list[Message] = []
    own = dealt_out(_crowd(), _NOISE.parties)
    keeper = Keeper(roster=list(own), least=_NOISE.least_parties)
    members = {
        name: Party(name, people, protocol, run="honest", ledger=Ledger.in_memory(), keeper=keeper).answer
        for name, people in own.items()
    }

    def listening(raw: bytes) -> bytes:
        question = decode(raw)
        mine = {name: value for name, value in question.fields.items() if name not in ("settings", "shared")}
        heard.append(_message(question.kind, mine, {k: np.array(v) for k, v in question.arrays.items()}))
        return first(raw)

    first = members["party-1"]
    members["party-1"] = listening
    Coordinator(
        protocol,
        InProcess(members),
        parties=list(own),
        shared=_crowd().catalog,
        run="honest",
        keeper=keeper,
    ).train(_facts())
    return heard


def _whole(estimator: Estimator) -> float:
    """Return the deviation with which one question takes all that is promised."""
    planned: Any = protocol_for(estimator, _facts(), _NOISE)
    return gaussian_multiplier(planned.planned().epsilon, estimator.delta) * (1 + 1e-6)


def _crowd() -> Interactions:
    """Return people of two kinds, so that every release of every model has something to show."""
    draw = experiment_generator(0, "questions")
    users = np.repeat(np.arange(_PEOPLE), _ITEMS)
    items = np.tile(np.arange(_ITEMS), _PEOPLE)
    alike = (users % 2) == (items % 2)
    values = 3 + np.where(alike, 1, -1) + draw.integers(0, 2, users.size)
    kept = draw.random(users.size) < np.where(alike, 0.9, 0.2)
    return _data(users[kept], items[kept], values[kept].astype(np.float64))


@cache
def _neighbors() -> tuple[Interactions, dict[str, Interactions]]:
    """Return a few people, none of whom holds the last item, and the same with one odd person more."""
    canaries = {
        "somebody with all items": {item: 1.0 + 4.0 * (item % 2) for item in range(_ITEMS)},
        "somebody with the last item": {_ITEMS - 1: 5.0},
        "somebody with the first item": {0: 5.0},
    }
    few = [{0: 4.0, 1: 2.0, 3: 5.0}, {1: 1.0, 2: 3.0}]
    return _rows(few), {name: _rows([*few, row]) for name, row in canaries.items()}


def _rows(people: Sequence[dict[int, float]]) -> Interactions:
    cells = [(user, item, value) for user, row in enumerate(people) for item, value in row.items()]
    users, items, values = zip(*cells, strict=True)
    return _data(np.array(users), np.array(items), np.array(values))


def _data(users: npt.NDArray[Any], items: npt.NDArray[Any], values: npt.NDArray[Any]) -> Interactions:
    catalog = Vocabulary.range(_ITEMS)
    return Interactions.from_arrays(users, items, values, catalog=catalog, facts=_facts(), name="audit")


def _facts() -> PublicFacts:
    return PublicFacts(n_items=_ITEMS, low=1.0, high=5.0, n_users=_PEOPLE)


def _message(kind: str, fields: dict[str, Any], arrays: dict[str, npt.NDArray[Any]]) -> Message:
    return Message(kind=kind, run="audit", step=0, sender="coordinator", fields=fields, arrays=arrays)


def _with(seed: Message, **fields: Any) -> Message:
    return replace(seed, fields={**seed.fields, **fields})


def _with_arrays(seed: Message, **arrays: npt.NDArray[Any]) -> Message:
    return replace(seed, arrays={**seed.arrays, **arrays})
