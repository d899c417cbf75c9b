"""The command line: one verb, one library call.

People get rich output, programs get one JSON value with `--json`. The exit code is 0, 1 (it failed, one
clear sentence on standard error), 2 (the arguments could not be understood), 130 (stopped by Ctrl-C) or 141
(whoever read the output went away).
"""

from __future__ import annotations

import sys


def main() -> None:
    """Run the command line; Ctrl-C is one sentence, also while the libraries are still being loaded."""
    try:
        from discreet.cli.application import run

        run()
    except KeyboardInterrupt as stop:
        said = str(stop) or "What a ledger had written by then is paid."
        sys.stderr.write(f"discreet: stopped. {said}\n")
        sys.exit(130)
