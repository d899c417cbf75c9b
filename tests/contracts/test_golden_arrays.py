"""A pure move of code changes no bit of any model: every array of every fit is what it was."""

import json
from pathlib import Path

import pytest

from golden.cases import everything, fingerprint, fitted_arrays, machine, recipes, worlds

GOLDEN = json.loads((Path(__file__).parents[1] / "golden" / "arrays.json").read_text(encoding="utf8"))


def test_every_array_is_what_it_was():
    if machine() != GOLDEN["machine"]:
        pytest.skip(f"the last bits of the golden arrays belong to another machine: {GOLDEN['machine']}")
    found = everything()
    changed = sorted(
        key for key in GOLDEN["arrays"].keys() | found.keys() if GOLDEN["arrays"].get(key) != found.get(key)
    )
    assert not changed, "If this was on purpose run tests/golden/make.py and say why in CHANGELOG.md."


def test_every_estimator_is_among_the_golden_ones():
    assert {key.split("/")[1] for key in GOLDEN["arrays"]} == set(recipes())


def test_a_last_bit_shows():
    """The twin: one more bit in one array is another fingerprint."""
    array = fitted_arrays(("biases", {"epsilon": 2.0}), worlds()["small"])["item_bias"].copy()
    before = fingerprint(array)
    array.view("int64")[0] ^= 1
    assert fingerprint(array) != before
