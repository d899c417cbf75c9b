"""Repeat published projected steps on a person's own row."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Self, final

import numpy as np
import numpy.typing as npt

from discreet.arrays import Floats
from discreet.contributions.blocks import rows_of
from discreet.contributions.projected_rows import advance, begin
from discreet.contributions.scaled_rows import own_places
from discreet.data.interactions import Interactions
from discreet.models.biases import USER_RIDGE
from discreet.models.scorers.factors import LinearRatings
from discreet.models.scorers.scorer import Scorer
from discreet.solvers.low_rank.projection import Projection
from discreet.solvers.rows import Rows, residuals


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ProjectedGradientScorer(LinearRatings):
    """Repeat the projected steps on a person's own row: move by the own errors, apply the published map."""

    kind: ClassVar[str] = "projected-gradient"
    provenance: ClassVar[Mapping[str, str]] = {
        "item_bias": "computed from noisy releases only (none if the label says NOT PRIVATE)",
        "bases": "computed from noisy releases only (none if the label says NOT PRIVATE)",
        "kept": "computed from noisy releases only (none if the label says NOT PRIVATE)",
        "ranks": "how many columns of the bases belong to each round; from noisy releases only",
    }

    bases: Floats
    kept: Floats
    ranks: npt.NDArray[np.int64]

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """Return item biases and the maps of all rounds side by side."""
        return {"item_bias": self.item_bias, "bases": self.bases, "kept": self.kept, "ranks": self.ranks}

    def settings(self) -> dict[str, Any]:
        """Return the mean and the scale."""
        return {"mean": self.mean, "low": self.low, "high": self.high}

    @classmethod
    def from_parts(cls, arrays: Mapping[str, npt.NDArray[Any]], settings: Mapping[str, Any]) -> Self:
        """Build the scorer again."""
        return cls(
            item_bias=arrays["item_bias"],
            bases=arrays["bases"],
            kept=arrays["kept"],
            ranks=arrays["ranks"],
            **settings,
        )

    def fold_in(self, histories: Interactions) -> Floats:
        """Return each person's own bias and place on the last basis."""
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
    """Return the rows less the offsets and each person's own shrunken mean, and that mean."""
    own = own_places(rows, offsets, np.zeros((offsets.size, 0)), np.array([USER_RIDGE]))
    left = residuals(rows, own, np.ones((offsets.size, 1)), np.zeros(rows.n_rows), offsets)
    return rows._replace(values=left.astype(np.float32)), own[:, 0]
