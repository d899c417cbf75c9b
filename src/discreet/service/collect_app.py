"""Collect over HTTP: show the campaign, invite devices, take reports, publish what is learned from them."""

from __future__ import annotations

import gzip
import hashlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from fastapi import FastAPI, Request, Response
from fastapi.responses import JSONResponse

from discreet.collect.blind_signatures import BlindSigningKey
from discreet.collect.campaign import Campaign
from discreet.collect.gradient_rounds import GradientCampaign
from discreet.collect.invitations import HEADER, MOST_REQUEST_BYTES, check_token, read_request
from discreet.collect.wire import MOST_BYTES, ReportRefusal, ReportRefused
from discreet.core.checks import FileError
from discreet.service.admission import BLOCK, Receipt, Submission, submission, unseal
from discreet.service.counting import ServiceCounters
from discreet.service.errors import DifferentInvitationKey, KeyOfInvitationsNeeded
from discreet.service.limits import Peers, RateLimit, RefusedError, body_of
from discreet.service.pages import WebFile, integrity_of, web_files
from discreet.service.publishing import ModelShelf, Published
from discreet.service.refitting import round_server
from discreet.service.running import log
from discreet.service.shared_app import add_metrics, new_app, problem
from discreet.service.stores import ReportStore
from discreet.service.workers import SharedLookup, Workers
from discreet.service.writer import MOST_WAITING, GroupWriter

_STATUS = {
    ReportRefusal.OVERSIZED: 413,
    ReportRefusal.WRONG_CAMPAIGN: 409,
    ReportRefusal.WRONG_VERSION: 409,
    ReportRefusal.NOT_INVITED: 403,
}
# How long a peer waits for the state of the store (less than probes wait), and for what a round asks.
_HEALTH_SECONDS, _ROUND_SECONDS = 3.0, 25.0
_BINARY, _JSON = "application/octet-stream", "application/json"
# A pair in JSON takes at most so many bytes: brackets, two numbers, commas.
_PAIR_BYTES, _HEAD_BYTES = 32, 1024


def collecting_app(
    store: ReportStore,
    *,
    publish: Path | None = None,
    per_minute: int = 600,
    proxies: Sequence[str] = (),
    batch_seconds: float = 0.5,
    metrics_token: str | None = None,
    signer: BlindSigningKey | None = None,
) -> FastAPI:
    """Return the application that collects for the campaign of a store.

    Parameters:
        store: Where reports are kept.
        publish: The model file to serve, read again whenever it is replaced.
        per_minute: How many messages one peer may send a minute; 0 for no limit.
        proxies: The proxies whose word is taken for who asks.
        batch_seconds: How long messages wait for others, to be written together.
        metrics_token: Bearer token required to read /metrics; without one it can't be read.
        signer: The key of invitations, for a campaign that invites.
    """
    check_signer(store, signer)
    writer, workers = GroupWriter(store, seconds=batch_seconds), Workers(waiting=MOST_WAITING)
    app = new_app(
        f"discreet: {store.campaign.name}",
        "Collects reports that devices made private before they sent them. The service never sees a rating.",
        workers.stop,
        writer.stop,
    )
    tally = ServiceCounters()
    rate, peers = RateLimit(per_minute), Peers(proxies)

    def limit(request: Request) -> None:
        rate.check(peers.of(request))

    def limit_message(request: Request) -> None:
        kind_of(request)
        limit(request)

    _add_reports(app, store, writer, workers, tally, limit_message)
    if signer is not None:
        add_invitations(app, store, signer, limit_message, writer.note_order)
    _add_facts(app, store, limit)
    add_metrics(app, tally.text, metrics_token)
    _add_model(app, store, ModelShelf(publish), limit)
    if isinstance(store.campaign, GradientCampaign):
        _add_rounds(app, store, limit)
    else:
        _add_pages(app)
    return app


def _add_reports(
    app: FastAPI,
    store: ReportStore,
    writer: GroupWriter,
    workers: Workers,
    tally: ServiceCounters,
    limit: Callable[[Request], None],
) -> None:
    most = most_bytes(store)
    body = {"schema": {"type": "string", "format": "binary"}}

    @app.post(
        "/reports",
        summary="Send reports",
        openapi_extra={"requestBody": {"content": {_BINARY: body, _JSON: {"schema": {"type": "object"}}}}},
    )
    async def reports(request: Request) -> JSONResponse:
        """Keep what is new; the answer comes after it is on disk. Sending the same again does no harm."""
        limit(request)
        raw = await body_of(request, most)

        def read() -> Submission:
            given = submission(store.campaign, unseal(raw) if kind_of(request) == _BINARY else raw)
            if store.campaign.invitations is not None:
                check_token(store.campaign, given.sender, request.headers.get(HEADER, ""))
            return given

        try:
            given = await workers.run(read)
        except ReportRefused as refused:
            tally.refuse(refused.reason)
            status = _STATUS.get(refused.reason, 400)
            return problem(RefusedError(status, str(refused), code=refused.reason.value.replace(" ", "-")))
        if writer.is_full:
            raise RefusedError(429, "Too many messages are waiting; try again in a minute.")
        receipt = await _written(writer, given)
        if receipt.closed:
            raise RefusedError(410, "This collection is closed; nothing was taken.")
        tally.add(receipt)
        return JSONResponse(_told(receipt))


