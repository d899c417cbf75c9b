"""`discreet sign` and `discreet verify`: who stands behind a model file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from discreet.cli.options.declared import ModelFile
from discreet.cli.output.printing import show
from discreet.core.checks import FileError


def sign(
    model: ModelFile,
    key: Annotated[Path, typer.Option("--key", help="A private Ed25519 key (PEM).")],
    new_key: Annotated[bool, typer.Option("--new-key", help="Make the key first, at a new path.")] = False,
) -> None:
    """Sign a model file; the signature lies beside it, in a file that ends in .sig."""
    from discreet.models import signatures
    from discreet.models.storage import read_label

    read_label(model)
    if new_key:
        signatures.new_key(key)
    public = signatures.sign_file(model, key)
    show(f"Signed {model} in {signatures.signature_path(model)}. The public key is {public}.")


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
