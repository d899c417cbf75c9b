"""Errors of reading and encoding data. No field contains a value of a row."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import ClassVar

from discreet.core import listed
from discreet.core.errors import DataError, DiscreetError, FileError, ParameterError, most_similar

_MOST_TABLES = 5


class WithReason(DiscreetError):
    """An error whose template ends with the reason that a field names."""

    key: ClassVar[str] = "why"
    reasons: ClassVar[Mapping[str, str]] = {}

    def template(self) -> str:
        """Return the template with the reason."""
        named = getattr(self, self.key)
        return self.text.replace("{reason}", self.reasons.get(named, named))


class WeightsOverflow(DataError):
    text = """Weights of repeated events add up to more than a float can represent. Declare the rating
    scale, which limits them."""


class NoDataFile(FileError):
    dataset: str
    why: str
    do: str
    text = "{dataset} can't be read: {why}. {do}"


class NotDeclared(DataError):
    count: int
    of: int
    what: str
    declared: int
    example: object = None
    text = """{count:,} of {of:,} {what} aren't among the {declared:,} declared {what}{such}. Declare them
    too with {arg:catalog}, or ignore them: {arg:drop_unknown=True}."""

    @property
    def such(self) -> str:
        """A declared ID, which is public, if no ID of the data matches."""
        return "" if self.example is None else f" (one declared ID is {self.example!r})"


class OtherNumberOfItems(DataError):
    declared: int
    items: int
    text = """n_items={declared:,} was declared, and {items:,} items were found. Pass {arg:catalog} with every
    item ID, rated or not."""


class BadRows(DataError):
    """Rows with the same problem, and the number of the first if it is known."""

    count: int
    of: int
    line: int = 0
    path: str = ""
    #: Whether the rows are one user's history, whose reader skips no rows.
    of_one_user: bool = False

    def template(self) -> str:
        """Return the template; the user removes rows that can't be skipped."""
        skip = "skip these rows: {arg:skip_bad_lines=True}"
        return self.text.replace(skip, "remove these rows") if self.of_one_user else self.text

    @property
    def first(self) -> str:
        """The place of the first such row."""
        if not self.line:
            return f" in {self.path}" if self.path else ""
        place = f" of {self.path}" if self.path else ""
        return f" (the first in row {self.line:,}{place})"


class BadValues(BadRows):
    """Missing values, and the keys of JSON lines that were found in users' lines and not declared."""

    what: str
    keys: tuple[str, ...] = ()
    #: Whether the rows can be read without these values, as interactions.
    optional: bool = False
    text = """{count:,} of {of:,} {what} are missing or not finite{first}. Fill them in, or skip these rows:
    {arg:skip_bad_lines=True}."""

    def template(self) -> str:
        """Return the template; lines are skipped only if their keys are declared."""
        with_keys = " Also declare the keys of JSON lines: pass {keys:all} with {arg:columns}."
        without = " To use all rows for recommendations, ratings or not, pass {arg:implicit=True} instead."
        return (
            super().template()
            + with_keys * bool(self.keys)
            + without * (self.optional and not self.of_one_user)
        )


class NotNumeric(DataError):
    what: str
    kind: str = "numbers"
    found: str = "text"
    text = "The {what} must be {kind}, not {found}. Choose another column, or convert it."


class NotComparable(DataError):
    column: str
    found: str
    text = """Conditions can't compare column {column!r} of type {found}. Name a column of text, numbers,
    truth values, dates or times, or convert it."""


class RepeatedPairs(DataError):
    count: int
    of: int
    text = """{count:,} of {of:rating repeats|ratings repeat} a user-item pair, and each pair may appear once.
    Pass {arg:duplicates=last} to keep the latest row, or choose first, mean, or count."""


class DamagedFacts(ParameterError):
    reason: str
    text = "The stored facts can't be read: {reason}. Get a fresh copy, or fit the model again."


