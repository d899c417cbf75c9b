"""Errors of numerical methods."""

from __future__ import annotations

from discreet.core.errors import DataError, ParameterError, PrivacyError


class NoFiniteAnswer(DataError):
    text = """A row has no finite answer: values or factors aren't finite, or the ridge is too weak. Check the
    values, or raise the ridge."""


class NotTransposed(ParameterError):
    text = """by_item isn't the transpose of by_user, but both must be the same ratings. Build both from one
    source."""


class NothingToLearn(DataError):
    text = """Ratings or reports to learn from are missing, or some are outside the channel's outputs. Check
    the data."""


class Diverged(DataError):
    text = "The factors diverged because the steps were too long. Lower the rate."


class NegativeWeights(DataError):
    text = """The interactions have values that are negative or NaN, which can't be weights. Remove such
    values."""


class ObjectivePrivate(PrivacyError):
    text = """The exact objective is private, so it isn't computed. Use a fixed number of steps along noised
    gradients."""


class GradientOverspent(PrivacyError):
    allowed: int
    text = """The gradient was requested more often than the {allowed:time|times} that the guarantee covers.
    It was not computed. Plan more steps before the fit."""


class SizesDiffer(DataError):
    name: str
    text = """{name} has the wrong size: it needs one number for each binary rating, or one square matrix for
    each row. Pass matching sizes."""


class RadiusTooLarge(ParameterError):
    radius: float
    most: int
    text = "{arg:radius} is {radius}, which leaves more than {most} singular values. Choose a smaller radius."
