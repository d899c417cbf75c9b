"""Show a federated run: each round as it runs, and its outcome."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, final

from rich.table import Table

from discreet.cli.output.printing import remark, show
from discreet.federated.transport import Answered, Transport
from discreet.follow.coordinator import FollowedTogether
from discreet.report.label import label_table

if TYPE_CHECKING:
    from discreet.federated.coordinator import Round, RunOutcome


# A party answers only after its operator agreed at a prompt.
_ABSENT = "is absent (`discreet federation party` may be waiting for a yes there, or isn't running)"


@final
class WatchedTransport(Transport):
    """A transport that reports on standard error which parties answered and which are awaited."""

    def __init__(self, inner: Transport) -> None:
        self._inner, self._question = inner, 0

    def ask(self, question: bytes, parties: Sequence[str], seconds: float) -> Iterator[Answered]:
        """Pass on the answers and report each."""
        self._question += 1
        waiting = list(parties)
        remark(f"Question {self._question} to {', '.join(parties)}: {len(question):,} bytes.")
        for name, raw in self._inner.ask(question, parties, seconds):
            if name in waiting:
                waiting.remove(name)
            outcome = _ABSENT if raw is None else f"sent {len(raw):,} bytes"
            remark(f"  {name} {outcome}; waiting for {', '.join(waiting) or 'nobody'}.")
            yield name, raw

    def opened(self, name: str, raw: bytes) -> bytes:
        """Return the message inside."""
        return self._inner.opened(name, raw)


def show_outcome(outcome: RunOutcome | FollowedTogether, out: Path | None) -> None:
    """Print every round, or the release of a continual release, and the model's label."""
    followed = isinstance(outcome, FollowedTogether)
    first, title = ("release", "The latest release") if followed else ("round", "Rounds")
    table = Table(first, "what", "parties counted", "skipped, and why", title=title)
    for number, entry in enumerate(_rounds(outcome), start=1):
        reasons = ", ".join(f"{name}: {why}" for name, why in entry.left_out.items())
        if isinstance(entry, FollowedTogether):
            place, what = _place(entry), "current sums"
        else:
            place, what = str(number), entry.result.kind
        table.add_row(place, what, str(len(entry.counted)), reasons or "-")
    show(table, label_table(outcome.model.guarantee, f"Privacy facts: {outcome.model.name}"))
    written = "" if out is None else f"Written to {out}. "
    show(f"{written}{outcome.model.guarantee.short()}")


def _place(entry: FollowedTogether) -> str:
    """Return the number of this release, and of how many."""
    releases = json.loads(entry.model.parameters["settings"])["year"]["releases"]
    return f"{entry.release:,} of {releases:,}"


def outcome_json(outcome: RunOutcome | FollowedTogether, out: Path | None) -> dict[str, Any]:
    """Return the outcome of a run, or of a release, as JSON."""
    made = {"release": outcome.release} if isinstance(outcome, FollowedTogether) else {}
    return {
        "model": outcome.model.name,
        "file": None if out is None else str(out),
        **made,
        "rounds": [
            {"heard": list(entry.counted), "left_out": dict(entry.left_out), "refused": dict(entry.refused)}
            for entry in _rounds(outcome)
        ],
        "guarantee": outcome.model.guarantee.to_json(),
    }


def _rounds(outcome: RunOutcome | FollowedTogether) -> Sequence[Round | FollowedTogether]:
    """Return the questions of a run. A continual release is one question."""
    return [outcome] if isinstance(outcome, FollowedTogether) else outcome.rounds
