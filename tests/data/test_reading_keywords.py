"""Every keyword that states how data is read works in every function that reads data."""

from dataclasses import dataclass
from typing import Any

import pandas as pd
import pytest

import discreet
from discreet.data import TableOptions
from discreet.testing import refuses

ROWS = [(f"u{user:02}", f"i{(user + k) % 9}", 1 + (user * k) % 5) for user in range(30) for k in range(5)]
PLAIN = "user,item,rating\n" + "".join(f"{user},{item},{rating}\n" for user, item, rating in ROWS)
EVENTS = "user,item,rating,event\n" + "".join(
    f"{user},{item},{rating},{'buy' if rating > 1 else 'view'}\n" for user, item, rating in ROWS
)
TYPED = PLAIN.replace("user,item,rating", "user_id:token,item_id:token,rating:float").replace(",", "\t")


@dataclass
class Case:
    """A file that a keyword reads."""

    text: str
    value: Any
    more: dict[str, Any] | None = None


CASES = {
    "delimiter": Case(PLAIN.replace(",", "^"), "^"),
    "quote": Case(PLAIN.replace("i3", "'i,3'"), "'"),
    "escape": Case(PLAIN.replace("i3", '"i\\"3"'), "\\"),
    "encoding": Case(PLAIN.replace("i3", "ä"), "latin-1"),
    "comment": Case("% of May\n" + PLAIN, "%"),
    "skip_rows": Case("May;;;;\n" + PLAIN, 1),
    "skip_bad_lines": Case(PLAIN + "u01,i8,many\n", True),
    "layout": Case(TYPED, "recbole"),
    "only": Case(EVENTS, {"event": "buy"}),
    "weights": Case(EVENTS, {"event": {"buy": 3, "view": 1}}, {"duplicates": "count"}),
    "zeros": Case(PLAIN + "u29,i8,0\n", "missing"),
    "schema": Case(PLAIN.replace("item", "thing"), "t.toml"),
}


def test_every_keyword_has_a_case():
    assert set(CASES) == set(TableOptions.__annotations__)


@pytest.fixture
def written(tmp_path, monkeypatch):
    """Write the file of a keyword, and return its path and the keywords that read it."""
    monkeypatch.chdir(tmp_path)

    def write(name):
        case = CASES[name]
        path = tmp_path / "rows.csv"
        path.write_bytes(case.text.encode("latin-1"))
        if name == "schema":
            discreet.read(path, columns={"item": "thing"}).schema.write(tmp_path / "t.toml")
        return path, {name: case.value, **(case.more or {})}

    return write


def _model(data):
    return discreet.Biases(epsilon=float("inf")).fit(data)


def _of_trial(data, **how):
    # The rows are read before they are counted: 30 users are too few.
    with pytest.raises(discreet.DataError) as caught:
        discreet.trial(data, **how)
    return {"code": caught.value.code, "users": caught.value.users}


INF = float("inf")
DOORS = {
    "fit": lambda data, **how: discreet.Biases(epsilon=INF).fit(data, **how).catalog.ids.tolist(),
    "trial": _of_trial,
    "evaluate": lambda data, **how: repr(discreet.evaluate(discreet.Biases(epsilon=INF), data, **how)),
    "compare": lambda data, **how: repr(discreet.compare([discreet.Biases(epsilon=INF)], data, **how)),
    "fit_and_evaluate": lambda data, **how: (
        discreet.fit_and_evaluate([discreet.Biases(epsilon=4.0)], data, **how).models[0].catalog.ids.tolist()
    ),
}


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("door", DOORS)
def test_a_function_reads_a_path_as_read_does(written, door, name):
    path, how = written(name)
    expected = DOORS[door](discreet.read(path, **how))
    assert DOORS[door](path, **how) == expected


@pytest.mark.parametrize("name", CASES)
def test_histories_are_read_as_read_does(written, name):
    path, how = written(name)
    how.pop("duplicates", None)
    data = discreet.read(path, **how, duplicates="last")
    model = _model(data)
    assert model.recommend_all(path, 2, **how).equals(model.recommend_all(data, 2))


def _frame(name):
    rows = [*ROWS, (None, "i8", 3)] if name == "skip_bad_lines" else ROWS
    frame = pd.DataFrame(rows, columns=["user", "item", "rating"])
    frame["event"] = ["buy" if rating > 1 else "view" for rating in frame["rating"]]
    return frame


@pytest.mark.parametrize("name", ["skip_bad_lines", "only", "zeros"])
@pytest.mark.parametrize("door", DOORS)
def test_a_function_reads_a_frame_as_from_frame_does(door, name):
    how, frame = {name: CASES[name].value}, _frame(name)
    assert DOORS[door](frame, **how) == DOORS[door](discreet.from_frame(frame, **how))


def test_bad_rows_of_a_frame_are_skipped_and_reject_without_the_keyword():
    frame = _frame("skip_bad_lines")
    assert discreet.from_frame(frame, skip_bad_lines=True).n_ratings == len(ROWS)
    for door in (discreet.from_frame, discreet.trial, discreet.Biases(epsilon=INF).fit):
        with refuses("bad-values"):
            door(frame)
    model = _model(discreet.from_frame(_frame("only")))
    assert len(model.recommend_all(frame, 1, skip_bad_lines=True)) == 30


def test_a_frame_has_no_lines():
    for door in (discreet.from_frame, discreet.trial, discreet.Biases(epsilon=INF).fit):
        error = rejected_by(door, _frame("only"), delimiter=";")
        assert error.code == "unknown-argument" and {"skip_bad_lines", "only", "schema"} <= set(error.known)


def rejected_by(door, *given, **how):
    with pytest.raises(discreet.DiscreetError) as caught:
        door(*given, **how)
    return caught.value


def test_data_that_was_read_is_not_read_again():
    data = discreet.from_frame(_frame("only"))
    for door in (discreet.trial, _model(data).recommend_all, discreet.Biases(epsilon=INF).fit):
        assert rejected_by(door, data, skip_bad_lines=True).code == "columns-unused"


def test_a_schema_has_its_own_rule_for_repeated_pairs(tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text(PLAIN + PLAIN.splitlines()[1] + "\n")
    schema = discreet.read(path, duplicates="last").schema.with_fields(duplicates="last")
    assert discreet.Biases(epsilon=INF).fit(path, schema=schema).facts.n_items == 9
    with refuses("repeated-pairs"):
        discreet.Biases(epsilon=INF).fit(path)
