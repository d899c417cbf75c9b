"""Simulate a whole federation in one process: to try settings, and to measure what parties gain together."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, final

import numpy as np

from discreet.core import PrivacyRandom, Progress, silent
from discreet.data import Interactions, Split, SplitPlan, Vocabulary, parse_split
from discreet.evaluation.metrics import parse_metrics
from discreet.evaluation.results import Score
from discreet.evaluation.scoring import (
    baselines,
    check_split,
    measure,
    refuse_meaningless,
    usual_metrics,
    usual_split,
)
from discreet.federated.coordinator import Coordinator, RunOutcome
from discreet.federated.errors import NothingAlone
from discreet.federated.keeper import Keeper
from discreet.federated.noise import SharedNoise
from discreet.federated.party import Party
from discreet.federated.protocols.choosing import Way, simulated_protocol
from discreet.federated.protocols.printed_dpimf import PrintedUsers
from discreet.federated.protocols.protocol import Protocol
from discreet.federated.transport import InProcess
from discreet.models import Estimator, FittedModel
from discreet.papers.dpimf.estimators import profiles_scorer
from discreet.privacy import Ledger
from discreet.report import SCORES_NOT_COVERED

_RUN = "simulation"


def split_users(data: Interactions, parties: int) -> dict[str, Interactions]:
    """Assign users to parties in turn; return each party's data by its name."""
    owner = np.arange(data.n_users) % parties
    return {f"party-{k + 1}": data.select_users(np.flatnonzero(owner == k)) for k in range(parties)}


def split_items(data: Interactions, parties: int) -> dict[str, Interactions]:
    """Assign items to parties in turn; return each party's data, over all users, by its name."""
    places = np.arange(data.n_items)
    return {f"party-{k + 1}": data.select_items(places[k::parties]) for k in range(parties)}


def simulate_parties(
    protocol: Protocol,
    data: Interactions,
    parties: int,
    *,
    random: PrivacyRandom | None = None,
    progress: Progress = silent,
) -> RunOutcome:
    """Assign users to parties and run all rounds; every party spends from its own ledger."""
    coordinator = _coordinator(protocol, split_users(data, parties), data.catalog, random)
    return coordinator.train(data.facts, progress)


def simulate(
    protocol: Protocol, data: Interactions, parties: int, *, random: PrivacyRandom | None = None
) -> RunOutcome:
    """Run all rounds of a protocol, whether parties share items or users."""
    if isinstance(protocol, PrintedUsers):
        return simulate_shared_users(protocol, data, parties, random=random)
    return simulate_parties(protocol, data, parties, random=random)


def simulate_shared_users(
    protocol: PrintedUsers, data: Interactions, parties: int, *, random: PrivacyRandom | None = None
) -> RunOutcome:
    """Assign items to parties that share all users, run all rounds, and join the items of all parties.

    Outside a simulation each party keeps its items: no model has the items of all parties.
    """
    own = split_items(data, parties)
    rounds = _coordinator(protocol, own, data.users, random).run_rounds()
    users = protocol.profiles([entry.result for entry in rounds], data.n_users)
    items = np.zeros((data.n_items, protocol.estimator.factors))
    for part in own.values():
        items[data.catalog.index_of(part.catalog.series)] = protocol.tuned(part, users)
    promise = protocol.promise(data.facts)
    model = FittedModel(
        guarantee=promise.as_simulated() if any(entry.simulated for entry in rounds) else promise,
        facts=data.facts,
        catalog=data.catalog,
        name=f"federated-{protocol.name}",
        parameters={"settings": protocol.settings(), "parties": parties},
        scorer=profiles_scorer(
            protocol.estimator,
            profiles=items,
            items=items,
            users=Vocabulary.of(data.users.series),
            user_factors=users,
        ),
    )
    return RunOutcome(model=model, rounds=rounds)


def _coordinator(
    protocol: Protocol, own: Mapping[str, Interactions], shared: Vocabulary, random: PrivacyRandom | None
) -> Coordinator:
    """Return the coordinator of parties in this process."""
    noise = random or PrivacyRandom.from_os()
    masked = protocol.noise.masked
    keeper = Keeper(roster=list(own), least=protocol.noise.least_parties) if masked else None
    members = {
        name: Party(
            name,
            # One owner read all of it, and the coordinator states how.
            people.with_facts(replace(people.facts, from_file=(), layout="", reading=(), rows="")),
            protocol,
            run=_RUN,
            ledger=Ledger.in_memory(),
            random=noise.spawn(name) if noise.simulated else noise,
            keeper=keeper,
        )
        for name, people in own.items()
    }
    return Coordinator(
        protocol,
        InProcess({name: member.answer for name, member in members.items()}),
        parties=list(own),
        shared=shared,
        run=_RUN,
        keeper=keeper,
        simulated=noise.simulated,
    )


