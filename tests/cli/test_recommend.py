"""One person's own history in, a list out."""

import json
from pathlib import Path

import openpyxl
import pytest

from command_line import one_sentence, rejected
from discreet.cli.options.declared import reading_label
from discreet.cli.recommend import tied_at_the_end


def test_a_new_user_with_a_history_is_served(discreet, model, tmp_path):
    history = tmp_path / "new.csv"
    history.write_text("user,item,rating\nnobody-before,3,5\nnobody-before,7,1\n")
    code, out, _ = discreet("recommend", model, "--history", history, "-k", "3", "--json")
    assert code == 0 and len(json.loads(out)["recommendations"]) == 3


def test_a_history_needs_no_column_for_the_only_person_in_it(discreet, model, tmp_path):
    history = tmp_path / "me.csv"
    history.write_text("item,rating\n3,5\n7,1\n")
    assert discreet("recommend", model, "--history", history)[0] == 0
    history.write_text("item,rating\n3,5\nnever heard of,1\n")
    one_sentence(*discreet("recommend", model, "--history", history))
    assert discreet("recommend", model, "--history", history, "--ignore-unknown")[0] == 0


def test_a_history_is_told_what_recommend_itself_can_do(discreet, model, tmp_path):
    history = tmp_path / "me.csv"
    recommend = ("recommend", model, "--history", history)

    def told(content):
        history.write_text(content)
        answer = discreet(*recommend)
        one_sentence(*answer)
        assert not any(option in answer[2] for option in ("--duplicates", "--implicit", "declare"))
        return answer

    unknown = told("item,rating\n3,5\nnever heard of,1\n")
    rejected(unknown, "unknown-items", count=1, of=2)
    assert "--ignore-unknown" in unknown[2]
    rejected(told("item,rating\n3,9\n"), "off-scale", low=1.0, high=5.0)
    told("item,when\n3,today\n")
    told("item\n3\n")
    history.write_text("item,rating\n3,5\n3,1\n7,2\n")
    assert discreet(*recommend)[0] == 0
    one_sentence(*discreet(*recommend, "-k", "0"))


@pytest.mark.parametrize("content", ["item\n3\n7\n", "3\n7\n", '\ufeffmovieId\n"3"\n7\n'], ids=repr)
def test_a_history_of_choices_may_be_a_list(discreet, ratings, tmp_path, content):
    model, history = tmp_path / "p.discreet", tmp_path / "me.csv"
    assert discreet("fit", ratings, "--model", "popularity", "--epsilon", "1", "--out", model)[0] == 0
    history.write_text(content, encoding="utf8")
    code, shown, error = discreet("recommend", model, "--history", history, "-k", "1000", "--json")
    assert code == 0, error
    left = {row["item"] for row in json.loads(shown)["recommendations"]}
    history.write_text("user,item\nme,3\nme,7\n")
    shown = discreet("recommend", model, "--history", history, "-k", "1000", "--json")[1]
    assert left == {row["item"] for row in json.loads(shown)["recommendations"]} and not left & {3, 7}


def test_many_people_are_served_into_a_file(discreet, ratings, model, tmp_path):
    out, titles = tmp_path / "lists.csv", tmp_path / "titles.csv"
    titles.write_text("movieId,title,year\n" + "\n".join(f"{k},Film {k},19{k:02d}" for k in range(40)))
    many = ("recommend", model, "--histories", ratings, "--out", out, "-k", "3", "--titles", titles)
    code, shown, error = discreet(*many, "--json")
    assert code == 0 and json.loads(shown)["people"] == 150, error
    first = out.read_text().splitlines()[:2]
    assert first[0] == "user,rank,item,score,expected_stars,item_title,item_year" and "Film" in first[1]
    one_sentence(*discreet(*many))
    assert discreet(*many, "--force")[0] == 0
    victim = tmp_path / "notes.csv"
    victim.write_text("keep me")
    one_sentence(*discreet("recommend", model, "--histories", ratings, "--out", victim, "--force"))
    parquet = tmp_path / "lists.parquet"
    assert discreet("recommend", model, "--histories", ratings, "--out", parquet)[0] == 0 and parquet.exists()
    one_sentence(*discreet("recommend", model, "--histories", ratings))
    one_sentence(*discreet("recommend", model, "--histories", ratings, "--out", tmp_path / "lists.xls"))


