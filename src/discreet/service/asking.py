"""Ask devices in rounds over HTTP: the question of the open round, which answers to `/reports` follow."""

from __future__ import annotations

import threading
from collections.abc import Callable

from fastapi import FastAPI, Request, Response

from discreet.collect.gradient_rounds import GradientCampaign
from discreet.service.limits import RefusedError
from discreet.service.refitting import round_server
from discreet.service.stores.store import ReportStore


def add_rounds(app: FastAPI, store: ReportStore, limit: Callable[[Request], None]) -> None:
    """Serve the question of the open round; it is computed once per round, from all answers before it."""
    campaign, turn = store.campaign, threading.Lock()
    assert isinstance(campaign, GradientCampaign)
    asked: dict[int, bytes] = {}

    @app.get("/round", summary="What the open round asks", response_class=Response)
    def question(request: Request) -> Response:
        """Return the item factors; a device that answered this round repeats its answer."""
        limit(request)
        number = store.round
        if store.is_closed or number >= campaign.rounds:
            raise RefusedError(410, "All rounds are over.")
        with turn:
            if number not in asked:
                asked.clear()
                asked[number] = round_server(store).question()
            return Response(asked[number], media_type="application/octet-stream")
