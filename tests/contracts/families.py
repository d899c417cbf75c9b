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

#: Models of papers that share most with another one of their paper; `make test-thorough` tries their answers.
RELATED = frozenset(
    {
        "covariance-svd",
        "local-nuclear",
        "local-sgd",
        "one-bit-output",
        "private-gradients",
        "projected-gradient",
    }
)


def by_default(names, repeated=REPEATED):
    """Return parameters of which those that others stand for are slow or thorough."""
    return [pytest.param(one, marks=mark(one, repeated)) for one in names]


def mark(name, repeated=REPEATED):
    """Return the marks of a model."""
    return pytest.mark.slow if name in repeated else pytest.mark.thorough if name in RELATED else ()
