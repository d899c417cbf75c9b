"""What an older version wrote is read for ever, with the meaning it had. Never write these files again."""

import io
import json
import math
import shutil
import zipfile
from pathlib import Path

import numpy as np
import pytest

import discreet
from assumption_examples import conditions, stated
from discreet.collect import wire
from discreet.collect.campaign import Campaign
from discreet.collect.device import Device
from discreet.collect.hidden_items import CatalogCampaign, read
from discreet.collect.opening import open_campaign
from discreet.data.vocabulary import Vocabulary
from discreet.federated.journal import Journal
from discreet.follow import Following
from discreet.models import storage
from discreet.models.user_factorization.estimator import UserFactorization
from discreet.privacy.guarantee import Assumption, Fact, Guarantee, Kind
from discreet.privacy.ledger.ledger import Ledger
from discreet.privacy.mechanisms.cells import HiddenStars
from discreet.synthesis.labels import read_synthetic_label
from discreet.testing.small_data import toy_data
from service.node import device_lists, needs_node

OLD = Path(__file__).parent / "v0.1"
SECOND = OLD.parent / "campaign-2"
TITLED = OLD.parent / "model-2" / "clicks.discreet"
BUNDLED = OLD.parent / "bundle-1"
SENTENCES = OLD.parent / "v0.2"
MODELS = sorted(OLD.glob("*.discreet"))


@pytest.mark.parametrize("path", MODELS, ids=lambda path: path.stem)
def test_a_model_opens_with_its_promise_and_its_arrays(path):
    model = discreet.load(path)
    assert model.scorer.kind == path.stem and len(model.catalog) == 12
    assert model.guarantee.label()
    for array in model.scorer.arrays().values():
        assert array.dtype.kind != "f" or np.isfinite(array).all()


@pytest.mark.parametrize(
    "path", [path for path in MODELS if path.stem != "one-bit-cells"], ids=lambda path: path.stem
)
def test_a_model_recommends(path):
    assert len(discreet.load(path).recommend({"item 01": 5, "item 04": 1}, k=3)) == 3


def test_a_model_of_the_second_version_has_public_columns():
    model = discreet.load(TITLED)
    assert model.titles(["item 01", "item 11"]) == {
        "item 01": {"title": "The 1th, or Ümlaut", "year": "1991"},
        "item 11": {"title": "", "year": ""},
    }
    assert len(model.recommend(["item 01"], k=3)) == 3


@pytest.mark.few(2)
@needs_node
@pytest.mark.parametrize("path", sorted(BUNDLED.glob("*.bin")), ids=lambda path: path.stem)
def test_a_model_of_a_bundle_makes_the_same_lists(path):
    ids = [f"item {number:02d}" for number in range(12)]
    asked = [
        ([[ids[1], 5], [ids[4], 1], [ids[7], 3]], {"k": 5}),
        ([[ids[1], 5], [ids[4], 1]], {"k": 5, "ordered": False}),
        ([], {"k": 5}),
    ]
    lists = device_lists(path.read_bytes(), ids, asked)
    wanted = json.loads((BUNDLED / "lists.json").read_text())[path.stem]
    for listed, known in zip(lists, wanted, strict=True):
        assert [one["item"] for one in listed] == [item for item, _ in known]
        assert np.allclose([one["score"] for one in listed], [score for _, score in known], atol=2e-5)


def test_a_ledger_opens_unchanged(tmp_path):
    path = tmp_path / "spent.ledger"
    shutil.copyfile(OLD / "spent.ledger", path)
    with Ledger.open(path) as ledger:
        assert [(entry.what, entry.state) for entry in ledger.entries("toy")] == [
            ("biases", "done"),
            ("popularity", "done"),
            ("biases", "failed"),
        ]
        assert ledger.spent("toy").epsilon == 2.5 and ledger.remaining("toy").epsilon == 0.5
        assert ledger.budget("toy").reason == "a year"


def test_a_campaign_and_its_reports_say_what_they_said():
    campaign = Campaign.from_bytes((OLD / "films.campaign").read_bytes())
    assert campaign.name == "films" and campaign.mechanism.epsilon == 1.0 and campaign.max_reports == 5
    for name in ("films.report", "films.report.json"):
        message = wire.read(campaign, (OLD / name).read_bytes())
        assert (message.items, message.codes) == ((3, 99), (10, 240))
    device = Device.restore(campaign, json.loads((OLD / "films.device.json").read_text()))
    assert device.answered == 2 and device.spent == 2.0


