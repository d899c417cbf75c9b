"""Start from an earlier release: what it says about items is public, and so costs nothing to look at.

Its effects and vectors become features of items, toward which the new fit shrinks as far as its own released
numbers agree. Monthly fits so know together more than each alone.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from discreet.arrays import Floats
from discreet.checks import DataError
from discreet.data.vocabulary import Vocabulary
from discreet.models.fitted import FittedModel
from discreet.models.storage import load

# So many of its directions, those along which items differ most, are handed on.
_MOST_DIRECTIONS = 15


def prior_table(path: str | Path, catalog: Vocabulary) -> Floats:
    """Return a row an item from the model in a file: its effect and its place on the main directions.

    Items that the earlier release did not know get what items have on average.

    Raises:
        DataError: The file's model has no effects or vectors of items, or knows none of these items.
    """
    earlier = load(path)
    known = earlier.catalog.index_of(catalog.series)
    if not np.any(known >= 0):
        raise DataError(f"{path} knows none of these items, so it says nothing about them.")
    columns = _of_items(earlier, path)
    table = np.tile(columns.mean(axis=0), (len(catalog), 1))
    table[known >= 0] = columns[known[known >= 0]]
    return table


def _of_items(earlier: FittedModel, path: str | Path) -> Floats:
    """Return effects and main directions of the earlier model's items."""
    arrays = earlier.scorer.arrays()
    if "item_bias" not in arrays:
        raise DataError(f"{path} holds no item effects; start from a model of ratings, or from none.")
    effects = np.asarray(arrays["item_bias"], dtype=np.float64)[:, None]
    vectors = np.asarray(arrays.get("item_factors", np.zeros((len(effects), 0))), dtype=np.float64)
    spread = vectors - vectors.mean(axis=0)
    left, sizes, _ = np.linalg.svd(spread, full_matrices=False)
    kept = sizes[:_MOST_DIRECTIONS] > 1e-9 * max(float(sizes.max(initial=0.0)), 1e-300)
    return np.column_stack([effects, (left[:, :_MOST_DIRECTIONS] * sizes[:_MOST_DIRECTIONS])[:, kept]])
