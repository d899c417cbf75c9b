"""Every verb alike: exit codes, one sentence for bad input, output as it is."""

import importlib
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from typer import Context

from command_line import one_sentence
from discreet.cli.application import _Verbs, command
from discreet.cli.options.parsing import read_help
from discreet.cli.verbs import MORE, OLD, OLD_PARTS, PARTS, ROAD, commands, place


def test_prints_its_version(discreet):
    code, out, _ = discreet("--version")
    assert code == 0 and out.startswith("discreet ")


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


def test_ids_and_names_are_printed_as_they_are(discreet, tmp_path):
    long = "q" * 100
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
    assert code == 0 and all(name in shown for name in names[:-1]) and shown.count("q") == len(long), error
    code, shown, error = discreet("budget", ledger)
    assert code == 0 and "[/] shop" in shown, error
    code, shown, error = discreet("evaluate", data, "--model", "biases", "--epsilon", "1")
    assert code == 0 and ":heart:films.csv" in "".join(shown.split()), error
    one_sentence(*discreet("label", tmp_path / "[/] nothing"))


def test_ctrl_c_says_what_is_paid(discreet, monkeypatch):
    from discreet.cli import models

    def stopped():
        raise KeyboardInterrupt

    monkeypatch.setattr(models, "described", stopped)
    code, out, error = discreet("models")
    assert code == 130 and out == "" and error.startswith("discreet: stopped.") and "spent" in error


def test_ctrl_c_while_libraries_are_loaded_is_no_traceback(discreet, monkeypatch):
    import builtins

    load = builtins.__import__

    def stopped(name, *others):
        if name == "discreet.cli.application":
            raise KeyboardInterrupt
        return load(name, *others)

    monkeypatch.setattr(builtins, "__import__", stopped)
    assert discreet("models")[0] == 130


# A verb that starts quickly, printing for people and for programs.
LABEL = ("label", str(Path(__file__).parents[1] / "formats" / "v0.1" / "popularity.discreet"))
PRINTING = {"label": LABEL, "label --json": (*LABEL, "--json")}


@pytest.mark.few(1)
@pytest.mark.parametrize("verb", [*PRINTING.values(), ("--version",)], ids=[*PRINTING, "--version"])
def test_output_that_cannot_be_written_is_one_sentence(tmp_path, verb):
    """A limit on the size of files stands for a full disk."""
    import resource

    with (tmp_path / "out").open("w") as full:
        ended = subprocess.run(
            # Without bytecode: Python would leave a truncated file behind, which later imports read.
            [sys.executable, "-B", "-m", "discreet", *verb],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0)),
        )
    one_sentence(ended.returncode, "", ended.stderr)
    assert "[output-failed]" in ended.stderr


@pytest.mark.few(1)
@pytest.mark.parametrize("verb", PRINTING.values(), ids=PRINTING)
def test_a_reader_who_leaves_early_is_no_error(verb):
    reading, writing = os.pipe()
    os.close(reading)
    ended = subprocess.run(
        [sys.executable, "-m", "discreet", *verb], stdout=writing, stderr=subprocess.PIPE, text=True
    )
    os.close(writing)
    assert ended.returncode == 141 and ended.stderr == ""


def test_misunderstood_arguments_exit_with_2(discreet, ratings):
    assert discreet("fit", ratings)[0] == 2
    code, _, error = discreet("no-such-verb")
    assert code == 2 and "discreet --help-all" in error
    code, _, error = discreet("recomend")
    assert code == 2 and "recommend?" in error
    code, _, error = discreet("neighbours", "m.discreet", "1")
    assert code == 2 and "similar`" in error
    code, _, error = discreet("fit", ratings, "--epsilon", "much", "--out", "x")
    assert code == 2 and "[wrong-kind]" in error and "float" not in error


@pytest.mark.few(2)
@pytest.mark.parametrize(
    ("arguments", "meant"),
    [
        (("fit", "r.csv", "--model", "user-factorisation"), "user-factorization"),
        (("fit", "r.csv", "--set", "item_feature=x"), "item_features"),
        (("evaluate", "discreet-demo", "--model", "biases", "--metric", "rsme"), "rmse"),
        (("evaluate", "movielens-100"), "movielens-100k"),
    ],
    ids=lambda part: part if isinstance(part, str) else "",
)
def test_a_misspelled_name_is_answered_with_the_right_one(discreet, tmp_path, arguments, meant):
    out = ("--out", tmp_path / "m") if arguments[0] == "fit" else ()
    code, shown, error = discreet(*arguments, "--epsilon", "1", *out)
    one_sentence(code, shown, error)
    assert error.replace("'", "").partition("Did you mean ")[2].startswith(f"{meant}?")


def test_a_shell_completes_names(tmp_path, monkeypatch):
    from discreet.cli.options import parsing

    assert parsing.complete_model("user") == ["user-factorization"]
    assert "biases,als" in parsing.complete_models("biases,al")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine").mkdir()
    (tmp_path / "mixed.csv").touch()
    assert parsing.complete_data("mi") == ["mine/", "mixed.csv"]
    assert "movielens-1m" in parsing.complete_data("movielens")
    assert parsing.complete_data("nowhere/") == []


