"""Errors of reading and encoding data. No field contains a value of a row."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import ClassVar

from discreet.core.errors import DataError, FileError, ParameterError, most_similar


class WeightsOverflow(DataError):
    """Weights of repeated events add up to more than a number can represent."""

    text = "Weights of repeated events add up to more than a float can represent. Declare the rating scale."


class NoDataFile(FileError):
    """A known dataset has no such file here."""

    dataset: str
    why: str
    do: str
    text = "{dataset} can't be read: {why}. {do}"


class NotDeclared(DataError):
    """Data has IDs that were not declared."""

    count: int
    of: int
    what: str
    declared: int
    example: object = None
    text = (
        "{count:,} of {of:,} {what} aren't among the {declared:,} declared ones{such}. Declare them too, or "
        "ignore them: {arg:drop_unknown=True}."
    )

    @property
    def such(self) -> str:
        """A declared ID, which is public, if no ID of the data matches."""
        return "" if self.example is None else f" (such as {self.example!r})"


class OtherNumberOfItems(DataError):
    """A declared number of items differs from the number found."""

    declared: int
    items: int
    text = (
        "n_items={declared:,} was declared, and {items:,} items were found. Pass {arg:catalog} with every "
        "item ID, rated or not."
    )


class BadValues(DataError):
    """Some ratings or times are missing or can't be used."""

    what: str
    count: int
    of: int
    text = (
        "{count:,} of {of:,} {what} are missing or not finite. Fill them in, or remove these rows. In a text "
        "file, {arg:skip_bad_lines=True} skips them."
    )


class NotNumeric(DataError):
    """A column must have numbers."""

    what: str
    kind: str = "numbers"
    found: str = "text"
    text = "The {what} must be {kind}, not {found}. Choose another column, or convert it."


class RepeatedPairs(DataError):
    """Some rows repeat a pair of user and item."""

    count: int
    of: int
    text = (
        "{count:,} of {of:rating repeats|ratings repeat} a user-item pair, and each pair may appear once. "
        "Pass {arg:duplicates=last} to keep the latest row, or choose first, mean, or count."
    )


class DamagedFacts(ParameterError):
    """Stored facts can't be read."""

    reason: str
    text = "The stored facts can't be read: {reason}. Get a fresh copy, or fit the model again."


class UnknownArgument(ParameterError):
    """A function has no argument of this name."""

    argument: str
    known: Collection[str]
    text = "{argument!r} isn't an argument here.{close:?} The arguments are {known:all}."

    @property
    def close(self) -> str | None:
        """The most similar argument."""
        return most_similar(self.argument, self.known)


class DeclaredTwice(ParameterError):
    """Facts were declared in two ways."""

    names: tuple[str, ...]
    text = "{names:all} are already part of the facts. Declare them once."


class NoRows(DataError):
    """The data has no ratings, and something must come from them."""

    what: str
    text = "The data has no ratings, so the {what} can't be read from it. Declare the {what}."


class OffDeclaredScale(DataError):
    """Ratings are outside a declared scale, or between its steps."""

    count: int
    of: int
    low: float
    high: float
    step: float | None = None
    text = (
        "{count:,} of {of:rating is|ratings are} not on the declared scale, {low} to {high}{steps}. Declare "
        "the scale of the data."
    )

    @property
    def steps(self) -> str:
        """The step of the scale."""
        return "" if self.step is None else f" in steps of {self.step:g}"


class ColumnsUnused(ParameterError):
    """Columns or facts were given for data that has its own."""

    argument: str
    found: str
    text = (
        "{arg:{argument}} is for a file or a data frame, and {found} has its own. Remove it, or declare it "
        "where the data is read."
    )


class OneUserNeeded(DataError):
    """A history has rows of several users."""

    users: int
    text = "The history has {users:user|users}, and one is needed. Pass the rows of one user, or {arg:user}."


class BadHistory(DataError):
    """A history has a form that can't be read."""

    must: str
    text = "A history must {must}. Pass a list of items, (item, rating) pairs, a mapping, or a data frame."


class NoSuchData(FileError):
    """A name is neither a file nor a known dataset."""

    name: str
    datasets: Collection[str]
    text = "{name} is neither a file nor a known dataset.{close:?} The known datasets are {datasets:all}."

    @property
    def close(self) -> str | None:
        """The most similar dataset."""
        return most_similar(self.name, self.datasets)


class RatingAndWeight(ParameterError):
    """Columns of both a rating and a weight were named."""

    text = "A row has a rating or a weight, and {arg:columns} names both. Remove one of them."


class NoColumn(DataError):
    """A column that the caller names for a role doesn't exist; `spare` if some columns have no role."""

    column: str
    role: str
    columns: tuple[str, ...]
    spare: bool
    text = "The column {column!r} for the {role} doesn't exist. The columns are {columns:all}."


