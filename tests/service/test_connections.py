"""Silent and slow connections do not keep others out; who asks is not for strangers to say."""

import asyncio
import contextlib
import json
import socket
import time
from types import SimpleNamespace

import pytest
import uvicorn
from fastapi import Response
from starlette.requests import Request
from uvicorn.server import ServerState

from discreet.core.checks import FileError
from discreet.service import connections, limits, running
from discreet.service.connections import Door
from discreet.service.limits import Peers, RateLimit, RefusedError, network_of
from discreet.service.shared_app import new_app
from discreet.testing import refuses
from ports import free_port
from service.servers import InProcess, ask, ask_json

PATIENCE = 60


def silent(port, count, said=b"", host="127.0.0.1"):
    """Return connections of a host that say so much and no more."""
    found = []
    for _ in range(count):
        line = socket.create_connection(("127.0.0.1", port), timeout=PATIENCE, source_address=(host, 0))
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
    # A peer may be idle for long, but not within a header.
    monkeypatch.setattr(running, "_KEEP_ALIVE_SECONDS", 3600)
    service, _ = collecting(films)
    lines += silent(service.port, 1, b"GET /health HTTP/1.1\r\nhost: x\r\n\r\n")
    line = lines[0]
    assert line.recv(4096).startswith(b"HTTP/1.1 200")
    with contextlib.suppress(ConnectionError):
        line.sendall(b"GET /hea")
    while not is_closed(line):
        pass


class Line:
    """A connection without a network."""

    loop = SimpleNamespace(call_later=lambda *_: None)
    held = 0

    def __init__(self, door, host):
        self._door, self.host = door, host
        self.is_open = door.admit(self, host)

    def turn_away(self):
        self._door.leave(self)
        self.is_open = False


def test_one_peer_has_few_connections_and_a_proxy_any_number():
    door = Door(Peers(["10.0.0.9"]), most=100, of_a_peer=3)
    first = [Line(door, "192.0.2.1") for _ in range(5)]
    assert [line.is_open for line in first] == [True, True, True, False, False]
    assert all(Line(door, "10.0.0.9").is_open for _ in range(5))
    # Whoever has one address of an IPv6 network has all of them.
    assert [Line(door, f"2001:db8::{place}").is_open for place in range(4)] == [True, True, True, False]
    door.leave(first[0])
    assert Line(door, "192.0.2.1").is_open


def test_when_all_places_are_taken_the_largest_crowd_makes_room():
    door = Door(Peers(), most=10, of_a_peer=4)
    honest = Line(door, "192.0.2.1")
    door.note(honest, waits=True)
    crowd = []
    for number in range(60):
        line = Line(door, f"198.51.100.{number % 3}")
        door.note(line, waits=True)
        crowd.append(line)
        assert len(door._open) <= 10
    # The honest one has waited for longest and is alone at its address: others go first.
    assert honest.is_open and Line(door, "192.0.2.2").is_open
    for line in door._open:
        door.note(line, waits=False)
    # Nobody waits for a peer: all are being answered, and a newcomer does not fit.
    assert not Line(door, "192.0.2.3").is_open and len(door._open) == 10


def test_bodies_have_a_place_in_memory_together():
    door = Door(Peers(), most=100, of_a_peer=50, most_bytes=1000)
    honest = Line(door, "192.0.2.1")
    door.note(honest, waits=True)
    door.hold(honest, 90)
    crowd = [Line(door, f"198.51.100.{number % 3}") for number in range(60)]
    for line in crowd:
        door.note(line, waits=True)
        door.hold(line, 100)
        assert door._bytes <= 1000
    # Nine bodies of a hundred bytes fit next to the honest one, whichever came last.
    assert honest.is_open and sum(line.is_open for line in crowd) == 9
    # Of what is being answered nothing can be taken back: the newcomer goes.
    for line in door._open:
        door.note(line, waits=False)
    late = Line(door, "192.0.2.2")
    door.note(late, waits=True)
    door.hold(late, 100)
    assert not late.is_open and honest.is_open
    for line in [honest, *crowd]:
        door.release(line)
    assert door._bytes == 0 and door._held.total() == 0


