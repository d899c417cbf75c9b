"""`discreet follow`: keep a model fresh all year at one budget."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import Annotated, Any, cast, final

import typer

from discreet.cli import errors, lib
from discreet.cli.messages import usage_error
from discreet.cli.options.declared import (
    Columns,
    Data,
    Epsilon,
    Force,
    KeptTitles,
    Learning,
    On,
    Paying,
    Reading,
    SchemaFile,
    TextFile,
)
from discreet.cli.options.parsing import group, parse_columns, parse_scale, read_items
from discreet.cli.output.printing import Output, table_of
from discreet.cli.output.tables import traces_table
from discreet.core import terminal_progress, write_whole

# The kind of the page, by which the command recognizes its own pages.
_PAGE = "followed year"


def start(
    state: Path,
    *,
    items: Path,
    year: YearOptions,
    paying: Paying,
    scale: str | None = None,
    implicit: bool = False,
    columns: Columns = None,
    titles: KeptTitles = None,
) -> Output:
    """Record the cost of a year of releases and write its state. Each `add` then costs no more budget.

    Every later `add` uses the same --columns and --titles.

    Options:
        state: Where to keep the state: a private file. Never restore an older copy.
        items: The public catalog: one item ID per line, or a table of items.
        scale: Follow ratings on LOW,HIGH or LOW,HIGH,STEP. Default: interactions only.
        implicit: Follow interactions only; the default without --scale.
    """
    if implicit and scale is not None:
        raise errors.OptionsConflict(
            options=("--implicit", "--scale"),
            why="a continual release learns from interactions or from ratings",
        )
    # A file that can't be read is rejected before any cost is recorded.
    parse_columns(columns)
    catalog = read_items(items)
    read_titles(titles, catalog)
    low, high, step = parse_scale(scale) if scale is not None else (1.0, 1.0, None)
    assert low is not None and high is not None
    facts = lib.PublicFacts(n_items=len(catalog), low=low, high=high, step=step)
    settings = year.settings(rated=scale is not None)
    paying.check()
    name = paying.name or state.name.rsplit(".", 1)[0]
    begun = lib.Following.start(state, catalog, facts, settings, name=name, ledger=paying.book(name))
    if kept := said_once(columns=columns, titles=titles):
        begun.keep(**kept)
    status = begun.status()
    return Output(
        status.to_json(),
        lambda: status.guarantee.label(f"The guarantee of the year: {name}"),
        lambda: paying.recorded(name, status.guarantee),
        f"The state is in {state}. Keep it private, and never restore an older copy.",
        lib.SAME_LISTS,
    )


# More missed releases than this are probably a typing mistake.
_MOST_MISSED = 4


def add(
    state: Path,
    data: Path,
    *,
    drawing: Drawing,
    text: TextFile,
    drop_unknown: bool = False,
    again: bool = False,
    on: On = None,
    columns: Columns = None,
    schema: SchemaFile = None,
) -> Output:
    """Add new ratings, draw the next release once, and write an ordinary model with its label.

    How files are read (--schema, --columns, --delimiter, and so on) and --titles are kept for later releases.
    The model that the last `add` wrote is replaced.

    Options:
        state: The year that `discreet follow start` wrote.
        data: New ratings (CSV, TSV, JSON lines, Parquet, shards).
        drop_unknown: Skip ratings of items that were not declared.
        again: Add a file again that has the same name and time of writing.
    """
    year = lib.Following(state, steady=True)
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
        return _draw(year, drawing, batch, _written(data), force=force, again=again, also=also)


def _schema(data: Path, given: Path | None, kept: Mapping[str, str]) -> lib.Schema | None:
    """Return the given schema, or the schema of earlier files of the year if this file has the same form."""
    if given is not None:
        return lib.Schema.read(given)
    known = lib.Schema.from_json(json.loads(kept["schema"])) if "schema" in kept else None
    return known if known is not None and lib.fits_schema(data, known) else None


def release(state: Path, *, drawing: Drawing) -> Output:
    """Draw the next release without new ratings, for a week that had none. To add ratings, use `add`.

    Options:
        state: The year that `discreet follow start` wrote.
    """
    year = lib.Following(state, steady=True)
    return _draw(year, drawing, None, None, force=_refuse(year, drawing, [state]))


def _refuse(year: lib.Following, drawing: Drawing, read: list[Path]) -> bool:
    """Raise for an output that is in the way. Return whether a model may be replaced: the last one may."""
    out = drawing.out
    force = drawing.force or digest(out) in models_of(year.kept()).get(str(out.absolute()), "").split()
    inputs = [path for path in (*read, drawing.items, drawing.with_model, drawing.titles) if path is not None]
    lib.refuse_model(out, force=force, inputs=inputs)
    return force


def _draw(
    year: lib.Following,
    drawing: Drawing,
    source: lib.FollowedSource | None,
    batch: str | None,
    *,
    force: bool,
    again: bool = False,
    also: Mapping[str, str] | None = None,
) -> Output:
    """Draw a release once, write its model, and return what was added. `also` is kept for later releases."""
    kept, titles, out = year.kept(), drawing.titles, drawing.out
    if titles is None and "titles" in kept:
        titles = kept_titles(kept["titles"])
    declared = None if drawing.items is None else read_items(drawing.items)
    embeddings = None if drawing.with_model is None else lib.load(drawing.with_model)
    # A table that can't be read is rejected before anything is drawn.
    named = read_titles(titles, year.catalog(declared)[0])
    missed = 0 if drawing.release is None else drawing.release - year.made - 1
    if missed > _MOST_MISSED and not drawing.yes:
        raise errors.ReleasesSkipped(missed=missed)
    content = b""

    def keeping(added: lib.Added) -> Mapping[str, str]:
        nonlocal content
        content = lib.packed(replace(added.model, public=named))
        # If this process dies before it writes the model, the one before may still be replaced.
        digests = f"{sha256(content).hexdigest()} {digest(out)}".strip()
        return {
            **said_once(columns=None, titles=titles),
            **(also or {}),
            "models": json.dumps(models_of(kept) | {str(out.absolute()): digests}),
            "with": "" if drawing.with_model is None else str(drawing.with_model),
        }

    added = year.add(
        source,
        items=declared,
        kind=cast("lib.FollowedKind", drawing.kind),
        model=embeddings,
        release=drawing.release,
        batch=batch,
        again=again,
        keeping=keeping,
    )
    lib.refuse_model(out, force=force)
    write_whole(out, content)
    status, called = year.status(), _called(year)
    return Output(
        added_json(added),
        what_entered(added, called, given=batch is not None),
        *(line for line in (only_noise(status), too_early(status)) if line),
        lambda: added.model.guarantee.short(),
        what_it_cost(out, drawing.with_model, kept.get("with")),
    )


def _written(data: Path) -> str:
    """Return a file's name and time of writing. Neither depends on its users, as its bytes would."""
    moment = datetime.fromtimestamp(data.stat().st_mtime, UTC) if data.exists() else None
    return data.name if moment is None else f"{data.name}, written at {moment.isoformat()},"


