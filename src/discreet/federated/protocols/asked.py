"""Ask parties for a statistic: write its public numbers into a question, and read them as from a stranger.

A party computes statistics of this list only, and those of the model it agreed to. Each states the domain of
its fields and bounds one user's contribution on all of it, so a question that can be read is safe to
answer, and what it costs follows from the statistic that was read, never from what the question states of it.
Fields that a statistic does not have are rejected.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple, final

import numpy as np
import numpy.typing as npt

from discreet.core import DomainError
from discreet.federated.errors import StatisticNotAnswered
from discreet.federated.noise import STEP_BITS
from discreet.federated.protocols.protocol import number, only_fields
from discreet.federated.wire import MOST_BYTES, Message, Refusal, Refused, Value
from discreet.statistics import (
    CoOccurrence,
    Domain,
    Held,
    HistorySummary,
    ItemContext,
    ItemResiduals,
    ItemVectors,
    ItemVotes,
    LinearTerms,
    Numbers,
    OrderEvidence,
    Places,
    ProfileGram,
    ProfileVotes,
    Ranges,
    RecentResiduals,
    RecentVotes,
    ResidualMoment,
    ScaledMoment,
    ScaledProduct,
    StartMoment,
    Stated,
    Statistic,
    SteppedMoment,
    SteppedProduct,
    SteppedStretch,
    UserCount,
    UserMeans,
    VotesAmong,
    check,
    domains,
    entries_of,
)
from discreet.statistics import Part as Added

#: The statistics that parties answer, whatever the model is.
ANSWERED: tuple[type[Statistic], ...] = (
    UserCount,
    UserMeans,
    HistorySummary,
    ItemVotes,
    VotesAmong,
    ItemResiduals,
    RecentVotes,
    RecentResiduals,
    ResidualMoment,
    ItemVectors,
    CoOccurrence,
    OrderEvidence,
    ItemContext,
    ScaledMoment,
    ScaledProduct,
    SteppedMoment,
    SteppedProduct,
    SteppedStretch,
    ProfileVotes,
    StartMoment,
    ProfileGram,
    LinearTerms,
)
_GIVEN = "given "
# A sum must fit into a message, with its header.
_MOST_NUMBERS = MOST_BYTES // 8 - (1 << 14)
_LARGEST_SIGMA = 1e9
_INFINITE = "inf"


class Asked(NamedTuple):
    """A statistic, which part of it is released, and the deviation of the noise it is planned with."""

    statistic: Statistic
    part: Added
    sigma: float


@final
@dataclass(frozen=True, slots=True)
class Answerable:
    """Know which statistics may be asked for, by the names of their classes."""

    kinds: dict[str, type[Statistic]]
    #: The domain of every field of each kind, by its path.
    paths: dict[str, dict[str, Domain]]

    @classmethod
    def of(cls, more: Iterable[type[Statistic]] = ()) -> Answerable:
        """Return the statistics that parties answer, and those that an agreed model brings."""
        kinds = {kind.__name__: kind for kind in ANSWERED}
        for kind in more:
            if kinds.setdefault(kind.__name__, kind) is not kind:
                raise StatisticNotAnswered(statistic=kind.__name__)
        paths = {name: dict(_flat(kind)) for name, kind in kinds.items()}
        for name, found in paths.items():
            if any(isinstance(domain, Held | Ranges) for domain in found.values()):
                raise StatisticNotAnswered(statistic=name)
        return cls(kinds, paths)

    def write(self, asked: Asked) -> Message:
        """Return the question that asks for a part of a statistic."""
        kind = type(asked.statistic)
        if self.kinds.get(kind.__name__) is not kind:
            raise StatisticNotAnswered(statistic=kind.__name__)
        fields: dict[str, Value] = {
            "statistic": kind.__name__,
            "part": asked.part.name,
            "sigma": float(asked.sigma),
        }
        arrays: dict[str, npt.NDArray[Any]] = {}
        for path, domain, value in entries_of(asked.statistic):
            if isinstance(domain, Numbers | Places):
                arrays[path] = np.ascontiguousarray(value)
            elif isinstance(value, str | int):
                fields[_GIVEN + path] = value
            else:
                fields[_GIVEN + path] = _INFINITE if math.isinf(value) else float(value)
        return Message(kind="sum", fields=fields, arrays=arrays)

    def read(self, question: Message, n_items: int) -> Asked:
        """Return what a question asks for, or raise `Refused`."""
        kind = self.kinds.get(str(question.fields.get("statistic")))
        if kind is None or question.kind != "sum":
            raise Refused(Refusal.WRONG_KIND)
        paths = self.paths[kind.__name__]
        arrays = {path for path, domain in paths.items() if isinstance(domain, Numbers | Places)}
        given = {_GIVEN + path for path in paths if path not in arrays}
        only_fields(question, {"statistic", "part", "sigma"} | given, arrays)
        sigma = number(question, "sigma", 0.0, _LARGEST_SIGMA)
        try:
            statistic = _built(kind, question, "", arrays)
            check(statistic, n=n_items)
        except DomainError as error:
            raise Refused(Refusal.WRONG_SHAPE if error.shape else Refusal.OUT_OF_RANGE) from None
        assert isinstance(statistic, Statistic)
        part = {part.name: part for part in statistic.parts}.get(str(question.fields["part"]))
        if part is None or part.of != "person" or part.norm != "l2" or part.bits > STEP_BITS:
            raise Refused(Refusal.WRONG_KIND)
        if size_of(part) > _MOST_NUMBERS:
            raise Refused(Refusal.OVERSIZED)
        return Asked(statistic, part, sigma)


def size_of(part: Added) -> int:
    """Return how many numbers a released part has; of a symmetric one only the upper triangle."""
    return part.shape[0] * (part.shape[0] + 1) // 2 if part.symmetric else math.prod(part.shape)


def _flat(kind: type[Stated], prefix: str = "") -> Iterable[tuple[str, Domain]]:
    """Yield path and domain of every field, those of what is held included."""
    for name, domain in domains(kind).items():
        if isinstance(domain, type):
            yield from _flat(domain, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", domain


def _built(kind: type[Stated], question: Message, prefix: str, arrays: Collection[str]) -> Stated:
    """Return what the fields of a question make; the class itself rejects what lies outside."""
    given: dict[str, Any] = {}
    for name, domain in domains(kind).items():
        path = f"{prefix}{name}"
        if isinstance(domain, type):
            given[name] = _built(domain, question, f"{path}.", arrays)
        elif path in arrays:
            given[name] = np.asarray(question.arrays[path])
        else:
            value = question.fields[_GIVEN + path]
            given[name] = math.inf if value == _INFINITE else value
    return kind(**given)
