"""Find latent factors of ratings: free ones, noisy ones, and one refit of all item vectors.

Ratings are in units in which the scale runs from -1 to 1. A user's own factors come from a ridge regression
of their ratings on the released directions. A user's contribution is a function of their own row and of
earlier releases, scaled to length at most 1. The proof is in proofs/user_factorization.md.
"""

from __future__ import annotations

from fractions import Fraction
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from discreet.core import Floats
from discreet.models.released_items import ItemView, sum_variance
from discreet.models.user_factorization.settings import FactorizationSettings
from discreet.privacy import Session
from discreet.solvers import (
    VoteEstimate,
    clearest_part,
    kernel_features,
    ridge_map,
    shrink_vectors,
    with_fixed_signs,
)
from discreet.statistics import TYPICAL_RESIDUAL, USER_RIDGE, ItemVectors, ResidualMoment
from discreet.statistics.typical import COUNT_PART

# Of the factors beyond the constant, item quality and popularity come first.
_PLAIN = 2
# Noise may make the released number of ratings of a user zero; a user rated at least this part of enough.
_LEAST_RATED = 0.01
# Offsets are never known better than this.
_LEAST_VARIANCE = 1e-9
# Least eigenvalue of the factors' second moment, of the constant's: noise can make one zero or negative.
_LEAST_MOMENT = 0.02


def _rating_variance() -> float:
    """Return the variance of a rating around its prediction; ridges are stated in units of it."""
    return TYPICAL_RESIDUAL**2


class LatentFactors(NamedTuple):
    """Item offsets and factors; the first factor is the constant, `ridge` has a ridge for each.

    The first `free` factors cost nothing: they follow from item effects, counts and public features.
    `variance` is that of the offsets' estimates.
    """

    offsets: Floats
    features: Floats
    ridge: Floats
    free: int
    variance: Floats

    def as_free(self) -> LatentFactors:
        """Return the same with all factors as what a further refit starts from."""
        return self._replace(free=self.features.shape[1])


def public_directions(table: Floats, most: int) -> Floats:
    """Return up to `most` principal components of public item features; rows have length 1 on average."""
    spread = table.std(axis=0)
    table = (table - table.mean(axis=0))[:, spread > 0] / spread[spread > 0]
    left, sizes, _ = np.linalg.svd(table, full_matrices=False)
    kept = np.flatnonzero(sizes > 1e-9 * max(sizes.max(initial=0.0), 1e-300))[:most]
    scores = with_fixed_signs(left[:, kept]) * sizes[kept]
    found: Floats = scores / max(np.sqrt((scores**2).sum() / len(table)), 1e-300)
    return found


def free_directions(seen: ItemView, settings: FactorizationSettings) -> LatentFactors:
    """Return the factors that cost nothing: item quality and popularity, which users value differently.

    The view's further columns follow: public features and item embeddings.
    """
    effects = seen.effects()
    quality = effects.mean - np.average(effects.mean, weights=seen.counts)
    features = np.column_stack([np.ones(quality.size), quality, seen.features[:, 1:]])
    unit = _rating_variance()
    ridge = np.array([USER_RIDGE, settings.quality_ridge * unit, settings.feature_ridge * unit])
    ridge = np.append(ridge, seen.column_ridges * unit)
    return LatentFactors(seen.mean + effects.mean, features, ridge, features.shape[1], effects.variance)


def with_curves(
    factors: LatentFactors,
    popularity: Floats,
    users: float,
    rated: float,
    settings: FactorizationSettings,
) -> LatentFactors:
    """Return the factors and smooth functions of them, for predicting ratings.

    What a user likes need not be linear in what was released about items. The functions follow from released
    numbers, and a user's coefficients for them from that user's own ratings, so they cost nothing. The fewer
    `users` there are per unit of noise, or ratings of a user (`rated`, part of enough), the rougher the
    factors, and the less is asked of the functions. Item quality and popularity alone do not call for them.
    """
    share = popularity / popularity.sum()
    columns = factors.features[:, 1:] - share @ factors.features[:, 1:]
    squares = share @ columns**2
    plain, found = squares[:_PLAIN], squares[_PLAIN:]
    if not found.sum() > 0:
        return factors
    # Quality and popularity together have variance 1, and so have all other factors together.
    scales = np.append(np.sqrt(_PLAIN * plain), np.full(found.size, np.sqrt(found.sum())))
    curves = kernel_features(
        columns / np.maximum(scales, 1e-150),
        popularity,
        width=1.0,
        landmarks=settings.curve_landmarks,
        most=settings.most_curves,
    )
    rated = max(rated, _LEAST_RATED)
    rough = (1 + (settings.many_users_per_noise / max(users * rated, 1.0)) ** 2) / rated
    asked = settings.curve_ridge * rough * _rating_variance()
    ridge = np.append(factors.ridge, np.full(curves.shape[1], asked))
    return factors._replace(features=np.column_stack([factors.features, curves]), ridge=ridge)


