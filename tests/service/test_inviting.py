"""Invitations: one code, one device, one token; nothing joins a code and a report."""

import hashlib
import json
import math
import sqlite3
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

from discreet.collect.blind_signatures import BlindSigningKey
from discreet.collect.device import CatalogDevice, Device
from discreet.collect.invitations import HEADER, TokenRequest, code_name, new_code
from discreet.service import stores
from discreet.service.admission import seal, submission
from discreet.service.client import CollectionClient
from discreet.service.stores import copy_store, open_store
from discreet.service.workers import Workers
from discreet.testing import refuses
from hostile_keys import hostile_keys, smooth_modulus
from service.browser import needs_browser, rate
from service.node import ask as ask_node
from service.node import needs_node
from service.servers import ask, ask_json


@pytest.fixture(scope="session")
def signer():
    return BlindSigningKey.new()


@pytest.fixture
def inviting(collecting, films, signer):
    """Collect for a campaign that invites, and make invitations."""

    def start(store=None, campaign=films):
        service, kept = collecting(replace(campaign, invitations=signer.public), store, signer=signer)
        codes = [new_code() for _ in range(4)]
        kept.add_invitations([code_name(code) for code in codes])
        return service, kept, codes

    return start


def sender_of(device):
    return bytes.fromhex(device.state()["sender"])


def test_one_code_admits_one_device(inviting, store_url, tmp_path):
    service, store, codes = inviting(store_url)
    client, campaign = CollectionClient(service.url), store.campaign
    device = Device(campaign)
    message = device.message({"film 3": 5.0})
    with refuses("service-rejected", status=403):
        client.send(message)
    token = client.token(campaign, sender_of(device), codes[0], state=tmp_path / "token")
    assert (tmp_path / "token").stat().st_mode & 0o777 == 0o600
    assert client.send(message, token=token)["kept"] == 1
    assert client.send(message, token=token)["repeated"] == 1
    # The token is kept; asking again needs no code and no service.
    assert client.token(campaign, sender_of(device), "gone", state=tmp_path / "token") == token
    # Another sender can use neither this token nor this code.
    other = Device(campaign)
    with refuses("service-rejected", status=403):
        client.send(other.message({"film 3": 5.0}), token=token)
    with refuses("service-rejected", status=403):
        client.token(campaign, sender_of(other), codes[0], state=tmp_path / "other")
    with refuses("service-rejected", status=403):
        client.token(campaign, sender_of(other), new_code(), state=tmp_path / "third")
    with refuses("different-device"):
        client.token(campaign, sender_of(other), codes[1], state=tmp_path / "token")
    assert store.counts() == (1, 1)


def test_a_lost_answer_is_asked_for_again(inviting, store_url, tmp_path):
    service, store, codes = inviting(store_url)
    campaign, sender = store.campaign, bytes(16)
    request = TokenRequest.new(campaign, sender, codes[0])
    url = f"{service.url}/invitations"
    first, again = (ask(url, request.body(), "application/json") for _ in range(2))
    assert first[0] == again[0] == 200 and first[2] == again[2]
    # The device died before it read the answer; its file has the request.
    kept = tmp_path / "token"
    kept.write_text(json.dumps(request.to_json()))
    assert CollectionClient(service.url).token(campaign, sender, codes[0], state=kept)
    # The twin: a second request with the same code.
    other = TokenRequest.new(campaign, sender, codes[0])
    status, answer = ask_json(url, json.loads(other.body()))
    assert status == 403 and "used already" in answer["error"]


def test_what_is_stored_does_not_join_codes_and_senders(inviting, store_url, tmp_path):
    service, store, codes = inviting(store_url)
    client, campaign = CollectionClient(service.url), store.campaign
    device = Device(campaign)
    token = client.token(campaign, sender_of(device), codes[0], state=tmp_path / "token")
    client.send(device.message({"film 3": 5.0}), token=token)
    rows = dict(store.invitations())
    assert len(rows) == 4 and sum(bool(request) for request in rows.values()) == 1
    assert all(code.encode() not in name + request for code in codes for name, request in rows.items())
    # Nothing of the reports or the token stands in the table of invitations, plain or hashed.
    shown = {sender_of(device), token.encode()}
    shown |= {hashlib.sha256(one).digest() for one in shown}
    assert not shown & (set(rows) | set(rows.values()))
    copy_store(store, tmp_path / "copy.db")
    copied = open_store(str(tmp_path / "copy.db"))
    assert dict(copied.invitations()) == rows
    copied.close()


