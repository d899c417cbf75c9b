"""Labels and scores are titled by the paper's name of its model, and by our own."""

import pytest

from discreet.model_settings import estimator
from discreet.papers import PAPER_NAMES, titled


@pytest.mark.parametrize("alias", PAPER_NAMES)
def test_a_papers_name_titles_its_settings_only(alias):
    model, implied = PAPER_NAMES[alias]
    own = estimator(alias, {"epsilon": 4.0})
    assert titled(own.name, own.settings) == f"{alias} ({model})"
    other = {key: object() for key in implied}
    assert alias not in titled(model, {**own.settings, **other}) or not implied


@pytest.mark.few(1)
def test_scores_are_titled_as_the_label_is(discreet, tmp_path):
    rows = [f"{user},{item},{1 + (user * item) % 5}" for user in range(20) for item in range(8)]
    path = tmp_path / "ratings.csv"
    path.write_text("\n".join(["user,item,rating", *rows]) + "\n")
    for model, called in (("svd-poster", "svd-poster (covariance-svd)"), ("biases", "biases")):
        code, out, _ = discreet("evaluate", path, "--model", model, "--epsilon", "4")
        assert code == 0 and f"{called} on" in " ".join(out.split())
        assert ("svd-poster" in out) == (model == "svd-poster")
