"""The command line: each verb is one library call.

Readers get formatted output. With `--json`, programs get one JSON value. The exit code is 0 (success), 1
(failure, with one sentence on standard error), 2 (wrong arguments), 130 (stopped by Ctrl-C), or 141 (the
reader of the output closed the pipe).
"""

from __future__ import annotations

import sys

from discreet.core.garbage import collect_rarely
from discreet.core.interrupts import not_lost


def main() -> None:
    """Run the command line. Ctrl-C prints one sentence, even while libraries are being loaded."""
    collect_rarely()
    try:
        with not_lost():
            if sys.argv[1:] in (["--help"], ["--help-all"]):
                # Version and help are printed before any library is loaded.
                from discreet.cli.verbs import overview

                sys.stdout.write(overview(everything=sys.argv[1] == "--help-all") + "\n")
                return
            from discreet.cli.application import run

            run()
    except KeyboardInterrupt as stop:
        # Not imported here: without it, no ledger was opened.
        ledgers = sys.modules.get("discreet.privacy.ledger.ledger")
        may_have = ledgers is not None and ledgers.Ledger.any_opened
        spent = "Budget that a ledger had recorded by then stays spent." if may_have else "Nothing was spent."
        said = str(stop) or spent
        sys.stderr.write(f"discreet: stopped. {said}\n")
        sys.exit(130)
