"""`discreet recommend`, `similar`, and `explain`: recommendations for one user or many, and the reasons."""

from __future__ import annotations

import io
import math
from collections.abc import Iterable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from discreet.cli import lib
from discreet.cli.errors import (
    HeaderOrUnknownItem,
    NoHistoryFile,
    OptionDoesNotApply,
    OptionMissing,
    OptionNeeds,
    OptionsConflict,
    ShardsNeeded,
    WrongForm,
)
from discreet.cli.options.declared import (
    Columns,
    Force,
    HowMany,
    ModelFile,
    On,
    Reading,
    Titles,
    grouped,
    holds_tables,
    reading_label,
)
from discreet.cli.options.parsing import parse_columns, read_ids
from discreet.cli.output.printing import Output, show
from discreet.core import integer, refuse_output, shown_while, terminal_progress, write_whole
from discreet.core.checks import DiscreetError

if TYPE_CHECKING:
    import polars as pl


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
    all_users: str | None = None,
    *,
    for_all: Annotated[bool, "--all"] = False,
    on: On = None,
    history: Path | None = None,
    histories: Path | None = None,
    out: Path | None = None,
    user: str | None = None,
    k: HowMany = 10,
    columns: Columns = None,
    among: Path | None = None,
    exclude: Path | None = None,
    rank_by: str | None = None,
    diversify: float = 0.0,
    now: Now = None,
    titles: Titles = None,
    include_seen: bool = False,
    ignore_unknown: bool = False,
    force: Force = False,
) -> Output:
    """Recommend items to one user from their own history, or to all users in a file of histories.

    Without a history, recommend the items that a new user gets.

    Options:
        all_users: With --all: histories of many users, or a folder of shards.
        for_all: Write lists for all users; needs --out.
        history: The history of one user: [user,]item,rating[,time] or, without ratings, [user,]item[,time].
            Times set the order. A file with one column lists items, oldest first.
        histories: The histories of many users, ordered by time if the file has times; needs --out.
        out: Where to write the lists of many users: .csv or .parquet.
        user: The user's ID; needed if the history contains several users.
        among: List only these items: one ID per line, or a table.
        exclude: Never list these items: one ID per line, or a table.
        rank_by: Sort by `choice` (how likely an interaction is), `stars` (predicted rating), or `both`
            (default).
        diversify: From 0 to 1: prefer items that differ from the rest of the list.
        include_seen: Also list items of the history.
        ignore_unknown: Ignore items that the model doesn't know.
    """
    integer("-k", k, least=1)
    many = _many_people(all_users, histories, for_all=for_all)
    _refuse_unclear(history, many, out)
    if user is not None and history is None:
        raise OptionNeeds(
            options=("--user",),
            needs="--history FILE",
            why="a model contains no users, so their history comes from a file",
        )
    if many is not None and out is not None:
        _refuse_lists_file(out, many, file, on, force=force)
    fitted = lib.load(file)
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
    if many is None or out is None:
        return _one(fitted, history, user, named, k, limits, titles)
    people = _lists(fitted, many, out, columns, k, limits, titles, on)
    return Output({"file": str(out), "people": people}, f"Written to {out}: lists for {people:,} users.")


def _lists(
    fitted: lib.FittedModel,
    many: str,
    out: Path,
    columns: str | None,
    k: int,
    limits: dict[str, Any],
    titles: Path | None,
    on: str | None,
) -> int:
    """Write the lists of many users, and return how many users there are."""
    folder, table = lib.is_shard_folder(many), holds_tables(on)
    if folder or table:
        if titles is not None:
            raise OptionDoesNotApply(
                options=("--titles",),
                to="a folder of shards" if folder else "--on",
                why="the lists are written without titles, which you can join by item",
            )
        if folder or on is None:
            return write_shard_lists(fitted, many, out, k, limits, on)
        return _write_table_lists(fitted, many, out, columns, k, limits, on)
    if on is not None:
        raise ShardsNeeded()
    with shown_while(reading_label(many)):
        implicit, named = not fitted.scorer.needs_ratings, parse_columns(columns)
        known = fitted.schema if fitted.schema is not None and lib.fits_schema(many, fitted.schema) else None
        chosen = lib.shared_columns(many, fitted.schema) if named is None else named
        read: Any = lib.open_data(many, columns=chosen, implicit=implicit, duplicates="last", schema=known)
    with shown_while("lists"):
        # All public columns are written, not only the title.
        lists = fitted.recommend_all(read, k, **limits).drop("title", strict=False)
    return write_lists(lists, out, public_columns(titles, fitted, lists["item"].unique().to_list()))


