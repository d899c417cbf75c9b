"""Measure what noise costs: accuracy by group of users and of items, with and without noise.

    python benchmarks/keep.py groups.py                 MovieLens 1M, epsilon 1 and 5, three runs
    python benchmarks/groups.py --data movielens-100k --epsilons 1 --repeat 1

The same as `discreet evaluate DATA --epsilon 1 --for lists --metric hr@10 --by activity`, and with `--by
popularity`, `--for ratings` and `--metric rmse`. Noise is simulated; delta is 1e-5.
"""

from __future__ import annotations

import argparse
from typing import Any

import harness

DELTA = 1e-5
# A purpose and its metric.
ASKED = {"lists": "hr@10", "ratings": "rmse"}
GROUPINGS = ("activity", "popularity")


def measured(data: Any, epsilon: float, repeat: int) -> list[dict[str, Any]]:
    """Return a row for each metric and group."""
    from discreet import UserFactorization
    from discreet.evaluation.protocol import evaluate

    rows = []
    for purpose, metric in ASKED.items():
        for by in GROUPINGS:
            estimator = UserFactorization(epsilon=epsilon, delta=DELTA, purpose=purpose)
            found = evaluate(estimator, data, metrics=metric, by=by, repeat=repeat)
            for name, group in found.groups.items():
                row = {"by": by, "group": name, "metric": metric, "rows": group.held_out}
                score, plain = group.metrics[metric], group.without_noise[metric]
                row |= {"mean": score.mean, "std": score.std, "without noise": plain.mean}
                rows.append(row | {"lost": group.lost(metric)})
    return rows


def show(result: dict[str, Any]) -> None:
    """Print a line for each row."""
    for epsilon, rows in result["epsilons"].items():
        for row in rows:
            scores = f"{row['mean']:.4f} of {row['without noise']:.4f}"
            print(f"{epsilon:>4} {row['metric']:6} {row['group']:22} {scores}  lost {row['lost'] or 0:.1%}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", default="movielens-1m")
    parser.add_argument("--epsilons", default="1,5")
    parser.add_argument("--repeat", type=int, default=3)
    options = harness.options(parser, toy={"epsilons": "5", "repeat": 1})
    data = harness.ratings(options.data, toy=options.toy)
    rows = {
        epsilon: measured(data, float(epsilon), options.repeat) for epsilon in options.epsilons.split(",")
    }
    result = {"data": options.data, "delta": DELTA, "repeat": options.repeat, "epsilons": rows}
    harness.tell(result, options.json, show)


if __name__ == "__main__":
    main()
