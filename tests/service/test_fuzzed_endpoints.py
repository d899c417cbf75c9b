"""Thousands of broken requests: nothing but 2xx, and 4xx with a sentence. Counts are stated."""

import contextlib
import http.client
import json
import urllib.parse
from collections import Counter

import numpy as np
import pytest

from discreet.collect.device import Device
from discreet.service.admission import seal
from discreet.service.client import CollectionClient
from discreet.service.recommend_app import answering_app
from discreet.service.refitting import fit_store
from service.servers import InProcess

METHODS = ("POST", "PUT", "DELETE", "HEAD", "OPTIONS", "PATCH", "GET", "GET")
PATHS = (
    "/", "/reports", "/campaign", "/health", "/metrics", "/model", "/model/vectors", "/label", "/integrity",
    "/docs", "/openapi.json", "/device/device.js", "/page/page.js", "/recommend", "/similar",
)  # fmt: skip
KINDS = (
    "application/octet-stream",
    "application/json",
    "text/plain",
    "",
    "application/json; charset=utf-7",
    "\xff",
)


def mutated(rng, raw):
    """Return bytes with some changed, cut, doubled or put in."""
    some = bytearray(raw)
    for _ in range(rng.integers(1, 6)):
        place = int(rng.integers(0, len(some) + 1))
        kind = rng.integers(4)
        if kind == 0 and place < len(some):
            some[place] = rng.integers(256)
        elif kind == 1:
            some = some[:place]
        elif kind == 2:
            some[place:place] = rng.bytes(int(rng.integers(1, 40)))
        else:
            some = some + some[place:]
    return bytes(some[:5000])


def odd_path(rng):
    path = PATHS[rng.integers(len(PATHS))]
    choice = rng.integers(4)
    if choice == 0:
        return path + "?" + urllib.parse.quote(rng.bytes(int(rng.integers(0, 30))))
    if choice == 1:
        return f"/similar?item={urllib.parse.quote(rng.bytes(8))}&k={rng.integers(-5, 5000)}"
    if choice == 2:
        return "/" + urllib.parse.quote(rng.bytes(int(rng.integers(0, 30))))
    return path


def requests(rng, count, target, seeds):
    for _ in range(count):
        body, kind = seeds[rng.integers(len(seeds))], KINDS[rng.integers(len(KINDS))]
        body = mutated(rng, body) if rng.random() < 0.8 else body if rng.random() < 0.5 else rng.bytes(600)
        if rng.random() < 0.5:
            yield "POST", target, body, kind
        else:
            yield METHODS[rng.integers(-4, len(METHODS))], odd_path(rng), body, kind


def answers(port, asked):
    """Return how often each status came; anything but a sentence in a refusal fails."""
    statuses = Counter()
    with contextlib.closing(http.client.HTTPConnection("127.0.0.1", port, timeout=300)) as connection:
        _ask_all(connection, asked, statuses)
    return statuses


def _ask_all(connection, asked, statuses):
    for method, path, body, kind in asked:
        headers = {"content-type": kind} if kind else {}
        connection.request(method, path, body=None if method == "GET" else body, headers=headers)
        answer = connection.getresponse()
        raw = answer.read()
        statuses[answer.status] += 1
        assert 200 <= answer.status < 500, (method, path, answer.status)
        if answer.status >= 400 and method != "HEAD":
            said = json.loads(raw)["error"]
            assert said.endswith(".") and (said[0].isupper() or said[0].isdigit()) and len(said) < 300, said
        assert "content-security-policy" in answer.headers


def fuzz(collecting, films, tmp_path, count):
    service, store = collecting(films)
    device = Device(films)
    message = device.message({f"film {number}": 3.0 for number in range(20)})
    question = json.dumps({"history": {"film 3": 5.0, "film 4": 1.0}, "k": 3}).encode()
    seeds = [seal(message), message, device.message({"film 3": 1.0}, form="json"), question, b"[" * 2000]
    rng = np.random.default_rng(7)
    found = answers(service.port, requests(rng, count, "/reports", seeds))
    client = CollectionClient(service.url)
    for number in range(3):
        client.send(Device(films).message({f"film {(number * 7 + step) % 60}": 4.0 for step in range(15)}))
    path = tmp_path / "model.discreet"
    fit_store(store, "local-channel").save(path)
    with InProcess(answering_app(path)) as answering:
        found += answers(answering.port, requests(rng, count, "/recommend", seeds))
    return found


@pytest.mark.thorough
def test_two_thousand_broken_requests_to_both_services(collecting, films, tmp_path):
    found = fuzz(collecting, films, tmp_path, 1000)
    assert found.total() == 2000 and all(found[status] > 50 for status in (200, 400, 404, 405, 422)), found


@pytest.mark.slow
def test_fifty_thousand_broken_requests_to_both_services(collecting, films, tmp_path):
    assert fuzz(collecting, films, tmp_path, 25_000).total() == 50_000
