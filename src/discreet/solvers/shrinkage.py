"""Shrink noisy averages toward what their fellows suggest, by as much as the known noise demands."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from discreet.arrays import Floats

_STEPS = 50
_SPREAD_AT_START = 0.1
_SMALLEST_SPREAD = 1e-4
_RIDGE = 1e-6
_VECTOR_STEPS = 30
_VECTOR_SPREAD_AT_START = 0.01
_SMALLEST_VECTOR_SPREAD = 1e-6
_COORDINATE_SPREAD_AT_START = 0.3


class Shrunken(NamedTuple):
    """Hold the posterior mean and variance of every effect, and which part of its spread is known by them."""

    mean: Floats
    variance: Floats
    known: Floats


def shrink(sums: Floats, counts: Floats, variance: Floats | float, features: Floats) -> Shrunken:
    """Estimate effects b from sums = counts * b + noise, with b spread normally around features @ theta.

    Theta and the spread are fitted by expectation-maximization in which every item counts by how much its
    sum tells (its signal's share of the variance): the plain likelihood would let a long tail of silent items
    decide how strongly the others vary.
    """
    variance = np.broadcast_to(np.asarray(variance, dtype=np.float64), sums.shape)
    theta: Floats = np.zeros(features.shape[1])
    spread = _SPREAD_AT_START
    for _ in range(_STEPS):
        posterior = _posterior(sums, counts, variance, features @ theta, spread)
        told = posterior.known
        weighted = features * told[:, None]
        normal = weighted.T @ features + _RIDGE * np.eye(features.shape[1])
        theta = np.linalg.solve(normal, weighted.T @ posterior.mean).astype(np.float64, copy=False)
        off = (posterior.mean - features @ theta) ** 2 + posterior.variance
        spread = max(float(told @ off) / max(float(told.sum()), _RIDGE), _SMALLEST_SPREAD)
    return _posterior(sums, counts, variance, features @ theta, spread)


def _posterior(sums: Floats, counts: Floats, variance: Floats, prior: Floats, spread: float) -> Shrunken:
    total = counts**2 * spread + variance
    return Shrunken(
        mean=prior + spread * counts * (sums - counts * prior) / total,
        variance=spread * variance / total,
        known=counts**2 * spread / total,
    )


def shrink_vectors(sums: Floats, counts: Floats, moment: Floats, variance: Floats, center: Floats) -> Floats:
    """Estimate vectors z from sums = counts * z @ moment + noise, with z spread around `center`.

    Each coordinate has a spread of its own, fitted as in `shrink`. The normal matrices of all items are
    diagonal in one basis, so a step costs items times the square of the vectors' length.
    """
    told = sums - counts[:, None] * (center @ moment)
    precision = counts**2 / variance
    right = (counts / variance)[:, None] * (told @ moment)
    spread = np.full(sums.shape[1], _VECTOR_SPREAD_AT_START)
    for _ in range(_VECTOR_STEPS):
        offset, left = _vector_posterior(precision, right, moment, spread)
        heard = 1 - left / spread
        seen = (heard * (offset**2 + left)).sum(axis=0) / np.maximum(heard.sum(axis=0), 1e-9)
        spread = np.maximum(seen, _SMALLEST_VECTOR_SPREAD)
    return center + _vector_posterior(precision, right, moment, spread)[0]


def _vector_posterior(
    precision: Floats, right: Floats, moment: Floats, spread: Floats
) -> tuple[Floats, Floats]:
    """Return the posterior offsets from the center and their variances, coordinate by coordinate."""
    root = np.sqrt(spread)
    values, basis = np.linalg.eigh(root[:, None] * (moment @ moment) * root)
    turned = root[:, None] * basis
    shrunk = 1 / (1 + precision[:, None] * np.maximum(values, 0.0))
    return ((right @ turned) * shrunk) @ turned.T, shrunk @ (turned**2).T


def shrink_coordinates(sums: Floats, counts: Floats, variance: Floats) -> Floats:
    """Estimate vectors z from sums = counts * z + noise, with each coordinate spread around 0 by its own."""
    precision = (counts**2 / variance)[:, None]
    told = sums / counts[:, None]
    spread = np.full(sums.shape[1], _COORDINATE_SPREAD_AT_START)
    for _ in range(_VECTOR_STEPS):
        heard = precision / (precision + 1 / spread)
        seen = (heard * ((heard * told) ** 2 + spread * (1 - heard))).sum(axis=0)
        spread = np.maximum(seen / np.maximum(heard.sum(axis=0), 1e-9), _SMALLEST_SPREAD)
    shrunk: Floats = precision / (precision + 1 / spread) * told
    return shrunk
