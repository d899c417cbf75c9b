"""The command line as a user meets it, a small ratings file, and a model fitted from it."""

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
