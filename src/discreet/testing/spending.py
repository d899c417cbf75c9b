"""Values of settings to try, and the law that every estimator spends exactly what its guarantee states."""

from __future__ import annotations

import dataclasses
import math
import pickle
import tempfile
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple, final

import numpy as np

from discreet.core.checks import ParameterError
from discreet.core.progress import silent
from discreet.core.randomness import PrivacyRandom
from discreet.data.interactions import Interactions
from discreet.federated.noise import SharedNoise
from discreet.federated.protocols.estimator_sums import protocol_for
from discreet.federated.protocols.protocol import StepResult
from discreet.models.biases import Biases
from discreet.models.estimator import Estimator
from discreet.privacy.accounting.gaussian import compose_gaussians, gaussian_epsilon
from discreet.privacy.guarantee import Guarantee
from discreet.privacy.release_log import ReleaseEntry
from discreet.privacy.session import Session
from discreet.sources.cluster import ClusterSource
from discreet.sources.sharding import make_shards
from discreet.sources.shards import ShardFolder, open_shards
from discreet.statistics.data_source import DataSource
from discreet.testing.small_data import timed_data

#: Settings to try, each as what is passed; a function makes what a fit needs on disk.
Cases = Sequence[Mapping[str, Any] | Callable[[], Mapping[str, Any]]]

# Rounding of epsilon when two accountants compute it.
_CLOSE = 1e-6


@cache
def _earlier_release() -> str:
    """Return the file of an earlier release, to start from."""
    folder = Path(tempfile.mkdtemp(prefix="discreet-prior-"))
    Biases(epsilon=1.0).fit(timed_data(), random=PrivacyRandom.simulate(1)).save(folder / "earlier.discreet")
    return str(folder / "earlier.discreet")


def _features() -> Mapping[str, Any]:
    """Return a table of words that two halves of the catalog share."""
    import polars as pl

    ids = timed_data().catalog.ids.tolist()
    words = [
        f"{'east' if place % 2 else 'west'} {'old' if place % 3 else 'new'}" for place in range(len(ids))
    ]
    return {"item_features": pl.DataFrame({"item": ids, "words": words})}


#: What to try for each setting, by its name. A setting that is not here fails the suite until it is declared.
SETTINGS: Mapping[str, Cases] = {
    "feedback": [{"feedback": "implicit"}],
    "purpose": [{"purpose": "lists"}, {"purpose": "ratings"}],
    "item_features": [_features, lambda: {**_features(), "purpose": "lists"}],
    "prior": [lambda: {"prior": _earlier_release()}],
    "for_synthesis": [
        {"for_synthesis": True},
        {"for_synthesis": True, "purpose": "lists"},
        {"for_synthesis": True, "half_life": 7.0, "now": "2000-08-01"},
    ],
    "half_life": [{"half_life": 7.0}, {"half_life": 1e-3}, {"half_life": 7.0, "purpose": "lists"}],
    "now": [{"half_life": 7.0, "now": "2000-08-01"}],
    "rounds": [{"rounds": 1}, {"rounds": 3}],
    "solver": [
        {"solver": "oja"},
        {"solver": "covariance"},
        {"solver": "oja", "rounds": 2},
        {"solver": "weighted-pca"},
    ],
    "schedule": [{"schedule": "growing", "rounds": 3}],
    "steps": [{"steps": 3, "solver": "oja", "rounds": 2}],
    "row_bound": [{"row_bound": 2.0}],
    "radius": [{"radius": 5.0}],
    "biases": [{"biases": False}],
    "release": [{"release": "ahead"}, {"release": "ahead", "cells": 3}],
    "factors": [{"factors": 2}],
    "loss": [{"loss": name} for name in ("symmetric", "complementary", "strawman")],
    "alpha0": [{"alpha0": 0.5, "loss": "symmetric"}],
    "importance_sampling": [{"importance_sampling": True, "delta": 0.0}],
    "neighbors": [{"neighbors": 3}],
    "likeness": [{"likeness": "jaccard"}],
    "iterations": [{"iterations": 2}],
    "directions": [{"directions": 2}],
    "spread": [{"spread": 0.3}],
    "ratings_per_user": [{"ratings_per_user": 5}],
    "seed": [{"seed": 1}],
    "components": [{"components": 2}],
    "regularization": [{"regularization": 0.5}],
    "epochs": [{"epochs": 2}],
    "rate": [{"rate": 0.5}],
    "projected": [{"projected": 4}],
    "most_columns": [{"most_columns": 4}],
    "rho": [{"rho": 0.5}],
    "gamma": [{"gamma": 0.5}],
    "intrinsic": [{"intrinsic": 1.0}],
    "link": [{"link": "probit"}],
    "scale": [{"scale": 2.0}],
    "bound": [{"bound": 2.0}],
    "leveling": [{"leveling": 0.0}],
    "above": [{"above": 3.0}],
    "mean_share": [{"mean_share": 0.2}],
    "tolerance": [{"tolerance": 1e-2}],
    "clamp": [{"clamp": 0.25, "rounds": 2}],
    "step": [{"step": "barzilai-borwein", "rounds": 3}],
    "flip_positive": [{"flip_positive": 0.3, "flip_negative": 0.3}],
    "flip_negative": [{"flip_positive": 0.4, "flip_negative": 0.3}],
    "answer_bound": [{"answer_bound": 0.5}],
    "cells": [{"cells": 3}],
}


