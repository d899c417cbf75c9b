"""Write a page that compares synthetic data with the release, and states what they must not be used for.

The page is self-contained and runs no script.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import final

import numpy as np

from discreet.core import Floats, Indices, refuse_output, write_whole
from discreet.data import Choice, Interactions, open_data
from discreet.models import FittedModel, ReleasedHistories, history_question
from discreet.report import Html, bar, bullets, element, is_page, page, table
from discreet.statistics import LENGTH_STARTS, ItemVotes
from discreet.synthesis.errors import ComparedWithOther
from discreet.synthesis.labels import NOT_FOR, summary
from discreet.synthesis.making import Synthetic, is_rated, released_popularity

#: The name of such a page in messages.
KIND = "page about synthetic data"
_TITLE = "Synthetic data"


def refuse_page(path: Path, *, force: bool, inputs: Sequence[Path] = ()) -> None:
    """Raise, before anything is drawn, for a page that cannot be written."""
    refuse_output(path, force=force, kind=KIND, is_ours=partial(is_page, kind=KIND), inputs=inputs)


def write_page(
    model: FittedModel, made: Synthetic, path: Path, *, real: Interactions | None = None, force: bool = False
) -> None:
    """Write the page; with `real` data (see `read_real`) it also shows these, without noise."""
    refuse_page(path, force=force)
    write_whole(path, render_page(model, made, real).encode())


def render_page(model: FittedModel, made: Synthetic, real: Interactions | None = None) -> str:
    """Return the page as text."""
    profiles = {"release": Profile.of_release(model), "synthetic": Profile.of_data(made.data, model)}
    if real is not None:
        profiles["your data"] = Profile.of_data(real, model)
    body = [
        *_opening(model, made, holder_only=real is not None),
        element("h2", "How they were made"),
        bullets(made.sentences),
        element("h2", "What they must not be used for"),
        bullets(NOT_FOR),
        element("h2", "How close they are"),
        table(("what", "compared with", "result"), _distances(profiles), "Distances"),
        element(
            "p",
            '"Release" is what the model published, noise included. It has no counts of pairs, so pairs '
            "are compared with real data only.",
            "quiet",
        ),
        *_tables(model, profiles),
    ]
    return page(_TITLE, body, kind=KIND)


def _opening(model: FittedModel, made: Synthetic, *, holder_only: bool) -> Iterator[str]:
    said = summary(model.guarantee)
    yield element("h1", _TITLE)
    yield element(
        "p", f"{made.data.n_users:,} synthetic users, {made.data.n_ratings:,} interactions", "quiet"
    )
    yield element("p", element("strong", f"{said[:1].upper()}{said[1:]}."))
    yield element("p", model.guarantee.sentence(), "note")
    if holder_only:
        yield element(
            "p",
            'For the data owner only. The columns "your data" have no noise, and no guarantee covers '
            "them. Do not publish this page.",
            "warning",
        )


def read_real(model: FittedModel, real: str, columns: Choice | None = None) -> Interactions:
    """Return the real data behind a path or a name, as far as the model's catalog has their items.

    Of a pair of user and item that comes again, the last counts.
    """
    data = open_data(
        real,
        columns=columns,
        implicit=not is_rated(model),
        catalog=model.catalog,
        drop_unknown=True,
        duplicates="last",
    )
    if data.catalog.ids.tolist() != model.catalog.ids.tolist():
        raise ComparedWithOther(path=real)
    return data


def _distances(profiles: dict[str, Profile]) -> list[tuple[str, str, str]]:
    """Return what is compared, with what, and how far it is from the synthetic data."""
    made, found = profiles["synthetic"], []
    for name, profile in profiles.items():
        if name == "synthetic":
            continue
        for what in ("popularity", "lengths", "levels"):
            apart = distance(getattr(profile, what), getattr(made, what))
            if apart is not None:
                words = {"popularity": "popularity of items", "levels": "ratings"}.get(what, what)
                found.append((words, name, f"{apart:.3f} apart (0: equal, 1: nothing in common)"))
        agreed = agreement(profile.lifts, made.lifts)
        if agreed is not None:
            found.append(("pairs of popular items", name, f"correlation {agreed:.2f} (1: equal)"))
    return found


def _tables(model: FittedModel, profiles: dict[str, Profile]) -> Iterator[str]:
    """Return the tables of the page: shares by item, by length and by level, each with bars."""
    listed = most_listed(model)
    titles = next(iter(model.public.values()), None)
    ids = [str(model.catalog.id_at(item)) for item in listed]
    names = (
        ids if titles is None else [f"{titles[item]} ({one})" for item, one in zip(listed, ids, strict=True)]
    )
    yield from _shares("Popularity", "item", names, profiles, "popularity", listed)
    bins = profiles["synthetic"].lengths.size
    yield from _shares("Lengths of histories", "interactions", length_names(bins), profiles, "lengths")
    levels = profiles["synthetic"].levels.size
    if levels:
        values = np.linspace(model.facts.low, model.facts.high, levels)
        yield from _shares("Ratings", "rating", [f"{value:g}" for value in values], profiles, "levels")


def _shares(
    title: str,
    first: str,
    names: list[str],
    profiles: dict[str, Profile],
    what: str,
    chosen: list[int] | None = None,
) -> Iterator[str]:
    known: dict[str, Floats] = {
        name: shares if chosen is None else shares[chosen]
        for name, profile in profiles.items()
        if (shares := getattr(profile, what)).size
    }
    most = max(float(shares.max(initial=0.0)) for shares in known.values()) or 1.0
    rows = [
        (one, *(Html(f"{shares[row]:.2%}{bar(float(shares[row]) / most)}") for shares in known.values()))
        for row, one in enumerate(names)
        if any(shares[row] > 0 for shares in known.values())
    ]
    yield element("h2", title)
    yield table((first, *known), rows, title, kind="shares")


# Items that are listed one by one, and items whose pairs are compared, so many users at a time.
_LISTED, _PAIRED, _USERS = 10, 200, 1 << 14


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """Shares that describe data: of items, of lengths, of levels of ratings; and lifts of pairs.

    A part that is not known is empty. Items count as in a release: a user with n items gives each 1/sqrt(n).
    """

    popularity: Floats
    lengths: Floats
    levels: Floats
    lifts: Floats

    @classmethod
    def of_data(cls, data: Interactions, model: FittedModel) -> Profile:
        """Return the profile of interactions with the model's catalog and scale."""
        question = history_question(model.facts, rated=is_rated(model))
        sums = question.split(data.total(question).floats())
        votes = data.total(ItemVotes(n_items=data.n_items, norm="l2")).floats()
        return cls(
            popularity=_normalized(votes),
            lengths=_normalized(sums.lengths),
            levels=_normalized(sums.levels) if sums.levels.size > 1 else np.zeros(0),
            lifts=pair_lifts(data, _most_popular(released_popularity(model), _PAIRED)),
        )

    @classmethod
    def of_release(cls, model: FittedModel) -> Profile:
        """Return the numbers of the release, which has no pairs."""
        released = ReleasedHistories.of(model.scorer)
        rated = released is not None and released.levels.size > 1
        return cls(
            popularity=_normalized(released_popularity(model)),
            lengths=_normalized(released.lengths) if released is not None else np.zeros(0),
            levels=_normalized(released.levels) if released is not None and rated else np.zeros(0),
            lifts=np.zeros(0),
        )


