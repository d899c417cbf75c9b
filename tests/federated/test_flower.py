"""Over Flower, with TLS and known keys, between real processes; skipped where Flower is not installed."""

import asyncio
import contextlib
import importlib
import json
import math
import os
import re
import socket
import ssl
import sys
import threading
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from discreet.federated.errors import FlowerFailed
from discreet.federated.flower import launch
from discreet.federated.flower.app.discreet_relay import frames
from discreet.federated.flower.processes import Flower, stop
from discreet.federated.identity.agreement import COORDINATOR, KEEPER, Agreement
from discreet.federated.identity.keys import (
    AUTHORITY,
    KEY,
    Authority,
    new_key,
    opened,
    read_private_key,
    sealed,
)
from discreet.federated.noise import SharedNoise
from discreet.federated.protocols.estimator_sums import protocol_for
from discreet.federated.serving.party import LocalServer
from discreet.federated.serving.tls import TlsLine
from discreet.federated.wire import Message, decode, encode
from discreet.models.popularity import Popularity
from discreet.models.user_factorization.estimator import UserFactorization
from discreet.privacy.ledger.ledger import Ledger
from discreet.testing import refuses
from federation import coordinator, keeper_of, members
from flower import NAMES, Federation, wait_until
from ports import free_port
from toy import toy_interactions

CHOICES = ("--model", "popularity", "--implicit")


@pytest.fixture
def found():
    """Return what founds a federation and ends it after the test."""
    with contextlib.ExitStack() as ending:

        def make(data, *options):
            federation = Federation(data, *options)
            ending.callback(federation.close)
            return federation

        yield make


FAILS = """#!/bin/sh
printf '\\033[91mERROR \\033[0m:     Something was closed\\n' >&2
echo 'Traceback (most recent call last):' >&2
echo 'httpx.ConnectError: the handshake failed' >&2
echo 'INFO: over' >&2
exit 3
"""


@pytest.mark.parametrize(
    ("what", "how", "log"), [("SuperLink", "ended", "superlink"), ("command line", "failed", "flwr")]
)
def test_a_failure_of_flower_names_its_last_error(tmp_path, what, how, log):
    programs, folder = tmp_path / "bin", tmp_path / "coordinator"
    programs.mkdir()
    for name in ("python", "flower-superlink"):
        (programs / name).write_text(FAILS)
        (programs / name).chmod(0o700)
    Authority.new("trial").write_member(folder, COORDINATOR, new_key(), "localhost")
    flower = Flower(folder, programs)
    with pytest.raises(FlowerFailed) as failed:
        if what == "SuperLink":
            flower.start_superlink(("127.0.0.1", free_port()))
        else:
            flower.start_relay({}, tmp_path / "s")
    assert (failed.value.what, failed.value.how) == (what, how)
    assert failed.value.log == folder / "flower" / f"{log}.log"
    assert failed.value.reason == "httpx.ConnectError: the handshake failed"


STATES = """#!/bin/sh
cat > /dev/null
echo '%s'
"""


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (
            {"success": True, "runs": [{"status": "finished:failed", "status-details": "No heartbeat"}]},
            "finished:failed, No heartbeat",
        ),
        ({"success": True, "runs": [{"status": "pending", "status-details": "N/A"}]}, None),
        ({"success": False, "error-message": "no\nconnection"}, None),
    ],
)
def test_what_flower_states_of_a_run_is_the_reason_of_the_relay(tmp_path, answer, reason):
    programs, folder = tmp_path / "bin", tmp_path / "coordinator"
    programs.mkdir()
    for name in ("python", "flower-superlink"):
        (programs / name).write_text(STATES % json.dumps(answer).replace("\\", "\\\\"))
        (programs / name).chmod(0o700)
    Authority.new("trial").write_member(folder, COORDINATOR, new_key(), "localhost")
    flower = Flower(folder, programs)
    assert flower.relay_failed("late").reason == reason
    if not answer["success"]:
        with refuses("flower-failed", reason="no connection"):
            flower.start_relay({}, tmp_path / "s")


