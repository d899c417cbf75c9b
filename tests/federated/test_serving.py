"""Members know each other by keys: mutual TLS, signatures, a daemon's socket, strangers and slow ones."""

import contextlib
import shutil
import socket
import stat
import tempfile
import threading
import time
from pathlib import Path

import numpy as np
import pytest

from discreet.core.checks import FileError
from discreet.data.vocabulary import Vocabulary
from discreet.federated import catalogs
from discreet.federated.coordinator import Coordinator
from discreet.federated.errors import KeeperUnreachable, WrongKeeper
from discreet.federated.flower.app.discreet_relay import frames
from discreet.federated.identity.agreement import COORDINATOR, KEEPER, Agreement, found_federation
from discreet.federated.identity.keys import (
    KEY,
    Authority,
    key_text,
    new_key,
    opened,
    read_private_key,
    sealed,
)
from discreet.federated.keeper import Keeper
from discreet.federated.protocols.summed import SummedStatistics
from discreet.federated.serving import party, tls
from discreet.federated.serving.party import LocalServer, PartyDaemon, joining, listen
from discreet.federated.serving.tls import (
    SealedTransport,
    TlsLine,
    TlsServer,
    keeper_service,
    sealed_endpoint,
)
from discreet.federated.transport import InProcess
from discreet.federated.wire import Message, Refused, decode, encode
from discreet.privacy.ledger.ledger import Ledger
from discreet.testing import refuses
from federation import shared_sums, toy_parts, train
from ports import free_port

DATA, PARTS = toy_parts()
SHARED = shared_sums(DATA, delta=1e-5)


@pytest.fixture
def folder():
    """Return a folder with a path short enough for sockets."""
    path = Path(tempfile.mkdtemp(prefix="fed-"))
    yield path
    shutil.rmtree(path, ignore_errors=True)


def federation(folder, names=tuple(PARTS), port=1):
    return found_federation(
        folder,
        recipe='model = "implicit-objective"\n\n[settings]\nepsilon = 30.0\ndelta = 1e-05\n',
        facts=DATA.facts,
        catalog=DATA.catalog,
        missing=1,
        parties=names,
        addresses={COORDINATOR: "127.0.0.1:1", KEEPER: f"127.0.0.1:{port}"},
        label="toy",
    )


def serving(server):
    threading.Thread(target=server.run, daemon=True).start()
    return contextlib.closing(server)


@pytest.mark.thorough
def test_a_run_between_members_with_keys_gives_what_calls_give(folder):
    """Keeper behind TLS, daemons behind sockets, everything signed: without noise the model is equal."""
    loud = shared_sums(DATA, np.inf)
    agreement = federation(folder, port=free_port())
    keeper = Keeper(roster=list(PARTS), least=3)
    with contextlib.ExitStack() as open_doors:
        server = TlsServer(
            agreement.address(KEEPER), folder / KEEPER, agreement.members(), keeper_service(keeper)
        )
        open_doors.enter_context(serving(server))
        lines = {}
        for name, part in PARTS.items():
            ledger = Ledger.open(folder / f"{name}.ledger")
            daemon = PartyDaemon(folder / name, agreement, joining(agreement, loud, part, ledger))
            assert daemon.name == name and stat.S_IMODE(daemon.path.stat().st_mode) == 0o600
            open_doors.enter_context(serving(daemon))
            lines[name] = lambda raw, path=daemon.path: asked(path, raw)
        own = read_private_key(folder / COORDINATOR / KEY)
        known = {name: agreement.key(name) for name in PARTS}
        coordinator = Coordinator(
            loud,
            SealedTransport(InProcess(lines), own, known),
            parties=list(PARTS),
            shared=DATA.catalog,
            run=agreement.run,
            keeper=TlsLine(server.address, folder / COORDINATOR, agreement.keys[KEEPER]),
        )
        outcome = coordinator.train(DATA.facts)
    assert outcome.left_out == {}
    users = np.arange(DATA.n_users)
    assert np.array_equal(
        outcome.model.scores(DATA, users), train(loud, PARTS, DATA).model.scores(DATA, users)
    )


def asked(path, raw):
    with socket.socket(socket.AF_UNIX) as line:
        line.connect(str(path))
        frames.send(line, {}, raw)
        return frames.receive(line)[1]


@pytest.fixture
def keeper_door(folder):
    """Return an agreement and a server that repeats who asked."""
    agreement = federation(folder)
    server = TlsServer(
        ("127.0.0.1", 0), folder / KEEPER, agreement.members(), lambda name, raw: name.encode() + raw
    )
    with serving(server):
        yield agreement, server


