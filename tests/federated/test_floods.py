"""Floods are bounded: questions and bytes at a party, connections at a keeper, bodies at a SuperLink.

Also local secrets: keys that others can read, and what other users of a machine can reach.
"""

import asyncio
import ipaddress
import os
import socket
import stat
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from discreet.data.facts import PublicFacts
from discreet.data.interactions import Interactions
from discreet.federated import party as parties
from discreet.federated.flower import launch
from discreet.federated.flower.app.discreet_relay import frames
from discreet.federated.flower.processes import Flower
from discreet.federated.identity.keys import KEY, Authority, key_text, new_key, read_private_key
from discreet.federated.journal import Journal
from discreet.federated.keeper import Keeper
from discreet.federated.noise import SharedNoise
from discreet.federated.protocols.asked import Answerable, Asked
from discreet.federated.protocols.estimator_sums import protocol_for
from discreet.federated.protocols.protocol import names_digest
from discreet.federated.serving import tls
from discreet.federated.serving.tls import TlsLine, TlsServer, tls_context
from discreet.federated.wire import CHAINS, Message, Refusal, decode, encode, own_place, places_to_field
from discreet.models.popularity import Popularity
from discreet.privacy.ledger.chain import Anchor
from discreet.privacy.ledger.ledger import Ledger
from discreet.statistics.counts import ItemVotes
from discreet.testing import refuses

FACTS = PublicFacts(n_items=1000, low=1, high=1)
DATA = Interactions.from_arrays([1, 1, 2], [1, 2, 3], facts=FACTS, n_items=1000, name="shop")
PROTOCOL = protocol_for(Popularity(epsilon=1.0), FACTS, SharedNoise(parties=3, missing=1))


def party(ledger=None, state=None, keeper=None):
    return parties.Party(
        "p0",
        DATA,
        PROTOCOL,
        run="r",
        ledger=ledger or Ledger.in_memory(),
        state=state,
        keeper=keeper or Keeper(roster=["p0", "p1", "p2"], least=2),
    )


def votes(step, sigma, received=None):
    statistic = ItemVotes(n_items=1000, norm="l2")
    asked = Answerable.of().write(Asked(statistic, statistic.parts[0], sigma))
    agreed = {"settings": PROTOCOL.settings(), "shared": names_digest(DATA.catalog)}
    fields = {**asked.fields, **agreed, **({CHAINS: places_to_field({"p0": received})} if received else {})}
    return Message(kind="sum", run="r", step=step, sender="coordinator", fields=fields, arrays=asked.arrays)


def ask(member, step, sigma=1e6, received=None):
    return decode(member.answer(encode(votes(step, sigma, received))))


@pytest.mark.parametrize("limit", ["_MOST_ANSWERS", "_MOST_BYTES"])
def test_a_coordinator_does_not_fill_a_party(monkeypatch, limit):
    """Questions with much noise cost next to nothing; their number and their bytes are limited."""
    monkeypatch.setattr(parties, limit, {"_MOST_ANSWERS": 5, "_MOST_BYTES": 5 * 8_000}[limit])
    member = party()
    kinds = [ask(member, step).kind for step in range(8)]
    assert kinds == ["sum"] * 5 + ["declined"] * 3
    assert ask(member, 7).fields["reason"] == "oversized"
    # What was answered is repeated, and nothing more is kept.
    before = len(member._journal.messages)
    assert ask(member, 4).kind == "sum" and len(member._journal.messages) == before


