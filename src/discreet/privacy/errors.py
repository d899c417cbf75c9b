"""Errors of sessions, mechanisms, budgets, and ledgers."""

from __future__ import annotations

from discreet.core.errors import BudgetError, DataError, FileError, ParameterError, PrivacyError


class WeightsTooLarge(PrivacyError):
    plan: str
    text = "{plan!r} has weights beyond 2^20, so their squares aren't exact. Use smaller weights."


class SumsOfTheFuture(PrivacyError):
    plan: str
    text = """{plan!r} releases sums of later entries, which don't exist yet. Make its matrices lower
    triangular."""


class PlanMovesTooFar(PrivacyError):
    plan: str
    text = """One user can change {plan!r} by more than its noise covers. Use smaller weights. Nothing was
    drawn."""


class Overspent(PrivacyError):
    asked: str
    left: str
    text = """This release costs {asked}, but only {left} of the budget is left. Ask for less. No data were
    read."""


class PeriodOver(Overspent):
    asked: str = "one more release"
    left: str = "none"
    releases: int
    text = """All {releases:release|releases} of the period were made, and its cost covers no more. Start
    a new period. Nothing was drawn."""


class MadeByHand(PrivacyError):
    text = """A session can't be constructed, copied, pickled, or used in a forked process, because each copy
    would spend the same budget. Use Session.open(source, guarantee, random) in one process."""


class NoNoiseSource(PrivacyError):
    text = """This session can't draw noise, because others release its sums. Pass a random source, or use a
    model that adds noise only to sums."""


class WrongBudget(PrivacyError):
    kind: str
    needs: tuple[str, ...]
    text = """The budget of this session is of the kind {kind!r}, but the call needs {needs:or}. Call
    gaussian() or laplace() on an undivided session, or split() on a divided one. Nothing was released."""


class WrongSecret(PrivacyError):
    name: str
    of: str
    unit: str
    text = """{name!r} bounds what one {of} contributes, but the guarantee is for one {unit}. Use a statistic
    for the unit of the guarantee. Nothing was released."""


class WrongNorm(PrivacyError):
    name: str
    norm: str
    needs: str
    text = "{name!r} is bounded in {norm}, but this noise covers only {needs}. Use the noise for {norm}."


class ClaimedEpsilon(PrivacyError):
    text = "The fit has no guarantee, so devices can't state an epsilon. Pass an infinite epsilon to both."


class RowsAreSecret(PrivacyError):
    text = """Under this guarantee, training sees only released numbers, never rows, and the budget
    determines the noise. Use release()."""


class SpentOnce(PrivacyError):
    text = """Real noise can't be drawn twice, because its budget covers one draw. Use simulated noise, which
    protects no users."""


class GuaranteeExceeded(Overspent):
    asked: str = "more"
    left: str = "none"
    epsilon: float
    delta: float
    allowed: tuple[float, float]
    text = """The releases cost epsilon={epsilon} and delta={delta}, more than the guarantee {allowed}. This
    is a defect of the model, so no model was returned. Report it."""


class SharesNeeded(PrivacyError):
    query: str
    text = "{query} has several parts, and each part needs its own share. Name a share for each of them."


class InexactShare(PrivacyError):
    share: object
    text = """The share {share!r} isn't a Fraction, and a rounded share would spend a slightly wrong budget.
    Pass a Fraction."""


class NoiseInsufficient(PrivacyError):
    epsilon: float
    delta: float
    text = """No amount of noise makes this event cost at most epsilon={epsilon} at delta={delta}. Allow a
    larger delta, or remove the part that doesn't depend on the noise."""


class UnknownEvent(PrivacyError):
    event: str
    known: tuple[str, ...]
    text = """A {event} has no known privacy loss, and no event is free. Describe the release by one of
    {known:all}."""


class SampledEvent(PrivacyError):
    text = """The accountant can't compute this privacy loss: with Poisson sampling, it supports only
    Gaussian mechanisms and one (discrete) Laplace mechanism. Sample again for each release, or remove the
    sampling from the event."""


class DamagedRecord(ParameterError):
    kind: str
    reason: str
    text = "The {kind} can't be read: {reason}. Get a fresh copy, or create it again."


