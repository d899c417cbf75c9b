"""`discreet follow`: keep a model fresh all year at one budget."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from discreet.cli.errors import FixedByShards, OptionsConflict, ReleasesSkipped, ShardsNeeded
from discreet.cli.options.declared import AsJson, Columns, Force, KeptTitles, Paying, SchemaFile, TextFile
from discreet.cli.options.parsing import parse_columns, parse_number, parse_scale, read_items
from discreet.cli.options.sources import On
from discreet.cli.options.years import (
    ComeOnce,
    Drawing,
    HalfLife,
    Year,
    digest,
    kept_titles,
    models_of,
    read_titles,
    said_once,
    year_settings,
)
from discreet.cli.output import printing
from discreet.cli.output.printing import emit
from discreet.cli.output.years import (
    added_json,
    only_noise,
    sentences,
    too_early,
    what_entered,
    what_it_cost,
    year_page,
)
from discreet.cli.replay import replay as replay
from discreet.core.files import refuse_output

if TYPE_CHECKING:
    from discreet.data.schema import Schema
    from discreet.data.vocabulary import Vocabulary
    from discreet.follow import Following
    from discreet.follow.batches import Source
    from discreet.follow.model import Kind
    from discreet.models.fitted import FittedModel


# The kind of the page, by which the command recognizes its own pages.
_PAGE = "followed year"


def start(
    state: Annotated[
        Path, typer.Argument(help="Where to keep the state: a private file. Never restore an older copy.")
    ],
    items: Annotated[
        Path, typer.Option("--items", help="The public catalog: one item id per line, or a table of items.")
    ],
    epsilon: Annotated[
        float,
        typer.Option(
            "--epsilon",
            help="The epsilon of the guarantee for all releases.",
            parser=parse_number,
            metavar="FLOAT",
        ),
    ],
    paying: Paying,
    delta: Annotated[
        float, typer.Option("--delta", help="The delta of the guarantee for all releases.")
    ] = 1e-6,
    releases: Annotated[int, typer.Option("--releases", help="How many releases: 52 is weekly.")] = 52,
    half_life: HalfLife = None,
    year: Year = "365d",
    scale: Annotated[
        str | None,
        typer.Option(
            "--scale", help="Follow ratings on LOW,HIGH or LOW,HIGH,STEP. Default: interactions only."
        ),
    ] = None,
    implicit: Annotated[
        bool, typer.Option("--implicit", help="Follow interactions only; the default without --scale.")
    ] = False,
    come_once: ComeOnce = False,
    columns: Columns = None,
    titles: KeptTitles = None,
    as_json: AsJson = False,
) -> None:
    """Record the cost of a year of releases and write its state. Each `add` then costs no more budget.

    --columns and --titles are kept for every later `add`.
    """
    from discreet.data.facts import PublicFacts
    from discreet.follow import Following
    from discreet.follow.comparison import SAME_LISTS

    if implicit and scale is not None:
        raise OptionsConflict(
            options=("--implicit", "--scale"),
            why="a continual release learns from interactions or from ratings",
        )
    # A file that can't be read is rejected before any cost is recorded.
    parse_columns(columns)
    catalog = read_items(items)
    read_titles(titles, catalog)
    low, high, step = parse_scale(scale) if scale is not None else (1.0, 1.0, None)
    assert low is not None and high is not None
    facts = PublicFacts(n_items=len(catalog), low=low, high=high, step=step)
    settings = year_settings(
        releases=releases,
        epsilon=epsilon,
        delta=delta,
        half_life=half_life,
        year=year,
        come_once=come_once,
        rated=scale is not None,
    )
    paying.check()
    name = paying.name or state.name.rsplit(".", 1)[0]
    begun = Following.start(state, catalog, facts, settings, name=name, ledger=paying.book(name))
    if kept := said_once(columns=columns, titles=titles):
        begun.keep(**kept)
    status = begun.status()
    if as_json:
        emit(status.to_json())
        return
    printing.show(
        status.guarantee.label(f"The guarantee of the year: {name}"), paying.recorded(name, status.guarantee)
    )
    printing.show(f"The state is in {state}. Keep it private, and never restore an older copy.")
    printing.show(SAME_LISTS)


# More missed releases than this are probably a typing mistake.
_MOST_MISSED = 4


def add(
    state: Annotated[Path, typer.Argument(help="The year that `discreet follow start` wrote.")],
    data: Annotated[Path, typer.Argument(help="New ratings (CSV, TSV, JSON lines, Parquet, shards).")],
    drawing: Drawing,
    text: TextFile,
    drop_unknown: Annotated[
        bool, typer.Option("--drop-unknown", help="Skip ratings of items that were not declared.")
    ] = False,
    again: Annotated[
        bool,
        typer.Option("--again", help="Add a file again that has the same name and time of writing."),
    ] = False,
    on: On = None,
    columns: Columns = None,
    schema: SchemaFile = None,
) -> None:
    """Add new ratings, draw the next release once, and write an ordinary model with its label.

    How files are read (--schema, --columns, --delimiter, and so on) and --titles are kept for later releases.
    The model that the last `add` wrote is replaced.
    """
    from discreet.follow import Following

    year = Following(state)
    kept = year.kept()
    columns = kept.get("columns") if columns is None else columns
    written = text.written()
    if text == TextFile():
        written |= json.loads(kept.get("text", "{}"))
    declared = None if drawing.items is None else read_items(drawing.items)
    force = _refuse(year, drawing, [state, data])
    written["schema"] = _schema(data, schema, kept)
    with _source(year, data, declared, columns, on, written, drop_unknown=drop_unknown) as batch:
        plain = {name: value for name, value in written.items() if name != "schema"}
        also = said_once(columns=columns, titles=None) | {"text": json.dumps(plain)}
        read_with = getattr(batch, "schema", None)
        if read_with is not None:
            also["schema"] = json.dumps(read_with.remembered().to_json())
        _draw(year, drawing, batch, _written(data), force=force, again=again, also=also)


def _schema(data: Path, given: Path | None, kept: Mapping[str, str]) -> Schema | None:
    """Return the given schema, or the schema of earlier files of the year if this file has the same form."""
    from discreet.data.reading.tables import fits
    from discreet.data.schema import Schema

    if given is not None:
        return Schema.read(given)
    known = Schema.from_json(json.loads(kept["schema"])) if "schema" in kept else None
    return known if known is not None and fits(data, known) else None


def release(
    state: Annotated[Path, typer.Argument(help="The year that `discreet follow start` wrote.")],
    drawing: Drawing,
) -> None:
    """Draw the next release without new ratings, for a week that had none. To add ratings, use `add`."""
    from discreet.follow import Following

    year = Following(state)
    _draw(year, drawing, None, None, force=_refuse(year, drawing, [state]))


def _refuse(year: Following, drawing: Drawing, read: list[Path]) -> bool:
    """Raise for an output that is in the way. Return whether a model may be replaced: the last one may."""
    from discreet.models.storage import KIND, is_model

    out, kept = drawing.out, year.kept()
    force = drawing.force or models_of(kept).get(str(out.absolute())) == digest(out)
    inputs = [path for path in (*read, drawing.items, drawing.with_model, drawing.titles) if path is not None]
    refuse_output(out, force=force, kind=KIND, is_ours=is_model, inputs=inputs)
    return force


def _draw(
    year: Following,
    drawing: Drawing,
    source: Source | None,
    batch: str | None,
    *,
    force: bool,
    again: bool = False,
    also: Mapping[str, str] | None = None,
) -> None:
    """Draw a release once, write its model, and print what was added. `also` is kept for later releases."""
    from discreet.models.storage import load

    kept, titles, out = year.kept(), drawing.titles, drawing.out
    if titles is None and "titles" in kept:
        titles = kept_titles(kept["titles"])
    declared = None if drawing.items is None else read_items(drawing.items)
    embeddings = None if drawing.with_model is None else load(drawing.with_model)
    # A table that can't be read is rejected before anything is drawn.
    named = read_titles(titles, year.catalog(declared)[0])
    before = len(year.status().times)
    missed = 0 if drawing.release is None else drawing.release - before - 1
    if missed > _MOST_MISSED and not drawing.yes:
        raise ReleasesSkipped(missed=missed)
    added = year.add(
        source,
        items=declared,
        kind=cast("Kind", drawing.kind),
        model=embeddings,
        release=drawing.release,
        batch=batch,
        again=again,
    )
    layouts = _layouts(source, kept)
    added = added._replace(model=_if_public(replace(added.model, public=named), layouts))
    added.model.save(out, force=force)
    status = year.status()
    models = models_of(kept) | {str(out.absolute()): digest(out)}
    joined = "" if drawing.with_model is None else str(drawing.with_model)
    said = said_once(columns=None, titles=titles) | {"models": json.dumps(models), "with": joined}
    called = _called(year)
    year.keep(**said, layouts=json.dumps(layouts), **(also or {}))
    if drawing.as_json:
        emit(added_json(added))
        return
    printing.show(
        what_entered(added, called, given=batch is not None, empty=added.release - before - 1),
        *(line for line in (only_noise(status), too_early(status)) if line),
        added.model.guarantee.short(),
        what_it_cost(out, drawing.with_model, kept.get("with")),
    )


def _layouts(source: Source | None, kept: Mapping[str, str]) -> list[str]:
    """Return the layouts that were guessed from the files of the year so far, without repeats."""
    layout = "" if source is None else source.facts.layout
    return list(dict.fromkeys([*json.loads(kept.get("layouts", "[]")), *([layout] if layout else [])]))


def _if_public(model: FittedModel, layouts: Sequence[str]) -> FittedModel:
    """Return the model with the condition that layouts guessed from files are public."""
    from discreet.privacy.assumptions import Assumption, Fact
    from discreet.privacy.assumptions import Kind as Entered

    conditions = [Assumption.of(Entered.TAKEN, Fact.LAYOUT, layout=layout) for layout in layouts]
    return replace(model, guarantee=model.guarantee.assuming(*conditions))


def _written(data: Path) -> str:
    """Return a file's name and time of writing. Neither depends on its users, as its bytes would."""
    moment = datetime.fromtimestamp(data.stat().st_mtime, UTC) if data.exists() else None
    return data.name if moment is None else f"{data.name}, written at {moment.isoformat()},"


