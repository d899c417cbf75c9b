"""Models of every kind that a bundle can hold, fitted on the same small data with the same noise.

Tests judge how lists of rounded vectors differ, which depends on the draw.
"""

import dataclasses
import math

import numpy as np

import discreet
from discreet.export.bundle.parts import ScorePart, parts_of


def noise():
    return discreet.PrivacyRandom.simulate(1)


def stars(data):
    """Return a model of both interactions and ratings, with directions that data of this size do not show."""
    model = without_pairs(discreet.UserFactorization(epsilon=math.inf).fit(data))
    co_occurrences = np.random.default_rng(3).normal(size=(data.n_items, 5))
    # Whatever the fit found out about the order of these data, the latest interactions count most here.
    scorer = model.scorer.with_parts(co_occurrences=co_occurrences, choice_fading=1.3)
    return dataclasses.replace(model, scorer=scorer)


def without_pairs(model):
    """Return the model without weights between items, which devices and vector stores do not know."""
    return dataclasses.replace(model, scorer=model.scorer.with_parts(blend=0.0))


def interactions(data):
    model = discreet.UserFactorization(epsilon=math.inf, feedback="implicit").fit(data)
    return dataclasses.replace(model, scorer=stars(data).scorer.choice)


def unordered(data):
    """Return a model of interactions whose order does not inform."""
    model = interactions(data)
    return dataclasses.replace(model, scorer=dataclasses.replace(model.scorer, fading=0.0))


MODELS = {
    "interactions": interactions,
    "unordered": unordered,
    "private": lambda data: without_pairs(
        discreet.UserFactorization(epsilon=5.0, feedback="implicit").fit(data, random=noise())
    ),
    "stars": stars,
    "biases": lambda data: discreet.Biases(epsilon=5.0).fit(data, random=noise()),
    "popularity": lambda data: discreet.Popularity(epsilon=5.0).fit(data, random=noise()),
    "implicit-als": lambda data: discreet.ImplicitAls(factors=8, alpha=10.0, regularization=1.0).fit(data),
    "ease": lambda data: discreet.Ease(regularization=50.0).fit(data),
}


def next_items(model, paired=40, width=7):
    """Return the parts of a model and weights between some of its items, as a release of pairs has them."""
    rng = np.random.default_rng(8)
    items = rng.choice(len(model.catalog), paired, replace=False).astype(np.uint32)
    columns = np.concatenate([rng.choice(paired, width, replace=False) for _ in range(paired)])
    arrays = {
        "items": items,
        "starts": np.arange(0, paired * width + 1, width).astype(np.uint32),
        "columns": columns.astype(np.uint32),
        "values": rng.normal(size=paired * width).astype(np.float16),
    }
    return [*parts_of(model), ScorePart("next-items", {"blend": 0.4, "fading": 1.0, "evenly": 0.0}, arrays)]


def paired(model, width=7):
    """Return a model of interactions whose lists also follow weights between items, for scorers that can."""
    arrays = next_items(model, width=width)[-1].arrays
    size = arrays["items"].size
    scorer = model.scorer.with_parts(
        paired=arrays["items"].astype(np.int64),
        neighbors=arrays["columns"].reshape(size, width).astype(np.int32),
        neighbor_weights=arrays["values"].reshape(size, width),
        blend=0.4,
    )
    return dataclasses.replace(model, scorer=scorer)
