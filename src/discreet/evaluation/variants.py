"""Call evaluations by their model, and by the settings in which evaluations of one model differ."""

from __future__ import annotations

from collections.abc import Sequence

from discreet.evaluation.evaluation import Evaluation

# These have columns and axes of their own.
_SHOWN_ELSEWHERE = ("epsilon", "delta")


def variant_names(evaluations: Sequence[Evaluation]) -> list[str]:
    """Return a name for each evaluation."""
    return [_name(one, [other for other in evaluations if other.model == one.model]) for one in evaluations]


def _name(one: Evaluation, siblings: Sequence[Evaluation]) -> str:
    differing = [
        key
        for key, value in one.parameters.items()
        if key not in _SHOWN_ELSEWHERE and any(other.parameters.get(key) != value for other in siblings)
    ]
    return ":".join([one.model, *(f"{key}={one.parameters[key]}" for key in differing)])
