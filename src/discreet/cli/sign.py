"""`discreet model sign` and `discreet model verify`: sign model files and check signatures."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from discreet.cli.errors import NotSigned, OtherSigner
from discreet.cli.options.declared import ModelFile
from discreet.cli.output.printing import show


def sign(
    model: ModelFile,
    key: Annotated[Path, typer.Option("--key", help="The private Ed25519 key: a PEM file.")],
    new_key: Annotated[bool, typer.Option("--new-key", help="Create the key at this path first.")] = False,
) -> None:
    """Sign a model file. The signature is written next to it, to a file that ends in .sig."""
    from discreet.models import signatures
    from discreet.models.storage import read_label

    read_label(model)
    public = signatures.new_key(key, model) if new_key else signatures.sign_file(model, key)
    show(f"Signed {model} in {signatures.signature_path(model)}. The public key is {public}.")


def verify(
    model: ModelFile,
    key: Annotated[
        str,
        typer.Option(
            "--key", help="The expected signer: the public key as `sign` prints it, or a file with the key."
        ),
    ],
) -> None:
    """Check that a model file was signed with this key and has not changed since."""
    from discreet.models.signatures import public_key, signer
    from discreet.models.storage import read_label

    read_label(model)
    expected = public_key(key)
    found = signer(model)
    if found is None:
        raise NotSigned(path=model)
    if found != expected:
        raise OtherSigner(path=model, key=found)
    show(f"{model} was signed with this key and has not changed since.")
