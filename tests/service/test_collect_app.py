"""What the service says over HTTP: answers after the commit, and refusals in a sentence."""

import base64
import hashlib
import http.client
import io
import json
import re
import time
from email.message import Message
from pathlib import Path
from urllib.error import HTTPError

import pytest

from discreet.collect.device import CatalogDevice, Device
from discreet.core.checks import DataError
from discreet.export.bundle.folder import device_file
from discreet.papers.mixture.channel import LocalChannel
from discreet.service import client as client_module
from discreet.service import publishing
from discreet.service.admission import seal, submission
from discreet.service.client import CollectionClient
from discreet.service.collect_app import most_bytes
from discreet.service.refitting import Refits, collected_from, fit_store
from discreet.testing import refuses
from service.servers import ask, ask_json, until


def test_a_device_fetches_the_campaign_answers_and_is_acknowledged(collecting, films):
    service, store = collecting(films)
    client = CollectionClient(service.url)
    asked = client.campaign()
    assert asked.digest == films.digest
    assert hashlib.sha256(ask(f"{service.url}/campaign")[2]).digest() == films.digest
    device = Device(asked)
    message = device.message({"film 3": 5.0, "film 7": 1.0})
    assert client.send(message) == {"kept": 2, "repeated": 0, "refused": {}}
    assert client.send(message) == {"kept": 0, "repeated": 2, "refused": {}}
    assert {row.item: row.code for row in store.reports()} == dict(device.state()["answers"])
    status, answer = ask_json(
        f"{service.url}/reports", json.loads(device.message({"film 9": 2.0}, form="json"))
    )
    assert (status, answer["kept"]) == (200, 1)


def test_a_device_that_crashes_repeats_its_answers(collecting, films, tmp_path):
    service, store = collecting(films)
    device, path = Device(films), tmp_path / "device.json"
    message = device.message({"film 3": 5.0})
    CollectionClient(service.url).send(message, state=path, kept=device.state())
    again = Device.restore(films, json.loads(path.read_text()))
    assert CollectionClient(service.url).send(again.message({"film 3": 1.0}))["repeated"] == 1
    assert store.counts() == (1, 1)


def test_whole_catalogs_are_collected_and_learned_from(collecting, shelf):
    service, store = collecting(shelf)
    client = CollectionClient(service.url)
    for number in range(5):
        assert client.send(CatalogDevice(client.campaign(), budget=100.0).message({number: 5.0}))["kept"] == 1
    assert collected_from(store).reports.n_users == 5
    assert fit_store(store, "local-nuclear").guarantee.epsilon == 2.0


def test_refusals_are_one_sentence_with_a_status(collecting, films, shelf):
    service, _ = collecting(films)
    reports = f"{service.url}/reports"
    message = Device(films).message({"film 3": 5.0})
    other = CatalogDevice(shelf, budget=100.0).message({3: 5.0})
    cases = [
        (b"", 400),
        (b"nonsense", 400),
        (message, 400),
        (seal(message) + bytes(512), 400),
        (seal(message)[:-1] + b"x", 400),
        (seal(other), 400),
        (seal(message[:5] + bytes(32) + message[37:]), 409),
        (seal(message[:4] + b"\x09" + message[5:]), 409),
        (bytes(5120), 413),
    ]
    for body, expected in cases:
        status, _, raw = ask(reports, body)
        assert status == expected, (body[:20], status, raw)
        assert re.fullmatch(r"[A-Z].*\.", json.loads(raw)["error"])
    for path, expected in (("/nothing", 404), ("/reports", 405), ("/model", 404), ("/label", 404)):
        status, _, raw = ask(service.url + path)
        assert status == expected and json.loads(raw)["error"].endswith(".")


def test_a_chunked_flood_is_cut_off(collecting, films):
    service, store = collecting(films)
    connection = http.client.HTTPConnection("127.0.0.1", service.port, timeout=300)
    endless = (bytes(65536) for _ in range(1000))
    try:
        headers = {"transfer-encoding": "chunked", "content-type": "application/octet-stream"}
        connection.request("POST", "/reports", body=endless, encode_chunked=True, headers=headers)
        assert connection.getresponse().status == 413
    except OSError:
        pass  # cut off while still sending
    finally:
        connection.close()
    assert most_bytes(store) < 4096


