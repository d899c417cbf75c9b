"""Facts that only a human knows: who is responsible for a release, why it is made, and for how long.

A short TOML file states them. A document marks each missing fact and never invents one.
"""

from __future__ import annotations

import json
import tomllib
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Self, final

from discreet.core import FileUnreadable, one_of
from discreet.dossier.errors import BadFact, UnknownFact

#: Sectors that the registry of deployments knows.
SECTORS = ("Technology", "Healthcare", "Education", "Government", "Energy", "Finance")
_LONGEST = 2_000

#: What each fact means, for messages and for the file that `to_toml` returns.
MEANINGS = {
    "controller": "the organization that is responsible for the data and the release",
    "contact": "who signs for it and answers questions: a name and an address",
    "purpose": "what the recommendations are for, and why this amount of privacy was chosen",
    "legal_basis": "the legal basis of the processing, such as consent or a legitimate interest",
    "region": "whose users the data describes, or whose law applies",
    "sector": f"one of {', '.join(SECTORS)}",
    "retention": "how long the data and the release are kept, and who may read the data meanwhile",
    "review": "the day of the next review, as YYYY-MM-DD",
}
#: What an owner may publish in addition. Scores of a plain `discreet evaluate` have no noise.
PUBLISHED = {
    "accuracy": "accuracy that you choose to publish, such as scores of `discreet evaluate --private`",
    "accuracy_by_group": "the same by group of users or items; each group needs a score with its own noise",
}
_KNOWN = {**MEANINGS, **PUBLISHED}


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class HumanFacts:
    """Facts about a deployment that neither a model nor a ledger contains; None marks a missing fact.

    Example:
        >>> HumanFacts(controller="Film Club").missing[:2]
        ('contact', 'purpose')
        >>> HumanFacts().text("controller")
        'MISSING (facts.toml: controller)'
    """

    controller: str | None = None
    contact: str | None = None
    purpose: str | None = None
    legal_basis: str | None = None
    region: str | None = None
    sector: str | None = None
    retention: str | None = None
    review: str | None = None
    accuracy: str | None = None
    accuracy_by_group: str | None = None

    def __post_init__(self) -> None:
        for name in _KNOWN:
            value = getattr(self, name)
            short = isinstance(value, str) and len(value.strip()) > 0 and len(value) <= _LONGEST
            if value is not None and not short:
                raise BadFact(name=name, form=f"a text of 1 to {_LONGEST} characters")
        if self.sector is not None:
            one_of("sector", self.sector, list(SECTORS))
        if self.review is not None:
            try:
                date.fromisoformat(self.review)
            except ValueError as error:
                raise BadFact(name="review", form="a day such as 2027-01-31") from error

    @classmethod
    def read(cls, path: Path) -> Self:
        """Return the facts in a TOML file.

        Raises:
            FileError: The file can't be read or isn't TOML.
            ParameterError: A fact has an unknown name or a value outside its domain.
        """
        try:
            found = tomllib.loads(path.read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise FileUnreadable(path=path, reason=str(error)) from error
        unknown = sorted(found.keys() - _KNOWN.keys())
        if unknown:
            raise UnknownFact(path=path, name=unknown[0], known=tuple(_KNOWN))
        # TOML has dates of its own; a reader may write one without quotes.
        return cls(
            **{name: value.isoformat() if isinstance(value, date) else value for name, value in found.items()}
        )

    @property
    def missing(self) -> tuple[str, ...]:
        """Return the names of the facts that were not stated."""
        return tuple(name for name in MEANINGS if getattr(self, name) is None)

    @property
    def published(self) -> dict[str, str]:
        """Return the accuracy that the owner chose to publish."""
        return {name: self.text(name) for name in PUBLISHED if getattr(self, name) is not None}

    def text(self, name: str) -> str:
        """Return a fact without its last period, or a mark that can't be mistaken for one."""
        value = getattr(self, name)
        return f"MISSING (facts.toml: {name})" if value is None else str(value).strip().removesuffix(".")

    def to_toml(self) -> str:
        """Return a TOML file with the stated facts; each missing fact is a comment, to be filled in."""
        return "".join(
            f"# {meaning[0].upper()}{meaning[1:]}.\n{'# ' * (getattr(self, name) is None)}{name} = "
            f"{json.dumps(getattr(self, name) or '', ensure_ascii=False)}\n"
            for name, meaning in _KNOWN.items()
        )