class ImpossibleFact(ParameterError):
    kind: str
    fact: str
    text = """A fact of kind {kind!r} can't be {fact!r}, because that pair has no meaning. Choose a pair of
    `STATEMENTS`."""


class NotCertified(PrivacyError):
    name: str
    text = "{name!r} gets no noise, so a certificate can't cover it. Certify private releases only."


class SumsMissing(PrivacyError):
    release: int
    found: int
    text = "Release {release} needs {release} sums, but the state has {found}. Restore the whole state."


class SumTooLarge(DataError):
    exponent: int
    text = """A value is beyond 2^{exponent}, the limit of the fixed-point numbers here. Clip the values, or
    release fewer at a time."""


class RealNoiseInExperiment(PrivacyError):
    text = """Noise of an experiment must be simulated, because nothing counts its cost. Pass
    simulate(seed), or release data through a session."""


class DefinitionsUnlike(PrivacyError):
    one: str
    other: str
    dataset: str = ""
    text = """Guarantees with different privacy definitions ({one} and {other}) neither compare nor add
    up{where}. Use one definition, or keep separate budgets under different names. No budget was spent."""

    @property
    def where(self) -> str:
        """The dataset whose budget has the first definition."""
        return f", and the budget of {self.dataset!r} has the first" if self.dataset else ""


class AlreadyPerUser(PrivacyError):
    text = "This guarantee is already per user and covers all ratings of the user. Use it as it is."


class NotCounted(PrivacyError):
    account: str
    text = """An account that adds {account} weights can't count this release, because the release is
    neither Gaussian nor pure. Set a budget that adds epsilons under a new name. For users in both accounts,
    add the totals of both."""


class BudgetNeedsDelta(PrivacyError):
    account: str
    text = "An account that adds {account} weights needs a budget with a delta above 0. Pass {arg:delta}."


class NeedsEpsilon(PrivacyError):
    dataset: str | None = None
    text = """{what} needs a finite epsilon, because it spends budget. Pass {arg:epsilon}. No budget was
    spent."""

    @property
    def what(self) -> str:
        """The budget, or the release that it limits."""
        return "A budget" if self.dataset is None else f"{self.dataset!r} has a budget, so a release"


class BudgetExceeded(BudgetError):
    dataset: str
    epsilon: float
    delta: float
    left: str
    #: What doesn't fit: "epsilon", "delta", or "all" if nothing is left.
    binds: str = "epsilon"
    #: The budget that this release would fit, if its delta doesn't fit now.
    enough: tuple[float, float] | None = None
    account: str = "adding"
    #: The largest epsilon of a Gaussian release with this delta that fits, if the account adds its weights.
    largest: str = ""
    ledger: str = "LEDGER"
    text = """{dataset!r} has {left} left, but this release costs epsilon={epsilon}, delta={delta}. Lower
    {arg:epsilon}, or raise the budget with a reason. No budget was spent."""

    def template(self) -> str:
        """Return the template: a lower epsilon doesn't help if the delta doesn't fit, or nothing is left."""
        cost = "{dataset!r} has {left} left, but this release costs epsilon={epsilon}, delta={delta}. "
        advice = {
            "delta": "Its delta doesn't fit, so a lower epsilon doesn't help. Raise the budget's delta with "
            "a reason: `{command}`. ",
            "all": "No release is possible, at any epsilon. Raise the budget with a reason: `{command}`. ",
        }
        if self.largest:
            advice["epsilon"] = (
                "A Gaussian release with this delta fits up to epsilon={largest}. Lower {arg:epsilon}, or "
                "raise the budget with a reason: `{command}`. "
            )
        return f"{cost}{advice[self.binds]}No budget was spent." if self.binds in advice else self.text

    @property
    def command(self) -> str:
        """The command that raises the budget."""
        size = "EPSILON" if self.enough is None else f"{self.enough[0]:.6g} --delta {self.enough[1]:.6g}"
        account = "" if self.account == "adding" else f" --account {self.account}"
        return (
            f"discreet budget set {self.ledger!r} --name {self.dataset!r} --epsilon {size}{account} "
            "--reason REASON"
        )


class SpendingEnded(BudgetError):
    number: int
    text = """The ledger has already recorded how spending {number} ended: another process ran the same
    command. So this process published nothing. To spend again, repeat the command."""


