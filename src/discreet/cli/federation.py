"""`discreet federation`: set up a federation, simulate a run, or coordinate one over Flower.

A run fits one model. With `--follow` it is a continual release, and each `federation run` makes one release.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypedDict

import typer

from discreet.cli.errors import OptionDoesNotApply, OptionMissing, OptionNeeds, OptionsConflict
from discreet.cli.federated_scores import show_scores
from discreet.cli.options.declared import AsJson, Data, Force, Learning, Paying, Reading
from discreet.cli.options.measuring import Measuring
from discreet.cli.options.parsing import listed, parse_scale, read_items
from discreet.cli.options.years import YearTogether, digest
from discreet.cli.output.printing import emit, remark, show
from discreet.cli.simulation import play_simulated, refuse_empty_year, simulated_fit, simulated_year
from discreet.core.files import refuse_output, write_whole

if TYPE_CHECKING:
    from discreet.data.facts import PublicFacts
    from discreet.federated.coordinator import RunOutcome
    from discreet.federated.noise import SharedNoise
    from discreet.federated.transport import Transport
    from discreet.follow import FollowSettings
    from discreet.follow.coordinator import FollowedTogether
    from discreet.privacy.guarantee import Guarantee


Protocol = Annotated[
    str,
    typer.Option(
        "--protocol",
        help="How parties learn together: `sums` adds up statistics with shared noise, `averages` averages "
        "the items that each party solves. `dpimf` and `dpmf` always average, as printed.",
    ),
]


def init(
    folder: Annotated[Path, typer.Argument(help="A new folder, with one subfolder for each member.")],
    learning: Learning,
    year: YearTogether,
    parties: Annotated[str, typer.Option("--parties", help="The parties' names, comma-separated.")],
    items: Annotated[
        list[Path],
        typer.Option(
            "--items", help="The public catalog: one id per line, or a table of items. May be repeated."
        ),
    ],
    scale: Annotated[
        str | None, typer.Option("--scale", help="The rating scale: LOW,HIGH or LOW,HIGH,STEP.")
    ] = None,
    implicit: Annotated[
        bool, typer.Option("--implicit", help="Learn from implicit feedback, not from ratings.")
    ] = False,
    max_per_user: Annotated[
        int | None, typer.Option("--max-per-user", help="Use at most this many ratings per user.")
    ] = None,
    users: Annotated[
        int | None,
        typer.Option(
            "--users",
            help="About how many users all parties have together: a public number. Larger sums are rejected.",
        ),
    ] = None,
    missing: Annotated[
        int,
        typer.Option("--missing", help="How many parties may be absent, or not keep their noise secret."),
    ] = 1,
    coordinator: Annotated[
        str, typer.Option("--coordinator", help="Address of the coordinator, for the parties: HOST:PORT.")
    ] = "127.0.0.1:9192",
    keeper: Annotated[
        str, typer.Option("--keeper", help="Address of the mask keeper, for all members: HOST:PORT.")
    ] = "127.0.0.1:9193",
    protocol: Protocol = "sums",
    name: Annotated[str, typer.Option("--name", help="The name of the run.")] = "run",
    as_json: AsJson = False,
) -> None:
    """Set up a federation: write its agreement, and keys and certificates for a trial."""
    from discreet.data.facts import PublicFacts
    from discreet.federated.catalogs import united
    from discreet.federated.identity.agreement import COORDINATOR, KEEPER, found_federation
    from discreet.federated.noise import SharedNoise

    catalog = united([read_items(path) for path in items])
    low, high, step = parse_scale(scale)
    if implicit:
        low, high, step = 1.0, 1.0, None
    if low is None or high is None:
        raise OptionMissing(options=("--scale LOW,HIGH", "--implicit"))
    facts = PublicFacts(
        n_items=len(catalog), low=low, high=high, step=step, max_per_user=max_per_user, n_users=users
    )
    names = tuple(listed(parties))
    noise = SharedNoise(parties=len(names), missing=missing)
    recipe, promise, called = _agreed(learning, year, facts, noise, protocol, implicit=implicit)
    agreement = found_federation(
        folder,
        recipe=recipe,
        facts=facts,
        catalog=catalog,
        missing=missing,
        parties=names,
        addresses={COORDINATOR: coordinator, KEEPER: keeper},
        label=name,
    )
    if as_json:
        emit({"run": agreement.run, "parties": list(names), "guarantee": promise.to_json()})
        return
    show(promise.label(f"The guarantee of each party: {called}"))
    show(
        f"Run {agreement.run!r}. Give each member only its own folder under {folder}. Anyone who has "
        f"{folder / 'authority'} can certify new members."
    )


def _agreed(
    learning: Learning,
    year: YearTogether,
    facts: PublicFacts,
    noise: SharedNoise,
    protocol: str,
    *,
    implicit: bool,
) -> tuple[str, Guarantee, str]:
    """Return the recipe of a run, its guarantee, and its name: that of a model, or of a continual release."""
    from discreet.cli import agreements
    from discreet.federated.protocols import choosing
    from discreet.follow.agreement import FollowAgreement
    from discreet.follow.federation import to_recipe

    settings = year.settings(learning, rated=not implicit)
    way = choosing.way_of(protocol)
    if settings is None:
        estimator = learning.estimator(implicit=implicit)
        agreed = choosing.item_protocol(estimator, facts, noise, way)
        return agreements.to_recipe(estimator, way), agreed.promise(facts), estimator.name
    if way != "sums":
        raise OptionDoesNotApply(
            options=("--protocol",), to="a continual release", why="a continual release always adds up sums"
        )
    if facts.max_per_user is not None:
        raise OptionDoesNotApply(
            options=("--max-per-user",),
            to="a continual release",
            why="a continual release weights ratings instead of limiting them",
        )
    year_agreed = FollowAgreement(run="year", settings=settings, facts=facts, noise=noise)
    return to_recipe(settings), year_agreed.promise(), f"a year of {settings.releases:,} releases"


def simulate(
    data: Data,
    learning: Learning,
    year: YearTogether,
    reading: Reading,
    paying: Paying,
    measuring: Measuring,
    parties: Annotated[int, typer.Option("--parties", help="The number of parties that share the users.")],
    missing: Annotated[
        int,
        typer.Option("--missing", help="How many parties may be absent, or not keep their noise secret."),
    ] = 1,
    begins: Annotated[
        str | None,
        typer.Option("--from", help="When a continual release begins, as in 2026-01-31: a public date."),
    ] = None,
    scored: Annotated[
        bool,
        typer.Option(
            "--evaluate",
            help="Release nothing. Compare all parties together with one owner of all data and with each "
            "party "
            "alone. With --follow, also compare with fits and refits.",
        ),
    ] = False,
    protocol: Protocol = "sums",
    out: Annotated[Path | None, typer.Option("--out", help="Where to write the model.")] = None,
    force: Force = False,
    as_json: AsJson = False,
) -> None:
    """Simulate a federation: assign users to parties and run all of them in one process.

    --evaluate measures the gain on held-out data.
    """
    from discreet.data.inputs import files_of
    from discreet.federated.noise import SharedNoise
    from discreet.federated.protocols.choosing import way_of
    from discreet.models.storage import KIND, is_model

    paying.check()
    way = way_of(protocol)
    settings = year.settings(learning, rated=not reading.implicit)
    _refuse_contradictions(
        settings, begins, measuring, scored=scored, releases=out is not None or paying.asked
    )
    if paying.ledger is not None and out is None:
        raise OptionNeeds(
            options=("--ledger",),
            needs="--out",
            why="it would record the cost of a model that is not written",
        )
    noise = SharedNoise(parties=parties, missing=missing)
    with paying.releasing(out, data, learning, year, reading, noise, way, begins) as release:
        done = None if out is None else paying.finished(release, out)
        if out is not None and done is not None:
            show(f"Written to {out}. {paying.recorded(done.name, done.model.guarantee)}")
            return
        if out is not None:
            refuse_output(
                out,
                force=force,
                kind=KIND,
                is_ours=is_model,
                inputs=[*files_of(data, reading.layout), *reading.files(), *paying.files()],
            )
        if settings is not None and reading.duplicates == "refuse":
            # As in a continual release, only the first of a user's interactions with an item counts.
            reading = replace(reading, duplicates="first")
        whole = reading.load(data, paying.name)
        if scored:
            show_scores(whole, learning, reading, measuring, noise, way, settings, begins, as_json=as_json)
            return
        if settings is None or begins is None:
            run = simulated_fit(learning.estimator(implicit=reading.implicit), whole, noise, way)
        else:
            refuse_empty_year(whole, settings, begins)
            run = simulated_year(settings, whole, noise, begins)
        book = paying.book(whole.name, release)
        play_simulated(run, whole.name, paying, book, out, force=force, as_json=as_json)


def _refuse_contradictions(
    settings: FollowSettings | None, begins: str | None, measuring: Measuring, *, scored: bool, releases: bool
) -> None:
    """Raise for options of a simulation that don't go together, before any data are read."""
    if settings is None and begins is not None:
        raise OptionNeeds(
            options=("--from",), needs="--follow", why="it is the first day of a continual release"
        )
    if settings is not None and begins is None and not scored:
        raise OptionNeeds(
            options=("--follow",), needs="--from DATE", why="a continual release begins on a public date"
        )
    if not scored and measuring != Measuring():
        raise OptionNeeds(
            options=("--split", "--metric", "--repeat", "--seed"),
            needs="--evaluate",
            why="they describe how to measure",
        )
    if scored and releases:
        raise OptionsConflict(
            options=("--evaluate", "--out", "--ledger"),
            why="an evaluation writes no model and spends no budget",
        )


