"""What a party's guarantee assumes about reading its file reaches the label of the model."""

from dataclasses import fields, replace

import pytest

from assumption_examples import EXAMPLES, stated
from discreet.core.errors import ParameterError
from discreet.data.facts import CHOSEN, CHOSEN_SCALE, N_ITEMS, PICKED, SCALE, PublicFacts
from discreet.data.inputs import open_data
from discreet.federated.catalogs import salted, salted_data
from discreet.federated.conditions import ASSUMES, assumptions_at, named_facts, read_facts
from discreet.federated.protocols.averaged_items import AveragedItems
from discreet.federated.simulation import simulate_parties
from discreet.federated.wire import Message, Refusal, Refused, decode, encode
from discreet.privacy.guarantee import Fact, Kind, assumptions_of
from federation import coordinator, members, shared_sums, toy_parts, train

LAYOUTS, FACTS = (Kind.TAKEN, Fact.LAYOUTS_OF_PARTIES), (Kind.TAKEN, Fact.FACTS_OF_PARTIES)
OWN = AveragedItems(epsilon=20.0, rounds=1, factors=2)


def guessed(data, **facts):
    """Return data as if read from a file whose layout was guessed."""
    return data.with_facts(replace(data.facts, layout="UTF-8, comma, header", **facts))


def declared(**changed):
    """Return the whole data and each party's, with declared facts and these changes at some parties."""
    data, parts = toy_parts()
    data = data.with_facts(replace(data.facts, from_file=()))
    parts = {name: one.with_facts(data.facts) for name, one in parts.items()}
    return data, parts | {name: change(parts[name]) for name, change in changed.items()}


@pytest.mark.few(1)
@pytest.mark.parametrize("masked", [False, True])
def test_a_layout_that_one_party_guessed_is_a_condition_on_the_label(masked):
    data, parts = declared(p1=guessed, p2=guessed)
    protocol = shared_sums(data) if masked else OWN
    guarantee = train(protocol, parts, data).model.guarantee
    assert stated(guarantee)[LAYOUTS] == {"members": "p1, p2"}
    assert [one.fact for one in guarantee.conditions] == [Fact.LAYOUTS_OF_PARTIES]
    # The twin: no condition is stated if every party declares its layout.
    _, parts = declared()
    assert not train(protocol, parts, data).model.guarantee.conditions


def test_every_condition_of_a_party_reaches_the_label():
    data, parts = declared(
        p0=lambda one: one.with_facts(replace(one.facts, from_file=(N_ITEMS,))),
        p3=lambda one: guessed(one, from_file=(SCALE,), reading=("quotes",)),
    )
    found = stated(train(OWN, parts, data).model.guarantee)
    assert found[LAYOUTS] == {"members": "p3"} and found[FACTS] == {"members": "p0, p3"}
    assert (Kind.DECLARED, Fact.QUOTES) in found


def test_facts_of_a_real_file_are_named_and_never_quoted(tmp_path):
    file = tmp_path / "secret.csv"
    file.write_text("user;thing;rating\nann;alien;5\nbob;brazil;4\n")
    facts = open_data(str(file), columns={"item": "thing"}, low=1, high=5, catalog=["alien", "brazil"]).facts
    assert facts.layout and Fact.LAYOUTS_OF_PARTIES in named_facts(facts).split(",")
    assert "thing" not in named_facts(facts)


def test_hashed_items_keep_how_the_file_was_read():
    _, parts = declared(p0=guessed)
    own, salt = parts["p0"], b"a shared secret of shops"
    hashed = salted_data(own, salt, salted(own.catalog, salt), replace(own.facts, layout=""))
    assert hashed.facts.layout == own.facts.layout


@pytest.mark.few(4)
@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ("layout: ./home", Refusal.MALFORMED),
        ("quotes,quotes", Refusal.MALFORMED),
        (7, Refusal.MALFORMED),
        (True, Refusal.MALFORMED),
        (",", Refusal.MALFORMED),
    ],
)
def test_a_party_that_names_anything_else_is_left_out_by_name(value, reason):
    data, parts = declared()
    honest = members(parts, OWN)

    def lying(raw):
        answer = decode(honest["p1"].answer(raw))
        return encode(replace(answer, fields={**answer.fields, ASSUMES: value}))

    endpoints = {name: party.answer for name, party in honest.items()} | {"p1": lying}
    outcome = coordinator(OWN, endpoints, data.catalog).train(data.facts)
    assert {entry.left_out.get("p1") for entry in outcome.rounds} == {reason.value}
    assert not outcome.model.guarantee.conditions


