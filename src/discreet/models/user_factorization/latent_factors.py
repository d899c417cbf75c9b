"""Find along which directions tastes differ: free ones, noisy ones, and one refit of all item vectors.

Ratings are in units in which the scale runs from -1 to 1. A person explains their own ratings by a ridge over
the released directions; everything a person tells is a function of their own row and of earlier releases,
scaled to length 1. The proof is in proofs/user_factorization.md.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from discreet.core.arrays import Floats
from discreet.core.randomness import PrivacyRandom
from discreet.models.released_items import ItemView, sum_variance
from discreet.privacy.mechanisms.additive import Gaussian
from discreet.solvers.empirical_bayes import VoteEstimate, shrink_vectors
from discreet.solvers.features import ridge_map
from discreet.solvers.spectrum import clearest_part, with_fixed_signs
from discreet.statistics.counts import COUNT_PART, TYPICAL_RESIDUAL, USER_RIDGE
from discreet.statistics.data_source import DataSource
from discreet.statistics.item_vectors import ItemVectors
from discreet.statistics.residual_moment import ResidualMoment

# How many items take part in the second moment, for each square root of people per noise.
_ITEMS_PER_ROOT = 5.0
_FEWEST_ITEMS, _MOST_ITEMS = 32, 768
_MOST_FACTORS = 32
# An eigenvalue counts from this much above the edge of the noise; in a glance it must be clearer.
_ABOVE_EDGE, _CLEARLY_ABOVE = 1.03, 1.1
# Items known better count less: powers of the noisy count in the second moment and in the refit.
_MOMENT_POWER, _REFIT_POWER = -0.25, -0.25
# How strongly a person's taste for "better than average" and for "better known" is pulled to zero.
_QUALITY_RIDGE, _FAME_RIDGE = 10.0, 200.0
# The same for public features, of which so many main directions are used.
PUBLIC_RIDGE = 100.0
_MOST_PUBLIC = 16
# Variance of a rating around its prediction; ridges are stated in units of it.
_NOISE = TYPICAL_RESIDUAL**2
# Rows are weighed by their own length, which makes the mean of the squared weights larger than the square of
# the mean weight by about this factor.
_WEIGHT_SPREAD = 1.3
_LEAST_MOMENT = 0.02


class LatentFactors(NamedTuple):
    """Hold item offsets and directions; the first direction is the constant, `ridge` pulls each one.

    The first `free` directions cost nothing: they follow from item effects, counts and public features.
    """

    offsets: Floats
    features: Floats
    ridge: Floats
    free: int


def public_directions(table: Floats) -> Floats:
    """Return the main directions of public item features, centered, their rows of unit size on average."""
    spread = table.std(axis=0)
    table = (table - table.mean(axis=0))[:, spread > 0] / spread[spread > 0]
    left, sizes, _ = np.linalg.svd(table, full_matrices=False)
    kept = np.flatnonzero(sizes > 1e-9 * max(sizes.max(initial=0.0), 1e-300))[:_MOST_PUBLIC]
    scores = with_fixed_signs(left[:, kept]) * sizes[kept]
    found: Floats = scores / max(np.sqrt((scores**2).sum() / len(table)), 1e-300)
    return found


def free_directions(seen: ItemView, effects: Floats) -> LatentFactors:
    """Return the directions that cost nothing: people differ in how much quality and fame mean to them.

    The same holds for the view's further columns: public features, and which crowds choose an item.
    """
    quality = effects - np.average(effects, weights=seen.counts)
    features = np.column_stack([np.ones(effects.size), quality, seen.features[:, 1:]])
    ridge = np.array([USER_RIDGE, _QUALITY_RIDGE * _NOISE, _FAME_RIDGE * _NOISE])
    ridge = np.append(ridge, seen.column_ridges * _NOISE)
    return LatentFactors(seen.mean + effects, features, ridge, features.shape[1])


class _Spectrum(NamedTuple):
    """Hold what stands out of a noisy second moment over the items `top`: strengths, and unit vectors."""

    top: npt.NDArray[np.int64]
    strengths: Floats
    vectors: Floats


def pilot_spectrum(
    data: DataSource, seen: ItemView, factors_found: LatentFactors, multiplier: float, random: PrivacyRandom
) -> float:
    """Release a rough second moment; return which part of the ratings' variance it clearly explains."""
    found = _spectrum(data, seen, factors_found, multiplier, _CLEARLY_ABOVE, random)
    # Rows are about 1 long, but a person rated only a part of the items and shows that part of a direction.
    rated = seen.typical_length * _share_of_ratings(seen, found.top) / found.top.size
    variance = seen.people * min(rated, 1.0)
    # Chance may leave nobody, or no ratings on these items, in what was released: then nothing is explained.
    return float(found.strengths.sum() / variance) if variance > 0 else 0.0


def directions(
    data: DataSource, seen: ItemView, factors_found: LatentFactors, multiplier: float, random: PrivacyRandom
) -> LatentFactors:
    """Release the second moment of what the free directions leave, and keep what stands out of its noise."""
    top, strengths, vectors = _spectrum(data, seen, factors_found, multiplier, _ABOVE_EDGE, random)
    found = np.zeros((data.n_items, strengths.size))
    found[top] = vectors * np.sqrt(strengths) / _row_weight(seen, top)[:, None]
    ridge = np.concatenate([factors_found.ridge, np.full(strengths.size, _NOISE)])
    return LatentFactors(
        factors_found.offsets, np.column_stack([factors_found.features, found]), ridge, factors_found.free
    )


