"""Send item vectors that make profiles, and read them as coming from a stranger."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from discreet.federated.protocols.protocol import check_arrays, number
from discreet.federated.wire import Message, Refusal, Refused, Value
from discreet.papers.dpimf.item_solves import Loss
from discreet.statistics import Norm, ProfileQuestion, Profiles

PROFILE_ARRAYS = ("vectors", "squares", "growth", "center", "scale", "item_weights")
PROFILE_FIELDS = ("clip", "count_part", "factors")
_MOST_FACTORS = 256
#: Items are solved for what users share, without pairs of items that one user chose.
NO_PAIRS = np.zeros((0, 2), dtype=np.int64)
SHARED_LOSS = Loss(shared_weight=1.0, chosen_weight=0.0)
# Beyond these a profile's arithmetic could overflow, whatever the rows are.
_LEAST_PULL, _MOST_PULL = 1e-6, 1e6
_LARGEST_ENTRY = 1e9
_LEAST_SQUARE = 1e-12


def profile_arrays(profiles: Profiles, asked: ProfileQuestion) -> dict[str, npt.NDArray[Any]]:
    """Return the arrays of a question about profiles."""
    lens = profiles.lens
    return {
        "vectors": lens.vectors,
        "squares": lens.squares,
        "growth": lens.growth,
        "center": lens.center,
        "scale": lens.scale,
        "item_weights": asked.item_weights,
    }


def profile_fields(profiles: Profiles, asked: ProfileQuestion) -> Mapping[str, Value]:
    """Return the numbers of a question about profiles."""
    return {"clip": profiles.lens.clip, "count_part": asked.count_part, "factors": profiles.factors}


def read_profiles(question: Message, n_items: int, norm: Norm) -> tuple[Profiles, ProfileQuestion]:
    """Return what a question about profiles states, or raise `Refused`."""
    factors = check_profiles(question, n_items)
    arrays = question.arrays
    profiles = Profiles(
        vectors=arrays["vectors"],
        squares=arrays["squares"],
        growth=arrays["growth"],
        center=arrays["center"],
        scale=arrays["scale"],
        clip=number(question, "clip", 1e-3, 1e3),
    )
    asked = ProfileQuestion(
        item_weights=arrays["item_weights"].astype(np.float64),
        count_part=number(question, "count_part", 1e-3, 1e3),
        pairs=NO_PAIRS,
        pair_part=0.3,
        norm=norm,
    )
    assert profiles.factors == factors
    return profiles, asked


def check_profiles(question: Message, n_items: int, most: int = _MOST_FACTORS) -> int:
    """Return how many factors a question has, at most `most`, or raise `Refused` if it makes no sense."""
    factors = question.fields.get("factors")
    if type(factors) is not int or not 0 <= factors <= most:
        raise Refused(Refusal.OUT_OF_RANGE)
    growth = question.arrays.get("growth", np.zeros(0)).size
    if growth not in (0, factors):
        raise Refused(Refusal.WRONG_SHAPE)
    shapes = {
        "vectors": (n_items, factors),
        "squares": (n_items,),
        "growth": (growth,),
        "center": (factors,),
        "scale": (factors,),
        "item_weights": (n_items,),
    }
    check_arrays(question, shapes)
    arrays = question.arrays
    if any(array.size and np.abs(array).max() > _LARGEST_ENTRY for array in arrays.values()):
        raise Refused(Refusal.OUT_OF_RANGE)
    squares = arrays["squares"]
    if np.any((squares != 0) & (squares < _LEAST_SQUARE)) or np.any(arrays["growth"] < 0):
        raise Refused(Refusal.OUT_OF_RANGE)
    if np.any(arrays["item_weights"] < _LEAST_PULL) or np.any(arrays["item_weights"] > _MOST_PULL):
        raise Refused(Refusal.OUT_OF_RANGE)
    return factors
