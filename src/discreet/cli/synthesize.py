"""`discreet data synthesize`: make synthetic users from a model, to give away."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from discreet.cli.errors import OptionNeeds
from discreet.cli.options.declared import AsJson, Columns, Force, ModelFile
from discreet.cli.options.parsing import parse_columns
from discreet.cli.output.printing import emit, remark_on_conditions, show


def synthesize(
    file: ModelFile,
    out: Annotated[Path, typer.Option("--out", help="Where to write the data: a .parquet or .csv file.")],
    users: Annotated[
        int | None,
        typer.Option(
            "--users", help="How many users to make. Default: as many as the release counted.", min=1
        ),
    ] = None,
    length: Annotated[
        int | None,
        typer.Option(
            "--length",
            help="Declare the mean length of a history. Default: the released lengths, else 20.",
            min=1,
        ),
    ] = None,
    order: Annotated[
        bool | None,
        typer.Option(
            "--order/--no-order",
            help="Write times. Default: if the release states that histories have an order.",
        ),
    ] = None,
    seed: Annotated[int, typer.Option("--seed", help="Different seeds draw different users.", min=0)] = 0,
    page: Annotated[
        Path | None,
        typer.Option("--page", help="Write an HTML page that compares the data with the release."),
    ] = None,
    compare_with: Annotated[
        str | None,
        typer.Option(
            "--compare-with",
            help="With --page: also compare with these real data, without noise. Such a page is for the "
            "data owner only.",
        ),
    ] = None,
    columns: Columns = None,
    force: Force = False,
    as_json: AsJson = False,
) -> None:
    """Make synthetic users from the released numbers of a model. This costs no privacy budget.

    The data carry the model's guarantee: in the metadata of a Parquet file, and in a label file next to it.
    `discreet model label OUT` shows it. Fit the model with --for-synthesis, so that it knows lengths of
    histories.
    """
    from discreet.data.synthetic_labels import label_path
    from discreet.models.storage import load
    from discreet.synthesis.files import refuse_target, write_synthetic
    from discreet.synthesis.labels import summary
    from discreet.synthesis.making import make

    if compare_with is not None and page is None:
        raise OptionNeeds(
            options=("--compare-with",), needs="--page FILE", why="the comparison is shown on that page"
        )
    if columns is not None and compare_with is None:
        raise OptionNeeds(
            options=("--columns",), needs="--compare-with FILE", why="it names columns of that file"
        )
    refuse_target(out, force=force, inputs=(file,))
    if page is not None:
        from discreet.synthesis.page import refuse_page

        refuse_page(page, force=force, inputs=(file, out, label_path(out)))
    fitted = load(file)
    real = None
    if compare_with is not None:
        from discreet.synthesis.page import read_real

        # A file that can't be read is rejected before anything is written.
        real = read_real(fitted, compare_with, parse_columns(columns))
    made = make(fitted, users, length=length, order=order, seed=seed)
    label = write_synthetic(fitted, made, out, force=force)
    if page is not None:
        from discreet.synthesis.page import write_page

        write_page(fitted, made, page, real=real, force=force)
    remark_on_conditions(fitted.guarantee, fits=False)
    if as_json:
        emit({"file": str(out), "interactions": made.data.n_ratings, **label})
        return
    said = f"Written to {out}: {made.data.n_ratings:,} interactions of {made.data.n_users:,} synthetic users."
    show(said, f"Label: {summary(fitted.guarantee)}.", *(f"- {text}" for text in made.sentences))
    if page is not None:
        show(f"The page is in {page}" + ("." if compare_with is None else ": for the data owner only."))
