"""Guarantees as values with an algebra: epsilon, delta, a definition (unit, neighbors, trust), assumptions.

A guarantee applies only under its assumptions, so code that weighs them must not read English. An assumption
states how a fact entered, which fact it is, and its numbers. Kinds decide what an assumption does to a
guarantee (`Assumption.is_condition`). The words are in `discreet.report`, and the sentences of older files
are in `discreet.privacy.old_sentences`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any, ClassVar, Protocol, Self, final

from discreet.core import BrokenRule, failure_probability, integer, positive, real, renamed, require
from discreet.privacy.accounting.rounding import group_delta, sum_up, times_up
from discreet.privacy.errors import AlreadyPerUser, DamagedRecord, DefinitionsUnlike, ImpossibleFact
from discreet.report import assumption_text, assumption_texts
from discreet.report import guarantee_wording as words

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
    ROWS = "rows"
    WEIGHTS = "weights"
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
    "rows": str,
    "weights": str,
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
    (Kind.TAKEN, Fact.QUERY): (),
    (Kind.DECLARED, Fact.ROWS): ("rows",),
    (Kind.DECLARED, Fact.WEIGHTS): ("weights",),
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
    (Kind.PARTY, Fact.ROWS): (),
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


#: Local mechanisms don't hide who takes part.
PARTICIPATION = Assumption.of(Kind.DECLARED, Fact.PARTICIPATION)


class Stating(Protocol):
    """The parts of `discreet.data.facts.PublicFacts` that assumptions need."""

    def statements(self) -> Iterable[tuple[str, str, Mapping[str, Scalar]]]:
        """Return the kind of each fact (a `Kind`), the fact (a `Fact`), and its details."""


def assumptions_of(facts: Stating) -> tuple[Assumption, ...]:
    """Return the assumptions of a guarantee about a dataset with these public facts."""
    return tuple(
        Assumption.of(Kind(kind), Fact(fact), **detail) for kind, fact, detail in list(facts.statements())
    )


# What is agreed on or declared for a whole release or run, whichever source its rows come from.
_OF_A_RUN = frozenset({Fact.CATALOG, Fact.SCALE, Fact.INTERACTIONS, Fact.USERS, Fact.CAP})


def reading_of(facts: Stating) -> tuple[Assumption, ...]:
    """Return what is assumed of one source: how it was read, and which of its rows and items were chosen."""
    return tuple(one for one in assumptions_of(facts) if one.fact not in _OF_A_RUN)


def assumptions_to_json(assumptions: Sequence[Assumption]) -> list[dict[str, Any]]:
    """Return the JSON object of each assumption."""
    return [
        {"kind": one.kind.value, "fact": one.fact.value, "detail": dict(one.detail), "text": text}
        for one, text in zip(assumptions, assumption_texts(assumptions), strict=True)
    ]


class Unit(StrEnum):
    """The privacy unit: what one secret is, from the smallest to the largest.

    `VALUE`: a guarantee hides a user's rating of an item, but not which items the user rated. `RATING`: it
    hides this, too. `USER`: it hides the user's whole history.

    Example:
        >>> [unit.value for unit in Unit]
        ['value', 'rating', 'user']

    Stability
        Stable.
    """

    VALUE = "value"
    RATING = "rating"
    USER = "user"

    @classmethod
    def _missing_(cls, value: object) -> Unit | None:
        """Return the unit with a name of versions 0.1 and 0.2."""
        return {"verdict": cls.VALUE, "cell": cls.RATING}.get(str(value))


class Neighbors(StrEnum):
    """How neighboring datasets differ in one secret.

    With `REPLACE`, a secret is replaced by any other one. With `ADD_OR_REMOVE`, one dataset has the secret
    and the other doesn't.

    Example:
        >>> Neighbors("add-or-remove") is Neighbors.ADD_OR_REMOVE
        True

    Stability
        Stable.
    """

    REPLACE = "replace"
    ADD_OR_REMOVE = "add-or-remove"


class Trust(StrEnum):
    """The attackers against whom a guarantee protects.

    `LOCAL`: everyone, the collector of the data included. `CENTRAL`: everyone who sees the release. `JOINT`:
    everyone but the user, who also gets recommendations made from their own history.

    Example:
        >>> [trust.value for trust in Trust]
        ['local', 'central', 'joint']

    Stability
        Stable.
    """

    LOCAL = "local"
    CENTRAL = "central"
    JOINT = "joint"


class Basis(StrEnum):
    """The reason to believe a guarantee.

    `PROVED`: a note in `proofs/` proves it for the code. `AS_PUBLISHED`: a paper states it. `NONE`: there is
    no guarantee.

    Example:
        >>> [basis.value for basis in Basis]
        ['proved', 'as-published', 'none']

    Stability
        Stable.
    """

    PROVED = "proved"
    AS_PUBLISHED = "as-published"
    NONE = "none"


#: Above this delta a guarantee is weak: few datasets worth a model have fewer than 1,000 users.
LARGE_DELTA = 1e-3
_SEQUENCES: Mapping[str, type] = {"assumes": Assumption, "notes": str}
# Composed guarantees have the weaker basis.
_WEAKNESS = {Basis.PROVED: 0, Basis.AS_PUBLISHED: 1, Basis.NONE: 2}


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Guarantee:
    """A bound on the probability of any outcome: one secret changes it by at most e^`epsilon`, plus `delta`.

    `epsilon=math.inf` guarantees nothing. Guarantees with different privacy definitions (unit,
    neighbors, trust) neither compare nor add. `for_user` and `to_approximate` convert explicitly.

    Example:
        >>> Guarantee(epsilon=1.0, unit=Unit.USER, trust=Trust.JOINT, neighbors=Neighbors.ADD_OR_REMOVE,
        ...           basis=Basis.PROVED).is_private
        True

    Stability
        Stable.
    """

    large_delta: ClassVar[float] = LARGE_DELTA

    epsilon: float
    delta: float = 0.0
    unit: Unit
    neighbors: Neighbors
    trust: Trust
    assumes: tuple[Assumption, ...] = ()
    basis: Basis = Basis.NONE
    proof: str = ""
    simulated: bool = False
    notes: tuple[str, ...] = field(default=())

    def __post_init__(self) -> None:
        others = {name: _has_others(getattr(self, name), kind) for name, kind in _SEQUENCES.items()}
        positive("epsilon", self.epsilon)
        failure_probability("delta", self.delta)
        for name, kind in (("unit", Unit), ("neighbors", Neighbors), ("trust", Trust), ("basis", Basis)):
            value = getattr(self, name)
            require(isinstance(value, kind), name, value, must=f"be a {kind.__name__}")
        object.__setattr__(self, "epsilon", float(self.epsilon))
        object.__setattr__(self, "delta", float(self.delta))
        for name, element in _SEQUENCES.items():
            must = f"be a tuple of {element.__name__} values"
            require(not others[name], name, getattr(self, name), must=must)
        if math.isinf(self.epsilon):
            object.__setattr__(self, "basis", Basis.NONE)
        else:
            require(self.basis is not Basis.NONE, "basis", self.basis, must="not be NONE unless epsilon=inf")
        for name in _SEQUENCES:
            object.__setattr__(self, name, tuple(dict.fromkeys(getattr(self, name))))

    @classmethod
    def of_reports(
        cls, epsilon: float, unit: Unit, *assumes: Assumption, proof: str, notes: tuple[str, ...] = ()
    ) -> Self:
        """Return the guarantee of a proved local mechanism: a secret may be replaced by any other one."""
        return cls(
            epsilon=epsilon,
            unit=unit,
            neighbors=Neighbors.REPLACE,
            trust=Trust.LOCAL,
            assumes=assumes,
            basis=Basis.PROVED,
            proof=proof,
            notes=notes,
        )

    @property
    def is_private(self) -> bool:
        """Return whether any user is protected: epsilon is finite and the noise can't be repeated."""
        return math.isfinite(self.epsilon) and not self.simulated

    @property
    def has_large_delta(self) -> bool:
        """Return whether delta alone would allow publishing everything far too often."""
        return math.isfinite(self.epsilon) and self.delta > self.large_delta

    @property
    def definition(self) -> tuple[Unit, Neighbors, Trust]:
        """Return the privacy definition, which two guarantees must share to be compared or added."""
        return self.unit, self.neighbors, self.trust

    @property
    def frame(self) -> tuple[Unit, Neighbors, Trust]:
        """Return `definition`, under its name in 0.2."""
        renamed("Guarantee.frame", "definition")
        return self.definition

    def _same_definition(self, other: Guarantee) -> None:
        if self.definition != other.definition:
            mine, theirs = ("/".join(g.definition) for g in (self, other))
            raise DefinitionsUnlike(one=mine, other=theirs)

    def _weakened(self, *, epsilon: float, delta: float, **changes: Any) -> Guarantee:
        """Return a weaker guarantee. A guarantee that may fail with certainty guarantees nothing."""
        if delta >= 1:
            epsilon, delta = math.inf, 0.0
        return replace(self, epsilon=epsilon, delta=delta, **changes)

    def __le__(self, other: Guarantee) -> bool:
        """Return whether this guarantee is at least as strong as the other."""
        self._same_definition(other)
        believable = self.simulated <= other.simulated and _WEAKNESS[self.basis] <= _WEAKNESS[other.basis]
        return believable and self.epsilon <= other.epsilon and self.delta <= other.delta

    def __ge__(self, other: Guarantee) -> bool:
        """Return whether this guarantee is at most as strong as the other."""
        return other <= self

    def __add__(self, other: Guarantee) -> Guarantee:
        """Return the guarantee of both releases together, by basic composition."""
        self._same_definition(other)
        return self._weakened(
            epsilon=sum_up([self.epsilon, other.epsilon]),
            delta=sum_up([self.delta, other.delta]),
            assumes=self.assumes + other.assumes,
            notes=self.notes + other.notes,
            basis=weaker_basis(self.basis, other.basis),
            proof=self.proof if self.proof == other.proof else "",
            simulated=self.simulated or other.simulated,
        )

    def for_user(self, ratings: int) -> Guarantee:
        """Return the guarantee for a user with `ratings` ratings (or catalog entries), by group privacy.

        A guarantee about rating values doesn't cover which items were rated. The result assumes them public.
        """
        integer("ratings", ratings, least=1)
        if self.unit is Unit.USER:
            raise AlreadyPerUser()
        silent = (Assumption.of(Kind.DECLARED, Fact.RATED_ITEMS),) if self.unit is Unit.VALUE else ()
        longest = Assumption.of(Kind.DECLARED, Fact.RATINGS_PER_USER, ratings=ratings)
        return self._weakened(
            unit=Unit.USER,
            epsilon=times_up(self.epsilon, ratings),
            delta=group_delta(self.epsilon, self.delta, ratings),
            assumes=(*self.assumes, *silent, longest),
        )

    def to_approximate(self, delta: float) -> Guarantee:
        """Return the same guarantee stated with a larger delta. Epsilon is unchanged."""
        failure_probability("delta", delta)
        require(
            delta >= self.delta,
            "delta",
            delta,
            must=f"be at least the guarantee's own delta ({self.delta:g})",
        )
        return replace(self, delta=delta)

    def to_replace(self) -> Guarantee:
        """Return the guarantee for replacing a secret: one removal and one addition."""
        if self.neighbors is Neighbors.REPLACE:
            return self
        return self._weakened(
            neighbors=Neighbors.REPLACE,
            epsilon=times_up(self.epsilon, 2),
            delta=group_delta(self.epsilon, self.delta, 2),
        )

    def as_simulated(self) -> Guarantee:
        """Return the guarantee marked as made with repeatable noise, which protects no user."""
        return replace(self, simulated=True)

    def from_raw_ratings(self) -> Guarantee:
        """Return the guarantee of a fit that simulates a collection: the data owner reads the ratings."""
        if self.trust is not Trust.LOCAL or math.isinf(self.epsilon):
            return self
        return self.assuming(Assumption.of(Kind.RAW, Fact.RAW_RATINGS))

    @property
    def reads_raw_ratings(self) -> bool:
        """Return whether the fit read ratings that the guarantee hides from everyone but the data owner."""
        return any(one.kind is Kind.RAW for one in self.assumes)

    @property
    def conditions(self) -> tuple[Assumption, ...]:
        """Return the conditions: assumptions, such as facts read from the data, that may be false.

        If the guarantee has conditions, the label states PRIVATE IF.
        """
        return tuple(one for one in self.assumes if one.is_condition)

    def assuming(self, *more: Assumption) -> Guarantee:
        """Return the guarantee with more assumptions."""
        return replace(self, assumes=(*self.assumes, *more))

    # The words of a guarantee are in `discreet.report.guarantee_wording`.

    def sentence(self) -> str:
        """Return the guarantee in sentences for users."""
        return words.sentence(self)

    def short(self) -> str:
        """Return the guarantee in one line, for output that doesn't show the label."""
        return words.short(self)

    def rows(self) -> list[tuple[str, str]]:
        """Return the lines of the label: name and value."""
        return words.rows(self)

    def label(self, title: str = "Privacy facts") -> str:
        """Return the label as text, one line per fact, for logs and notebooks."""
        return words.label(self, title)

    def __repr__(self) -> str:
        """Return the guarantee in one line. `label` states the rest."""
        return words.one_line(self)

    def _repr_html_(self) -> str:
        return words.html(self)

    def to_json(self) -> dict[str, Any]:
        """Return a JSON object that `from_json` reads back. An infinite epsilon is the text "inf"."""
        return {
            "epsilon": "inf" if math.isinf(self.epsilon) else self.epsilon,
            "delta": self.delta,
            "unit": self.unit.value,
            "neighbours": self.neighbors.value,
            "trust": self.trust.value,
            "assumes": assumptions_to_json(self.assumes),
            "basis": self.basis.value,
            "proof": self.proof,
            "simulated": self.simulated,
            "notes": list(self.notes),
            "read_raw_ratings": self.reads_raw_ratings,
            "large_delta": self.has_large_delta,
            "sentence": self.sentence(),
        }

    @classmethod
    def from_json(cls, record: dict[str, Any]) -> Self:
        """Return the guarantee that `to_json` wrote. Raise for anything else."""
        # The table of sentences is made of assumptions.
        from discreet.privacy.old_sentences import read_assumptions, read_notes

        try:
            simulated = record["simulated"]
            require(isinstance(simulated, bool), "simulated", simulated, must="be true or false")
            return cls(
                epsilon=math.inf if record["epsilon"] == "inf" else real("epsilon", record["epsilon"]),
                delta=real("delta", record["delta"]),
                unit=Unit(record["unit"]),
                neighbors=Neighbors(record["neighbours"]),
                trust=Trust(record["trust"]),
                assumes=read_assumptions(record["assumes"], record["notes"]),
                basis=Basis(record["basis"]),
                proof=str(record["proof"]),
                simulated=simulated,
                notes=read_notes(record["notes"]),
            )
        except (KeyError, TypeError, ValueError) as error:
            raise DamagedRecord(kind="guarantee", reason=str(error)) from error


def _has_others(values: str | Iterable[object], kind: type) -> bool:
    """Return whether a sequence contains other values than those of a kind, or is a text."""
    return isinstance(values, str) or not all(isinstance(one, kind) for one in values)


def weaker_basis(one: Basis, other: Basis) -> Basis:
    """Return the basis of two guarantees composed: the weaker one."""
    return max(one, other, key=_WEAKNESS.__getitem__)
