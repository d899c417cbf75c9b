"""Start Flower's SuperLink or SuperNode with all interfaces closed that discreet does not need.

Runs with Flower's Python, imports flwr alone, and is tied to the one release that pyproject.toml names:
`python launch.py superlink OPTIONS`, `python launch.py supernode OPTIONS`, or `python launch.py orders` with
lists of arguments for Flower's command line on standard input. All end with the process that started them.

*SuperLink.* Flower 1.41 serves parties, its command line and its own processes on one port, and authenticates
only parties: anyone who reaches the port could start a run, which is a program, on every machine of the
federation. Here requests from other machines reach the parties' endpoint only.

*SuperNode.* It runs any program that the SuperLink sends. Here that program is compared, byte for byte, with
the relay packed from the party's own copy of discreet.
"""

from __future__ import annotations

import ipaddress
import json
import os
import signal
import sys
import threading
import time
from pathlib import Path
from typing import Any

_PARTIES_ENDPOINT = "/v1/fleet/"
_APP = Path(__file__).resolve().parent / "app"


class LocalCommands:
    """Refuse requests from other machines for anything but the parties' endpoint."""

    def __init__(self, app: Any) -> None:
        self._app = app

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Pass on allowed requests."""
        if scope["type"] == "lifespan" or _is_allowed(scope):
            await self._app(scope, receive, send)
        elif scope["type"] == "http":
            await send({"type": "http.response.start", "status": 403, "headers": []})
            await send({"type": "http.response.body", "body": b""})


def _is_allowed(scope: Any) -> bool:
    if scope["type"] == "http" and scope["path"].startswith(_PARTIES_ENDPOINT):
        return True
    try:
        return ipaddress.ip_address(scope["client"][0]).is_loopback
    except (TypeError, ValueError):
        return False


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
    from flwr.supernode.cli.flower_supernode import flower_supernode
    from flwr.supernode.fleet_http_client import FleetHttpClient

    relay, fetch = build_fab_from_disk(_APP), FleetHttpClient.GetFab

    def checked(self: Any, request: Any) -> Any:
        response = fetch(self, request)
        if response.fab.content != relay:
            raise PermissionError("The SuperLink handed out a program that is not discreet's relay.")
        return response

    FleetHttpClient.GetFab = checked
    flower_supernode()


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
    {"superlink": superlink, "supernode": supernode, "orders": orders}[what]()
