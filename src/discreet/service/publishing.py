"""Publish a model file while it is replaced: the newest whole one, its label, and its item vectors."""

from __future__ import annotations

import struct
import threading
import time
from pathlib import Path
from typing import Any, NamedTuple, final

import numpy as np

from discreet.core.checks import DiscreetError
from discreet.models.fitted import FittedModel
from discreet.models.scorers.factors import RatingScorer
from discreet.models.scorers.local import LocalScorer
from discreet.models.storage import load, read_label
from discreet.service.running import log

_HEADER = struct.Struct("<4sI II ffff")
_MAGIC, _VERSION, _WITH_COUNTS = b"DSCV", 1, 2
_SECONDS_BETWEEN_LOOKS = 1.0


class Published(NamedTuple):
    """Hold a model as it is served: itself, its file, its label, and what browsers compute with."""

    model: FittedModel
    file: bytes
    label: dict[str, Any]
    vectors: bytes | None


@final
class ModelShelf:
    """Hold the newest model of a path; a file that is missing or damaged leaves the one before in place."""

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._lock = threading.Lock()
        self._looked = -_SECONDS_BETWEEN_LOOKS
        self._stamp: tuple[int, int] | None = None
        self._held: Published | None = None

    def newest(self) -> Published | None:
        """Return what is published now, or None before the first model."""
        with self._lock:
            now = time.monotonic()
            if self._path is not None and now - self._looked >= _SECONDS_BETWEEN_LOOKS:
                self._looked = now
                self._look(self._path)
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
            log("model refused", why=str(error))
            return
        log("model published", name=self._held.model.name)


def publish(path: Path) -> Published:
    """Return a model file as it is served."""
    model = load(path)
    label = {**read_label(path), "sentence": model.guarantee.sentence()}
    return Published(model, path.read_bytes(), label, browser_vectors(model))


def browser_vectors(model: FittedModel) -> bytes | None:
    """Return what a browser needs to recommend by itself, or None for a model without item vectors.

    "DSCV", version, items and factors as u32; mean, low, high and the ridge's power as f32; then, all f32 and
    little-endian, the ridge (1 + factors), a bias for each item and the factors item by item. Version 2 is of
    models that order lists by counts: how much liking counts, and the logarithm of each item's count, follow.
    """
    scorer = model.scorer.device if isinstance(model.scorer, LocalScorer) else model.scorer
    if not isinstance(scorer, RatingScorer):
        return None
    items, factors = scorer.item_factors.shape
    counted = bool(scorer.popularity.size)
    version = _WITH_COUNTS if counted else _VERSION
    head = _HEADER.pack(
        _MAGIC, version, items, factors, scorer.mean, scorer.low, scorer.high, scorer.count_power
    )
    arrays = [scorer.ridge, scorer.item_bias, scorer.item_factors]
    if counted:
        arrays += [np.array([scorer.liking]), np.log(scorer.popularity)]
    # A ridge that pins a bias may be larger than a float32 holds.
    small = (np.minimum(array, np.finfo(np.float32).max).astype("<f4").tobytes() for array in arrays)
    return head + b"".join(small)
