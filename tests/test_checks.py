"""Every check says what came, the rule it broke and what to do, and never quotes data."""

import math

import numpy as np
import pytest

from discreet.core import checks
from discreet.core.checks import DataError, DiscreetError, ParameterError, suggestion

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
    for value in bad + NOT_NUMBERS:
        with pytest.raises(ParameterError, match="epsilon") as caught:
            check("epsilon", value)
        assert "\n" not in str(caught.value) and str(caught.value).endswith(".")


def test_the_sentence_has_what_came_the_rule_and_what_to_do():
    with pytest.raises(ParameterError) as caught:
        checks.positive("epsilon", -2, do="Pass math.inf for no privacy.")
    assert str(caught.value) == "epsilon=-2 must be greater than 0. Pass math.inf for no privacy."
    with pytest.raises(ParameterError) as caught:
        checks.require(False, "k", 0, "must be at least 1")
    assert str(caught.value) == "k=0 must be at least 1."
    checks.require(True, "k", 0, "is never read")


def test_whole_numbers():
    assert checks.integer("k", np.int32(3), least=3, most=3) == 3
    assert type(checks.integer("k", np.int32(3))) is int
    for value in (1.0, "1", True, None, math.nan):
        with pytest.raises(ParameterError, match="whole number"):
            checks.integer("k", value)
    with pytest.raises(ParameterError, match="at least 4"):
        checks.integer("k", 3, least=4)
    with pytest.raises(ParameterError, match="at most 2"):
        checks.integer("k", 3, most=2)


def test_choices():
    checks.one_of("link", "probit", {"probit", "logistic"})
    for value in ("Probit", "", None, ["probit"], {}):
        with pytest.raises(ParameterError, match="must be one of 'logistic', 'probit'"):
            checks.one_of("link", value, {"probit", "logistic"})
    with pytest.raises(ParameterError):
        checks.one_of("link", "pro", ["probit", "logistic"])


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
    with pytest.raises(DataError) as caught:
        checks.finite_array("values", array)
    for record in ("secret", "4.25", "3"):
        assert record not in str(caught.value)


def test_every_error_is_one_family():
    kinds = [kind for kind in vars(checks).values() if isinstance(kind, type) and issubclass(kind, Exception)]
    assert len(kinds) == 6 and all(issubclass(kind, DiscreetError) for kind in kinds)
    assert issubclass(ParameterError, ValueError) and issubclass(checks.FileError, OSError)
    assert issubclass(checks.BudgetError, checks.PrivacyError)


def test_a_slip_of_the_fingers_is_understood():
    assert suggestion("fti", ["federation", "fit", "follow"]) == " Did you mean fit?"
    assert suggestion("qqq", ["federation", "fit", "follow"]) == ""
