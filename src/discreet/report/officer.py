"""Answer what a privacy officer asks about a release, from its label and the facts that a human stated.

A label may come from anybody: what doesn't have the expected form is skipped.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from discreet.report.guarantee_wording import GuaranteeView
from discreet.report.label import Lines, grouped_rows, schema_digest, used_rows
from discreet.report.odds import Odds

# A note of a release for readers: what a mechanism is called there.
_MECHANISMS = {
    "discrete-gaussian": "discrete Gaussian noise",
    "discrete-laplace": "discrete Laplace noise",
    "randomized-response": "randomized response",
    "channel": "a table of random reports",
    "threshold-selection": "selection by a noisy threshold",
    "importance-sampling": "an importance sample with discrete Laplace noise",
    "continual-gaussian": "discrete Gaussian noise on a continual release",
    "shared-gaussian": "discrete Gaussian noise that parties share",
}
SIDE_CHANNELS = (
    "Noise is drawn as whole numbers on a public grid, so no floating-point artifact depends on the data. "
    "How long a fit takes, error messages, and logs of the fit aren't protected; they are for the controller "
    "only. A list that a user requests is computed from that user's history and must go to that user only."
)
TUNING = (
    "The file doesn't state whether settings were chosen by fits on the same data. Such fits are releases: "
    "the ledger lists each one that was recorded. A choice by public data, by defaults, or by `discreet "
    "budget plan` costs nothing."
)
ERASURE = (
    "The release was made with the user's data and isn't changed by an erasure. What it can reveal about an "
    "erased user stays bounded by the same epsilon and delta, permanently, whatever else becomes known. The "
    "next fit leaves the user out (`discreet fit --without`), and `discreet follow erase` takes a user "
    "out of later releases. `discreet model erase LEDGER` signs what all live releases can still reveal."
)
_NO_ACCURACY = (
    "Not stated. `discreet evaluate --private` measures it at a recorded cost. Noise hides rare behavior "
    "first, so items and groups with few users get less accurate recommendations."
)
_NO_GROUPS = "By group: not stated. Scores of groups reveal who is in them, unless they have noise, too."
USE = "Purpose: {purpose}. Legal basis: {legal_basis}."
PERIOD = "Region: {region}. Sector: {sector}. Retention: {retention}. Next review: {review}."
_COLUMNS = ("user", "item", "rating", "time")


def officer_rows(
    label: Mapping[str, Any],
    stated: Mapping[str, str] | None = None,
    published: Mapping[str, str] | None = None,
) -> Lines:
    """Return the lines of a full label that only some readers need.

    `stated` are the facts that a human stated, or marks where one is missing; without them, their lines are
    skipped. `published` is the accuracy that the owner chose to publish.
    """
    human = {"Controller": "{controller}. Contact: {contact}.", "Use": USE, "Period": PERIOD}
    return [
        ("Contribution", bounds(label)),
        ("Columns", columns(label)),
        ("Tuning", TUNING),
        ("Side channels", SIDE_CHANNELS),
        ("Accuracy", accuracy(published or {})),
        ("Erasure", ERASURE),
        *((name, text.format_map(stated)) for name, text in human.items() if stated),
    ]


def label_lines(label: Mapping[str, Any], guarantee: GuaranteeView) -> Lines:
    """Return all lines of a full label but those that a human states, for notebooks."""
    groups = grouped_rows(guarantee, used_rows(label, None)[:-1])
    lines = [line for some in groups.values() for line in some]
    if not guarantee.is_private:
        return lines
    return [*lines, ("Odds", Odds.of(guarantee).sentence()), *officer_rows(label)]


def accuracy(published: Mapping[str, str]) -> str:
    """Return the accuracy that the owner chose to publish, overall and by group; nothing is measured here."""
    overall = f"{published['accuracy']}." if "accuracy" in published else _NO_ACCURACY
    groups = published.get("accuracy_by_group")
    return f"{overall} {_NO_GROUPS if groups is None else f'By group: {groups}.'}"


def bounds(label: Mapping[str, Any]) -> str:
    """Return how one user's influence is bounded."""
    cap = label.get("facts", {}).get("max_per_user")
    limit = "" if cap is None else f" At most {cap} ratings per user are used."
    found = sorted({bound for *_, bound in listed_releases(label)})
    said = f" In the releases {'; '.join(found)}." if found else ""
    return (
        "Each user's contribution is scaled down to a public length before it is added to any sum, whatever "
        f"the user did and however much.{limit}{said}"
    )


def columns(label: Mapping[str, Any]) -> str:
    """Return which columns a fit read."""
    schema = label.get("schema")
    if not isinstance(schema, dict):
        return "The file doesn't state columns: the fit didn't read a file."
    read = ", ".join(f"{name} from {schema[name]!r}" for name in _COLUMNS if schema.get(name))
    return f"The fit read these columns: {read or 'as the schema states'}. Schema: {schema_digest(schema)}."


def listed_releases(label: Mapping[str, Any]) -> list[tuple[str, str, str, str]]:
    """Return each release of a label's certificate in words; a label without one has none.

    A label may come from anybody, so what doesn't look like a release is skipped.
    """
    certificate = label.get("certificate")
    listed = certificate.get("releases") if isinstance(certificate, dict) else None
    return [
        (
            str(one.get("name"))[:80],
            _MECHANISMS.get(str(one.get("mechanism")), str(one.get("mechanism"))[:80]),
            _noise(one),
            _bound(one),
        )
        for one in (listed if isinstance(listed, list) else [])
        if isinstance(one, dict)
    ]


def _number(value: object) -> float | None:
    try:
        return float(Fraction(str(value)))
    except (ValueError, OverflowError, ZeroDivisionError):
        return None


def _noise(release: Mapping[str, Any]) -> str:
    """Return the noise of a release in units of what one user can change."""
    scale, moved = _number(release.get("scale")), _number(release.get("sensitivity", release.get("one")))
    if scale and moved:
        size = str(release.get("coordinates", 1))
        numbers = "1 number" if size == "1" else f"{size} numbers"
        return f"scale {scale / moved:.4g} times the largest contribution, on {numbers}"
    return "drawn from a public table of probabilities" if scale is None else f"scale {scale:.4g} grid steps"


def _bound(release: Mapping[str, Any]) -> str:
    norm = {"l1": "sum of absolute values", "l2": "Euclidean length"}.get(str(release.get("norm")))
    return "one report at a time" if norm is None else f"one user's vector has a bounded {norm}"
