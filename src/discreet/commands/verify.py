"""`discreet verify`: who signed a model file, and whether it is still what was signed."""

from __future__ import annotations

from typing import Annotated

import typer

from discreet.checks import FileError
from discreet.commands.options.declared import ModelFile
from discreet.commands.output.printing import show


def verify(
    model: ModelFile,
    key: Annotated[
        str, typer.Option("--key", help="The public key of whom you expect, as `sign` prints it.")
    ],
) -> None:
    """Check that a model file was signed with this key and not changed since."""
    from discreet.models.signatures import signer
    from discreet.models.storage import read_label

    read_label(model)
    found = signer(model)
    if found is None:
        raise FileError(f"{model} is not signed.")
    if found != key.strip().lower():
        raise FileError(f"{model} was signed with another key: {found}.")
    show(f"{model} was signed with this key and is as it was.")
