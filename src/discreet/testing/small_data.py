"""Make small data that every model can learn from in a moment, and rows that test the ends of a statistic."""

from __future__ import annotations

import dataclasses
import math
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

import discreet
from discreet.core import Floats, PrivacyRandom, Rows
from discreet.data import Interactions, PublicFacts, Vocabulary
from discreet.models import Estimator, FittedModel
from discreet.privacy.mechanisms.additive import FixedPoint


def toy_interactions(
    n_users: int = 150, n_items: int = 40, per_user: int = 12, seed: int = 0, *, name: str = "toy"
) -> Interactions:
    """Return ratings of two groups of users with opposite preferences for two groups of items."""
    rng = np.random.default_rng(seed)
    rows = np.repeat(np.arange(n_users), per_user)
    items = np.concatenate([rng.choice(n_items, per_user, replace=False) for _ in range(n_users)])
    preference = np.where(rows % 2 == items % 2, 1.2, -1.2)
    values = np.clip(np.round(3 + preference + 0.8 * rng.standard_normal(rows.size)), 1, 5)
    ids = np.array([f"item {index:02d}" for index in range(n_items)])
    return Interactions.from_arrays(
        rows,
        ids[items],
        values,
        facts=PublicFacts(n_items=n_items, low=1, high=5, step=1, n_users=128),
        name=name,
    )


@cache
def toy_data(feedback: str) -> Interactions:
    """Return the toy's ratings; as implicit feedback they are all 1."""
    explicit = toy_interactions(seed=1)
    if feedback != "implicit":
        return explicit
    facts = dataclasses.replace(explicit.facts, low=1.0, high=1.0, step=None)
    return explicit.with_values(np.ones_like(explicit.values), facts=facts)


@cache
def timed_data() -> Interactions:
    """Return the toy's ratings with times; no two ratings of a user have the same time."""
    data = toy_interactions(seed=1)
    return dataclasses.replace(data, times=np.random.default_rng(5).permutation(data.n_ratings) + 964_982_703)


def never_private(kind: type[Estimator]) -> bool:
    """Return whether an estimator has no private version: its default is then epsilon=inf."""
    fields = {field.name: field.default for field in dataclasses.fields(kind)}  # type: ignore[arg-type]
    return fields["epsilon"] == math.inf


@cache
def fitted_once(kind: type[Estimator]) -> FittedModel:
    """Return a model with little noise, fitted once. It has answered for all users."""
    data = timed_data()
    estimator = kind(epsilon=math.inf if never_private(kind) else 30.0)
    model = estimator.fit(data, random=PrivacyRandom.simulate(3))
    # A release of single cells contains only the requested cells.
    model.worth(data, np.arange(data.n_users))
    return model


def notes_folder() -> Path:
    """Return the folder of discreet's own `proofs`: in the installed package, or in the repository."""
    package = Path(discreet.__file__).parent
    return package if (package / "proofs").is_dir() else package.parents[1]


def people_of(rows: Rows, n_items: int) -> Interactions:
    """Return these rows as the ratings of numbered users, with any values."""
    return Interactions(
        indptr=rows.indptr,
        items=rows.columns,
        values=rows.values,
        users=Vocabulary.range(rows.n_rows),
        catalog=Vocabulary.range(n_items),
        facts=PublicFacts(n_items=n_items, low=-1.0, high=1.0),
    )


def observed(value: Any, release: str) -> Floats | npt.NDArray[Any]:
    """Return the input of a mechanism's method as floats. A symmetric matrix is returned whole."""
    if not isinstance(value, FixedPoint):
        return np.array(value)
    numbers = np.ldexp(value.counts.astype(np.float64), -value.bits)
    return numbers + np.triu(numbers, 1).T if release == "release_symmetric" else numbers
