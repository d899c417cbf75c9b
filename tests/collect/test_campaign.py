"""What devices are told: it travels, it has one name, and nothing foreign is read as it."""

import dataclasses
import json
import zlib

import pytest

from discreet.collect.campaign import Campaign
from discreet.core.checks import ParameterError
from discreet.data.vocabulary import Vocabulary
from discreet.privacy.guarantee import Neighbors, Trust, Unit
from discreet.privacy.mechanisms.additive import Laplace
from discreet.privacy.mechanisms.bounded import BoundedLaplace, ClampedLaplace
from discreet.testing import refuses


def campaign(**changes):
    settings = {
        "name": "films",
        "mechanism": BoundedLaplace(epsilon=0.5, low=1, high=5, points=241),
        "catalog": Vocabulary.of([f"film {number}" for number in range(300)]),
        "max_reports": 40,
        "step": 1.0,
    }
    return Campaign(**{**settings, **changes})


@pytest.mark.parametrize("kind", [BoundedLaplace, ClampedLaplace])
def test_travels_as_json_and_in_few_bytes(kind):
    asked = campaign(mechanism=kind(epsilon=0.5, low=1, high=5, points=241))
    told = json.loads(json.dumps(asked.to_json()))
    for copy in (Campaign.from_json(told), Campaign.from_bytes(asked.to_bytes())):
        assert copy.mechanism == asked.mechanism and copy.catalog == asked.catalog
        assert copy.digest == asked.digest and copy.max_reports == 40 and copy.step == 1.0
    assert len(asked.to_bytes()) < 0.7 * len(json.dumps(told))


def test_every_change_has_another_name():
    changed = [
        campaign(),
        campaign(name="books"),
        campaign(max_reports=41),
        campaign(step=None),
        campaign(catalog=Vocabulary.range(300)),
        campaign(mechanism=BoundedLaplace(epsilon=0.25, low=1, high=5, points=241)),
        campaign(mechanism=ClampedLaplace(epsilon=0.5, low=1, high=5, points=241)),
    ]
    assert len({each.digest for each in changed}) == len(changed)


def test_promises_epsilon_a_rating_against_the_collector_too():
    promise = campaign().guarantee()
    assert promise.definition == (Unit.VALUE, Neighbors.REPLACE, Trust.LOCAL)
    assert promise.epsilon == 0.5 and promise.delta == 0
    assert campaign().for_person(40).epsilon == 20.0


@pytest.mark.parametrize(
    "change",
    [
        {"version": 3},
        {"version": True},
        {"kind": "catalog"},
        {"format": "other"},
        {"mechanism": {"name": "trust me"}},
        {"items": [1, 1]},
        {"max_reports": 0},
    ],
)
def test_foreign_or_newer_campaigns_are_refused(change):
    with pytest.raises(ParameterError):
        Campaign.from_json({**campaign().to_json(), **change})


def test_mechanisms_without_or_with_foreign_parameters_are_refused():
    record = campaign().to_json()
    record["mechanism"].pop("points")
    with pytest.raises(ParameterError, match="own parameters"):
        Campaign.from_json(record)
    with refuses("not-for-campaigns", mechanism="Laplace"):
        campaign(mechanism=Laplace(scale=1.0, l1_sensitivity=1.0))


@pytest.mark.parametrize("raw", [b"", b"DSCC", b"DSCCxxxx", b"PK..", b"DSCC" + zlib.compress(b"[" * 10**5)])
def test_damaged_bytes_are_refused(raw):
    with pytest.raises(ParameterError):
        Campaign.from_bytes(raw)


def test_a_bomb_is_not_unpacked():
    bomb = b"DSCC" + zlib.compress(bytes(1 << 27), level=1)
    assert len(bomb) < 1 << 20
    with pytest.raises(ParameterError):
        Campaign.from_bytes(bomb)


def test_is_a_value():
    with pytest.raises(dataclasses.FrozenInstanceError):
        campaign().name = "other"
