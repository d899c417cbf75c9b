"""Real sockets: parties in threads and in processes, strangers on the line, a process killed in mid-run."""

import multiprocessing
import os
import signal
import socket
import struct
import threading

import numpy as np
import pytest

from discreet.federated.noise import SharedNoise
from discreet.federated.protocols.summed import SummedStatistics
from discreet.federated.sockets import HOST, SocketLine, SocketTransport, serve, serve_party
from discreet.federated.wire import FederationError, Message, decode, encode
from discreet.privacy.ledger.book import Ledger
from federation import RUN, coordinator, keeper_of, members, party_process, toy_parts, train

DATA, PARTS = toy_parts()
QUIET = SummedStatistics(epsilon=30.0, delta=1e-5)
SHARED = SummedStatistics(epsilon=30.0, delta=1e-5, noise=SharedNoise(parties=4, missing=1))
PATIENCE = 0.3


def in_thread(target, *arguments, **options):
    thread = threading.Thread(target=target, args=arguments, kwargs=options, daemon=True)
    thread.start()
    return thread


def connected(transport, endpoints):
    return [in_thread(serve_party, transport.address, name, RUN, end) for name, end in endpoints.items()]


def keeper_line(protocol):
    """Return a line to a keeper behind a socket of its own."""
    ready, found = threading.Event(), []

    def tell(address):
        found.append(address)
        ready.set()

    in_thread(serve, keeper_of(protocol, PARTS), tell)
    ready.wait()
    return SocketLine(found[0], seconds=5)


@pytest.mark.parametrize("protocol", [QUIET, SHARED], ids=["own noise", "shared noise"])
def test_sockets_carry_what_calls_carry(protocol):
    keeper = keeper_line(protocol) if protocol.noise.masked else None
    endpoints = {name: party.answer for name, party in members(PARTS, protocol, keeper=keeper).items()}
    with SocketTransport(patience=PATIENCE) as transport:
        threads = connected(transport, endpoints)
        assert transport.wait_for(list(PARTS), 20) == []
        leader = coordinator(protocol, endpoints, DATA.catalog, transport=transport, keeper=keeper)
        outcome = leader.train(DATA.facts)
    for thread in threads:
        thread.join(10)
        assert not thread.is_alive()
    assert outcome.left_out == {}
    users = np.arange(DATA.n_users)
    assert np.array_equal(
        outcome.model.scores(DATA, users), train(protocol, PARTS, DATA).model.scores(DATA, users)
    )


def vandals(address):
    """Connect as strangers of several kinds, and return the sockets so that they stay open."""
    lines = [socket.create_connection(address) for _ in range(5)]
    hello = encode(Message(kind="hello", run=RUN, step=-1, sender="nobody"))
    lines[0].sendall(b"GET / HTTP/1.1\r\n\r\n" + bytes(100))
    lines[1].sendall(struct.pack("<4sBIQ", b"DFED", 1, 10, 2**50))
    lines[2].sendall(hello + hello)
    lines[3].sendall(hello[:9])
    lines[4].sendall(encode(Message(kind="h", run=RUN, step=-1, sender="x", arrays={"a": np.zeros(10_000)})))
    return lines


def test_strangers_do_not_disturb():
    endpoints = {name: party.answer for name, party in members(PARTS, QUIET).items()}
    with SocketTransport(patience=PATIENCE) as transport:
        lines = vandals(transport.address)
        connected(transport, endpoints)
        assert transport.wait_for(list(PARTS), 20) == []
        outcome = coordinator(QUIET, endpoints, DATA.catalog, transport=transport).train(DATA.facts)
        for line in lines:
            line.close()
    assert outcome.left_out == {}


def test_silent_late_and_broken_parties_are_left_out():
    """One answers after the first round has ended, one breaks the form, one hangs up, one never comes."""
    data, parts = toy_parts(6)
    train(QUIET, parts, data)  # so that nobody is late because of compiling
    endpoints = {name: party.answer for name, party in members(parts, QUIET).items()}
    first_round_over = threading.Event()

    def late(raw):
        first_round_over.wait()
        return endpoints["p1"](raw)

    def hang_up(raw):
        raise ConnectionResetError

    there = endpoints | {"p1": late, "p2": lambda raw: b"rubbish" * 9, "p3": hang_up}
    del there["p4"]
    with SocketTransport(patience=PATIENCE) as transport:
        connected(transport, there)
        assert transport.wait_for(list(there), 20) == []
        assert transport.wait_for(list(parts), 0.1) == ["p4"]
        leader = coordinator(QUIET, endpoints, data.catalog, transport=transport, seconds=4.0)
        outcome = leader.train(data.facts, lambda *_: first_round_over.set())
    assert outcome.rounds[0].heard == ("p0", "p5")
    assert {entry.heard for entry in outcome.rounds[1:]} == {("p0", "p1", "p5")}
    assert outcome.rounds[0].left_out["p1"] == "silent"
    assert outcome.refused == {"wrong round": 1}


def test_a_party_that_comes_back_is_asked_again():
    endpoints = {name: party.answer for name, party in members(PARTS, QUIET).items()}
    calls = []

    def shaky(raw):
        calls.append(raw)
        if len(calls) == 1:
            raise ConnectionResetError
        return endpoints["p0"](raw)

    with SocketTransport(patience=5.0) as transport:
        connected(transport, {name: end for name, end in endpoints.items() if name != "p0"})
        in_thread(serve_party, transport.address, "p0", RUN, shaky, again=5.0)
        assert transport.wait_for(list(PARTS), 20) == []
        outcome = coordinator(QUIET, endpoints, DATA.catalog, transport=transport).train(DATA.facts)
    assert outcome.left_out == {}
    assert calls[0] == calls[1]


def test_a_keeper_that_is_gone_is_reported():
    with socket.create_server((HOST, 0)) as listener:
        address = listener.getsockname()[:2]
    with pytest.raises(FederationError, match="cannot be reached"):
        SocketLine(address, seconds=0.2)(b"")


def test_a_keeper_outlives_rubbish():
    line = keeper_line(SHARED)
    for raw in (b"GET / HTTP/1.1\r\n\r\n" + bytes(100), b"x"):
        with socket.create_connection(line._address) as stranger:
            stranger.sendall(raw)
    reply = decode(line(encode(Message(kind="reveal", run=RUN, step=0, sender="-"))))
    assert reply.kind == "refused"


def test_a_killed_process_does_not_stop_the_run(tmp_path):
    line = keeper_line(SHARED)
    server = multiprocessing.get_context("forkserver")
    server.set_forkserver_preload(["discreet.federated.party", "discreet.federated.protocols.summed"])
    with SocketTransport(patience=PATIENCE) as transport:
        processes = {
            name: server.Process(
                target=party_process,
                args=(name, part, SHARED, transport.address, line._address, tmp_path),
                daemon=True,
            )
            for name, part in PARTS.items()
        }
        for process in processes.values():
            process.start()
        assert transport.wait_for(list(PARTS), 120) == []

        def kill_one(_, done, __):
            if done == 1:
                os.kill(processes["p2"].pid, signal.SIGKILL)
                processes["p2"].join()

        leader = coordinator(SHARED, processes, DATA.catalog, transport=transport, keeper=line)
        outcome = leader.train(DATA.facts, kill_one)
    for process in processes.values():
        process.join(20)
    assert [len(entry.heard) for entry in outcome.rounds] == [4, 3, 3]
    assert outcome.left_out == {"silent": 2}
    assert outcome.model.guarantee.is_private
    for name in PARTS:
        assert Ledger.open(tmp_path / f"{name}.ledger").spent(DATA.name).epsilon == 30.0
