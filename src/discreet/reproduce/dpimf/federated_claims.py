"""Turn the federations into values: on the printed axis, on a tenth of it, and against opt."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from discreet.papers.dpimf.printed import LOWERED
from discreet.reproduce.dpimf import tables

Values = dict[str, Sequence[float]]
PRINTED_OPT = {"ml100k": tables.HR_ML100K["opt"], "amazon": tables.HR_AMAZON["opt"]}


def federated(label: str, parts: Mapping[str, Any]) -> Values:
    """Hold federations against the tables, against no noise, and importance sampling against opt."""
    values: Values = {}
    truth = parts["beside"][0]["no noise"][0][0]
    for side in ("items", "users"):
        for what, key in (("all shared", "shared"), ("own catalogs", "own")):
            draws = parts.get(f"two rounds {what} {side}", [])
            values |= _two_rounds(f"federated-{label}-{side}-{key}", draws, PRINTED_OPT[label], truth)
        values |= _all_rounds(label, side, parts, truth)
        for place, name in enumerate(("overlap", "overlap-all")):
            values[f"{name}-{label}-{side}"] = [draw[place] for draw in parts[f"overlap {side}"]]
    return values


def _two_rounds(key: str, draws: Sequence[Any], printed: Sequence[float], truth: float) -> Values:
    """Return HR at both ends, the distance from the table on a tenth of the axis, and gains by sampling."""
    values: Values = {}
    hits = {
        method: np.array([np.asarray(draw[method])[:, 0] for draw in draws])
        for method in (draws[0] if draws else ())
    }
    for method, curves in hits.items():
        name = method.lower().replace(" ", "-")
        values[f"{key}-{name}-1"] = curves[:, 0].tolist()
        values[f"{key}-{name}-10"] = curves[:, -1].tolist()
        values[f"{key}-{name}-10-left"] = (truth - curves[:, -1]).tolist()
    if hits and hits["opt"].shape[1] == len(printed):
        apart = np.abs(hits["opt"] - np.asarray(printed))
        values[f"{key}-tenth"] = apart.mean(axis=1).tolist()
        values[f"{key}-tenth-upper"] = apart[:, -5:].mean(axis=1).tolist()
        values[f"{key}-own-axis"] = np.abs(hits["opt"][:, :1] - printed[-1]).mean(axis=1).tolist()
    for method, name in (("opt-IS", "is"), *((one, f"lower{weight:g}") for one, weight in LOWERED.items())):
        if hits:
            values[f"{key}-{name}-over-opt"] = (hits[method] - hits["opt"]).mean(axis=1).tolist()
    return values


def _all_rounds(label: str, side: str, parts: Mapping[str, Any], truth: float) -> Values:
    """Return the cells of all 100 rounds (10 of the other variants) that were reached, and changes."""
    values: Values = {}
    few = parts.get(f"two rounds all shared {side}", [])
    for name, draws in parts.items():
        if not name.startswith("federated ") or f" {side} " not in name or not draws:
            continue
        _, rounds, _, _, epsilon, method = name.split(maxsplit=5)
        key = f"federated-{label}-{side}-{rounds}-{method.lower().replace(' ', '-')}-{epsilon}"
        hits = [draw[0] for draw in draws]
        values[key] = hits
        values[f"{key}-left"] = [truth - hit for hit in hits]
        if method in ("opt", "opt-IS") and few:
            at = tables.HIGH_EPSILONS.index(float(epsilon))
            values[f"{key}-moves"] = [hit - draw[method][at][0] for hit, draw in zip(hits, few, strict=False)]
    for epsilon in ("1", "10"):
        start = f"federated-{label}-{side}-100"
        opt, sampled = (values.get(f"{start}-{method}-{epsilon}", ()) for method in ("opt", "opt-is"))
        gains = [one - other for one, other in zip(sampled, opt, strict=False)]
        values[f"{start}-is-over-opt-{epsilon}"] = gains
    return values
