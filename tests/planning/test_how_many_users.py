"""The limits of how many users are needed hold on public data that they weren't chosen on."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from discreet.planning.curves import curves
from discreet.planning.how_many_users import users_instead, users_needed
from discreet.testing import refuses

KEPT = Path(__file__).parents[2] / "benchmarks" / "results" / "how_many_users.json"
ROWS = json.loads(KEPT.read_text("utf-8"))["result"]["rows"]
CHOSEN_ON = {"movielens-1m", "movielens-100k", "amazon-instant-video"}
#: How much better than the simplest answer a model is at least, if it is clearly better.
CLEARLY = {"ratings": 0.01, "lists": 0.05}


def gain_of(row):
    share = row["model"] / row["simple"] - 1
    return share if row["what"] == "lists" else -share


def judged(rows, most=1.0):
    """Return the gains by answer; the limit above which users are enough is moved by a factor."""
    found = {"yes": [], "no": [], "undecided": []}
    for row in rows:
        needed = users_needed(row["what"], epsilon=row["epsilon"], items=row["items"])
        moved = replace(needed, most=round(most * needed.most))
        found[moved.answer(row["users"])].append(gain_of(row))
    return found


# Of three users in a hundred whose item is found, a few more or fewer are chance.
FOUND = [
    row for row in ROWS if row["what"] == "ratings" or min(row["simple"], row["model"]) * row["users"] > 25
]


@pytest.mark.parametrize("what", ["ratings", "lists"])
@pytest.mark.parametrize("fresh", [True, False])
def test_answers_are_right_where_there_is_one(what, fresh):
    rows = [row for row in FOUND if row["what"] == what and (row["dataset"] not in CHOSEN_ON) == fresh]
    assert len({row["dataset"] for row in rows}) >= 2
    found, clear = judged(rows), CLEARLY[what]
    assert len(found["yes"]) > 3 and min(found["yes"]) > 0 and max(found["no"], default=0) < clear
    # On fresh data, one answer of each kind is a gain that isn't clear.
    assert sum(one < clear for one in found["yes"]) == fresh
    # The twin: with fewer users, models are worse than the simplest answer.
    assert min(judged(rows, most=0.1)["yes"]) < 0 or (fresh and what == "ratings")


def test_noise_follows_epsilon_times_users_per_item():
    for what in CLEARLY:
        needed = users_needed(what, epsilon=1.0, items=2000)
        assert users_needed(what, epsilon=2.0, items=4000) == needed
        assert users_needed(what, epsilon=0.5, items=2000).most == 2 * needed.most
        assert [needed.answer(users) for users in (needed.least - 1, needed.least, needed.most - 1)] == [
            "no",
            "undecided",
            "undecided",
        ]
        assert needed.answer(needed.most) == "yes"
    assert users_instead(1000, 1.0, 4.0) == 4000 and users_instead(943, 0.5, 1.0) == 1900


def test_curves_begin_at_the_best_mean():
    for curve in curves():
        if curve.metric == "rmse":
            (row, *_) = [one for one in ROWS if one["dataset"] == curve.dataset and one["what"] == "ratings"][
                ::-1
            ]
            assert curve.floor == pytest.approx(row["simple"], rel=0.04)


def test_bad_numbers_are_rejected():
    with refuses("unknown-choice", name="what"):
        users_needed("clicks", epsilon=1.0, items=10)
    with refuses("out-of-range"):
        users_needed("lists", epsilon=0.0, items=10)
