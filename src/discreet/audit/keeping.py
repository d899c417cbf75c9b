"""Keep what a long run of audits found in a file, so that it can be stopped and taken up again."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any, final

from discreet.audit.findings import Finding
from discreet.checks import FileError
from discreet.files import write_whole

_KIND = "audits"


@final
class Kept:
    """Hold findings by whose promise was attacked and how; with a path they are written as they come.

    A file written by another version is refused: its findings are about other code.
    """

    def __init__(self, path: Path | None = None) -> None:
        self._path = path
        self._version = version("discreet")
        self._rows: list[dict[str, Any]] = []
        if path is not None and path.exists():
            self._rows = self._read(path)

    def once(
        self, model: str, promised: float, attack: str, find: Callable[[], list[Finding]]
    ) -> list[Finding]:
        """Return what this attack found: as kept, or by `find`, and then it is kept."""
        key = {"subject": model, "asked": promised, "by": attack}
        found = [Finding.from_json(row) for row in self._rows if key.items() <= row.items()]
        if not found:
            found = find()
            today = datetime.now(UTC).date().isoformat()
            self._rows += [{**key, "date": today, **finding.to_json()} for finding in found]
            self._write()
        return found

    def _write(self) -> None:
        if self._path is not None:
            content = {"kind": _KIND, "version": self._version, "found": self._rows}
            write_whole(self._path, (json.dumps(content, indent=1) + "\n").encode())

    def _read(self, path: Path) -> list[dict[str, Any]]:
        try:
            content = json.loads(path.read_text(encoding="utf8"))
        except (OSError, ValueError) as error:
            raise FileError(f"{path} cannot be read as a run of audits; name another file.") from error
        if not isinstance(content, dict) or content.get("kind") != _KIND:
            raise FileError(f"{path} holds no run of audits; name another file.")
        if content.get("version") != self._version:
            raise FileError(
                f"{path} was written by version {content.get('version')}; begin another file for this one."
            )
        rows: list[dict[str, Any]] = content["found"]
        return rows
