"""Registry entries: valid at tier 3 for every kind of release, and nothing invented."""

from dataclasses import fields
from pathlib import Path

import pytest
import yaml

from discreet.core.checks import DiscreetError
from discreet.dossier.facts import MEANINGS, PUBLISHED, SECTORS, HumanFacts
from discreet.dossier.registry import registry_entry
from discreet.privacy.guarantee import Basis, Guarantee, Neighbors, Trust, Unit
from registry_schema import faults, keys_up_to, schema

ALL = HumanFacts(
    controller="Film Club",
    contact="Ada, ada at example",
    purpose="recommend films; epsilon 1 by decision of the board",
    legal_basis="legitimate interest",
    region="EU",
    sector="Technology",
    retention="one year, readable by two administrators",
    review="2027-01-31",
)


def label(**changes):
    guarantee = Guarantee(
        **{
            "epsilon": 1.0,
            "delta": 1e-6,
            "unit": Unit.USER,
            "neighbors": Neighbors.ADD_OR_REMOVE,
            "trust": Trust.JOINT,
            "basis": Basis.PROVED,
            "proof": "proofs/biases.md",
            **changes.pop("guarantee", {}),
        }
    )
    return {
        "format": "discreet-model",
        "version": 1,
        "name": "biases",
        "guarantee": guarantee.to_json(),
        "facts": {},
        "parameters": {"epsilon": 1.0},
        "provenance": {"item_bias": "computed from noisy releases only"},
        **changes,
    }


KINDS = {
    "joint": label(),
    "pure": label(guarantee={"delta": 0.0}),
    "local": label(guarantee={"trust": Trust.LOCAL, "unit": Unit.VALUE, "neighbors": Neighbors.REPLACE}),
    "central": label(guarantee={"trust": Trust.CENTRAL, "unit": Unit.RATING}),
    "as published": label(guarantee={"basis": Basis.AS_PUBLISHED}),
    "synthetic": label(format="discreet-synthetic"),
    "continual": label(parameters={"release": 3}),
    "parties": label(parameters={"parties": 3}),
    "strange name": label(name="a: [b]\n\x1b"),
}


@pytest.mark.few(7)
@pytest.mark.parametrize("facts", [None, ALL, HumanFacts(region="EU")], ids=["no facts", "all", "one"])
@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_release_has_a_valid_entry_of_tier_three(kind, facts):
    record = yaml.safe_load(registry_entry(KINDS[kind], facts))
    assert faults(record, schema()) == [] and record["tier"] == 3


def test_an_entry_with_all_facts_has_every_key_of_tier_three_and_no_mark():
    text = registry_entry(label(), ALL, published="2026-11-17")
    record = yaml.safe_load(text)
    assert "MISSING" not in text
    for path in keys_up_to(3, schema()):
        if path[-1] == "rho":
            continue
        value = record
        for key in path:
            value = value[key]
        assert value not in ("", None), path


def test_the_schema_check_sees_faults():
    record = yaml.safe_load(registry_entry(label(), ALL))
    record["deployment"]["basic"]["surprise"] = "more"
    record["deployment"]["basic"]["publication_date"] = "soon"
    record["deployment"]["deployment_model"]["release_type"] = "To be filled in"
    del record["status"]
    assert len(faults(record, schema())) == 4


@pytest.mark.parametrize("name", MEANINGS)
def test_a_missing_fact_is_marked_and_a_stated_one_appears(name):
    without = HumanFacts(**{one.name: getattr(ALL, one.name) for one in fields(ALL) if one.name != name})
    marked, complete = registry_entry(label(), without), registry_entry(label(), ALL)
    assert f": {name}." in marked.replace("\n", " ") and getattr(ALL, name) in complete
    if name != "sector":  # An enumeration can't contain a mark, so the key is absent.
        assert f"MISSING (facts.toml: {name})" in marked
    else:
        assert "data_product_sector" not in marked


def test_at_most_eight_facts_are_asked_of_humans(tmp_path):
    assert {one.name for one in fields(HumanFacts)} == {*MEANINGS, *PUBLISHED} and len(MEANINGS) <= 8
    example = Path(__file__).parents[2] / "examples" / "facts.toml"
    assert not HumanFacts.read(example).missing
    path = tmp_path / "facts.toml"
    for facts in (HumanFacts(), HumanFacts.read(example), HumanFacts(purpose='a "list"\nof films')):
        path.write_text(facts.to_toml())
        assert HumanFacts.read(path) == facts


def test_sectors_are_those_of_the_schema():
    basic = schema()["properties"]["deployment"]["properties"]["basic"]["properties"]
    assert list(SECTORS) == basic["data_product_sector"]["enum"]


@pytest.mark.parametrize("change", [{"epsilon": float("inf")}, {"simulated": True}], ids=str)
def test_a_release_that_protects_nobody_is_not_registered(change):
    if change.get("epsilon"):
        change = {**change, "basis": Basis.NONE}
    with pytest.raises(DiscreetError):
        registry_entry(label(guarantee=change))


def test_a_date_comes_from_the_ledger_or_is_marked_as_the_day_of_writing():
    known, unknown = (
        yaml.safe_load(registry_entry(label(), ALL, published=day))["deployment"]
        for day in ("2026-02-03", None)
    )
    assert known["basic"]["publication_date"] == "2026-02-03"
    assert "publication_date" not in known["administrative"]["notes"]
    assert "publication_date" in unknown["administrative"]["notes"]