POST = b"POST /reports HTTP/1.1\r\nhost: x\r\ncontent-type: application/octet-stream\r\n"


@pytest.mark.few(1)
@pytest.mark.parametrize(
    "said",
    [b"", POST, POST + b"content-length: 512\r\n\r\nx", POST + b"transfer-encoding: chunked\r\n\r\n5\r\nab"],
    ids=["nothing", "half a header", "half a body", "half a chunk"],
)
def test_newcomers_are_answered_while_a_crowd_holds_all_connections(
    collecting, films, lines, monkeypatch, said
):
    monkeypatch.setattr(connections, "room", lambda: 12)
    monkeypatch.setattr(connections, "bounded_protocol", lambda peers, most, share: bounded(peers, most, 4))
    service, _ = collecting(films)
    for number in range(60):
        lines += silent(service.port, 1, said, f"127.0.1.{1 + number % 30}")
        assert ask(f"{service.url}/health", patience=PATIENCE)[0] == 200
    assert len(service._server.server_state.connections) <= 12 + 1


def bounded(peers, most, of_a_peer):
    door = Door(peers, most=most, of_a_peer=of_a_peer)
    return type("Bounded", (connections.BoundedProtocol,), {"door": door})


@pytest.mark.parametrize("said", [POST + b"content-length: 512\r\n\r\n"], ids=["half a body"])
def test_whoever_does_not_finish_a_body_is_cut_off(collecting, films, lines, monkeypatch, said):
    monkeypatch.setattr(connections, "BODY_SECONDS", 0.2)
    service, _ = collecting(films)
    lines += silent(service.port, 3, said)
    assert all(is_closed(line) for line in lines)


def chunked(size, count):
    return POST + b"transfer-encoding: chunked\r\n\r\n" + (b"%x\r\n%s\r\n" % (size, bytes(size))) * count


def test_a_body_in_many_small_chunks_is_not_parsed(collecting, films, lines, monkeypatch):
    parsed = []
    whole = connections.BoundedProtocol.on_body
    monkeypatch.setattr(
        connections.BoundedProtocol, "on_body", lambda self, body: (parsed.append(1), whole(self, body))
    )
    service, _ = collecting(films)
    lines += silent(service.port, 1, b"")
    with contextlib.suppress(ConnectionError):
        lines[0].sendall(chunked(1, 1 << 20) + b"0\r\n\r\n")
    answer = b""
    with contextlib.suppress(ConnectionError):
        answer = lines[0].recv(100)
    assert answer[:12] in (b"", b"HTTP/1.1 400") and len(parsed) < 2000
    # The twin: chunks of a usual size are taken, and what they make is refused for what it is.
    lines += silent(service.port, 1, chunked(512, 1) + b"0\r\n\r\n")
    assert lines[1].recv(12) == b"HTTP/1.1 400"


class Wire:
    """A transport that notes whether it was cut."""

    def __init__(self):
        self.cut = self.closed = False
        self.sent = b""

    def get_extra_info(self, name):
        return {"peername": ("192.0.2.1", 5), "sockname": ("192.0.2.9", 80)}.get(name)

    def abort(self):
        self.cut = True

    def close(self):
        self.closed = True

    def is_closing(self):
        return self.cut or self.closed

    def write(self, data):
        self.sent += data

    def set_write_buffer_limits(self, high): ...
    def pause_reading(self): ...
    def resume_reading(self): ...


async def endless(scope, receive, send):
    await asyncio.sleep(PATIENCE)


def fed(pieces):
    """Return how a connection ended that brought these pieces, and after how many of them."""

    async def feed():
        config = uvicorn.Config(endless, log_level="critical", ws="none", lifespan="off")
        config.load()
        protocol = bounded(Peers(), 5, 5)(config, ServerState(), {}, asyncio.get_running_loop())
        wire = Wire()
        protocol.connection_made(wire)
        taken = 0
        for piece in pieces:
            protocol.data_received(piece)
            if wire.is_closing():
                break
            taken += 1
        for task in list(protocol.tasks):
            task.cancel()
        return ("cut" if wire.cut else "closed" if wire.closed else "open"), taken

    return asyncio.run(feed())


