"""Models that share training and scorers with another model, which the default suite tries for both.

A new model is not in this list, so it is tried everywhere by default.
"""

import pytest

#: Their fits, lists and files are tried by `make test-slow`; what they spend and release is tried by default.
REPEATED = frozenset(
    {
        "dpmf",
        "frank-wolfe-printed",
        "local-nuclear-plain",
        "one-bit-gradient",
        "one-bit-objective",
        "one-bit-objective-printed",
        "one-bit-output-printed",
    }
)


def by_default(names, repeated=REPEATED):
    """Return parameters of which those that others stand for are slow."""
    return [pytest.param(one, marks=pytest.mark.slow) if one in repeated else one for one in names]
