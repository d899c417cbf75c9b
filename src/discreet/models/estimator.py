"""Fit in one order only: guarantee, cost, bounded data behind a session, training, check of the log.

Most estimators learn from noisy sums over users (`SumsEstimator`). A subclass names its proof and trains on
what its session releases. Guarantee, events, and the rule that an infinite epsilon adds no noise follow from
that. It then learns from data in memory, from shards, on a cluster and over parties alike.
"""

from __future__ import annotations

import logging
import math
from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import fields, is_dataclass, replace
from datetime import UTC, datetime
from functools import wraps
from pathlib import Path
from typing import Any, ClassVar, Self, Unpack, cast, final

import numpy as np

from discreet.core import (
    PrivacyRandom,
    Progress,
    failure_probability,
    instance,
    logger,
    positive,
    positive_finite,
    silent,
    terminal_progress,
    within,
)
from discreet.data import (
    AcceptOptions,
    Choice,
    Duplicates,
    Interactions,
    PublicFacts,
    Schema,
    SourceOptions,
    accept,
    refuse_columns,
    refuse_declared,
    refuse_unknown_names,
    refuse_unsound,
    seconds_of,
)
from discreet.models.errors import (
    DeltaNeeded,
    DeltaTooSmall,
    KeywordsOnly,
    MemoryNeeded,
    NoPreference,
    RealNoiseInRehearsal,
    RowsNeeded,
    ScaleUnused,
    SettingsConflict,
    TimesNeeded,
    TooFewToLearn,
    UnknownSetting,
)
from discreet.models.fitted import FittedModel, Origin
from discreet.models.private_catalog import (
    PrivateCatalog,
    PrivateFacts,
    PrivateScale,
    whole_events,
    whole_promise,
)
from discreet.models.scorers.scorer import Scorer
from discreet.privacy import (
    Assumption,
    Basis,
    Fact,
    Guarantee,
    Kind,
    Ledger,
    Neighbors,
    ReleaseEntry,
    Session,
    Trust,
    Unit,
    assumptions_of,
    pure_event,
    spending_in,
)
from discreet.privacy.mechanisms.additive import gaussian_event
from discreet.report import TableView, condition_text
from discreet.statistics import DataSource, Recency, Statistic, open_source

# Beyond this the error of a draw, times e^epsilon, would no longer be negligible (proofs/laplace.md).
MOST_EPSILON = 32.0
# No fit draws more numbers; each is off by at most the error of a draw (proofs/sampling.md).
_MOST_DRAWS, ERROR_OF_A_DRAW = 2.0**36, 2.0**-110