def test_a_party_drops_answers_that_the_coordinator_has(monkeypatch, tmp_path):
    """However many items a catalog has, a party keeps so many bytes and no more."""
    monkeypatch.setattr(parties, "_MOST_BYTES", 5 * 8_000)
    state, members = tmp_path / "party.state", {"keeper": Keeper(roster=["p0", "p1", "p2"], least=2)}
    members["ledger"] = Ledger.open(tmp_path / "ledger")
    member, received, places = party(state=state, **members), None, []
    for step in range(20):
        answer = ask(member, step, received=received)
        assert answer.kind == "sum" and state.stat().st_size < 5 * 8_000 + 2_000 * (step + 1)
        places.append(answer)
        received = own_place(answer)
    kept = [encode(message) for message in member._journal.messages]
    assert sum(map(len, kept)) < 5 * 8_000 + 20 * 2_000
    member.close()
    # A party that starts again knows all of its chain, repeats what it has, and draws nothing anew.
    member = party(state=state, **members)
    assert member._chain.latest == received
    lost = [message.step for message in member._journal.messages if message.kind == "dropped"]
    assert lost == [*range(len(lost))] and 15 <= len(lost) < 20
    for step, earlier in enumerate(places):
        again = ask(member, step, received=own_place(places[step - 1]) if step else None)
        if step in lost:
            assert again.kind == "declined" and again.fields["reason"] == "dropped"
        else:
            assert encode(again) == encode(earlier)
    assert ask(member, 3, sigma=2e6, received=received).fields["reason"] == "twice"
    assert [encode(message) for message in member._journal.messages] == kept
    assert ask(member, 20, received=received).kind == "sum"


def test_answers_that_no_one_has_received_are_not_dropped(monkeypatch):
    monkeypatch.setattr(parties, "_MOST_BYTES", 5 * 8_000)
    member = party()
    received = own_place(ask(member, 0))
    kinds = [ask(member, step, received=received).kind for step in range(1, 8)]
    assert kinds == ["sum"] * 5 + ["declined"] * 2
    member = party()
    # A place that the party's chain doesn't contain drops nothing either.
    assert ask(member, 0, received=Anchor(9, "0" * 32)).fields["reason"] == "behind"


@pytest.mark.parametrize("crash", ["before", "after"])
def test_a_crash_while_answers_are_dropped_loses_nothing(monkeypatch, tmp_path, crash):
    monkeypatch.setattr(parties, "_MOST_BYTES", 8_000)
    state, members = tmp_path / "party.state", {"keeper": Keeper(roster=["p0", "p1", "p2"], least=2)}
    members["ledger"] = Ledger.open(tmp_path / "ledger")
    member = party(state=state, **members)
    received = own_place(ask(member, 0))
    moved = Path.replace

    def broken(aside, path):
        if crash == "after":
            moved(aside, path)
        raise OSError(5, "broken")

    with monkeypatch.context() as patched:
        patched.setattr(Path, "replace", broken)
        assert ask(member, 1, received=received).kind == "declined"
    member.close()
    member = party(state=state, **members)
    assert member._chain.contains(received)
    with refuses("state-in-use"):
        Journal(state)
    assert ask(member, 1, received=received).kind == "sum"
    with refuses("state-in-use"):
        Journal(state)
    assert not [*tmp_path.glob("*.new")]


def test_a_run_has_room_for_what_honest_runs_ask():
    assert parties._MOST_ANSWERS == 1000 and parties._MOST_BYTES == 2**28


@pytest.mark.parametrize("sigma", [2.4e8, 3e8, 1e9])
def test_noise_that_the_sampler_cannot_draw_is_refused_before_it_is_paid(sigma):
    ledger = Ledger.in_memory()
    member = party(ledger)
    assert ask(member, 0, sigma).fields["reason"] == Refusal.OUT_OF_RANGE
    assert ledger.entries() == [] and member._journal.messages == ()
    # The party lives on, and the largest noise that can be drawn is drawn.
    assert ask(member, 0, 1.3e8).kind == "sum"


@pytest.fixture
def door(tmp_path):
    authority = Authority.new("shops")
    keys = {name: new_key() for name in ("keeper", "greedy", "honest")}
    for name, key in keys.items():
        authority.write_member(tmp_path / name, name, key, "localhost")
    members = {key_text(key.public_key()): name for name, key in keys.items()}
    server = TlsServer(("127.0.0.1", 0), tmp_path / "keeper", members, lambda name, raw: name.encode())
    threading.Thread(target=server.run, daemon=True).start()
    yield server, tmp_path, key_text(keys["keeper"].public_key())
    server.close()


