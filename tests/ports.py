"""Ports for servers that tests start."""

import atexit
import socket

_HELD = []


def free_port():
    """Return a port of this machine for a server to listen on, and hold it until this process ends.

    A port that is only looked up may go to somebody else before the server starts. One that is bound and does
    not listen goes to nobody, and a server that reuses addresses may still listen on it, again and again.
    """
    held = socket.socket()
    held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    held.bind(("127.0.0.1", 0))
    _HELD.append(held)
    return held.getsockname()[1]


@atexit.register
def _release():
    for held in _HELD:
        held.close()
