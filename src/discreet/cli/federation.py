"""`discreet federation`: set up a federation, simulate a run, or coordinate one over Flower."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from discreet.cli.options.declared import AsJson, Data, Force, Learning, Paying, Reading
from discreet.cli.options.parsing import listed, parse_scale, read_items
from discreet.cli.output.printing import emit, remark, remark_on_delta, show
from discreet.core.checks import ParameterError
from discreet.core.files import refuse_output

if TYPE_CHECKING:
    pass


def init(
    folder: Annotated[Path, typer.Argument(help="A new folder, with one subfolder for each member.")],
    learning: Learning,
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
    from discreet import recipes
    from discreet.data.facts import PublicFacts
    from discreet.federated.catalogs import united
    from discreet.federated.identity.agreement import COORDINATOR, KEEPER, found_federation
    from discreet.federated.noise import SharedNoise
    from discreet.federated.protocols.estimator_sums import protocol_for

    estimator = learning.estimator(implicit=implicit)
    catalog = united([read_items(path) for path in items])
    low, high, step = parse_scale(scale)
    if implicit:
        low, high, step = 1.0, 1.0, None
    if low is None or high is None:
        raise ParameterError("The rating scale is missing. Pass it, as in --scale 1,5, or --implicit.")
    facts = PublicFacts(n_items=len(catalog), low=low, high=high, step=step, max_per_user=max_per_user)
    names = tuple(listed(parties))
    protocol = protocol_for(estimator, facts, SharedNoise(parties=len(names), missing=missing))
    agreement = found_federation(
        folder,
        recipe=recipes.to_toml(estimator),
        facts=facts,
        catalog=catalog,
        missing=missing,
        parties=names,
        addresses={COORDINATOR: coordinator, KEEPER: keeper},
        label=name,
    )
    promise = protocol.promise(facts)
    if as_json:
        emit({"run": agreement.run, "parties": list(names), "guarantee": promise.to_json()})
        return
    show(promise.label(f"What each party will promise: {estimator.name}"))
    show(
        f"Run {agreement.run!r}. Give each member its own folder under {folder} and no other. Whoever has "
        f"{folder / 'authority'} can certify new members."
    )


def simulate(
    data: Data,
    learning: Learning,
    reading: Reading,
    paying: Paying,
    parties: Annotated[int, typer.Option("--parties", help="The number of parties that share the people.")],
    missing: Annotated[
        int,
        typer.Option("--missing", help="How many parties may be absent, or not keep their noise secret."),
    ] = 1,
    out: Annotated[Path | None, typer.Option("--out", help="Where to write the model.")] = None,
    force: Force = False,
    as_json: AsJson = False,
) -> None:
    """Simulate a federation: assign people to parties and run all of them in one process."""
    from discreet.cli.output.rounds import outcome_json, show_outcome
    from discreet.data.inputs import files_of
    from discreet.federated.noise import SharedNoise
    from discreet.federated.protocols.estimator_sums import protocol_for
    from discreet.federated.simulation import simulate_parties
    from discreet.models.storage import KIND, is_model
    from discreet.privacy.ledger.book import Ledger

    paying.check()
    estimator = learning.estimator(implicit=reading.implicit)
    noise = SharedNoise(parties=parties, missing=missing)
    if out is not None:
        refuse_output(
            out,
            force=force,
            kind=KIND,
            is_ours=is_model,
            inputs=[*files_of(data, reading.layout), *reading.files(), *paying.files()],
        )
    whole = reading.load(data, paying.name)
    remark_on_delta([estimator], whole.facts)
    protocol = protocol_for(estimator, whole.facts, noise)
    book = paying.book(whole.name) or Ledger.nowhere()
    # Each user is at one party, so the whole run costs a user what their party promises.
    with book.spend(
        whole.name, protocol.promise(whole.facts), what=f"simulated federation, {estimator.name}"
    ):
        outcome = simulate_parties(protocol, whole, parties)
    if out is not None:
        outcome.model.save(out, force=force)
    if as_json:
        emit(outcome_json(outcome, out))
        return
    show_outcome(outcome, out)
    if paid := paying.paid(whole.name):
        show(paid)


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
    force: Force = False,
    as_json: AsJson = False,
) -> None:
    """Coordinate all rounds with the parties present and write the model. Start again to resume."""
    from discreet import recipes
    from discreet.cli.output.rounds import WatchedTransport, outcome_json, show_outcome
    from discreet.federated.flower.transport import over_flower
    from discreet.federated.identity.agreement import Agreement
    from discreet.federated.protocols.estimator_sums import protocol_for
    from discreet.models.storage import KIND, is_model

    agreement = Agreement.read(folder)
    protocol = protocol_for(recipes.from_toml(agreement.recipe), agreement.facts, agreement.noise)
    refuse_output(out, force=force, kind=KIND, is_ours=is_model)
    remark(f"Run {agreement.run!r}: {', '.join(agreement.parties)}.")
    outcome = over_flower(
        folder,
        agreement,
        protocol,
        seconds=seconds,
        patience=patience,
        programs=flower,
        watched=WatchedTransport,
    )
    outcome.model.save(out, force=force)
    if as_json:
        emit(outcome_json(outcome, out))
        return
    show_outcome(outcome, out)
