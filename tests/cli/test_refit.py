"""The next release starts from the last one, keeps its catalog, and says what is new."""

import json
import math

import pytest

import discreet as package
from assumption_examples import conditions, stated
from command_line import one_sentence
from discreet.privacy.guarantee import Fact, Kind


def test_the_next_release_starts_from_the_last(discreet, ratings, tmp_path, snapshot):
    first, second, listed = tmp_path / "one.discreet", tmp_path / "two.discreet", tmp_path / "items.txt"
    assert discreet("fit", ratings, "--epsilon", "2", "--out", first)[0] == 0
    code, shown, _ = discreet("refit", first, ratings, "--out", second, "--json")
    assert code == 0 and json.loads(shown)["guarantee"]["epsilon"] == 2.0
    one, two = package.load(first), package.load(second)
    assert one.catalog == two.catalog and two.parameters["prior"] == str(first)
    assert stated(two.guarantee)[Kind.EARLIER, Fact.PRIOR]["epsilon"] == 2.0
    # What was taken from the data once is not made public by being taken from a model.
    assert one.guarantee.conditions == two.guarantee.conditions
    assert conditions(two.guarantee) == [Fact.CATALOG, Fact.SCALE, Fact.LAYOUT]
    listed.write_text("\n".join([str(item) for item in one.catalog.ids.tolist()[1:]] + ["1000"]) + "\n")
    grown = ("refit", first, ratings, "--out", second, "--force", "--items", listed, "--epsilon", "1")
    code, _, error = discreet(*grown)
    assert code == 0
    snapshot(error)
    grown_model = package.load(second)
    assert len(grown_model.catalog) == len(one.catalog) + 1 and grown_model.guarantee.epsilon == 1.0
    assert grown_model.catalog.ids.tolist()[:-1] == one.catalog.ids.tolist()


@pytest.mark.few(2)
@pytest.mark.parametrize(
    "how",
    [("--model", "biases"), ("--implicit",), ("--for", "lists"), ("--model", "popularity", "--implicit")],
)
def test_every_model_is_fitted_again_under_the_same_account(discreet, ratings, tmp_path, how):
    first, second, ledger = (tmp_path / name for name in ("one.discreet", "two.discreet", "l.ledger"))
    account = ("--ledger", ledger, "--name", "shop")
    assert discreet("fit", ratings, *how, "--epsilon", "1", "--out", first, *account)[0] == 0
    code, _, error = discreet("refit", first, ratings, "--out", second, *account)
    assert code == 0 and "new fit" in error, error
    one, two = package.load(first), package.load(second)
    assert one.name == two.name and one.parameters == two.parameters and one.catalog == two.catalog
    with package.Ledger.open(ledger, read_only=True) as book:
        assert [entry.guarantee.epsilon for entry in book.entries("shop")] == [1.0, 1.0]


def test_a_refit_spends_from_the_account_of_the_last_model(discreet, ratings, tmp_path):
    first, second, ledger = (tmp_path / name for name in ("one.discreet", "two.discreet", "l.ledger"))
    march = tmp_path / "march.csv"
    march.write_bytes(ratings.read_bytes())
    fit = ("fit", ratings, "--model", "biases", "--epsilon", "1", "--out", first, "--ledger", ledger)
    assert discreet(*fit, "--name", "shop")[0] == 0
    assert discreet("refit", first, march, "--out", second, "--ledger", ledger)[0] == 0
    with package.Ledger.open(ledger, read_only=True) as book:
        assert [entry.dataset for entry in book.entries()] == ["shop", "shop"]
    # A name that is given comes first.
    assert (
        discreet("refit", first, march, "--out", second, "--force", "--ledger", ledger, "--name", "b")[0] == 0
    )
    with package.Ledger.open(ledger, read_only=True) as book:
        assert [entry.dataset for entry in book.entries()] == ["shop", "shop", "b"]


def test_what_cannot_be_refitted_is_one_sentence(discreet, ratings, tmp_path):
    out, other = tmp_path / "out.discreet", tmp_path / "other.csv"
    first = tmp_path / "one.discreet"
    assert discreet("fit", ratings, "--epsilon", "2", "--out", first)[0] == 0
    other.write_text("user,item,rating\n1,unheard of,5\n2,new,1\n")
    code, shown, error = discreet("refit", first, other, "--out", out)
    one_sentence(code, shown, error)
    assert "--drop-unknown" in error
    assert "--items" in error
    one_sentence(*discreet("refit", first, ratings, "--out", first, "--force"))
    one_sentence(*discreet("refit", tmp_path / "nothing.discreet", ratings, "--out", out))
    assert not out.exists()


