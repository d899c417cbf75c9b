"""What a session answers: statistics with bounded parts, reports of devices, samples, and selections.

The session knows these protocols and no class of `data` or `statistics`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeVar

from discreet.core import Floats, PrivacyRandom
from discreet.privacy.mechanisms.additive import FixedPoint, Noise

if TYPE_CHECKING:
    from discreet.privacy.session import Session

Reports = TypeVar("Reports", covariant=True)


class PartOfSum(Protocol):
    """One array of a statistic, with a bound on the contribution of one secret."""

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
        """Return the source of one contribution: `"person"` or `"rating"`."""

    @property
    def most(self) -> int | None:
        """Return the most entries that one secret changes, all equally; None if it may change any."""


class ExactSums(Protocol):
    """The exact sums of a statistic. Only a session reads them."""

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
        """Return the kind of one secret: `"person"` or `"rating"`."""

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
        """Return the data narrowed by the released choice. The session may spend the cost of the choice."""

    @property
    def epsilon(self) -> float:
        """Return the epsilon of the choice."""

    @property
    def delta(self) -> float:
        """Return the delta of the choice."""


class Releases(Protocol):
    """Noisy sums from a source that doesn't provide exact sums: parties that add noise."""

    def released(self, query: Query, asked: Sequence[tuple[PartOfSum, Noise]], /) -> list[Floats]:
        """Return one noisy array for each requested part."""