# JSON of 0.1 and 0.2 has these keys.
OLD_POOLED = "one holder of all data"
TOGETHER, POOLED, ALONE = "all parties together", OLD_POOLED, "each party alone (mean)"


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class PartyScores:
    """The scores of each way to learn, by its name; those of `simple` baselines have no noise."""

    ways: dict[str, dict[str, Score]]
    simple: dict[str, dict[str, Score]]

    def to_json(self) -> dict[str, Any]:
        """Return a JSON object."""
        scores = {
            kind: {
                name: {metric: score.to_json() for metric, score in found.items()}
                for name, found in some.items()
            }
            for kind, some in (("ways", self.ways), ("simple", self.simple))
        }
        return {**scores, "note": SCORES_NOT_COVERED}


def compare_parties(
    estimator: Estimator,
    data: Interactions,
    noise: SharedNoise,
    *,
    way: Way = "sums",
    split: str | SplitPlan | None = None,
    metrics: str | Iterable[str] | None = None,
    repeat: int = 1,
    seed: int = 0,
    progress: Progress = silent,
) -> PartyScores:
    """Hide a part of all parties' data, and score a federation, one data owner, and parties alone.

    Every way has the estimator's epsilon and delta. Noise is simulated and nothing is released, so scores are
    for the data owner alone. A party that fits alone is scored on its own users.

    Example:
        >>> from discreet.data.datasets.synthetic import popularity_skewed
        >>> from discreet.models.popularity import Popularity
        >>> data = popularity_skewed(n_users=300, n_items=60, mean_per_user=15)
        >>> found = compare_parties(Popularity(epsilon=4.0), data, SharedNoise(parties=3, missing=1))
        >>> TOGETHER in found.ways, len(found.ways)
        (True, 3)
    """
    chosen = parse_metrics(usual_metrics([estimator]) if metrics is None else metrics)
    refuse_meaningless(estimator, chosen)
    split = usual_split(chosen, data) if split is None else split
    plan = parse_split(split) if isinstance(split, str) else split
    score = partial(measure, metrics=chosen, seed=seed)
    source = PrivacyRandom.simulate(seed)
    runs: list[dict[str, dict[str, float]]] = []
    simple: list[dict[str, dict[str, float]]] = []
    for number in range(repeat):
        for parts in plan.splits(data, seed + number):
            train, test = parts.train, parts.test
            check_split(train, test)
            random = source.spawn(f"run {len(runs)}")
            protocol = simulated_protocol(estimator, train.facts, noise, way)
            together = simulate(protocol, train, noise.parties, random=random.spawn(TOGETHER)).model
            pooled = estimator.fit(train, random=random.spawn(POOLED))
            found = {TOGETHER: score(together, train, test), POOLED: score(pooled, train, test)}
            found[ALONE] = _alone(estimator, parts, noise.parties, score, random, progress)
            runs.append(found)
            simple.append(baselines(train, test, chosen, above=None, seed=seed, run=len(runs)))
    return PartyScores(ways=_gathered(runs), simple=_gathered(simple))


def _gathered(runs: list[dict[str, dict[str, float]]]) -> dict[str, dict[str, Score]]:
    return {name: Score.gather(run[name] for run in runs) for name in runs[0]}


def _alone(
    estimator: Estimator,
    parts: Split,
    parties: int,
    score: Callable[[FittedModel, Interactions, Interactions], dict[str, float]],
    random: PrivacyRandom,
    progress: Progress,
) -> dict[str, float]:
    """Return the mean scores of parties that each fit a model to their own users."""
    weights: list[int] = []
    scores: list[dict[str, float]] = []
    held_out = split_users(parts.test, parties)
    for place, (name, own) in enumerate(split_users(parts.train, parties).items()):
        progress("parties alone", place, parties)
        asked = int(np.count_nonzero(np.diff(held_out[name].indptr)))
        if asked and own.n_ratings:
            weights.append(asked)
            scores.append(score(estimator.fit(own, random=random.spawn(name)), own, held_out[name]))
    if not scores:
        raise NothingAlone
    return {
        metric: float(np.average([one[metric] for one in scores], weights=weights)) for metric in scores[0]
    }
