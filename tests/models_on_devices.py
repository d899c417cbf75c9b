"""Models of every kind that a bundle can hold, fitted on the same small data."""

import dataclasses
import math

import numpy as np

import discreet


def stars(data):
    """Return a model of both interactions and ratings, with directions that data of this size do not show."""
    model = discreet.UserFactorization(epsilon=math.inf).fit(data)
    crowds = np.random.default_rng(3).normal(size=(data.n_items, 5))
    return dataclasses.replace(model, scorer=dataclasses.replace(model.scorer, crowds=crowds))


def interactions(data):
    model = discreet.UserFactorization(epsilon=math.inf, feedback="implicit").fit(data)
    return dataclasses.replace(model, scorer=stars(data).scorer.choice)


MODELS = {
    "interactions": interactions,
    "private": lambda data: discreet.UserFactorization(epsilon=5.0, feedback="implicit").fit(data),
    "stars": stars,
    "biases": lambda data: discreet.Biases(epsilon=5.0).fit(data),
    "popularity": lambda data: discreet.Popularity(epsilon=5.0).fit(data),
    "implicit-als": lambda data: discreet.ImplicitAls(factors=8, alpha=10.0, regularization=1.0).fit(data),
    "ease": lambda data: discreet.Ease(regularization=50.0).fit(data),
}
