"""Define a campaign that hides which items were rated, and its messages.

A device answers for every item it is asked about; its message lists only the items reported as rated. The
binary form of a message, all numbers little-endian, is

    "DSCA"  version u8  campaign 32 bytes (8 in version 1)  sender 16 bytes  asked u32  answers u32
    asked items u32 each (none if all devices are asked about all items)   items u32 each   codes u16 each
"""

from __future__ import annotations

import json
import math
import struct
from dataclasses import asdict, dataclass, field
from functools import cached_property
from typing import Any, NamedTuple, Self, final

import numpy as np
import numpy.typing as npt

from discreet.collect.blind_signatures import BlindPublicKey
from discreet.collect.campaign import (
    DEVICES,
    DIGEST_BYTES,
    FORMAT,
    VERSION,
    WrittenCampaign,
    digest_of,
    invitations_from_json,
    invitations_to_json,
    version_of,
)
from discreet.collect.draw_tables import cell_draws, check_draws
from discreet.collect.mechanisms import OpenCells
from discreet.collect.wire import SENDER_BYTES, ReportRefusal, ReportRefused
from discreet.core import integer, positive_finite, require
from discreet.data import PublicFacts, Vocabulary
from discreet.privacy import PARTICIPATION, Guarantee, Unit, assumptions_of, times_up
from discreet.privacy.mechanisms.cells import MOST_LEVELS, POINTS, CellMechanism, HiddenNumbers, HiddenStars
from discreet.privacy.mechanisms.local import (
    CELL_MECHANISMS,
    hidden_numbers,
    hidden_stars,
    mechanism_from,
    mechanism_name,
)
from discreet.report import user_who_answers

PROOF = "proofs/local_nuclear.md"
_MAGIC = b"DSCA"
_HEADERS = {version: struct.Struct(f"<4sB{size}s{SENDER_BYTES}sII") for version, size in DIGEST_BYTES.items()}
# Codes are sent in 16 bits.
_MOST_CODES = 1 << 16

Items = npt.NDArray[np.int64]


