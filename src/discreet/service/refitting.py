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
from discreet.collect.estimate import Collected
from discreet.core.checks import DataError, ParameterError
from discreet.models.fitted import FittedModel
from discreet.models.local.estimator import LocalEstimator
from discreet.recipes import estimator
from discreet.service.running import log
from discreet.service.stores.store import ReportStore

#: Where a refit finds its store: an address may hold a password, which other processes must not see.
STORE_VARIABLE = "DISCREET_STORE"
# A fit that was asked to end is killed after this time.
_END_SECONDS = 10.0
# A report in memory: 20 bytes, where a tuple of Python takes 200.
_TRIPLE = np.dtype([("row", np.int32), ("item", np.int64), ("code", np.int64)])


def collected_from(store: ReportStore) -> Collected:
    """Return the reports of a store, in a form to learn from."""
    if not isinstance(store.campaign, Campaign):
        collector = CatalogCollector(store.campaign)
        for _, body in store.messages():
            collector.receive(body)
        return collector.collected()
    senders: list[bytes] = []
    triples = np.fromiter(_numbered(store, senders), dtype=_TRIPLE)
    if not triples.size:
        raise DataError("No report was kept, so there is nothing to learn from.")
    items, codes = triples["item"], triples["code"]
    items_known, codes_known = len(store.campaign.catalog), store.campaign.mechanism.channel().outputs.size
    if items.min() < 0 or items.max() >= items_known or codes.min() < 0 or codes.max() >= codes_known:
        raise DataError("The store holds reports that its campaign does not allow.")
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


def fit_store(store: ReportStore, model: str, settings: Mapping[str, Any] | None = None) -> FittedModel:
    """Return a model of the reports so far; devices have paid, so nothing is spent."""
    made = estimator(model, {"epsilon": store.campaign.mechanism.epsilon, **(settings or {})})
    if not isinstance(made, LocalEstimator):
        raise ParameterError(f"{model} does not learn from reports. local-channel and local-nuclear do.")
    return made.fit_reports(collected_from(store))


@final
class Refits:
    """Fit again every so many seconds, in a process of its own, and replace the published file."""

    def __init__(self, store_url: str, model: str, out: Path, seconds: float) -> None:
        self._environment = {**os.environ, STORE_VARIABLE: store_url}
        self._command = [
            sys.executable, "-m", "discreet", "collect", "fit",
            "--model", model, "--out", str(out), "--force",
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
