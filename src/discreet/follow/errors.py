"""Errors of continual releases: new interactions, states, and parties that release together."""

from __future__ import annotations

from discreet.core.errors import DataError, FileError, ParameterError, PrivacyError
from discreet.federated.errors import FederationError


class UsersUnnamed(DataError):
    """Users are row numbers, which differ from batch to batch."""

    text = (
        "The users of this data are row numbers, which don't identify them in the next batch. Pass a column "
        "of IDs that stay the same during the whole period."
    )


class UndeclaredItems(DataError):
    """New ratings are of items that were not declared."""

    count: int
    of: int
    text = (
        "{count:,} of {of:rating is|ratings are} of undeclared items. Declare them with {arg:items}, or "
        "ignore them: {arg:drop_unknown=True}."
    )


class ValuesNeeded(DataError):
    """New rows lack values, or the columns differ in length."""

    text = "This period follows ratings, and each new row needs one. Pass {arg:values} of equal length."


class WrongColumnType(DataError):
    """A column of new ratings has a type that can't be used."""

    column: str
    kind: str
    found: str
    text = "{column} must be {kind}, not {found}. Convert the column first."


class PeriodUsedUp(PrivacyError):
    """All releases of a period were made."""

    most: int
    made: int
    text = (
        "The period has {most:release|releases}, and {made:,} were made. Start a new period, which costs a "
        "new budget. No budget was spent."
    )


class WrongRelease(PrivacyError):
    """A release was asked for out of order, or again."""

    release: int
    made: int
    text = (
        "Release {release:,} can't be made now, because {made:,} were made and each is drawn once, in order. "
        "Ask for release {next:,}. Nothing was drawn."
    )

    @property
    def next(self) -> int:
        """The release that can be made."""
        return self.made + 1


class NoReleaseYet(DataError):
    """No release was made yet."""

    text = "The period has no release yet. Add interactions to make the first release."


class TooManyUsersInPeriod(DataError):
    """Sums are exact for a limited number of users."""

    most: int
    text = "A period has at most {most:user|users}, because larger sums aren't exact. Use fewer users."


class BadPeriodRecipe(ParameterError):
    """The recipe of a continual release has other parts than a model and its settings."""

    model: str
    text = 'The recipe of a continual release has model = "{model}" and [settings] only. Remove the rest.'


class NotAPeriod(FileError):
    """A run fits one model and has no continual releases."""

    run: str
    text = "The run {run!r} fits one model, without continual releases. Use the commands for one model."


class KeeperHasNoItems(FileError):
    """Items were declared to the keeper of masks."""

    text = "The keeper of masks knows no items. Declare them at the coordinator and at the parties."


class NoState(FileError):
    """A path has no state of a continual release."""

    path: object
    text = "{path} has no state of a continual release. Start one first, or check the path."


class StateTaken(FileError):
    """A file exists where a state would be written."""

    path: object
    text = "{path} exists already and was not changed. Choose another file."


class StateBeingStarted(FileError):
    """Another process starts the same continual release."""

    path: object
    text = "{path} is being started by another process. Wait for it. No budget was spent."


class NotAReleaseState(FileError):
    """A file isn't the state of a continual release."""

    path: object
    text = "{path} is not the state of a continual release and was not changed. Check the path."


class OtherStateVersion(FileError):
    """A state was written by another version of discreet."""

    path: object
    found: int
    read: int
    text = "{path} has version {found} and was not changed. This discreet reads version {read}."


class StateUnusable(FileError):
    """The state of a continual release can't be used."""

    path: object
    why: str
    text = (
        "{path} can't be used: {why}. The file was not changed. An older copy can't continue: if the state "
        "is lost, begin a new period."
    )


class ReleaseIncomplete(FederationError):
    """Items can't be declared while parties answer a release."""

    release: int
    text = (
        "Release {release} was asked for and is not complete. Call release() until all parties answered, "
        "then declare the items."
    )


class ReleaseWaits(FederationError):
    """A release needs parties that did not answer."""

    release: int
    parties: tuple[str, ...]
    text = "Release {release} waits for {parties:all}. Ask again when they are back. Nothing was published."


class NotDeclaredItems(FileError):
    """A file has no items that were declared later."""

    path: object
    text = "{path} has no items that `federation declare` wrote. Declare the items again."


class TimesForReplay(DataError):
    """Ratings without times can't be replayed."""

    text = "A replay needs the time of each rating, and this data has none. Name the column of times."


class NothingBetween(DataError):
    """No rating is between two releases."""

    first: str
    last: str
    text = (
        "No rating is between two releases of this period: the data covers {first} to {last}. Choose another "
        "{arg:begins}, or check how times are read."
    )


class RatingsForEffects(ParameterError):
    """Effects of items need ratings."""

    text = "This period follows interactions, and item effects need ratings. Start it with a rating scale."


class NotCombinable(ParameterError):
    """A model can't be combined with a continual release."""

    model: str
    text = "{model} has no item vectors to combine with a continual release. Use user-factorization."


class StateMissing(PrivacyError):
    """The ledger has the cost of a run whose state is missing."""

    run: str
    text = (
        "The ledger has a cost of run {run!r}, but its state isn't here, and users who entered would enter "
        "again. Agree on a new run: an older copy of the state can't continue this one."
    )


class OtherAgreement(PrivacyError):
    """A state belongs to another agreement."""

    run: str
    text = (
        "This state belongs to run {run!r}, whose settings differ from the agreement. Use that agreement, or "
        "start a new period, which costs a new budget."
    )


class BadPeriodSettings(ParameterError):
    """Stored settings can't be read."""

    text = "The stored settings of the continual release can't be read. Restore the file, or start again."


class DrawnBefore(PrivacyError):
    """A release or a batch was used before."""

    what: str
    text = (
        "{what} was used in an earlier release, so nothing was drawn. Show the last release to write its "
        "model again. To use another release for it, pass {arg:again=True}."
    )


class MadeWithoutBatch(PrivacyError):
    """A release was made earlier, and a batch isn't in it."""

    release: int
    batch: str
    text = (
        "Release {release} was made without {batch}, so nothing entered. Remove {arg:release} to use the "
        "next release, or pass its number."
    )


class ShareNotShown(PrivacyError):
    """A state has only a party's share of the noise."""

    text = (
        "This state has one party's share of the noise, which doesn't satisfy the guarantee alone. The "
        "coordinator has the sums of all parties."
    )


class NotParquet(FileError):
    """New ratings of a party are not a Parquet file."""

    path: object
    text = (
        "{path} isn't a readable Parquet file of new ratings, and a continual release reads only Parquet. "
        'Convert the table, for example with polars.read_csv("week.csv").write_parquet("week.parquet").'
    )


class TooFewReleases(ParameterError):
    """A replay needs two releases."""

    text = "A replay measures what happens between two releases. Use at least 2 releases."
