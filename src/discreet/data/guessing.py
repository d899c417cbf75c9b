"""Guess the schema of a file, for its data owner: encoding, delimiter, header, columns and types of IDs.

A guess looks at the file as much as it likes, so it may depend on any user's rows. The schema lists what was
guessed, and labels treat each such field as a condition. Reading itself guesses nothing.
"""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple, TypedDict, final

from discreet.core import one_of
from discreet.core.exports import pl
from discreet.data import errors
from discreet.data.reading.blocks import beginning, first_lines, packing, packing_of, plain_name
from discreet.data.reading.json_lines import read_json_lines
from discreet.data.reading.text import BREAK, read_text, split_fields
from discreet.data.reading.times import YEAR_LAST
from discreet.data.roles import (
    ITEM,
    TIME,
    USER,
    WEIGHT,
    Choice,
    are_places,
    check_conditions,
    choose,
    date_order,
    has_roles,
    is_number,
    recognizes,
    unread_times,
    without_order,
)
from discreet.data.schema import (
    DAY_FIRST,
    LAYOUTS,
    MONTH_FIRST,
    NOT_PACKED,
    ROLES,
    UTF_8,
    UTF_16,
    Schema,
    conditions_of,
    stateless,
)

_HEAD = 1 << 16
_SEPARATORS = ("::", "\t", ",", ";", "|", " ")
# Where the first line begins with it, lines that do are comments.
_COMMENT = "#"
# So many of the first lines may be titles above a header.
_FEW_ROWS = 20
# What spreadsheets of Windows write in Western Europe, and bytes that aren't written there.
_WESTERN = "cp1252"
_FOREIGN = re.compile(rb"[\x80-\xff]{3}|[\x81\x8d\x8f\x90\x9d]")
_WHOLE = re.compile(r"-?(0|[1-9][0-9]{0,17})")
_JESTER_COLUMNS = 101
#: What is between the fields of MovieLens files, by the end of their names.
_MOVIELENS = {"data": "\t", "dat": "::", "csv": ","}
_MOVIELENS_NAMES = ["userid", "movieid", "rating", "timestamp"]
# Lines with more different lengths than this are lists, not rows of a table.
_FEW_LENGTHS = 2
# So many objects at the beginning say which keys there are.
_MOST_OBJECTS, _MOST_KEYS, _DEEPEST = 100, 1000, 4
_OF_LINES = ("delimiter", "quote", "comment", "header", "columns")
_LAYOUT = ("format", "encoding", *_OF_LINES, "user_type", "item_type")


Only = Mapping[str, str | Sequence[str]] | Sequence[str]
"""Conditions on rows: values by column, or texts such as `event=buy`."""
Weights = Mapping[str, Mapping[Any, float]] | Sequence[str]
"""Weights by the values of one column, or texts such as `event=view:1,buy:5`."""


