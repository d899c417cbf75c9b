"""The command line as a user meets it: output, one JSON object, exit codes, one sentence for bad input."""

import gzip
import json
import os
import stat
import subprocess
import sys

import pytest

from discreet import cli
from toy import toy_interactions


@pytest.fixture
def discreet(capsys, monkeypatch):
    def call(*arguments):
        monkeypatch.setattr(sys, "argv", ["discreet", *map(str, arguments)])
        try:
            cli.main()
            code = 0
        except SystemExit as stop:
            code = stop.code or 0
        shown = capsys.readouterr()
        return code, shown.out, shown.err

    return call


@pytest.fixture
def ratings(tmp_path):
    data = toy_interactions(seed=2)
    lines = ["userId,movieId,rating"]
    lines += [f"{u},{i},{v:g}" for u, i, v in zip(data.rows(), data.items, data.values, strict=True)]
    path = tmp_path / "ratings.csv"
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.fixture
def model(discreet, ratings, tmp_path):
    path = tmp_path / "toy.discreet"
    code, _, error = discreet("fit", ratings, "--model", "biases", "--epsilon", "1", "--out", path)
    assert code == 0, error
    return path


def one_sentence(code, out, error):
    assert code == 1
    assert out == ""
    assert "Traceback" not in error and error.startswith("discreet:")
    assert error.count("\n") == 1 and error.rstrip().endswith((".", ")"))


def test_fit_label_recommend_and_budget(discreet, ratings, tmp_path):
    model, ledger = tmp_path / "m.discreet", tmp_path / "l.ledger"
    code, out, _ = discreet(
        "fit", ratings, "--model", "biases", "--epsilon", "1", "--out", model, "--ledger", ledger, "--json"
    )
    assert code == 0
    assert json.loads(out)["guarantee"]["epsilon"] == 1.0
    code, out, _ = discreet("label", model)
    assert code == 0 and "proofs/biases.md" in out and "item_bias" in out
    code, out, _ = discreet("label", model, "--json")
    assert json.loads(out)["guarantee"]["unit"] == "user"
    code, out, _ = discreet("recommend", model, "--history", ratings, "--user", "3", "-k", "4", "--json")
    assert code == 0 and len(json.loads(out)["recommendations"]) == 4
    code, out, _ = discreet("budget", ledger, "--json")
    assert code == 0 and "ratings" in out
    code, out, _ = discreet("budget", ledger)
    assert code == 0 and "biases" in out


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


def test_a_budget_is_set_kept_and_raised_with_a_reason_only(discreet, ratings, tmp_path):
    ledger, out = tmp_path / "shop.ledger", tmp_path / "m.discreet"
    set_budget = ("budget", ledger, "--name", "shop", "--epsilon", "1.5", "--delta", "1e-5")
    assert discreet(*set_budget)[0] == 0
    arguments = ("fit", ratings, "--model", "biases", "--out", out, "--ledger", ledger, "--name", "shop")
    code, shown, _ = discreet(*arguments, "--epsilon", "1")
    assert code == 0 and "Paid as 'shop'" in " ".join(shown.split())
    one_sentence(*discreet(*arguments, "--epsilon", "1", "--force"))
    one_sentence(*discreet("budget", ledger, "--name", "shop", "--epsilon", "3"))
    assert discreet("budget", ledger, "--name", "shop", "--epsilon", "3", "--reason", "approved")[0] == 0
    assert discreet(*arguments, "--epsilon", "1", "--force")[0] == 0
    one_sentence(*discreet("budget", ledger, "--epsilon", "3"))