def test_an_answer_that_states_nothing_is_a_condition_and_survives_a_restart(tmp_path):
    data, parts = declared()
    honest = members(parts, OWN)

    def older(raw):
        answer = decode(honest["p2"].answer(raw))
        return encode(
            replace(answer, fields={name: one for name, one in answer.fields.items() if name != ASSUMES})
        )

    endpoints = {name: party.answer for name, party in honest.items()} | {"p2": older}
    state = tmp_path / "coordinator.state"
    run = {"shared": data.catalog, "state": state}
    first = coordinator(OWN, endpoints, **run).train(data.facts).model.guarantee
    assert stated(first)[FACTS] == {"members": "p2"}
    again = coordinator(OWN, dict.fromkeys(endpoints), **run).train(data.facts).model.guarantee
    assert again.assumes == first.assumes


def test_a_simulation_states_how_its_one_file_was_read_once():
    data, _ = declared()
    found = stated(simulate_parties(OWN, guessed(data), 3).model.guarantee)
    assert (Kind.TAKEN, Fact.LAYOUT) in found and LAYOUTS not in found and FACTS not in found


def test_each_kind_of_condition_has_a_name_on_the_wire():
    every = PublicFacts(n_items=2, from_file=(N_ITEMS, SCALE), layout="x", reading=("frame", "readable"))
    named = read_facts(
        Message(kind="votes", run="r", step=0, sender="p", fields={ASSUMES: named_facts(every)})
    )
    assert named == {Fact.LAYOUTS_OF_PARTIES, Fact.FACTS_OF_PARTIES, Fact.FRAME, Fact.READABLE}
    examples = {(one.kind, one.fact) for one in EXAMPLES}
    assert {(one.kind, one.fact) for one in assumptions_at([("p", named)])} <= examples
    with pytest.raises(Refused):
        read_facts(Message(kind="votes", run="r", step=0, sender="p", fields={ASSUMES: "catalog"}))


@pytest.mark.parametrize(
    "about", [{"reading": ("query",)}, {"rows": "event=buy"}, {"from_file": ("picked",)}]
)
def test_what_has_no_name_on_the_wire_is_a_condition_that_names_the_party(about):
    data, parts = declared(p1=lambda one: one.with_facts(replace(one.facts, **about)))
    guarantee = train(OWN, parts, data).model.guarantee
    assert stated(guarantee)[FACTS] == {"members": "p1"}
    assert [one.fact for one in guarantee.conditions] == [Fact.FACTS_OF_PARTIES]
    assert "buy" not in guarantee.label()


ABOUT = {"layout": "x", "rows": "a=b", "weights": "1 for b", "max_per_user": 3, "n_users": 9}


@pytest.mark.parametrize(
    "facts",
    [
        *(PublicFacts(n_items=2, reading=(name,)) for name in ("frame", "readable", "quotes", "query")),
        *(PublicFacts(n_items=2, **{name: value}) for name, value in ABOUT.items()),
        *(
            PublicFacts(n_items=2, from_file=(name,))
            for name in (N_ITEMS, SCALE, CHOSEN, CHOSEN_SCALE, PICKED)
        ),
    ],
)
def test_every_fact_of_a_party_is_agreed_on_or_named(facts):
    """A new fact of a source becomes a condition until it has a name of its own."""
    agreed = {Fact.CATALOG, Fact.SCALE, Fact.USERS, Fact.CAP}
    open_facts = {one.fact for one in assumptions_of(facts) if one.is_condition or one.fact not in agreed}
    named = set(named_facts(facts).split(",")) - {""}
    assert named <= {"layouts of parties", "facts of parties", "frame", "readable", "quotes"}
    assert bool(named) == bool(open_facts)


def test_every_field_of_facts_is_among_those_examples():
    settled = {"n_items", "low", "high", "step", "from_file", "reading"}
    assert {field.name for field in fields(PublicFacts)} == settled | set(ABOUT)
    with pytest.raises(ParameterError) as caught:
        PublicFacts(n_items=2, reading=("another",))
    assert "['frame', 'query', 'quotes', 'readable']" in str(caught.value)


def test_hashed_items_keep_which_rows_were_chosen():
    _, parts = declared(p0=lambda one: one.with_facts(replace(one.facts, rows="event=buy")))
    own, salt = parts["p0"], b"a shared secret of shops"
    hashed = salted_data(own, salt, salted(own.catalog, salt), replace(own.facts, rows=""))
    assert hashed.facts.rows == "event=buy"
