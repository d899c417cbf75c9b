"""Make the questions that a hostile coordinator could ask: those of honest runs, each changed in one way.

Nothing here reads what a statistic states about itself: a stranger does not keep to it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, final

import numpy as np
import numpy.typing as npt

from discreet.core import experiment_generator
from discreet.core.checks import DiscreetError
from discreet.data import Interactions, PublicFacts, Vocabulary
from discreet.federated.coordinator import Coordinator
from discreet.federated.keeper import Keeper
from discreet.federated.noise import SharedNoise
from discreet.federated.party import Party
from discreet.federated.protocols.estimator_sums import protocol_for
from discreet.federated.protocols.protocol import AGREED, CONFIRM
from discreet.federated.simulation import split_users
from discreet.federated.transport import InProcess
from discreet.federated.wire import Message, decode
from discreet.models import Biases, Estimator, Popularity, UserFactorization
from discreet.papers.dpimf.implicit_objective import ImplicitObjective
from discreet.papers.frank_wolfe.covariance_svd import CovarianceSvd
from discreet.papers.frank_wolfe.frank_wolfe import FrankWolfe
from discreet.papers.frank_wolfe.printed_frank_wolfe import PrintedFrankWolfe
from discreet.privacy import Ledger, gaussian_multiplier

#: Three parties, one of which may be missing.
NOISE = SharedNoise(parties=3, missing=1)
ITEMS = 8
_PEOPLE = 60
_NUMBERS = (0.0, 5e-324, 1e-30, 1e-9, 1e-3, 0.5, 1.0, 1e6, 1e9, 1e30, 1e300)
_LOUD, _WEAK = (1e6, 1e9, 1e30), (1e-9, 1e-30)
# Little noise, and fields with which a question might try to settle its own price.
_LITTLE = 0.25
_PRICES = ("bound", "price", "cost", "given bound", "noise total")


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class HostileQuestion:
    """A question and how it came about."""

    label: str
    question: Message
    change: str = "nothing"


def questions(estimator: Estimator) -> Iterator[HostileQuestion]:
    """Yield hostile questions: those of honest runs, changed in one way or another."""
    whole = _whole(estimator)
    for seed in honest_questions():
        name = f"{seed.fields['statistic']} {seed.fields['part']}"
        # One question may spend nearly the whole guarantee; some statistics bound a user by more than 1.
        plain = _with(seed, sigma=1.12 * whole)
        yield HostileQuestion(label=name, question=plain)
        for label, changed in _changed(plain):
            yield HostileQuestion(label=f"{name} with {label}", question=changed, change=_field_of(label))
        for field_name in _PRICES:
            cheap = _with(seed, **{field_name: 1e-12}, sigma=_LITTLE)
            yield HostileQuestion(label=f"{name} with {field_name}=1e-12", question=cheap, change=field_name)
        yield HostileQuestion(label=f"{name} without noise", question=_with(seed, sigma=0.0))


def _field_of(label: str) -> str:
    """Return what was changed, without the number."""
    return label.split("=", maxsplit=1)[0].split(" of one")[0].split(" all ")[0]


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
    flat = {name: array for name, array in seed.arrays.items() if array.ndim == 2 and array.shape[0] == ITEMS}
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
        elif array.shape == (before,) and before != ITEMS:
            changed[name] = array[:width]
    return _with_arrays(seed, **changed)


@cache
def honest_questions() -> tuple[Message, ...]:
    """Return one question about each part of each statistic that honest runs of all models ask for."""
    infinite: dict[str, Any] = {"epsilon": math.inf}
    models: list[Estimator] = [
        Popularity(**infinite),
        Biases(**infinite),
        UserFactorization(**infinite),
        UserFactorization(**infinite, feedback="implicit"),
        UserFactorization(**infinite, purpose="ratings"),
        UserFactorization(**infinite, for_synthesis=True),
        Popularity(**infinite, half_life=30.0, now="2026-01-01"),
        Biases(**infinite, half_life=30.0, now="2026-01-01"),
        UserFactorization(**infinite, half_life=30.0, now="2026-01-01"),
        ImplicitObjective(**infinite),
        CovarianceSvd(**infinite),
        FrankWolfe(**infinite, rounds=2, solver="oja", steps=2),
        PrintedFrankWolfe(**infinite, rounds=2),
        PrintedFrankWolfe(**infinite, rounds=1, solver="oja", steps=1),
    ]
    found: dict[tuple[Any, Any], Message] = {}
    for model in models:
        for question in _asked_by(model):
            found[question.fields.get("statistic"), question.fields.get("part")] = question
    # Without noise no model restricts votes, so this question is made from the one about all items.
    votes = found["ItemVotes", "votes"]
    fields = {name: value for name, value in votes.fields.items() if name != "given norm"}
    fields["statistic"] = "VotesAmong"
    found["VotesAmong", "votes"] = _message(votes.kind, fields, {"top": np.arange(ITEMS, dtype=np.int64)})
    return tuple(question for (statistic, _), question in found.items() if statistic is not None)


def _asked_by(model: Estimator) -> Sequence[Message]:
    """Return what a run without noise asks for; nothing where this version cannot run the model so."""
    try:
        protocol = protocol_for(model, facts(), NOISE)
    except DiscreetError:
        return []
    counted: list[Message] = []
    own = split_users(_source(), NOISE.parties)
    keeper = Keeper(roster=list(own), least=NOISE.least_parties)
    members = {
        name: Party(name, people, protocol, run="honest", ledger=Ledger.in_memory(), keeper=keeper).answer
        for name, people in own.items()
    }

    def listening(raw: bytes) -> bytes:
        question = decode(raw)
        if question.kind == CONFIRM:
            return first(raw)
        mine = {name: value for name, value in question.fields.items() if name not in AGREED}
        counted.append(_message(question.kind, mine, {k: np.array(v) for k, v in question.arrays.items()}))
        return first(raw)

    first = members["party-1"]
    members["party-1"] = listening
    Coordinator(
        protocol,
        InProcess(members),
        parties=list(own),
        shared=_source().catalog,
        run="honest",
        keeper=keeper,
    ).train(facts())
    return counted


def _whole(estimator: Estimator) -> float:
    """Return the deviation with which one question spends the whole guarantee."""
    planned: Any = protocol_for(estimator, facts(), NOISE)
    return gaussian_multiplier(planned.planned().epsilon, estimator.delta) * (1 + 1e-6)


def _source() -> Interactions:
    """Return users of two kinds, so that every release of every model has something to show."""
    draw = experiment_generator(0, "questions")
    users = np.repeat(np.arange(_PEOPLE), ITEMS)
    items = np.tile(np.arange(ITEMS), _PEOPLE)
    alike = (users % 2) == (items % 2)
    values = 3 + np.where(alike, 1, -1) + draw.integers(0, 2, users.size)
    kept = draw.random(users.size) < np.where(alike, 0.9, 0.2)
    return _data(users[kept], items[kept], values[kept].astype(np.float64))


def rows(people: Sequence[dict[int, float]]) -> Interactions:
    """Return users with these ratings by item."""
    cells = [(user, item, value) for user, row in enumerate(people) for item, value in row.items()]
    users, items, values = zip(*cells, strict=True)
    return _data(np.array(users), np.array(items), np.array(values))


def _data(users: npt.NDArray[Any], items: npt.NDArray[Any], values: npt.NDArray[Any]) -> Interactions:
    catalog = Vocabulary.range(ITEMS)
    return Interactions.from_arrays(users, items, values, catalog=catalog, facts=facts(), name="audit")


def facts() -> PublicFacts:
    """Return what is public about the parties' users."""
    return PublicFacts(n_items=ITEMS, low=1.0, high=5.0, n_users=_PEOPLE)


def _message(kind: str, fields: dict[str, Any], arrays: dict[str, npt.NDArray[Any]]) -> Message:
    return Message(kind=kind, run="audit", step=0, sender="coordinator", fields=fields, arrays=arrays)


def _with(seed: Message, **fields: Any) -> Message:
    return replace(seed, fields={**seed.fields, **fields})


def _with_arrays(seed: Message, **arrays: npt.NDArray[Any]) -> Message:
    return replace(seed, arrays={**seed.arrays, **arrays})
