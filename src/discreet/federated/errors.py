"""Errors of federations: agreements, keys, kept states, and runs that can't continue."""

from __future__ import annotations

from discreet.core.errors import DataError, DiscreetError, FileError, ParameterError, PrivacyError


class FederationError(DiscreetError):
    """A run that cannot continue; finished rounds are stored and the run can be resumed."""


class CannotAverage(ParameterError):
    """Parties can't average this model."""

    model: str
    text = (
        "{model} can't be averaged over parties. Use implicit-objective with loss=shared, dpimf or dpmf, or "
        "{arg:protocol=sums}."
    )


class SharedUsersAreSimulated(ParameterError):
    """Real parties of one agreement share items, not users."""

    text = (
        "Parties that share users are simulated only. Real parties of one agreement share items: use "
        "solve=items."
    )


class NoGuaranteeAsPrinted(ParameterError):
    """A printed protocol was given a guarantee."""

    epsilon: float
    text = "A printed protocol has no guarantee, so that epsilon={epsilon:g} can't be its guarantee."


class NotOverParties(ParameterError):
    """A model can't be fitted from sums over parties."""

    model: str
    reason: str
    text = "{model} cannot run over parties: {reason}. Choose a model that learns from sums."


class MoreThanSums(ParameterError):
    """Training reads more of the data than sums over users."""

    what: str
    text = "This model looks at more than sums over users ({what}), so it cannot run over parties."


class OnlyGaussianShares(ParameterError):
    """A model asks for noise that parties can't share."""

    text = "Parties share Gaussian noise only. Choose a delta above 0, or a protocol with own noise."


class StatisticNotAnswered(FederationError):
    """A model asks for a statistic that parties don't answer."""

    statistic: str
    text = (
        "{statistic} is not a statistic that parties answer. List the statistics of your model in "
        "`statistics`. Their fields must be numbers and arrays, and their names must be unique."
    )


class TrainingOutOfStep(FederationError):
    """A sum came that training didn't ask for, or the model was asked for too early."""

    text = "Training has not asked for this sum, or is not finished. Answer each question once, in order."


class TooManyItems(DataError):
    """A list of items is too long."""

    count: int
    most: int
    text = "The lists name {count:,} items, and each may name {most:,} at most. Shorten the lists."


class ItemsNotInUnion(DataError):
    """A party has items that the united list lacks."""

    count: int
    of: int
    salted: bool = False
    text = "{count:,} of {of:,} items are not in the united list{how}. Agree on a list with all items."

    @property
    def how(self) -> str:
        """How the items were compared."""
        return " under this salt" if self.salted else ""


class ItemsMerged(DataError):
    """Two items of a party have one name in the united list."""

    count: int
    of: int
    text = "{count:,} of {of:,} items have the same name as another one in the united list. Rename them."


class BadSalt(FileError):
    """A file has no usable salt."""

    path: object
    least: int
    text = "{path} must be a readable file with a secret of at least {least} bytes."


class NothingAlone(DataError):
    """No party can be measured alone."""

    text = "No party has both ratings to learn from and held-out ratings. Use fewer parties."


class BadMember(ParameterError):
    """A name or a key of an agreement is not allowed."""

    name: str
    text = (
        "{name!r} cannot be the name or the key of a member. Names consist of letters, digits, '-', '_' and "
        "'.', each member has its own name and its own key, and coordinator, keeper and authority are taken."
    )


class BadPublicKey(ParameterError):
    """A member's public key can't be used."""

    text = "A member's public key must be a readable key of a NIST elliptic curve. Ask the member for it."


class BadAddress(ParameterError):
    """An address has another form."""

    address: str
    text = "{address!r} must have the form HOST:PORT."


class NotAnAgreement(FileError):
    """A folder has no agreement."""

    folder: object
    text = (
        "{folder} does not have an agreement that `discreet federation init` wrote with this version of "
        "discreet. Use the folder of a member."
    )


class NotAgreedCatalog(DataError):
    """A catalog differs from the agreed one."""

    path: object
    text = "{path} is not the catalog that was agreed on. Get the file from the agreement's author again."


class KeyOpen(FileError):
    """Other users of the machine can read or write a key."""

    path: object
    mode: str
    text = (
        "{path} is open to other users of this machine (mode {mode}). If no one else copied it, run "
        "`chmod 600 {path}`. Otherwise make a new key."
    )


class BadPrivateKey(FileError):
    """A file has no usable private key."""

    path: object
    text = "{path} must be a readable private key of a NIST elliptic curve, in PEM format."


class NotAMember(FileError):
    """A folder's key isn't one of the run's members."""

    folder: object
    role: str = "member"
    text = "The key in {folder} is not that of a {role} of this run. Use the folder of a {role}."


class NoMemberFolder(FileError):
    """A folder lacks what a member needs for TLS."""

    folder: object
    text = "{folder} does not have a member's certificate, key, and authority. Use the folder of a member."


class FileTaken(FileError):
    """A file exists, and is kept."""

    path: object
    text = "{path} exists already and was not changed. Choose another place."


class CannotUse(FileError):
    """A file, a socket, or an address can't be used."""

    path: object
    why: str | None
    text = "{path} cannot be used: {why}. Choose another place on a local disk, or another port."


class SocketPathTooLong(FileError):
    """A path is too long for a local socket."""

    path: object
    text = "{path} is too long for a socket's name. Use a folder with a shorter path."


