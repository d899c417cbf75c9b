"""`discreet follow` as a user meets it."""

import json
import os
import sqlite3

import pytest
import typer

import discreet as library
from assumption_examples import stated
from command_line import one_sentence, rejected
from discreet.cli.follow import days
from discreet.core.errors import CannotWrite
from discreet.follow import state as states
from discreet.follow import year
from discreet.follow.state import opened
from discreet.privacy.guarantee import Fact, Kind
from discreet.privacy.ledger.records import PAID_AT_ONCE

WEEK = "user,item,rating\nann,a,5\nann,b,2\nbob,a,4\ncarl,c,3\n"


def items(tmp_path, text="a\nb\nc\n"):
    path = tmp_path / "items.csv"
    path.write_text(text)
    return path


def start(discreet, tmp_path, *more):
    state = tmp_path / "shop.follow"
    asked = ("--items", items(tmp_path), "--scale", "1,5,1", "--epsilon", "2", "--delta", "1e-6")
    asked += ("--releases", "52", "--half-life", "7d", "--ledger", tmp_path / "shop.ledger", *more)
    code, out, error = discreet("follow", "start", state, *asked)
    assert code == 0, error
    return state, out


def test_an_add_reads_the_year_once_and_writes_it_once(discreet, tmp_path, monkeypatch):
    """The year was opened 13 times and read 14 times by one command."""
    state, _ = start(discreet, tmp_path)
    (tmp_path / "week.csv").write_text(WEEK)
    reads, connections = [], []
    read, connect = year.read_year, states._connect
    monkeypatch.setattr(year, "read_year", lambda one: reads.append(one) or read(one))
    monkeypatch.setattr(states, "_connect", lambda path: connections.append(path) or connect(path))
    code, _, error = discreet("follow", "add", state, tmp_path / "week.csv", "--out", tmp_path / "m.discreet")
    assert code == 0, error
    assert (len(reads), len(connections)) == (1, 2)


def test_an_add_that_died_before_it_wrote_its_model_may_be_repeated(discreet, tmp_path, monkeypatch):
    state, _ = start(discreet, tmp_path)
    week, model = tmp_path / "week.csv", tmp_path / "m.discreet"
    week.write_text(WEEK)
    add = ("follow", "add", state, week, "--out", model)
    assert discreet(*add)[0] == 0
    first = model.read_bytes()
    week.write_text(WEEK + "dora,a,5\n")

    def full(path, content):
        raise CannotWrite(path=path, why="no space is left")

    with monkeypatch.context() as broken:
        broken.setattr("discreet.cli.follow.write_whole", full)
        rejected(discreet(*add, "--release", "2"), "cannot-write")
    assert model.read_bytes() == first
    code, out, error = discreet(*add, "--release", "2", "--json")
    assert code == 0 and json.loads(out)["repeated"], error
    assert library.load(model).parameters["release"] == 2
    # The twin: a file that the year did not write stays.
    model.write_bytes(first[::-1])
    one_sentence(*discreet(*add, "--release", "2"))


def test_a_year_from_start_to_erasure(discreet, tmp_path, snapshot):
    state, out = start(discreet, tmp_path)
    assert "up to 52 releases" in out and "Recorded for 'shop'" in out
    week, model = tmp_path / "week.csv", tmp_path / "current.discreet"
    week.write_text(WEEK)
    code, out, error = discreet("follow", "add", state, week, "--out", model)
    assert code == 0 and "4 ratings were" in out, error
    week.write_text(WEEK + "dora,a,5\n")
    code, out, _ = discreet("follow", "add", state, week, "--out", model, "--force", "--json")
    told = json.loads(out)
    assert (
        code == 0
        and told["release"] == 2
        and told["not_public"] == {"entered": 1, "known": 4, "of_erased": 0}
    )
    code, out, _ = discreet("follow", "add", state, week, "--out", model, "--force", "--release", "2")
    assert code == 0
    snapshot(out, numbers=False)
    code, out, _ = discreet("budget", tmp_path / "shop.ledger", "--json")
    assert code == 0 and "follow" in out
    assert len(library.load(model).recommend({"a": 5}, k=2)) == 2
    code, out, _ = discreet("label", model)
    assert code == 0 and "release 2 of 52" in out and "proofs/follow.md" in out
    page = tmp_path / "year.html"
    code, out, _ = discreet("follow", "show", state, "--html", page)
    assert code == 0 and "2 of 52 releases" in " ".join(out.split())
    snapshot(page.read_text(), numbers=False)
    # Four ratings cannot stand out of the noise, whatever is drawn: lists remember longer than declared, or a
    # draw that happens to stand out is counted as declared. Either way it is said.
    assert "half-life of 7 days" in " ".join(out.split())
    code, out, _ = discreet("follow", "status", state, "--json", "--out", tmp_path / "again.discreet")
    assert code == 0 and json.loads(out)["left"] == 50
    assert (tmp_path / "again.discreet").read_bytes() == model.read_bytes()
    code, out, _ = discreet("follow", "erase", state, "ann")
    assert code == 0
    snapshot(out)
    code, out, _ = discreet("follow", "add", state, week, "--out", model, "--force", "--again", "--json")
    assert json.loads(out)["not_public"]["of_erased"] == 2