def test_a_budget_counts_what_a_model_promises(discreet, ratings, tmp_path):
    ledger, out = tmp_path / "shop.ledger", tmp_path / "m.discreet"
    local = ("fit", ratings, "--model", "local-channel", "--epsilon", "1", "--out", out, "--ledger", ledger)
    assert discreet("budget", ledger, "--name", "people", "--epsilon", "2")[0] == 0
    code, shown, error = discreet(*local, "--name", "people")
    one_sentence(code, shown, error)
    assert "--for" in error
    assert discreet("budget", ledger, "--name", "shop", "--epsilon", "2", "--for", "local-channel")[0] == 0
    assert discreet(*local, "--name", "shop")[0] == 0
    again = ("budget", ledger, "--name", "shop", "--epsilon", "3", "--reason", "approved", "--json")
    code, shown, _ = discreet(*again)
    assert code == 0 and json.loads(shown)["datasets"][0]["budgets"][-1]["guarantee"]["trust"] == "local"
    one_sentence(*discreet("budget", ledger, "--name", "x", "--epsilon", "2", "--for", "als"))
    one_sentence(*discreet("budget", ledger, "--name", "x", "--epsilon", "2", "--for", "oracle"))


def test_a_budget_is_shown_for_one_name_and_set_with_epsilon_only(discreet, tmp_path):
    ledger = tmp_path / "shop.ledger"
    for name in ("shop", "library"):
        assert discreet("budget", ledger, "--name", name, "--epsilon", "2")[0] == 0
    code, shown, _ = discreet("budget", ledger, "--name", "shop", "--json")
    assert code == 0 and [row["dataset"] for row in json.loads(shown)["datasets"]] == ["shop"]
    code, shown, _ = discreet("budget", ledger, "--name", "shop")
    assert code == 0 and "library" not in shown
    code, shown, error = discreet("budget", ledger, "--name", "shpo")
    one_sentence(code, shown, error)
    assert "'library', 'shop'" in error
    for ignored in (("--delta", "1e-6"), ("--reason", "why"), ("--for", "biases")):
        one_sentence(*discreet("budget", ledger, "--name", "shop", *ignored))
    code, shown, error = discreet("budget", ledger, "--name", "shop", "--epsilon", "3")
    one_sentence(code, shown, error)
    assert "--reason" in error


def test_paying_beside_the_budget_is_remarked_on(discreet, ratings, tmp_path):
    ledger = tmp_path / "shop.ledger"
    assert discreet("budget", ledger, "--name", "shop", "--epsilon", "3")[0] == 0
    arguments = ("fit", ratings, "--model", "biases", "--epsilon", "1", "--ledger", ledger, "--json", "--out")
    code, shown, error = discreet(*arguments, tmp_path / "a.discreet")
    assert code == 0 and json.loads(shown)["name"] == tmp_path.name
    assert repr(tmp_path.name) in error and "'shop'" in error and error.count("\n") == 1
    assert discreet(*arguments, tmp_path / "b.discreet", "--name", "shop")[2] == ""


def test_only_the_word_inf_is_infinite(discreet, ratings, tmp_path):
    out = tmp_path / "m.discreet"
    arguments = ("fit", ratings, "--model", "biases", "--out", out, "--epsilon")
    code, shown, error = discreet(*arguments, "1e400")
    assert code == 2 and shown == "" and "too large" in error and not out.exists()
    pairs = ("compare", ratings, "--models", "biases", "--out", tmp_path / "page.html", "--epsilons")
    assert discreet(*pairs, "1,1e400")[0] == 2
    assert discreet(*arguments, "inf")[0] == 0


def test_a_delta_that_promises_nothing_is_remarked_on(discreet, ratings, tmp_path):
    arguments = ("fit", ratings, "--model", "biases", "--epsilon", "1", "--force", "--out", tmp_path / "m")
    code, _, error = discreet(*arguments, "--delta", "0.5")
    assert code == 0 and "delta=0.5 is above 0.001" in error and error.count("\n") == 1
    assert "1/200" in discreet(*arguments, "--delta", "0.006", "--people", "200")[2]
    assert discreet(*arguments, "--delta", "0.004", "--people", "200")[2] == ""
    assert discreet(*arguments)[2] == ""


