"""`federation simulate --evaluate` measures what parties gain, and releases nothing."""

import json

from command_line import one_sentence
from discreet.federated.simulation import ALONE, POOLED, TOGETHER


def test_on_the_command_line(discreet, ratings, tmp_path, snapshot):
    simulate = ("federation", "simulate", ratings, "--implicit", "--epsilon", "4", "--parties", "3")
    code, out, error = discreet(*simulate, "--evaluate")
    assert code == 0 and TOGETHER in out, error
    snapshot(out, numbers=False)
    code, out, _ = discreet(*simulate, "--evaluate", "--metric", "hr@10", "--json")
    assert code == 0 and set(json.loads(out)["ways"]) == {TOGETHER, POOLED, ALONE}
    one_sentence(*discreet(*simulate, "--metric", "hr@10"))
    one_sentence(*discreet(*simulate, "--evaluate", "--out", tmp_path / "m.discreet"))
    one_sentence(*discreet(*simulate, "--evaluate", "--ledger", tmp_path / "a.ledger"))