class TextOptions(TypedDict, total=False):
    """How a text file is written; what is absent (or None) is guessed from its first lines.

    Attributes:
        delimiter: The letter between fields, or ::.
        quote: The letter around fields that contain a delimiter; "none" if nothing is quoted.
        escape: The letter before a quote inside quotes; without one a quote is doubled.
        encoding: UTF-8, UTF-16, or a code page of one byte a letter. UTF-16 with a mark and Windows-1252 are
            guessed.
        comment: The beginning of lines to skip.
        skip_rows: The number of rows above the header, such as a title.
        skip_bad_lines: Skip lines that do not fit, or whose ID, rating or time cannot be read, each judged by
            itself, and log how many.
        layout: A well-known layout: movielens, netflix, lightgcn, recbole or sasrec.
        only: Read only rows with these values, as in `{"event": "buy"}` or `{"event": ["buy", "rent"]}`.
        weights: What rows with these values of one column weigh, as in `{"event": {"view": 1, "buy": 5}}`.
            Other rows are skipped.
    """

    delimiter: str | None
    quote: str | None
    escape: str | None
    encoding: str | None
    comment: str | None
    skip_rows: int | None
    skip_bad_lines: bool
    layout: str | None
    only: Only | None
    weights: Weights | None


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Wishes:
    """What the caller declares about a file before it is described."""

    choice: Choice | None = None
    implicit: bool = False
    layout: str | None = None
    #: Fields of the schema.
    declared: Mapping[str, Any]
    #: Columns that are keys in the path of a file, as in `day=2025-01-31/ratings.csv`, with their values.
    keys: Mapping[str, str] = field(default_factory=dict)

    @property
    def conditions(self) -> dict[str, tuple[str, ...]]:
        """Return the values of which a row must have one, by column."""
        return conditions_of(self.declared.get("only", ()), self.declared.get("weights", ()))

    def keeps(self, row: Mapping[str, str]) -> bool:
        """Return whether the conditions keep a row of the sample; columns that it lacks don't matter."""
        wanted = self.conditions.items() if {"only", "weights"} & set(self.declared) else ()
        return all(row[name].strip() in values for name, values in wanted if name in row)

    @classmethod
    def taken_from(
        cls, options: dict[str, Any], choice: Choice | None = None, *, implicit: bool = False
    ) -> Wishes:
        """Take the text options out of `options`, which keeps the others."""
        given = {name: options.pop(name, None) for name in TextOptions.__annotations__}
        said = {name: value for name, value in given.items() if value is not None}
        layout, skip = said.pop("layout", None), said.pop("skip_bad_lines", None)
        if layout is not None:
            one_of("layout", layout, LAYOUTS)
        # Not asked for, a schema's own rule stays, and without one a line that does not fit rejects the file.
        if skip:
            said["bad_rows"] = "drop"
        if "only" in said:
            said["only"] = _conditions(said["only"])
        if "weights" in said:
            said["weights"] = _weights(said["weights"])
            named = Schema(weights=said["weights"], weight=(choice or {}).get(WEIGHT) or "")
            choice = {**(choice or {}), WEIGHT: named.weight}
        said |= {name: "" for name in ("quote", "escape") if said.get(name) == "none"}
        if said.get("delimiter") in ("tab", "\\t"):
            said["delimiter"] = "\t"
        if "encoding" in said and not _needs_mark(said["encoding"]):
            said["encoding"] = stateless(said["encoding"])
        order = date_order(choice)
        if order is not None:
            said["date_order"] = order
        # The letters are checked before any file is opened.
        Schema(**{name: value for name, value in said.items() if name != "encoding"})
        return cls(choice=without_order(choice), implicit=implicit, layout=layout, declared=said)


def _conditions(only: Only) -> tuple[str, ...]:
    """Return conditions as a schema lists them."""
    if not isinstance(only, Mapping):
        return (only,) if isinstance(only, str) else tuple(only)
    values = ((name, [value] if isinstance(value, str) else value) for name, value in only.items())
    return tuple(f"{name}={value}" for name, own in values for value in own)


# A comma separates behind a number: values may contain commas.
_NEXT_WEIGHT = re.compile(r"(?<=[0-9.]),")


def _weights(weights: Weights) -> tuple[str, ...]:
    """Return weights as a schema lists them."""
    if isinstance(weights, Mapping):
        return tuple(
            f"{name}={value}:{one:.9g}" for name, own in weights.items() for value, one in own.items()
        )
    found = []
    for text in (weights,) if isinstance(weights, str) else weights:
        column, equals, values = text.partition("=")
        # Without a column the rule is rejected, in the words in which it was given.
        found += [f"{column}={value.strip()}" for value in _NEXT_WEIGHT.split(values)] if equals else [text]
    return tuple(found)


NOTHING = Wishes(declared={})


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Description:
    """A schema, and a column that looks like times and that no role takes."""

    schema: Schema
    unread_times: str | None = None


