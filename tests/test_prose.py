"""Errors carry data, tests assert on data, and banned terms disappear: each count may only go down."""

import ast
import json

import prose

HOW = "`python tests/prose.py -v` lists them, and CONTRIBUTING.md shows how to write errors"


def test_counts_only_go_down():
    ceilings = json.loads(prose.CEILINGS.read_text(encoding="utf8"))
    more = {
        f"{subject} in {name}": (count, ceilings[subject].get(name, 0))
        for subject, by in prose.counts().items()
        for name, count in by.items()
        if count > ceilings[subject].get(name, 0)
    }
    assert not more, f"{more} (now, ceiling). {HOW}."


def nodes(code):
    return list(ast.walk(ast.parse(code)))


def test_prose_is_found_in_any_spelling():
    code = """
raise DataError(f"{n} rows " + 'are bad')
require(ok, "k", 3, "must be odd")
raise UnknownItems(count=3, where="the history")
"""
    names = {"DataError", "require", "UnknownItems"}
    assert sorted(prose.calls_with_prose(nodes(code), names)) == [("DataError", 2), ("require", 3)]
    assert prose.error_names({"A": {"DiscreetError"}, "B": {"A", "ValueError"}, "C": {"D"}}) >= {"A", "B"}
    code = """
with pytest.raises(ValueError, match="odd"): pass
assert "no such item" in error
assert error == f"No {item} was found here"
assert said.startswith('It is not')
assert verdict == "not refuted" and "biases" in error and code == 1
"""
    found = [getattr(one, "value", one) for one in prose.asserted_prose(nodes(code))]
    assert sorted(one.lineno for one in found) == [2, 3, 4, 5]
    page = [*prose.terms_of("Nobody told them. A guarantee covers `people`, `holds(x)` and --people")]
    assert page == ["Nobody", "told"]
    module = [*prose.terms_of("# a person's name\nx = 1", nodes("x = 'the holder of it'"))]
    assert module == ["person", "holder"]
    assert prose.TERMS.count("|") < 40


def test_ceilings_only_go_down():
    assert prose.lowered({"a": {"x": 3, "y": 2, "z": 1}}, {"a": {"x": 5, "y": 1}}) == {"a": {"x": 3, "y": 1}}