def _called(year: lib.Following) -> str:
    """Return the source of a continual release."""
    facts = year.catalog()[1]
    return "interactions" if facts.low == facts.high else "ratings"


@contextmanager
def _source(
    year: lib.Following,
    data: Path,
    declared: lib.Vocabulary | None,
    columns: str | None,
    on: str | None,
    text: dict[str, Any],
    *,
    drop_unknown: bool,
) -> Iterator[lib.FollowedSource]:
    """Yield new ratings: a whole file, or a folder of shards as it is or on a cluster."""
    if lib.is_shard_folder(data):
        if drop_unknown:
            raise errors.FixedByShards(option="--drop-unknown", folder=str(data))
        if on is None:
            yield lib.open_shards(data)
            return

        with lib.connected(on) as client:
            yield lib.on_cluster(lib.open_shards(data), client)
        return
    if on is not None:
        raise errors.ShardsNeeded()

    catalog, facts = year.catalog(declared)
    implicit = facts.low == facts.high
    # If one file lists a pair twice, the latest counts. Across files, the first counts.
    found = lib.read_ratings(
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
    lib.remark_on_weights(found)
    yield found


def show(
    state: Path,
    *,
    page: Annotated[Path | None, "--html"] = None,
    out: Path | None = None,
    titles: KeptTitles = None,
    force: Force = False,
) -> Output:
    """Show the releases so far, how many are left, and how signal compares with noise. All of this is public.

    Options:
        state: The year that `discreet follow start` wrote.
        page: Also write this as one page.
        out: Also write the model of the latest release again.
    """
    if page is not None:
        lib.refuse_page(page, kind=_PAGE, force=force, inputs=[state])
    year = lib.Following(state, steady=True)
    status = year.status()
    if out is not None:
        kept = year.kept()
        model = year.model()
        titles = kept_titles(kept["titles"]) if titles is None and kept.get("titles") else titles
        (model if titles is None else model.with_titles(titles)).save(out, force=force)
    if page is not None:
        title = f"Continual release: {status.name}"
        content = lib.whole_page(title, year_page(status, title), kind=_PAGE, narrow=True)
        lib.write_page(page, content, kind=_PAGE, force=force)
    written = [f"Written to {path}." for path in (page, out) if path is not None]
    return Output(
        status.to_json(),
        lambda: lib.label_table(status.guarantee, f"Continual release: {status.name}"),
        *sentences(status),
        *written,
    )


def erase(state: Path, user: str) -> Output:
    """Stop adding a user's ratings from the next release on. Earlier releases don't change.

    Options:
        state: The year that `discreet follow start` wrote.
        user: The user's ID.
    """
    year = lib.Following(state, steady=True)
    taken = year.erase(user)
    status, facts = year.status(), year.catalog()[1]
    rated = facts.low != facts.high
    made = len(status.times)

    def left(entered: int, *, fading: bool = True) -> dict[int, float]:
        return lib.influence_left(status.settings, made, max(entered, 0), rated=rated, fading=fading)

    traces = {"entered last": left(made - 1), "entered first": left(0)}
    if rated:
        traces["in ratings, entered last"] = left(made - 1, fading=False)
    named = {name.replace(", ", " ").replace(" ", "_"): trace for name, trace in traces.items()}
    what = _called(year)
    gone = f"{taken:,} {what} were removed from the year and won't be added again."
    none = f"No {what} of this user are in the year. Later ones won't be added."
    parts = (
        "Earlier releases don't change, and the guarantee covers them. Later releases build on them: this is "
        f"how much of one of these {what} is left in them if it was added at the last or the first release.",
        lambda: traces_table(traces),
    )
    return Output(
        {"taken_out": taken, "influence_left": named},
        f"{gone if taken else none} A fingerprint of the ID stays in the private state, so that new {what} "
        "of the same user are recognized.",
        *(parts if taken and traces["entered last"] else ()),
    )


def replay(
    data: Data,
    *,
    reading: Reading,
    year: YearOptions,
    begins: Annotated[str | None, "--from"] = None,
    seed: int = 0,
) -> Output:
    """Replay a past year of your data, and compare following with fits and refits. Nothing is released.

    After each release, each method is scored on the items that users choose before the next release.

    Options:
        begins: When the year begins, such as 2025-01-31. Default: the last year of the data.
        seed: The seed of the (simulated) noise.
    """
    if reading.duplicates is None:
        # As in a continual release, only the first of a user's interactions with an item counts.
        reading = replace(reading, duplicates="first")
    past = reading.load(data)
    settings = year.settings(rated=not reading.implicit)
    moment = None if begins is None else lib.seconds_of(begins, "begins")
    with terminal_progress(None) as report:
        found = lib.replay_year(past, settings, begins=moment, seed=seed, progress=report)
    fades = (
        ""
        if year.half_life or not reading.implicit
        else " Nothing fades here: also try --half-life 30d, or 7d."
    )
    *shown, last = replay_shown(found)
    return Output(found.to_json(), *shown, f"{last}{fades}")


_DAYS = {"": 1.0, "h": 1 / 24, "d": 1.0, "w": 7.0, "m": 30.0, "y": 365.0}

HalfLife = Annotated[
    str | None,
    typer.Option(
        "--half-life",
        help="Half-life of an interaction's weight: 36h, 7d, 2w, 1m (30 days), 1y (365 days). "
        "Default: no fading.",
    ),
]
Year = Annotated[str, typer.Option("--year", help="Duration of the continual release.")]
ComeOnce = Annotated[
    bool, typer.Option("--users-come-once", help="Don't reserve weight for a user's later interactions.")
]


def days(option: str, text: str) -> float:
    """Return the days of a time such as 7d, 36h, or 2w.

    A bare number means days, a month is 30, a year 365.
    """
    found = re.fullmatch(r"([0-9]+(?:\.[0-9]+)?)\s*([hdwmy]?)", text.strip())
    if found is None or float(found[1]) == 0:
        form = "36h, 7d, 2w, 1m (30 days), or 1y (365 days)"
        raise usage_error(errors.WrongForm(option=option, form=form, given=text))
    return float(found[1]) * _DAYS[found[2]]


def said_once(*, columns: str | None, titles: Path | None) -> dict[str, str]:
    """Return the given options that are kept for later releases."""
    said = {"columns": columns, "titles": None if titles is None else str(titles.absolute())}
    return {name: value for name, value in said.items() if value is not None}


def read_titles(path: Path | None, catalog: lib.Vocabulary) -> lib.PublicColumns:
    """Return the public columns of a table of items, or nothing without a table."""
    return {} if path is None else lib.read_columns(lib.read_table(path), catalog)


def kept_titles(text: str) -> Path:
    """Return the table that an earlier command named. Raise if it no longer exists."""
    path = Path(text)
    if not path.exists():
        raise errors.TitlesGone(path=path)
    return path


def models_of(kept: Mapping[str, str]) -> dict[str, str]:
    """Return the models that earlier releases wrote, by path: digests of the last one and the one before."""
    found: dict[str, str] = json.loads(kept.get("models", "{}"))
    # Years that began in earlier versions kept only the last model.
    return found | ({kept["out"]: kept.get("written", "")} if "out" in kept else {})


def digest(path: Path) -> str:
    """Return the digest of a file, which identifies the model written last. Empty without a file."""
    return sha256(path.read_bytes()).hexdigest() if path.is_file() else ""


@group()
@final
@dataclass(frozen=True, slots=True, kw_only=True)
class YearOptions:
    """A year of releases, and what all of them may cost together.

    Options:
        epsilon: The epsilon of the guarantee for all releases.
        delta: The delta of the guarantee for all releases.
        releases: How many releases: 52 is weekly.
    """

    epsilon: Epsilon
    delta: float = 1e-6
    releases: int = 52
    half_life: HalfLife = None
    year: Year = "365d"
    come_once: ComeOnce = False

    def settings(self, *, rated: bool) -> lib.FollowSettings:
        """Return the settings of the year that these options describe."""
        return lib.FollowSettings(
            releases=self.releases,
            epsilon=self.epsilon,
            delta=self.delta,
            half_life=None if self.half_life is None else days("--half-life", self.half_life),
            days=days("--year", self.year),
            # Ratings of items don't fade, so no budget is kept for a later time of the year.
            pace=lib.ONCE if self.come_once or rated else lib.Pace(),
        )


@group()
@final
@dataclass(frozen=True, slots=True, kw_only=True)
class YearTogether:
    """A continual release of several parties, in place of a model.

    Options:
        follow: Make this many releases in a year (52 is weekly) instead of fitting a model.
    """

    follow: int | None = None
    half_life: HalfLife = None
    year: Year = "365d"
    come_once: ComeOnce = False

    def settings(self, learning: Learning, *, rated: bool) -> lib.FollowSettings | None:
        """Return the settings of a continual release; None if a model is to be fitted."""
        if self.follow is None:
            if self.half_life is not None or self.come_once or self.year != "365d":
                raise errors.OptionNeeds(
                    options=("--half-life", "--year", "--users-come-once"),
                    needs="--follow",
                    why="they describe a continual release",
                )
            return None
        if learning.settings or learning.purpose or learning.model != "user-factorization":
            raise errors.OptionsConflict(
                options=("--follow", "--model", "--set", "--for"), why="a continual release has its own model"
            )
        return YearOptions(
            releases=self.follow,
            epsilon=learning.epsilon,
            delta=1e-6 if learning.delta is None else learning.delta,
            half_life=self.half_life,
            year=self.year,
            come_once=self.come_once,
        ).settings(rated=rated)


@group()
@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Drawing:
    """Which release is drawn, what it is made of, and where its model is written.

    Options:
        out: Where to write the model.
        items: Declare items, including new ones: one ID per line, or a table of items.
        release: Number of this release. Releases that you missed before it are published without new data.
        kind: `popularity`, `biases`, or `both`.
        with_model: Use the embeddings of this user-factorization model.
        yes: Confirm that many missed releases are published without new data.
    """

    out: Path
    items: Path | None = None
    release: int | None = None
    kind: str = "both"
    with_model: Annotated[Path | None, "--with"] = None
    titles: KeptTitles = None
    yes: bool = False
    force: Force = False


# The chance that noise alone exceeds three standard deviations.
_BEYOND_THREE = 0.00135
# With fewer releases, or fewer items than twice the number by chance, there is little to report.
_SOME = 3


def added_json(added: lib.Added) -> dict[str, Any]:
    """Return the facts of a release as JSON."""
    counts = {"entered": added.entered, "known": added.known_pairs, "of_erased": added.of_erased}
    return {
        "release": added.release,
        "repeated": added.repeated,
        "not_public": counts,
        "guarantee": added.model.guarantee.to_json(),
    }


def what_entered(added: lib.Added, what: str, *, given: bool) -> str:
    """Return what a release did with a batch, and which releases were used up without new data."""
    if added.repeated:
        return f"Release {added.release} exists already. Nothing was drawn again."
    for_nothing = (
        f" Nothing new was added, but a release was used all the same: were these {what} added under a "
        "different name?"
    ) * (given and added.entered == 0)
    are = "was" if added.empty == 1 else "were"
    skipped = f" {added.empty:,} missed before it {are} made without new {what}." * (added.empty > 0)
    return (
        f"Release {added.release}.{skipped} For you alone: {added.entered:,} {what} were added, "
        f"{added.known_pairs:,} had been added before, {added.of_erased:,} were of erased users.{for_nothing}"
    )


def what_it_cost(out: Path, joined: Path | None, before: str | None) -> str:
    """Return where the model is, its cost, and whether it lost the embeddings of the previous release."""
    if joined is not None:
        return (
            f"The model is in {out}. The year cost no more budget. Its label adds the guarantee of {joined}."
        )
    lost = f" The previous release had embeddings (--with {before}). This release has none." if before else ""
    return f"The model is in {out}. It cost no more budget.{lost}"


def only_noise(status: lib.Status) -> str:
    """Return a warning if hardly more items exceed the noise than noise alone would produce."""
    if status.stands_out is None or status.stands_out > _SOME + 2 * _by_chance(status):
        return ""
    return (
        f"Hardly any item exceeds the noise yet ({status.stands_out:,} of {status.items:,}; chance "
        f"alone gives about {_by_chance(status):.0f}): lists of this release are mostly noise. Don't show "
        "them."
    )


def _by_chance(status: lib.Status) -> float:
    """Return how many items exceed three standard deviations by noise alone."""
    return _BEYOND_THREE * status.items


def too_early(status: lib.Status) -> str:
    """Return a warning if releases are made much faster than the year allows."""
    made, settings = len(status.times), status.settings
    if made < _SOME or made == settings.releases:
        return ""
    first, latest = (datetime.fromisoformat(text) for text in (status.times[0], status.times[-1]))
    days = (latest - first).total_seconds() / 86_400
    if days * settings.releases >= settings.days * (made - 1) / 2:
        return ""
    return (
        f"{made:,} of {settings.releases:,} releases were made in {days:,.1f} days, but they must "
        f"last {settings.days:g}: {_left(status)}."
    )


_PAID = {
    True: "A ledger recorded the cost of all of them.",
    False: "No ledger recorded the year's cost, but releases about the same users add up.",
    None: "They cost no more budget. This file doesn't state whether a ledger recorded the year's cost.",
}


def sentences(status: lib.Status) -> list[str]:
    """Return the public facts about a year so far, in sentences."""
    lines = [
        f"Began on {status.began}, ends on {status.ends}: {_made(status)}, {_left(status)}. "
        f"{_PAID[status.recorded]}"
    ]
    if status.times:
        lines.append(f"The latest release was made at {status.times[-1]}.")
    if status.noise is not None:
        lines.append(
            f"The noise on an item's current count has a standard deviation of {status.noise:.3g}. "
            f"{status.stands_out:,} of {status.items:,} items exceed three times that (chance "
            f"alone gives about {_by_chance(status):.0f})."
        )
    lines += [line for line in (only_noise(status), too_early(status)) if line]
    declared = status.settings.half_life
    if status.times and declared is not None and status.noise is not None:
        lines.append(_counted_with(declared, status.half_life))
    return lines


def _made(status: lib.Status) -> str:
    made, planned = len(status.times), status.settings.releases
    return f"{made:,} of {releases_of(planned)} {'was' if made == 1 else 'were'} made"


def _left(status: lib.Status) -> str:
    return f"{status.left:,} {'is' if status.left == 1 else 'are'} left"


def releases_of(count: int) -> str:
    """Return a number of releases in words."""
    return "1 release" if count == 1 else f"{count:,} releases"


def _counted_with(declared: float, used: float | None) -> str:
    """Return which half-life lists use now, and why if it isn't the declared half-life."""
    if used is not None and used <= declared * (1 + 1e-9):
        return f"Lists use the declared half-life of {declared:g} days."
    instead = "nothing fades" if used is None else f"the half-life is {used:.4g} days"
    return (
        f"With the declared half-life of {declared:g} days, noise would hide the lists. Until they "
        f"exceed the noise, {instead}."
    )


def year_page(status: lib.Status, title: str) -> list[str]:
    """Return the parts of a page about a year."""
    made, all_of_them = len(status.times), status.settings.releases
    rows = [(str(place), time) for place, time in enumerate(status.times, start=1)]
    releases = (
        lib.page_table(("release", "when (UTC)"), rows, "Releases") if rows else lib.element("p", "None yet.")
    )
    return [
        lib.element("h1", title),
        lib.meter(made / all_of_them, _made(status)),
        *(lib.element("p", line) for line in sentences(status)),
        lib.element("h2", "The guarantee for the whole year"),
        lib.facts_table(status.guarantee.rows(), "The guarantee"),
        lib.element("h2", "Releases"),
        releases,
    ]


def replay_shown(found: lib.Replay) -> list[lib.RenderableType]:
    """Return a table of the replayed ways to spend the budget, and advice for the next command."""
    rows = [
        (way.name, "once" if way.epsilon_each is None else _epsilon(way.epsilon_each), f"{way.score:.4f}")
        for way in found.ways
    ]
    head, title = ("way", "epsilon of each fit", found.metric), f"A year from {found.begins}, replayed"
    table = table_of(head, rows, title=title, right=1)
    lower, (follow, *others) = found.lower_is_better, found.ways
    private = [way for way in others if way.epsilon_each not in (None, math.inf)]
    best = (min if lower else max)(private, key=lambda way: way.score)
    empty = (
        f" After {found.empty:,} of {found.releases:,} releases no new data came, because the data don't "
        "cover the whole year. Only the other releases were scored."
    ) * (3 * found.empty > found.releases)
    better, what = ("lower", "ratings") if lower else ("higher", "interactions")
    ahead = follow.score < best.score if lower else follow.score > best.score
    said = (
        f"Following was best ({follow.score:.4f}), then {best.name} ({best.score:.4f})."
        if ahead
        else f"Best was {best.name} ({best.score:.4f}); following had {follow.score:.4f}."
    )
    return [
        table,
        f"{found.metric} ({better} is better) of {found.asked:,} {what} between two of "
        f"{found.releases:,} releases. All ways but the last have the same budget for the year. {said} Small "
        f"differences may be luck: --seed draws different noise.{empty}",
        "Nothing was released, and no budget was spent. Scores have no noise: don't publish them.",
    ]


def _epsilon(each: float) -> str:
    return "∞ (not private)" if each == math.inf else f"{each:.3g}"
