"""The verbs of a federation: founding one, and trying one out in one process."""

import json

import pytest

from command_line import one_sentence


@pytest.fixture
def items(tmp_path):
    path = tmp_path / "items.txt"
    path.write_text("\n".join(map(str, range(60))))
    return path


def test_simulate_writes_a_model_with_its_label(discreet, ratings, tmp_path):
    model, ledger = tmp_path / "m", tmp_path / "l.ledger"
    code, out, _ = discreet(
        "federation", "simulate", ratings, "--model", "implicit-objective", "--epsilon", "8",
        "--parties", "4", "--out", model, "--ledger", ledger, "--json",
    )  # fmt: skip
    assert code == 0
    told = json.loads(out)
    assert told["guarantee"]["epsilon"] == 8.0 and all(len(r["heard"]) == 4 for r in told["rounds"])
    assert any("in each sum at least 3 add" in line for line in told["guarantee"]["assumes"])
    assert json.loads(discreet("label", model, "--json")[1])["guarantee"] == told["guarantee"]
    assert "8" in discreet("budget", ledger)[1]


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (("--parties", "1"), "parties"),
        (("--parties", "4", "--missing", "3"), "missing"),
        (("--parties", "4", "--model", "als", "--epsilon", "inf"), "cannot run over parties"),
    ],
)
def test_simulate_refuses_with_a_sentence(discreet, ratings, options, sentence):
    given = ("federation", "simulate", ratings, "--model", "implicit-objective", "--epsilon", "8", *options)
    code, out, error = discreet(*given)
    one_sentence(code, out, error)
    assert sentence in error


def test_init_writes_a_folder_for_every_member(discreet, items, tmp_path):
    folder = tmp_path / "federation"
    given = ("federation", "init", folder, "--model", "implicit-objective", "--implicit", "--epsilon", "4")
    code, out, error = discreet(*given, "--parties", "a,b,c", "--items", items, "--json")
    assert code == 0, error
    assert sorted(path.name for path in folder.iterdir()) == [
        "a",
        "authority",
        "b",
        "c",
        "coordinator",
        "keeper",
    ]
    assert json.loads(out)["guarantee"]["epsilon"] == 4.0
    assert discreet(*given, "--parties", "a,b,c", "--items", items)[0] == 1


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (("--parties", "a,b,keeper"), "cannot be a name"),
        (("--parties", "a,b,c", "--keeper", "nowhere"), "HOST:PORT"),
        (("--parties", "a,b"), "missing"),
    ],
)
def test_init_refuses_with_a_sentence(discreet, items, tmp_path, options, sentence):
    given = ("federation", "init", tmp_path / "f", "--model", "implicit-objective", "--implicit")
    code, out, error = discreet(*given, "--epsilon", "4", "--items", items, *options)
    one_sentence(code, out, error)
    assert sentence in error


def test_a_scale_is_agreed_on_before_anybody_looks(discreet, items, tmp_path):
    given = ("federation", "init", tmp_path / "f", "--model", "biases", "--epsilon", "4", "--items", items)
    code, out, error = discreet(*given, "--parties", "a,b,c")
    one_sentence(code, out, error)
    assert "--scale" in error


def test_folders_of_nobody_are_refused(discreet, ratings, tmp_path):
    for given in (
        ("federation", "run", tmp_path, "--out", tmp_path / "m"),
        ("keeper", "serve", tmp_path),
        ("party", "serve", tmp_path, "--data", ratings, "--ledger", tmp_path / "l"),
    ):
        code, out, error = discreet(*given)
        one_sentence(code, out, error)
        assert "does not hold an agreement" in error
    assert not (tmp_path / "l").exists()
