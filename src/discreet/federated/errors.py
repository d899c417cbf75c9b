"""Errors of federations."""

from __future__ import annotations

from discreet.core.errors import ParameterError


class CannotAverage(ParameterError):
    """Parties can't average this model."""

    model: str
    text = (
        "{model} can't be averaged over parties. Use implicit-objective with loss=shared, dpimf or dpmf, or "
        "{arg:protocol=sums}."
    )


class SharedUsersAreSimulated(ParameterError):
    """Real parties of one agreement share items, not users."""

    text = (
        "Parties that share users are simulated only. Real parties of one agreement share items: use "
        "solve=items."
    )


class NoGuaranteeAsPrinted(ParameterError):
    """A printed protocol was given a guarantee."""

    epsilon: float
    text = "A printed protocol has no guarantee, so that epsilon={epsilon:g} can't be its guarantee."
