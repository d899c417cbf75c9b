"""`discreet campaign show`: what a campaign asks and promises."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from discreet.commands.options.declared import AsJson
from discreet.commands.output.campaign import tell


def show(file: Annotated[Path, typer.Argument(help="A campaign file.")], as_json: AsJson = False) -> None:
    """Print what a campaign asks and promises."""
    from discreet.collect.opening import open_campaign

    tell(open_campaign(file), as_json)
