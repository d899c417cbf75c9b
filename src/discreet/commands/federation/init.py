"""`discreet federation init`: write a run's agreement, and keys and certificates for a try-out."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from discreet.checks import ParameterError
from discreet.commands.options.declared import AsJson, Learning
from discreet.commands.options.parsing import listed, parse_scale, read_items
from discreet.commands.output.printing import emit, show


def init(
    folder: Annotated[Path, typer.Argument(help="A new folder; it gets one folder for every member.")],
    learning: Learning,
    parties: Annotated[str, typer.Option("--parties", help="The parties' names, comma-separated.")],
    items: Annotated[
        list[Path],
        typer.Option("--items", help="A public list of items, one id a line; several are united."),
    ],
    scale: Annotated[
        str | None, typer.Option("--scale", help="The rating scale: LOW,HIGH or LOW,HIGH,STEP.")
    ] = None,
    implicit: Annotated[
        bool, typer.Option("--implicit", help="Learn from choices, not from ratings.")
    ] = False,
    max_per_user: Annotated[
        int | None, typer.Option("--max-per-user", help="Use at most this many ratings a person.")
    ] = None,
    missing: Annotated[
        int,
        typer.Option("--missing", help="How many parties may be absent, or not keep their noise secret."),
    ] = 1,
    coordinator: Annotated[
        str, typer.Option("--coordinator", help="HOST:PORT at which parties reach the coordinator.")
    ] = "127.0.0.1:9192",
    keeper: Annotated[
        str, typer.Option("--keeper", help="HOST:PORT at which all reach the keeper of masks.")
    ] = "127.0.0.1:9193",
    name: Annotated[str, typer.Option("--name", help="What the run is called.")] = "run",
    as_json: AsJson = False,
) -> None:
    """Found a federation: its agreement, and keys and certificates for a try-out."""
    from discreet import recipes
    from discreet.data.facts import PublicFacts
    from discreet.federated.catalogs import united
    from discreet.federated.identity.agreement import COORDINATOR, KEEPER, found_federation
    from discreet.federated.noise import SharedNoise
    from discreet.federated.protocols.choosing import protocol_for

    estimator = learning.estimator(implicit=implicit)
    catalog = united([read_items(path) for path in items])
    low, high, step = parse_scale(scale)
    if implicit:
        low, high, step = 1.0, 1.0, None
    if low is None or high is None:
        raise ParameterError("Say on which scale all parties rate, as in --scale 1,5, or --implicit.")
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
        f"Run {agreement.run!r}. Give each member its folder under {folder}, and nobody else's; whoever has "
        f"{folder / 'authority'} can certify new members."
    )