def test_members_are_known_by_their_keys(folder, keeper_door):
    agreement, server = keeper_door
    for name in (*PARTS, COORDINATOR):
        line = TlsLine(server.address, folder / name, agreement.keys[KEEPER])
        assert line(b"!") == name.encode() + b"!"


@pytest.mark.parametrize("stranger", ["another authority", "another key"])
def test_a_stranger_gets_no_answer(folder, keeper_door, stranger):
    """The twin of the test before: a certificate of somebody else, or one of ours for an unknown key."""
    agreement, server = keeper_door
    authority = Authority.new("toy")
    if stranger == "another key":
        authority = Authority(read_private_key(folder / "authority" / KEY), authority.certificate)
    authority.write_member(folder / "mallory", "p0", new_key(), "localhost")
    if stranger == "another key":
        shutil.copy(folder / "authority" / "authority.crt", folder / "mallory" / "authority.crt")
    with pytest.raises((WrongKeeper, KeeperUnreachable)):
        TlsLine(server.address, folder / "mallory", agreement.keys[KEEPER], seconds=0.3)(b"!")


def test_a_false_keeper_is_not_told_a_key(folder, keeper_door):
    """A member, certified like all, that stands in the keeper's place."""
    agreement, _ = keeper_door
    counted = []
    false = TlsServer(
        ("127.0.0.1", 0), folder / "p3", agreement.members(), lambda name, raw: counted.append(raw) or raw
    )
    with serving(false), refuses("wrong-keeper"):
        TlsLine(false.address, folder / "p0", agreement.keys[KEEPER])(b"secret")
    assert counted == []


def test_idle_and_slow_strangers_do_not_keep_members_out(folder, keeper_door, monkeypatch):
    monkeypatch.setattr(tls, "_MOST_PENDING", 8)
    agreement, server = keeper_door
    with contextlib.ExitStack() as lines:
        for _ in range(40):
            line = lines.enter_context(socket.create_connection(server.address))
            with contextlib.suppress(OSError):
                line.sendall(b"\x16\x03")
        answer = TlsLine(server.address, folder / "p0", agreement.keys[KEEPER], seconds=20)(b"!")
    assert answer == b"p0!"


def test_a_member_that_trickles_is_cut_off(folder, keeper_door, monkeypatch):
    monkeypatch.setattr(tls, "_MESSAGE_SECONDS", 0.3)
    _, server = keeper_door
    context = tls.tls_context(folder / "p0", server=False)
    with (
        socket.create_connection(server.address) as peer,
        context.wrap_socket(peer) as line,
        pytest.raises(OSError),
    ):
        for _ in range(6_000):
            line.send(b"\0")
            time.sleep(0.05)


def test_a_keeper_hears_each_party_for_itself_and_the_coordinator_alone_asks():
    service = keeper_service(Keeper(roster=["p0", "p1", "p2"], least=2))
    key = {"key": "00" * 32, "question": "q", "least": 2}

    def kind(name, message):
        return decode(service(name, encode(message))).kind

    own = Message(kind="key", run="r", step=0, sender="p0", fields=key)
    assert kind("p1", own) == "refused" and kind(COORDINATOR, own) == "refused"
    assert kind("p0", own) == "reply"
    ask = Message(kind="reveal", run="r", step=0, sender="-", fields={"names": '["p0","p1"]', "size": 1})
    assert kind("p0", ask) == "refused"
    assert kind(COORDINATOR, ask) == "reply"
    assert decode(service("p0", b"rubbish")).kind == "refused"


def test_signatures_bind_messages_to_members():
    own, other = new_key(), new_key()
    raw = sealed(b"message", own)
    assert opened(raw, own.public_key()) == b"message"
    for false in (b"", raw[:-1], raw + b"x", b"\xff\xff" + raw, sealed(b"message", other)):
        with pytest.raises(Refused, match="signature"):
            opened(false, own.public_key())
    echo = sealed_endpoint(lambda raw: raw, own, other.public_key())
    assert opened(echo(sealed(b"question", other)), own.public_key()) == b"question"
    assert decode(opened(echo(sealed(b"question", own)), own.public_key())).kind == "declined"


def test_an_answer_under_a_foreign_signature_leaves_the_party_out():
    from federation import coordinator, members

    keys = {name: new_key() for name in PARTS}
    mallory, own = new_key(), new_key()
    quiet = SummedStatistics(epsilon=30.0, delta=1e-5)
    endpoints = {
        name: sealed_endpoint(party.answer, mallory if name == "p2" else keys[name], own.public_key())
        for name, party in members(PARTS, quiet).items()
    }
    known = {name: key.public_key() for name, key in keys.items()}
    transport = SealedTransport(InProcess(endpoints), own, known)
    outcome = coordinator(quiet, endpoints, DATA.catalog, transport=transport).train(DATA.facts)
    assert outcome.left_out == {"wrong signature": 3}
    assert {entry.counted for entry in outcome.rounds} == {("p0", "p1", "p3")}