def test_requests_bring_so_much_and_no_more():
    body = POST + b"content-length: 1000000\r\n\r\n"
    packets = [body, *[bytes(1000)] * 1000]
    assert fed(packets) == ("open", 1001)
    # Bytes that come one by one, a header that does not end, or that has a thousand lines.
    assert fed([body, *[b"x"] * 5000])[0] == "cut"
    end, count = fed([POST, *[b"x: " + b"y" * 8000 + b"\r\n"] * 100])
    assert end == "cut" and count < 10
    assert fed([POST + b"x: y\r\n" * 1000])[0] == "closed"
    assert fed([POST + b"x: " + b"y" * 200_000 + b"\r\n\r\n"])[0] == "closed"
    # A body without an end, and requests without an end.
    assert fed([POST + b"content-length: 99999999999\r\n\r\n", *[bytes(1 << 18)] * 100])[0] == "cut"
    assert fed([b"GET / HTTP/1.1\r\nhost: x\r\n\r\n" * 1000])[0] == "closed"
    assert fed([b"GET / HTTP/1.1\r\nhost: x\r\n\r\n" * 5])[0] == "open"
    # Lines after the last chunk, and addresses.
    last = POST + b"transfer-encoding: chunked\r\n\r\n1\r\nx\r\n0\r\nx: "
    end, count = fed([last, *[b"y" * 8000] * 100])
    assert end == "cut" and count < 12
    assert fed([last + b"y" * 8000 + b"\r\n\r\n"])[0] == "open"
    assert fed([b"GET /?" + b"y" * 20_000 + b" HTTP/1.1\r\nhost: x\r\n\r\n"])[0] == "closed"
    assert fed([b"GET / HTTP/1.1\r\nhost: x\r\nhost: y\r\n\r\n"])[0] == "closed"
    assert fed([b"CONNECT x:80 HTTP/1.1\r\nhost: x\r\n\r\n"])[0] == "closed"


SEEN = {}


async def noting(scope, receive, send):
    body, more = b"", True
    while more:
        message = await receive()
        body, more = body + message["body"], message["more_body"]
    SEEN[scope["path"]] = (dict(scope["headers"]), body)
    await send({"type": "http.response.start", "status": 204, "headers": []})
    await send({"type": "http.response.body"})


def answered(port, said):
    """Return the statuses of the answers to what is said at once; the last request must close the line."""
    with socket.create_connection(("127.0.0.1", port), timeout=PATIENCE) as line:
        line.sendall(said)
        found = b""
        while some := line.recv(4096):
            found += some
    return [int(part[:3]) for part in found.split(b"HTTP/1.1 ")[1:]]


LAST = b"GET /last HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n"


@pytest.mark.parametrize("offer", [b"h2c", b"websocket", b"other"])
def test_an_offer_of_another_protocol_does_not_lose_the_body_or_the_next_request(offer):
    SEEN.clear()
    head = b"POST /first HTTP/1.1\r\nhost: x\r\nconnection: upgrade\r\nupgrade: " + offer
    with InProcess(noting) as service:
        whole = head + b"\r\ncontent-length: 5\r\n\r\nhello" + LAST
        assert answered(service.port, whole) == [204, 204]
        assert SEEN["/first"][1] == b"hello" and b"upgrade" not in SEEN["/first"][0]
        whole = head + b"\r\ntransfer-encoding: chunked\r\n\r\n3\r\nyes\r\n0\r\n\r\n" + LAST
        assert answered(service.port, whole) == [204, 204] and SEEN["/first"][1] == b"yes"


