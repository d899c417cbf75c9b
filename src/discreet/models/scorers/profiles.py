"""Score items by a log-linear reading of the objective: popularity, and closeness to the person's profile."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Self, final

import numpy as np
import numpy.typing as npt

from discreet.arrays import Floats, Indices, Singles
from discreet.contributions.profile_sums import Profiles
from discreet.data.interactions import Interactions
from discreet.models.scorers.factors import folded
from discreet.models.scorers.scorer import Scorer
from discreet.solvers.rows import predict_cells

_RELEASED = "computed from noisy releases only (none if the label says NOT PRIVATE)"


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ProfileScorer(Scorer):
    """Score by `item_bias + item_factors . (profile - origin)`.

    The profile is the sum of `profile_vectors` over the items the person chose, divided by the size of that
    set, centered, scaled and shortened to a public length: nothing but the person's own row enters.
    """

    kind: ClassVar[str] = "profiles"
    needs_ratings: ClassVar[bool] = False
    provenance: ClassVar[Mapping[str, str]] = {
        "item_bias": _RELEASED,
        "item_factors": _RELEASED,
        "profile_vectors": _RELEASED,
        "profile_squares": _RELEASED,
        "growth": _RELEASED,
        "center": _RELEASED,
        "scale": _RELEASED,
        "origin": _RELEASED,
    }

    item_bias: Floats
    item_factors: Floats
    origin: Floats
    profiles: Profiles

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """Return everything that was released or computed from it."""
        lens = self.profiles.lens
        return {
            "item_bias": self.item_bias,
            "item_factors": self.item_factors,
            "origin": self.origin,
            "profile_vectors": lens.vectors,
            "profile_squares": lens.squares,
            "growth": lens.growth,
            "center": lens.center,
            "scale": lens.scale,
        }

    def settings(self) -> dict[str, Any]:
        """Return the longest a profile may be."""
        return {"clip": self.profiles.lens.clip}

    @classmethod
    def from_parts(cls, arrays: Mapping[str, npt.NDArray[Any]], settings: Mapping[str, Any]) -> Self:
        """Build the scorer again."""
        profiles = Profiles.of(
            arrays["profile_vectors"],
            arrays["profile_squares"],
            growth=arrays["growth"],
            center=arrays["center"],
            scale=arrays["scale"],
            clip=settings["clip"],
        )
        return cls(
            item_bias=arrays["item_bias"],
            item_factors=arrays["item_factors"],
            origin=arrays["origin"],
            profiles=profiles,
        )

    def fold_in(self, histories: Interactions) -> Floats:
        """Return each person's profile, and nothing for those whose items say nothing."""
        places = self.profiles.places(histories)
        silent = ~places.any(axis=1)
        places -= self.origin
        places[silent] = 0.0
        return places

    def predict(self, histories: Interactions, rows: Indices, items: Indices) -> Floats:
        """Return the scores of single cells."""
        people, where = folded(self, histories, rows)
        if not self.item_factors.shape[1]:
            return self.item_bias[items]
        return self.item_bias[items] + predict_cells(people, self.item_factors, where, items)

    def scores(self, histories: Interactions, rows: Indices) -> Singles:
        """Return a score for every item."""
        people, where = folded(self, histories, rows)
        return (people[where] @ self.item_factors.T + self.item_bias).astype(np.float32)

    def item_vectors(self) -> Floats:
        """Return the item factors."""
        return self.item_factors if self.item_factors.shape[1] else Scorer.item_vectors(self)