class _Spectrum(NamedTuple):
    """The eigenvalues and eigenvectors above the noise of a second moment over the items `top`."""

    top: npt.NDArray[np.int64]
    strengths: Floats
    vectors: Floats


def pilot_spectrum(
    session: Session,
    share: Fraction,
    seen: ItemView,
    factors: LatentFactors,
    settings: FactorizationSettings,
) -> float:
    """Make a pilot release of the second moment; return the part of the variance that it clearly explains."""
    found = _spectrum(session, share, seen, factors, settings, settings.pilot_above_edge)
    # Rows have length about 1, but a user rated only a part of the items and covers that part of a direction.
    rated = seen.typical_length * _share_of_ratings(seen, found.top) / found.top.size
    variance = seen.people * min(rated, 1.0)
    # Noise may make the released number of users or of ratings zero or negative: then nothing is explained.
    return float(found.strengths.sum() / variance) if variance > 0 else 0.0


def directions(
    session: Session,
    share: Fraction,
    seen: ItemView,
    factors: LatentFactors,
    settings: FactorizationSettings,
) -> LatentFactors:
    """Release the second moment of the residuals of the free factors, and keep factors above the noise."""
    above = settings.moment_above_edge
    top, strengths, vectors = _spectrum(session, share, seen, factors, settings, above)
    found = np.zeros((session.n_items, strengths.size))
    found[top] = vectors * np.sqrt(strengths) / _row_weight(seen, top, settings)[:, None]
    ridge = np.concatenate([factors.ridge, np.full(strengths.size, _rating_variance())])
    return factors._replace(features=np.column_stack([factors.features, found]), ridge=ridge)


def _spectrum(
    session: Session,
    share: Fraction,
    seen: ItemView,
    factors: LatentFactors,
    settings: FactorizationSettings,
    above_edge: float,
) -> _Spectrum:
    multiplier = session.multiplier_of(share)
    wanted = (
        settings.items_per_root * np.sqrt(seen.people / multiplier)
        if multiplier
        else settings.most_moment_items
    )
    size = min(max(int(min(wanted, settings.most_moment_items)), settings.fewest_items), session.n_items)
    top = np.sort(np.argsort(-seen.raw_counts, kind="stable")[:size])
    statistic = ResidualMoment(
        top=top,
        item_weights=seen.counts**settings.weight_power,
        middle=seen.middle,
        half=seen.half,
        offsets=factors.offsets,
        features=factors.features,
        ridge=factors.ridge,
    )
    moment = session.release(statistic, share).values
    part, found = clearest_part(
        moment,
        np.argsort(-seen.raw_counts[top], kind="stable"),
        multiplier,
        seen.people,
        fewest=settings.fewest_items,
        most=settings.most_rating_factors,
        above_edge=above_edge,
    )
    return _Spectrum(top[part], found.strengths, found.vectors)


def _row_weight(seen: ItemView, top: npt.NDArray[np.int64], settings: FactorizationSettings) -> Floats:
    """Return, for each item, the scale of its weighted column relative to plain residuals."""
    counts = seen.counts[top]
    item_weights = counts**settings.weight_power
    typical = np.sqrt((counts * item_weights**2).sum() / counts.sum())
    share = _share_of_ratings(seen, top)
    weight: Floats = counts * item_weights / (typical * np.sqrt(share * seen.people))
    return weight


def _share_of_ratings(seen: ItemView, top: npt.NDArray[np.int64]) -> float:
    counts = float(seen.counts[top].sum())
    return counts / max(float(seen.raw_counts.sum()), counts)


