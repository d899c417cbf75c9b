"""The release session: the only way from data to numbers.

Training code receives a `Session` and nothing else that reaches data or noise. It asks for a statistic and a
share of the budget. The session reads the bound and the norm from the statistic's own parts, reserves the
share, reads the data, adds the noise, and logs the release. A request for more than is left raises before
that release reads data. `Session.check` compares the log with the guarantee before a model leaves `fit`.

Budgets are exact. A Gaussian budget is the precision 1 / M^2 of one release with multiplier M; a pure budget
is an epsilon. Shares are fractions of either, and a child session owns the share that its parent gave away.
The argument for every order of calls is in proofs/session.md.
"""

from __future__ import annotations

import math
import os
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, NoReturn, Protocol, TypeVar, final

import numpy as np
import numpy.typing as npt

from discreet.core.arrays import Floats
from discreet.core.checks import PrivacyError
from discreet.core.randomness import PrivacyRandom
from discreet.privacy.accounting.gaussian import gaussian_delta, gaussian_multiplier
from discreet.privacy.accounting.rounding import round_up
from discreet.privacy.certificate import (
    Release,
    additive_release,
    certificate,
    perturbed_release,
    sampling_release,
    threshold_release,
)
from discreet.privacy.guarantee import Guarantee, Unit
from discreet.privacy.mechanisms.additive import Gaussian, Laplace
from discreet.privacy.mechanisms.fixed_point import FixedPoint, root_above, round_down
from discreet.privacy.mechanisms.selection import NoisyThreshold
from discreet.privacy.mechanisms.subsampling import ImportanceSampling

if TYPE_CHECKING:
    from dp_accounting import DpEvent

Reports = TypeVar("Reports", covariant=True)
Noise = Gaussian | Laplace

# A delta that is computed once more agrees with the calibrated one to about 1e-9 (proofs/accounting.md).
_CLOSE = Fraction(1_000_001, 1_000_000)
# What one secret of a guarantee contributes to a statistic: a user's whole vector, or one rating's.
_SECRETS = {Unit.USER: "person", Unit.RATING: "rating", Unit.VALUE: "rating"}


class Overspent(PrivacyError):
    """More budget was asked for than is left; the release that asked did not read data."""


class PartOfSum(Protocol):
    """One array of a statistic, with the bound on what one secret contributes to it."""

    @property
    def name(self) -> str:
        """Return the name of the part."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Return the shape of the array."""

    @property
    def norm(self) -> Literal["l1", "l2"]:
        """Return the norm that the bound is stated in."""

    @property
    def bound(self) -> float:
        """Return the largest norm of one contribution, rounding included."""

    @property
    def symmetric(self) -> bool:
        """Return whether the array is the upper triangle of a symmetric matrix."""

    @property
    def of(self) -> str:
        """Return what one contribution comes from: a "person" or a "rating"."""


class ExactSums(Protocol):
    """The exact sums of a statistic; only a session reads them."""

    def steps(self, name: str | None = None) -> FixedPoint | Floats:
        """Return one part before noise."""


class Query(Protocol):
    """A statistic: its fields are public or released numbers, and its parts bound each contribution."""

    @property
    def parts(self) -> Sequence[PartOfSum]:
        """Return the arrays that are summed."""


class Perturbation(Protocol[Reports]):
    """Reports that each user's device perturbs before they leave it."""

    @property
    def name(self) -> str:
        """Return the name of the mechanism."""

    @property
    def epsilon(self) -> float:
        """Return the pure cost of all reports about one secret."""

    @property
    def of(self) -> str:
        """Return what one secret is: a "person" or a "rating"."""

    def over(self, data: Any, random: PrivacyRandom, /) -> Reports:
        """Return the perturbed reports of all users."""


class SampledQuery(Protocol):
    """A statistic whose contributions can be sampled: their norms, and their weighted sum."""

    @property
    def parts(self) -> Sequence[PartOfSum]:
        """Return the one array that is summed, bounded in l1."""

    def norms(self, data: Any, largest: float, /) -> Floats:
        """Return each contribution's l1 norm after clipping it to `largest`."""

    def weighted(self, data: Any, weights: Floats, largest: float, /) -> FixedPoint:
        """Return the sum of the clipped contributions times these weights."""


