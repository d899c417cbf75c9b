"""Frames, short descriptions and views for notebooks; search tools of scikit-learn; bars in notebooks."""

import io
import json
import math
import sys
from dataclasses import replace
from types import ModuleType

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from rich.console import Console

import discreet
from discreet.core import progress
from discreet.core.frames import to_frame
from discreet.planning.schedules import schedule
from discreet.report.pages import html_table
from discreet.testing import refuses
from snapshot import page_text
from toy import toy_interactions

HOSTILE = "<script>alert(1)</script>"


@pytest.fixture(scope="module")
def data():
    return toy_interactions()


@pytest.fixture(scope="module")
def compared(data):
    models = [discreet.Biases(epsilon=1.0), discreet.Biases(epsilon=math.inf)]
    return discreet.compare(models, data, metrics="rmse,mae", repeat=2)


def test_an_evaluation_is_a_frame(compared):
    frame = compared[0].to_frame()
    assert isinstance(frame, pl.DataFrame)
    assert frame.columns == ["model", "kind", "epsilon", "delta", "unit", "metric", "mean", "std", "runs"]
    own = frame.filter(pl.col("model") == "biases")
    assert own["metric"].to_list() == ["rmse", "mae"] and own["runs"].to_list() == [2, 2]
    assert own["mean"][0] == compared[0].metrics["rmse"].mean and frame.height > own.height
    assert isinstance(compared[0].to_frame("pandas"), pd.DataFrame)
    with refuses("unknown-choice", name="kind", value="numpy"):
        compared[0].to_frame("numpy")


def test_a_comparison_is_a_tuple_and_a_frame(compared):
    first, second = compared
    frame = compared.to_frame()
    assert isinstance(compared, tuple) and frame.height == first.to_frame().height + second.to_frame().height
    assert compared.to_frame("pandas")["epsilon"].tolist() == frame["epsilon"].to_list()
    assert set(frame["epsilon"]) == {1.0, math.inf}


def test_lists_are_frames_of_the_kind_that_came(data):
    model = discreet.Biases(epsilon=math.inf).fit(data)
    listed = model.recommend({}, k=3)
    assert isinstance(listed, list) and listed.to_frame()["item"].to_list() == [item for item, _ in listed]
    assert listed.to_frame("pandas")["rank"].tolist() == [1, 2, 3]
    rows = data.rows()
    columns = {
        "user": data.users.id_at(rows).tolist(),
        "item": data.catalog.id_at(data.items).tolist(),
        "rating": data.values.tolist(),
    }
    of_polars = model.recommend_all(pl.DataFrame(columns), k=2)
    of_pandas = model.recommend_all(pd.DataFrame(columns), k=2)
    assert isinstance(of_polars, pl.DataFrame) and isinstance(of_pandas, pd.DataFrame)
    assert of_pandas["item"].tolist() == of_polars["item"].to_list()
    assert isinstance(model.recommend_all(data, k=2), pl.DataFrame)


def test_one_run_and_several_are_frames_of_one_type(data, compared):
    once = discreet.evaluate(discreet.Biases(epsilon=math.inf), data, references=True)
    frame = once.to_frame()
    assert frame["std"].dtype == pl.Float64 and frame["std"].null_count() == frame.height
    assert pl.concat([frame, compared.to_frame()]).height == frame.height + compared.to_frame().height
    assert frame["kind"].to_list() == ["model"] + ["baseline"] * (frame.height - 1)
    assert "user mean" in frame["model"].to_list() and "NOT PRIVATE" not in "".join(frame["model"])
    assert page_text(once._repr_html_()).count("NOT PRIVATE") == frame.height - 1
    assert set(compared.to_frame()["kind"]) == {"model", "baseline"}