@final
@dataclass(frozen=True, kw_only=True)
class CatalogCampaign(WrittenCampaign):
    """Ask about every item of a catalog, or about `answers` items that each device draws at random.

    Parameters:
        name: Its name in the ledger and on the label.
        mechanism: How the answer for an item, rated or not, is perturbed; it defines epsilon per item and the
            scale.
        catalog: The items, in the order in which messages number them.
        answers: How many items a device answers for; None for all. Which ones does not depend on its ratings,
            and the message names them, so that an item that was not asked about does not count as unrated.
        invitations: The key under which tokens of invited devices are signed; None if anybody may send.

    Example:
        >>> films = CatalogCampaign.spread(100.0, catalog=Vocabulary.of(range(1000)), answers=25)
        >>> films.mechanism.epsilon, films.for_person().epsilon
        (4.0, 100.0)

    Stability
        Stable.
    """

    name: str
    mechanism: HiddenStars | HiddenNumbers
    catalog: Vocabulary
    answers: int | None = None
    invitations: BlindPublicKey | None = None
    _text: bytes | None = field(default=None, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        require(bool(self.name), "name", self.name, must="not be empty")
        known = isinstance(self.mechanism, HiddenStars | HiddenNumbers)
        require(known, "mechanism", type(self.mechanism).__name__, must="be HiddenStars or HiddenNumbers")
        require(len(self.catalog) >= 1, "catalog", len(self.catalog), must="hold an item")
        do = "Raise epsilon or lower points."
        require(self.codes <= _MOST_CODES, "codes", self.codes, must=f"be at most {_MOST_CODES}", do=do)
        if self.answers is not None:
            integer("answers", self.answers, least=1, most=len(self.catalog))

    @classmethod
    def spread(
        cls,
        total: float,
        *,
        catalog: Vocabulary,
        answers: int | None = None,
        facts: PublicFacts | None = None,
        name: str = "campaign",
    ) -> Self:
        """Return the campaign whose answers together cost a user at most `total`, in equal parts."""
        positive_finite("total", total)
        count = len(catalog) if answers is None else integer("answers", answers, least=1, most=len(catalog))
        epsilon = total / count
        while times_up(epsilon, count) > total:
            epsilon = math.nextafter(epsilon, 0.0)
        scale = facts or PublicFacts(n_items=len(catalog), step=1.0)
        mechanism: HiddenStars | HiddenNumbers
        if scale.step is None:
            mechanism = hidden_numbers(epsilon=epsilon, low=scale.low, high=scale.high)
        else:
            mechanism = hidden_stars(epsilon=epsilon, low=scale.low, high=scale.high, step=scale.step)
        return cls(name=name, mechanism=mechanism, catalog=catalog, answers=answers)

    @property
    def asked(self) -> int:
        """Return the number of items a device answers for."""
        return len(self.catalog) if self.answers is None else self.answers

    @cached_property
    def codes(self) -> int:
        """Return the number of codes."""
        return self.mechanism.outputs().size

    @property
    def facts(self) -> PublicFacts:
        """Return the public facts of the ratings behind the reports."""
        stars = isinstance(self.mechanism, HiddenStars) and self.mechanism.levels > 1
        step = self.mechanism.step if stars else None  # type: ignore[union-attr]
        return PublicFacts(
            n_items=len(self.catalog), low=self.mechanism.low, high=self.mechanism.high, step=step
        )

    def guarantee(self) -> Guarantee:
        """Return the guarantee of one rating, with a note on a user's whole history."""
        note = user_who_answers(self.asked, times_up(self.mechanism.epsilon, self.asked))
        return cell_guarantee(self.mechanism, self.facts, note)

    def for_person(self) -> Guarantee:
        """Return the guarantee of a user's whole history: every answer counts, rated or not."""
        return cell_guarantee(self.mechanism, self.facts).for_user(self.asked)

    @cached_property
    def old_digest(self) -> bytes:
        """Return the digest of eight bytes in version 1, which older devices still send."""
        record: dict[str, Any] = {
            "name": self.name,
            "mechanism": [type(self.mechanism).__name__, asdict(self.mechanism)],
            "items": self.catalog.ids.tolist(),
            "answers": self.answers,
        }
        return digest_of(record, 1)

    def to_json(self) -> dict[str, Any]:
        """Return a JSON object that `from_json` reads back, with the tables that devices draw from."""
        if self._text is not None:
            record: dict[str, Any] = json.loads(self._text)
            return record
        return {
            "format": FORMAT,
            "version": VERSION,
            "kind": "catalog",
            "name": self.name,
            "mechanism": {"name": mechanism_name(self.mechanism), **asdict(self.mechanism)},
            "items": self.catalog.ids.tolist(),
            "answers": self.answers,
            "draws": cell_draws(self.mechanism),
            **invitations_to_json(self.invitations),
        }

    @classmethod
    def _read(cls, record: Any) -> Self:
        version_of(record, "catalog")
        mechanism = mechanism_from(record["mechanism"], CELL_MECHANISMS)
        campaign = cls(
            name=str(record["name"]),
            mechanism=mechanism,
            catalog=Vocabulary.of(record["items"]),
            answers=record["answers"],
            invitations=invitations_from_json(record),
        )
        check_draws(record["draws"], cell_draws(mechanism), mechanism.epsilon)
        return campaign


class CatalogReport(NamedTuple):
    """A checked message: increasing item numbers, and codes, which are indices of outputs.

    Example:
        >>> import numpy as np
        >>> report = CatalogReport(sender=b"one", asked=None, items=np.array([3]), codes=np.array([0]))
        >>> report.items.tolist()
        [3]

    Stability
        Stable.
    """

    sender: bytes
    asked: Items | None
    items: Items
    codes: Items


def write(campaign: CatalogCampaign, message: CatalogReport) -> bytes:
    """Return the binary form."""
    asked = np.zeros(0, "<u4") if message.asked is None else message.asked.astype("<u4")
    head = _HEADERS[VERSION].pack(
        _MAGIC, VERSION, campaign.digest, message.sender, asked.size, message.items.size
    )
    return (
        head + asked.tobytes() + message.items.astype("<u4").tobytes() + message.codes.astype("<u2").tobytes()
    )


def read(campaign: CatalogCampaign, raw: bytes) -> CatalogReport:
    """Read an untrusted message; raise `ReportRefused` with the reason unless all of it is valid."""
    if not isinstance(raw, bytes) or len(raw) <= len(_MAGIC) or raw[:4] != _MAGIC:
        raise ReportRefused(ReportRefusal.MALFORMED)
    header = _HEADERS.get(raw[len(_MAGIC)])
    if header is None:
        raise ReportRefused(ReportRefusal.WRONG_VERSION)
    if len(raw) < header.size:
        raise ReportRefused(ReportRefusal.MALFORMED)
    _, version, digest, sender, n_asked, n_answers = header.unpack_from(raw)
    if digest != (campaign.old_digest if version == 1 else campaign.digest):
        raise ReportRefused(ReportRefusal.WRONG_CAMPAIGN)
    if len(raw) != header.size + 4 * n_asked + 6 * n_answers:
        raise ReportRefused(ReportRefusal.MALFORMED)
    place = header.size + 4 * n_asked
    asked = np.frombuffer(raw, "<u4", n_asked, header.size).astype(np.int64)
    items = np.frombuffer(raw, "<u4", n_answers, place).astype(np.int64)
    codes = np.frombuffer(raw, "<u2", n_answers, place + 4 * n_answers).astype(np.int64)
    if n_asked != (0 if campaign.answers is None else campaign.answers):
        raise ReportRefused(ReportRefusal.MALFORMED)
    for numbers in (asked, items):
        if numbers.size and numbers.max() >= len(campaign.catalog):
            raise ReportRefused(ReportRefusal.OUT_OF_RANGE)
        if (np.diff(numbers) <= 0).any():
            raise ReportRefused(ReportRefusal.REPLAYED)
    foreign = campaign.answers is not None and not np.isin(items, asked, assume_unique=True).all()
    if foreign or (codes.size and codes.max() >= campaign.codes):
        raise ReportRefused(ReportRefusal.OUT_OF_RANGE)
    return CatalogReport(sender, None if campaign.answers is None else asked, items, codes)


def cell_guarantee(mechanism: CellMechanism, facts: PublicFacts, *notes: str) -> Guarantee:
    """Return the guarantee of the answer for one item; learning from answers costs nothing more."""
    assumes, known = (*assumptions_of(facts), PARTICIPATION, DEVICES), math.isfinite(mechanism.epsilon)
    return Guarantee.of_reports(
        mechanism.epsilon, Unit.RATING, *assumes, proof=PROOF, notes=notes if known else ()
    )


def levels_of(facts: PublicFacts) -> int | None:
    """Return how many ratings the public scale has, or None if it is continuous or has very many."""
    if facts.step is None:
        return None
    levels = round((facts.high - facts.low) / facts.step) + 1
    return levels if 2 <= levels <= MOST_LEVELS else None


def cell_mechanism(epsilon: float, facts: PublicFacts) -> CellMechanism:
    """Return stars for a scale with few levels and numbers for any other; without noise if epsilon is inf.

    A scale of one value is that of interactions: a report is then one bit per item.
    """
    levels = levels_of(facts)
    if math.isinf(epsilon):
        return OpenCells(low=facts.low, high=facts.high, points=levels or POINTS)
    if facts.low == facts.high:
        return hidden_stars(epsilon=epsilon, low=facts.low, high=facts.high, step=1.0)
    if levels is not None and facts.step is not None:
        return hidden_stars(epsilon=epsilon, low=facts.low, high=facts.high, step=facts.step)
    return hidden_numbers(epsilon=epsilon, low=facts.low, high=facts.high)
