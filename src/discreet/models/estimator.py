"""Fit in one order only: promise, pay, bound the data, train, attach."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import fields, replace
from functools import wraps
from pathlib import Path
from typing import Any, ClassVar, Self, cast, final

import numpy as np

from discreet.core.checks import (
    DataError,
    ParameterError,
    PrivacyError,
    failure_probability,
    instance,
    positive,
    require,
)
from discreet.core.progress import Progress, logger, silent, terminal_progress
from discreet.core.randomness import PrivacyRandom
from discreet.data.facts import PublicFacts
from discreet.data.inputs import accept
from discreet.data.interactions import Interactions, refuse_unsound
from discreet.models.fitted import FittedModel
from discreet.models.private_facts import MOST_ITEMS, PrivateCatalog, PrivateFacts, PrivateScale
from discreet.models.scorers.scorer import Scorer
from discreet.privacy.guarantee import Basis, Guarantee, Neighbors, Trust, Unit
from discreet.privacy.ledger.book import Ledger
from discreet.statistics.data_source import DataSource, open_source
from discreet.statistics.statistic import Statistic

# Beyond this the error of a draw, times e^epsilon, would no longer be negligible (proofs/laplace.md).
MOST_EPSILON = 32.0
# No fit draws more numbers; each is off by at most the error of a draw (proofs/sampling.md).
_MOST_DRAWS, ERROR_OF_A_DRAW = 2.0**36, 2.0**-110
WITHOUT_PRIVACY = "For a run without privacy pass math.inf (--epsilon inf)."


class Estimator(ABC):
    """Describe a way to learn: public settings, the promise they allow, and the training.

    A concrete estimator is a final, frozen, keyword-only dataclass. It implements `promise`, which sees
    public facts only, and `_train`, which receives bounded data and a source of noise. `fit` is final:
    nothing is learned from data before it is paid for. Data that teach nothing are refused before that, with
    a sentence to whoever holds the data.
    """

    __slots__ = ()

    name: ClassVar[str]
    #: "explicit" reads ratings, "implicit" reads which items were chosen, "binary" reads liked or not.
    feedback: str = "explicit"
    #: Whether the model answers only in the process that fitted it, so that there is nothing to save yet.
    answers_in_process: ClassVar[bool] = False
    #: Statistics that this model asks for and the library does not have; parties answer them, too.
    statistics: ClassVar[tuple[type[Statistic], ...]] = ()
    #: Where the method comes from, for the table of models.
    source: ClassVar[str] = ""

    epsilon: float
    delta: float

    def __init_subclass__(cls, **options: Any) -> None:
        """See that settings are Python's own numbers before anything is computed from them."""
        super().__init_subclass__(**options)
        check = cls.__dict__.get("__post_init__")
        if check is not None:
            cls.__post_init__ = _with_plain_numbers(check)  # type: ignore[attr-defined]

    @abstractmethod
    def promise(self, facts: PublicFacts) -> Guarantee:
        """Return the promise of a fit on data with these public facts; needs no data."""

    def events(self, facts: PublicFacts) -> Sequence[Any]:
        """Return the dp-accounting events of a fit, so that a ledger's reader can recount its cost."""
        return ()

    @abstractmethod
    def _train(self, data: Interactions, random: PrivacyRandom, progress: Progress) -> Scorer:
        """Learn from bounded data; every number that leaves here is noised or public."""

    def _bound(self, data: Interactions) -> Interactions:
        """Clip the ratings to the scale and cap each person's contribution, looking at one row at a time."""
        return data.bounded()

    def rows_needed(self) -> str | None:
        """Say for what rows must be in memory, or None where sums over people are enough."""
        return "it draws or keeps something for each person"

    def _refuse(self, data: DataSource) -> None:
        """Refuse data that cannot teach anything; the sentence goes to whoever holds the data.

        Whether there is a second person, or a second rating, may hang on one person: a fit whose promise
        hides that learns from such data what its noise leaves, and does not say.
        """
        promise = self.promise(data.facts)
        counted = promise.is_private and promise.neighbors is Neighbors.ADD_OR_REMOVE
        if data.n_items < 2 or (data.n_users < 2 and not counted):
            raise DataError("The data must have at least two users and two items.")
        if self.feedback != "explicit" or promise.is_private:
            return
        if data.has_one_value:
            raise DataError("All ratings are equal; there is no preference to learn.")

    def _refuse_inputs(self) -> None:  # noqa: B027
        """Refuse what is given besides the data and cannot be used; nothing of the data is looked at."""

    @property
    def settings(self) -> dict[str, Any]:
        """Return the hyper-parameters by name."""
        return {field.name: getattr(self, field.name) for field in fields(self)}  # type: ignore[arg-type]

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the settings under the name that scikit-learn's tools look for; nothing lies deeper."""
        return self.settings

    def clone(self, **changes: Any) -> Self:
        """Return an estimator with the same settings, but for these."""
        known = self.settings
        for key in changes:
            require(key in known, "clone", key, f"is no setting of {self.name}")
        return type(self)(**{**known, **changes})

    @final
    def fit(
        self,
        data: Interactions | DataSource | object,
        *,
        select_items: PrivateCatalog | None = None,
        select_scale: PrivateScale | None = None,
        ledger: Ledger | None = None,
        random: PrivacyRandom | None = None,
        progress: Progress | None = None,
    ) -> FittedModel:
        """Learn from `data` and return a model that carries its promise.

        `data` are interactions, or what can be read as such: the path of a file, a dataset's name, a data
        frame (pandas, polars, pyarrow), a scipy matrix; facts are then taken from them and the label says so.
        Estimators that need only sums over people also take a folder of shards, by its path or opened, or a
        cluster that reads one (docs/scale.md).
        `select_items` and `select_scale` choose the catalog and the scale from the data with noise, at a
        price on top of the model's.
        The promise is paid for in `ledger` before anything is learned; a crash after that is still paid.

        Raises:
            DataError: The data are no interactions as promises need them (a pair comes twice, a row is out of
                order, a value is not finite), or they teach nothing and saying so tells of nobody (one item;
                without privacy also one person or equal ratings); nothing was spent.
            BudgetError: The ledger's budget does not cover the promise; nothing was spent or learned.
        """
        if ledger is not None:
            instance("ledger", ledger, Ledger, "Open one with Ledger.open(path).")
        if random is not None:
            instance("random", random, PrivacyRandom, "Leave it out, or PrivacyRandom.simulate(seed).")
        source = self._accepted(data)
        random = random or PrivacyRandom.from_os()
        chosen = PrivateFacts(catalog=select_items, scale=select_scale)
        if chosen.catalog is None:
            self._refuse(source)
        promise = self.whole_promise(source, chosen)
        if chosen.catalog is not None:
            # What the data's catalog is, is the secret here: it may refuse nothing before it is paid for.
            self._refuse_inputs()
        promise = promise.as_simulated() if random.simulated else promise
        # Without a ledger nobody can recount the events.
        events = () if ledger is None else self.whole_events(source, chosen)
        if ledger is not None:
            promise = replace(promise, assumes=(*promise.assumes, *ledger.assumptions(source.name)))
        ledger = ledger or Ledger.nowhere()
        logger.info("Fitting %s on %s. %s", self.name, source.name, promise.sentence())
        with (
            ledger.spend(source.name, promise, what=self.name, events=events),
            terminal_progress(progress) as report,
        ):
            if not chosen.is_empty:
                source = chosen.choose(cast(Interactions, source), random)
            # Rows elsewhere were accepted only if this estimator asks for nothing but totals.
            scorer = self._train(self._bound(cast(Interactions, source)), random, report)
        logger.info("Fitted %s; what it released is paid for.", self.name)
        return FittedModel(
            guarantee=promise,
            facts=source.facts,
            catalog=source.catalog,
            name=self.name,
            parameters={name: _named(value) for name, value in self.settings.items()},
            scorer=scorer,
        )

    def _accepted(self, data: object) -> DataSource:
        """Return the data as a crowd; refuse rows that are elsewhere where they are needed here."""
        if isinstance(data, str | Path):
            data = open_source(data) or data
        if isinstance(data, Interactions) or not isinstance(data, DataSource):
            accepted = accept(data, implicit=self.feedback == "implicit")
            refuse_unsound(accepted)
            return accepted
        reason = self.rows_needed()
        if reason is not None:
            raise ParameterError(
                f"{self.name} cannot learn from shards or a cluster: {reason}. Fit it on data in memory."
            )
        return data

    @final
    def whole_promise(self, source: DataSource, chosen: PrivateFacts) -> Guarantee:
        """Return all that a fit promises, the choices of facts included; nothing is learned."""
        if chosen.is_empty:
            return self.promise(source.facts)
        if not isinstance(source, Interactions):
            raise ParameterError(
                "Catalog and scale are chosen from data in memory only. Declare those of shards."
            )
        known = chosen.before(source.facts)
        promise = self.promise(known)
        if chosen.catalog is not None and promise != self.promise(replace(known, n_items=MOST_ITEMS)):
            raise PrivacyError(
                f"What {self.name} promises depends on how many items there are, which is not known before "
                "a catalog is chosen. Declare the catalog."
            )
        return chosen.promise(promise)

    @final
    def whole_events(self, source: DataSource, chosen: PrivateFacts) -> Sequence[Any]:
        """Return the events of a fit, those of its choices included.

        Where the catalog is chosen they are the plan for the fewest items; every plan costs the same.
        """
        return [*chosen.events(), *self.events(chosen.before(source.facts))]

    @final
    def rehearse(self, data: Interactions, random: PrivacyRandom) -> Scorer:
        """Train as `fit` does, without a ledger or a label; for audits, with simulated noise only."""
        if not random.simulated:
            raise PrivacyError("A rehearsal is not paid for, so its noise must be simulated. Call fit.")
        refuse_unsound(data)
        self._refuse(data)
        return self._train(self._bound(data), random, silent)


