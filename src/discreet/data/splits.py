"""Split ratings into training and test parts; both keep the same users and catalog."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal, Self, Unpack, final

import numpy as np
import numpy.typing as npt
import polars as pl

from discreet.core import BrokenRule, experiment_generator, integer, logger, real, require
from discreet.data.encoding import Index
from discreet.data.epochs import epoch_seconds
from discreet.data.errors import GivenSplitWrong, SplitNeedsTimes, TooFewToSplit
from discreet.data.facts import N_ITEMS, Declarations, Duplicates
from discreet.data.guessing import NOTHING, Wishes
from discreet.data.interactions import Interactions
from discreet.data.reading.columns import Columns
from discreet.data.reading.listed_values import remarking_on_values
from discreet.data.reading.readers import build, read_source
from discreet.data.reading.tables import TableSource, fits
from discreet.data.roles import WEIGHT, Choice
from discreet.data.schema import WITH_COLUMNS
from discreet.data.vocabulary import Vocabulary

Kind = Literal["random", "kfold", "leave-one-out", "time", "given"]
# These need no number.
_BARE: dict[str, Kind] = {"random": "random", "kfold": "kfold", "time": "time"}
_FORMS = "random:0.1, kfold:10, leave-one-out, time:0.1, time:2026-01-31 or given:TRAIN,TEST"


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Split:
    """The training and test parts; users and items that occur in only one stay in both."""

    train: Interactions
    test: Interactions

    @classmethod
    def by_mask(cls, data: Interactions, is_test: npt.NDArray[np.bool_]) -> Self:
        """Return the split that hides the marked ratings."""
        return cls(train=data.where(~is_test), test=data.where(is_test))

    @classmethod
    def by_time(cls, data: Interactions, is_test: npt.NDArray[np.bool_], cut: float) -> Self:
        """Return the split that hides the marked ratings; recommendations are requested at `cut`."""
        parts, now = cls.by_mask(data, is_test), float(epoch_seconds(np.array([cut]))[0])
        return parts if np.isnan(now) else replace(parts, train=parts.train.at(now))


def random_split(data: Interactions, fraction: float, seed: int) -> Split:
    """Return a split that hides the nearest whole number to `fraction` of all ratings, drawn evenly."""
    share = real("fraction", fraction)
    require(0 < share < 1, "fraction", fraction, must="be strictly between 0 and 1")
    held_out = round(share * data.n_ratings)
    if not 0 < held_out < data.n_ratings:
        raise TooFewToSplit(ratings=data.n_ratings, why="fraction")
    is_test = np.zeros(data.n_ratings, dtype=np.bool_)
    is_test[:held_out] = True
    experiment_generator(seed, "random split").shuffle(is_test)
    return Split.by_mask(data, is_test)


def kfold(data: Interactions, k: int, seed: int) -> Iterator[Split]:
    """Yield k splits whose tests are disjoint, of equal size give or take one, and together all ratings."""
    integer("k", k, least=2)
    if data.n_ratings < k:
        raise TooFewToSplit(ratings=data.n_ratings, why="folds")
    fold = np.resize(np.arange(k, dtype=np.int32), data.n_ratings)
    experiment_generator(seed, "folds").shuffle(fold)
    return (Split.by_mask(data, fold == number) for number in range(k))


def leave_one_out(data: Interactions, seed: int = 0) -> Split:
    """Return a split that hides one rating of each user: the latest; without an order in time, a random one.

    Of several at the latest time the last listed is hidden. Without times, or if all of a user's ratings have
    one time (some exports stamp one day on every row), `seed` draws: many files are sorted by item. A user
    with a single rating keeps it for learning: a user without any can't be tested fairly.
    """
    lengths = np.diff(data.indptr)
    if not np.any(lengths > 1):
        raise TooFewToSplit(ratings=data.n_ratings, why="one")
    rated = np.flatnonzero(lengths)
    starts, sizes = data.indptr[rated], lengths[rated]
    chosen = starts + experiment_generator(seed, "leave one out").integers(0, sizes)
    if data.times is not None:
        latest = np.maximum.reduceat(data.times, starts)
        is_latest = data.times == np.repeat(latest, sizes)
        listed = np.where(is_latest, _listing(data), -1)
        is_last = listed == np.repeat(np.maximum.reduceat(listed, starts), sizes)
        ordered = np.minimum.reduceat(data.times, starts) < latest
        chosen[ordered] = np.flatnonzero(is_last)[ordered]
    hidden = np.zeros(data.n_ratings, dtype=np.bool_)
    hidden[chosen[sizes > 1]] = True
    return Split.by_mask(data, hidden)


def time_split(data: Interactions, fraction: float) -> Split:
    """Return a split that hides the latest ratings, as near to `fraction` as one cut in time allows.

    Ratings of the same moment stay together. Who came after the cut is tested with an empty history.
    """
    share = real("fraction", fraction)
    require(0 < share < 1, "fraction", fraction, must="be strictly between 0 and 1")
    if data.times is None:
        raise SplitNeedsTimes(unread=data.unread_times)
    moments, counts = np.unique(data.times, return_counts=True)
    if moments.size < 2:
        raise TooFewToSplit(ratings=data.n_ratings, why="moment")
    later = data.n_ratings - np.cumsum(counts)[:-1]
    cut = moments[int(np.argmin(np.abs(later - share * data.n_ratings)))]
    return Split.by_time(data, data.times > cut, cut)


def date_split(data: Interactions, date: str) -> Split:
    """Return a split that hides all ratings from a public date on, for all users.

    Times are seconds since 1970; the date is in UTC unless it states a zone.
    """
    if data.times is None:
        raise SplitNeedsTimes(unread=data.unread_times)
    moment = datetime.fromisoformat(date)
    cut = (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
    later = data.times >= cut
    if later.all() or not later.any():
        raise TooFewToSplit(ratings=data.n_ratings, why="date")
    return Split.by_time(data, later, cut)


def _listing(data: Interactions) -> Index:
    return np.arange(data.n_ratings, dtype=np.int64) if data.listed is None else data.listed


def given(
    train: str | Path,
    test: str | Path,
    *,
    folder: str | Path | None = None,
    columns: Choice | None = None,
    name: str | None = None,
    implicit: bool = False,
    like: Interactions | None = None,
    **declared: Unpack[Declarations],
) -> Split:
    """Read two files of an existing split; both parts get the users and items of the two files together.

    Names that are not a path themselves are searched in `folder`, also with `.gz` appended. `duplicates`
    applies to each file by itself. Interactions of the second file that the first has, too, aren't hidden:
    nothing that a user already has is recommended. A rating must not be in both files.

    The files are read `like` other data: with their schema, its conditions and weights, and without the
    users removed from them. A file of another form is described by itself, under the same conditions.
    """
    with remarking_on_values(like.schema) if like is not None and like.schema is not None else nullcontext():
        sources = [_source(_find(path, folder), columns, like, implicit=implicit) for path in (train, test)]
    catalog = declared.get("catalog")
    if isinstance(catalog, Vocabulary) and declared.get("drop_unknown"):
        # Before rows are counted: those of the test follow those of the training file.
        sources = [replace(one, columns=one.columns.only(_known(one.columns, catalog))) for one in sources]
    elif like is not None and N_ITEMS in like.facts.from_file:
        sources[1] = replace(sources[1], columns=_learnable(sources[1].columns, like.catalog))
    learned_from = len(sources[0].columns.users)
    if not all(len(source.columns.users) for source in sources):
        raise TooFewToSplit(ratings=0, why="empty")
    test_part = replace(sources[1], columns=_hidden(*(one.columns for one in sources), implicit=implicit))
    if not len(test_part.columns.users):
        raise TooFewToSplit(ratings=0, why="empty")
    if declared.get("duplicates", "refuse") == "refuse":
        _refuse_repeats(*(one.columns for one in sources))
    sources[1] = test_part
    people = declared.get("people")
    if people is not None and any(np.any(people.index_of(one.columns.users) < 0) for one in sources):
        # They are new users, who have no row in the data.
        declared.pop("people")
    weighted = like is not None and bool(like.facts.weights)
    data = build(sources, name=name, declared=declared, weighted=weighted)
    return Split.by_mask(data, _listing(data) >= learned_from)


def _source(path: Path, columns: Choice | None, like: Interactions | None, *, implicit: bool) -> TableSource:
    """Return the rows of one file, read like other data."""
    schema = None if like is None else like.schema
    if schema is None:
        found = read_source(path, Wishes.taken_from({}, columns, implicit=implicit))
    elif schema.format in WITH_COLUMNS and fits(path, schema):
        found = read_source(path, NOTHING, schema.remembered())
    else:
        rules = {name: getattr(schema, name) or None for name in ("only", "weights")}
        choice = {WEIGHT: schema.weight, **(columns or {})} if schema.weights else columns
        found = read_source(path, Wishes.taken_from(rules, choice, implicit=implicit))
    return found if like is None else replace(found, columns=_without(found.columns, like.removed))


def _drops_unknown(data: Interactions) -> bool:
    """Return whether the schema of the data skips rows of items outside the catalog."""
    return data.schema is not None and data.schema.unknown_items == "drop"


def _without(columns: Columns, removed: tuple[Any, ...]) -> Columns:
    """Return the rows of the users who aren't among those removed."""
    users, codes = Vocabulary.factorize(columns.users)
    stays = np.ones(len(users), dtype=np.bool_)
    for ids in removed:
        gone = users.index_of(ids)
        stays[gone[gone >= 0]] = False
    return columns if stays.all() else columns.only(pl.Series(stays[codes]))


