"""Declare how a file of ratings is written: a frozen, public value with a TOML form.

A schema and the bytes of a row decide what is read from that row, and nothing else does. A schema that was
guessed from a file lists the guessed fields in `guessed`: a guarantee then applies if these are public.
"""

from __future__ import annotations

import codecs
import importlib
import json
import tomllib
import zoneinfo
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, NamedTuple, Self, final, get_args

from discreet.core import (
    BrokenRule,
    NoSuchFile,
    finite,
    integer,
    one_of,
    positive_finite,
    require,
    write_whole,
)
from discreet.data import errors
from discreet.data.facts import LEAST_WEIGHT, MOST_WEIGHT, Duplicates

WITH_COLUMNS = ("text", "json", "parquet", "frame", "cells")
FORMATS = ("text", "json", "parquet", "frame", "cells", "netflix", "lightgcn", "sasrec", "jester")
LAYOUTS = ("movielens", "netflix", "lightgcn", "recbole", "sasrec")
ROLES = ("user", "item", "rating", "time", "weight")
ID_TYPES = ("text", "integer")
DAY_FIRST, MONTH_FIRST = "day-first", "month-first"
POSITION, UTC_ZONE = "position", "UTC"
UTF_8, UTF_16 = "utf-8", ("utf-16-le", "utf-16-be")
NOT_PACKED, PACKED_GZIP, PACKED_ZIP = "none", "gzip", "zip"
_ROWS, _ZEROS, _SCALES = ("drop", "reject"), ("ratings", "missing"), ("reject", "clip", "drop")
_DECIMALS = ("either", "point", "comma")


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Schema:
    """The declared form of a file of ratings, and the rules for its rows.

    Attributes:
        format: Text with fields, JSON lines, Parquet, a data frame, cells of a spreadsheet or database, or a
            layout that is not a table.
        encoding: UTF-8, a code page of one byte a letter, UTF-16-LE or UTF-16-BE.
        packed: What packs the file: gzip, zip or none. If it is empty, .gz or .zip in its name decides.
        delimiter: The text between fields.
        quote: The letter around fields that contain a delimiter; empty if nothing is quoted.
        escape: The letter before a quote inside quotes; a quote may also be doubled.
        comment: The beginning of lines to skip.
        skip_rows: The number of rows above the header, such as a title; they belong to no user.
        header: Whether the first line contains the names of the columns.
        multiline: Whether a quoted field may contain line breaks. Rows then depend on the lines before them.
        columns: The names of all columns of a text table, in order.
        keys: Columns that are keys in the path of a file, as `day` in `day=2025-01-31/ratings.csv`.
        user, item, rating, time, weight: The column of each role; empty if there is none.
        user_type, item_type: IDs are text, or whole numbers in the usual form.
        date_order: Whether the day or the month is first in dates whose year is last.
        time_format: A pattern such as %d.%m.%Y, or "position" for whole numbers that only give an order.
            If it is empty, whole numbers and usual dates are read.
        time_zone: The zone of dates that are written without one, such as Europe/Berlin.
        decimal: The decimal mark: a point, a comma, or either (a comma before one or two digits).
        duplicates: What to do with rows of the same user and item.
        zeros: Whether ratings of 0 are ratings, or mean that a rating is missing.
        bad_rows: Drop rows that cannot be read, or reject the file.
        off_scale: Reject, clip or drop ratings outside a declared scale.
        unknown_items: Reject the file, or drop rows of items that a declared catalog doesn't have.
        only: Conditions such as event=buy: other rows are skipped. Of several for one column, one must hold.
        weights: What rows with a value of one column weigh, such as event=buy:5. Other rows are skipped, and
            so are those of weight 0.
        low, high, step: The rating scale.
        catalog: A file with the IDs of all items.
        max_per_user: The cap on the ratings of a user.
        guessed: The fields that were read from the data.
    """

    format: str = "text"
    encoding: str = UTF_8
    packed: str = ""
    delimiter: str = ","
    quote: str = '"'
    escape: str = ""
    comment: str = ""
    skip_rows: int = 0
    header: bool = True
    multiline: bool = False
    columns: tuple[str, ...] = ()
    keys: tuple[str, ...] = ()
    user: str = ""
    item: str = ""
    rating: str = ""
    time: str = ""
    weight: str = ""
    user_type: str = "text"
    item_type: str = "text"
    date_order: str = ""
    time_format: str = ""
    time_zone: str = UTC_ZONE
    decimal: str = "either"
    duplicates: Duplicates = "refuse"
    zeros: str = "ratings"
    bad_rows: str = "drop"
    off_scale: str = "reject"
    unknown_items: str = "reject"
    only: tuple[str, ...] = ()
    weights: tuple[str, ...] = ()
    low: float | None = None
    high: float | None = None
    step: float | None = None
    catalog: str = ""
    max_per_user: int | None = None
    guessed: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "encoding", stateless(self.encoding))
        object.__setattr__(self, "columns", tuple(self.columns))
        object.__setattr__(self, "keys", tuple(self.keys))
        object.__setattr__(self, "only", tuple(self.only))
        object.__setattr__(self, "weights", tuple(self.weights))
        if self.weights and not self.weight:
            object.__setattr__(self, "weight", WeightRule.of(self.weights[0]).column)
        object.__setattr__(self, "guessed", tuple(dict.fromkeys(self.guessed)))
        rules = self._rules()
        for name, choices in _CHOICES.items():
            one_of(name, getattr(self, name), choices)
        for is_kept, name, value, must, advice in rules:
            require(is_kept, name, value, must=must, do=advice)
        if self.rating and self.weight:
            raise errors.RatingAndWeight()
        if self.time_zone != UTC_ZONE:
            self._check_zone()
        for name in ("low", "high"):
            if getattr(self, name) is not None:
                finite(name, getattr(self, name))
        if self.step is not None:
            positive_finite("step", self.step)
        integer("skip_rows", self.skip_rows, least=0)
        if self.max_per_user is not None:
            integer("max_per_user", self.max_per_user, least=1)

    def _rules(self) -> list[tuple[bool, str, object, str, str]]:
        """Return whether each rule is kept, which field it is about, its value, the rule, and advice."""
        delimiter = self.delimiter == "::" or (len(self.delimiter) == 1 and self.delimiter not in "\r\n")
        letter, none = "be one letter of ASCII", 'Or "none".'
        played = list(self.roles.values())
        is_text = self.format == "text" and bool(self.columns)
        known = {*self.columns, *self.keys} if is_text else set(played)
        absent = [name for name in played if name not in known]
        unknown = sorted(set(self.guessed) - set(_DEFAULTS))
        odd = [rule for rule in self.only if not all(map(str.strip, rule.partition("=")))]
        unread = [name for name in self.conditions if is_text and name not in known]
        has_lines = not self.skip_rows or self.format in ("text", "cells")
        rules = [("only", self.only), ("weights", self.weights)]
        return [
            (delimiter, "delimiter", self.delimiter, "be one letter", "Or ::, as in MovieLens."),
            (len(self.quote.encode()) <= 1, "quote", self.quote, letter, none),
            (len(self.escape.encode()) <= 1, "escape", self.escape, letter, none),
            ("\n" not in self.comment, "comment", self.comment, "not contain a line break", ""),
            (len(set(played)) == len(played), "columns", played, "differ from role to role", ""),
            (not absent, "columns", absent, "be among the columns of the schema", ""),
            (not unknown, "guessed", unknown, "name fields of the schema", ""),
            (has_lines, "skip_rows", self.skip_rows, "be used with text or spreadsheets", ""),
            (not odd, "only", odd, "be COLUMN=VALUE", "As in event=buy."),
            (not unread, "only", unread, "name columns of the schema", ""),
            *(
                (
                    not rule or self.format in WITH_COLUMNS,
                    name,
                    list(rule),
                    "be used with tables, whose columns have names",
                    "",
                )
                for name, rule in rules
            ),
            *self._rules_of_weights(),
        ]

    def _rules_of_weights(self) -> list[tuple[bool, str, object, str, str]]:
        """Return the same of the weights by value."""
        rules, example = [WeightRule.of(text) for text in self.weights], "As in event=view:1,cart:3,buy:5."
        odd = [
            text for text, rule in zip(self.weights, rules, strict=True) if not (rule.column and rule.value)
        ]
        columns = sorted({rule.column for rule in rules} | ({self.weight} if rules else set()))
        values = [rule.value for rule in rules]
        far = [
            rule.number
            for rule in rules
            if not (rule.number == 0 or LEAST_WEIGHT <= rule.number <= MOST_WEIGHT)
        ]
        within = f"be 0, or from {LEAST_WEIGHT:g} to {MOST_WEIGHT:g}"
        none = bool(rules) and not any(rule.number for rule in rules)
        return [
            (not odd, "weights", next(iter(odd), None), "be COLUMN=VALUE:NUMBER", example),
            (len(columns) < 2, "weights", columns, "be about one column", example),
            (len(set(values)) == len(values), "weights", values, "give each value one number", ""),
            (not far, "weights", far, within, ""),
            (not none, "weights", list(self.weights), "have a number above 0", ""),
        ]

    def _check_zone(self) -> None:
        try:
            zoneinfo.ZoneInfo(self.time_zone)
        except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError):
            require(False, "time_zone", self.time_zone, must="be a name such as Europe/Berlin")

    @property
    def roles(self) -> dict[str, str]:
        """Return the columns that are read, by role."""
        return {role: getattr(self, role) for role in ROLES if getattr(self, role)}

    @property
    def conditions(self) -> dict[str, tuple[str, ...]]:
        """Return the values of which a row must have one, by column."""
        return conditions_of(self.only, self.weights)

    @property
    def weight_of(self) -> dict[str, float]:
        """Return what a row weighs, by the value that it has in the column of weights."""
        return {rule.value: rule.number for rule in map(WeightRule.of, self.weights) if rule.number}

    def weights_text(self) -> str:
        """Return what weighs an interaction; empty if nothing does."""
        each = ", ".join(f"{number:g} for {value}" for value, number in self.weight_of.items())
        if each or not self.weight:
            return each and f"{each} in column {self.weight}"
        return f"what column {self.weight} states"

    @property
    def needed(self) -> dict[str, str]:
        """Return the columns to read: by role, and those of conditions by `condition_key`."""
        return {**self.roles, **{condition_key(column): column for column in self.conditions}}

    def in_files(self) -> Schema:
        """Return the schema of what files contain, without the columns that are keys in their paths."""
        absent = {role: "" for role, name in self.roles.items() if name in self.keys}
        rules = tuple(rule for rule in self.only if rule.partition("=")[0].strip() not in self.keys)
        weights = () if self.weight in self.keys else self.weights
        return self.changed(keys=(), only=rules, weights=weights, **absent)

    @property
    def has_positions(self) -> bool:
        """Return whether times are declared as positions, so that no time passes between them."""
        return self.time_format == POSITION or self.format == "sasrec"

    @property
    def date_pattern(self) -> str:
        """Return the only pattern of dates; empty if usual dates and whole numbers are read."""
        return "" if self.has_positions else self.time_format

    def changed(self, **changes: Any) -> Schema:
        """Return the schema with other values of some fields."""
        return replace(self, **changes)

    def with_fields(self, **changes: Any) -> Schema:
        """Return the schema with fields that the caller declares, which are not guessed any more."""
        said = {name: value for name, value in changes.items() if value is not None}
        known = {field.name for field in fields(self)}
        unknown = sorted(set(said) - known)
        require(not unknown, "schema", unknown, must=f"have only the fields {', '.join(sorted(known))}")
        kept = tuple(name for name in self.guessed if name not in said)
        return replace(self, **{"guessed": kept, **said})

    def remembered(self) -> Schema:
        """Return what a model stores to read the next file alike; scale, catalog and cap are facts."""
        return replace(self, low=None, high=None, step=None, catalog="", max_per_user=None)

    def summary(self) -> str:
        """Return the guessed layout in a few words, without any value of a row or name of a column."""
        found = {
            "format": _FORMAT_NAMES.get(self.format, self.format),
            "encoding": self.encoding.upper(),
            "delimiter": _NAMED.get(self.delimiter, f"delimiter {self.delimiter!r}"),
            "skip_rows": f"{self.skip_rows} rows above the header",
            "header": "header" if self.header else "no header",
            "columns": f"{len(self.columns)} columns",
            "user_type": f"{_ID_WORDS[self.user_type]} user IDs",
            "item_type": f"{_ID_WORDS[self.item_type]} item IDs",
            "date_order": f"{self.date_order or 'no day-month'} dates",
            "multiline": "line breaks in quotes",
            "packed": f"packed with {self.packed}",
            "duplicates": f"the rule {self.duplicates!r} for repeated pairs",
        }
        if {"user_type", "item_type"} <= set(self.guessed) and self.user_type == self.item_type:
            found |= {"user_type": f"{_ID_WORDS[self.user_type]} IDs", "item_type": ""}
        if self.format != "text":
            # A table with types of its own has no letters between fields.
            found |= dict.fromkeys(("delimiter", "header", "columns"), "")
        if self.format in ("text", "parquet", "cells"):
            found["format" if self.format == "text" else "encoding"] = ""
        words = [words for name, words in found.items() if words and name in self.guessed]
        return ", ".join(words or self.guessed)

    def to_toml(self) -> str:
        """Return the TOML form, which `from_toml` reads; fields without a value are skipped."""
        public = "The fields in `guessed` were read from data. Remove one to declare it public."
        lines = ["# How a file of ratings is written."]
        lines.append(f"# {public}" if self.guessed else "# Everything here is public.")
        given = ((field.name, getattr(self, field.name)) for field in fields(self))
        return (
            "\n".join([*lines, *(f"{name} = {_toml(value)}" for name, value in given if value is not None)])
            + "\n"
        )

    @classmethod
    def from_toml(cls, text: str) -> Self:
        """Read the TOML form."""
        try:
            return cls.from_json(tomllib.loads(text))
        except tomllib.TOMLDecodeError as error:
            raise errors.NotASchema(path="", why=str(error)) from error

    def to_json(self) -> dict[str, Any]:
        """Return a JSON object with the fields that differ from their defaults."""
        given = {field.name: getattr(self, field.name) for field in fields(self)}
        plain = {name: list(value) if isinstance(value, tuple) else value for name, value in given.items()}
        return {name: value for name, value in plain.items() if given[name] != _DEFAULTS[name]}

    @classmethod
    def from_json(cls, record: Mapping[str, Any]) -> Self:
        """Read what `to_json` or a TOML file states; raise a ParameterError for anything else."""
        for name in record:
            one_of("schema field", name, _DEFAULTS)
        for name, value in record.items():
            kinds = _KINDS[name]
            fits = isinstance(value, kinds) and isinstance(value, bool) == (kinds == (bool,))
            fits &= not isinstance(value, list | tuple) or set(map(type, value)) <= {str}
            if not fits:
                must = f"be {' or '.join(kind.__name__ for kind in kinds)}"
                raise BrokenRule(name=f"schema field {name}", value=value, must=must)
        plain: dict[str, Any] = {
            name: tuple(value) if isinstance(value, list) else value for name, value in record.items()
        }
        return cls(**plain)

    @classmethod
    def read(cls, path: str | Path) -> Self:
        """Read a schema from a TOML file; its catalog is found next to it."""
        file = Path(path)
        try:
            schema = cls.from_toml(file.read_text(encoding="utf-8"))
        except FileNotFoundError:
            raise NoSuchFile(path=file, kind="schema") from None
        except (OSError, UnicodeDecodeError) as error:
            raise errors.UnreadableSchema(path=str(file)) from error
        if not schema.catalog or Path(schema.catalog).is_absolute():
            return schema
        return replace(schema, catalog=str(file.parent / schema.catalog))

    def write(self, path: str | Path) -> None:
        """Write the TOML form."""
        write_whole(Path(path), self.to_toml().encode())


