"""`discreet federation run`: be the coordinator of a federation over Flower."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from discreet.commands.federation.rounds import WatchedTransport, outcome_json, show_outcome
from discreet.commands.options.declared import AsJson, Force
from discreet.commands.output.printing import emit, remark
from discreet.files import refuse_output


def run(
    folder: Annotated[Path, typer.Argument(help="The coordinator's folder that `federation init` wrote.")],
    out: Annotated[Path, typer.Option("--out", help="Where to write the model.")],
    seconds: Annotated[float, typer.Option("--seconds", help="How long a round waits for answers.")] = 300.0,
    patience: Annotated[
        float, typer.Option("--patience", help="How long a round waits for a party that is not there.")
    ] = 60.0,
    flower: Annotated[
        Path | None, typer.Option("--flower", help="The folder of Flower's programs, if not beside ours.")
    ] = None,
    force: Force = False,
    as_json: AsJson = False,
) -> None:
    """Run all rounds with the parties that are there and write the model; start again to go on."""
    from discreet import recipes
    from discreet.federated.flower.running import over_flower
    from discreet.federated.identity.agreement import Agreement
    from discreet.federated.protocols.choosing import protocol_for
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
