"""Start Flower's SuperLink or SuperNode with all interfaces closed that discreet does not need.

Runs with Flower's Python, imports flwr alone, and is tied to the one release that pyproject.toml names:
`python launch.py superlink OPTIONS`, `python launch.py supernode OPTIONS`, or `python launch.py orders` with
lists of arguments for Flower's command line on standard input. Both start `python launch.py superexec`
themselves. All end with the process that started them.

*SuperLink.* Flower 1.41 serves parties, its command line and its own processes on one port, and authenticates
only parties, after it has read their requests: anyone who reaches the port could start a run, which is a
program, on every machine of the federation, or fill the memory. Here requests from other machines reach the
parties' endpoint only. SuperNodes sign them, and the signature is checked before a body is read. Bodies and
connections of each party are bounded. A connection without a signed request is closed after a few seconds.
Requests from this machine must come from a process of the same user.

*SuperNode.* It runs any program that the SuperLink sends. Here that program is compared, byte for byte, with
the relay packed from the party's own copy of discreet. Its own port, which appears in the arguments of
processes, answers processes of the same user only. Linux shows whose a connection is; elsewhere this is not
checked.

*SuperExec.* It starts a process for every message, and for the coordinator's relay. Loading Flower takes two
seconds of processor, so here these processes are forked from one that has loaded it, and their tokens are not
in arguments.
"""

from __future__ import annotations

import asyncio
import base64
import datetime
import importlib
import ipaddress
import json
import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time
from asyncio import sslproto
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

_PARTIES_ENDPOINT = "/v1/fleet/"
# The longest message with what Flower puts around it: what one party may send at once. A run of a party is at
# most 1,000 answers; all that it sends while a SuperLink runs is bounded, too.
_MOST_BODY = (1 << 28) + (1 << 20)
_MOST_OF_ONE = 16 * _MOST_BODY
# Connections without a signed request, how long they may wait for one, and those of one party.
_MOST_WAITING, _WAITING_SECONDS, _OWN_SECONDS = 256, 5.0, 30.0
_MOST_CONNECTIONS = 32
_APP = Path(__file__).resolve().parent / "app"
# How long a task may be silent, also while its process loads Flower. Flower's own choice is 30 seconds.
# A busy machine needs longer to start a process, and the relay or an answer would be lost.
_TASK_SECONDS = 300
# How long a SuperNode waits before it asks for messages again; Flower's own choice is 3 seconds.
_LONGEST_PAUSE = 1.0
# What SuperExec starts, by kind of task: a module, and its function of the same name.
_TASKS = {
    "flwr-clientapp": "flwr.supernode.cli.flwr_clientapp",
    "flwr-serverapp": "flwr.superlink.cli.flwr_serverapp",
}


class Connections:
    """Open connections of a SuperLink: strangers have a few for a short time, and each party has a few."""

    def __init__(self) -> None:
        self._waiting: dict[Any, Callable[[], None]] = {}
        self._known: dict[Any, Any] = {}

    def opened(self, client: Any, close: Callable[[], None]) -> None:
        """Count a new connection, and close the one that has waited longest if there are too many."""
        self._waiting[client] = close
        if len(self._waiting) > _MOST_WAITING:
            self.late(next(iter(self._waiting)))

    def late(self, client: Any) -> None:
        """Close a connection that sent no signed request."""
        close = self._waiting.pop(client, None)
        if close is not None:
            close()

    def closed(self, client: Any) -> None:
        """Forget a connection."""
        self._waiting.pop(client, None)
        self._known.pop(client, None)

    def admit(self, client: Any, party: Any = None) -> bool:
        """Admit a connection; return whether a party may have one more."""
        self._waiting.pop(client, None)
        if party is None:
            return True
        self._known[client] = party
        return list(self._known.values()).count(party) <= _MOST_CONNECTIONS


def patience(client: Any) -> float:
    """Return how long a connection may wait for a signed request, or for a request of this user.

    On a busy machine, handshakes of Flower's own processes take longer than a stranger may, and Flower gives
    up after a handshake that failed.
    """
    return _OWN_SECONDS if is_own(client) else _WAITING_SECONDS


