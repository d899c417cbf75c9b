"""Write a page that compares synthetic data with the release, and says what they must not be used for.

The page is self-contained and runs no script. Writing it needs jinja2 (the extra `report`).
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np

from discreet.core.arrays import Floats
from discreet.core.checks import DataError, DiscreetError
from discreet.core.files import refuse_output, write_whole
from discreet.data.inputs import open_data
from discreet.data.interactions import Interactions
from discreet.models.fitted import FittedModel
from discreet.synthesis.comparison import Profile, agreement, distance, length_names, most_listed
from discreet.synthesis.labels import NOT_FOR, summary
from discreet.synthesis.making import Synthetic, is_rated

#: The name of such a page in messages.
KIND = "page about synthetic data"
_MARK, _HEAD = b'<meta name="generator" content="discreet synthesize">', 512


def refuse_page(path: Path, *, force: bool, inputs: Sequence[Path] = ()) -> None:
    """Refuse, before anything is drawn, a page that cannot be written."""
    try:
        import jinja2  # noqa: F401
    except ImportError as error:
        raise DiscreetError('A page needs jinja2. Install it with pip install "discreet[report]".') from error
    refuse_output(path, force=force, kind=KIND, is_ours=_is_page, inputs=inputs)


def write_page(
    model: FittedModel, made: Synthetic, path: Path, *, real: str | None = None, force: bool = False
) -> None:
    """Write the page; with the path or name of `real` data it also shows these, without noise."""
    refuse_page(path, force=force)
    held = None if real is None else _held(model, real)
    write_whole(path, render_page(model, made, held).encode())


def render_page(model: FittedModel, made: Synthetic, real: Interactions | None = None) -> str:
    """Return the page as text."""
    from jinja2 import Environment

    profiles = {"release": Profile.of_release(model), "synthetic": Profile.of_data(made.data, model)}
    if real is not None:
        profiles["your data"] = Profile.of_data(real, model)
    template = resources.files("discreet.synthesis").joinpath("page.html.jinja").read_text("utf-8")
    text: str = (
        Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True)
        .from_string(template)
        .render(
            title="Synthetic data",
            summary=summary(model.guarantee),
            sentence=model.guarantee.sentence(),
            simulated=model.guarantee.simulated,
            holder_only=real is not None,
            users=made.data.n_users,
            interactions=made.data.n_ratings,
            sentences=made.sentences,
            not_for=NOT_FOR,
            distances=_distances(profiles),
            tables=_tables(model, profiles),
        )
    )
    return text


def _held(model: FittedModel, real: str) -> Interactions:
    """Return real data with the model's catalog."""
    data = open_data(real, implicit=not is_rated(model), catalog=model.catalog)
    if data.catalog.ids.tolist() != model.catalog.ids.tolist():
        raise DataError(f"{real} has another catalog than the model. Compare with the data it learned from.")
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


def _tables(model: FittedModel, profiles: dict[str, Profile]) -> list[dict[str, Any]]:
    """Return the tables of the page: shares by item, by length and by level, each with bars."""
    listed = most_listed(model)
    titles = next(iter(model.public.values()), None)
    ids = [str(model.catalog.id_at(item)) for item in listed]
    names = (
        ids if titles is None else [f"{titles[item]} ({one})" for item, one in zip(listed, ids, strict=True)]
    )
    tables = [_table("Popularity", "item", names, profiles, "popularity", listed)]
    bins = profiles["synthetic"].lengths.size
    tables.append(_table("Lengths of histories", "interactions", length_names(bins), profiles, "lengths"))
    levels = profiles["synthetic"].levels.size
    if levels:
        values = np.linspace(model.facts.low, model.facts.high, levels)
        tables.append(_table("Ratings", "rating", [f"{value:g}" for value in values], profiles, "levels"))
    return tables


def _table(
    title: str,
    first: str,
    names: list[str],
    profiles: dict[str, Profile],
    what: str,
    chosen: list[int] | None = None,
) -> dict[str, Any]:
    known: dict[str, Floats] = {
        name: shares if chosen is None else shares[chosen]
        for name, profile in profiles.items()
        if (shares := getattr(profile, what)).size
    }
    most = max(float(shares.max(initial=0.0)) for shares in known.values()) or 1.0
    rows = [
        (one, [(f"{shares[row]:.2%}", f"{100 * shares[row] / most:.1f}") for shares in known.values()])
        for row, one in enumerate(names)
        if any(shares[row] > 0 for shares in known.values())
    ]
    return {"title": title, "first": first, "columns": list(known), "rows": rows}


def _is_page(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            return _MARK in file.read(_HEAD)
    except OSError:
        return False