class BusyGrid:
    """Flower on a busy machine: each of its calls fails once and then works."""

    def __init__(self):
        self.failed, self.pushed = set(), []

    def once(self, name):
        if name not in self.failed:
            self.failed.add(name)
            raise RuntimeError(name)

    def get_node_ids(self):
        self.once("nodes")
        return [7]

    def push_messages(self, messages):
        self.once("push")
        self.pushed += messages
        return ["message"] * len(messages)

    def pull_messages(self, ids):
        self.once("pull")
        metadata = SimpleNamespace(reply_to_message_id="message")
        content = {"message": {"bytes": b"answer"}}
        return [SimpleNamespace(metadata=metadata, has_error=lambda: False, content=content)]


def test_the_relay_outlives_failures_of_flower(monkeypatch):
    any_kind = SimpleNamespace(main=lambda: lambda function: function)
    names = {"ConfigRecord": dict, "Context": None, "Message": lambda *_, **given: given, "RecordDict": dict}
    monkeypatch.setitem(sys.modules, "flwr", SimpleNamespace())
    monkeypatch.setitem(sys.modules, "flwr.app", SimpleNamespace(**names))
    app = SimpleNamespace(Grid=None, ServerApp=lambda: any_kind)
    monkeypatch.setitem(sys.modules, "flwr.serverapp", app)
    relay = importlib.import_module("discreet.federated.flower.app.discreet_relay.server")
    monkeypatch.setattr(relay, "_ROLL_CALL_EVERY", 0.01)
    monkeypatch.setattr(relay, "_POLL_SECONDS", 0.01)
    grid, (near, far) = BusyGrid(), socket.socketpair()
    with near, far:
        header = {"ask": 1, "nodes": ["7"], "seconds": 30.0}
        relay._Round(grid, near, header, b"question").run()
        near.close()
        seen = []
        with contextlib.suppress(ConnectionError):
            while True:
                seen.append(frames.receive(far))
    assert grid.failed == {"nodes", "push", "pull"} and len(grid.pushed) == 1
    assert seen[-1] == ({"ask": 1, "node": "7", "error": False}, b"answer")
    # A failed roll call reports no node as absent.
    assert all(entry.get("absent", []) == [] for entry, _ in seen)


@pytest.mark.systems
def test_three_parties_over_flower_with_tls_and_known_keys(found):
    """One release at a finite epsilon; whoever trusts another authority does not talk to the coordinator."""
    data = toy_interactions(n_users=300)
    federation = found(data, *CHOICES, "--epsilon", "8", "--delta", "1e-5")
    federation.start_keeper()
    for name in NAMES:
        federation.start_party(name)
    stranger = federation.root / "stranger"
    Authority.new("false").write_member(stranger, "north", new_key(), "localhost")
    seen = {}

    def watch(line):
        if line.startswith("Question 1"):
            seen["false authority"] = refused_by_tls(federation.address, stranger / AUTHORITY)
            seen["right authority"] = refused_by_tls(
                federation.address, federation.folder / "north" / AUTHORITY
            )

    model, results = federation.run("--seconds", "600", watch=watch)
    assert seen == {"false authority": True, "right authority": False}
    assert model.guarantee.is_private and model.guarantee.epsilon == 8.0 and not model.guarantee.simulated
    assert results["rounds"] == [{"heard": list(NAMES), "left_out": {}, "refused": {}}]
    exact = Popularity(epsilon=math.inf).fit(federation.pooled(model)).scorer.popularity
    assert not np.array_equal(model.scorer.popularity, exact)
    assert np.abs(model.scorer.popularity - exact).max() < 10
    for name in NAMES:
        assert Ledger.open(federation.root / f"{name}.ledger").spent("shop").epsilon == 8.0


def refused_by_tls(address, authority):
    context = ssl.create_default_context(cafile=authority)
    try:
        with (
            socket.create_connection(address) as line,
            context.wrap_socket(line, server_hostname="localhost"),
        ):
            return False
    except ssl.SSLCertVerificationError:
        return True


@pytest.mark.slow
def test_a_killed_party_and_a_killed_coordinator_are_resumed_to_the_exact_model(found):
    data = toy_interactions(n_users=300)
    options = ("--model", "user-factorization", "--epsilon", "inf", "--scale", "1,5,1")
    federation = found(data, *options)
    federation.start_keeper()
    for name in NAMES:
        federation.start_party(name)

    def kill_party(line):
        # Questions 2 and 4 confirm the sets of 1 and 3. A party that is gone there stops the run.
        if line.startswith("Question 3"):
            federation.kill("east")
            federation.start_party("east")

    def kill_both(line):
        kill_party(line)
        return "kill" if line.startswith("Question 4") else None

    patient = ("--seconds", "400", "--patience", "300")
    assert federation.run(*patient, watch=kill_both)[0] is None
    model, results = federation.run(*patient)
    counted = [entry["heard"] for entry in results["rounds"]]
    assert all({"north", "south"} <= set(names) for names in counted)
    same = in_one_process(federation.pooled(model), counted)
    for name, array in same.scorer.arrays().items():
        assert np.array_equal(model.scorer.arrays()[name], array), name
    for name in NAMES:
        assert len(Ledger.open(federation.root / f"{name}.ledger").entries()) == 1


