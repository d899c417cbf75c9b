"""Tell devices what is asked of them: the mechanism, epsilon, the scale and the items; versioned."""

from __future__ import annotations

import hashlib
import json
import zlib
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self, final

from discreet.checks import ParameterError, integer, require
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

FORMAT, VERSION = "discreet-campaign", 1
DIGEST_BYTES = 8
PROOF = "proofs/local_collection.md"
#: The promise assumes what no collector can check and no device needs to prove.
DEVICES = "devices draw their own noise and answer once for an item"
_MAGIC = b"DSCC"
# A campaign is read by devices from strangers too: nothing larger is unpacked.
_MOST_BYTES = 1 << 26


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

    def __post_init__(self) -> None:
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
    def digest(self) -> bytes:
        """Return eight bytes that name this campaign and no other."""
        text = json.dumps(self.to_json(), sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).digest()[:DIGEST_BYTES]

    def to_json(self) -> dict[str, Any]:
        """Return a JSON object that `from_json` reads back."""
        return {
            "format": FORMAT,
            "version": VERSION,
            "name": self.name,
            "mechanism": mechanism_to_json(self.mechanism),
            "items": self.catalog.ids.tolist(),
            "max_reports": self.max_reports,
            "step": self.step,
        }

    @classmethod
    def from_json(cls, record: Any) -> Self:
        """Read what `to_json` wrote; another format or version is refused."""
        if not isinstance(record, dict) or record.get("format") != FORMAT:
            raise ParameterError("This is not a campaign that discreet wrote.")
        if record.get("version") != VERSION:
            raise ParameterError("This campaign was written by another version of discreet.")
        try:
            return cls(
                name=str(record["name"]),
                mechanism=mechanism_from_json(record["mechanism"]),
                catalog=Vocabulary.of(record["items"]),
                max_reports=record["max_reports"],
                step=record["step"],
            )
        except (KeyError, TypeError, ValueError) as error:
            raise ParameterError(f"This campaign cannot be read: {error}.") from error

    def to_bytes(self) -> bytes:
        """Return the campaign in few bytes."""
        text = json.dumps(self.to_json(), separators=(",", ":"))
        return _MAGIC + zlib.compress(text.encode(), level=9)

    @classmethod
    def from_bytes(cls, raw: bytes) -> Self:
        """Read what `to_bytes` wrote, and never unpack more than a campaign can hold."""
        if raw[: len(_MAGIC)] != _MAGIC:
            raise ParameterError("This is not a campaign that discreet wrote.")
        unpacker = zlib.decompressobj()
        try:
            text = unpacker.decompress(raw[len(_MAGIC) :], _MOST_BYTES)
            whole = unpacker.eof and not unpacker.unused_data
            record = json.loads(text) if whole else None
        except (zlib.error, ValueError, RecursionError) as error:
            raise ParameterError("This campaign is damaged.") from error
        return cls.from_json(record)


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
