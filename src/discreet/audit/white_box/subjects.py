"""Audit an estimator quickly, under its defaults and under every choice that its settings offer."""

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
    """Yield the estimator with its defaults, and once with every other choice of a setting that has few.

    A choice that the estimator refuses with the other defaults is left out.
    """
    yield kind.name, kind(epsilon=epsilon)  # type: ignore[call-arg]
    for name, choices in _choices(kind).items():
        for choice in choices:
            try:
                chosen = kind(epsilon=epsilon, **{name: choice})  # type: ignore[call-arg]
            except ParameterError:
                continue
            yield f"{kind.name} {name}={str(choice).lower()}", chosen


def described(estimator: Estimator) -> str:
    """Return the name of the model, with the settings that are not the default; the budget is told beside."""
    changed = [
        f"{entry.name}={getattr(estimator, entry.name)}"
        for entry in fields(estimator)  # type: ignore[arg-type]
        if entry.name not in ("epsilon", "delta") and getattr(estimator, entry.name) != entry.default
    ]
    return " ".join([estimator.name, *changed])


def quick_audit(name: str, estimator: Estimator) -> list[Finding]:
    """Look inside and test the noise; seconds, and no chance but that of sound noise looking narrow."""
    inside = examine(estimator)
    notes = (*inside.leaks[:3], *(() if inside.additive else ("sums depend on who else is there",)))
    costliest: tuple[str, ...] = (f"costliest: {inside.dataset}",) if inside.dataset else ()
    if inside.paid_by_all < inside.paid:
        costliest += (f"on the longest way, of {inside.draws} draws, {inside.paid_by_all:.4g} is paid",)
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


def _choices(kind: type[Estimator]) -> Mapping[str, list[Any]]:
    """Return the settings that offer few choices, with those that are not the default."""
    hints = get_type_hints(kind)
    found: dict[str, list[Any]] = {}
    for entry in fields(kind):  # type: ignore[arg-type]
        if entry.default is MISSING:
            continue
        hint = hints[entry.name]
        options = list(get_args(hint)) if get_origin(hint) in (Union, types.UnionType) else [hint]
        others = [choice for option in options for choice in _offers(option) if choice != entry.default]
        if others:
            found[entry.name] = others
    return found


def _offers(hint: Any) -> tuple[Any, ...]:
    if get_origin(hint) is Literal:
        return get_args(hint)
    return (True, False) if hint is bool else ()
