"""The large letters and the bar of a label show the guarantee, and nothing better than it."""

import math

import pytest

from discreet.report.label import label_html
from discreet.report.odds import Odds, odds_bar
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