class UnknownArgument(ParameterError):
    argument: str
    known: Collection[str]
    text = "{argument!r} isn't an argument here.{close:?} Pass one of {known:all}."

    def template(self) -> str:
        """Return the template; that rows have no ratings is a setting of the estimator."""
        of_estimator = '{argument!r} isn\'t an argument here. Set feedback="implicit" on the estimator.'
        return of_estimator if self.argument == "implicit" else self.text

    @property
    def close(self) -> str | None:
        """The most similar argument."""
        return most_similar(self.argument, self.known)


class DeclaredTwice(ParameterError):
    names: tuple[str, ...]
    text = "{names:all} are already part of the facts, and you can declare a fact only once. Remove them."


class NoRows(DataError):
    what: str
    text = "The data has no ratings, so the {what} can't be read from it. Declare the {what}."


class OffDeclaredScale(DataError):
    count: int
    of: int
    low: float
    high: float
    step: float | None = None
    text = """{count:,} of {of:rating is|ratings are} not on the declared scale, {low} to {high}{steps}.
    Declare the scale that the data has."""

    @property
    def steps(self) -> str:
        """The step of the scale."""
        return "" if self.step is None else f" in steps of {self.step:g}"


class ColumnsUnused(ParameterError):
    argument: str
    found: str
    text = """{arg:{argument}} applies to files and data frames, but {found} already has its own. Remove
    {arg:{argument}}, or pass it where you read the data."""


class OneUserNeeded(DataError):
    users: int
    text = """The history has {users:user|users}, but this call is for one user. Pass only that user's rows,
    or choose the user with {arg:user}."""


class BadHistory(DataError):
    must: str
    text = "A history must {must}. Pass a list of items, (item, rating) pairs, a mapping, or a data frame."


class NoSuchData(FileError):
    name: str
    datasets: Collection[str]
    text = """{name} is neither a file nor a known dataset.{close:?} Check the path, or name one of the
    datasets {datasets:all}."""

    @property
    def close(self) -> str | None:
        """The most similar dataset."""
        return most_similar(self.name, self.datasets)


class RatingAndWeight(ParameterError):
    text = "A row has a rating or a weight, but not both, and {arg:columns} names both. Remove one of them."


class NoColumn(DataError):
    column: str
    role: str
    columns: tuple[str, ...]
    spare: bool
    text = "The column {column!r}, which you named as the {role}, doesn't exist. Name one of {columns:all}."


class RolesMissing(DataError):
    roles: tuple[str, ...]
    columns: tuple[str, ...]
    text = """Can't find the {roles:any} column. The columns are {columns:all}. Pass
    columns=dict({python}).{hint}"""

    @property
    def python(self) -> str:
        """The names as Python writes them."""
        return ", ".join(f'{role}="NAME"' for role in self.roles)

    @property
    def shell(self) -> str:
        """The names as the command line writes them."""
        return ",".join(f"{role}=NAME" for role in self.roles)

    @property
    def hint(self) -> str:
        """The advice for data without ratings, in Python: estimators and readers name it differently."""
        if "rating" not in self.roles:
            return ""
        return (
            ' If rows have no ratings, set feedback="implicit" on the estimator, or read the data with '
            "implicit=True."
        )

    @property
    def shell_hint(self) -> str:
        """The advice for data without ratings, on the command line."""
        return " If rows have no ratings, pass --implicit." if "rating" in self.roles else ""


class ColumnsReversed(ParameterError):
    role: str
    column: str
    text = """{arg:columns} names the column {column!r} first and its role {role!r} second. Put the role
    first: {role}, then {column}."""


class OneColumnTwice(ParameterError):
    roles: tuple[str, ...]
    text = """You named the same column for the {roles:all}, but each needs its own. Name different columns
    with {arg:columns}."""


class UnreadableValues(BadRows):
    role: str
    column: str
    text = """{count:,} of {of:,} {role}s in the column {column} aren't {kind}{first}. Choose a different
    column, or skip these rows: {arg:skip_bad_lines=True}."""

    @property
    def kind(self) -> str:
        """What such a value is."""
        return "numbers or dates" if self.role == "time" else "numbers"