def test_a_closed_collection_signs_no_more(inviting):
    service, store, codes = inviting()
    request = TokenRequest.new(store.campaign, bytes(16), codes[0])
    store.close_collection()
    status, answer = ask_json(f"{service.url}/invitations", json.loads(request.body()))
    assert status == 403 and "closed" in answer["error"]


def test_a_store_that_fails_signs_nothing_and_says_so(inviting, monkeypatch):
    service, store, codes = inviting()

    def fail(*_):
        raise sqlite3.OperationalError("disk I/O error")

    request = json.loads(TokenRequest.new(store.campaign, bytes(16), codes[0]).body())
    monkeypatch.setattr(type(store), "redeem", fail)
    status, answer = ask_json(f"{service.url}/invitations", request)
    assert status == 503 and "send it again later" in answer["error"]
    monkeypatch.undo()
    assert ask_json(f"{service.url}/invitations", request)[0] == 200


def test_a_stranger_keeps_nobody_from_writing(inviting, store_url, monkeypatch):
    _, store, codes = inviting(store_url)
    first, again, other = (bytes([number] * 32) for number in range(3))
    assert store.redeem(code_name(codes[0]), first)

    def fail(_):
        raise AssertionError("A transaction began.")

    monkeypatch.setattr(type(store), "_transaction", fail)
    # A code that is unknown, and one that is used.
    assert not store.redeem(code_name(new_code()), first)
    assert not store.redeem(code_name(codes[0]), again)
    with pytest.raises(AssertionError, match="began"):
        store.redeem(code_name(codes[1]), other)
    monkeypatch.undo()
    assert store.redeem(code_name(codes[1]), other)


def test_requests_that_wait_are_bounded(inviting, monkeypatch):
    monkeypatch.setattr("discreet.service.collect_app.Workers", lambda **_: Workers(threads=1, waiting=0))
    service, store, codes = inviting()
    url = f"{service.url}/invitations"
    first, second = (
        json.loads(TokenRequest.new(store.campaign, bytes(16), code).body()) for code in codes[:2]
    )
    begun, go_on, redeem = threading.Event(), threading.Event(), type(store).redeem

    def slow(*arguments):
        begun.set()
        assert go_on.wait(300)
        return redeem(*arguments)

    monkeypatch.setattr(type(store), "redeem", slow)
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(ask_json, url, first)
        assert begun.wait(300)
        status, answer = ask_json(url, second)
        go_on.set()
        assert (status, answer["code"]) == (503, "service-unavailable")
        assert waiting.result()[0] == 200
    assert ask_json(url, second)[0] == 200


@pytest.mark.parametrize(
    ("body", "kind", "status"),
    [
        (b"{}", "application/json", 422),
        (b'{"code": "a", "blinded": "00"}', "application/json", 422),
        (b"x" * 5000, "application/json", 413),
        (b"{}", "text/plain", 415),
    ],
)
def test_odd_requests_are_refused(inviting, body, kind, status):
    service, store, _ = inviting()
    assert ask(f"{service.url}/invitations", body, kind)[0] == status
    assert ask(f"{service.url}/invitations", b"{}", headers={"origin": "https://other.example"})[0] == 403
    assert all(not request for _, request in store.invitations())


def test_a_device_that_hides_items_is_invited_alike(inviting, shelf, tmp_path):
    service, store, codes = inviting(campaign=shelf)
    campaign = store.campaign
    message = CatalogDevice(campaign, budget=60.0).message({3: 5.0})
    sender = submission(campaign, message).sender
    assert ask(f"{service.url}/reports", seal(message), headers={HEADER: "é"})[0] == 403
    client = CollectionClient(service.url)
    token = client.token(campaign, sender, codes[0], state=tmp_path / "token")
    assert client.send(message, token=token)["kept"] == 1


