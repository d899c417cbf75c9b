"""The default run tries a few cases of each contract, and every test that caught a change of privacy."""

import json
from pathlib import Path

import pytest

from few import others, spread

CAUGHT = Path(__file__).parent / "mutation" / "privacy_results.json"


@pytest.fixture
def whole(request):
    """Return the names of all tests of the default run; skip where only a part was asked for."""
    config = request.config
    given = config.getini("addopts")
    chosen = given[given.index("-m") + 1]
    if config.args != config.getini("testpaths") or config.option.markexpr != chosen or config.option.keyword:
        pytest.skip("only a part of the suite was asked for")
    return {item.nodeid for item in request.session.items}


def test_every_test_that_caught_a_named_change_of_privacy_is_in_the_default_run(whole):
    rows = json.loads(CAUGHT.read_text(encoding="utf8"))["rows"]
    # A name is kept up to its first space.
    names = {row["by"] for row in rows if row["kind"] == "named" and row["result"] == "caught"}
    assert len(names) > 20
    assert not {name for name in names if not any(one.startswith(name) for one in whole)}


@pytest.mark.parametrize(
    ("count", "of", "places"),
    [(0, 5, set()), (1, 5, {0}), (2, 5, {0, 2}), (3, 9, {0, 3, 6}), (4, 2, {0, 1})],
)
def test_a_few_places_are_spread_evenly(count, of, places):
    assert spread(count, of) == places


class Case:
    """An item of pytest, as far as `others` looks at it."""

    def __init__(self, name, **marks):
        self.nodeid, self.marks = f"test_it[{name}]", marks
        self.callspec = self
        self.id, self.indices = name, {"name": ord(name)}

    def get_closest_marker(self, name):
        return pytest.Mark(name, self.marks[name], {}, _ispytest=True) if name in self.marks else None


def test_only_cases_that_would_run_are_counted_and_named_ones_stay():
    cases = [Case("a", few=(1, "d"), slow=()), *(Case(name, few=(1, "d")) for name in "bcde")]
    assert [case.id for case in others([*cases, Case("f")])] == ["c", "e"]
    assert [case.id for case in others(cases[::-1])] == ["c", "e"], "the order of items doesn't matter"
