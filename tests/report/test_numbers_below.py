"""What is left of a budget is rounded down, and what was spent is rounded up."""

import pytest

from discreet.report import number_above, number_below


@pytest.mark.parametrize("value", [1.85713, 0.26415, 1e-6, 3.0, 0.0, 12345.6, 1.0000001])
def test_read_back_a_number_is_on_its_side(value):
    assert float(number_below(value)) <= value <= float(number_above(value))
    assert abs(float(number_below(value)) - value) <= 1e-3 * value


def test_a_budget_can_be_spent_as_shown():
    # The twin is the rounding of what was spent: a release of 1.858 would be rejected.
    assert (number_below(1.85713), number_above(1.85713)) == ("1.857", "1.858")