class Estimator(TableView):
    """A learning method: public settings, the guarantee they allow, and the training.

    A concrete estimator is a final, frozen, keyword-only dataclass. It implements `promise`, which sees only
    public facts, and `_train`, which receives a release session, its only access to data and noise. `fit` is
    final. It first rejects data from which no model can learn, with a message for the data owner. Then it
    records the cost, and trains. If the releases cost more than the guarantee, `fit` raises an error and
    returns no model.

    Example:
        >>> from discreet import Estimator, Popularity, PrivacyRandom
        >>> from discreet.data.datasets.synthetic import popularity_skewed
        >>> films = popularity_skewed(n_users=100, n_items=40, mean_per_user=15)
        >>> recipe = Popularity(epsilon=1.0)
        >>> isinstance(recipe, Estimator), recipe.promise(films.facts).epsilon
        (True, 1.0)
        >>> recipe.fit(films, random=PrivacyRandom.simulate(0)).name
        'popularity'

    Stability
        Stable.
    """

    __slots__ = ()

    name: ClassVar[str]
    #: "explicit" uses ratings, "implicit" uses interactions without values, "binary" uses liked or not.
    feedback: str = "explicit"
    #: Whether the model uses weights of interactions.
    weighs: ClassVar[bool] = False
    #: Whether the model answers only in the process that fitted it, so that it cannot be saved.
    answers_in_process: ClassVar[bool] = False
    #: Whether a finite epsilon states how much noise a paper prints, which protects no users.
    published_noise: ClassVar[bool] = False
    #: Where the method comes from, for the table of models.
    source: ClassVar[str] = ""

    epsilon: float
    delta: float

    def __init_subclass__(cls, **options: Any) -> None:
        """Convert settings to Python's own numbers before they are checked."""
        super().__init_subclass__(**options)
        check = cls.__dict__.get("__post_init__")
        if check is not None:
            cls.__post_init__ = _with_plain_numbers(check)  # type: ignore[attr-defined]

    def __new__(cls, *values: Any, **settings: Any) -> Self:
        """Raise for unknown settings, with a suggestion; `__init__` would suggest none."""
        known = [entry.name for entry in fields(cls)] if is_dataclass(cls) else list(settings)
        unknown = next((name for name in settings if name not in known), None)
        if unknown is not None:
            raise UnknownSetting(model=cls.name, setting=unknown, settings=known)
        if values:
            raise KeywordsOnly(function=cls.__name__)
        return super().__new__(cls)

    @abstractmethod
    def promise(self, facts: PublicFacts) -> Guarantee:
        """Return the guarantee of a fit on data with these public facts, without any data."""

    def events(self, facts: PublicFacts) -> Sequence[Any]:
        """Return the dp-accounting events of a fit, so that a ledger's reader can recompute its cost."""
        return ()

    @abstractmethod
    def _train(self, session: Session, progress: Progress) -> Scorer:
        """Return a scorer learned from what the session releases; nothing else reaches data or noise."""

    def _bound(self, data: Interactions) -> Interactions:
        """Clip ratings to the scale and cap each user's contribution; each row is bounded on its own."""
        return data.bounded()

    def rows_needed(self) -> str | None:
        """Return why rows must be in memory, or None where sums over users are enough."""
        return "it draws or keeps something for each user"

    @final
    def _refuse_too_few(self, data: DataSource, promise: Guarantee) -> None:
        """Raise for data that nothing can be learned from; the message goes to the data owner.

        Whether a second user, or a second rating, exists can depend on one user. A fit whose guarantee covers
        this must not raise: it trains on such data, and its noise hides the difference.
        """
        counted = promise.is_private and promise.neighbors is Neighbors.ADD_OR_REMOVE
        if data.n_items < 2 or (data.n_users < 2 and not counted):
            raise TooFewToLearn()
        if not self.predicts_ratings or promise.is_private:
            return
        if data.has_one_value:
            raise NoPreference()

    def _refuse(self, data: DataSource) -> None:
        """Raise for data that this method can't learn from, as far as public facts show it."""

    def _refuse_inputs(self) -> None:
        """Raise for unusable inputs other than the data; the data are not read here."""

    def _refuse_facts(self, facts: PublicFacts) -> None:
        """Raise for facts that nothing can be learned with, except those that noise will choose."""

    @property
    def predicts_ratings(self) -> bool:
        """Return whether a fitted model predicts ratings; others rank items or predict likes."""
        return self.feedback == "explicit"

    @property
    def reads_ratings(self) -> bool:
        """Return whether values of ratings are learned from, rather than that there was an interaction."""
        return self.predicts_ratings or self.feedback == "binary"

    @property
    def settings(self) -> dict[str, Any]:
        """Return the hyper-parameters by name."""
        return {field.name: getattr(self, field.name) for field in fields(self)}  # type: ignore[arg-type]

    def _table(self) -> tuple[Sequence[str], Sequence[Sequence[object]], str]:
        return ("setting", "value"), list(self.settings.items()), f"{self.name}, not fitted yet"

    @property
    def named(self) -> str:
        """Return the model's name with the settings that are not the default, except the budget."""
        changed = [
            f"{entry.name}={value}"
            for entry in fields(self)  # type: ignore[arg-type]
            if entry.name not in ("epsilon", "delta")
            and (value := stored_setting(getattr(self, entry.name))) != entry.default
        ]
        return " ".join([self.name, *changed])

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the settings, as scikit-learn's tools expect; settings are never nested."""
        return self.settings

    def set_params(self, **changes: Any) -> Self:
        """Return an estimator with these changes, as scikit-learn's tools expect; this one stays as it is.

        A search over settings that looks at scores without noise is not private: use `choose_privately`.
        """
        return self.clone(**changes)

    def clone(self, **changes: Any) -> Self:
        """Return an estimator with the same settings except for these changes."""
        return type(self)(**{**self.settings, **changes})

    @final
    def fit(
        self,
        data: Interactions | DataSource | object,
        *,
        columns: Choice | None = None,
        duplicates: Duplicates = "refuse",
        select_items: PrivateCatalog | None = None,
        select_scale: PrivateScale | None = None,
        ledger: Ledger | None = None,
        name: str | None = None,
        random: PrivacyRandom | None = None,
        progress: Progress | None = None,
        **declared: Unpack[SourceOptions],
    ) -> FittedModel:
        """Learn from `data` and return a model that carries its guarantee.

        `data` are interactions or can be read as interactions: the path of a file, a dataset's name, a data
        frame (pandas, polars, pyarrow), a scipy matrix. Facts are declared as in `from_frame` (`low=`,
        `high=`, `step=`, `catalog=`, `max_per_user=`...); others are read from the data, as the label
        states. `columns` names the columns of a file or frame, and `duplicates` what to do with a pair of
        user and item that comes again. Paths and frames take the other keywords of `read`, too, such as
        `skip_bad_lines` and `schema`. Estimators that need only sums over users also take a folder of
        shards, by its path or opened, or a cluster that reads one (docs/scale.md).
        `select_items` and `select_scale` choose the catalog and the scale from the data with noise. This
        costs budget on top of the model's. The cost is recorded in `ledger` before anything is learned; a
        crash after that still costs it. `name` is what the ledger calls the data; a frame is called "data"
        without it. Ratings that the estimator does not read are dropped before all that.

        Raises:
            DataError: The data are not sound interactions (a pair comes twice, a row is out of order, a value
                is not finite), or nothing can be learned from them and saying so reveals no user's data (one
                item; without privacy also one user or equal ratings). Nothing was spent.
            BudgetError: The ledger's budget doesn't cover the cost; nothing was spent or learned.
        """
        if ledger is not None:
            instance("ledger", ledger, Ledger)
        if random is not None:
            instance("random", random, PrivacyRandom)
        refuse_unknown_names(declared, self.fit, SourceOptions)
        accepted = self.accepted(data, columns=columns, duplicates=duplicates, **declared)
        source = self.without_unread(accepted)
        source = source if name is None else renamed(source, name)
        random = random or PrivacyRandom.from_os()
        if select_scale is not None and not self.reads_ratings:
            raise ScaleUnused(model=self.name)
        chosen = PrivateFacts(catalog=select_items, scale=select_scale)
        promise = whole_promise(self, source, chosen)
        if chosen.catalog is None:
            self._refuse_too_few(source, promise)
            self._refuse(source)
        else:
            # The data's catalog is secret here, so no error may depend on it before the cost is recorded.
            self._refuse_inputs()
        self._refuse_facts(chosen.before(source.facts))
        promise = promise.as_simulated() if random.simulated else promise
        if not isinstance(data, DataSource):
            _remark_on_conditions(promise)
        # Without a ledger nothing reads the events.
        events = () if ledger is None else whole_events(self, source, chosen)
        if ledger is not None:
            promise = promise.assuming(*ledger.assumptions(source.name))
        if logger.isEnabledFor(logging.INFO):
            logger.info("Fitting %s on %s. %s", self.name, source.name, promise.sentence())
        with (
            spending_in(ledger, source.name, promise, what=self.name, events=events) as paid,
            terminal_progress(progress) as report,
        ):
            session = Session.open(source, promise, random)
            if not chosen.is_empty:
                session = session.select(chosen)
            facts, catalog = session.facts, session.catalog
            scorer = self._trained(session, report)
            session.check(promise)
        logger.info("Fitted %s.", self.name)
        return FittedModel(
            guarantee=promise,
            facts=facts,
            catalog=catalog,
            name=self.name,
            parameters={name: stored_setting(value) for name, value in self.settings.items()},
            scorer=scorer,
            certificate=session.certificate(promise),
            releases=session.log,
            schema=_remembered(source),
            origin=Origin.of_now(paid),
        )

    def _trained(self, session: Session, progress: Progress) -> Scorer:
        """Return what training on bounded rows gives; what selections left of the budget is the model's."""
        own = self.promise(session.facts)
        session = session.mapped(self._bound)
        return self._train(session.part(epsilon=own.epsilon, delta=own.delta), progress)

    @final
    def accepted(
        self, data: object, *, columns: Choice | None = None, **declared: Unpack[AcceptOptions]
    ) -> DataSource:
        """Return the data as a data source; raise for shards and clusters if rows are needed in memory."""
        if isinstance(data, str | Path):
            data = open_source(data) or data
        if isinstance(data, Interactions) or not isinstance(data, DataSource):
            implicit = self.feedback == "implicit"
            accepted = accept(data, implicit=implicit, columns=columns, **declared)
            refuse_unsound(accepted)
            return accepted
        refuse_columns(columns, data)
        refuse_declared(declared, data)
        reason = self.rows_needed()
        if reason is not None:
            raise RowsNeeded(model=self.name)
        return data

    @final
    def without_unread(self, data: DataSource) -> DataSource:
        """Return the data without ratings if they are not learned from: then no scale is public, or needed.

        Shards keep the facts that they were made with.
        """
        if self.reads_ratings or not isinstance(data, Interactions):
            return data
        if self.weighs:
            return data.weighted()
        if data.schema is not None and data.schema.weight:
            logger.warning(
                "%s ignores weights: each item of a user counts the same. popularity and user-factorization "
                "use them.",
                self.name,
            )
        return data.without_ratings()

    @final
    def rehearse(self, data: Interactions, random: PrivacyRandom) -> Scorer:
        """Train as `fit` does, without a ledger or a label; for audits, with simulated noise only."""
        return self.rehearsal(data, random)[0]

    @final
    def rehearsal(self, data: Interactions, random: PrivacyRandom) -> tuple[Scorer, tuple[ReleaseEntry, ...]]:
        """Return what `rehearse` does, and the log of the session, which lists all releases."""
        if not random.simulated:
            raise RealNoiseInRehearsal()
        refuse_unsound(data)
        self._refuse_too_few(data, self.promise(data.facts))
        self._refuse(data)
        data = cast("Interactions", self.without_unread(data))
        promise = self.promise(data.facts)
        session = Session.open(data, promise, random)
        scorer = self._trained(session, silent)
        session.check(promise)
        return scorer, session.log


