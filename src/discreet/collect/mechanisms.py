"""List the mechanisms of campaigns, and encode their reports as small integers."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, Protocol, final

import numpy as np
import numpy.typing as npt

from discreet.collect.errors import NoNoise, NotForCampaigns, OutsideOutputs
from discreet.core import Floats, PrivacyRandom, finite_array
from discreet.privacy import Unit
from discreet.privacy.mechanisms.cells import POINTS, CellMechanism, Codes
from discreet.privacy.mechanisms.channel import Channel
from discreet.privacy.mechanisms.local import RATING_MECHANISMS, mechanism_from, mechanism_name

if TYPE_CHECKING:
    from dp_accounting import DpEvent

RatingCodes = npt.NDArray[np.int32]


class RatingMechanism(Protocol):
    """Define what a campaign needs of a mechanism: its loss, its scale, its reports and their channel."""

    @property
    def epsilon(self) -> float:
        """Return the privacy loss of one report."""

    @property
    def low(self) -> float:
        """Return the smallest rating."""

    @property
    def high(self) -> float:
        """Return the largest rating."""

    def release(self, ratings: npt.ArrayLike, random: PrivacyRandom) -> Floats:
        """Return a report for every rating."""

    def channel(self) -> Channel:
        """Return the probability of each report given each rating."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Exact:
    """Report every rating without noise, rounded to the report values: NOT PRIVATE, for comparisons only."""

    low: float
    high: float
    points: int = 129
    epsilon: float = math.inf

    def release(self, ratings: npt.ArrayLike, random: PrivacyRandom) -> Floats:
        """Return the nearest report values."""
        grid = self.channel().inputs
        steps = (finite_array("ratings", ratings) - self.low) * ((self.points - 1) / (self.high - self.low))
        return grid[np.clip(np.rint(steps), 0, self.points - 1).astype(np.int64)]

    def channel(self) -> Channel:
        """Return the channel without noise."""
        grid = np.linspace(self.low, self.high, self.points)
        return Channel(inputs=grid, outputs=grid, transition=np.eye(self.points))


def kind_of(mechanism: object) -> str:
    """Return the name of a mechanism for the value of a rating; raise for any other."""
    name = mechanism_name(mechanism)
    if name is not None and name in RATING_MECHANISMS:
        return name
    raise NotForCampaigns(mechanism=type(mechanism).__name__, known=tuple(RATING_MECHANISMS))


def unit_of(mechanism: object) -> Unit:
    """Return the privacy unit of one report; for reports without noise, a rating value."""
    if isinstance(mechanism, CellMechanism):
        return Unit.RATING
    if not isinstance(mechanism, Exact):
        kind_of(mechanism)
    return Unit.VALUE


def mechanism_to_json(mechanism: Any) -> dict[str, Any]:
    """Return a mechanism's name and public parameters."""
    return {"name": kind_of(mechanism), **{f.name: getattr(mechanism, f.name) for f in fields(mechanism)}}


def mechanism_from_json(record: Any) -> Any:
    """Read what `mechanism_to_json` wrote; raise for anything else."""
    return mechanism_from(record if isinstance(record, dict) else {}, RATING_MECHANISMS)


def encode(mechanism: RatingMechanism, reports: npt.ArrayLike) -> RatingCodes:
    """Return the index of every report among the mechanism's outputs."""
    outputs = mechanism.channel().outputs
    values = finite_array("reports", reports)
    width = (outputs[-1] - outputs[0]) / (outputs.size - 1)
    codes = np.rint((values - outputs[0]) / width)
    if codes.size and (codes.min() < 0 or codes.max() >= outputs.size):
        raise OutsideOutputs()
    return np.asarray(codes, dtype=np.int32)


def decode(mechanism: RatingMechanism, codes: npt.ArrayLike) -> Floats:
    """Return the reports at these indices among the mechanism's outputs."""
    return mechanism.channel().outputs[np.asarray(codes, dtype=np.int64)]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class OpenCells(CellMechanism):
    """Report every item without noise, rounded to the report values: NOT PRIVATE, for comparisons only."""

    low: float
    high: float
    points: int = POINTS
    epsilon: float = math.inf

    @property
    def keep(self) -> float:
        """Return 1."""
        return 1.0

    @property
    def gap(self) -> float:
        """Return 0: unrated items are never reported."""
        return 0.0

    def event(self) -> DpEvent:
        """Raise: there isn't any noise to account for."""
        raise NoNoise()

    def report(self, ratings: npt.ArrayLike, random: PrivacyRandom) -> tuple[npt.NDArray[np.bool_], Codes]:
        """Return all ratings."""
        numbers = np.clip(np.asarray(ratings, dtype=np.float64), self.low, self.high)
        codes = np.rint((numbers - self.low) / (self.high - self.low) * (self.points - 1))
        return np.ones(numbers.shape, np.bool_), codes.astype(np.int64)

    def pretend(self, size: int, random: PrivacyRandom) -> Codes:
        """Return nothing: unrated items are not reported."""
        return np.zeros(0, np.int64)

    def outputs(self) -> Floats:
        """Return the report values."""
        return np.linspace(self.low, self.high, self.points)

    def unbiased(self) -> Floats:
        """Return the report values, which are unbiased."""
        return self.outputs()

    def channel(self) -> Channel:
        """Return the channel without noise."""
        return Channel(inputs=self.outputs(), outputs=self.outputs(), transition=np.eye(self.points))

    def pretended(self) -> Floats:
        """Return equal probabilities; they are never used."""
        return np.full(self.points, 1 / self.points)