def test_what_came_as_pandas_goes_as_pandas(data):
    columns = {
        "user": data.users.id_at(data.rows()).tolist(),
        "item": data.catalog.id_at(data.items).tolist(),
        "rating": data.values.tolist(),
    }
    given, estimator = pd.DataFrame(columns), discreet.Biases(epsilon=math.inf)
    own = given[given.user == columns["user"][0]]
    for found in (
        discreet.evaluate(estimator, given),
        discreet.compare([estimator], given),
        estimator.fit(given).recommend(own, 3),
    ):
        assert isinstance(found.to_frame(), pd.DataFrame)
        assert isinstance(found.to_frame("polars"), pl.DataFrame)
        assert isinstance(found.to_frame("pyarrow"), pa.Table)
    for found in (discreet.evaluate(estimator, data), estimator.fit(data).recommend({}, 3)):
        assert isinstance(found.to_frame(), pl.DataFrame)
        assert isinstance(found.to_frame("pandas"), pd.DataFrame)
    lists = estimator.fit(data).recommend_all(pa.table(columns), 2)
    assert isinstance(lists, pa.Table) and lists.num_rows == 2 * data.n_users


def test_descriptions_are_short_and_views_are_tables(data, compared, tmp_path):
    ledger = discreet.Ledger.open(tmp_path / "ledger.db")
    model = discreet.Biases(epsilon=1.0).fit(data, ledger=ledger)
    plan = schedule(3.0, 1e-6, 12)
    for one in (model, model.guarantee, compared[0], ledger, plan):
        assert len(repr(one)) < 200 and "\n" not in repr(one)
    for one in (model, model.guarantee, compared[0], compared, ledger, plan, model.recommend({}, k=2)):
        assert one._repr_html_().startswith("<table>") and one._repr_html_().endswith("</table>")
    assert "epsilon=1" in repr(model.guarantee) and "PRIVATE" in repr(model.guarantee)
    assert "biases" in ledger._repr_html_()
    assert "NOT PRIVATE" in repr(discreet.Biases(epsilon=math.inf).fit(data).guarantee)


def test_a_view_of_a_ledger_shows_budgets_and_what_is_left():
    ledger = discreet.Ledger.in_memory()
    ledger.set_budget("a", 3.0, reason=HOSTILE)
    shown = ledger._repr_html_()
    assert shown.startswith("<table>") and shown.endswith("</table>")
    assert shown.count("ε=3") == 2 and "<script" not in shown and "&lt;script" in shown
    ledger.set_budget("a", 3.0, delta=1e-6)
    with ledger.spend("a", replace(ledger.budget("a").guarantee, epsilon=1.0), what="fit"):
        pass
    for view in (ledger._repr_html_(), ledger.balance("a")._repr_html_()):
        assert "no fit" in view and "ε=2" in view and "100%" in view


def test_data_estimators_and_joint_scores_have_views(data):
    found = discreet.fit_and_evaluate([discreet.Biases(epsilon=1.0)], data, metrics=["rmse"])
    for one in (data, discreet.Biases(epsilon=1.0), found):
        assert len(repr(one)) < 300 and "\n" not in repr(one)
        assert one._repr_html_().startswith("<table>") and one._repr_html_().endswith("</table>")
    ((score,),) = found.scores.values()
    assert "certificate" not in repr(found) and f"biases rmse {score.value:.4g}" in repr(found)
    assert f"{data.n_users:,}" in data._repr_html_() and "epsilon" in discreet.Biases(epsilon=1)._repr_html_()


def test_a_view_of_a_trial_has_the_interval_the_users_and_the_rating_errors():
    pairs = [
        (user, (3 * user + place) % 20, 1 + (user + place) % 5) for user in range(200) for place in range(5)
    ]
    found = discreet.trial(pl.DataFrame(pairs, schema=["user", "item", "rating"], orient="row"))
    shown = page_text(found._repr_html_())
    gain = found.asked.gain
    for number in (gain.low, gain.high):
        assert f"{number:+.4f}" in shown
    for number in (found.ratings.model, found.ratings.biases, found.ratings.mean):
        assert f"{number:.4f}" in shown
    assert "publish" in shown and "rmse" in shown
    assert found.needed_users is None or f"{found.needed_users:,}" in shown or found.answer == "yes"


