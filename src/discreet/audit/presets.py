"""The settings that README, demo, `choose`, and the tutorials lead to. Each has a full audit of its own.

An audit is about what one setup releases. The recommended model releases other statistics, or splits its
budget in another way, if it learns from interactions, for one purpose, with fading, features, or synthesis.
Times need no setup: every audit has datasets with and without them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import polars as pl

# Any half-life and date will do: a user's weights are at most 1 with every one.
_FADING = {"half_life": 30.0, "now": "2026-01-31"}
_CLICKS = {"feedback": "implicit"}
_ITEMS, _GENRES = 400, ("comedy", "drama", "horror", "music", "travel")


def presets() -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield models with settings that aren't the default; the defaults of each model are audited as well."""
    features = {"item_features": public_table()}
    for settings in (
        _CLICKS,
        {"purpose": "lists"},
        {"purpose": "ratings"},
        _FADING,
        {**_CLICKS, **_FADING},
        features,
        {**_CLICKS, **features},
        {"for_synthesis": True},
        {**_CLICKS, "for_synthesis": True},
    ):
        yield "user-factorization", settings


def public_table() -> pl.DataFrame:
    """Return made-up public features of the items in audits: two genres and a year each."""
    ids, n = range(_ITEMS), len(_GENRES)
    genres = [f"{_GENRES[one % n]}|{_GENRES[one * one % n]}" for one in ids]
    return pl.DataFrame({"item": list(ids), "genres": genres, "year": [1950 + one % 70 for one in ids]})
