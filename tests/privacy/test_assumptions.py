"""Assumptions are values: their algebra, their way through JSON, and the sentences of older files."""

import copy
import json
import math
import pickle
from dataclasses import FrozenInstanceError, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assumption_examples import CONDITIONS, EXAMPLES, TAKEN_CATALOG, assumptions
from discreet.core.checks import ParameterError
from discreet.data.facts import PublicFacts
from discreet.privacy.guarantee import (
    STATEMENTS,
    Assumption,
    Basis,
    Fact,
    Guarantee,
    Kind,
    Neighbors,
    Trust,
    Unit,
    assumptions_of,
)
from discreet.privacy.old_sentences import assumed_in

GUARANTEE = Guarantee(
    epsilon=1.0,
    delta=1e-6,
    unit=Unit.RATING,
    neighbors=Neighbors.ADD_OR_REMOVE,
    trust=Trust.LOCAL,
    basis=Basis.PROVED,
)
lists = st.lists(assumptions(), max_size=4).map(tuple)


def unknown(sentence):
    return (Assumption.of(Kind.UNKNOWN, Fact.STATEMENT, text=sentence),)


def stored(guarantee, assumes, notes=()):
    """Return a guarantee as an older version stored it, with sentences."""
    return {**guarantee.to_json(), "assumes": list(assumes), "notes": list(notes)}


# Values


def test_every_kind_and_every_fact_is_used():
    assert {kind for kind, _ in STATEMENTS} == set(Kind)
    assert {fact for _, fact in STATEMENTS} == set(Fact)


def test_an_assumption_cannot_be_edited():
    with pytest.raises(FrozenInstanceError):
        TAKEN_CATALOG.kind = Kind.DECLARED


@pytest.mark.parametrize(
    ("kind", "fact", "detail"),
    [
        ("taken", Fact.CATALOG, {"items": 5}),
        (Kind.TAKEN, "catalog", {"items": 5}),
        (Kind.TAKEN, Fact.CATALOG, {}),
        (Kind.TAKEN, Fact.CATALOG, {"items": None}),
        (Kind.TAKEN, Fact.CATALOG, {"items": 5.0}),
        (Kind.TAKEN, Fact.CATALOG, {"items": True}),
        (Kind.TAKEN, Fact.CATALOG, {"items": "5"}),
        (Kind.TAKEN, Fact.CATALOG, {"items": 5, "users": 3}),
        (Kind.RAW, Fact.CATALOG, {"items": 5}),
        (Kind.DECLARED, Fact.THRESHOLD, {"threshold": math.nan}),
        (Kind.DECLARED, Fact.THRESHOLD, {"threshold": math.inf}),
        (Kind.LEDGER, Fact.NEW_START, {"reason": 3}),
    ],
)
def test_bad_parts_are_rejected(kind, fact, detail):
    with pytest.raises(ParameterError):
        Assumption(kind, fact, tuple(detail.items()))


@given(assumptions())
def test_equal_values_are_one_assumption_everywhere(one):
    again = Assumption.of(one.kind, one.fact, **dict(reversed(one.detail)))
    assert one == again and hash(one) == hash(again)
    assert pickle.loads(pickle.dumps(one)) == one == copy.deepcopy(one)
    assert Assumption.from_json(json.loads(json.dumps(one.to_json(), allow_nan=False))) == one


# Algebra: a condition is never lost


@pytest.mark.parametrize("one", EXAMPLES, ids=lambda one: f"{one.kind}-{one.fact}")
def test_only_conditions_turn_private_into_private_if(one):
    assert one.is_condition == (one.kind in (Kind.TAKEN, Kind.UNKNOWN))
    assert GUARANTEE.assuming(one).conditions == ((one,) if one in CONDITIONS else ())


@given(lists, lists)
def test_composition_keeps_all_assumptions_of_both(first, second):
    one, other = GUARANTEE.assuming(*first), GUARANTEE.assuming(*second)
    assert (one + other).assumes == tuple(dict.fromkeys(first + second))
    assert set((one + other).conditions) == set(one.conditions) | set(other.conditions)
    assert set((one + other).conditions) == set((other + one).conditions)
    assert (one + one).assumes == one.assumes
    assert (one + other).reads_raw_ratings == (one.reads_raw_ratings or other.reads_raw_ratings)


@given(lists, lists, lists)
def test_composition_of_assumptions_is_associative(first, second, third):
    one, two, three = (GUARANTEE.assuming(*given) for given in (first, second, third))
    assert ((one + two) + three).assumes == (one + (two + three)).assumes