def _remembered(source: DataSource) -> Schema | None:
    """Return how a file was written; the types of a frame's columns may follow from its values."""
    schema = source.schema if isinstance(source, Interactions) else None
    return None if schema is None or schema.format == "frame" else schema.remembered()


def renamed(data: DataSource, name: str) -> DataSource:
    """Return the data under another name, the one that a ledger books them by."""
    instance("name", name, str)
    if not isinstance(data, Interactions):
        raise MemoryNeeded(argument="name")
    return replace(data, name=name)


def _remark_on_conditions(promise: Guarantee) -> None:
    """Warn of facts that were taken from the data because they weren't declared."""
    if promise.is_private and promise.conditions:
        logger.warning(
            "The guarantee applies only if %s: taken from the data without noise. Declare it (catalog=, "
            "low=, high=, schema=), or select it with noise (select_items=, select_scale=).",
            condition_text(promise.conditions),
        )


def stored_setting(value: Any) -> Any:
    """Return a setting as the label stores it; a data frame is only mentioned."""
    return "a data frame" if hasattr(value, "columns") else value


def _with_plain_numbers(check: Callable[[Any], None]) -> Callable[[Any], None]:
    """Return a check of settings that first converts numpy numbers of any precision to Python's."""

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


def joint_promise(
    estimator: Estimator, facts: PublicFacts, proof: str, public: Sequence[Assumption] = ()
) -> Guarantee:
    """Return the guarantee of a user-level estimator that spends exactly its epsilon and delta.

    `public` states what else it assumes to be public.
    """
    return Guarantee(
        epsilon=estimator.epsilon,
        delta=0.0 if math.isinf(estimator.epsilon) else estimator.delta,
        unit=Unit.USER,
        neighbors=Neighbors.ADD_OR_REMOVE,
        trust=Trust.JOINT,
        assumes=(*assumptions_of(facts), *public),
        basis=Basis.PROVED,
        proof=proof,
    )


