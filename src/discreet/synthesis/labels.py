"""Read and check the label of synthetic data, and say in one line what covers them."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

from discreet.core.checks import DiscreetError, FileError
from discreet.data.synthetic_labels import FORMAT, READABLE, find_label
from discreet.privacy.guarantee import Guarantee
from discreet.report.guarantee import condition_text
from discreet.report.numbers import number_above
from discreet.synthesis.errors import NotSynthetic

#: The name of such a file in messages.
KIND = "file of synthetic data"
#: What a label states about itself unless the file is signed.
UNSIGNED = "the label of these data is not signed: anybody can write one, over any data"
#: What synthetic data can't show, whatever the guarantee.
NOT_FOR = (
    "rare items: what few users did is hidden by the noise, so it is not in the data",
    "single users: no synthetic user represents a real one",
    "small groups: fairness towards them cannot be measured here",
    "exact counts: popularity, lengths and ratings are those of noisy releases",
)
# What reading a foreign or damaged file can raise.
_DAMAGED = (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError, DiscreetError)


def summary(promise: Guarantee) -> str:
    """Return one line: what the data are, and which guarantee covers them."""
    if math.isinf(promise.epsilon):
        return "synthetic, from a release that is NOT PRIVATE: it may reveal anything about anybody"
    level = f"epsilon {number_above(promise.epsilon)}, delta {number_above(promise.delta)}"
    noise = ", with SIMULATED noise that protects no users" if promise.simulated else ""
    condition = condition_text(promise.conditions)
    only = f", if {condition}" if condition else ""
    return f"synthetic, from a release with {level}, {promise.basis.value}{noise}{only}"


def is_synthetic(path: Path) -> bool:
    """Return whether a file is synthetic data that we wrote."""
    try:
        read_synthetic_label(path)
    except FileError:
        return False
    return True


def read_synthetic_label(path: Path) -> dict[str, Any]:
    """Return the label of a file of synthetic data.

    Raises:
        FileError: The file is none, or its label cannot be read or belongs to another file.
    """
    try:
        label = find_label(path)
        _check(label)
    except _DAMAGED as error:
        raise NotSynthetic(path=path) from error
    return label


def _check(label: dict[str, Any]) -> None:
    """Raise for a label without the parts that its readers show."""
    if label["format"] != FORMAT or label["version"] not in READABLE or not isinstance(label["name"], str):
        raise ValueError("this is another format")
    Guarantee.from_json(label["guarantee"])
    parts = (label["provenance"], label["parameters"])
    if not all(isinstance(part, dict) for part in parts):
        raise TypeError("a part of the label is missing")
    if not all(isinstance(text, str) for text in (*label["provenance"].values(), *label["not_for"])):
        raise TypeError("a part of the label isn't text")
