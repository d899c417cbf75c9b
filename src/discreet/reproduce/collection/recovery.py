"""Recover ratings from one collection in four ways and score them on the same cells."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from discreet.collect.device import collect_cells
from discreet.core.randomness import PrivacyRandom
from discreet.data.interactions import Interactions
from discreet.papers.collection.nuclear import LocalNuclear, LocalNuclearPlain

Cells = tuple[np.ndarray, np.ndarray, np.ndarray]


class Errors(NamedTuple):
    """Root mean squared errors: corrected and plain recovery, debiased item means, debiased overall mean."""

    corrected: float
    plain: float
    items: float
    mean: float


def recovery_errors(data: Interactions, test: Cells, epsilon: float, seed: int, intrinsic: float) -> Errors:
    """Collect once, learn from the same reports in every way; people are those of the collection.

    The plain recovery is told `intrinsic`, how far ratings lie from the truth in its own unit.
    """
    corrected, plain = LocalNuclear(epsilon=epsilon), LocalNuclearPlain(epsilon=epsilon, intrinsic=intrinsic)
    mechanism = corrected.mechanism(data.facts)
    collected = collect_cells(data, mechanism, PrivacyRandom.simulate(seed))
    ours = corrected.fit_reports(collected)
    device = ours.scorer.device
    rows, items, truth = test
    guesses = (
        ours.predict(data, rows, items),
        plain.fit_reports(collected).predict(data, rows, items),
        np.clip(device.mean + device.item_bias[items], device.low, device.high),
        np.full(truth.size, np.clip(device.mean, device.low, device.high)),
    )
    return Errors(*(float(np.sqrt(np.mean((guess - truth) ** 2))) for guess in guesses))
