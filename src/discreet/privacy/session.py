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
from typing import Any, Literal, NamedTuple, NoReturn, final

import numpy as np
import numpy.typing as npt

from discreet.core import Floats, PrivacyRandom
from discreet.privacy import errors
from discreet.privacy.accounting.gaussian import gaussian_delta, gaussian_multiplier
from discreet.privacy.accounting.rounding import round_down
from discreet.privacy.certificate import (
    certificate,
    perturbed_release,
    sampling_release,
    threshold_release,
)
from discreet.privacy.continual import ContinualPlan, ContinualState, Stream, certified
from discreet.privacy.guarantee import Guarantee, Unit
from discreet.privacy.mechanisms.additive import (
    FixedPoint,
    Gaussian,
    Laplace,
    Noise,
    Release,
    additive_release,
    gaussian_sigma,
    laplace_noise,
)
from discreet.privacy.mechanisms.selection import NoisyThreshold
from discreet.privacy.mechanisms.subsampling import ImportanceSampling
from discreet.privacy.noise_shares import ShareUnits, with_share
from discreet.privacy.queries import (
    ExactSums,
    PartOfSum,
    Perturbation,
    Query,
    Releases,
    Reports,
    SampledQuery,
    Selection,
)


def share(number: float) -> Fraction:
    """Return the exact fraction of a decimal number: 1/50 for 0.02.

    Example:
        >>> share(0.02) + share(0.25) + share(0.73)
        Fraction(1, 1)
    """
    return Fraction(repr(float(number)))


# A delta that is computed once more agrees with the calibrated one to about 1e-9 (proofs/accounting.md).
_CLOSE = Fraction(1_000_001, 1_000_000)


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
        """Return all fields. Fractions are texts such as "3/4", so that no digit is lost."""
        found: dict[str, Any] = {}
        for name in self.__slots__:
            value = getattr(self, name)
            found[name] = str(value) if isinstance(value, Fraction) else value
        return found


@dataclass(slots=True)
class SpendingAccount:
    """A budget that releases of one kind share, in exact numbers."""

    number: int
    kind: Literal["approximate", "gaussian", "pure", "none"]
    epsilon: Fraction = Fraction(0)
    delta: Fraction = Fraction(0)
    multiplier: float = 0.0
    # The part of an approximate account that isn't assigned yet.
    left_epsilon: Fraction = Fraction(0)
    left_delta: Fraction = Fraction(0)


@dataclass(slots=True)
class ReleaseLog:
    """Shared state of all sessions of a fit: accounts, entries, what is expected, the process, and a lock."""

    accounts: list[SpendingAccount] = field(default_factory=list)
    entries: list[ReleaseEntry] = field(default_factory=list)
    expected: list[Release] = field(default_factory=list)
    lock: threading.RLock = field(default_factory=threading.RLock)
    process: int = field(default_factory=os.getpid)

    def open(self, **fields: Any) -> SpendingAccount:
        """Return a new account."""
        account = SpendingAccount(number=len(self.accounts), **fields)
        self.accounts.append(account)
        return account

    def approximate(self, epsilon: Fraction, delta: Fraction) -> SpendingAccount:
        """Return a new account with an epsilon and a delta that aren't divided yet."""
        return self.open(
            kind="approximate", epsilon=epsilon, delta=delta, left_epsilon=epsilon, left_delta=delta
        )


def spent(account: SpendingAccount, entries: Sequence[ReleaseEntry]) -> tuple[Fraction, Fraction]:
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


# The contribution of one secret of a guarantee to a statistic: a user's whole vector, or one rating's.
_SECRETS = {Unit.USER: "person", Unit.RATING: "rating", Unit.VALUE: "rating"}


class Noisy(NamedTuple):
    """A released array, and the standard deviation of the noise on each entry (0 without noise).

    Entries of a symmetric matrix have this deviation on the diagonal and less off it.
    """

    values: Floats
    deviation: float


