"""Look through all pieces once: the catalog, the scale, the kinds of ids, and how many ratings there are.

What is taken from the ratings here is marked so in the facts, as reading a file does.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Self, final

import numpy as np
import polars as pl

from discreet.checks import DataError
from discreet.data.building import to_values
from discreet.data.declaring import Declarations
from discreet.data.facts import N_ITEMS, SCALE, PublicFacts, count_off_step
from discreet.data.reading.columns import Columns
from discreet.data.vocabulary import Vocabulary, as_series

_USUAL_STEPS = (1.0, 0.5)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Survey:
    """Hold what was seen in some pieces; surveys of several pieces add up."""

    items: pl.Series
    ratings: int
    text_users: bool
    least: float
    most: float
    steps: tuple[float, ...]
    has_values: bool
    has_times: bool

    @classmethod
    def of(cls, columns: Columns) -> Self:
        """Return what one piece shows."""
        values = to_values(columns.values, len(columns.items))
        return cls(
            items=as_series(columns.items, "item ids").unique(),
            ratings=len(columns.items),
            text_users=as_series(columns.users, "user ids").dtype == pl.String,
            least=float(values.min()) if values.size else np.inf,
            most=float(values.max()) if values.size else -np.inf,
            steps=tuple(step for step in _USUAL_STEPS if count_off_step(values, 0.0, step) == 0),
            has_values=columns.values is not None,
            has_times=columns.times is not None,
        )

    def __add__(self, other: Survey) -> Survey:
        """Return what both show."""
        if (self.has_values, self.has_times) != (other.has_values, other.has_times):
            raise DataError(
                "Some files have ratings or times and others have none; leave the column out with --columns."
            )
        return replace(
            self,
            items=pl.concat(_of_one_kind([self.items, other.items])).unique(),
            ratings=self.ratings + other.ratings,
            text_users=self.text_users or other.text_users,
            least=min(self.least, other.least),
            most=max(self.most, other.most),
            steps=tuple(step for step in self.steps if step in other.steps),
        )

    def settle(self, declared: Declarations) -> tuple[PublicFacts, Vocabulary]:
        """Return the facts and the catalog: what is declared, and the rest as it was seen."""
        if not self.ratings:
            raise DataError("The files hold no ratings.")
        catalog, from_file = declared.get("catalog"), [] if declared.get("catalog") else [N_ITEMS]
        catalog = Vocabulary(self.items.sort()) if catalog is None else catalog
        low, high, step = declared.get("low"), declared.get("high"), declared.get("step")
        if not self.has_values and low is None and high is None:
            low = high = 1.0
        if low is None or high is None:
            from_file.append(SCALE)
            low = self.least if low is None else low
            high = self.most if high is None else high
            step = next((one for one in self.steps if (low / one).is_integer()), step)
        facts = PublicFacts(
            n_items=len(catalog),
            low=low,
            high=high,
            step=step,
            max_per_user=declared.get("max_per_user"),
            n_users=declared.get("n_users"),
            from_file=tuple(from_file),
        )
        return facts, catalog

    def to_json(self) -> dict[str, Any]:
        """Return everything but the items."""
        record = {name: getattr(self, name) for name in self.__slots__ if name != "items"}
        return {**record, "steps": list(self.steps)}

    @classmethod
    def from_json(cls, record: dict[str, Any], items: pl.Series) -> Self:
        """Read what `to_json` returned."""
        return cls(**{**record, "steps": tuple(record["steps"])}, items=items)


def _of_one_kind(parts: list[pl.Series]) -> list[pl.Series]:
    return parts if len({part.dtype for part in parts}) == 1 else [part.cast(pl.String) for part in parts]
