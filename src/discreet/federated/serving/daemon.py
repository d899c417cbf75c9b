"""Answer on a local socket that only its owner may open: where Flower's forwarder finds the party."""

from __future__ import annotations

import contextlib
import os
import socket
import stat
from pathlib import Path
from typing import final

from discreet.federated.errors import CannotUse, SocketPathTooLong
from discreet.federated.flower.app.discreet_relay import frames
from discreet.federated.transport import Endpoint

# What the operating systems we know take for the path of a socket.
_LONGEST_PATH = 100
_SECONDS = 30.0


@final
class LocalServer:
    """Listen at a path; messages are answered one after the other, as a party must."""

    def __init__(self, path: Path, endpoint: Endpoint) -> None:
        self.path, self._endpoint = path, endpoint
        self._listener = listen(path)

    def run(self) -> None:
        """Answer until the server is closed."""
        while True:
            try:
                peer, _ = self._listener.accept()
            except OSError:
                return
            with peer, contextlib.suppress(OSError):
                peer.settimeout(_SECONDS)
                _, question = frames.receive(peer)
                frames.send(peer, {}, self._endpoint(question))

    def close(self) -> None:
        """Stop listening and remove the socket."""
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self.path.unlink(missing_ok=True)


def listen(path: Path) -> socket.socket:
    """Return a socket at this path that only the owner may open; one that a crash left is replaced."""
    if len(os.fsencode(path)) > _LONGEST_PATH:
        raise SocketPathTooLong(path=path)
    with contextlib.suppress(OSError):
        if stat.S_ISSOCK(path.lstat().st_mode):
            path.unlink()
    listener = socket.socket(socket.AF_UNIX)
    mask = os.umask(0o177)
    try:
        listener.bind(os.fspath(path))
        listener.listen(8)
    except OSError as error:
        listener.close()
        raise CannotUse(path=path, why=error.strerror) from error
    finally:
        os.umask(mask)
    return listener