def in_one_process(data, counted):
    """Return the model of the same parties, heard in the same rounds; the pooled one if in all."""
    estimator = UserFactorization(epsilon=math.inf)
    if all(names == list(NAMES) for names in counted):
        return estimator.fit(data)
    protocol = protocol_for(estimator, data.facts, SharedNoise(parties=3, missing=1))
    owner = np.arange(data.n_users) % 3
    parts = {name: data.select_users(np.flatnonzero(owner == k)) for k, name in enumerate(NAMES)}
    keeper = keeper_of(protocol, parts)
    parties = members(parts, protocol, keeper=keeper)

    def endpoint(name):
        def answer(raw):
            if name not in counted[decode(raw).step]:
                raise ConnectionError
            return parties[name].answer(raw)

        return answer

    endpoints = {name: endpoint(name) for name in NAMES}
    return coordinator(protocol, endpoints, data.catalog, keeper=keeper).train(data.facts).model


class Vandal:
    """Answer in a party's place, each question with another fault."""

    def __init__(self, folder):
        self.agreement = Agreement.read(folder)
        self.own = read_private_key(folder / KEY)
        self.line = TlsLine(self.agreement.address(KEEPER), folder, self.agreement.keys[KEEPER])
        self.faults = [self.digits, self.promise, self.deep, self.foreign_key, self.many, self.huge_integer]
        self.faults += [self.replay, self.huge_values]
        self.kept = []
        self.replies = []
        self.tried = []

    def __call__(self, raw):
        question = decode(opened(raw, self.agreement.key(COORDINATOR)))
        fault = self.faults[len(self.tried) % len(self.faults)]
        self.tried.append(fault.__name__)
        return fault(question)

    def answer(self, question, **changes):
        size = len(question.arrays.get("effects", ())) * 2 or 2
        fields = {
            "epsilon": "inf",
            "delta": 0.0,
            "simulated": False,
            "noise total": 0.0,
            "sigma": 0.0,
            "bound": 1.0,
        }
        return Message(
            kind=question.kind,
            run=question.run,
            step=question.step,
            sender="south",
            fields={**fields, "question": question.digest, **changes},
            arrays={"total": np.full(size, 2**50, dtype=np.uint64)},
        )

    def hand(self, asked, **changes):
        key = {"key": "11" * 32, "question": asked.digest, "least": 2, **changes}
        message = Message(kind="key", run=asked.run, step=asked.step, sender="south", fields=key)
        self.replies.append(decode(self.line(encode(message))).kind)

    def huge_integer(self, question):
        raw = encode(self.answer(question, delta=10**18))
        return sealed(raw.replace(b"1000000000000000000", b"1" + b"0" * 18), self.own)

    def digits(self, question):
        """A whole number of four hundred digits, which no float holds."""
        digits = b'"delta":1' + b"0" * 400
        return self.with_header(question, lambda text: text.replace(b'"delta":0.0', digits))

    def promise(self, question):
        """A header that promises terabytes."""
        huge = b'"<u8",[1099511627776]'
        return self.with_header(question, lambda text: re.sub(rb'"<u8",\[\d+\]', huge, text))

    def deep(self, question):
        return self.with_header(question, lambda text: b"[" * 100_000)

    def with_header(self, question, change):
        raw = encode(self.answer(question))
        length = int.from_bytes(raw[5:9], "little")
        text = change(raw[17 : 17 + length])
        assert text != raw[17 : 17 + length]
        whole = raw[:5] + len(text).to_bytes(4, "little") + raw[9:17] + text + raw[17 + length :]
        return sealed(whole, self.own)

    def foreign_key(self, question):
        """Hand the keeper a key in north's name, and one for another question."""
        key = {"key": "22" * 32, "question": question.digest, "least": 2}
        message = Message(kind="key", run=question.run, step=question.step, sender="north", fields=key)
        self.replies.append(decode(self.line(encode(message))).kind)
        self.hand(question, question="another")
        return sealed(encode(self.answer(question)), self.own)

    def many(self, question):
        self.hand(question, least=1000)
        return sealed(encode(self.answer(question)), self.own)

    def replay(self, question):
        self.kept.append(question)
        return sealed(encode(self.answer(self.kept[0], step=0)), new_key())

    def huge_values(self, question):
        """Numbers that fit the ring and have no key: nobody can take their mask off."""
        return sealed(encode(self.answer(question)), self.own)


