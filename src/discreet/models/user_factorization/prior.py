"""Start from an earlier release as a prior: it is public, so using it costs no budget.

Its effects and vectors become item features, toward which the new fit shrinks as far as its own released
numbers agree. So monthly fits accumulate information. The new model carries information of the earlier one;
so an earlier model without privacy is rejected, and what weakens the earlier guarantee is carried over
(proofs/user_factorization.md).
"""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import numpy as np

from discreet.core.arrays import Floats
from discreet.core.checks import ParameterError
from discreet.data.vocabulary import Vocabulary
from discreet.models.errors import PriorNotPrivate, PriorUnusable
from discreet.models.fitted import FittedModel
from discreet.models.storage import load, read_label
from discreet.privacy.guarantee import Assumption, Fact, Guarantee, Kind, weaker_basis
from discreet.solvers.spectrum import with_fixed_signs

# Most principal components of an earlier release: a bound on time, not tuned.
_MOST_PRIOR = 15


def carrying_over(promise: Guarantee, path: str | Path) -> Guarantee:
    """Return the guarantee of a fit that starts from the model in a file, with all that weakens that model's.

    The added assumption has the earlier release's cost, which is not part of this guarantee.

    Raises:
        PrivacyError: The model in the file is not private, or has another privacy definition.
    """
    if math.isinf(promise.epsilon):
        unstated = Assumption.of(Kind.EARLIER, Fact.PRIOR, epsilon=None, delta=None, simulated=None)
        return promise.assuming(unstated)
    earlier = _promise_of(path)
    if math.isinf(earlier.epsilon):
        raise PriorNotPrivate(path=path)
    if earlier.definition != promise.definition:
        raise PriorNotPrivate(path=path)
    started = Assumption.of(
        Kind.EARLIER,
        Fact.PRIOR,
        epsilon=earlier.epsilon,
        delta=earlier.delta,
        simulated=earlier.simulated,
    )
    return replace(
        promise.assuming(*earlier.conditions, started),
        basis=weaker_basis(promise.basis, earlier.basis),
        simulated=promise.simulated or earlier.simulated,
    )


def _promise_of(path: str | Path) -> Guarantee:
    try:
        return Guarantee.from_json(read_label(path)["guarantee"])
    except ParameterError as error:
        raise PriorUnusable(path=path) from error


def prior_table(path: str | Path, catalog: Vocabulary) -> Floats:
    """Return a row per item from the model in a file: its effect and its principal components.

    Items that the earlier release does not know get the mean row.

    Raises:
        DataError: The file's model has no item effects, or knows none of these items.
    """
    earlier, columns = earlier_columns(path)
    known = earlier.catalog.index_of(catalog.series)
    if not np.any(known >= 0):
        raise PriorUnusable(path=path)
    table = np.tile(columns.mean(axis=0), (len(catalog), 1))
    table[known >= 0] = columns[known[known >= 0]]
    return table


def earlier_columns(path: str | Path) -> tuple[FittedModel, Floats]:
    """Return the model in a file, and the effects and principal components of its items.

    Raises:
        DataError: The file's model has no item effects.
    """
    earlier = load(path)
    arrays = earlier.scorer.arrays()
    if "item_bias" not in arrays:
        raise PriorUnusable(path=path)
    effects = np.asarray(arrays["item_bias"], dtype=np.float64)[:, None]
    vectors = np.asarray(arrays.get("item_factors", np.zeros((len(effects), 0))), dtype=np.float64)
    centered = vectors - vectors.mean(axis=0)
    left, sizes, _ = np.linalg.svd(centered, full_matrices=False)
    kept = sizes[:_MOST_PRIOR] > 1e-9 * max(float(sizes.max(initial=0.0)), 1e-300)
    directions = with_fixed_signs(left[:, :_MOST_PRIOR]) * sizes[:_MOST_PRIOR]
    return earlier, np.column_stack([effects, directions[:, kept]])
