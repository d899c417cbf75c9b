"""Measure what it costs that parties do not share data: ten parties against one model over all of it.

MovieLens 1M is split by people into parties. Every person gets the same promise in all runs: (epsilon, delta)
at their party, or at the one holder of all data. `own noise` needs no trust at all, `shared noise` needs a
coordinator and a keeper of masks who do not work together. Score: HR@10 with 99 sampled items, leave-one-out.
Between processes, over Flower: benchmarks/federated_flower.py.
`shared people` splits by items instead: four parties know the same people, alone and together.

    python benchmarks/federated.py --json
"""

from __future__ import annotations

import sys

import harness
import numpy as np

from discreet.core.randomness import PrivacyRandom
from discreet.data.interactions import Interactions
from discreet.data.splits import Split, leave_one_out
from discreet.evaluation.scoring import measure
from discreet.federated.coordinator import Coordinator
from discreet.federated.keeper import Keeper
from discreet.federated.noise import OwnNoise, SharedNoise
from discreet.federated.party import Party
from discreet.federated.protocols.averaged_items import AveragedItems
from discreet.federated.protocols.averaged_users import AveragedUsers
from discreet.federated.protocols.estimator_sums import protocol_for
from discreet.federated.protocols.summed import SummedStatistics
from discreet.federated.transport import InProcess
from discreet.models.user_factorization.estimator import UserFactorization
from discreet.papers.dpimf.implicit_objective import ImplicitObjective

METRIC = "hr@10:99"
RUN = "benchmark"


def parts(train: Interactions, parties: int) -> dict[str, Interactions]:
    owner = np.arange(train.n_users) % parties
    return {f"party {k}": train.select_users(np.flatnonzero(owner == k)) for k in range(parties)}


def score(model, split: Split) -> float:
    return measure(model, split.train, split.test, METRIC)[METRIC]


def central(split: Split, estimator, seed: int) -> float:
    return score(estimator.fit(split.train, random=PrivacyRandom.simulate(seed)), split)


def in_process(split: Split, protocol, parties: int, seed: int) -> float:
    own = parts(split.train, parties)
    keeper = Keeper(roster=list(own), least=protocol.noise.least_parties) if protocol.noise.masked else None
    noise = PrivacyRandom.simulate(seed)
    members = {
        name: Party(name, data, protocol, run=RUN, random=noise.spawn(name), keeper=keeper)
        for name, data in own.items()
    }
    coordinator = Coordinator(
        protocol,
        InProcess({name: member.answer for name, member in members.items()}),
        parties=list(own),
        shared=split.train.catalog,
        run=RUN,
        keeper=keeper,
        simulated=True,
    )
    return score(coordinator.train(split.train.facts).model, split)


class Scores:
    """Predict from a table of scores, one row a person."""

    above = None

    def __init__(self, table) -> None:
        self.table = table

    def predict(self, histories, rows, items):
        """Return the scores of cells."""
        return self.table[rows, items]

    def worth(self, histories, rows):
        """Return whole rows."""
        return self.table[rows].astype(np.float32)


def shared_people(split: Split, epsilon: float, delta: float, parties: int, seed: int) -> float:
    """Split by items instead; return the first party's HR@10 on its own items, with `parties` taking part."""
    holders = 4
    columns = [np.arange(k, split.train.n_items, holders) for k in range(holders)]
    own = {f"party {k}": split.train.select_items(columns[k]) for k in range(parties)}
    protocol = AveragedUsers(epsilon=epsilon, delta=delta, rounds=3 if np.isinf(epsilon) else 1, factors=8)
    noise = PrivacyRandom.simulate(seed)
    members = {
        name: Party(name, data, protocol, run=RUN, random=noise.spawn(name)) for name, data in own.items()
    }
    transport = InProcess({name: member.answer for name, member in members.items()})
    coordinator = Coordinator(
        protocol, transport, parties=list(own), shared=split.train.users, run=RUN, simulated=True
    )
    results = [entry.result for entry in coordinator.run_rounds()]
    profiles = protocol.profiles(results, split.train.n_users)
    table = members["party 0"].tune(profiles).scores(profiles)
    test = split.test.select_items(columns[0])
    return measure(Scores(table), own["party 0"], test, METRIC)[METRIC]


def measured(split: Split, epsilon: float, delta: float, parties: int, seeds: int) -> dict[str, object]:
    shared = SharedNoise(parties=parties, missing=max(1, parties // 5))
    facts, budget = split.train.facts, {"epsilon": epsilon, "delta": delta}
    models = {
        "implicit-objective": ImplicitObjective(**budget),
        "user-factorization": UserFactorization(**budget, feedback="implicit"),
    }
    protocols = {
        "implicit-objective": {
            "shared_noise": protocol_for(models["implicit-objective"], facts, shared),
            "own_noise": SummedStatistics(**budget, noise=OwnNoise()),
            "averaged_items": AveragedItems(**budget),
        },
        "user-factorization": {"shared_noise": protocol_for(models["user-factorization"], facts, shared)},
    }
    return {
        model: compared(
            [central(split, estimator, seed) for seed in range(seeds)],
            {
                name: [in_process(split, protocol, parties, seed) for seed in range(seeds)]
                for name, protocol in protocols[model].items()
            },
        )
        for model, estimator in models.items()
    }


def compared(alone: list[float], runs: dict[str, list[float]]) -> dict[str, object]:
    reached = float(np.mean(alone))
    return {
        name: {
            "hr@10": float(np.mean(values)),
            "std": float(np.std(values)),
            "runs": values,
            "below_central": reached - float(np.mean(values)),
        }
        for name, values in {"central": alone, **runs}.items()
    }


def main() -> None:
    arguments = harness.options(
        __doc__,
        toy={"epsilons": "5", "parties": 4, "seeds": 1},
        epsilons="2,5,10",
        delta=1e-5,
        parties=10,
        seeds=3,
    )
    if arguments.parties < 3:
        sys.exit("--parties must be at least 3: one may be missing, and two must be left.")
    data = harness.ratings("movielens-1m", toy=arguments.toy)
    split = leave_one_out(data)
    epsilons = [float(text) for text in arguments.epsilons.split(",")]
    result: dict[str, object] = {
        "data": data.name,
        "metric": METRIC,
        "parties": arguments.parties,
        "delta": arguments.delta,
        "epsilons": {
            f"{epsilon:g}": measured(split, epsilon, arguments.delta, arguments.parties, arguments.seeds)
            for epsilon in epsilons
        },
    }
    result["shared_people"] = {
        f"{epsilon:g}": {
            taking_part: float(
                np.mean(
                    [shared_people(split, epsilon, arguments.delta, count, s) for s in range(arguments.seeds)]
                )
            )
            for taking_part, count in (("four_parties", 4), ("one_party", 1))
        }
        for epsilon in (epsilons[-1], float("inf"))
    }
    harness.tell(result, arguments)


if __name__ == "__main__":
    main()