@pytest.mark.slow
def test_a_vandal_is_left_out_and_named_over_the_real_transport(found):
    data = toy_interactions(n_users=300)
    options = ("--model", "user-factorization", "--epsilon", "8", "--delta", "1e-5", "--scale", "1,5,1")
    federation = found(data, *options)
    federation.start_keeper()
    for name in NAMES[:2]:
        federation.start_party(name)
    folder = federation.folder / "south"
    vandal = Vandal(folder)
    server = LocalServer(folder / "party.socket", vandal)
    threading.Thread(target=server.run, daemon=True).start()
    node = Flower(folder, federation.flower)

    def join(line):
        # A node that knocks before the coordinator lets it in gives up.
        if line.startswith("Question 1 "):
            federation.processes["south"] = node.start_supernode(federation.address, server.path, 60.0)

    model, results = federation.run("--seconds", "600", "--patience", "600", watch=join)
    assert model.guarantee.epsilon == 8.0
    for entry in results["rounds"]:
        assert entry["heard"] == ["north", "east"]
        assert set(entry["left_out"]) == {"south"}
    assert vandal.replies[0] == "refused"
    assert {"digits", "promise", "deep"} <= set(vandal.tried), vandal.tried
    server.close()


@pytest.mark.slow
def test_strangers_and_foreign_programs_are_refused(found, tmp_path):
    """A node that nobody registered is not let in; a node runs no program but discreet's relay."""
    data = toy_interactions(n_users=300)
    federation = found(data, *CHOICES, "--epsilon", "8", "--delta", "1e-5")
    folder = federation.folder / COORDINATOR
    flower = Flower(folder, federation.flower)
    federation.processes["superlink"] = flower.start_superlink(federation.address)
    app = tmp_path / "app"
    (app / "other").mkdir(parents=True)
    (app / "other" / "__init__.py").write_text("")
    (app / "other" / "server.py").write_text(PROGRAM)
    (app / "pyproject.toml").write_text(PROJECT)
    agreement = Agreement.read(folder)
    flower.start_relay({"north": agreement.keys["north"]}, tmp_path / "s", app)
    node = Flower(federation.folder / "north", federation.flower)
    federation.processes["north"] = node.start_supernode(federation.address, tmp_path / "d", 5.0)
    log = federation.folder / "north" / "flower" / "supernode.log"
    assert wait_until(lambda: log.exists() and "not discreet's relay" in log.read_text())
    assert not (tmp_path / "proof").exists()
    # A stranger with a certificate of the right authority and a key that is nobody's.
    stranger = federation.root / "stranger"
    Authority.new("other").write_member(stranger, "north", new_key(), "localhost")
    (stranger / AUTHORITY).write_bytes((federation.folder / "north" / AUTHORITY).read_bytes())
    node = Flower(stranger, federation.flower)
    federation.processes["stranger"] = node.start_supernode(federation.address, tmp_path / "d", 5.0)
    # Flower's SuperNode ends when it is not let in. A party's daemon starts it again.
    federation.processes["stranger"].wait(300)
    log = (folder / "flower" / "superlink.log").read_text()
    assert '"POST /v1/fleet/activate-node HTTP/1.1" 401' in log


def memory_mb(pid, field):
    status = Path(f"/proc/{pid}/status").read_text()
    return int(status.partition(f"{field}:")[2].split()[0]) / 1024


def poured(peer, head, piece, size):
    """Send a request that goes on and on; return how much was accepted before the connection ended."""
    sent = 0
    with contextlib.suppress(OSError):
        peer.sendall(b"POST /v1/fleet/push-messages HTTP/1.1\r\nhost: x\r\n" + head)
        while sent < size:
            peer.sendall(piece)
            sent += len(piece)
    return sent


