"""Exchange invitations for tokens over HTTP, and admit reports that come with one."""

from __future__ import annotations

import hashlib
from collections.abc import Callable

from fastapi import FastAPI, Request
from fastapi.responses import JSONResponse

from discreet.collect.blind_signatures import BlindSigningKey
from discreet.collect.invitations import HEADER, MOST_REQUEST_BYTES, check_token, read_request
from discreet.service.errors import DifferentInvitationKey, KeyOfInvitationsNeeded
from discreet.service.limits import RefusedError, body_of
from discreet.service.running import log
from discreet.service.stores.store import ReportStore
from discreet.service.workers import Workers


def check_signer(store: ReportStore, signer: BlindSigningKey | None) -> None:
    """Raise for a key of invitations that is not the campaign's."""
    expected = store.campaign.invitations
    if signer is None and expected is not None:
        raise KeyOfInvitationsNeeded()
    if signer is not None and signer.public != expected:
        raise DifferentInvitationKey()


def admit_sender(store: ReportStore, request: Request, sender: bytes) -> None:
    """Raise `ReportRefused` if the campaign invites, and this sender shows no token of its own."""
    if store.campaign.invitations is not None:
        check_token(store.campaign, sender, request.headers.get(HEADER, ""))


def add_invitations(
    app: FastAPI,
    store: ReportStore,
    signer: BlindSigningKey,
    limit: Callable[[Request], None],
    note_order: Callable[[], None],
) -> None:
    """How devices exchange an invitation for a token, once."""
    workers = Workers(threads=4, waiting=64, seconds=30.0)

    @app.post(
        "/invitations",
        summary="Exchange an invitation for a token",
        openapi_extra={"requestBody": {"content": {"application/json": {"schema": {"type": "object"}}}}},
    )
    async def invitations(request: Request) -> JSONResponse:
        """Sign the blinded number of a device; the same request may be sent again, another one may not."""
        limit(request)
        raw = await body_of(request, MOST_REQUEST_BYTES)
        note_order()
        return JSONResponse({"signature": await workers.run(lambda: _signed(raw))})

    def _signed(raw: bytes) -> str:
        name, blinded = read_request(raw, signer.public)
        try:
            may = store.redeem(name, hashlib.sha256(blinded).digest())
        except Exception as error:
            log("store failed", kind=type(error).__name__)
            raise RefusedError(503, "Nothing could be stored now; send it again later.") from error
        if not may:
            raise RefusedError(403, "This invitation is unknown, used already, or its campaign is closed.")
        return signer.sign(blinded).hex()
