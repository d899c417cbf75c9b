"""Errors of campaigns, devices and collected reports."""

from __future__ import annotations

from discreet.core.errors import BudgetError, DataError, FileError, ParameterError, PrivacyError


class WrongReports(ParameterError):
    model: str
    wanted: str
    came: str
    text = "{model} reads reports of {wanted}, not of {came}. Use a model of this campaign's mechanism."


class DifferentEpsilon(ParameterError):
    epsilon: float
    reported: float
    text = """The reports were made with epsilon={reported!r}, and the model states {epsilon!r}, so its
    guarantee would be wrong. Pass the epsilon of the reports."""


class TooFewReports(DataError):
    senders: int
    items: int
    text = """The reports come from {senders:sender|senders} and cover {items:item|items}, but a model needs
    at least two of each. Wait for more reports."""


class InteractionsNeedHiding(ParameterError):
    text = """A report of an interaction alone reveals it. Pass {arg:hide_items=True}: devices then answer for
    all items."""


class AnsweredRound(ParameterError):
    number: int
    text = """This device doesn't answer round {number}: it answers each round of its campaign only once. Wait
    for the next round."""


class DifferentCampaign(ParameterError):
    what: str = "message"
    text = """This {what} belongs to a different campaign, so it can't be used here. Use the campaign it
    was made for."""


class DifferentTotals(DataError):
    text = "These totals belong to different campaigns, so they don't add up. Add totals of one campaign."


class NoReports(ParameterError):
    model: str
    text = """{model} doesn't learn from reports of devices, because it has no model of their noise. Use
    local-channel, local-sgd, one-bit-input, local-nuclear, or neighbours, each with its own mechanism."""


class RoundsCostMore(BudgetError):
    cost: float
    budget: float
    text = """All rounds cost epsilon={cost:g}, more than the budget of {budget:g}. Allow it with
    {arg:budget}, or take part in fewer rounds."""


class UnusableHistory(DataError):
    text = """The history can't be used: each item must be in the campaign's catalog, appear once, and
    have a finite rating. Correct it. Nothing was answered."""


class NoRounds(ParameterError):
    text = """This campaign has no rounds, so you can't ask or close a round. Create a campaign with
    {arg:rounds=10}."""


class NoTables(ParameterError):
    text = """A campaign with rounds has no tables to check, because its devices send gradients. Check a
    campaign without rounds."""


class RoundsOver(ParameterError):
    rounds: int
    text = """All {rounds:round|rounds} are closed, so no further round can be asked. Fit the model with
    `discreet campaign fit`."""


class EmptyRound(DataError):
    number: int
    text = "Round {number} has no answers yet, so it stays open. Close it when devices have answered."


class ClosedMeanwhile(DataError):
    number: int
    text = """Another command already closed round {number}, and a round can be closed only once. Continue
    with the next round. Nothing was changed."""


class NoClosedRound(DataError):
    text = "No round is closed yet, so nothing can be learned. Close one with `discreet campaign next-round`."


class DifferentModel(ParameterError):
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
    text = """The request shares a factor with the invitation key, and sending it would reveal that factor.
    Ask the organizer for a new campaign. Nothing was sent."""


class NotAnInvitationKey(FileError):
    text = """This isn't a secret invitation key, so it can't sign tokens. Pass the key that was written
    with the campaign ({arg:invited})."""


class UnsignedAnswer(DataError):
    text = """The service's answer isn't signed with the key in its campaign, so someone may have changed
    it. Ask the campaign's organizer."""


class BadTokenRequest(DataError):
    text = """The request for a token isn't valid: it must have a code, and a blinded number below the
    key's modulus. Make it with the client."""


class WrongSignature(DataError):
    text = """The computed signature is wrong, perhaps because of a hardware fault, so it wasn't sent. Ask
    again."""


class NotAToken(ParameterError):
    text = """This isn't a kept request for a token, so the token can't be opened. Pass the file that the
    request was kept in."""


class BadInvitation(ParameterError):
    text = "The invitation isn't complete: it must have 24 letters and digits. Copy all of them."


class NotInvited(ParameterError):
    text = "This campaign accepts reports from everyone, so it doesn't need an invitation. Send without one."


class NotACampaignError(ParameterError):
    text = "This isn't a campaign of discreet, so it can't be read. Ask its organizer for the file."


class BadCampaign(ParameterError):
    text = "This campaign is damaged: a part is missing or breaks a rule. Ask its organizer for the file."


class DifferentVersion(ParameterError):
    text = """This campaign was written by a different version of discreet, which this one can't read.
    Install a newer one."""


class DifferentKind(ParameterError):
    kind: str
    text = "This campaign is of a different kind: it doesn't ask for {kind}. Use the device of its kind."


class TooOldToInvite(ParameterError):
    version: int
    text = """Campaigns of version 1 can't invite devices, because they don't name a key. Use version
    {version}, or omit the invitations."""


class NothingKept(DataError):
    text = """No report was kept, so there is nothing to learn from. Wait for reports, or check why they
    were rejected."""


class PartOfCatalog(ParameterError):
    text = """This campaign asks about only some items, but a model needs answers for all items. Use
    CatalogTotals."""


class NotInCatalog(DataError):
    count: int
    of: int
    text = """{count:item|items} of {of} aren't in the campaign's catalog, so the campaign doesn't ask about
    them. Remove them. Nothing was answered."""


class NotADevice(ParameterError):
    text = """This isn't the state of a device that `Device.state` returned, so its draws aren't known.
    Pass that state."""


class TooManyAnswers(BudgetError):
    count: int
    most: int
    text = "{count} more answers would exceed this device's limit of {most} answers. Answer for fewer items."


class AnswerCostsMore(BudgetError):
    cost: float
    budget: float
    text = """Answering costs epsilon={cost:g}, more than the budget of {budget:g}. Choose a campaign that
    asks about fewer items, or allow the cost with {arg:budget}."""


class CopiedDevice(PrivacyError):
    text = """A device answers only in the process that created it: a copy would draw its answers again. Keep
    its state or message, and create a new device from that."""


class NoSamplingTable(ParameterError):
    mechanism: str
    text = """{mechanism} has no sampling table, which a campaign needs so that devices can draw exactly.
    Choose another mechanism."""


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
    mechanism: str
    known: tuple[str, ...]
    text = "{mechanism} isn't a mechanism for campaigns. Use one of {known:any}."


class OutsideOutputs(DataError):
    text = """Some reports are outside the range of the mechanism's outputs, so they can't come from it.
    Remove them, or pass the campaign's mechanism."""


class NoNoise(DataError):
    text = """Reports without noise have no finite privacy loss, so no epsilon covers them. Pass a finite
    epsilon."""
