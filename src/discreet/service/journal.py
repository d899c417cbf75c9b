"""Log what the service does, one JSON object a line; nothing about a person, an address or a request."""

from __future__ import annotations

import contextlib
import json
import sys
from typing import Any


def log(event: str, **facts: Any) -> None:
    """Write one line to standard error; a full disk there must not end a request."""
    with contextlib.suppress(OSError):
        sys.stderr.write(json.dumps({"event": event, **facts}) + "\n")
        sys.stderr.flush()
