"""Assumptions of a guarantee as values: how a fact entered, which fact it is, and its numbers.

A guarantee applies only under its assumptions, so code that weighs them must not read English. Kinds decide
what an assumption does to a guarantee (`Assumption.is_condition`). The words are in `discreet.report`, and
the sentences of older files are in `discreet.privacy.old_sentences`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Protocol, Self, final

from discreet.core.errors import BrokenRule
from discreet.privacy.errors import ImpossibleFact
from discreet.report.guarantee_wording import assumption_text, assumption_texts

Scalar = str | int | float | bool | None


class Kind(StrEnum):
    """How a fact entered a release, which decides what it does to the guarantee."""

    #: Declared as public by the data owner. The guarantee doesn't hide it.
    DECLARED = "declared"
    #: Read from the data without noise. The guarantee holds only if the fact is public: a condition.
    TAKEN = "taken"
    #: Selected from the data with noise. The guarantee counts its cost, so nothing is assumed.
    SELECTED = "selected"
    #: How the release is used, such as one answer per device.
    USE = "use"
    #: An earlier release, whose cost is not part of this guarantee.
    EARLIER = "earlier"
    #: The data are synthetic: the guarantee is about synthetic users.
    SYNTHETIC = "synthetic"
    #: A rule of the ledger, such as a budget that renews.
    LEDGER = "ledger"
    #: Behavior of the parties of a federation.
    PARTY = "party"
    #: What happens to copies of a state that must not be used twice.
    BACKUP = "backup"
    #: The data owner read raw ratings that the guarantee hides from everyone else.
    RAW = "raw"
    #: A sentence of a file that this version doesn't know: a condition, because it may be one.
    UNKNOWN = "unknown"


#: The kinds of assumptions that a user must check.
CONDITIONS = frozenset({Kind.TAKEN, Kind.UNKNOWN})


class Fact(StrEnum):
    """Subject of an assumption."""

    CATALOG = "catalog"
    SCALE = "scale"
    INTERACTIONS = "interactions"
    PICKED_ITEMS = "picked items"
    CAP = "cap"
    USERS = "users"
    LAYOUT = "layout"
    LAYOUTS_OF_PARTIES = "layouts of parties"
    FACTS_OF_PARTIES = "facts of parties"
    FRAME = "frame"
    QUOTES = "quotes"
    QUERY = "query"
    TIMES = "times"
    DATE = "date"
    ITEM_FEATURES = "item features"
    PARTICIPATION = "participation"
    RATED_ITEMS = "rated items"
    RATINGS_PER_USER = "ratings per user"
    THRESHOLD = "threshold"
    DEVICES = "devices"
    PRIOR = "prior"
    SCORED_MODEL = "scored model"
    DATA = "data"
    RENEWAL = "renewal"
    NEW_START = "new start"
    PERIOD_OF_A_YEAR = "period of a year"
    RELEASE_TIMES = "release times"
    ONE_ID = "one id"
    STATE = "state"
    ONE_PARTY = "one party"
    RESTART = "restart"
    MEMBERS = "members"
    PARTY_AND_LEDGER = "party and ledger"
    READABLE = "readable"
    UNICODE = "unicode"
    MOST_USERS = "most users"
    COLLUSION = "collusion"
    NOISE_SHARES = "noise shares"
    KNOWN_SHARE = "known share"
    ONE_SHARE = "one share"
    RAW_RATINGS = "raw ratings"
    STATEMENT = "statement"


# The type of each detail. A name means the same for every fact. Details in `_MAY_BE_ABSENT` may be None.
_TYPES: Mapping[str, type] = {
    "items": int,
    "low": float,
    "high": float,
    "step": float,
    "ratings": int,
    "users": int,
    "threshold": float,
    "epsilon": float,
    "delta": float,
    "simulated": bool,
    "model": str,
    "definition": str,
    "origin": str,
    "period": str,
    "date": str,
    "layout": str,
    "reason": str,
    "parties": int,
    "members": str,
    "coordinator": bool,
    "text": str,
}
_MAY_BE_ABSENT = frozenset({"step", "epsilon", "delta", "simulated"})
#: Every assumption there is, with the names of its details.
STATEMENTS: Mapping[tuple[Kind, Fact], tuple[str, ...]] = {
    (Kind.DECLARED, Fact.CATALOG): ("items",),
    (Kind.TAKEN, Fact.CATALOG): ("items",),
    (Kind.SELECTED, Fact.CATALOG): (),
    (Kind.DECLARED, Fact.SCALE): ("low", "high", "step"),
    (Kind.TAKEN, Fact.SCALE): ("low", "high", "step"),
    (Kind.SELECTED, Fact.SCALE): (),
    (Kind.DECLARED, Fact.INTERACTIONS): (),
    (Kind.TAKEN, Fact.INTERACTIONS): (),
    (Kind.DECLARED, Fact.PICKED_ITEMS): (),
    (Kind.DECLARED, Fact.CAP): ("ratings",),
    (Kind.DECLARED, Fact.USERS): ("users",),
    (Kind.TAKEN, Fact.USERS): ("users",),
    (Kind.TAKEN, Fact.LAYOUT): ("layout",),
    (Kind.TAKEN, Fact.LAYOUTS_OF_PARTIES): ("members",),
    (Kind.TAKEN, Fact.FACTS_OF_PARTIES): ("members",),
    (Kind.DECLARED, Fact.FRAME): (),
    (Kind.DECLARED, Fact.READABLE): (),
    (Kind.DECLARED, Fact.QUOTES): (),
    (Kind.DECLARED, Fact.QUERY): (),
    (Kind.DECLARED, Fact.TIMES): (),
    (Kind.DECLARED, Fact.DATE): ("date",),
    (Kind.DECLARED, Fact.ITEM_FEATURES): (),
    (Kind.DECLARED, Fact.PARTICIPATION): (),
    (Kind.DECLARED, Fact.RATED_ITEMS): (),
    (Kind.DECLARED, Fact.RATINGS_PER_USER): ("ratings",),
    (Kind.DECLARED, Fact.THRESHOLD): ("threshold",),
    (Kind.SELECTED, Fact.THRESHOLD): (),
    (Kind.USE, Fact.DEVICES): (),
    (Kind.EARLIER, Fact.PRIOR): ("epsilon", "delta", "simulated"),
    (Kind.EARLIER, Fact.SCORED_MODEL): ("model", "epsilon", "definition"),
    (Kind.DECLARED, Fact.SCORED_MODEL): ("model",),
    (Kind.SYNTHETIC, Fact.DATA): ("origin",),
    (Kind.LEDGER, Fact.RENEWAL): ("period",),
    (Kind.LEDGER, Fact.NEW_START): ("reason",),
    (Kind.LEDGER, Fact.PERIOD_OF_A_YEAR): (),
    (Kind.DECLARED, Fact.RELEASE_TIMES): (),
    (Kind.USE, Fact.ONE_ID): (),
    (Kind.BACKUP, Fact.STATE): (),
    (Kind.PARTY, Fact.ONE_PARTY): (),
    (Kind.PARTY, Fact.READABLE): (),
    (Kind.PARTY, Fact.UNICODE): (),
    (Kind.PARTY, Fact.MOST_USERS): ("users",),
    (Kind.PARTY, Fact.COLLUSION): (),
    (Kind.PARTY, Fact.NOISE_SHARES): ("parties",),
    (Kind.PARTY, Fact.KNOWN_SHARE): ("epsilon", "coordinator"),
    (Kind.PARTY, Fact.ONE_SHARE): ("epsilon",),
    (Kind.BACKUP, Fact.RESTART): (),
    (Kind.BACKUP, Fact.MEMBERS): (),
    (Kind.BACKUP, Fact.PARTY_AND_LEDGER): (),
    (Kind.RAW, Fact.RAW_RATINGS): (),
    (Kind.DECLARED, Fact.STATEMENT): ("text",),
    (Kind.UNKNOWN, Fact.STATEMENT): ("text",),
}


@final
@dataclass(frozen=True, slots=True)
class Assumption:
    """One assumption of a guarantee.

    `detail` has the numbers and names that the words need, as sorted pairs, so that an assumption can be
    hashed, pickled and compared. Build one with `of`. If no fact fits, use `Fact.STATEMENT` with a `text`.

    Example:
        >>> Assumption.of(Kind.DECLARED, Fact.CATALOG, items=1682).text
        'the catalog of 1,682 items is public'
        >>> Assumption.of(Kind.TAKEN, Fact.CATALOG, items=1682).is_condition
        True
    """

    kind: Kind
    fact: Fact
    detail: tuple[tuple[str, Scalar], ...] = ()

    def __post_init__(self) -> None:
        if not (isinstance(self.kind, Kind) and isinstance(self.fact, Fact)):
            raise BrokenRule(name="kind and fact", value=(self.kind, self.fact), must="be a Kind and a Fact")
        names = STATEMENTS.get((self.kind, self.fact))
        if names is None:
            raise ImpossibleFact(kind=self.kind.value, fact=self.fact.value)
        given = dict(self.detail)
        if set(given) != set(names):
            raise BrokenRule(name="detail", value=given, must=f"have exactly {sorted(names)}")
        checked = [(name, _checked(name, given[name])) for name in sorted(given)]
        object.__setattr__(self, "detail", tuple(checked))

    @classmethod
    def of(cls, kind: Kind, fact: Fact, **detail: Scalar) -> Self:
        """Return the assumption with these details."""
        return cls(kind, fact, tuple(detail.items()))

    @property
    def is_condition(self) -> bool:
        """Return whether the guarantee may be false unless you check this assumption.

        A condition turns PRIVATE into PRIVATE IF.
        """
        return self.kind in CONDITIONS

    @property
    def text(self) -> str:
        """Return the assumption in words."""
        return assumption_text(self)

    def to_json(self) -> dict[str, Any]:
        """Return a JSON object that `from_json` reads back. `text` is for readers and other programs."""
        return assumptions_to_json([self])[0]

    @classmethod
    def from_json(cls, record: Any) -> Self:
        """Return the assumption that `to_json` wrote. A fact unknown to this version becomes a condition.

        Raises:
            TypeError, KeyError, ParameterError: The record isn't an assumption.
        """
        if not isinstance(record, dict) or not isinstance(record["detail"], dict):
            raise TypeError("an assumption must be an object with a detail")
        kind, fact, text = (record[name] for name in ("kind", "fact", "text"))
        if not all(isinstance(one, str) for one in (kind, fact, text)):
            raise TypeError("kind, fact and text of an assumption must be texts")
        if kind not in set(Kind) or fact not in set(Fact) or (Kind(kind), Fact(fact)) not in STATEMENTS:
            return cls.of(Kind.UNKNOWN, Fact.STATEMENT, text=text)
        return cls(Kind(kind), Fact(fact), tuple(record["detail"].items()))


def _checked(name: str, value: Scalar) -> Scalar:
    """Return a detail with the type of its name. Raise if it has a different type or isn't finite."""
    kind = _TYPES[name]
    if value is None and name in _MAY_BE_ABSENT:
        return None
    if kind is float and isinstance(value, int) and not isinstance(value, bool):
        value = float(value)
    if type(value) is not kind or (isinstance(value, float) and not math.isfinite(value)):
        raise BrokenRule(name=name, value=value, must=f"be a finite {kind.__name__}")
    return value


class Stating(Protocol):
    """The parts of `discreet.data.facts.PublicFacts` that assumptions need."""

    def statements(self) -> Iterable[tuple[str, str, Mapping[str, Scalar]]]:
        """Return the kind of each fact (a `Kind`), the fact (a `Fact`), and its details."""


def assumptions_of(facts: Stating) -> tuple[Assumption, ...]:
    """Return the assumptions of a guarantee about a dataset with these public facts."""
    return tuple(
        Assumption.of(Kind(kind), Fact(fact), **detail) for kind, fact, detail in list(facts.statements())
    )


def assumptions_to_json(assumptions: Sequence[Assumption]) -> list[dict[str, Any]]:
    """Return the JSON object of each assumption."""
    return [
        {"kind": one.kind.value, "fact": one.fact.value, "detail": dict(one.detail), "text": text}
        for one, text in zip(assumptions, assumption_texts(assumptions), strict=True)
    ]
