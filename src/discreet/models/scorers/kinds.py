"""Find the scorer that a file names, and import no other."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module

from discreet.checks import DataError
from discreet.models.scorers.parts import read_parts
from discreet.models.scorers.scorer import Scorer

_ROOM = "discreet.models.scorers"
#: Every kind of release that a file may hold, by the name written in it; names keep their meaning.
KINDS: dict[str, str] = {
    "choice-and-stars": f"{_ROOM}.choice_and_stars:ChoiceAndStars",
    "clicks": f"{_ROOM}.choices:ClickScorer",
    "implicit-factors": f"{_ROOM}.factors:ImplicitFactorScorer",
    "item-weights": f"{_ROOM}.item_weights:ItemWeightsScorer",
    "local-ratings": f"{_ROOM}.reports:LocalScorer",
    "neighbours": f"{_ROOM}.neighbors:NeighborScorer",
    "one-bit": f"{_ROOM}.verdicts:OneBitScorer",
    "one-bit-cells": f"{_ROOM}.single_cells:ReleasedCells",
    "popularity": f"{_ROOM}.popularity:PopularityScorer",
    "profiles": f"{_ROOM}.profiles:ProfileScorer",
    "projected-gradient": f"{_ROOM}.projected_gradient:ProjectedGradientScorer",
    "rank-one-rounds": f"{_ROOM}.stepped:SteppedScorer",
    "ratings": f"{_ROOM}.factors:RatingScorer",
    "unsure-ratings": f"{_ROOM}.unsure_ratings:UnsureRatingScorer",
}


def scorer_class(kind: object) -> type[Scorer]:
    """Return the class of a kind."""
    place = KINDS.get(kind) if isinstance(kind, str) else None
    if place is None:
        raise DataError("This version knows no such kind of model.")
    module, _, name = place.partition(":")
    found: type[Scorer] = getattr(import_module(module), name)
    return found


def build_scorer(kind: object, arrays: Mapping[str, object], settings: object, n_items: int) -> Scorer:
    """Return the scorer that `arrays()` and `settings()` described, or refuse parts that do not fit.

    Everything that is not as declared is a `DataError`: what comes from a file may come from anybody.
    """
    made = scorer_class(kind)
    scorer = made(**read_parts(made.stored, made.constants, arrays, settings, n_items))
    scorer.check()
    return scorer
