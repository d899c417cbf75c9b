"""Run a paper's experiment: its size, the results so far, and the time left.

Every step is kept as it is reached, so that a run goes on after a stop. A run with a limit of minutes judges
what it has reached when they are over; 0 minutes judge what was kept before.
"""

from __future__ import annotations

import json
import math
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeVar, final

from discreet.core import CannotWrite, Floats, write_whole
from discreet.reproduce.errors import NotResults

Size = Literal["full", "quick", "toy"]
Option = TypeVar("Option")


class DrawnValues(NamedTuple):
    """Values with their number of draws, if that differs from the number of values.

    `error` is the standard error of their mean if the values themselves do not give it.
    """

    values: Sequence[float]
    draws: int
    error: float | None = None

    @classmethod
    def of(cls, values: DrawnValues | Sequence[float]) -> DrawnValues:
        """Return plain values as one draw each."""
        return values if isinstance(values, DrawnValues) else cls(values, len(values))


#: Values of claims, by the claim's ID.
Found = dict[str, Sequence[float] | DrawnValues]


def ratio_of_means(values: Sequence[float] | Floats, beside: Sequence[float] | Floats) -> DrawnValues:
    """Return the ratio of two means over the draws that both have, with its error (delta method)."""
    draws = min(len(values), len(beside))
    values, beside = values[:draws], beside[:draws]
    ratio = statistics.fmean(values) / statistics.fmean(beside)
    left = [one - ratio * other for one, other in zip(values, beside, strict=True)]
    error = statistics.stdev(left) / math.sqrt(draws) / abs(statistics.fmean(beside)) if draws > 1 else None
    return DrawnValues([ratio], draws, error)


def slope(x: Sequence[float], y: Sequence[float]) -> float:
    """Return the slope of log y over log x."""
    return statistics.linear_regression(
        [math.log(value) for value in x], [math.log(value) for value in y]
    ).slope


class NotReached(Exception):
    """Stop an experiment whose minutes are over; what it has reached is judged."""


class Reached(dict[str, Any]):
    """What was reached, by name. A lookup of anything else stops the part of the paper that needs it."""

    def __missing__(self, name: str) -> Any:
        raise NotReached(name)


def quiet(*_: object) -> None:
    """Show nothing."""


@final
@dataclass(eq=False)
class Run:
    """One run of a paper: its size, stored steps, and a folder for figures (None stores nothing).

    After `minutes` no further step begins; `most` limits the draws of every experiment; `earlier` has the
    seconds of an earlier run's steps. `data` has paths of your copies of datasets by name. `missing` lists
    the parts without a single draw. `made` has, by an experiment's first step, how many draws were reached
    and how many are wanted.

    Example:
        >>> run = Run("toy", None)
        >>> run.pick(full=10, quick=3, toy=1), run.step("one half", lambda: 0.5)
        (1, 0.5)

    Stability
        Provisional: names may still change in 0.x.
    """

    size: Size
    folder: Path | None
    _: KW_ONLY
    say: Callable[[str], None] = quiet
    progress: Callable[[int, int], None] = quiet
    earlier: Mapping[str, float] = field(default_factory=dict)
    minutes: float = math.inf
    most: int | None = None
    data: Mapping[str, Path] = field(default_factory=dict)
    missing: list[str] = field(init=False, default_factory=list)
    made: dict[str, tuple[int, int]] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        self._first = ""
        self._ends = time.monotonic() + 60 * self.minutes
        self._kept = KeptSteps(self.folder / "steps.jsonl", self.size) if self.folder else None
        self._made: set[str] = set()

    def pick(self, *, full: Option, quick: Option, toy: Option) -> Option:
        """Return the option for this run's size."""
        return {"full": full, "quick": quick, "toy": toy}[self.size]

    def draws(self, count: int, work: Callable[[int], Option]) -> list[Option]:
        """Return the results of `work` for seeds 0, 1, ...: as many as were reached, at most `count`."""
        found: list[Option] = []
        self._first = ""
        try:
            while len(found) < min(count, self.most or count):
                found.append(work(len(found)))
        except NotReached:
            if not found:
                raise
        finally:
            self.made[self._first] = (len(found), count)
        return found

    def seeds(
        self, name: str, work: Callable[..., Any], *args: Any, full: int = 10, quick: int = 1, **named: Any
    ) -> list[Any]:
        """Return the results of `work(*args, seed=...)` for seeds 0, 1, ...: each is a step `name seed`."""
        count = self.pick(full=full, quick=quick, toy=1)
        return self.draws(count, lambda seed: self.step(f"{name} {seed}", work, *args, seed=seed, **named))

    def by(self, key: str, name: str, work: Callable[..., Any], *args: Any, **named: Any) -> dict[str, Any]:
        """Return the results of `seeds` under a key."""
        return {key: self.seeds(name, work, *args, **named)}

    def part(self, work: Callable[..., dict[str, Any] | None], *args: Any, **named: Any) -> dict[str, Any]:
        """Return the result of a part of a paper, or nothing if its first draw was not reached."""
        try:
            return work(*args, **named) or {}
        except NotReached as missing:
            self.missing.append(str(missing))
            return {}

    def step(self, name: str, work: Callable[..., Any], *args: Any, **named: Any) -> Any:
        """Return the result of `work` after a JSON round trip; from the folder if it is stored there."""
        self._first = self._first or name
        kept = self._kept.get(name) if self._kept else None
        if kept is None:
            if time.monotonic() > self._ends:
                raise NotReached(name)
            started, used = time.perf_counter(), time.process_time()
            found = json.loads(json.dumps(work(*args, **named)))
            kept = {
                "step": name,
                "seconds": round(time.perf_counter() - started, 2),
                "cpu": round(time.process_time() - used, 2),
                "found": found,
            }
            if self._kept:
                self._kept.add(kept)
        self._made.add(name)
        # As a percentage of the earlier run's time: steps take from milliseconds to an hour.
        whole = sum(self.earlier.values())
        made = sum(seconds for step, seconds in self.earlier.items() if step in self._made)
        self.progress(round(100 * made / whole) if whole else 0, 100 if whole else 0)
        return kept["found"]

    def write(self, name: str, content: Any) -> None:
        """Write numbers to the folder of the figures."""
        if self.folder:
            write_whole(self.folder / name, (json.dumps(content, indent=1) + "\n").encode())


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
            raise CannotWrite(path=self._path, why=error.strerror) from error
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
        raise NotResults(path=path) from error
