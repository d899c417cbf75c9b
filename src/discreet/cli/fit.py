"""`discreet fit`: fit a model, pay for it, and write it with its label."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from discreet.cli.options.declared import AsJson, Data, Force, KeptTitles, Learning, Paying, Reading
from discreet.cli.options.sources import On, opened
from discreet.cli.output.printing import emit, remark_on_conditions, remark_on_delta, show
from discreet.cli.output.tables import reading_table, saying_what_was_paid, show_price
from discreet.core.checks import ParameterError
from discreet.core.files import refuse_output

if TYPE_CHECKING:
    from discreet.data.facts import PublicFacts
    from discreet.models.estimator import Estimator
    from discreet.models.fitted import FittedModel
    from discreet.models.private_facts import PrivateFacts


def fit(
    data: Data,
    out: Annotated[Path, typer.Option("--out", help="Where to write the model.")],
    learning: Learning,
    reading: Reading,
    paying: Paying,
    private_catalog: Annotated[
        bool,
        typer.Option(
            "--private-catalog",
            help="Select the catalog (and the scale, unless declared) from the data with noise. Only items "
            "that enough people rated are kept.",
        ),
    ] = False,
    catalog_share: Annotated[
        float,
        typer.Option(
            "--catalog-share", help="With --private-catalog: the part of epsilon and delta spent on it."
        ),
    ] = 0.2,
    for_synthesis: Annotated[
        bool,
        typer.Option(
            "--for-synthesis",
            help="Also release lengths of histories and levels of ratings, for `discreet synthesize`. "
            "user-factorization only; they cost 3 % of its budget.",
        ),
    ] = False,
    titles: KeptTitles = None,
    force: Force = False,
    explain: Annotated[
        bool, typer.Option("--explain", help="Also show the decisions of the fit and their inputs.")
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only show the cost and the budget left after it.")
    ] = False,
    on: On = None,
    as_json: AsJson = False,
) -> None:
    """Fit a model and write it, with its privacy label, to a file."""
    from discreet.core.progress import terminal_progress
    from discreet.data.inputs import files_of
    from discreet.distributed.shards import is_shard_folder
    from discreet.models.items import beside_chosen, moved, read_columns, read_table
    from discreet.models.private_facts import PrivateFacts
    from discreet.models.storage import KIND, is_model

    estimator = learning.estimator(implicit=reading.implicit)
    if for_synthesis:
        estimator = _for_synthesis(estimator)
    if estimator.answers_in_process:
        raise ParameterError(
            f"{estimator.name} answers only in the process that fitted it. Use it from Python."
        )
    paying.check()
    files = [] if is_shard_folder(data) else files_of(data, reading.layout)
    read = [*files, *reading.files(), *paying.files(), *([] if titles is None else [titles])]
    refuse_output(out, force=force, kind=KIND, is_ours=is_model, inputs=read)
    if private_catalog and reading.items is not None:
        raise ParameterError(
            "--items declares the catalog and --private-catalog selects it. Leave one of them out."
        )
    with terminal_progress(None) as report, opened(data, reading, paying.name, on, report) as source:
        remark_on_delta([estimator], source.facts)
        chosen = PrivateFacts()
        if private_catalog:
            estimator, chosen = _sharing(estimator, catalog_share, source.facts)
        book = paying.book(source.name)
        if dry_run:
            show_price(estimator, source, book, chosen=chosen, as_json=as_json)
            return
        # An unreadable table is refused before payment; a privately selected catalog is not known then.
        table = None if titles is None else read_table(titles)
        public = {} if table is None or private_catalog else read_columns(table, source.catalog)
        with saying_what_was_paid(book, paying.ledger):
            fitted = estimator.fit(
                source, select_items=chosen.catalog, select_scale=chosen.scale, ledger=book, progress=report
            )
    remark_on_conditions(fitted.guarantee)
    if private_catalog and table is not None:
        public = beside_chosen(table, fitted.catalog)
    else:
        public = moved(public, source.catalog, fitted.catalog)
    fitted = replace(fitted, public=public)
    fitted.save(out, force=force)
    how_read = getattr(source, "how_read", {})
    decisions = {"decisions": fitted.scorer.explain(), "reading": dict(how_read)} if explain else {}
    if as_json:
        written = {"model": estimator.name, "file": str(out), "name": source.name}
        emit({**written, "guarantee": fitted.guarantee.to_json(), **decisions})
        return
    if explain and how_read:
        show(reading_table(how_read))
    _show_fit(fitted, decisions.get("decisions"))
    if private_catalog:
        low, high = fitted.facts.low, fitted.facts.high
        show(f"{fitted.facts.n_items:,} items were selected, with ratings from {low:g} to {high:g}.")
    show(
        " ".join(filter(None, [f"Written to {out}.", paying.paid(source.name), fitted.guarantee.sentence()]))
    )


def _for_synthesis(estimator: Estimator) -> Estimator:
    """Return the model that also releases what synthetic data need."""
    if "for_synthesis" not in estimator.settings:
        raise ParameterError(
            f"{estimator.name} does not release lengths of histories. Use --for-synthesis with "
            "user-factorization, or leave it out."
        )
    return estimator.clone(for_synthesis=True)


def _sharing(estimator: Estimator, share: float, facts: PublicFacts) -> tuple[Estimator, PrivateFacts]:
    """Return the model with its part of the budget, and the selection of undeclared facts with the rest."""
    from discreet.data.facts import SCALE
    from discreet.models.private_facts import PrivateFacts

    epsilon, delta = estimator.epsilon, estimator.delta
    chosen = PrivateFacts.share_of(share, epsilon, delta, scale=SCALE in facts.from_file)
    # Rounded down, so that the sum never exceeds the requested budget.
    rest = [
        math.nextafter(whole - part, 0.0)
        for whole, part in ((epsilon, chosen.epsilon), (delta, chosen.delta))
    ]
    return estimator.clone(epsilon=rest[0], delta=rest[1]), chosen


def _show_fit(fitted: FittedModel, decisions: dict[str, Any] | None) -> None:
    from discreet.cli.output.label import label_table
    from discreet.cli.output.tables import decisions_table

    show(label_table(fitted.guarantee, f"Privacy facts: {fitted.name}"))
    if decisions == {}:
        show("This model makes no decisions during the fit; its settings determine it.")
    elif decisions is not None:
        show(decisions_table(decisions))
