"""Check an estimator, a statistic, a mechanism, or a metric with the suites that discreet's own pass.

One line runs a suite under pytest, in any package:

    from discreet.testing import EstimatorContract

    class TestMine(EstimatorContract):
        estimator = Mine

`discreet.testing.large_data` generates data for benchmarks. Suites need pytest; nothing else here does.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from discreet.core.exports import Exports

if TYPE_CHECKING:
    from discreet.testing.estimator_contract import EstimatorContract as EstimatorContract
    from discreet.testing.mechanism_contract import MechanismContract as MechanismContract
    from discreet.testing.metric_contract import MetricContract as MetricContract
    from discreet.testing.refusals import refuses as refuses
    from discreet.testing.scorer_contract import ScorerContract as ScorerContract
    from discreet.testing.small_data import toy_interactions as toy_interactions
    from discreet.testing.statistic_contract import StatisticContract as StatisticContract
else:
    _exports = Exports(
        "discreet.testing",
        {
            "discreet.testing.estimator_contract": "EstimatorContract",
            "discreet.testing.mechanism_contract": "MechanismContract",
            "discreet.testing.metric_contract": "MetricContract",
            "discreet.testing.refusals": "refuses",
            "discreet.testing.scorer_contract": "ScorerContract",
            "discreet.testing.small_data": "toy_interactions",
            "discreet.testing.statistic_contract": "StatisticContract",
        },
    )
    __all__ = _exports.names

    def __getattr__(name: str) -> object:
        if "pytest" in sys.modules:
            # With this, a failed check shows its numbers, as in a test file.
            sys.modules["pytest"].register_assert_rewrite(
                *(f"{__name__}.{kind}_contract" for kind in ("estimator", "mechanism", "metric", "scorer")),
                f"{__name__}.statistic_contract",
            )
        return _exports.find(name)