def _named(value: Any) -> Any:
    """Return a setting as a label can hold it: of a data frame only that it was one."""
    return "a data frame" if hasattr(value, "columns") else value


def _with_plain_numbers(check: Callable[[Any], None]) -> Callable[[Any], None]:
    """Return a check of settings that first turns numpy's numbers, of whatever precision, into Python's."""

    @wraps(check)
    def checked(self: Any) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if isinstance(value, np.generic):
                # The nearest double; a single-precision 0.1 is 0.10000000149, not 0.1.
                plain = float(value) if isinstance(value, np.floating) else value.item()
                object.__setattr__(self, field.name, plain)
        check(self)

    return checked


def joint_promise(estimator: Estimator, facts: PublicFacts, proof: str) -> Guarantee:
    """Return the promise of a user-level estimator that spends exactly its epsilon and delta."""
    return Guarantee(
        epsilon=estimator.epsilon,
        delta=0.0 if math.isinf(estimator.epsilon) else estimator.delta,
        unit=Unit.USER,
        neighbors=Neighbors.ADD_OR_REMOVE,
        trust=Trust.JOINT,
        assumes=facts.assumptions(),
        basis=Basis.PROVED,
        proof=proof,
    )


def without_cap(facts: PublicFacts) -> PublicFacts:
    """Return the facts without a cap on ratings a person, as promises about single cells need it.

    A cap would let one cell that is added push another one out, and two cells would change.
    """
    return replace(facts, max_per_user=None)


def check_budget(epsilon: float, delta: float, *, gaussian: bool) -> None:
    """Check an estimator's epsilon and delta; Gaussian noise needs a delta above 0."""
    positive("epsilon", epsilon, do=WITHOUT_PRIVACY)
    require(
        epsilon <= MOST_EPSILON or math.isinf(epsilon),
        "epsilon",
        epsilon,
        f"must be at most {MOST_EPSILON:g}",
        "A larger one promises next to nothing. " + WITHOUT_PRIVACY,
    )
    failure_probability("delta", delta)
    if delta > 0 and math.isfinite(epsilon):
        least = (1 + math.exp(epsilon)) * _MOST_DRAWS * ERROR_OF_A_DRAW
        do = "Draws are not exact enough to promise less (proofs/sampling.md)."
        require(delta >= least, "delta", delta, f"must be at least {least:.1e} at this epsilon, or 0", do)
    if gaussian and math.isfinite(epsilon):
        require(delta > 0, "delta", delta, "must be greater than 0", "The noise is Gaussian; 1e-6 is usual.")
