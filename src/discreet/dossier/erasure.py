"""Statements about erasure: what live releases can still reveal about a user whose data were deleted.

Deleting rows doesn't change what was released before. A ledger knows every release about a dataset, so it
bounds what is left of one user in all of them together (proofs/erasure.md).
"""

from __future__ import annotations

import json
import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import reduce
from operator import add
from typing import Any, final

from discreet.core import integer
from discreet.dossier.errors import NoReleases, UnknownEntries
from discreet.dossier.evidence import for_people
from discreet.privacy import Guarantee, Ledger, Neighbors, Unit
from discreet.privacy.ledger.ledger import Account
from discreet.privacy.ledger.records import Entry
from discreet.report import assumption_text, number_above, percent, posterior, under_condition

FORMAT = "discreet-erasure"
PROOF = "proofs/erasure.md"
# Weights bound the releases of a fixed plan below the whole budget.
_SIZES = "the epsilons of the releases weren't chosen from earlier releases"


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Remaining:
    """What all live releases with one privacy definition reveal at most about one erased user."""

    guarantee: Guarantee
    accounts: int

    @property
    def is_bounded(self) -> bool:
        """Return whether the releases bound what the removal of a whole history changes."""
        removes = self.guarantee.unit is Unit.USER and self.guarantee.neighbors is Neighbors.ADD_OR_REMOVE
        return self.guarantee.is_private and removes and math.isfinite(self.amount[0])

    @property
    def amount(self) -> tuple[float, float]:
        """Return the epsilon and delta of all of the user's accounts together."""
        epsilon, delta, _ = for_people(self.guarantee, self.accounts)
        return epsilon, delta

    def sentence(self) -> str:
        """Return what an attacker can still find out."""
        if not self.is_bounded:
            return (
                "Some live releases don't bound what is left of a user's whole history: they have no "
                "guarantee, or protect less than a user. Withdraw them."
            )
        epsilon, delta = self.amount
        said = (
            "From all of these releases together, an attacker who considers both cases equally likely is "
            f"right at most {percent(posterior(epsilon, delta))} of the time about whether the user's data "
            f"were used (epsilon {number_above(epsilon)}, delta {number_above(delta)})."
        )
        return under_condition(self.guarantee, said)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Erasure:
    """A statement about one erased user. It names no user: `reference` is the data owner's own number."""

    dataset: str
    reference: str
    accounts: int
    made: datetime
    live: tuple[Entry, ...]
    withdrawn: tuple[Entry, ...]
    remaining: tuple[Remaining, ...]
    account: Account = Account.ADDING

    @property
    def is_bounded(self) -> bool:
        """Return whether every live release bounds what is left of the user."""
        return all(one.is_bounded for one in self.remaining)

    def to_json(self) -> dict[str, Any]:
        """Return the statement as one JSON object."""
        return {
            "format": FORMAT,
            "version": 1,
            "dataset": self.dataset,
            "reference": self.reference,
            "accounts": self.accounts,
            "made": self.made.isoformat(timespec="seconds"),
            "account": self.account.value,
            "bounded": self.is_bounded,
            "live": [_release(entry) for entry in self.live],
            "withdrawn": [_release(entry) for entry in self.withdrawn],
            "remaining": [_remaining(one) for one in self.remaining],
            "assumes": [
                "the user's rows were deleted and enter no later release",
                "the ledger recorded every release about this dataset",
                "no copy of a withdrawn release is left",
                "the conditions on the label of every live release are true",
                *([_SIZES] * (self.account != Account.ADDING)),
            ],
            "proof": PROOF,
        }

    def text(self) -> str:
        """Return the statement as the content of a file."""
        return json.dumps(self.to_json(), indent=1) + "\n"


def _release(entry: Entry) -> dict[str, Any]:
    promise = entry.guarantee
    return {
        "entry": entry.id,
        "date": entry.time.date().isoformat(),
        "what": entry.what,
        "epsilon": _number(promise.epsilon),
        "delta": promise.delta,
        "unit": promise.unit.value,
    }


def _remaining(one: Remaining) -> dict[str, Any]:
    epsilon, delta = one.amount
    unit, neighbors, trust = one.guarantee.definition
    found = {
        "unit": unit.value,
        "neighbors": neighbors.value,
        "trust": trust.value,
        "bounded": one.is_bounded,
    }
    conditions = [assumption_text(condition) for condition in one.guarantee.conditions]
    return {
        **found,
        "epsilon": _number(epsilon),
        "delta": delta,
        "conditions": conditions,
        "sentence": one.sentence(),
    }


def _number(value: float) -> float | str:
    return "inf" if math.isinf(value) else value


def erasure(
    ledger: Ledger,
    dataset: str,
    *,
    accounts: int = 1,
    withdrawn: Collection[int] = (),
    reference: str = "",
    made: datetime | None = None,
) -> Erasure:
    """Return a statement about one erased user, from the ledger alone.

    Entries that are `withdrawn` don't count; they must be in the ledger. A release that failed or is open
    counts: its noise may have been drawn. A user with several accounts is a group of that size.

    Raises:
        ParameterError: The ledger has no release about this dataset, or no such entry.
    """
    integer("accounts", accounts, least=1)
    entries = ledger.entries(dataset)
    if not entries:
        raise NoReleases(dataset=dataset, known=tuple(sorted({entry.dataset for entry in ledger.entries()})))
    unknown = sorted(set(withdrawn) - {entry.id for entry in entries})
    if unknown:
        raise UnknownEntries(dataset=dataset, entries=tuple(unknown))
    budget = ledger.budget(dataset)
    live = tuple(entry for entry in entries if entry.id not in withdrawn)
    return Erasure(
        dataset=dataset,
        reference=reference,
        accounts=accounts,
        made=datetime.now(UTC) if made is None else made,
        live=live,
        account=Account.ADDING if budget is None else budget.account,
        withdrawn=tuple(entry for entry in entries if entry.id in withdrawn),
        remaining=tuple(
            Remaining(guarantee=total, accounts=accounts) for total in _totals(ledger, dataset, live)
        ),
    )


def _totals(ledger: Ledger, dataset: str, entries: Collection[Entry]) -> list[Guarantee]:
    """Return all releases with each privacy definition together, as the dataset's account adds them up."""
    groups: dict[object, list[Entry]] = {}
    for entry in entries:
        groups.setdefault(entry.guarantee.definition, []).append(entry)
    return [_total(ledger, dataset, group) for group in groups.values()]


def _total(ledger: Ledger, dataset: str, entries: Sequence[Entry]) -> Guarantee:
    """Return the guarantee of these releases together, with the conditions of all of them."""
    total = reduce(add, (entry.guarantee for entry in entries))
    if not total.is_private:
        return total
    epsilon, delta = ledger.together(dataset, entries)
    return replace(total, epsilon=epsilon, delta=delta)