def describe(file: Path, wishes: Wishes, raw: bytes | None = None) -> Description:
    """Return the schema of a text file, or of JSON lines; what the caller declares is not guessed.

    `raw` is the content of a file that isn't packed, if the caller has read it.

    Raises:
        FileError: The file is not text, or is known not to be a table.
        DataError: The file is empty, or nothing shows which column is which.
    """
    packed = NOT_PACKED
    if raw is None:
        packed = NOT_PACKED if wishes.layout is None else packing(file)
        raw = beginning(file, packed, _HEAD + 1)
        if wishes.layout is None and packing_of(raw, file.name) != packed:
            packed = packing_of(raw, file.name)
            raw = beginning(file, packed, _HEAD + 1)
    encoding = _encoding(file, wishes, raw)
    top = first_lines(raw, encoding, _HEAD)
    declared = {"bad_rows": "reject", **wishes.declared, "encoding": encoding}
    if packed != packing(file):
        declared["packed"] = packed
    if wishes.layout is not None:
        named = _recbole if wishes.layout == "recbole" else _movielens
        return Description(schema=named(file, top, wishes, declared))
    if b"\x00" in top:
        raise errors.NotATable(path=file.name, found="binary")
    _refuse_known(file, top)
    found = _of_json if is_json(top) else _of_table
    description = found(file, top, wishes, declared)
    schema = description.schema
    unused = _OF_LINES if schema.format == "json" else ()
    guessed = [name for name in _LAYOUT if name not in wishes.declared and name not in unused]
    guessed += [role for role in ROLES if role not in (wishes.choice or {}) and getattr(schema, role)]
    guessed += ["multiline"] * schema.multiline + ["packed"] * (schema.packed != "")
    return replace(description, schema=replace(schema, guessed=(*guessed, *schema.guessed)))


def _needs_mark(encoding: str) -> bool:
    try:
        return codecs.lookup(encoding).name == "utf-16"
    except LookupError:
        return False


def _encoding(file: Path, wishes: Wishes, raw: bytes) -> str:
    """Return the declared encoding, or what a file shows: a mark of UTF-16, or lines that are not UTF-8."""
    said = wishes.declared.get("encoding")
    if said is not None and not _needs_mark(said):
        return str(said)
    marked = marked_encoding(raw)
    if marked is None and said is not None:
        raise errors.MarkNeeded(path=file.name)
    return marked or _shown_encoding(raw)


def _shown_encoding(raw: bytes) -> str:
    """Return Windows-1252 if most lines with other letters than ASCII are of Western Europe, else UTF-8.

    One line shows nothing, since it is one user's. Many such letters in a row belong to other alphabets,
    whose encoding must be declared.
    """
    lines = [line for line in raw[:_HEAD].split(b"\n")[:-1] if not line.isascii()]
    odd = [line for line in lines if _is_western(line)]
    return _WESTERN if len(odd) > 1 and 2 * len(odd) > len(lines) else UTF_8


def _is_western(line: bytes) -> bool:
    try:
        line.decode()
    except UnicodeDecodeError:
        return _FOREIGN.search(line) is None
    return False


def marked_encoding(raw: bytes) -> str | None:
    """Return the kind of UTF-16 that the mark at the beginning of a text shows, if it has one."""
    return {b"\xff\xfe": UTF_16[0], b"\xfe\xff": UTF_16[1]}.get(raw[:2])


# An id such as {3F2504E0-...} also begins with a brace, so a key must follow.
_JSON_OBJECT = re.compile(rb'\s*\{\s*["}]')
_NO_TABLES = {
    re.compile(rb"\s*\[\s*(\{|$|\n)"): "json",
    re.compile(rb"\s*\{\s*'"): "python",
    re.compile(rb"\s*<(\?xml|!doctype|html)", re.I): "xml",
    re.compile(rb"\s*[0-9]+:\s*\n"): "netflix",
}


def is_json(top: bytes) -> bool:
    """Return whether a text begins with a JSON object."""
    return _JSON_OBJECT.match(top) is not None


def _refuse_known(file: Path, top: bytes) -> None:
    for form, what in _NO_TABLES.items():
        if form.match(top):
            raise errors.NotATable(path=file.name, found=what)