def _called(year: Following) -> str:
    """Return the source of a continual release."""
    facts = year.catalog()[1]
    return "interactions" if facts.low == facts.high else "ratings"


@contextmanager
def _source(
    year: Following,
    data: Path,
    declared: Vocabulary | None,
    columns: str | None,
    on: str | None,
    text: dict[str, Any],
    *,
    drop_unknown: bool,
) -> Iterator[Source]:
    """Yield new ratings: a whole file, or a folder of shards as it is or on a cluster."""
    from discreet.sources.shards import is_shard_folder, open_shards

    if is_shard_folder(data):
        if drop_unknown:
            raise FixedByShards(option="--drop-unknown", folder=str(data))
        if on is None:
            yield open_shards(data)
            return
        from discreet.sources.cluster import on_cluster
        from discreet.sources.connection import connected

        with connected(on) as client:
            yield on_cluster(open_shards(data), client)
        return
    if on is not None:
        raise ShardsNeeded()
    from discreet.data.reading.readers import read

    catalog, facts = year.catalog(declared)
    implicit = facts.low == facts.high
    # If one file lists a pair twice, the latest counts. Across files, the first counts.
    yield read(
        data,
        columns=parse_columns(columns),
        implicit=implicit,
        low=facts.low,
        high=facts.high,
        step=facts.step,
        catalog=catalog,
        duplicates="last",
        drop_unknown=drop_unknown,
        **text,
    )


