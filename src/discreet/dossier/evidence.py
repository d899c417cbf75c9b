"""Collect what a dossier rests on: the label, the ledger, the last audit, and human facts.

Everything is read from files that exist already. Nothing is computed from the data.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self, final

from discreet.audit.last_audits import LastAudit, last_audit, unaudited
from discreet.core.checks import visible
from discreet.dossier.errors import NoGuarantee, NoLedgerEntry
from discreet.dossier.facts import HumanFacts
from discreet.dossier.signals import Signals
from discreet.privacy import Guarantee, Unit, group_delta, times_up
from discreet.report import (
    NOT_AUDITED,
    Odds,
    listed_releases,
    number_above,
    number_below,
    percent,
    posterior,
    under_condition,
)
from discreet.synthesis.labels import DRAWN_FROM

if TYPE_CHECKING:
    from collections.abc import Callable

    from discreet.privacy import Ledger


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerRecord:
    """What a ledger states about a release: its entry, and the budget that it was spent from."""

    dataset: str
    account: str
    number: int
    of: int
    date: str
    spent: str
    budget: str
    reason: str
    left: str
    counts: str

    @classmethod
    def find(cls, ledger: Ledger, label: Mapping[str, Any], dataset: str | None) -> Self:
        """Return the record of the release with this label.

        The label of a recorded fit names its account and entry. An earlier file names neither: then the
        latest entry with its name and guarantee counts.

        Raises:
            ParameterError: The ledger has no such entry, or several datasets have one.
        """
        guarantee = Guarantee.from_json(label["guarantee"])
        level = (guarantee.epsilon, guarantee.delta, guarantee.definition)
        named = label.get("origin")
        named = named if isinstance(named, dict) and "entry" in named else None
        found = [
            entry
            for entry in ledger.entries(dataset)
            if (entry.guarantee.epsilon, entry.guarantee.delta, entry.guarantee.definition) == level
            and (entry.what == label["name"] or "release" in label.get("parameters", {}))
            and (named is None or (entry.dataset, entry.id) == (named.get("account"), named["entry"]))
        ]
        names = {entry.dataset for entry in found}
        if not found:
            raise NoLedgerEntry()
        if len(names) > 1:
            raise NoLedgerEntry(names=tuple(sorted(names)))
        (name,) = names
        entries, budget, balance = ledger.entries(name), ledger.budget(name), ledger.balance(name)
        total = [_level(one.epsilon, one.delta) for one in ledger.spent_by_definition(name).values()]
        return cls(
            dataset=name,
            account="adding" if budget is None else budget.account.value,
            number=1 + [entry.id for entry in entries].index(found[-1].id),
            of=len(entries),
            date=found[-1].time.date().isoformat(),
            spent=_level(*balance.spent) if balance is not None else " and ".join(total),
            budget="none set" if budget is None else _level(budget.guarantee.epsilon, budget.guarantee.delta),
            reason="" if budget is None else budget.reason,
            left="not limited" if balance is None else _level(*balance.left, number_below),
            counts="all releases"
            if budget is None or budget.renews is None
            else f"any {budget.renews.window}",
        )

    def rows(self) -> list[tuple[str, str]]:
        """Return the record as lines of a label."""
        return [
            ("Release", f"{self.number} of {self.of} on {self.dataset!r}, recorded on {self.date}"),
            ("Budget", f"{self.budget}; counts: {self.counts}; account: {self.account}"),
            ("Spent", self.spent),
            ("Left", self.left),
        ]

    def sentence(self) -> str:
        """Return the record in words."""
        return (
            f"Release {self.number} of {self.of} on dataset {self.dataset!r}, recorded on {self.date}. All "
            f"releases of this dataset spent {self.spent}. Budget: {self.budget}. Its stated reason: "
            f"{visible(self.reason) or 'none'}. Left: {self.left}. The "
            f"account adds up releases by the rule {self.account!r} and counts: {self.counts}."
        )


def _level(epsilon: float, delta: float, number: Callable[[float], str] = number_above) -> str:
    return "no guarantee" if math.isinf(epsilon) else f"epsilon {number(epsilon)}, delta {number(delta)}"


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """Everything that the documents of one release are written from.

    Raises:
        ParameterError: The release protects no users, so there is nothing to sign.
    """

    label: Mapping[str, Any]
    facts: HumanFacts
    ledger: LedgerRecord | None
    signed: str
    file: str
    sha256: str
    version: str
    # What a model orders items by. Synthetic data have none.
    signals: Signals | None = None

    def __post_init__(self) -> None:
        if not self.guarantee.is_private:
            raise NoGuarantee(what="a dossier")

    @property
    def guarantee(self) -> Guarantee:
        """Return the guarantee on the label."""
        return Guarantee.from_json(self.label["guarantee"])

    @property
    def odds(self) -> Odds:
        """Return what the best attacker can achieve."""
        return Odds.of(self.guarantee)

    def for_people(self, people: int) -> str:
        """Return the guarantee of a household in words."""
        return for_people(self.guarantee, people)[2]

    @property
    def releases(self) -> list[tuple[str, str, str, str]]:
        """Return each release by name, mechanism, noise and contribution bound, from the certificate."""
        return listed_releases(self.label)

    @property
    def attacked(self) -> str:
        """Return the last audit in words."""
        return audit_sentence(self.label, last_audit(*audited_as(self.label)))

    @property
    def facts_digest(self) -> str:
        """Return the SHA-256 of the public facts that the model was fitted with."""
        text = json.dumps(self.label.get("facts", {}), sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()


# At most this many letters of a setting are shown.
_LONGEST = 36


def audited_as(label: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    """Return a file's model and its settings. Synthetic data have those of the model that drew them."""
    name, parameters = str(label["name"]), label.get("parameters", {})
    if not name.startswith(DRAWN_FROM):
        return name, parameters
    feedback = "explicit" if "rating" in label["provenance"] else "implicit"
    return name.removeprefix(DRAWN_FROM), {"for_synthesis": True, "feedback": feedback}


def audit_sentence(label: Mapping[str, Any], last: LastAudit | None) -> str:
    """Return the last audit in words, with the audited settings and what this model has instead."""
    if last is None:
        return NOT_AUDITED
    other = unaudited(last.subject, audited_as(label)[1])
    changed = ", ".join(f"{key}={_short(value)}" for key, value in other.items())
    has = f" The audited model had other settings; this one has {changed}." if changed else ""
    return f"Last audit, of {last.subject}: {last.sentence()}{has}"


def _short(value: Any) -> str:
    """Return a setting as a few visible letters. The file may come from an unknown author."""
    text = value if isinstance(value, str) else json.dumps(value)
    return visible(text if len(text) <= _LONGEST else f"{text[:_LONGEST]}...")


def for_people(guarantee: Guarantee, people: int) -> tuple[float, float, str]:
    """Return epsilon, delta and a sentence for as many secrets together, by group privacy.

    A group whose delta reaches 1 has no guarantee: its epsilon is infinite.
    """
    epsilon = times_up(guarantee.epsilon, people)
    delta = group_delta(guarantee.epsilon, guarantee.delta, people)
    noun = {Unit.USER: "users", Unit.RATING: "ratings", Unit.VALUE: "rating values"}[guarantee.unit]
    if delta >= 1:
        return math.inf, 1.0, f"For {people} {noun} together, the guarantee states nothing."
    chance = percent(posterior(epsilon, delta))
    said = f"{_level(epsilon, delta)}. The attacker is right at most {chance} of the time."
    return epsilon, delta, under_condition(guarantee, f"For {people} {noun} together: {said}")