class NotAFrame(ParameterError):
    found: str
    text = """{found} isn't a data frame, so its columns can't be read. Pass a frame of pandas, polars, or
    pyarrow."""


class HeaderUnclear(DataError):
    file: str
    columns: tuple[str, ...]
    names: str
    text = """The first line of {file} names no column in a usual way: {columns:all}. Name them with
    {arg:columns}. If the line isn't a header, use column_1 and so on."""


class HistoryRatingsNeeded(DataError):
    text = """This model was fitted on ratings, but the history has no known column of ratings. Name the
    column with {arg:columns}."""


class UserNotInHistory(DataError):
    user: str
    file: str
    text = "{file} has no row of user {user!r}. Check the ID, or pass a file with this user's own rows."


class DamagedFile(FileError):
    path: str
    what: str
    text = "{path} is damaged and can't be read as {what}. Write it, or fetch it, again."


class TooManyRows(FileError):
    path: str
    text = """{path} states more rows than a file of its size can contain, so reading it could use all memory.
    If you trust the file, convert it to uncompressed text."""


class UnpacksToTooMuch(FileError):
    path: str
    times: int
    text = """{path} decompresses to more than {times} times its size, which is unusual for ratings and could
    use all memory. If you trust the file, decompress it yourself first."""


class OtherLayout(WithReason, DataError):
    path: str
    layout: str
    text = "{path} isn't written as {reason}. Name a different layout, or none."
    key = "layout"
    reasons: ClassVar[Mapping[str, str]] = {
        "movielens": "MovieLens files are: four fields between tabs or ::, or the header "
        "userId,movieId,rating,timestamp",
        "recbole": "RecBole's .inter files are: a header such as user_id:token, item_id:token, rating:float, "
        "with tabs between",
        "jester": "Jester's table is: 101 numbers in each line",
    }


class OtherType(DataError):
    role: str
    column: str
    expected: str
    text = """Column {column!r} can't be the {role}: its header must declare the type {expected}. Correct
    the header, or name another column."""


class PackageMissing(ParameterError):
    package: str
    extra: str
    text = """This kind of data needs the package `{package}`, which isn't installed. Install
    discreet[{extra}]."""


class HeaderNotFound(DataError):
    """The first row of a sheet that can't be its header; without names the sheet is empty."""

    source: str
    names: int
    cells: int
    #: The number of rows above the first row that is as wide as the others.
    above: int
    of_one_user: bool = False
    text = """The first filled row of {source} has {names:cell|cells}, and rows below have {cells:,}, so it is
    a title and not the header. If row {row} is the header, pass {arg:skip_rows={above}}. Or pass the names of
    the user and item columns with {arg:columns}, and the header is found by them."""

    @property
    def row(self) -> int:
        """The number of the row that may be the header."""
        return self.above + 1

    def template(self) -> str:
        """Return the template; an empty sheet has no header at all."""
        if self.of_one_user and self.names:
            start = self.text.partition(" If row")[0]
            return f"{start} If row {{row}} is the header, delete the rows above it."
        return (
            self.text if self.names else "{source} is empty. Write the names of the columns in its first row."
        )


class ColumnsAlike(DataError):
    column: str
    count: int
    text = "{count:,} columns have the name {column!r}. Give each a name of its own."


class NoTable(FileError):
    kind: str
    place: str
    table: str
    tables: tuple[str, ...]
    text = "{table!r} isn't one of the {kind} tables {tables:and}. {advice}"

    def template(self) -> str:
        """Return the template; without a name the caller has to choose."""
        if not self.tables:
            return "{kind} found no table. Check the path or the address."
        return (
            self.text if self.table else ("No {what} was named, and the {kind} {has} {tables:and}. {advice}")
        )

    @property
    def what(self) -> str:
        """What a table is called there."""
        return "sheet" if self.kind == "Excel" else "table"

    @property
    def has(self) -> str:
        """What has the tables."""
        return "file has the sheets" if self.kind == "Excel" else "database has the tables"

    @property
    def advice(self) -> str:
        """How to name the most similar table or any of the first, or to combine several."""
        by_letters = {name.lower(): name for name in self.tables}
        close = most_similar(self.table, by_letters) if self.table else None
        choices = self.tables[:_MOST_TABLES] if close is None else (by_letters[close],)
        named = "Name one: " + listed([f"'{self.place}::{name}'" for name in choices], "or")
        return named + ("." if self.kind == "Excel" else f", or write a query: '{self.place}::select ...'.")