def test_empty_releases_and_new_items(discreet, tmp_path):
    state, _ = start(discreet, tmp_path)
    model = tmp_path / "current.discreet"
    assert discreet("follow", "release", state, "--out", model)[0] == 0
    week = tmp_path / "week.csv"
    week.write_text(WEEK + "dora,d,5\n")
    one_sentence(*discreet("follow", "add", state, week, "--out", model, "--force"))
    code, out, _ = discreet(
        "follow", "add", state, week, "--out", model, "--force", "--drop-unknown", "--json"
    )
    assert code == 0 and json.loads(out)["not_public"]["entered"] == 4
    asked = ("--items", items(tmp_path, "d\n"), "--again", "--json")
    code, out, _ = discreet("follow", "add", state, week, "--out", model, "--force", *asked)
    assert code == 0 and json.loads(out)["not_public"]["entered"] == 1
    assert library.load(model).catalog.ids.tolist() == ["a", "b", "c", "d"]


def test_choices_are_followed_without_a_scale(discreet, tmp_path):
    state, model = tmp_path / "a.follow", tmp_path / "a.discreet"
    week = tmp_path / "week.csv"
    week.write_text("user,item\nann,a\nbob,a\n")
    asked = ("--items", items(tmp_path), "--epsilon", "1", "--half-life", "2w", "--users-come-once", "--json")
    code, out, error = discreet("follow", "init", state, *asked)
    assert code == 0 and json.loads(out)["settings"]["half_life"] == 14, error
    assert discreet("follow", "add", state, week, "--out", model)[0] == 0
    assert len(library.load(model).recommend(["a"], k=2)) == 2
    one_sentence(*discreet("follow", "add", state, week, "--out", model, "--force", "--kind", "biases"))


def test_what_cannot_be_used_is_one_sentence(discreet, tmp_path):
    state, _ = start(discreet, tmp_path)
    one_sentence(*discreet("follow", "show", tmp_path / "none.follow"))
    one_sentence(*discreet("follow", "show", items(tmp_path)))
    one_sentence(*discreet("follow", "release", state, "--out", state))
    one_sentence(*discreet("follow", "add", state, tmp_path / "no.csv", "--out", tmp_path / "a.discreet"))
    again = ("--items", items(tmp_path), "--epsilon", "2")
    one_sentence(*discreet("follow", "start", state, *again))
    code, _, error = discreet("follow", "start", tmp_path / "b.follow", *again, "--half-life", "soon")
    assert code == 2 and "7d" in error


def test_shards_are_added_and_other_things_are_refused(discreet, tmp_path):
    state, model, week = tmp_path / "a.follow", tmp_path / "a.discreet", tmp_path / "week.csv"
    items = tmp_path / "items.csv"
    items.write_text("x\ny\nz\n")
    week.write_text("user,item,rating\nann,x,5\nbob,y,3\ncarl,z,4\n")
    assert discreet("follow", "start", state, "--items", items, "--scale", "1,5,1", "--epsilon", "2")[0] == 0
    assert discreet("shard", week, "--out", tmp_path / "week", "--scale", "1,5,1", "--items", items)[0] == 0
    one_sentence(*discreet("follow", "add", state, week, "--out", model, "--on", "dask://local"))
    one_sentence(*discreet("follow", "add", state, tmp_path / "week", "--out", model, "--drop-unknown"))
    code, out, _ = discreet("follow", "add", state, tmp_path / "week", "--out", model, "--json")
    assert code == 0 and json.loads(out)["not_public"]["entered"] == 3


def test_a_month_is_thirty_days_and_says_so(discreet, tmp_path):
    assert [days("--half-life", text) for text in ("36h", "7", "2w", "1m", "1y")] == [1.5, 7, 14, 30, 365]
    with pytest.raises(typer.BadParameter):
        days("--half-life", "1 moon")