class LocalCommands:
    """What lets requests of other machines reach the parties' endpoint only, and bounds their bodies.

    Parameters:
        who: Returns the party that signed a request, given its scope, or None; None if no endpoint is public.
        connections: Where connections of parties are counted.
    """

    def __init__(
        self, app: Any, who: Callable[[Any], Any] | None = None, connections: Connections | None = None
    ) -> None:
        self._app, self._who, self._connections = app, who, connections or Connections()
        self._held: Counter[Any] = Counter()
        self._sent: Counter[Any] = Counter()

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Pass on allowed requests."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
        elif self._who is not None and scope.get("path", "").startswith(_PARTIES_ENDPOINT):
            party = await asyncio.to_thread(self._who, scope)
            admitted = party is not None and self._connections.admit(scope.get("client"), party)
            await (self._bounded(party, scope, receive, send) if admitted else _end(send, 401))
        elif is_own(scope.get("client")):
            self._connections.admit(scope.get("client"))
            await self._app(scope, receive, send)
        elif scope["type"] == "http":
            await _end(send, 403)

    async def _bounded(self, party: Any, scope: Any, receive: Any, send: Any) -> None:
        """Pass on a request whose body is counted as it comes; one that is too long ends with an error."""
        stated = next((value for name, value in scope.get("headers", ()) if name == b"content-length"), b"0")
        if not stated.isdigit() or len(stated) > 12 or int(stated) > _MOST_BODY:
            await _end(send, 413)
            return
        size, answering = 0, False

        async def counted() -> Any:
            nonlocal size
            message = await receive()
            got = len(message.get("body", b""))
            size += got
            self._held[party] += got
            self._sent[party] += got
            if self._held[party] > _MOST_BODY or self._sent[party] > _MOST_OF_ONE:
                raise TooLong
            return message

        async def sending(message: Any) -> None:
            nonlocal answering
            answering = True
            await send(message)

        try:
            await self._app(scope, counted, sending)
        except TooLong:
            if not answering:
                await _end(send, 413)
        finally:
            self._held[party] -= size


class TooLong(Exception):
    """A body that is longer than any message, or more bytes than one party needs."""


async def _end(send: Any, status: int) -> None:
    # What follows on the connection is not read.
    await send({"type": "http.response.start", "status": status, "headers": [(b"connection", b"close")]})
    await send({"type": "http.response.body", "body": b""})


def is_own(client: Any) -> bool:
    """Return whether a connection comes from this machine, and from the same user if the system shows it."""
    try:
        host, port = client
        address = ipaddress.ip_address(host)
    except (TypeError, ValueError):
        return False
    if not address.is_loopback:
        return False
    return not Path("/proc/net").exists() or owner_of(address, port) == os.getuid()


def _in_table(packed: bytes) -> str:
    """Return an address as Linux lists it: words of four bytes in the machine's order."""
    words = (packed[at : at + 4] for at in range(0, len(packed), 4))
    return "".join(f"{int.from_bytes(word, sys.byteorder):08X}" for word in words)


def owner_of(address: Any, port: int) -> int | None:
    """Return the user whose process opened a connection from this address and port on this machine."""
    written, mapped = _in_table(address.packed), _in_table(bytes(10) + b"\xff\xff")
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        try:
            rows = Path(table).read_text().splitlines()[1:]
        except OSError:
            continue
        for row in rows:
            columns = row.split()
            if columns[1] in (f"{written}:{port:04X}", f"{mapped}{written}:{port:04X}"):
                return int(columns[7])
    return None


def superlink() -> None:
    """Start the SuperLink."""
    import uvicorn
    from flwr.superlink import extensions
    from starlette.middleware import Middleware

    wait_for_tasks()
    # The package has a function of the module's name.
    program = importlib.import_module("flwr.superlink.cli.flower_superlink")
    connections, run, command = Connections(), uvicorn.run, program._get_superexec_command
    program._get_superexec_command = lambda **given: own_superexec(command(**given))  # type: ignore[attr-defined]

    class Counted(sslproto.SSLProtocol):
        """A connection that is counted from the moment it is accepted, before its handshake."""

        def connection_made(self, transport: Any) -> None:
            super().connection_made(transport)
            self._client = transport.get_extra_info("peername")[:2]
            connections.opened(self._client, transport.abort)
            self._loop.call_later(patience(self._client), connections.late, self._client)

        def connection_lost(self, error: BaseException | None) -> None:
            connections.closed(self._client)
            super().connection_lost(error)

    sslproto.SSLProtocol = Counted  # type: ignore[misc]
    guard = Middleware(LocalCommands, who=signed_by, connections=connections)
    extensions.get_middleware = lambda: (guard,)
    # h11 bounds headers; httptools doesn't. Few connections are accepted in one go, because each has buffers.
    bounds: dict[str, Any] = {
        "http": "h11",
        "loop": "asyncio",
        "backlog": 128,
        "timeout_graceful_shutdown": 5,
    }
    uvicorn.run = lambda **given: run(**given, **bounds)
    program.flower_superlink()