class Selection(Protocol):
    """A choice that is made with noise and narrows the data, such as a private catalog."""

    def narrowed(self, session: Session, data: Any, /) -> Any:
        """Return the data that the released choice leaves; the session may spend what the choice costs."""

    @property
    def epsilon(self) -> float:
        """Return the epsilon that the choice costs."""

    @property
    def delta(self) -> float:
        """Return the delta that the choice costs."""


class Releases(Protocol):
    """A way to get noisy sums from a source that does not hand out exact ones: parties that add noise."""

    def released(self, query: Query, asked: Sequence[tuple[PartOfSum, Noise]], /) -> list[Floats]:
        """Return one noisy array for each part that is asked for."""


class Noisy(NamedTuple):
    """A released array, and the standard deviation of the noise on each entry (0 without noise).

    Entries of a symmetric matrix have this deviation on the diagonal and less off it.
    """

    values: Floats
    deviation: float


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ReleaseEntry:
    """One release, in exact numbers: everything that its privacy cost depends on.

    `bound` is the sensitivity of the statistic in its norm and `scale` the noise: the standard deviation of
    a Gaussian, the scale of a Laplace, None without noise. `exponent` and `steps` give the scale once more as
    the sampler uses it: `steps` units of 2^`exponent`, at least as much noise as `scale` with the rounding
    to that grid included. A perturbation that devices add, and a selection, state their `epsilon` and
    `delta` instead. `share` is the part of the account that the release costs. `release` is the entry of a
    certificate, made from the mechanism that draws the noise (proofs/certificate.md).
    """

    statistic: str
    part: str
    mechanism: str
    norm: str
    bound: Fraction
    scale: Fraction | None
    size: int
    account: int
    share: Fraction
    epsilon: Fraction | None = None
    delta: Fraction | None = None
    exponent: int | None = None
    steps: Fraction | None = None
    release: Release | None = None

    def to_json(self) -> dict[str, Any]:
        """Return all fields; fractions are texts such as "3/4", so that no digit is lost."""
        found: dict[str, Any] = {}
        for name in self.__slots__:
            value = getattr(self, name)
            found[name] = str(value) if isinstance(value, Fraction) else value
        return found


@dataclass(slots=True)
class _Account:
    """A budget that releases of one kind share, in exact numbers."""

    number: int
    kind: Literal["approximate", "gaussian", "pure", "none"]
    epsilon: Fraction = Fraction(0)
    delta: Fraction = Fraction(0)
    multiplier: float = 0.0
    # What an approximate account has not handed out yet.
    left_epsilon: Fraction = Fraction(0)
    left_delta: Fraction = Fraction(0)


@dataclass(slots=True)
class _Log:
    """What all sessions of one fit share: accounts, entries, the process, and the lock that orders them."""

    accounts: list[_Account] = field(default_factory=list)
    entries: list[ReleaseEntry] = field(default_factory=list)
    lock: threading.RLock = field(default_factory=threading.RLock)
    process: int = field(default_factory=os.getpid)

    def open(self, **fields: Any) -> _Account:
        account = _Account(number=len(self.accounts), **fields)
        self.accounts.append(account)
        return account

    def approximate(self, epsilon: Fraction, delta: Fraction) -> _Account:
        return self.open(
            kind="approximate", epsilon=epsilon, delta=delta, left_epsilon=epsilon, left_delta=delta
        )


