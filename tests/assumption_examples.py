"""Assumptions of every kind, as examples and as a strategy."""

from hypothesis import strategies as st

from discreet.privacy.guarantee import STATEMENTS, Assumption, Fact, Kind

_DETAILS = {
    "items": 1682,
    "low": 1.0,
    "high": 5.0,
    "step": 0.5,
    "ratings": 50,
    "users": 6040,
    "threshold": 3.5,
    "epsilon": 2.0,
    "delta": 1e-6,
    "simulated": True,
    "model": "popularity",
    "definition": "user/add-or-remove/joint",
    "origin": "synthetic, from a release with epsilon 1, delta 1e-06, proved",
    "period": "yearly",
    "date": "2026-01-31",
    "rows": "event=buy",
    "weights": "1 for view, 5 for buy in column event",
    "layout": "UTF-8, comma, header",
    "reason": "new users",
    "parties": 3,
    "members": "north, south",
    "coordinator": True,
    "text": "a statement of another version",
}
#: One assumption for each kind and fact.
EXAMPLES = [
    Assumption.of(kind, fact, **{name: _DETAILS[name] for name in names})
    for (kind, fact), names in STATEMENTS.items()
]
CONDITIONS = [one for one in EXAMPLES if one.kind in (Kind.TAKEN, Kind.UNKNOWN)]
TAKEN_CATALOG = Assumption.of(Kind.TAKEN, Fact.CATALOG, items=5)
TAKEN_SCALE = Assumption.of(Kind.TAKEN, Fact.SCALE, low=1.0, high=5.0, step=None)

_VALUES = {
    int: st.integers(0, 10**9),
    float: st.floats(-1e9, 1e9),
    bool: st.booleans(),
    str: st.text(max_size=8),
}


@st.composite
def assumptions(draw):
    """Return an assumption of any kind, with any details."""
    example = draw(st.sampled_from(EXAMPLES))
    detail = {name: draw(_VALUES[type(value)]) for name, value in example.detail}
    return Assumption.of(example.kind, example.fact, **detail)


def stated(guarantee):
    """Return the details of each assumption by kind and fact, of a guarantee or of its JSON."""
    listed = (
        guarantee["assumes"] if isinstance(guarantee, dict) else [one.to_json() for one in guarantee.assumes]
    )
    return {(Kind(one["kind"]), Fact(one["fact"])): one["detail"] for one in listed}


def conditions(guarantee):
    """Return the facts on which a guarantee, or its JSON, is conditional, in order."""
    return [fact for kind, fact in stated(guarantee) if kind in (Kind.TAKEN, Kind.UNKNOWN)]
