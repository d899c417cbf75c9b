"""Audit an estimator in seconds: its mechanism calls, and its noise."""

from __future__ import annotations

import math
import time

from discreet.audit.findings import Finding
from discreet.audit.neighboring import SyntheticSpec, neighboring
from discreet.audit.white_box.noise import examine_noise
from discreet.audit.white_box.structure import examine
from discreet.models.estimator import Estimator


def quick_audit(name: str, estimator: Estimator) -> list[Finding]:
    """Run the white-box audit and test the noise, in seconds; only the noise test can err by chance."""
    inside = examine(estimator)
    notes = (*inside.leaks[:3], *(() if inside.additive else ("sums depend on the other users",)))
    costliest: tuple[str, ...] = (f"worst case: {inside.dataset}",) if inside.dataset else ()
    if inside.paid_by_all < inside.paid:
        costliest += (f"the longest fits, with {inside.draws} draws, cost {inside.paid_by_all:.4g}",)
    found = [
        Finding(
            model=name,
            attack="white box",
            promised=inside.promised,
            delta=inside.delta,
            refuted=inside.refuted,
            confidence=1.0,
            fits=inside.fits,
            seconds=inside.seconds,
            notes=notes or costliest,
            broken=not inside.holds,
        )
    ]
    return [*found, _noise_finding(name, estimator, found[0])]


def _noise_finding(name: str, estimator: Estimator, inside: Finding) -> Finding:
    start = time.perf_counter()
    test = examine_noise(estimator, next(neighboring(estimator, SyntheticSpec())).base)
    return Finding(
        model=name,
        attack="noise",
        promised=inside.promised,
        delta=inside.delta,
        refuted=math.inf if test.faults else 0.0,
        confidence=1 - 1e-6,
        fits=test.fits,
        seconds=time.perf_counter() - start,
        notes=test.faults or (f"{test.draws:,} draws tested",),
        broken=bool(test.faults),
    )