@final
class Session:
    """A metered view of one dataset: statistics go in, noisy numbers come out, and every release is logged.

    A session made by `open` has the epsilon and delta of a guarantee. `gaussian` and `laplace` turn them, or
    a part of them, into a session whose budget is a precision or a pure epsilon; `split` and `rounds` divide
    that budget. What a child session owns, its parent no longer has.

    Threads may share a session; copies and processes may not, for each copy would spend the same budget. A
    release that raises has spent its share.

    Stability
        Provisional: estimators outside this library may use it, and its names may still change in 0.x.
    """

    __slots__ = ("_account", "_left", "_log", "_random", "_releases", "_source", "_unit", "_whole")

    _account: _Account
    _left: Fraction
    _log: _Log
    _random: PrivacyRandom | None
    _releases: Releases | None
    _source: Any
    _unit: Unit
    _whole: Fraction

    def __init__(self) -> None:
        raise PrivacyError("Use Session.open(source, guarantee, random); sessions are not made by hand.")

    @classmethod
    def open(
        cls,
        source: Any,
        guarantee: Guarantee,
        random: PrivacyRandom | None,
        *,
        releases: Releases | None = None,
    ) -> Session:
        """Return a session on data that may spend what the guarantee states.

        If the guarantee is none (epsilon is infinite), releases get no noise and `rows` returns the data.
        With `releases`, noisy sums come from elsewhere, such as parties; nothing is drawn here, and `random`
        may be None.
        """
        if random is None and releases is None:
            raise PrivacyError("A session that releases sums itself needs a source of noise.")
        log = _Log()
        if math.isinf(guarantee.epsilon):
            account = log.open(kind="none")
        else:
            account = log.approximate(Fraction(guarantee.epsilon), Fraction(guarantee.delta))
        session = object.__new__(cls)
        session._source, session._random, session._releases = source, random, releases
        session._log, session._unit = log, guarantee.unit
        session._account, session._whole, session._left = account, Fraction(1), Fraction(1)
        return session

    def _child(self, account: _Account, whole: Fraction = Fraction(1)) -> Session:
        child = object.__new__(Session)
        child._source, child._random, child._releases = self._source, self._random, self._releases
        child._log, child._unit = self._log, self._unit
        child._account, child._whole, child._left = account, whole, Fraction(1)
        return child

    # What is public

    @property
    def facts(self) -> Any:
        """Return the public facts."""
        return self._source.facts

    @property
    def catalog(self) -> Any:
        """Return all items."""
        return self._source.catalog

    @property
    def n_items(self) -> int:
        """Return the number of items in the catalog."""
        return int(self._source.facts.n_items)

    @property
    def has_times(self) -> bool:
        """Return whether ratings may have times, which is public."""
        return bool(getattr(self._source, "has_times", True))

    @property
    def is_private(self) -> bool:
        """Return whether releases get noise."""
        return self._account.kind != "none"

    @property
    def simulated(self) -> bool:
        """Return whether the noise comes from a seed, which protects nobody."""
        return self._random is not None and self._random.simulated

    @property
    def log(self) -> tuple[ReleaseEntry, ...]:
        """Return all releases so far, also those of parents and children."""
        with self._log.lock:
            return tuple(self._log.entries)

    # The budget

    def gaussian(self, *, epsilon: float | None = None, delta: float | None = None) -> Session:
        """Return a session for Gaussian releases that costs this (epsilon, delta), or all that is left."""
        if not self.is_private:
            return self._child(self._account)
        with self._log.lock:
            spent = self._take(epsilon, delta)
            multiplier = gaussian_multiplier(round_down(spent[0]), round_down(spent[1]))
            account = self._log.open(kind="gaussian", epsilon=spent[0], delta=spent[1], multiplier=multiplier)
        return self._child(account)

    def laplace(self, *, epsilon: float | None = None) -> Session:
        """Return a session for pure releases that costs this epsilon, or all that is left."""
        if not self.is_private:
            return self._child(self._account)
        with self._log.lock:
            spent = self._take(epsilon, 0.0)
            account = self._log.open(kind="pure", epsilon=spent[0])
        return self._child(account)

    def part(self, *, epsilon: float, delta: float = 0.0) -> Session:
        """Return a session that may spend this (epsilon, delta) in any way."""
        if not self.is_private:
            return self._child(self._account)
        with self._log.lock:
            return self._child(self._log.approximate(*self._take(epsilon, delta)))

    def _take(self, epsilon: float | None, delta: float | None) -> tuple[Fraction, Fraction]:
        """Take an epsilon and a delta off a session that has both; the lock is held."""
        self._refuse_copies()
        account = self._account
        if account.kind != "approximate":
            raise PrivacyError("This budget is a precision or a pure epsilon. Divide it with split.")
        asked = account.left_epsilon if epsilon is None else Fraction(epsilon)
        more = account.left_delta if delta is None else Fraction(delta)
        if not 0 < asked <= account.left_epsilon or not 0 <= more <= account.left_delta:
            raise Overspent(
                f"epsilon={float(asked):g} and delta={float(more):g} are asked for, and "
                f"{float(account.left_epsilon):g} and {float(account.left_delta):g} are left."
            )
        account.left_epsilon -= asked
        account.left_delta -= more
        return asked, more

    @property
    def left(self) -> Fraction:
        """Return the exact share of this session's own budget that is left."""
        if self._account.kind == "approximate":
            return self._account.left_epsilon / self._account.epsilon
        return self._left

    @property
    def multiplier(self) -> float:
        """Return the noise multiplier of one Gaussian release of this session's whole budget; 0: no noise."""
        return self.multiplier_of(Fraction(1))

    def multiplier_of(self, share: Fraction) -> float:
        """Return the noise multiplier of one Gaussian release of this share; 0 means no noise."""
        if not self.is_private:
            return 0.0
        if self._account.kind != "gaussian":
            raise PrivacyError("Only a session made by gaussian() has a noise multiplier.")
        return _sigma(self._account.multiplier, 1.0, self._whole * _share(share))

    @property
    def epsilon(self) -> float:
        """Return the pure epsilon of this session's whole budget; infinite without noise."""
        if not self.is_private:
            return math.inf
        if self._account.kind != "pure":
            raise PrivacyError("Only a session made by laplace() has a pure epsilon.")
        return round_down(self._account.epsilon * self._whole)

    def split(self, *shares: Fraction) -> tuple[Session, ...]:
        """Return one child session per share of this session's budget; the children own their shares."""
        with self._log.lock:
            self._reserve(sum(map(_share, shares), Fraction(0)))
        return tuple(self._child(self._account, self._whole * _share(share)) for share in shares)

    def rest(self) -> Session:
        """Return a child session that owns all that is left."""
        with self._log.lock:
            return self.split(self._left)[0]

    def rounds(self, count: int) -> tuple[Session, ...]:
        """Return `count` child sessions that share all that is left evenly; a skipped round is spent."""
        with self._log.lock:
            return self.split(*[self._left / count] * count)

    def _reserve(self, share: Fraction) -> None:
        """Take a share off this session's own budget; the lock is held."""
        self._refuse_copies()
        if self._account.kind == "approximate":
            raise PrivacyError(
                "Turn this budget into Gaussian or pure releases first: gaussian(), laplace()."
            )
        if share <= 0:
            raise Overspent(f"A share of {float(share):g} is asked for; a share is more than 0.")
        if share > self._left:
            raise Overspent(f"A share of {float(share):g} is asked for and {float(self._left):g} is left.")
        self._left -= share

    def _refuse_copies(self) -> None:
        """Raise in a forked process: its copy of the budget is the parent's to spend."""
        if os.getpid() != self._log.process and not self.simulated:
            raise PrivacyError(
                "A budget is spent only in the process that opened the session: each copy of the process "
                "would spend it again. Ask there."
            )

    def __reduce_ex__(self, protocol: Any) -> NoReturn:
        raise PrivacyError("A session cannot be copied or pickled: each copy would spend the same budget.")

    # Releases

    def deviation(self, query: Query, share: Fraction, part: str | None = None) -> float:
        """Return the deviation that a release of this share would have; it costs nothing."""
        return _deviation(self._noise(_part(query, part), _share(share)))

    def release(self, query: Query, share: Fraction, *, part: str | None = None) -> Noisy:
        """Return the noisy sum of one part of a statistic (its only one, if not named).

        Raises:
            Overspent: Less than this share is left; no data were read.
        """
        return self.release_parts(query, {_part(query, part).name: share})[0]

    def release_parts(self, query: Query, shares: Mapping[str, Fraction]) -> list[Noisy]:
        """Return noisy sums of several parts of one statistic, each for its own share, from one pass."""
        asked = []
        with self._log.lock:
            self._reserve(sum(map(_share, shares.values()), Fraction(0)))
            for name, share in shares.items():
                part = _part(query, name)
                noise = self._noise(part, _share(share))
                self._log.entries.append(self._entry(query, part, noise, _share(share)))
                asked.append((part, noise))
        if self._releases is not None:
            found = self._releases.released(query, asked)
        else:
            found = self._drawn(query, asked)
        return [Noisy(values, _deviation(noise)) for values, (_, noise) in zip(found, asked, strict=True)]

    def _drawn(self, query: Query, asked: Sequence[tuple[PartOfSum, Noise]]) -> list[Floats]:
        sums: ExactSums = self._source.total(query)
        return [
            noise.release_symmetric(sums.steps(part.name), self._noise_source())
            if part.symmetric
            else noise.release(sums.steps(part.name), self._noise_source())
            for part, noise in asked
        ]

    def _noise_source(self) -> PrivacyRandom:
        """Return the source of noise; a session whose sums come from elsewhere has none."""
        if self._random is None:
            raise PrivacyError("This model draws noise beside its sums, so it cannot run over parties.")
        return self._random

    def _noise(self, part: PartOfSum, share: Fraction) -> Noise:
        """Return the noise of a release; bound, norm and secret are the statistic's own."""
        if part.of != _SECRETS[self._unit]:
            raise PrivacyError(
                f"{part.name!r} bounds what a {part.of} contributes, and the guarantee is for a {self._unit}."
            )
        match self._account.kind:
            case "none":
                return Gaussian(sigma=0.0, l2_sensitivity=part.bound)
            case "gaussian":
                if part.norm != "l2":
                    raise PrivacyError(f"{part.name!r} is bounded in {part.norm}; Gaussian noise needs l2.")
                sigma = _sigma(self._account.multiplier, part.bound, self._whole * share)
                return Gaussian(sigma=sigma, l2_sensitivity=part.bound)
            case "pure":
                if part.norm != "l1":
                    raise PrivacyError(f"{part.name!r} is bounded in {part.norm}; Laplace noise needs l1.")
                return _laplace(self._account.epsilon * self._whole * share, part.bound)
            case _:
                raise PrivacyError("Turn this budget into Gaussian or pure releases first.")

    def _entry(self, query: Query, part: PartOfSum, noise: Noise, share: Fraction) -> ReleaseEntry:
        size = math.prod(part.shape)
        grid = noise._grid(size)
        scale = noise.sigma if isinstance(noise, Gaussian) else noise.scale
        kind = "none" if not scale else "gaussian" if isinstance(noise, Gaussian) else "laplace"
        return ReleaseEntry(
            statistic=type(query).__name__,
            part=part.name,
            mechanism=kind,
            norm=part.norm,
            bound=Fraction(part.bound),
            scale=Fraction(scale) if scale else None,
            size=size,
            account=self._account.number,
            share=self._whole * share,
            exponent=None if grid is None else grid.exponent,
            steps=None if grid is None else Fraction(grid.noise),
            release=None if grid is None else self._certified(query, part, noise, size),
        )

    @staticmethod
    def _certified(query: Query, part: PartOfSum, noise: Noise, size: int) -> Release:
        name = f"{type(query).__name__}.{part.name}"
        return additive_release(name, noise, size, symmetric=part.symmetric)

    def perturb(self, channel: Perturbation[Reports]) -> Reports:
        """Return the reports that users' devices perturb; their cost is the channel's own epsilon."""
        if channel.of != _SECRETS[self._unit]:
            raise PrivacyError(
                f"{channel.name!r} protects one {channel.of}, and the guarantee is for a {self._unit}."
            )
        if self.is_private:
            drawn_from = getattr(channel, "mechanism", getattr(channel, "flip", None))
            release = perturbed_release(channel.name, drawn_from)
            self._spend(channel.name, Fraction(channel.epsilon), release=release)
        elif math.isfinite(channel.epsilon):
            raise PrivacyError("The guarantee is none, so devices must not claim an epsilon.")
        return channel.over(self._source, self._noise_source())

    def _spend(
        self, mechanism: str, epsilon: Fraction, *, release: Release, statistic: str = "reports"
    ) -> None:
        """Reserve a pure epsilon that a mechanism states itself, and log it."""
        if self._account.kind != "pure":
            raise PrivacyError("Perturbed reports cost a pure epsilon: use a session made by laplace().")
        with self._log.lock:
            whole = self._account.epsilon * self._whole
            share = epsilon / whole
            if epsilon == Fraction(round_down(whole * self._left)):
                # A mechanism's epsilon is a float: what no float can spend goes with the last release.
                share = self._left
            self._reserve(share)
            self._log.entries.append(
                ReleaseEntry(
                    statistic=statistic,
                    part=statistic,
                    mechanism=mechanism,
                    norm="l1",
                    bound=Fraction(1),
                    scale=None,
                    size=0,
                    account=self._account.number,
                    share=self._whole * share,
                    epsilon=epsilon,
                    release=release,
                )
            )

    def sampled(self, query: SampledQuery, share: Fraction, *, max_weight: float) -> Noisy:
        """Return the noisy sum of an importance sample of all contributions, for a pure share.

        A contribution of norm s is drawn with probability 1 / w and counted w times, with the largest w that
        costs no more than a contribution of norm 1 costs without sampling (proofs/importance_sampling.md).
        """
        part, share = _part(query, None), _share(share)
        noise = self._noise(part, share)
        if not isinstance(noise, Laplace):
            raise PrivacyError("Importance sampling is proved for Laplace noise: use laplace().")
        mechanism = ImportanceSampling(
            epsilon=noise.l1_sensitivity / noise.scale, scale=noise.scale, max_weight=max_weight
        )
        self._spend(
            "importance-sampling",
            self._account.epsilon * self._whole * share,
            statistic=type(query).__name__,
            release=sampling_release(type(query).__name__, mechanism),
        )
        largest = mechanism.largest_norm()
        drawn, heavier = mechanism.sample(query.norms(self._source, largest), self._noise_source())
        sums = query.weighted(self._source, np.where(drawn, heavier, 0.0), largest)
        return Noisy(mechanism.noisy(sums, self._noise_source()), math.sqrt(noise.variance))

    def names(self, query: Query, *, epsilon: float, delta: float, most: int) -> npt.NDArray[np.bool_]:
        """Return which entries of a secret set enough users have, each decided with noise.

        A user adds equal entries of norm at most 1 to at most `most` of them (proofs/private_catalog.md).
        """
        part = _part(query, None)
        if part.of != _SECRETS[self._unit] or part.norm != "l2" or part.bound != 1.0:
            raise PrivacyError("Names are selected by users' votes of l2 norm at most 1.")
        mechanism = NoisyThreshold(epsilon=epsilon, delta=delta, most=most)
        with self._log.lock:
            spent, failing = self._take(epsilon, delta)
            account = self._log.open(kind="approximate", epsilon=spent, delta=failing)
            self._log.entries.append(
                ReleaseEntry(
                    statistic=type(query).__name__,
                    part=part.name,
                    mechanism="threshold",
                    norm="l2",
                    bound=Fraction(1),
                    scale=Fraction(mechanism.noise().sigma),
                    size=0,
                    account=account.number,
                    share=Fraction(1),
                    epsilon=spent,
                    delta=failing,
                    release=threshold_release(type(query).__name__, mechanism),
                )
            )
        return mechanism.passing(self._source.total(query).steps(part.name), self._noise_source())

    def select(self, choice: Selection) -> Session:
        """Return this session on the data that a choice made with noise leaves; the choice is paid here."""
        part = self.part(epsilon=choice.epsilon, delta=choice.delta)
        return self.mapped(lambda data: choice.narrowed(part, data))

    def mapped(self, change: Callable[[Any], Any]) -> Session:
        """Return a session with the same budget on changed data, each user's row changed by itself.

        Estimators bound rows with it and selections narrow data. If the change is not by rows, such as a
        matrix that is completed and kept, queries must bound what *any* change of the data does to them.
        """
        if self._account.kind not in ("approximate", "none"):
            raise PrivacyError("Data change before a budget is divided, never after.")
        session = self._child(self._account)
        session._source = change(self._source)
        return session

    def with_stream(self, name: str) -> Session:
        """Return this session with noise of its own: what it draws does not depend on what others drew."""
        if self._account.kind not in ("approximate", "none"):
            raise PrivacyError("Noise gets a stream of its own before a budget is divided, never after.")
        session = self._child(self._account)
        session._random = self._noise_source().spawn(name)
        return session

    def repeated(self) -> Session:
        """Return a session that may spend this session's budget once more, for experiments only.

        Its releases have a log of their own.

        Raises:
            PrivacyError: The noise is not simulated, so that a budget can be spent only once.
        """
        if not self.simulated:
            raise PrivacyError("A budget is spent once. Simulated noise repeats, for it protects nobody.")
        session, log = self._child(self._account, self._whole), _Log()
        session._log, session._account = log, replace(self._account, number=0)
        log.accounts.append(session._account)
        return session

    # Where there is no guarantee, or part of the data is public

    def rows(self) -> Any:
        """Return the data; only a session without a guarantee has them."""
        if self.is_private:
            raise PrivacyError("Training under a guarantee sees released numbers only, never rows.")
        return self._source

    def pattern(self) -> Any:
        """Return which items each user rated, where the guarantee covers the values of ratings alone."""
        if self._unit is not Unit.VALUE:
            raise PrivacyError("Which items were rated is secret under this guarantee.")
        return self._source.pattern()

    def published_noise(
        self, values: Floats | FixedPoint, *, scale: float, bound: float | None = None
    ) -> Floats:
        """Return values with Laplace noise of a scale that a paper prints and nobody proved.

        Only a session without a guarantee adds such noise: it protects nobody. `bound` is the sensitivity
        that the paper states, to which the resolution of the noise is adapted.
        """
        if self.is_private:
            raise PrivacyError("Noise under a guarantee is set by the budget. Use release.")
        return Laplace(scale=scale, l1_sensitivity=bound or scale).release(values, self._noise_source())

    # The end of a fit

    def check(self, guarantee: Guarantee) -> None:
        """Raise unless the log costs at most the guarantee; it reads the log alone, not what was reserved.

        Raises:
            Overspent: The releases cost more than the guarantee states. The model must not leave.
        """
        if math.isinf(guarantee.epsilon):
            return
        spent = [_spent(account, self.log) for account in self._log.accounts]
        epsilon = sum((one[0] for one in spent), Fraction(0))
        delta = sum((one[1] for one in spent), Fraction(0))
        if epsilon > Fraction(guarantee.epsilon) or delta > Fraction(guarantee.delta):
            raise Overspent(
                f"The releases cost epsilon={float(epsilon):g} and delta={float(delta):g}; the guarantee is "
                f"{guarantee.epsilon:g} and {guarantee.delta:g}. No model was made."
            )

    def certificate(self, guarantee: Guarantee) -> dict[str, Any] | None:
        """Return the certificate of all releases so far; None if the log lacks one, or one has no noise."""
        releases = [entry.release for entry in self.log if entry.release is not None]
        whole = len(releases) == len(self.log) > 0
        return certificate(guarantee, releases) if whole and math.isfinite(guarantee.epsilon) else None

    def unspent(self) -> Fraction:
        """Return the largest part of any account that no release used: 0 if all that was taken was spent."""
        lost = [Fraction(0)]
        for account in self._log.accounts:
            if account.kind == "approximate":
                lost += [account.left_epsilon / account.epsilon]
                lost += [account.left_delta / account.delta] if account.delta else []
            elif account.kind != "none":
                own = (entry.share for entry in self.log if entry.account == account.number)
                lost += [1 - sum(own, Fraction(0))]
        return max(lost)


