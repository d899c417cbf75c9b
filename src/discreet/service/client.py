"""Talk to a collecting service from a device that isn't a browser, such as your own program."""

from __future__ import annotations

import http.client
import json
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar, final
from urllib.error import HTTPError, URLError
from urllib.request import Request, urlopen

from discreet.collect.invitations import HEADER, TokenRequest
from discreet.collect.opening import AnyCampaign, campaign_from_json
from discreet.core import write_whole
from discreet.core.errors import DiscreetError, FileError
from discreet.service.admission import seal
from discreet.service.errors import (
    BadServiceAddress,
    CampaignRejected,
    DifferentDevice,
    NoKeptRequest,
    ServiceBusy,
    ServiceRejected,
    ServiceUnreachable,
)

_MOST_BYTES = 1 << 26
_BINARY = "application/octet-stream"
_Answer = TypeVar("_Answer")
_BACK_OFF = (0.2, 0.5, 1.0, 2.0, 5.0)


@final
class CollectionClient:
    """Fetch a campaign and send messages to it.

    Parameters:
        url: Where the service is, such as https://films.example.
        timeout: How many seconds to wait for an answer.
    """

    def __init__(self, url: str, *, timeout: float = 30.0) -> None:
        if not url.startswith(("http://", "https://")):
            raise BadServiceAddress()
        self._url, self._timeout = url.rstrip("/"), timeout

    def campaign(self) -> AnyCampaign:
        """Return the service's campaign; one that reveals more than it states is rejected."""
        try:
            return campaign_from_json(json.loads(self._ask("/campaign")))
        except (RecursionError, ValueError) as error:
            why = str(error) if isinstance(error, DiscreetError) else "It can't be read."
            raise CampaignRejected(why=why) from error

    def question(self) -> bytes:
        """Return what the open round of a campaign with rounds asks; answer it with a `GradientDevice`."""
        return self._until_answered(lambda: self._ask("/round"))

    def send(
        self,
        message: bytes,
        *,
        state: Path | None = None,
        kept: dict[str, Any] | None = None,
        token: str | None = None,
    ) -> dict[str, Any]:
        """Send a message until it is acknowledged, and return what became of its reports.

        Sending again is safe: the service keeps each report once. With `state` the device's state `kept` is
        written there first, so that a crash never makes a device draw a second answer. A campaign that
        invites wants the `token` of this sender.
        """
        if state is not None:
            write_whole(state, json.dumps(kept).encode(), private=True)
        headers = {"content-type": _BINARY, **({} if token is None else {HEADER: token})}
        return self._until_answered(lambda: _acknowledged(self._ask("/reports", seal(message), headers)))

    def token(self, campaign: AnyCampaign, sender: bytes, code: str, *, state: Path) -> str:
        """Exchange an invitation for the token of a sender, and return it; see `send`.

        The request is written to `state` before it is sent, and the token when it has come: a code is good
        for one request. The service learns that this code was used, not for which sender.
        """
        kept = _kept_request(state, sender)
        if "token" in kept:
            return str(kept["token"])
        request = TokenRequest.from_json(kept) if kept else TokenRequest.new(campaign, sender, code)
        write_whole(state, json.dumps(request.to_json()).encode(), private=True)
        headers = {"content-type": "application/json"}
        answer = self._until_answered(lambda: self._ask("/invitations", request.body(), headers))
        token = request.token(campaign, answer)
        write_whole(state, json.dumps({"sender": sender.hex(), "token": token}).encode(), private=True)
        return token

    def _until_answered(self, ask: Callable[[], _Answer]) -> _Answer:
        for pause in (*_BACK_OFF, None):
            try:
                return ask()
            except FileError:
                if pause is None:
                    raise
                # Spread what was rejected together: half of the pause is drawn.
                time.sleep(pause * (0.5 + os.urandom(1)[0] / 512))
        raise AssertionError

    def _ask(self, path: str, body: bytes | None = None, headers: dict[str, str] | None = None) -> bytes:
        request = Request(self._url + path, data=body, headers=headers or {})
        try:
            with urlopen(request, timeout=self._timeout) as answer:
                return bytes(answer.read(_MOST_BYTES))
        except HTTPError as error:
            raise _refusal(error) from error
        except (URLError, OSError, http.client.HTTPException) as error:
            raise ServiceUnreachable() from error


def _kept_request(state: Path, sender: bytes) -> dict[str, Any]:
    """Return what was kept about a sender's token; nothing before it was asked for."""
    try:
        kept = json.loads(state.read_bytes())
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, RecursionError) as error:
        raise NoKeptRequest(path=state) from error
    if not isinstance(kept, dict) or kept.get("sender") != sender.hex():
        raise DifferentDevice(path=state)
    return kept


def _acknowledged(raw: bytes) -> dict[str, Any]:
    """Return what became of reports; an answer of a different form acknowledges nothing."""
    try:
        answer = json.loads(raw)
    except (ValueError, RecursionError):
        answer = None
    if not isinstance(answer, dict):
        raise ServiceUnreachable(answered=True)
    return answer


def _refusal(error: HTTPError) -> ServiceBusy | ServiceRejected:
    """Return the rejection: one for good, or one after which to try again."""
    try:
        detail = str(json.loads(error.read(4096))["error"]).rstrip(".")
    except (ValueError, KeyError, TypeError, RecursionError, OSError):
        detail = error.reason
    busy = error.code in (408, 429) or error.code >= 500
    return (ServiceBusy if busy else ServiceRejected)(status=error.code, detail=detail)
