"""Publish a model file while it is replaced: the newest whole one, its label, and what devices need."""

from __future__ import annotations

import hashlib
import json
import threading
import time
import weakref
from pathlib import Path
from typing import Any, NamedTuple, final

from discreet.core.checks import DiscreetError, ParameterError
from discreet.export.bundle.folder import device_file
from discreet.models import FittedModel, load, read_label
from discreet.service.limits import RefusedError
from discreet.service.questions import MOST_ITEMS, example
from discreet.service.running import log

_SECONDS_BETWEEN_LOOKS = 1.0
#: A question of so many bytes names about two hundred items.
QUICK_BYTES = 1 << 12
# The event loop answers all peers, so an answer on it takes at most this much processor time.
_QUICK_SECONDS = 0.01


class Published(NamedTuple):
    """A model as it is served: itself, its file, its label, and what browsers compute with."""

    model: FittedModel
    file: bytes
    #: As JSON: it is shown to anybody who asks.
    label: bytes
    vectors: bytes | None
    #: Whether the event loop itself may answer questions of up to `QUICK_BYTES`.
    is_quick: bool
    #: A body that the model answers, which rejections show.
    form: dict[str, Any]
    #: A name of the file.
    digest: str


@final
class ModelShelf:
    """The newest model of a path; a file that is missing or damaged leaves the one before in place.

    No request waits for a file: a thread looks for a new one every second, and serves it when it is read.
    """

    def __init__(self, path: Path | None) -> None:
        self._stamp: tuple[int, int] | None = None
        self._held: Published | None = None
        if path is not None:
            self._look(path)
            # The thread ends after the shelf is gone.
            threading.Thread(target=_watch, args=(weakref.ref(self), path), daemon=True).start()

    def newest(self) -> Published | None:
        """Return what is published now, or None before the first model."""
        return self._held

    def required(self) -> Published:
        """Return what is published now; before the first model, reject the request."""
        if self._held is None:
            raise RefusedError(404, "The service doesn't have a model yet.")
        return self._held

    def _look(self, path: Path) -> None:
        try:
            found = path.stat()
            stamp = found.st_mtime_ns, found.st_size
            if stamp == self._stamp:
                return
            self._held = publish(path)
            self._stamp = stamp
        except FileNotFoundError:
            return
        except (DiscreetError, OSError) as error:
            log("model rejected", why=str(error))
            return
        except Exception as error:
            # The thread that looks must go on.
            log("model rejected", why=type(error).__name__)
            return
        log("model published", name=self._held.model.name)


def _watch(shelf: weakref.ref[ModelShelf], path: Path) -> None:
    while True:
        time.sleep(_SECONDS_BETWEEN_LOOKS)
        found = shelf()
        if found is None:
            return
        found._look(path)
        del found


def publish(path: Path) -> Published:
    """Return a model file as it is served."""
    model = load(path)
    promise = model.guarantee
    label = {
        **read_label(path),
        "sentence": promise.sentence(),
        "rows": [list(row) for row in promise.rows()],
    }
    vectors, form = browser_vectors(model), example(model)
    file = path.read_bytes()
    digest = hashlib.sha256(file).hexdigest()[:16]
    # A certificate has integers of more than 64 bits, which the fast codec rejects.
    shown = json.dumps(label, ensure_ascii=False, allow_nan=False).encode()
    return Published(model, file, shown, vectors, _is_quick(model), form, digest)


def _is_quick(model: FittedModel) -> bool:
    """Return whether the model answers a question of `QUICK_BYTES` fast; this also prepares its scorer."""
    chosen = model.catalog.ids[: QUICK_BYTES // 20].tolist()
    rated = [(item, model.facts.high) for item in chosen] if model.scorer.needs_ratings else chosen
    # What IDs and times as text need is loaded here, and not while the event loop waits.
    as_text = {"item": str(chosen[0]), "rating": model.facts.high, "time": "2026-01-31"}
    taken = []
    try:
        model.recommend([as_text], 1, ignore_unknown=True)
        for _ in range(3):
            begun = time.thread_time()
            model.recommend(rated, MOST_ITEMS)
            taken.append(time.thread_time() - begun)
    except DiscreetError:
        # A model of its own users doesn't answer for a newcomer.
        return False
    return min(taken) <= _QUICK_SECONDS


def browser_vectors(model: FittedModel) -> bytes | None:
    """Return what a browser needs to recommend by itself, or None for a model that it cannot answer for.

    `discreet.export.bundle.parts` describes its content.
    """
    try:
        return device_file(model)
    except ParameterError:
        return None