_CHOICES: dict[str, tuple[str, ...]] = {
    "format": FORMATS,
    "packed": ("", NOT_PACKED, PACKED_GZIP, PACKED_ZIP),
    "user_type": ID_TYPES,
    "item_type": ID_TYPES,
    "date_order": ("", DAY_FIRST, MONTH_FIRST),
    "decimal": _DECIMALS,
    "duplicates": get_args(Duplicates),
    "zeros": _ZEROS,
    "bad_rows": _ROWS,
    "off_scale": _SCALES,
    "unknown_items": ("reject", "drop"),
}
_DEFAULTS = {field.name: field.default for field in fields(Schema)}
_KINDS: dict[str, tuple[type, ...]] = {
    name: (bool,)
    if isinstance(value, bool)
    else (list, tuple)
    if isinstance(value, tuple)
    else (int,)
    if name in ("max_per_user", "skip_rows")
    else (int, float)
    if value is None
    else (str,)
    for name, value in _DEFAULTS.items()
}
_FORMAT_NAMES = {"json": "JSON lines", "parquet": "Parquet", "frame": "data frame", "cells": "cells"}
_NAMED = {",": "comma", ";": "semicolon", "\t": "tab", "|": "bar", " ": "blank", "::": "double colon"}
_ID_WORDS = {"text": "text", "integer": "whole-number"}


