"""The demo tells the whole story."""

import json


def test_demo_tells_the_whole_story(discreet):
    code, out, _ = discreet("demo", "--json")
    found = json.loads(out)
    assert code == 0
    assert found["guarantee"]["simulated"] is False and len(found["recommendations"]) == 10
    rmse = {row["model"]: row["metrics"].get("rmse") for row in found["comparison"]}
    assert rmse["als"] < rmse["biases"] < rmse["own mean of each person"]
    ndcg = {row["model"]: row["metrics"].get("ndcg@10") for row in found["comparison"]}
    assert ndcg["als"] is None and ndcg["biases"] is None and rmse["ease"] is None
    assert ndcg["popularity"] < ndcg["ease"]
    scores = [row["score"] for row in found["recommendations"]]
    assert scores == sorted(scores, reverse=True) and all(
        row["expected_stars"] for row in found["recommendations"]
    )
