"""Sign messages with a member's own key, and know members by their keys.

One key (NIST P-384) is a member's identity everywhere: it signs messages, opens TLS and, for a party, is the
key that Flower knows its node by.
"""

from __future__ import annotations

from pathlib import Path

from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509 import load_der_x509_certificate

from discreet.checks import FileError, ParameterError
from discreet.federated.wire import Refusal, Refused

PrivateKey = ec.EllipticCurvePrivateKey
PublicKey = ec.EllipticCurvePublicKey
# What is signed begins with this, so that no signature for another purpose can be taken for one of ours.
_PURPOSE = b"discreet federated message, version 1\0"
_SIGN = ec.ECDSA(hashes.SHA384())
_LENGTH_BYTES = 2


def new_key() -> PrivateKey:
    """Return a fresh key."""
    return ec.generate_private_key(ec.SECP384R1())


def key_text(key: PublicKey) -> str:
    """Return a public key as one line of text, as SSH writes it."""
    encoding, form = serialization.Encoding.OpenSSH, serialization.PublicFormat.OpenSSH
    return key.public_bytes(encoding, form).decode("ascii")


def read_key_text(text: str) -> PublicKey:
    """Return the public key behind a line of text."""
    try:
        key = serialization.load_ssh_public_key(text.encode())
    except (ValueError, UnsupportedAlgorithm) as error:
        raise ParameterError("A member's public key cannot be read.") from error
    if not isinstance(key, ec.EllipticCurvePublicKey):
        raise ParameterError("A member's public key must be one of a NIST elliptic curve.")
    return key


def read_private_key(path: Path) -> PrivateKey:
    """Return the private key in a PEM file."""
    try:
        key = serialization.load_pem_private_key(path.read_bytes(), password=None)
    except (OSError, ValueError, TypeError, UnsupportedAlgorithm) as error:
        raise FileError(f"{path} is not a private key that can be read.") from error
    if not isinstance(key, ec.EllipticCurvePrivateKey):
        raise FileError(f"{path} must hold a key of a NIST elliptic curve.")
    return key


def key_of_certificate(certificate: bytes) -> str:
    """Return the key in a certificate (DER) as text; empty if it is of another kind."""
    key = load_der_x509_certificate(certificate).public_key()
    return key_text(key) if isinstance(key, ec.EllipticCurvePublicKey) else ""


def sealed(raw: bytes, key: PrivateKey) -> bytes:
    """Return a message behind its signature."""
    signature = key.sign(_PURPOSE + raw, _SIGN)
    return len(signature).to_bytes(_LENGTH_BYTES, "little") + signature + raw


def opened(raw: bytes, key: PublicKey) -> bytes:
    """Return the message that `key` sealed, or raise `Refused`."""
    length = int.from_bytes(raw[:_LENGTH_BYTES], "little")
    signature, message = raw[_LENGTH_BYTES : _LENGTH_BYTES + length], raw[_LENGTH_BYTES + length :]
    try:
        key.verify(signature, _PURPOSE + message, _SIGN)
    except InvalidSignature:
        raise Refused(Refusal.WRONG_SIGNATURE) from None
    return message
