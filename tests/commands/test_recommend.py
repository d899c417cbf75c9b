"""One person's own history in, a list out."""

import json

import pytest

from command_line import one_sentence


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
        code, out, error = discreet(*recommend)
        one_sentence(code, out, error)
        assert not any(option in error for option in ("--duplicates", "--implicit", "declare"))
        return error

    assert "--ignore-unknown" in told("item,rating\n3,5\nnever heard of,1\n")
    assert "scale of the model, 1 to 5" in told("item,rating\n3,9\n")
    assert "learned from ratings" in told("item,when\n3,today\n")
    assert "learned from ratings" in told("item\n3\n")
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
