"""Take a scorer apart into what a device adds up: popularity, embeddings, ratings, weights between items.

The score of an item is the sum of what all parts say of it. A part is a kind, a few numbers and arrays; the
programs that run on a device (`web/recommender.js`, `onnx_graph.py`) know these kinds and nothing of models.
All arrays are released already, so a bundle costs no budget. A scorer that is no such sum is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from discreet.core.arrays import Floats
from discreet.core.checks import ParameterError
from discreet.models.fitted import FittedModel
from discreet.models.scorers.counts import CountedRatings
from discreet.models.scorers.factors import ImplicitFactorScorer, RatingScorer
from discreet.models.scorers.interactions import InteractionScorer
from discreet.models.scorers.interactions_and_ratings import InteractionsAndRatings
from discreet.models.scorers.item_item import ItemWeightsScorer, NeighborScorer, PopularityScorer
from discreet.models.scorers.local import LocalScorer
from discreet.models.scorers.log_chance import chance_table
from discreet.models.scorers.scorer import Scorer

#: The kinds of parts, in words for whoever reads a bundle.
KINDS = {
    "popularity": "a number for each item, the same for everybody",
    "embedding": "item vectors; a person's vector is a weighted mean of theirs, shrunk",
    "confidence": "item factors; a person's factors solve a least-squares problem over all items",
    "ratings": "expected stars: item bias and factors; a person's factors solve a ridge problem",
    "liking": "the logarithm of the chance that the stars lie above the person's usual ones",
    "item-item": "weights from each item of the history to others, by how late it came",
}
# The array of each kind that may be quantized: one row an item. All others stay as they are.
VECTORS = "vectors"
# What a person may read about models that work.
_CAN = (
    "user-factorization, popularity, biases, covariance-svd, frank-wolfe, private-gradients, local-channel, "
    "local-mixture, local-nuclear, local-sgd, neighbours, implicit-als, ease and item-knn"
)
# A history's weights fall by rank from the latest item; these fall never.
EVENLY = {"fading": 0.0, "evenly": 0.0}


class ScorePart(NamedTuple):
    """Hold one part: what kind it is, its numbers, and its arrays."""

    kind: str
    numbers: Mapping[str, Any]
    arrays: Mapping[str, npt.NDArray[Any]]


def parts_of(model: FittedModel) -> list[ScorePart]:
    """Return the parts whose sum orders the lists of a model.

    Raises:
        ParameterError: The model's lists are no such sum.
    """
    make = _MAKERS.get(type(model.scorer))
    if make is None:
        raise ParameterError(
            f"Lists of {model.name} cannot be made on a device. A bundle can be made of {_CAN}."
        )
    return make(model.scorer)


def _popularity(scorer: PopularityScorer) -> list[ScorePart]:
    return [_bias(scorer.popularity)]


def _bias(numbers: Floats) -> ScorePart:
    return ScorePart("popularity", {}, {"bias": numbers})


def _interactions(scorer: InteractionScorer) -> list[ScorePart]:
    """Return the bias and the embedding, turned so that the problems of all people are diagonal."""
    share = scorer.popularity / scorer.popularity.sum()
    centered = scorer.item_factors - share @ scorer.item_factors
    spread, turn = np.linalg.eigh((centered * share[:, None]).T @ centered)
    vectors = scorer.item_factors @ turn
    arrays = {VECTORS: vectors, "mean": share @ vectors, "spread": np.maximum(spread, 0.0)}
    numbers = {"ridge": scorer.ridge, "fading": scorer.fading, "evenly": scorer.evenly}
    return [_bias(scorer.item_bias()), ScorePart("embedding", numbers, arrays)]


def _ratings(scorer: RatingScorer, *, weight: float) -> ScorePart:
    numbers = {
        "mean": scorer.mean,
        "low": scorer.low,
        "high": scorer.high,
        "power": scorer.count_power,
        "weight": weight,
    }
    arrays = {"bias": scorer.item_bias, VECTORS: scorer.item_factors, "ridge": scorer.ridge}
    return ScorePart("ratings", numbers, arrays)


def _interactions_and_ratings(scorer: InteractionsAndRatings) -> list[ScorePart]:
    numbers = {"weight": scorer.liking, "deviation": scorer._deviation, "link": "normal", "usual": "own"}
    stars = _ratings(scorer.stars, weight=0.0)
    values, slopes = chance_table()
    # Browsers know no normal distribution; the table makes theirs ours.
    table = ScorePart("liking", numbers, {"table": values, "slopes": slopes})
    return [*_interactions(scorer.choice), stars, table]


def _counted(scorer: RatingScorer) -> list[ScorePart]:
    """Return counts, stars and liking; a model without counts orders by stars alone."""
    if not scorer.popularity.size:
        return [_ratings(scorer, weight=1.0)]
    numbers = {
        "weight": scorer.liking,
        "deviation": scorer._deviation,
        "link": "logistic",
        "usual": "popular",
    }
    share = scorer.popularity / scorer.popularity.sum()
    design = np.column_stack([np.ones(scorer.item_bias.size), scorer.item_factors])
    # What everybody would give on average: a bias, and a product with a person's own vector.
    usual = np.append(share @ (scorer.mean + scorer.item_bias), share @ design)
    liking = ScorePart("liking", numbers, {"usual": usual})
    return [_bias(np.log(scorer.popularity)), _ratings(scorer, weight=0.0), liking]


def _newcomers(scorer: LocalScorer) -> list[ScorePart]:
    """Return what people use who took no part in the collection: theirs is the scorer of a device."""
    return _counted(scorer.device)


def _confidence(scorer: ImplicitFactorScorer) -> list[ScorePart]:
    vectors = scorer.item_factors.astype(np.float64)
    numbers = {"alpha": scorer.alpha, "regularization": scorer.regularization}
    return [ScorePart("confidence", numbers, {VECTORS: vectors, "gram": vectors.T @ vectors})]


def _item_weights(scorer: ItemWeightsScorer) -> list[ScorePart]:
    rows, columns = np.nonzero(scorer.weights)
    lengths = np.zeros(scorer.base.size, dtype=np.int64)
    lengths[scorer.items] = np.count_nonzero(scorer.weights, axis=1)
    # Rows of the matrix stand in the order of `items`, those of a part in the order of the catalog.
    order = np.argsort(scorer.items[rows], kind="stable")
    arrays = {
        "starts": np.append(0, np.cumsum(lengths)).astype(np.uint32),
        "columns": scorer.items[columns[order]].astype(np.uint32),
        "values": scorer.weights[rows[order], columns[order]],
    }
    numbers = {"fading": scorer.fading, "evenly": 0.0, "weight": 1.0}
    return [_bias(scorer.base), ScorePart("item-item", numbers, arrays)]


def _neighbors(scorer: NeighborScorer) -> list[ScorePart]:
    """Return the table by the history's item: an item's row says whose neighbor it is."""
    table = scorer._table().T.tocsr()
    arrays = {
        "starts": table.indptr.astype(np.uint32),
        "columns": table.indices.astype(np.uint32),
        "values": table.data.astype(np.float32),
    }
    return [ScorePart("item-item", {**EVENLY, "weight": 1.0}, arrays)]


_MAKERS: Mapping[type[Scorer], Callable[[Any], list[ScorePart]]] = {
    PopularityScorer: _popularity,
    InteractionScorer: _interactions,
    InteractionsAndRatings: _interactions_and_ratings,
    RatingScorer: _counted,
    LocalScorer: _newcomers,
    ImplicitFactorScorer: _confidence,
    ItemWeightsScorer: _item_weights,
    NeighborScorer: _neighbors,
}


def shows_stars(model: FittedModel) -> bool:
    """Tell whether lists have expected stars beside their scores."""
    return isinstance(model.scorer, CountedRatings | InteractionsAndRatings)