def test_clicks_are_not_called_ratings(discreet, tmp_path, snapshot):
    state, week = tmp_path / "shop.follow", tmp_path / "week.csv"
    week.write_text("user,item\nann,a\nbob,a\n")
    asked = ("--items", items(tmp_path), "--epsilon", "2", "--releases", "4")
    assert discreet("follow", "start", state, *asked)[0] == 0
    code, out, error = discreet("follow", "add", state, week, "--out", tmp_path / "m.discreet")
    assert code == 0 and "2 interactions were" in out and "ratings" not in out, error
    code, out, error = discreet("follow", "erase", state, "ann")
    assert code == 0, error
    snapshot(out)
    code, out, _ = discreet("follow", "add", state, week, "--out", tmp_path / "m.discreet", "--again")
    assert code == 0
    snapshot(out, numbers=False)
    code, out, _ = discreet("follow", "release", state, "--out", tmp_path / "m.discreet", "--release", "4")
    assert code == 0
    snapshot(out, numbers=False)


def test_releases_that_come_too_early_are_remarked_on(discreet, tmp_path, snapshot):
    state = tmp_path / "shop.follow"
    asked = ("--items", items(tmp_path), "--epsilon", "2", "--releases", "52")
    assert discreet("follow", "start", state, *asked)[0] == 0
    for _ in range(3):
        code, out, _ = discreet("follow", "release", state, "--out", tmp_path / "m.discreet")
        assert code == 0
        snapshot(out, numbers=False)


def test_what_enters_last_is_left_longest(discreet, tmp_path):
    state, week = tmp_path / "shop.follow", tmp_path / "week.csv"
    asked = ("--items", items(tmp_path), "--epsilon", "2", "--releases", "52", "--half-life", "7d")
    assert discreet("follow", "start", state, *asked)[0] == 0
    for number in range(8):
        week.write_text(f"user,item\nu{number},a\n")
        assert discreet("follow", "add", state, week, "--out", tmp_path / "m.discreet", "--again")[0] == 0
    left = json.loads(discreet("follow", "erase", state, "u7", "--json")[1])["influence_left"]
    assert left["entered_last"]["1"] > left["entered_first"]["1"] >= -0.05


def test_how_odd_files_are_read_is_kept(discreet, tmp_path):
    state, week, model = tmp_path / "shop.follow", tmp_path / "week.csv", tmp_path / "m.discreet"
    asked = ("--items", items(tmp_path), "--epsilon", "2", "--releases", "4", "--scale", "1,5,1")
    assert discreet("follow", "start", state, *asked)[0] == 0
    week.write_text("user^item^rating\nann^a^4\nbob^a^great\n")
    one_sentence(*discreet("follow", "add", state, week, "--out", model, "--delimiter", "^"))
    how = ("--delimiter", "^", "--skip-bad-lines")
    assert "1 ratings were" in discreet("follow", "add", state, week, "--out", model, *how)[1]
    (tmp_path / "next.csv").write_text("user^item^rating\neve^a^4\nbob^a^bad\n")
    assert "1 ratings were" in discreet("follow", "add", state, tmp_path / "next.csv", "--out", model)[1]


def test_a_file_is_added_once_unless_it_is_meant(discreet, tmp_path):
    state, _ = start(discreet, tmp_path)
    week, model = tmp_path / "week.csv", tmp_path / "m.discreet"
    week.write_text("user,item,rating\n")
    add = ("follow", "add", state, week, "--out", model, "--force")
    # A week in which nobody came is refused or not like any other: by its name and time of writing.
    week.write_text(WEEK)
    assert discreet(*add, "--release", "1")[0] == 0
    assert discreet(*add, "--release", "1")[0] == 0, "after a crash the same release is repeated"
    code, out, error = discreet(*add)
    one_sentence(code, out, error)
    assert "week.csv" in error and "--again" in error
    assert len(json.loads(discreet("follow", "show", state, "--json")[1])["releases"]) == 1
    assert discreet(*add, "--again")[0] == 0
    later = week.stat().st_mtime + 60
    os.utime(week, (later, later))
    assert discreet(*add)[0] == 0, "the twin: the same bytes, written later, are another batch"
    assert len(json.loads(discreet("follow", "show", state, "--json")[1])["releases"]) == 3


