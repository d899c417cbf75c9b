"""Take a scorer apart into what a device adds up: popularity, embeddings, ratings, weights between items.

The score of an item is the sum of what all parts say of it. A part is a kind, a few numbers and arrays; the
programs that run on a device (`web/recommender.js`, `onnx_graph.py`) know these kinds and nothing of models.
All arrays are released already, so a bundle costs no budget. A scorer that isn't such a sum is rejected.

A bundle's file is "DSCB", its version and the length of a header as u32, four zero bytes, the header as JSON,
and arrays, little-endian, each at a multiple of eight bytes from the end of the header, which states where.
In `int8` an item's vector is a row of whole numbers times one number of its row and one of each column;
weights between items are whole numbers times one number of their row. In `float16` both are half precision.
In `float32` they are single precision and everything else is double, as `recommend` computes.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from discreet.core import Floats, Indices
from discreet.models import (
    HISTORIES,
    BundleTooLarge,
    FittedModel,
    ImplicitFactorScorer,
    InteractionsAndRatings,
    InteractionScorer,
    ItemWeightsScorer,
    LocalScorer,
    NeighborScorer,
    NextItems,
    NotOnDevice,
    PopularityScorer,
    RatingScorer,
    Scorer,
    SparseWeightsScorer,
    chance_table,
)

PRECISIONS = ("int8", "float16", "float32")
MAGIC, VERSION = b"DSCB", 1
#: The largest file that is written; the reader on the device rejects larger ones, too.
MOST_BYTES = 1 << 26
_HEAD = struct.Struct("<4sIII")
_ALIGNED = 8
_LEVELS = 127
_TINY, _HALF = 1e-30, float(np.finfo(np.float16).max)
_VALUES = "values"

Numbers = npt.NDArray[Any]


def encode(parts: Sequence[ScorePart], facts: Mapping[str, Any], precision: str) -> bytes:
    """Return the file of these parts; `facts` join its header."""
    blocks: list[bytes] = []
    listed = [
        {
            "kind": part.kind,
            **{name: _plain(value) for name, value in part.numbers.items()},
            "arrays": {name: _stored(part, name, precision, blocks) for name in part.arrays},
        }
        for part in parts
    ]
    header = json.dumps({**facts, "precision": precision, "parts": listed}, allow_nan=False).encode()
    header += b" " * (-len(header) % _ALIGNED)
    content = _HEAD.pack(MAGIC, VERSION, len(header), 0) + header + b"".join(blocks)
    if len(content) > MOST_BYTES:
        raise BundleTooLarge(what="The model", megabytes=len(content) / 1e6, most=MOST_BYTES / 1e6)
    return content


def decoded(part: ScorePart, precision: str) -> ScorePart:
    """Return a part with the numbers that a device reads from the file."""
    return part._replace(arrays={name: _as_read(part, name, precision) for name in part.arrays})


def int8_vectors(vectors: Floats) -> tuple[npt.NDArray[np.int8], Floats, Floats]:
    """Return whole numbers, a scale for each row and one for each column, whose products are the vectors.

    Columns are divided by the root of their spread first, so no column alone has each row's largest number.
    """
    columns = np.sqrt(np.maximum(vectors.std(axis=0), _TINY)).astype(np.float32).astype(np.float64)
    scaled = vectors / columns
    rows = np.abs(scaled).max(axis=1, initial=_TINY) / _LEVELS
    rows = np.maximum(rows, _TINY).astype(np.float32).astype(np.float64)
    whole = np.clip(np.rint(scaled / rows[:, None]), -_LEVELS, _LEVELS).astype(np.int8)
    return whole, rows, columns


def int8_weights(values: Floats, starts: Numbers) -> tuple[npt.NDArray[np.int8], Floats]:
    """Return the weights between items as whole numbers, and a scale for each item of a history."""
    lengths = lengths_of(starts)
    row = np.repeat(np.arange(lengths.size), lengths)
    largest = np.full(lengths.size, _TINY)
    np.maximum.at(largest, row, np.abs(values))
    scales = (largest / _LEVELS).astype(np.float32).astype(np.float64)
    scales = np.maximum(scales, _TINY)
    return np.clip(np.rint(values / scales[row]), -_LEVELS, _LEVELS).astype(np.int8), scales


def lengths_of(starts: Numbers) -> Indices:
    """Return how many entries each row has."""
    ends = starts.astype(np.int64)
    return ends[1:] - ends[:-1]


def _stored(part: ScorePart, name: str, precision: str, blocks: list[bytes]) -> dict[str, Any]:
    """Add an array to the blocks and return the header's entry for it."""
    array, kind = part.arrays[name], _kind(part, name, precision)
    entry: dict[str, Any] = {"shape": list(array.shape)}
    if array.dtype.kind == "u":
        # Fewer items need fewer bytes to be named.
        fits = array.max(initial=0) < 1 << 16 and name != "starts"
        kind, stored = ("uint16", array.astype("<u2")) if fits else ("uint32", array.astype("<u4"))
    elif kind == "int8" and name == VECTORS:
        stored, rows, columns = int8_vectors(array.astype(np.float64))
        entry |= {"rows": _add(rows.astype("<f4"), blocks), "columns": _add(columns.astype("<f4"), blocks)}
    elif kind == "int8":
        stored, rows = int8_weights(array.astype(np.float64), part.arrays["starts"])
        entry |= {"rows": _add(rows.astype("<f4"), blocks), "row_count": rows.size}
    else:
        stored = _floats(array, kind)
    return {**entry, "type": kind, "at": _add(stored, blocks)}