class UnreadableCells(FileError):
    """Cells that can't be read; `why` names the cause that a server gave, as far as it quotes no data."""

    kind: str
    source: str
    why: str = "query"
    text = "{kind} can't read {source!r}. Check the table or the query, and that the file is not in use."

    def template(self) -> str:
        """Return the template; a database server has no file."""
        return _SERVER[self.why] if self.kind == "PostgreSQL" else self.text


_SERVER = {
    "query": "{kind} can't read {source}. Check the table or the query, and that the server still runs.",
    "name": "{kind} can't read {source}: a name in it doesn't exist. Check its tables and columns.",
    "syntax": "{kind} can't read {source}: it isn't valid SQL. Correct the query.",
    "permission": "{kind} can't read {source}: its user may not read it. Grant SELECT, or name another user.",
    "address": "{kind} can't use the address. Write postgresql://USER@HOST/DATABASE::TABLE.",
    "rejected": "{kind} rejected the connection. Check the address: database, user, and password.",
    "unreachable": "{kind} can't be reached. Check that the server runs, and the address: host and port.",
}


class IdsNotWhole(BadRows):
    role: str
    text = """{count:,} of {of:,} {role} IDs are not whole numbers in the usual form, as the schema
    declares{first}. Declare {role}_type = "text", or skip these rows: {arg:skip_bad_lines=True}."""


class NoFiles(FileError):
    source: str
    text = """The file or folder {source} doesn't exist. Check the path. A pattern such as 'months/*.csv' must
    match at least one file."""


class UnreadableFrame(DataError):
    found: str
    text = """{found} can't be read: a column has an unknown type, or its query fails. Convert the columns to
    text, numbers, or dates."""


class UnreadableLine(FileError):
    """A line that isn't a row; `count` lines have the same problem."""

    path: str
    line: int
    count: int

    @property
    def where(self) -> str:
        """The first such line, and how many there are."""
        alike = f" ({self.count:,} lines like it)" if self.count > 1 else ""
        return f"Line {self.line:,} of {self.path}{alike}"


class WrongFields(UnreadableLine):
    values: int
    columns: int
    text = """{where} has {values:field|fields}, and the table has {columns}. Correct the file. To skip
    the line: {arg:skip_bad_lines=True}."""


class WrongQuotes(UnreadableLine):
    text = (
        "{where} opens a quote that it doesn't close, or has a quote inside quotes. If quotes are "
        "escaped, pass {arg:escape=\\}. To skip it: {arg:skip_bad_lines=True}."
    )


class NotText(UnreadableLine):
    encoding: str
    text = """{where} can't be read, because it isn't {encoding} text. Pass the encoding of the file, as in
    {arg:encoding=latin-1}."""


class LineTooLong(UnreadableLine):
    most: int
    text = """{where} has more than {most:,} bytes, the most that a row may have. Check the file. To skip
    the line: {arg:skip_bad_lines=True}."""


class OtherShape(DataError):
    path: str
    line: int
    count: int
    shape: str
    text = """Line {line:,} of {path} isn't {shape} ({count:line|lines} like it), so it can't be read. Pass a
    different layout, or skip these lines: {arg:skip_bad_lines=True}."""


class NotAFile(FileError):
    path: str
    text = "{path} isn't a file, and only files can be read here. Write its contents to a file first."


class CannotRead(FileError):
    path: str
    why: str
    text = "{path} can't be read: {why}. Check the path and its permissions."


class OtherPacking(FileError):
    path: str
    kind: str
    text = "{path} is compressed with {kind}, which can't be read. Decompress it, or use gzip."


