"""The command line: each verb is one library call.

Readers get formatted output. With `--json`, programs get one JSON value. The exit code is 0 (success), 1
(failure, with one sentence on standard error), 2 (wrong arguments), 130 (stopped by Ctrl-C), or 141 (the
reader of the output closed the pipe).
"""

from __future__ import annotations

import sys

from discreet.core.interrupts import not_lost


def main() -> None:
    """Run the command line. Ctrl-C prints one sentence, even while libraries are being loaded."""
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
        # Only a process that has loaded ledgers can have spent.
        loaded = "discreet.privacy.ledger.book" in sys.modules
        unknown = "Budget that a ledger had recorded by then stays spent."
        said = str(stop) or (unknown if loaded else "Nothing was spent.")
        sys.stderr.write(f"discreet: stopped. {said}\n")
        sys.exit(130)
