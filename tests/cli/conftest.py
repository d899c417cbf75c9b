"""The command line as a user meets it, a small ratings file, and a model fitted from it."""

import pytest

from toy import toy_interactions


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