def _known(columns: Columns, catalog: Vocabulary) -> pl.Series:
    """Return which rows are about items of a catalog."""
    return pl.Series(catalog.index_of(columns.items) >= 0)


def _learnable(test: Columns, catalog: Vocabulary) -> Columns:
    """Return the rows about items that the data have: no others were declared, and nothing learns them."""
    known = _known(test, catalog)
    # If none is known, the two write ids in different ways, and that is reported.
    if known.all() or not known.any():
        return test
    logger.warning(
        "%s of %s rows of the test file are about items that the data don't have. They are skipped.",
        f"{known.len() - known.sum():,}",
        f"{known.len():,}",
    )
    return test.only(known)


def _hidden(train: Columns, test: Columns, *, implicit: bool) -> Columns:
    """Return the rows to hide: interactions without those of the training file, or all ratings."""
    learned, hidden = _pairs(train, test)
    place = hidden.with_row_index("row")
    fresh = place.join(learned.unique(), on=["user", "item"], how="anti", maintain_order="left")["row"]
    shared = hidden.height - len(fresh)
    if not shared:
        return test
    if not implicit:
        raise GivenSplitWrong(count=shared, of=hidden.height, why="shared")
    logger.warning(
        "%s of %s hidden interactions aren't tested: the training file has them, and nothing that a user "
        "already has is recommended.",
        f"{shared:,}",
        f"{hidden.height:,}",
    )
    return test.only(place["row"].is_in(fresh.implode()))


