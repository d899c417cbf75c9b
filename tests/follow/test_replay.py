"""A replayed year asks every way for what came next, and only from what came before."""

import json

import numpy as np
import pytest

from command_line import one_sentence
from discreet.data import read
from discreet.data.interactions import Interactions
from discreet.federated.noise import SharedNoise
from discreet.federated.simulation import POOLED
from discreet.follow import FollowSettings
from discreet.follow.replay import FOLLOWED, replay_year
from discreet.testing import refuses

DAY = 86_400
YEAR = FollowSettings(releases=6, epsilon=8.0, delta=1e-6, half_life=30.0)


def year_of(*, changing, values=False, seed=0):
    """Return a year in which other items are popular in each part of it, or always the same."""
    rng = np.random.default_rng(seed)
    users, items, times = [], [], []
    for part in range(6):
        for user in range(300):
            start = 10 * part if changing else 0
            chosen = rng.choice(
                np.r_[start : start + 10, 60:200], 3, replace=False, p=[0.08] * 10 + [0.2 / 140] * 140
            )
            users += [user + 300 * part] * 3
            items += chosen.tolist()
            times += (DAY * (part * 365 / 6 + rng.uniform(0, 60, 3))).astype(int).tolist()
    given = rng.integers(1, 6, len(users)) if values else None
    return Interactions.from_arrays(
        users, items, given, times, low=1 if values else None, high=5 if values else None
    )


def scores(found):
    return {way.name: way.score for way in found.ways}


@pytest.mark.slow
def test_following_wins_where_popularity_changes_and_not_where_it_stays():
    changing = scores(replay_year(year_of(changing=True), YEAR, begins=0.0))
    same = scores(replay_year(year_of(changing=False), YEAR, begins=0.0))
    # Users come once, so a fit from the start knows nothing of what comes where popularity changes.
    assert changing[FOLLOWED] < 0.1 > changing["popularity, fitted once"]
    # The twin: where nothing changes, one fit is as good.
    assert same["popularity, fitted once"] > 0.5 and same[FOLLOWED] > 0.5
    weekly = FollowSettings(releases=52, epsilon=8.0, delta=1e-6, half_life=7.0)
    often = scores(replay_year(year_of(changing=True), weekly, begins=0.0))
    assert often[FOLLOWED] > 2 * often["popularity, fitted once"]
    assert often["popularity without privacy, always fresh"] >= often[FOLLOWED] - 0.05


def test_what_comes_later_changes_no_earlier_model():
    data = year_of(changing=True)
    two = FollowSettings(releases=2, epsilon=8.0, delta=1e-6)
    late = data.times > DAY * 364
    cut = data.where(~late)
    assert late.any()
    whole, part = replay_year(data, two, begins=0.0), replay_year(cut, two, begins=0.0)
    assert whole.asked == part.asked + int(late.sum())
    early = data.where(data.times < DAY * 182)
    with refuses("nothing-between", first="1970-01", last="1970-07"):
        replay_year(early, two, begins=0.0)


@pytest.mark.thorough
def test_the_year_is_the_last_one_unless_said():
    data = year_of(changing=True)
    found = replay_year(data, YEAR)
    assert found.begins == "1970-01-01"
    later = replay_year(data, FollowSettings(releases=3, epsilon=8.0, delta=1e-6, days=90.0))
    assert later.begins.startswith("1970-10") and later.asked < found.asked


@pytest.mark.thorough
def test_ratings_are_scored_by_their_errors():
    found = replay_year(year_of(changing=False, values=True), YEAR, begins=0.0)
    assert found.metric == "rmse" and found.lower_is_better
    # Ratings are drawn at random from 1 to 5: nothing predicts them better than their mean.
    assert all(1.3 < score < 1.7 for score in scores(found).values())


def test_without_times_there_is_nothing_to_replay():
    with refuses("times-for-replay"):
        replay_year(Interactions.from_arrays([0, 1], [0, 1]), YEAR)


