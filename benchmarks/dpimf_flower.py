"""Measure Algorithm 1 of DPIMF over real processes on Flower: HR and NDCG of each round, next to one owner.

Ten parties with SuperNodes, SuperLink and coordinator run as processes on this machine, with TLS and known
keys. They average items twice: with the printed noise (NOT PRIVATE: the printed epsilon guarantees nothing)
and with ours. Each round's average is scored on MovieLens 100K, leave one out, among 99 sampled items. The
central curves solve the same problems with all data in one place. `simulated` runs the same protocols in one
process. Needs Flower (`make flower`, or DISCREET_FLOWER); states so and ends where it is absent.

    python benchmarks/dpimf_flower.py --keep        # writes results/dpimf_flower.json and the figure
    python benchmarks/dpimf_flower.py --draw        # draws the figure from the kept numbers
"""

from __future__ import annotations

import argparse
import json
import math
import os
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import harness
import numpy as np
from federated_flower import MADE, found, run
from keep import how

import discreet
from discreet.core.checks import FileError
from discreet.core.randomness import PrivacyRandom
from discreet.data.splits import Split, leave_one_out
from discreet.evaluation.scoring import measure
from discreet.federated.coordinator import Coordinator
from discreet.federated.flower.processes import VARIABLE, Flower
from discreet.federated.identity.agreement import COORDINATOR, Agreement
from discreet.federated.noise import SharedNoise
from discreet.federated.protocols.choosing import Way, item_protocol
from discreet.federated.protocols.protocol import OwnNoiseProtocol
from discreet.federated.simulation import simulate_parties
from discreet.federated.transport import InProcess
from discreet.models.estimator import Estimator
from discreet.models.fitted import FittedModel
from discreet.models.popularity import Popularity
from discreet.papers.dpimf.estimators import Dpimf
from discreet.papers.dpimf.implicit_objective import ImplicitObjective

METRICS = ("hr@10:99", "ndcg@10:99")
KEPT = harness.HERE / "results" / "dpimf_flower.json"
FIGURE = harness.HERE.parent / "papers" / "dpimf" / "results" / "federated_rounds.svg"
PRINTED, OURS = "printed noise (NOT PRIVATE)", "ours, private"
# Simulated in one process as well, to show where the printed noise hides the items.
SMALL_EPSILON = 1.0


def estimators(epsilon: float, rounds: int) -> dict[str, tuple[Estimator, Way]]:
    """Return the two ways to average."""
    return {
        PRINTED: (Dpimf(epsilon=epsilon, rounds=rounds), "averages"),
        OURS: (ImplicitObjective(epsilon=epsilon, delta=1e-5, rounds=rounds, factors=8), "averages"),
    }


def scores(model: FittedModel, split: Split) -> list[float]:
    """Return HR and NDCG of a model whose catalog may have a different order."""
    order = split.train.catalog.index_of(model.catalog.ids)
    found = measure(model, split.train.select_items(order), split.test.select_items(order), METRICS, seed=0)
    return [found[name] for name in METRICS]


def by_round(model: FittedModel, protocol: OwnNoiseProtocol, results: list[Any], split: Split) -> list[Any]:
    """Return the scores after each round that gives a model; a round of votes gives none."""
    first = 2 if results[0].kind == "votes" else 1
    ends = range(first, len(results) + 1)
    n_items = len(model.catalog)
    return [scores(replace(model, scorer=protocol.scorer(results[:end], n_items)), split) for end in ends]


def over_flower(split: Split, estimator: Estimator, way: Way, parties: int) -> dict[str, Any]:
    """Return the scores of each round over real processes, and what the rounds cost."""
    names = [f"party-{number}" for number in range(parties)]
    settings = {name: value for name, value in estimator.settings.items() if value is not None}
    given: list[object] = ["--model", estimator.name, "--epsilon", settings.pop("epsilon")]
    given += ["--protocol", way]
    if "delta" in settings:
        given += ["--delta", settings.pop("delta")]
    for name in ("rounds", "factors"):
        given += ["--set", f"{name}={settings[name]}"]
    with tempfile.TemporaryDirectory(prefix="fed-") as place:
        folder = found(Path(place), split, names, *given)
        rounds, out = run(Path(place), folder, names)
        agreement = Agreement.read(folder / COORDINATOR)
        protocol = item_protocol(estimator, agreement.facts, agreement.noise, way)
        kept = Coordinator(
            protocol,
            InProcess({}),
            parties=names,
            shared=agreement.catalog,
            run=agreement.run,
            state=folder / COORDINATOR / "coordinator.state",
        ).rounds
        model = discreet.load(out)
        results = [entry.result for entry in kept]
        return {
            "scores": by_round(model, protocol, results, split),
            "answered": [len(entry.counted) for entry in kept],
            "seconds": [entry.get("seconds") for entry in rounds],
            "bytes": sum(entry["question_bytes"] + entry["answer_bytes"] for entry in rounds),
            "label": model.guarantee.short(),
        }


