"""A label is titled by the paper's name of its model, and by our own."""

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