def test_a_report_that_hides_what_was_rated_is_read():
    campaign = CatalogCampaign(
        name="films", mechanism=HiddenStars(epsilon=3.0), catalog=Vocabulary.of(range(50))
    )
    message = read(campaign, (OLD / "hidden.report").read_bytes())
    assert message.items.size == message.codes.size > 0


def test_a_journal_holds_its_messages(tmp_path):
    path = tmp_path / "party.journal"
    shutil.copyfile(OLD / "party.journal", path)
    journal = Journal(path)
    assert [message.kind for message in journal.messages][-1] == "votes"
    journal.close()


def test_campaigns_of_version_2_and_their_reports_say_what_they_said():
    films, stars = (open_campaign(SECOND / f"{name}.campaign") for name in ("films", "stars"))
    message = wire.read(films, (SECOND / "films.report").read_bytes())
    assert (message.items, message.codes) == ((3, 99), (10, 240)) and films.mechanism.epsilon == 1.0
    report = read(stars, (SECOND / "stars.report").read_bytes())
    assert (report.items.tolist(), report.codes.tolist()) == ([2, 40], [0, 4])
    numbers = open_campaign(SECOND / "numbers.campaign")
    assert numbers.answers == 5 and numbers.for_person().epsilon == 10.0


# Files of 0.2 have assumptions as sentences.

TAKEN_BOTH = [Fact.CATALOG, Fact.SCALE]


@pytest.mark.parametrize("path", [*MODELS, TITLED], ids=lambda path: path.stem)
def test_a_model_of_the_first_version_has_no_condition_and_no_unknown_assumption(path):
    assert discreet.load(path).guarantee.conditions == ()


@pytest.mark.parametrize(
    ("name", "facts", "kinds"),
    [
        ("taken", TAKEN_BOTH, {Kind.TAKEN}),
        ("refit", TAKEN_BOTH, {Kind.TAKEN, Kind.DECLARED, Kind.EARLIER}),
        ("raw", [], {Kind.DECLARED, Kind.RAW}),
        ("renewed", [Fact.CATALOG], {Kind.TAKEN, Kind.DECLARED, Kind.LEDGER}),
        ("drawn", [Fact.CATALOG], {Kind.TAKEN, Kind.DECLARED, Kind.SYNTHETIC}),
    ],
)
def test_a_model_with_sentences_keeps_its_conditions(name, facts, kinds, tmp_path):
    model = discreet.load(SENTENCES / f"{name}.discreet")
    assert conditions(model.guarantee) == facts and {one.kind for one in model.guarantee.assumes} == kinds
    assert model.guarantee.reads_raw_ratings == (name == "raw")
    model.save(tmp_path / "again.discreet")
    assert discreet.load(tmp_path / "again.discreet").guarantee == model.guarantee


def test_a_ledger_with_sentences_opens(tmp_path):
    path = tmp_path / "anew.ledger"
    shutil.copyfile(SENTENCES / "anew.ledger", path)
    with Ledger.open(path) as ledger:
        (entry,) = ledger.entries("shop")
        assert conditions(entry.guarantee) == [Fact.CATALOG]
        (renewal,) = ledger.assumptions("shop")
        # A budget of a calendar's year now limits any twelve months, and old labels state what was true.
        assert renewal == Assumption.of(Kind.LEDGER, Fact.RENEWAL, period="12 months")
        assert Assumption.of(Kind.LEDGER, Fact.RENEWAL, period="yearly") in entry.guarantee.assumes


def test_continual_releases_with_sentences_go_on(tmp_path):
    path = tmp_path / "year.follow"
    shutil.copyfile(SENTENCES / "year.follow", path)
    model = Following(path).add(None).model
    assert model.guarantee.conditions == ()
    assert {(Kind.BACKUP, Fact.STATE), (Kind.USE, Fact.ONE_ID)} <= set(stated(model.guarantee))
    assert stated(model.guarantee)[Kind.DECLARED, Fact.CATALOG] == {"items": 12}


def test_synthetic_data_with_sentences_have_their_label():
    label = read_synthetic_label(SENTENCES / "drawn.csv")
    assert conditions(Guarantee.from_json(label["guarantee"])) == TAKEN_BOTH