def simulated(split: Split, estimator: Estimator, way: Way, parties: int) -> list[Any]:
    """Return the scores of each round in one process, the mean of three seeds."""
    noise = SharedNoise(parties=parties, missing=max(1, parties // 5))
    protocol = item_protocol(estimator, split.train.facts, noise, way)
    runs = []
    for seed in range(3):
        outcome = simulate_parties(protocol, split.train, parties, random=PrivacyRandom.simulate(seed))
        results = [entry.result for entry in outcome.rounds]
        runs.append(by_round(outcome.model, protocol, results, split))
    return np.mean(runs, axis=0).tolist()


def summed(split: Split, epsilon: float, parties: int) -> list[float]:
    """Return the scores of sums over parties, our other protocol, in one process: the mean of three seeds."""
    estimator = ImplicitObjective(epsilon=epsilon, delta=1e-5)
    noise = SharedNoise(parties=parties, missing=max(1, parties // 5))
    protocol = item_protocol(estimator, split.train.facts, noise, "sums")
    runs = [
        scores(
            simulate_parties(protocol, split.train, parties, random=PrivacyRandom.simulate(seed)).model, split
        )
        for seed in range(3)
    ]
    return np.mean(runs, axis=0).tolist()


def central(split: Split, estimator: Estimator, rounds: int) -> list[Any]:
    """Return the scores of one data owner: after each alternation as printed, or of the one fit of ours."""
    random = PrivacyRandom.simulate(0)
    if isinstance(estimator, Dpimf):
        fits = [replace(estimator, epochs=epochs) for epochs in range(1, rounds + 1)]
        return [scores(fit.fit(split.train, random=random), split) for fit in fits]
    whole = replace(estimator, rounds=None, factors=None)  # type: ignore[type-var]
    return [scores(whole.fit(split.train, random=random), split)] * rounds


def measured(split: Split, arguments: argparse.Namespace) -> dict[str, Any]:
    """Return all curves; where Flower is absent, the sentence that states it."""
    if VARIABLE not in os.environ and MADE.exists():
        os.environ[VARIABLE] = str(MADE)
    try:
        Flower(harness.HERE)
    except FileError as error:
        return {"skipped": str(error)}
    curves: dict[str, Any] = {}
    for name, (estimator, way) in estimators(arguments.epsilon, arguments.rounds).items():
        small = replace(estimator, epsilon=SMALL_EPSILON)  # type: ignore[type-var]
        curves[name] = {
            "flower": over_flower(split, estimator, way, arguments.parties),
            "simulated": simulated(split, estimator, way, arguments.parties),
            "simulated, small epsilon": simulated(split, small, way, arguments.parties),
            "central": central(split, estimator, arguments.rounds),
        }
    popular = Popularity(epsilon=math.inf).fit(split.train)
    return {
        "data": split.train.name,
        "parties": arguments.parties,
        "epsilon": arguments.epsilon,
        "small_epsilon": SMALL_EPSILON,
        "metrics": list(METRICS),
        "curves": curves,
        "popularity": scores(popular, split),
        "summed": summed(split, arguments.epsilon, arguments.parties),
    }


def draw(result: dict[str, Any], path: Path) -> None:
    """Write HR and NDCG per round as one figure; legends are outside the axes."""
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    # Colors of Okabe and Ito, which color-blind readers can tell apart.
    colors = {PRINTED: "#D55E00", OURS: "#0072B2"}
    epsilon, small = result["epsilon"], result["small_epsilon"]
    styles = {
        "flower": ("o-", f"{result['parties']} parties on Flower, epsilon {epsilon:g}"),
        "simulated, small epsilon": ("s:", f"{result['parties']} parties simulated, epsilon {small:g}"),
        "central": ("--", f"one data owner, epsilon {epsilon:g}"),
    }
    figure, axes = plt.subplots(1, 2, figsize=(10, 4.2))
    for column, (axis, title) in enumerate(zip(axes, ("HR@10", "NDCG@10"), strict=True)):
        for name, curves in result["curves"].items():
            for kind, (style, text) in styles.items():
                found = curves[kind]["scores"] if kind == "flower" else curves[kind]
                values = [pair[column] for pair in found]
                label = f"{name}: {text}"
                axis.plot(range(1, len(values) + 1), values, style, color=colors[name], label=label)
        axis.axhline(result["popularity"][column], color="#999999", label="popularity, without noise")
        words = f"ours, private: sums over {result['parties']} parties simulated, epsilon {epsilon:g}"
        axis.axhline(result["summed"][column], color="#009E73", linestyle="-.", label=words)
        rounds = max(len(line.get_xdata()) for line in axis.lines)
        axis.set(xlabel="round", title=title, ylim=(0, None), xticks=range(1, rounds + 1))
    handles, labels = axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="lower center", ncol=2, fontsize=8, frameon=False)
    figure.suptitle(f"Algorithm 1 of DPIMF over parties, {result['data']}, 99 sampled items", fontsize=11)
    figure.tight_layout(rect=(0, 0.2, 1, 1))
    with mpl.rc_context({"svg.fonttype": "none", "svg.hashsalt": "discreet"}):
        figure.savefig(path, metadata={"Date": None})


def main() -> None:
    arguments = harness.options(
        __doc__,
        toy={"parties": 3, "rounds": 1},
        parties=10,
        rounds=5,
        epsilon=10.0,
        keep=harness.flag("write the numbers and the figure"),
        draw=harness.flag("draw the figure from the kept numbers"),
    )
    if arguments.draw:
        draw(json.loads(KEPT.read_text()), FIGURE)
        return
    split = leave_one_out(harness.ratings("movielens-100k", toy=arguments.toy))
    result = measured(split, arguments)
    if arguments.keep and not arguments.toy:
        kept = {**how("dpimf_flower.py", ["--keep"]), **result}
        KEPT.write_text(json.dumps(kept, indent=1) + "\n")
        draw(result, FIGURE)
    harness.tell(result, arguments)


if __name__ == "__main__":
    main()
