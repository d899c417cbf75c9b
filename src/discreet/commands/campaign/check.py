"""`discreet campaign check`: recompute what a campaign's tables reveal."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from discreet.checks import ParameterError
from discreet.commands.options.declared import AsJson
from discreet.commands.output.campaign import facts_of
from discreet.commands.output.printing import emit, show


def check(file: Annotated[Path, typer.Argument(help="A campaign file.")], as_json: AsJson = False) -> None:
    """Recompute the largest loss from the tables of a campaign; one that promises less exits with 1."""
    from discreet.collect.draws import told_loss
    from discreet.collect.opening import open_campaign

    campaign = open_campaign(file)
    record = campaign.to_json()
    if "draws" not in record:
        raise ParameterError("This campaign has no tables: it was written in version 1. Make it again.")
    loss, epsilon = told_loss(record["draws"]), campaign.mechanism.epsilon
    if as_json:
        emit({**facts_of(campaign), "largest_log_ratio": loss})
    else:
        show(f"The tables of {file} reveal at most {loss:.12g}; the campaign says {epsilon:g}.")
