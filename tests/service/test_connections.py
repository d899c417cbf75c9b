"""Silent and slow connections do not keep others out; who asks is not for strangers to say."""

import contextlib
import json
import socket

import pytest
from starlette.requests import Request

from discreet.core.checks import FileError, ParameterError
from discreet.service import limits as connections
from discreet.service import running
from discreet.service.limits import Doorkeeper, Peers, RateLimit, RefusedError, network_of
from ports import free_port
from service.servers import ask, ask_json

PATIENCE = 60


def silent(port, count, said=b""):
    """Return connections that say so much and no more."""
    found = []
    for _ in range(count):
        line = socket.create_connection(("127.0.0.1", port), timeout=PATIENCE)
        line.sendall(said)
        found.append(line)
    return found


def is_closed(line):
    """Wait until the other side hangs up; a line that stays open is a timeout."""
    try:
        return line.recv(1) == b""
    except ConnectionError:
        return True


@pytest.fixture
def lines():
    with contextlib.ExitStack() as stack:
        found = []
        stack.callback(lambda: [line.close() for line in found])
        yield found


@pytest.mark.parametrize("said", [b"", b"POST /reports HTTP/1.1\r\nhost: x\r\n", b"GET /health HT"])
def test_whoever_brings_no_whole_header_is_cut_off(collecting, films, lines, monkeypatch, said):
    monkeypatch.setattr(connections, "HEADER_SECONDS", 0.1)
    monkeypatch.setattr(running, "_KEEP_ALIVE_SECONDS", 0)
    service, _ = collecting(films)
    lines += silent(service.port, 5, said)
    assert all(is_closed(line) for line in lines)
    assert ask(f"{service.url}/health")[0] == 200


def test_whoever_trickles_after_an_answer_is_cut_off(collecting, films, lines, monkeypatch):
    monkeypatch.setattr(connections, "HEADER_SECONDS", 0.3)
    monkeypatch.setattr(running, "_KEEP_ALIVE_SECONDS", 0.2)
    service, _ = collecting(films)
    lines += silent(service.port, 1, b"GET /health HTTP/1.1\r\nhost: x\r\n\r\n")
    line = lines[0]
    assert line.recv(4096).startswith(b"HTTP/1.1 200")
    with contextlib.suppress(ConnectionError):
        line.sendall(b"GET /hea")
    while not is_closed(line):
        pass


def test_one_peer_has_few_connections_and_the_longest_silent_make_room(collecting, films, lines, monkeypatch):
    monkeypatch.setattr(connections, "MOST_OF_A_PEER", 20)
    made = []
    monkeypatch.setattr(
        connections,
        "Doorkeeper",
        lambda peers, most: made.append(Doorkeeper(peers, most=8, of_a_peer=10)) or made[-1],
    )
    service, _ = collecting(films)
    lines += silent(service.port, 8)
    assert ask(f"{service.url}/health")[0] == 200  # the ninth: the first makes room
    assert is_closed(lines[0])
    keeper = Doorkeeper(Peers(["10.0.0.9"]), most=100, of_a_peer=3)
    assert [keeper.admit("192.0.2.1") for _ in range(5)] == [True, True, True, False, False]
    assert all(keeper.admit("10.0.0.9") for _ in range(5))
    assert [keeper.admit(f"2001:db8::{place}") for place in range(5)] == [True, True, True, False, False]
    keeper.leave("192.0.2.1")
    assert keeper.admit("192.0.2.1")


def request(host, *forwarded):
    headers = [(b"x-forwarded-for", one.encode()) for one in forwarded]
    return Request({"type": "http", "client": (host, 1), "headers": headers})