def test_old_names_of_arrays_and_decisions_are_read_as_new_ones(tmp_path):
    """Version 3 called an array `crowds` and a decision "people per noise"; the numbers are the same."""
    new = UserFactorization(epsilon=math.inf).fit(toy_data("ratings"))
    new.save(path := tmp_path / "new.discreet")
    with zipfile.ZipFile(path) as archive:
        label, raw = json.loads(archive.read("label.json")), archive.read("arrays.npz")
    back = {new: old for old, new in (storage.OLD_ARRAYS | storage.OLD_DECISIONS).items()}
    decisions = label["scorer"]["settings"]["decisions"]
    label["scorer"]["settings"]["decisions"] = {back.get(name, name): one for name, one in decisions.items()}
    label["provenance"] = {back.get(name, name): one for name, one in label["provenance"].items()}
    arrays = {back.get(name, name): one for name, one in np.load(io.BytesIO(raw)).items()}
    np.savez(packed := io.BytesIO(), **arrays)
    label |= {"version": 3}
    del label["digest"]
    label["digest"] = storage._digest(label, packed.getvalue())
    with zipfile.ZipFile(old := tmp_path / "old.discreet", "w") as archive:
        archive.writestr("label.json", json.dumps(label))
        archive.writestr("arrays.npz", packed.getvalue())
    assert "crowds" in arrays and "people per noise" in label["scorer"]["settings"]["decisions"]
    loaded = discreet.load(old)
    assert loaded.scorer.explain() == new.scorer.explain()
    assert np.array_equal(loaded.scorer.part("co_occurrences"), new.scorer.part("co_occurrences"))
    assert storage.read_label(old)["provenance"] == storage.read_label(path)["provenance"]


# Files of 0.3 have kinds of assumptions, certificates, and version 4 of models.

THIRD = OLD.parent / "v0.3"


@pytest.mark.parametrize(
    ("name", "epsilon"),
    [
        ("als", math.inf),
        ("biases", 1.0),
        ("both", 5.0),
        ("current", 2.0),
        ("federated", 4.0),
        ("lists", 5.0),
        ("popularity", 1.0),
    ],
)
def test_a_model_of_0_3_opens_with_its_condition_and_recommends(name, epsilon):
    model = discreet.load(path := THIRD / f"{name}.discreet")
    parties = [Fact.FACTS_OF_PARTIES] * (name == "federated")
    assert storage.read_label(path)["version"] == 4 and model.guarantee.epsilon == epsilon
    assert conditions(model.guarantee) == [Fact.CATALOG, *parties]
    ids = model.catalog.id_at([3, 7]).tolist()
    assert len(model.recommend({ids[0]: 5, ids[1]: 1}, k=3)) == 3


def test_a_ledger_of_0_3_opens(tmp_path):
    shutil.copyfile(THIRD / "spent.ledger", path := tmp_path / "spent.ledger")
    with Ledger.open(path) as ledger:
        assert len(ledger.entries("toy")) == 2
        assert ledger.remaining("toy").epsilon == pytest.approx(10.0)


def test_continual_releases_of_0_3_go_on(tmp_path):
    shutil.copyfile(THIRD / "year.follow", path := tmp_path / "year.follow")
    assert Following(path).add(None).model.guarantee.epsilon == 2.0


def test_synthetic_data_of_0_3_have_their_label():
    label = read_synthetic_label(THIRD / "drawn.csv")
    assert Guarantee.from_json(label["guarantee"]).epsilon == 5.0


def test_a_campaign_of_0_3_its_report_and_its_device_are_read():
    campaign = open_campaign(THIRD / "films.campaign")
    message = wire.read(campaign, (THIRD / "films.report").read_bytes())
    assert message.items == (3, 7)
    device = Device.restore(campaign, json.loads((THIRD / "films.device.json").read_text(encoding="utf8")))
    assert device.spent == 2.0


def test_a_party_of_0_3_has_its_answers(tmp_path):
    shutil.copyfile(THIRD / "party.state", path := tmp_path / "party.state")
    journal = Journal(path)
    kinds = [message.kind for message in journal.messages]
    journal.close()
    assert kinds == ["begun", "drawing", "key", "sum", "confirm"]