class IsAModel(FileError):
    path: str
    text = """{path} is a model of discreet, not ratings. Pass a file of ratings. To see the model's
    guarantee, run `discreet model label`. To measure it, run `discreet model score`."""


class SeveralInArchive(FileError):
    path: str
    files: int
    text = "{path} is a zip archive with {files:file|files}, and one is needed. Unpack it, and name the file."


class OtherHeader(FileError):
    path: str
    columns: tuple[str, ...]
    text = """The header of {path} isn't the one that the schema declares: {columns:all}. Describe the file
    again, or pass a different schema."""


class QuotesInKey(DataError):
    text = "A key can't be read, because its name has quotes or a backslash. Rename the key."


class RolesNeeded(ParameterError):
    layout: str
    text = """A row of {arg:layout={layout}} needs the user and the item, so neither can be skipped. Skip only
    the time or the rating."""


class LinesNeeded(ParameterError):
    layout: str
    text = """{arg:layout={layout}} can't skip lines, because ratings below a skipped line could be assigned
    to the wrong item. Correct the line, and remove the option."""


class NoneOfLayout(FileError):
    folder: str
    layout: str
    patterns: tuple[str, ...]
    text = """The folder {folder} has no file of {arg:layout={layout}}{called}, so there is nothing to read.
    Name a file."""

    @property
    def called(self) -> str:
        """The names of such files."""
        return f" ({' or '.join(self.patterns)})" if self.patterns else ""


class OtherCounts(DataError):
    path: str
    count: int
    of: int
    text = """{count:,} of {of:,} rows of {path} have more or fewer ratings than they state, so the file
    is damaged. Fetch the file again."""


class UnclearHeader(DataError):
    path: str
    columns: int
    given: tuple[str, ...]
    first: tuple[str, ...]

    def facts(self) -> dict[str, object]:
        """Return the fields without those of the line."""
        return {name: value for name, value in super().facts().items() if name != "first"}

    text = """{found}. If the first line is a header, name its columns with {arg:columns}. If it isn't, the
    columns are column_1 to column_{columns}."""

    @property
    def found(self) -> str:
        """What was looked for."""
        if self.given:
            return f"{self.path} has no column {' or '.join(self.given)}, and no usual names"
        return f"{self.path} doesn't show which column is which"


class UnclearDates(WithReason, DataError):
    why: str
    text = """Dates such as DD/MM/YYYY don't show whether the day or the month is first: {reason}. Name the
    column as NAME:day-first or NAME:month-first in {arg:columns}."""
    reasons: ClassVar[Mapping[str, str]] = {
        "both": "both orders occur",
        "none": "no part is above 12",
        "one user": "the dates of one user alone show it",
    }


class WrongType(FileError):
    path: str
    column: str
    found: str
    declared: str
    text = """Column {column!r} of {path} has type {found}, and the schema declares {declared}. Describe the
    file again, or pass a different schema."""


class OtherFormat(FileError):
    path: str
    found: str
    declared: str
    text = """{path} is {found}, but the schema declares {declared}. Describe the file again, or pass a
    different schema."""


class DeclaredByLayout(ParameterError):
    layout: str
    names: tuple[str, ...]
    text = """{arg:layout={layout}} already declares {names:all}, and you can declare a fact only once. Remove
    them."""


class FolderWithoutTables(FileError):
    folder: str
    netflix: bool = False
    text = """The folder {folder} has no tables, such as .csv, .jsonl or .parquet files, so there is nothing
    to read. Name a file."""

    def template(self) -> str:
        """Return the template; a known folder needs its layout."""
        known = "The folder {folder} looks like the Netflix Prize. Pass {arg:layout=netflix}."
        return known if self.netflix else self.text


class NoKey(FileError):
    path: str
    key: str
    text = """The path of {path} has no {key}=VALUE, but the schema declares the column {key}. Rename the
    folder, or describe the files again."""


class EmptyData(DataError):
    name: str
    what: str = "ratings"
    text = "{name} has no {what}, so there is nothing to learn. Check the file and how it is read."

    def template(self) -> str:
        """Return the template; unknown items have advice of their own."""
        if self.what == "items of the catalog":
            return self.text + " Write IDs as the catalog does, or name the item column with {arg:columns}."
        return self.text


