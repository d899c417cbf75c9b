"""`discreet keeper`: keep the mask keys of a federation, and reveal only sums of masks."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from discreet.cli.output.printing import remark


def serve(
    folder: Annotated[Path, typer.Argument(help="The keeper's folder that `federation init` wrote.")],
) -> None:
    """Serve the mask keys of one run over mutual TLS, until stopped."""
    from discreet.federated.identity.agreement import KEEPER, Agreement
    from discreet.federated.journal import Journal
    from discreet.federated.keeper import MOST_BYTES, Keeper
    from discreet.federated.serving.tls import TlsServer, keeper_service

    agreement = Agreement.read(folder)
    keeper = Keeper(
        roster=agreement.parties,
        least=agreement.noise.least_parties,
        run=agreement.run,
        journal=Journal(folder / "keeper.state"),
    )
    members, service = agreement.members(), keeper_service(keeper)
    server = TlsServer(agreement.address(KEEPER), folder, members, service, most=MOST_BYTES)
    remark(f"The keeper of {agreement.run!r} answers at {server.address[0]}:{server.address[1]}.")
    server.run()
