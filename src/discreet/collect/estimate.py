"""Collected reports with their noise channel, and debiased item means."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, final

import numpy as np
import numpy.typing as npt

from discreet.collect.mechanisms import OpenCells, RatingMechanism, encode
from discreet.core import Floats, PrivacyRandom, failure_probability, finite, integer, non_negative, require
from discreet.data import Interactions, PublicFacts
from discreet.privacy.mechanisms.cells import CellMechanism, HiddenNumbers, HiddenStars
from discreet.privacy.mechanisms.local import mechanism_name
from discreet.solvers import SPREAD, Response, respond

# A continuous scale, or one of very many steps, is approximated by this many ratings.
_LEVELS = 129
_CHUNK = 1 << 18
# The least estimate of the share of reports that come from ratings, however noisy their count is.
_LEAST_SHARE = 0.01


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Collected:
    """Reports as interactions, with the mechanism that made them.

    `reports.values` are the reports in units of the rating scale; `codes` are their indices among the
    mechanism's outputs, in the same order. `reports.facts` are the public facts of the ratings behind them.

    Example:
        >>> from discreet import Interactions, PrivacyRandom
        >>> from discreet.collect import BoundedLaplace
        >>> from discreet.collect.estimate import collect_from
        >>> films = Interactions.from_arrays([1, 1, 2], [1, 2, 1], [5.0, 3.0, 4.0], low=1, high=5)
        >>> mechanism = BoundedLaplace(epsilon=1.0, low=1, high=5)
        >>> collected = collect_from(films, mechanism, PrivacyRandom.simulate(0))
        >>> collected.reports.n_ratings, collected.simulated
        (3, True)

    Stability
        Stable.
    """

    reports: Interactions
    codes: npt.NDArray[np.int32]
    mechanism: RatingMechanism
    simulated: bool = False

    def __post_init__(self) -> None:
        alike = self.codes.shape == self.reports.items.shape
        require(alike, "codes", self.codes.size, must="have one number per report")

    @property
    def facts(self) -> PublicFacts:
        """Return the public facts of the ratings behind the reports."""
        return self.reports.facts

    def response(self, *, spread: float = SPREAD) -> Response:
        """Tabulate the likelihood of every report given an expected rating, on a scale of [0, 1]."""
        channel, low, width = self.mechanism.channel(), self.mechanism.low, self.width
        levels = unit_levels(self.facts)
        nearest = np.abs(channel.inputs[None, :] - (low + width * levels)[:, None]).argmin(axis=1)
        return respond(
            levels,
            channel.transition[nearest],
            (channel.outputs - low) / width,
            spread=spread,
            rated=self.rated_share,
            background=self.mechanism.pretended() if isinstance(self.mechanism, CellMechanism) else None,
        )

    @property
    def rated_share(self) -> float:
        """Return the share of reports that come from ratings: 1, unless unrated items are reported, too."""
        if not isinstance(self.mechanism, CellMechanism):
            return 1.0
        keep, fake = self.mechanism.keep, self.mechanism.fake
        reported = self.reports.n_ratings / (self.reports.n_users * self.reports.n_items)
        rated = (reported - fake) / (keep - fake)
        return float(np.clip(rated * keep / reported, _LEAST_SHARE, 1.0))

    @property
    def item_counts(self) -> Floats:
        """Return about how many users rated each item; estimated if that is hidden."""
        reported = np.bincount(self.reports.items, minlength=self.reports.n_items).astype(np.float64)
        if not isinstance(self.mechanism, CellMechanism):
            return reported
        keep, fake, people = self.mechanism.keep, self.mechanism.fake, self.reports.n_users
        noise = max(np.sqrt(people * fake * (1 - fake)) / (keep - fake), 1.0)
        # Soft at zero: clipping would make ties.
        return np.asarray(noise * np.logaddexp(0.0, (reported - fake * people) / (keep - fake) / noise))

    @property
    def width(self) -> float:
        """Return the width of the rating scale."""
        return self.mechanism.high - self.mechanism.low

    def item_means(self, *, spread: float = SPREAD) -> ItemMeans:
        """Return every item's debiased mean rating, with standard errors.

        `spread` is the typical standard deviation of an item's ratings, as a fraction of the scale: the
        channel is not linear, so the mean report depends on it a little.
        """
        counts = np.bincount(self.reports.items, minlength=self.reports.n_items)
        sums = np.bincount(self.reports.items, weights=self.reports.values, minlength=counts.size)
        return ItemMeans(
            counts=counts,
            mean_reports=sums / np.maximum(counts, 1),
            low=self.mechanism.low,
            width=self.width,
            response=self.response(spread=spread),
        )


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ItemMeans:
    """Each item's number of reports and mean report, from which its mean rating is estimated.

    Example:
        >>> from discreet import Interactions, PrivacyRandom
        >>> from discreet.collect import BoundedLaplace
        >>> from discreet.collect.estimate import collect_from
        >>> films = Interactions.from_arrays([1, 1, 2], [1, 2, 1], [5.0, 3.0, 4.0], low=1, high=5)
        >>> mechanism = BoundedLaplace(epsilon=1.0, low=1, high=5)
        >>> found = collect_from(films, mechanism, PrivacyRandom.simulate(0)).item_means()
        >>> found.counts.tolist(), bool(all((found.means >= 1) & (found.means <= 5)))
        ([2, 1], True)

    Stability
        Stable.
    """

    counts: npt.NDArray[np.int64]
    mean_reports: Floats
    low: float
    width: float
    response: Response

    @property
    def means(self) -> Floats:
        """Return the debiased means, inside the scale; the middle for an item without reports."""
        means = self._invert(self.mean_reports)
        return np.where(self.counts > 0, means, self.low + self.width / 2)

    @property
    def standard_errors(self) -> Floats:
        """Return the standard error of every debiased mean; infinite for an item without reports."""
        slopes = np.gradient(self.response.mean, self.response.grid)
        place = (self.means - self.low) / self.width
        spread = np.sqrt(np.interp(place, self.response.grid, self.response.variance))
        slope = np.interp(place, self.response.grid, slopes)
        with np.errstate(divide="ignore"):
            return np.asarray(self.width * spread / slope / np.sqrt(self.counts))

    def largest_shift(self, share: float) -> Floats:
        """Return how far the means can move if at most this share of every item's reports is false.

        False reports move the mean report by at most `share` times the scale's width; the inverse of the
        channel magnifies that, more so for a smaller epsilon.
        """
        part = finite("share", share)
        require(0 <= part <= 1, "share", share, must="be in [0, 1]")
        moved = (
            self._invert(
                np.clip(self.mean_reports + side * part * self.width, self.low, self.low + self.width)
            )
            for side in (-1, 1)
        )
        shift: Floats = np.maximum(*(np.abs(other - self.means) for other in moved))
        return np.where(self.counts > 0, shift, 0.0)

    def _invert(self, mean_reports: Floats) -> Floats:
        reports = (mean_reports - self.low) / self.width
        return np.asarray(self.low + self.width * np.interp(reports, self.response.mean, self.response.grid))


def unit_levels(facts: PublicFacts) -> Floats:
    """Return the possible ratings in units in which the scale is [0, 1]."""
    if facts.step is not None:
        count = round((facts.high - facts.low) / facts.step) + 1
        if count <= _LEVELS:
            return np.linspace(0.0, 1.0, count)
    return np.linspace(0.0, 1.0, _LEVELS)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceReports:
    """The reports of all devices, for a session to perturb.

    `collect` is `collect_from`, where it shows which items were rated, or `collect_cells`, where it doesn't.
    """

    mechanism: RatingMechanism
    collect: Callable[[Interactions, Any, PrivacyRandom], Collected]
    of: ClassVar[str] = "rating"

    @property
    def name(self) -> str:
        """Return the name of the mechanism."""
        return mechanism_name(self.mechanism) or "exact"

    @property
    def epsilon(self) -> float:
        """Return the epsilon of one report."""
        return self.mechanism.epsilon

    def over(self, data: Interactions, random: PrivacyRandom, /) -> Collected:
        """Return the collected reports."""
        return self.collect(data, self.mechanism, random)


def collect_from(data: Interactions, mechanism: RatingMechanism, random: PrivacyRandom) -> Collected:
    """Perturb every rating as its user's device would, and collect the reports.

    This replaces a campaign where the ratings are already known: in experiments, and for an owner of ratings
    who wants to keep only reports.
    """
    codes = np.empty(data.n_ratings, dtype=np.int32)
    values = np.empty(data.n_ratings, dtype=np.float32)
    for start in range(0, data.n_ratings, _CHUNK):
        some = slice(start, start + _CHUNK)
        reports = mechanism.release(data.values[some], random)
        codes[some], values[some] = encode(mechanism, reports), reports
    return Collected(
        reports=data.pattern().with_values(values),
        codes=codes,
        mechanism=mechanism,
        simulated=random.simulated,
    )


def rho_bound(
    mechanism: CellMechanism, *, people: int, items: int, rated: float, intrinsic: float, gamma: float
) -> float:
    """Return the rho that |P(Theta - Z)|_F exceeds with probability at most `gamma`.

    For stars the unit is one star (ratings are 1, ..., d), for numbers half the scale (ratings lie in
    [-1, 1]). `rated` is the number of ratings, `intrinsic` the root mean square of Theta - X over them in the
    same unit. Proved again in proofs/local_nuclear.md.
    """
    cells = integer("people", people, least=1) * integer("items", items, least=1)
    non_negative("intrinsic", intrinsic)
    require(0 <= rated <= cells, "rated", rated, must="be between 0 and users * items")
    require(failure_probability("gamma", gamma) > 0, "gamma", gamma, must="be greater than 0")
    base = intrinsic * math.sqrt(rated)
    if isinstance(mechanism, HiddenStars):
        levels = mechanism.levels
        odds = 2 * cells * levels / ((math.exp(mechanism.epsilon) + levels) * gamma)
        return base + 2 * (levels - 1) * math.sqrt(odds)
    if isinstance(mechanism, HiddenNumbers):
        epsilon = mechanism.epsilon
        invented = 2 * cells / ((math.exp(epsilon / 2) + 1) * gamma) * (1 + 8 / epsilon**2)
        return base + 4 / epsilon * math.sqrt(rated / gamma) + math.sqrt(invented)
    require(isinstance(mechanism, OpenCells), "mechanism", type(mechanism).__name__, must="have a bound")
    return base


def rho_expected(
    mechanism: CellMechanism, *, people: int, items: int, rated: float, intrinsic: float
) -> float:
    """Return the root of the expected square of |P(Theta - Z)|_F, in the unit of `rho_bound`.

    Ratings are assumed uniform over the scale, and the true values of unrated entries in its middle.
    """
    unit = _unit(mechanism)
    channel = mechanism.channel()
    squares = (channel.outputs[None, :] - channel.inputs[:, None]) ** 2
    moved = float(np.mean(np.einsum("ij,ij->i", channel.transition, squares))) / unit**2
    invented = float(mechanism.pretended() @ (mechanism.outputs() - mechanism.middle) ** 2) / unit**2
    kept = rated * mechanism.keep * (intrinsic**2 + moved)
    return math.sqrt(kept + (people * items - rated) * mechanism.fake * invented)


def _unit(mechanism: CellMechanism) -> float:
    """Return one step of stars, or half the scale of numbers."""
    if isinstance(mechanism, HiddenNumbers):
        return (mechanism.high - mechanism.low) / 2
    outputs = mechanism.outputs()
    return float(outputs[1] - outputs[0])
