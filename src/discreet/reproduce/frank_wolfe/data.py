"""The poster's kinds of data, each cut to 80 ratings a person with 1 % held out.

The Netflix Prize data may not be passed on; whoever has a copy names it with `--data netflix=FOLDER`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np

from discreet.data.datasets.synthetic import rank_one
from discreet.data.interactions import Interactions
from discreet.data.reading.readers import read
from discreet.data.splits import Split, random_split
from discreet.reproduce import copies

PER_USER = 80
HELD_OUT = 0.01
TOP = 400


def at_hand(name: str, say: Callable[[str], None]) -> bool:
    """Tell whether a data set is on this machine, and say so if it is not."""
    found = copies.find(name) is not None
    if not found:
        say(f"{name} is not on this machine")
    return found


def movielens(seed: int) -> Split:
    """Return the 400 most rated films of ML-1M, or of a copy of ML-10M; both are public, as printed."""
    name = "ml-10m" if copies.copy_of("ml-10m") else "movielens-1m"
    return _split(_most_rated(copies.load(name)), seed)


def netflix(folder: Path, seed: int) -> Split:
    """Return the 400 most rated films of a copy of the Netflix Prize data (`combined_data_*.txt`)."""
    return _split(_most_rated(read(folder, layout="netflix", name="netflix")), seed)


def jester(seed: int) -> Split:
    """Return the first part of Jester, rescaled to 0..5."""
    data = copies.load("jester")
    facts = replace(data.facts, low=0.0, high=5.0, step=None)
    return _split(data.with_values(np.clip((data.values + 10) / 4, 0, 5), facts), seed)


def synthetic(n_users: int, seed: int) -> Split:
    """Return the rank-one matrix of products of uniform numbers."""
    return random_split(rank_one(n_users=n_users, seed=seed).data, HELD_OUT, seed)


def _most_rated(data: Interactions) -> Interactions:
    counts = np.bincount(data.items, minlength=data.n_items)
    return data.select_items(np.sort(np.argsort(-counts, kind="stable")[:TOP]))


def _split(data: Interactions, seed: int) -> Split:
    return random_split(data.bounded(PER_USER), HELD_OUT, seed)
