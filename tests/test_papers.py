"""Papers keep apart, and run at toy size: invented data stand in for the real, and nothing is written."""

import dataclasses
import math

import numpy as np
import pytest

from discreet import reproduce
from discreet.data.datasets import catalog
from discreet.data.interactions import Interactions
from discreet.reproduce import copies
from toy import toy_interactions


def toy_catalog(tmp_path):
    """Return stand-ins for `load`, `find` and `split_file`: 60 people on each data set's own scale."""

    def load(name, **_):
        toy = toy_interactions(n_users=60, n_items=120, per_user=15, seed=len(name), name=name)
        low, high, step = {"jester": (-10, 10, None), "restaurant-consumer": (0, 2, 1)}.get(name, (1, 5, 1))
        values = low + (toy.values - 1) / 4 * (high - low)
        facts = dataclasses.replace(toy.facts, low=low, high=high, step=step)
        ids = np.arange(1, toy.n_items + 1)
        return Interactions.from_arrays(
            toy.rows() + 1,
            ids[toy.items],
            np.round(values) if step else values,
            times=np.arange(toy.n_ratings),
            facts=facts,
            catalog=None,
            name=name,
        )

    def split_file(name, part):
        data, test = load(name), part.endswith("test")
        path = tmp_path / part
        rows = [
            f"{u}\t{i}\t{v:g}\t0"
            for place, (u, i, v) in enumerate(zip(data.rows() + 1, data.items + 1, data.values, strict=True))
            if (place % 5 == 0) == test
        ]
        path.write_text("\n".join(rows) + "\n")
        return path

    return {"load": load, "find": lambda name: tmp_path, "split_file": split_file}


@pytest.fixture
def toy_data(monkeypatch, tmp_path):
    for name, function in toy_catalog(tmp_path).items():
        monkeypatch.setattr(catalog, name, function)


@pytest.mark.scripts
@pytest.mark.parametrize("paper", reproduce.names())
def test_a_paper_runs_at_toy_size(paper, toy_data):
    results = reproduce.papers_folder() / reproduce.folder_of(paper) / "results"
    before = {path: path.stat().st_mtime_ns for path in results.rglob("*")}
    found = reproduce.reproduce(paper, size="toy")
    assert any(verdict.runs for verdict in found)
    assert all(verdict.measured is None or math.isfinite(verdict.measured) for verdict in found)
    assert before == {path: path.stat().st_mtime_ns for path in results.rglob("*")}


@pytest.mark.scripts
@pytest.mark.parametrize("paper", [paper for paper, used in copies.USED.items() if used])
def test_every_copy_that_a_paper_accepts_is_read(paper, toy_data, tmp_path, monkeypatch):
    """Other runs use the known datasets; here each dataset is a file of the caller's."""
    given = {}
    for name in copies.USED[paper]:
        low, high = (-10, 10) if name in copies.JESTER else (0, 2) if name == "rc" else (1, 5)
        toy = toy_interactions(n_users=60, n_items=120, per_user=15, seed=6)
        values = np.round(low + (toy.values - 1) / 4 * (high - low))
        lines = [
            f"{user},{item},{value:g},{place}"
            for place, (user, item, value) in enumerate(zip(toy.rows(), toy.items, values, strict=True))
        ]
        given[name] = tmp_path / f"{name}.csv"
        given[name].write_text("\n".join(["user,item,rating,time", *lines]) + "\n")
    if "netflix" in given:
        given["netflix"] = tmp_path / "netflix"
        given["netflix"].mkdir()
        rated = [f"{user},{1 + user % 5},2005-01-01" for user in range(40)]
        films = [line for film in range(1, 30) for line in (f"{film}:", *rated)]
        (given["netflix"] / "combined_data_1.txt").write_text("\n".join(films) + "\n")
    read = set()

    def noted(reader):
        def reading(path, **options):
            read.add(path)
            return reader(path, **options)

        return reading

    for module in ("copies", "frank_wolfe"):
        place = f"discreet.reproduce.{module}.read"
        monkeypatch.setattr(place, noted(copies.read))
    reproduce.reproduce(paper, size="toy", data=given)
    # A copy of ML-10M takes the place of ML-1M in the poster's experiments.
    unread = {name for name, path in given.items() if path not in read}
    assert unread <= ({"ml-1m"} if paper == "frank-wolfe" else set())


STEPPED = [
    name
    for name in reproduce.names()
    if (reproduce.papers_folder() / reproduce.folder_of(name) / "results" / "steps.jsonl").exists()
]


@pytest.mark.few(2)
@pytest.mark.parametrize("paper", STEPPED)
def test_a_paper_of_which_nothing_was_reached_is_judged_all_the_same(paper, toy_data):
    """Calculations and what others reported still speak; every draw cannot be said."""
    said = []
    found = reproduce.reproduce(paper, minutes=0, say=said.append)
    assert any("not reached" in words for words in said)
    unsaid = [verdict for verdict in found if verdict.outcome is reproduce.Outcome.UNSAID]
    assert len(unsaid) > len(found) / 2
    assert all(verdict.measured is None for verdict in unsaid)