class CatalogNeeded(ParameterError):
    text = """{arg:drop_unknown=True} needs {arg:catalog}: without a catalog, every item is known. Pass the
    catalog, or remove the option."""


class NotATable(WithReason, FileError):
    path: str
    found: str
    text = "{path} is {reason}."
    key = "found"
    reasons: ClassVar[Mapping[str, str]] = {
        "binary": "not text. CSV, TSV, JSON lines, Parquet and MovieLens files can be read",
        "json": "one JSON value. Write one object per line (JSON lines), or CSV",
        "python": "made of Python dictionaries. Write them as JSON, one object per line",
        "xml": "a web page or XML. Fetch the file itself",
        "netflix": "not a table. For a file of the Netflix Prize, pass {arg:layout=netflix}",
    }


class NothingToRead(WithReason, DataError):
    path: str
    found: str
    text = "{path} {reason}."
    key = "found"
    reasons: ClassVar[Mapping[str, str]] = {
        "column": "has one column, and a table needs the user and the item. "
        "Pass its separator: {arg:delimiter=;}. If titles are above the header, pass the names of the user "
        "and item columns with {arg:columns} instead of {arg:skip_rows}",
        "empty": "is empty, so there is nothing to learn. Check the path",
        "comments": "has comments and no ratings. Check the path, or pass {arg:comment}",
        "header": "has a header and no ratings. Check the path",
        "objects": "begins as JSON lines do, but has no objects with keys. Write one object per line",
        "lists": "has lines of different lengths. If each is a user and the user's items, pass "
        "{arg:layout=lightgcn}",
    }


class MarkNeeded(ParameterError):
    path: str
    text = """{path} has no byte order mark, so the order of its bytes isn't known. Pass
    {arg:encoding=utf-16-le} or {arg:encoding=utf-16-be}."""


class KeysNeeded(ParameterError):
    names: tuple[str, ...]
    text = """JSON lines may each have different keys, so {arg:skip_bad_lines=True} needs them declared: pass
    {names:all} with {arg:columns}, and time=none without times."""


class NotASchema(ParameterError):
    path: str
    why: str
    text = "This isn't a schema in TOML: {why}. Write one with `discreet describe`."


class UnreadableSchema(FileError):
    path: str
    text = "{path} can't be read as a schema. Write one with `discreet describe`."


class UnknownEncoding(ParameterError):
    encoding: str
    text = """{arg:encoding} is {encoding!r}, which isn't a known encoding. Pass one such as utf-8,
    latin-1, or cp1252."""


class EncodingWithState(ParameterError):
    encoding: str
    text = """In {arg:encoding} {encoding!r}, the meaning of a byte depends on earlier bytes, so one user's
    text could change how other users' text is read. Convert the file to UTF-8, for example with iconv."""


class RepeatedIds(DataError):
    count: int
    of: int
    path: str = ""
    column: str = ""
    role: str = ""
    text = "{count:,} of {of:,} IDs are repeated, and an ID may occur once. Remove the repetitions."

    def template(self) -> str:
        """Return the template; a column that was guessed is named."""
        guessed = (
            "{count:,} of {of:,} IDs in {path} are repeated. No column has a usual name of the {role}, so "
            "{column!r} was read. Name the column of IDs {role}, or write each ID once, one per line."
        )
        return guessed if self.column else self.text


class IdsMissing(DataError):
    count: int
    of: int
    what: str
    text = """{count:,} of {of:,} {what} are missing, or neither whole numbers nor text. Remove these rows. In
    a file, {arg:skip_bad_lines=True} skips them."""


class WrongIds(DataError):
    what: str
    found: str
    text = """The {what} can't be used, because they are {found}, not 64-bit whole numbers or text. Convert
    them first."""


class OtherLengths(DataError):
    lengths: tuple[int, ...]
    text = """The columns have {lengths:all} values, but each row needs one value of each. Pass columns of
    the same length."""