@cache
def grouped_data() -> Interactions:
    """Return many users of four groups that prefer their own items, so that factors exceed the noise."""
    rng, users, per_user = np.random.default_rng(3), 2000, 12
    group = np.arange(users) % 4
    catalog = timed_data().catalog
    chances = np.where(np.arange(len(catalog)) % 4 == np.arange(4)[:, None], 9.0, 1.0)
    drawn = rng.random((users, len(catalog))) ** (1 / chances[group])
    items = np.argsort(-drawn, axis=1)[:, :per_user]
    values = np.clip(
        np.round(3 + np.where(items % 4 == group[:, None], 1.5, -1.5) + rng.normal(0, 0.7, items.shape)), 1, 5
    )
    return Interactions.from_arrays(
        np.repeat(np.arange(users), per_user),
        catalog.ids[items.ravel()],
        values.ravel(),
        rng.permutation(items.size) + 964_982_703,
        catalog=catalog,
        facts=timed_data().facts,
        name="groups",
    )


def undeclared(kind: type[Estimator], own: Mapping[str, Cases]) -> set[str]:
    """Return the settings of an estimator for which no values that it accepts are declared."""
    names = {field.name for field in dataclasses.fields(kind)}  # type: ignore[arg-type]
    return {name for name in names - {"epsilon", "delta"} if not _accepted(kind, own, name)}


def _accepted(kind: type[Estimator], own: Mapping[str, Cases], name: str) -> list[Mapping[str, Any]]:
    """Return the declared values of a setting that the estimator accepts.

    A name may have several meanings.
    """
    names = {field.name for field in dataclasses.fields(kind)}  # type: ignore[arg-type]
    given = [case() if callable(case) else case for case in own.get(name, SETTINGS.get(name, ()))]
    return [one for one in given if one.keys() <= names and _allows(kind, one)]


def cases(kind: type[Estimator], own: Mapping[str, Cases]) -> list[Estimator]:
    """Return the estimator with its defaults, and with every declared value of each of its settings."""
    names = [field.name for field in dataclasses.fields(kind)]  # type: ignore[arg-type]
    tried = [settings for name in names for settings in _accepted(kind, own, name)]
    # With little noise, a fit has other routes: more rounds, item vectors, factors.
    more = [kind(**{"epsilon": epsilon, **settings}) for settings in tried for epsilon in (1.0, 30.0)]
    return representatives(kind) + more


def representatives(kind: type[Estimator]) -> list[Estimator]:
    """Return the estimator with its defaults, with little noise, and with pure releases if it has them."""
    pure = [{"delta": 0.0}] if _allows(kind, {"delta": 0.0}) else []
    tried: list[Mapping[str, Any]] = [{}, {"epsilon": 30.0}, *pure]
    return [kind(**{"epsilon": 1.0, **settings}) for settings in tried]


def _allows(kind: type[Estimator], settings: Mapping[str, Any]) -> bool:
    try:
        kind(**{"epsilon": 1.0, **settings})
    except (ParameterError, TypeError):
        return False
    return True


def metered(estimator: Estimator, data: DataSource) -> tuple[Session, Guarantee]:
    """Return the session of a fit with real noise, after all that the model answers, and its guarantee."""
    source: Any = estimator.without_unread(data)
    promise = estimator.promise(source.facts)
    session = Session.open(source, promise, PrivacyRandom.from_os())
    scorer = estimator._trained(session, silent)
    if estimator.answers_in_process:
        # Entries are released on request. The budget of the fit covers this many.
        count = int(estimator.settings["cells"])
        scorer.predict(source, np.zeros(count, dtype=np.int64), np.arange(count))
    return session, promise


