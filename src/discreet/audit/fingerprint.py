"""Name what an audit audited: a fingerprint of a model's statistics, budget shares and mechanisms.

A fixed synthetic dataset is fitted with a fixed seed. The fingerprint is a hash of the session's log and of
the recorded draws. The log has the norm, bound, noise, share, and cost of each release. A draw has the size
of the exact statistic in units of the noise. So the fingerprint changes if a model releases another
statistic, bounds a statistic in another way, splits its budget in another way, or draws other noise. It
doesn't change with names, comments, or speed. Numbers are rounded, so that processors with another order of
summation agree.

A model may decide by its first releases what to release next. Datasets of several sizes lead to these
decisions. Such a dataset is part of the fingerprint if its fit takes a route that no fit before it took.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np

from discreet.audit.neighboring import SyntheticSpec, neighboring
from discreet.audit.white_box.recording import (
    MechanismCall,
    RecordedAdditive,
    RecordedCells,
    RecordedTable,
    Recorder,
)
from discreet.audit.white_box.structure import ask
from discreet.core import PrivacyRandom
from discreet.models import Estimator
from discreet.privacy import ReleaseEntry

_SEED = 37
_LETTERS = 16


def fingerprint(estimator: Estimator) -> str:
    """Return the fingerprint of what the estimator releases; its epsilon and settings are part of it."""
    described, routes = [], set()
    for datasets in neighboring(estimator, SyntheticSpec()):
        # The last outcome of each dataset reaches the rounds that need a clear signal.
        recorder = Recorder(noise_scale=datasets.outcomes[-1])
        scorer, log = estimator.rehearsal(datasets.base, PrivacyRandom.recorded(_SEED, recorder))
        route = tuple((entry.mechanism, entry.norm, entry.account, _share(entry)) for entry in log)
        if datasets.more_routes and route in routes:
            continue
        routes.add(route)
        ask(estimator, scorer, datasets.base)
        logged = [_logged(entry) for entry in log]
        described.append([logged, [_described(call) for call in recorder.calls]])
    return hashlib.sha256(json.dumps(described).encode()).hexdigest()[:_LETTERS]


def _share(entry: ReleaseEntry) -> str:
    return _rounded(float(entry.share), 6)


def _logged(entry: ReleaseEntry) -> list[Any]:
    """Return all numbers of a release's cost; names aren't part of a mechanism."""
    exact = (entry.bound, entry.scale, entry.share, entry.epsilon, entry.delta)
    numbers = [None if one is None else _rounded(float(one), 6) for one in exact]
    return [entry.mechanism, entry.norm, entry.size, entry.account, *numbers]


def _described(call: MechanismCall) -> list[Any]:
    match call:
        case RecordedAdditive():
            noise = "gaussian" if call.gaussian else "laplace"
            size = float(np.abs(call.given.astype(np.float64)).sum()) / call.width
            return [noise, list(call.given.shape), _rounded(call.width, 6), _rounded(size)]
        case RecordedTable():
            counts = call.starts.astype(np.float64) / 2.0**64
            return ["table", list(call.starts.shape), list(call.rows.shape), _rounded(_mixed(counts))]
        case RecordedCells():
            rates = _numbers(call.mechanism)
            return ["ratings", call.count, len(call.rated), [_rounded(rate, 6) for rate in rates]]
        case _:
            return ["coins", *(_plain(value) for value in call.public)]


def _numbers(value: Any) -> Iterable[float]:
    """Yield all numbers of a mechanism, in the order of its fields."""
    if is_dataclass(value):
        for entry in fields(value):
            yield from _numbers(getattr(value, entry.name))
    elif isinstance(value, int | float):
        yield float(value)
    elif isinstance(value, tuple | list | np.ndarray):
        for one in np.asarray(value, dtype=np.float64).ravel():
            yield float(one)


def _plain(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return [list(value.shape), _rounded(_mixed(value.astype(np.float64)))]
    return _rounded(value, 6) if isinstance(value, float) else value if isinstance(value, str) else int(value)


def _mixed(values: Any) -> float:
    """Return a sum in which every entry has another weight."""
    flat = np.asarray(values, dtype=np.float64).ravel()
    return float(flat @ np.cos(np.arange(1, flat.size + 1)))


def _rounded(value: float, digits: int = 3) -> str:
    # A multiple of pi is hardly ever half of a last digit, whereas counts and their halves often are.
    return f"{value * np.pi:.{digits - 1}e}"
