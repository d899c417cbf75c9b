"""Options that say how a file is written and what is declared about it."""

import json

import pytest

from assumption_examples import stated
from command_line import one_sentence, other_remarks, rejected
from discreet.privacy.guarantee import Fact, Kind


@pytest.fixture
def fit(discreet, tmp_path):
    def call(text, *options):
        path = tmp_path / "odd.csv"
        path.write_text(text)
        out = tmp_path / "m.discreet"
        return discreet(
            "fit", path, "--model", "biases", "--epsilon", "1", "--force", "--out", out, "--json", *options
        )

    return call


ROWS = "".join(f"u{k},i{k % 7},{k % 5 + 1}\n" for k in range(50))


def items(shown):
    """Return the line of the label about the catalog."""
    listed = json.loads(shown)["guarantee"]["assumes"]
    return next(one["text"] for one in listed if one["fact"] == Fact.CATALOG)


def scale(shown):
    """Return the lowest and the highest rating."""
    listed = json.loads(shown)["guarantee"]["assumes"]
    return next((one["detail"]["low"], one["detail"]["high"]) for one in listed if one["fact"] == Fact.SCALE)


def test_a_bad_line_is_named_and_can_be_skipped(fit):
    text = "user,item,rating\n" + ROWS + "u1,i1\n"
    code, out, error = fit(text)
    one_sentence(code, out, error)
    assert "Line 52 of odd.csv" in error and "--skip-bad-lines" in error
    code, _, error = fit(text, "--skip-bad-lines")
    # The second remark names the option that is missing.
    assert code == 0 and "1 of 51 rows" in error and len(other_remarks(error)) == 2


def test_unusual_text_is_read_as_told(fit):
    text = ("user,item,rating\n" + ROWS).replace(",", "~")
    code, _, error = fit(
        "% mine\n" + text.replace("i1", "'i~1'"), *("--delimiter", "~", "--quote", "'", "--comment", "%")
    )
    assert code == 0, error
    assert fit(text, "--delimiter", "~", "--encoding", "latin-1", "--escape", "\\")[0] == 0


def test_a_column_may_have_a_comma_in_its_name(fit):
    text = '"who, really",what,"stars, of five"\n' + ROWS
    code, _, error = fit(text, "--columns", "user=who, really,item=what,rating=stars, of five")
    assert code == 0, error


def test_a_header_above_declared_items_is_no_item(fit, tmp_path):
    listed = tmp_path / "items.txt"
    listed.write_text("item\n" + "\n".join(f"i{k}" for k in range(9)) + "\n")
    code, shown, error = fit("user,item,rating\n" + ROWS, "--items", listed)
    assert code == 0 and "9 items" in items(shown), error


def test_zeros_are_remarked_on_and_left_out_when_told(fit):
    text = "user,item,rating\n" + ROWS + "".join(f"v{k},i{k % 7},0\n" for k in range(50))
    code, shown, error = fit(text)
    assert code == 0 and "--zeros missing" in error and scale(shown) == (0.0, 5.0)
    code, shown, error = fit(text, "--zeros", "missing")
    assert code == 0 and not other_remarks(error) and scale(shown) == (1.0, 5.0)
    one_sentence(*fit(text, "--zeros", "perhaps"))


def test_verbose_says_what_is_done(discreet, ratings, tmp_path):
    code, _, error = discreet(
        "--verbose", "fit", ratings, "--model", "biases", "--epsilon", "1", "--out", tmp_path / "m", "--json"
    )
    assert code == 0 and "Fitting biases" in error and "Fitted biases" in error


def explained(shown):
    return json.loads(shown)["reading"]


