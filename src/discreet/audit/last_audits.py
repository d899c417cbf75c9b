"""Report when a kind of model was last audited and what was found.

`last_audits.json`, which ships with the package, is made from a full run that is kept in the repository
(`papers/audit/table.py`). An audit tries to refute a guarantee, and can never prove one: the proofs are in
proofs/.

An audit is about the mechanism that it audited. `fingerprints.json` has the present fingerprint of every
model and preset (`presets`) at the epsilons of full runs (`fingerprint`). An audit whose fingerprints differ,
or that has none, is of an earlier form of the model, and its sentence states it. `audited_settings.json` has
the settings of every audited subject; a label compares its file with them without loading any model.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from importlib import resources
from typing import Any, NamedTuple

_SHIPPED, _PRESENT, _SETTINGS = "last_audits.json", "fingerprints.json", "audited_settings.json"
#: The epsilons of a full run.
EPSILONS = (0.5, 1.0, 4.0)
# What a public date is doesn't change what is released; of these, whether there is any.
_FREE, _ANY = ("now",), ("half_life", "item_features")


class LastAudit(NamedTuple):
    """The last audit of a kind of model.

    `subject` is the model, with its audited settings that aren't the default. `tried` are the epsilons that
    were audited. At epsilon `promised`, `exact` is the exact privacy cost of the worst pair of neighboring
    datasets found (None if something leaked). `refuted` is the largest epsilon refuted by attacks without an
    assumption; `curve` assumes that the shape of the noise is known.
    `fingerprints` names what was audited, by epsilon; empty if not recorded. `present` states whether
    the model still releases the same.

    Example:
        >>> from discreet.audit import last_audit
        >>> last_audit("popularity").verdict
        'not refuted'
        >>> last_audit("a model of your own") is None
        True

    Stability
        Provisional: names may still change in 0.x.
    """

    subject: str
    date: str
    version: str
    verdict: str
    tried: tuple[float, ...]
    promised: float
    exact: float | None
    refuted: float
    curve: float
    confidence: float
    fingerprints: Mapping[str, str]
    present: bool

    def sentence(self) -> str:
        """Return the audit in words; "not refuted" is never called a proof."""
        if not self.present:
            return (
                f"audited in an earlier form ({self.date}, version {self.version}: {self.verdict}). "
                "What the model releases now has not been audited in full. An audit isn't a proof."
            )
        tried = ", ".join(f"{epsilon:g}" for epsilon in self.tried)
        worst = "unbounded (a leak)" if self.exact is None else f"{self.exact:.2f}"
        return (
            f"{self.date}, version {self.version}, at epsilon {tried}: {self.verdict}. "
            f"Worst case {worst} of the guaranteed epsilon {self.promised:g}; attacks prove at least "
            f"{max(self.refuted, self.curve):.2f} ({100 * self.confidence:.0f}% confidence). "
            "An audit isn't a proof."
        )

    def to_json(self) -> dict[str, Any]:
        """Return the audit as JSON."""
        return {**self._asdict(), "tried": list(self.tried), "fingerprints": dict(self.fingerprints)}


def last_audit(model: str, settings: Mapping[str, Any] | None = None) -> LastAudit | None:
    """Return the last audit of a kind of model; None if no kept run has it.

    Several setups of a model may have been audited: this returns the one nearest to these settings.
    """
    known = [subject for subject in _shipped() if subject.partition(" ")[0] == model]
    if not known:
        return None
    # The defaults are first, and the first of equals is used.
    subject = min(sorted(known), key=lambda one: len(unaudited(one, settings or audited_settings(model))))
    found = _shipped()[subject]
    audited = found["fingerprints"]
    present = bool(audited) and audited == _present().get(subject)
    return LastAudit(**{**found, "tried": tuple(found["tried"]), "present": present})


def audited_settings(subject: str) -> Mapping[str, Any]:
    """Return the settings with which full runs audit a model, or one of its presets."""
    return _content(_SETTINGS).get(subject, {})


def unaudited(subject: str, settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings of a model that the audit of this subject didn't have."""
    audited = audited_settings(subject)
    # Interactions have no ratings to predict, so with them every purpose releases the same.
    free = (*_FREE, "purpose") if settings.get("feedback") == "implicit" else _FREE
    return {
        key: value
        for key, value in settings.items()
        if key in audited and key not in free and _differ(key, audited[key], value)
    }


def _differ(key: str, audited: Any, value: Any) -> bool:
    return (audited is None) != (value is None) if key in _ANY else bool(audited != value)


@cache
def _shipped() -> dict[str, dict[str, Any]]:
    return _content(_SHIPPED)


@cache
def _present() -> dict[str, dict[str, str]]:
    return _content(_PRESENT)


def _content(name: str) -> dict[str, dict[str, Any]]:
    file = resources.files("discreet.audit").joinpath(name)
    if not file.is_file():
        return {}
    content: dict[str, dict[str, Any]] = json.loads(file.read_text(encoding="utf8"))
    return content