@given(lists)
def test_conversions_keep_all_assumptions(given_ones):
    guarantee = GUARANTEE.assuming(*given_ones)
    for made in (
        guarantee.for_user(3),
        guarantee.to_replace(),
        guarantee.to_approximate(1e-5),
        guarantee.as_simulated(),
        guarantee.from_raw_ratings(),
        guarantee.assuming(TAKEN_CATALOG),
        Guarantee.from_json(json.loads(json.dumps(guarantee.to_json()))),
    ):
        assert set(guarantee.assumes) <= set(made.assumes)
        assert set(guarantee.conditions) <= set(made.conditions)
    assert guarantee.conditions == tuple(one for one in guarantee.assumes if one.is_condition)


@given(lists)
def test_assuming_the_same_again_changes_nothing(given_ones):
    guarantee = GUARANTEE.assuming(*given_ones)
    assert guarantee.assuming(*given_ones) == guarantee


# Facts of data


def test_facts_state_how_they_are_known():
    facts = PublicFacts(n_items=9, low=1, high=5, step=1, max_per_user=4, n_users=70)
    assert assumptions_of(facts) == (
        Assumption.of(Kind.DECLARED, Fact.CATALOG, items=9),
        Assumption.of(Kind.DECLARED, Fact.SCALE, low=1, high=5, step=1),
        Assumption.of(Kind.DECLARED, Fact.CAP, ratings=4),
        Assumption.of(Kind.DECLARED, Fact.USERS, users=70),
    )


@pytest.mark.parametrize(
    ("origins", "wanted"),
    [
        (("n_items",), [(Kind.TAKEN, Fact.CATALOG), (Kind.DECLARED, Fact.SCALE)]),
        (("scale",), [(Kind.DECLARED, Fact.CATALOG), (Kind.TAKEN, Fact.SCALE)]),
        (("chosen",), [(Kind.SELECTED, Fact.CATALOG), (Kind.DECLARED, Fact.SCALE)]),
        (("chosen", "chosen scale"), [(Kind.SELECTED, Fact.CATALOG), (Kind.SELECTED, Fact.SCALE)]),
        (
            ("picked",),
            [
                (Kind.DECLARED, Fact.CATALOG),
                (Kind.DECLARED, Fact.SCALE),
                (Kind.DECLARED, Fact.PICKED_ITEMS),
            ],
        ),
    ],
)
def test_every_origin_of_a_fact_has_its_kind(origins, wanted):
    found = assumptions_of(PublicFacts(n_items=9, from_file=origins))
    assert [(one.kind, one.fact) for one in found] == wanted
    one_value = assumptions_of(PublicFacts(n_items=9, low=1, high=1, from_file=("scale",)))
    assert (one_value[1].kind, one_value[1].fact) == (Kind.TAKEN, Fact.INTERACTIONS)


# Older files