def test_declared_facts_are_not_taken_from_the_file(discreet, ratings, tmp_path):
    items = tmp_path / "items.txt"
    items.write_text("\n".join(map(str, range(60))), encoding="utf-8-sig")
    declared = ("--scale", "1,5,1", "--items", items, "--people", "200")
    out = tmp_path / "m.discreet"
    code, shown, error = discreet(
        "fit", ratings, "--model", "biases", "--epsilon", "1", "--out", out, *declared, "--json"
    )
    assert code == 0, error
    assumed = json.loads(shown)["guarantee"]["assumes"]
    assert any("60 items" in line for line in assumed) and not any("file" in line for line in assumed)


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
    code, shown, error = discreet("fit", clicks, *either, "--force", "--model", "biases")
    one_sentence(code, shown, error)
    assert "learns from ratings" in error
    twice = tmp_path / "twice.csv"
    twice.write_text("user,item,rating\n1,1,3\n1,1,4\n2,2,2\n2,1,5\n")
    arguments = ("--model", "biases", "--epsilon", "1", "--out", tmp_path / "b.discreet")
    one_sentence(*discreet("fit", twice, *arguments))
    assert discreet("fit", twice, *arguments, "--duplicates", "last")[0] == 0


def test_messages_speak_of_options(discreet, ratings, tmp_path):
    arguments = ("fit", ratings, "--epsilon", "1", "--out", tmp_path / "m.discreet", "--model")
    for option in ("--people", "--max-per-user"):
        code, shown, error = discreet(*arguments, "biases", option, "0")
        one_sentence(code, shown, error)
        assert f"{option}=0" in error
    assert "a whole number" in discreet(*arguments, "frank-wolfe", "--set", "rounds=few")[2]
    error = discreet(*arguments, "biases", "--columns", "user=userId,item=userId")[2]
    assert "--columns" in error and "{" not in error
    assert discreet(*arguments, "biases", "--scale", "5,1")[0] == 2
    assert "load(" not in discreet("datasets", "get", "discreet-demo")[2]
    code, shown, _ = discreet(*arguments, "biases", "--explain")
    assert code == 0 and "decides nothing" in shown


def test_prints_its_version(discreet):
    code, out, _ = discreet("--version")
    assert code == 0 and out.startswith("discreet ")


def test_evaluate_prints_one_object_with_the_agreed_names(discreet, ratings):
    arguments = ("evaluate", ratings, "--model", "biases", "--epsilon", "2", "--repeat", "2", "--json")
    code, out, _ = discreet(*arguments, "--metric", "rmse,mae")
    found = json.loads(out)
    assert code == 0 and out.count("\n") == 1
    assert set(found) >= {"model", "parameters", "data", "guarantee", "metrics", "seconds", "peak_mb"}
    assert set(found["metrics"]) == {"rmse", "mae"}
    assert set(found["metrics"]["rmse"]) >= {"mean", "std", "runs"} and found["metrics"]["rmse"]["runs"] == 2
    assert set(found["data"]) == {"users", "items", "ratings"} and set(found["seconds"]) == {"fit", "predict"}
    _, again, _ = discreet(*arguments, "--metric", "rmse,mae")
    assert json.loads(again)["metrics"] == found["metrics"]
    code, out, _ = discreet("evaluate", ratings, "--model", "biases", "--epsilon", "2")
    assert code == 0 and "rmse" in out and "SIMULATED" in out


def test_lists_models_and_datasets(discreet):
    code, out, _ = discreet("models", "--json")
    assert code == 0 and {"biases", "popularity"} <= {row["name"] for row in json.loads(out)["models"]}
    code, out, _ = discreet("datasets", "--json")
    assert code == 0 and "movielens-1m" in {row["name"] for row in json.loads(out)["datasets"]}
    assert discreet("models")[0] == discreet("datasets")[0] == 0


def test_demo_tells_the_whole_story(discreet):
    code, out, _ = discreet("demo", "--json")
    found = json.loads(out)
    assert code == 0
    assert found["guarantee"]["simulated"] is False and len(found["recommendations"]) == 10
    rmse = {row["model"]: row["metrics"].get("rmse") for row in found["comparison"]}
    assert rmse["als"] < rmse["biases"] < rmse["own mean of each person"]


