"""Pictures for notebooks: the axes hold what was measured, and without matplotlib a sentence says so."""

import math
import re
import sys
from dataclasses import replace

import numpy as np
import polars as pl
import pytest

import discreet
from cli.test_pages import SIX, six_models
from discreet.evaluation.comparison import Comparison
from discreet.evaluation.results import Score
from discreet.evaluation.scoring import PREFIX
from discreet.planning.curves import similar_curves
from discreet.planning.schedules import schedule
from discreet.privacy.ledger.accounts import Account
from discreet.testing import refuses
from evaluation.test_report import evaluation

matplotlib = pytest.importorskip("matplotlib")


@pytest.fixture(autouse=True)
def closed():
    """Draw without a screen, and close all figures afterwards."""
    matplotlib.use("Agg")
    yield
    # A test that drew nothing may be the first: then there is no pyplot yet.
    if "matplotlib.pyplot" in sys.modules:
        matplotlib.pyplot.close("all")


def measured(model, epsilon, **more):
    return evaluation(model, epsilon, {"rmse": (1.0, 1.1)}, **more)


def legend(ax):
    """Return the names in a legend, without the values behind them."""
    return [re.sub(r": [\d.]+$", "", text.get_text()) for text in ax.get_legend().get_texts()]


def test_an_evaluation_is_bars_of_the_model_and_its_baselines(snapshot):
    one = six_models()[0]
    ax = one.plot()
    snapshot("\n".join([ax.get_title(), *(label.get_text() for label in ax.get_yticklabels())]))
    widths = [bar.get_width() for bar in ax.patches]
    assert widths == [one.metrics["rmse"].mean, 1.0]
    assert len(one.plot("ndcg@10").patches) == 1
    with refuses("unknown-choice", name="metric", value="mae"):
        one.plot("mae")


@pytest.mark.thorough
def test_each_metric_has_a_panel_of_its_own(compared):
    one = six_models()[0]
    for drawn, panels in ((one, 2), (compared, 2), (measured("biases", 1.0), 1)):
        ax = drawn.plot()
        assert len(ax.figure.axes) == panels and ax.figure.axes[0] is ax
    names = [panel.get_xlabel() for panel in one.plot().figure.axes]
    assert names == ["rmse", "ndcg@10"]
    # On given axes, or of one metric, there is one panel.
    assert one.plot(ax=matplotlib.pyplot.figure().add_subplot()).get_xlabel() == "rmse"
    assert len(one.plot("ndcg@10").figure.axes) == 1


def test_a_comparison_is_a_line_for_each_model(compared):
    ax = compared.plot("ndcg@10")
    names = legend(ax)
    assert len(names) == 14 and {f"{SIX[0]} (implicit)", f"{SIX[0]}, NOT PRIVATE", "biases"} <= set(names)
    assert ax.get_xscale() == "log" and ax.get_ylabel() == "ndcg@10"
    drawn = next(line for line in ax.get_lines() if np.size(line.get_xdata()) == 5)
    assert list(drawn.get_xdata()) == [0.1, 0.5, 1.0, 2.0, 10.0]
    # The twin: another metric draws other values, on axes that are given.
    again = compared.plot("rmse", ax=matplotlib.pyplot.figure().add_subplot())
    assert again is not ax and again.get_ylabel() == "rmse" and len(legend(again)) == 15


@pytest.fixture(scope="module")
def compared():
    return Comparison(six_models())


def test_promises_of_several_definitions_are_drawn_apart():
    mixed = Comparison([measured("biases", 1.0), measured("local-sgd", 1.0, unit=discreet.Unit.VALUE)])
    with refuses(
        "definitions-differ", definitions=("user/add-or-remove/joint", "value/add-or-remove/joint")
    ) as refused:
        mixed.plot()
    named = refused.value.definitions[0]
    assert legend(mixed.plot(definition=named)) == ["biases"]
    with refuses("unknown-choice", value="everything"):
        mixed.plot(definition="everything")


def test_baselines_are_told_apart_by_their_dashes():
    names = ("global mean", "user mean", "item mean", "popularity")
    references = {f"{PREFIX}{name}": {"rmse": Score((place + 1.0,))} for place, name in enumerate(names)}
    ax = Comparison([replace(measured("biases", 1.0), references=references)]).plot()
    lines = [line for line in ax.get_lines() if "baseline" in str(line.get_label())]
    assert len({str(line._unscaled_dash_pattern) for line in lines}) == len(names)