def _of_table(file: Path, top: bytes, wishes: Wishes, declared: Mapping[str, Any]) -> Description:
    skip = declared.get("skip_rows")
    guessed = skip is None and bool(skip := _rows_above_header(top, wishes, declared))
    lines = _first_lines(file, b"\n".join(top.split(b"\n")[skip:]), declared)
    grammar = Schema(**{**declared, "skip_rows": skip, "comment": lines.comment, "columns": ()})
    grammar = grammar.changed(guessed=("skip_rows",) * guessed)
    if "delimiter" not in declared:
        grammar = replace(grammar, delimiter=_separator(file, lines.first, grammar))
    grammar, fields = _split(lines.text, grammar)
    choice, first = wishes.choice, fields[0]
    unnamed = tuple(f"column_{place + 1}" for place in range(len(first)))
    if len(first) == _JESTER_COLUMNS and all(map(is_number, first)) and not choice:
        return Description(schema=replace(grammar, format="jester", header=False, columns=unnamed))
    header = _has_header(first, choice, file.name)
    if not (header or choice or grammar.bad_rows == "drop") and grammar.delimiter == " ":
        _refuse_lists(fields, file.name)
    if header and lines.is_marked:
        first = [first[0].lstrip("# "), *first[1:]]
    names = tuple(first) if header else unnamed
    if header and b"\n" not in lines.text:
        raise errors.NothingToRead(path=file.name, found="header")
    given = choice if header else _by_position(names, choice)
    roles = choose((*names, *wishes.keys), given, implicit=wishes.implicit)
    check_conditions((*names, *wishes.keys), wishes.conditions)
    rows = fields[1:] if header else fields
    if grammar.multiline and not _of_two_users(
        rows, names.index(roles[USER]) if roles.get(USER) in names else None
    ):
        grammar = replace(grammar, multiline=False)
        rows = [row for row in split_fields(lines.text, grammar)[header:] if row is not None]
    rows = [row for row in rows if wishes.keeps(dict(zip(names, row, strict=False)))]
    sample = {name: [row[k] for row in rows if len(row) > k] for k, name in enumerate(names)}
    sample |= {key: [value] for key, value in wishes.keys.items()}
    types = {name: kind for name, kind in _id_types(sample, roles).items() if name not in declared}
    schema = grammar.changed(header=header, columns=names, **keys_of(roles, wishes), **roles, **types)
    schema = _with_order_of(file, schema, sample)
    return Description(schema=schema, unread_times=unread_times(sample, roles, choice))


def _rows_above_header(top: bytes, wishes: Wishes, declared: Mapping[str, Any]) -> int:
    """Return how many of the first lines are above a header, with fewer fields than it has; 0 if none is."""
    widest = 0
    for place, line in enumerate(top.split(b"\n")[:_FEW_ROWS]):
        if not line.strip():
            continue
        text = line.decode("utf-8", "replace").strip()
        marks = [declared["delimiter"]] if "delimiter" in declared else _SEPARATORS[:-1]
        rows = [[name.strip(' "') for name in text.split(mark)] for mark in marks]
        names = max(rows, key=len)
        if text.startswith(_COMMENT) or (not widest and recognizes(names, wishes.choice)):
            return 0
        if widest and len(names) > widest and has_roles([*names, *wishes.keys], wishes.choice):
            return place
        widest = max(widest, sum(map(bool, names)))
    return 0


class _Lines(NamedTuple):
    """The first lines of a file, and what begins comments among them."""

    text: bytes
    first: bytes
    comment: str
    #: Whether the first line is a header behind a comment sign, as in `# user,item,rating`.
    is_marked: bool