def share(number: float) -> Fraction:
    """Return the exact fraction that a decimal number stands for: 1/50 for 0.02.

    Example:
        >>> share(0.02) + share(0.25) + share(0.73)
        Fraction(1, 1)
    """
    return Fraction(repr(float(number)))


def gaussian_event(epsilon: float, delta: float) -> DpEvent:
    """Return the event of all that a Gaussian session of this budget releases."""
    return Gaussian.calibrated(epsilon=epsilon, delta=delta, l2_sensitivity=1.0).event()


def laplace_event(epsilon: float) -> DpEvent:
    """Return the event of one Laplace release of this epsilon."""
    return Laplace.calibrated(epsilon=epsilon, l1_sensitivity=1.0).event()


def laplace_scale(*, epsilon: float, bound: float, rounds: int = 1) -> float:
    """Return the scale of each of `rounds` equal Laplace releases that cost this epsilon together.

    Raises:
        ParameterError: No such noise can be drawn. An estimator calls this before anything is spent.
    """
    return _laplace(Fraction(epsilon) / rounds, bound).scale


def gaussian_deviation(*, epsilon: float, delta: float, bound: float, rounds: int = 1) -> float:
    """Return the deviation of each of `rounds` equal Gaussian releases that cost (epsilon, delta) together.

    Raises:
        ParameterError: No such noise can be drawn. An estimator calls this before anything is spent.
    """
    sigma = _sigma(gaussian_multiplier(epsilon, delta), bound, Fraction(1, rounds))
    return Gaussian(sigma=sigma, l2_sensitivity=bound).sigma


