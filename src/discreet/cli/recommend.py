"""`discreet recommend`, `similar`, and `explain`: recommendations for one user or many, and the reasons."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from discreet.cli.errors import (
    HeaderOrUnknownItem,
    OptionDoesNotApply,
    OptionMissing,
    OptionNeeds,
    OptionsConflict,
    ShardsNeeded,
)
from discreet.cli.options.declared import AsJson, Columns, Force, HowMany, ModelFile, Titles
from discreet.cli.options.parsing import parse_columns, read_ids
from discreet.cli.options.sources import On
from discreet.cli.output.answers import (
    MOSTLY,
    REFERENCE,
    alike_by_design,
    mostly_popular,
    show_explanation,
    show_similar,
    tells_similar,
    title_of,
)
from discreet.cli.output.lists import (
    Beside,
    items_json,
    items_table,
    public_columns,
    write_lists,
    write_shard_lists,
)
from discreet.cli.output.printing import emit, show
from discreet.core.checks import integer

if TYPE_CHECKING:
    from discreet.models.fitted import FittedModel
    from discreet.models.listings import ListedItem, SimilarItem

_ORDERS = {"choice": "likely interactions, without ratings", "stars": "expected stars alone"}
STARS = "expected_stars"
_LONGEST_ID = 200
Now = Annotated[
    str | None,
    typer.Option(
        "--now",
        help="When the list is requested: a date such as 2026-01-31T12:00, or `now`. After a pause, popular "
        "items count more. Default: no time has passed.",
    ),
]


def recommend(
    file: ModelFile,
    all_users: Annotated[
        str | None, typer.Argument(help="With --all: histories of many users, or a folder of shards.")
    ] = None,
    for_all: Annotated[bool, typer.Option("--all", help="Write lists for all users; needs --out.")] = False,
    on: On = None,
    history: Annotated[
        Path | None,
        typer.Option(
            "--history",
            help="The history of one user: [user,]item,rating[,time] or, without ratings, "
            "[user,]item[,time]. Times set the order. A file with one column lists items, oldest first.",
        ),
    ] = None,
    histories: Annotated[
        Path | None,
        typer.Option(
            "--histories", help="The histories of many users, ordered by time if given; needs --out."
        ),
    ] = None,
    out: Annotated[
        Path | None, typer.Option("--out", help="Where to write the lists of many users: .csv or .parquet.")
    ] = None,
    user: Annotated[
        str | None,
        typer.Option("--user", help="The user's ID; needed if the history contains several users."),
    ] = None,
    k: HowMany = 10,
    columns: Columns = None,
    among: Annotated[
        Path | None, typer.Option("--among", help="List only these items: one ID per line, or a table.")
    ] = None,
    exclude: Annotated[
        Path | None, typer.Option("--exclude", help="Never list these items: one ID per line, or a table.")
    ] = None,
    rank_by: Annotated[
        str | None,
        typer.Option(
            "--rank-by",
            help="Order by `choice` (likely interactions), `stars` (ratings), or `both` (default).",
        ),
    ] = None,
    diversify: Annotated[
        float,
        typer.Option("--diversify", help="From 0 to 1: prefer items that differ from the rest of the list."),
    ] = 0.0,
    now: Now = None,
    titles: Titles = None,
    include_seen: Annotated[
        bool, typer.Option("--include-seen", help="Also list items of the history.")
    ] = False,
    ignore_unknown: Annotated[
        bool, typer.Option("--ignore-unknown", help="Ignore items that the model doesn't know.")
    ] = False,
    force: Force = False,
    as_json: AsJson = False,
) -> None:
    """Recommend items to one user from their own history, or to all users in a file of histories.

    Without a history, the recommendations are those for a new user.
    """
    from discreet.models.storage import load

    integer("-k", k, least=1)
    many = _many_people(all_users, histories, for_all=for_all)
    _refuse_unclear(history, many, out)
    if user is not None and history is None:
        raise OptionNeeds(
            options=("--user",),
            needs="--history FILE",
            why="a model contains no users, so their history comes from a file",
        )
    fitted = load(file)
    limits: dict[str, Any] = {
        "exclude_seen": not include_seen,
        "among": None if among is None else read_ids(among),
        "exclude": None if exclude is None else read_ids(exclude),
        "ignore_unknown": ignore_unknown,
        "rank_by": rank_by,
        "diversify": diversify,
        "now": now,
    }
    named = parse_columns(columns)
    if many is None:
        best, usual = _one(fitted, history, user, named, k, limits)
        order = _sorted_by(fitted, rank_by, diversify)
        _answer_one(fitted, best, titles, order, usual, as_json=as_json)
        if history is None and not as_json:
            show("These are recommendations for a new user. Pass a history with --history FILE.")
    elif out is not None:
        from discreet.sources.shards import is_shard_folder

        if is_shard_folder(many):
            if titles is not None:
                raise OptionDoesNotApply(
                    options=("--titles",),
                    to="a folder of shards",
                    why="the lists are written without titles, which you can join by item",
                )
            people = write_shard_lists(fitted, file, many, out, k, limits, on, force=force)
        elif on is not None:
            raise ShardsNeeded()
        else:
            # All public columns are written, not only the title.
            lists = fitted.recommend_all(_many(fitted, many, named), k, **limits).drop("title", strict=False)
            beside = public_columns(titles, fitted, lists["item"].unique().to_list())
            people = write_lists(lists, out, beside, force, [file, Path(many)])
        if as_json:
            emit({"file": str(out), "people": people})
        else:
            show(f"Written to {out}: lists for {people:,} users.")


def _many_people(all_users: str | None, histories: Path | None, *, for_all: bool) -> str | None:
    """Return where the histories of many users are. Raise for two places, or for half of one."""
    if for_all != (all_users is not None):
        raise OptionNeeds(
            options=("--all",),
            needs="a folder of histories",
            why="it recommends for all users of that folder",
        )
    if for_all and histories is not None:
        raise OptionsConflict(options=("--histories", "--all"), why="both name all users")
    return all_users if histories is None else str(histories)


def _refuse_unclear(history: Path | None, many: str | None, out: Path | None) -> None:
    """Raise unless there is one user, whose list is shown, or many users, whose lists go to a file."""
    if history is not None and many is not None:
        raise OptionMissing(options=("--history FILE", "--histories FILE"))
    if (many is None) != (out is None):
        raise OptionNeeds(
            options=("--histories",), needs="--out", why="recommendations for many users go to a file"
        )


def _answer_one(
    fitted: FittedModel,
    best: list[ListedItem],
    titles: Path | None,
    ranked_by: str,
    usual: float,
    *,
    as_json: bool,
) -> None:
    beside = public_columns(titles, fitted, [item for item, _ in best])
    stars = [one.expected_stars for one in best]
    if as_json:
        emit({"recommendations": items_json(best, beside, (STARS, stars)), "ranked_by": ranked_by})
    else:
        if not best:
            show("Nothing is left to recommend: every item of the catalog is in the history.")
            return
        alone = ranked_by.startswith(_ORDERS["stars"])
        show(items_table(best, beside, more=None if alone else ("expected stars", stars)))
        mostly = f" {mostly_popular(usual)} `discreet model explain` shows why." if usual >= MOSTLY else ""
        show(f"Sorted by score: {ranked_by}.{mostly}")


def _one(
    fitted: FittedModel,
    history: Path | None,
    user: str | None,
    columns: dict[str, str | None] | None,
    k: int,
    limits: dict[str, Any],
) -> tuple[list[ListedItem], float]:
    """Return a user's list, and the share of its first ten items that a new user gets, too."""
    from discreet.data.histories import read_history
    from discreet.models.answers import usual_share

    if history is None:
        return fitted.recommend([], k, user=user, **limits), 0.0
    implicit = not fitted.scorer.needs_ratings
    person = read_history(history, user=user, columns=columns, implicit=implicit)
    if not limits["ignore_unknown"]:
        _refuse_header(fitted, person.items, history)
    best = fitted.recommend(person, k, **limits)
    # A model of popularity can't have any other list.
    if alike_by_design(fitted) or any(limits[name] for name in ("among", "exclude", "rank_by", "diversify")):
        return best, 0.0
    return best, usual_share(fitted, person, ignore_unknown=limits["ignore_unknown"], now=limits["now"])


