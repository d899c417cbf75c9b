"""The next release starts from the last one, keeps its catalog, and says what is new."""

import json

import discreet as package
from command_line import one_sentence


def test_the_next_release_starts_from_the_last(discreet, ratings, tmp_path):
    first, second, listed = tmp_path / "one.discreet", tmp_path / "two.discreet", tmp_path / "items.txt"
    assert discreet("fit", ratings, "--epsilon", "2", "--out", first)[0] == 0
    code, shown, _ = discreet("refit", first, ratings, "--out", second, "--json")
    assert code == 0 and json.loads(shown)["guarantee"]["epsilon"] == 2.0
    one, two = package.load(first), package.load(second)
    assert one.catalog == two.catalog and two.parameters["prior"] == str(first)
    assert any("an earlier release" in text for text in two.guarantee.assumes)
    # What was taken from the data once is not made public by being taken from a model.
    assert one.guarantee.conditions == two.guarantee.conditions == ("the catalog", "the scale")
    listed.write_text("\n".join([str(item) for item in one.catalog.ids.tolist()[1:]] + ["1000"]) + "\n")
    grown = ("refit", first, ratings, "--out", second, "--force", "--items", listed, "--epsilon", "1")
    code, _, error = discreet(*grown)
    told = " ".join(error.split())
    assert code == 0 and "1 items are new" in told and "1 items of the last model" in told
    grown_model = package.load(second)
    assert len(grown_model.catalog) == len(one.catalog) + 1 and grown_model.guarantee.epsilon == 1.0
    assert grown_model.catalog.ids.tolist()[:-1] == one.catalog.ids.tolist()


def test_what_cannot_be_refitted_is_one_sentence(discreet, ratings, tmp_path):
    bar, out, other = tmp_path / "bar.discreet", tmp_path / "out.discreet", tmp_path / "other.csv"
    assert discreet("fit", ratings, "--model", "biases", "--epsilon", "1", "--out", bar)[0] == 0
    one_sentence(*discreet("refit", bar, ratings, "--out", out))
    first = tmp_path / "one.discreet"
    assert discreet("fit", ratings, "--epsilon", "2", "--out", first)[0] == 0
    other.write_text("user,item,rating\n1,unheard of,5\n2,new,1\n")
    code, shown, error = discreet("refit", first, other, "--out", out)
    one_sentence(code, shown, error)
    assert "--drop-unknown" in error
    one_sentence(*discreet("refit", first, ratings, "--out", first, "--force"))
    one_sentence(*discreet("refit", tmp_path / "nothing.discreet", ratings, "--out", out))
    assert not out.exists()


def test_a_dry_run_of_a_refit_pays_nothing(discreet, ratings, tmp_path):
    first, out, ledger = tmp_path / "one.discreet", tmp_path / "out.discreet", tmp_path / "y.ledger"
    assert discreet("fit", ratings, "--epsilon", "2", "--out", first)[0] == 0
    code, shown, _ = discreet("refit", first, ratings, "--out", out, "--ledger", ledger, "--dry-run")
    assert code == 0 and "Nothing was learned" in shown and not out.exists()