@pytest.mark.parametrize("count", [2 * tls._MOST_OF_ONE, pytest.param(300, marks=pytest.mark.slow)])
def test_one_member_does_not_take_the_places_of_others(door, count):
    server, folder, key = door
    context = tls_context(folder / "greedy", server=False)
    taken = []
    for _ in range(count):
        peer = socket.create_connection(server.address, timeout=10)
        try:
            taken.append(context.wrap_socket(peer))
        except OSError:
            peer.close()
    line = TlsLine(server.address, folder / "honest", key, seconds=5.0)
    assert line(b"hello") == b"honest"
    held = tls._MOST_OF_ONE - server._served["greedy"]._value
    assert 0 < held <= tls._MOST_OF_ONE
    for one in taken:
        one.close()


def test_a_member_that_reads_no_reply_occupies_one(door):
    """A reply to the coordinator may have 256 MB: eight that nobody reads would fill the keeper's memory."""
    server, folder, key = door
    made, sizes = threading.Semaphore(0), {"greedy": 1 << 24, "honest": 1}

    def service(name, raw):
        made.release()
        return bytes(sizes[name])

    server._service = service
    context = tls_context(folder / "greedy", server=False)
    unread = []
    for _ in range(4):
        unread.append(context.wrap_socket(socket.create_connection(server.address, timeout=10)))
        frames.send(unread[-1], {}, b"hello")
    assert made.acquire(timeout=60)
    # The others of this member wait for their turn; another member doesn't.
    assert TlsLine(server.address, folder / "honest", key, seconds=30.0)(b"hello") == bytes(1)
    assert made.acquire(timeout=60) and not made.acquire(timeout=0.2)
    for one in unread:
        one.close()


def posted(sizes, length=None, client=("203.0.113.7", 1), path="/v1/fleet/x", app=None):
    """Return the status of a request with these parts of a body, and how many bytes the app got."""
    got, sent = [0], []

    async def reading(scope, receive, send):
        more = True
        while more:
            message = await receive()
            got[0] += len(message["body"])
            more = message["more_body"]
        await send({"type": "http.response.start", "status": 200, "headers": []})

    parts = iter([*sizes, None])

    async def receive():
        size = next(parts)
        return {"type": "http.request", "body": bytes(size or 0), "more_body": size is not None}

    async def send(message):
        sent.append(message)

    headers = [] if length is None else [(b"content-length", str(length).encode())]
    scope = {"type": "http", "path": path, "client": client, "headers": headers}
    asyncio.run((app or launch.LocalCommands(reading, who=lambda scope: 1))(scope, receive, send))
    return sent[0]["status"], got[0]


def test_a_body_that_is_longer_than_a_message_is_not_taken(monkeypatch):
    monkeypatch.setattr(launch, "_MOST_BODY", 1000)
    assert posted([400, 500]) == (200, 900)
    assert posted([], length=1_500_000_000) == (413, 0)
    assert posted([], length="9" * 30) == (413, 0)
    status, got = posted([400] * 100)
    assert status == 413 and got <= 1000


def test_a_body_without_a_signature_of_a_party_is_not_read():
    async def reading(scope, receive, send):
        raise AssertionError("read")

    guarded = launch.LocalCommands(reading, who=lambda scope: None)
    for client in (("203.0.113.7", 1), ("127.0.0.1", 1), None):
        assert posted([400], client=client, app=guarded) == (401, 0)
    assert not guarded._held and not guarded._sent


@pytest.mark.parametrize("limit", ["_MOST_BODY", "_MOST_OF_ONE"])
def test_bodies_of_one_party_are_bounded_and_leave_room_for_others(monkeypatch, limit):
    monkeypatch.setattr(launch, limit, 1000)
    asking = [1]

    async def reading(scope, receive, send):
        await receive()
        await send({"type": "http.response.start", "status": 200, "headers": []})

    guarded = launch.LocalCommands(reading, who=lambda scope: asking[0])
    (guarded._held if limit == "_MOST_BODY" else guarded._sent)[1] = 900
    assert posted([400], app=guarded)[0] == 413
    asking[0] = 2
    assert posted([400], app=guarded)[0] == 200
    # Bodies that were read are forgotten, and the sum of all of them is not.
    assert guarded._held[2] == 0 and guarded._sent[2] == 400


