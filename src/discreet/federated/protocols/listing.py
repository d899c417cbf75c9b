"""Averages over the parties that list an item: an answer states what its party lists, as zeros and ones."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

import numpy as np

from discreet.core.arrays import Floats, Indices
from discreet.federated.protocols.protocol import MessagePart
from discreet.federated.wire import Arrays, Message, Refusal, Refused

LISTED = "listed"


def only_listed(part: MessagePart, listed: Indices | None, by_item: Collection[str]) -> MessagePart:
    """Return an answer whose rows of other items are zero; None means that the party lists all items."""
    if listed is None or LISTED not in part.arrays:
        return part
    mask = np.zeros_like(np.asarray(part.arrays[LISTED]))
    mask[listed] = 1.0
    arrays = {name: np.asarray(part.arrays[name]) for name in by_item}
    kept = {name: array * (mask[:, None] if array.ndim == 2 else mask) for name, array in arrays.items()}
    return replace(part, arrays={**part.arrays, **kept, LISTED: mask})


def check_listed(answer: Message) -> None:
    """Raise `Refused` unless a list consists of zeros and ones: averages divide by it."""
    listed = answer.arrays.get(LISTED)
    if listed is not None and not np.isin(listed, (0.0, 1.0)).all():
        raise Refused(Refusal.OUT_OF_RANGE)


def averaged_rows(totals: Arrays, name: str) -> Floats:
    """Return the mean of an array over the parties that list each item; zero where no party does."""
    share = np.maximum(np.asarray(totals[LISTED]), 1.0)
    total = np.asarray(totals[name])
    return np.asarray(total / (share[:, None] if total.ndim == 2 else share))
