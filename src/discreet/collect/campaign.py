"""Define a rating campaign: mechanism, epsilon, scale and items, as one text that devices hash.

A campaign's digest is the SHA-256 of its text, exactly as sent: sorted keys, no spaces, ASCII only. Version 1
had no tables and a digest of eight bytes, too short against collisions; it can still be read.
"""

from __future__ import annotations

import hashlib
import json
import zlib
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal, Self, final

from discreet.collect import errors
from discreet.collect.blind_signatures import BlindPublicKey
from discreet.collect.draw_tables import check_draws, rating_draws
from discreet.collect.mechanisms import (
    RatingMechanism,
    kind_of,
    mechanism_from_json,
    mechanism_to_json,
    unit_of,
)
from discreet.core import integer, require
from discreet.core.checks import ParameterError
from discreet.data import PublicFacts, Vocabulary
from discreet.privacy import Assumption, Fact, Guarantee, Kind, assumptions_of

FORMAT = "discreet-campaign"
VERSION, VERSIONS = 2, (1, 2)
#: The length of the digest in each version.
DIGEST_BYTES = {1: 8, 2: 32}
_MAGIC = b"DSCC"
# Devices read untrusted campaigns: nothing larger is unpacked, and no zip bomb. Titles and numbers compress
# to a tenth at best.
_MOST_BYTES, _MOST_GROWTH, _ALWAYS_ALLOWED = 1 << 26, 50, 1 << 16

CampaignKind = Literal["ratings", "catalog"]


def check_version(version: int) -> None:
    """Raise for an unknown format version."""
    known = isinstance(version, int) and not isinstance(version, bool) and version in VERSIONS
    require(known, "version", version, must=f"be one of {VERSIONS}")


def to_text(record: dict[str, Any]) -> bytes:
    """Return the text of a campaign."""
    return json.dumps(record, sort_keys=True, separators=(",", ":")).encode()


def digest_of(record_or_text: dict[str, Any] | bytes, version: int) -> bytes:
    """Return the digest of a campaign."""
    text = record_or_text if isinstance(record_or_text, bytes) else to_text(record_or_text)
    return hashlib.sha256(text).digest()[: DIGEST_BYTES[version]]


def version_of(record: Any, kind: CampaignKind) -> int:
    """Return the version of a campaign of this kind; raise for anything else."""
    if not isinstance(record, dict) or record.get("format") != FORMAT:
        raise errors.NotACampaignError()
    version = record.get("version")
    if type(version) is not int or version not in VERSIONS:
        raise errors.DifferentVersion()
    if kind_of_record(record) != kind:
        raise errors.DifferentKind(kind=kind)
    return version


def kind_of_record(record: Any) -> Any:
    """Return the kind of a campaign; in version 1 all campaigns ask for ratings."""
    kind = record.get("kind") if isinstance(record, dict) else None
    return "ratings" if kind is None and isinstance(record, dict) and record.get("version") == 1 else kind


def invitations_to_json(key: BlindPublicKey | None) -> dict[str, Any]:
    """Return the entry about invitations in a campaign; none if anybody may send."""
    return {} if key is None else {"invitations": key.to_json()}


def invitations_from_json(record: Any) -> BlindPublicKey | None:
    """Read what `invitations_to_json` wrote."""
    return BlindPublicKey.from_json(record["invitations"]) if "invitations" in record else None


def pack(text: bytes) -> bytes:
    """Return the text compressed."""
    return _MAGIC + zlib.compress(text, level=9)


def unpack(raw: bytes) -> Any:
    """Return the record in compressed bytes, and never unpack more than a campaign can hold."""
    if raw[: len(_MAGIC)] != _MAGIC:
        raise errors.NotACampaignError()
    unpacker = zlib.decompressobj()
    try:
        most = min(_MOST_BYTES, max(_MOST_GROWTH * len(raw), _ALWAYS_ALLOWED))
        text = unpacker.decompress(raw[len(_MAGIC) :], most)
        whole = unpacker.eof and not unpacker.unused_data
        return json.loads(text) if whole else None
    except (zlib.error, ValueError, RecursionError) as error:
        raise errors.BadCampaign() from error


PROOF = "proofs/local_collection.md"
#: An assumption of the guarantee that no collector can check.
DEVICES = Assumption.of(Kind.USE, Fact.DEVICES)


