"""Keep finished evaluations in a file, so that a long comparison can go on where it was stopped."""

from __future__ import annotations

import hashlib
import json
import math
from pathlib import Path
from typing import Any, final

from discreet.checks import DiscreetError, FileError
from discreet.data.interactions import Interactions
from discreet.evaluation.evaluation import Evaluation, Score
from discreet.privacy.guarantee import Guarantee

_FORMAT = "discreet-comparison"
_VERSION = 1


@final
class Kept:
    """A file of one JSON object a line: what was measured, and what was found."""

    def __init__(self, path: str | Path) -> None:
        self._path = Path(path)
        self._found = _read(self._path) if self._path.exists() else {}

    def get(self, key: str) -> Evaluation | None:
        """Return what was found under this key, if it was."""
        return self._found.get(key)

    def add(self, key: str, evaluation: Evaluation) -> None:
        """Keep what was found, at once."""
        record = {"format": _FORMAT, "version": _VERSION, "key": key, "found": evaluation.to_json()}
        try:
            with self._path.open("a", encoding="utf-8") as file:
                file.write(json.dumps(record) + "\n")
        except OSError as error:
            raise FileError(f"{self._path} cannot be written: {error.strerror}.") from error
        self._found[key] = evaluation


def key_of(data: Interactions, **asked: Any) -> str:
    """Return a digest of the data and of everything that was asked: equal keys have equal answers."""
    digest = hashlib.blake2b(digest_size=16)
    for array in (data.indptr, data.items, data.values, data.times, data.listed):
        digest.update(b"none" if array is None else array.tobytes())
    digest.update(json.dumps(asked, sort_keys=True, default=str).encode())
    return digest.hexdigest()


def _read(path: Path) -> dict[str, Evaluation]:
    try:
        lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
    except (OSError, UnicodeDecodeError) as error:
        raise FileError(f"{path} cannot be read as a kept comparison.") from error
    found: dict[str, Evaluation] = {}
    for line in lines:
        # A line that was being written when the program stopped has no end.
        if not line.endswith("\n"):
            continue
        try:
            record = json.loads(line)
            if record["format"] != _FORMAT or record["version"] != _VERSION:
                raise ValueError
            found[str(record["key"])] = _evaluation(record["found"])
        except (ValueError, KeyError, TypeError, AttributeError, DiscreetError) as error:
            raise FileError(f"{path} is not a comparison that discreet kept; name another file.") from error
    return found


def _evaluation(record: dict[str, Any]) -> Evaluation:
    return Evaluation(
        model=str(record["model"]),
        parameters={
            name: math.inf if value == "inf" else value for name, value in record["parameters"].items()
        },
        data={name: int(count) for name, count in record["data"].items()},
        guarantee=Guarantee.from_json(record["guarantee"]),
        metrics=_scores(record["metrics"]),
        seconds={name: float(value) for name, value in record["seconds"].items()},
        peak_mb=record["peak_mb"],
        references={name: _scores(scores) for name, scores in record.get("references", {}).items()},
    )


def _scores(record: dict[str, Any]) -> dict[str, Score]:
    return {name: Score(tuple(map(float, score["values"]))) for name, score in record.items()}
