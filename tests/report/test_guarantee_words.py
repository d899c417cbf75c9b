"""Words of guarantees: every kind renders in every door, and each weakness shows."""

import json
import math
from dataclasses import replace
from html import unescape

import pytest
from hypothesis import given
from rich.console import Console

from assumption_examples import CONDITIONS, EXAMPLES, TAKEN_CATALOG, TAKEN_SCALE
from discreet.dossier.registry import registry_entry
from discreet.export.card import model_card
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
)
from discreet.report import guarantee_wording as words
from discreet.report.label import label_html, label_markdown, label_table
from privacy_values import guarantees, make


def label_of(guarantee):
    return {
        "name": "popularity",
        "version": 3,
        "guarantee": guarantee.to_json(),
        "provenance": {"popularity": "noisy counts"},
        "parameters": {},
        "facts": {"n_items": 5, "low": 1.0, "high": 1.0},
    }


def printed(guarantee):
    console = Console(width=400)
    with console.capture() as capture:
        console.print(label_table(guarantee, "Facts"))
    return capture.get()


def plain(text):
    """Return text without the escapes of Markdown, HTML and YAML."""
    return unescape(text).replace("\\", "")


#: Every place that shows a guarantee.
DOORS = {
    "text": lambda one: one.label(),
    "terminal": printed,
    "notebook": lambda one: unescape(one._repr_html_()),
    "json": lambda one: json.dumps(one.to_json(), ensure_ascii=False),
    "markdown": lambda one: plain(label_markdown(label_of(one), one, "unsigned")),
    "page": lambda one: unescape(label_html(label_of(one), one, "unsigned")),
    "card": lambda one: plain(model_card(label_of(one), "unsigned", None, file="m.discreet")),
    "registry": lambda one: plain(registry_entry(label_of(one))),
}


@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize("one", EXAMPLES, ids=lambda one: f"{one.kind}-{one.fact}")
def test_every_assumption_shows_in_every_door(one, door):
    guarantee = make(trust=Trust.LOCAL).assuming(one)
    # In a sentence its first letter is a capital.
    assert one.text[1:] in DOORS[door](guarantee)
    assert one.text[1:] not in DOORS[door](make(trust=Trust.LOCAL))


@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize("one", CONDITIONS, ids=lambda one: f"{one.kind}-{one.fact}")
def test_every_condition_shows_in_every_door(one, door):
    shown = DOORS[door](make().assuming(one))
    clause = words.condition_text([one])
    assert clause and clause in shown
    assert clause not in DOORS[door](make())


def test_words_are_complete_and_distinct():
    said = {key for key in STATEMENTS if key[0] is not Kind.TAKEN}
    assert said <= set(words.ASSUMPTION_WORDS)
    assert set(words.ASSUMPTION_WORDS) <= {*STATEMENTS}
    texts = [one.text for one in EXAMPLES if one.fact is not Fact.STATEMENT]
    assert len(set(texts)) == len(texts)
    assert set(words.UNIT_WORDS) == set(Unit) and set(words.TRUST_WORDS) == set(Trust)
    assert set(words.BASIS_WORDS) == set(Basis)
    for unit in Unit:
        for neighbors in Neighbors:
            assert make(unit=unit, neighbors=neighbors).sentence()


def test_a_fact_that_may_be_absent_renders():
    for one in EXAMPLES:
        absent = {name: None for name, _ in one.detail if name in ("step", "epsilon", "delta", "simulated")}
        if absent:
            assert Assumption.of(one.kind, one.fact, **{**dict(one.detail), **absent}).text


@pytest.mark.parametrize("simulated", [True, False, None])
def test_an_earlier_release_with_simulated_noise_is_called_so(simulated):
    earlier = Assumption.of(Kind.EARLIER, Fact.PRIOR, epsilon=1.0, delta=1e-6, simulated=simulated)
    assert ("simulated" in earlier.text) == bool(simulated)


def test_the_clause_of_conditions_names_each_fact_once(snapshot):
    taken = [TAKEN_CATALOG, TAKEN_SCALE, Assumption.of(Kind.TAKEN, Fact.INTERACTIONS)]
    assert words.condition_names(taken) == ["the catalog", "the scale"]
    layout = Assumption.of(Kind.TAKEN, Fact.LAYOUT, layout="UTF-8, comma")
    assert len(words.condition_names([*taken, layout])) == 3
    snapshot("\n".join(words.condition_text(some) for some in (taken[:1], taken, [*taken, layout])))
    strange = Assumption.of(Kind.UNKNOWN, Fact.STATEMENT, text="strange")
    assert words.condition_names([strange]) == [] and words.condition_text([strange])
    assert words.condition_text([]) == ""


