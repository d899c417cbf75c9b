"""Errors of federations: agreements, keys, kept states, and runs that can't continue."""

from __future__ import annotations

from discreet.core.errors import DataError, DiscreetError, FileError, ParameterError, PrivacyError


class FederationError(DiscreetError):
    """A run that cannot continue; finished rounds are stored and the run can be resumed."""


class CannotAverage(ParameterError):
    model: str
    text = """{model} can't be averaged over parties, because it has no item profiles. Use
    implicit-objective with loss=shared, dpimf or dpmf, or {arg:protocol=sums}."""


class SharedUsersAreSimulated(ParameterError):
    text = """Parties of an agreement share items, but these parties share users, which works only in a
    simulation. Use solve=items, or simulate."""


class NoGuaranteeAsPrinted(ParameterError):
    epsilon: float
    text = """A protocol that runs as its paper states it has no guarantee, so its epsilon can't be
    {epsilon:g}. Pass an infinite epsilon."""


class NotOverParties(ParameterError):
    model: str
    reason: str
    text = "{model} cannot run over parties: {reason}. Choose a model that learns from sums."


class MoreThanSums(ParameterError):
    what: str
    text = """This model looks at more than sums over users ({what}), so it can't run over parties. Choose
    a model that learns from sums."""


class OnlyGaussianShares(ParameterError):
    text = """Parties can share Gaussian noise only, and delta 0 needs Laplace noise. Choose a delta above
    0, or a protocol with own noise."""


class StatisticNotAnswered(FederationError):
    statistic: str
    text = """{statistic} isn't a statistic that parties know, so they can't answer it. List the statistics of
    your model in `statistics`. Their fields must be numbers and arrays, and their names must be
    unique."""


class TrainingOutOfStep(FederationError):
    text = "Training has not asked for this sum, or is not finished. Answer each question once, in order."


class TooManyItems(DataError):
    count: int
    most: int
    text = "The lists name {count:,} items, but the maximum is {most:,}. Shorten the lists."


class ItemsNotInUnion(DataError):
    count: int
    of: int
    salted: bool = False
    text = "{count:,} of {of:,} items are not in the united list{how}. Agree on a list with all items."

    @property
    def how(self) -> str:
        """How the items were compared."""
        return " under this salt" if self.salted else ""


class ItemsMerged(DataError):
    count: int
    of: int
    text = """{count:,} of {of:,} items have the same name as another one in the united list, so a user's
    two items would count as one. Rename them."""


class BadSalt(FileError):
    path: object
    least: int
    text = """{path} isn't a readable file with a secret of at least {least} bytes, so item hashes could
    be guessed. Pass a longer secret."""


class NothingAlone(DataError):
    text = """No party has both training ratings and held-out ratings, so parties can't be scored alone. Use
    fewer parties."""


class BadMember(ParameterError):
    name: str
    text = """{name!r} can't be the name or the key of a member. Use letters, digits, '-', '_', and '.', and
    a different name and key for each member. The names coordinator, keeper, and authority are taken."""


class BadPublicKey(ParameterError):
    text = "A member's public key must be a readable key of a NIST elliptic curve. Ask the member for it."


class BadAddress(ParameterError):
    address: str
    text = "{address!r} isn't an address of the form HOST:PORT. Write it like coordinator.example:9192."


class NotAnAgreement(FileError):
    folder: object
    text = """{folder} does not have an agreement that `discreet federation init` wrote with this version of
    discreet. Use the folder of a member."""


class NotAgreedCatalog(DataError):
    path: object
    text = """{path} isn't the catalog of the agreement: its content changed. Get the file again from the
    author of the agreement."""


class KeyOpen(FileError):
    path: object
    mode: str
    text = """{path} is open to other users of this machine (mode {mode}). If no one else copied it, run
    `chmod 600 {path}`. Otherwise make a new key."""


class BadPrivateKey(FileError):
    path: object
    text = """{path} isn't a readable private key of a NIST elliptic curve in PEM format, which signatures
    need. Pass such a key."""


class NotAMember(FileError):
    folder: object
    role: str = "member"
    text = """The key in {folder} isn't the key of a {role} of this run, so this machine can't act as the
    {role}. Use the folder of a {role}."""


class NoMemberFolder(FileError):
    folder: object
    text = "{folder} does not have a member's certificate, key, and authority. Use the folder of a member."


class FileTaken(FileError):
    path: object
    text = """{path} already exists, and this command doesn't overwrite it. Choose another place. Nothing
    was changed."""


class CannotUse(FileError):
    path: object
    why: str | None
    text = "{path} cannot be used: {why}. Choose another place on a local disk, or another port."