def _refuse_header(fitted: FittedModel, items: Sequence[str | int], history: Path) -> None:
    """Raise if only the first line of a list of items is unknown: it may be a header."""
    known = (fitted.catalog.index_of(items) >= 0).tolist()
    if len(known) < 2 or known[0] or not all(known[1:]):
        return
    with history.open("rb") as lines:
        first = lines.readline(_LONGEST_ID).decode("utf-8-sig", "replace").strip()
    if first == items[0]:
        raise HeaderOrUnknownItem(file=history.name, column=str(first))


def _sorted_by(fitted: FittedModel, rank_by: str | None, diversify: float) -> str:
    """Return what the score is."""
    order = _ORDERS.get(rank_by or "", fitted.scorer.ranked_by)
    return f"{order}; less what an item shares with those above it" if diversify else order


def _many(fitted: FittedModel, many: str, columns: dict[str, str | None] | None) -> Any:
    from discreet.data.inputs import open_data
    from discreet.data.reading.tables import fits

    implicit = not fitted.scorer.needs_ratings
    known = fitted.schema if fitted.schema is not None and fits(many, fitted.schema) else None
    return open_data(many, columns=columns, implicit=implicit, duplicates="last", schema=known)


def similar(
    file: ModelFile,
    items: Annotated[list[str], typer.Argument(help="One or several items of the model's catalog.")],
    k: HowMany = 10,
    titles: Titles = None,
    as_json: AsJson = False,
) -> None:
    """List the most similar items that exceed the noise. This costs no privacy budget."""
    from discreet.models.storage import load

    integer("-k", k, least=1)
    fitted = load(file)
    found = fitted.similar_items(items, k)
    # As the catalog spells them: on a command line every ID is text.
    asked = fitted.catalog.id_at(fitted.catalog.index_of(list(found))).tolist()
    beside = public_columns(
        titles, fitted, [*asked, *{other for near in found.values() for other, _ in near} - set(asked)]
    )
    if as_json:
        rows = {str(item): _json(near, beside) for item, near in found.items()}
        emit({"similar": rows if len(items) > 1 else rows[items[0]]})
        return
    for item, near in zip(asked, found.values(), strict=True):
        show_similar(fitted, item, near, k, beside)


