"""What there is: models and datasets."""

import json

from discreet.cli.models import FIRST


def test_lists_models_and_datasets(discreet):
    code, out, _ = discreet("models", "--json")
    assert code == 0 and {"biases", "popularity"} <= {row["name"] for row in json.loads(out)["models"]}
    code, out, _ = discreet("datasets", "--json")
    assert code == 0 and "movielens-1m" in {row["name"] for row in json.loads(out)["datasets"]}
    assert discreet("models")[0] == discreet("datasets")[0] == 0


def test_the_models_to_use_first_stand_first(discreet):
    shown = discreet("models")[1]
    places = [shown.index(name) for name in (*FIRST, "Research methods", "frank-wolfe", "Baselines", "ease")]
    assert places == sorted(places)