def kind_of(request: Request) -> str:
    """Return the type of a message; reject what a page of another site can make a browser send.

    A browser sends text/plain, a form or no type at all for any page. For the two types that are taken it
    asks first, and is rejected. It also states where a request comes from.
    """
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind not in (_BINARY, _JSON):
        raise RefusedError(415, f"The content type must be {_BINARY} or {_JSON}.")
    origin = request.headers.get("origin")
    own = request.headers.get("host", "").lower()
    elsewhere = origin is not None and origin.lower().partition("://")[2] != own
    if elsewhere or request.headers.get("sec-fetch-site", "none") not in ("none", "same-origin"):
        raise RefusedError(403, "Reports are taken from this service's own page and from programs only.")
    return kind


async def _written(writer: GroupWriter, given: Submission) -> Receipt:
    try:
        return await writer.submit(given)
    except Exception as error:
        log("store failed", kind=type(error).__name__)
        raise RefusedError(503, "Nothing could be stored now; send it again later.") from error


def most_bytes(store: ReportStore) -> int:
    """Return the largest message that this campaign can have."""
    campaign = store.campaign
    if not isinstance(campaign, Campaign):
        return _HEAD_BYTES + BLOCK + 10 * len(campaign.catalog)
    return min(MOST_BYTES, _HEAD_BYTES + BLOCK + _PAIR_BYTES * campaign.max_reports)


def _told(receipt: Receipt) -> dict[str, Any]:
    refused = {reason.value: count for reason, count in receipt.refused.items()}
    return {"kept": receipt.kept, "repeated": receipt.repeated, "refused": refused}


def _add_facts(app: FastAPI, store: ReportStore, limit: Callable[[Request], None]) -> None:
    text = store.campaign.text
    packed = gzip.compress(text, mtime=0)

    @app.get("/campaign", summary="The campaign, as devices hash it")
    async def campaign(request: Request) -> Response:
        """The SHA-256 of this text names the campaign; the text has all that a device needs to check it."""
        limit(request)
        if "gzip" in request.headers.get("accept-encoding", ""):
            return Response(packed, media_type=_JSON, headers={"content-encoding": "gzip"})
        return Response(text, media_type=_JSON)


def _add_model(app: FastAPI, store: ReportStore, shelf: ModelShelf, limit: Callable[[Request], None]) -> None:
    def vectors_of(published: Published | None) -> bytes | None:
        same = published is not None and published.model.catalog == store.campaign.catalog
        return published.vectors if published is not None and same else None

    # A database may not answer, so it is asked next to everything else, and once for all who ask meanwhile.
    state = SharedLookup(Workers(threads=1, waiting=1, seconds=_HEALTH_SECONDS), lambda: store.is_closed)

    @app.get("/health", summary="Whether the service is up, and for what")
    async def health() -> dict[str, Any]:
        try:
            closed = await state.value()
        except (FileError, RefusedError):
            raise RefusedError(503, "The store of reports can't be reached now.") from None
        facts = {"status": "ok", "campaign": store.campaign.digest.hex(), "closed": closed}
        published = shelf.newest()
        # By this name a page notices that a model was replaced.
        return {**facts, "vectors": published and vectors_of(published) and published.digest}

    @app.get("/model", summary="The newest model, as a file", response_class=Response)
    async def model(request: Request) -> Response:
        limit(request)
        return Response(shelf.required().file, media_type=_BINARY)

    @app.get("/model/vectors", summary="What a browser needs to recommend by itself", response_class=Response)
    async def vectors(request: Request) -> Response:
        limit(request)
        found = vectors_of(shelf.required())
        if found is None:
            raise RefusedError(404, "This model cannot be used in a browser.")
        return Response(found, media_type=_BINARY)

    @app.get("/label", summary="The guarantee of the newest model")
    async def label(request: Request) -> Response:
        limit(request)
        return Response(shelf.required().label, media_type=_JSON)


def _add_rounds(app: FastAPI, store: ReportStore, limit: Callable[[Request], None]) -> None:
    """Serve what the open round asks; it is computed once per round, from all answers before it."""
    campaign = store.campaign
    assert isinstance(campaign, GradientCampaign)
    asked: dict[int, bytes] = {}

    def ask() -> bytes:
        number = store.round
        if store.is_closed or number >= campaign.rounds:
            raise RefusedError(410, "All rounds are over.")
        if number not in asked:
            asked.clear()
            asked[number] = round_server(store).question()
        return asked[number]

    question = SharedLookup(Workers(threads=1, waiting=1, seconds=_ROUND_SECONDS), ask)

    @app.get("/round", summary="What the open round asks", response_class=Response)
    async def open_round(request: Request) -> Response:
        """Return the item factors; a device that answered this round repeats its answer."""
        limit(request)
        return Response(await question.value(), media_type=_BINARY)


def _add_pages(app: FastAPI) -> None:
    served = web_files()

    @app.get("/integrity", summary="The hash of every file that browsers are given")
    async def integrity() -> dict[str, str]:
        return integrity_of(served)

    for path, file in served.items():
        app.get(f"/{path}", include_in_schema=False)(_giver(file))


def _giver(file: WebFile) -> Any:
    async def give() -> Response:
        return Response(file.content, media_type=file.media_type, headers={"cache-control": "no-cache"})

    return give


def check_signer(store: ReportStore, signer: BlindSigningKey | None) -> None:
    """Raise for a key of invitations that is not the campaign's."""
    expected = store.campaign.invitations
    if signer is None and expected is not None:
        raise KeyOfInvitationsNeeded()
    if signer is not None and signer.public != expected:
        raise DifferentInvitationKey()


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
