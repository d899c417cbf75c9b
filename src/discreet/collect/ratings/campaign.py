"""Tell devices what is asked of them: the mechanism, epsilon, the scale and the items; versioned."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Self, final

from discreet.checks import ParameterError, integer, require
from discreet.collect.campaign_text import (
    FORMAT,
    VERSION,
    check_version,
    digest_of,
    pack,
    to_text,
    unpack,
    version_of,
)
from discreet.collect.draws import check_draws, rating_draws
from discreet.collect.ratings.mechanisms import (
    RatingMechanism,
    kind_of,
    mechanism_from_json,
    mechanism_to_json,
    unit_of,
)
from discreet.data.facts import PublicFacts
from discreet.data.vocabulary import Vocabulary
from discreet.privacy.guarantee import Basis, Guarantee, Neighbors, Trust

PROOF = "proofs/local_collection.md"
#: The promise assumes what no collector can check and no device needs to prove.
DEVICES = "devices draw their own noise and answer once for an item"


@final
@dataclass(frozen=True, kw_only=True)
class Campaign:
    """Ask people for ratings that are perturbed before they leave the device.

    Parameters:
        name: What the ledger and the label call it.
        mechanism: How each rating is perturbed; says epsilon and the scale.
        catalog: The items asked for, in the order in which reports number them.
        max_reports: The most reports one device sends; devices refuse to send more.
        step: The step of the rating scale; None if any value may occur.
        version: How it is written; version 1 has no tables, so only this library's own devices can answer.

    Example:
        >>> from discreet.privacy.mechanisms.bounded import BoundedLaplace
        >>> films = Campaign(name="films", mechanism=BoundedLaplace(epsilon=1.0, low=1, high=5),
        ...                  catalog=Vocabulary.of(["Alien", "Brazil"]), max_reports=20, step=1.0)
        >>> films.for_person(20).epsilon
        20.0
    """

    name: str
    mechanism: RatingMechanism
    catalog: Vocabulary
    max_reports: int
    step: float | None = None
    version: int = VERSION
    _told: bytes | None = field(default=None, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        check_version(self.version)
        require(bool(self.name), "name", self.name, "must not be empty")
        require(len(self.catalog) >= 1, "catalog", len(self.catalog), "must hold an item")
        integer("max_reports", self.max_reports, least=1)
        kind_of(self.mechanism)

    @property
    def facts(self) -> PublicFacts:
        """Return what is public about the ratings behind the reports."""
        return PublicFacts(
            n_items=len(self.catalog),
            low=self.mechanism.low,
            high=self.mechanism.high,
            step=self.step,
            max_per_user=self.max_reports,
        )

    def guarantee(self) -> Guarantee:
        """Return the promise of one report."""
        return local_guarantee(self.mechanism, self.facts)

    def for_person(self, reports: int) -> Guarantee:
        """Return what this means for a person who sends so many reports."""
        return self.guarantee().for_user(reports)

    @cached_property
    def numbers(self) -> dict[str | int, int]:
        """Return the number of every item: a device asks for one at a time."""
        return {item: number for number, item in enumerate(self.catalog.ids.tolist())}

    @cached_property
    def text(self) -> bytes:
        """Return the campaign as devices hash it."""
        return self._told or to_text(self.to_json())

    @cached_property
    def digest(self) -> bytes:
        """Return the bytes that name this campaign and no other: 32, or 8 in version 1."""
        return digest_of(self.text, self.version)

    @cached_property
    def old_digest(self) -> bytes:
        """Return the eight bytes that version 1 would name this campaign by: devices of then still answer."""
        return digest_of(self._parameters(1), 1)

    def to_json(self) -> dict[str, Any]:
        """Return a JSON object that `from_json` reads back, with the tables that devices draw from."""
        if self._told is not None:
            record: dict[str, Any] = json.loads(self._told)
            return record
        if self.version == 1:
            return self._parameters(1)
        draws = rating_draws(self.mechanism, self.step)
        return {**self._parameters(self.version), "kind": "ratings", "draws": draws}

    def _parameters(self, version: int) -> dict[str, Any]:
        return {
            "format": FORMAT,
            "version": version,
            "name": self.name,
            "mechanism": mechanism_to_json(self.mechanism),
            "items": self.catalog.ids.tolist(),
            "max_reports": self.max_reports,
            "step": self.step,
        }

    @classmethod
    def from_json(cls, record: Any) -> Self:
        """Read what `to_json` wrote; another format, or tables that promise something else, are refused."""
        version = version_of(record, "ratings")
        try:
            campaign = cls(
                name=str(record["name"]),
                mechanism=mechanism_from_json(record["mechanism"]),
                catalog=Vocabulary.of(record["items"]),
                max_reports=record["max_reports"],
                step=record["step"],
                version=version,
            )
            if version > 1:
                own = rating_draws(campaign.mechanism, campaign.step)
                check_draws(record["draws"], own, campaign.mechanism.epsilon)
        except (KeyError, TypeError, ValueError) as error:
            raise ParameterError(f"This campaign cannot be read: {error}.") from error
        # What was told is what devices hash, also where this machine computes other last digits.
        object.__setattr__(campaign, "_told", to_text(record))
        return campaign

    def to_bytes(self) -> bytes:
        """Return the campaign in few bytes."""
        return pack(self.text)

    @classmethod
    def from_bytes(cls, raw: bytes) -> Self:
        """Read what `to_bytes` wrote, and never unpack more than a campaign can hold."""
        return cls.from_json(unpack(raw))


def local_guarantee(mechanism: RatingMechanism, facts: PublicFacts, *extra: str) -> Guarantee:
    """Return the promise of one answer of `mechanism`; what is learned from answers costs nothing more."""
    return Guarantee(
        epsilon=mechanism.epsilon,
        unit=unit_of(mechanism),
        neighbors=Neighbors.REPLACE,
        trust=Trust.LOCAL,
        assumes=(*facts.assumptions(), *extra),
        basis=Basis.PROVED,
        proof=PROOF,
    )