def run(
    folder: Annotated[Path, typer.Argument(help="The coordinator's folder that `federation init` wrote.")],
    out: Annotated[Path, typer.Option("--out", help="Where to write the model.")],
    seconds: Annotated[
        float, typer.Option("--seconds", help="How many seconds a round waits for answers.")
    ] = 300.0,
    patience: Annotated[
        float, typer.Option("--patience", help="How many seconds a round waits for an absent party.")
    ] = 60.0,
    flower: Annotated[
        Path | None, typer.Option("--flower", help="The folder of Flower's programs. Default: next to ours.")
    ] = None,
    release: Annotated[
        int | None,
        typer.Option(
            "--release",
            help="Number of this release in a continual release. A release that exists is not requested "
            "again.",
        ),
    ] = None,
    force: Force = False,
    as_json: AsJson = False,
) -> None:
    """Coordinate all rounds with the parties present and write the model. Start again to resume.

    In a continual release, this requests the next release.
    """
    from discreet.cli.agreements import agreed_protocol
    from discreet.cli.output.rounds import WatchedTransport, outcome_json, show_outcome
    from discreet.federated.flower.transport import over_flower
    from discreet.federated.identity.agreement import Agreement
    from discreet.follow.federation import from_recipe, release_over_flower
    from discreet.models.storage import KIND, is_model

    agreement = Agreement.read(folder)
    follows = from_recipe(agreement.recipe) is not None
    if release is not None and not follows:
        raise OptionDoesNotApply(
            options=("--release",),
            to="a run that fits one model",
            why="it numbers the releases of a continual release",
        )
    # The model of the release before may be replaced; anything else only with --force.
    last = folder / _LAST
    force = force or (follows and last.is_file() and last.read_text() == _signed(out))
    refuse_output(out, force=force, kind=KIND, is_ours=is_model)
    remark(f"Run {agreement.run!r}: {', '.join(agreement.parties)}.")
    how = _How(seconds=seconds, patience=patience, programs=flower, watched=WatchedTransport)
    outcome: RunOutcome | FollowedTogether
    if follows:
        outcome = release_over_flower(folder, agreement, number=release, **how)
    else:
        protocol = agreed_protocol(agreement)[1]
        outcome = over_flower(folder, agreement, protocol, **how)
    outcome.model.save(out, force=force)
    if follows:
        write_whole(last, _signed(out).encode())
    if as_json:
        emit(outcome_json(outcome, out))
        return
    show_outcome(outcome, out)


# In the coordinator's folder: which model the last release of a continual release wrote.
_LAST = "last-model"


def _signed(out: Path) -> str:
    """Return a file's path and digest, which identify the model that was written last."""
    return f"{out.absolute()} {digest(out)}"


class _How(TypedDict):
    """Settings of the transport."""

    seconds: float
    patience: float
    programs: Path | None
    watched: Callable[[Transport], Transport]


def declare(
    folder: Annotated[Path, typer.Argument(help="A member's folder: the coordinator's, then each party's.")],
    items: Annotated[Path, typer.Argument(help="Items, new ones among them: ids, or a table of items.")],
    as_json: AsJson = False,
) -> None:
    """Declare new items between two releases of a continual release.

    All members do; the coordinator first.
    """
    from discreet.federated.identity.agreement import Agreement
    from discreet.follow.federation import declare_items

    fresh = declare_items(folder, Agreement.read(folder), read_items(items))
    if as_json:
        emit({"declared": fresh})
        return
    show(f"{fresh:,} items are new. All other members must declare them before the next release.")
