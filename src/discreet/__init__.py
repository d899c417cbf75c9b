"""Learn recommenders with a proven differential-privacy guarantee.

This module exports the public API: reading data (`read`, `from_frame`, `catalog`), the estimators, `load`,
guarantees and ledgers, `evaluate` and `compare`, and the errors. Names are imported on first use, so the
command line starts fast. Collection on devices is in `discreet.collect`, federated learning in
`discreet.federated`.
"""

# Names, with their modules, are in `__init__.pyi`.
from discreet.core.exports import exported

__all__, __getattr__, __dir__ = exported(__name__)
