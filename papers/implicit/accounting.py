"""What the printed procedure costs a person: one solve, and all 2,000 of a party's queries."""

from __future__ import annotations

import math

import numpy as np
from scipy.sparse import csr_matrix

from .federation import LOCAL, ROUNDS
from .printed import Floats

_DELTA = 1e-5


def row_loss(clicks: csr_matrix, users: Floats, epsilon: float) -> Floats:
    """Return each person's loss in one solve of all items, were the user factors public.

    An item's noise has scale 2 max |p|_1 / epsilon and a person in it moves the linear term by 2 |p_u|_1;
    the items' noises are independent and the person is in all items they chose, so losses add up.
    """
    norms = np.abs(users).sum(axis=1)
    lost: Floats = epsilon * np.diff(clicks.indptr) * norms / norms.max()
    return lost


def composed(epsilon: float, n_items: int, rounds: int = ROUNDS, local: int = LOCAL) -> dict[str, float]:
    """Return the loss of a person's whole row over all queries of a party, as epsilons.

    Every query solves every item, each with a pure loss of epsilon: `pure` adds them up; `approximate` is the
    better of that and of adding up epsilon^2 / 2 of zero-concentrated privacy, at delta 1e-5.
    """
    queries = rounds * local * n_items
    rho = queries * epsilon**2 / 2
    approximate = rho + 2 * math.sqrt(rho * math.log(1 / _DELTA))
    return {"queries": queries, "pure": queries * epsilon, "approximate": min(queries * epsilon, approximate)}