def test_only_declared_proxies_say_who_asks(capfd):
    alone = Peers()
    spoofed = [alone.of(request("127.0.0.1", f"192.0.2.{number}")) for number in range(50)]
    assert set(spoofed) == {"127.0.0.1"}
    assert json.loads(capfd.readouterr().err)["event"] == "x-forwarded-for ignored"
    behind = Peers(["127.0.0.1", "10.0.0.0/8"])
    assert behind.of(request("127.0.0.1", "192.0.2.7")) == "192.0.2.7"
    # What a stranger wrote stands before what the proxy added.
    assert behind.of(request("127.0.0.1", "198.51.100.1, 192.0.2.7")) == "192.0.2.7"
    assert behind.of(request("127.0.0.1", "198.51.100.1", "192.0.2.7, 10.1.2.3")) == "192.0.2.7"
    assert behind.of(request("192.0.2.9", "198.51.100.1")) == "192.0.2.9"
    for chain in ((), ("nonsense",), ("",), ("192.0.2.7, nonsense",), ("10.1.2.3",)):
        with pytest.raises(RefusedError, match="does not say who asks"):
            behind.of(request("127.0.0.1", *chain))
    with pytest.raises(ParameterError, match="--trusted-proxy"):
        Peers(["example.org"])


def test_a_spoofed_address_does_not_escape_the_limit(collecting, films):
    service, _ = collecting(films, per_minute=3)
    statuses = [
        ask(f"{service.url}/reports", b"x", headers={"x-forwarded-for": f"192.0.2.{number}"})[0]
        for number in range(50)
    ]
    assert statuses.count(400) == 3 and statuses.count(429) == 47


def test_addresses_of_one_network_are_one_peer():
    rate = RateLimit(100)
    passed = 0
    for number in range(1000):
        with contextlib.suppress(RefusedError):
            rate.check(network_of(f"2001:db8::{number:x}"))
            passed += 1
    assert passed == 100
    rate.check(network_of("2001:db8:0:1::1"))


def test_a_crowd_of_peers_does_not_lock_a_newcomer_out(monkeypatch):
    monkeypatch.setattr(connections, "_MOST_PEERS", 50)
    rate = RateLimit(2)
    for _ in range(3):
        with contextlib.suppress(RefusedError):
            rate.check("loud")
    for number in range(200):
        rate.check(f"peer {number}")
        with pytest.raises(RefusedError):
            rate.check("loud")  # whoever goes on is not forgotten
    rate.check("a newcomer")
    assert len(rate._counts) <= 50


def test_a_port_in_use_is_a_sentence(discreet, films, tmp_path):
    path = tmp_path / "films.campaign"
    path.write_bytes(films.to_bytes())
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(FileError, match="in use"):
            running.listening("127.0.0.1", port)
        code, _, error = discreet("serve", path, "--store", tmp_path / "films.db", "--port", port)
    assert code == 1 and "Traceback" not in error and "Choose another --port" in " ".join(error.split())
    running.listening("127.0.0.1", free_port()).close()


def test_a_store_that_is_gone_is_told(collecting, films, monkeypatch):
    service, store = collecting(films)

    def gone(_):
        raise FileError("The database of reports cannot be reached.")

    monkeypatch.setattr(type(store), "is_closed", property(gone))
    status, answer = ask_json(f"{service.url}/health")
    assert status == 503 and answer["error"].endswith("now.")


@pytest.mark.parametrize(
    ("soft", "hard", "asked", "room"),
    [
        (1024, 4096, 2128, 2000),
        (512, 1000, 1000, 872),
        (1024, None, 2128, 2000),
        (100, 128, 128, 1),
        (2128, 4096, None, 2000),
    ],
)
def test_connections_leave_descriptors_for_files(soft, hard, asked, room, monkeypatch):
    resource = pytest.importorskip("resource")
    wanted, hard = [], resource.RLIM_INFINITY if hard is None else hard
    monkeypatch.setattr(resource, "getrlimit", lambda _: (soft, hard))
    monkeypatch.setattr(resource, "setrlimit", lambda _, limits: wanted.append(limits))
    assert connections.room(2000) == room
    assert wanted == ([] if asked is None else [(asked, hard)])