def test_lists_are_limited_and_titled(discreet, ratings, model, tmp_path):
    among, exclude, titles = tmp_path / "among.txt", tmp_path / "exclude.txt", tmp_path / "titles.csv"
    among.write_text("item\n3\n4\n5\n")
    exclude.write_text("4\n")
    titles.write_text("id,title\n3,Three\n5,Five [b]\n")
    wanted = ("recommend", model, "--history", ratings, "--user", "3", "--include-seen", "--titles", titles)
    code, shown, error = discreet(*wanted, "--among", among, "--exclude", exclude, "--json")
    rows = json.loads(shown)["recommendations"]
    assert code == 0 and {row["item"] for row in rows} == {3, 5}, error
    assert {row["title"] for row in rows} == {"Three", "Five [b]"}
    code, shown, _ = discreet(*wanted, "--among", among)
    assert code == 0 and "Five [b]" in shown
    titles.write_text("id\n3\n")
    one_sentence(*discreet(*wanted))


def test_alike_items_and_reasons(discreet, ratings, tmp_path):
    model = tmp_path / "u.discreet"
    assert discreet("fit", ratings, "--epsilon", "inf", "--model", "als", "--out", model)[0] == 0
    code, shown, error = discreet("similar", model, "3", "-k", "4", "--json")
    assert code == 0 and len(json.loads(shown)["similar"]) == 4, error
    code, shown, _ = discreet("similar", model, "3", "5")
    shown = " ".join(shown.split())
    assert code == 0 and "Similar to 3:" in shown and "Similar to 5:" in shown and "unrelated" in shown
    one_sentence(*discreet("similar", model, "no such item"))
    why = ("explain", model, "3", "--history", ratings, "--user", "3")
    code, shown, error = discreet(*why, "--json")
    assert code == 0 and len(json.loads(shown)["reasons"]) == 12, error
    code, shown, _ = discreet(*why)
    assert code == 0 and "popularity" in shown and "lower half" in shown and "its lead" in shown
    code, shown, _ = discreet("explain", model, "--history", ratings, "--user", "3", "--json")
    assert code == 0 and json.loads(shown)["rank"] == 1
    one_sentence(*discreet("explain", model, "3"))


def test_similar_says_what_is_not_known(discreet, ratings, tmp_path):
    plain = tmp_path / "plain.discreet"
    assert discreet("fit", ratings, "--implicit", "--epsilon", "0.1", "--out", plain)[0] == 0
    assert discreet("similar", plain, "3")[0] == 0
    code, shown, _ = discreet("similar", plain, "3", "--json")
    found = json.loads(shown)
    assert (code, found["similar"]) == (0, []) and found["why"]
    several = json.loads(discreet("similar", plain, "3", "5", "--json")[1])
    assert several == {"similar": {"3": [], "5": []}, "why": {"3": found["why"], "5": found["why"]}}
    code, shown, _ = discreet("explain", plain, "--history", ratings, "--user", "3")
    assert code == 0 and "latent factors" not in shown


def test_without_a_history_the_list_is_that_of_a_newcomer(discreet, model, snapshot):
    code, shown, error = discreet("recommend", model, "-k", "3")
    assert code == 0, error
    snapshot(shown, numbers=False)