@final
class Session:
    """A metered view of one dataset: statistics go in, noisy numbers come out, and every release is logged.

    A session made by `open` has the epsilon and delta of a guarantee. `gaussian` and `laplace` turn them, or
    a part of them, into a session whose budget is a precision or a pure epsilon; `split` and `rounds` divide
    that budget. A child session owns its part, and its parent no longer has it.

    Threads may share a session. Copies and processes may not, because each copy would spend the same budget.
    A release that raises has spent its share.

    Stability
        Provisional: estimators outside this library may use it, and its names may still change in 0.x.
    """

    __slots__ = ("_account", "_left", "_log", "_random", "_releases", "_source", "_unit", "_whole")

    _account: SpendingAccount
    _left: Fraction
    _log: ReleaseLog
    _random: PrivacyRandom | None
    _releases: Releases | None
    _source: Any
    _unit: Unit
    _whole: Fraction

    def __init__(self) -> None:
        raise errors.MadeByHand()

    @classmethod
    def open(
        cls,
        source: Any,
        guarantee: Guarantee,
        random: PrivacyRandom | None,
        *,
        releases: Releases | None = None,
    ) -> Session:
        """Return a session on data that may spend the budget of the guarantee.

        If the guarantee is empty (epsilon is infinite), releases get no noise and `rows` returns the data.
        With `releases`, noisy sums come from elsewhere, such as parties. Nothing is drawn here, and `random`
        may be None.
        """
        if random is None and releases is None:
            raise errors.NoNoiseSource()
        log = ReleaseLog()
        if math.isinf(guarantee.epsilon):
            account = log.open(kind="none")
        else:
            account = log.approximate(Fraction(guarantee.epsilon), Fraction(guarantee.delta))
        session = object.__new__(cls)
        session._source, session._random, session._releases = source, random, releases
        session._log, session._unit = log, guarantee.unit
        session._account, session._whole, session._left = account, Fraction(1), Fraction(1)
        return session

    def _child(self, account: SpendingAccount, whole: Fraction = Fraction(1)) -> Session:
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
        """Return whether the noise comes from a seed, which protects no user."""
        return self._random is not None and self._random.simulated

    @property
    def log(self) -> tuple[ReleaseEntry, ...]:
        """Return all releases so far, including those of parents and children."""
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
        """Subtract an epsilon and a delta from a session that has both. The caller has the lock."""
        self._refuse_copies()
        account = self._account
        if account.kind != "approximate":
            raise errors.WrongBudget(kind=account.kind, needs=("approximate",))
        asked = account.left_epsilon if epsilon is None else Fraction(epsilon)
        more = account.left_delta if delta is None else Fraction(delta)
        if not 0 < asked <= account.left_epsilon or not 0 <= more <= account.left_delta:
            raise errors.Overspent(
                asked=f"epsilon={float(asked):g} and delta={float(more):g}",
                left=f"epsilon={float(account.left_epsilon):g} and delta={float(account.left_delta):g}",
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
        """Return the noise multiplier of one Gaussian release of the whole budget; 0 means no noise."""
        return self.multiplier_of(Fraction(1))

    def multiplier_of(self, share: Fraction) -> float:
        """Return the noise multiplier of one Gaussian release of this share; 0 means no noise."""
        if not self.is_private:
            return 0.0
        if self._account.kind != "gaussian":
            raise errors.WrongBudget(kind=self._account.kind, needs=("gaussian",))
        return gaussian_sigma(self._account.multiplier, 1.0, self._whole * _share(share))

    @property
    def epsilon(self) -> float:
        """Return the pure epsilon of this session's whole budget; infinite without noise."""
        if not self.is_private:
            return math.inf
        if self._account.kind != "pure":
            raise errors.WrongBudget(kind=self._account.kind, needs=("pure",))
        return round_down(self._account.epsilon * self._whole)

    def split(self, *shares: Fraction) -> tuple[Session, ...]:
        """Return one child session per share of this session's budget. The children own their shares."""
        with self._log.lock:
            self._reserve(*map(_share, shares))
        return tuple(self._child(self._account, self._whole * _share(share)) for share in shares)

    def rest(self) -> Session:
        """Return a child session that owns all that is left."""
        with self._log.lock:
            return self.split(self._left)[0]

    def rounds(self, count: int) -> tuple[Session, ...]:
        """Return `count` child sessions that share all that is left evenly. A skipped round is spent."""
        with self._log.lock:
            return self.split(*[self._left / count] * count)

    def _reserve(self, *shares: Fraction) -> None:
        """Subtract shares from this session's own budget. The caller has the lock.

        Each share is positive: next to a negative one, another could exceed the budget.
        """
        self._refuse_copies()
        if self._account.kind == "approximate":
            raise errors.WrongBudget(kind=self._account.kind, needs=("gaussian", "pure"))
        whole = sum(shares, Fraction(0))
        if whole > self._left or min(shares, default=Fraction(0)) <= 0:
            asked = " + ".join(f"{float(share):g}" for share in shares) or "0"
            raise errors.Overspent(asked=f"a share of {asked}", left=f"{float(self._left):g}")
        self._left -= whole

    def _refuse_copies(self) -> None:
        """Raise in a forked process: its copy of the budget belongs to the parent."""
        if os.getpid() != self._log.process and not self.simulated:
            raise errors.MadeByHand()

    def __reduce_ex__(self, protocol: Any) -> NoReturn:
        raise errors.MadeByHand()

    # Releases

    def deviation(self, query: Query, share: Fraction, part: str | None = None) -> float:
        """Return the deviation that a release of this share would have. This costs nothing."""
        return _deviation(self._noise(_part(query, part), _share(share)))

    def expect(self, query: Query, share: Fraction, count: int) -> None:
        """Announce releases of a model that answers after its fit, for the certificate. This costs nothing.

        Raises:
            Overspent: Less than these shares is left.
        """
        part, each = _part(query, None), _share(share)
        if each * count > self._left:
            raise errors.Overspent(asked=f"{count} shares of {float(each):g}", left=f"{float(self._left):g}")
        release = self._entry(query, part, self._noise(part, each), each).release
        if release is not None:
            self._log.expected.append({**release, "count": count})

    def release(self, query: Query, share: Fraction, *, part: str | None = None) -> Noisy:
        """Return the noisy sum of one part of a statistic. Without a name, the statistic must have one part.

        Raises:
            Overspent: Less than this share is left. No data were read.
        """
        return self._released(query, [(_part(query, part), share)])[0]

    def release_parts(self, query: Query, shares: Mapping[str, Fraction]) -> list[Noisy]:
        """Return noisy sums of several parts of one statistic, each for its own share, from one pass."""
        return self._released(query, [(_part(query, name), share) for name, share in shares.items()])

    def _released(self, query: Query, wanted: Sequence[tuple[PartOfSum, Fraction]]) -> list[Noisy]:
        asked = []
        with self._log.lock:
            self._reserve(*[_share(share) for _, share in wanted])
            for part, share in wanted:
                noise = self._noise(part, share)
                self._log.entries.append(self._entry(query, part, noise, share))
                asked.append((part, noise))
        if self._releases is not None:
            found = self._releases.released(query, asked)
        else:
            found = self._drawn(query, asked)
        return [Noisy(values, _deviation(noise)) for values, (_, noise) in zip(found, asked, strict=True)]

    def release_share(self, query: Query, part: str, units: ShareUnits) -> npt.NDArray[np.uint64]:
        """Return one part of a statistic with this party's share of the noise, for all that is left.

        The log states the noise that the fewest parties add together. A share alone hides less, so its
        numbers leave a party only behind a mask (proofs/federated.md).
        """
        asked = _part(query, part)
        with self._log.lock:
            share = self._left
            noise = self._noise(asked, share) if share else None
            if not isinstance(noise, Gaussian):
                raise errors.Overspent(asked="a share of Gaussian noise", left="none")
            self._reserve(share)
            # A share is certified with the shares of the others, not alone.
            self._log.entries.append(self._entry(query, asked, noise, share, certified=False))
        sums: Any = self._source.total(query)
        return with_share(
            sums.steps(asked.name), noise.sigma, units, self._noise_source(), symmetric=asked.symmetric
        )

    def _drawn(self, query: Query, asked: Sequence[tuple[PartOfSum, Noise]]) -> list[Floats]:
        random, found = self._noise_source(), []
        sums: ExactSums = self._source.total(query)
        for part, noise in asked:
            release = noise.release_symmetric if part.symmetric else noise.release
            found.append(release(sums.steps(part.name), random))
        return found

    def _noise_source(self) -> PrivacyRandom:
        """Return the source of noise. Raise for a session whose sums come from elsewhere."""
        if self._random is None:
            raise errors.NoNoiseSource()
        return self._random

    def _noise(self, part: PartOfSum, share: Fraction) -> Noise:
        """Return the noise of a release. Bound, norm, and secret are the statistic's own."""
        if part.of != _SECRETS[self._unit]:
            raise errors.WrongSecret(name=part.name, of=part.of, unit=str(self._unit))
        match self._account.kind:
            case "none":
                return Gaussian(sigma=0.0, l2_sensitivity=part.bound)
            case "gaussian":
                if part.norm != "l2":
                    raise errors.WrongNorm(name=part.name, norm=part.norm, needs="l2")
                sigma = gaussian_sigma(self._account.multiplier, part.bound, self._whole * share)
                return Gaussian(sigma=sigma, l2_sensitivity=part.bound)
            case "pure":
                if part.norm != "l1":
                    raise errors.WrongNorm(name=part.name, norm=part.norm, needs="l1")
                return laplace_noise(self._account.epsilon * self._whole * share, part.bound)
            case _:
                raise errors.WrongBudget(kind=self._account.kind, needs=("gaussian", "pure"))

    def _entry(
        self, query: Query, part: PartOfSum, noise: Noise, share: Fraction, *, certified: bool = True
    ) -> ReleaseEntry:
        name, size = f"{type(query).__name__}.{part.name}", math.prod(part.shape)
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
            release=additive_release(name, noise, size, symmetric=part.symmetric)
            if grid is not None and certified
            else None,
        )

    def perturb(self, channel: Perturbation[Reports]) -> Reports:
        """Return the reports that users' devices perturb. Their cost is the channel's own epsilon."""
        if channel.of != _SECRETS[self._unit]:
            raise errors.WrongSecret(name=channel.name, of=channel.of, unit=str(self._unit))
        if self.is_private:
            drawn_from = getattr(channel, "mechanism", getattr(channel, "flip", None))
            release = perturbed_release(channel.name, drawn_from)
            self._spend(channel.name, Fraction(channel.epsilon), release=release)
        elif math.isfinite(channel.epsilon):
            raise errors.ClaimedEpsilon()
        return channel.over(self._source, self._noise_source())

    def _spend(
        self, mechanism: str, epsilon: Fraction, *, release: Release, statistic: str = "reports"
    ) -> None:
        """Reserve a pure epsilon that a mechanism states itself, and log it."""
        if self._account.kind != "pure":
            raise errors.WrongBudget(kind=self._account.kind, needs=("pure",))
        with self._log.lock:
            whole = self._account.epsilon * self._whole
            share = epsilon / whole
            if epsilon == Fraction(round_down(whole * self._left)):
                # A mechanism's epsilon is a float. A part that no float can spend goes with the last release.
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
            raise errors.WrongBudget(kind=self._account.kind, needs=("pure",))
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

    def stream(self, plan: ContinualPlan, state: ContinualState) -> Stream:
        """Return all releases of a period, for all that is left of a Gaussian budget.

        The budget is spent here, once. `Stream.release` draws the releases that the state doesn't have yet.
        If a session is opened again on the same state, it continues the same period.
        """
        if self._account.kind != "gaussian":
            raise errors.WrongBudget(kind=self._account.kind, needs=("gaussian",))
        if self._unit is not Unit.USER:
            raise errors.WrongSecret(name="A plan", of="user", unit=str(self._unit))
        with self._log.lock:
            share = self._left
            if not share:
                raise errors.Overspent(asked="a period of releases", left="none")
            multiplier = self.multiplier_of(share)
            stream = Stream(plan, state, multiplier=multiplier, random=self._noise_source())
            self._reserve(share)
            self._log.entries.append(
                ReleaseEntry(
                    statistic=plan.name,
                    part=plan.name,
                    mechanism="gaussian",
                    norm="l2",
                    bound=Fraction(1),
                    scale=Fraction(multiplier),
                    size=0,
                    account=self._account.number,
                    share=self._whole * share,
                    exponent=-plan.bits,
                    steps=Fraction(stream.width),
                    # A party's share of the noise is certified with the shares of the others, not alone.
                    release=certified(plan, stream.width) if plan.shares == 1 else None,
                )
            )
        return stream

    def names(self, query: Query, *, epsilon: float, delta: float) -> npt.NDArray[np.bool_]:
        """Return which entries of a secret set enough users have, each decided with noise.

        A user adds equal entries of norm at most 1 to as many of them as the part states
        (proofs/private_catalog.md).
        """
        part = _part(query, None)
        bounded = part.norm == "l2" and part.bound == 1.0 and part.most is not None
        if part.of != _SECRETS[self._unit] or not bounded or part.most is None:
            raise errors.WrongSecret(
                name="A selection of names",
                of="user with a bounded number of votes of l2 norm at most 1",
                unit=str(self._unit),
            )
        mechanism = NoisyThreshold(epsilon=epsilon, delta=delta, most=part.most)
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
        """Return this session on the data narrowed by a choice with noise. The choice is spent here."""
        part = self.part(epsilon=choice.epsilon, delta=choice.delta)
        return self.mapped(lambda data: choice.narrowed(part, data))

    def mapped(self, change: Callable[[Any], Any]) -> Session:
        """Return a session with the same budget on changed data, each user's row changed by itself.

        Estimators bound rows with it, and selections narrow data. If the change isn't by rows, such as a
        matrix that is completed and kept, queries must bound the effect of *any* change of the data.
        """
        if self._account.kind not in ("approximate", "none"):
            raise errors.WrongBudget(kind=self._account.kind, needs=("approximate", "none"))
        session = self._child(self._account)
        session._source = change(self._source)
        return session

    def with_stream(self, name: str) -> Session:
        """Return this session with its own noise: its draws don't depend on the draws of others."""
        if self._account.kind not in ("approximate", "none"):
            raise errors.WrongBudget(kind=self._account.kind, needs=("approximate", "none"))
        session = self._child(self._account)
        session._random = self._noise_source().spawn(name)
        return session

    def repeated(self) -> Session:
        """Return a session that may spend this session's budget once more, for experiments only.

        Its releases have a log of their own.

        Raises:
            PrivacyError: The noise isn't simulated, so a budget can be spent only once.
        """
        if not self.simulated:
            raise errors.SpentOnce()
        session, log = self._child(self._account, self._whole), ReleaseLog()
        session._log, session._account = log, replace(self._account, number=0)
        log.accounts.append(session._account)
        return session

    # Without a guarantee, or with public parts of the data

    def rows(self) -> Any:
        """Return the data. Raise for a session with a guarantee."""
        if self.is_private:
            raise errors.RowsAreSecret()
        return self._source

    def pattern(self) -> Any:
        """Return which items each user rated, if the guarantee covers only the values of ratings."""
        if self._unit is not Unit.VALUE:
            raise errors.RowsAreSecret()
        return self._source.pattern()

    def published_noise(
        self, values: Floats | FixedPoint, *, scale: float, bound: float | None = None
    ) -> Floats:
        """Return values with Laplace noise of a scale from a paper that isn't proved.

        Only a session without a guarantee adds such noise, because it protects no user. `bound` is the
        sensitivity that the paper states. The resolution of the noise is adapted to it.
        """
        if self.is_private:
            raise errors.RowsAreSecret()
        return Laplace(scale=scale, l1_sensitivity=bound or scale).release(values, self._noise_source())

    # The end of a fit

    def check(self, guarantee: Guarantee) -> None:
        """Raise unless the log costs at most the guarantee. This reads only the log, not the reservations.

        Raises:
            Overspent: The releases cost more than the guarantee states. The model must not leave.
        """
        if math.isinf(guarantee.epsilon):
            return
        costs = [spent(account, self.log) for account in self._log.accounts]
        epsilon = sum((one[0] for one in costs), Fraction(0))
        delta = sum((one[1] for one in costs), Fraction(0))
        if epsilon > Fraction(guarantee.epsilon) or delta > Fraction(guarantee.delta):
            raise errors.GuaranteeExceeded(
                epsilon=float(epsilon), delta=float(delta), allowed=(guarantee.epsilon, guarantee.delta)
            )

    def certificate(self, guarantee: Guarantee) -> dict[str, Any] | None:
        """Return the certificate of all releases. None if an entry has no certificate or no noise.

        If answers after the fit are `expected`, it lists them, too, as often as the budget covers them.
        """
        releases = [entry.release for entry in self.log if entry.release is not None]
        whole = len(releases) == len(self.log) and (releases or self._log.expected)
        known = whole and math.isfinite(guarantee.epsilon)
        return certificate(guarantee, [*releases, *self._log.expected]) if known else None

    def unspent(self) -> Fraction:
        """Return the largest part of any account that no release used. It is 0 if everything was spent."""
        lost = [Fraction(0)]
        for account in self._log.accounts:
            if account.kind == "approximate":
                lost += [account.left_epsilon / account.epsilon]
                lost += [account.left_delta / account.delta] if account.delta else []
            elif account.kind != "none":
                own = (entry.share for entry in self.log if entry.account == account.number)
                lost += [1 - sum(own, Fraction(0))]
        return max(lost)


def _part(query: Any, name: str | None) -> PartOfSum:
    parts: Sequence[PartOfSum] = query.parts
    if name is None:
        if len(parts) != 1:
            raise errors.SharesNeeded(query=type(query).__name__)
        return parts[0]
    return next(part for part in parts if part.name == name)


def _share(share: Fraction) -> Fraction:
    """Return an exact share. A float would hide a rounding, and a subclass may have its own arithmetic."""
    if type(share) is not Fraction:
        raise errors.InexactShare(share=share)
    return share


def _deviation(noise: Noise) -> float:
    return noise.sigma if isinstance(noise, Gaussian) else math.sqrt(noise.variance)