BODY, SIZE = bytes(1 << 20), 1_500_000_000
TYPE = b"content-type: application/protobuf\r\n"
POURED = {
    "length stated": (TYPE + b"content-length: 1500000000\r\n\r\n", BODY),
    "in chunks": (TYPE + b"transfer-encoding: chunked\r\n\r\n", b"100000\r\n" + BODY + b"\r\n"),
    "in headers": (TYPE, b"x: " + b"x" * 65_000 + b"\r\n"),
}


@pytest.mark.slow
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="Linux shows a process's memory")
def test_a_stranger_does_not_fill_the_coordinators_memory(found):
    """Anyone who reaches the port pours 1.5 GB into it, and keeps 600 connections open."""
    federation = found(toy_interactions(n_users=300), *CHOICES, "--epsilon", "8", "--delta", "1e-5")
    flower = Flower(federation.folder / COORDINATOR, federation.flower)
    federation.processes["superlink"] = process = flower.start_superlink(federation.address)
    before = memory_mb(process.pid, "VmRSS")
    authority = federation.folder / "north" / AUTHORITY
    context = ssl.create_default_context(cafile=authority)
    sent = {}
    with contextlib.ExitStack() as ending:

        def connected():
            line = ending.enter_context(socket.create_connection(federation.address, timeout=120))
            return ending.enter_context(context.wrap_socket(line, server_hostname="localhost"))

        for name, (head, piece) in POURED.items():
            sent[name] = poured(connected(), head, piece, SIZE)
        idle = [connected() for _ in range(600)]
        assert not refused_by_tls(federation.address, authority)
        assert wait_until(lambda: is_closed(idle[0]), 60)
    assert max(sent.values()) < 100e6 and memory_mb(process.pid, "VmHWM") - before < 150, sent
    # Connections that strangers keep open don't delay the end of a run.
    stop(process)


def is_closed(line):
    line.settimeout(0.1)
    try:
        return line.recv(1) == b""
    except TimeoutError:
        return False
    except OSError:
        return True


PROGRAM = """
from pathlib import Path
from flwr.app import ConfigRecord, Message, RecordDict
from flwr.clientapp import ClientApp
from flwr.serverapp import ServerApp

app = ServerApp()
client = ClientApp()

@app.main()
def main(grid, context):
    import time
    while not list(grid.get_node_ids()):
        time.sleep(0.5)
    for node in grid.get_node_ids():
        record = RecordDict({"message": ConfigRecord({"a": 1})})
        grid.push_messages([Message(record, dst_node_id=node, message_type="query")])
    time.sleep(60)

@client.query()
def forward(message, context):
    Path(context.run_config["socket"]).with_name("proof").write_text("ran")
    return message
"""
PROJECT = """
[project]
name = "other"
version = "1.0.0"
license = "Apache-2.0"
dependencies = ["flwr"]
[tool.flwr.app]
publisher = "other"
[tool.flwr.app.components]
serverapp = "other.server:app"
clientapp = "other.server:client"
[tool.flwr.app.config]
socket = ""
"""


@pytest.mark.parametrize(
    ("path", "host", "party", "refused"),
    [
        ("/v1/fleet/pull-messages", "203.0.113.7", 1, None),
        ("/v1/fleet/pull-messages", "203.0.113.7", None, 401),
        ("/v1/fleet/pull-messages", "127.0.0.1", None, 401),
        ("/v1/control/start-run", "203.0.113.7", 1, 403),
        ("/v1/runtime/acquire-task", "203.0.113.7", 1, 403),
        ("/v1/control/start-run", "127.0.0.1", None, None),
        ("/v1/control/start-run", "::1", None, None),
        ("/docs", "somewhere", None, 403),
    ],
)
def test_other_machines_reach_only_the_endpoint_of_parties(path, host, party, refused, monkeypatch):
    monkeypatch.setattr(launch, "owner_of", lambda address, port: os.getuid())
    counted, sent = [], []

    async def app(scope, receive, send):
        counted.append(scope["path"])

    async def send(message):
        sent.append(message)

    guarded = launch.LocalCommands(app, who=lambda scope: party)
    asyncio.run(guarded({"type": "http", "path": path, "client": (host, 1)}, None, send))
    assert counted == ([] if refused else [path])
    assert [one["status"] for one in sent[:1]] == ([refused] if refused else [])
