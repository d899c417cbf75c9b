"""`discreet refit`: the next release, starting from the last one."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from discreet.checks import ParameterError
from discreet.commands.options.declared import (
    AsJson,
    Data,
    Force,
    Reading,
    remark_on_conditions,
    remark_on_delta,
)
from discreet.commands.options.parsing import checked_name, parse_number
from discreet.commands.output.price import show_price
from discreet.commands.output.printing import emit, remark, show
from discreet.files import refuse_output

if TYPE_CHECKING:
    from discreet.data.interactions import Interactions
    from discreet.data.vocabulary import Vocabulary
    from discreet.models.estimator import Estimator
    from discreet.models.fitted import FittedModel


def refit(
    model: Annotated[Path, typer.Argument(help="The last release: a model file.")],
    data: Data,
    out: Annotated[Path, typer.Option("--out", help="Where to write the next model.")],
    reading: Reading,
    epsilon: Annotated[
        float | None,
        typer.Option(
            "--epsilon", help="Default: what the last one had.", parser=parse_number, metavar="FLOAT"
        ),
    ] = None,
    ledger: Annotated[Path | None, typer.Option("--ledger", help="Pay from this ledger file.")] = None,
    name: Annotated[str | None, typer.Option("--name", help="The data's name in the ledger.")] = None,
    force: Force = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only say what it would cost and what would be left.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Fit the next release on new data, starting from the last one, which costs nothing.

    The catalog is the last model's; items that --items lists besides are added behind it.
    """
    from discreet.data.opening import files_of
    from discreet.models.public_columns import moved
    from discreet.models.storage import KIND, is_model, load
    from discreet.privacy.ledger import Ledger

    last = load(model)
    estimator = _next(last, model, epsilon)
    read = [model, *files_of(data), *reading.files(), *([] if ledger is None else [ledger])]
    refuse_output(out, force=force, kind=KIND, is_ours=is_model, inputs=read)
    catalog, news = _united(last.catalog, reading)
    interactions = _as_known(reading.load(data, checked_name(name), catalog=catalog), last)
    remark_on_delta([estimator], interactions.facts)
    for sentence in news:
        remark(f"discreet: {sentence}")
    book = None if ledger is None else Ledger.open(ledger)
    if dry_run:
        show_price(estimator, interactions, book, as_json=as_json)
        return
    fitted = estimator.fit(interactions, ledger=book)
    remark_on_conditions(fitted.guarantee)
    fitted = replace(fitted, public=moved(last.public, last.catalog, fitted.catalog))
    fitted.save(out, force=force)
    if as_json:
        emit(
            {"model": estimator.name, "file": str(out), "guarantee": fitted.guarantee.to_json(), "news": news}
        )
        return
    show(f"Written to {out}. {fitted.guarantee.sentence()}")


def _next(last: FittedModel, path: Path, epsilon: float | None) -> Estimator:
    """Return the estimator of the last model, at a new price, with the last model as its prior."""
    from discreet import recipes

    settings: dict[str, Any] = dict(last.parameters)
    if "prior" not in recipes.defaults(last.name):
        raise ParameterError(
            f"{last.name} does not learn from an earlier release. Fit it anew, or use user-factorization."
        )
    if settings.get("feedback") == "implicit":
        raise ParameterError("Only models of ratings start from an earlier release. Fit this one anew.")
    return recipes.estimator(
        last.name, settings | {"prior": str(path)} | ({} if epsilon is None else {"epsilon": epsilon})
    )


def _as_known(data: Interactions, last: FittedModel) -> Interactions:
    """Return the data with a catalog that is no more public than the last model's was."""
    from discreet.data.facts import N_ITEMS

    if N_ITEMS not in last.facts.from_file:
        return data
    return data.with_facts(replace(data.facts, from_file=(*data.facts.from_file, N_ITEMS)))


def _united(known: Vocabulary, reading: Reading) -> tuple[Vocabulary, list[str]]:
    """Return the last catalog with items that are declared besides, and what is to be said about it."""
    from discreet.commands.options.parsing import read_items
    from discreet.data.vocabulary import Vocabulary

    if reading.items is None:
        return known, []
    declared = read_items(reading.items)
    new = declared.ids[known.index_of(declared.series) < 0].tolist()
    gone = int((declared.index_of(known.series) < 0).sum())
    news = [f"{len(new)} items are new."] if new else []
    if gone:
        news.append(f"{gone} items of the last model are not listed any more; they keep their places.")
    return (Vocabulary.of([*known.ids.tolist(), *new]) if new else known), news