def signed_by(scope: Any) -> Any:
    """Return the number of the party whose key signed a request, as Flower's own check does; None if none."""
    from flwr.common.constant import SYSTEM_TIME_TOLERANCE, TIMESTAMP_HEADER, TIMESTAMP_TOLERANCE
    from flwr.supercore.constant import FLEET_HTTP_PUBLIC_KEY_HEADER, FLEET_HTTP_SIGNATURE_HEADER
    from flwr.supercore.date import now
    from flwr.supercore.primitives.asymmetric import bytes_to_public_key, verify_signature

    headers = {name.decode("latin-1"): value for name, value in scope["headers"]}
    try:
        key = base64.b64decode(headers[FLEET_HTTP_PUBLIC_KEY_HEADER], validate=True)
        party = scope["app"].state.linkstate_factory.state().get_node_id_by_public_key(key)
        signature = base64.b64decode(headers[FLEET_HTTP_SIGNATURE_HEADER], validate=True)
        stated = headers[TIMESTAMP_HEADER]
        age = (now() - datetime.datetime.fromisoformat(stated.decode("ascii"))).total_seconds()
        recent = -SYSTEM_TIME_TOLERANCE < age < TIMESTAMP_TOLERANCE + SYSTEM_TIME_TOLERANCE
        signed = recent and verify_signature(bytes_to_public_key(key), stated, signature)
    except (KeyError, ValueError, TypeError):
        return None
    return party if signed else None


def supernode() -> None:
    """Start the SuperNode."""
    from flwr.cli.build import build_fab_from_disk
    from flwr.supernode import main
    from flwr.supernode import start_client_internal as loop
    from flwr.supernode.cli.flower_supernode import flower_supernode
    from flwr.supernode.fleet_http_client import FleetHttpClient

    wait_for_tasks()
    relay, fetch = build_fab_from_disk(_APP), FleetHttpClient.GetFab

    def checked(self: Any, request: Any) -> Any:
        response = fetch(self, request)
        if response.fab.content != relay:
            raise PermissionError("The SuperLink handed out a program that is not discreet's relay.")
        return response

    def guarded(*given: Any, **options: Any) -> Any:
        app = create(*given, **options)
        app.add_middleware(LocalCommands)
        return app

    def start(command: list[str]) -> Any:
        return subprocess.Popen(own_superexec(command))

    create, main.create_app = main.create_app, guarded
    FleetHttpClient.GetFab = checked
    loop.subprocess = SimpleNamespace(Popen=start)
    loop.time = SimpleNamespace(sleep=lambda seconds: time.sleep(min(seconds, _LONGEST_PAUSE)))
    flower_supernode()


def wait_for_tasks() -> None:
    """Allow processes of tasks to start and report late, as on a busy machine."""
    for name in ("in_memory_corestate", "sql_corestate"):
        module = importlib.import_module(f"flwr.supercore.corestate.{name}")
        module.HEARTBEAT_DEFAULT_INTERVAL = _TASK_SECONDS  # type: ignore[attr-defined]


def own_superexec(command: list[str]) -> list[str]:
    """Return a command that starts this file's SuperExec with the options of Flower's."""
    return [sys.executable, str(Path(__file__).resolve()), "superexec", *command[1:]]


def superexec() -> None:
    """Start the SuperExec, which forks a process for every message from one that has loaded Flower."""
    from flwr.supercore.cli import flower_superexec
    from flwr.supercore.constant import TASK_TYPE_TO_COMMAND
    from flwr.supercore.superexec.executor.subprocess_executor import SubprocessExecutor
    from flwr.supercore.superexec.executor.types import LaunchResult

    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([_TASKS["flwr-clientapp"]])

    def forked(_: Any, spec: Any) -> Any:
        module = _TASKS[TASK_TYPE_TO_COMMAND[spec.task_type]]
        context.Process(target=task, args=(module, _options(spec))).start()
        return LaunchResult.accepted()

    SubprocessExecutor.launch = forked
    flower_superexec()


def _options(spec: Any) -> list[str]:
    """Return the options of the process for one task."""
    options = ["--runtime-api-address", spec.runtime_api_address, "--token", spec.token]
    options += ["--insecure"] if spec.insecure else ["--root-certificates", spec.root_certificates_path]
    return options + (["--parent-pid", str(spec.parent_pid)] if spec.parent_pid is not None else [])


def task(module: str, options: list[str]) -> None:
    """Run one of Flower's programs in a process of its own."""
    sys.argv[1:] = options
    getattr(importlib.import_module(module), module.rpartition(".")[2])()


def orders() -> None:
    """Run the commands on standard input, lists of arguments, with Flower's command line in one process."""
    from flwr.cli.app import app

    for order in json.load(sys.stdin):
        app(order, standalone_mode=False)


def stop_with_parent() -> None:
    """End this process when its parent has ended, for whatever reason."""
    parent = os.getppid()

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(0.5)
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=watch, daemon=True).start()


if __name__ == "__main__":
    what = sys.argv.pop(1)
    stop_with_parent()
    {"superlink": superlink, "supernode": supernode, "superexec": superexec, "orders": orders}[what]()