class StateClosed(FileError):
    """The state of a run can't be written any more."""

    why: str = "it was closed, or an earlier write failed"
    text = "The state of this run cannot be written: {why}. Start again from its file."


class StateDamaged(FileError):
    """The state of a run is damaged."""

    path: object
    text = (
        "{path} is damaged and was not changed. A party can't continue from an older copy. "
        "docs/federated.md lists what each member does after a loss."
    )


class NotAState(FileError):
    """A file isn't the state of a run."""

    path: object
    text = "{path} is not the state of a run and was not changed. Choose another file."


class StateInUse(FileError):
    """Another process uses the state of a run."""

    path: object
    text = "{path} is in use: a run's state belongs to one process at a time. Stop the other process."


class NoMemory(PrivacyError):
    """A party would forget its answers."""

    text = "A party needs a ledger or a state file: without them it would answer again after a restart."


class NoUnitedList(PrivacyError):
    """Parties that share users have no common items."""

    text = "Parties that share users keep their items to themselves, so they have no united list of items."


class NothingToTune(PrivacyError):
    """Items are tuned by parties that share users only."""

    text = "Items are tuned if parties share users. These parties share items, and tune users' profiles."


class StateForgotten(PrivacyError):
    """The ledger has the cost of a run, and the party's state doesn't know its answers."""

    run: str
    text = (
        "The ledger has the cost of run {run!r}, but the party's state doesn't know what was answered in it. "
        "Agree on a new run. An older copy of the state can't continue this one."
    )


class OtherSettings(PrivacyError):
    """A run continues with other settings than it began with."""

    run: str
    text = "Run {run!r} began with other settings. Continue with those, or agree on a new run."


class DrawEndedProcess(PrivacyError):
    """A process ended several times while it drew one answer."""

    times: int
    text = "The process ended {times} times while it drew this answer. The party can't continue this run."


class ImpossibleSum(FederationError):
    """A sum that users and noise can't give, with the parties that can be the reason."""

    what: str
    suspects: tuple[str, ...]
    text = (
        "The sum of {what} over {suspects:all} is not one that users and noise can give. Masks hide whose "
        "answer is the reason. Nothing was published or kept. Begin a new run without the party that you "
        "can't vouch for."
    )


class NoModelFromSum(FederationError):
    """A possible sum gives no model."""

    step: int
    parties: tuple[str, ...]
    why: str
    text = (
        "The sum of step {step} over {parties:all} is possible, but no model follows from it ({why}). "
        "Nothing was published. Begin a new run."
    )


class UseRunRounds(FederationError):
    """Parties that share users have no common model."""

    text = "Parties that share users each get their own model. Call run_rounds()."


class TooManySteps(FederationError):
    """A protocol doesn't end."""

    most: int
    text = "The protocol did not end after {most:round|rounds}. Use another protocol."


class TooFewAnswers(FederationError):
    """Too few parties answered a question."""

    counted: int
    of: int
    step: int
    least: int
    text = (
        "Only {counted} of {of} parties answered step {step}, and {least} are needed. Resume the run when "
        "the others are back."
    )


class SetNotConfirmed(FederationError):
    """Parties that answered did not confirm the set of a sum."""

    parties: tuple[str, ...]
    step: int
    text = (
        "{parties:all} answered step {step}, but did not confirm the set of its sum. Resume the run when "
        "they are back, or begin a new run without them. No sum was revealed."
    )


class StepWaits(FederationError):
    """A step has one sum, and a party of it is away."""

    parties: tuple[str, ...]
    step: int
    text = (
        "Step {step} waits for {parties:all}: its sum was begun with them, and a step has one sum. Resume "
        "the run when they are back."
    )


class KeyNotAccepted(FederationError):
    """The keeper did not accept the key of a mask."""

    text = "The keeper did not accept the key of a mask, so nothing was sent. Agree on a new run."


class KeeperSilent(FederationError):
    """The keeper gave an answer that can't be used."""

    text = "The keeper of masks gave no usable answer. Nothing was drawn or revealed. Resume the run later."


class SumNotRevealed(FederationError):
    """The keeper did not reveal a sum of masks."""

    text = (
        "The keeper did not reveal the sum of masks: too few parties, or others than before a crash. Resume "
        "the run when they are back."
    )


class KeeperUnreachable(FederationError):
    """The keeper can't be reached."""

    text = "The keeper of masks cannot be reached. Resume the run later."


class WrongKeeper(FederationError):
    """A server at the keeper's address has another key."""

    text = (
        "The keeper of masks is not who it should be: its key differs from the agreed key. Check the address."
    )


class FlowerMissing(FileError):
    """Flower's programs are not where they should be."""

    folder: object
    variable: str
    text = (
        "Flower is not installed in {folder}. Install discreet[federated] there, or name the folder of its "
        "programs with {arg:flower} or {variable}."
    )


class AddressTaken(FederationError):
    """Another program listens at an address, or none may."""

    address: str
    why: str = "another program listens there"
    text = "{address} cannot be used: {why}. Stop the other program, or agree on another port."


class FlowerFailed(FederationError):
    """A program of Flower ended, or did not start."""

    what: str
    log: object = None
    text = "Flower's {what} failed{where}. Start the run again to resume it."

    @property
    def where(self) -> str:
        """Where the reason is."""
        return "" if self.log is None else f", and {self.log} shows why"