def test_lines_after_a_body_are_not_taken_for_a_header():
    SEEN.clear()
    said = b"POST /first HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n"
    said += b"1\r\nx\r\n0\r\nx-forwarded-for: 192.0.2.7\r\nauthorization: Bearer x\r\n\r\n"
    with InProcess(noting) as service:
        assert answered(service.port, said + LAST) == [204, 204]
    assert SEEN["/first"][0].keys() == {b"host", b"transfer-encoding"}


def test_answers_that_nobody_reads_take_no_memory_and_end(lines, monkeypatch):
    monkeypatch.setattr(connections, "STALL_SECONDS", 1.0)
    app, large = new_app("large", "large"), bytes(20 << 20)
    app.get("/large")(lambda: Response(large))
    with InProcess(app) as service:
        status, _, whole = ask(f"{service.url}/large")
        assert status == 200 and whole == large
        lines += silent(service.port, 10, b"GET /large HTTP/1.1\r\nhost: x\r\n\r\n")
        time.sleep(0.5)
        held = [one.transport.get_write_buffer_size() for one in service._server.server_state.connections]
        assert len(held) >= 10 and max(held) <= 1 << 18
        end = time.monotonic() + PATIENCE
        while service._server.server_state.connections and time.monotonic() < end:
            time.sleep(0.05)
        assert not service._server.server_state.connections


def test_unfinished_bodies_take_little_memory(lines, monkeypatch):
    monkeypatch.setattr(connections, "MOST_BODY_BYTES", 1 << 22)
    SEEN.clear()
    half = POST + b"content-length: 200000\r\n\r\n" + bytes(150_000)
    with InProcess(noting) as service:
        for number in range(100):
            lines += silent(service.port, 1, half, f"127.0.1.{1 + number % 30}")
        # The twin: a whole body is answered meanwhile.
        whole = b"POST /first HTTP/1.1\r\nhost: x\r\ncontent-length: 100000\r\n\r\n" + bytes(100_000)
        assert answered(service.port, whole + LAST) == [204, 204] and len(SEEN["/first"][1]) == 100_000
        held = [one.held for one in service._server.server_state.connections]
        assert 150_000 <= sum(held) <= 1 << 22
        for line in lines:
            line.close()


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
        with pytest.raises(RefusedError) as caught:
            behind.of(request("127.0.0.1", *chain))
        assert caught.value.status == 503
    with refuses("bad-proxy"):
        Peers(["example.org"])


def test_a_spoofed_address_does_not_escape_the_limit(collecting, films):
    service, _ = collecting(films, per_minute=3)
    statuses = [
        ask(f"{service.url}/reports", b"x", headers={"x-forwarded-for": f"192.0.2.{number}"})[0]
        for number in range(50)
    ]
    assert statuses.count(400) == 3 and statuses.count(429) == 47


@pytest.mark.parametrize("path", ["/model", "/model/vectors", "/label", "/campaign"])
def test_large_answers_are_counted_as_well(collecting, films, path):
    service, _ = collecting(films, per_minute=3)
    statuses = [ask(f"{service.url}{path}")[0] for _ in range(6)]
    assert statuses[3:] == [429] * 3 and 429 not in statuses[:3]
    assert ask(f"{service.url}/health")[0] == 200


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
    monkeypatch.setattr(limits, "_MOST_PEERS", 50)
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
        with refuses("cannot-listen", port=port):
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
        (1024, 4096, 2384, 2000),
        (512, 1000, 1000, 616),
        (1024, None, 2384, 2000),
        (100, 128, 128, 1),
        (2384, 4096, None, 2000),
    ],
)
def test_connections_leave_descriptors_for_files(soft, hard, asked, room, monkeypatch):
    resource = pytest.importorskip("resource")
    wanted, hard = [], resource.RLIM_INFINITY if hard is None else hard
    monkeypatch.setattr(resource, "getrlimit", lambda _: (soft, hard))
    monkeypatch.setattr(resource, "setrlimit", lambda _, limits: wanted.append(limits))
    assert connections.room(2000) == room
    assert wanted == ([] if asked is None else [(asked, hard)])