class Unbudgeted(BudgetError):
    dataset: str
    budgeted: tuple[str, ...]
    text = """The ledger has no budget for {dataset!r}, but it has budgets for {budgeted:and}. If this data is
    about the same users, pass their name with {arg:name}. Otherwise set a budget for {dataset!r}, or pass
    {arg:allow_unbudgeted=True}. No budget was spent."""


class SeveralDefinitions(PrivacyError):
    dataset: str
    count: int
    text = """The costs recorded for {dataset!r} have {count} privacy definitions, so they don't add up.
    Pass one definition."""


class OlderCopy(PrivacyError):
    chain: str
    known: int
    here: int
    text = """The ledger counts {known:event|events} of {chain!r}, but this state has {here:,}. The state is
    an older copy, so it can't continue. Use the newest state."""


class LedgerInUse(FileError):
    path: object
    text = "{path} is in use by another process. Wait until it is done. Nothing was written."


class LedgerUnlockable(FileError):
    path: object
    reason: str
    text = "{path} can't be locked: {reason}. Keep the ledger on a local disk. Nothing was written."


class NotALedger(FileError):
    path: object
    why: str = "it isn't a ledger of discreet"
    text = "{path} was not changed: {why}. Pass a ledger of this version, or restore a copy."


class LedgerDamaged(FileError):
    path: object
    text = """{path} is a damaged ledger and was not changed. Don't restore an older copy, which lacks later
    spending. Start a new ledger, and set its budget to at most what is left."""


class TwoEpsilons(ParameterError):
    text = """A budget needs exactly one epsilon, but the call has none or two. Write set_budget("shop", 3.0),
    or pass a Guarantee alone."""


class SpendingNotCounted(PrivacyError):
    dataset: str
    definition: str
    epsilon: float
    text = """The ledger has costs of {dataset!r} that this budget can't count ({definition},
    epsilon={epsilon}). Set a budget with that privacy definition, or under a new name."""


class BudgetIsFixed(PrivacyError):
    dataset: str
    kept: str
    text = """The budget of {dataset!r} was set with {kept}, which can't be changed later. Set a budget
    under a new name."""


class ReasonNeeded(PrivacyError):
    text = "Raising or renewing a budget needs a reason, which the ledger keeps. Pass {arg:reason}."


class ReadOnlyLedger(PrivacyError):
    text = """This ledger was opened for reading, so nothing can be spent. Open it without
    {arg:read_only=True} to spend."""


class LedgerOfOtherProcess(PrivacyError):
    text = """This ledger is in the memory of another process, so this process can't use it. Share a file:
    Ledger.open(path)."""


class DatasetUnclear(ParameterError):
    dataset: str | None
    known: tuple[str, ...]
    text = "The ledger has no single dataset {dataset!r} to plot. Name one of {known:or}."


class OffGrid(DataError):
    name: str
    must: str
    text = "{name} must {must}. Map or clip the values to the public scale first."


class WholeCatalogNeeded(DataError):
    text = """This mechanism hides which items were rated, so it can't report rated items only. Report all
    items."""


class TableReveals(PrivacyError):
    loss: float
    epsilon: float
    text = """The draws would reveal {loss!r}, more than epsilon={epsilon!r}, so they were not made. Raise
    epsilon, or use the mechanism's own table."""


class NoInverse(DataError):
    text = """This channel has no inverse, because it has a different number of outputs than inputs. Fit
    by likelihood instead."""


class TooManyNames(DataError):
    most: int
    text = """There are more than {most:,} names to select from, and the bound of the selection covers no
    more. Declare the catalog instead."""


class WrongMechanism(ParameterError):
    known: tuple[str, ...]
    text = "The campaign's mechanism must be one of {known:all}, with its own parameters. Get a fresh copy."


class BothFlipsNeeded(ParameterError):
    text = """Only one of flip_positive and flip_negative was passed, but they go together. Pass both, or
    neither."""


class SumOverflows(ParameterError):
    vectors: int
    text = "{vectors:vector overflows|vectors overflow} the sum, which has 64 bits. Sum them in parts."


class BadTable(ParameterError):
    name: str
    must: str
    text = "{name} must {must}. Build it with the mechanism's own functions."
