"""Titles are given once, kept in the model as public metadata, and shown wherever items are."""

import json
import zipfile

import pytest

import discreet as library
from command_line import one_sentence
from discreet.data.item_tables import PublicTable, item_frame
from discreet.testing import refuses


@pytest.fixture
def titled(discreet, ratings, tmp_path):
    titles, out = tmp_path / "films.csv", tmp_path / "titled.discreet"
    titles.write_text(
        "movieId,title,year\n" + "".join(f"{n},Film {n % 7},{1990 + n}\n" for n in range(1, 15))
    )
    als = ("--model", "als", "--epsilon", "inf")
    code, _, error = discreet("fit", ratings, *als, "--out", out, "--titles", titles)
    assert code == 0, error
    return out


@pytest.fixture
def history(tmp_path):
    path = tmp_path / "me.csv"
    path.write_text("item,rating\n3,5\n7,1\n")
    return path


def test_recommend_similar_and_explain_show_them(discreet, titled, history, tmp_path):
    rows = json.loads(discreet("recommend", titled, "--history", history, "-k", "100", "--json")[1])
    shown = {row["item"]: row for row in rows["recommendations"]}
    assert shown[4]["title"] == "Film 4" and shown[4]["year"] == "1994" and shown[15]["title"] == ""
    assert "Film 4" in discreet("recommend", titled, "--history", history, "-k", "100")[1]
    code, out, _ = discreet("explain", titled, "4", "--history", history, "--json")
    assert {row["title"] for row in json.loads(out)["reasons"]} == {"Film 3", "Film 0"}, code
    alike = json.loads(discreet("similar", titled, "4", "-k", "100", "--json")[1])
    assert {row["title"] for row in alike["similar"] if row["item"] == 5} == {"Film 5"}
    lists = tmp_path / "lists.csv"
    many = tmp_path / "many.csv"
    many.write_text("user,item,rating\nann,3,5\nbob,7,1\n")
    assert discreet("recommend", titled, "--histories", many, "--out", lists, "-k", "100")[0] == 0
    assert lists.read_text().startswith("user,rank,item,score,expected_stars,item_title,item_year")


def test_the_label_calls_them_public_metadata(discreet, titled, model, snapshot):
    label = json.loads(discreet("label", titled, "--json")[1])
    assert label["public"] == ["title", "year"]
    snapshot("\n".join(f"{part}: {origin}" for part, origin in label["provenance"].items()))
    assert "public metadata" in discreet("label", titled, "--full")[1]
    plain = json.loads(discreet("label", model, "--json")[1])
    assert plain["public"] == []


def test_a_table_that_cannot_be_used_is_refused_before_anything_is_paid(discreet, ratings, tmp_path):
    out, ledger, titles = tmp_path / "m.discreet", tmp_path / "l.ledger", tmp_path / "t.csv"
    wide = "id," + ",".join(f"c{n}" for n in range(40)) + "\n3" + ",x" * 40 + "\n"
    for content in ("movieId,title\nnobody,Nothing\n", "movieId\n3\n", wide):
        titles.write_text(content)
        one_sentence(
            *discreet("fit", ratings, "--epsilon", "1", "--out", out, "--ledger", ledger, "--titles", titles)
        )
        assert not out.exists()
        if ledger.exists():
            with library.Ledger.open(ledger) as book:
                assert not book.datasets()


def test_they_follow_the_catalog_and_survive_saving(titled, tmp_path):
    model = library.load(titled)
    model.save(tmp_path / "again.discreet")
    assert (tmp_path / "again.discreet").read_bytes() == titled.read_bytes()
    grown = tmp_path / "features.csv"
    grown.write_text("id,kind\n" + "".join(f"{n},{'ab'[n % 2]}\n" for n in [*range(1, 15), 99]))
    more = model.add_items(grown)
    assert more.titles([99, 4]) == {99: {"title": "", "year": ""}, 4: {"title": "Film 4", "year": "1994"}}
    assert library.load(titled).titles([]) == {}


@pytest.mark.few(2)
@pytest.mark.parametrize("names", [["title"], ["title", "title"], ["title", 5], "ab", None], ids=repr)
def test_a_file_whose_columns_do_not_fit_is_refused(titled, tmp_path, names):
    from discreet.models import storage

    with zipfile.ZipFile(titled) as archive:
        label, arrays = json.loads(archive.read("label.json")), archive.read("arrays.npz")
    label["public"] = names
    del label["digest"]
    label["digest"] = storage._digest(label, arrays)
    bad = tmp_path / "bad.discreet"
    with zipfile.ZipFile(bad, "w") as archive:
        archive.writestr("label.json", json.dumps(label))
        archive.writestr("arrays.npz", arrays)
    with refuses("other-version"):
        library.load(bad)


@pytest.mark.parametrize("mark", [",", ";", "\t"])
def test_columns_may_be_separated_by_any_usual_mark(tmp_path, mark):
    path = tmp_path / "films.csv"
    path.write_text(
        "\n".join(mark.join(row) for row in (("id", "title"), ("3", "Tea & toast"), ("7", "Dune")))
    )
    table = PublicTable.read(path)
    assert table.ids == ["3", "7"] and table.texts["title"].to_list() == ["Tea & toast", "Dune"]
    assert item_frame(path).columns == ["id", "title"]


def test_a_table_of_one_column_says_what_belongs_between(tmp_path):
    path = tmp_path / "films.csv"
    path.write_text("id title\n3 Dune\n")
    with refuses("public-table-wrong", why="columns"):
        PublicTable.read(path)


def test_a_table_that_is_not_there_is_said_to_be_missing(discreet, titled, history, tmp_path):
    code, shown, error = discreet("recommend", titled, "--history", history, "--titles", tmp_path / "nix.csv")
    one_sentence(code, shown, error)
    assert "nix.csv" in error
    with refuses("no-files"):
        item_frame(tmp_path / "nix.csv")


def test_the_encoding_of_the_data_is_that_of_titles(tmp_path):
    path = tmp_path / "films.csv"
    path.write_bytes("id,title\n3,Dvořák\n".encode("iso8859-2"))
    assert PublicTable.read(path, "iso8859-2").texts["title"].to_list() == ["Dvořák"]
    # A table in UTF-8 stays what it is.
    path.write_text("id,title\n3,Dvořák\n", encoding="utf-8")
    assert PublicTable.read(path, "iso8859-2").texts["title"].to_list() == ["Dvořák"]