@given(guarantees())
def test_the_sentence_states_the_whole_guarantee(guarantee):
    text = guarantee.sentence()
    assert guarantee.to_json()["sentence"] == text
    if guarantee.epsilon == math.inf:
        assert text.startswith("NOT PRIVATE")
        return
    assert text.startswith("SIMULATED") == guarantee.simulated
    assert ("δ" in text) == (guarantee.delta > 0)
    assert words.BASIS_WORDS[guarantee.basis] in text
    assert words.against(guarantee) in text
    assert words.condition_text(guarantee.conditions) in text


@given(guarantees())
def test_the_short_line_hides_no_condition(guarantee):
    text = guarantee.short()
    if guarantee.epsilon == math.inf:
        assert text.startswith("NOT PRIVATE")
        return
    assert text.startswith("SIMULATED") == guarantee.simulated
    assert ("δ" in text) == (guarantee.delta > 0)
    assert (words.BASIS_WORDS["as-published"] in text) == (guarantee.basis is Basis.AS_PUBLISHED)
    if guarantee.is_private:
        assert words.condition_text(guarantee.conditions) in text
    assert ("raw ratings" in text) >= guarantee.reads_raw_ratings


def test_the_status_follows_from_fields(snapshot):
    conditional = make().assuming(TAKEN_CATALOG)
    assert words.status(make()) == "PRIVATE"
    clause = words.condition_text(conditional.conditions)
    assert words.status(conditional) == f"PRIVATE, if {clause}"
    assert (
        words.status(make(math.inf)) == words.status(replace(conditional, epsilon=math.inf)) == "NOT PRIVATE"
    )
    assert words.status(conditional.as_simulated()) == "SIMULATED"
    snapshot(words.status(replace(conditional, delta=0.5)))


def test_the_factor_is_rounded_up():
    for epsilon, factor in ((1.0, "2.72"), (5.0, "149"), (1000.0, "∞")):
        assert f"at most {factor} (e^ε, rounded up)" in make(epsilon).sentence()


def test_a_delta_that_is_too_large_shows_everywhere():
    large, usual = make(delta=0.5), make(delta=1e-3)
    for text in (large.sentence(), large.label(), large.short()):
        assert "HARDLY" in text or "above 0.001" in text
    for text in (usual.sentence(), usual.label(), usual.short()):
        assert "0.001:" not in text and "HARDLY" not in text
    assert make(math.inf, delta=0.5).short().startswith("NOT PRIVATE")


def test_a_fit_that_read_raw_ratings_does_not_claim_to_hide_them_from_its_owner():
    local = make(trust=Trust.LOCAL)
    raw = local.from_raw_ratings()
    assert words.against(raw) != words.against(local)
    assert dict(raw.rows())["Against"] == words.against(raw)
    stated = next(one for one in raw.assumes if one.kind is Kind.RAW)
    assert [*raw.rows()].count(("Note", words.assumption_text(stated))) == 1
    assert not [what for what, _ in local.rows() if what == "Note"]


def test_the_label_shows_everything():
    stated = Assumption.of(Kind.DECLARED, Fact.STATEMENT, text="a [bold] fact")
    text = printed(make(delta=1e-6, assumes=(stated, TAKEN_CATALOG), notes=("a note",), proof="proofs/x.md"))
    for shown in ("Facts", "PRIVATE", "1e-06", "a [bold] fact", "a note", "proofs/x.md", "entropy"):
        assert shown in text
    assert "NOT" not in text and text.count("Assumed") == 1
    assert "0 (pure)" in printed(make())
    assert "SIMULATED" in printed(make().as_simulated()) and "entropy" not in printed(make().as_simulated())


def test_the_label_of_no_guarantee_guarantees_nothing():
    text = printed(make(math.inf))
    assert "NOT PRIVATE" in text and words.BASIS_WORDS["none"] in text and "∞" in text
    for shown in ("pure", "Protects", "Against", "entropy"):
        assert shown not in text


def test_repr_names_the_status():
    assert words.status(make()) in repr(make()) and "user" in repr(make())
    assert repr(make(math.inf)) == "Guarantee(NOT PRIVATE)"
    assert isinstance(make(), Guarantee)