def test_too_many_requests_of_one_peer_are_refused_and_its_address_is_nowhere(collecting, films, capfd):
    service, _ = collecting(films, per_minute=3)
    statuses = [ask(f"{service.url}/reports", b"x")[0] for _ in range(6)]
    assert statuses == [400, 400, 400, 429, 429, 429]
    assert "127.0.0.1" not in "".join(capfd.readouterr())


def test_a_closed_collection_takes_nothing(collecting, films):
    service, store = collecting(films)
    store.close_collection()
    assert ask_json(f"{service.url}/health")[1]["closed"]
    with refuses("service-rejected", status=410):
        CollectionClient(service.url).send(Device(films).message({"film 3": 5.0}))
    assert store.counts() == (0, 0)


def test_a_store_that_fails_is_never_acknowledged(collecting, films, monkeypatch, capfd):
    service, store = collecting(films)
    monkeypatch.setattr(store, "_take_reports", lambda *_: 1 / 0)
    status, _, raw = ask(f"{service.url}/reports", seal(Device(films).message({"film 3": 5.0})))
    assert status == 503 and "later" in json.loads(raw)["error"]
    assert json.loads(capfd.readouterr().err.splitlines()[0]) == {
        "event": "store failed",
        "kind": "ZeroDivisionError",
    }


def test_metrics_are_counts(collecting, films):
    service, _ = collecting(films, metrics_token="for the operator")
    client = CollectionClient(service.url)
    message = Device(films).message({"film 3": 5.0, "film 4": 5.0})
    for _ in range(3):
        client.send(message)
    ask(f"{service.url}/reports", b"nonsense")
    shown = {"authorization": "Bearer for the operator"}
    text = ask(f"{service.url}/metrics", headers=shown)[2].decode()
    assert "discreet_reports_kept_total 2.0\n" in text and "discreet_reports_repeated_total 4.0\n" in text
    assert 'discreet_refused_total{reason="malformed"} 1.0\n' in text


def test_every_answer_has_the_strict_headers(collecting, films):
    service, _ = collecting(films)
    for path in ("/", "/health", "/campaign", "/nothing", "/device/device.js", "/docs"):
        headers = ask(service.url + path)[1]
        assert "default-src 'none'" in headers["content-security-policy"]
        assert "unsafe" not in headers["content-security-policy"]
        assert headers["referrer-policy"] == "no-referrer" and "server" not in headers
    assert not re.search(r"https?://", ask(f"{service.url}/docs")[2].decode())


def test_served_files_are_those_whose_hashes_are_told(collecting, films):
    service, _ = collecting(films)
    told = ask_json(f"{service.url}/integrity")[1]
    assert {"/", "/device/device.js", "/page/page.js"} <= set(told)
    for path, digest in told.items():
        served = hashlib.sha384(ask(service.url + path)[2]).digest()
        assert digest == "sha384-" + base64.b64encode(served).decode()
    page = ask(service.url)[2].decode()
    assert all(digest in page for path, digest in told.items() if path.endswith(".js"))


def learned(store):
    client_films = store.campaign.catalog.ids.tolist()
    for number in range(20):
        history = {client_films[(number + step) % 60]: float(1 + (number + step) % 5) for step in range(10)}
        message = Device(store.campaign).message(history)
        store.take([submission(store.campaign, message)])
    return fit_store(store, "local-channel")


def test_a_model_is_published_when_its_file_appears_and_again_when_it_changes(
    collecting, films, tmp_path, monkeypatch, capfd
):
    monkeypatch.setattr(publishing, "_SECONDS_BETWEEN_LOOKS", 0.01)
    path = tmp_path / "films.discreet"
    service, store = collecting(films, publish=path)
    assert ask(f"{service.url}/model")[0] == 404
    model = learned(store)
    model.save(path)
    until(lambda: ask(f"{service.url}/model")[2] == path.read_bytes())
    assert ask_json(f"{service.url}/label")[1]["sentence"] == model.guarantee.sentence()
    vectors = ask(f"{service.url}/model/vectors")[2]
    assert vectors[:4] == b"DSCB" and vectors == device_file(model)
    path.write_bytes(b"damaged")
    until(lambda: "model rejected" in capfd.readouterr().err)
    assert ask_json(f"{service.url}/label")[0] == 200
    path.unlink()
    other = learned(store)
    other.save(path)
    until(lambda: ask(f"{service.url}/model")[2] == path.read_bytes())


