"""Count what the service did, for whoever watches it: numbers only."""

from __future__ import annotations

from collections import Counter
from typing import final

from discreet.collect.ratings.wire import ReportRefusal
from discreet.service.admission import Receipt


@final
class Tally:
    """Add up receipts and refusals since the service began."""

    def __init__(self) -> None:
        self.kept = self.repeated = 0
        self.refused: Counter[str] = Counter()

    def add(self, receipt: Receipt) -> None:
        """Count one receipt."""
        self.kept += receipt.kept
        self.repeated += receipt.repeated
        self.refused.update({reason.value: count for reason, count in receipt.refused.items()})

    def refuse(self, reason: ReportRefusal) -> None:
        """Count a message that was refused as a whole."""
        self.refused[reason.value] += 1

    def text(self) -> str:
        """Return the counts in the text form that Prometheus reads."""
        lines = [
            "# TYPE discreet_reports_kept_total counter",
            f"discreet_reports_kept_total {self.kept}",
            "# TYPE discreet_reports_repeated_total counter",
            f"discreet_reports_repeated_total {self.repeated}",
            "# TYPE discreet_refused_total counter",
        ]
        lines += [
            f'discreet_refused_total{{reason="{reason.value}"}} {self.refused[reason.value]}'
            for reason in ReportRefusal
        ]
        return "\n".join(lines) + "\n"
