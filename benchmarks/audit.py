"""Compare our bounds with a public auditor on the same Laplace, Gaussian and randomized response.

The peer is `CanaryScoreAuditor` of jax-privacy 2.0 (its module needs numpy, scipy and dp-accounting only):
`pip install --no-deps jax-privacy`; where it is absent its columns are empty. Both see the same scores; each
chooses its own threshold on half of them. DP-Auditorium is not on the package index, so it could not be
compared. Run `python benchmarks/audit.py`.
"""

from __future__ import annotations

import importlib.util
import math
import sys
import time
from pathlib import Path

import harness
import numpy as np

from discreet.audit.canaries.one_run import one_run_epsilon, one_run_gaussian_epsilon
from discreet.audit.games.bounds import GuessCounts, refuted_epsilon, refuted_on_curve
from discreet.audit.games.scores import Cuts
from discreet.privacy.accounting.gaussian import gaussian_delta, gaussian_multiplier

EPSILON, DELTA, ERROR = 1.0, 1e-6, 0.01
SAMPLES = "2000,20000,100000"
COUNTS = (10_000, 2_000, 1_240)
TOY_COUNTS = (200, 50, 40)


def peer():
    """Return the peer's module, loaded by itself (its package would need jax), or None if it is not here."""
    found = importlib.util.find_spec("jax_privacy")
    if found is None or found.origin is None:
        return None
    place = Path(found.origin).with_name("auditing.py")
    spec = importlib.util.spec_from_file_location("jax_privacy_auditing", place)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def scores(kind, count, rng):
    """Return scores of games and which world it was."""
    truth = rng.random(count) < 0.5
    if kind == "laplace":
        return truth + rng.laplace(scale=1 / EPSILON, size=count), truth
    if kind == "gaussian":
        return truth + gaussian_multiplier(EPSILON, DELTA) * rng.standard_normal(count), truth
    kept = rng.random(count) < 1 / (1 + math.exp(-EPSILON))
    # A little noise breaks ties, as the peer wants thresholds between scores.
    return np.where(kept, truth, ~truth) + 1e-6 * rng.random(count), truth


def distance(kind, epsilon):
    """Return the total variation between the worlds under a promise of epsilon."""
    if epsilon <= 0:
        return 0.0
    if kind == "laplace":
        return 1 - math.exp(-epsilon / 2)
    if kind == "gaussian":
        return gaussian_delta(gaussian_multiplier(epsilon, DELTA), 0.0)
    return math.tanh(epsilon / 2)


def ours(kind, output, truth, delta):
    """Return our two bounds; half of the games teach the cuts, as the peer's split does."""
    half = truth.size // 2
    cuts = Cuts.learned(output[:half], truth[:half], delta, ERROR)
    tally: GuessCounts = cuts.tally(output[half:], truth[half:])
    free = refuted_epsilon(tally, delta, ERROR / 2)
    return free, refuted_on_curve(tally, lambda epsilon: distance(kind, epsilon), ERROR / 2)


def theirs(module, output, truth, delta):
    """Return the peer's bound from Clopper-Pearson intervals, the strategy it recommends; None without it."""
    if module is None:
        return None
    auditor = module.CanaryScoreAuditor(output[truth], output[~truth])
    strategy = module.Split(seed=0)
    return float(auditor.epsilon_clopper_pearson(ERROR, delta, threshold_strategy=strategy, one_sided=True))


def timed(function, *arguments):
    """Return the answer and how long it took."""
    start = time.perf_counter()
    answer = function(*arguments)
    return answer, time.perf_counter() - start


def measure(module, samples):
    """Return a row for each mechanism and number of games."""
    rows = []
    for kind in ("laplace", "gaussian", "response"):
        delta = DELTA if kind == "gaussian" else 0.0
        for count in samples:
            output, truth = scores(kind, count, np.random.default_rng(count))
            (free, curve), seconds = timed(ours, kind, output, truth, delta)
            bound, peer_seconds = timed(theirs, module, output, truth, delta)
            rows.append(
                {
                    "mechanism": kind,
                    "samples": count,
                    "ours": free,
                    "ours_curve": curve,
                    "seconds": seconds,
                    "peer": bound,
                    "peer_seconds": None if module is None else peer_seconds,
                    "ratio": free / bound if bound else None,
                }
            )
    return rows


def one_run(module, counts):
    """Return both one-run bounds of both auditors on the same counts."""
    return {
        "ours": one_run_epsilon(*counts, DELTA, ERROR),
        "peer": module and module._epsilon_one_run(0.0, *counts, ERROR, DELTA),
        "ours_curve": one_run_gaussian_epsilon(*counts, DELTA, ERROR),
        "peer_curve": module and module._epsilon_one_run_fdp(1e-3, *counts, ERROR, DELTA),
    }


def main():
    options = harness.options(
        __doc__,
        toy={"samples": "400"},
        samples=harness.option(default=SAMPLES, help="how many games, separated by commas"),
    )
    module = peer()
    answer = {
        "benchmark": "audit",
        "peer": "jax-privacy" if module else "absent: pip install --no-deps jax-privacy",
        "rows": measure(module, [int(count) for count in options.samples.split(",")]),
        "one_run": one_run(module, TOY_COUNTS if options.toy else COUNTS),
    }
    harness.tell(answer, options)


if __name__ == "__main__":
    main()
