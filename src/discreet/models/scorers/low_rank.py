"""Repeat published rounds on a user's own row: projected gradients and Frank-Wolfe steps."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, final

import numpy as np
import numpy.typing as npt

from discreet.core import Floats, Rows, residuals
from discreet.data import Interactions
from discreet.models.errors import MalformedPart
from discreet.models.scorers.factors import COUNTS, LinearRatings
from discreet.models.scorers.scorer import (
    ITEMS,
    RELEASED,
    Constant,
    Scorer,
    Stored,
    StoredNumber,
    StoredNumbers,
)
from discreet.solvers import Projection
from discreet.statistics import USER_RIDGE, RoundsSoFar, advance, begin, own_places, rows_of


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ProjectedGradientScorer(LinearRatings):
    """Repeat the projected gradient steps on a user's own row, with the published projections."""

    kind: ClassVar[str] = "projected-gradient"
    stored: ClassVar[Mapping[str, Stored]] = {
        "item_bias": StoredNumbers(source=RELEASED, shape=(ITEMS,)),
        "bases": StoredNumbers(source=RELEASED, shape=(ITEMS, "columns")),
        "kept": StoredNumbers(source=RELEASED, shape=("columns",)),
        "ranks": StoredNumbers(
            source="how many columns of the bases belong to each round; from noisy releases only",
            shape=("rounds",),
            dtype=np.int64,
            least=0,
            most=2**31,
        ),
        "popularity": COUNTS,
    }

    bases: Floats
    kept: Floats
    ranks: npt.NDArray[np.int64]

    def check(self) -> None:
        """Raise for ranks that do not add up to the number of columns."""
        if not self.ranks.size or sum(self.ranks.tolist()) != self.kept.size:
            raise MalformedPart(part="ranks", rule="sum")

    def _vectors(self, histories: Interactions) -> Floats:
        """Return each user's own bias and coordinates in the last basis."""
        offsets = self.mean + self.item_bias
        rows, own = own_residuals(rows_of(histories), offsets)
        state = begin(rows, offsets.size)
        for projection in self._projections():
            state = advance(rows, state, projection)
        return np.column_stack([own, state.places])

    def item_vectors(self) -> Floats:
        """Return the last basis."""
        return self._design()[:, 1:] if self.ranks.size and self.ranks[-1] else Scorer.item_vectors(self)

    def _projections(self) -> list[Projection]:
        cuts = np.cumsum(self.ranks)[:-1]
        bases, kept = np.split(self.bases, cuts, axis=1), np.split(self.kept, cuts)
        return [Projection(np.ascontiguousarray(b), k) for b, k in zip(bases, kept, strict=True)]

    def _design(self) -> Floats:
        return np.column_stack([np.ones(self.item_bias.size), self._projections()[-1].basis])


def own_residuals(rows: Rows, offsets: Floats) -> tuple[Rows, Floats]:
    """Return the rows minus the offsets and each user's own shrunken mean, and that mean."""
    own = own_places(rows, offsets, np.zeros((offsets.size, 0)), np.array([USER_RIDGE]))
    left = residuals(rows, own, np.ones((offsets.size, 1)), np.zeros(rows.n_rows), offsets)
    return rows._replace(values=left.astype(np.float32)), own[:, 0]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class SteppedScorer(LinearRatings):
    """A user's own mean plus the completed row, which the user computes from the published rounds.

    `row_bound` is in units of the ratings; `mean` is the middle of the scale, from which ratings are
    measured.
    """

    kind: ClassVar[str] = "rank-one-rounds"
    stored: ClassVar[Mapping[str, Stored]] = {
        "item_bias": StoredNumbers(source="zeros: the method has none", shape=(ITEMS,)),
        "directions": StoredNumbers(source=RELEASED, shape=(ITEMS, "rounds"), least=-2.0, most=2.0),
        "paces": StoredNumbers(source=RELEASED, shape=("rounds",), least=0.0, most=1e15),
    }
    constants: ClassVar[Mapping[str, Constant]] = {
        **LinearRatings.constants,
        "row_bound": StoredNumber(least=1e-15, most=1e15),
    }

    directions: Floats
    paces: Floats
    row_bound: float

    def _vectors(self, histories: Interactions) -> Floats:
        """Return each user's own mean, relative to the middle, and coefficient of every direction."""
        rows = rows_of(histories)
        centered = rows._replace(values=(rows.values - self.mean).astype(np.float32))
        return RoundsSoFar(
            middle=self.mean,
            half=1.0,
            row_bound=self.row_bound,
            rounds=self.paces.size,
            directions=self.directions,
            paces=self.paces,
        ).places(centered)

    def item_vectors(self) -> Floats:
        """Return the items' coordinates on the directions."""
        return self.directions

    def _design(self) -> Floats:
        return np.column_stack([np.ones(self.item_bias.size), self.directions])
