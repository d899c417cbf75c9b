"""The demo tells the whole story: for a few people by default, for all of them among the slow tests."""

import json
import re
from pathlib import Path

import pytest

from discreet import demo
from discreet.data.datasets.synthetic import popularity_skewed


def told(discreet):
    """Return what the demo measured of each model, having checked what holds whatever the data."""
    code, out, _ = discreet("demo", "--json")
    found = json.loads(out)
    assert code == 0
    assert found["guarantee"]["simulated"] is False and len(found["recommendations"]) == 10
    scores = [row["score"] for row in found["recommendations"]]
    assert scores == sorted(scores, reverse=True) and all(
        row["expected_stars"] for row in found["recommendations"]
    )
    rmse, ndcg = (
        {row["model"]: row["metrics"].get(metric) for row in found["comparison"]}
        for metric in ("rmse", "ndcg@10")
    )
    assert ndcg["als"] is None and ndcg["biases"] is None and rmse["ease"] is None
    assert all((rmse[model] is None) + (ndcg.get(model) is None) < 2 for model in rmse)
    return found["data"], rmse, ndcg


def test_demo_tells_the_whole_story(discreet, monkeypatch):
    monkeypatch.setattr(demo.catalog, "load", lambda name: popularity_skewed(n_users=300, name=name))
    data, rmse, _ = told(discreet)
    assert data["users"] == 300 and rmse["als"] < rmse["own mean of each user"]


@pytest.mark.slow
def test_demo_ranks_models_as_it_says(discreet):
    data, rmse, ndcg = told(discreet)
    assert data["users"] > 300
    assert rmse["als"] < rmse["biases"] < rmse["own mean of each user"]
    assert ndcg["popularity"] < ndcg["ease"]


@pytest.mark.slow
def test_the_quickstart_shows_what_the_demo_prints(discreet, monkeypatch):
    """Noise changes numbers and the order of rows, so only lines without digits are compared."""
    monkeypatch.setenv("COLUMNS", "88")  # The width of the page, as docs/pages.py sets it.
    page = (Path(__file__).parents[2] / "docs" / "start.md").read_text(encoding="utf8")
    shown = re.search(r"<!-- demo -->\n```\n(.*?)```", page, re.DOTALL).group(1)
    printed = discreet("demo")[1]
    assert words(shown) == words(printed) and words(shown) != words(shown.replace("user", "person"))


def words(text):
    return [" ".join(line.split()) for line in text.splitlines() if not re.search(r"\d|^\s*$", line)]
