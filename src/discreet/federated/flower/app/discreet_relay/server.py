"""Forward the coordinator's questions to the nodes of parties and return answers, until it disconnects."""

from __future__ import annotations

import logging
import select
import socket
import time
from collections.abc import Callable, Iterable
from typing import Any

from flwr.app import ConfigRecord, Context, Message, RecordDict
from flwr.serverapp import Grid, ServerApp

from . import frames

app = ServerApp()
_LOG = logging.getLogger(__name__)
_POLL_SECONDS = 0.1
# How often Flower is asked which nodes are online; it takes a minute to miss one.
_ROLL_CALL_EVERY = 1.0
# A restarted node has lost its message: after this many seconds it is asked again.
_ASK_AGAIN = 90.0


@app.main()
def main(grid: Grid, context: Context) -> None:
    """Serve the coordinator behind the socket that the run names."""
    with socket.socket(socket.AF_UNIX) as line:
        line.connect(str(context.run_config["socket"]))
        while True:
            try:
                header, question = frames.receive(line)
                _Round(grid, line, header, question).run()
            except ConnectionError:
                return


class _Round:
    """One question: the nodes that have not answered, and the messages on their way to them."""

    def __init__(self, grid: Grid, line: socket.socket, header: dict[str, Any], question: bytes) -> None:
        self._grid, self._line, self._header, self._question = grid, line, header, question
        self._end = time.monotonic() + float(header["seconds"])
        self._silent: set[str] = set(header["nodes"])
        self._sent: dict[str, str] = {}
        self._since: dict[str, float] = {}

    def run(self) -> None:
        """Return answers until all nodes have answered, time is up or the coordinator sends another frame."""
        roll_call = 0.0
        while self._silent and time.monotonic() < self._end:
            if time.monotonic() > roll_call:
                roll_call = time.monotonic() + _ROLL_CALL_EVERY
                self._call_roll()
            if select.select([self._line], [], [], _POLL_SECONDS)[0]:
                return
            self._pass_on()

    def _call_roll(self) -> None:
        """Ask nodes that are new or back online; a party answers a repeated question with the same bytes."""
        listed = _tried(self._grid.get_node_ids)
        if listed is None:
            return
        online = {str(node) for node in listed}
        now = time.monotonic()
        due = [
            n for n in sorted(self._silent & online) if now - self._since.get(n, -_ASK_AGAIN) >= _ASK_AGAIN
        ]
        messages = [self._message(int(node)) for node in due]
        for node, message_id in zip(due, _tried(self._grid.push_messages, messages) or (), strict=False):
            if message_id:
                self._sent[message_id], self._since[node] = node, now
        self._send({"absent": sorted(self._silent - online)})

    def _pass_on(self) -> None:
        for reply in (_tried(self._grid.pull_messages, list(self._sent)) if self._sent else None) or ():
            node = self._sent.pop(reply.metadata.reply_to_message_id, None)
            if node in self._silent:
                self._silent.discard(node)
                self._send({"node": node, "error": reply.has_error()}, _contents(reply))

    def _send(self, header: dict[str, Any], body: bytes = b"") -> None:
        frames.send(self._line, {"ask": self._header["ask"], **header}, body)

    def _message(self, node: int) -> Message:
        record = RecordDict({"message": ConfigRecord({"bytes": self._question})})
        left = max(self._end - time.monotonic(), 1.0)
        return Message(record, dst_node_id=node, message_type="query", ttl=left)


def _tried(ask: Callable[..., Iterable[Any]], *given: Any) -> list[Any] | None:
    """Return what Flower answers, or None if it fails, as on a busy machine: the round asks again soon.

    An error that left the relay would end the run.
    """
    try:
        return list(ask(*given))
    except Exception:
        _LOG.exception("Flower failed; the relay tries again.")
        return None


def _contents(reply: Message) -> bytes:
    """Return the bytes that a node sent; nothing if it sent anything else."""
    if reply.has_error():
        return b""
    try:
        sent = reply.content["message"]["bytes"]
    except KeyError:
        return b""
    return sent if isinstance(sent, bytes) and len(sent) <= frames.MOST_BODY else b""
