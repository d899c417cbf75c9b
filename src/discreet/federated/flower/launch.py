"""Start Flower's SuperLink or SuperNode with all interfaces closed that discreet does not need.

Runs with Flower's Python, imports flwr alone, and is tied to the one release that pyproject.toml names:
`python launch.py superlink OPTIONS`, `python launch.py supernode OPTIONS`, or `python launch.py orders` with
lists of arguments for Flower's command line on standard input. A SuperNode starts `python launch.py
superexec` itself. All end with the process that started them.

*SuperLink.* Flower 1.41 serves parties, its command line and its own processes on one port, and authenticates
only parties: anyone who reaches the port could start a run, which is a program, on every machine of the
federation. Here requests from other machines reach the parties' endpoint only, with bodies no longer than a
message, and requests from this machine must come from a process of the same user.

*SuperNode.* It runs any program that the SuperLink sends. Here that program is compared, byte for byte, with
the relay packed from the party's own copy of discreet. Its own port, which appears in the arguments of
processes, answers processes of the same user only. Linux shows whose a connection is; elsewhere this is not
checked.

*SuperExec.* It starts a process for every message. Loading Flower takes two seconds of processor, so here
these processes are forked from one that has loaded it, and their tokens are not in arguments.
"""

from __future__ import annotations

import ipaddress
import json
import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

_PARTIES_ENDPOINT = "/v1/fleet/"
# The longest message with what Flower puts around it, and how much all bodies at once may have.
_MOST_BODY = (1 << 28) + (1 << 20)
_MOST_BODIES = 4 * _MOST_BODY
_APP = Path(__file__).resolve().parent / "app"
# How long a SuperNode waits before it asks for messages again; Flower's own choice is 3 seconds.
_LONGEST_PAUSE = 1.0
_CLIENT_APP = "flwr.supernode.cli.flwr_clientapp"


class LocalCommands:
    """What lets requests of other machines reach the parties' endpoint only, and bounds their bodies."""

    def __init__(self, app: Any, public: str = _PARTIES_ENDPOINT) -> None:
        self._app, self._public = app, public
        self._held = 0

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Pass on allowed requests."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
        elif scope["type"] == "http" and not self._is_allowed(scope):
            await _end(send, 403)
        elif scope["type"] == "http":
            await self._bounded(scope, receive, send)
        elif is_own(scope.get("client")):
            await self._app(scope, receive, send)

    def _is_allowed(self, scope: Any) -> bool:
        public = bool(self._public) and scope["path"].startswith(self._public)
        return public or is_own(scope.get("client"))

    async def _bounded(self, scope: Any, receive: Any, send: Any) -> None:
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
            self._held += got
            if size > _MOST_BODY or self._held > _MOST_BODIES:
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
            self._held -= size


class TooLong(Exception):
    """A body that is longer than any message, or more bodies at once than fit."""


async def _end(send: Any, status: int) -> None:
    await send({"type": "http.response.start", "status": status, "headers": []})
    await send({"type": "http.response.body", "body": b""})


def is_own(client: Any) -> bool:
    """Return whether a connection comes from this machine and, where Linux shows it, from the same user."""
    try:
        host, port = client
        address = ipaddress.ip_address(host)
    except (TypeError, ValueError):
        return False
    if not address.is_loopback:
        return False
    return not sys.platform.startswith("linux") or owner_of(address, port) == os.getuid()


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
    from flwr.superlink import extensions
    from flwr.superlink.cli.flower_superlink import flower_superlink
    from starlette.middleware import Middleware

    extensions.get_middleware = lambda: (Middleware(LocalCommands),)
    flower_superlink()


def supernode() -> None:
    """Start the SuperNode."""
    from flwr.cli.build import build_fab_from_disk
    from flwr.supernode import main
    from flwr.supernode import start_client_internal as loop
    from flwr.supernode.cli.flower_supernode import flower_supernode
    from flwr.supernode.fleet_http_client import FleetHttpClient

    relay, fetch = build_fab_from_disk(_APP), FleetHttpClient.GetFab

    def checked(self: Any, request: Any) -> Any:
        response = fetch(self, request)
        if response.fab.content != relay:
            raise PermissionError("The SuperLink handed out a program that is not discreet's relay.")
        return response

    def guarded(*given: Any, **options: Any) -> Any:
        app = create(*given, **options)
        app.add_middleware(LocalCommands, public="")
        return app

    def start(command: list[str]) -> Any:
        return subprocess.Popen([sys.executable, str(Path(__file__).resolve()), "superexec", *command[1:]])

    create, main.create_app = main.create_app, guarded
    FleetHttpClient.GetFab = checked
    loop.subprocess = SimpleNamespace(Popen=start)
    loop.time = SimpleNamespace(sleep=lambda seconds: time.sleep(min(seconds, _LONGEST_PAUSE)))
    flower_supernode()


def superexec() -> None:
    """Start the SuperExec, which forks a process for every message from one that has loaded Flower."""
    from flwr.supercore.cli import flower_superexec
    from flwr.supercore.superexec.executor.subprocess_executor import SubprocessExecutor
    from flwr.supercore.superexec.executor.types import LaunchResult

    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([_CLIENT_APP])

    def forked(_: Any, spec: Any) -> Any:
        context.Process(target=client_app, args=(_options(spec),)).start()
        return LaunchResult.accepted()

    SubprocessExecutor.launch = forked
    flower_superexec()


def _options(spec: Any) -> list[str]:
    """Return the options of the process for one message."""
    options = ["--runtime-api-address", spec.runtime_api_address, "--token", spec.token]
    options += ["--insecure"] if spec.insecure else ["--root-certificates", spec.root_certificates_path]
    return options + (["--parent-pid", str(spec.parent_pid)] if spec.parent_pid is not None else [])


def client_app(options: list[str]) -> None:
    """Run the relay for one message, in a process of its own."""
    from flwr.supernode.cli.flwr_clientapp import flwr_clientapp

    sys.argv[1:] = options
    flwr_clientapp()


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
