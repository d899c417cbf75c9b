"""Errors of audits: what can't be audited, and files of audits that can't be read."""

from __future__ import annotations

from discreet.core.errors import DataError, DiscreetError, FileError, ParameterError, PrivacyError


class NotNumbers(DataError):
    text = """The function returned something other than numbers, which an audit can't compare. Return a
    number or an array of numbers."""


class NotAuditable(ParameterError):
    model: str
    view: str
    text = """{model} can't be audited by its {view}, which it doesn't publish. Audit its transcript or file,
    without data."""


class NotAnAudit(FileError):
    path: object
    text = """{path} isn't a run of audits of this version, so it can't be resumed and was not changed. Choose
    another file."""


class StrayError(DiscreetError):
    """A release that an audit can't account for."""


class UnknownDraw(StrayError):
    draw: str
    text = """The audit doesn't know draws called {draw}, so it can't compute their privacy cost. Register the
    mechanism."""


class DrawsDiffer(StrayError):
    draw: int
    text = """Draw {draw} differs in number, size, or noise scale on the other dataset, which reveals the
    difference. Make draws depend on public facts only."""


class NotReplayable(PrivacyError):
    model: str
    text = """{model} can't be audited: with the same data and mechanism outputs it publishes a different
    file, or it calls no recorded mechanism. Draw all randomness from PrivacyRandom."""


class AuditStopped(PrivacyError):
    model: str
    reason: str
    text = "{model} can't be audited: {reason} Draw all randomness from PrivacyRandom."