def test_lists_show_titles(discreet, tmp_path):
    state, _ = start(discreet, tmp_path)
    week, model, titles = tmp_path / "week.csv", tmp_path / "m.discreet", tmp_path / "titles.csv"
    week.write_text(WEEK)
    titles.write_text("item,title\nz,Nothing\n")
    add = ("follow", "add", state, week, "--out", model, "--titles", titles)
    one_sentence(*discreet(*add))
    assert not json.loads(discreet("follow", "show", state, "--json")[1])["releases"], "nothing was drawn"
    titles.write_text("item,title\na,Alien\nb,Brazil\n")
    code, _, error = discreet(*add)
    assert code == 0, error
    assert "Alien" in library.load(model).titles(["a"])["a"].values()
    shown = discreet("follow", "show", state, "--out", tmp_path / "n.discreet", "--titles", titles)
    assert shown[0] == 0 and library.load(tmp_path / "n.discreet").titles(["b"])["b"] == {"title": "Brazil"}


def test_a_wrong_kind_is_refused_before_the_draw(discreet, tmp_path):
    state, _ = start(discreet, tmp_path)
    week = tmp_path / "week.csv"
    week.write_text(WEEK)
    code, out, error = discreet("follow", "add", state, week, "--out", tmp_path / "m", "--kind", "stars")
    one_sentence(code, out, error)
    assert "kind" in error and not (tmp_path / "m").exists()
    assert not json.loads(discreet("follow", "show", state, "--json")[1])["releases"]


def test_what_no_ledger_recorded_is_not_called_paid(discreet, tmp_path, snapshot):
    asked = ("--items", items(tmp_path), "--epsilon", "2", "--releases", "4")
    free = tmp_path / "free.follow"
    code, out, error = discreet("follow", "start", free, *asked)
    assert code == 0, error
    snapshot(out)
    snapshot(discreet("follow", "show", free)[1])
    state, out = start(discreet, tmp_path)
    snapshot(out)
    snapshot(discreet("follow", "show", state)[1])


def test_a_year_that_began_with_an_earlier_version_claims_nothing(discreet, tmp_path, snapshot):
    state, _ = start(discreet, tmp_path)
    with opened(state, writing=True) as old:
        content, _ = old.settings()
        del content["recorded"]
        old._run("UPDATE settings SET content = ?", json.dumps(content))
    snapshot(discreet("follow", "show", state)[1])


def test_columns_titles_and_the_model_file_are_said_once(discreet, tmp_path, snapshot):
    titles, week, model = tmp_path / "titles.csv", tmp_path / "week.csv", tmp_path / "m.discreet"
    titles.write_text("item,title\na,Alien\n")
    week.write_text("who,sku,stars\nann,a,5\nbob,a,4\n")
    said = ("--columns", "user=who,item=sku,rating=stars", "--titles", titles)
    state, _ = start(discreet, tmp_path, *said)
    assert discreet("follow", "add", state, week, "--out", model)[0] == 0
    week = week.rename(tmp_path / "again.csv")
    code, out, error = discreet("follow", "add", state, week, "--out", model)
    assert code == 0, error
    snapshot(out, numbers=False)
    assert library.load(model).titles(["a"])["a"] == {"title": "Alien"}
    other = tmp_path / "other.discreet"
    other.write_bytes(model.read_bytes())
    one_sentence(*discreet("follow", "release", state, "--out", other))
    model.write_bytes(b"something else")
    one_sentence(*discreet("follow", "release", state, "--out", model))
    titles.unlink()
    code, out, error = discreet("follow", "release", state, "--out", tmp_path / "n.discreet")
    one_sentence(code, out, error)
    assert "--titles" in error
    assert len(json.loads(discreet("follow", "show", state, "--json")[1])["releases"]) == 2, "none was used"


def test_implicit_says_that_there_is_no_scale(discreet, tmp_path):
    asked = ("--items", items(tmp_path), "--epsilon", "2", "--implicit")
    one_sentence(*discreet("follow", "start", tmp_path / "a.follow", *asked, "--scale", "1,5"))
    code, _, error = discreet("follow", "start", tmp_path / "a.follow", *asked)
    assert code == 0, error


def test_a_year_paid_from_a_budget_that_renews_says_where_it_counts(discreet, tmp_path):
    ledger, page = tmp_path / "shop.ledger", tmp_path / "ledger.html"
    year = ("budget", ledger, "--name", "shop", "--epsilon", "4", "--delta", "1e-5")
    assert discreet(*year, "--renews", "yearly")[0] == 0
    said = PAID_AT_ONCE.text
    assert said[1:] not in " ".join(discreet("budget", ledger)[1].split())
    _, out = start(discreet, tmp_path)
    assert said[1:] in " ".join(out.split())
    code, out, _ = discreet("budget", ledger, "--html", page)
    assert code == 0 and said[1:] in " ".join(out.split())
    assert said[1:] in " ".join(page.read_text().split())


