"""Every check raises an error with what came and the rule, and never quotes data."""

import math

import numpy as np
import pytest

from discreet.core import checks
from discreet.core.errors import NotFiniteArray, OutOfRange, UnknownChoice, WrongKind, most_similar
from discreet.testing import refuses

NOT_NUMBERS = ["1", None, True, [1.0], math.nan, np.float64("nan"), 1j]
RULES = {
    "real": (checks.real, [0, -1.5, math.inf, np.float32(2), np.int64(3), 2**70], [10**400]),
    "finite": (checks.finite, [0, -1.5, 1e308], [math.inf, -math.inf]),
    "positive": (checks.positive, [5e-324, 1, math.inf], [0, -0.0, -1, -math.inf]),
    "positive_finite": (checks.positive_finite, [5e-324, 1], [0, -1, math.inf]),
    "non_negative": (checks.non_negative, [0, 3.5], [-5e-324, math.inf]),
    "probability": (checks.probability, [0, 0.5, 1], [-1e-9, 1.0000001, math.inf]),
    "failure_probability": (checks.failure_probability, [0, 0.5, math.nextafter(1, 0)], [-1e-9, 1, 2]),
}


@pytest.mark.parametrize(("check", "good", "bad"), RULES.values(), ids=RULES)
def test_numbers(check, good, bad):
    for value in good:
        assert check("epsilon", value) == float(value) and type(check("epsilon", value)) is float
    for value in bad:
        with refuses(WrongKind if check is checks.real else OutOfRange, name="epsilon"):
            check("epsilon", value)
    for value in NOT_NUMBERS:
        with refuses(WrongKind, name="epsilon"):
            check("epsilon", value)


def test_whole_numbers():
    assert checks.integer("k", np.int32(3), least=3, most=3) == 3
    assert type(checks.integer("k", np.int32(3))) is int
    for value in (1.0, "1", True, None, math.nan):
        with refuses(WrongKind, name="k", kind="a whole number"):
            checks.integer("k", value)
    with refuses(OutOfRange, name="k", value=3, least=4):
        checks.integer("k", 3, least=4)
    with refuses(OutOfRange, name="k", value=3, most=2):
        checks.integer("k", 3, most=2)


def test_choices():
    checks.one_of("link", "probit", {"probit", "logistic"})
    for value in ("Probit", "", None, ["probit"], {}):
        with refuses(UnknownChoice, name="link", value=value, choices=["logistic", "probit"]):
            checks.one_of("link", value, {"probit", "logistic"})


@pytest.mark.parametrize(
    "array",
    [[], [1, 2], np.ones((2, 3), np.float32)[:, ::2], np.arange(3, dtype=np.uint8), 7.0, [True]],
    ids=repr,
)
def test_arrays_of_numbers(array):
    checked = checks.finite_array("values", array)
    assert checked.dtype == np.float64 and np.array_equal(checked, np.asarray(array, dtype=float))


@pytest.mark.parametrize(
    "array",
    [[1, math.nan], [math.inf], ["4.25", "3"], ["secret"], [None], [[1], [2, 3]], [1j], np.array([object()])],
    ids=lambda array: type(array).__name__,
)
def test_other_arrays_are_refused_without_quoting_them(array):
    with refuses(NotFiniteArray, name="values") as caught:
        checks.finite_array("values", array)
    assert caught.value.facts() == {"name": "values"}


def test_a_slip_of_the_fingers_is_understood():
    assert most_similar("fti", ["federation", "fit", "follow"]) == "fit"
    assert most_similar("qqq", ["federation", "fit", "follow"]) is None
