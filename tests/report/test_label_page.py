"""The large letters and the bar of a label show the guarantee, and nothing better than it."""

import math

import pytest

from discreet.report.label import label_html, used_rows
from discreet.report.odds import Odds, odds_bar, posterior, power
from privacy_values import make


def amount(guarantee):
    """Return the large letters of the page."""
    label = {"name": "popularity", "provenance": {}, "parameters": {}, "facts": {"n_items": 5}}
    page = label_html({**label, "version": 3, "guarantee": guarantee.to_json()}, guarantee, "unsigned")
    return page.partition('class="amount">')[2].partition("</p>")[0]


def test_the_large_letters_are_the_guarantee():
    assert amount(make(math.inf)) == "NOT PRIVATE"
    assert "ε = 1.5" in amount(make(1.5)) and "δ" not in amount(make(1.5, delta=0.0))
    assert "δ = 0.001" in amount(make(1.5, delta=1e-3))


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 3.0, 30.0])
def test_the_bar_is_as_long_as_the_best_attackers_chance(epsilon):
    odds = Odds.of(make(epsilon))
    guess, _, rest = odds_bar(odds, width=100).partition("|")
    filled, empty = guess.count("█") + rest.count("█"), rest.count("░")
    assert filled + empty == 100 and guess.count("█") == 50
    assert odds.posterior <= filled / 100 < odds.posterior + 0.01


@pytest.mark.parametrize("delta", [0.0, 1e-6, 0.5, 0.995])
@pytest.mark.parametrize("epsilon", [0.01, 1.0, 8.0, 800.0])
def test_odds_are_chances_and_never_below_a_guess(epsilon, delta):
    for alarms in (0.001, 0.01, 0.9):
        assert alarms <= power(epsilon, delta, alarms) <= 1
    assert 0.5 <= posterior(epsilon, delta) <= 1


def test_a_label_states_whether_it_is_signed():
    assert dict(used_rows({}, None))["Signed"] == "no"
    assert "abcd" in dict(used_rows({}, "abcd"))["Signed"]