def without_cap(facts: PublicFacts) -> PublicFacts:
    """Return the facts without a cap on ratings per user, as guarantees for a single rating need it.

    With a cap, adding one rating could push another one out, and two ratings would change.
    """
    return replace(facts, max_per_user=None)


def check_budget(epsilon: float, delta: float, *, gaussian: bool) -> None:
    """Check an estimator's epsilon and delta; Gaussian noise needs a delta above 0."""
    positive("epsilon", epsilon)
    if not math.isinf(epsilon):
        within("epsilon", epsilon, most=MOST_EPSILON)
    failure_probability("delta", delta)
    if delta > 0 and math.isfinite(epsilon):
        least = (1 + math.exp(epsilon)) * _MOST_DRAWS * ERROR_OF_A_DRAW
        if delta < least:
            raise DeltaTooSmall(value=delta, least=least)
    if gaussian and math.isfinite(epsilon) and delta == 0:
        raise DeltaNeeded()


class SumsEstimator(Estimator):
    """A method that learns from noisy sums over users alone, with a guarantee for a user's whole history."""

    __slots__ = ()

    #: The note that proves the guarantee.
    proof: ClassVar[str]
    #: Statistics that this model asks for and the library does not have; parties answer them, too.
    statistics: ClassVar[tuple[type[Statistic], ...]] = ()

    @property
    def is_private(self) -> bool:
        """Return whether noise is added: at an infinite epsilon there is none."""
        return math.isfinite(self.epsilon)

    @property
    def is_pure(self) -> bool:
        """Return whether delta is 0, so that the noise is Laplace and norms are l1."""
        return self.is_private and self.delta == 0

    def promise(self, facts: PublicFacts) -> Guarantee:
        """Return the guarantee; it depends on epsilon and delta alone."""
        return joint_promise(self, facts, self.proof, self.public_inputs())

    def public_inputs(self) -> Sequence[Assumption]:
        """Return what a fit assumes to be public in addition to the facts."""
        return ()

    def rows_needed(self) -> str | None:
        """Return None: sums over users are enough."""
        return None

    def metered(self, session: Session) -> Session:
        """Return the session whose budget all sums share: Gaussian, or pure where delta is 0."""
        return session.laplace() if self.is_pure else session.gaussian()

    def events(self, facts: PublicFacts) -> Sequence[Any]:
        """Return what all sums cost together, whatever released numbers decide; nothing without privacy."""
        if not self.is_private:
            return ()
        return (pure_event(self.epsilon) if self.is_pure else gaussian_event(self.epsilon, self.delta),)