def _many_people(all_users: str | None, histories: Path | None, *, for_all: bool) -> str | None:
    """Return where the histories of many users are. Raise for two places, or for half of one."""
    if for_all and all_users is None:
        raise OptionNeeds(
            options=("--all",), needs="a file or folder of histories", why="it recommends for all its users"
        )
    if all_users is not None and not for_all:
        raise OptionNeeds(
            options=(all_users,),
            needs="--all and --out FILE",
            why="a second file has the histories of many users; the history of one user is --history FILE",
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


def _refuse_lists_file(out: Path, many: str, model: Path, on: str | None, *, force: bool) -> None:
    """Raise if the lists can't be written to this file, before anything is read."""
    endings = (".parquet",) if lib.is_shard_folder(many) or holds_tables(on) else (".csv", ".parquet")
    if out.suffix not in endings:
        form = " or ".join(f"NAME{ending}" for ending in endings)
        raise WrongForm(option="--out", form=form, given=out.name)
    refuse_output(out, force=force, kind=_KIND, is_ours=is_lists, inputs=[model, Path(many)])


def _one(
    fitted: lib.FittedModel,
    history: Path | None,
    user: str | None,
    columns: dict[str, str | None] | None,
    k: int,
    limits: dict[str, Any],
    titles: Path | None,
) -> Output:
    """Return a user's list, or that of a new user."""
    person = None if history is None else _read_history(fitted, history, user, columns)
    if person is not None and history is not None and not limits["ignore_unknown"]:
        _refuse_header(fitted, person.items, history)
    best = (
        fitted.recommend([], k, user=user, **limits)
        if person is None
        else fitted.recommend(person, k, **limits)
    )
    order = _sorted_by(fitted, limits["rank_by"], limits["diversify"])
    beside = public_columns(titles, fitted, [item for item, _ in best])
    stars, tied = [one.expected_stars for one in best], tied_at_the_end([one.score for one in best])
    listed = items_json(best, beside, (STARS, stars))
    content = {"recommendations": listed, "ranked_by": order, "tied": tied}
    if not best:
        return Output(content, "Nothing is left to recommend: every item of the catalog is in the history.")
    alone, middle = order.startswith(_ORDERS["stars"]), (fitted.facts.low + fitted.facts.high) / 2
    low = 0 if alone else sum(one is not None and one < middle for one in stars)
    said = [
        f"{low} of these {len(best)} items have fewer expected stars than the middle of the scale: many "
        "users choose them, but rate them low. --rank-by stars sorts by expected stars alone."
    ] * (low > 0)
    if person is None:
        said.append("These are recommendations for a new user. Pass a history with --history FILE.")
    return Output(
        content,
        lambda: items_table(best, beside, more=None if alone else ("expected stars", stars)),
        lambda: f"Sorted by score: {order}.{_remark(tied, len(best), _usual(fitted, person, limits))}",
        *said,
    )


def _usual(fitted: lib.FittedModel, person: lib.UserHistory | None, limits: dict[str, Any]) -> float:
    """Return the share of the first items of a plain list that a new user gets, too."""
    chosen = any(limits[name] for name in ("among", "exclude", "rank_by", "diversify"))
    # A model of popularity can't have any other list.
    if person is None or chosen or alike_by_design(fitted):
        return 0.0
    return lib.usual_share(fitted, person, ignore_unknown=limits["ignore_unknown"], now=limits["now"])


def _remark(tied: int, listed: int, usual: float) -> str:
    """Return what a user should know about a list whose scores are equal, or that most users get."""
    if tied > listed / 2:
        return (
            f" {tied} of these {listed} items have the same score: the model can't tell them apart. Their "
            "order is that of the catalog and has no meaning."
        )
    return f" {mostly_popular(usual)} `discreet model explain` shows why." if usual >= MOSTLY else ""


def _read_history(
    fitted: lib.FittedModel, path: Path, user: str | None, columns: dict[str, str | None] | None
) -> lib.UserHistory:
    """Return one user's history, read as the model needs it."""
    if not lib.is_there(path):
        raise NoHistoryFile(path=Path(lib.absent_part(path)))
    implicit = not fitted.scorer.needs_ratings
    return lib.read_history(
        path, user=user, columns=columns, implicit=implicit, catalog=fitted.catalog, schema=fitted.schema
    )


def _refuse_header(fitted: lib.FittedModel, items: Sequence[str | int], history: Path) -> None:
    """Raise if only the first line of a list of items is unknown: it may be a header."""
    known = (fitted.catalog.index_of(items) >= 0).tolist()
    if len(known) < 2 or known[0] or not all(known[1:]):
        return
    if not history.is_file():
        return
    with history.open("rb") as lines:
        first = lines.readline(_LONGEST_ID).decode("utf-8-sig", "replace").strip()
    if first == items[0]:
        raise HeaderOrUnknownItem(file=history.name, column=str(first))


def _sorted_by(fitted: lib.FittedModel, rank_by: str | None, diversify: float) -> str:
    """Return what the score is."""
    order = _ORDERS.get(rank_by or "", fitted.scorer.ranked_by)
    return f"{order}; less what an item shares with those above it" if diversify else order


def similar(file: ModelFile, items: list[str], *, k: HowMany = 10, titles: Titles = None) -> Output:
    """List the most similar items that exceed the noise. This costs no privacy budget.

    Options:
        items: One or several items of the model's catalog.
    """
    integer("-k", k, least=1)
    fitted = lib.load(file)
    found = fitted.similar_items(items, k)
    # As the catalog spells them: on a command line every ID is text.
    asked = fitted.catalog.id_at(fitted.catalog.index_of(list(found))).tolist()
    beside = public_columns(
        titles, fitted, [*asked, *{other for near in found.values() for other, _ in near} - set(asked)]
    )
    rows = {
        str(item): items_json(near, beside, ("above_noise", [one.above_noise for one in near]))
        for item, near in found.items()
    }
    why = {str(item): near.why_empty or None for item, near in found.items()}
    several = len(items) > 1
    return Output(
        {"similar": rows if several else rows[items[0]], "why": why if several else why[items[0]]},
        *(
            partial(show_similar, fitted, item, near, k, beside)
            for item, near in zip(asked, found.values(), strict=True)
        ),
    )


def explain(
    file: ModelFile,
    item: str | None = None,
    *,
    history: Path | None = None,
    user: str | None = None,
    columns: Columns = None,
    now: Now = None,
    titles: Titles = None,
) -> Output:
    """Show why an item is in a user's list: the parts of its score.

    Options:
        item: An item of the model's catalog. Default: the first of the user's list.
        history: The history of one user, as for recommend.
        user: The user's ID, if the history contains several users.
    """
    if history is None:
        raise OptionMissing(options=("--history FILE",))
    fitted = lib.load(file)
    person = _read_history(fitted, history, user, parse_columns(columns))
    how: dict[str, Any] = {"user": user, "ignore_unknown": True, "now": now}
    asked = fitted.recommend(person, 1, **how)[0][0] if item is None else item
    found = fitted.explain(person, asked, **how)
    beside = public_columns(titles, fitted, [found.item, *(own for own, _ in found)])
    return Output(
        {
            "item": asked,
            "score": found.score,
            "rank": found.rank,
            "ranked_by": found.ranked_by,
            "reference": {"score": found.reference, "is": REFERENCE},
            "parts": dict(found.parts),
            "reasons": items_json(found.reasons, beside),
            "usual": found.usual,
        },
        lambda: show_explanation(
            found,
            title_of(found.item, beside),
            beside,
            items=len(fitted.catalog),
            noised=fitted.guarantee.epsilon < float("inf"),
            vague=not tells_similar(fitted),
            alike=alike_by_design(fitted),
        ),
    )


REFERENCE = "the average item of the lower half of this user's ranking"
# With this few factors, whole kinds of items point in the same direction.
_FEW_FACTORS = 3
# For a screen; --json has all of them.
_MOST_REASONS = 10
# A part below this share of the lead isn't mentioned.
_SLIGHT = 0.05
# From this share on, a list is mostly the list of a user without a history.
MOSTLY = 0.7
# A part below this share of the largest part isn't in the table.
_NOTHING = 1e-4
_BAR = 24
# This share of the catalog is near the top of a list.
_NEAR_TOP = 0.1
_WORDS = {
    "popularity": "many users choose it",
    "history": "it is similar to the items this user chose or liked",
    "sequence": "it often follows the latest items of the history",
    "expected stars": "this user would rate it highly",
    "odds of liking": "this user would like it",
}


def show_similar(
    model: lib.FittedModel, item: str | int, near: lib.Listing[lib.SimilarItem], k: int, titles: Beside
) -> None:
    """Print the neighbors of an item, how they are compared, and what isn't known."""
    called = title_of(item, titles)
    if not near:
        show(near.why_empty)
        return
    show(f"Similar to {called}:")
    noised = near[0].above_noise is not None
    above = [_percent(one.above_noise) for one in near]
    show(items_table(near, titles, "similarity", ("above noise", above) if noised else None, digits=2))
    show(_compared(model))
    if noised:
        found = f"Only {len(near)} of {k} stand out. " if len(near) < k else ""
        show(
            f"{found}Noise shrinks similarities: compare them only with each other. Above noise is the "
            "chance that noise alone would give a lower similarity. It isn't the chance that the item is "
            "right: the model may not have learned what sets the items apart. Items that aren't listed may "
            "be similar, too: the release doesn't show it."
        )


def _percent(chance: float | None) -> str:
    if chance is None:
        return "-"
    return "> 99%" if chance > 0.99 else f"{100 * chance:.0f}%"


def _compared(model: lib.FittedModel) -> str:
    """Return a sentence about what a similarity compares, and what its numbers mean."""
    try:
        factors = model.scorer.item_vectors().shape[1]
    except DiscreetError:
        return "Items are compared by how often the same users choose both. Higher is more similar."
    few = " With this few latent factors, expect the same broad kind rather than close matches."
    return (
        "Items are compared by everything the model released about them: 1 means alike, 0 means unrelated, "
        f"and -1 means opposite.{few if factors <= _FEW_FACTORS else ''}"
    )


def show_explanation(
    found: lib.Explanation,
    called: str,
    titles: Beside,
    *,
    items: int,
    noised: bool = False,
    vague: bool = False,
    alike: str = "",
) -> None:
    """Print why an item has its place: in a sentence, in parts, and by the user's own history.

    `items` is the size of the catalog. `noised` states that noise was added, `vague` that the model can't
    determine which items are similar, and `alike` why all users get the same list, if that is intended.
    """
    lead = found.score - found.reference
    owned = "already in the history, so it isn't recommended"
    place = owned if found.rank is None else f"number {found.rank:,} of the list"
    show(f"{called} is {place}{_because(found, lead, items, noised and vague)}.")
    show(_parts_table(found, lead))
    show(
        f"The lead is over {REFERENCE}: {found.score:.2f} against {found.reference:.2f}. Lists are sorted by "
        f"{found.ranked_by}."
    )
    _show_reasons(found, lead, titles, noised and vague)
    if alike:
        show(alike)
    elif found.usual >= MOSTLY:
        hidden = " Noise hides the rest: more users or a larger epsilon would show it." if noised else ""
        show(f"{mostly_popular(found.usual)}{hidden}")


def mostly_popular(usual: float) -> str:
    """Return the sentence about a list that hardly differs from the list of a user without a history."""
    return (
        f"This list is mostly popularity: {usual:.0%} of its first {lib.FIRST_PLACES} items are the same as "
        "for a user without a history."
    )


def tied_at_the_end(scores: Sequence[float]) -> int:
    """Return how many items have the score of the last one, rounding aside; 0 if it is the only one."""
    same = sum(math.isclose(score, scores[-1], rel_tol=1e-9, abs_tol=1e-12) for score in scores)
    return same if same > 1 else 0


def alike_by_design(model: lib.FittedModel) -> str:
    """Return why lists don't depend on a user's history. Empty for a model whose lists do."""
    plain, followed = model.scorer.same_for_all, _is_followed(model)
    # This model learns nothing else. Other models may lack factors only because noise hides them.
    if not (plain or followed or model.name == "biases"):
        return ""
    subject = "A list of a continual release is current" if followed else "A list of this model is"
    if plain:
        return f"{subject} popularity, the same for all users, without the items they had."
    always = "" if followed else " at any epsilon"
    counted = followed or "choice" in model.scorer.rankings
    made_of = "popularity and item ratings" if counted else "item ratings"
    return f"{subject} {made_of}, nearly the same for all users{always}, without the items they had."


def _is_followed(model: lib.FittedModel) -> bool:
    # Loaded only for a possible continual release: most models don't need it.
    if "release" not in model.parameters:
        return False

    return lib.followed_alone(model)


def _show_reasons(found: lib.Explanation, lead: float, titles: Beside, vague: bool) -> None:
    if not found.reasons:
        return
    if not _history_matters(found, lead):
        show("No single item of the user's history changes its score much.")
        return
    # The strongest of both kinds, starting with the largest lift.
    strong = sorted(found.reasons, key=lambda reason: -abs(reason[1]))[:_MOST_REASONS]
    shown = sorted(strong, key=lambda reason: -reason[1])
    show(items_table(shown, titles, "lifts it by", digits=2))
    show(
        "Without that item of the history, the lead would be smaller by this much. Below 0, it would be "
        "larger."
    )
    if vague:
        show(
            "Don't read much into single items: this model can't determine which items are similar, so a "
            "lift may come from the noise."
        )


def tells_similar(model: lib.FittedModel) -> bool:
    """Return whether `discreet model similar` works with this model."""
    try:
        model.scorer.similarities(noise=1.0)
    except DiscreetError:
        return False
    return True


def _because(found: lib.Explanation, lead: float, items: int, vague: bool) -> str:
    """Return the strongest reasons for the item in words. If the item is behind, return those against it."""
    if lead < 0:
        parts = reversed(_shown_parts(found, lead))
        against = [name for name, value in parts if value < -max(_SLIGHT * abs(lead), 1e-9)]
        return f"; the strongest reasons against it: {' and '.join(against[:2])}" if against else ""
    known = (
        _WORDS if _history_matters(found, lead) else {**_WORDS, "history": "it fits the history as a whole"}
    )
    known = {**known, "history": "the history lifts it, perhaps by noise"} if vague else known
    strong = [name for name, value in _shown_parts(found, lead) if value > max(_SLIGHT * abs(lead), 1e-9)]
    if found.rank is not None and found.rank > max(lib.FIRST_PLACES, _NEAR_TOP * items):
        # Far from the top, an item is merely ahead of others.
        return f"; ahead of the lower half by {' and '.join(strong[:2])}" if strong else ""
    words = [known.get(name, name) for name in strong]
    because = "; its score is high because" if found.rank is None else ", because"
    return f"{because} {' and '.join(words[:2])}" if words else ""


def _history_matters(found: lib.Explanation, lead: float) -> bool:
    """Return whether any rating of the user's own changes the item's lead noticeably."""
    return max((abs(value) for _, value in found.reasons), default=0.0) >= _SLIGHT * abs(lead)


def _parts_table(found: lib.Explanation, lead: float) -> lib.Table:
    table = lib.Table("part", "adds to its lead", "")
    table.columns[1].justify = "right"
    largest = _largest(found, lead)
    for name, value in _shown_parts(found, lead):
        table.add_row(name, f"{value:+.2f}", _bar(value, largest))
    table.add_section()
    table.add_row("its lead", f"{lead:+.2f}", _bar(lead, largest))
    return table


def _shown_parts(found: lib.Explanation, lead: float) -> list[tuple[str, float]]:
    """Return the parts that deserve a row, largest first. Sentences name only these parts."""
    # For example, the order of the history is zero if the model or the history has no order.
    least = _NOTHING * _largest(found, lead)
    parts = sorted(found.parts.items(), key=lambda part: -part[1])
    return [(name, value) for name, value in parts if abs(value) > least]


def _largest(found: lib.Explanation, lead: float) -> float:
    return max([abs(value) for value in found.parts.values()] + [abs(lead), 1e-12])


def _bar(value: float, largest: float) -> str:
    return ("█" if value >= 0 else "░") * round(_BAR * abs(value) / largest)


def title_of(item: str | int, titles: Beside) -> str:
    """Return an item's title with its ID, or the ID alone."""
    title = next(iter(titles.get(item, {}).values()), "")
    return f"{title} ({item})" if title else str(item)


Listed = Sequence[tuple[str | int, float]]
Column = tuple[str, Sequence[float | None]]
Shown = tuple[str, Sequence[float | str | None]]
Beside = Mapping[str | int, dict[str, str]]
_KIND = "file of lists"
# A table on a terminal of 80 columns fits this many public columns.
_MOST_SHOWN = 2


def public_columns(titles: Path | None, model: lib.FittedModel, items: Iterable[str | int]) -> Beside:
    """Return the public columns shown next to item IDs: from the given table, else from the model."""
    if titles is None:
        return model.titles(items)

    return lib.read_public_table(titles, model.catalog)


def items_json(listed: Listed, beside: Beside, more: Column | None = None) -> list[dict[str, Any]]:
    """Return a list of items as JSON objects. Public columns are last and replace none of ours.

    `more` is a column next to the score. If it has no value for any item, it is omitted.
    """
    name, values = ("", [None] * len(listed)) if more is None else more
    return [
        {**beside.get(item, {}), "item": item, "score": score, **({} if value is None else {name: value})}
        for (item, score), value in zip(listed, values, strict=True)
    ]


def items_table(
    listed: Listed, beside: Beside, score: str = "score", more: Shown | None = None, digits: int = 3
) -> lib.Table:
    """Return a list of items as a table. IDs are folded, never cut. `more` is a column next to the score."""
    names = list(next(iter(beside.values()), {}))[:_MOST_SHOWN]
    known = more is not None and any(value is not None for value in more[1])
    table = lib.Table("#", "item", *names, score, *([more[0]] if more is not None and known else []))
    for column in table.columns[1 : 2 + len(names)]:
        column.overflow = "fold"
    for rank, (item, value) in enumerate(listed, start=1):
        row = beside.get(item, {})
        extra = [_number(more[1][rank - 1])] if more is not None and known else []
        cells = (row.get(name, "") for name in names)
        table.add_row(str(rank), str(item), *cells, f"{value:.{digits}f}", *extra)
    return table


def _number(value: float | str | None) -> str:
    if isinstance(value, str):
        return value
    return "-" if value is None else f"{value:.2f}"


def write_lists(lists: pl.DataFrame, out: Path, beside: Beside) -> int:
    """Write the lists of many users and return how many users have a list."""
    import polars as pl

    if beside:
        rows = [
            {"item": item, **{f"item_{name}": text for name, text in row.items()}}
            for item, row in beside.items()
        ]
        lists = lists.join(pl.DataFrame(rows), on="item", how="left", maintain_order="left")
    content = io.BytesIO()
    if out.suffix == ".parquet":
        lists.write_parquet(content)
    else:
        lists.write_csv(content)
    write_whole(out, content.getvalue())
    return int(lists["user"].n_unique())


def is_lists(path: Path) -> bool:
    """Return whether a file has lists that this command wrote."""
    import polars as pl

    try:
        scan = pl.scan_parquet if path.suffix == ".parquet" else pl.scan_csv
        return scan(path, glob=False).collect_schema().names()[:4] == ["user", "rank", "item", "score"]
    except (OSError, pl.exceptions.PolarsError, pl.exceptions.PanicException):
        return False


_OF_LISTS = ("among", "exclude", "exclude_seen", "rank_by", "diversify", "now")


def _write_table_lists(
    fitted: lib.FittedModel,
    table: str,
    out: Path,
    columns: str | None,
    k: int,
    limits: dict[str, Any],
    on: str,
) -> int:
    """Write the lists of the users in a table of an engine, whose rows are grouped first."""
    reading, facts = Reading(columns=columns, implicit=not fitted.scorer.needs_ratings), fitted.facts
    stated = {
        "catalog": fitted.catalog,
        "duplicates": "last",
        "drop_unknown": limits["ignore_unknown"] or None,
    }
    if not reading.implicit:
        stated |= {"low": facts.low, "high": facts.high, "step": facts.step}
    with (
        terminal_progress(None) as show,
        lib.spark_session(on) if on.startswith("spark:") else nullcontext() as spark,
        grouped(table, reading, None, on, show, spark=spark, **stated) as shards,
    ):
        return write_shard_lists(fitted, str(shards.folder), out, k, limits, None)


def write_shard_lists(
    fitted: lib.FittedModel, folder: str, out: Path, k: int, limits: dict[str, Any], on: str | None
) -> int:
    """Write the lists of a folder of shards, on a cluster if given. Return the number of users."""
    options = {name: value for name, value in limits.items() if name in _OF_LISTS}
    wanted = lib.Wanted.of(fitted, k=k, **options)
    shards = lib.open_shards(folder)
    with terminal_progress(None) as show, nullcontext() if on is None else lib.connected(on) as client:
        shards = replace(shards, report=lambda done, total: show("shards", done, total))
        if client is not None:
            lib.on_cluster(shards, client)
        lib.write_shard_lists(fitted, shards, out, wanted, client=client)
    return shards.n_users
