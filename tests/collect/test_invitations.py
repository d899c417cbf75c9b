"""Blind signatures as RFC 9474 has them, and tokens that name a sender but not an invitation."""

import json
import math
from collections import Counter
from dataclasses import replace
from pathlib import Path
from runpy import run_path

import pytest
from cryptography.hazmat.primitives.asymmetric import ed25519, rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from discreet.collect import blind_signatures
from discreet.collect.blind_signatures import (
    EXPONENT,
    BlindPublicKey,
    BlindSigningKey,
    blind,
    finalize,
    prepare,
)
from discreet.collect.campaign import Campaign
from discreet.collect.errors import SharedFactor
from discreet.collect.invitations import TokenRequest, check_token, code_name, new_code, read_request
from discreet.collect.opening import campaign_from_bytes
from discreet.collect.wire import ReportRefusal, ReportRefused
from discreet.core.checks import DataError, DiscreetError
from discreet.data.vocabulary import Vocabulary
from discreet.privacy.mechanisms.bounded import BoundedLaplace
from discreet.testing import refuses
from hostile_keys import hostile_keys, smooth_modulus

RFC = run_path(str(Path(__file__).with_name("rfc9474.py")))


@pytest.fixture(scope="module")
def signer():
    return BlindSigningKey.new()


def films(signer, name="films"):
    return Campaign(
        name=name,
        mechanism=BoundedLaplace(epsilon=1.0, low=1, high=5, points=33),
        catalog=Vocabulary.of(["Alien", "Brazil"]),
        max_reports=2,
        step=1.0,
        invitations=signer.public,
    )


def rfc_key():
    p, q = int(RFC["P"], 16), int(RFC["Q"], 16)
    d = pow(EXPONENT, -1, (p - 1) * (q - 1))
    public = rsa.RSAPublicNumbers(EXPONENT, p * q)
    numbers = rsa.RSAPrivateNumbers(p, q, d, d % (p - 1), d % (q - 1), pow(q, -1, p), public)
    return BlindSigningKey(numbers.private_key())


def test_the_test_vector_of_the_rfc():
    key = rfc_key()
    prepared = bytes.fromhex(RFC["PREFIX"] + RFC["MESSAGE"])
    request = blind(key.public, prepared, salt=bytes.fromhex(RFC["SALT"]), inverse=int(RFC["INVERSE"], 16))
    assert request.blinded.hex() == RFC["BLINDED"]
    answer = key.sign(request.blinded)
    assert answer.hex() == RFC["BLIND_SIGNATURE"]
    signature = finalize(key.public, request, answer)
    assert signature.hex() == RFC["SIGNATURE"]
    assert key.public.is_signed(prepared, signature)
    # The twins: another message, a signature with one changed bit, an answer that was not opened.
    assert not key.public.is_signed(prepared + b"x", signature)
    assert not key.public.is_signed(prepared, signature[:-1] + bytes([signature[-1] ^ 1]))
    assert not key.public.is_signed(prepared, answer)


def token_for(campaign, signer, sender, code):
    request = TokenRequest.new(campaign, sender, code)
    name, blinded = read_request(request.body(), signer.public)
    assert name == code_name(code)
    return request.token(campaign, json.dumps({"signature": signer.sign(blinded).hex()}).encode())


def test_a_token_is_for_one_sender_of_one_campaign(signer):
    campaign, sender = films(signer), bytes(range(16))
    token = token_for(campaign, signer, sender, new_code())
    check_token(campaign, sender, token)
    for other, name in ((films(signer, "books"), sender), (campaign, bytes(16))):
        with pytest.raises(ReportRefused) as caught:
            check_token(other, name, token)
        assert caught.value.reason is ReportRefusal.NOT_INVITED
    for wrong in ("", "é", token[:-8], "A" * len(token), token.swapcase()):
        with pytest.raises(ReportRefused) as caught:
            check_token(campaign, sender, wrong)
        assert caught.value.reason is ReportRefusal.NOT_INVITED


BITS = range(64, 128)