def planned_noise(epsilon: float, delta: float, shares: Sequence[Fraction]) -> list[Noise]:
    """Return the noise of one release per share for sensitivity 1, as a session would draw it."""
    if math.isinf(epsilon):
        return [Gaussian(sigma=0.0, l2_sensitivity=1.0) for _ in shares]
    if delta == 0:
        parts = [round_down(Fraction(epsilon) * share) for share in shares]
        return [Laplace.calibrated(epsilon=part, l1_sensitivity=1.0) for part in parts]
    whole = gaussian_multiplier(epsilon, delta)
    return [Gaussian(sigma=_sigma(whole, 1.0, share), l2_sensitivity=1.0) for share in shares]


def threshold_events(*, epsilon: float, delta: float, most: int) -> Sequence[Any]:
    """Return the events of `Session.names`; raise for a budget that it cannot spend."""
    return NoisyThreshold(epsilon=epsilon, delta=delta, most=most).events()


def _part(query: Any, name: str | None) -> PartOfSum:
    parts: Sequence[PartOfSum] = query.parts
    if name is None:
        if len(parts) != 1:
            raise PrivacyError(f"{type(query).__name__} has several parts. Name a share for each of them.")
        return parts[0]
    return next(part for part in parts if part.name == name)


def _share(share: Fraction) -> Fraction:
    """Return an exact share; a float would hide a rounding that nobody accounts for."""
    if not isinstance(share, Fraction):
        raise PrivacyError(f"Shares are exact fractions, and {share!r} is a {type(share).__name__}.")
    return share


