"""Say what an audit found, for people and programs. "Not refuted" is never called a proof."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, final

NOT_REFUTED, REFUTED = "not refuted", "refuted"


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """Hold one attack on one promise.

    Parameters:
        model: Whose promise, with the settings that are not the default.
        attack: How it was tried.
        promised: The epsilon of the promise, at its delta.
        delta: The delta of the promise.
        refuted: The largest epsilon that this attack refutes at that delta.
        confidence: How sure that is; 1 where no chance is involved.
        fits: How many fits it took.
        seconds: How long it took.
        curve: The largest epsilon refuted when the shape of the noise is taken for granted, if it is.
        notes: What was found, in sentences.
    """

    model: str
    attack: str
    promised: float
    delta: float = 0.0
    refuted: float
    confidence: float
    fits: int
    seconds: float
    curve: float | None = None
    notes: tuple[str, ...] = ()
    broken: bool = field(default=False)

    @property
    def verdict(self) -> str:
        """Return "refuted" if the promise is, else "not refuted"."""
        return REFUTED if self.broken else NOT_REFUTED

    def to_json(self) -> dict[str, Any]:
        """Return what `discreet audit --json` prints; an infinite number is null, as JSON has none."""
        shown = {
            "model": self.model,
            "attack": self.attack,
            "promised": _number(self.promised),
            "delta": self.delta,
            "refuted": _number(self.refuted),
            "curve": None if self.curve is None else _number(self.curve),
            "confidence": self.confidence,
            "fits": self.fits,
            "seconds": round(self.seconds, 3),
            "verdict": self.verdict,
        }
        return {**shown, "notes": list(self.notes)} if self.notes else shown

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> Finding:
        """Return the finding that `to_json` wrote, of which seconds are rounded."""
        names = ("model", "attack", "delta", "confidence", "fits", "seconds", "curve")
        return cls(
            **{name: content[name] for name in names},
            promised=_value(content["promised"]),
            refuted=_value(content["refuted"]),
            notes=tuple(content.get("notes", ())),
            broken=content["verdict"] == REFUTED,
        )


def any_refuted(findings: Iterable[Finding]) -> bool:
    """Tell whether some promise is refuted."""
    return any(finding.broken for finding in findings)


def _value(number: float | None) -> float:
    return math.inf if number is None else number


def _number(value: float) -> float | None:
    return value if math.isfinite(value) else None
