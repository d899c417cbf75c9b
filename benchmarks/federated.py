"""Measure what it costs that parties do not share data: ten parties against one model over all of it.

MovieLens 1M is split by people into parties. Every person gets the same promise in all runs: (epsilon, delta)
at their party, or at the one holder of all data. `own noise` needs no trust at all, `shared noise` needs a
coordinator and a keeper of masks who do not work together. The last run is between processes over sockets;
one party's process is killed after the first round. Score: HR@10 with 99 sampled items, leave-one-out.
`shared people` splits by items instead: four parties know the same people, alone and together.

    python benchmarks/federated.py --json
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import signal
import tempfile
import time
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table

from discreet.checks import DiscreetError
from discreet.data.datasets import catalog
from discreet.data.datasets.synthetic import popularity_skewed
from discreet.data.interactions import Interactions
from discreet.data.splits import Split, leave_one_out
from discreet.evaluation.scoring import measure
from discreet.federated.coordinator import Coordinator, Outcome
from discreet.federated.journal import Journal
from discreet.federated.keeper import Keeper
from discreet.federated.noise import OwnNoise, SharedNoise
from discreet.federated.party import Party
from discreet.federated.protocols.averaged_items import AveragedItems
from discreet.federated.protocols.averaged_users import AveragedUsers
from discreet.federated.protocols.summed import SummedStatistics
from discreet.federated.sockets import SocketLine, SocketTransport, serve, serve_party
from discreet.federated.transport import InProcess
from discreet.models.implicit_objective.estimator import ImplicitObjective
from discreet.privacy.ledger.book import Ledger
from discreet.randomness import PrivacyRandom

METRIC = "hr@10:99"
RUN = "benchmark"


def movies() -> Interactions:
    try:
        return catalog.load("movielens-1m")
    except DiscreetError:
        return popularity_skewed(n_users=6000, n_items=3000, mean_per_user=150)


def parts(train: Interactions, parties: int) -> dict[str, Interactions]:
    owner = np.arange(train.n_users) % parties
    return {f"party {k}": train.select_users(np.flatnonzero(owner == k)) for k in range(parties)}


def score(model, split: Split) -> float:
    return measure(model, split.train, split.test, METRIC)[METRIC]


def central(split: Split, epsilon: float, delta: float, seed: int) -> float:
    estimator = ImplicitObjective(epsilon=epsilon, delta=delta)
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
    )
    return score(coordinator.train(split.train.facts).model, split)


def party_process(name, data, protocol, address, keeper_address, seed, folder) -> None:
    keeper = None if keeper_address is None else SocketLine(keeper_address)
    party = Party(
        name,
        data,
        protocol,
        run=RUN,
        ledger=Ledger.open(folder / f"{name}.ledger"),
        state=folder / f"{name}.state",
        random=PrivacyRandom.simulate(seed).spawn(name),
        keeper=keeper,
    )
    serve_party(address, name, RUN, party.answer)


def keeper_process(roster, least, pipe, state) -> None:
    serve(Keeper(roster=roster, least=least, journal=Journal(state)), pipe.send)


def over_sockets(split: Split, protocol, parties: int, seed: int, *, kill: bool) -> dict[str, object]:
    """Run between real processes and kill one of them after the first round."""
    spawn = multiprocessing.get_context("spawn")
    own = parts(split.train, parties)
    processes: dict[str, multiprocessing.Process] = {}
    with tempfile.TemporaryDirectory() as place, SocketTransport(patience=1.0) as transport:
        folder, keeper_address = Path(place), None
        if protocol.noise.masked:
            here, there = spawn.Pipe()
            roster, least = list(own), protocol.noise.least_parties
            processes["keeper"] = spawn.Process(
                target=keeper_process, args=(roster, least, there, folder / "keeper.state"), daemon=True
            )
            processes["keeper"].start()
            keeper_address = here.recv()
        for name, data in own.items():
            arguments = (name, data, protocol, transport.address, keeper_address, seed, folder)
            processes[name] = spawn.Process(target=party_process, args=arguments, daemon=True)
            processes[name].start()
        absent = transport.wait_for(list(own), 300.0)
        victim = f"party {parties // 2}"

        def after(_: str, done: int, __: int) -> None:
            if kill and done == 1:
                os.kill(processes[victim].pid, signal.SIGKILL)

        coordinator = Coordinator(
            protocol,
            transport,
            parties=list(own),
            shared=split.train.catalog,
            run=RUN,
            seconds=120.0,
            state=folder / "coordinator.state",
            keeper=None if keeper_address is None else SocketLine(keeper_address),
        )
        start = time.perf_counter()
        outcome: Outcome = coordinator.train(split.train.facts, after)
        seconds = time.perf_counter() - start
        spent = [Ledger.open(folder / f"{name}.ledger").spent(split.train.name).epsilon for name in own]
        for process in processes.values():
            process.kill()
            process.join()
    return {
        "hr@10": score(outcome.model, split),
        "absent_at_the_start": len(absent),
        "heard": [len(entry.heard) for entry in outcome.rounds],
        "left_out": outcome.left_out,
        "seconds": seconds,
        "epsilon_spent_by_each": sorted(set(spent)),
    }


class Scores:
    """Predict from a table of scores, one row a person."""

    above = None

    def __init__(self, table) -> None:
        self.table = table

    def predict(self, histories, rows, items):
        """Return the scores of cells."""
        return self.table[rows, items]

    def scores(self, histories, rows):
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
    coordinator = Coordinator(protocol, transport, parties=list(own), shared=split.train.users, run=RUN)
    told = [entry.told for entry in coordinator.run_rounds()]
    profiles = protocol.profiles(told, split.train.n_users)
    table = members["party 0"].tune(profiles).scores(profiles)
    test = split.test.select_items(columns[0])
    return measure(Scores(table), own["party 0"], test, METRIC)[METRIC]


def measured(split: Split, epsilon: float, delta: float, parties: int, seeds: int) -> dict[str, object]:
    shared = SharedNoise(parties=parties, missing=max(1, parties // 5))
    protocols = {
        "own_noise": SummedStatistics(epsilon=epsilon, delta=delta, noise=OwnNoise()),
        "shared_noise": SummedStatistics(epsilon=epsilon, delta=delta, noise=shared),
        "averaged_items": AveragedItems(epsilon=epsilon, delta=delta),
    }
    runs = {"central": [central(split, epsilon, delta, seed) for seed in range(seeds)]}
    for name, protocol in protocols.items():
        runs[name] = [in_process(split, protocol, parties, seed) for seed in range(seeds)]
    reached = float(np.mean(runs["central"]))
    return {
        name: {
            "hr@10": float(np.mean(values)),
            "std": float(np.std(values)),
            "runs": values,
            "below_central": reached - float(np.mean(values)),
        }
        for name, values in runs.items()
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", action="store_true", help="print one JSON object and nothing else")
    parser.add_argument("--epsilons", default="2,5,10")
    parser.add_argument("--delta", type=float, default=1e-5)
    parser.add_argument("--parties", type=int, default=10)
    parser.add_argument("--seeds", type=int, default=3)
    arguments = parser.parse_args()
    if arguments.parties < 3:
        parser.error("--parties must be at least 3: one is killed, and two must be left.")
    data = movies()
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
    noise = SharedNoise(parties=arguments.parties, missing=max(1, arguments.parties // 5))
    protocol = SummedStatistics(epsilon=epsilons[-1], delta=arguments.delta, noise=noise)
    killed = over_sockets(split, protocol, arguments.parties, 0, kill=True)
    reached = result["epsilons"][f"{epsilons[-1]:g}"]["central"]["hr@10"]
    result["one_process_killed"] = {
        "epsilon": epsilons[-1],
        **killed,
        "below_central": reached - killed["hr@10"],
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
    if arguments.json:
        print(json.dumps(result))
    else:
        show(result)


def show(result) -> None:
    table = Table(title=f"{result['parties']} parties, {result['data']}, {result['metric']}")
    for column in ("epsilon", "run", "HR@10", "below central"):
        table.add_column(column, justify="left" if column == "run" else "right")
    for epsilon, runs in result["epsilons"].items():
        for name, numbers in runs.items():
            table.add_row(
                epsilon, name.replace("_", " "), f"{numbers['hr@10']:.3f}", f"{numbers['below_central']:+.3f}"
            )
    killed = result["one_process_killed"]
    table.add_row(
        f"{killed['epsilon']:g}",
        "one process killed",
        f"{killed['hr@10']:.3f}",
        f"{killed['below_central']:+.3f}",
    )
    for epsilon, numbers in result["shared_people"].items():
        for name, value in numbers.items():
            table.add_row(epsilon, f"shared people, {name.replace('_', ' ')}", f"{value:.3f}", "")
    Console().print(table)


if __name__ == "__main__":
    main()