class WeightRule(NamedTuple):
    """What a row weighs if a column has a value; a rule that can't be read has no column."""

    column: str
    value: str
    number: float

    @classmethod
    def of(cls, text: str) -> Self:
        """Read a rule such as `event=buy:5`."""
        column, _, rest = text.partition("=")
        value, _, number = rest.rpartition(":")
        try:
            return cls(column.strip(), value.strip(), float(number))
        except ValueError:
            return cls("", "", 0.0)


def conditions_of(only: Iterable[str], weights: Iterable[str] = ()) -> dict[str, tuple[str, ...]]:
    """Return the values of which a row must have one, by column.

    Conditions such as `type=buy` list them, and so do weights such as `type=buy:5`: a row needs a weight.
    """
    found: dict[str, tuple[str, ...]] = {}
    for rule in only:
        column, _, value = rule.partition("=")
        found[column.strip()] = (*found.get(column.strip(), ()), value.strip())
    rules = list(map(WeightRule.of, weights))
    for name in dict.fromkeys(rule.column for rule in rules):
        values = (rule.value for rule in rules if rule.column == name and rule.number)
        found[name] = tuple(value for value in values if value in found.get(name, (value,)))
    return found


def condition_key(column: str) -> str:
    """Return the name of a condition's column among columns by role."""
    return f"only {column}"


def _toml(value: Any) -> str:
    if isinstance(value, tuple):
        return "[" + ", ".join(map(_toml, value)) + "]"
    # A basic string of TOML has the escapes of JSON, but for the solidus and letters above the first plane.
    return json.dumps(value, ensure_ascii=False) if isinstance(value, str) else str(value).lower()


def stateless(encoding: str) -> str:
    """Return the usual name of an encoding in which no letter depends on earlier ones; reject the others.

    In an encoding with state, or with letters of several bytes, one user's bytes could change how later
    lines are read.
    """
    try:
        name = codecs.lookup(encoding).name
    except LookupError as error:
        raise errors.UnknownEncoding(encoding=encoding) from error
    if name in ("utf-8", "utf-8-sig", "ascii"):
        return UTF_8
    if name in UTF_16 or name == "iso8859-1" or _is_code_page(name):
        return name
    raise errors.EncodingWithState(encoding=encoding)


def _is_code_page(name: str) -> bool:
    """Return whether an encoding maps each byte to one letter, by a table."""
    try:
        module = importlib.import_module(f"encodings.{name.replace('-', '_')}")
    except ImportError:
        return False
    table = getattr(module, "decoding_table", None)
    return isinstance(table, str) and len(table) == 256
