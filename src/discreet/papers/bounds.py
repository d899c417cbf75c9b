"""Values that a paper bounds, for sizes that are public: what `discreet papers theory` prints.

Nothing here reads data. A bound is vacuous if an answer without any learning reaches its value.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Mapping
from enum import StrEnum
from functools import partial
from typing import Any, final

from discreet.core import integer, positive_finite, require


class Standing(StrEnum):
    """Status of a bound: proved in this package, printed only, or refuted."""

    PROVED = "proved"
    PRINTED = "as printed"
    REFUTED = "refuted"


@final
@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class PublicSizes:
    """Public numbers that a bound depends on: users, items, ratings and epsilon.

    Raises:
        ParameterError: If a number is out of range, or if there are more ratings than cells.
    """

    users: int
    items: int
    ratings: int
    epsilon: float

    def __post_init__(self) -> None:
        for name in ("users", "items", "ratings"):
            object.__setattr__(self, name, integer(name, getattr(self, name), least=1))
        object.__setattr__(self, "epsilon", positive_finite("epsilon", self.epsilon))
        most = self.users * self.items
        require(self.ratings <= most, "ratings", self.ratings, must=f"be at most users * items = {most}")

    @property
    def cells(self) -> int:
        """Return the number of user-item pairs."""
        return self.users * self.items


@final
@dataclasses.dataclass(frozen=True, slots=True)
class Bound:
    """One value of a theorem: its status, where it is printed, and the value that needs no learning.

    `without` is None if the value is a noise level or a cost, which can't be vacuous.
    """

    standing: Standing
    name: str
    where: str
    value: float
    note: str = ""
    without: float | None = None

    @property
    def vacuous(self) -> bool:
        """Return whether an answer without learning is as good as the bound."""
        return self.without is not None and self.value >= self.without

    def to_json(self) -> dict[str, Any]:
        """Return the fields as plain values; infinity is null."""
        fields = dataclasses.asdict(self) | {"vacuous": self.vacuous}
        return {key: _plain(value) for key, value in fields.items()}


#: What is proved in this package, what the paper prints, and what a refuted statement really costs.
proved = partial(Bound, Standing.PROVED)
printed = partial(Bound, Standing.PRINTED)
refuted = partial(Bound, Standing.REFUTED)


def _plain(value: Any) -> Any:
    return None if isinstance(value, float) and not math.isfinite(value) else value


#: A paper's theory: a dataclass of settings, and a function from sizes and settings to bounds.
Theory = tuple[type, Callable[[PublicSizes, Any], list[Bound]]]


def theories() -> Mapping[str, Theory]:
    """Return the theory of every paper by the paper's name."""
    from discreet.papers.collection import theory as collection
    from discreet.papers.dpimf import theory as dpimf
    from discreet.papers.frank_wolfe import theory as frank_wolfe
    from discreet.papers.mixture import theory as mixture
    from discreet.papers.one_bit import theory as one_bit

    return {
        "one-bit": (one_bit.OneBitSettings, one_bit.bounds),
        "frank-wolfe": (frank_wolfe.FrankWolfeSettings, frank_wolfe.bounds),
        "mixture": (mixture.MixtureSettings, mixture.bounds),
        "collection": (collection.CollectionSettings, collection.bounds),
        "dpimf": (dpimf.DpimfSettings, dpimf.bounds),
    }