def test_results_print_with_rich_and_go_into_json_and_pages(data, compared, tmp_path):
    model = discreet.Biases(epsilon=1.0).fit(data)
    listed, item = model.recommend({}, k=2), data.catalog.id_at(0)
    reasons = model.explain({item: 5.0}, item)
    for one in (model, compared[0], compared, schedule(3.0, 1e-6, 12), listed, reasons):
        console = Console(width=200, file=io.StringIO())
        console.print(one)
        assert "\u2501" in console.file.getvalue() or "\u2502" in console.file.getvalue()
    for one in (compared[0], compared, schedule(3.0, 1e-6, 12), listed, reasons):
        assert json.loads(json.dumps(one.to_json()))
    assert [one["item"] for one in listed.to_json()] == [one.item for one in listed]
    for number, one in enumerate((compared[0], compared)):
        one.to_page(tmp_path / f"{number}.html")
        assert "biases" in (tmp_path / f"{number}.html").read_text()


def test_a_promise_is_never_shown_smaller_than_it_is():
    promise = discreet.Guarantee(
        epsilon=1.00001,
        delta=1.00001e-6,
        unit=discreet.Unit.USER,
        neighbors=discreet.Neighbors.ADD_OR_REMOVE,
        trust=discreet.Trust.JOINT,
        basis=discreet.Basis.PROVED,
    )
    assert "epsilon=1.001" in repr(promise) and "delta=1.001e-06" in repr(promise)
    assert "SIMULATED" in repr(promise.as_simulated())


def test_views_escape_what_comes_from_files():
    assert "<script" not in html_table([(HOSTILE, 1.5)], header=(HOSTILE,), caption=HOSTILE)
    frame = pl.DataFrame({"user": [1, 2, 2], "item": [HOSTILE, "b", HOSTILE], "rating": [1.0, 2.0, 3.0]})
    listed = discreet.Biases(epsilon=math.inf).fit(frame).recommend({})
    assert "&lt;script" in listed._repr_html_() and "<script" not in listed._repr_html_()


def test_long_tables_are_cut():
    shown = html_table([(k,) for k in range(500)])
    assert shown.count("<tr>") < 60 and "450 more rows" in shown


def test_frames_hold_columns_of_mixed_types():
    assert to_frame({"item": [1, "a"], "score": [1, 2.5]}).height == 2


def test_settings_are_changed_in_a_copy():
    recipe = discreet.Biases(epsilon=1.0)
    other = recipe.set_params(epsilon=2.0)
    assert (recipe.epsilon, other.epsilon) == (1.0, 2.0) and type(other) is discreet.Biases
    assert recipe.set_params() == recipe
    with refuses("unknown-setting", model="biases", setting="epsilo"):
        recipe.set_params(epsilo=2.0)
    with refuses("unknown-setting", model="biases", setting="nonsense"):
        recipe.set_params(nonsense=1)


class Place:
    """What a notebook shows at one place below a cell, and all that it showed there."""

    def __init__(self):
        self.shown = []

    def display(self, content, *, raw, display_id):
        assert raw and display_id
        self.update(content, raw=raw)
        return self

    def update(self, content, *, raw):
        self.shown.append(content)


@pytest.fixture
def below_cell(monkeypatch):
    """Return the place below the cell of a notebook, and a clock that a test sets."""
    place, clock, module = Place(), [0.0], ModuleType("IPython.display")
    module.display = place.display
    monkeypatch.setitem(sys.modules, "ipykernel", ModuleType("ipykernel"))
    monkeypatch.setitem(sys.modules, "IPython", ModuleType("IPython"))
    monkeypatch.setitem(sys.modules, "IPython.display", module)
    monkeypatch.setattr(progress, "monotonic", lambda: clock[0])
    return place, clock


