"""Run an application until it is stopped, and log what it does."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import sys
import threading
from collections.abc import Iterator, Sequence
from types import FrameType
from typing import TYPE_CHECKING, Any

from discreet.core import ExtraMissing, collect_as_usual
from discreet.service.errors import CannotListen

if TYPE_CHECKING:
    import uvicorn
    from fastapi import FastAPI

# Peers that wait for an answer when the service ends get it within this time; the others are cut off.
_LAST_SECONDS = 20
#: A service that should end is ended after this time, whatever still runs. Acknowledged reports are stored.
END_SECONDS = 90.0
# Longer than proxies keep idle connections (nginx: 60 seconds). A proxy that sends a report over a connection
# that was just closed can't know whether it arrived. If connections don't fit, idle ones are closed first.
_KEEP_ALIVE_SECONDS = 75


def need_service() -> None:
    """Raise an error if a package of the extra is missing."""
    try:
        import fastapi
        import httptools
        import orjson
        import uvicorn
    except ImportError as error:
        raise ExtraMissing(package=error.name or "fastapi", extra="discreet[service]") from error
    del fastapi, httptools, orjson, uvicorn


def run(app: FastAPI, host: str, port: int, proxies: Sequence[str] = ()) -> None:
    """Serve until SIGTERM or SIGINT: take nothing new, answer what waits, and return."""
    with listening(host, port) as listener:
        serve_at(app, listener, proxies)


def serve_at(app: FastAPI, listener: socket.socket, proxies: Sequence[str] = (), *, share: int = 1) -> None:
    """Serve the connections of a socket; `share` processes do so, and each has its part of them."""
    import uvicorn

    from discreet.service.workers import one_thread_for_linear_algebra

    class Server(uvicorn.Server):
        @contextlib.contextmanager
        def capture_signals(self) -> Iterator[None]:
            # uvicorn raises the signal again when it is done, which would end the process with stores open.
            if threading.current_thread() is not threading.main_thread():
                yield
                return
            kinds = (signal.SIGINT, signal.SIGTERM)
            self._forced: threading.Timer | None = None
            before = {kind: signal.signal(kind, self.handle_exit) for kind in kinds}
            try:
                yield
            finally:
                for kind, handler in before.items():
                    signal.signal(kind, handler)

        def handle_exit(self, sig: int, frame: FrameType | None) -> None:
            super().handle_exit(sig, frame)
            if self._forced is None:
                self._forced = threading.Timer(END_SECONDS, _end)
                self._forced.daemon = True
                self._forced.start()

    host, port = listener.getsockname()[:2]
    collect_as_usual()
    with one_thread_for_linear_algebra():
        Server(configured(app, host, port, proxies, share=share)).run(sockets=[listener])


def _end() -> None:
    log("ended by force", why=f"Something still ran after {END_SECONDS:.0f} seconds.")
    os._exit(1)


def listening(host: str, port: int) -> socket.socket:
    """Return a socket that listens at an address, or say why there cannot be one."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        made = socket.create_server((host, port), family=family)
        # asyncio sends small answers at once (TCP_NODELAY) only if a socket names its protocol.
        return socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP, fileno=made.detach())
    except OSError as error:
        raise CannotListen(host=host, port=port, why=error.strerror or str(error)) from error


def configured(
    app: FastAPI, host: str, port: int, proxies: Sequence[str] = (), *, share: int = 1
) -> uvicorn.Config:
    """Return how applications are served: no request is logged, connections are bounded."""
    import uvicorn

    from discreet.service.connections import BACKLOG, bounded_protocol, room
    from discreet.service.limits import Peers

    return uvicorn.Config(
        app,
        host=host,
        port=port,
        http=bounded_protocol(Peers(proxies), max(1, room() // share), share),
        ws="none",
        # Whose word about addresses is taken is for `Peers` to say.
        proxy_headers=False,
        access_log=False,
        log_level="critical",
        server_header=False,
        date_header=False,
        backlog=BACKLOG,
        timeout_keep_alive=_KEEP_ALIVE_SECONDS,
        timeout_graceful_shutdown=_LAST_SECONDS,
    )


def log(event: str, **facts: Any) -> None:
    """Write one line to standard error; a full disk there must not end a request."""
    with contextlib.suppress(OSError):
        sys.stderr.write(json.dumps({"event": event, **facts}) + "\n")
        sys.stderr.flush()
