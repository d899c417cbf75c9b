"""Errors of synthetic data."""

from __future__ import annotations

from discreet.core.errors import DataError, FileError, ParameterError


class NotSynthetic(FileError):
    path: object
    text = """{path} has no synthetic data of discreet, or its label is damaged. Make the data again with
    `discreet data synthesize`."""


class UsersUnknown(ParameterError):
    text = """The model didn't release the number of users, so the size of the data isn't known. Pass
    {arg:users=N}, or fit the model with {arg:for_synthesis=True}."""


class NoHistoriesIn(ParameterError):
    model: str
    text = """{model} didn't release which items users choose together, so histories can't be drawn from it.
    Fit user-factorization."""


class ComparedWithOther(DataError):
    path: object
    text = """{path} has a different catalog than the model, so items can't be matched. Compare with the data
    that the model was trained on."""
