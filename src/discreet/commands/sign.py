"""`discreet sign`: stand behind a model file with an Ed25519 key."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from discreet.commands.options.declared import ModelFile
from discreet.commands.output.printing import show


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
