"""The demo tells the whole story."""

import json


def test_demo_tells_the_whole_story(discreet):
    code, out, _ = discreet("demo", "--json")
    found = json.loads(out)
    assert code == 0
    assert found["guarantee"]["simulated"] is False and len(found["recommendations"]) == 10
    rmse = {row["model"]: row["metrics"].get("rmse") for row in found["comparison"]}
    assert rmse["als"] < rmse["biases"] < rmse["own mean of each person"]
