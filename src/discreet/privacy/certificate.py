"""Write certificates: the exact releases behind a guarantee, for a program that shares no code with this one.

A certificate lists each release with its mechanism, sensitivity, and noise in grid steps, as whole numbers
and fractions. It also states the guarantee that they prove together. `discreet-verify` checks it.
proofs/certificate.md describes the format.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Sequence
from fractions import Fraction
from typing import Any

from discreet.privacy.accounting.rounding import exact, power_of_two
from discreet.privacy.guarantee import Guarantee
from discreet.privacy.mechanisms.additive import Release
from discreet.privacy.mechanisms.bounded import ModifiedLaplace
from discreet.privacy.mechanisms.cells import HiddenNumbers, HiddenStars
from discreet.privacy.mechanisms.channel import WORDS, CountTable
from discreet.privacy.mechanisms.grid import GridMechanism
from discreet.privacy.mechanisms.randomized_response import RandomizedResponse, SignFlip
from discreet.privacy.mechanisms.selection import MOST_NAMES, NoisyThreshold
from discreet.privacy.mechanisms.subsampling import ImportanceSampling

FORMAT, VERSION = "discreet-certificate", 1


def certificate(guarantee: Guarantee, releases: Iterable[Release], *, people: int = 1) -> dict[str, Any]:
    """Return the certificate of a guarantee for one user, or for a group of this many users."""
    record: dict[str, Any] = {
        "format": FORMAT,
        "version": VERSION,
        "claim": {
            "epsilon": exact(guarantee.epsilon),
            "delta": exact(guarantee.delta),
            "unit": guarantee.unit.value,
            "neighbors": guarantee.neighbors.value,
            "people": people,
        },
        "releases": list(releases),
    }
    text = json.dumps(record, sort_keys=True, separators=(",", ":"))
    return {**record, "digest": hashlib.sha256(text.encode()).hexdigest()}


def response_release(
    name: str, mechanism: RandomizedResponse | SignFlip | GridMechanism | ModifiedLaplace, *, count: int = 1
) -> Release:
    """Return reports that devices perturb, each drawn from a table of counts of random words."""
    record = {"mechanism": "channel", "name": name, "count": count}
    if isinstance(mechanism, RandomizedResponse):
        counts = mechanism.table().counts()
        return {
            **record,
            "mechanism": "randomized-response",
            "words": WORDS,
            "other": int(counts[0, 1]),
            "levels": mechanism.levels,
        }
    if isinstance(mechanism, ModifiedLaplace):
        return {**record, "columns": _modified_columns(mechanism)}
    table = mechanism.table(mechanism.grid()) if isinstance(mechanism, GridMechanism) else mechanism.table()
    return {**record, "columns": _columns(table)}


def perturbed_release(name: str, mechanism: object) -> Release:
    """Return reports of a mechanism. The checker rejects a mechanism that has no certificate of its own."""
    # Entries of a whole row are drawn from the same tables (proofs/local_nuclear.md).
    if isinstance(mechanism, HiddenStars):
        mechanism = mechanism._response()
    elif isinstance(mechanism, HiddenNumbers):
        mechanism = mechanism._laplace()
    if isinstance(mechanism, RandomizedResponse | SignFlip | GridMechanism | ModifiedLaplace):
        return response_release(name, mechanism)
    return {"mechanism": name, "name": name, "count": 1}


def _columns(table: CountTable) -> list[list[int]]:
    """Return the largest and the least count of each outcome over all inputs."""
    counts = table.counts()
    pairs = zip(counts.max(axis=0).tolist(), counts.min(axis=0).tolist(), strict=True)
    return [[int(most), int(least)] for most, least in pairs]


def _modified_columns(mechanism: ModifiedLaplace) -> list[list[int]]:
    """Return largest and least counts of each outcome, over all ratings and over "missing"."""
    coin, noise = mechanism.tables()
    truth, lie = (int(one) for one in coin.counts()[0].tolist())
    columns = [[truth, lie]]
    for most, middle, least in zip(*(one.tolist() for one in noise.extremes()), strict=True):
        # Reported as rated: ratings with probability `truth`, the middle of the scale with `lie`.
        found = (truth * int(most), truth * int(least), lie * int(middle))
        columns.append([max(found), min(found)])
    return columns


def threshold_release(name: str, mechanism: NoisyThreshold) -> Release:
    """Return a selection of names from a secret set by noisy sums."""
    grid = mechanism._grid()
    return {
        "mechanism": "threshold-selection",
        "name": name,
        "count": 1,
        "one": exact(1 / power_of_two(grid.exponent)),
        "scale": exact(grid.noise),
        "threshold": mechanism._threshold_units(grid),
        "most": mechanism.most,
        "coordinates": MOST_NAMES,
        "failing": exact(mechanism._rare()),
    }


def sampling_release(name: str, mechanism: ImportanceSampling) -> Release:
    """Return the noisy sum of a weighted sample."""
    return {
        "mechanism": "importance-sampling",
        "name": name,
        "count": 1,
        # In units of the noise scale: the grid cancels, and records are cut toward zero.
        "sensitivity": exact(Fraction(mechanism.largest_norm()) / Fraction(mechanism.scale)),
        "scale": 1,
        "epsilon": exact(mechanism.epsilon),
        "max_weight": int(mechanism.max_weight),
    }


def continual_release(
    name: str, matrices: Sequence[Sequence[Sequence[int]]], *, entries: int, width: float, coordinates: int
) -> Release:
    """Return all releases of a period: each matrix by columns, the bound per user, and the noise."""
    return {
        "mechanism": "continual-gaussian",
        "name": name,
        "count": 1,
        "matrices": [[list(column) for column in matrix] for matrix in matrices],
        "entries": entries,
        "coordinates": coordinates,
        "scale": exact(width),
    }


def shared_release(
    name: str,
    *,
    sensitivity: Fraction,
    width: float,
    off_diagonal: float | None = None,
    coordinates: int,
    honest: int,
    parties: int,
) -> Release:
    """Return a sum of parties to which each adds noise of this width, in grid steps.

    Entries off the diagonal of a symmetric matrix have a width of their own.
    """
    return {
        "mechanism": "shared-gaussian",
        "name": name,
        "count": 1,
        "norm": "l2",
        "sensitivity": exact(sensitivity),
        "rounded": False,
        "coordinates": coordinates,
        "scale": exact(width),
        **({} if off_diagonal is None else {"off_diagonal": exact(off_diagonal)}),
        "honest": honest,
        "parties": parties,
    }