def _first_lines(file: Path, top: bytes, declared: Mapping[str, Any]) -> _Lines:
    lines = [line for line in top.split(b"\n") if line.strip()]
    if not lines:
        raise errors.NothingToRead(path=file.name, found="empty")
    comment = str(declared.get("comment", ""))
    is_marked = not comment and _is_marked_header(lines[0].decode("utf-8", "replace"))
    if not comment and lines[0].startswith(_COMMENT.encode()) and not is_marked:
        comment = _COMMENT
    kept = [line for line in lines if not comment or not line.startswith(comment.encode())]
    if not kept:
        raise errors.NothingToRead(path=file.name, found="comments")
    return _Lines(b"\n".join(kept), kept[0], comment, is_marked)


def _is_marked_header(line: str) -> bool:
    names = re.split(r"[,;|\t ]+|::", line.removeprefix(_COMMENT).strip())
    return line.startswith(_COMMENT) and len(names) > 1 and recognizes(names[:2], None) and len(names) < 5


def _separator(file: Path, line: bytes, grammar: Schema) -> str:
    """Return the mark that splits the first line into most fields.

    In `7;lamp;4,5` a comma splits as well, but into fewer. Blanks count only where nothing else does. Other
    lines have no say: they are users' rows.
    """
    marks = [mark for mark in _SEPARATORS if mark.encode() in line]
    marks = [mark for mark in marks if mark != " "] or marks

    def width(mark: str) -> int:
        return max(
            (len(row or ()) for row in split_fields(line, replace(grammar, delimiter=mark))), default=0
        )

    if not marks:
        raise errors.NothingToRead(path=file.name, found="column")
    return marks[0] if len(marks) == 1 else max(marks, key=width)


def _split(text: bytes, grammar: Schema) -> tuple[Schema, list[list[str]]]:
    """Return the fields of the first lines; if quotes are open at the end of lines, rows may span several."""
    fields = split_fields(text, grammar)
    if None in fields and fields[0] is not None:
        joined = split_fields(text, replace(grammar, multiline=True))
        # The last row may be cut.
        if None not in joined[:-1] and {len(row or ()) for row in joined[:-1]} == {len(fields[0])}:
            return replace(grammar, multiline=True), [row for row in joined if row is not None]
    found = [row for row in fields if row is not None]
    return grammar, found or [text.split(b"\n")[0].decode("utf-8", "replace").split(grammar.delimiter)]


def _of_two_users(rows: Sequence[Sequence[str]], user: int | None) -> bool:
    """Return whether rows that span several lines are of two users; one user's quotes may swallow others."""
    long = [row for row in rows if any(BREAK in field for field in row)]
    return user is None or len({row[user] for row in long}) > 1


def _refuse_lists(fields: Sequence[Sequence[str]], name: str) -> None:
    """Reject lines of numbers that differ in length: a user and all their items, as LightGCN writes them."""
    numbers = all(field.isdecimal() for row in fields for field in row)
    if numbers and len({len(row) for row in fields}) > _FEW_LENGTHS:
        raise errors.NothingToRead(path=name, found="lists")


def _has_header(first: Sequence[str], choice: Choice | None, name: str) -> bool:
    """Return whether a first line is a header; reject unclear lines, so that no error lists a rating.

    Names that are known make a header, and columns that are named by their places make none; a number where
    the rating is makes a rating. Other lines have no say.
    """
    if recognizes(first, choice):
        return True
    if are_places(choice):
        return False
    if is_number(first[2]) if len(first) > 2 else any(map(is_number, first)):
        return False
    given = tuple(one for one in (without_order(choice) or {}).values() if one is not None)
    raise errors.UnclearHeader(path=name, columns=len(first), given=given, first=tuple(first))


def _by_position(names: tuple[str, ...], choice: Choice | None) -> Choice:
    """Give the first columns of a file without a header their usual meaning."""
    chosen = dict(choice or {})
    roles = [role for role in ROLES[:4] if chosen.get(role, "") is not None]
    usual = dict(zip(roles, names, strict=False)) if len(names) <= len(roles) else {}
    return {**{role: name for role, name in usual.items() if name not in chosen.values()}, **chosen}


