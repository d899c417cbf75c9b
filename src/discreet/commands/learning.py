"""Verbs that make and use a model: fit, recommend, label."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table

from discreet.checks import DataError, ParameterError, integer
from discreet.commands.arguments import (
    AsJson,
    Columns,
    Data,
    DataOptions,
    Delta,
    DuplicatesText,
    Epsilon,
    Force,
    Implicit,
    Items,
    MaxPerUser,
    ModelName,
    People,
    Scale,
    Settings,
    checked_name,
    make_estimator,
    parse_columns,
    remark_on_delta,
)
from discreet.commands.printing import emit, remark, show
from discreet.files import refuse_output

if TYPE_CHECKING:
    from discreet.models.fitted import FittedModel
    from discreet.privacy.ledger.book import Ledger


def fit(
    data: Data,
    out: Annotated[Path, typer.Option("--out", help="Where to write the model.")],
    epsilon: Epsilon,
    model: ModelName = "user-factorization",
    delta: Delta = None,
    settings: Settings = None,
    ledger: Annotated[Path | None, typer.Option("--ledger", help="Pay from this ledger file.")] = None,
    name: Annotated[
        str | None,
        typer.Option(
            "--name",
            help="The data's name in the ledger; default: the file's, or its folder's where the file has the "
            "name it has in every folder, such as ratings.csv.",
        ),
    ] = None,
    columns: Columns = None,
    scale: Scale = None,
    items: Items = None,
    people: People = None,
    max_per_user: MaxPerUser = None,
    duplicates: DuplicatesText = "refuse",
    implicit: Implicit = False,
    force: Force = False,
    explain: Annotated[
        bool, typer.Option("--explain", help="Also show what the fit decided, and from what.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Fit a model and write it with its label."""
    from discreet.data.opening import files_of
    from discreet.models.storage import KIND, is_model
    from discreet.privacy.ledger.book import Ledger

    estimator = make_estimator(model, epsilon, delta, settings, implicit=implicit)
    if estimator.answers_in_process:
        raise ParameterError(f"{model} answers only in the process that fitted it. Use it from Python.")
    name = checked_name(name)
    read = [*files_of(data), *(path for path in (ledger, items) if path is not None)]
    refuse_output(out, force=force, kind=KIND, is_ours=is_model, inputs=read)
    options = DataOptions(columns, scale, max_per_user, items, people, duplicates, implicit)
    interactions = options.load(data, name)
    remark_on_delta([estimator], interactions.facts)
    book = None if ledger is None else Ledger.open(ledger)
    if book is not None:
        _remark_on_account(book, interactions.name)
    fitted = estimator.fit(interactions, ledger=book)
    fitted.save(out, force=force)
    decisions = fitted.scorer.explain() if explain else None
    if as_json:
        report = {"model": model, "file": str(out), "name": interactions.name}
        emit(
            {
                **report,
                "guarantee": fitted.guarantee.to_json(),
                **({"decisions": decisions} if explain else {}),
            }
        )
        return
    _show_fit(fitted, decisions)
    paid = "" if ledger is None else f" Paid as {interactions.name!r} in {ledger}."
    show(f"Written to {out}.{paid} {fitted.guarantee.sentence()}")


def _remark_on_account(book: Ledger, name: str) -> None:
    """Point out an account without a budget beside others that have one: the data may be called otherwise."""
    limited = [other for other in book.datasets() if book.budget(other) is not None]
    if limited and name not in limited:
        remark(
            f"discreet: paying as {name!r}, which has no budget; there is one of "
            f"{', '.join(map(repr, limited))}, and --name chooses."
        )


def _show_fit(fitted: FittedModel, decisions: dict[str, Any] | None) -> None:
    show(fitted.guarantee.label(f"Privacy facts: {fitted.name}"))
    if decisions == {}:
        show("This model decides nothing on the way: its settings say all.")
    elif decisions is not None:
        table = Table("decision", "value", title="From public constants and released numbers only")
        for what, value in decisions.items():
            table.add_row(what, str(value))
        show(table)


def recommend(
    file: Annotated[Path, typer.Argument(help="A model that `discreet fit` wrote.")],
    history: Annotated[
        Path,
        typer.Option("--history", help="What the person rated, [user,]item,rating; or chose: [user,]item."),
    ],
    user: Annotated[
        str | None, typer.Option("--user", help="Whose row of the history; needed if there are several.")
    ] = None,
    k: Annotated[int, typer.Option("-k", help="How many items.")] = 10,
    columns: Columns = None,
    include_seen: Annotated[bool, typer.Option("--include-seen", help="Also items of the history.")] = False,
    ignore_unknown: Annotated[
        bool, typer.Option("--ignore-unknown", help="Leave out items that the model does not know.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Recommend to one person from that person's own history."""
    from discreet.data.reading.history import read_history
    from discreet.models.storage import load

    integer("-k", k, least=1)
    fitted = load(file)
    person = read_history(
        history, user=user, columns=parse_columns(columns), implicit=not fitted.scorer.needs_ratings
    )
    person = _fitting(person, fitted, ignore_unknown=ignore_unknown)
    best = fitted.recommend(person, k, exclude_seen=not include_seen)
    if as_json:
        emit({"recommendations": [{"item": item, "score": score} for item, score in best]})
        return
    table = Table("#", "item", "score")
    table.columns[1].overflow = "fold"
    for rank, (item, score) in enumerate(best, start=1):
        table.add_row(str(rank), str(item), f"{score:.3f}")
    show(table)


def _fitting(
    history: dict[str | int, float], fitted: FittedModel, *, ignore_unknown: bool
) -> dict[str | int, float]:
    """Return the part of a history that the model can use; the rest is refused unless told otherwise."""
    import numpy as np

    from discreet.data.declaring import check_scale

    known = {item: value for item, value in history.items() if item in fitted.catalog}
    if len(known) < len(history) and not ignore_unknown:
        raise DataError(
            f"{len(history) - len(known)} of the history's {len(history)} items are not in the model's "
            "catalog; pass --ignore-unknown to leave them out."
        )
    if fitted.scorer.needs_ratings:
        facts = fitted.facts
        try:
            check_scale(np.asarray(list(known.values()), dtype=np.float32), facts)
        except DataError as error:
            steps = "" if facts.step is None else f" in steps of {facts.step:g}"
            raise DataError(
                "The history has ratings that are not on the scale of the model, "
                f"{facts.low:g} to {facts.high:g}{steps}; give them on that scale."
            ) from error
    return known


def label(file: Annotated[Path, typer.Argument(help="A model file.")], as_json: AsJson = False) -> None:
    """Print what a model promises, and every array it holds with why it may be published."""
    from discreet.models.storage import read_label
    from discreet.privacy.guarantee import Guarantee

    content = read_label(file)
    if as_json:
        emit(content)
        return
    facts = Guarantee.from_json(content["guarantee"]).label(f"Privacy facts: {content['name']}")
    table = Table("array", "where it comes from", title="What is inside")
    for name, origin in content["provenance"].items():
        table.add_row(name, origin)
    show(facts, table)