def _laplace(epsilon: Fraction, bound: float) -> Laplace:
    return Laplace.calibrated(epsilon=round_down(epsilon), l1_sensitivity=bound)


def _sigma(multiplier: float, bound: float, share: Fraction) -> float:
    """Return the least float with (bound / sigma)^2 at most share / multiplier^2."""
    exact = Fraction(multiplier) * Fraction(bound)
    if share == 1:
        return round_up(exact)
    return round_up(root_above(exact**2 / share))


def _deviation(noise: Noise) -> float:
    return noise.sigma if isinstance(noise, Gaussian) else math.sqrt(noise.variance)


def _spent(account: _Account, entries: Sequence[ReleaseEntry]) -> tuple[Fraction, Fraction]:
    """Return the (epsilon, delta) of one account's releases, from their noise and bounds alone."""
    own = [entry for entry in entries if entry.account == account.number]
    if not own:
        return Fraction(0), Fraction(0)
    infinite = Fraction(10**9), Fraction(1)
    if account.kind == "gaussian":
        if any(entry.mechanism != "gaussian" or entry.scale is None for entry in own):
            return infinite
        precision = sum(((one.bound / one.scale) ** 2 for one in own if one.scale), Fraction(0))
        calibrated = gaussian_delta(account.multiplier, round_down(account.epsilon))
        if precision * Fraction(account.multiplier) ** 2 > 1 or calibrated > account.delta * _CLOSE:
            return infinite
        return account.epsilon, account.delta
    if account.kind == "pure":
        cost = Fraction(0)
        for one in own:
            if one.epsilon is not None:
                cost += one.epsilon
            elif one.mechanism == "laplace" and one.scale:
                cost += one.bound / one.scale
            else:
                return infinite
        return cost, Fraction(0)
    return account.epsilon, account.delta
