"""A scale that the caller declares replaces the published one as a whole, its step included."""

import pytest

from discreet.collect.hidden_items import cell_mechanism
from discreet.data.inputs import open_data
from discreet.data.reading.readers import read
from discreet.data.schema import Schema
from discreet.privacy.mechanisms.cells import HiddenNumbers
from discreet.testing import refuses

NAMED = "196\t242\t3\t881250949\n186\t302\t3\t891717742\n22\t377\t1\t878887116\n"
TABLE = "user,item,rating\na,x,1\na,y,5\nb,x,3\n"


@pytest.fixture
def sources(tmp_path):
    """Return three ways to read data whose own scale has steps of 1: a dataset, its file, and a schema."""
    (tmp_path / "u.data").write_text(NAMED)
    (tmp_path / "table.csv").write_text(TABLE)
    columns = ("user", "item", "rating")
    roles = dict(zip(columns, columns, strict=True))
    schema = Schema(columns=columns, low=1.0, high=5.0, step=1.0, **roles)
    return {
        "dataset": lambda **given: open_data("discreet-demo", **given),
        "named file": lambda **given: read(tmp_path / "u.data", **given),
        "schema": lambda **given: read(tmp_path / "table.csv", schema=schema, **given),
    }


@pytest.mark.parametrize("way", ["dataset", "named file", "schema"])
def test_two_numbers_declare_a_scale_without_steps(sources, way):
    own, wide = sources[way]().facts, sources[way](low=1.0, high=5.0).facts
    assert (own.low, own.high, own.step) == (1.0, 5.0, 1.0)
    assert (wide.low, wide.high, wide.step) == (1.0, 5.0, None)
    assert sources[way](low=0.0, high=5.0, step=0.5).facts.step == 0.5
    # The paper's modified Laplace is for numbers, its randomized response for stars.
    assert isinstance(cell_mechanism(2.0, wide), HiddenNumbers)
    assert not isinstance(cell_mechanism(2.0, own), HiddenNumbers)


@pytest.mark.parametrize("way", ["dataset", "named file", "schema"])
def test_a_scale_without_room_for_all_ratings_is_rejected(sources, way):
    with refuses("off-declared-scale"):
        sources[way](low=2.0, high=5.0)
