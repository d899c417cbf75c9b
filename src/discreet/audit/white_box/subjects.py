"""Audit an estimator quickly, with its default settings and with every alternative of its settings."""

from __future__ import annotations

import math
import time
import types
from collections.abc import Iterator, Mapping
from dataclasses import MISSING, fields
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from discreet.audit.findings import Finding
from discreet.audit.neighboring import SyntheticSpec, neighboring
from discreet.audit.white_box.noise import examine_noise
from discreet.audit.white_box.structure import examine
from discreet.core.checks import ParameterError
from discreet.models.estimator import Estimator


def variants(kind: type[Estimator], epsilon: float) -> Iterator[tuple[str, Estimator]]:
    """Yield the estimator with its defaults, and once with every other option of a setting that has few.

    An option that the estimator rejects with the other defaults is skipped.
    """
    yield kind.name, kind(epsilon=epsilon)
    for name, options in _options(kind).items():
        for option in options:
            try:
                variant = kind(epsilon=epsilon, **{name: option})
            except ParameterError:
                continue
            yield f"{kind.name} {name}={str(option).lower()}", variant


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


def _options(kind: type[Estimator]) -> Mapping[str, list[Any]]:
    """Return the settings with few options, each with the options that are not the default."""
    hints = get_type_hints(kind)
    found: dict[str, list[Any]] = {}
    for entry in fields(kind):  # type: ignore[arg-type]
        if entry.default is MISSING:
            continue
        hint = hints[entry.name]
        types_of = list(get_args(hint)) if get_origin(hint) in (Union, types.UnionType) else [hint]
        others = [option for one in types_of for option in _listed(one) if option != entry.default]
        if others:
            found[entry.name] = others
    return found


def _listed(hint: Any) -> tuple[Any, ...]:
    if get_origin(hint) is Literal:
        return get_args(hint)
    return (True, False) if hint is bool else ()
