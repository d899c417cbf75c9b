"""Run a paper's experiment: its size, the results so far, and the time left."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeVar, final

from discreet.core.checks import FileError
from discreet.core.files import write_whole

Size = Literal["full", "quick", "toy"]
Say = Callable[[str], None]
Option = TypeVar("Option")


class DrawnValues(NamedTuple):
    """Hold values with their number of draws, where that differs from the number of values."""

    values: Sequence[float]
    draws: int


class Tick(NamedTuple):
    """Hold the progress of a run; `seconds_left` is None without an earlier run to estimate it from."""

    step: str
    done: int
    total: int
    seconds_left: float | None


@final
class Run:
    """Hold what `measure` needs: the size, stored steps, and a folder for figures (None stores nothing)."""

    def __init__(
        self,
        size: Size,
        folder: Path | None,
        *,
        say: Say = lambda text: None,
        tick: Callable[[Tick], None] = lambda tick: None,
        earlier: Mapping[str, float] | None = None,
    ) -> None:
        self.size = size
        self.folder = folder
        self.say = say
        self._tick = tick
        self._earlier = dict(earlier or {})
        self._kept = KeptSteps(folder / "steps.jsonl", size) if folder else None
        self._seconds: dict[str, float] = {}

    def pick(self, *, full: Option, quick: Option, toy: Option) -> Option:
        """Return the option for this run's size."""
        return {"full": full, "quick": quick, "toy": toy}[self.size]

    def step(self, name: str, work: Callable[..., Any], *args: Any, **named: Any) -> Any:
        """Return the result of `work` after a JSON round trip; from the folder if it is stored there."""
        kept = self._kept.get(name) if self._kept else None
        if kept is None:
            started = time.perf_counter()
            found = json.loads(json.dumps(work(*args, **named)))
            kept = {"step": name, "seconds": round(time.perf_counter() - started, 2), "found": found}
            if self._kept:
                self._kept.add(kept)
            self._seconds[name] = kept["seconds"]
            self._tick(self._progress(name))
        else:
            self._seconds[name] = 0.0
        return kept["found"]

    def write(self, name: str, content: Any) -> None:
        """Write numbers to the folder of the figures."""
        if self.folder:
            write_whole(self.folder / name, (json.dumps(content, indent=1) + "\n").encode())

    def _progress(self, name: str) -> Tick:
        left = {step: seconds for step, seconds in self._earlier.items() if step not in self._seconds}
        both = [step for step, seconds in self._seconds.items() if seconds and step in self._earlier]
        before = sum(self._earlier[step] for step in both)
        pace = sum(self._seconds[step] for step in both) / before if before else 1.0
        seconds_left = pace * sum(left.values()) if self._earlier else None
        return Tick(name, len(self._seconds), len(self._seconds) + len(left), seconds_left)


@final
class KeptSteps:
    """Store steps in a file with one JSON object per line; a run resumes after the last whole line."""

    def __init__(self, path: Path, size: Size) -> None:
        self._path, self._size = path, size
        self._found = {record["step"]: record for record in read_steps(path) if record["size"] == size}

    def get(self, name: str) -> dict[str, Any] | None:
        """Return the stored record of a step, or None."""
        return self._found.get(name)

    def add(self, record: dict[str, Any]) -> None:
        """Store a step at once."""
        try:
            with self._path.open("a", encoding="utf8") as file:
                file.write(json.dumps(record | {"size": self._size}) + "\n")
        except OSError as error:
            raise FileError(f"{self._path} cannot be written: {error.strerror}.") from error
        self._found[record["step"]] = record


def read_steps(path: Path) -> list[dict[str, Any]]:
    """Return the steps of a file, and remove an incomplete last line from it."""
    if not path.exists():
        return []
    try:
        text = path.read_text(encoding="utf8")
        whole = text[: text.rfind("\n") + 1]
        if whole != text:
            write_whole(path, whole.encode())
        return [dict(json.loads(line)) for line in whole.splitlines()]
    except (OSError, ValueError) as error:
        raise FileError(f"{path} does not hold the steps of a paper; remove it.") from error
