"""State a guarantee as a value: epsilon, delta, and its privacy definition (unit, neighbors, trust)."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any, Self, final

from discreet.core.checks import (
    ParameterError,
    PrivacyError,
    failure_probability,
    integer,
    positive,
    real,
    require,
)
from discreet.core.display import html_table
from discreet.privacy.accounting.rounding import group_delta, number_above, sum_up, times_up


class Unit(StrEnum):
    """Name the privacy unit: what one secret is, from the smallest to the largest."""

    VALUE = "value"
    RATING = "rating"
    USER = "user"

    @classmethod
    def _missing_(cls, value: object) -> Unit | None:
        """Read the names of versions 0.1 and 0.2."""
        return {"verdict": cls.VALUE, "cell": cls.RATING}.get(str(value))


class Neighbors(StrEnum):
    """Say how neighboring datasets differ in one secret."""

    REPLACE = "replace"
    ADD_OR_REMOVE = "add-or-remove"


class Trust(StrEnum):
    """Say against whom the promise holds."""

    LOCAL = "local"
    CENTRAL = "central"
    JOINT = "joint"


class Basis(StrEnum):
    """Say why the promise should be believed."""

    PROVED = "proved"
    AS_PUBLISHED = "as-published"
    NONE = "none"


UNIT_WORDS = {
    Unit.VALUE: "the value of any one rating (which items were rated is public)",
    Unit.RATING: "whether and how any one person rated any one item",
    Unit.USER: "any one person's whole history",
}
_SHORT_UNITS = {Unit.VALUE: "one rating's value", Unit.RATING: "one rating", Unit.USER: "a whole user"}
_UNIT_NAMES = {Unit.VALUE: "rating value", Unit.RATING: "rating", Unit.USER: "user"}
_NEIGHBOR_WORDS = {
    Neighbors.REPLACE: "that differ in one",
    Neighbors.ADD_OR_REMOVE: "with and without one",
}
# What an observer cannot find out, as the subject of `Guarantee.sentence`.
_SECRETS = {
    (Unit.VALUE, Neighbors.REPLACE): "How any one rating turned out (which items were rated is public)",
    (
        Unit.VALUE,
        Neighbors.ADD_OR_REMOVE,
    ): "Whether the value of any one rating is in the data (which items were rated is public)",
    (Unit.RATING, Neighbors.REPLACE): "Whether and how any one person rated any one item",
    (Unit.RATING, Neighbors.ADD_OR_REMOVE): "Whether any one person rated any one item",
    (Unit.USER, Neighbors.REPLACE): "What any one person's whole history looks like",
    (Unit.USER, Neighbors.ADD_OR_REMOVE): "Whether any one person, with their whole history, is in the data",
}
TRUST_WORDS = {
    Trust.LOCAL: "anyone, the collector included",
    Trust.CENTRAL: "everyone who sees the release",
    Trust.JOINT: "everyone but the person whose recommendations these are",
}
_BASIS_WORDS = {
    Basis.PROVED: "proved",
    Basis.AS_PUBLISHED: "as published; we could not prove it",
    Basis.NONE: "no promise is made",
}
#: Ends a line under "Assumed" whose fact was read from the data (`PublicFacts.assumptions`).
TAKEN = "(taken from the file)"
#: Begins a line under "Assumed" that names the release a fit started from; the sentence names it, too.
EARLIER = "the model that this fit starts from is an earlier release"
#: Begins the same about synthetic data.
DRAWN = "the data are synthetic"
#: A note of a local promise whose noise was not added on devices: the sentence says it, too.
RAW = "this fit read the raw ratings: nothing is hidden from whoever ran it"
_AGAINST_RAW = "everyone who sees the model or the perturbed reports, but not whoever ran this fit"
#: Above this delta labels say that little is promised: few data worth a model have less than 1,000 people.
LARGE_DELTA = 1e-3
_TOO_LARGE = f"is above {LARGE_DELTA:g}: publishing all data outright that often would keep the promise"
# Composed promises have the weaker basis.
_WEAKNESS = {Basis.PROVED: 0, Basis.AS_PUBLISHED: 1, Basis.NONE: 2}


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Guarantee:
    """Promise that one secret changes the probability of any outcome by at most e^`epsilon`, plus `delta`.

    `epsilon=math.inf` promises nothing and says so. Promises with different privacy definitions (unit,
    neighbors, trust) neither compare nor add; `for_user` and `to_approximate` convert explicitly.

    Example:
        >>> Guarantee(epsilon=1.0, unit=Unit.USER, trust=Trust.JOINT, neighbors=Neighbors.ADD_OR_REMOVE,
        ...           basis=Basis.PROVED).is_private
        True
    """

    epsilon: float
    delta: float = 0.0
    unit: Unit
    neighbors: Neighbors
    trust: Trust
    assumes: tuple[str, ...] = ()
    basis: Basis = Basis.NONE
    proof: str = ""
    simulated: bool = False
    notes: tuple[str, ...] = field(default=())

    def __post_init__(self) -> None:
        positive("epsilon", self.epsilon, do="For a release without privacy pass math.inf.")
        failure_probability("delta", self.delta)
        for name, kind in (("unit", Unit), ("neighbors", Neighbors), ("trust", Trust), ("basis", Basis)):
            value = getattr(self, name)
            require(isinstance(value, kind), name, value, f"must be a {kind.__name__}")
        object.__setattr__(self, "epsilon", float(self.epsilon))
        object.__setattr__(self, "delta", float(self.delta))
        for name in ("assumes", "notes"):
            value = getattr(self, name)
            require(not isinstance(value, str), name, value, "must be a tuple of texts")
            object.__setattr__(self, name, tuple(dict.fromkeys(value)))
        if math.isinf(self.epsilon):
            object.__setattr__(self, "basis", Basis.NONE)
        else:
            require(self.basis is not Basis.NONE, "basis", self.basis, "goes only with epsilon=inf")

    @property
    def is_private(self) -> bool:
        """Return whether anybody is protected: epsilon is finite and the noise cannot be repeated."""
        return math.isfinite(self.epsilon) and not self.simulated

    @property
    def has_large_delta(self) -> bool:
        """Return whether delta alone would allow publishing everything far too often."""
        return math.isfinite(self.epsilon) and self.delta > LARGE_DELTA

    @property
    def definition(self) -> tuple[Unit, Neighbors, Trust]:
        """Return the privacy definition, which two promises must share to be compared or added."""
        return self.unit, self.neighbors, self.trust

    def _same_definition(self, other: Guarantee) -> None:
        if self.definition != other.definition:
            mine, theirs = ("/".join(g.definition) for g in (self, other))
            raise PrivacyError(
                f"Promises with different privacy definitions ({mine} and {theirs}) neither compare nor add. "
                "Convert one of them first."
            )

    def _weakened(self, *, epsilon: float, delta: float, **changes: Any) -> Guarantee:
        """Return a weaker promise; one that may fail with certainty promises nothing."""
        if delta >= 1:
            epsilon, delta = math.inf, 0.0
        return replace(self, epsilon=epsilon, delta=delta, **changes)

    def __le__(self, other: Guarantee) -> bool:
        """Return whether this promise is at least as strong as the other."""
        self._same_definition(other)
        believable = self.simulated <= other.simulated and _WEAKNESS[self.basis] <= _WEAKNESS[other.basis]
        return believable and self.epsilon <= other.epsilon and self.delta <= other.delta

    def __ge__(self, other: Guarantee) -> bool:
        """Return whether this promise is at most as strong as the other."""
        return other <= self

    def __add__(self, other: Guarantee) -> Guarantee:
        """Return the promise of making both releases, by basic composition."""
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
        """Return the promise for a person with `ratings` ratings (or catalog entries), by group privacy.

        A promise about rating values does not cover which items were rated; the result lists that as assumed.
        """
        integer("ratings", ratings, least=1)
        if self.unit is Unit.USER:
            raise PrivacyError("A promise per user already covers the person's whole history.")
        silent = ("which items were rated is public",) if self.unit is Unit.VALUE else ()
        return self._weakened(
            unit=Unit.USER,
            epsilon=times_up(self.epsilon, ratings),
            delta=group_delta(self.epsilon, self.delta, ratings),
            assumes=(*self.assumes, *silent, f"a person has at most {ratings} ratings"),
        )

    def to_approximate(self, delta: float) -> Guarantee:
        """Return the same promise stated with a larger delta; epsilon is unchanged."""
        failure_probability("delta", delta)
        require(
            delta >= self.delta, "delta", delta, f"must be at least the promise's own delta ({self.delta:g})"
        )
        return replace(self, delta=delta)

    def to_replace(self) -> Guarantee:
        """Return the promise for replacing a secret: one removal and one addition."""
        if self.neighbors is Neighbors.REPLACE:
            return self
        return self._weakened(
            neighbors=Neighbors.REPLACE,
            epsilon=times_up(self.epsilon, 2),
            delta=group_delta(self.epsilon, self.delta, 2),
        )

    def as_simulated(self) -> Guarantee:
        """Return the promise marked as made with repeatable noise: it protects nobody."""
        return replace(self, simulated=True)

    def from_raw_ratings(self) -> Guarantee:
        """Return the promise of a fit that simulates a collection: whoever runs it reads the ratings."""
        if self.trust is not Trust.LOCAL or math.isinf(self.epsilon):
            return self
        return replace(self, notes=(RAW, *self.notes))

    @property
    def against(self) -> str:
        """Return against whom the promise holds, in words."""
        return _AGAINST_RAW if RAW in self.notes else TRUST_WORDS[self.trust]

    def sentence(self) -> str:
        """State the promise in one sentence for people."""
        if math.isinf(self.epsilon):
            return "NOT PRIVATE: no promise is made about anybody's data."
        level = f"ε = {number_above(self.epsilon)}"
        level += f", δ = {number_above(self.delta)}" if self.delta else ""
        more = f" and at most δ = {number_above(self.delta)} on top" if self.delta else ""
        factor = number_above(math.exp(self.epsilon) if self.epsilon < 700 else math.inf, digits=3)
        secret = _SECRETS[self.unit, self.neighbors]
        if self.conditions:
            secret = f"If {_public(self.conditions)}: {secret[0].lower()}{secret[1:]}"
        text = (
            f"{secret} changes the probability of anything released by a factor of at most {factor} (e^ε, "
            f"rounded up){more} ({level}; {_BASIS_WORDS[self.basis]}), against {self.against}."
        )
        text += f" T{RAW[1:]}." if RAW in self.notes else ""
        text += f" Delta {_TOO_LARGE}." if self.has_large_delta else ""
        for line in self.assumes:
            if line.startswith(EARLIER):
                earlier = line.removeprefix(EARLIER)
                text += f" It starts from an earlier release{earlier}, which is not counted here."
            if line.startswith(DRAWN):
                text += f" T{line[1:]}."
        if self.simulated:
            text = "SIMULATED NOISE, protects nobody. With real noise the promise would be: " + text
        return text

    def short(self) -> str:
        """State the promise in one line, where the label is a command away."""
        if math.isinf(self.epsilon):
            return "NOT PRIVATE: no promise is made."
        level = f"ε = {number_above(self.epsilon)}"
        level += f", δ = {number_above(self.delta)}" if self.delta else ""
        status = "SIMULATED, protects nobody" if self.simulated else self.rows()[0][1]
        doubt = "" if self.basis is Basis.PROVED else f" ({_BASIS_WORDS[self.basis]})"
        starts = any(line.startswith(EARLIER) for line in self.assumes)
        earlier = "; the release it starts from is not counted" * starts
        earlier += "; the data are synthetic" if any(line.startswith(DRAWN) for line in self.assumes) else ""
        earlier += "; this fit read the raw ratings" if RAW in self.notes else ""
        return f"{status}: {level} for {_SHORT_UNITS[self.unit]}{doubt}{earlier}."

    @property
    def conditions(self) -> tuple[str, ...]:
        """Return the facts taken from the data without noise: the promise holds only if they are public."""
        facts = (
            "the catalog" if line.startswith("the catalog") else "the scale" for line in self.condition_lines
        )
        return tuple(dict.fromkeys(facts))

    @property
    def condition_lines(self) -> tuple[str, ...]:
        """Return the lines under "Assumed" about facts taken from the data."""
        return tuple(line for line in self.assumes if line.endswith(TAKEN))

    def rows(self) -> list[tuple[str, str]]:
        """Return the lines of the label: name and value."""
        status = "NOT PRIVATE" if math.isinf(self.epsilon) else "SIMULATED" if self.simulated else "PRIVATE"
        if self.has_large_delta and self.is_private:
            status = f"HARDLY PRIVATE (delta is above {LARGE_DELTA:g})"
        if self.conditions and self.is_private:
            status += f", if {_public(self.conditions)}"
        lines = [
            ("Promise", status),
            ("epsilon", number_above(self.epsilon)),
            ("delta", number_above(self.delta) if self.delta else "0 (pure)"),
            ("Protects", UNIT_WORDS[self.unit]),
            ("Neighbors", f"data sets {_NEIGHBOR_WORDS[self.neighbors]} {_UNIT_NAMES[self.unit]}"),
            ("Against", self.against),
            ("Basis", _BASIS_WORDS[self.basis] + (f" ({self.proof})" if self.proof else "")),
            (
                "Noise",
                "simulated from a seed: protects nobody" if self.simulated else "operating system entropy",
            ),
        ]
        if math.isinf(self.epsilon):
            lines = [line for line in lines if line[0] in ("Promise", "epsilon", "Basis")]
        lines += [("Assumed", text) for text in self.assumes]
        lines += [("Note", f"delta {_TOO_LARGE}")] * self.has_large_delta
        lines += [("Note", text) for text in self.notes]
        return lines

    def label(self, title: str = "Privacy facts") -> str:
        """Return the label as text, one line for each fact, for logs and notebooks."""
        lines = [f"{what:<9}  {value}" for what, value in self.rows()]
        return "\n".join([title, *lines])

    def __repr__(self) -> str:
        """Describe the promise in one line; `label` says the rest."""
        status = self.rows()[0][1]
        if math.isinf(self.epsilon):
            return f"Guarantee({status})"
        cost = f"epsilon={number_above(self.epsilon)}, delta={number_above(self.delta)}"
        return f"Guarantee({status}; {cost}, {self.unit.value}, {self.trust.value}, {self.basis.value})"

    def _repr_html_(self) -> str:
        return html_table(self.rows(), caption="Privacy facts")

    def to_json(self) -> dict[str, Any]:
        """Return a JSON object that `from_json` reads back; an infinite epsilon is the text "inf"."""
        return {
            "epsilon": "inf" if math.isinf(self.epsilon) else self.epsilon,
            "delta": self.delta,
            "unit": self.unit.value,
            "neighbours": self.neighbors.value,
            "trust": self.trust.value,
            "assumes": list(self.assumes),
            "basis": self.basis.value,
            "proof": self.proof,
            "simulated": self.simulated,
            "notes": list(self.notes),
            "read_raw_ratings": RAW in self.notes,
            "large_delta": self.has_large_delta,
            "sentence": self.sentence(),
        }

    @classmethod
    def from_json(cls, record: dict[str, Any]) -> Self:
        """Read what `to_json` wrote; anything else is refused with one sentence."""
        try:
            simulated = record["simulated"]
            require(isinstance(simulated, bool), "simulated", simulated, "must be true or false")
            return cls(
                epsilon=math.inf if record["epsilon"] == "inf" else real("epsilon", record["epsilon"]),
                delta=real("delta", record["delta"]),
                unit=Unit(record["unit"]),
                neighbors=Neighbors(record["neighbours"]),
                trust=Trust(record["trust"]),
                assumes=_texts(record["assumes"]),
                basis=Basis(record["basis"]),
                proof=str(record["proof"]),
                simulated=simulated,
                notes=_texts(record["notes"]),
            )
        except (KeyError, TypeError, ValueError) as error:
            raise ParameterError(f"This is not a promise that discreet wrote: {error}.") from error


def weaker_basis(one: Basis, other: Basis) -> Basis:
    """Return the basis of two promises composed: the weaker one."""
    return max(one, other, key=_WEAKNESS.__getitem__)


def _public(names: tuple[str, ...]) -> str:
    return f"{' and '.join(names)} {'is' if len(names) == 1 else 'are'} public"


def _texts(values: object) -> tuple[str, ...]:
    if not isinstance(values, list) or not all(isinstance(value, str) for value in values):
        raise TypeError("a list of texts was expected")
    return tuple(values)
