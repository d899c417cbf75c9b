"""Forward a question to the party's daemon and return its answer: all that Flower runs at a party."""

from __future__ import annotations

import socket

from flwr.app import ConfigRecord, Context, Message, RecordDict
from flwr.clientapp import ClientApp

from . import frames

app = ClientApp()


@app.query()
def forward(message: Message, context: Context) -> Message:
    """Return the daemon's answer; if it is not running, Flower reports an error."""
    question = message.content["message"]["bytes"]
    with socket.socket(socket.AF_UNIX) as line:
        line.settimeout(float(context.node_config["seconds"]))
        line.connect(str(context.node_config["socket"]))
        frames.send(line, {}, question)
        _, answer = frames.receive(line)
    return Message(RecordDict({"message": ConfigRecord({"bytes": answer})}), reply_to=message)
