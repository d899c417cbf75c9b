"""Every verb alike: exit codes, one sentence for bad input, output as it is."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from command_line import one_sentence
from discreet.cli.application import PANELS


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
    assert code == 130 and out == "" and error.startswith("discreet: stopped.") and "paid" in error


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
    assert "standard output" in ended.stderr


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
    assert code == 2 and "discreet --help" in error
    code, _, error = discreet("recomend")
    assert code == 2 and "Did you mean recommend?" in error
    code, _, error = discreet("fit", ratings, "--epsilon", "much", "--out", "x")
    assert code == 2 and "'much' is not a number" in error and "float" not in error


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
    assert f"Did you mean {meant}?" in error


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


def test_help_is_short_and_ordered_by_use(discreet):
    code, shown, _ = discreet("--help")
    panels = [shown.index(f"─ {panel} ─") for panel in PANELS]
    assert code == 0 and panels == sorted(panels) and len(shown.splitlines()) < 70
    for verbs in PANELS.values():
        for verb, what in verbs.items():
            assert f"{verb:<10}  {what} " in shown
    shown = discreet("fit", "--help")[1]
    places = [shown.index(word) for word in ("--epsilon", "─ The data ─", "--implicit", "--encoding")]
    assert code == 0 and places == sorted(places)
