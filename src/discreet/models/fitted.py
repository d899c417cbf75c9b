"""A fitted model with its guarantee and its origin: predict, recommend, save and load."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from functools import cache, wraps
from importlib import resources
from itertools import starmap
from numbers import Number
from pathlib import Path
from typing import TYPE_CHECKING, Any, ParamSpec, Self, TypeVar, Unpack, final, overload

import numpy as np
import numpy.typing as npt

from discreet.core import CallOfAnotherLibrary, Floats, Singles, integer, kind_of, of_kind
from discreet.data import Choice, Interactions, PublicFacts, Schema, TableOptions, Vocabulary
from discreet.models.answers import Explanation, ListedItem, Listing, SimilarItem, SimilarItems
from discreet.models.errors import (
    MalformedPart,
    NoRatingsPredicted,
    NoSuchMember,
    NotPairs,
    OtherCatalog,
    SimilarItemsHasNo,
    UnknownItems,
)
from discreet.models.histories import History, ItemId, Moment, people_rows, person_row
from discreet.models.items import PublicColumns, beside, read_columns, read_table, unknown_item
from discreet.models.lists import Wanted, one_list, recommend_rows
from discreet.models.scorers.scorer import Scorer
from discreet.privacy import Guarantee
from discreet.report import TableView, condition_text

if TYPE_CHECKING:
    from discreet.privacy import ReleaseEntry
    from discreet.privacy.ledger.records import Entry

P = ParamSpec("P")
R = TypeVar("R")


def _one_k(method: Callable[P, R]) -> Callable[P, R]:
    """Reject a call with another library's arguments by place, before Python rejects it in its own words."""

    @wraps(method)
    def called(*given: P.args, **named: P.kwargs) -> R:
        # The model, the history, and k.
        if len(given) > (2 if "k" in named else 3):
            raise CallOfAnotherLibrary(given=["userid", "user_items"])
        return method(*given, **named)

    return called


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


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class FittedModel(TableView):
    """A model that answers from released numbers. A user's vector comes from the history in the request.

    Example:
        >>> from discreet import Popularity, PrivacyRandom
        >>> from discreet.data.datasets.synthetic import popularity_skewed
        >>> films = popularity_skewed(n_users=100, n_items=40, mean_per_user=15)
        >>> model = Popularity(epsilon=1.0).fit(films, random=PrivacyRandom.simulate(0))
        >>> [len(model.recommend([films.catalog.id_at(0)], k=k)) for k in (1, 3)]
        [1, 3]

    Stability
        Stable.
    """

    guarantee: Guarantee
    facts: PublicFacts
    catalog: Vocabulary
    name: str
    parameters: dict[str, Any]
    scorer: Scorer
    #: Titles and other texts to show next to item IDs; nothing is computed from them.
    public: PublicColumns = field(default_factory=dict)
    #: The exact releases behind the guarantee, which `discreet-verify` checks; None if they weren't recorded.
    certificate: dict[str, Any] | None = None
    #: How the data of the fit were written, so that the next file is read alike; None if no file was read.
    schema: Schema | None = None
    #: When, by which program, and on which account the model was fitted; None for files that don't state it.
    origin: Origin | None = field(default=None, compare=False)
    #: What the fit released, in exact numbers; empty for a model that was loaded or learned from reports.
    releases: tuple[ReleaseEntry, ...] = field(default=(), compare=False, repr=False)

    @property
    def above(self) -> float | None:
        """Return the rating above which a binary rating is +1, or None for models that predict ratings."""
        return self.scorer.above

    def predict(self, histories: Interactions, rows: npt.ArrayLike, items: npt.ArrayLike) -> Floats:
        """Return a prediction for each pair (rows[c], items[c]); `rows` are rows of `histories`."""
        self.require_ratings()
        self._same_catalog(histories)
        rows, items = np.asarray(rows, dtype=np.int64), np.asarray(items, dtype=np.int64)
        if rows.shape != items.shape:
            raise NotPairs(name="rows")
        if rows.size and not (rows.min() >= 0 and rows.max() < histories.n_users):
            raise NotPairs(name="rows")
        if items.size and not (items.min() >= 0 and items.max() < len(self.catalog)):
            raise NotPairs(name="items")
        return self.scorer.predict(histories, rows, items)

    def scores(self, histories: Interactions, rows: npt.ArrayLike) -> Singles:
        """Return a score for every item of the catalog for each of these users."""
        self._same_catalog(histories)
        return self.scorer.scores(histories, np.asarray(rows, dtype=np.int64))

    def worth(self, histories: Interactions, rows: npt.ArrayLike, *, rank_by: str | None = None) -> Singles:
        """Return the numbers that lists are ordered by, served or evaluated, for each of these users."""
        self._same_catalog(histories)
        return self.scorer.worth_by(histories, np.asarray(rows, dtype=np.int64), rank_by)

    @_one_k
    def recommend(
        self,
        history: History,
        k: int = 10,
        *,
        exclude_seen: bool = True,
        among: Iterable[ItemId] | None = None,
        exclude: Iterable[ItemId] | None = None,
        ignore_unknown: bool = False,
        rank_by: str | None = None,
        diversify: float = 0.0,
        user: ItemId | None = None,
        columns: Choice | None = None,
        now: Moment | None = None,
        **others: object,
    ) -> Listing[ListedItem]:
        """Return the `k` best items for a user with this history, best first: (item, score) pairs.

        The score is what the list is sorted by; `scorer.ranked_by` names it. A place also has
        `expected_stars`, the rating that the user is expected to give, if the model predicts one, and
        `item`, `score` and `title` by name.

        `history` is a list, read oldest first: of item ids, of (item, rating) pairs, or of rows such as
        `{"item": 7, "rating": 4, "time": 964982703}`, whose times decide if they are there. A mapping from
        item to rating and a set have no order; a data frame of one user has one if it has times, and
        `columns` names its columns, as in `{"item": "sku"}`. The
        history is used here and forgotten. `user` names the user, for models that have rows of their own
        users. Only items `among` these and not in `exclude` are listed; `ignore_unknown` skips items
        of the history that are not in the catalog. A model that knows both orders by `rank_by`: "choice"
        (what the user would choose), "stars" (how they would rate it) or, as usual, "both". `diversify` from
        0 to 1 lets items that are unlike the others of the list come forward; the score then is an item's own
        worth, from 0 to 1, less what it shares with those above it.

        `now` is when the list is requested: a date such as "2026-01-31T12:00", a datetime, seconds since
        1970, or "now" for the clock. If the history has times and its latest is long ago, the latest items
        count less and popular items more. If you don't state it, no time has passed.
        """
        if others or isinstance(history, str) or _is_number(history) or not _is_number(k):
            # As in implicit: recommend(userid, user_items, N=10).
            raise CallOfAnotherLibrary(
                given=[*others] or ["userid", *([] if _is_number(k) else ["user_items"])]
            )
        person = self._person(history, user=user, ignore_unknown=ignore_unknown, columns=columns, now=now)
        how = {"exclude_seen": exclude_seen, "rank_by": rank_by, "diversify": diversify}
        entries = one_list(self, person, Wanted.of(self, k=k, among=among, exclude=exclude, **how))
        return Listing(starmap(ListedItem, entries), frame_kind=kind_of(history))

    def recommend_all(
        self,
        histories: Any,
        k: int = 10,
        *,
        exclude_seen: bool = True,
        among: Iterable[ItemId] | None = None,
        exclude: Iterable[ItemId] | None = None,
        ignore_unknown: bool = False,
        rank_by: str | None = None,
        diversify: float = 0.0,
        columns: Choice | None = None,
        now: Moment | None = None,
        **how: Unpack[TableOptions],
    ) -> Any:
        """Return the `k` best items for many users: a frame of user, rank, item and score.

        Lists are sorted by the score; `expected_stars` are next to it if the model predicts them, and
        `title` if it has public columns. `histories` are interactions, a path or a data frame, in order
        where they have times; a mapping from users to histories as `recommend` takes them; or a list of
        histories, whose users are 0, 1, 2... The frame is of the kind that was given (pandas, pyarrow), else
        of polars. `columns` names the columns of a frame, as in `{"user": "who"}`; the column of users keeps
        that name. A path and a frame take the keywords of `read` that state how to read them, such as
        `skip_bad_lines`. The other arguments are those of `recommend`.
        """
        people = people_rows(self, histories, ignore_unknown=ignore_unknown, columns=columns, now=now, **how)
        order = {"exclude_seen": exclude_seen, "rank_by": rank_by, "diversify": diversify}
        wanted = Wanted.of(self, k=k, among=among, exclude=exclude, **order)
        found = recommend_rows(self, people, wanted, titles=True)
        who = (columns or {}).get("user") or "user"
        found = found if who in found.columns else found.rename({"user": who})
        return of_kind(found, kind_of(histories))

    def predict_items(
        self, history: History, items: Iterable[ItemId], *, columns: Choice | None = None
    ) -> dict[ItemId, float]:
        """Return the prediction for each of these items, by id, for a user with this history."""
        self.require_ratings()
        ids = list(items)
        places = self.catalog.index_of(ids).astype(np.int64)
        if (places < 0).any():
            raise UnknownItems(count=int(np.count_nonzero(places < 0)), of=len(ids), where="request")
        person = self._person(history, columns=columns)
        found = self.scorer.predict(person, np.zeros(places.size, dtype=np.int64), places)
        return dict(zip(ids, found.tolist(), strict=True))

    def explain(
        self,
        history: History,
        item: ItemId,
        *,
        user: ItemId | None = None,
        ignore_unknown: bool = False,
        columns: Choice | None = None,
        now: Moment | None = None,
    ) -> Explanation:
        """Return why an item has its place in this user's list, in parts that add up to its score.

        All is relative to the average item of the lower half of the user's own ranking: by how much
        popularity, the history, its order and expected stars lift the item above it, as far as the model
        knows them, and which of the user's own ratings do. Like a list, this is made from the history that
        the user brings; no other user's ratings are read. `columns` and `now` are as in `recommend`.
        """
        from discreet.models.answers import explain_item

        person = self._person(history, user=user, ignore_unknown=ignore_unknown, columns=columns, now=now)
        return explain_item(self, person, self._place(item))

    def fold_in(self, history: History, *, columns: Choice | None = None) -> Floats:
        """Return the latent vector of a user with this history."""
        vector: Floats = self.scorer.fold_in(self._person(history, columns=columns))[0]
        return vector

    def search_vector(self, history: History, *, now: Moment | None = None) -> Singles:
        """Return the vector that finds this user's items among the vectors of `discreet model export`.

        The inner product with an item's vector is the score of `recommend`, less what weights between items
        add: give what was found to `rerank`, with the same `now`. The vector is as private as the history.
        """
        from discreet.models.answers import search_vectors

        vector: Singles = search_vectors(self, self._person(history, now=now))[0]
        return vector

    def rerank(
        self,
        history: History,
        found: Iterable[ItemId],
        k: int = 10,
        *,
        exclude_seen: bool = True,
        now: Moment | None = None,
    ) -> Listing[ListedItem]:
        """Return the list of `recommend` from what a vector store `found` with `search_vector`.

        Ask the store for `k` items more than the history has. The best of them are scored again, with items
        that weights between items bring in, so the list is complete if the search was exact.
        """
        from discreet.models.answers import reranked

        return reranked(self, self._person(history, now=now), found, k, exclude_seen=exclude_seen)

    @overload
    def similar_items(self, item: ItemId, k: int = 10) -> Listing[SimilarItem]: ...  # type: ignore[overload-overlap]

    @overload
    def similar_items(self, item: Iterable[ItemId], k: int = 10) -> SimilarItems: ...

    def similar_items(
        self, item: ItemId | Iterable[ItemId], k: int = 10, **others: object
    ) -> Listing[SimilarItem] | SimilarItems:
        """Return up to `k` neighbors of an item, nearest first: (item, similarity) pairs.

        Only items that stand out of the noise are named, so there may be fewer, or none. Each has the chance
        that noise alone didn't bring it near (`above_noise`). The noise follows from the guarantee and the
        released counts, which costs nothing. An empty list states why. With a
        list of items, neighbors come by item, and `to_frame` returns all of them as one table.
        """
        from discreet.models.answers import similar_to

        if others:
            raise SimilarItemsHasNo(given=[*others])
        integer("k", k, least=1)
        several = not isinstance(item, str | bytes | int | np.integer)
        asked: list[Any] = list(item) if several else [item]  # type: ignore[arg-type]
        found = similar_to(self, [self._place(one) for one in asked], k)
        return SimilarItems(zip(asked, found, strict=True)) if several else found[0]

    def add_items(self, table: Any) -> FittedModel:
        """Return a model that also serves items without ratings, from public features of items.

        `table` is a file or a data frame of all items, ids in its first column, with their public features:
        numbers, words, lists of words (genres). The map from features to item vectors is learned from
        released numbers of known items, so it costs no budget; the table must not come from the ratings.
        """
        from discreet.models.items import with_new_items

        return with_new_items(self, table)

    def with_titles(self, table: Any) -> FittedModel:
        """Return the model with titles or other columns of a public table; its first column has item IDs.

        `table` is a file or a data frame. Its columns are kept in the model's file as public metadata, so it
        must not come from the ratings.
        """
        return replace(self, public=read_columns(read_table(table), self.catalog))

    def titles(self, items: Iterable[ItemId]) -> dict[ItemId, dict[str, str]]:
        """Return the public columns of these items; empty where no table was given."""
        return beside(self.public, self.catalog, items)

    def __repr__(self) -> str:
        """Describe the model in one line; the label has the rest."""
        promise = self.guarantee
        level = f"epsilon={promise.epsilon:g}" if promise.is_private else "not private"
        if promise.is_private and promise.conditions:
            level += f" if {condition_text(promise.conditions)}"
        return f"FittedModel({self.name}, {level}, {len(self.catalog):,} items)"

    def _table(self) -> tuple[Sequence[str], Sequence[Sequence[object]], str]:
        from discreet.models.storage import label_of
        from discreet.report import label_lines

        settings = ", ".join(f"{name}={value}" for name, value in self.parameters.items())
        about = [("Items", f"{len(self.catalog):,}"), ("Settings", settings)]
        rows = [*about, *label_lines(label_of(self), self.guarantee)]
        return (), rows, f"Model: {self.name}"

    def save(self, path: str | Path, *, force: bool = False) -> None:
        """Write the model and its label to one file; an existing file is kept unless `force`."""
        from discreet.models.storage import save

        save(self, Path(path), force=force)

    def require_ratings(self) -> None:
        """Raise if this model can't predict ratings: there were some, and the fit ignored them."""
        if self.parameters.get("purpose") == "lists" and self.parameters.get("feedback") == "explicit":
            raise NoRatingsPredicted()

    # Type checkers know the members, and must reject others.
    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> object:
            """Raise with the present name of what earlier versions and other libraries call otherwise."""
            raise NoSuchMember(
                member=name, members=[one for one in dir(FittedModel) if not one.startswith("_")]
            )

    def _place(self, item: ItemId) -> int:
        place = int(self.catalog.index_of([item])[0])
        if place < 0:
            raise unknown_item(item, self.catalog, self.public)
        return place

    def _same_catalog(self, histories: Interactions) -> None:
        if histories.catalog is not self.catalog and histories.catalog != self.catalog:
            raise OtherCatalog()

    def _person(self, history: History, **how: Any) -> Interactions:
        """Return the row of one user, in the model's catalog."""
        return person_row(self, history, **how)


def _is_number(value: object) -> bool:
    return isinstance(value, Number)
