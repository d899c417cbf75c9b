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
    """An option only works together with another one."""

    needs: str
    text = "{options:all} can't be used without {needs}. {rule} Add {needs}, or remove {options:all}."


class OptionsConflict(_Reasoned):
    """The first option contradicts or repeats the others."""

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
    """An option has no meaning for what the command was given."""

    to: str
    text = "{options:all} can't be used with {to}. {rule} Remove {options:all}."


class OptionMissing(ParameterError):
    """The command needs one of several options."""

    options: tuple[str, ...]
    text = "{options:any} is missing, and the command needs it. Pass {options:any}."

    def template(self) -> str:
        """Return the template; of several options exactly one is needed."""
        several = "The command needs exactly one of {options:any}. Pass one of them."
        return several if len(self.options) > 1 else self.text


class OptionEmpty(ParameterError):
    """An option was given without text."""

    option: str
    text = "{option} is empty. Pass a text, or remove the option."


class UnsupportedByModel(ParameterError):
    """The model can't do what an option asks for."""

    model: str
    option: str
    why: str
    text = (
        "{model} doesn't support {option}: {why}. Remove {option}, or choose another model: `discreet "
        "models` lists them."
    )


class WrongForm(ParameterError):
    """The value of an option doesn't have the form that the option needs."""

    option: str
    form: str
    text = "{option} doesn't have the form that the command can read. Pass {option} in the form {form}."


class SetByOption(ParameterError):
    """A setting has an option of its own."""

    name: str
    text = "--set can't change {name}, which has an option of its own. Pass --{name} instead."


class ShardsNeeded(ParameterError):
    """Only a folder of shards can be used on a cluster."""

    option: str = "--on"
    text = "{option} reads only folders of shards. Make one with `discreet data shard`."


class FixedByShards(ParameterError):
    """An option was decided when a folder of shards was made."""

    option: str
    folder: str
    text = "{option} was fixed when {folder} was made. Pass it to `discreet data shard`."


class ShardsGiven(ParameterError):
    """A command that reads files was given a folder of shards."""

    folder: str
    text = (
        "{folder} is a folder of shards, which this command can't read. Pass the files that it was made from."
    )


class LedgerMissing(FileError):
    """The ledger does not exist."""

    path: Path
    text = (
        "{path} doesn't exist. `discreet fit --ledger FILE` creates a ledger, or add --epsilon to set a "
        "budget here."
    )


class DatasetNotInLedger(ParameterError):
    """The ledger has no entry and no budget for a name."""

    path: Path
    name: str
    known: tuple[str, ...]
    text = "{path} has no spending and no budget for {name!r}. Pass one of its names: {known:any}."


class NoPrivacyBudget(ParameterError):
    """A model without privacy has no privacy budget."""

    model: str
    text = "{model} isn't private, so it can't have a privacy budget. Choose a private model."


class FittedModelGiven(ParameterError):
    """An audit was given a model file instead of the name of a model."""

    path: str
    model: str
    text = (
        "{path} is a fitted model, and an audit fits a model many times. Name the model: discreet model "
        "audit {model}."
    )


class OnlyInProcess(ParameterError):
    """A model answers only in the process that fitted it."""

    model: str
    text = (
        "{model} answers only in the process that fitted it, so it can't be written to a file. Use it "
        "from Python."
    )


class OldCampaign(ParameterError):
    """A campaign file has no sampling tables."""

    text = "This campaign has format version 1, which has no sampling tables. Create the campaign again."


class NotServable(FileError):
    """A file is neither a campaign nor a model."""

    path: Path
    text = (
        "{path} is neither a campaign nor a model. Pass a file of `discreet campaign new` or `discreet fit`."
    )


class OutputFailed(FileError):
    """Standard output could not be written."""

    reason: str
    text = "Standard output can't be written: {reason}. Check the disk or the program that reads it."


class TitlesGone(FileError):
    """The table of titles of earlier releases no longer exists."""

    path: Path
    text = "Earlier releases read titles from {path}, which no longer exists. Pass a table with --titles."


class NotSigned(FileError):
    """A model file has no signature."""

    path: Path
    text = "{path} is not signed. Sign it with `discreet model sign`, or ask its author for a signature."


class OtherSigner(FileError):
    """A model file is signed with a different key."""

    path: Path
    key: str
    text = (
        "{path} is signed with a different key ({key}). Verify with that signer's key, or don't trust "
        "the file."
    )


class EmptyYear(DataError):
    """No rating is in the simulated year."""

    begins: str
    first: str
    last: str
    text = (
        "No rating is in the year that begins on {begins}: the data covers {first} to {last}. Choose "
        "another --from. No budget was spent."
    )


class ReleasesSkipped(ParameterError):
    """A release number would skip releases that were never made."""

    missed: int
    text = "--release would skip {missed:release|releases} without new ratings. To skip them, add --yes."


class HeaderOrUnknownItem(DataError):
    """The first line of a history is not in the catalog, and all other lines are."""

    file: str
    column: str
    text = (
        "The first line of {file} isn't in the model's catalog, and all other lines are. If it is a "
        "header, pass --columns item={column}. Otherwise pass --ignore-unknown."
    )


class RunTooExpensive(BudgetError):
    """A federated run costs more than the budget that is left."""

    epsilon: float
    name: str
    left: float
    text = (
        "The run costs epsilon={epsilon}, and {name!r} has {left} left. Raise the budget with `discreet "
        "budget set`, or decline the run. No budget was spent."
    )


class PartyDeclined(PrivacyError):
    """The operator did not confirm a federated run."""

    text = (
        "You did not confirm the run, so the party doesn't take part. To take part, start the command again "
        "and answer yes, or pass --yes. No budget was spent."
    )