OLD = {
    "the catalog of 1,682 items is public": [Assumption.of(Kind.DECLARED, Fact.CATALOG, items=1682)],
    "the catalog of 5 items is public (taken from the file)": [TAKEN_CATALOG],
    "the catalog was chosen from the data with noise, which is paid for": [
        Assumption.of(Kind.SELECTED, Fact.CATALOG)
    ],
    "ratings lie in 0.5 to 5 in steps of 0.5": [
        Assumption.of(Kind.DECLARED, Fact.SCALE, low=0.5, high=5, step=0.5)
    ],
    "ratings lie in -1e+06 to 1 (taken from the file)": [
        Assumption.of(Kind.TAKEN, Fact.SCALE, low=-1e6, high=1, step=None)
    ],
    "ratings lie in one value only": [Assumption.of(Kind.DECLARED, Fact.INTERACTIONS)],
    "ratings lie in one value only (taken from the file)": [Assumption.of(Kind.TAKEN, Fact.INTERACTIONS)],
    "a row says only that something was chosen": [Assumption.of(Kind.DECLARED, Fact.INTERACTIONS)],
    "a row says only that something was chosen (taken from the file)": [
        Assumption.of(Kind.TAKEN, Fact.INTERACTIONS)
    ],
    "the scale was chosen from the data with noise, which is paid for; ratings are clipped": [
        Assumption.of(Kind.SELECTED, Fact.SCALE)
    ],
    "which items were picked from the catalog was decided without looking at the ratings": [
        Assumption.of(Kind.DECLARED, Fact.PICKED_ITEMS)
    ],
    "at most 1,000 ratings of a person are used": [Assumption.of(Kind.DECLARED, Fact.CAP, ratings=1000)],
    "it is known that there are about 128 people": [Assumption.of(Kind.DECLARED, Fact.USERS, users=128)],
    "it is known that there are about 128 people (taken from the file and rounded to a power of two)": [
        Assumption.of(Kind.TAKEN, Fact.USERS, users=128)
    ],
    "which items were rated is public": [Assumption.of(Kind.DECLARED, Fact.RATED_ITEMS)],
    "a person has at most 8 ratings": [Assumption.of(Kind.DECLARED, Fact.RATINGS_PER_USER, ratings=8)],
    "whether the data have times is public": [Assumption.of(Kind.DECLARED, Fact.TIMES)],
    "the table of item features is public": [Assumption.of(Kind.DECLARED, Fact.ITEM_FEATURES)],
    "who takes part is public": [Assumption.of(Kind.DECLARED, Fact.PARTICIPATION)],
    "who took part and which items each person rated is public": [
        Assumption.of(Kind.DECLARED, Fact.PARTICIPATION),
        Assumption.of(Kind.DECLARED, Fact.RATED_ITEMS),
    ],
    "ratings above 3.5 are likes: a public choice": [
        Assumption.of(Kind.DECLARED, Fact.THRESHOLD, threshold=3.5)
    ],
    "ratings above their mean, which is paid for, are likes": [Assumption.of(Kind.SELECTED, Fact.THRESHOLD)],
    "devices draw their own noise and answer once for an item": [Assumption.of(Kind.USE, Fact.DEVICES)],
    "the model that this fit starts from is an earlier release with epsilon=2, delta=1e-06 of its own": [
        Assumption.of(Kind.EARLIER, Fact.PRIOR, epsilon=2, delta=1e-6, simulated=False)
    ],
    (
        "the model that this fit starts from is an earlier release with epsilon=2, delta=0 of its own; "
        "its noise was simulated"
    ): [Assumption.of(Kind.EARLIER, Fact.PRIOR, epsilon=2, delta=0, simulated=True)],
    "the model that this fit starts from is an earlier release": [
        Assumption.of(Kind.EARLIER, Fact.PRIOR, epsilon=None, delta=None, simulated=None)
    ],
    "the model that this fit starts from is an earlier release, whatever it promises": [
        Assumption.of(Kind.EARLIER, Fact.PRIOR, epsilon=None, delta=None, simulated=None)
    ],
    ("the scored model (biases) was released before, with epsilon=1, user/add-or-remove/joint, of its own"): [
        Assumption.of(
            Kind.EARLIER,
            Fact.SCORED_MODEL,
            model="biases",
            epsilon=1,
            definition="user/add-or-remove/joint",
        )
    ],
    "the scored model (als) was learned from public data": [
        Assumption.of(Kind.DECLARED, Fact.SCORED_MODEL, model="als")
    ],
    (
        "the data are synthetic, from a release with epsilon 1, delta 1e-06, proved; "
        "this promise is about the synthetic users alone"
    ): [
        Assumption.of(
            Kind.SYNTHETIC,
            Fact.DATA,
            origin="synthetic, from a release with epsilon 1, delta 1e-06, proved",
        )
    ],
    "the budget is yearly; what earlier periods released is not counted": [
        Assumption.of(Kind.LEDGER, Fact.RENEWAL, period="yearly")
    ],
    "the budget was started anew: other people\nthan before": [
        Assumption.of(Kind.LEDGER, Fact.NEW_START, reason="other people\nthan before")
    ],
    "all releases of a followed year are counted in the budget's period in which it was paid": [
        Assumption.of(Kind.LEDGER, Fact.PERIOD_OF_A_YEAR)
    ],
    "when releases are made and when items were declared is public": [
        Assumption.of(Kind.DECLARED, Fact.RELEASE_TIMES)
    ],
    "a user has one id all year": [Assumption.of(Kind.USE, Fact.ONE_ID)],
    "no release is drawn again from an older copy of the state": [Assumption.of(Kind.BACKUP, Fact.STATE)],
    "each person's choices are held by one party, or each party's promise is added": [
        Assumption.of(Kind.PARTY, Fact.ONE_PARTY)
    ],
    "whether a party's new ratings can be read is public; text in its Parquet files is valid Unicode": [
        Assumption.of(Kind.PARTY, Fact.READABLE),
        Assumption.of(Kind.PARTY, Fact.UNICODE),
    ],
    "whether a party's new ratings can be read is public; text in its Parquet files is UTF-8": [
        Assumption.of(Kind.PARTY, Fact.READABLE),
        Assumption.of(Kind.PARTY, Fact.UNICODE),
    ],
    (
        "whether a party's new ratings can be read is public, and no party has more than 2^24 - 1 users a "
        "year"
    ): [
        Assumption.of(Kind.PARTY, Fact.READABLE),
        Assumption.of(Kind.PARTY, Fact.MOST_USERS, users=16777215),
    ],
    (
        "no party has more than 16,777,215 users a year, and none began its year again after its state was "
        "lost"
    ): [
        Assumption.of(Kind.PARTY, Fact.MOST_USERS, users=16777215),
        Assumption.of(Kind.BACKUP, Fact.RESTART),
    ],
    (
        "no party has more than 2^24 - 1 users a year, and none began its year again after its state was lost"
    ): [
        Assumption.of(Kind.PARTY, Fact.MOST_USERS, users=16777215),
        Assumption.of(Kind.BACKUP, Fact.RESTART),
    ],
    "the coordinator and the keeper of masks do not work together; the keeper reveals one sum a step": [
        Assumption.of(Kind.PARTY, Fact.COLLUSION)
    ],
    "the coordinator and the keeper of masks follow the rounds and do not work together": [
        Assumption.of(Kind.PARTY, Fact.COLLUSION)
    ],
    "of the parties in each sum at least 3 add their share of noise and tell nobody": [
        Assumption.of(Kind.PARTY, Fact.NOISE_SHARES, parties=3)
    ],
    "at least 3 of 5 parties add their share of noise and tell nobody": [
        Assumption.of(Kind.PARTY, Fact.NOISE_SHARES, parties=3)
    ],
    "another party knows a share of the noise; against it the promise is epsilon=1.27": [
        Assumption.of(Kind.PARTY, Fact.KNOWN_SHARE, epsilon=1.27, coordinator=False)
    ],
    "another party knows its own share; against it the promise is epsilon=1.3": [
        Assumption.of(Kind.PARTY, Fact.KNOWN_SHARE, epsilon=1.3, coordinator=False)
    ],
    (
        "a coordinator that works with one party knows a share of the noise; against it the promise is "
        "epsilon=1.27"
    ): [Assumption.of(Kind.PARTY, Fact.KNOWN_SHARE, epsilon=1.27, coordinator=True)],
    "if coordinator and keeper work together, a party's own share promises epsilon=1.94": [
        Assumption.of(Kind.PARTY, Fact.ONE_SHARE, epsilon=1.94)
    ],
}


