"""Time what `fit` checks of data before it learns, beside the fit itself, on 1 and 10 million ratings.

    python benchmarks/checks.py [--json] [--millions 1,10] [--runs 5]

Proofs need rows in order without repeats, items of the catalog and finite ratings; `fit` looks at all ratings
to see that. `ratio` is the median of the checks over the median of the fit that makes them, in seconds of all
threads, for the cheapest model (`popularity`), for `biases` and for the default model.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable

import harness

from discreet import Biases, Popularity, UserFactorization
from discreet.data.interactions import refuse_unsound
from discreet.testing.large_data import LargeShape, large

MODELS = {"popularity": Popularity, "biases": Biases, "user-factorization": UserFactorization}


def seconds(work: Callable[[], object]) -> float:
    """Return the seconds of all threads that some work takes."""
    start = time.process_time()
    work()
    return time.process_time() - start


def measured(millions: float, runs: int) -> dict[str, object]:
    ratings = round(millions * 1e6)
    data = large(LargeShape(n_users=max(ratings // 200, 1), n_items=17_770, n_ratings=ratings))
    checks, fits = [], {name: [] for name in MODELS}
    for _ in range(runs):
        checks.append(seconds(lambda: refuse_unsound(data)))
        for name, kind in MODELS.items():
            fits[name].append(seconds(lambda kind=kind: kind(epsilon=1.0, delta=1e-6).fit(data)))
    check = statistics.median(checks)
    medians = {name: statistics.median(times) for name, times in fits.items()}
    return {
        "ratings": data.n_ratings,
        "check_seconds": round(check, 4),
        "spread": [round(min(checks), 4), round(max(checks), 4)],
        "fit_seconds": {name: round(median, 3) for name, median in medians.items()},
        "ratio": {name: round(check / median, 4) for name, median in medians.items()},
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--millions", default="1,10")
    parser.add_argument("--runs", type=int, default=5)
    options = harness.options(parser, toy={"millions": "0.002", "runs": 1})
    if not options.toy:
        # The first fit of a process compiles loops, or loads them.
        measured(0.02, 1)
    sizes = [measured(float(millions), options.runs) for millions in options.millions.split(",")]
    harness.tell({"benchmark": "checks", "peer": "the fit itself", "sizes": sizes}, options.json, show)


def show(result: dict[str, object]) -> None:
    for one in result["sizes"]:
        print(f"{one['ratings']:,} ratings: {one['ratio']}")


if __name__ == "__main__":
    main()