def test_many_missed_releases_are_rather_a_mistake(discreet, tmp_path):
    state, model = tmp_path / "shop.follow", tmp_path / "m.discreet"
    asked = ("--items", items(tmp_path), "--epsilon", "2", "--releases", "52")
    assert discreet("follow", "start", state, *asked)[0] == 0
    draw = ("follow", "release", state, "--out", model, "--release")
    one_sentence(*discreet(*draw, "30"))
    assert json.loads(discreet("follow", "show", state, "--json")[1])["left"] == 52
    assert discreet(*draw, "5")[0] == 0
    assert discreet(*draw, "30", "--yes")[0] == 0


def test_every_model_that_the_year_wrote_may_be_replaced(discreet, tmp_path):
    state, one, other = (tmp_path / name for name in ("shop.follow", "a.discreet", "b.discreet"))
    asked = ("--items", items(tmp_path), "--epsilon", "2", "--releases", "9")
    assert discreet("follow", "start", state, *asked)[0] == 0
    for out in (one, other, one, other):
        assert discreet("follow", "release", state, "--out", out)[0] == 0
    other.write_bytes(one.read_bytes())
    one_sentence(*discreet("follow", "release", state, "--out", other))


def test_one_release_is_told_in_the_singular(discreet, tmp_path, snapshot):
    state, week = tmp_path / "two.follow", tmp_path / "week.csv"
    week.write_text(WEEK)
    asked = ("--items", items(tmp_path), "--scale", "1,5,1", "--epsilon", "2", "--releases", "2")
    assert discreet("follow", "start", state, *asked)[0] == 0
    assert discreet("follow", "add", state, week, "--out", tmp_path / "m.discreet")[0] == 0
    snapshot(discreet("follow", "show", state)[1], numbers=False)


def test_a_file_for_a_release_that_was_made_of_another_is_refused(discreet, tmp_path):
    state, model = tmp_path / "shop.follow", tmp_path / "m.discreet"
    asked = ("--items", items(tmp_path), "--epsilon", "2", "--releases", "9")
    assert discreet("follow", "start", state, *asked)[0] == 0
    for name in ("one", "two"):
        (tmp_path / f"{name}.csv").write_text(f"user,item\n{name},a\n")
    first = ("follow", "add", state, tmp_path / "one.csv", "--out", model, "--release", "1")
    assert discreet(*first)[0] == 0
    # After a crash the command is repeated.
    code, out, _ = discreet(*first, "--json")
    assert code == 0 and json.loads(out)["release"] == 1
    answer = discreet("follow", "add", state, tmp_path / "two.csv", "--out", model, "--release", "1")
    rejected(answer, "made-without-batch", release=1)


def test_a_year_that_another_process_wrote_is_read_again(discreet, tmp_path):
    from discreet.follow import Following

    state, _ = start(discreet, tmp_path)
    one, other = Following(state), Following(state)
    assert one.kept() == other.kept() == {}
    other.keep(columns="user=u")
    assert one.kept() == {"columns": "user=u"} == other.kept()
    one.keep(text="{}")
    assert other.kept() == {"columns": "user=u", "text": "{}"}


def test_a_year_states_of_a_query_what_a_fit_states(discreet, tmp_path):
    state, _ = start(discreet, tmp_path)
    base, model = tmp_path / "shop.db", tmp_path / "m.discreet"
    with sqlite3.connect(base) as connection:
        connection.execute("CREATE TABLE r (user TEXT, item TEXT, rating INTEGER, event TEXT)")
        connection.executemany("INSERT INTO r VALUES (?, 'a', 4, 'buy')", [("ann",), ("bob",)])
    connection.close()
    source = f"{base}::SELECT user, item, rating, event FROM r LIMIT 500"
    assert discreet("follow", "add", state, source, "--out", model, "--only", "event=buy")[0] == 0
    known = stated(library.load(model).guarantee)
    assert (Kind.TAKEN, Fact.QUERY) in known and (Kind.DECLARED, Fact.FRAME) in known
    assert (Kind.TAKEN, Fact.LAYOUT) in known and known[Kind.DECLARED, Fact.ROWS] == {"rows": "event=buy"}
    # Later models and the label of the year state it as well.
    assert discreet("follow", "release", state, "--out", model)[0] == 0
    assert stated(library.load(model).guarantee) == known
    shown = json.loads(discreet("follow", "show", state, "--json", "--out", tmp_path / "n.discreet")[1])
    assert stated(shown["guarantee"]) == stated(library.load(tmp_path / "n.discreet").guarantee) == known