class RolesMissing(DataError):
    """No column is known to have the user, the item or the rating."""

    roles: tuple[str, ...]
    columns: tuple[str, ...]
    text = (
        "Can't find the {roles:any} column. The columns are {columns:all}. Pass columns=dict({python}).{hint}"
    )

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
        """The advice for data without ratings."""
        return " If rows have no ratings, learn from interactions." if "rating" in self.roles else ""


class OneColumnTwice(ParameterError):
    """One column was named for two roles."""

    roles: tuple[str, ...]
    text = "One column can't be the {roles:all}. Name different columns with {arg:columns}."


class UnreadableValues(DataError):
    """Some values of a column are text where a number belongs."""

    count: int
    of: int
    role: str
    column: str
    text = (
        "{count:,} of {of:,} {role}s are text where a number belongs (column {column}). Choose another "
        "column, or skip such rows: {arg:skip_bad_lines=True}."
    )


class NotAFrame(ParameterError):
    """An object isn't a data frame."""

    found: str
    text = "{found} isn't a data frame. Pass one of pandas, polars, or pyarrow."


class HeaderUnclear(DataError):
    """The first line of a user's own file names no column in a usual way."""

    file: str
    columns: tuple[str, ...]
    names: str
    text = (
        "The first line of {file} names no column in a usual way: {columns:all}. Name them with "
        "{arg:columns}. If the line isn't a header, use column_1 and so on."
    )


class HistoryRatingsNeeded(DataError):
    """A history for a model of ratings has no column of ratings."""

    text = (
        "This model was fitted on ratings, and no column of the history is known to have them. Name it "
        "with {arg:columns}."
    )


class UserNotInHistory(DataError):
    """A user has no row in a file of histories."""

    text = "This user has no row in the history. Pass a file with the user's own ratings."


class DamagedFile(FileError):
    """A file whose bytes are not what its kind declares."""

    path: str
    what: str
    text = "{path} is damaged and can't be read as {what}. Write it, or fetch it, again."


class TooManyRows(FileError):
    """A packed file with more rows than a file of its size usually has."""

    path: str
    text = (
        "{path} states more rows than a file of its size can contain. If it is your file, write it as text "
        "without packing it."
    )


class UnpacksToTooMuch(FileError):
    """A packed file that becomes far larger than it is."""

    path: str
    times: int
    text = "{path} unpacks to more than {times} times its size, and ratings don't. Unpack it yourself first."


class OtherLayout(DataError):
    """A file that isn't written in the layout that the caller names."""

    path: str
    layout: str
    text = "{path} isn't written as {form}. Name a different layout, or none."
    forms: ClassVar[Mapping[str, str]] = {
        "movielens": "MovieLens files are: four fields between tabs or ::, or the header "
        "userId,movieId,rating,timestamp",
        "recbole": "RecBole's .inter files are: a header such as user_id:token, item_id:token, rating:float, "
        "with tabs between",
    }

    @property
    def form(self) -> str:
        """Return what such a file looks like."""
        return self.forms.get(self.layout, f"files of {self.layout} are")


class OtherType(DataError):
    """A column whose header declares a type that its role can't have."""

    role: str
    column: str
    expected: str
    text = "Column {column!r} can't be the {role}: its header must declare the type {expected}."


class PackageMissing(ParameterError):
    """A kind of file whose reader isn't installed."""

    package: str
    extra: str
    text = "This kind of data needs the package `{package}`. Install discreet[{extra}]."


class NoTable(FileError):
    """A database or spreadsheet without the table that the caller names, or with several."""

    kind: str
    table: str
    tables: tuple[str, ...]
    text = "{kind} has {tables:and}, and no table {table!r}. Name one as in FILE::TABLE."

    def template(self) -> str:
        """Return the template; without a name the caller has to choose."""
        if not self.tables:
            return "The {kind} database has no tables."
        return self.text if self.table else "{kind} has {tables:and}. Name one as in FILE::TABLE."


class UnreadableCells(FileError):
    """A spreadsheet, table or query that can't be read. The words of a database aren't shown."""

    kind: str
    source: str
    text = "{kind} can't read {source!r}. Check the table or the query, and that the file is not in use."


class IdsNotWhole(DataError):
    """IDs that are not of the type that the schema declares."""

    count: int
    of: int
    role: str
    text = (
        "{count:,} of {of:,} {role} IDs are not whole numbers, as the schema declares. Declare "
        '{role}_type = "text", or pass {arg:skip_bad_lines=True} to skip these rows.'
    )


class NoFiles(FileError):
    """A path, pattern or list that matches no file."""

    source: str
    text = (
        "There is no file or folder {source}. A pattern such as 'months/*.csv' must match at least one file."
    )