def _id_types(sample: Mapping[str, Sequence[str]], roles: Mapping[str, str]) -> dict[str, str]:
    """Return the types of IDs: whole numbers if each in the sample is one; IDs such as 007 must stay text."""
    columns = {role: sample[roles[role]] for role in (USER, ITEM) if role in roles}
    return {
        f"{role}_type": "integer" if all(map(_WHOLE.fullmatch, fields)) else "text"
        for role, fields in columns.items()
    }


def _with_order_of(file: Path, schema: Schema, sample: Mapping[str, Sequence[str]]) -> Schema:
    """Return the schema with the order of day and month, if dates have their year last."""
    if schema.time in ("", *schema.keys) or not is_year_last(sample[schema.time]):
        return schema
    texts = replace(
        schema, user_type="text", item=schema.time, item_type="text", rating="", weight="", time=""
    )
    rows, _ = read_json_lines(file, texts) if schema.format == "json" else read_text(file, texts)
    return with_order(schema, rows.items, rows.users if schema.user else None)


def with_order(schema: Schema, dates: pl.Series, owners: pl.Series | None) -> Schema:
    """Return the schema with the order of day and month, which dates of two users must show."""
    if schema.date_order or schema.time_format:
        return schema
    return replace(schema, date_order=shown_order(dates, owners), guessed=(*schema.guessed, "date_order"))


def keys_of(roles: Mapping[str, str], wishes: Wishes) -> dict[str, tuple[str, ...]]:
    """Return which of the columns are keys in paths."""
    needed = dict.fromkeys((*roles.values(), *wishes.conditions))
    return {"keys": tuple(name for name in needed if name in wishes.keys)}


def _of_json(file: Path, top: bytes, wishes: Wishes, declared: Mapping[str, Any]) -> Description:
    sample = _keys(file, top, wishes) | {key: [value] for key, value in wishes.keys.items()}
    roles = choose(list(sample), wishes.choice, implicit=wishes.implicit)
    check_conditions(list(sample), wishes.conditions)
    schema = Schema(**{**declared, "format": "json", "header": False, **keys_of(roles, wishes), **roles})
    if schema.bad_rows == "drop":
        _require_declared(roles, wishes.choice)
    schema = _with_order_of(file, schema, sample)
    schema = schema.changed(**_id_types(sample, roles))
    return Description(schema=schema, unread_times=unread_times(sample, roles, wishes.choice))


def _require_declared(roles: Mapping[str, str], choice: Choice | None) -> None:
    """Reject keys that were found in users' lines where lines without them are skipped.

    One user's line with one key more would otherwise skip all others'.
    """
    said = choice or {}
    missing = [role for role in dict.fromkeys((*roles, TIME)) if role not in said]
    if missing:
        raise errors.KeysNeeded(names=tuple(f"{role}={roles.get(role, 'none')}" for role in missing))


def _keys(file: Path, top: bytes, wishes: Wishes) -> dict[str, list[str]]:
    """Return the keys of the first objects, with their values as text in rows that are read."""
    keys: dict[str, list[str]] = {}
    lines = [line for line in top.split(b"\n") if line.strip()]
    for line in lines[:_MOST_OBJECTS]:
        try:
            found = json.loads(line)
        except (ValueError, RecursionError):
            continue
        leaves = dict(_leaves(found))
        is_read = wishes.keeps({key: _as_json_text(value) for key, value in leaves.items()})
        for key, value in leaves.items():
            keys.setdefault(key, []).extend([str(value)] * is_read)
    if not keys or len(keys) > _MOST_KEYS:
        raise errors.NothingToRead(path=file.name, found="objects")
    return keys


def _as_json_text(value: Any) -> str:
    """Return a value as the reader of JSON lines does."""
    return value if isinstance(value, str) else json.dumps(value)


def _leaves(found: Any, above: str = "", depth: int = 0) -> Iterator[tuple[str, Any]]:
    """Yield the keys of an object with their values; keys of objects inside it follow a dot."""
    for key, value in found.items() if isinstance(found, dict) else ():
        if isinstance(value, dict) and depth < _DEEPEST:
            yield from _leaves(value, f"{above}{key}.", depth + 1)
        else:
            yield above + key, value


