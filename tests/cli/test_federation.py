"""The verbs of a federation: founding one, and trying one out in one process."""

import json

import polars as pl
import pytest

from assumption_examples import stated
from command_line import one_sentence, rejected
from discreet.privacy.guarantee import Fact, Kind
from discreet.privacy.ledger.ledger import Ledger


@pytest.fixture
def items(tmp_path):
    path = tmp_path / "items.txt"
    path.write_text("\n".join(map(str, range(60))))
    return path


def test_simulate_writes_a_model_with_its_label(discreet, ratings, tmp_path):
    model, ledger = tmp_path / "m", tmp_path / "l.ledger"
    code, out, _ = discreet(
        "federation", "simulate", ratings, "--model", "implicit-objective", "--epsilon", "8",
        "--parties", "4", "--out", model, "--ledger", ledger, "--json",
    )  # fmt: skip
    assert code == 0
    told = json.loads(out)
    assert told["guarantee"]["epsilon"] == 8.0 and all(len(r["heard"]) == 4 for r in told["rounds"])
    assert stated(told["guarantee"])[Kind.PARTY, Fact.NOISE_SHARES] == {"parties": 3}
    assert json.loads(discreet("label", model, "--json")[1])["guarantee"] == told["guarantee"]
    assert "8" in discreet("budget", ledger)[1]


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (("--parties", "1"), "parties"),
        (("--parties", "4", "--missing", "3"), "missing"),
        (("--parties", "4", "--model", "als", "--epsilon", "inf"), "cannot run over parties"),
    ],
)
def test_simulate_refuses_with_a_sentence(discreet, ratings, options, sentence):
    given = ("federation", "simulate", ratings, "--model", "implicit-objective", "--epsilon", "8", *options)
    code, out, error = discreet(*given)
    one_sentence(code, out, error)
    assert sentence in error


def test_init_writes_a_folder_for_every_member(discreet, items, tmp_path):
    folder = tmp_path / "federation"
    given = ("federation", "init", folder, "--model", "implicit-objective", "--implicit", "--epsilon", "4")
    code, out, error = discreet(*given, "--parties", "a,b,c", "--items", items, "--json")
    assert code == 0, error
    assert sorted(path.name for path in folder.iterdir()) == [
        "a",
        "authority",
        "b",
        "c",
        "coordinator",
        "keeper",
    ]
    assert json.loads(out)["guarantee"]["epsilon"] == 4.0
    assert discreet(*given, "--parties", "a,b,c", "--items", items)[0] == 1


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (("--parties", "a,b,keeper"), "bad-member"),
        (("--parties", "a,b,c", "--keeper", "nowhere"), "bad-address"),
        (("--parties", "a,b"), "missing"),
    ],
)
def test_init_refuses_with_a_sentence(discreet, items, tmp_path, options, sentence):
    given = ("federation", "init", tmp_path / "f", "--model", "implicit-objective", "--implicit")
    code, out, error = discreet(*given, "--epsilon", "4", "--items", items, *options)
    one_sentence(code, out, error)
    assert sentence in error


def test_a_scale_is_agreed_on_before_anybody_looks(discreet, items, tmp_path):
    given = ("federation", "init", tmp_path / "f", "--model", "biases", "--epsilon", "4", "--items", items)
    code, out, error = discreet(*given, "--parties", "a,b,c")
    one_sentence(code, out, error)
    assert "--scale" in error


def test_folders_of_nobody_are_refused(discreet, ratings, tmp_path):
    for given in (
        ("federation", "run", tmp_path, "--out", tmp_path / "m"),
        ("keeper", "serve", tmp_path),
        ("party", "serve", tmp_path, "--data", ratings, "--ledger", tmp_path / "l"),
    ):
        code, out, error = discreet(*given)
        one_sentence(code, out, error)
        assert "not-an-agreement" in error
    assert not (tmp_path / "l").exists()


def test_a_year_is_agreed_on_and_its_members_declare_items(discreet, items, tmp_path):
    folder, more = tmp_path / "year", tmp_path / "more.txt"
    given = ("federation", "init", folder, "--parties", "a,b,c", "--items", items, "--implicit")
    code, out, error = discreet(*given, "--follow", "52", "--half-life", "7d", "--epsilon", "2", "--json")
    assert code == 0, error
    promise = json.loads(out)["guarantee"]
    assert promise["epsilon"] == 2.0 and "up to 52 releases" in promise["notes"][0]
    assert stated(promise)[Kind.PARTY, Fact.NOISE_SHARES] == {"parties": 2}
    more.write_text("60\n61\n")
    code, out, _ = discreet("federation", "declare", folder / "coordinator", more, "--json")
    assert code == 0 and json.loads(out) == {"declared": 2}
    one_sentence(*discreet("federation", "declare", folder / "a", more))


def test_a_followed_party_needs_parquet_and_a_name_before_anything_is_paid(discreet, items, tmp_path):
    folder, data, ledger = tmp_path / "year", tmp_path / "week.csv", tmp_path / "l.ledger"
    given = ("federation", "init", folder, "--parties", "a,b,c", "--items", items, "--implicit")
    assert discreet(*given, "--follow", "52", "--epsilon", "2")[0] == 0
    data.write_text("user,item\nann,1\n")
    given = ("party", "serve", folder / "a", "--data", data, "--ledger", ledger, "--yes", "--alone")
    rejected(discreet(*given, "--name", "shop"), "not-parquet", path=data)
    pl.read_csv(data).write_parquet(tmp_path / "week.parquet")
    given = ("party", "serve", folder / "a", "--data", tmp_path / "week.parquet", "--ledger", ledger)
    code, out, error = discreet(*given, "--yes", "--alone")
    one_sentence(code, out, error)
    assert "--name" in error
    assert not Ledger.open(ledger).entries() and not (folder / "a" / "party.follow").exists()


