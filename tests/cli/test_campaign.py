"""`discreet campaign`, `collect` and `serve`: what devices are told, and what comes of it."""

import json

import pytest

from command_line import one_sentence, rejected
from discreet.collect.device import Device
from discreet.collect.invitations import code_name
from discreet.collect.opening import open_campaign
from discreet.report.guarantee_wording import TRUST_WORDS
from discreet.service.admission import submission
from discreet.service.stores import open_store


@pytest.fixture
def items(tmp_path):
    path = tmp_path / "items.txt"
    path.write_text("\n".join(f"film {number}" for number in range(30)))
    return path


@pytest.fixture
def asked(discreet, items, tmp_path):
    path = tmp_path / "films.campaign"
    code, out, error = discreet(
        "campaign", "new", "--out", path, "--items", items, "--epsilon", "1", "--name", "films", "--json"
    )
    assert code == 0, error
    assert json.loads(out)["person_epsilon"] == 20.0
    return path


def test_a_campaign_is_made_shown_and_checked(discreet, asked):
    assert open_campaign(asked).max_reports == 20
    code, out, _ = discreet("campaign", "show", asked)
    assert code == 0 and TRUST_WORDS["local"] in " ".join(out.split())
    code, out, _ = discreet("campaign", "check", asked, "--json")
    assert code == 0 and 0.99 < json.loads(out)["largest_log_ratio"] <= 1.0


def test_a_campaign_that_hides_what_was_rated(discreet, items, tmp_path):
    path = tmp_path / "shelf.campaign"
    made = ("campaign", "new", "--out", path, "--items", items, "--epsilon", "2", "--name", "shelf")
    one_sentence(*discreet(*made, "--answers", "5"))
    code, out, _ = discreet(*made, "--hide-items", "--answers", "5", "--json")
    assert code == 0 and json.loads(out)["person_epsilon"] == 10.0
    code, out, _ = discreet("campaign", "check", path)
    assert code == 0 and "have epsilon 2" in " ".join(out.split())


def test_devices_are_invited(discreet, items, asked, tmp_path):
    path, key, codes = tmp_path / "invited.campaign", tmp_path / "films.key", tmp_path / "codes.txt"
    made = ("campaign", "new", "--out", path, "--items", items, "--epsilon", "1", "--name", "films")
    code, out, _ = discreet(*made, "--invited", key, "--json")
    assert code == 0 and json.loads(out)["invited"] and key.stat().st_mode & 0o777 == 0o600
    # A key is never replaced, not even with --force: invitations of another campaign may need it.
    one_sentence(*discreet(*made, "--invited", key, "--force"))
    store = f"sqlite:///{tmp_path}/invited.db"
    open_store(store, open_campaign(path)).close()
    invite = ("collect", "invite", store, "--count", "3", "--url", "https://films.example/")
    assert discreet(*invite, "--out", codes)[0] == 0
    links = codes.read_text().split()
    assert len(set(links)) == 3 and all(link.startswith("https://films.example/#") for link in links)
    assert codes.stat().st_mode & 0o777 == 0o600
    kept = open_store(store)
    names = {code_name(link.partition("#")[2]) for link in links}
    assert {name for name, _ in kept.invitations()} == names
    kept.close()
    one_sentence(*discreet(*invite, "--out", codes))
    open_store(f"sqlite:///{tmp_path}/open.db", open_campaign(asked)).close()
    free = ("collect", "invite", f"sqlite:///{tmp_path}/open.db", "--out", tmp_path / "none.txt")
    one_sentence(*discreet(*free))
    one_sentence(*discreet("serve", path, "--store", store))
    one_sentence(
        *discreet("serve", asked, "--store", f"sqlite:///{tmp_path}/open.db", "--invitation-key", key)
    )
    one_sentence(*discreet("serve", path, "--store", store, "--invitation-key", asked))
    one_sentence(*discreet("serve", path, "--store", store, "--invitation-key", tmp_path / "no.key"))


def test_a_campaign_that_lies_or_is_damaged_is_one_sentence(discreet, asked, tmp_path):
    from discreet.collect.campaign import pack, to_text, unpack

    record = unpack(asked.read_bytes())
    record["mechanism"]["epsilon"] = 0.5
    asked.write_bytes(pack(to_text(record)))
    for verb in (("campaign", "check"), ("campaign", "show"), ("serve",)):
        one_sentence(*discreet(*verb, asked))
        one_sentence(*discreet(*verb, tmp_path / "none"))
    asked.write_bytes(b"DSCC")
    one_sentence(*discreet("campaign", "check", asked))


def test_an_old_campaign_has_no_tables_to_check(discreet):
    from pathlib import Path

    old = Path(__file__).parents[1] / "formats" / "v0.1" / "films.campaign"
    one_sentence(*discreet("campaign", "check", old))
    assert discreet("campaign", "show", old)[0] == 0


def test_a_store_is_learned_from_and_closed(discreet, asked, tmp_path):
    url, out = f"sqlite:///{tmp_path}/reports.db", tmp_path / "films.discreet"
    one_sentence(*discreet("collect", "fit", url, "--out", out))
    campaign = open_campaign(asked)
    store = open_store(url, campaign)
    one_sentence(*discreet("collect", "fit", url, "--out", out))
    for number in range(10):
        history = {f"film {(number + step) % 30}": 1.0 + step % 5 for step in range(8)}
        store.take([submission(campaign, Device(campaign).message(history))])
    code, told, error = discreet("collect", "fit", url, "--out", out, "--json")
    assert code == 0, error
    assert json.loads(told)["reports"] == 80 and json.loads(told)["guarantee"]["trust"] == "local"
    one_sentence(*discreet("collect", "fit", url, "--out", out, "--force", "--model", "biases"))
    one_sentence(*discreet("collect", "fit", url, "--out", out))
    code, told, _ = discreet("campaign", "close", url, "--json")
    assert code == 0 and json.loads(told) == {"closed": True, "senders": 10, "reports": 80}
    assert store.is_closed
    store.close()


def test_serving_needs_something_to_serve(discreet, asked, items):
    one_sentence(*discreet("serve", items))
    one_sentence(*discreet("serve", asked, "--port", "0"))
    one_sentence(*discreet("serve", asked, "--refit", "5"))


def test_what_is_neither_a_campaign_nor_a_model_is_not_served(discreet, tmp_path):
    items = tmp_path / "items.csv"
    items.write_text("item\na\nb\n")
    rejected(discreet("serve", items), "not-servable", path=items)
