"""Turn errors by fold into the gaps that the claims name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from discreet.reproduce.mixture.methods import TUNED
from discreet.reproduce.mixture.sweep import FIGURE3_END, THINNED, Errors, Reached

PAPER, OURS, GRADIENTS = "weighted PCA rank 1", "local-mixture", "private-gradients"
RIVALS = (OURS, "local-sgd as described", TUNED, "debiased item mean")

Found = dict[str, Sequence[float]]


def compare(name: str, errors: Mapping[str, Errors]) -> Found:
    """Return the values of every claim about one data set, fold by fold."""
    own = errors[name]
    found: Found = {}
    for epsilon in own[OURS]:
        found |= _at(name, epsilon, own)
    if {"0.1", "3"} <= own[OURS].keys():
        found[f"falls-{name}"] = _difference(own[OURS]["0.1"], own[OURS]["3"])
    if name == THINNED and "jester" in errors:
        for epsilon in ("0.1", "1"):
            whole = errors["jester"]
            sparse, dense = (
                gaps(at[OURS][epsilon], at["local-sgd as described"][epsilon]) for at in (own, whole)
            )
            found[f"sparse-gains-{epsilon}"] = _difference(sparse, dense)
    return found


def _at(name: str, epsilon: str, own: Errors) -> Found:
    """Return the claims of one epsilon; methods that were not run at it make none."""
    at = Reached({method: of[epsilon] for method, of in own.items() if epsilon in of})
    key = f"{name}-{epsilon}"
    found: Found = {}
    if PAPER in at:
        found[f"figure3-{key}"] = gaps(at[PAPER], at[GRADIENTS])
        found[f"swap-{key}"] = _difference(at[OURS], at[PAPER])
        for rank in (2, 5):
            for kind, one in (("als", f"local-mixture rank {rank}"), ("pca", f"weighted PCA rank {rank}")):
                if one in at:
                    found[f"rank{rank}-{kind}-{key}"] = _difference(
                        at[one], at[OURS if kind == "als" else PAPER]
                    )
    if epsilon == f"{FIGURE3_END:g}":
        return found
    for variant in ("as described", "tuned"):
        label = variant.replace(" ", "-")
        if f"local-sgd {variant}" not in at:
            continue
        if PAPER in at:
            found[f"gap-{label}-{key}"] = gaps(at[PAPER], at[f"local-sgd {variant}"])
        found[f"gap-als-{label}-{key}"] = gaps(at[OURS], at[f"local-sgd {variant}"])
    if set(RIVALS) <= at.keys():
        # The rival that is best on average: the best on each fold would be ahead by luck.
        best = min(RIVALS, key=lambda rival: float(np.mean(at[rival])))
        found[f"channel-over-best-rival-{key}"] = gaps(at["local-channel"], at[best])
        found[f"channel-over-mixture-{key}"] = gaps(at["local-channel"], at[OURS])
    return found


def gaps(better: Sequence[float], worse: Sequence[float]) -> list[float]:
    """Return by how many percent each error of `better` lies below that of `worse` on the same fold."""
    return [100 * (1 - one / other) for one, other in zip(better, worse, strict=False)]


def _difference(left: Sequence[float], right: Sequence[float]) -> list[float]:
    return [one - other for one, other in zip(left, right, strict=False)]