def show(
    state: Annotated[Path, typer.Argument(help="The year that `discreet follow start` wrote.")],
    page: Annotated[Path | None, typer.Option("--html", help="Also write this as one page.")] = None,
    out: Annotated[
        Path | None, typer.Option("--out", help="Also write the model of the latest release again.")
    ] = None,
    titles: KeptTitles = None,
    force: Force = False,
    as_json: AsJson = False,
) -> None:
    """Show the releases so far, what is left, and noise against signal. All of this is public."""
    from discreet.follow import Following
    from discreet.report.pages import page as whole_page
    from discreet.report.pages import refuse_page, write_page

    if page is not None:
        refuse_page(page, kind=_PAGE, force=force, inputs=[state])
    year = Following(state)
    status = year.status()
    if out is not None:
        kept = year.kept()
        model = _if_public(year.model(), _layouts(None, kept))
        titles = kept_titles(kept["titles"]) if titles is None and kept.get("titles") else titles
        (model if titles is None else model.with_titles(titles)).save(out, force=force)
    if page is not None:
        title = f"Continual release: {status.name}"
        content = whole_page(title, year_page(status, title), kind=_PAGE, narrow=True)
        write_page(page, content, kind=_PAGE, force=force)
    if as_json:
        emit(status.to_json())
        return
    from discreet.report.label import label_table

    written = [f"Written to {path}." for path in (page, out) if path is not None]
    printing.show(
        label_table(status.guarantee, f"Continual release: {status.name}"), *sentences(status), *written
    )


def erase(
    state: Annotated[Path, typer.Argument(help="The year that `discreet follow start` wrote.")],
    user: Annotated[str, typer.Argument(help="The user's ID.")],
    as_json: AsJson = False,
) -> None:
    """Stop adding a user's ratings from the next release on. Earlier releases don't change."""
    from discreet.cli.output.tables import traces_table
    from discreet.follow import Following
    from discreet.follow.entries import influence_left

    year = Following(state)
    taken = year.erase(user)
    status, facts = year.status(), year.catalog()[1]
    rated = facts.low != facts.high
    made = len(status.times)

    def left(entered: int, *, fading: bool = True) -> dict[int, float]:
        return influence_left(status.settings, made, max(entered, 0), rated=rated, fading=fading)

    traces = {"entered last": left(made - 1), "entered first": left(0)}
    if rated:
        traces["in ratings, entered last"] = left(made - 1, fading=False)
    if as_json:
        named = {name.replace(", ", " ").replace(" ", "_"): trace for name, trace in traces.items()}
        emit({"taken_out": taken, "influence_left": named})
        return
    what = _called(year)
    gone = f"{taken:,} {what} were removed from the year and won't be added again."
    none = f"No {what} of this user are in the year. Later ones won't be added."
    printing.show(
        f"{gone if taken else none} A fingerprint of the ID stays in the private state, so that new {what} "
        "of the same user are recognized."
    )
    if not (taken and traces["entered last"]):
        return
    printing.show(
        "Earlier releases don't change, and the guarantee covers them. Later releases build on them: this is "
        f"how much of one of these {what} is left in them if it was added at the last or the first release.",
        traces_table(traces),
    )
