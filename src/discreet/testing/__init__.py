"""Check an estimator, a statistic, a mechanism, or a metric with the suites that discreet's own pass.

One line runs a suite under pytest, in any package:

    from discreet.testing import EstimatorContract

    class TestMine(EstimatorContract):
        estimator = Mine

Suites need pytest; nothing else here does.
"""

import sys

# Names, with their modules, are in `__init__.pyi`.
from discreet.core.exports import exported

__all__, __getattr__, __dir__ = exported(__name__)

if "pytest" in sys.modules:
    # With this, a failed check shows its numbers, as in a test file.
    kinds = ("estimator", "mechanism", "metric", "scorer", "statistic")
    sys.modules["pytest"].register_assert_rewrite(*(f"{__name__}.{kind}_contract" for kind in kinds))
