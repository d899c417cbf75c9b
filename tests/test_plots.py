"""Charts for notebooks: they show what was measured, in a frame that leaves the style of a notebook alone."""

import math
import re
from dataclasses import replace
from html import unescape

import polars as pl
import pytest

import discreet
from cli.test_pages import SIX, six_models
from discreet.evaluation.comparison import Comparison
from discreet.evaluation.results import Score
from discreet.evaluation.scoring import PREFIX
from discreet.planning.schedules import schedule
from discreet.privacy.ledger.accounts import Account
from discreet.testing import refuses
from evaluation.test_report import evaluation


def measured(model, epsilon, **more):
    return evaluation(model, epsilon, {"rmse": (1.0, 1.1)}, **more)


def titles(charts):
    return [unescape(one) for one in re.findall("<figcaption>(.*?)</figcaption>", charts)]


def legend(charts):
    """Return the value at the right end of each line, by its name."""
    found = re.findall(r'<li>.*?<span>(.*?)</span>(?:<span class="last">(.*?)</span>)?</li>', charts)
    return {unescape(name): float(last) if last else None for name, last in found}


def test_an_evaluation_has_a_chart_for_each_metric():
    one = six_models()[0]
    drawn = one.plot()
    assert [title.split(":")[0] for title in titles(drawn)] == ["rmse", "ndcg@10"]
    assert len(titles(one.plot("ndcg@10"))) == 1 and len(titles(measured("biases", 1.0).plot())) == 1
    assert one.metrics["rmse"].mean == pytest.approx(legend(one.plot("rmse"))[one.model], rel=1e-3)
    with refuses("unknown-choice", name="metric", value="mae"):
        one.plot("mae")


def test_a_notebook_shows_charts_in_a_frame_of_their_own():
    one = six_models()[0]
    shown, alone = one.plot()._repr_html_(), one.plot("rmse")._repr_html_()
    assert shown.startswith("<iframe srcdoc=") and "<style>" not in shown and one.plot() in unescape(shown)
    heights = [int(re.search(r"height:(\d+)px", frame)[1]) for frame in (shown, alone)]
    assert heights[0] > heights[1] > 0


def test_a_comparison_is_a_line_for_each_model(compared):
    drawn = compared.plot("ndcg@10")
    names = legend(drawn).keys()
    assert {f"{SIX[0]} (implicit)", f"{SIX[0]}, NOT PRIVATE", "biases"} <= names
    # The twin: another metric draws other values.
    assert titles(compared.plot("rmse")) != titles(drawn) and legend(compared.plot("rmse")) != legend(drawn)


@pytest.fixture(scope="module")
def compared():
    return Comparison(six_models())


def test_promises_of_several_definitions_are_drawn_apart():
    mixed = Comparison([measured("biases", 1.0), measured("local-sgd", 1.0, unit=discreet.Unit.VALUE)])
    drawn = mixed.plot().split("</figure>")
    assert [list(legend(part)) for part in drawn[:2]] == [["biases"], ["local-sgd"]]


def test_baselines_are_told_apart_by_their_dashes():
    names = ("global mean", "user mean", "item mean", "popularity")
    references = {f"{PREFIX}{name}": {"rmse": Score((place + 1.0,))} for place, name in enumerate(names)}
    drawn = Comparison([replace(measured("biases", 1.0), references=references)]).plot()
    keys = re.findall(r'stroke-dasharray="([^"]+)"/></svg>', drawn)
    assert len(set(keys)) == len(keys) == len(names)


def test_a_ledger_is_drawn_release_by_release(tmp_path, snapshot):
    ledger = discreet.Ledger.open(tmp_path / "a.ledger")
    promise = measured("biases", 0.5).guarantee
    with refuses("dataset-unclear", dataset=None, known=()):
        ledger.plot()
    ledger.set_budget("films", measured("biases", 3.0).guarantee)
    for _ in range(3):
        ledger.spend("films", promise, what="biases").__exit__(None, None, None)
    drawn = ledger.plot()
    assert legend(drawn) == {"each release": 0.5, "added up": 1.5, "budget": 3.0}
    snapshot(*titles(drawn))
    with refuses("dataset-unclear", dataset="books", known=("films",)):
        ledger.plot("books")


def test_a_ledger_is_drawn_as_its_account_counts(snapshot):
    """Half of the budget added up is a smaller part of what a Gaussian account allows, and is drawn so."""
    ledger = discreet.Ledger.in_memory()
    table = pl.DataFrame({"user": [1, 2, 3], "item": [1, 2, 1], "rating": [1, 2, 3]})
    films = discreet.from_frame(table, low=1, high=5)
    estimator = discreet.Biases(epsilon=1.0)
    ledger.set_budget("films", estimator.clone(epsilon=6.0).promise(films.facts), account=Account.GAUSSIAN)
    for _ in range(3):
        estimator.fit(films, ledger=ledger, name="films")
    drawn, counted = ledger.plot("films"), ledger.balance("films").spent.epsilon
    assert legend(drawn)["together (gaussian account)"] == pytest.approx(counted, rel=1e-3) and counted < 2.9
    snapshot(*titles(drawn))


def test_a_ledger_without_a_budget_says_what_is_not_private(snapshot):
    ledger = discreet.Ledger.in_memory()
    for promise in (measured("biases", 1.0).guarantee, measured("biases", math.inf).guarantee):
        ledger.spend("films", promise, what="biases").__exit__(None, None, None)
    other = measured("local-sgd", 1.0, unit=discreet.Unit.VALUE).guarantee
    ledger.spend("films", other, what="local").__exit__(None, None, None)
    drawn = ledger.plot("films")
    assert len(legend(drawn)) == 3
    snapshot(*titles(drawn))


def test_a_plan_ends_within_its_budget():
    plan = schedule(5.0, 1e-6, 365)
    drawn = plan.plot()
    ends = legend(drawn)
    together, added = ends["as this plan composes them"], ends["if epsilons were added"]
    assert plan.per_release.epsilon < together <= ends["budget"] == 5.0 < added
    assert max(path.count("L") for path in re.findall(r' d="(M[^"]*)"', drawn)) < 80
    # The twin: a single release is the whole budget, composed or added.
    assert legend(schedule(5.0, 1e-6, 1).plot())["as this plan composes them"] <= 5.0