def test_a_quick_fit_leaves_nothing_in_a_notebook(below_cell):
    place, clock = below_cell
    with progress.terminal_progress(None) as report:
        for step in range(9):
            clock[0] += 0.1
            report("fitting", step, 9)
    assert place.shown == []


def test_a_bar_of_a_notebook_is_drawn_after_a_second_and_goes_at_the_end(below_cell):
    place, clock = below_cell
    with pytest.raises(KeyError), progress.terminal_progress(None) as report:
        for now in (0.5, 1.5, 1.55, 3.0):
            clock[0] = now
            report(HOSTILE, int(10 * now), 30)
        raise KeyError
    # One of the four came too early, another too soon after the one before.
    assert len(place.shown) == 3 and place.shown[-1] == {"text/plain": ""}
    assert '<progress value="15" max="30">' in place.shown[0]["text/html"]
    assert "<script>" not in place.shown[0]["text/html"] and "30 of 30" in place.shown[1]["text/plain"]


def test_what_is_read_is_shown_on_a_terminal_and_then_gone(monkeypatch, capsys):
    monkeypatch.delitem(sys.modules, "ipykernel", raising=False)
    with progress.shown_while("reading ratings.csv"):
        pass
    assert capsys.readouterr() == ("", "")
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    monkeypatch.setenv("FORCE_COLOR", "1")
    with progress.shown_while("reading ratings.csv"):
        pass
    assert "reading ratings.csv" in capsys.readouterr().err


def test_without_a_notebook_or_a_terminal_a_short_task_shows_nothing(monkeypatch, capsys):
    monkeypatch.delitem(sys.modules, "ipykernel", raising=False)
    with progress.terminal_progress(None) as report:
        report("fits", 1, 2)
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize("clock", ["process_time", "monotonic"])
def test_a_log_gets_lines_about_the_innermost_task_ever_less_often(clock, monkeypatch, capsys):
    monkeypatch.delitem(sys.modules, "ipykernel", raising=False)
    clocks = {"process_time": 0.0, "monotonic": 0.0}
    for name in clocks:
        monkeypatch.setattr(progress, name, lambda name=name: clocks[name])
    # The test looks at the clock, not the thread.
    monkeypatch.setattr(progress, "_LOOK", 1e6)
    step = progress._QUIET if clock == "process_time" else progress._PATIENT

    def lines_after(times):
        clocks[clock] = times * step
        progress._log.write_if_due()
        return capsys.readouterr().err.splitlines()

    with progress.shown_while("reading a.csv"):
        assert not lines_after(0.9)
        (line,) = lines_after(1)
        assert "reading a.csv" in line and f"{clocks['monotonic']:.0f} s" in line
        with progress.terminal_progress(None) as report:
            assert not lines_after(1.9) and len(lines_after(2)) == 1
            report("fit", 1, 4)
            (line,) = lines_after(4)
            assert "1 of 4" in line and "reading" not in line
        assert not lines_after(7) and "reading a.csv" in lines_after(8)[0]
    assert not progress._log._tasks
    clocks[clock] = 0
    # The twin: the next task begins anew.
    with progress.shown_while("reading b.csv"):
        assert not lines_after(0.9) and lines_after(1)


def test_a_ledger_is_a_frame_of_its_spendings(data):
    ledger = discreet.Ledger.in_memory()
    assert ledger.to_frame().height == 0
    discreet.Biases(epsilon=0.5).fit(data, ledger=ledger)
    discreet.Popularity(epsilon=0.25).fit(data, ledger=ledger)
    frame = ledger.to_frame()
    assert frame.columns == ["time", "data", "release", "epsilon", "delta", "unit", "trust", "state"]
    assert frame["release"].to_list() == ["biases", "popularity"] and frame["epsilon"].to_list() == [
        0.5,
        0.25,
    ]
    assert isinstance(ledger.to_frame("pandas"), pd.DataFrame)
    assert ledger.to_frame(dataset="others").height == 0