def _kind(part: ScorePart, name: str, precision: str) -> str:
    if name in (VECTORS, _VALUES):
        # What is half precision in the model loses nothing by it.
        return "float16" if precision != "int8" and part.arrays[name].dtype == np.float16 else precision
    return "float64" if precision == "float32" else "float32"


def _floats(array: Numbers, kind: str) -> Numbers:
    """Return numbers of a kind; a ridge that pins a bias may be larger than a short float represents."""
    most = {"float16": _HALF, "float32": float(np.finfo(np.float32).max)}.get(kind, np.inf)
    return np.clip(array.astype(np.float64), -most, most).astype(np.dtype(kind).newbyteorder("<"))


def _add(array: Numbers, blocks: list[bytes]) -> int:
    at = sum(len(block) for block in blocks)
    raw = array.tobytes()
    blocks.append(raw + b"\0" * (-len(raw) % _ALIGNED))
    return at


def _as_read(part: ScorePart, name: str, precision: str) -> Numbers:
    array, kind = part.arrays[name], _kind(part, name, precision)
    if array.dtype.kind == "u":
        return array
    if kind == "int8" and name == VECTORS:
        whole, rows, columns = int8_vectors(array.astype(np.float64))
        return whole * rows[:, None] * columns
    if kind == "int8":
        whole, rows = int8_weights(array.astype(np.float64), part.arrays["starts"])
        return whole * np.repeat(rows, lengths_of(part.arrays["starts"]))
    return _floats(array, kind).astype(np.float64)


def _plain(value: Any) -> Any:
    return value if isinstance(value, str) else float(value)


#: The kinds of parts, in words for readers of a bundle.
KINDS = {
    "popularity": "a number for each item, the same for all users",
    "embedding": "item vectors; a user's vector is their shrunk mean; known users pay an item's penalty",
    "confidence": "item factors; a user's factors solve a least-squares problem over all items",
    "ratings": "expected stars: item bias and factors; a user's factors solve a ridge problem",
    "liking": "the logarithm of the chance that the stars lie above the user's usual ones",
    "item-item": "weights from each item of the history to others, by how late it came",
    "next-items": "the same among some items; a share of the probability of these follows the weights",
}
# The array of each kind that may be quantized: one row an item. All others stay as they are.
VECTORS = "vectors"
# What a user may read about models that work.
_CAN = (
    "user-factorization, popularity, biases, covariance-svd, frank-wolfe, private-gradients, local-channel, "
    "local-mixture, local-nuclear, local-nuclear-plain, local-sgd, neighbours, implicit-als, ease, "
    "item-knn and markov-chain"
)
# A history's weights fall by rank from the latest item; these fall never.
EVENLY = {"fading": 0.0, "evenly": 0.0}


class ScorePart(NamedTuple):
    """One part: what kind it is, its numbers, and its arrays."""

    kind: str
    numbers: Mapping[str, Any]
    arrays: Mapping[str, npt.NDArray[Any]]


def parts_of(model: FittedModel) -> list[ScorePart]:
    """Return the parts whose sum orders the lists of a model.

    Raises:
        ParameterError: The model's lists aren't such a sum.
    """
    make, known = _MAKERS.get(type(model.scorer), (None, frozenset[str]()))
    # A scorer that has learned something new is rejected until it is known here: lists would not be its own.
    if make is None or not set(model.scorer.arrays()) <= known:
        raise NotOnDevice(model=model.name, possible=_CAN)
    return make(model.scorer)


