"""Errors of plans."""

from __future__ import annotations

from discreet.core.errors import ParameterError


class AccuracyNotReached(ParameterError):
    metric: str
    wanted: float
    best: str
    text = """{metric} = {wanted} was not reached on any public dataset. The best was {best}. Ask for less
    accuracy, or plan for more users."""
