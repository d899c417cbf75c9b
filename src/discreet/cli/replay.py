"""`discreet follow replay`: would a continual release have shown users what they chose next?"""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated

import typer

from discreet.cli.options.declared import AsJson, Data, Reading
from discreet.cli.options.parsing import parse_number
from discreet.cli.options.years import ComeOnce, HalfLife, Year, year_settings
from discreet.cli.output.printing import emit, show
from discreet.cli.output.years import replay_shown


def replay(
    data: Data,
    reading: Reading,
    epsilon: Annotated[
        float,
        typer.Option(
            "--epsilon",
            help="The epsilon of the guarantee for all releases.",
            parser=parse_number,
            metavar="FLOAT",
        ),
    ],
    delta: Annotated[
        float, typer.Option("--delta", help="The delta of the guarantee for all releases.")
    ] = 1e-6,
    releases: Annotated[int, typer.Option("--releases", help="How many releases: 52 is weekly.")] = 52,
    half_life: HalfLife = None,
    year: Year = "365d",
    come_once: ComeOnce = False,
    begins: Annotated[
        str | None,
        typer.Option("--from", help="When the year begins, as in 2025-01-31. Default: the data's last year."),
    ] = None,
    seed: Annotated[int, typer.Option("--seed", help="The seed of the (simulated) noise.")] = 0,
    as_json: AsJson = False,
) -> None:
    """Replay a past year of your data, and compare following with fits and refits. Nothing is released.

    After each release, every way is scored on the items that users chose before the next release.
    """
    from discreet.core.progress import terminal_progress
    from discreet.data.epochs import seconds_of
    from discreet.follow.replay import replay_year

    if reading.duplicates == "refuse":
        # As in a continual release, only the first of a user's interactions with an item counts.
        reading = replace(reading, duplicates="first")
    past = reading.load(data)
    settings = year_settings(
        releases=releases,
        epsilon=epsilon,
        delta=delta,
        half_life=half_life,
        year=year,
        come_once=come_once,
        rated=not reading.implicit,
    )
    moment = None if begins is None else seconds_of(begins, "begins")
    with terminal_progress(None) as report:
        found = replay_year(past, settings, begins=moment, seed=seed, progress=report)
    if as_json:
        emit(found.to_json())
        return
    fades = (
        "" if half_life or not reading.implicit else " Nothing fades here: also try --half-life 30d, or 7d."
    )
    *shown, last = replay_shown(found)
    show(*shown, f"{last}{fades}")