def _popularity(scorer: PopularityScorer) -> list[ScorePart]:
    return [_bias(scorer.popularity)]


def _bias(numbers: Floats) -> ScorePart:
    return ScorePart("popularity", {}, {"bias": numbers})


def _interactions(scorer: InteractionScorer) -> list[ScorePart]:
    """Return the bias and the embedding, turned so that the problems of all users are diagonal."""
    _, spread, turn = scorer.eigenbasis()
    vectors, share = scorer.item_factors @ turn, scorer.popularity / scorer.popularity.sum()
    arrays = {VECTORS: vectors, "mean": share @ vectors, "spread": spread, "penalty": scorer.penalty()}
    numbers = {"ridge": scorer.ridge, "fading": scorer.fading, "evenly": scorer.evenly}
    following = _next_items(scorer.following)
    return [_bias(np.log(scorer.popularity)), ScorePart("embedding", numbers, arrays), *following]


def _next_items(pairs: NextItems) -> list[ScorePart]:
    """Return the weights between items that are not zero, row by row; none if they change no score."""
    if not pairs:
        return []
    kept = pairs.weights != 0
    arrays = {
        "items": pairs.items.astype(np.uint32),
        "starts": np.append(0, np.cumsum(np.count_nonzero(kept, axis=1))).astype(np.uint32),
        "columns": pairs.neighbors[kept].astype(np.uint32),
        "values": pairs.weights[kept],
    }
    return [ScorePart("next-items", {**EVENLY, "fading": pairs.fading, "blend": pairs.blend}, arrays)]


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
    # The average rating of all users: a bias, and a product with a user's own vector.
    usual = np.append(share @ (scorer.mean + scorer.item_bias), share @ design)
    liking = ScorePart("liking", numbers, {"usual": usual})
    return [_bias(np.log(scorer.popularity)), _ratings(scorer, weight=0.0), liking]


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
    starts, values = np.append(0, np.cumsum(lengths)), scorer.weights[rows[order], columns[order]]
    return [_bias(scorer.base), _item_item(starts, scorer.items[columns[order]], values, scorer.fading)]


def _item_item(starts: Numbers, columns: Numbers, values: Numbers, fading: float = 0.0) -> ScorePart:
    """Return weights between items, which may fade by how late an item of the history came."""
    arrays = {"starts": starts.astype(np.uint32), "columns": columns.astype(np.uint32), _VALUES: values}
    return ScorePart("item-item", {**EVENLY, "fading": fading, "weight": 1.0}, arrays)


def _sparse_weights(scorer: SparseWeightsScorer) -> list[ScorePart]:
    table = scorer.table()
    return [_bias(scorer.base), _item_item(table.indptr, table.indices, table.data, scorer.fading)]


def _neighbors(scorer: NeighborScorer) -> list[ScorePart]:
    """Return the table by the history's item: an item's row shows whose neighbor it is."""
    table = scorer._table().T.tocsr()
    return [_item_item(table.indptr, table.indices, table.data.astype(np.float32))]


# Lengths of histories order no list; only synthetic data need them.
_OF_INTERACTIONS = frozenset(
    {"popularity", "item_factors", "paired", "neighbors", "neighbor_weights", *HISTORIES}
)
_OF_RATINGS = frozenset({"item_bias", "item_factors", "ridge", "popularity"})
# How each scorer is taken apart, and the arrays of it that are looked at.
_MAKERS: Mapping[type[Scorer], tuple[Callable[[Any], list[ScorePart]], frozenset[str]]] = {
    PopularityScorer: (_popularity, frozenset({"popularity"})),
    InteractionScorer: (_interactions, _OF_INTERACTIONS),
    InteractionsAndRatings: (_interactions_and_ratings, _OF_INTERACTIONS | _OF_RATINGS | {"co_occurrences"}),
    RatingScorer: (_counted, _OF_RATINGS),
    # As a device scores for users who took no part in the collection.
    LocalScorer: (lambda scorer: _counted(scorer.device), _OF_RATINGS | {"people", "user_vectors"}),
    ImplicitFactorScorer: (_confidence, frozenset({"item_factors"})),
    ItemWeightsScorer: (_item_weights, frozenset({"items", "weights", "base"})),
    SparseWeightsScorer: (_sparse_weights, frozenset({"sources", "targets", "weights", "base"})),
    NeighborScorer: (_neighbors, frozenset({"neighbors", "neighbor_similarities"})),
}
