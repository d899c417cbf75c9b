"""Accept only invited devices, without learning which invitation a report came from.

The operator gives every user a code. A device exchanges its code once for a blind signature of its own
random number (the sender). Reports come with that signature. So one code admits one sender, a token cannot be
used for a second sender, and nothing in a report or in the store leads back to the code.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
import re
import secrets
from typing import Any, NamedTuple

from discreet.collect.blind_signatures import (
    PREFIX_BYTES,
    BlindPublicKey,
    BlindRequest,
    blind,
    finalize,
    prepare,
)
from discreet.collect.errors import BadInvitation, BadTokenRequest, NotAToken, NotInvited, UnsignedAnswer
from discreet.collect.opening import AnyCampaign
from discreet.collect.wire import SENDER_BYTES, ReportRefusal, ReportRefused
from discreet.core import require

#: The header that carries a token with a report.
HEADER = "x-discreet-token"
#: The most bytes of a request for a token.
MOST_REQUEST_BYTES = 4096
_PURPOSE = b"discreet invitation\x00"
_CODE_BYTES = 15
_CODE = re.compile(r"[a-z2-7]{24}")


def new_code() -> str:
    """Return a fresh invitation: 120 random bits as 24 letters and digits."""
    return base64.b32encode(secrets.token_bytes(_CODE_BYTES)).decode().lower()


def code_name(code: str) -> bytes:
    """Return what a store keeps of a code: a reader of the store can't use it."""
    if not isinstance(code, str) or not _CODE.fullmatch(code):
        raise BadInvitation()
    return hashlib.sha256(_PURPOSE + code.encode()).digest()


def key_of(campaign: AnyCampaign) -> BlindPublicKey:
    """Return the key of a campaign that invites."""
    if campaign.invitations is None:
        raise NotInvited()
    return campaign.invitations


class TokenRequest(NamedTuple):
    """A code, the sender it is for, and the blinded request; keep it until the token has come.

    A code is good for one request. A device that draws another request after losing its answer is rejected.
    """

    code: str
    sender: bytes
    request: BlindRequest

    @classmethod
    def new(cls, campaign: AnyCampaign, sender: bytes, code: str) -> TokenRequest:
        """Draw the request by which a sender asks for its token."""
        code_name(code)
        return cls(code, sender, blind(key_of(campaign), prepare(_message(campaign, sender))))

    def body(self) -> bytes:
        """Return what is sent to the service."""
        return json.dumps({"code": self.code, "blinded": self.request.blinded.hex()}).encode()

    def token(self, campaign: AnyCampaign, answer: bytes) -> str:
        """Return the token in the service's answer; raise if it isn't under the campaign's key."""
        try:
            signature = bytes.fromhex(json.loads(answer)["signature"])
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            raise UnsignedAnswer() from error
        signed = finalize(key_of(campaign), self.request, signature)
        return base64.urlsafe_b64encode(self.request.prepared[:PREFIX_BYTES] + signed).decode()

    def to_json(self) -> dict[str, Any]:
        """Return what to keep."""
        inner = self.request
        facts = {"code": self.code, "sender": self.sender.hex(), "prepared": inner.prepared.hex()}
        return {**facts, "blinded": inner.blinded.hex(), "inverse": f"{inner.inverse:x}"}

    @classmethod
    def from_json(cls, record: Any) -> TokenRequest:
        """Read what `to_json` wrote."""
        try:
            prepared, blinded = bytes.fromhex(record["prepared"]), bytes.fromhex(record["blinded"])
            inner = BlindRequest(prepared, blinded, int(record["inverse"], 16))
            return cls(str(record["code"]), bytes.fromhex(record["sender"]), inner)
        except (KeyError, TypeError, ValueError) as error:
            raise NotAToken() from error


def read_request(raw: bytes, key: BlindPublicKey) -> tuple[bytes, bytes]:
    """Return the name of the code and the blinded number in a stranger's request."""
    try:
        record = json.loads(raw)
        code, blinded = record["code"], bytes.fromhex(record["blinded"])
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise BadTokenRequest() from error
    if len(blinded) != key.size:
        raise BadTokenRequest()
    return code_name(code), blinded


def check_token(campaign: AnyCampaign, sender: bytes, token: str) -> None:
    """Raise `ReportRefused` unless the token was made for this sender in this campaign."""
    key = key_of(campaign)
    try:
        raw = base64.urlsafe_b64decode(token.encode("ascii"))
    except (ValueError, binascii.Error):
        raw = b""
    is_whole = len(raw) == PREFIX_BYTES + key.size
    prepared = raw[:PREFIX_BYTES] + _message(campaign, sender)
    if not is_whole or not key.is_signed(prepared, raw[PREFIX_BYTES:]):
        raise ReportRefused(ReportRefusal.NOT_INVITED)


def _message(campaign: AnyCampaign, sender: bytes) -> bytes:
    require(len(sender) == SENDER_BYTES, "sender", len(sender), must=f"have {SENDER_BYTES} bytes")
    return _PURPOSE + campaign.digest + sender
