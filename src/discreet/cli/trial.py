"""`discreet try`: find out whether a private model is worth it on your own data."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any, cast

from discreet.cli import lib
from discreet.cli.options.accounts import LedgerAccount, account_for, plain, unused
from discreet.cli.options.declared import Data, Epsilon, Force, Question, Reading
from discreet.cli.options.parsing import command_line
from discreet.cli.output.printing import Output, remark, show_next
from discreet.core import terminal_progress, without_password


def trial(
    data: Data,
    *,
    reading: Reading,
    epsilon: Epsilon = 1.0,
    purpose: Question = None,
    seed: int = 0,
    out: Path | None = None,
    force: Force = False,
) -> Output:
    """Find out in a minute whether a private model beats private popularity and simple means on your data.

    This spends no budget. Don't publish the answer: it is computed without noise.

    Options:
        epsilon: Privacy loss to try. Smaller is more private; 1 is a strong guarantee.
        seed: Seed of the split and of the simulated noise.
        out: Also write a page (HTML) to this file.
    """
    if out is not None:
        lib.refuse_page(out, kind=lib.TRIAL_KIND, force=force, inputs=reading.files(data))
    reading, interactions = _loaded(reading, data)
    with terminal_progress(None) as report:
        found = lib.trial(
            interactions, epsilon=epsilon, seed=seed, purpose=cast(Any, purpose), progress=report
        )
    account = account_for(interactions.name)
    command = _next_command(found, data, account, reading)
    if out is not None:
        lib.write_page(
            out, lib.render(found, without_password(data), command), kind=lib.TRIAL_KIND, force=force
        )
    return Output(
        {**found.to_json(), "next": command, "report": None if out is None else str(out)},
        *lib.trial_summary(found),
        lambda: show_next(command),
        *filter(None, [account.remark()]),
        *([] if out is None else [f"Page written to {out}."]),
    )


def _loaded(reading: Reading, data: str) -> tuple[Reading, lib.Interactions]:
    """Return the data; if no column has ratings, rows are interactions."""
    try:
        return reading, reading.load(data)
    except lib.RolesMissing as missing:
        if missing.roles != ("rating",):
            raise
    remark("discreet: no column has a usual name for ratings, so rows are read as interactions (--implicit).")
    clicks = replace(reading, implicit=True)
    return clicks, clicks.load(data)


def _next_command(found: lib.Trial, data: str, account: LedgerAccount, reading: Reading) -> str:
    """Return the fit that the answers suggest, with all options that read the file, and with a ledger."""
    chosen = {} if reading.implicit and "--for" in found.options else found.options
    release = {
        "--epsilon": f"{found.asked.epsilon:g}",
        "--name": account.name,
        "--ledger": account.ledger,
        "--out": unused(plain(account.name)),
    }
    return command_line("discreet", "fit", data, options={**reading.given(), **chosen, **release})
