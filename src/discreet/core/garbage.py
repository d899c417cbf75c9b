"""Collect garbage rarely in a command, which ends soon, and as usual in a service.

Libraries make many objects that stay to the end. Python looks for garbage among them while they are loaded,
and once more at the end. That took a third of the processor time of a short command.
"""

from __future__ import annotations

import atexit
import gc
import sys

_USUAL = gc.get_threshold()
# New objects between two collections; usually there are 700.
_RARELY = 10_000


def collect_rarely() -> None:
    """Collect after many new objects, and not at the end of the process."""
    gc.set_threshold(_RARELY, *_USUAL[1:])
    atexit.register(_keep_garbage)


def _keep_garbage() -> None:
    """Don't collect at the end, except for DuckDB, which reports what isn't collected."""
    if "duckdb" not in sys.modules:
        gc.freeze()


def collect_as_usual() -> None:
    """Collect as often as Python does, but never what was loaded so far."""
    gc.freeze()
    gc.set_threshold(*_USUAL)