def is_year_last(texts: Sequence[str]) -> bool:
    """Return whether a text is a date whose year is last."""
    return any(re.match(YEAR_LAST, text.strip()) for text in texts)


def shown_order(texts: pl.Series, owners: pl.Series | None) -> str:
    """Return the order of day and month that dates show, if there are any; raise an error if they don't.

    One user's dates alone don't show it: with others in their place, all dates would be read differently.
    """
    parts = pl.DataFrame({"text": texts.cast(pl.String).str.strip_chars()}).select(
        first=pl.col("text").str.extract(YEAR_LAST, 1).cast(pl.Int64),
        second=pl.col("text").str.extract(YEAR_LAST, 2).cast(pl.Int64),
    )
    if parts["first"].null_count() == len(texts):
        return ""
    shows = {DAY_FIRST: parts["first"] > 12, MONTH_FIRST: parts["second"] > 12}
    shown = [way for way, dates in shows.items() if dates.any()]
    if len(shown) != 1:
        raise errors.UnclearDates(why="both" if shown else "none")
    if owners is not None:
        users = owners.filter(shows[shown[0]].fill_null(False)).n_unique()
        if users < min(owners.n_unique(), 2):
            raise errors.UnclearDates(why="one user")
    return shown[0]


# The types of RecBole's columns, by what a column is read as.
_RECBOLE_TYPES = {USER: "token", ITEM: "token"}


def _recbole(file: Path, top: bytes, wishes: Wishes, declared: Mapping[str, Any]) -> Schema:
    """Return the schema that the header of a RecBole file declares; the header belongs to no user.

    A token is an ID, so it is text, whatever it looks like.
    """
    names = tuple(top.split(b"\n", 1)[0].decode("utf-8", "replace").strip().split("\t"))
    kinds = {name: name.rpartition(":")[2] for name in names}
    if len(names) < 2 or not set(kinds.values()) <= {"token", "float", "token_seq", "float_seq"}:
        raise errors.OtherLayout(path=file.name, layout="recbole")
    roles = choose(names, wishes.choice, implicit=wishes.implicit)
    for role, name in roles.items():
        expected = _RECBOLE_TYPES.get(role, "float")
        if kinds[name] != expected:
            raise errors.OtherType(role=role, column=name, expected=expected)
    return Schema(**{"quote": "", **declared, "delimiter": "\t", "header": True, "columns": names, **roles})


def _movielens(file: Path, top: bytes, wishes: Wishes, declared: Mapping[str, Any]) -> Schema:
    """Return the schema of a MovieLens file: the end of its name declares it, or its first line shows it.

    No line of a user is looked at, but to reject a file of another layout.
    """
    ends, line = (
        plain_name(file).rpartition(".")[2],
        top.lstrip().split(b"\n", 1)[0].decode("utf-8", "replace"),
    )
    shown = [end for end, mark in _MOVIELENS.items() if mark in line]
    delimiter = _MOVIELENS[ends if ends in _MOVIELENS else (shown or ["csv"])[0]]
    first, header = line.strip().split(delimiter), delimiter == ","
    if header and [name.lower() for name in first] != _MOVIELENS_NAMES:
        raise errors.OtherLayout(path=file.name, layout="movielens")
    if len(first) != len(_MOVIELENS_NAMES) and declared["bad_rows"] == "reject":
        raise errors.OtherLayout(path=file.name, layout="movielens")
    names = tuple(first) if header else tuple(f"column_{place + 1}" for place in range(4))
    given = wishes.choice if header else _by_position(names, wishes.choice)
    roles = choose(names, given, implicit=wishes.implicit)
    return Schema(
        **{
            **declared, **roles, "delimiter": delimiter, "header": header, "columns": names,
            "user_type": "integer", "item_type": "integer",
            "guessed": () if ends in _MOVIELENS else ("delimiter", "header", "columns"),
        }
    )  # fmt: skip
