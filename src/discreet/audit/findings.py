"""Findings of an audit, stored in a file so that a long run can be resumed."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any, final

from discreet.audit.errors import NotAnAudit
from discreet.core import write_whole

NOT_REFUTED, REFUTED = "not refuted", "refuted"
# Costs are computed in double precision.
ROUNDING = 1e-9


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """The result of one attack on one guarantee: a lower bound on the epsilon of what was attacked.

    A finding can refute a guarantee, and can never prove one: the proofs are in proofs/.

    Parameters:
        model: The model, with its settings that are not the default.
        attack: The name of the attack.
        promised: The epsilon of the guarantee, at its delta.
        delta: The delta of the guarantee.
        refuted: The largest epsilon that this attack refutes at that delta.
        confidence: The confidence of `refuted`; 1 where no chance is involved.
        fits: The number of fits.
        seconds: The run time.
        curve: The largest epsilon refuted under the assumption that the shape of the noise is known, if
            that was tried.
        notes: What was found, in sentences.
        broken: Whether the guarantee is refuted.

    Example:
        >>> import numpy as np
        >>> from discreet.audit import audit
        >>> noise = np.random.default_rng(1)
        >>> found = audit(lambda x: x + noise.laplace(scale=0.5), (0.0, 1.0), epsilon=1.0)
        >>> found.promised, found.refuted > 1.5, found.verdict
        (1.0, True, 'refuted')

    Stability
        Provisional: names may still change in 0.x.
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
        """Return "refuted" if the guarantee is, else "not refuted"."""
        return REFUTED if self.broken else NOT_REFUTED

    def to_json(self) -> dict[str, Any]:
        """Return what `discreet model audit --json` prints; infinity becomes null."""
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
        """Return the finding that `to_json` wrote; its seconds are rounded."""
        names = ("model", "attack", "delta", "confidence", "fits", "seconds", "curve")
        return cls(
            **{name: content[name] for name in names},
            promised=_value(content["promised"]),
            refuted=_value(content["refuted"]),
            notes=tuple(content.get("notes", ())),
            broken=content["verdict"] == REFUTED,
        )


@dataclass(slots=True, kw_only=True)
class ExactSearch:
    """What a search over neighboring datasets has found so far: the highest exact cost, and leaks by kind.

    A leak reaches the release without noise, so no finite epsilon is guaranteed.
    """

    promised: float = math.inf
    delta: float = 0.0
    paid: float = 0.0
    fits: int = 0
    leaks: dict[str, str] = field(default_factory=dict)
    started: float = field(default_factory=time.perf_counter)

    def finding(
        self, model: str, attack: str, notes: Iterable[str] = (), *, confidence: float = 1.0
    ) -> Finding:
        """Return the finding: a guarantee is refuted by any leak, and by a cost above its epsilon."""
        refuted = math.inf if self.leaks else self.paid
        return Finding(
            model=model,
            attack=attack,
            promised=self.promised,
            delta=self.delta,
            refuted=refuted,
            confidence=confidence,
            fits=self.fits,
            seconds=time.perf_counter() - self.started,
            notes=tuple(notes),
            broken=bool(self.leaks) or refuted > self.promised * (1 + ROUNDING),
        )


def any_refuted(findings: Iterable[Finding]) -> bool:
    """Return whether any guarantee is refuted."""
    return any(finding.broken for finding in findings)


def _value(number: float | None) -> float:
    return math.inf if number is None else number


def _number(value: float) -> float | None:
    return value if math.isfinite(value) else None


_KIND = "audits"


@final
class KeptFindings:
    """Findings by model, guarantee, and attack. With a path, each one is written at once.

    A file written by another version is rejected: its findings are about other code. Findings about another
    mechanism (`fingerprint`) are not used again.
    """

    def __init__(self, path: Path | None = None) -> None:
        self._path = path
        self._version = version("discreet")
        self._rows: list[dict[str, Any]] = []
        if path is not None and path.exists():
            self._rows = self._read(path)

    @property
    def is_written(self) -> bool:
        """Return whether findings go to a file."""
        return self._path is not None

    def once(
        self,
        model: str,
        promised: float,
        attack: str,
        find: Callable[[], list[Finding]],
        *,
        fingerprint: str = "",
    ) -> list[Finding]:
        """Return the stored findings of this attack, or run `find` and store its result.

        `fingerprint` names what is audited; findings with another one are replaced.
        """
        key = {"subject": model, "asked": promised, "by": attack}
        if fingerprint:
            self._rows = [
                row
                for row in self._rows
                if not key.items() <= row.items() or row.get("fingerprint") == fingerprint
            ]
            key["fingerprint"] = fingerprint
        found = [Finding.from_json(row) for row in self._rows if key.items() <= row.items()]
        if not found:
            found = find()
            today = datetime.now(UTC).date().isoformat()
            self._rows += [{**key, "date": today, **finding.to_json()} for finding in found]
            self._write()
        return found

    def _write(self) -> None:
        if self._path is not None:
            content = {"kind": _KIND, "version": self._version, "found": self._rows}
            write_whole(self._path, (json.dumps(content, indent=1) + "\n").encode())

    def _read(self, path: Path) -> list[dict[str, Any]]:
        try:
            content = json.loads(path.read_text(encoding="utf8"))
        except (OSError, ValueError) as error:
            raise NotAnAudit(path=path) from error
        if not isinstance(content, dict) or content.get("kind") != _KIND:
            raise NotAnAudit(path=path)
        if content.get("version") != self._version:
            raise NotAnAudit(path=path)
        rows: list[dict[str, Any]] = content["found"]
        return rows