def test_a_refit_keeps_what_was_declared_and_says_what_it_paid(discreet, ratings, tmp_path):
    first, second, listed = tmp_path / "one.discreet", tmp_path / "two.discreet", tmp_path / "items.txt"
    items = sorted({line.split(",")[1] for line in ratings.read_text().splitlines()[1:]}, key=int)
    listed.write_text("\n".join(items) + "\n")
    declared = ("--scale", "1,5,1", "--items", listed, "--max-per-user", "6", "--people", "40")
    assert discreet("fit", ratings, "--epsilon", "2", "--out", first, *declared)[0] == 0
    code, shown, error = discreet("refit", first, ratings, "--out", second, "--ledger", tmp_path / "y.ledger")
    one, two = package.load(first), package.load(second)
    assert code == 0 and "--schema" in error and one.facts == two.facts
    assert conditions(two.guarantee) == [Fact.LAYOUT]
    assert f"Recorded for {tmp_path.name!r} in" in " ".join(shown.split())
    assert package.load(second).facts.n_users == 40
    again = ("refit", first, ratings, "--out", second, "--force", "--scale", "0,10", "--max-per-user", "3")
    assert discreet(*again)[0] == 0
    assert (package.load(second).facts.high, package.load(second).facts.max_per_user) == (10.0, 3)


def test_a_refit_keeps_a_chosen_scale_and_catalog(discreet, tmp_path):
    """What was chosen with noise is a release, so the next one takes it as known, and clips as before."""
    first, second, data = tmp_path / "one.discreet", tmp_path / "two.discreet", tmp_path / "r.csv"
    rows = [f"{user},{item},{1 + (user + item) % 5}" for user in range(400) for item in range(6)]
    data.write_text("\n".join(["user,item,rating", *rows]) + "\n")
    fit = ("fit", data, "--epsilon", "8", "--private-catalog", "--catalog-share", "0.5", "--out", first)
    assert discreet(*fit)[0] == 0
    data.write_text("\n".join(["user,item,rating", *rows, "500,1,1000"]) + "\n")
    code, _, error = discreet("refit", first, data, "--out", second)
    one, two = package.load(first), package.load(second)
    assert code == 0, error
    assert (two.facts.low, two.facts.high) == (one.facts.low, one.facts.high) == (1.0, 5.0)
    assert conditions(two.guarantee) == [Fact.LAYOUT] and two.facts.from_file == one.facts.from_file


@pytest.mark.few(2)
@pytest.mark.parametrize("kind", ["als", "no privacy", "another promise", "simulated"])
def test_no_release_starts_from_a_model_that_hides_nobody(discreet, ratings, tmp_path, kind):
    data, first, out = package.read(ratings), tmp_path / "one.discreet", tmp_path / "two.discreet"
    last = {
        "als": lambda: package.Als().fit(data),
        "no privacy": lambda: package.UserFactorization(epsilon=math.inf).fit(data),
        "another promise": lambda: package.LocalChannel(epsilon=1.0).fit(data),
        "simulated": lambda: package.UserFactorization(epsilon=1.0).fit(
            data, random=package.PrivacyRandom.simulate(0)
        ),
    }[kind]()
    last.save(first)
    fit = ("fit", ratings, "--epsilon", "0.1", "--set", f"prior={first}", "--ledger", tmp_path / "y.ledger")
    if kind == "simulated":
        assert discreet(*fit, "--out", out)[0] == 0
        promise = package.load(out).guarantee
        assert not promise.is_private and promise.simulated
        assert stated(promise)[Kind.EARLIER, Fact.PRIOR]["simulated"]
        return
    one_sentence(*discreet(*fit, "--out", out))
    one_sentence(*discreet("evaluate", ratings, *fit[2:], "--metric", "rmse", "--private"))
    assert not (tmp_path / "y.ledger").exists() and not out.exists()
    if kind == "no privacy":
        one_sentence(*discreet("refit", first, ratings, "--epsilon", "0.1", "--out", out))


def test_a_dry_run_of_a_refit_pays_nothing(discreet, ratings, tmp_path, snapshot):
    first, out, ledger = tmp_path / "one.discreet", tmp_path / "out.discreet", tmp_path / "y.ledger"
    assert discreet("fit", ratings, "--epsilon", "2", "--out", first)[0] == 0
    code, shown, _ = discreet("refit", first, ratings, "--out", out, "--ledger", ledger, "--dry-run")
    assert code == 0 and not out.exists()
    snapshot(shown)


def test_new_items_get_titles_and_old_items_need_no_second_listing(discreet, ratings, tmp_path):
    first, second, new, titles = (tmp_path / name for name in ("one", "two", "new.txt", "titles.csv"))
    fit = ("fit", ratings, "--model", "popularity", "--implicit", "--epsilon", "1", "--out", first)
    assert discreet(*fit)[0] == 0
    new.write_text("1000\n")
    ids = package.load(first).catalog.ids.tolist()
    titles.write_text("item,title\n" + "".join(f"{item},Item {item}\n" for item in [*ids, 1000]))
    refit = ("refit", first, ratings, "--out", second, "--items", new)
    code, out, error = discreet(*refit, "--titles", titles, "--json")
    assert code == 0, error
    (news,) = json.loads(out)["news"]
    assert "1 item " in news
    assert package.load(second).public["title"][-1] == "Item 1000"
    # The twin: without the table, a new item has no title.
    assert discreet(*refit, "--force")[0] == 0
    assert not package.load(second).public
    code, _, error = discreet(*refit[:3], "--out", titles, "--force", "--titles", titles)
    assert code == 1 and "output-is-input" in error and titles.read_text().startswith("item,title")
