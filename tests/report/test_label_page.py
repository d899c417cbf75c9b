"""The large letters and the bar of a label show the guarantee, and nothing better than it."""

import math

import pytest

from discreet.report.guarantee_wording import continual_release
from discreet.report.label import by_origin, label_html, label_markdown, used_rows
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


def test_a_label_states_the_program_and_the_account_that_its_origin_names():
    origin = {"version": "0.3", "code": "abc", "account": "shop", "entry": 4}
    shown = dict(used_rows({"origin": origin}, None))
    assert "0.3" in shown["Program"] and "abc" in shown["Program"]
    assert "shop" in shown["Account"] and "4" in shown["Account"]
    assert dict(used_rows({"origin": {"version": "0.3"}}, None)).keys() == {"Signed"}
    assert dict(used_rows({"origin": origin | {"entry": None}}, None))["Account"] == "shop"


def test_every_array_of_a_model_is_listed_with_its_origin():
    provenance = {"mean": "noisy", "item_ids": "public", "item_bias": "noisy"}
    label = {"name": "biases", "provenance": provenance, "parameters": {}, "facts": {"n_items": 5}}
    arrays = label_markdown(label, make(), "unsigned").rpartition("|---|---|")[2].split("\n\n")[0]
    assert arrays == "\n| mean | noisy |\n| item_ids | public |\n| item_bias | noisy |"
    assert by_origin(provenance) == [("noisy", "mean, item_bias"), ("public", "item_ids")]


def test_a_continual_release_states_its_last_day_if_there_is_one():
    assert continual_release(1, 12, "2026-12-31").endswith("2026-12-31")
    assert continual_release(1, 12, None).endswith("12")


@pytest.mark.parametrize("epsilon", [1.0, math.inf])
def test_a_label_states_odds_if_there_is_a_guarantee(epsilon):
    guarantee = make(epsilon)
    label = {"name": "biases", "provenance": {}, "parameters": {}, "facts": {"n_items": 5}}
    page = label_html({**label, "version": 3, "guarantee": guarantee.to_json()}, guarantee, "unsigned")
    for shown in (label_markdown(label, guarantee, "unsigned"), page):
        assert (Odds.of(guarantee).sentence() in shown) == guarantee.is_private


def test_the_digest_of_a_schema_ignores_the_order_of_its_fields():
    one, other = ({"schema": schema} for schema in ({"a": 1, "b": 2}, {"b": 2, "a": 1}))
    assert dict(used_rows(one, None))["Schema"] == dict(used_rows(other, None))["Schema"]
    assert dict(used_rows({"schema": {"a": 1}}, None))["Schema"] != dict(used_rows(one, None))["Schema"]