def test_a_list_of_equal_scores_says_that_its_order_has_no_meaning(discreet, ratings, tmp_path, snapshot):
    model, history = tmp_path / "m.discreet", tmp_path / "me.csv"
    history.write_text("item,rating\n3,5\n7,1\n")
    # So little budget that no direction is above the noise: every item is predicted as the user's own mean.
    fit = ("fit", ratings, "--model", "svd-poster", "--epsilon", "1e-6", "--out", model)
    assert discreet(*fit)[0] == 0
    assert json.loads(discreet("recommend", model, "--history", history, "--json")[1])["tied"] == 10
    snapshot(discreet("recommend", model, "--history", history)[1])


@pytest.mark.parametrize(
    ("scores", "tied"), [([], 0), ([1.0], 0), ([3.0, 2.0, 1.0], 0), ([3.0, 1.0, 1.0 + 1e-15], 2)]
)
def test_scores_that_equal_the_last_are_counted(scores, tied):
    assert tied_at_the_end(scores) == tied


def test_a_user_without_a_file_of_histories_is_refused(discreet, model):
    one_sentence(*discreet("recommend", model, "--user", "7"))


def test_a_history_that_is_missing_is_named(discreet, model, tmp_path):
    for verb in (["recommend"], ["model", "explain"]):
        answer = discreet(*verb, model, "--history", tmp_path / "gone.csv")
        rejected(answer, "no-history-file", path=tmp_path / "gone.csv")
    rejected(discreet("recommend", model, "7"), "option-needs", options=("7",))


def test_a_header_that_is_taken_for_an_item_is_named(discreet, ratings, tmp_path):
    model, history = tmp_path / "p.discreet", tmp_path / "me.csv"
    fit = ("fit", ratings, "--implicit", "--model", "popularity", "--epsilon", "1", "--out", model)
    assert discreet(*fit)[0] == 0
    history.write_text("clip_ref\n3\n7\n5\n")
    answer = discreet("recommend", model, "--history", history)
    rejected(answer, "header-or-unknown-item", column="clip_ref")
    asked = ("recommend", model, "--history", history, "-k", "2")
    assert discreet(*asked, "--columns", "item=clip_ref")[0] == 0
    assert discreet(*asked, "--ignore-unknown")[0] == 0
    # With other unknown items it is no header alone.
    history.write_text("clip_ref\n3\nno such\n")
    rejected(discreet(*asked), "unknown-items", count=2, of=3)


def test_the_time_of_the_request_is_stated(discreet, model, tmp_path):
    history = tmp_path / "me.csv"
    history.write_text("item,rating,time\n3,5,1700000000\n7,1,1700000060\n")
    for verb in ("recommend", "explain"):
        code, out, _ = discreet(verb, model, "--history", history, "--now", "2026-01-31", "--json")
        assert code == 0 and json.loads(out)
        one_sentence(*discreet(verb, model, "--history", history, "--now", "yesterday"))


def test_a_history_may_be_a_sheet(discreet, model, tmp_path):
    book = pytest.importorskip("openpyxl").Workbook()
    book.active.title = "mine"
    for row in (("item", "rating"), (3, 5), (7, 1)):
        book.active.append(row)
    book.save(tmp_path / "me.xlsx")
    plain = tmp_path / "me.csv"
    plain.write_text("item,rating\n3,5\n7,1\n")
    of_sheet = discreet("recommend", model, "--history", f"{tmp_path / 'me.xlsx'}::mine", "--json")
    assert of_sheet[0] == 0
    assert of_sheet == discreet("recommend", model, "--history", plain, "--json")
    code, _, told = discreet("recommend", model, "--history", f"{tmp_path / 'you.xlsx'}::mine")
    assert code and "[no-history-file]" in told and "::" not in told


def test_the_ending_of_lists_is_checked_before_histories_are_read(discreet, model, tmp_path):
    absent = tmp_path / "absent.csv"
    told = discreet("recommend", model, "--histories", absent, "--out", tmp_path / "lists.xlsx")[2]
    assert "[wrong-form]" in told
    # The twin: with a known ending the histories are what is missing.
    told = discreet("recommend", model, "--histories", absent, "--out", tmp_path / "lists.csv")[2]
    assert "[no-such-data]" in told