def pair_lifts(data: Interactions, items: Indices) -> Floats:
    """Return, for each pair of these items, the logarithm of how often they meet over what chance gives.

    One is added to both counts. Only users' sets of items are used.
    """
    place = np.full(data.n_items, -1)
    place[items] = np.arange(items.size)
    together = np.zeros((items.size, items.size))
    for start in range(0, data.n_users, _USERS):
        block = data.span(start, min(start + _USERS, data.n_users))
        rows, columns = block.rows(), place[block.items]
        matrix = np.zeros((block.n_users, items.size), dtype=np.float32)
        matrix[rows[columns >= 0], columns[columns >= 0]] = 1.0
        together += matrix.T @ matrix
    alone = np.diag(together)
    expected = np.outer(alone, alone) / max(data.n_users, 1)
    above = np.triu_indices(len(items), 1)
    lifts: Floats = np.log((together[above] + 1) / (expected[above] + 1))
    return lifts


def distance(one: Floats, other: Floats) -> float | None:
    """Return the total variation distance between shares, from 0 to 1; None if either is not known."""
    if not one.size or one.size != other.size:
        return None
    return float(np.abs(one - other).sum() / 2)


def agreement(one: Floats, other: Floats) -> float | None:
    """Return the correlation of two lists of lifts; None where one is not known or constant."""
    if one.size < 2 or one.size != other.size or not one.std() or not other.std():
        return None
    return float(np.corrcoef(one, other)[0, 1])


def length_names(count: int) -> list[str]:
    """Return the bins of lengths in words."""
    starts = LENGTH_STARTS[:count].tolist()
    ends = [start - 1 for start in starts[1:]]
    named = [f"{low}" if low == high else f"{low} to {high}" for low, high in zip(starts, ends, strict=False)]
    return [*named, f"{starts[-1]} and more"]


def most_listed(model: FittedModel) -> list[int]:
    """Return the most popular items of the release."""
    return [int(item) for item in _most_popular(released_popularity(model), _LISTED)]


def _most_popular(popularity: Floats, count: int) -> Indices:
    return np.argsort(-popularity, kind="stable")[:count]


def _normalized(counts: Floats) -> Floats:
    total = float(counts.sum())
    return counts / total if total > 0 else np.zeros_like(counts)