def uneven(requests):
    """Return how many of 64 bits in blinded numbers of one message are surely no fair coins."""
    counts = Counter(bit for one in requests for bit in BITS if one[bit // 8] >> (7 - bit % 8) & 1)
    # A fair coin falls heads in 30 to 98 of 128 throws but for two in a billion times.
    return sum(not 30 <= counts[bit] <= 98 for bit in BITS)


def test_a_request_shows_nothing_of_the_sender(signer):
    message = b"discreet invitation"
    requests = [blind(signer.public, prepare(message)).blinded for _ in range(128)]
    assert len(set(requests)) == 128 and uneven(requests) == 0
    # The twin: without blinding all requests of one prepared message are the same.
    prepared = prepare(message)
    plain = [blind(signer.public, prepared, salt=bytes(48), inverse=1).blinded for _ in range(128)]
    assert uneven(plain) == 64


def test_a_signer_with_another_key_is_noticed(signer):
    campaign = films(signer)
    request = TokenRequest.new(campaign, bytes(16), new_code())
    other = rfc_key()
    for answer in (b"{}", b"\xff", b'{"signature": "00"}', b"[" * 5000):
        with pytest.raises(DataError):
            request.token(campaign, answer)
    assert other.public != signer.public
    tagged = signer.sign(blind(signer.public, prepare(b"another")).blinded)
    with refuses("unsigned-answer"):
        request.token(campaign, json.dumps({"signature": tagged.hex()}).encode())


def test_requests_are_kept_as_they_are(signer):
    campaign = films(signer)
    request = TokenRequest.new(campaign, bytes(16), new_code())
    assert TokenRequest.from_json(json.loads(json.dumps(request.to_json()))) == request
    for wrong in ({}, None, {**request.to_json(), "inverse": "x"}):
        with refuses("not-a-token"):
            TokenRequest.from_json(wrong)


@pytest.mark.parametrize(
    "raw",
    [b"", b"[]", b"\xff", b"[" * 9000, b'{"code": 7, "blinded": ""}', b'{"code": "a", "blinded": "zz"}'],
)
def test_a_strangers_request_is_refused_in_one_sentence(raw, signer):
    with pytest.raises(DiscreetError):
        read_request(raw, signer.public)


def test_signing_takes_numbers_below_the_modulus_only(signer):
    for raw in (b"", bytes(255), bytes(257), b"\xff" * 256):
        with refuses("bad-token-request"):
            signer.sign(raw)


def test_keys_are_written_and_read(signer):
    assert BlindSigningKey.from_pem(signer.to_pem()).public == signer.public
    for key in (signer.public, rfc_key().public):  # of 2,048 bits, and of as many as there may be
        assert BlindPublicKey.from_json(key.to_json()) == key
    other = ed25519.Ed25519PrivateKey.generate()
    pem = other.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    for raw in (b"", b"-----BEGIN PRIVATE KEY-----", pem):
        with refuses("not-an-invitation-key"):
            BlindSigningKey.from_pem(raw)
    for record in (None, {}, {"modulus": 7}, {"modulus": "-1"}, {"modulus": "f" * 5000}, {"modulus": "ff"}):
        with refuses("bad-invitation-key"):
            BlindPublicKey.from_json(record)


@pytest.mark.few(6)
@pytest.mark.parametrize("kind", hostile_keys())
def test_a_key_that_could_mark_requests_is_not_read(kind, signer):
    with refuses("bad-invitation-key"):
        BlindPublicKey.from_json(hostile_keys()[kind])
    record = {**films(signer).to_json(), "invitations": hostile_keys()[kind]}
    with refuses("bad-invitation-key"):
        Campaign.from_json(record)


def test_a_key_with_another_exponent_signs_nothing():
    with refuses("bad-invitation-key", rule="exponent"):
        BlindSigningKey(rsa.generate_private_key(3, 2048))


def test_nothing_is_asked_that_shares_a_factor_with_the_key(monkeypatch):
    modulus = smooth_modulus()
    with monkeypatch.context() as patched:
        patched.setattr(blind_signatures, "_small_primes", lambda: 1)
        key = BlindPublicKey(modulus)
    refused = 0
    for _ in range(100):
        try:
            request = blind(key, prepare(b"discreet invitation"))
        except SharedFactor:
            refused += 1
        else:
            assert math.gcd(int.from_bytes(request.blinded), modulus) == 1
    # About one message in seven is coprime to so many small primes.
    assert refused > 50


def test_a_campaign_names_its_key_in_its_digest(signer):
    with_key = films(signer)
    without = Campaign(
        **{name: getattr(with_key, name) for name in ("name", "mechanism", "catalog", "max_reports", "step")}
    )
    assert with_key.digest != without.digest and "invitations" not in without.to_json()
    assert campaign_from_bytes(with_key.to_bytes()).invitations == signer.public
    with refuses("not-invited"):
        TokenRequest.new(without, bytes(16), new_code())


def test_a_campaign_that_could_not_name_its_key_is_refused(signer):
    campaign = films(signer)
    with refuses("too-old-to-invite"):
        replace(campaign, version=1)
    old = replace(campaign, version=1, invitations=None).to_json()
    with refuses("too-old-to-invite"):
        Campaign.from_json({**old, "invitations": signer.public.to_json()})