@pytest.mark.parametrize("sentence", OLD, ids=lambda text: text[:60])
def test_each_sentence_of_an_older_version_is_read(sentence):
    assert list(assumed_in(sentence)) == OLD[sentence]
    assert list(Guarantee.from_json(stored(GUARANTEE, [sentence])).assumes) == OLD[sentence]


@pytest.mark.parametrize("sentence", OLD, ids=lambda text: text[:60])
@pytest.mark.parametrize(
    "change",
    [
        lambda text: f"{text} ",
        lambda text: f" {text}",
        lambda text: f"{text}\n",
        lambda text: text.upper(),
        lambda text: f"not: {text}",
        lambda text: text[:-1],
    ],
    ids=["space after", "space before", "line after", "upper case", "negated", "cut"],
)
def test_a_changed_sentence_never_loses_a_condition(sentence, change):
    """A free text at the end may change; everything else in an unknown sentence is a condition."""
    changed = change(sentence)
    found = assumed_in(changed)
    free = {Fact.NEW_START}
    numeric_tail = found[0].kind is not Kind.UNKNOWN and changed == sentence[:-1] and sentence[-1].isdigit()
    assert found == unknown(changed) or found[0].fact in free or numeric_tail


@given(st.text())
def test_any_other_sentence_of_an_older_file_is_a_condition(sentence):
    if sentence not in OLD:
        (found,) = assumed_in(sentence)
        assert found.is_condition or found.fact is Fact.NEW_START
        assert found.fact is Fact.NEW_START or dict(found.detail)["text"] == sentence


@pytest.mark.parametrize(
    "sentence",
    [
        "",
        "the catalog is public",
        "the catalog of many items is public",
        "the catalog of 5 items is public (read from the data)",
        "ratings lie in ١ to ٥",
        f"the catalog of {'9' * 5000} items is public",
        f"ratings lie in 1 to {'9' * 400}",
        "my model assumes that the moon is full",
    ],
    ids=lambda text: text[:50],
)
def test_an_unknown_sentence_makes_the_guarantee_conditional(sentence):
    read = Guarantee.from_json(stored(GUARANTEE, [sentence]))
    assert read.conditions == unknown(sentence)
    assert Guarantee.from_json(read.to_json()).conditions == read.conditions


def test_a_note_of_an_older_version_about_raw_ratings_is_an_assumption():
    raw = "this fit read the raw ratings: nothing is hidden from whoever ran it"
    read = Guarantee.from_json(stored(GUARANTEE, [], [raw, "another note"]))
    assert read.reads_raw_ratings and read.notes == ("another note",)
    assert read == replace(GUARANTEE, notes=("another note",)).from_raw_ratings()


@pytest.mark.parametrize(
    "change", [{"kind": "hearsay"}, {"fact": "moon"}, {"kind": "raw"}, {"fact": "catalog", "kind": "ledger"}]
)
def test_an_assumption_of_a_later_version_is_a_condition(change):
    record = {**TAKEN_CATALOG.to_json(), **change}
    assert Assumption.from_json(record) == unknown(record["text"])[0]
