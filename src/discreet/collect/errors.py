"""Errors of campaigns, devices and collected reports."""

from __future__ import annotations

from discreet.core.errors import BudgetError, DataError, FileError, ParameterError, PrivacyError


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
    """A message, or the state of a device, belongs to a different campaign."""

    what: str = "message"
    text = "This {what} belongs to a different campaign."


class DifferentTotals(DataError):
    """Totals of different campaigns were merged."""

    text = "These totals belong to different campaigns."


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


_KEY_RULES = {
    "bits": "The key of invitations must be an odd number of 2,048 to 4,096 bits.",
    "factor": "The key of invitations has a small prime factor, so requests and tokens could be matched.",
    "digits": "The key of invitations must be written in hexadecimal digits.",
    "exponent": "The key of invitations has a different exponent than 65537.",
}


class BadInvitationKey(ParameterError):
    """A key of invitations breaks a rule: `bits`, `factor`, `digits` or `exponent`."""

    rule: str

    def template(self) -> str:
        """Return the rule, and how a key is made."""
        return f"{_KEY_RULES[self.rule]} Create a campaign and its key with {{arg:invited}}."


class SharedFactor(DataError):
    """A request for a token shares a factor with the key, which would show in both."""

    text = "The key of invitations shares a factor with the request. Nothing was sent."


class NotAnInvitationKey(FileError):
    """A file doesn't contain a secret key of invitations."""

    text = "This isn't a secret key of invitations. A campaign is created with its key by {arg:invited}."


class UnsignedAnswer(DataError):
    """The answer to a request for a token has no signature under the campaign's key."""

    text = "The service's answer isn't signed with the key in its campaign. Ask its organizer."


class BadTokenRequest(DataError):
    """A request for a token has a part that is missing or too long."""

    text = "A request for a token must have a code, and a blinded number below the key's modulus."


class WrongSignature(DataError):
    """The machine computed a wrong signature, which could reveal the key."""

    text = "The computed signature is wrong, so it wasn't sent. Ask again."


class NotAToken(ParameterError):
    """A file doesn't contain a request for a token."""

    text = "This isn't a kept request for a token."


class BadInvitation(ParameterError):
    """A code of an invitation has the wrong form."""

    text = "An invitation has 24 letters and digits. Copy all of them."


class NotInvited(ParameterError):
    """A campaign without invitations was asked for its key."""

    text = "This campaign accepts reports from everyone, so it doesn't need an invitation."


class NotACampaignError(ParameterError):
    """A record, or a file, that isn't a campaign at all."""

    text = "This isn't a campaign of discreet."


class BadCampaign(ParameterError):
    """A campaign can't be read: a part is missing or breaks a rule."""

    text = "This campaign is damaged: a part is missing or breaks a rule. Ask its organizer for the file."


class DifferentVersion(ParameterError):
    """A campaign has a format that this version doesn't read."""

    text = "This campaign was written by a different version of discreet. Install a newer one."


class DifferentKind(ParameterError):
    """A campaign asks for something else than expected."""

    kind: str
    text = "This campaign is of a different kind: it doesn't ask for {kind}."


class TooOldToInvite(ParameterError):
    """A campaign of the first format names a key of invitations, which its text doesn't contain."""

    version: int
    text = "Campaigns of version 1 can't invite devices. Use version {version}, or omit the invitations."


class NothingKept(DataError):
    """A collection has no reports yet."""

    text = "No report was kept, so there is nothing to learn from."


class PartOfCatalog(ParameterError):
    """A model was asked for from a campaign whose devices answer about some items only."""

    text = "This campaign asks about some items only, and a model needs answers for all. Use CatalogTotals."


class NotInCatalog(DataError):
    """Some items are not in the campaign's catalog."""

    count: int
    of: int
    text = "{count:item|items} of {of} aren't in the campaign's catalog. Nothing was answered."


class NotADevice(ParameterError):
    """A state doesn't describe a device."""

    text = "This isn't the state of a device that `Device.state` returned."


class TooManyAnswers(BudgetError):
    """A device was asked for more answers than its budget allows."""

    count: int
    most: int
    text = "{count} more answers would exceed the {most} that this device may give. Answer for fewer items."


class AnswerCostsMore(BudgetError):
    """One answer to a campaign costs more than a user allows."""

    cost: float
    budget: float
    text = (
        "Answering costs epsilon={cost:g}, more than the budget of {budget:g}. Choose a campaign that asks "
        "about fewer items, or allow the cost with {arg:budget}."
    )


class CopiedDevice(PrivacyError):
    """A device was used in a process that was forked from its own."""

    text = (
        "A device answers only in the process that created it: a copy would draw its answers again. Keep its "
        "state or message, and create a new device from that."
    )


class NoSamplingTable(ParameterError):
    """A mechanism has no table from which devices can draw."""

    mechanism: str
    text = "{mechanism} has no sampling table for a campaign."


_TABLE_RULES = {
    "parts": "lack a part or have one too many",
    "mechanism": "aren't the tables of its mechanism",
    "loss": "reveal more than it guarantees",
    "words": "are damaged",
}


class BadTables(ParameterError):
    """The tables in a campaign break a rule: `parts`, `mechanism`, `loss` or `words`."""

    rule: str

    def template(self) -> str:
        """Return the rule."""
        return f"The campaign's tables {_TABLE_RULES[self.rule]}. Don't answer it."


class NotForCampaigns(ParameterError):
    """A mechanism can't be used in a campaign."""

    mechanism: str
    known: tuple[str, ...]
    text = "{mechanism} isn't a mechanism for campaigns. Use one of {known:any}."


class OutsideOutputs(DataError):
    """Reports are outside the range of a mechanism's outputs."""

    text = "Some reports are outside the range of the mechanism's outputs."


class NoNoise(DataError):
    """Reports without noise have no finite privacy loss."""

    text = "Reports without noise have no finite privacy loss."