def statistics_of(estimator: Estimator) -> tuple[type[Statistic], ...]:
    """Return the statistics that an estimator brings, also one that derives from `Estimator` alone."""
    brought: tuple[type[Statistic], ...] = getattr(estimator, "statistics", ())
    return brought


# Ratings that fade with age: a half-life in days, and the public date from which ages count.

#: What an estimator that reads times takes as public.
TIMES_ARE_PUBLIC = Assumption.of(Kind.DECLARED, Fact.TIMES)
_DAY = 86400.0
# Beyond this an exponent isn't a number any more; nothing fades in so long a time, and all in so short a one.
_SHORTEST, _LONGEST = 1e-9, 1e9


def check_recency(half_life: float | None, now: str | None) -> None:
    """Raise for a half-life that isn't a time, and for a date that is invalid or unused."""
    if half_life is not None:
        positive_finite("half_life", half_life)
    if now is None:
        return
    if half_life is None:
        raise SettingsConflict(setting="now", other="a model without half_life")
    seconds_of(now)


def recency_of(half_life: float | None, now: str | None) -> Recency | None:
    """Return how ratings fade; None where they do not."""
    if half_life is None:
        return None
    moment = datetime.now(UTC).timestamp() if now is None else seconds_of(now)
    return Recency(now=moment, half_life=min(max(half_life, _SHORTEST), _LONGEST) * _DAY)


def stated_recency(half_life: float | None, now: str | None) -> tuple[Assumption, ...]:
    """Return what is assumed if ratings fade: times are read, and a declared date doesn't come from users."""
    if half_life is None:
        return ()
    date = () if now is None else (Assumption.of(Kind.DECLARED, Fact.DATE, date=str(now)),)
    return (TIMES_ARE_PUBLIC, *date)


def refuse_timeless(half_life: float | None, data: DataSource) -> None:
    """Raise for data without times, before any cost is recorded, if ratings are to fade."""
    # Whether there is a column of times is public; a source that does not say may have one.
    if half_life is not None and not getattr(data, "has_times", True):
        raise TimesNeeded(setting="half_life")


class FadingEstimator(SumsEstimator):
    """A method whose ratings may fade: after `half_life` days one counts half. Ages count from `now`."""

    __slots__ = ()

    half_life: float | None
    now: str | None

    def public_inputs(self) -> Sequence[Assumption]:
        """Return what is assumed if ratings fade."""
        return stated_recency(self.half_life, self.now)

    def _refuse(self, data: DataSource) -> None:
        refuse_timeless(self.half_life, data)


def month_of(moment: float) -> str:
    """Return the month of a time in seconds since 1970, or the number roughly if it can be none."""
    try:
        return f"{datetime.fromtimestamp(moment, UTC):%Y-%m}"
    except (ValueError, OverflowError, OSError):
        return f"{moment:.2g}"