def test_reports_teach_the_same_model_as_the_collector_does(collecting, films):
    _, store = collecting(films)
    model = learned(store)
    assert model.guarantee.epsilon == 1.0 and not model.guarantee.simulated
    again = LocalChannel(epsilon=1.0).fit_reports(collected_from(store))
    assert again.recommend({"film 3": 5.0}) == model.recommend({"film 3": 5.0})


@pytest.mark.thorough
def test_a_schedule_fits_again_and_publishes(collecting, films, tmp_path):
    out, url = tmp_path / "films.discreet", f"sqlite:///{tmp_path}/kept.db"
    service, store = collecting(films, publish=out)
    model = learned(store)
    refits = Refits(url, "local-channel", out, 0.1)
    refits.start()
    end = time.monotonic() + 300
    while ask(f"{service.url}/label")[0] == 404 and time.monotonic() < end:
        time.sleep(0.2)
    refits.stop()
    assert ask_json(f"{service.url}/label")[1]["guarantee"] == model.guarantee.to_json()
    # The address of a store may hold a password, which a list of processes would show.
    assert url not in " ".join(refits._command)


def test_a_client_says_when_nobody_answers(monkeypatch):
    monkeypatch.setattr("discreet.service.client._BACK_OFF", (0.01,))
    with refuses("service-unreachable", answered=False):
        CollectionClient("http://127.0.0.1:1", timeout=1).send(b"x")
    with refuses("bad-service-address"):
        CollectionClient("films.example")


def test_nothing_about_the_environment_is_told(collecting, films):
    service, _ = collecting(films)
    told = b"".join(ask(service.url + path)[2] for path in ("/health", "/metrics", "/openapi.json"))
    assert bytes(Path.cwd()) not in told


@pytest.mark.parametrize("said", [b"[" * 200_000, b"5", b"no JSON", b'["error"]', b"\xff", b"{}{}"])
def test_a_service_that_answers_nonsense_gets_a_sentence(said, monkeypatch):
    client = CollectionClient("http://nobody")
    monkeypatch.setattr(client_module, "_BACK_OFF", ())
    monkeypatch.setattr(client, "_ask", lambda path, body=None, headers=None: said)
    with pytest.raises(DataError):
        client.campaign()
    with refuses("service-unreachable", answered=True):
        client.send(b"anything")
    refusal = HTTPError("http://nobody", 400, "no", Message(), io.BytesIO(said))
    assert isinstance(client_module._refusal(refusal), DataError)


@pytest.mark.parametrize("token", [None, "for the operator"])
def test_metrics_tell_strangers_nothing_about_when_reports_come(collecting, films, token):
    service, _ = collecting(films, metrics_token=token)
    for shown in (None, "Bearer ", "Bearer None", "Bearer for the operato", "for the operator"):
        headers = {} if shown is None else {"authorization": shown}
        assert ask(f"{service.url}/metrics", headers=headers)[0] == 401


@pytest.mark.few(3)
@pytest.mark.parametrize(
    ("kind", "headers", "expected"),
    [
        ("text/plain", {}, 415),
        ("", {}, 415),
        ("application/x-www-form-urlencoded", {}, 415),
        ("application/octet-stream", {"origin": "https://elsewhere.example"}, 403),
        ("application/octet-stream", {"origin": "null"}, 403),
        ("application/octet-stream", {"sec-fetch-site": "cross-site"}, 403),
        ("application/octet-stream", {"sec-fetch-site": "same-origin"}, 200),
        ("application/octet-stream", {}, 200),
    ],
)
def test_a_page_of_another_site_cannot_send_reports(collecting, films, kind, headers, expected):
    service, store = collecting(films)
    body = seal(Device(films).message({"film 3": 5.0}))
    assert ask(f"{service.url}/reports", body, kind, headers=headers)[0] == expected
    own = {"origin": service.url}
    assert ask(f"{service.url}/reports", body, headers=own)[0] == 200
    assert store.counts().reports == 1
