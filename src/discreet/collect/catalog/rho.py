"""Say how far reports lie from the true ratings: Theorem 3 of the paper, and what is to be expected."""

from __future__ import annotations

import math

import numpy as np

from discreet.checks import failure_probability, integer, non_negative, require
from discreet.collect.catalog.open_cells import OpenCells
from discreet.privacy.mechanisms.cells import CellMechanism, HiddenNumbers, HiddenStars


def rho_bound(
    mechanism: CellMechanism, *, people: int, items: int, rated: float, intrinsic: float, gamma: float
) -> float:
    """Return the rho that |P(Theta - Z)|_F exceeds with probability at most `gamma`.

    For stars the unit is one star (ratings are 1, ..., d), for numbers half the scale (ratings lie in
    [-1, 1]). `rated` is the number of rated cells, `intrinsic` the root mean square of Theta - X over them
    in the same unit. Proved again in proofs/local_nuclear.md.
    """
    cells = integer("people", people, least=1) * integer("items", items, least=1)
    non_negative("intrinsic", intrinsic)
    require(0 <= rated <= cells, "rated", rated, "must lie between 0 and people * items")
    require(failure_probability("gamma", gamma) > 0, "gamma", gamma, "must be greater than 0")
    base = intrinsic * math.sqrt(rated)
    if isinstance(mechanism, HiddenStars):
        levels = mechanism.levels
        odds = 2 * cells * levels / ((math.exp(mechanism.epsilon) + levels) * gamma)
        return base + 2 * (levels - 1) * math.sqrt(odds)
    if isinstance(mechanism, HiddenNumbers):
        epsilon = mechanism.epsilon
        invented = 2 * cells / ((math.exp(epsilon / 2) + 1) * gamma) * (1 + 8 / epsilon**2)
        return base + 4 / epsilon * math.sqrt(rated / gamma) + math.sqrt(invented)
    require(isinstance(mechanism, OpenCells), "mechanism", type(mechanism).__name__, "has no bound")
    return base


def rho_expected(
    mechanism: CellMechanism, *, people: int, items: int, rated: float, intrinsic: float
) -> float:
    """Return the root of the expected square of |P(Theta - Z)|_F, in the unit of `rho_bound`.

    Ratings are taken as evenly spread over the scale, and true ratings of empty cells as its middle.
    """
    unit = _unit(mechanism)
    channel = mechanism.channel()
    squares = (channel.outputs[None, :] - channel.inputs[:, None]) ** 2
    moved = float(np.mean(np.einsum("ij,ij->i", channel.transition, squares))) / unit**2
    invented = float(mechanism.pretended() @ (mechanism.outputs() - mechanism.middle) ** 2) / unit**2
    told = rated * mechanism.keep * (intrinsic**2 + moved)
    return math.sqrt(told + (people * items - rated) * mechanism.fake * invented)


def _unit(mechanism: CellMechanism) -> float:
    """Return one step of stars, or half the scale of numbers."""
    if isinstance(mechanism, HiddenNumbers):
        return (mechanism.high - mechanism.low) / 2
    outputs = mechanism.outputs()
    return float(outputs[1] - outputs[0])