def test_a_daemon_outlives_rubbish(folder):
    server = LocalServer(folder / "s", lambda raw: raw[::-1])
    with serving(server):
        for raw in (b"", b"GET / HTTP/1.1\r\n\r\n", b"\xff" * 12):
            with socket.socket(socket.AF_UNIX) as line:
                line.connect(str(server.path))
                line.sendall(raw)
        assert asked(server.path, b"abc") == b"cba"
    assert not server.path.exists()


def test_sockets_with_long_names_are_refused(folder):
    with refuses("socket-path-too-long"):
        listen(folder / ("x" * 120))


def test_an_agreement_is_read_back_and_names_the_run(folder):
    agreement = federation(folder)
    copies = [Agreement.read(folder / name) for name in (*PARTS, COORDINATOR, KEEPER)]
    assert {copy.run for copy in copies} == {agreement.run}
    path = folder / "p0" / "agreement.json"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    path.write_text(path.read_text().replace('"missing": 1', '"missing": 2'))
    assert Agreement.read(folder / "p0").run != agreement.run
    for broken in ("", "[]", "{}", "[" * 10_000):
        path.write_text(broken)
        with refuses("not-an-agreement"):
            Agreement.read(folder / "p0")
    (folder / "p1" / "items.json").write_text("[1, 2]")
    with refuses("not-agreed-catalog"):
        Agreement.read(folder / "p1")
    with pytest.raises(FileError):
        federation(folder)


@pytest.mark.parametrize("names", [("a", "a", "b"), ("keeper", "b", "c"), ("../x", "b", "c"), ("", "b", "c")])
def test_names_that_cannot_be(folder, names):
    with refuses("bad-member"):
        federation(folder, names)


def test_a_key_of_nobody_is_no_party(folder):
    agreement = federation(folder)
    with refuses("not-a-member", role="party"):
        PartyDaemon(folder / COORDINATOR, agreement, joining(agreement, SHARED, DATA, Ledger.in_memory()))


def test_catalogs_that_overlap_are_united():
    assert catalogs.united([Vocabulary.of([3, 1]), Vocabulary.of([2, 3])]).ids.tolist() == [1, 2, 3]
    assert catalogs.united([Vocabulary.of(["b"]), Vocabulary.of([2])]).ids.tolist() == ["2", "b"]


def test_salted_names_hide_items_and_keep_people():
    """Two parties list different halves of the items; their people mean the same items as before."""
    salt = b"a secret of parties"
    halves = [DATA.select_items(np.arange(0, 30)), DATA.select_items(np.arange(20, DATA.n_items))]
    named = [catalogs.salted(half.catalog, salt) for half in halves]
    union = catalogs.united(named)
    assert len(union) == DATA.n_items and not set(union.ids) & set(map(str, DATA.catalog.ids))
    facts = DATA.facts
    over = catalogs.salted_data(halves[0], salt, union, facts)
    back = np.argsort(union.index_of(named[0].ids))
    assert over.n_items == len(union) and over.n_ratings == halves[0].n_ratings
    assert sorted(
        np.bincount(over.items, minlength=len(union))[union.index_of(named[0].ids[back])]
    ) == sorted(np.bincount(halves[0].items, minlength=30))
    with refuses("items-not-in-union", salted=True):
        catalogs.salted_data(halves[0], b"another secret here", union, facts)


def test_keys_are_written_as_text_and_read_back():
    from discreet.federated.identity.keys import read_key_text

    key = new_key().public_key()
    assert key_text(read_key_text(key_text(key))) == key_text(key)
    with refuses("bad-public-key"):
        read_key_text("ssh-rsa nonsense")


def test_a_daemon_looks_for_the_coordinator_until_it_is_closed(folder, monkeypatch):
    looked = threading.Event()
    monkeypatch.setattr(party, "Flower", lambda *_: None)
    monkeypatch.setattr(party, "answers_at", lambda _: looked.set())
    name = next(iter(PARTS))
    agreement = federation(folder)
    join = joining(agreement, SHARED, PARTS[name], Ledger.in_memory())
    daemon = PartyDaemon(folder / name, agreement, join)
    threading.Thread(target=daemon.run, daemon=True).start()
    daemon.start_flower()
    node = daemon._node
    assert looked.wait(300) and node.is_alive(), "the twin: it runs"
    daemon.close()
    assert not node.is_alive()
