"""`discreet model dossier`: write the documents that a privacy officer signs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from discreet.cli.errors import OptionNeeds
from discreet.cli.options.declared import AsJson, Force
from discreet.cli.output.printing import emit, remark, show


def dossier(
    file: Annotated[Path, typer.Argument(help="A model file, or synthetic data.")],
    out: Annotated[Path, typer.Option("--out", help="The folder to write.")],
    ledger: Annotated[
        Path | None, typer.Option("--ledger", help="The ledger that recorded the release.")
    ] = None,
    name: Annotated[str | None, typer.Option("--name", help="The dataset's name in the ledger.")] = None,
    facts: Annotated[
        Path | None, typer.Option("--facts", help="A TOML file with facts that only a human knows.")
    ] = None,
    force: Force = False,
    as_json: AsJson = False,
) -> None:
    """Write a registry entry, answers for reviewers and regulators, and a page to print and sign."""
    from discreet import __version__
    from discreet.cli.label import read_any_label
    from discreet.dossier.evidence import Evidence, LedgerRecord
    from discreet.dossier.facts import HumanFacts
    from discreet.dossier.writing import refuse_folder, write_dossier
    from discreet.models.signatures import signed_sentence, signer
    from discreet.privacy.ledger.book import Ledger

    if name is not None and ledger is None:
        raise OptionNeeds(options=("--name",), needs="--ledger", why="it names a dataset of the ledger")
    refuse_folder(out, force=force)
    key = signer(file)
    label = read_any_label(file, signed=key is not None)
    stated = HumanFacts() if facts is None else HumanFacts.read(facts)
    record = None
    if ledger is not None:
        with Ledger.open(ledger, read_only=True) as book:
            record = LedgerRecord.find(book, label, name)
    found = Evidence.of(
        label, facts=stated, ledger=record, signed=signed_sentence(key), file=file.name, version=__version__
    )
    files = write_dossier(found, out, force=force)
    if as_json:
        emit({"out": str(out), "files": files, "missing": list(stated.missing)})
        return
    if stated.missing:
        remark(
            f"discreet: missing human facts are marked: {', '.join(stated.missing)}. State them with --facts."
        )
    show(f"Written to {out}: {', '.join(files)}.")