@pytest.mark.few(4)
@pytest.mark.parametrize(
    ("time", "form"),
    [
        ("2005-03-01T12:00:00+00:00", "dates with a time zone"),
        ("2005-03-01 12:00:00", "without a time zone"),
        ("2005-03-01", "days"),
        ("1109678400", "epoch seconds"),
        ("1109678400000", "epoch milliseconds"),
    ],
)
def test_explain_says_how_times_were_read(fit, time, form):
    text = "user,item,rating,when\n" + ROWS.replace("\n", f",{time}\n")
    code, shown, error = fit(text, "--columns", "time=when", "--explain")
    assert code == 0 and form in explained(shown)["time"] and "when" in explained(shown)["time"], error
    assert time not in shown
    code, shown, error = fit(text, "--columns", "time=none", "--explain")
    assert code == 0 and explained(shown)["time"] == "not read", error
    assert explained(shown)["layout"].endswith("','")


def test_explain_shows_people_how_the_data_were_read(discreet, tmp_path, snapshot):
    path = tmp_path / "clicks.jsonl"
    path.write_text("".join(f'{{"user": {k}, "item": "i{k % 7}"}}\n' for k in range(50)))
    made = ("--model", "popularity", "--epsilon", "1", "--out", tmp_path / "m.discreet", "--implicit")
    code, shown, error = discreet("fit", path, *made, "--explain")
    assert code == 0, error
    snapshot(shown)


def test_click_logs_repeat_and_layouts_have_names(discreet, tmp_path):
    path = tmp_path / "train.txt"
    path.write_text("".join(f"{k} {k % 7} {k % 5 + 9} {k % 7}\n" for k in range(50)))
    made = ("--model", "popularity", "--epsilon", "1", "--out", tmp_path / "m.discreet", "--force", "--json")
    code, out, error = discreet("fit", path, *made, "--layout", "lightgcn")
    one_sentence(code, out, error)
    assert "--duplicates last" in error
    chosen = {how: ("--duplicates", how) for how in ("first", "last", "count")}
    for how, again in (*chosen.items(), ("last", ())):
        code, shown, error = discreet(
            "fit", path, *made, "--implicit", "--layout", "lightgcn", "--explain", *again
        )
        assert code == 0 and explained(shown)["duplicates"] == how, error
    refused = discreet("fit", path, *made, "--implicit", "--layout", "lightgcn", "--duplicates", "refuse")
    rejected(refused, "repeated-pairs")
    code, out, error = discreet("fit", path, *made, "--layout", "nonsense")
    one_sentence(code, out, error)
    code, out, error = discreet("fit", path, *made, "--layout", "sasrec")
    one_sentence(code, out, error)
    assert "Line 1 of train.txt" in error


def test_a_folder_of_a_named_layout_is_fitted(discreet, tmp_path):
    folder = tmp_path / "prize"
    folder.mkdir()
    for item in range(3):
        lines = "".join(f"{k},{(k + item) % 5 + 1},2005-01-0{item + 1}\n" for k in range(1, 40))
        (folder / f"mv_{item:07}.txt").write_text(f"{item}:\n{lines}")
    made = ("--model", "biases", "--epsilon", "1", "--out", tmp_path / "m.discreet", "--json")
    code, shown, error = discreet("fit", folder, *made, "--layout", "netflix")
    assert code == 0 and json.loads(shown)["name"] == "prize", error
    declared = {"low": 1.0, "high": 5.0, "step": 1.0}
    assert stated(json.loads(shown)["guarantee"])[Kind.DECLARED, Fact.SCALE] == declared


def test_explain_says_how_much_there_is(fit):
    code, shown, error = fit("user,item,rating\n" + ROWS, "--explain")
    found = explained(shown)["for_holder_only"]
    assert code == 0 and "users" in found and "items" in found and "rows" in found, error


def test_a_schema_that_is_missing_is_not_called_unreadable(discreet, ratings, tmp_path):
    corrupt = tmp_path / "corrupt.toml"
    corrupt.write_bytes(b"\xff\xfe\x00")
    rejected(discreet("try", ratings, "--schema", tmp_path / "nosuch.toml"), "no-such-file")
    rejected(discreet("try", ratings, "--schema", corrupt), "unreadable-schema")
