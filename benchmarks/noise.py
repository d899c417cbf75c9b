"""Measure exact noise against OpenDP's and numpy's, side by side in one run.

Whole-number noise of one scale is drawn by all three on one core; then float vectors go through the
complete mechanisms. Rates are draws per second of processor time, so that a busy machine changes little.
OpenDP is timed on fewer draws (the output says how many): its rate does not depend on their number.

    python benchmarks/noise.py --json
"""

from __future__ import annotations

import time
import tracemalloc
from collections.abc import Callable

import harness
import numpy as np
import opendp.prelude as dp

from discreet.core.randomness import PrivacyRandom
from discreet.privacy.mechanisms.additive import Gaussian, Laplace
from discreet.privacy.sampling.draws import (
    add_discrete_gaussian,
    add_discrete_laplace,
    discrete_gaussian,
    discrete_laplace,
)

SCALE = 1000.0
OPENDP_DRAWS = 20_000


def per_second(draw: Callable[[int], object], count: int, repeats: int) -> float:
    """Return draws a second in the best of some runs; the first, which may compile, does not count."""
    draw(100)
    best = float("inf")
    for _ in range(repeats):
        start = time.process_time()
        draw(count)
        best = min(best, time.process_time() - start)
    return count / best


def opendp_mechanism(kind: str, number: str, scale: float) -> Callable[[int], object]:
    atom = dp.atom_domain(T=number, nan=False) if number == "f64" else dp.atom_domain(T=number)
    metric, make = {
        "laplace": (dp.l1_distance, dp.m.make_laplace),
        "gaussian": (dp.l2_distance, dp.m.make_gaussian),
    }[kind]
    mechanism = make(dp.vector_domain(atom), metric(T=number), scale=scale)
    zero = 0.0 if number == "f64" else 0
    return lambda count: mechanism([zero] * count)


def side_by_side(ours, opendp, numpy, count: int, repeats: int) -> dict[str, float]:
    rates = (
        per_second(ours, count, repeats),
        per_second(opendp, min(OPENDP_DRAWS, count), 2),
        per_second(numpy, count, repeats),
    )
    return {
        "per_second": round(rates[0]),
        "opendp_per_second": round(rates[1]),
        "numpy_per_second": round(rates[2]),
        "ratio_opendp": round(rates[0] / rates[1], 1),
        "ratio_numpy": round(rates[0] / rates[2], 3),
    }


def peak_mb(add, count: int) -> float:
    """Return the memory taken beside the array itself while noise is added to it."""
    target = np.zeros(count, dtype=np.int64)
    tracemalloc.start()
    add(target, SCALE, PrivacyRandom.from_os())
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return round(peak / 1e6, 2)


def measure(count: int, repeats: int) -> dict[str, object]:
    dp.enable_features("contrib")
    source, numpy = PrivacyRandom.from_os(), np.random.default_rng()
    samplers = {"laplace": discrete_laplace, "gaussian": discrete_gaussian}
    releases = {
        "laplace": Laplace(scale=1.0, l1_sensitivity=1.0),
        "gaussian": Gaussian(sigma=1.0, l2_sensitivity=1.0),
    }
    opendp_draws = min(OPENDP_DRAWS, count)
    result: dict[str, object] = {"draws": count, "opendp_draws": opendp_draws, "scale": SCALE}
    for kind, sampler in samplers.items():
        reference = numpy.laplace if kind == "laplace" else numpy.normal
        draws = side_by_side(
            lambda n, draw=sampler: draw(SCALE, n, source),
            opendp_mechanism(kind, "i64", SCALE),
            lambda n, draw=reference: draw(0.0, SCALE, n),
            count,
            repeats,
        )
        release = side_by_side(
            lambda n, mechanism=releases[kind]: mechanism.release(np.zeros(n), source),
            opendp_mechanism(kind, "f64", 1.0),
            lambda n, draw=reference: np.zeros(n) + draw(0.0, 1.0, n),
            count,
            repeats,
        )
        result[kind] = {**draws, "float_vector": release}
    for kind, add in (("laplace", add_discrete_laplace), ("gaussian", add_discrete_gaussian)):
        result[f"peak_mb_{kind}"] = {str(n): peak_mb(add, n) for n in (count, 10 * count)}
    return result


def main() -> None:
    arguments = harness.options(__doc__, toy={"draws": 200, "repeats": 1}, draws=1_000_000, repeats=5)
    harness.tell(measure(arguments.draws, arguments.repeats), arguments)


if __name__ == "__main__":
    main()