def test_a_simulated_year_writes_an_ordinary_model(discreet, tmp_path):
    data, model, ledger = tmp_path / "r.csv", tmp_path / "m", tmp_path / "l.ledger"
    rows = [f"u{k % 9},i{k % 5},2026-0{1 + k % 3}-1{k % 9}" for k in range(45)]
    data.write_text("user,item,time\n" + "\n".join(rows) + "\n")
    given = (
        "federation",
        "simulate",
        data,
        "--parties",
        "3",
        "--implicit",
        "--epsilon",
        "4",
        "--follow",
        "3",
    )
    given += ("--year", "90d", "--out", model, "--ledger", ledger, "--json")
    code, out, error = discreet(*given, "--from", "2026-01-01")
    assert code == 0, error
    told = json.loads(out)
    assert told["release"] == 3 and told["guarantee"]["notes"][0] == "release 3 of 3"
    assert "4" in discreet("budget", ledger)[1]
    history = tmp_path / "h.csv"
    history.write_text("item\ni1\n")
    assert discreet("recommend", model, "--history", history, "-k", "2")[0] == 0
    code, out, error = discreet(*given)
    one_sentence(code, out, error)
    assert "public date" in error
    code, out, error = discreet(*given, "--from", "2026-01-01", "--max-per-user", "3", "--force")
    one_sentence(code, out, error)
    assert "--max-per-user" in error


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (("--half-life", "7d"), "option-needs"),
        (("--follow", "12", "--model", "popularity"), "options-conflict"),
        (("--follow", "12", "--max-per-user", "9"), "--max-per-user"),
        (("--follow", "0"), "releases"),
        (("--follow", "12", "--half-life", "soon"), "--half-life"),
    ],
)
def test_what_is_no_year_is_refused(discreet, items, tmp_path, options, sentence):
    given = ("federation", "init", tmp_path / "f", "--parties", "a,b,c", "--items", items, "--implicit")
    code, out, error = discreet(*given, "--epsilon", "4", *options)
    assert code != 0 and sentence in " ".join((out + error).split())
    assert not (tmp_path / "f").exists()


def test_a_half_life_without_times_is_refused_before_anything_is_paid(discreet, ratings, tmp_path):
    given = ("federation", "simulate", ratings, "--model", "popularity", "--epsilon", "8", "--parties", "4")
    given += (
        "--implicit",
        "--set",
        "half_life=7",
        "--ledger",
        tmp_path / "l.ledger",
        "--out",
        tmp_path / "m",
    )
    rejected(discreet(*given), "times-needed", setting="half_life")
    assert not (tmp_path / "l.ledger").exists()


def test_a_gaussian_account_counts_a_simulated_federation(discreet, ratings, tmp_path):
    ledger = tmp_path / "l.ledger"
    year = ("budget", ledger, "--name", "shop", "--epsilon", "5", "--delta", "1e-6", "--account", "gaussian")
    assert discreet(*year)[0] == 0
    given = ("federation", "simulate", ratings, "--model", "popularity", "--parties", "4", "--implicit")
    given += ("--ledger", ledger, "--name", "shop", "--delta", "1e-6")
    one_sentence(*discreet(*given, "--epsilon", "3"))
    given += ("--out", tmp_path / "m.discreet", "--force")
    code, out, error = discreet(*given, "--epsilon", "3")
    assert code == 0 and "'shop'" in out, error
    spent = Ledger.open(ledger).balance("shop").spent
    assert spent.epsilon == pytest.approx(3, rel=1e-3), "one Gaussian release, as a fit would be"
    one_sentence(*discreet(*given, "--epsilon", "4.9"))


def test_a_simulation_says_what_it_does_not_do(discreet, ratings, tmp_path, snapshot):
    given = ("federation", "simulate", ratings, "--model", "popularity", "--parties", "4", "--implicit")
    code, out, error = discreet(*given, "--epsilon", "3")
    assert code == 0, error
    snapshot(out)
    snapshot(discreet(*given, "--epsilon", "3", "--out", tmp_path / "m.discreet")[1])
    assert discreet(*given, "--epsilon", "3", "--evaluate")[0] == 0


def test_a_simulated_year_says_which_release_it_shows(discreet, tmp_path, snapshot):
    data = tmp_path / "r.csv"
    data.write_text("user,item,time\nann,a,2026-01-02\nbob,b,2026-02-03\ncarl,a,2026-02-05\n")
    given = ("federation", "simulate", data, "--parties", "3", "--implicit", "--epsilon", "4")
    code, out, error = discreet(*given, "--follow", "3", "--year", "90d", "--from", "2026-01-01")
    assert code == 0, error
    snapshot(out, numbers=False)


def test_a_simulated_year_takes_the_first_of_repeated_events_and_states_the_rest(
    discreet, tmp_path, snapshot
):
    data = tmp_path / "r.csv"
    data.write_text(
        "user,item,time\nann,a,2026-01-02\nann,a,2026-01-05\nbob,b,2026-02-03\ncarl,a,2026-02-05\n"
    )
    given = ("federation", "simulate", data, "--parties", "3", "--implicit", "--epsilon", "4")
    year = (*given, "--follow", "3", "--year", "90d")
    code, out, error = discreet(*year, "--from", "2026-02-01")
    assert code == 0, error
    snapshot(out, numbers=False)
    for wrong in ("2030-01-01", "2020-01-01"):
        paid = ("--ledger", tmp_path / "l.ledger", "--out", tmp_path / "m")
        answer = discreet(*year, "--from", wrong, *paid)
        rejected(answer, "empty-year", begins=wrong, first="2026-01", last="2026-02")
        assert not (tmp_path / "l.ledger").exists()