def test_strangers_connections_end_and_a_party_has_a_few(monkeypatch):
    monkeypatch.setattr(launch, "_MOST_WAITING", 3)
    monkeypatch.setattr(launch, "_MOST_CONNECTIONS", 2)
    counted, closed = launch.Connections(), []
    for client in range(5):
        counted.opened(client, lambda client=client: closed.append(client))
    assert closed == [0, 1]
    # One that signed a request, or is of this machine's user, stays; another is late.
    assert counted.admit(2, "north") and counted.admit(3)
    for client in range(5):
        counted.late(client)
    assert closed == [0, 1, 4]
    assert [counted.admit(client, "north") for client in (2, 7, 8)] == [True, True, False]
    assert counted.admit(9, "east")
    counted.closed(7)
    counted.closed(8)
    assert counted.admit(10, "north")


needs_linux = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="Linux shows whose they are")
CONNECT = """
import encodings.idna, os, socket, sys
os.setuid(int(sys.argv[2]))
line = socket.socket()
line.connect(("127.0.0.1", int(sys.argv[1])))
sys.stdin.read()
"""


@needs_linux
@pytest.mark.parametrize("user", [None, 65534])
def test_other_users_of_the_machine_do_not_reach_flower(user):
    if user is not None and os.getuid() != 0:
        pytest.skip("only root can be another user")
    user = os.getuid() if user is None else user
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = str(listener.getsockname()[1])
        other = subprocess.Popen([sys.executable, "-c", CONNECT, port, str(user)], stdin=subprocess.PIPE)
        try:
            listener.settimeout(60)
            peer, client = listener.accept()
            with peer:
                assert launch.owner_of(ipaddress.ip_address(client[0]), client[1]) == user
                assert launch.is_own(client) is (user == os.getuid())
                status, _ = posted([1], client=client, path="/v1/control/start-run")
                assert status == (200 if user == os.getuid() else 403)
        finally:
            other.communicate(timeout=60)
    # A stated address of this machine that no connection has is nobody's.
    assert not launch.is_own(("127.0.0.1", 1)) and not launch.is_own(None)


@pytest.mark.parametrize("mode", [0o644, 0o640, 0o604, 0o660, 0o602])
def test_a_key_that_others_can_read_is_refused(tmp_path, mode):
    Authority.new("shops").write_member(tmp_path, "p1", new_key(), "localhost")
    assert read_private_key(tmp_path / KEY) and stat.S_IMODE((tmp_path / KEY).stat().st_mode) == 0o600
    (tmp_path / KEY).chmod(mode)
    with refuses("key-open", mode=f"{mode:04o}"):
        read_private_key(tmp_path / KEY)
    for server in (True, False):
        with refuses("key-open", mode=f"{mode:04o}"):
            tls_context(tmp_path, server=server)


def test_flower_gets_no_secrets_of_the_environment(tmp_path, monkeypatch):
    (tmp_path / "programs").mkdir()
    (tmp_path / "programs" / "flower-superlink").touch()
    for name in ("AWS_SECRET_ACCESS_KEY", "DISCREET_TOKEN", "PYTHONPATH", "DATABASE_URL"):
        monkeypatch.setenv(name, "secret")
    found = Flower(tmp_path, tmp_path / "programs")._environment()
    assert "secret" not in found.values() and found["FLWR_TELEMETRY_ENABLED"] == "0" and "PATH" in found


@needs_linux
def test_a_slow_handshake_of_flowers_own_processes_is_not_cut_off():
    """On a busy machine a handshake of this user takes longer than a stranger may take."""
    with (
        socket.create_server(("127.0.0.1", 0)) as listener,
        socket.create_connection(listener.getsockname()) as own,
    ):
        assert launch.patience(own.getsockname()) == 30.0
    assert launch.patience(("203.0.113.7", 1)) == 5.0
