"""The committed accuracy run: its checks can fail, and the page shows what it holds."""

import importlib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
EPSILONS = ("0.1", "0.5", "1", "2", "5", "10")


@pytest.fixture
def checks(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    return importlib.import_module("accuracy_checks")


def results(**ours):
    """Return a run in which everything holds, but for what is given of our model at epsilon 5."""
    lists = {"hr@10": [0.2, 0.2], "ndcg@10": [0.1, 0.1], "hr@10:liked": [0.22, 0.22]}
    private = {epsilon: lists | {"rmse": [0.9, 0.92]} for epsilon in EPSILONS}
    models = ("user-factorization", "choices-only", "popularity", "implicit-objective", "biases")
    runs = {model: dict(private) for model in models}
    runs["user-factorization"]["5"] = private["5"] | ours
    runs |= {"als": {"inf": {"rmse": [0.8, 0.82]}}, "ease": {"inf": lists}}
    return {"people": {"toy": 10_000}, "runs": {"toy": runs}}


def failing(checks, run):
    return {name for name, failed in checks.failures(run).items() if failed}


def test_a_run_in_which_all_holds_has_no_failures(checks):
    assert failing(checks, results()) == set()


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"hr@10": [0.15, 0.15]}, {"below_popularity", "falling", "far_from_choices", "dominated"}),
        ({"hr@10": [0.25, 0.25]}, {"falling", "over_the_bar", "liked_less"}),
        ({"hr@10:liked": [0.1, 0.1]}, {"liked_less"}),
        ({"rmse": [0.95, 0.97]}, {"dominated"}),
        ({"rmse": [0.7, 0.72]}, {"over_the_bar"}),
        ({"hr@10": [0.199, 0.199], "rmse": [0.9005, 0.9205]}, set()),
    ],
)
def test_each_check_can_fail(checks, change, expected):
    assert failing(checks, results(**change)) == expected


def test_the_page_shows_what_was_measured(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "docs"))
    pages = importlib.import_module("pages")
    page, measured = pages.ACCURACY.read_text(encoding="utf8"), pages.kept("accuracy")
    assert page == pages.accuracy_filled(page, measured), "Run docs/build.py choosing."
    assert page != pages.accuracy_filled(page, {**measured, "means": {}})
