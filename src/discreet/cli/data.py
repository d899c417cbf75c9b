"""`discreet data`: split files into shards for data larger than memory, and make synthetic users."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from discreet.cli import lib
from discreet.cli.errors import OptionNeeds
from discreet.cli.options.declared import Columns, Force, ModelFile, Reading, plan_of
from discreet.cli.options.parsing import checked_name, parse_columns
from discreet.cli.output.printing import Output, remark_on_conditions
from discreet.core import terminal_progress


def shard(
    files: list[str], *, out: Path, reading: Reading, shards: int | None = None, name: str | None = None
) -> Output:
    """Split rating files into shards, each with all rows of its users, for data larger than memory.

    A user's rows may be anywhere in the files. To resume a stopped run, start it again with the same
    files and options.

    Options:
        files: Rating files, folders of them, or addresses such as book.xlsx::SHEET and shop.db::TABLE.
        out: The folder to create.
        shards: The number of shards. Default: one per 4 million ratings.
        name: The data's name in a ledger. Default: the folder's name.
    """
    reader, declared = plan_of(reading)
    with terminal_progress(None) as report:
        made = lib.make_shards(
            files, out, reader=reader, name=checked_name(name), n_shards=shards, progress=report, **declared
        )
    count = len(made.shards)
    written, them = (
        ("1 shard. It contains", "it") if count == 1 else (f"{count:,} shards. They contain", "them")
    )
    return Output(
        {"folder": str(out), "name": made.name, "shards": count, "facts": made.facts.to_json()},
        f"Written to {out}: {written} the data of all users. Protect {them} like the files.",
    )


def synthesize(
    file: ModelFile,
    *,
    out: Path,
    users: Annotated[int | None, typer.Option("--users", min=1)] = None,
    length: Annotated[int | None, typer.Option("--length", min=1)] = None,
    order: Annotated[bool | None, "--order/--no-order"] = None,
    seed: Annotated[int, typer.Option("--seed", min=0)] = 0,
    page: Path | None = None,
    compare_with: str | None = None,
    columns: Columns = None,
    force: Force = False,
) -> Output:
    """Make synthetic users from the released numbers of a model. This costs no privacy budget.

    The data carry the model's guarantee: in the metadata of a Parquet file, and in a label file next to it.
    `discreet model label OUT` shows it. Fit the model with --for-synthesis, so that it includes the
    lengths of histories.

    Options:
        out: Where to write the data: a .parquet or .csv file.
        users: How many users to make. Default: as many as the release counted.
        length: Declare the mean length of a history. Default: the released lengths, else 20.
        order: Write times. Default: if the release states that histories have an order.
        seed: Different seeds draw different users.
        page: Write an HTML page that compares the data with the release.
        compare_with: With --page: also compare with these real data, without noise. This page is for the
            data owner only.
    """
    if compare_with is not None and page is None:
        raise OptionNeeds(
            options=("--compare-with",), needs="--page FILE", why="the comparison is shown on that page"
        )
    if columns is not None and compare_with is None:
        raise OptionNeeds(
            options=("--columns",), needs="--compare-with FILE", why="it names columns of that file"
        )
    lib.refuse_target(out, force=force, inputs=(file,))
    if page is not None:
        lib.refuse_synthesis_page(page, force=force, inputs=(file, out, lib.label_path(out)))
    fitted = lib.load(file)
    real = None
    if compare_with is not None:
        # A file that can't be read is rejected before anything is written.
        real = lib.read_real(fitted, compare_with, parse_columns(columns))
    made = lib.make_users(fitted, users, length=length, order=order, seed=seed)
    label = lib.write_synthetic(fitted, made, out, force=force)
    if page is not None:
        lib.write_synthesis_page(fitted, made, page, real=real, force=force)
    remark_on_conditions(fitted.guarantee, fits=False)
    said = f"Written to {out}: {made.data.n_ratings:,} interactions of {made.data.n_users:,} synthetic users."
    alone = "." if compare_with is None else ": for the data owner only."
    return Output(
        {"file": str(out), "interactions": made.data.n_ratings, **label},
        said,
        f"Label: {lib.synthesis_summary(fitted.guarantee)}.",
        *(f"- {text}" for text in made.sentences),
        *([] if page is None else [f"The page is in {page}{alone}"]),
    )
