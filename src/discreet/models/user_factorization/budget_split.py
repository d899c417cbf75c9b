"""Share the rest of the budget between item effects and taste, from released numbers only."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, final

import numpy as np

from discreet.models.biases import FirstLook
from discreet.privacy.accounting.gaussian import split_gaussian

# Factors pay for sure with this many people for each unit of noise, and this many ratings a person.
_PEOPLE_PER_NOISE = 3000.0
_RATINGS_PER_PERSON = 32.0
# With fewer people than this for each unit of noise not even strong taste would show.
_LEAST_PEOPLE_PER_NOISE = 1000.0
# What is left after the first look, if factors pay: item effects, second moment, refit, moment of factors.
_SHARES = (0.30, 0.27, 0.42, 0.01)
# Else a part of the second moment's share pays for a glance at it.
_GLANCE = 0.03


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Spending:
    """Hold how the rest of the budget is spent, as noise multipliers (0 for none, or for no noise at all).

    Routes: "effects" alone; "factors"; or a "glance" at the second moment, after which either `moment`,
    `refit` and `scales` follow or `effects_again`, which cost the same.
    """

    people_per_noise: float
    ratings_per_person: float
    route: Literal["effects", "glance", "factors"]
    effects: float
    glance: float = 0.0
    effects_again: float = 0.0
    moment: float = 0.0
    refit: float = 0.0
    scales: float = 0.0

    def explain(self) -> dict[str, Any]:
        """Return the rule's inputs and what it chose."""
        return {
            "people per noise": round(self.people_per_noise, 1)
            if np.isfinite(self.people_per_noise)
            else "inf",
            "people per noise, least for a glance at taste": _LEAST_PEOPLE_PER_NOISE,
            "people per noise, enough for factors": _PEOPLE_PER_NOISE,
            "ratings a person, about": round(self.ratings_per_person, 1),
            "ratings a person, enough for factors": _RATINGS_PER_PERSON,
            "route": self.route,
        }


def plan(seen: FirstLook, total: float, rest: float) -> Spending:
    """Choose how to spend `rest` when the whole budget allows one release with the multiplier `total`.

    All choices cost the same: the multipliers along any way through a plan compose to `rest`.
    """
    known = {
        "people_per_noise": seen.people / total if total else np.inf,
        "ratings_per_person": seen.typical_length,
    }
    if not rest:
        return Spending(**known, route="factors", effects=0.0)
    if known["people_per_noise"] < _LEAST_PEOPLE_PER_NOISE:
        return Spending(**known, route="effects", effects=rest)
    if known["people_per_noise"] >= _PEOPLE_PER_NOISE and seen.typical_length >= _RATINGS_PER_PERSON:
        effects, moment, refit, scales = split_gaussian(rest, _SHARES)
        return Spending(**known, route="factors", effects=effects, moment=moment, refit=refit, scales=scales)
    share, second, *others = _SHARES
    effects, glance, moment, refit, scales = split_gaussian(rest, (share, _GLANCE, second - _GLANCE, *others))
    again = split_gaussian(rest, (share, _GLANCE, 1 - share - _GLANCE))[-1]
    return Spending(
        **known,
        route="glance",
        effects=effects,
        glance=glance,
        effects_again=again,
        moment=moment,
        refit=refit,
        scales=scales,
    )
