"""Declare public facts: the catalog, the scale, the number of users; declared, or taken from the data."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from inspect import signature
from typing import Any, Literal, Self, TypedDict, final

import numpy as np
import numpy.typing as npt

from discreet.core import finite, integer, positive_finite, require
from discreet.data.errors import DamagedFacts, DeclaredTwice, NoRows, OffDeclaredScale, UnknownArgument

SCALE, N_ITEMS = "scale", "n_items"
#: Catalog or scale were chosen from the data with noise; items were picked by the data owner.
CHOSEN, CHOSEN_SCALE, PICKED = "chosen", "chosen scale", "picked"
#: What is assumed of a source that was read: a library changed no value of its frame, every row can be read,
#: no quote joins rows of several users, and a query decides about each row alone.
FRAME, READABLE, QUOTES, QUERY = "frame", "readable", "quotes", "query"
#: Weights of interactions are between these: sums and squares of a user's weights stay far from all limits.
LEAST_WEIGHT, MOST_WEIGHT = 0.001, 1000.0
# Steps tried, in this order, when the scale is taken from a file.
_USUAL_STEPS = (1.0, 0.5)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class PublicFacts:
    """What is public about a dataset, before any code reads the data.

    If `step` is None, any value between `low` and `high` may occur. If `max_per_user` is None, no cap is
    declared. `n_users` is the approximate number of users, which is never read from the data. `from_file`
    names the facts (`"scale"`, `"n_items"`) that a reader took from the file: a guarantee with them applies
    only if they really are public. In it, `"chosen"` and `"chosen scale"` mean that the catalog or the scale
    was chosen with noise, which costs budget, and `"picked"` means that the owner picked items of the
    catalog.
    `layout` describes the guessed part of the source's layout, and is empty if everything is declared.
    `reading` names what else a guarantee assumes about the source, and `rows` the only rows that are read.
    `weights` states what weighs an interaction, if anything does. No scale bounds weights: models that use
    them scale a user's whole row.

    Example:
        >>> list(PublicFacts(n_items=1682, low=1, high=5, step=1, max_per_user=100).statements())[0]
        ('declared', 'catalog', {'items': 1682})

    Stability
        Stable.
    """

    n_items: int
    low: float = 1.0
    high: float = 5.0
    step: float | None = None
    max_per_user: int | None = None
    n_users: int | None = None
    from_file: tuple[str, ...] = ()
    layout: str = ""
    reading: tuple[str, ...] = ()
    rows: str = ""
    weights: str = ""

    def __post_init__(self) -> None:
        integer("n_items", self.n_items, least=1, most=2**31 - 1)
        finite("low", self.low)
        finite("high", self.high)
        require(self.low <= self.high, "low", self.low, must=f"not exceed high={self.high!r}")
        if self.step is not None:
            positive_finite("step", self.step)
        if self.max_per_user is not None:
            integer("max_per_user", self.max_per_user, least=1)
        if self.n_users is not None:
            integer("n_users", self.n_users, least=1)
        known = {SCALE, N_ITEMS, CHOSEN, CHOSEN_SCALE, PICKED}
        require(set(self.from_file) <= known, "from_file", self.from_file, must=f"name only {sorted(known)}")
        assumed = {FRAME, READABLE, QUOTES, QUERY}
        require(set(self.reading) <= assumed, "reading", self.reading, must=f"name only {sorted(assumed)}")
        object.__setattr__(self, "low", float(self.low))
        object.__setattr__(self, "high", float(self.high))
        object.__setattr__(self, "step", None if self.step is None else float(self.step))
        object.__setattr__(self, "from_file", tuple(dict.fromkeys(self.from_file)))

    def statements(self) -> Iterator[tuple[str, str, dict[str, str | int | float | None]]]:
        """Return each fact: how it is known (declared, taken or selected), its name, and its details.

        The kinds and names are those of `discreet.privacy.guarantee`, which turns them into assumptions of
        a guarantee. This package doesn't import that one.
        """
        catalog = "taken" if N_ITEMS in self.from_file else "declared"
        scale = "taken" if SCALE in self.from_file else "declared"
        if CHOSEN in self.from_file:
            yield "selected", "catalog", {}
        else:
            yield catalog, "catalog", {"items": self.n_items}
        if CHOSEN_SCALE in self.from_file:
            # Without numbers: the cost of a guarantee is counted before they are selected.
            yield "selected", "scale", {}
        elif self.low == self.high:
            yield scale, "interactions", {}
        else:
            yield scale, "scale", {"low": self.low, "high": self.high, "step": self.step}
        if PICKED in self.from_file:
            yield "declared", "picked items", {}
        if self.max_per_user is not None:
            yield "declared", "cap", {"ratings": self.max_per_user}
        if self.n_users is not None:
            yield "declared", "users", {"users": self.n_users}
        if self.layout:
            yield "taken", "layout", {"layout": self.layout}
        if self.rows:
            yield "declared", "rows", {"rows": self.rows}
        if self.weights:
            yield "declared", "weights", {"weights": self.weights}
        for name in self.reading:
            # No program decides what a query reads, so its guarantee has a condition.
            yield "taken" if name == QUERY else "declared", name, {}

    def with_cap(self, max_per_user: int | None) -> PublicFacts:
        """Return the facts with the smaller of both caps; None means without a cap."""
        caps = [cap for cap in (self.max_per_user, max_per_user) if cap is not None]
        return replace(self, max_per_user=min(caps)) if caps else self

    def without_scale(self) -> PublicFacts:
        """Return the facts of the same rows if each shows only that an item was chosen."""
        kept = tuple(name for name in self.from_file if name not in (SCALE, CHOSEN_SCALE))
        return replace(self, low=1.0, high=1.0, step=None, from_file=kept, weights="")

    def to_json(self) -> dict[str, Any]:
        """Return a JSON object that `from_json` reads back."""
        texts = {"layout": self.layout, "rows": self.rows, "weights": self.weights}
        read = {"layout": self.layout, "reading": list(self.reading), **texts}
        return {
            "n_items": self.n_items,
            "low": self.low,
            "high": self.high,
            "step": self.step,
            "max_per_user": self.max_per_user,
            "n_users": self.n_users,
            "from_file": list(self.from_file),
            **{name: value for name, value in read.items() if value},
        }

    @classmethod
    def from_json(cls, record: dict[str, Any]) -> Self:
        """Read what `to_json` wrote; anything else is rejected with one sentence."""
        try:
            return cls(
                n_items=record["n_items"],
                low=record["low"],
                high=record["high"],
                step=record["step"],
                max_per_user=record["max_per_user"],
                n_users=record["n_users"],
                from_file=tuple(map(str, record["from_file"])),
                layout=str(record.get("layout", "")),
                reading=tuple(map(str, record.get("reading", ()))),
                rows=str(record.get("rows", "")),
                weights=str(record.get("weights", "")),
            )
        except (KeyError, TypeError, ValueError) as error:
            raise DamagedFacts(reason=str(error)) from error


#: So far from a whole number of steps a rating may be, for what 32 bits don't represent.
STEP_ERROR = 1e-3


def step_of(values: npt.NDArray[np.float32], low: float) -> float | None:
    """Return the usual step that every value keeps, counted from `low`, or None."""
    for step in _USUAL_STEPS:
        if (low / step).is_integer() and count_off_step(values, low, step) == 0:
            return step
    return None


def count_off_step(values: npt.NDArray[np.float32], low: float, step: float, chunk: int = 1 << 15) -> int:
    """Count the values that are not a whole number of steps above `low`; a chunk fits into a cache."""
    bad = 0
    for start in range(0, values.size, chunk):
        steps = (values[start : start + chunk].astype(np.float64) - low) / step
        bad += int(np.count_nonzero(np.abs(steps - np.rint(steps)) > STEP_ERROR))
    return bad


Duplicates = Literal["refuse", "first", "last", "mean", "count"]


class DeclaredFacts(TypedDict, total=False):
    """Facts known before the ratings are read; absent facts (or None) are taken from the ratings.

    Attributes:
        facts: All of the facts below in one object, in place of the single ones.
        low: The lowest rating of the scale.
        high: The highest rating of the scale.
        step: The step between ratings, such as 0.5; any value is allowed without it.
        max_per_user: Keep at most this many ratings of each user.
        n_items: The number of items; alone it means the IDs 0..n-1 or 1..n.
        n_users: The approximate number of users.
        catalog: The ids of all items; some may have no ratings. A list, a series or an array of ids, a
            data frame with an item column, a file as for `--items`, or a `Vocabulary`.
        people: The ids of all users, given likewise, in the order of their rows.
        drop_unknown: Skip ratings of items that a declared catalog doesn't have.
    """

    facts: PublicFacts | None
    low: float | None
    high: float | None
    step: float | None
    max_per_user: int | None
    n_items: int | None
    n_users: int | None
    catalog: Any
    people: Any
    drop_unknown: bool


class Declarations(DeclaredFacts, total=False):
    """Facts, and how to handle repeated pairs of user and item.

    Attributes:
        duplicates: `"refuse"` the data, keep the `"first"` or `"last"` row (by time; among equal times, and
            without any, as listed), average the ratings (`"mean"`), or `"count"` rows (add up weights of
            events), clipped to a declared scale.
    """

    duplicates: Duplicates


def refuse_unknown_names(
    declared: Mapping[str, Any], of: Callable[..., Any] | None = None, taken: type = Declarations
) -> None:
    """Reject what can't be declared: a misspelled fact would be taken from the data.

    `taken` lists the keywords. The other settings `of` a function that takes them are suggested as well.
    """
    known = list(taken.__annotations__)
    for name in declared:
        if name not in known:
            settings = () if of is None else signature(of).parameters.values()
            known += [one.name for one in settings if one.kind is one.KEYWORD_ONLY and one.name not in known]
            raise UnknownArgument(argument=name, known=known)


def settle_facts(
    values: npt.NDArray[np.float32], n_users: int, n_items: int, implicit: bool, declared: Declarations
) -> PublicFacts:
    """Return the facts: those declared, and those taken from the ratings, which are named in `from_file`."""
    facts = declared.get("facts")
    if facts is not None:
        single = [
            name
            for name in ("low", "high", "step", "max_per_user", "n_users")
            if declared.get(name) is not None
        ]
        if single:
            raise DeclaredTwice(names=tuple(single))
        # Facts say how many items there are; which ones they are came from the ratings all the same.
        listed = declared.get("catalog") is not None
        return facts if listed else replace(facts, from_file=(*facts.from_file, N_ITEMS))
    if n_items == 0:
        raise NoRows(what="catalog")
    # A bare number of items does not say whether they are counted from 0 or from 1: that is read off the ids.
    listed = declared.get("catalog") is not None
    from_file = [] if listed else [N_ITEMS]
    low, high, step = declared.get("low"), declared.get("high"), declared.get("step")
    if implicit and low is None and high is None:
        low, high = 1.0, 1.0
    if low is None or high is None:
        from_file.append(SCALE)
        low, high = _seen_scale(values, low, high)
        step = step_of(values, low) if step is None else step
    return PublicFacts(
        n_items=n_items,
        low=low,
        high=high,
        step=step,
        max_per_user=declared.get("max_per_user"),
        n_users=declared.get("n_users"),
        from_file=tuple(from_file),
    )


def _seen_scale(
    values: npt.NDArray[np.float32], low: float | None, high: float | None
) -> tuple[float, float]:
    if values.size == 0:
        raise NoRows(what="scale")
    return float(values.min()) if low is None else low, float(values.max()) if high is None else high


def check_scale(values: npt.NDArray[np.float32], facts: PublicFacts) -> None:
    """Reject ratings outside the scale or off its steps; count them, never quote them."""
    if facts.weights:
        return
    low, high = np.float32(facts.low), np.float32(facts.high)
    # Written so that NaN, which compares with nothing, is outside.
    if values.size and not (values.min() >= low and values.max() <= high):
        outside = int(np.count_nonzero(~((values >= low) & (values <= high))))
        raise OffDeclaredScale(count=outside, of=values.size, low=facts.low, high=facts.high)
    if facts.step is not None and SCALE not in facts.from_file:
        off = count_off_step(values, facts.low, facts.step)
        if off:
            raise OffDeclaredScale(count=off, of=values.size, low=facts.low, high=facts.high, step=facts.step)