def test_a_ledger_is_drawn_over_time(tmp_path, snapshot):
    ledger = discreet.Ledger.open(tmp_path / "a.ledger")
    promise = measured("biases", 0.5).guarantee
    with refuses("dataset-unclear", dataset=None, known=()):
        ledger.plot()
    ledger.set_budget("films", measured("biases", 3.0).guarantee)
    for _ in range(3):
        ledger.spend("films", promise, what="biases").__exit__(None, None, None)
    ax = ledger.plot()
    assert set(legend(ax)) == {"each release", "added up", "budget"}
    snapshot(ax.get_title())
    steps = next(line for line in ax.get_lines() if line.get_label() == "added up")
    assert list(steps.get_ydata()) == [0.5, 1.0, 1.5]
    with refuses("dataset-unclear", dataset="books", known=("films",)):
        ledger.plot("books")


def test_a_ledger_with_one_release_is_drawn_around_its_day():
    ledger = discreet.Ledger.in_memory()
    with ledger.spend("films", measured("biases", 0.5).guarantee, what="biases"):
        pass
    first, last = ledger.plot().get_xlim()
    assert last - first == pytest.approx(2.0)  # days


def test_a_ledger_is_drawn_as_its_account_counts(snapshot):
    """Half of the budget added up is a smaller part of what a Gaussian account allows, and is drawn so."""
    ledger = discreet.Ledger.in_memory()
    table = pl.DataFrame({"user": [1, 2, 3], "item": [1, 2, 1], "rating": [1, 2, 3]})
    films = discreet.from_frame(table, low=1, high=5)
    estimator = discreet.Biases(epsilon=1.0)
    ledger.set_budget("films", estimator.clone(epsilon=6.0).promise(films.facts), account=Account.GAUSSIAN)
    for _ in range(3):
        estimator.fit(films, ledger=ledger, name="films")
    ax = ledger.plot("films")
    steps = next(line for line in ax.get_lines() if str(line.get_label()).startswith("together (gaussian"))
    drawn, counted = list(steps.get_ydata()), ledger.balance("films").spent.epsilon
    assert drawn[0] == pytest.approx(1.0, abs=0.01) and drawn[-1] == counted < 2.9
    snapshot(ax.get_title())


def test_a_ledger_without_a_budget_says_what_is_not_private(snapshot):
    ledger = discreet.Ledger.in_memory()
    for promise in (measured("biases", 1.0).guarantee, measured("biases", math.inf).guarantee):
        ledger.spend("films", promise, what="biases").__exit__(None, None, None)
    other = measured("local-sgd", 1.0, unit=discreet.Unit.VALUE).guarantee
    ledger.spend("films", other, what="local").__exit__(None, None, None)
    ax = ledger.plot("films")
    assert len(legend(ax)) == 3
    snapshot(ax.get_title())


def test_a_plan_ends_within_its_budget():
    plan = schedule(5.0, 1e-6, 365)
    ax = plan.plot()
    ends = sorted(
        np.asarray(line.get_ydata())[-1] for line in ax.get_lines() if np.size(line.get_xdata()) > 2
    )
    assert plan.per_release.epsilon < ends[0] <= 5.0 < ends[1] and "budget" in legend(ax)
    assert all(np.size(line.get_xdata()) < 80 for line in ax.get_lines())
    # The twin: a single release is the whole budget, composed or added.
    assert schedule(5.0, 1e-6, 1).plot().get_lines()[0].get_ydata()[0] <= 5.0


def test_a_curve_is_drawn_for_so_many_people(snapshot):
    curve = similar_curves("rmse", 20_000, 30)[0]
    ax = curve.plot(2 * curve.people, epsilon=1.0)
    drawn = next(line for line in ax.get_lines() if np.size(line.get_xdata()) > 2)
    np.testing.assert_allclose(np.asarray(drawn.get_xdata(), dtype=float), [x / 2 for x, _ in curve.points])
    snapshot("\n".join(legend(ax)))


def test_without_matplotlib_a_sentence_says_what_to_install(monkeypatch, compared):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    for plot in (compared.plot, compared[0].plot, schedule(1.0, 1e-6, 2).plot):
        with refuses("extra-missing", package="matplotlib", extra="discreet[report]"):
            plot()
