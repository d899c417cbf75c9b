"""Fitting from a file: what is read, declared, refused and remarked on."""

import gzip
import json
import re

import pytest

from assumption_examples import conditions, stated
from command_line import one_sentence, other_remarks, rejected
from discreet.data.schema import Schema
from discreet.privacy.guarantee import Fact, Kind
from toy import toy_interactions


def test_fit_label_recommend_and_budget(discreet, ratings, tmp_path):
    model, ledger = tmp_path / "m.discreet", tmp_path / "l.ledger"
    code, out, _ = discreet(
        "fit", ratings, "--model", "biases", "--epsilon", "1", "--out", model, "--ledger", ledger, "--json"
    )
    assert code == 0
    assert json.loads(out)["guarantee"]["epsilon"] == 1.0
    code, out, _ = discreet("label", model, "--full")
    assert code == 0 and "proofs/biases.md" in out and "item_bias" in out
    code, out, _ = discreet("label", model, "--json")
    assert json.loads(out)["guarantee"]["unit"] == "user"
    code, out, _ = discreet("recommend", model, "--history", ratings, "--user", "3", "-k", "4", "--json")
    assert code == 0 and len(json.loads(out)["recommendations"]) == 4
    code, out, _ = discreet("budget", ledger, "--json")
    assert code == 0 and "ratings" in out
    code, out, _ = discreet("budget", ledger)
    assert code == 0 and "biases" in out


def test_only_the_word_inf_is_infinite(discreet, ratings, tmp_path):
    out = tmp_path / "m.discreet"
    arguments = ("fit", ratings, "--model", "biases", "--out", out, "--epsilon")
    code, shown, error = discreet(*arguments, "1e400")
    assert code == 2 and shown == "" and "64-bit" in error and not out.exists()
    pairs = ("compare", ratings, "--models", "biases", "--out", tmp_path / "page.html", "--epsilons")
    assert discreet(*pairs, "1,1e400")[0] == 2
    assert discreet(*arguments, "inf")[0] == 0


def test_a_delta_that_promises_nothing_is_remarked_on(discreet, ratings, tmp_path):
    arguments = ("fit", ratings, "--model", "biases", "--epsilon", "1", "--force", "--out", tmp_path / "m")
    code, _, error = discreet(*arguments, "--delta", "0.5")
    assert code == 0 and "delta=0.5 is above 0.001" in error and len(other_remarks(error)) == 1
    assert "1/200" in discreet(*arguments, "--delta", "0.006", "--people", "200")[2]
    assert not other_remarks(discreet(*arguments, "--delta", "0.004", "--people", "200")[2])
    assert not other_remarks(discreet(*arguments)[2])


def test_declared_facts_are_not_taken_from_the_file(discreet, ratings, tmp_path):
    items = tmp_path / "items.txt"
    items.write_text("\n".join(map(str, range(60))), encoding="utf-8-sig")
    declared = ("--scale", "1,5,1", "--items", items, "--people", "200")
    out = tmp_path / "m.discreet"
    code, shown, error = discreet(
        "fit", ratings, "--model", "biases", "--epsilon", "1", "--out", out, *declared, "--json"
    )
    assert code == 0, error
    promise = json.loads(shown)["guarantee"]
    assert stated(promise)[Kind.DECLARED, Fact.CATALOG] == {"items": 60}
    assert conditions(promise) == [Fact.LAYOUT]


