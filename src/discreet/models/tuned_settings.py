"""Tuned settings as values: what each number means, how it was chosen, and those that several models share.

All are public. They were chosen on public datasets, so they cost no budget on other data. They were chosen on
validation parts, never on test parts, unless their line states otherwise.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, NamedTuple, final, get_type_hints


class Tuned(NamedTuple):
    """The meaning of a setting, and the experiment that chose it."""

    meaning: str
    chosen: str


# How settings were chosen, as far as the history of the repository shows.
UNRECORDED = "by hand on validation parts of seven public datasets; the experiment is not recorded"
LOW_EPSILON = "validation parts of three datasets at epsilon 0.1 to 1"


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ItemSettings:
    """Settings of the first releases about items, for every model of ratings."""

    users_to_count: Annotated[
        float, Tuned("weight of counts is this over users per unit of noise, if that is more", LOW_EPSILON)
    ] = 150.0


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ListSettings:
    """Settings of recommendations: how a fitted model scores a user's history."""

    ridge: Annotated[float, Tuned("ridge on a user's embedding, relative to one interaction", UNRECORDED)] = (
        0.2
    )


def tuned(kind: type) -> dict[str, Tuned]:
    """Return the meaning of each setting of a class, and how it was chosen, by name."""
    hints = get_type_hints(kind, include_extras=True)
    return {name: hint.__metadata__[0] for name, hint in hints.items() if hasattr(hint, "__metadata__")}
