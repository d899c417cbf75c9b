"""Errors of audits: what can't be audited, and files of audits that can't be read."""

from __future__ import annotations

from discreet.core.errors import DataError, DiscreetError, FileError, ParameterError, PrivacyError


class NotNumbers(DataError):
    """An audited function returned something other than numbers."""

    text = (
        "The function returned something other than numbers, which an audit can't compare. Return a number "
        "or an array of numbers."
    )


class NotAuditable(ParameterError):
    """A model can't be audited from this view."""

    model: str
    view: str
    text = (
        "{model} can't be audited by its {view}, which it doesn't publish. Audit its transcript or file, "
        "without data."
    )


class NotAnAudit(FileError):
    """A file has no run of audits that this version can continue."""

    path: object
    text = (
        "{path} isn't a run of audits of this version, so it can't be resumed and was not changed. Choose "
        "another file."
    )


class StrayError(DiscreetError):
    """A release that an audit can't account for."""


class UnknownDraw(StrayError):
    """An audit doesn't know the privacy cost of a draw."""

    draw: str
    text = "An audit doesn't know the privacy cost of a draw called {draw}. Register the mechanism."


class DrawsDiffer(StrayError):
    """The draws on two neighboring datasets differ in number, size or noise."""

    draw: int
    text = (
        "Draw {draw} differs in number, size, or noise scale on the other dataset, which reveals the "
        "difference. Make draws depend on public facts only."
    )


class NotReplayable(PrivacyError):
    """A fit can't be replayed from its mechanism outputs."""

    model: str
    text = (
        "{model} can't be audited: with the same data and mechanism outputs it publishes a different "
        "file, or it calls no recorded mechanism. Draw all randomness from PrivacyRandom."
    )


class AuditStopped(PrivacyError):
    """An audit met a release that it can't account for."""

    model: str
    reason: str
    text = "{model} can't be audited: {reason} Draw all randomness from PrivacyRandom."