def test_clicks_and_repeated_rows_are_read_as_told(discreet, tmp_path):
    clicks = tmp_path / "clicks.csv"
    clicks.write_text(
        "user,item\n" + "\n".join(f"{u},{(u * 7 + i) % 30}" for u in range(40) for i in range(5))
    )
    arguments = ("--model", "popularity", "--epsilon", "1", "--out", tmp_path / "p.discreet")
    one_sentence(*discreet("fit", clicks, *arguments))
    assert discreet("fit", clicks, *arguments, "--implicit")[0] == 0
    either = ("--epsilon", "1", "--implicit", "--out", tmp_path / "u.discreet")
    code, shown, error = discreet("fit", clicks, *either, "--json")
    assert code == 0 and "implicit" in json.loads(shown)["guarantee"]["proof"], error
    answer = discreet("fit", clicks, *either, "--force", "--model", "biases")
    rejected(answer, "unsupported-by-model", model="biases", option="--implicit")
    twice = tmp_path / "twice.csv"
    twice.write_text("user,item,rating\n1,1,3\n1,1,4\n2,2,2\n2,1,5\n")
    arguments = ("--model", "biases", "--epsilon", "1", "--out", tmp_path / "b.discreet")
    one_sentence(*discreet("fit", twice, *arguments))
    assert discreet("fit", twice, *arguments, "--duplicates", "last")[0] == 0


def test_messages_speak_of_options(discreet, ratings, tmp_path):
    arguments = ("fit", ratings, "--epsilon", "1", "--out", tmp_path / "m.discreet", "--model")
    for option in ("--people", "--max-per-user"):
        answer = discreet(*arguments, "biases", option, "0")
        rejected(answer, "out-of-range", value=0, least=1)
        assert f"{option} is 0" in answer[2]
    rejected(discreet(*arguments, "frank-wolfe", "--set", "rounds=few"), "wrong-kind", name="rounds")
    error = discreet(*arguments, "biases", "--columns", "user=userId,item=userId")[2]
    assert "--columns" in error and "{" not in error
    assert discreet(*arguments, "biases", "--scale", "5,1")[0] == 2
    assert "load(" not in discreet("datasets", "get", "discreet-demo")[2]
    code, shown, _ = discreet(*arguments, "biases", "--explain", "--json")
    assert code == 0 and json.loads(shown)["decisions"] == {}


BAD_FILES = {
    "empty": "",
    "header only": "user,item,rating\n",
    "missing column": "user,rating\n1,2\n2,3\n",
    "not a number": "user,item,rating\n1,1,NaN\n2,1,3\n",
    "text": "user,item,rating\n1,1,good\n2,1,3\n",
    "duplicate pair": "user,item,rating\n1,1,3\n1,1,4\n2,2,2\n",
    "one item": "user,item,rating\n1,1,3\n2,1,4\n",
    "all equal": "user,item,rating\n1,1,3\n2,1,3\n2,2,3\n",
}


@pytest.mark.parametrize("content", BAD_FILES.values(), ids=BAD_FILES.keys())
def test_bad_files_are_one_sentence_and_write_nothing(discreet, tmp_path, content):
    path, out, ledger = tmp_path / "bad.csv", tmp_path / "m.discreet", tmp_path / "l.ledger"
    path.write_text(content)
    one_sentence(*discreet("fit", path, "--model", "biases", "--epsilon", "1", "--out", out))
    assert not out.exists() and not ledger.exists()


def test_ratings_outside_the_declared_scale_are_counted_not_quoted(discreet, ratings, tmp_path):
    arguments = ("--epsilon", "1", "--out", tmp_path / "m.discreet", "--scale", "2,4")
    code, out, error = discreet("fit", ratings, "--model", "biases", *arguments)
    one_sentence(code, out, error)
    data = toy_interactions(seed=2)
    outside = int(((data.values < 2) | (data.values > 4)).sum())
    assert f"{outside:,}" in error


@pytest.mark.parametrize(
    "arguments",
    [
        ("--epsilon", "0"),
        ("--epsilon", "-1"),
        ("--epsilon", "nan"),
        ("--epsilon", "1", "--delta", "1"),
        ("--epsilon", "1", "--delta", "-0.1"),
        ("--epsilon", "1", "--set", "no_such=1"),
        ("--epsilon", "1", "--set", "nonsense"),
        ("--epsilon", "1", "--set", "epsilon=3"),
        ("--epsilon", "33"),
    ],
    ids=" ".join,
)
def test_bad_budgets_are_one_sentence(discreet, ratings, tmp_path, arguments):
    out = tmp_path / "m.discreet"
    one_sentence(*discreet("fit", ratings, "--model", "biases", *arguments, "--out", out))
    assert not out.exists()


