"""Show a federated run: each round as it goes, and its outcome."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, final

from rich.table import Table

from discreet.cli.output.printing import remark, show
from discreet.federated.transport import Answered, Transport

if TYPE_CHECKING:
    from discreet.federated.coordinator import RunOutcome


@final
class WatchedTransport(Transport):
    """Report on standard error which parties answered and which are awaited."""

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
            outcome = "is absent" if raw is None else f"sent {len(raw):,} bytes"
            remark(f"  {name} {outcome}; waiting for {', '.join(waiting) or 'nobody'}.")
            yield name, raw

    def opened(self, name: str, raw: bytes) -> bytes:
        """Return the message inside."""
        return self._inner.opened(name, raw)


def show_outcome(outcome: RunOutcome, out: Path | None) -> None:
    """Print every round and the model's label."""
    table = Table("round", "what", "parties counted", "left out, and why", title="Rounds")
    for number, entry in enumerate(outcome.rounds, start=1):
        reasons = ", ".join(f"{name}: {why}" for name, why in entry.left_out.items())
        table.add_row(str(number), entry.result.kind, str(len(entry.counted)), reasons or "-")
    show(table, outcome.model.guarantee.label(f"Privacy facts: {outcome.model.name}"))
    written = "" if out is None else f"Written to {out}. "
    show(f"{written}{outcome.model.guarantee.short()}")


def outcome_json(outcome: RunOutcome, out: Path | None) -> dict[str, Any]:
    """Return the outcome of a run as JSON."""
    return {
        "model": outcome.model.name,
        "file": None if out is None else str(out),
        "rounds": [
            {"heard": list(entry.counted), "left_out": dict(entry.left_out), "refused": dict(entry.refused)}
            for entry in outcome.rounds
        ],
        "guarantee": outcome.model.guarantee.to_json(),
    }
