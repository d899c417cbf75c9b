"""New items are served at once by what is public about them, without another fit."""

import json

import pytest

from assumption_examples import stated
from command_line import one_sentence, rejected
from discreet.privacy.guarantee import Fact, Kind


@pytest.fixture
def films(tmp_path):
    path = tmp_path / "films.csv"
    kinds = ["comedy|short", "drama"]
    path.write_text("id,kind\n" + "".join(f"{item},{kinds[item % 2]}\n" for item in range(42)))
    return path


def test_a_new_item_is_recommended_without_another_fit(discreet, model, ratings, films, tmp_path):
    out = tmp_path / "more.discreet"
    code, shown, error = discreet("add-items", model, films, "--out", out, "--json")
    assert code == 0 and json.loads(shown)["added"] == 2, error
    wanted = ("--history", ratings, "--user", "3", "-k", "100", "--json")
    listed = json.loads(discreet("recommend", out, *wanted)[1])["recommendations"]
    assert {40, 41} <= {row["item"] for row in listed}
    promise = json.loads(discreet("label", out, "--json")[1])["guarantee"]
    assert (Kind.DECLARED, Fact.ITEM_FEATURES) in stated(promise)


def test_what_cannot_be_added_is_one_sentence(discreet, model, films, tmp_path):
    out = tmp_path / "more.discreet"
    films.write_text("id,year\n40,1999\n41,2001\n")
    answer = discreet("add-items", model, films, "--out", out)
    rejected(answer, "too-few-known", known=0)
    one_sentence(*discreet("add-items", model, tmp_path / "none.csv", "--out", out))
    assert not out.exists()