def test_a_model_that_cannot_be_saved_is_refused_before_it_is_paid_for(discreet, ratings, tmp_path):
    out = tmp_path / "m.discreet"
    one_sentence(*discreet("fit", ratings, "--model", "one-bit-output", "--epsilon", "1", "--out", out))
    assert not out.exists()


def test_gzip_and_other_column_names(discreet, tmp_path):
    path = tmp_path / "r.tsv.gz"
    rows = "\n".join(f"p{u}\tt{i}\t{(u * i) % 5 + 1}" for u in range(20) for i in range(10))
    path.write_bytes(gzip.compress(f"who\twhat\tstars\n{rows}\n".encode()))
    arguments = ("--epsilon", "1", "--columns", "user=who,item=what,rating=stars", "--out", tmp_path / "m")
    code, _, error = discreet("fit", path, "--model", "biases", *arguments)
    assert code == 0, error


def test_people_and_items_are_left_out_when_asked(discreet, ratings, tmp_path):
    gone, listed, out = tmp_path / "gone.txt", tmp_path / "items.txt", tmp_path / "m.discreet"
    gone.write_text("0\n999999\n")
    listed.write_text("0\n1\n2\n3\n4\n5\n6\n7\n")
    fit = ("fit", ratings, "--model", "biases", "--epsilon", "1", "--out", out, "--force")
    code, shown, error = discreet(*fit, "--without", gone)
    # One of the two IDs exists, and only the data owner's terminal shows it.
    (remark,) = (line for line in error.splitlines() if gone.name in line)
    assert code == 0 and re.findall(r"\d+", remark) == ["1", "2"]
    assert gone.name not in shown and gone.name.encode() not in out.read_bytes()
    code, shown, error = discreet(*fit, "--items", listed)
    one_sentence(code, shown, error)
    assert "--drop-unknown" in error
    one_sentence(*discreet(*fit, "--drop-unknown"))
    one_sentence(*discreet(*fit, "--without", tmp_path / "nowhere.txt"))
    assert discreet(*fit, "--items", listed, "--drop-unknown")[0] == 0


def test_what_the_data_told_is_said_and_can_be_paid_for(discreet, tmp_path, snapshot):
    lines = [f"{person},film {item},{1 + (person + item) % 5}" for person in range(2500) for item in range(6)]
    path = tmp_path / "shop.csv"
    path.write_text("\n".join(["user,item,rating", *lines, "7,only mine,5"]))
    arguments = (
        "fit",
        path,
        "--model",
        "biases",
        "--epsilon",
        "2",
        "--out",
        tmp_path / "m",
        "--force",
        "--json",
    )
    code, shown, error = discreet(*arguments)
    assert code == 0 and "--items, --scale, --schema" in " ".join(error.split())
    assert conditions(json.loads(shown)["guarantee"]) == [Fact.CATALOG, Fact.SCALE, Fact.LAYOUT]
    share = ("--private-catalog", "--catalog-share", "0.5", "--schema", declared_layout(path))
    for more in (("--scale", "1,5,1"), ()):
        code, shown, error = discreet(*arguments, *share, *more)
        promise = json.loads(shown)["guarantee"]
        assert code == 0 and error == "" and 1.999 < promise["epsilon"] <= 2 and promise["delta"] <= 1e-6
        assert conditions(promise) == [] and b"only mine" not in (tmp_path / "m").read_bytes()
        code, dry, _ = discreet(*arguments, *share, *more, "--dry-run", "--ledger", tmp_path / "book")
        assert code == 0 and json.loads(dry)["guarantee"] == promise
    assert (Kind.SELECTED, Fact.SCALE) in stated(promise)
    snapshot("\n".join(promise["notes"]))
    one_sentence(*discreet(*arguments, "--private-catalog", "--catalog-share", "1.5"))
    one_sentence(*discreet(*arguments, "--private-catalog", "--items", path))
    one_sentence(*discreet(*arguments, "--private-catalog", "--delta", "0"))


