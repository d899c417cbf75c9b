"""Start from an earlier release: what it says about items is public, and so costs nothing to look at.

Its effects and vectors become features of items, toward which the new fit shrinks as far as its own released
numbers agree. Monthly fits so know together more than each alone. What the new fit publishes carries what
the earlier one knew, so a model that hides nobody is refused, and what weakens the earlier promise is carried
over (proofs/user_factorization.md).
"""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import numpy as np

from discreet.core.arrays import Floats
from discreet.core.checks import DataError, ParameterError, PrivacyError
from discreet.data.vocabulary import Vocabulary
from discreet.models.fitted import FittedModel
from discreet.models.storage import load, read_label
from discreet.privacy.guarantee import EARLIER, Guarantee, number_above, weaker_basis
from discreet.solvers.spectrum import with_fixed_signs

# So many of its directions, those along which items differ most, are handed on.
_MOST_DIRECTIONS = 15


def carrying_over(promise: Guarantee, path: str | Path) -> Guarantee:
    """Return the promise of a fit that starts from the model in a file; what weakens that one weakens it too.

    The line it adds names the earlier release and its price, which is not part of this one's.

    Raises:
        PrivacyError: The model in the file is not private, or hides something else than whole people.
    """
    if math.isinf(promise.epsilon):
        return replace(promise, assumes=(*promise.assumes, f"{EARLIER}, whatever it promises"))
    earlier = _promise_of(path)
    start = "Start from a private release, or from none."
    if math.isinf(earlier.epsilon):
        raise PrivacyError(
            f"{path} is not private, and a fit that starts from it would not be either. {start}"
        )
    if earlier.definition != promise.definition:
        raise PrivacyError(
            f"{path} promises {'/'.join(earlier.definition)} and this fit would promise "
            f"{'/'.join(promise.definition)}, which it cannot while it carries that model's numbers. {start}"
        )
    price = f"epsilon={number_above(earlier.epsilon)}, delta={number_above(earlier.delta)}"
    noise = "; its noise was simulated" if earlier.simulated else ""
    taken = [line for line in earlier.assumes if line in earlier.condition_lines]
    return replace(
        promise,
        assumes=(*promise.assumes, *taken, f"{EARLIER} with {price} of its own{noise}"),
        basis=weaker_basis(promise.basis, earlier.basis),
        simulated=promise.simulated or earlier.simulated,
    )


def _promise_of(path: str | Path) -> Guarantee:
    try:
        return Guarantee.from_json(read_label(path)["guarantee"])
    except ParameterError as error:
        raise DataError(f"{path} holds no promise that can be read, so nothing can start from it.") from error


def prior_table(path: str | Path, catalog: Vocabulary) -> Floats:
    """Return a row an item from the model in a file: its effect and its place on the main directions.

    Items that the earlier release did not know get what items have on average.

    Raises:
        DataError: The file's model has no effects or vectors of items, or knows none of these items.
    """
    earlier, columns = earlier_columns(path)
    known = earlier.catalog.index_of(catalog.series)
    if not np.any(known >= 0):
        raise DataError(f"{path} knows none of these items, so it says nothing about them.")
    table = np.tile(columns.mean(axis=0), (len(catalog), 1))
    table[known >= 0] = columns[known[known >= 0]]
    return table


def earlier_columns(path: str | Path) -> tuple[FittedModel, Floats]:
    """Return the model in a file, and effects and main directions of its items.

    Raises:
        DataError: The file's model has no effects of items.
    """
    earlier = load(path)
    arrays = earlier.scorer.arrays()
    if "item_bias" not in arrays:
        raise DataError(f"{path} holds no item effects; start from a model of ratings, or from none.")
    effects = np.asarray(arrays["item_bias"], dtype=np.float64)[:, None]
    vectors = np.asarray(arrays.get("item_factors", np.zeros((len(effects), 0))), dtype=np.float64)
    spread = vectors - vectors.mean(axis=0)
    left, sizes, _ = np.linalg.svd(spread, full_matrices=False)
    kept = sizes[:_MOST_DIRECTIONS] > 1e-9 * max(float(sizes.max(initial=0.0)), 1e-300)
    directions = with_fixed_signs(left[:, :_MOST_DIRECTIONS]) * sizes[:_MOST_DIRECTIONS]
    return earlier, np.column_stack([effects, directions[:, kept]])