@pytest.mark.parametrize("verb", [("models",), ("datasets",), ("--help",), ("fit", "--help")], ids=" ".join)
def test_tables_fit_eighty_columns(discreet, monkeypatch, verb):
    monkeypatch.setenv("COLUMNS", "80")
    code, out, _ = discreet(*verb)
    assert code == 0 and max(map(len, out.splitlines())) <= 80


def test_help_lists_ten_commands_and_help_all_the_rest(discreet):
    code, shown, _ = discreet("--help")
    listed = re.findall(r"^  ([a-z-]+) ", shown, flags=re.MULTILINE)
    assert code == 0 and listed == list(ROAD) and len(ROAD) == 10
    code, shown, _ = discreet("--help-all")
    assert code == 0 and len([*ROAD, *MORE]) <= 18
    for words in commands():
        assert re.search(rf"^  {words[-1]} +\w", shown, flags=re.MULTILINE)
    # The quick way and the way through the library print the same.
    assert discreet("-v", "--help-all")[1] == shown


def test_help_of_a_command_lists_fifteen_options_first(discreet):
    code, shown, _ = discreet("fit", "--help")
    places = [shown.index(word) for word in ("--epsilon", "─ The data ─", "--implicit")]
    options = re.findall(r"^│ \*? *(--?[a-z-]+)", shown, flags=re.MULTILINE)
    assert code == 0 and places == sorted(places) and len(options) <= 15
    assert "--encoding" not in shown and "bool" not in shown and "--help-all" in options
    code, shown, _ = discreet("fit", "--help-all")
    assert code == 0 and "--encoding" in shown
    for words in commands():
        found = command(words)
        assert len(found.params) - len(found._rare(Context(found))) <= 15 + 3, words


@pytest.mark.parametrize("old", [*OLD, *OLD_PARTS])
def test_an_old_name_is_the_same_command(old):
    found = _Verbs(name="discreet").get_command(None, old)
    for part, new in OLD_PARTS.get(old, {"": OLD.get(old)}).items():
        one = found.get_command(None, part) if part else found
        now = command(new)
        assert one.renamed == new and new in commands()
        assert [each.opts for each in one.params] == [each.opts for each in now.params]


def test_an_old_name_prints_a_hint_for_users_and_not_for_programs(discreet, snapshot):
    new, old = discreet("model", *LABEL), discreet(*LABEL)
    assert new[:2] == old[:2] and new[2] == ""
    snapshot(old[2])
    assert discreet(*LABEL, "--json")[2] == ""
    ledger = ("budget", "no.ledger")
    one_sentence(*discreet(*ledger))
    one_sentence(*discreet("budget", "show", "no.ledger"))


def test_every_group_lists_its_parts(discreet, snapshot):
    for name, parts in PARTS.items():
        code, shown, _ = discreet(name, "--help")
        assert code == 0 and all(f"  {part} " in shown for part in parts)
    code, _, error = discreet("model", "lable")
    assert code == 2
    snapshot(error)


def test_a_pattern_that_the_shell_expanded_gets_a_hint(discreet, ratings):
    code, _, error = discreet("try", ratings, ratings)
    assert code == 2 and "quote" in error
    # The twin: other extra arguments aren't files.
    code, _, error = discreet("try", ratings, "more")
    assert code == 2 and "quote" not in error


@pytest.mark.parametrize("words", commands(), ids=" ".join)
def test_no_command_answers_in_the_box_of_the_command_line_library(discreet, words):
    """A call without arguments, or with an unknown option, gets a sentence with a code."""
    missing, _, bare = discreet(*words)
    unknown, _, odd = discreet(*words, "--no-such-option")
    assert unknown == 2 and odd.rstrip().endswith(("[wrong-arguments]", "[arguments-missing]"))
    if missing == 2 and bare:
        assert bare.rstrip().endswith("]")
    assert not re.search("[─╭│╰]|Usage:", bare + odd)


def test_all_missing_options_are_named_at_once(discreet):
    code, _, error = discreet("papers", "theory", "one-bit", "--users", "10")
    assert code == 2 and error.endswith("[arguments-missing]\n")
    assert re.findall(r" (--\w+)", error)[:3] == ["--items", "--ratings", "--epsilon"]


def test_a_value_that_is_no_number_is_reported_under_its_option(discreet):
    code, _, error = discreet("fit", "x", "--epsilon", "few")
    assert code == 2 and error.startswith("discreet: --epsilon ") and error.endswith("[wrong-kind]\n")


@pytest.mark.parametrize("words", commands(), ids=" ".join)
def test_each_option_has_a_help_and_each_help_an_option(words):
    module, function = place(words)
    verb = getattr(importlib.import_module(f"discreet.cli.{module}"), function)
    options = {one.name: one.help for one in command(words).params}
    assert all(options.values())
    assert read_help(verb.__doc__)[1].keys() <= options.keys()


def test_help_is_read_from_sections():
    about, found = read_help("x\n\nOptions:\n    out: a\n        b\n\nMore:\n    on: c\n")
    assert (about, found) == ("x", {"out": ("a b", None), "on": ("c", "More")})