def _spectrum(
    data: DataSource,
    seen: ItemView,
    factors_found: LatentFactors,
    multiplier: float,
    above_edge: float,
    random: PrivacyRandom,
) -> _Spectrum:
    wanted = _ITEMS_PER_ROOT * np.sqrt(seen.people / multiplier) if multiplier else _MOST_ITEMS
    size = min(max(int(min(wanted, _MOST_ITEMS)), _FEWEST_ITEMS), data.n_items)
    top = np.sort(np.argsort(-seen.raw_counts, kind="stable")[:size])
    told = ResidualMoment(
        top=top,
        item_weights=seen.counts**_MOMENT_POWER,
        middle=seen.middle,
        half=seen.half,
        offsets=factors_found.offsets,
        features=factors_found.features,
        ridge=factors_found.ridge,
    )
    noise = Gaussian(sigma=multiplier, l2_sensitivity=1.0)
    moment = noise.release_symmetric(data.total(told).steps(), random)
    part, found = clearest_part(
        moment,
        np.argsort(-seen.raw_counts[top], kind="stable"),
        multiplier,
        seen.people,
        fewest=_FEWEST_ITEMS,
        most=_MOST_FACTORS,
        above_edge=above_edge,
    )
    return _Spectrum(top[part], found.strengths, found.vectors)


def _row_weight(seen: ItemView, top: npt.NDArray[np.int64]) -> Floats:
    """Return, for each item, by how much weighing shrank its column against a column of plain residuals."""
    counts = seen.counts[top]
    item_weights = counts**_MOMENT_POWER
    typical = np.sqrt((counts * item_weights**2).sum() / counts.sum())
    share = _share_of_ratings(seen, top)
    weight: Floats = (
        counts * item_weights / (typical * np.sqrt(share)) * np.sqrt(_WEIGHT_SPREAD / seen.people)
    )
    return weight


def _share_of_ratings(seen: ItemView, top: npt.NDArray[np.int64]) -> float:
    counts = float(seen.counts[top].sum())
    return counts / max(float(seen.raw_counts.sum()), counts)


def refit(
    data: DataSource,
    seen: ItemView,
    factors_found: LatentFactors,
    multipliers: tuple[float, float],
    table: Floats,
    random: PrivacyRandom,
) -> tuple[LatentFactors, VoteEstimate]:
    """Release, for every item, what people's factors say about its vector, and shrink by the known noise.

    The multipliers are those of the items' sums and of the factors' second moment. Vectors are shrunk toward
    what the public `table` suggests, if it has columns. The votes come back merged with what this release
    counted.
    """
    size = factors_found.features.shape[1]
    scale = np.sqrt(factors_found.ridge / _NOISE)
    item_weights = seen.tally.raised**_REFIT_POWER
    vectors = ItemVectors(
        middle=seen.middle,
        half=seen.half,
        features=factors_found.features,
        offsets=factors_found.offsets,
        ridge=factors_found.ridge,
        scale=scale,
        longest=float(np.sqrt(size + 1)),
        item_weights=item_weights,
        count_part=COUNT_PART,
    )
    said = data.total(vectors)
    noise = Gaussian(sigma=multipliers[0], l2_sensitivity=1.0)
    sums, counts = vectors.split(noise.release(said.steps("vectors"), random))
    noise = Gaussian(sigma=multipliers[1], l2_sensitivity=1.0)
    moment = _usable(noise.release_symmetric(said.steps("moment"), random))
    tally = seen.tally.with_more(counts / COUNT_PART, multipliers[0] / COUNT_PART, item_weights)
    counts = tally.expected(counts / COUNT_PART, item_weights)
    current = factors_found.features / scale
    current[:, 0] = 0.0
    # Free directions are expected to stay what they are; the noisy ones are shrunk to zero.
    center = np.zeros_like(current)
    center[:, 1 : factors_found.free] = current[:, 1 : factors_found.free]
    variance = sum_variance(counts, item_weights, seen.people, multipliers[0])
    told = sums + counts[:, None] * (current @ moment)
    shrunk = shrink_vectors(told, counts, moment, variance, center)
    if table.shape[1]:
        center = center + feature_prior(table, shrunk - center, counts**2 / variance)
        shrunk = shrink_vectors(told, counts, moment, variance, center)
    features = shrunk * scale
    features[:, 0] = 1.0
    return LatentFactors(
        factors_found.offsets + shrunk[:, 0], features, factors_found.ridge, factors_found.free
    ), tally


def _usable(moment: Floats) -> Floats:
    """Return the factors' second moment relative to the constant's, with all eigenvalues above zero."""
    values, basis = np.linalg.eigh(moment / max(float(moment[0, 0]), _LEAST_MOMENT))
    raised: Floats = (basis * np.maximum(values, _LEAST_MOMENT)) @ basis.T
    return raised


def feature_prior(table: Floats, vectors: Floats, precision: Floats) -> Floats:
    """Return where each item's vector is expected to lie by its public features.

    `vectors` are estimates from noisy releases and `precision` says how much each item's counts tell; both
    were released, so that this is post-processing. A coordinate that features do not predict, when each item
    is predicted from all others, is expected to be the mean.
    """
    if not table.shape[1] or not vectors.shape[1]:
        return np.zeros_like(vectors)
    return ridge_map(table, vectors, np.maximum(precision, 0.0)).predict(table)
