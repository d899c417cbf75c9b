"""Say how a text file is written where that cannot be told from its first lines."""

from __future__ import annotations

import codecs
from dataclasses import dataclass, fields
from typing import Any, TypedDict, final

from discreet.checks import ParameterError, require

_UTF8 = "utf-8"


class TextOptions(TypedDict, total=False):
    """Say how a text file is written; what is absent (or None) is told from its first lines.

    `delimiter` stands between fields, `quote` around those that hold one ("none" if nothing is quoted),
    `escape` before a quote inside quotes (else it is doubled), `comment` begins lines to leave out.
    `skip_bad_lines` leaves out lines that do not fit, each judged by itself, and says how many.
    """

    delimiter: str | None
    quote: str | None
    escape: str | None
    encoding: str | None
    comment: str | None
    skip_bad_lines: bool


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Dialect:
    """Hold the options of a text file, checked."""

    delimiter: str | None = None
    quote: str | None = '"'
    escape: str | None = None
    encoding: str = _UTF8
    comment: str | None = None
    skip_bad_lines: bool = False

    def __post_init__(self) -> None:
        one_letter = "must be one letter"
        if self.delimiter is not None:
            known = len(self.delimiter) == 1 or self.delimiter == "::"
            require(known, "delimiter", self.delimiter, one_letter, "Or ::, as in MovieLens.")
        for name in ("quote", "escape"):
            value = getattr(self, name)
            require(value is None or len(value) == 1, name, value, one_letter, 'Say "none" for none.')
        require(self.comment != "", "comment", self.comment, "must not be empty")

    @property
    def is_careful(self) -> bool:
        """Tell whether lines must be looked at one by one before they are read as a table."""
        return self.skip_bad_lines or self.escape is not None or self.encoding != _UTF8


def take_dialect(options: dict[str, Any]) -> Dialect:
    """Take the text options out of `options`, which keeps the others, and return them."""
    said = {
        field.name: options.pop(field.name)
        for field in fields(Dialect)
        if options.get(field.name) is not None
    }
    for field in fields(Dialect):
        options.pop(field.name, None)
    for name in ("quote", "escape"):
        if said.get(name) == "none":
            said[name] = None
    if said.get("delimiter") in ("tab", "\\t"):
        said["delimiter"] = "\t"
    if "encoding" in said:
        said["encoding"] = _codec(said["encoding"])
    return Dialect(**said)


def _codec(name: str) -> str:
    try:
        return codecs.lookup(name).name
    except LookupError as error:
        raise ParameterError(f"encoding={name!r} is not known; latin-1 and cp1252 are common.") from error
