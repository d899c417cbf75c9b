"""Ask parties for a statistic: write its public numbers into a question, and read them as from a stranger.

A party computes only statistics of this list, which bound what one person tells whatever their numbers are.
Shapes, indices and sizes are checked before a compiled loop sees them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from discreet.contributions.choice_pairs import ChoicePairs
from discreet.contributions.choices import ChoicePlaces
from discreet.contributions.item_sums import ItemResiduals, ItemVotes
from discreet.contributions.item_vectors import ItemVectors
from discreet.contributions.people import PeopleCount, PersonMeans
from discreet.contributions.row_moment import ResidualMoment
from discreet.contributions.statistic import Part as Added
from discreet.contributions.statistic import Statistic
from discreet.federated.protocols.protocol import Part, number
from discreet.federated.wire import FederationError, Message, Refusal, Refused, Value

# The sides of arrays: n items, k factors, t items that take part (by ascending number).
_SHAPES: dict[type[Statistic], Mapping[str, str]] = {
    PeopleCount: {},
    PersonMeans: {},
    ItemVotes: {},
    ItemResiduals: {"effects": "n", "pull": "n"},
    ResidualMoment: {"top": "t", "pull": "n", "offsets": "n", "features": "nk", "ridge": "k"},
    ChoicePairs: {"top": "t", "weight": "t"},
    ChoicePlaces: {"vectors": "nk", "squares": "n", "pull": "n"},
    ItemVectors: {"features": "nk", "offsets": "n", "ridge": "k", "scale": "k", "pull": "n"},
}
_KINDS = {kind.__name__: kind for kind in _SHAPES}
_MOST_SIDE = {"k": 256, "t": 1 << 12}
# Beyond these arithmetic could overflow, whatever the rows are.
_LARGEST = 1e9
# A number a person's vector is divided by, or a weight, must not vanish.
_POSITIVE = ("half", "longest", "count_part", "pull", "weight", "ridge", "scale")
_LEAST = 1e-9
# Parts of a whole: between 0 and 1 nothing cancels in a sum of squares.
_PARTS = ("near", "apart")


class Asked(NamedTuple):
    """Hold a statistic, which part of it is released, and the deviation of the noise it is planned with."""

    statistic: Statistic
    part: Added
    sigma: float


def write_asked(asked: Asked) -> Part:
    """Return the question that asks for a part of a statistic."""
    statistic = asked.statistic
    if type(statistic) not in _SHAPES:
        raise FederationError(f"{type(statistic).__name__} is not a statistic that parties answer.")
    told: dict[str, Value] = {
        "statistic": type(statistic).__name__,
        "part": asked.part.name,
        "sigma": float(asked.sigma),
    }
    arrays: dict[str, npt.NDArray[Any]] = {}
    for field in fields(statistic):
        value = getattr(statistic, field.name)
        if field.name in _SHAPES[type(statistic)]:
            kind = np.int64 if value.dtype.kind == "i" else np.float64
            arrays[field.name] = np.ascontiguousarray(value, dtype=kind)
        else:
            told[f"given {field.name}"] = value if isinstance(value, str | int) else float(value)
    return Part(kind="sum", fields=told, arrays=arrays)


def read_asked(question: Part | Message, n_items: int) -> Asked:
    """Return what a question asks for, or raise `Refused`."""
    kind = _KINDS.get(str(question.fields.get("statistic")))
    if kind is None or question.kind != "sum":
        raise Refused(Refusal.WRONG_KIND)
    given = _arrays(question, _SHAPES[kind], n_items)
    for field in fields(kind):
        if field.name not in given:
            given[field.name] = _scalar(question, field.name, n_items)
    statistic = kind(**given)
    parts = {part.name: part for part in statistic.parts}
    part = parts.get(str(question.fields.get("part")))
    if part is None or part.of != "person" or part.norm != "l2":
        raise Refused(Refusal.WRONG_KIND)
    return Asked(statistic, part, number(question, "sigma", 0.0, _LARGEST))


def size_of(part: Added) -> int:
    """Return how many numbers a released part has; of a symmetric one only the upper triangle."""
    return part.shape[0] * (part.shape[0] + 1) // 2 if part.symmetric else int(np.prod(part.shape))


def _arrays(question: Part | Message, shapes: Mapping[str, str], n_items: int) -> dict[str, Any]:
    """Return the arrays of a question, each of the agreed shape, with sides that agree among themselves."""
    if set(question.arrays) != set(shapes):
        raise Refused(Refusal.WRONG_SHAPE)
    sides = {"n": n_items}
    found: dict[str, Any] = {}
    for name, shape in shapes.items():
        array = np.asarray(question.arrays[name])
        if array.ndim != len(shape) or array.dtype != (np.int64 if name == "top" else np.float64):
            raise Refused(Refusal.WRONG_SHAPE)
        for side, length in zip(shape, array.shape, strict=True):
            if sides.setdefault(side, length) != length or length > _MOST_SIDE.get(side, n_items):
                raise Refused(Refusal.WRONG_SHAPE)
        _check_numbers(name, array, n_items)
        found[name] = array
    return found


def _check_numbers(name: str, array: npt.NDArray[Any], n_items: int) -> None:
    if array.dtype == np.int64:
        rising = bool(np.all(np.diff(array) > 0))
        if not rising or (array.size and (array[0] < 0 or array[-1] >= n_items)):
            raise Refused(Refusal.OUT_OF_RANGE)
        return
    if not np.isfinite(array).all():
        raise Refused(Refusal.NOT_FINITE)
    least = _LEAST if name in _POSITIVE else -_LARGEST
    if array.size and not (array.min() >= least and array.max() <= _LARGEST):
        raise Refused(Refusal.OUT_OF_RANGE)


def _scalar(question: Part | Message, name: str, n_items: int) -> Value:
    value = question.fields.get(f"given {name}")
    if name == "n_items":
        if value != n_items:
            raise Refused(Refusal.WRONG_SHAPE)
        return n_items
    if name == "norm":
        if value != "l2":
            raise Refused(Refusal.WRONG_KIND)
        return "l2"
    if name in _PARTS:
        return number(question, f"given {name}", 0.0, 1.0)
    return number(question, f"given {name}", _LEAST if name in _POSITIVE else -_LARGEST, _LARGEST)
