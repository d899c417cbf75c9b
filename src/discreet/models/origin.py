"""Where a model comes from: the day of its fit, the program that made it, and its ledger entry."""

from __future__ import annotations

import hashlib
import re
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING, Any, Self, final

from discreet.models.errors import MalformedPart

if TYPE_CHECKING:
    from discreet.privacy.ledger.records import Entry

_DIGEST = re.compile(r"[0-9a-f]{16}")
_LONGEST = 200


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """The day of a fit, the version and digest of the code, and the account and entry of a ledger.

    The day is public: an observer sees when a model appears. `account` is None if no ledger recorded the fit.
    """

    date: str
    version: str
    code: str
    account: str | None = None
    entry: int | None = None

    @classmethod
    def of_now(cls, entry: Entry | None) -> Self:
        """Return the origin of a fit that this program makes today."""
        from importlib.metadata import version

        day = datetime.now(UTC).date().isoformat()
        account, number = (None, None) if entry is None else (entry.dataset, entry.id)
        return cls(date=day, version=version("discreet"), code=code_digest(), account=account, entry=number)

    def to_json(self) -> dict[str, Any]:
        """Return the origin as JSON, without what is not known."""
        return {name: value for name, value in asdict(self).items() if value is not None}

    @classmethod
    def from_json(cls, record: dict[str, Any]) -> Self:
        """Return a stored origin.

        Raises:
            DataError: A field has another type or is too long.
        """
        texts = [record["date"], record["version"], record["code"], record.get("account", "")]
        entry = record.get("entry")
        sound = all(isinstance(text, str) and len(text) <= _LONGEST for text in texts)
        if not (sound and _DIGEST.fullmatch(texts[2]) and (entry is None or type(entry) is int)):
            raise MalformedPart(part="origin", rule="type")
        return cls(date=texts[0], version=texts[1], code=texts[2], account=record.get("account"), entry=entry)


@cache
def code_digest() -> str:
    """Return the first 16 digits of a SHA-256 digest of the package's Python files."""
    whole = hashlib.sha256()
    folder = resources.files("discreet")
    pending = [("", folder)]
    while pending:
        prefix, place = pending.pop()
        for one in sorted(place.iterdir(), key=lambda child: child.name):
            name = f"{prefix}/{one.name}"
            if one.is_dir():
                pending.append((name, one))
            elif one.name.endswith(".py"):
                whole.update(name.encode() + hashlib.sha256(one.read_bytes()).digest())
    return whole.hexdigest()[:16]
