"""Learn from a store while collection goes on, once or on a schedule."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, final

import numpy as np

from discreet.collect.campaign import Campaign
from discreet.collect.collector import CatalogCollector, gathered
from discreet.collect.errors import DifferentModel, NoClosedRound, NoReports, NothingKept
from discreet.collect.estimate import Collected
from discreet.collect.gradient_rounds import GradientCampaign
from discreet.collect.hidden_items import CatalogCampaign
from discreet.collect.opening import AnyCampaign
from discreet.model_settings import estimator
from discreet.models import FittedModel, ReportLearner
from discreet.papers import PAPER_NAMES
from discreet.papers.mixture.private_gradients import GradientServer
from discreet.privacy.mechanisms.bounded import ClampedLaplace
from discreet.service.errors import ForeignReports
from discreet.service.running import log
from discreet.service.stores import ReportStore

#: Where a refit finds its store: an address may hold a password, which other processes must not see.
STORE_VARIABLE = "DISCREET_STORE"
# A fit that was asked to end is killed after this time.
_END_SECONDS = 10.0
# A report in memory: 20 bytes, where a tuple of Python takes 200.
_TRIPLE = np.dtype([("row", np.int32), ("item", np.int64), ("code", np.int64)])


def collected_from(store: ReportStore) -> Collected:
    """Return the reports of a store, in a form to learn from."""
    if isinstance(store.campaign, CatalogCampaign):
        collector = CatalogCollector(store.campaign)
        for _, body in store.messages():
            collector.receive(body)
        return collector.collected()
    assert isinstance(store.campaign, Campaign)
    senders: list[bytes] = []
    triples = np.fromiter(_numbered(store, senders), dtype=_TRIPLE)
    if not triples.size:
        raise NothingKept()
    items, codes = triples["item"], triples["code"]
    items_known, codes_known = len(store.campaign.catalog), store.campaign.mechanism.channel().outputs.size
    if items.min() < 0 or items.max() >= items_known or codes.min() < 0 or codes.max() >= codes_known:
        raise ForeignReports()
    rows, items, codes = (
        np.ascontiguousarray(triples[name]).astype(np.int32) for name in _TRIPLE.names or ()
    )
    return gathered(store.campaign, senders, rows, items, codes)


def _numbered(store: ReportStore, senders: list[bytes]) -> Iterator[tuple[int, int, int]]:
    """Yield a store's reports with the numbers of their senders, who come one after the other."""
    for row in store.reports():
        if not senders or senders[-1] != row.sender:
            senders.append(row.sender)
        yield len(senders) - 1, row.item, row.code


def usual_model(campaign: AnyCampaign) -> str:
    """Return the model that learns from a campaign's mechanism unless another one is named."""
    if isinstance(campaign, GradientCampaign):
        return "private-gradients"
    if isinstance(campaign, CatalogCampaign):
        return "neighbours" if campaign.codes == 1 else "local-nuclear"
    if campaign.mechanism.channel().outputs.size == 2:
        return "one-bit-input"
    return "local-sgd" if isinstance(campaign.mechanism, ClampedLaplace) else "local-channel"


def fit_reports(collected: Collected, model: str, settings: Mapping[str, Any] | None = None) -> FittedModel:
    """Return a model of collected reports; devices have spent the budget, so nothing is spent."""
    made = estimator(model, {"epsilon": collected.mechanism.epsilon, **(settings or {})})
    if not isinstance(made, ReportLearner):
        raise NoReports(model=model)
    return made.fit_reports(collected)


def fit_store(
    store: ReportStore, model: str | None = None, settings: Mapping[str, Any] | None = None
) -> FittedModel:
    """Return a model of the reports, or of the closed rounds, so far."""
    model = model or usual_model(store.campaign)
    if not isinstance(store.campaign, GradientCampaign):
        return fit_reports(collected_from(store), model, settings)
    if PAPER_NAMES.get(model, (model, {}))[0] != usual_model(store.campaign) or settings:
        # The campaign decides the rest, and devices answered with it.
        raise DifferentModel(model=model)
    if not store.round:
        raise NoClosedRound
    return round_server(store).model()


def round_server(store: ReportStore) -> GradientServer:
    """Return the server of a store's rounds, after all that are closed."""
    assert isinstance(store.campaign, GradientCampaign)
    rounds = store.round
    return GradientServer.replayed(store.campaign, (body for _, body in store.messages()), rounds)


@final
class Refits:
    """Fit again every so many seconds, in a process of its own, and replace the published file."""

    def __init__(self, store_url: str, model: str | None, out: Path, seconds: float) -> None:
        self._environment = {**os.environ, STORE_VARIABLE: store_url}
        self._command = [
            sys.executable, "-m", "discreet", "campaign", "fit", "--out", str(out), "--force",
            *(["--model", model] if model else []),
        ]  # fmt: skip
        self._seconds = seconds
        self._ended = threading.Event()
        self._running: subprocess.Popen[str] | None = None
        self._thread = threading.Thread(target=self._repeat, name="refits", daemon=True)

    def start(self) -> None:
        """Begin; the first fit comes after one interval."""
        self._thread.start()

    def stop(self) -> None:
        """End, and end the fit that runs now: a model file is replaced whole or not at all."""
        self._ended.set()
        running = self._running
        if running is not None and running.poll() is None:
            running.terminate()
        self._thread.join(_END_SECONDS)
        if running is not None and running.poll() is None:
            running.kill()

    def _repeat(self) -> None:
        while not self._ended.wait(self._seconds):
            self._running = subprocess.Popen(
                self._command,
                env=self._environment,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                text=True,
            )
            said = self._running.communicate()[1]
            if self._running.returncode and not self._ended.is_set():
                log("refit failed", why=said.strip().splitlines()[-1:] or [""])
