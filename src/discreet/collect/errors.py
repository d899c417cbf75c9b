"""Errors of campaigns, devices and collected reports."""

from __future__ import annotations

from discreet.core.errors import BudgetError, DataError, ParameterError


class WrongReports(ParameterError):
    """A model was given reports of a mechanism that it doesn't read."""

    model: str
    wanted: str
    came: str
    text = "{model} reads reports of {wanted}, not of {came}. Use a model of this campaign's mechanism."


class DifferentEpsilon(ParameterError):
    """Reports were made with an epsilon that the model doesn't state."""

    epsilon: float
    reported: float
    text = "The reports were made with epsilon={reported!r}, and the model states {epsilon!r}. Use theirs."


class TooFewReports(DataError):
    """Reports come from one sender, or are about one item."""

    senders: int
    items: int
    text = (
        "Reports must come from two or more senders and be about two or more items. These come from "
        "{senders:sender|senders} and are about {items:item|items}."
    )


class InteractionsNeedHiding(ParameterError):
    """A campaign asked for interactions, and not for the whole catalog."""

    text = (
        "A report of an interaction alone reveals it. Pass {arg:hide_items=True}: devices then answer "
        "for all items."
    )


class AnsweredRound(ParameterError):
    """A device was asked twice for the same round, or for a round that the campaign doesn't have."""

    number: int
    text = "This device doesn't answer round {number}: it answers each round of its campaign once."


class DifferentCampaign(ParameterError):
    """A message belongs to a different campaign."""

    text = "This message belongs to a different campaign."


class NoReports(ParameterError):
    """A model doesn't learn from reports of devices."""

    model: str
    text = (
        "{model} doesn't learn from reports of devices. local-channel, local-sgd, one-bit-input, "
        "local-nuclear and neighbours do, each from its own mechanism."
    )


class RoundsCostMore(BudgetError):
    """All rounds of a campaign cost more than a user allows."""

    cost: float
    budget: float
    text = "All rounds cost epsilon={cost:g}, more than the budget of {budget:g}. Allow it with {arg:budget}."


class UnusableHistory(DataError):
    """A history has a rating that isn't finite, or an item twice or outside the catalog."""

    text = (
        "Each item of a history must be in the campaign's catalog, appear once, and have a finite "
        "rating. Nothing was answered."
    )


class NoRounds(ParameterError):
    """A command about rounds was given a campaign without rounds."""

    text = "This campaign has no rounds. Create one with {arg:rounds=10}."


class NoTables(ParameterError):
    """A campaign with rounds has no tables to draw from, so they can't be checked."""

    text = "A campaign with rounds has no tables to check."


class RoundsOver(ParameterError):
    """All rounds of a campaign are closed."""

    rounds: int
    text = "All {rounds:round|rounds} are closed. Fit the model with `discreet campaign fit`."


class EmptyRound(DataError):
    """A round without answers can't be closed."""

    number: int
    text = "Round {number} has no answers yet, so it stays open. Close it when devices have answered."


class ClosedMeanwhile(DataError):
    """Another command closed the round first."""

    number: int
    text = "Another command closed round {number} first. Nothing was changed."


class NoClosedRound(DataError):
    """No round is closed, so there is nothing to learn from."""

    text = "No round is closed yet, so nothing can be learned. Close one with `discreet campaign next-round`."


class DifferentModel(ParameterError):
    """Rounds of gradients were given to a model that doesn't learn from them."""

    model: str
    text = "{model} doesn't learn from rounds of gradients. Use pg-mf, without settings."
