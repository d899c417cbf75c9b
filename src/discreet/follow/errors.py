"""Errors of continual releases: new interactions, states, and parties that release together."""

from __future__ import annotations

from discreet.core.errors import DataError, FileError, ParameterError, PrivacyError
from discreet.federated.errors import FederationError


class UsersUnnamed(DataError):
    text = """This data identifies users by row numbers, which won't identify them in the next batch. Pass a
    column of IDs that don't change during the whole period."""


class UndeclaredItems(DataError):
    count: int
    of: int
    text = """{count:,} of {of:rating is|ratings are} of undeclared items. Declare them with {arg:items}, or
    ignore them: {arg:drop_unknown=True}."""


class ValuesNeeded(DataError):
    text = "This period follows ratings, so each new row needs a rating. Pass {arg:values} of equal length."


class WrongColumnType(DataError):
    column: str
    kind: str
    found: str
    text = "{column} must be {kind}, not {found}. Convert the column first."


class PeriodUsedUp(PrivacyError):
    most: int
    made: int
    text = """The period has {most:release|releases}, and all {made:,} were made. Start a new period, which
    costs a new budget. No budget was spent."""


class WrongRelease(PrivacyError):
    release: int
    made: int
    text = """Release {release:,} can't be made now, because {made:,} were made and each is drawn once, in
    order. Ask for release {next:,}. Nothing was drawn."""

    @property
    def next(self) -> int:
        """The release that can be made."""
        return self.made + 1


class NoReleaseYet(DataError):
    text = "The period has no release yet, so it has no model. Add interactions to make the first release."


class TooManyUsersInPeriod(DataError):
    most: int
    text = "A period has at most {most:user|users}, because larger sums aren't exact. Use fewer users."


class BadPeriodRecipe(ParameterError):
    model: str
    text = 'The recipe of a continual release has model = "{model}" and [settings] only. Remove the rest.'


class NotAPeriod(FileError):
    run: str
    text = """The run {run!r} fits one model and has no continual releases, so this command doesn't apply. Use
    the commands for one model."""


class KeeperHasNoItems(FileError):
    text = """The keeper stores no items, so you can't declare items there. Declare them at the coordinator
    and at the parties."""


class NoState(FileError):
    path: object
    text = "{path} has no state of a continual release. Start one first, or check the path."


class StateTaken(FileError):
    path: object
    text = "{path} already exists and was not changed. Choose another file."


class StateBeingStarted(FileError):
    path: object
    text = "{path} is being started by another process. Wait for it. No budget was spent."


class NotAReleaseState(FileError):
    path: object
    text = "{path} isn't the state of a continual release, so it was not changed. Check the path."


class OtherStateVersion(FileError):
    path: object
    found: int
    read: int
    text = """{path} has version {found}, but this version of discreet reads only version {read}. Use the
    version of discreet that wrote the file. The file was not changed."""


class StateUnusable(FileError):
    path: object
    why: str
    text = """{path} can't be used: {why}. The file was not changed. An older copy can't continue: if the
    state is lost, begin a new period."""


class ReleaseIncomplete(FederationError):
    release: int
    text = """Release {release} isn't complete, because some parties haven't answered. Call release() until
    all parties have answered, then declare the items."""


class NotDeclaredItems(FileError):
    path: object
    text = """{path} has no items that `discreet federation declare` wrote, so none can be added. Declare the
    items again."""


class TimesForReplay(DataError):
    text = "A replay needs the time of each rating, and this data has none. Name the column of times."


class NothingBetween(DataError):
    first: str
    last: str
    text = """No rating is between two releases of this period: the data covers {first} to {last}. Choose
    another {arg:begins}, or check how times are read."""


class RatingsForEffects(ParameterError):
    text = "This period follows interactions, and item effects need ratings. Start it with a rating scale."


class NotCombinable(ParameterError):
    model: str
    text = "{model} has no item vectors to combine with a continual release. Use user-factorization."


class StateMissing(PrivacyError):
    run: str
    text = """The ledger has a cost of run {run!r}, but the party's state is missing, so users who already
    entered could enter again. Agree on a new run. Don't restore an older copy of the state: it can't
    continue this run."""


class OtherAgreement(PrivacyError):
    run: str
    text = """This state belongs to run {run!r}, whose settings differ from the agreement. Use the agreement
    of that run, or start a new period, which costs a new budget."""


class BadPeriodSettings(ParameterError):
    text = "The stored settings of the continual release can't be read. Restore the file, or start again."


class DrawnBefore(PrivacyError):
    what: str
    text = """{what} was used in an earlier release, so nothing was drawn. Show the last release to write its
    model again. To use another release for it, pass {arg:again=True}."""


class MadeWithoutBatch(PrivacyError):
    release: int
    batch: str
    text = """Release {release} already exists without {batch}, so its ratings were not added. To add them to
    the next release, remove {arg:release} or pass the number of the next release."""


class ShareNotShown(PrivacyError):
    text = """The releases in this state can't be shown: they have only one party's share of the noise, which
    doesn't satisfy the guarantee. Ask the coordinator, which has the sums of all parties."""


class NotParquet(FileError):
    path: object
    text = """{path} isn't a readable Parquet file of new ratings, and a continual release reads only Parquet.
    Convert the table, for example with polars.read_csv("week.csv").write_parquet("week.parquet")."""


class TooFewReleases(ParameterError):
    text = """A replay measures what happens between two releases, so one isn't enough. Use at least 2
    releases."""