def declared_layout(path):
    """Return a schema of a table of users, items and ratings whose layout is declared."""
    schema, columns = path.with_suffix(".toml"), ("user", "item", "rating")
    Schema(columns=columns, user="user", item="item", rating="rating").write(schema)
    return schema


def test_a_file_and_its_schema_give_a_guarantee_without_conditions(discreet, tmp_path, snapshot):
    lines = [f"{person},film {item},{1 + (person + item) % 5}" for person in range(4000) for item in range(6)]
    path = tmp_path / "ratings.csv"
    path.write_text("\n".join(["user,item,rating", *lines, "7,only mine,99"]))
    fit = ("fit", path, "--epsilon", "1", "--private-catalog", "--model", "biases", "--out", tmp_path / "m")
    code, shown, error = discreet(*fit, "--schema", declared_layout(path))
    assert code == 0 and error == ""
    snapshot(shown)
    code, label, _ = discreet("label", tmp_path / "m", "--json")
    assert code == 0 and json.loads(label)["facts"]["high"] == 5.0


def test_old_ratings_that_fade_are_remarked_on(discreet, tmp_path):
    path, out = tmp_path / "r.csv", tmp_path / "m.discreet"
    path.write_text("user,item,time\n" + "".join(f"u{k},i{k % 5},2020-01-0{k % 7 + 1}\n" for k in range(50)))
    given = ("fit", path, "--implicit", "--model", "popularity", "--epsilon", "4", "--out", out, "--force")
    assert "half-lives" in discreet(*given, "--set", "half_life=14")[2]
    assert "half-lives" not in discreet(*given, "--set", "half_life=14", "--set", "now=2020-01-08")[2]
    assert "half-lives" not in discreet(*given)[2]


def test_a_dry_run_needs_no_output_and_reads_the_titles(discreet, ratings, tmp_path):
    given = ("fit", ratings, "--model", "biases", "--epsilon", "1")
    assert discreet(*given, "--dry-run")[0] == 0
    code, _, error = discreet(*given)
    assert code == 2 and "[option-missing]" in error
    one_sentence(*discreet(*given, "--dry-run", "--titles", tmp_path / "none.csv"))


@pytest.mark.parametrize(
    ("more", "delta"),
    [
        ((), 1e-6),
        (("--people", "1000"), 1e-6),
        (("--people", "5000000"), 2e-8),
        (("--people", "5000000", "--delta", "1e-7"), 1e-7),
    ],
)
def test_delta_follows_the_declared_number_of_users(discreet, ratings, more, delta):
    code, out, error = discreet("fit", ratings, "--epsilon", "1", "--dry-run", "--json", *more)
    assert code == 0, error
    assert json.loads(out)["guarantee"]["delta"] == pytest.approx(delta)


def test_a_fit_names_the_options_that_remove_the_condition_about_reading(discreet, tmp_path):
    rows = [f"u{user},i{item}" for user in range(30) for item in range(user % 5, 12)]
    (tmp_path / "clicks.csv").write_text("\n".join(["user,item", *rows, "broken"]) + "\n")
    (tmp_path / "items.txt").write_text("\n".join(f"i{item}" for item in range(12)) + "\n")
    asked = (
        "fit",
        tmp_path / "clicks.csv",
        "--implicit",
        "--epsilon",
        "1",
        "--items",
        tmp_path / "items.txt",
    )

    def fitted(*options):
        code, out, error = discreet(
            *asked, "--out", tmp_path / f"{len(options)}.discreet", *options, "--json"
        )
        facts = {one["fact"] for one in json.loads(out)["guarantee"]["assumes"]}
        assert code == 0, error
        return "readable" in facts, error.partition("instead, use")[2]

    stated, said = fitted("--skip-bad-lines")
    assert stated and "--drop-unknown" in said and "--duplicates" not in said
    # The twin: what is said removes the condition, and then nothing more is said.
    assert fitted("--skip-bad-lines", "--drop-unknown") == (False, "")