@pytest.mark.thorough
def test_parties_replay_together():
    data, noisy = year_of(changing=False), FollowSettings(releases=6, epsilon=0.5, delta=1e-6)
    together = scores(replay_year(data, noisy, begins=0.0, noise=SharedNoise(parties=3, missing=1)))
    alone = scores(replay_year(data, noisy, begins=0.0))
    assert abs(together[FOLLOWED] - alone[FOLLOWED]) < 0.2 and together != alone
    # One data owner who follows is the same in both.
    assert together.pop(f"follow, {POOLED}") == alone[FOLLOWED]
    assert 0 < together.pop("follow, each party alone (mean)") < alone[FOLLOWED] + 0.05
    del together[FOLLOWED], alone[FOLLOWED]
    assert together == alone


@pytest.mark.thorough
def test_on_the_command_line(discreet, tmp_path, snapshot, monkeypatch):
    monkeypatch.chdir(tmp_path)
    data = year_of(changing=False)
    path = tmp_path / "clicks.csv"
    rows = zip(data.rows().tolist(), data.items.tolist(), data.times.tolist(), strict=True)
    path.write_text("user,item,time\n" + "".join(f"{user},i{item},{time}\n" for user, item, time in rows))
    how = (path.name, "--implicit", "--epsilon", "8", "--half-life", "30d")
    code, out, error = discreet("follow", "replay", *how, "--releases", "6", "--from", "1970-01-01")
    assert code == 0, error
    snapshot(out, numbers=False)
    code, out, _ = discreet("follow", "replay", *how, "--releases", "6", "--json")
    found = json.loads(out)
    assert code == 0 and found["metric"] == "hr@10" and found["ways"][0]["epsilon_each"] is None
    simulate = ("federation", "simulate", *how, "--parties", "3")
    code, out, error = discreet(*simulate, "--follow", "6", "--evaluate", "--json")
    names = [
        way["way"]
        for way in json.loads(out)["ways"]
        if "one holder" not in way["way"] and "alone" not in way["way"]
    ]
    assert code == 0 and names == [way["way"] for way in found["ways"]]
    one_sentence(*discreet(*simulate, "--follow", "6", "--evaluate", "--metric", "rmse"))
    one_sentence(*discreet(*simulate, "--follow", "6"))
    one_sentence(*discreet("follow", "replay", *how, "--from", "1990-01-01"))
    one_sentence(*discreet("follow", "replay", *how, "--releases", "1"))


def test_weights_that_do_not_add_up_are_said(tmp_path, caplog):
    rows = [f"{day % 20},{day % 7},{'buy' if day % 2 else 'view'},{day * DAY}" for day in range(300)]
    (tmp_path / "events.csv").write_text("\n".join(["user,item,event,time", *rows]) + "\n")

    def said(duplicates, **options):
        data = read(tmp_path / "events.csv", duplicates=duplicates, **options)
        caplog.clear()
        replay_year(data, FollowSettings(releases=3, epsilon=2.0))
        return [one for one in caplog.records if "rows" in one.msg]

    weights = {"weights": "event=view:1,buy:5"}
    assert len(said("first", **weights, low=1, high=5)) == len(said("first", **weights, implicit=True)) == 1
    # Sums are ratings, and interactions without weights have none to add up.
    assert not said("count", **weights, low=1, high=50) and not said("first", implicit=True)


def test_releases_without_new_data_are_counted_and_blamed_on_no_option(discreet, tmp_path):
    rows = [f"{user},i{(user + place) % 20},{8 * place * DAY}" for user in range(40) for place in range(10)]
    (tmp_path / "clicks.csv").write_text("\n".join(["user,item,time", *rows]) + "\n")
    how = (tmp_path / "clicks.csv", "--implicit", "--epsilon", "8", "--releases", "12")
    code, out, error = discreet("follow", "replay", *how, "--half-life", "7d")
    assert code == 0, error
    assert "of 12 releases" in " ".join(out.split()) and "--from" not in out
