"""Sign without seeing what is signed: blind RSA signatures, RSABSSA-SHA384-PSS-Randomized of RFC 9474.

The signer sees a number that is uniform whatever the message is, so a signature and the request it came from
cannot be matched. Section numbers below are those of RFC 9474.
"""

from __future__ import annotations

import hashlib
import math
import secrets
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any, NamedTuple, Self, final

from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import padding, rsa

from discreet.collect import errors

EXPONENT = 65537
PREFIX_BYTES = 32
_HASH_BYTES = _SALT_BYTES = 48
_BITS, _LEAST_BITS, _MOST_BITS = 2048, 2048, 4096
# No honest key has a prime factor below; a key of such factors would mark requests and tokens alike.
_LEAST_FACTOR = 1 << 16


@cache
def _small_primes() -> int:
    """Return the product of all primes below the least factor."""
    prime = bytearray([0, 0]) + bytearray([1]) * (_LEAST_FACTOR - 2)
    for number in range(2, math.isqrt(_LEAST_FACTOR) + 1):
        if prime[number]:
            multiples = range(number * number, _LEAST_FACTOR, number)
            prime[number * number :: number] = bytes(len(multiples))
    return math.prod(number for number, is_prime in enumerate(prime) if is_prime)


@final
@dataclass(frozen=True)
class BlindPublicKey:
    """Check signatures, and ask for them.

    Parameters:
        modulus: The product of the signer's two primes; the exponent is 65537.
    """

    modulus: int

    def __post_init__(self) -> None:
        bits = self.modulus.bit_length()
        if not (_LEAST_BITS <= bits <= _MOST_BITS and bits % 8 == 0 and self.modulus % 2):
            raise errors.BadInvitationKey(rule="bits")
        if math.gcd(_small_primes() % self.modulus, self.modulus) != 1:
            raise errors.BadInvitationKey(rule="factor")

    @property
    def size(self) -> int:
        """Return the length of a signature in bytes."""
        return self.modulus.bit_length() // 8

    def to_json(self) -> dict[str, str]:
        """Return what a campaign states about its key."""
        return {"modulus": f"{self.modulus:x}"}

    @classmethod
    def from_json(cls, record: Any) -> Self:
        """Read what `to_json` wrote."""
        # An exponent of its own would not be the one that tokens are checked with.
        text = record["modulus"] if isinstance(record, dict) and record.keys() == {"modulus"} else None
        hexadecimal = isinstance(text, str) and len(text) <= _MOST_BITS // 4
        if not hexadecimal or not set(text) <= set("0123456789abcdef"):  # type: ignore[arg-type]
            raise errors.BadInvitationKey(rule="digits")
        return cls(int(f"0{text}", 16))

    @cached_property
    def _verifier(self) -> rsa.RSAPublicKey:
        return rsa.RSAPublicNumbers(EXPONENT, self.modulus).public_key()

    def is_signed(self, prepared: bytes, signature: bytes) -> bool:
        """Return whether a signature is that of a prepared message (section 4.5)."""
        scheme = padding.PSS(padding.MGF1(hashes.SHA384()), _SALT_BYTES)
        try:
            self._verifier.verify(signature, prepared, scheme, hashes.SHA384())
        except InvalidSignature:
            return False
        return True


class BlindRequest(NamedTuple):
    """What is sent to the signer, and what stays here until its answer is opened."""

    prepared: bytes
    blinded: bytes
    inverse: int


def prepare(message: bytes) -> bytes:
    """Return a message behind random bytes (section 4.1).

    With them the request is blind even for a signer whose key was not made as it should be.
    """
    return secrets.token_bytes(PREFIX_BYTES) + message