def recounted(log: Sequence[ReleaseEntry], delta: float) -> float:
    """Return the epsilon of all releases at this delta, from noise and bounds alone."""
    pure, multipliers = Fraction(0), []
    for one in log:
        if one.epsilon is not None:
            pure += one.epsilon
        elif one.mechanism == "laplace" and one.scale:
            pure += one.bound / one.scale
        elif one.mechanism == "gaussian" and one.scale:
            multipliers.append(float(one.scale / one.bound))
        else:
            return math.inf
    gaussian = gaussian_epsilon(compose_gaussians(multipliers), delta) if multipliers else 0.0
    return float(pure) + gaussian


def data_for(estimator: Estimator) -> Interactions:
    """Return data on which an estimator with little noise uses all its routes, in a moment."""
    return grouped_data() if estimator.rows_needed() is None else timed_data()


def sharded(data: Interactions, folder: Path, n_shards: int = 3) -> ShardFolder:
    """Return the same ratings as a folder of shards, made from a file in which users' rows are mixed."""
    import polars as pl

    order = np.random.default_rng(0).permutation(data.n_ratings)
    columns = {
        "user": data.users.ids[data.rows()[order]].tolist(),
        "item": data.catalog.ids[data.items[order]].tolist(),
        "rating": data.values[order],
    }
    times = {} if data.times is None else {"time": data.times[order]}
    pl.DataFrame({**columns, **times}).write_parquet(folder / "ratings.parquet")
    facts = data.facts
    make_shards(
        [folder / "ratings.parquet"],
        folder / "shards",
        n_shards=n_shards,
        catalog=data.catalog,
        low=facts.low,
        high=facts.high,
        step=facts.step,
        n_users=facts.n_users,
        max_per_user=facts.max_per_user,
    )
    return open_shards(folder / "shards")


@final
class InProcessCluster:
    """A client without a cluster: it runs each task at once, through bytes as a cluster would."""

    def submit(self, job: Callable[..., Any], *arguments: Any, pure: bool) -> Any:
        """Return a finished task. Arguments that are tasks are replaced by their results."""
        known = [_result(one) for one in arguments]
        return _Finished(pickle.loads(pickle.dumps(job(*pickle.loads(pickle.dumps(known))))))

    def ncores(self) -> dict[str, int]:
        """Return the threads of each worker."""
        return {"here": 1}

    def cancel(self, futures: Sequence[Any]) -> None:
        """Forget tasks, which have ended already."""


class _Finished(NamedTuple):
    value: Any

    def result(self, timeout: float | None = None) -> Any:
        return self.value


def _result(one: Any) -> Any:
    if isinstance(one, list):
        return [_result(part) for part in one]
    return one.value if isinstance(one, _Finished) else one


def sources(data: Interactions, folder: Path) -> dict[str, DataSource]:
    """Return the same ratings on shards, and on shards that a cluster sums over."""
    shards = sharded(data, folder)
    return {"shards": shards, "cluster": ClusterSource(shards=shards, client=InProcessCluster())}


def spends_exactly(estimator: Estimator, data: DataSource) -> str:
    """Return what is wrong with an estimator's spending on these data, or nothing."""
    session, promise = metered(estimator, data)
    if math.isinf(promise.epsilon):
        return ""
    session.check(promise)
    if session.unspent() > Fraction(1, 10**9):
        return f"{float(session.unspent()):.3g} of an account was never spent"
    return _compared(session.log, promise)


def runs_over_parties(estimator: Estimator) -> bool:
    """Return whether parties can train an estimator: it needs sums, Gaussian noise, and no facts of items."""
    about_items = any(estimator.settings.get(name) is not None for name in ("item_features", "prior"))
    return estimator.rows_needed() is None and estimator.delta > 0 and not about_items


def spends_exactly_at_a_party(estimator: Estimator, data: Interactions) -> str:
    """Return what is wrong with what a party spends if an estimator trains over parties, or nothing.

    The party has all of the data and adds a third of the noise. Its log states the noise that the fewest
    parties add together.
    """
    protocol = protocol_for(estimator, data.facts, SharedNoise(parties=3, missing=1))
    run, random = protocol.begin(data.n_items), PrivacyRandom.from_os()
    log: list[ReleaseEntry] = []
    try:
        while (question := run.question()) is not None:
            session = protocol.session(data, random, protocol.price(question))
            answer = protocol.answer(session, question)
            log += session.log
            sums = protocol.combine(answer.arrays, 1)
            run.answer(StepResult(kind=question.kind, arrays=sums, noise={}, parties=1))
        run.scorer()
    finally:
        run.close()
    return _compared(log, protocol.promise(data.facts))


def _compared(log: Sequence[ReleaseEntry], promise: Guarantee) -> str:
    found = recounted(log, promise.delta)
    if abs(found / promise.epsilon - 1) > _CLOSE:
        return f"the log costs epsilon={found:.9g}, but the guarantee states {promise.epsilon:.9g}"
    return ""