class UnsoundRows(WithReason, DataError):
    rule: str
    text = "{reason}. Build the data with from_arrays."
    key = "rule"
    reasons: ClassVar[Mapping[str, str]] = {
        "lengths": "The arrays of the interactions have different lengths",
        "rows": "The rows of the data don't follow each other",
        "items": "Some ratings are of items outside the catalog",
        "order": "A row isn't in the order of its items, or has an item twice",
        "finite": "Some ratings are NaN or infinite",
    }


class NotIds(ParameterError):
    argument: str
    found: str
    text = """{arg:{argument}} is {found}, which has no IDs. Pass a list, a series, an array of one
    dimension, a data frame, the path of a file, or a Vocabulary."""


class UnclearIds(WithReason, DataError):
    path: str
    role: str
    why: str
    text = "{path} {reason}."
    reasons: ClassVar[Mapping[str, str]] = {
        "frame": "has several columns, and none has a usual name of {role} IDs. Pass that column alone",
        "users": "has a column of users, and a catalog is public. Pass a table of items",
        "missing": "has rows without the {role} ID. Fill in the IDs, or remove these rows",
        "table": "may be a table, or a list of {role} IDs with separators in them. Write {role} as the "
        "first line "
        "above a list, or a header such as {role},title above a table",
        "fields": "has rows with more or fewer fields than its header. Put quotes around fields that "
        "contain the "
        "separator",
        "type": "has {role} IDs that are neither whole numbers nor text",
        "object": "has an object without the {role} ID. Write one object per line, each with an ID",
    }


class UnreadableIds(FileError):
    path: str
    role: str
    text = """{path} can't be read as text with one {role} ID per line, or as a table with them. Check the
    file, or write it in one of these forms."""


class PublicTableWrong(WithReason, DataError):
    why: str
    what: str = "items"
    text = "The table of {what} {reason}."
    reasons: ClassVar[Mapping[str, str]] = {
        "foreign": "has no item of the catalog. Its first column must have item IDs",
        "columns": "needs item IDs in its first column and at least one column more, with a comma, "
        "semicolon or tab "
        "between them",
        "repeated": "has an item twice, or a row without an ID. Keep one row per item",
        "same": "doesn't tell items apart. Add numbers, or words that several items share",
        "infinite": "has infinite numbers. Remove them",
        "frame": "isn't a file or a data frame. Pass a path, or a frame of pandas, polars, or pyarrow",
    }


class TooFewToSplit(WithReason, DataError):
    ratings: int
    why: str
    text = "{ratings:rating|ratings} can't be split: {reason}."
    reasons: ClassVar[Mapping[str, str]] = {
        "fraction": "a part would be empty. Choose a different fraction",
        "folds": "there are too few for these folds. Use fewer folds",
        "one": "no user has two ratings, so leaving one out leaves nothing. Split with random:0.1",
        "moment": "all have the same time. Split with leave-one-out",
        "date": "all are on one side of the date. Choose a different date",
        "empty": "both files of a given split need ratings",
    }


class SplitNeedsTimes(DataError):
    unread: str | None = None
    text = "The ratings have no times, so they can't be split by time. Split with leave-one-out."

    def template(self) -> str:
        """Return the template; a column that looks like times is named."""
        named = (
            "The ratings have no times, and the column {unread!r} looks like times. Read it with "
            "time={unread} in {arg:columns}."
        )
        return named if self.unread else self.text


class GivenSplitWrong(DataError):
    count: int
    of: int
    why: str
    text = """{count:,} of {of:,} hidden ratings are also in the training file, so scores would be too
    good. Remove them from one of the files."""

    def template(self) -> str:
        """Return the template."""
        again = (
            "{count:rating|ratings} of the given split repeat a user-item pair of the same file. Pass "
            "{arg:duplicates=last} to keep the latest of each."
        )
        return self.text if self.why == "shared" else again


class FetchFailed(FileError):
    why: str
    text = """The dataset can't be fetched: {why}. Check the connection, or put the files into the folder
    DISCREET_DATA."""
