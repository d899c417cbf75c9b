"""Identify members by their keys: signatures, and certificates for a trial.

One key (NIST P-384) is a member's identity everywhere: it signs messages, authenticates TLS and, for a party,
identifies its Flower node.

In production each member makes its own key and has it certified by an authority that the members trust; the
files have the same names.
"""

from __future__ import annotations

import datetime
import ipaddress
import os
import stat
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import final

from cryptography import x509
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509 import load_der_x509_certificate
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from discreet.core import CannotWrite
from discreet.federated.errors import BadPrivateKey, BadPublicKey, FileTaken, KeyOpen
from discreet.federated.wire import Refusal, Refused

PrivateKey = ec.EllipticCurvePrivateKey
PublicKey = ec.EllipticCurvePublicKey
# Domain separation: a signature made for another purpose is never valid here.
_PURPOSE = b"discreet federated message, version 1\0"
_SIGN = ec.ECDSA(hashes.SHA384())
_LENGTH_BYTES = 2


def new_key() -> PrivateKey:
    """Return a fresh key."""
    return ec.generate_private_key(ec.SECP384R1())


def key_text(key: PublicKey) -> str:
    """Return a public key as one line of text, in the OpenSSH format."""
    encoding, form = serialization.Encoding.OpenSSH, serialization.PublicFormat.OpenSSH
    return key.public_bytes(encoding, form).decode("ascii")


def read_key_text(text: str) -> PublicKey:
    """Return the public key in a line of text."""
    try:
        key = serialization.load_ssh_public_key(text.encode())
    except (ValueError, UnsupportedAlgorithm) as error:
        raise BadPublicKey from error
    if not isinstance(key, ec.EllipticCurvePublicKey):
        raise BadPublicKey
    return key


def require_private(path: Path) -> None:
    """Raise `FileError` if other users of this machine may read or write a secret file that exists."""
    mode = stat.S_IMODE(path.stat().st_mode) if path.exists() else 0
    if mode & 0o077:
        raise KeyOpen(path=path, mode=f"{mode:04o}")


def read_private_key(path: Path) -> PrivateKey:
    """Return the private key in a PEM file that only its owner may read."""
    require_private(path)
    try:
        key = serialization.load_pem_private_key(path.read_bytes(), password=None)
    except (OSError, ValueError, TypeError, UnsupportedAlgorithm) as error:
        raise BadPrivateKey(path=path) from error
    if not isinstance(key, ec.EllipticCurvePrivateKey):
        raise BadPrivateKey(path=path)
    return key


def key_of_certificate(certificate: bytes) -> str:
    """Return the key in a certificate (DER) as text; empty if it is of another kind."""
    key = load_der_x509_certificate(certificate).public_key()
    return key_text(key) if isinstance(key, ec.EllipticCurvePublicKey) else ""


def sealed(raw: bytes, key: PrivateKey) -> bytes:
    """Return a message with its signature in front."""
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


AUTHORITY, KEY, CERTIFICATE = "authority.crt", "own.key", "own.crt"
#: The same key in the format that Flower reads.
NODE_KEY = "node.key"
_LIFE = datetime.timedelta(days=365)
_LOCAL = ("localhost", "127.0.0.1", "::1")


@final
@dataclass(frozen=True, slots=True)
class Authority:
    """A key that certifies members, and its own certificate."""

    key: PrivateKey
    certificate: x509.Certificate

    @classmethod
    def new(cls, name: str) -> Authority:
        """Return a fresh authority that certifies members, but no further authorities."""
        key = new_key()
        builder = _builder(f"{name} authority", f"{name} authority", key)
        builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        return cls(key, builder.sign(key, hashes.SHA384()))

    def certify(self, name: str, key: PrivateKey, hosts: Sequence[str]) -> x509.Certificate:
        """Return a certificate for a member's key, reachable at these hosts."""
        issuer = self.certificate.subject.get_attributes_for_oid(NameOID.COMMON_NAME)[0].value
        both = [ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH]
        builder = (
            _builder(name, str(issuer), key)
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(x509.ExtendedKeyUsage(both), critical=False)
            .add_extension(x509.SubjectAlternativeName([_alternative(h) for h in hosts]), critical=False)
            .add_extension(
                x509.AuthorityKeyIdentifier.from_issuer_public_key(self.key.public_key()), critical=False
            )
        )
        return builder.sign(self.key, hashes.SHA384())

    def write_member(self, folder: Path, name: str, key: PrivateKey, host: str) -> None:
        """Write a member's key and certificates, which only the owner can read."""
        hosts = dict.fromkeys((*_LOCAL, host))
        write_secret(folder / KEY, _private(key, serialization.PrivateFormat.PKCS8))
        write_secret(folder / NODE_KEY, _private(key, serialization.PrivateFormat.OpenSSH))
        write_secret(folder / CERTIFICATE, _pem(self.certify(name, key, list(hosts))))
        write_secret(folder / AUTHORITY, _pem(self.certificate))

    def write(self, folder: Path) -> None:
        """Write the authority itself; anyone with this folder can certify members."""
        write_secret(folder / KEY, _private(self.key, serialization.PrivateFormat.PKCS8))
        write_secret(folder / AUTHORITY, _pem(self.certificate))


def write_secret(path: Path, content: bytes) -> None:
    """Write a file that only its owner may read; reject one that exists."""
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
    except FileExistsError as error:
        raise FileTaken(path=path) from error
    except OSError as error:
        raise CannotWrite(path=path, why=error.strerror) from error


def _builder(name: str, issuer: str, key: PrivateKey) -> x509.CertificateBuilder:
    now = datetime.datetime.now(datetime.UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)]))
        .issuer_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, issuer)]))
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        # Clocks of members may differ a little.
        .not_valid_before(now - datetime.timedelta(hours=1))
        .not_valid_after(now + _LIFE)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
    )


def _alternative(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def _pem(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(serialization.Encoding.PEM)


def _private(key: PrivateKey, form: serialization.PrivateFormat) -> bytes:
    return key.private_bytes(serialization.Encoding.PEM, form, serialization.NoEncryption())
