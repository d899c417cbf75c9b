"""Sign a model file with an Ed25519 key, in a small file next to it, and verify such signatures.

A digest shows that a file is intact; a signature shows that the owner of a key signed it. Who owns the key
is for the reader to know: compare the printed public key with one obtained through another channel.
"""

from __future__ import annotations

import hashlib
import json
import re
from pathlib import Path

from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from discreet.core import FileExists, FileUnreadable, refuse_output, write_whole
from discreet.models.errors import BadKey, BadSignature

SUFFIX = ".sig"
_FORMAT = "discreet-signature"
_MOST_BYTES = 1 << 12
_PUBLIC = re.compile(r"[0-9a-f]{64}")
# Errors of parsing a file that isn't a signature.
_NO_RECORD = (ValueError, KeyError, TypeError, AttributeError, RecursionError)


def signature_path(file: Path) -> Path:
    """Return the path of a file's signature."""
    return file.with_name(file.name + SUFFIX)


def new_key(path: Path, signing: Path | None = None) -> str:
    """Write a new private key, readable by its owner only, and return the public key.

    With a file to sign, its signature is written first. So a killed process leaves no key, and a repeat makes
    a new key and replaces the signature.
    """
    key = Ed25519PrivateKey.generate()
    pem = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    if path.exists():
        raise FileExists(path=path, replaceable=False)
    inputs = [] if signing is None else [signing]
    refuse_output(path, force=True, kind="key", is_ours=lambda _: False, inputs=inputs)
    if signing is not None:
        _write_signature(signing, key, path)
    write_whole(path, pem, private=True)
    return _text(key.public_key())


def public_key(key: str) -> str:
    """Return a public key as text: it is given so, or as a file with it, or with the private key (PEM).

    Raises:
        FileError: It is neither.
    """
    text = key.strip().lower()
    if _PUBLIC.fullmatch(text):
        return text
    try:
        with Path(key).open("rb") as file:
            raw = file.read(_MOST_BYTES)
    except OSError as error:
        raise BadKey(path=key) from error
    written = raw.decode("ascii", errors="replace").strip().lower()
    if _PUBLIC.fullmatch(written):
        return written
    return _public_of_pem(raw, key)


def _public_of_pem(raw: bytes, name: str) -> str:
    try:
        if b"PRIVATE" in raw:
            private = serialization.load_pem_private_key(raw, password=None)
            found = private.public_key()
        else:
            found = serialization.load_pem_public_key(raw)
    except (ValueError, TypeError, UnsupportedAlgorithm) as error:
        raise BadKey(path=name) from error
    if not isinstance(found, Ed25519PublicKey):
        raise BadKey(path=name)
    return _text(found)


def sign_file(file: Path, key_path: Path) -> str:
    """Write the signature of a file next to it, and return the public key it was made with."""
    key = private_key(key_path)
    _write_signature(file, key, key_path)
    return _text(key.public_key())


def private_key(path: Path) -> Ed25519PrivateKey:
    """Return the private key in a file.

    Raises:
        FileError: The file has no Ed25519 key, or doesn't exist.
    """
    try:
        key = serialization.load_pem_private_key(path.read_bytes(), password=None)
    except (OSError, ValueError, TypeError, UnsupportedAlgorithm) as error:
        raise BadKey(path=path) from error
    if not isinstance(key, Ed25519PrivateKey):
        raise BadKey(path=path)
    return key


def _write_signature(file: Path, key: Ed25519PrivateKey, key_path: Path) -> None:
    record = {"format": _FORMAT, "key": _text(key.public_key()), "signature": key.sign(_digest(file)).hex()}
    beside = signature_path(file)
    refuse_output(beside, force=True, kind="signature", is_ours=_is_signature, inputs=[file, key_path])
    write_whole(beside, json.dumps(record).encode())


def signer(file: Path) -> str | None:
    """Return the public key that signed this content of a file, or None if there is none next to it.

    Raises:
        FileError: The signature is damaged or belongs to other content.
    """
    path = signature_path(file)
    if not path.is_file():
        return None
    try:
        with path.open("rb") as raw:
            record = json.loads(raw.read(_MOST_BYTES))
        key = Ed25519PublicKey.from_public_bytes(bytes.fromhex(record["key"]))
        key.verify(bytes.fromhex(record["signature"]), _digest(file))
    except (InvalidSignature, OSError, *_NO_RECORD) as error:
        raise BadSignature(path=path, file=file) from error
    return _text(key)


def _is_signature(path: Path) -> bool:
    """Return whether a file is a signature of ours, of whatever content."""
    try:
        with path.open("rb") as raw:
            return bool(json.loads(raw.read(_MOST_BYTES))["format"] == _FORMAT)
    except (OSError, *_NO_RECORD):
        return False


def signed_sentence(key: str | None) -> str:
    """Return a sentence about the key that `signer` found."""
    return "This file is not signed." if key is None else f"This file is signed with the key {key}."


def _digest(file: Path) -> bytes:
    """Return the signed bytes: the format's name and a digest of the whole file."""
    try:
        with file.open("rb") as raw:
            return _FORMAT.encode() + hashlib.file_digest(raw, "sha256").digest()
    except OSError as error:
        raise FileUnreadable(path=file, reason=str(error.strerror)) from error


def _text(key: Ed25519PublicKey) -> str:
    return key.public_bytes(serialization.Encoding.Raw, serialization.PublicFormat.Raw).hex()