BAD_FILES = {
    "empty": "",
    "header only": "user,item,rating\n",
    "missing column": "user,rating\n1,2\n2,3\n",
    "not a number": "user,item,rating\n1,1,NaN\n2,1,3\n",
    "text": "user,item,rating\n1,1,good\n2,1,3\n",
    "duplicate pair": "user,item,rating\n1,1,3\n1,1,4\n2,2,2\n",
    "one user": "user,item,rating\n1,1,3\n1,2,4\n",
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


def test_unknown_names_are_one_sentence(discreet, ratings, model, tmp_path):
    one_sentence(*discreet("fit", ratings, "--model", "oracle", "--epsilon", "1", "--out", tmp_path / "x"))
    one_sentence(*discreet("fit", tmp_path / "none.csv", "--model", "biases", "--epsilon", "1", "--out", "x"))
    one_sentence(*discreet("recommend", model, "--history", ratings, "--user", "no such user"))
    one_sentence(*discreet("recommend", model, "--history", ratings))
    stranger = tmp_path / "stranger.csv"
    stranger.write_text("user,item,rating\n1,no such item,3\n")
    one_sentence(*discreet("recommend", model, "--history", stranger))
    one_sentence(*discreet("budget", tmp_path / "none.ledger"))
    one_sentence(*discreet("datasets", "get", "no-such-dataset"))


def test_existing_output_is_kept_without_force(discreet, ratings, model):
    before = model.read_bytes()
    arguments = ("fit", ratings, "--model", "biases", "--epsilon", "1", "--out", model)
    one_sentence(*discreet(*arguments))
    assert model.read_bytes() == before
    assert discreet(*arguments, "--force")[0] == 0
    assert model.read_bytes() != before


def test_unwritable_output_is_refused_before_anything_is_paid(discreet, ratings, tmp_path):
    ledger = tmp_path / "l.ledger"
    arguments = ("fit", ratings, "--model", "biases", "--epsilon", "1", "--ledger", ledger)
    one_sentence(*discreet(*arguments, "--out", tmp_path / "no such folder" / "m"))
    one_sentence(*discreet(*arguments, "--out", tmp_path, "--force"))
    assert not ledger.exists()


def test_force_replaces_a_model_and_nothing_else(discreet, ratings, model, tmp_path):
    ledger = tmp_path / "shop.ledger"
    assert discreet("budget", ledger, "--name", "shop", "--epsilon", "3")[0] == 0
    notes = tmp_path / "notes.txt"
    notes.write_text("keep me")
    pipe, link, dangling = tmp_path / "pipe", tmp_path / "link", tmp_path / "dangling"
    os.mkfifo(pipe)
    link.symlink_to(model)
    dangling.symlink_to(tmp_path / "nowhere")
    before = {path: path.read_bytes() for path in (ratings, ledger, notes, model)}
    arguments = ("fit", ratings, "--model", "biases", "--epsilon", "1", "--force", "--out")
    for victim in (ratings, ledger, notes, pipe, link, dangling, tmp_path):
        one_sentence(*discreet(*arguments, victim))
    assert {path: path.read_bytes() for path in before} == before
    assert stat.S_ISFIFO(pipe.lstat().st_mode) and link.is_symlink() and dangling.is_symlink()
    one_sentence(*discreet(*arguments[:-2], "--out", dangling))
    assert not (tmp_path / "nowhere").exists()
    empty = tmp_path / "empty"
    empty.touch()
    assert discreet(*arguments, empty)[0] == 0


def test_an_output_is_not_an_input_of_the_same_command(discreet, ratings, model, tmp_path):
    arguments = ("fit", ratings, "--model", "biases", "--epsilon", "1", "--force")
    ledger = tmp_path / "new.ledger"
    one_sentence(*discreet(*arguments, "--ledger", ledger, "--out", tmp_path / "." / "new.ledger"))
    assert not ledger.exists()
    items = tmp_path / "items.txt"
    items.write_text("\n".join(map(str, range(60))))
    one_sentence(*discreet(*arguments, "--items", items, "--out", items))
    twin = tmp_path / "twin.discreet"
    twin.hardlink_to(ratings)
    code, _, error = discreet(*arguments, "--out", twin)
    assert code == 1 and "also read" in error


def test_compare_replaces_its_own_reports_only(discreet, ratings, model, tmp_path):
    pytest.importorskip("matplotlib")
    pytest.importorskip("jinja2")
    arguments = ("compare", ratings, "--models", "biases", "--epsilons", "1", "--out")
    before = {path: path.read_bytes() for path in (ratings, model)}
    for victim in before:
        one_sentence(*discreet(*arguments, victim, "--force"))
    train, test = tmp_path / "train.html", tmp_path / "test.html"
    given = ("--split", f"given:{train.name},{test.name}")
    for path in (train, test):
        path.write_text('<meta name="generator" content="discreet">')
        one_sentence(*discreet(*arguments, path, "--force", *given))
    assert {path: path.read_bytes() for path in before} == before
    page = tmp_path / "page.html"
    one_sentence(*discreet("compare", ratings, "--models", ",", "--epsilons", "1", "--out", page))
    assert discreet(*arguments, page)[0] == 0
    one_sentence(*discreet(*arguments, page))
    assert discreet(*arguments, page, "--force")[0] == 0


def test_compare_asks_for_its_libraries_first(discreet, ratings, tmp_path, monkeypatch):
    from discreet.evaluate import comparison

    for name in ("matplotlib", "jinja2"):
        with monkeypatch.context() as without:
            without.setitem(sys.modules, name, None)
            without.setattr(comparison, "compare", lambda *_, **__: pytest.fail("nothing may be measured"))
            arguments = ("--models", "biases", "--epsilons", "1", "--out", tmp_path / "page.html")
            code, out, error = discreet("compare", ratings, *arguments)
            one_sentence(code, out, error)
            assert 'pip install "discreet[report]"' in error


def test_hidden_ratings_that_are_learned_from_are_counted(discreet, ratings, tmp_path):
    lines = ratings.read_text().splitlines(keepends=True)
    (tmp_path / "test.csv").write_text("".join(lines[:4]))
    arguments = ("--model", "biases", "--epsilon", "1", "--split", "given:ratings.csv,test.csv")
    code, out, error = discreet("evaluate", ratings, *arguments)
    one_sentence(code, out, error)
    assert "3 of 3 hidden ratings" in error and "--duplicates" not in error


def test_an_empty_name_pays_nothing(discreet, ratings, tmp_path):
    ledger, out = tmp_path / "l.ledger", tmp_path / "m.discreet"
    arguments = ("--epsilon", "1", "--name", "")
    one_sentence(*discreet("fit", ratings, "--model", "biases", *arguments, "--out", out, "--ledger", ledger))
    one_sentence(*discreet("budget", ledger, *arguments))
    assert not ledger.exists() and not out.exists()


def test_no_flipped_byte_of_a_model_file_goes_unnoticed_or_ends_in_a_traceback(model):
    import discreet
    from discreet.checks import FileError

    whole, before = model.read_bytes(), discreet.load(model)
    for position in range(0, len(whole), 7):
        changed = bytearray(whole)
        changed[position] ^= 0x10
        model.write_bytes(changed)
        try:
            after = discreet.load(model)
        except FileError:
            continue
        # Bytes that the zip format does not use may change without changing the model.
        assert after.guarantee == before.guarantee
        assert (after.scorer.item_bias == before.scorer.item_bias).all()


def test_half_a_model_file_is_refused(discreet, ratings, model):
    model.write_bytes(model.read_bytes()[:-200])
    one_sentence(*discreet("label", model))
    one_sentence(*discreet("recommend", model, "--history", ratings, "--user", "1"))


def test_a_model_file_follows_the_umask(model):
    assert stat.S_IMODE(model.stat().st_mode) & 0o600 == 0o600


def test_gzip_and_other_column_names(discreet, tmp_path):
    path = tmp_path / "r.tsv.gz"
    rows = "\n".join(f"p{u}\tt{i}\t{(u * i) % 5 + 1}" for u in range(20) for i in range(10))
    path.write_bytes(gzip.compress(f"who\twhat\tstars\n{rows}\n".encode()))
    arguments = ("--epsilon", "1", "--columns", "user=who,item=what,rating=stars", "--out", tmp_path / "m")
    code, _, error = discreet("fit", path, "--model", "biases", *arguments)
    assert code == 0, error


def test_ids_and_names_are_printed_as_they_are(discreet, tmp_path):
    long = "x" * 100
    names = ["[/] Alien", "[rec] 2", ":heart:", "[bold]Solaris[/bold]", long]
    data = tmp_path / ":heart:films.csv"
    data.write_text(
        "user,item,rating\n"
        + "\n".join(
            f"{u},{name},{(u + place) % 5 + 1}" for u in range(30) for place, name in enumerate(names)
        )
    )
    out, ledger = tmp_path / "[b]m.discreet", tmp_path / "l.ledger"
    paid = ("--ledger", ledger, "--name", "[/] shop")
    code, shown, error = discreet("fit", data, "--model", "biases", "--epsilon", "1", "--out", out, *paid)
    assert code == 0 and "[b]m.discreet" in shown.replace("\n", ""), error
    code, shown, error = discreet("recommend", out, "--history", data, "--user", "3", "--include-seen")
    assert code == 0 and all(name in shown for name in names[:-1]) and shown.count("x") == len(long), error
    code, shown, error = discreet("budget", ledger)
    assert code == 0 and "[/] shop" in shown, error
    code, shown, error = discreet("evaluate", data, "--model", "biases", "--epsilon", "1")
    assert code == 0 and ":heart:films.csv" in "".join(shown.split()), error
    one_sentence(*discreet("label", tmp_path / "[/] nothing"))


def test_ctrl_c_says_what_is_paid(discreet, monkeypatch):
    from discreet import recipes

    def stopped():
        raise KeyboardInterrupt

    monkeypatch.setattr(recipes, "describe_models", stopped)
    code, out, error = discreet("models")
    assert code == 130 and out == "" and error.startswith("discreet: stopped.") and "paid" in error


def test_ctrl_c_while_libraries_are_loaded_is_no_traceback(discreet, monkeypatch):
    import builtins

    load = builtins.__import__

    def stopped(name, *others):
        if name == "discreet.commands.application":
            raise KeyboardInterrupt
        return load(name, *others)

    monkeypatch.setattr(builtins, "__import__", stopped)
    assert discreet("models")[0] == 130


@pytest.mark.parametrize("verb", [("models",), ("models", "--json"), ("--version",)], ids=" ".join)
def test_output_that_cannot_be_written_is_one_sentence(tmp_path, verb):
    """A limit on the size of files stands for a full disk."""
    import resource

    with (tmp_path / "out").open("w") as full:
        ended = subprocess.run(
            [sys.executable, "-m", "discreet", *verb],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0)),
        )
    one_sentence(ended.returncode, "", ended.stderr)
    assert "standard output" in ended.stderr


@pytest.mark.parametrize("verb", [("models",), ("models", "--json")], ids=" ".join)
def test_a_reader_who_leaves_early_is_no_error(verb):
    reading, writing = os.pipe()
    os.close(reading)
    ended = subprocess.run(
        [sys.executable, "-m", "discreet", *verb], stdout=writing, stderr=subprocess.PIPE, text=True
    )
    os.close(writing)
    assert ended.returncode == 141 and ended.stderr == ""


def test_a_ledger_that_does_not_fit_on_the_disk_is_one_sentence(ratings, tmp_path):
    import resource

    ledger = tmp_path / "l.ledger"
    ended = subprocess.run(
        [sys.executable, "-m", "discreet", "budget", ledger, "--name", "shop", "--epsilon", "1"],
        capture_output=True,
        text=True,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (2048, 2048)),
    )
    one_sentence(ended.returncode, ended.stdout, ended.stderr)
    assert list(tmp_path.iterdir()) == [ratings]


def test_misunderstood_arguments_exit_with_2(discreet, ratings):
    assert discreet("fit", ratings)[0] == 2
    assert discreet("no-such-verb")[0] == 2
    assert discreet("fit", ratings, "--epsilon", "much", "--out", "x")[0] == 2
