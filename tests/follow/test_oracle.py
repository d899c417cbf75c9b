"""C against jax-privacy's matrices: an oracle in an environment of its own, which `DISCREET_JAX` names.

Not a dependency: DISCREET_JAX=/path/of/python pytest -m slow tests/follow/test_oracle.py runs it.
"""

import json
import os
import subprocess
import sys

import numpy as np
import pytest

from discreet.follow.factorization import FACTOR_BITS, Factorization, decay

ASK = """
import json, sys
import jax
jax.config.update("jax_enable_x64", True)
import jax.numpy as jnp
import numpy as np
from jax_privacy.matrix_factorization import dense, sensitivity, toeplitz
told = []
for given in json.load(sys.stdin):
    matrix, wanted = jnp.array(given["matrix"]), jnp.array(given["wanted"])
    best = dense.optimize(len(matrix), A=wanted, max_optimizer_steps=2000)
    told.append({
        "roots": np.asarray(toeplitz.optimal_max_error_strategy_coefs(len(matrix))).tolist(),
        "norm": float(sensitivity.single_participation_sensitivity(matrix)),
        "errors": dense.per_query_error(strategy_matrix=matrix, workload_matrix=wanted).tolist(),
        "best": dense.per_query_error(strategy_matrix=best, workload_matrix=wanted).tolist(),
        "best norm": float(sensitivity.single_participation_sensitivity(best)),
    })
print(json.dumps(told))
"""
YEARS = [(12, None), (52, None), (52, 4.0), (104, 14.0)]


def oracle(questions):
    """Return what jax-privacy says, or skip where it is not installed."""
    python = os.environ.get("DISCREET_JAX", sys.executable)
    found = subprocess.run([python, "-c", "import jax_privacy"], capture_output=True, check=False)
    if found.returncode:
        pytest.skip("jax-privacy is not installed; DISCREET_JAX names a Python that has it")
    clean = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(
        [python, "-c", ASK],
        input=json.dumps(questions),
        capture_output=True,
        text=True,
        check=True,
        env=clean,
    )
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.slow
def test_jax_privacy_agrees_about_our_matrices():
    questions = []
    for releases, half_life in YEARS:
        matrix = np.ldexp(
            Factorization(releases=releases, half_life=half_life).whole.astype(float), -FACTOR_BITS
        )
        faded = decay(releases, half_life)
        wanted = [[faded[t - s] if s <= t else 0.0 for s in range(releases)] for t in range(releases)]
        questions.append({"matrix": matrix.tolist(), "wanted": wanted})
    for (releases, half_life), told in zip(YEARS, oracle(questions), strict=True):
        plan = Factorization(releases=releases, half_life=half_life)
        # Before columns are normalized, C is their optimal square root, faded.
        first = np.ldexp(plan.whole[:, 0].astype(float), -FACTOR_BITS)
        root = np.array(told["roots"]) * decay(releases, half_life)
        assert np.allclose(first, root / np.linalg.norm(root), atol=2.0**-15)
        assert 0.999 < told["norm"] <= 1
        errors = [plan.deviation(count, half_life) ** 2 for count in range(1, releases + 1)]
        assert np.allclose(told["errors"], errors, rtol=1e-9)
        # Ours is within 5 % of the best dense matrix in the root of the mean squared error; the twin, refits
        # that share the budget, is not.
        best = np.sqrt(np.mean(told["best"])) * told["best norm"]
        ours = np.sqrt(np.mean(errors))
        assert 0.999 * best <= ours <= 1.05 * best
        assert np.sqrt(releases) > 1.05 * best