def _json(near: Sequence[SimilarItem], beside: Beside) -> list[dict[str, Any]]:
    return items_json(near, beside, ("confidence", [one.confidence for one in near]))


def explain(
    file: ModelFile,
    item: Annotated[
        str | None,
        typer.Argument(help="An item of the model's catalog. Default: the first of the user's list."),
    ] = None,
    history: Annotated[
        Path | None, typer.Option("--history", help="The history of one user, as for recommend.")
    ] = None,
    user: Annotated[
        str | None, typer.Option("--user", help="The user's ID, if the history contains several users.")
    ] = None,
    columns: Columns = None,
    now: Now = None,
    titles: Titles = None,
    as_json: AsJson = False,
) -> None:
    """Show why an item has its place in a user's list: parts that add up to its score."""
    from discreet.data.histories import read_history
    from discreet.models.storage import load

    if history is None:
        raise OptionMissing(options=("--history FILE",))
    fitted = load(file)
    implicit = not fitted.scorer.needs_ratings
    person = read_history(history, user=user, columns=parse_columns(columns), implicit=implicit)
    how: dict[str, Any] = {"user": user, "ignore_unknown": True, "now": now}
    asked = fitted.recommend(person, 1, **how)[0][0] if item is None else item
    found = fitted.explain(person, asked, **how)
    beside = public_columns(titles, fitted, [found.item, *(own for own, _ in found)])
    if as_json:
        emit(
            {
                "item": asked,
                "score": found.score,
                "rank": found.rank,
                "ranked_by": found.ranked_by,
                "reference": {"score": found.reference, "is": REFERENCE},
                "parts": dict(found.parts),
                "reasons": items_json(found.reasons, beside),
                "usual": found.usual,
            }
        )
        return
    noised = fitted.guarantee.epsilon < float("inf")
    show_explanation(
        found,
        title_of(found.item, beside),
        beside,
        items=len(fitted.catalog),
        noised=noised,
        vague=not tells_similar(fitted),
        alike=alike_by_design(fitted),
    )
