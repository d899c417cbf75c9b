"""`discreet federation`: set up a federation, simulate a run, or coordinate one over Flower.

A run fits a model or, with `--follow`, follows a year: then each `federation run` asks for one release.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypedDict

import typer

from discreet.cli.federated_scores import show_scores
from discreet.cli.options.declared import AsJson, Data, Force, Learning, Paying, Reading
from discreet.cli.options.measuring import Measuring
from discreet.cli.options.parsing import listed, parse_scale, read_items
from discreet.cli.options.years import YearTogether, digest
from discreet.cli.output.printing import emit, remark, show
from discreet.cli.simulation import play_simulated, refuse_empty_year, simulated_fit, simulated_year
from discreet.core.checks import ParameterError
from discreet.core.files import refuse_output, write_whole

if TYPE_CHECKING:
    from discreet.data.facts import PublicFacts
    from discreet.federated.coordinator import RunOutcome
    from discreet.federated.noise import SharedNoise
    from discreet.federated.transport import Transport
    from discreet.follow import FollowSettings
    from discreet.follow.coordinator import FollowedTogether
    from discreet.privacy.guarantee import Guarantee


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
        int | None, typer.Option("--max-per-user", help="Use at most this many ratings per person.")
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
        raise ParameterError("The rating scale is missing. Pass it, as in --scale 1,5, or --implicit.")
    facts = PublicFacts(n_items=len(catalog), low=low, high=high, step=step, max_per_user=max_per_user)
    names = tuple(listed(parties))
    noise = SharedNoise(parties=len(names), missing=missing)
    recipe, promise, called = _agreed(learning, year, facts, noise, implicit=implicit)
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
    show(promise.label(f"What each party will promise: {called}"))
    show(
        f"Run {agreement.run!r}. Give each member its own folder under {folder} and no other. Whoever has "
        f"{folder / 'authority'} can certify new members."
    )


def _agreed(
    learning: Learning, year: YearTogether, facts: PublicFacts, noise: SharedNoise, *, implicit: bool
) -> tuple[str, Guarantee, str]:
    """Return the recipe of a run, what it promises, and what it is called: a model, or a followed year."""
    from discreet import recipes
    from discreet.federated.protocols.estimator_sums import protocol_for
    from discreet.follow.agreement import FollowAgreement
    from discreet.follow.federation import to_recipe

    settings = year.settings(learning, rated=not implicit)
    if settings is None:
        estimator = learning.estimator(implicit=implicit)
        return (
            recipes.to_toml(estimator),
            protocol_for(estimator, facts, noise).promise(facts),
            estimator.name,
        )
    if facts.max_per_user is not None:
        raise ParameterError("--max-per-user is for a model; a followed year weighs ratings instead.")
    agreed = FollowAgreement(run="year", settings=settings, facts=facts, noise=noise)
    return to_recipe(settings), agreed.promise(), f"a year of {settings.releases:,} releases"


def simulate(
    data: Data,
    learning: Learning,
    year: YearTogether,
    reading: Reading,
    paying: Paying,
    measuring: Measuring,
    parties: Annotated[int, typer.Option("--parties", help="The number of parties that share the people.")],
    missing: Annotated[
        int,
        typer.Option("--missing", help="How many parties may be absent, or not keep their noise secret."),
    ] = 1,
    begins: Annotated[
        str | None,
        typer.Option("--from", help="When a followed year begins, as in 2026-01-31: a public date."),
    ] = None,
    scored: Annotated[
        bool,
        typer.Option(
            "--evaluate",
            help="Release nothing; compare all parties together with one holder of all data and each alone; "
            "with --follow, with fits and refits, too.",
        ),
    ] = False,
    out: Annotated[Path | None, typer.Option("--out", help="Where to write the model.")] = None,
    force: Force = False,
    as_json: AsJson = False,
) -> None:
    """Simulate a federation: assign people to parties and run all of them in one process.

    --evaluate measures on held-out data what is gained by it.
    """
    from discreet.data.inputs import files_of
    from discreet.federated.noise import SharedNoise
    from discreet.models.storage import KIND, is_model

    paying.check()
    settings = year.settings(learning, rated=not reading.implicit)
    _refuse_contradictions(
        settings, begins, measuring, scored=scored, releases=out is not None or paying.asked
    )
    if paying.ledger is not None and out is None:
        raise ParameterError("--ledger would pay for a model that is not kept. Name it with --out.")
    if out is not None:
        refuse_output(
            out,
            force=force,
            kind=KIND,
            is_ours=is_model,
            inputs=[*files_of(data, reading.layout), *reading.files(), *paying.files()],
        )
    if settings is not None and reading.duplicates == "refuse":
        # As in a followed year: of a user's interactions with an item the first one counts.
        reading = replace(reading, duplicates="first")
    noise = SharedNoise(parties=parties, missing=missing)
    whole = reading.load(data, paying.name)
    if scored:
        show_scores(whole, learning, reading, measuring, noise, settings, begins, as_json=as_json)
        return
    if settings is None or begins is None:
        run = simulated_fit(learning.estimator(implicit=reading.implicit), whole, noise)
    else:
        refuse_empty_year(whole, settings, begins)
        run = simulated_year(settings, whole, noise, begins)
    play_simulated(run, whole.name, paying, out, force=force, as_json=as_json)


def _refuse_contradictions(
    settings: FollowSettings | None, begins: str | None, measuring: Measuring, *, scored: bool, releases: bool
) -> None:
    """Refuse options of a simulation that do not go together, before anything is read."""
    if settings is None and begins is not None:
        raise ParameterError("--from says when a followed year begins. Add --follow.")
    if settings is not None and begins is None and not scored:
        raise ParameterError("--follow needs --from: a year begins on a public date.")
    if not scored and measuring != Measuring():
        raise ParameterError("--split, --metric, --repeat and --seed say how to measure. Add --evaluate.")
    if scored and releases:
        raise ParameterError("--evaluate releases nothing, so there is no model to write and nothing to pay.")


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
        Path | None, typer.Option("--flower", help="The folder of Flower's programs. Default: beside ours.")
    ] = None,
    release: Annotated[
        int | None,
        typer.Option(
            "--release",
            help="Which release of a followed year this is; one that was made is not asked again.",
        ),
    ] = None,
    force: Force = False,
    as_json: AsJson = False,
) -> None:
    """Coordinate all rounds with the parties present and write the model. Start again to resume.

    Where parties follow a year, this asks for its next release.
    """
    from discreet import recipes
    from discreet.cli.output.rounds import WatchedTransport, outcome_json, show_outcome
    from discreet.federated.flower.transport import over_flower
    from discreet.federated.identity.agreement import Agreement
    from discreet.federated.protocols.estimator_sums import protocol_for
    from discreet.follow.federation import from_recipe, release_over_flower
    from discreet.models.storage import KIND, is_model

    agreement = Agreement.read(folder)
    follows = from_recipe(agreement.recipe) is not None
    if release is not None and not follows:
        raise ParameterError("--release is for parties that follow a year; this run fits one model.")
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
        protocol = protocol_for(recipes.from_toml(agreement.recipe), agreement.facts, agreement.noise)
        outcome = over_flower(folder, agreement, protocol, **how)
    outcome.model.save(out, force=force)
    if follows:
        write_whole(last, _signed(out).encode())
    if as_json:
        emit(outcome_json(outcome, out))
        return
    show_outcome(outcome, out)


# In the coordinator's folder: which model the last release of a followed year wrote.
_LAST = "last-model"


def _signed(out: Path) -> str:
    """Return a file's place and digest, by which a model that was written last is known."""
    return f"{out.absolute()} {digest(out)}"


class _How(TypedDict):
    """How questions travel."""

    seconds: float
    patience: float
    programs: Path | None
    watched: Callable[[Transport], Transport]


def declare(
    folder: Annotated[Path, typer.Argument(help="A member's folder: the coordinator's, then each party's.")],
    items: Annotated[Path, typer.Argument(help="Items, new ones among them: ids, or a table of items.")],
    as_json: AsJson = False,
) -> None:
    """Declare new items between two releases of a followed year: all members do, the coordinator first."""
    from discreet.federated.identity.agreement import Agreement
    from discreet.follow.federation import declare_items

    fresh = declare_items(folder, Agreement.read(folder), read_items(items))
    if as_json:
        emit({"declared": fresh})
        return
    show(f"{fresh:,} items are new. All other members must declare them before the next release.")