def _refuse_repeats(*parts: Columns) -> None:
    """Reject pairs of user and item that are repeated in the same file."""
    pairs = _pairs(*parts)
    again = sum(one.height - one.n_unique() for one in pairs)
    if again:
        raise GivenSplitWrong(count=again, of=sum(one.height for one in pairs), why="repeated")


def _pairs(train: Columns, test: Columns) -> list[pl.DataFrame]:
    """Return users and items of both files, in types that can be compared."""
    users, items = _comparable(train.users, test.users), _comparable(train.items, test.items)
    return [pl.DataFrame({"user": user, "item": item}) for user, item in zip(users, items, strict=True)]


def _comparable(one: pl.Series, other: pl.Series) -> tuple[pl.Series, pl.Series]:
    """Return ids of one type: one file may hold only numbers where the other has text, too."""
    return (one, other) if one.dtype == other.dtype else (one.cast(pl.String), other.cast(pl.String))


def _find(path: str | Path, folder: str | Path | None) -> Path:
    paths = [Path(path)] if folder is None else [Path(path), Path(folder) / path, Path(folder) / f"{path}.gz"]
    return next((one for one in paths if one.is_file()), paths[-1] if folder is None else paths[1])


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class SplitPlan:
    """A split that was described in words, until there are data to split."""

    kind: Kind
    fraction: float = 0.1
    folds: int = 10
    files: tuple[str, str] = ("", "")
    date: str = ""

    def held_out(self, *, timed: bool) -> str:
        """Return in words what is held out of data with times, or without."""
        share = f"{100 * self.fraction:.3g}%"
        words = {
            "random": f"a random {share}",
            "kfold": f"each of {self.folds} parts in turn",
            "leave-one-out": (
                "the latest row of each user" if timed else "a random row of each user (without times)"
            ),
            "time": f"what came from {self.date} on" if self.date else f"the latest {share}",
            "given": self.files[1],
        }
        return words[self.kind]

    def digests(self, folder: str | Path | None = None) -> list[str]:
        """Return the checksum of each given file; none for other splits."""
        found = [_find(name, folder) for name in self.files if name]
        return [hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else "" for path in found]

    def splits(
        self,
        data: Interactions,
        seed: int,
        *,
        folder: str | Path | None = None,
        columns: Choice | None = None,
        drop_unknown: bool = False,
    ) -> Iterator[Split]:
        """Yield the split, or one for each fold; given files are read with the users and items of `data`.

        With `drop_unknown`, rows of given files about other items are skipped.
        """
        if self.kind == "kfold":
            return kfold(data, self.folds, seed)
        if self.kind == "random":
            split = random_split(data, self.fraction, seed)
        elif self.kind == "leave-one-out":
            split = leave_one_out(data, seed)
        elif self.kind == "time":
            split = date_split(data, self.date) if self.date else time_split(data, self.fraction)
        else:
            implicit, weighted = data.facts.low == data.facts.high, bool(data.facts.weights)
            rule: Duplicates = "refuse" if data.schema is None else data.schema.duplicates
            split = given(
                *self.files,
                folder=folder,
                columns=columns,
                name=data.name,
                implicit=implicit,
                # The files are split already: a repeat only shows what came last.
                duplicates="last" if implicit and not weighted else rule,
                facts=data.facts,
                catalog=data.catalog,
                people=data.users,
                drop_unknown=drop_unknown
                or (data.schema is not None and data.schema.unknown_items == "drop"),
                like=data,
            )
        return iter((split,))


def parse_split(text: str) -> SplitPlan:
    """Read `random:0.1`, `kfold:10`, `leave-one-out`, `time:0.1`, `time:2026-01-31` or `given:TRAIN,TEST`.

    `random` and `time` alone hold out a tenth, and `kfold` alone has ten folds.

    Example:
        >>> parse_split("kfold:5").folds
        5
    """
    kind, _, value = text.strip().partition(":")
    if text.strip() in _BARE:
        return SplitPlan(kind=_BARE[text.strip()])
    try:
        if kind == "time" and "-" in value:
            datetime.fromisoformat(value)
            return SplitPlan(kind="time", date=value)
        if kind in ("random", "time") and 0 < float(value) < 1:
            return SplitPlan(kind="random" if kind == "random" else "time", fraction=float(value))
        if kind == "kfold" and int(value) >= 2:
            return SplitPlan(kind="kfold", folds=int(value))
        if kind == "leave-one-out" and not value:
            return SplitPlan(kind="leave-one-out")
        train, test = (part.strip() for part in value.split(","))
        if kind == "given" and train and test:
            return SplitPlan(kind="given", files=(train, test))
    except ValueError:
        pass
    raise BrokenRule(name="split", value=text, must=f"be {_FORMS}")