def test_invitations_are_bounded(inviting, monkeypatch):
    _, store, _ = inviting()
    monkeypatch.setattr(stores, "MOST_INVITATIONS", 5)
    store.add_invitations([bytes(32)])
    with refuses("too-many-invitations", most=5):
        store.add_invitations([bytes([1] * 32)])


def test_the_key_must_be_the_campaigns(collecting, films, signer, tmp_path):
    invited = replace(films, invitations=signer.public)
    with refuses("key-of-invitations-needed"):
        collecting(invited)
    with refuses("different-invitation-key"):
        collecting(films, f"sqlite:///{tmp_path}/other.db", signer=signer)


def test_a_store_of_before_invitations_is_opened(films, tmp_path):
    open_store(f"sqlite:///{tmp_path}/old.db", films).close()
    with sqlite3.connect(tmp_path / "old.db") as connection:
        connection.execute("DROP TABLE invitations")
    connection.close()
    again = open_store(f"sqlite:///{tmp_path}/old.db")
    assert list(again.invitations()) == []
    again.close()


@needs_node
def test_the_browsers_requests_are_answered_with_tokens_that_are_taken(inviting):
    service, store, codes = inviting()
    campaign, sender = store.campaign, bytes(range(16))
    text = {"text": campaign.text.decode(), "sender": sender.hex()}
    (request,) = ask_node({"what": "request", "code": codes[0], **text})
    sent = {"code": request["code"], "blinded": request["blinded"]}
    status, answer = ask_json(f"{service.url}/invitations", sent)
    assert status == 200
    wrong = answer["signature"][:-1] + ("0" if answer["signature"][-1] != "0" else "1")
    token, refused = ask_node(
        {"what": "token", "request": request, "signature": answer["signature"], **text},
        {"what": "token", "request": request, "signature": wrong, **text},
    )
    assert "no signature" in refused["refused"]
    stores_token = {HEADER: token}
    device = Device.restore(campaign, {**Device(campaign).state(), "sender": sender.hex()})
    body = seal(device.message({"film 3": 5.0}))
    assert ask(f"{service.url}/reports", body, headers=stores_token)[0] == 200


@needs_node
def test_the_browser_reads_no_key_that_could_mark_requests(films, signer):
    record = replace(films, invitations=signer.public).to_json()
    texts = [json.dumps({**record, "invitations": key}) for key in hostile_keys().values()]
    honest, *hostile = ask_node(*({"what": "open", "text": text} for text in (json.dumps(record), *texts)))
    assert "refused" not in honest
    assert all(one["known"] and "key of invitations" in one["refused"] for one in hostile)
    assert "small factors" in hostile[0]["refused"]


@needs_node
def test_the_browser_asks_nothing_that_shares_a_factor_with_the_key():
    modulus, asked = smooth_modulus(), []
    for number in range(60):
        # The random bytes of one request: prefix, salt, and a blinding number that has an inverse.
        script = (number.to_bytes(32) + bytes(48) + (2).to_bytes(256)).hex()
        key = {"modulus": f"{modulus:x}", "digest": bytes(32).hex(), "sender": bytes(16).hex()}
        asked.append({"what": "requestUnder", "script": script, **key})
    answers = ask_node(*asked)
    refused = [one for one in answers if "refused" in one]
    assert 0 < len(refused) < 60 and all("nothing was asked" in one["refused"] for one in refused)
    made = [int(one["blinded"], 16) for one in answers if "blinded" in one]
    assert len(made) + len(refused) == 60 and all(math.gcd(one, modulus) == 1 for one in made)


@needs_browser
def test_the_page_uses_the_invitation_in_its_address(clean, inviting):
    service, store, codes = inviting()
    page = clean.open(service.url)
    page.wait_for_selector("#status:text('invited users only')")
    page.close()
    page = clean.open(f"{service.url}/#{codes[0]}")
    page.wait_for_selector("#status:text('Your invitation was accepted')")
    assert "#" not in page.url
    rate(page, "film 7", 4)
    page.click("#send")
    page.wait_for_selector("#status:text('stored 1 of your answers')")
    page.reload()
    rate(page, "film 3", 4)
    page.click("#send")
    page.wait_for_selector("#status:text('stored 1 of your answers')")
    assert store.counts() == (1, 2)
    assert sum(bool(request) for _, request in store.invitations()) == 1