@pytest.mark.parametrize("address", ["postgresql://ann:secret@host", Path("postgresql://ann:secret@host")])
def test_no_password_is_shown_while_histories_are_read(address):
    assert "secret" not in reading_label(f"{address}::rows")
    # The twin: the name of a file is shown.
    assert "rows.csv" in reading_label("folder/rows.csv")


NAMED = "Guest,Wine,Score (1-10)\n"


@pytest.fixture
def wines(discreet, ratings, tmp_path):
    """Return a model of a table that was read with declared names of columns."""
    table, model = tmp_path / "tastings.tsv", tmp_path / "wines.discreet"
    rows = ratings.read_text().split("\n", 1)[1]
    table.write_text((NAMED + rows).replace(",", "\t"))
    names = "user=Guest,item=Wine,rating=Score (1-10)"
    learned = ("--model", "biases", "--epsilon", "1", "--out", model)
    code, _, told = discreet("fit", table, "--columns", names, *learned)
    assert code == 0, told
    return model


def test_a_history_of_another_form_is_read_by_the_names_of_the_schema(discreet, wines, tmp_path):
    usual, own = tmp_path / "usual.csv", tmp_path / "own.csv"
    usual.write_text("item,rating\n3,5\n7,1\n")
    # A usual name of items is next to the schema's.
    own.write_text("Wine,Score (1-10),Place\n3,5,Rome\n7,1,Pisa\n")
    expected, found = (discreet("recommend", wines, "--history", one, "--json") for one in (usual, own))
    assert found[0] == 0 and found[1] == expected[1], found[2]
    code, _, told = discreet("recommend", wines, "--history", own, "--columns", "item=Bottle", "--json")
    assert code != 0, told
    foreign = tmp_path / "foreign.csv"
    foreign.write_text("Bottle,Points\n3,5\n")
    rejected(discreet("recommend", wines, "--history", foreign), "header-unclear")


def test_advice_about_a_history_is_possible(discreet, wines, tmp_path):
    own, sheet = tmp_path / "own.csv", tmp_path / "own.xlsx"
    own.write_text("Wine,Score (1-10),Date\n3,5,01.03.2026\n")
    rejected(discreet("recommend", wines, "--history", own), "unclear-dates", why="none")
    named = "item=Wine,rating=Score (1-10),time=Date:day-first"
    assert discreet("recommend", wines, "--history", own, "--columns", named)[0] == 0
    own.write_text("Wine,Score (1-10),Date\n3,5,2026-03-01\n7,1,\n")
    answer = discreet("recommend", wines, "--history", own)
    rejected(answer, "bad-values", of_one_user=True)
    assert "skip_bad_lines" not in answer.error.template()
    book = openpyxl.Workbook()
    for row in (["My wines"], ["Wine", "Score (1-10)"], ["3", 5], ["7", 1]):
        book.active.append(row)
    book.save(sheet)
    answer = discreet("recommend", wines, "--history", sheet)
    rejected(answer, "header-not-found", of_one_user=True)
    assert "skip_rows" not in answer.error.template()
    book.active.delete_rows(1)
    book.save(sheet)
    assert discreet("recommend", wines, "--history", sheet)[0] == 0


def test_histories_of_another_form_are_read_by_the_names_of_the_schema(discreet, wines, ratings, tmp_path):
    many, lists = tmp_path / "many.csv", [tmp_path / "a.csv", tmp_path / "b.csv"]
    many.write_text(NAMED + ratings.read_text().split("\n", 1)[1])
    for source, out in zip((ratings, many), lists, strict=True):
        code, _, told = discreet("recommend", wines, source, "--all", "--out", out)
        assert code == 0, told
    assert len({out.read_text().split("\n", 1)[1] for out in lists}) == 1
