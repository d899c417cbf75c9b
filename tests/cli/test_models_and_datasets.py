"""What there is: models and datasets."""

import json

from discreet.core.registry import FIRST
from discreet.model_settings import MODELS
from discreet.papers import PAPERS, paper_at


def test_lists_models_and_datasets(discreet):
    code, out, _ = discreet("models", "--json")
    assert code == 0 and {"biases", "popularity"} <= {row["name"] for row in json.loads(out)["models"]}
    code, out, _ = discreet("datasets", "--json")
    assert code == 0 and "movielens-1m" in {row["name"] for row in json.loads(out)["datasets"]}
    assert discreet("models")[0] == discreet("datasets")[0] == 0


def test_the_models_to_use_first_stand_first(discreet):
    shown = discreet("models")[1]
    assert all(name in shown for name in FIRST) and "one-bit" not in shown and "--all" in shown
    shown = discreet("models", "--all")[1]
    places = [
        shown.index(name)
        for name in (*FIRST, "one-bit: ", "one-bit-input", "dpimf: ", "Baselines", "markov-chain")
    ]
    assert places == sorted(places)


def test_every_model_has_a_group_and_those_of_papers_their_paper(discreet):
    rows = {row["name"]: row for row in json.loads(discreet("models", "--json")[1])["models"]}
    assert set(rows) == set(MODELS)
    assert {row["group"] for row in rows.values()} <= {"first", "papers", "baselines", "others"}
    assert {row["paper"] for row in rows.values()} == {*PAPERS, None}
    assert rows["one-bit-input"]["paper"] == "one-bit" and rows["one-bit-input"]["group"] == "papers"
    assert rows["ease"]["paper"] is None and rows["ease"]["group"] == "baselines"
    for row in rows.values():
        assert (row["group"] == "papers") <= (row["paper"] is not None)


def test_a_place_outside_of_the_rooms_has_no_paper():
    assert paper_at("discreet.papers.one_bit.estimators:OneBitInput") == "one-bit"
    for place in (
        "",
        "discreet.models.biases:Biases",
        "discreet.papers.bounds:Bound",
        "other.papers.one_bit:X",
    ):
        assert paper_at(place) is None