class SocketPathTooLong(FileError):
    path: object
    text = "{path} is too long for a socket's name. Use a folder with a shorter path."


class StateClosed(FileError):
    why: str = "it was closed, or an earlier write failed"
    text = "The state of this run cannot be written: {why}. Start again from its file."


class StateDamaged(FileError):
    path: object
    text = """{path} is damaged and was not changed. A party can't continue from an older copy.
    docs/federated.md lists what each member does after a loss."""


class NotAState(FileError):
    path: object
    text = "{path} isn't the state of a run, so it was not changed. Choose another file."


class StateInUse(FileError):
    path: object
    text = "{path} is in use: a run's state belongs to one process at a time. Stop the other process."


class NoMemory(PrivacyError):
    text = """A party needs a ledger or a state file: without them it would answer again after a restart.
    Pass one of them."""


class NoUnitedList(PrivacyError):
    text = """Parties that share users keep their items to themselves, so they have no united list of
    items. Ask each party for its own items."""


class NothingToTune(PrivacyError):
    text = "These parties share items, but items can be tuned only if parties share users. Remove the call."


class StateForgotten(PrivacyError):
    run: str
    text = """The ledger has the cost of run {run!r}, but the party's state doesn't have its answers in that
    run. Agree on a new run. Don't restore an older copy of the state: it can't continue this run."""


class OtherSettings(PrivacyError):
    run: str
    text = """Run {run!r} started with different settings, and its cost covers only those settings. Continue
    with the settings of the agreement, or agree on a new run."""


class DrawEndedProcess(PrivacyError):
    times: int
    text = """The process ended {times} times while it drew this answer, so the party can't continue this
    run. Check its memory, and agree on a new run."""


class ImpossibleSum(FederationError):
    what: str
    suspects: tuple[str, ...]
    text = """The sum of {what} over {suspects:all} is out of range, so at least one party sent an invalid
    answer. Masks hide which one. Start a new run without the party that you don't trust. Nothing was
    published or kept."""


class NoModelFromSum(FederationError):
    step: int
    parties: tuple[str, ...]
    why: str
    text = """The sum of step {step} over {parties:all} is in range, but no model can be computed from it
    ({why}). Nothing was published. Begin a new run."""


class UseRunRounds(FederationError):
    text = """Parties that share users each get their own model, so no single model can be trained. Call
    run_rounds()."""


class TooManySteps(FederationError):
    most: int
    text = "The protocol did not end after {most:round|rounds}, so it may never end. Use another protocol."


class TooFewAnswers(FederationError):
    what: str
    absent: tuple[str, ...]
    of: int
    least: int
    text = """The sum of {what} waits for {absent:all}: it needs answers of {least} of {of} parties. Nothing
    was published. Ask again when they are back."""


class SetNotConfirmed(FederationError):
    parties: tuple[str, ...]
    step: int
    text = """{parties:all} answered step {step}, but did not confirm which parties are in its sum, so the sum
    can't be revealed. Resume the run when they are back, or start a new run without them."""


class StepWaits(FederationError):
    parties: tuple[str, ...]
    step: int
    text = """Step {step} waits for {parties:all}, because its sum must contain the answers that they gave
    before. Resume the run when they are back."""


class KeyNotAccepted(FederationError):
    text = """The keeper rejected the key of a mask, so nothing was sent: without the key, no one could remove
    the mask. Agree on a new run."""


class KeeperSilent(FederationError):
    text = """The keeper of masks gave no usable answer, so no sum can be unmasked. Nothing was drawn or
    revealed. Resume the run later."""


class SumNotRevealed(FederationError):
    text = """The keeper did not reveal the sum of masks, because too few parties answered, or other parties
    than before a crash. Resume the run when they are back."""


class KeeperUnreachable(FederationError):
    text = "The keeper of masks can't be reached, so no sum can be unmasked. Resume the run later."


class WrongKeeper(FederationError):
    text = "This isn't the agreed keeper of masks: its key differs from the agreed key. Check the address."


class FlowerMissing(FileError):
    folder: object
    variable: str
    text = """Flower is not installed in {folder}. Install discreet[federated] there, or name the folder of
    its programs with {arg:flower} or {variable}."""


class AddressTaken(FederationError):
    address: str
    why: str = "another program listens there"
    text = "{address} can't be used: {why}. Stop the program that uses it, or agree on a different port."


class FlowerFailed(FederationError):
    what: str
    how: str
    log: object
    reason: str | None = None
    text = "Flower's {what} {how}.{why} {log} shows more. Start the run again to resume it."

    @property
    def why(self) -> str:
        """The program's last error."""
        return "" if self.reason is None else f" Its last error: {self.reason}."