def refit(
    session: Session,
    shares: tuple[Fraction, Fraction],
    seen: ItemView,
    factors: LatentFactors,
    table: Floats,
    settings: FactorizationSettings,
) -> tuple[LatentFactors, VoteEstimate]:
    """Release sums for every item's regression on users' factors, and shrink its vector by the noise.

    The shares are those of the items' sums and of the factors' second moment. Vectors are shrunk toward
    what the public `table` and the view's columns predict, offsets by how well they are known already. The
    votes are returned combined with the counts of this release.
    """
    scale = np.sqrt(factors.ridge / _rating_variance())
    item_weights, part = seen.tally.raised**settings.weight_power, COUNT_PART
    vectors = ItemVectors(
        middle=seen.middle,
        half=seen.half,
        features=factors.features,
        offsets=factors.offsets,
        ridge=factors.ridge,
        scale=scale,
        longest=float(np.sqrt(factors.features.shape[1] + 1)),
        item_weights=item_weights,
        count_part=part,
    )
    (released, multiplier), (squares, _) = session.release_parts(
        vectors, {"vectors": shares[0], "moment": shares[1]}
    )
    sums, counts = vectors.split(released)
    moment = _usable(squares)
    tally = seen.tally.with_more(counts / part, multiplier / part, item_weights)
    counts = tally.expected(counts / part, multiplier / part, item_weights)
    current = factors.features / scale
    current[:, 0] = 0.0
    # Free factors are shrunk toward their current values; noisy ones toward zero.
    center = np.zeros_like(current)
    center[:, 1 : factors.free] = current[:, 1 : factors.free]
    variance = sum_variance(counts, item_weights, seen.people, multiplier, part)
    right = sums + counts[:, None] * (current @ moment)
    described = np.column_stack([table, seen.columns])
    first = np.maximum(factors.variance, _LEAST_VARIANCE) ** settings.shrunk_power
    first = first / np.average(first, weights=counts)
    shrunk = shrink_vectors(right, counts, moment, variance, center, first)
    if described.shape[1]:
        center = center + feature_prior(described, shrunk.mean - center, counts**2 / variance)
        shrunk = shrink_vectors(right, counts, moment, variance, center, first)
    features = _by_spread(shrunk.mean, moment, seen.columns.shape[1], settings.shrunk_power) * scale
    features[:, 0] = 1.0
    found = LatentFactors(
        factors.offsets + shrunk.mean[:, 0], features, factors.ridge, factors.free, shrunk.first_variance
    )
    return found, tally


def _by_spread(vectors: Floats, moment: Floats, columns: int, power: float) -> Floats:
    """Return item vectors in which columns are longer along which users differ more, so that one ridge fits.

    Users' own factors are shrunk, so their second moment counts by a power. Quality and popularity come first
    and have ridges of their own. Latent factors have their own lengths: next to them nothing changes.
    """
    start = 1 + _PLAIN
    if not columns or start + columns < len(moment):
        return vectors
    part = moment[start:, start:]
    values, basis = np.linalg.eigh(part / np.mean(np.diag(part)))
    root = (basis * np.maximum(values, 0.0) ** (power / 2)) @ basis.T
    return np.column_stack([vectors[:, :start], vectors[:, start:] @ root])


def _usable(moment: Floats) -> Floats:
    """Return the factors' second moment relative to the constant's, with all eigenvalues above zero."""
    values, basis = np.linalg.eigh(moment / max(float(moment[0, 0]), _LEAST_MOMENT))
    raised: Floats = (basis * np.maximum(values, _LEAST_MOMENT)) @ basis.T
    return raised


def feature_prior(table: Floats, vectors: Floats, precision: Floats) -> Floats:
    """Return where each item's vector is expected to lie by its public features.

    `vectors` are estimates from noisy releases and `precision` the information in each item's counts; both
    were released, so that this is post-processing. A coordinate that features do not predict, when each item
    is predicted from all others, is expected to be the mean.
    """
    if not table.shape[1] or not vectors.shape[1]:
        return np.zeros_like(vectors)
    return ridge_map(table, vectors, np.maximum(precision, 0.0)).predict(table)
