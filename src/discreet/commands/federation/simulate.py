"""`discreet federation simulate`: parties, keeper and coordinator in one process."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from discreet.commands.federation.rounds import outcome_json, show_outcome
from discreet.commands.options.declared import AsJson, Data, Force, Learning, Paying, Reading, remark_on_delta
from discreet.commands.output.printing import emit, show
from discreet.files import refuse_output


def simulate(
    data: Data,
    learning: Learning,
    reading: Reading,
    paying: Paying,
    parties: Annotated[int, typer.Option("--parties", help="Among how many parties people are dealt out.")],
    missing: Annotated[
        int,
        typer.Option("--missing", help="How many parties may be absent, or not keep their noise secret."),
    ] = 1,
    out: Annotated[Path | None, typer.Option("--out", help="Where to write the model.")] = None,
    force: Force = False,
    as_json: AsJson = False,
) -> None:
    """Try a federation out: deal people out among parties and run all of it in one process."""
    from discreet.data.opening import files_of
    from discreet.federated.noise import SharedNoise
    from discreet.federated.protocols.choosing import protocol_for
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
            inputs=[*files_of(data), *reading.files(), *paying.files()],
        )
    whole = reading.load(data, paying.name)
    remark_on_delta([estimator], whole.facts)
    protocol = protocol_for(estimator, whole.facts, noise)
    book = paying.book(whole.name) or Ledger.nowhere()
    # Everybody is at one party, so the whole run costs each person what their party promises.
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
