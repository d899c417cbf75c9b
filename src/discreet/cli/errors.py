"""Errors of the command line: options that are missing, conflict, or don't apply."""

from __future__ import annotations

from pathlib import Path

from discreet.core.errors import BudgetError, DataError, FileError, ParameterError, PrivacyError


class _Reasoned(ParameterError):
    """Options that don't fit together, with the rule that they break."""

    options: tuple[str, ...]
    why: str

    @property
    def rule(self) -> str:
        """The rule as a sentence."""
        return f"{self.why[:1].upper()}{self.why[1:]}."


class OptionNeeds(_Reasoned):
    needs: str
    text = "{options:all} can't be used without {needs}. {rule} Add {needs}, or remove {options:all}."


class OptionsConflict(_Reasoned):
    text = "{first} can't be combined with {others:any}. {rule} Remove {first} or the others."

    @property
    def first(self) -> str:
        """The option that the others contradict."""
        return self.options[0]

    @property
    def others(self) -> tuple[str, ...]:
        """The other options."""
        return self.options[1:]


class OptionDoesNotApply(_Reasoned):
    to: str
    text = "{options:all} can't be used with {to}. {rule} Remove {options:all}."


class OptionMissing(ParameterError):
    options: tuple[str, ...]
    text = "{options:any} is missing, and the command needs it. Pass {options:any}."

    def template(self) -> str:
        """Return the template; of several options exactly one is needed."""
        several = "The command needs exactly one of {options:any}. Pass one of them."
        return several if len(self.options) > 1 else self.text


class ArgumentsMissing(ParameterError):
    command: str
    arguments: tuple[str, ...]
    text = "`{command}` needs {arguments:all}. `{command} --help` explains what to pass."


class WrongArguments(ParameterError):
    command: str
    reason: str
    text = "{reason} `{command} --help` lists what it accepts."

    def template(self) -> str:
        """Return the template; a reason that has advice needs no second one."""
        return "{reason}" if "`" in self.reason or self.reason.endswith("?") else self.text


class OptionEmpty(ParameterError):
    option: str
    text = "{option} is empty, but it needs a text. Pass a text, or remove the option."


class UnsupportedByModel(ParameterError):
    model: str
    option: str
    why: str
    text = """{model} doesn't support {option}: {why}. Remove {option}, or choose another model: `discreet
    models` lists them."""


class WrongForm(ParameterError):
    option: str
    form: str
    given: str
    text = "{option} is {given!r}, which has the wrong form. Pass {option} in the form {form}."


class NoHistoryFile(FileError):
    path: Path
    text = """{path} doesn't exist, so the history can't be read. Write the user's items to a file, one ID per
    line."""


class SetByOption(ParameterError):
    name: str
    text = "--set can't change {name}, which has an option of its own. Pass --{name} instead."


class ShardsNeeded(ParameterError):
    option: str = "--on"
    text = "{option} reads only folders of shards, and this isn't one. Make one with `discreet data shard`."


class FixedByShards(ParameterError):
    option: str
    folder: str
    text = """{option} can't be changed, because it was fixed when {folder} was made. Pass it to `discreet
    data shard` instead."""


class ShardsGiven(ParameterError):
    folder: str
    text = """{folder} is a folder of shards, which this command can't read. Pass the files that the folder
    was made from."""


class LedgerMissing(FileError):
    path: Path
    text = """{path} doesn't exist. `discreet fit --ledger FILE` creates a ledger, or add --epsilon to set a
    budget here."""


class DatasetNotInLedger(ParameterError):
    path: Path
    name: str
    known: tuple[str, ...]
    text = "{path} has no spending and no budget for {name!r}. Pass one of its names: {known:any}."


class NoPrivacyBudget(ParameterError):
    model: str
    text = "{model} isn't private, so it can't have a privacy budget. Choose a private model."


class FittedModelGiven(ParameterError):
    path: str
    model: str
    text = """{path} is a fitted model, and an audit fits a model many times. Name the model: discreet model
    audit {model}."""


class OnlyInProcess(ParameterError):
    model: str
    text = """{model} answers only in the process that fitted it, so it can't be written to a file. Use it
    from Python."""


class OldCampaign(ParameterError):
    text = """This campaign has format version 1, which has no sampling tables, so devices can't check it.
    Create the campaign again."""


class NotServable(FileError):
    path: Path
    text = """{path} is neither a campaign nor a model, so it can't be served. Pass a file of `discreet
    campaign new` or `discreet fit`."""


class OutputFailed(FileError):
    reason: str
    text = "Standard output can't be written: {reason}. Check the disk or the program that reads it."


class TitlesGone(FileError):
    path: Path
    text = "Earlier releases read titles from {path}, which no longer exists. Pass a table with --titles."


class NotSigned(FileError):
    path: Path
    text = """{path} isn't signed, so its origin can't be checked. Sign it with `discreet model sign`, or
    ask its author for a signature."""


class OtherSigner(FileError):
    path: Path
    key: str
    text = """{path} is signed with a different key ({key}). Verify with that signer's key, or don't trust the
    file."""


class EmptyYear(DataError):
    begins: str
    first: str
    last: str
    text = """No rating is in the year that begins on {begins}: the data covers {first} to {last}. Choose
    another --from. No budget was spent."""


class ReleasesSkipped(ParameterError):
    missed: int
    text = "--release would skip {missed:release|releases} without new ratings. To skip them, add --yes."


class HeaderOrUnknownItem(DataError):
    file: str
    column: str
    text = """All lines of {file} are in the model's catalog except the first, which may be a header. If it is
    a header, pass --columns item={column}. Otherwise pass --ignore-unknown."""


class RunTooExpensive(BudgetError):
    epsilon: float
    name: str
    left: float
    text = """The run costs epsilon={epsilon}, and {name!r} has {left} left. Raise the budget with `discreet
    budget set`, or decline the run. No budget was spent."""


class PartyDeclined(PrivacyError):
    text = """You did not confirm the run, so the party doesn't take part. To take part, start the command
    again and answer yes, or pass --yes. No budget was spent."""