class WrittenCampaign(ABC):
    """What all campaigns have: a text that devices hash, its digest, and its compressed form."""

    version: int = VERSION
    _text: bytes | None = None

    @abstractmethod
    def to_json(self) -> dict[str, Any]:
        """Return a JSON object that `from_json` reads back, with the tables that devices draw from."""

    @classmethod
    @abstractmethod
    def _read(cls, record: Any) -> Self:
        """Read what `to_json` wrote; raise for another format, or tables that break the guarantee."""

    @classmethod
    def from_json(cls, record: Any) -> Self:
        """Read what `to_json` wrote; raise for another format, or tables that break the guarantee."""
        try:
            campaign = cls._read(record)
        except ParameterError:
            raise
        except (KeyError, TypeError, ValueError, OverflowError) as error:
            raise errors.BadCampaign() from error
        # Devices hash the text as it was sent, even if this machine computes other last digits.
        object.__setattr__(campaign, "_text", to_text(record))
        return campaign

    @cached_property
    def text(self) -> bytes:
        """Return the campaign as devices hash it."""
        return self._text or to_text(self.to_json())

    @cached_property
    def digest(self) -> bytes:
        """Return the digest that identifies this campaign: 32 bytes, or 8 in version 1."""
        return digest_of(self.text, self.version)

    def to_bytes(self) -> bytes:
        """Return the campaign compressed."""
        return pack(self.text)

    @classmethod
    def from_bytes(cls, raw: bytes) -> Self:
        """Read what `to_bytes` wrote, and never unpack more than a campaign can hold."""
        return cls.from_json(unpack(raw))


@final
@dataclass(frozen=True, kw_only=True)
class Campaign(WrittenCampaign):
    """A request for ratings that are perturbed before they leave the device.

    Parameters:
        name: Its name in the ledger and on the label.
        mechanism: How each rating is perturbed; it defines epsilon and the scale.
        catalog: The items, in the order in which reports number them.
        max_reports: The most reports of one device; devices never send more.
        step: The step of the rating scale; None if any value may occur.
        version: The format version; version 1 has no tables, so only this library's own devices can answer.
        invitations: The key under which tokens of invited devices are signed; None if anybody may send.

    Example:
        >>> from discreet.privacy.mechanisms.bounded import BoundedLaplace
        >>> films = Campaign(name="films", mechanism=BoundedLaplace(epsilon=1.0, low=1, high=5),
        ...                  catalog=Vocabulary.of(["Alien", "Brazil"]), max_reports=20, step=1.0)
        >>> films.for_person(20).epsilon
        20.0

    Stability
        Stable.
    """

    name: str
    mechanism: RatingMechanism
    catalog: Vocabulary
    max_reports: int
    step: float | None = None
    version: int = VERSION
    invitations: BlindPublicKey | None = None
    _text: bytes | None = field(default=None, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        check_version(self.version)
        require(bool(self.name), "name", self.name, must="not be empty")
        require(len(self.catalog) >= 1, "catalog", len(self.catalog), must="hold an item")
        integer("max_reports", self.max_reports, least=1)
        kind_of(self.mechanism)
        if self.version == 1 and self.invitations is not None:
            # Its text would name no key, so the campaign would be open to anybody.
            raise errors.TooOldToInvite(version=VERSION)

    @property
    def facts(self) -> PublicFacts:
        """Return the public facts of the ratings behind the reports."""
        return PublicFacts(
            n_items=len(self.catalog),
            low=self.mechanism.low,
            high=self.mechanism.high,
            step=self.step,
            max_per_user=self.max_reports,
        )

    def guarantee(self) -> Guarantee:
        """Return the guarantee of one report."""
        return local_guarantee(self.mechanism, self.facts)

    def for_person(self, reports: int) -> Guarantee:
        """Return the guarantee of a user who sends so many reports."""
        return self.guarantee().for_user(reports)

    @cached_property
    def numbers(self) -> dict[str | int, int]:
        """Return the number of every item, for devices that look up one at a time."""
        return {item: number for number, item in enumerate(self.catalog.ids.tolist())}

    @cached_property
    def old_digest(self) -> bytes:
        """Return the digest of eight bytes in version 1, which older devices still send."""
        return digest_of(self._parameters(1), 1)

    def to_json(self) -> dict[str, Any]:
        """Return a JSON object that `from_json` reads back, with the tables that devices draw from."""
        if self._text is not None:
            record: dict[str, Any] = json.loads(self._text)
            return record
        if self.version == 1:
            return self._parameters(1)
        draws = rating_draws(self.mechanism, self.step)
        kept = invitations_to_json(self.invitations)
        return {**self._parameters(self.version), "kind": "ratings", "draws": draws, **kept}

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
    def _read(cls, record: Any) -> Self:
        version = version_of(record, "ratings")
        campaign = cls(
            name=str(record["name"]),
            mechanism=mechanism_from_json(record["mechanism"]),
            catalog=Vocabulary.of(record["items"]),
            max_reports=record["max_reports"],
            step=record["step"],
            version=version,
            invitations=invitations_from_json(record),
        )
        if version > 1:
            own = rating_draws(campaign.mechanism, campaign.step)
            check_draws(record["draws"], own, campaign.mechanism.epsilon)
        return campaign


def local_guarantee(mechanism: RatingMechanism, facts: PublicFacts, *extra: Assumption) -> Guarantee:
    """Return the guarantee of one answer of `mechanism`; learning from answers costs nothing more."""
    assumes = (*assumptions_of(facts), *extra)
    return Guarantee.of_reports(mechanism.epsilon, unit_of(mechanism), *assumes, proof=PROOF)
