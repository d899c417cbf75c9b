"""Write a page that compares synthetic data with the release, and states what they must not be used for.

The page is self-contained and runs no script.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

import numpy as np

from discreet.core.arrays import Floats
from discreet.core.files import refuse_output, write_whole
from discreet.data.inputs import open_data
from discreet.data.interactions import Interactions
from discreet.data.roles import Choice
from discreet.models.fitted import FittedModel
from discreet.report.pages import Html, bar, bullets, element, is_page, page, table
from discreet.synthesis.comparison import Profile, agreement, distance, length_names, most_listed
from discreet.synthesis.errors import ComparedWithOther
from discreet.synthesis.labels import NOT_FOR, summary
from discreet.synthesis.making import Synthetic, is_rated

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
