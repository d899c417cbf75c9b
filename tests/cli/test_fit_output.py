"""What fit writes, where, and what it never replaces."""

import json
import os
import stat

import discreet as library
from command_line import one_sentence
from discreet.cli.output.tables import WORDS


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


def test_a_model_file_follows_the_umask(model):
    assert stat.S_IMODE(model.stat().st_mode) & 0o600 == 0o600


def test_what_a_fit_decided_is_said_in_words(discreet, ratings, tmp_path):
    names, feedback = set(), []
    for place, more in enumerate(([], ["--implicit"])):
        out = tmp_path / f"{place}.discreet"
        code, shown, _ = discreet("fit", ratings, "--epsilon", "8", "--out", out, "--explain", *more)
        assert code == 0 and "False" not in shown and "True" not in shown
        model = library.load(out)
        feedback.append(model.parameters["feedback"])
        names |= set(model.scorer.explain())
    assert feedback == ["explicit", "implicit"]
    assert len(names) > 5 and names <= set(WORDS)


def test_a_dry_run_explains_how_the_data_are_read(discreet, ratings, tmp_path, snapshot):
    asked = ("fit", ratings, "--epsilon", "1", "--out", tmp_path / "m.discreet", "--dry-run", "--explain")
    code, shown, error = discreet(*asked)
    assert code == 0, error
    snapshot(shown)
    code, shown, error = discreet(*asked, "--json")
    assert code == 0 and json.loads(shown)["reading"]["user"] == "from userId", error
    code, shown, _ = discreet(*asked[:-1])
    assert code == 0 and "movieId" not in shown


def test_counted_clicks_need_no_scale(discreet, ratings, tmp_path):
    lines = ratings.read_text().splitlines(keepends=True)
    clicks = tmp_path / "clicks.csv"
    clicks.write_text("".join([*lines, *lines[1:9]]))
    asked = (
        "fit",
        clicks,
        "--out",
        tmp_path / "m.discreet",
        "--force",
        "--epsilon",
        "1",
        "--duplicates",
        "count",
    )
    for lists in ("--implicit", "--for=lists"):
        code, _, error = discreet(*asked, lists)
        assert code == 0 and "--items, --schema" in " ".join(error.split()) and "--scale" not in error, error
    # The twin learns the counts, and says where its scale comes from.
    code, _, error = discreet(*asked)
    assert code == 0 and "--items, --scale, --schema" in " ".join(error.split()), error