def blind(
    key: BlindPublicKey, prepared: bytes, *, salt: bytes | None = None, inverse: int | None = None
) -> BlindRequest:
    """Return the request for a prepared message (section 4.2); salt and inverse are given in tests only."""
    encoded = int.from_bytes(
        _encoded(prepared, key.size, secrets.token_bytes(_SALT_BYTES) if salt is None else salt)
    )
    modulus = key.modulus
    if math.gcd(encoded, modulus) != 1:
        # The blinded number and the signature would contain the common factor.
        raise errors.SharedFactor()
    while inverse is None:
        drawn = 1 + secrets.randbelow(modulus - 1)
        inverse = drawn if math.gcd(drawn, modulus) == 1 else None
    factor = pow(pow(inverse, -1, modulus), EXPONENT, modulus)
    return BlindRequest(prepared, (encoded * factor % modulus).to_bytes(key.size), inverse)


def finalize(key: BlindPublicKey, request: BlindRequest, answer: bytes) -> bytes:
    """Return the signature in a signer's answer (section 4.4); a wrong one is rejected."""
    if len(answer) == key.size:
        opened = int.from_bytes(answer) * request.inverse % key.modulus
        signature = opened.to_bytes(key.size)
        if key.is_signed(request.prepared, signature):
            return signature
    raise errors.UnsignedAnswer()


def _encoded(message: bytes, size: int, salt: bytes) -> bytes:
    """Return the encoding EMSA-PSS of RFC 8017 for a key of `size` whole bytes, with SHA-384."""
    inner = hashlib.sha384(bytes(8) + hashlib.sha384(message).digest() + salt).digest()
    length = size - _HASH_BYTES - 1
    block = bytes(length - len(salt) - 1) + b"\x01" + salt
    masked = bytearray(one ^ other for one, other in zip(block, _mask(inner, length), strict=True))
    masked[0] &= 0x7F
    return bytes(masked) + inner + b"\xbc"


def _mask(seed: bytes, length: int) -> bytes:
    """Return the mask MGF1 of RFC 8017."""
    blocks = range(-(-length // _HASH_BYTES))
    return b"".join(hashlib.sha384(seed + number.to_bytes(4)).digest() for number in blocks)[:length]


@final
class BlindSigningKey:
    """Sign what cannot be seen."""

    def __init__(self, key: rsa.RSAPrivateKey) -> None:
        self._key, self._numbers = key, key.private_numbers()
        if self._numbers.public_numbers.e != EXPONENT:
            raise errors.BadInvitationKey(rule="exponent")
        self.public = BlindPublicKey(self._numbers.public_numbers.n)

    @classmethod
    def new(cls) -> Self:
        """Make a key."""
        return cls(rsa.generate_private_key(EXPONENT, _BITS))

    @classmethod
    def from_pem(cls, raw: bytes) -> Self:
        """Read what `to_pem` wrote."""
        try:
            key = serialization.load_pem_private_key(raw, None)
        except (ValueError, TypeError, UnsupportedAlgorithm) as error:
            raise errors.NotAnInvitationKey() from error
        if not isinstance(key, rsa.RSAPrivateKey):
            raise errors.NotAnInvitationKey()
        return cls(key)

    def to_pem(self) -> bytes:
        """Return the key as text; its owner can invite any device."""
        return self._key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )

    def sign(self, blinded: bytes) -> bytes:
        """Return the answer to a request (section 4.3).

        The number is multiplied by a random one before it is raised to the secret power, and divided
        afterwards: the time that takes has nothing to do with what a stranger sent.
        """
        modulus, number = self.public.modulus, int.from_bytes(blinded)
        if len(blinded) != self.public.size or number >= modulus:
            raise errors.BadTokenRequest()
        drawn = 2 + secrets.randbelow(modulus - 2)
        hidden = self._powered(number * pow(drawn, EXPONENT, modulus) % modulus)
        signed = hidden * pow(drawn, -1, modulus) % modulus
        if pow(signed, EXPONENT, modulus) != number:
            # A fault of the machine; such an answer would give the key away.
            raise errors.WrongSignature()
        return signed.to_bytes(self.public.size)

    def _powered(self, number: int) -> int:
        """Return the secret power of a number, by the remainders of both primes."""
        own = self._numbers
        first, second = pow(number, own.dmp1, own.p), pow(number, own.dmq1, own.q)
        return second + own.q * ((first - second) * own.iqmp % own.p)
